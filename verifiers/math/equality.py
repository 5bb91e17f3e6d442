"""Three-valued equality of two answers: structures item by item, expressions by `scalars`.

What is taken as the same: a value and a named value (`5`, `x=5`), values under the same names in any order, a set of
one and its member, a list and a set (order free), a relation and the interval it describes, an equation and a
multiple of it, a column and a tuple.
What is not: values under exchanged or other names (`x=1, y=2` and `y=1, x=2`), a tuple and a set, `[0,1)` and `(0,1)`,
a hedge of two values and one of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adjudge.verifiers.math.intervals import Interval, intervals_of
from adjudge.verifiers.math.nodes import (
    ZERO,
    Collection,
    Constant,
    Matrix,
    Node,
    Number,
    Operation,
    Relation,
    Symbol,
    Words,
    as_vector,
    children,
    expand,
    is_expression,
    is_op,
    rebuild,
    walk,
)
from adjudge.verifiers.math.relations import (
    Solution,
    entries_of,
    is_tuple,
    partnered,
    relation_verdict,
    residue,
    solutions,
    unmasked,
)
from adjudge.verifiers.math.scalars import Rules, Verdict, scalar_verdict

MAX_ITEMS: Final = 64  # of an unordered collection: matching costs items squared
MAX_CALLS: Final = 20  # of unknown functions, whose arguments are compared with one another
NO_ROUNDING: Final = 10**6  # more digits than a decimal can show, so that none stands for another value
ROOTS: Final = frozenset("k lambda m r t x z".split())  # `x_1`, `x_2` number roots; `a_1`, `a_2` are terms in order


class Equality:
    """Compares a gold answer with a candidate's under fixed rules.

    Attributes:
        tier: the strongest means that any part of the last comparison needed.
    """

    def __init__(self, rules: Rules, seed: str = "") -> None:
        """Store the rules and the text that random points are drawn from."""
        self.rules = rules
        self.seed = seed
        self.tiers: dict[str, None] = {}
        self.level = 0

    def verdict(self, gold: Node, answer: Node) -> Verdict:
        """Compare two answers."""
        gold, answer = unmasked(expand(gold)), unmasked(expand(answer))
        gold, answer = residue(gold, answer), residue(answer, gold)
        if gold != answer:
            gold, answer = self.same_calls(gold, answer)
        equal = self.equal(gold, answer)
        return Verdict(equal, "+".join(self.tiers) or "structure")

    def equal(self, gold: Node, answer: Node) -> bool | None:
        """Compare two nodes in which every plus-minus sign has been written out."""
        self.level += 1
        try:
            return True if gold == answer else self.different(gold, answer)
        finally:
            self.level -= 1

    def same_calls(self, gold: Node, answer: Node) -> tuple[Node, Node]:
        """Write calls of one function with equal arguments alike: `f(1+1)` as `f(2)`."""
        calls = [item for side in (gold, answer) for item in walk(side) if _is_call(item)]
        if not 2 <= len(calls) <= MAX_CALLS:
            return gold, answer
        exact = self.exact()
        kept: list[Operation] = []

        def written(node: Node) -> Node:
            parts = tuple(written(part) for part in children(node))
            node = rebuild(node, parts)
            if not (isinstance(node, Operation) and _is_call(node)):
                return node
            for other in kept:
                if other.args[0] == node.args[0] and exact.equal(other.args[1], node.args[1]) is True:
                    return other
            kept.append(node)
            return node

        return written(gold), written(answer)

    def exact(self) -> Equality:
        """Return the comparison without tolerances."""
        return Equality(replace(self.rules, precision=NO_ROUNDING, rel_tol=0.0, abs_tol=0.0), self.seed)

    def different(self, gold: Node, answer: Node) -> bool | None:
        """Compare two nodes that are not the same tree."""
        if isinstance(gold, Words) or isinstance(answer, Words):
            return self.words(gold, answer)
        if isinstance(gold, Relation | Collection | Matrix) or isinstance(answer, Relation | Collection | Matrix):
            gold, answer = as_vector(gold, answer), as_vector(answer, gold)
            left, right = solutions(gold, self.equal), solutions(answer, self.equal)
            if left and right and (_several(left) or _several(right) or _from_set(gold) or _from_set(answer)):
                return self.named(gold, answer, left, right)
            if left and _several(left) and not _states(answer):
                return self.unnamed(left, gold, answer, gold_named=True)
            if right and _several(right) and not _states(gold):
                return self.unnamed(right, answer, gold, gold_named=False)
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return self.relation(gold, answer)
        if isinstance(gold, Matrix) or isinstance(answer, Matrix):
            return self.matrix(gold, answer)
        if isinstance(gold, Collection) or isinstance(answer, Collection):
            return self.collection(gold, answer)
        if _is_ratio(gold) or _is_ratio(answer):
            return self.ratio(gold, answer)
        if not (is_expression(gold) and is_expression(answer)):
            as_sets = self.ranges(gold, answer)
            return self.operation(gold, answer) if as_sets is None else as_sets
        verdict = scalar_verdict(gold, answer, self.rules, self.seed)
        self.tiers[verdict.tier] = None
        return verdict.equal

    def words(self, gold: Node, answer: Node) -> bool | None:
        """Compare texts, letter by letter after folding."""
        self.tiers["words"] = None
        if isinstance(gold, Words) and isinstance(answer, Words):
            return gold.text == answer.text
        return False

    def relation(self, gold: Node, answer: Node) -> bool | None:
        """Compare where at least one side is a relation."""
        verdict = relation_verdict(gold, answer, self.equal, self.rules, self.seed)
        return self.ranges(gold, answer) if verdict is None else verdict

    def named(self, gold: Node, answer: Node, left: list[Solution], right: list[Solution]) -> bool | None:
        """Compare where both sides name their values: name by name, and the solutions in any order."""
        ours, theirs = {name for one in left for name in one}, {name for one in right for name in one}
        if ours == theirs and len(ours) == 1:
            return self.equal(_bag(gold, left), _bag(answer, right))
        values = [[value for one in side for value in one.values()] for side in (left, right)]
        if ours != theirs:
            numbered = (len(ours) == 1 and _numbered(right, *ours)) or (len(theirs) == 1 and _numbered(left, *theirs))
            verdict = self.any_order(*values)
            return verdict if numbered or verdict is False else None
        if any(one.keys() != ours for one in (*left, *right)):
            return None  # `x=1, x=2, y=3` does not say which x goes with y
        if len(left) == 1 and _is_choice(gold) != _is_choice(answer):
            return None
        rows = [
            [Collection("bracket", tuple(one[name] for name in left[0]), "()") for one in side]
            for side in (left, right)
        ]
        return self.any_order(list(rows[0]), list(rows[1]))

    def unnamed(self, ways: list[Solution], named: Node, bare: Node, *, gold_named: bool) -> bool | None:
        """Compare named values with values alone: the order written says which is which, or the alphabet's."""
        several = len({name for one in ways for name in one}) > 1
        if not several and isinstance(bare, Collection) and bare.kind == "bracket":
            return False  # `x=1, x=2` is neither a point nor an interval
        if several and len(ways) == 1 and _is_choice(named):
            return None  # `x=1 or y=2` settles neither
        if not several:
            bag = _bag(named, ways)
            return self.equal(*_sides(bag, bare, gold_named))
        names = list(ways[0])
        if any(_numbered(ways, Symbol(root)) for root in ROOTS):
            values: list[Node] = list(ways[0].values())
            return self.equal(*_sides(Collection("list", tuple(values)), bare, gold_named))
        usual = sorted(names, key=repr) if _runs(names) else names
        orders = [usual] if usual == names or not gold_named else [names, usual]
        verdicts = [
            self.in_rows([[one.get(name) for name in order] for one in ways], bare, gold_named=gold_named)
            for order in orders
        ]
        if len(orders) == 2:
            return None if True in verdicts or None in verdicts else False
        return verdicts[0]

    def in_rows(self, rows: list[list[Node | None]], bare: Node, *, gold_named: bool) -> bool | None:
        """Compare solutions, as rows of values, with a tuple or with several tuples."""
        filled = [[value for value in row if value is not None] for row in rows]
        if any(len(row) < len(rows[0]) for row in filled):
            return None
        if len(filled) == 1:
            entries = entries_of(bare)
            if entries is None:
                return None if isinstance(bare, Collection) and bare.kind == "set" else False
            return self.in_order(*((filled[0], entries) if gold_named else (entries, filled[0])))
        if not (isinstance(bare, Collection) and bare.kind in ("list", "set")):
            return False
        tuples: list[Node] = [Collection("bracket", tuple(row), "()") for row in filled]
        return self.any_order(*((tuples, list(bare.items)) if gold_named else (list(bare.items), tuples)))

    def ranges(self, gold: Node, answer: Node) -> bool | None:
        """Compare as sets of real numbers, where both sides describe one."""
        left, right = intervals_of(gold), intervals_of(answer, as_set=True)
        if left is None or right is None:
            return None
        if len(left) != len(right):
            return False
        return _all([self.interval(one, other) for one, other in zip(left, right, strict=True)])

    def interval(self, gold: Interval, answer: Interval) -> bool | None:
        """Compare two intervals: kinds of ends, then the ends."""
        if (gold.low_closed, gold.high_closed) != (answer.low_closed, answer.high_closed):
            return False
        return self.in_order([gold.low, gold.high], [answer.low, answer.high])

    def matrix(self, gold: Node, answer: Node) -> bool | None:
        """Compare matrices entry by entry; a single row or column may be written as a tuple."""
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
                return False
            left = [entry for row in gold.rows for entry in row]
            right = [entry for row in answer.rows for entry in row]
            return self.in_order(left, right)
        for matrix, other in ((gold, answer), (answer, gold)):
            if isinstance(matrix, Matrix) and (rows := _rows(other)) is not None:
                return self.matrix(matrix, rows) if matrix is gold else self.matrix(rows, matrix)
            if not (isinstance(matrix, Matrix) and isinstance(other, Collection) and is_tuple(other)):
                continue
            if len(matrix.rows) == 1 or all(len(row) == 1 for row in matrix.rows):
                entries = [entry for row in matrix.rows for entry in row]
                pair = (entries, list(other.items)) if matrix is gold else (list(other.items), entries)
                return self.in_order(*pair)
        return False

    def collection(self, gold: Node, answer: Node) -> bool | None:
        """Compare where at least one side is a collection."""
        if not isinstance(gold, Collection) or not isinstance(answer, Collection):
            return self.against_single(gold, answer)
        kinds = {gold.kind, answer.kind}
        if "union" in kinds or _conditions(gold) or _conditions(answer):
            if {gold.brackets, answer.brackets} == {"and", "or"}:
                return None
            as_sets = self.ranges(gold, answer)
            if as_sets is not None:
                return as_sets
            return self.any_order(list(gold.items), list(answer.items)) if gold.kind == answer.kind else None
        if _mixed(gold) or _mixed(answer):
            if self.in_order(list(gold.items), list(answer.items)):
                return True
            return False if self.any_order(list(gold.items), list(answer.items)) is False else None
        if kinds == {"bracket"}:
            if not _same_brackets(gold, answer):
                return False
            return self.in_order(list(gold.items), list(answer.items))
        if kinds == {"bracket", "set"}:
            return False
        if kinds == {"bracket", "list"}:
            if not (is_tuple(gold) and is_tuple(answer)):
                return False  # one of them is a half-open interval
            if all(isinstance(item, Collection) for item in (*gold.items, *answer.items)):
                return self.any_order(list(gold.items), list(answer.items))
            return self.in_order(list(gold.items), list(answer.items))
        if "set" in kinds:
            return self.sets(gold, answer)
        lines = all(isinstance(item, Collection) for item in (*gold.items, *answer.items))
        repeats = not lines and len(_once(gold.items)) < len(gold.items)
        if self.rules.ordered or repeats or _is_sequence(gold):
            return self.in_order(list(gold.items), list(answer.items))
        if lines:
            return self.any_order(_once(gold.items), _once(answer.items))
        return self.any_order(list(gold.items), list(answer.items))

    def sets(self, gold: Collection, answer: Collection) -> bool | None:
        """Compare where at least one side is a set, in which equal members count once however they are written."""
        left, right = (_once(side.items) if side.kind == "set" else list(side.items) for side in (gold, answer))
        verdict = self.any_order(left, right)
        if verdict is True or max(len(left), len(right)) > MAX_ITEMS:
            return verdict
        fewer = [self.once(items) if side.kind == "set" else items for side, items in ((gold, left), (answer, right))]
        return verdict if fewer == [left, right] else self.any_order(*fewer)

    def once(self, items: list[Node]) -> list[Node]:
        """Return the items without those that equal an earlier one."""
        exact = self.exact()
        kept: list[Node] = []
        for item in items:
            if not any(exact.equal(item, other) is True for other in kept):
                kept.append(item)
        return kept

    def against_single(self, gold: Node, answer: Node) -> bool | None:
        """Compare a collection with something that is none: only a set of one can equal its member."""
        for many, one in ((gold, answer), (answer, gold)):
            if isinstance(many, Collection) and many.kind == "set" and len(many.items) == 1 and self.level == 1:
                if isinstance(one, Constant) and one.name == "empty":
                    return False
                return self.equal(many.items[0], one) if many is gold else self.equal(one, many.items[0])
        as_sets = self.ranges(gold, answer)
        if as_sets is not None:
            return as_sets
        doubtful = any(is_op(side, "setminus", "cap", "such_that", "opaque") for side in (gold, answer))
        return None if doubtful else False

    def ratio(self, gold: Node, answer: Node) -> bool | None:
        """Compare ratios: proportional and without a zero member; a ratio of two may be written as a fraction."""
        left = gold.args if isinstance(gold, Operation) and _is_ratio(gold) else None
        right = answer.args if isinstance(answer, Operation) and _is_ratio(answer) else None
        if left and right:
            if len(left) != len(right):
                return False
            if any(item == ZERO for item in (*left, *right)):
                return self.in_order(list(left), list(right))
            scaled = [
                self.equal(Operation("mul", (a, right[0])), Operation("mul", (b, left[0])))
                for a, b in zip(left[1:], right[1:], strict=True)
            ]
            return _all(scaled)
        pair, other = (left, answer) if left else (right, gold)
        if pair and len(pair) == 2 and is_expression(other) and _is_fraction(other):
            return self.equal(Operation("div", pair), other)
        return False

    def operation(self, gold: Node, answer: Node) -> bool | None:
        """Compare operations on structures, such as a set with a condition: by their parts."""
        if not (isinstance(gold, Operation) and isinstance(answer, Operation) and gold.name == answer.name):
            return None
        return self.in_order(list(gold.args), list(answer.args)) or None

    def in_order(self, gold: list[Node], answer: list[Node]) -> bool | None:
        """Compare item by item."""
        if len(gold) != len(answer):
            return False
        result: bool | None = True
        for left, right in zip(gold, answer, strict=True):
            verdict = self.equal(left, right)
            if verdict is False:
                return False
            if verdict is None:
                result = None
        return result

    def any_order(self, gold: list[Node], answer: list[Node]) -> bool | None:
        """Compare as multisets: every item finds its own partner."""
        if len(gold) != len(answer):
            return False
        if gold == answer:
            return True
        if len(gold) > MAX_ITEMS:
            return self.in_order(gold, answer) or None
        return partnered(gold, answer, self.equal)


