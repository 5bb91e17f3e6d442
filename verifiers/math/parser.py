r"""Tokens to a syntax tree, by recursive descent.

The grammar follows what people write rather than one standard: `\frac12`, `6\frac23` (a mixed number),
`\sin 2x \cos x`, `2|x-1|`, `[0,1)`, `x=1 \text{ or } x=2`, `5 \pm \sqrt 3`, `\begin{pmatrix}1&2\\3&4\end{pmatrix}`.
`1/2x` is read from left to right.

Everything is read or nothing is: a token that does not fit raises `NotMathError`, so that no verdict rests on
half an answer.  Not covered: integrals, sums, products, limits and unfinished series, which raise as well and are
left to the symbolic tier.

Matrix arithmetic: sums, products, multiples and determinants folded into one matrix or one expression.

Sizes are bounded (10 by 10, determinants to 4 by 4), so a response cannot make the entries explode.
"""

from __future__ import annotations

from itertools import islice, permutations
from typing import Final

from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.lexer import Token, tokenize
from adjudge.verifiers.math.nodes import (
    ZERO,
    Collection,
    Matrix,
    MisleadingMathError,
    Node,
    NotMathError,
    Number,
    Operation,
    Relation,
    Symbol,
    Unit,
    children,
    is_expression,
    is_op,
    rebuild,
    walk,
)
from adjudge.verifiers.math.operands import OperandParser
from adjudge.verifiers.math.units import is_measure, is_unit, sum_of_measures

MAX_SIDE: Final = 10
MAX_DETERMINANT: Final = 4
MAX_NODES: Final = 1500  # of the trees that take part in one operation


def fold(node: Node) -> Node:
    """Return the tree with matrix arithmetic carried out, bottom up.

    Raises:
        NotMathError: the shapes do not fit or are too large.
    """
    parts = tuple(fold(child) for child in children(node))
    if any(new is not old for new, old in zip(parts, children(node), strict=True)):
        node = rebuild(node, parts)
    if not isinstance(node, Operation) or not any(isinstance(arg, Matrix) for arg in node.args):
        return node
    if sum(1 for _ in islice(walk(node), MAX_NODES)) == MAX_NODES:
        raise NotMathError("matrix arithmetic beyond the limit")
    if node.name == "mul":
        return _product(node)
    if node.name == "add":
        return _sum(node)
    if node.name == "neg" and isinstance(node.args[0], Matrix):
        return _map(node.args[0], "neg")
    if node.name == "div" and isinstance(node.args[0], Matrix) and is_expression(node.args[1]):
        matrix, below = node.args
        assert isinstance(matrix, Matrix)
        return Matrix(tuple(tuple(Operation("div", (entry, below)) for entry in row) for row in matrix.rows))
    if node.name == "det" and isinstance(node.args[0], Matrix):
        return _determinant(node.args[0])
    return node


def _map(matrix: Matrix, name: str) -> Matrix:
    return Matrix(tuple(tuple(Operation(name, (entry,)) for entry in row) for row in matrix.rows))


def _product(node: Operation) -> Node:
    scalars = [arg for arg in node.args if not isinstance(arg, Matrix)]
    if not all(is_expression(arg) for arg in scalars):
        return node
    matrix: Matrix | None = None
    for arg in node.args:
        if isinstance(arg, Matrix):
            matrix = arg if matrix is None else _times(matrix, arg)
            if sum(1 for _ in islice(walk(matrix), MAX_NODES)) == MAX_NODES:
                raise NotMathError("matrix arithmetic beyond the limit")
    assert matrix is not None
    if not scalars:
        return matrix
    return Matrix(tuple(tuple(Operation("mul", (*scalars, entry)) for entry in row) for row in matrix.rows))


def _times(left: Matrix, right: Matrix) -> Matrix:
    inner = len(right.rows)
    if max(len(left.rows), inner, len(right.rows[0])) > MAX_SIDE:
        raise NotMathError(f"a product of matrices beyond {MAX_SIDE} by {MAX_SIDE}")
    if any(len(row) != inner for row in left.rows) or len({len(row) for row in right.rows}) != 1:
        raise NotMathError("a product of matrices that do not fit")
    columns = list(zip(*right.rows, strict=True))
    return Matrix(
        tuple(
            tuple(
                Operation("add", tuple(Operation("mul", pair) for pair in zip(row, column, strict=True)))
                for column in columns
            )
            for row in left.rows
        )
    )


def _sum(node: Operation) -> Node:
    total = node.args[0]
    for arg in node.args[1:]:
        if not (isinstance(total, Matrix) and isinstance(arg, Matrix)) or [*map(len, total.rows)] != [
            *map(len, arg.rows)
        ]:
            raise NotMathError("a sum of matrices that do not fit")
        total = Matrix(
            tuple(
                tuple(Operation("add", pair) for pair in zip(left, right, strict=True))
                for left, right in zip(total.rows, arg.rows, strict=True)
            )
        )
    return total


def _determinant(matrix: Matrix) -> Node:
    size = len(matrix.rows)
    if size > MAX_DETERMINANT or any(len(row) != size for row in matrix.rows):
        raise NotMathError(f"a determinant that is not square or beyond {MAX_DETERMINANT} by {MAX_DETERMINANT}")
    terms: list[Node] = []
    for order in permutations(range(size)):
        term: Node = Operation("mul", tuple(matrix.rows[row][column] for row, column in enumerate(order)))
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        terms.append(Operation("neg", (term,)) if swaps % 2 else term)
    return Operation("add", tuple(terms))


MAX_TREE_DEPTH = 120  # later passes recurse over the tree; a chain such as 1/1/1/... makes it deep
MAX_DEPTH = 90  # nesting a person would write is below 10; each level costs about 10 Python frames