def _all(verdicts: list[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _is_call(node: Node) -> bool:
    return is_op(node, "call")


def _is_ratio(node: Node) -> bool:
    return is_op(node, "ratio")


def _rows(node: Node) -> Matrix | None:
    """Return `[[1,2],[3,4]]` as a matrix."""
    rows = [item.items for item in children(node) if isinstance(item, Collection) and item.brackets == "[]"]
    if not (isinstance(node, Collection) and node.brackets == "[]" and len(rows) == len(node.items)):
        return None
    return Matrix(tuple(rows))


def _is_fraction(node: Node) -> bool:
    """Whether a value is written as a fraction, which a ratio of two is another way to write; `0.75` is not."""
    if isinstance(node, Number):
        return node.value.denominator > 1 and node.places < 0
    return is_op(node, "div")


def _same_brackets(gold: Collection, answer: Collection) -> bool:
    if gold.brackets == answer.brackets:
        return True
    if len(gold.items) == 2 and "<>" not in (gold.brackets, answer.brackets):
        return False
    closed = ("()", "[]", "<>")
    return gold.brackets in closed and answer.brackets in closed


def _conditions(node: Collection) -> bool:
    """Whether the members are inequalities, so that the collection is one condition."""
    return all(
        isinstance(item, Relation) and set(item.operators) <= {"<", "<=", ">", ">=", "!="} for item in node.items
    )


def _several(ways: list[Solution]) -> bool:
    """Whether more than one value is named, so that it matters which name has which."""
    return len(ways) > 1 or len(ways[0]) > 1


def _from_set(node: Node) -> bool:
    """Whether a relation names the members of a set, as `x in {2}` does."""
    return isinstance(node, Relation) and node.operators == ("in",)


def _sides(named: Node, bare: Node, gold_named: bool) -> tuple[Node, Node]:
    return (named, bare) if gold_named else (bare, named)


def _once(items: tuple[Node, ...]) -> list[Node]:
    return list(dict.fromkeys(items))


def _is_choice(node: Node) -> bool:
    return isinstance(node, Collection) and node.brackets == "or"


def _states(node: Node) -> bool:
    """Whether an answer is a statement or holds one, which no value without a name can be."""
    return isinstance(node, Relation) or (
        isinstance(node, Collection) and any(isinstance(item, Relation) for item in node.items)
    )


def _mixed(node: Collection) -> bool:
    """Whether some members are statements and some are values (`1, x=2`), so that only the order tells what is what."""
    return len({isinstance(item, Relation) for item in node.items}) == 2


def _is_sequence(node: Collection) -> bool:
    """Whether a bare list cannot be a set of solutions, which nobody writes as `3, 1`: positive numbers, not rising."""
    if node.brackets or not all(isinstance(item, Number) and item.value > 0 for item in node.items):
        return False
    values = [item.value for item in node.items if isinstance(item, Number)]
    return values != sorted(values)


def _bag(node: Node, ways: list[Solution]) -> Node:
    """Return the values of the only name as what they stood in: a list or a set."""
    values = tuple(value for solution in ways for value in solution.values())
    if not isinstance(node, Collection):
        return Collection("set", values)
    if len(values) == 1:
        return values[0]
    return Collection("set" if node.kind == "set" else "list", values, "" if node.kind == "bracket" else node.brackets)


def _runs(names: list[Node]) -> bool:
    """Whether names are neighbours of the alphabet, such as x, y or a, b, c, whose usual order is known."""
    codes = sorted(ord(name.name) for name in names if isinstance(name, Symbol) and len(name.name) == 1)
    return len(codes) == len(names) and codes[-1] - codes[0] == len(set(codes)) - 1 == len(codes) - 1


def _numbered(ways: list[Solution], name: Node) -> bool:
    """Whether one solution names its values `x_1`, `x_2`, ... for a name `x`."""
    stem = f"{name.name}_" if isinstance(name, Symbol) else ""
    return (
        bool(stem)
        and len(ways) == 1
        and all(
            isinstance(key, Symbol) and key.name.startswith(stem) and key.name[len(stem) :].isdecimal()
            for key in ways[0]
        )
    )