class Parser(OperandParser):
    """Reads one answer: a list of statements."""

    def answer(self) -> Node:
        """Read the whole text.

        Raises:
            NotMathError: some of it could not be read.
        """
        while self.sign(",", ";", ".", "..."):
            self.next()
        node = self.statements(("end",))
        if self.peek().kind != "end":
            raise self.unexpected()
        return node

    def statements(self, closers: tuple[str, ...]) -> Node:
        """Read statements separated by commas, semicolons or "and"/"or" up to a closer; several become a list."""
        items = [self.statement()]
        marks: list[str] = []
        while True:
            if self.at(closers):
                break
            mark = self.separator(condition=isinstance(items[-1], Relation))
            if not mark:
                if self.sign(".") and self.peek(1).kind == "end":
                    self.next()
                    continue
                break
            while further := self.separator():
                mark = further if mark == "," else mark
            if (self.at(closers) and not self.sign("|")) or self.peek().kind == "end":
                break
            marks.append(mark)
            items.append(self.statement())
        return items[0] if len(items) == 1 else _listed(items, marks)

    def separator(self, *, condition: bool = False) -> str:
        """Skip one separator if there is one and return what it says: ",", ";", "and", "or", or "".

        Args:
            condition: a condition came before, so that the logical signs join conditions.
        """
        token = self.peek()
        if token.kind == "sign" and token.value in ",;":
            self.next()
            return token.value
        word = token.value.partition(":")[2].strip(" ,.") if token.kind == "text" else token.value
        if token.kind in ("name", "text") and word in known.SEPARATORS:
            self.next()
            return "or" if word in known.DISJUNCTIONS else "and"
        if condition and token.kind == "command" and token.value in ("wedge", "vee", "lor", "land"):
            self.next()
            return "or" if token.value in ("vee", "lor") else "and"
        if token.kind == "text" and not word:
            self.next()
            return ","
        return ""

    def statement(self) -> Node:
        """Read a chain of relations."""
        sides, operators = [self.defined() or self.union()], []
        while (operator := self.relation_sign()) is not None:
            operators.append(operator)
            sides.append(self.union())
        if not operators:
            return sides[0]
        if len(operators) > 12:
            raise NotMathError("a chain of more than 12 relations")
        return Relation(tuple(operators), tuple(sides))

    def defined(self) -> Node | None:
        """Read the left side of `p(2) = 5`, `f^{-1}(x) = ...` or `N(s, t) = ...`: a letter with its arguments."""
        start, token = self.position, self.next()
        name = token.value
        if (token.kind == "name" and len(name) == 1) or (token.kind == "command" and name in known.GREEK):
            while self.sign("'", "^", "_", "{", "}", "-") or (
                self.position > start + 1 and self.peek().kind == "number"
            ):
                name += self.next().value
            inside = self.sign("(") and not self.peek().spaced
            at = 1
            while inside and self.peek(at).kind in ("name", "number", "command") and self.peek(at + 1).value == ",":
                at += 2
            closes = self.peek(at).kind in ("name", "number", "command") and self.peek(at + 1).value == ")"
            if inside and closes and self.peek(at + 2).value in ("=", ":="):
                return Operation("call", (Symbol(name.replace("^{-1}", "^-1")), self.atom()))
        self.position = start
        return None

    def relation_sign(self) -> str | None:
        """Read a relation sign if one is next."""
        token = self.peek()
        if token.kind not in ("sign", "command") or token.value not in known.RELATIONS or token.value == "mid":
            return None
        if token.value == ">" and self.angle:
            return None
        self.next()
        operator = known.RELATIONS[token.value]
        if operator in ("<", ">") and self.sign("="):
            self.next()
            operator += "="
        return operator

    def union(self) -> Node:
        """Read sums joined by set operators."""
        first = self.sum()
        items = [first]
        while self.command("cup", "bigcup") or (self.name("U") and isinstance(items[-1], Collection)):
            self.next()
            items.append(self.sum())
        if len(items) > 1:
            return Collection("union", tuple(items))
        while self.command("cap", "setminus", "backslash"):
            operator = self.next().value
            first = Operation("cap" if operator == "cap" else "setminus", (first, self.sum()))
        return first

    def sum(self) -> Node:
        """Read terms joined by plus, minus and plus-minus signs."""
        with self.deeper():
            sign = self.leading_sign()
            node = self.signed(sign, self.product())
            while True:
                token = self.peek()
                if token.kind == "sign" and token.value in "+-":
                    self.next()
                    right = self.signed(self.leading_sign(), self.product())
                    node = _extend("add", node, right if token.value == "+" else negate(right))
                elif token.kind == "command" and token.value in ("pm", "mp"):
                    self.next()
                    node = Operation(token.value, (node, self.product()))
                else:
                    return node

    def leading_sign(self) -> str:
        """Read the signs before a term and return what they come to: "", "-", "pm" or "mp"."""
        sign = ""
        while True:
            token = self.peek()
            if token.kind == "sign" and token.value in "+-":
                if token.value == "+" and self.peek(1).kind == "sign" and self.peek(1).value == "-" and sign == "":
                    following = self.peek(2)
                    if following.kind == "end":
                        raise self.unexpected()
                self.next()
                sign = {"": "-", "-": "", "pm": "mp", "mp": "pm"}[sign] if token.value == "-" else sign
            elif token.kind == "command" and token.value in ("pm", "mp") and sign in ("", "-"):
                self.next()
                sign = token.value if sign == "" else ("mp" if token.value == "pm" else "pm")
            else:
                return sign

    @staticmethod
    def signed(sign: str, node: Node) -> Node:
        """Apply a sign that `leading_sign` returned."""
        if sign == "":
            return node
        if sign == "-":
            return negate(node)
        return Operation(sign, (ZERO, node))

    def product(self) -> Node:
        """Read factors joined by explicit or implied multiplication and by division, from left to right."""
        node = self.factor()
        while True:
            token = self.peek()
            if (token.kind == "sign" and token.value == "*") or self.command("cdot", "times", "ast", "bullet", "star"):
                self.next()
                node = _extend("mul", node, self.signed(self.leading_sign(), self.factor()))
            elif (token.kind == "sign" and token.value == "/") or self.command("div"):
                self.next()
                node = self.mixed_or_quotient(node)
            elif token.kind == "sign" and token.value == ":" and not self.bars:
                self.next()
                right = self.factor()
                parts = node.args if is_op(node, "ratio") else (node,)
                node = Operation("ratio", (*parts, right))
            elif self.command("pmod"):
                self.next()
                node = Operation("pmod", (node, self.argument()))
            elif self.command("bmod", "mod"):
                self.next()
                node = Operation("mod", (node, self.factor()))
            elif self.name("per") and (isinstance(node, Number) or is_measure(node)):
                self.next()
                node = Operation("div", (node, self.factor()))
            elif token.kind == "number" and is_measure(node):
                node = self.compound(node)
            elif token.kind == "command" and token.value in known.CURRENCIES:
                node = self.paid(node)
            elif self.starts_factor():
                before = self.tokens[self.position - 1]
                right = self.factor()
                if token.kind == before.kind == "number":
                    node = juxtapose(node, right)
                elif run_together(node, right, before, token):
                    raise MisleadingMathError("braces that nobody sees between two numbers, or before a sign")
                else:
                    node = _extend("mul", node, right)
            else:
                return node

    def paid(self, amount: Node) -> Node:
        r"""Read a currency sign behind an amount: `5\$`, but not `3\$5`, which is not a product of 3 and 5.

        Raises:
            NotMathError: an amount follows the sign.
        """
        unit = Unit(known.CURRENCIES[self.next().value])
        if self.starts_factor():
            raise MisleadingMathError("a currency sign between two amounts")
        return _extend("mul", amount, unit)

    def compound(self, first: Node) -> Node:
        """Read the smaller units after a quantity: `1 hr 15 min`, `5 ft 3 in`.

        Raises:
            NotMathError: what follows is no smaller part of the same quantity.
        """
        parts = [first]
        while self.peek().kind == "number":
            number, token = self.factor(), self.peek()
            letter = token.kind == "name" and is_unit(token.value, upright=True)  # the s of `2 min 30 s`
            parts.append(Operation("mul", (number, Unit(self.next().value) if letter else self.factor())))
        whole = sum_of_measures(parts)
        if whole is None:
            raise NotMathError("two quantities side by side")
        return whole

    def mixed_or_quotient(self, above: Node) -> Node:
        """Read the denominator after a slash; `6 2/3` was read as 6 and 2 apart and is put together here."""
        below = self.signed(self.leading_sign(), self.factor())
        if is_op(above, "juxtaposed"):
            whole, part = above.args
            if not (isinstance(below, Number) and below.value != 0):
                raise NotMathError("two numbers side by side")
            return Operation("add", (whole, Operation("div", (part, below))))
        return Operation("div", (above, below))

    def starts_factor(self) -> bool:
        """Whether the next token can begin a factor, so that multiplication is implied."""
        token = self.peek()
        if token.kind in ("number", "text"):
            return token.kind == "number" or token.value.partition(":")[2].strip(" ,.") not in known.SEPARATORS
        if token.kind == "name":
            return token.value not in known.SEPARATORS
        if token.kind == "command":
            return (
                token.value in self.OPENERS
                or token.value.startswith("begin:")
                or token.value in known.FUNCTIONS
                or token.value in known.GREEK
                or (token.value in known.CONSTANTS)
            )
        return token.value in ("(", "[", "{") or (token.value == "|" and not self.bars)


def negate(node: Node) -> Node:
    """Return minus the node, folding the sign into a plain number."""
    if isinstance(node, Number):
        return Number(-node.value, node.places, node.digits)
    return Operation("neg", (node,))


def juxtapose(left: Node, right: Node) -> Node:
    """Return two bare numbers side by side, which only a slash to come can make a mixed number (`6 2/3`).

    Raises:
        NotMathError: one of them is not a whole number.
    """
    if not (isinstance(left, Number) and isinstance(right, Number) and left.places <= 0 and right.places <= 0):
        raise NotMathError("two numbers side by side")
    return Operation("juxtaposed", (left, right))


def run_together(left: Node, right: Node, before: Token, first: Token) -> bool:
    r"""Whether two factors look like something else than their product, since braces are not printed.

    `1{8}` prints 18, `8{-x}` a difference and `3{\frac12}` a mixed number; `2(4)` and `3{x}` print products.

    `before` is the last token of the left factor, `first` the first token of the right one.
    """
    last = left.args[-1] if is_op(left, "mul") else left
    if isinstance(last, Number) and isinstance(right, Number):
        return before.value not in (")", "]") and first.value not in ("(", "[")
    if first.value != "{" or not isinstance(right, Operation):
        return False
    return right.name in ("neg", "pm", "mp") or (isinstance(last, Number) and right.name == "div")


def _listed(items: list[Node], marks: list[str]) -> Node:
    """Return the list of statements; semicolons among commas group them (`p=5, q=2; p=7, q=2`)."""
    if ";" in marks and "," in marks:
        groups: list[list[Node]] = [[items[0]]]
        for mark, item in zip(marks, items[1:], strict=True):
            if mark == ";":
                groups.append([item])
            else:
                groups[-1].append(item)
        return Collection(
            "list", tuple(group[0] if len(group) == 1 else Collection("list", tuple(group)) for group in groups)
        )
    if set(marks) <= {"and", ","} and marks[-1] == "and" and (whole := sum_of_measures(items)) is not None:
        return whole  # `1 hour and 15 minutes`
    joined = {mark for mark in marks if mark in ("and", "or")}
    return Collection("list", tuple(items), joined.pop() if len(joined) == 1 else "")


def _extend(name: str, left: Node, right: Node) -> Node:
    """Return the sum or product with one more member, kept flat so that long sums are not deep trees."""
    if isinstance(left, Operation) and left.name == name:
        return Operation(name, (*left.args, right))
    return Operation(name, (left, right))


def parse(text: str) -> Node:
    """Return the syntax tree of an answer.

    Raises:
        NotMathError: the text is not mathematics that this parser reads in full.
    """
    tokens: list[Token] = tokenize(text)
    if len(tokens) == 1:
        raise NotMathError("nothing there")
    parser = Parser(tokens)
    parser.max_depth = MAX_DEPTH
    node = parser.answer()
    _check(node)
    return fold(node)


def _check(node: Node) -> None:
    stack = [(node, 1)]
    while stack:
        item, depth = stack.pop()
        if depth > MAX_TREE_DEPTH:
            raise NotMathError(f"a tree more than {MAX_TREE_DEPTH} deep")
        if is_op(item, "juxtaposed"):
            raise NotMathError("two numbers side by side")
        stack.extend((child, depth + 1) for child in children(item))
