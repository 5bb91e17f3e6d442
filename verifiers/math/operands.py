"""The operand half of the parser: what stands between operators.

`OperandParser` reads numbers, names, functions, powers and units, `brackets.BracketParser` what stands in brackets;
`parser.Parser` adds the operators, relations and lists on top.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.brackets import BracketParser
from adjudge.verifiers.math.lexer import Token
from adjudge.verifiers.math.nodes import (
    Collection,
    Constant,
    Node,
    NotMathError,
    Number,
    Operation,
    Symbol,
    Unit,
    Words,
    is_op,
    series,
)
from adjudge.verifiers.math.numerals import numeral
from adjudge.verifiers.math.units import FACTORS, SCALES, counted, is_noun, is_unit, joint, scale, unit_expression
from adjudge.verifiers.math.vocabulary import meaning

_UNITS_TOO = frozenset({"lb", "min", "sec"})  # pounds and log 2, minutes and minimum, seconds and secant
_OPAQUE_ENDS = frozenset("= < > <= >= , ; le ge leq geq ne neq approx and or text:and text:or".split())
_VECTORS = frozenset("vec hat mathbf bm boldsymbol textbf".split())
_DECORATIONS = frozenset("hat bar tilde overline dot ddot widehat".split())


class OperandParser(BracketParser):
    """Reads operands with their powers, subscripts, arguments and units."""

    OPENERS: ClassVar[frozenset[str]] = frozenset(
        "frac sqrt cbrt binom dbinom tbinom { langle lfloor lceil lvert vert |".split()
    ) | frozenset(known.CURRENCIES)

    # -- factors --------------------------------------------------------------------------------------------

    def factor(self) -> Node:
        """Read an operand with its powers, factorials, percent and degree signs."""
        node = self.atom()
        if isinstance(node, Number) and self.command("frac"):
            node = self.mixed(node)
        if isinstance(node, Number) and self.name("C", "P") and self.peek(1).kind == "number":
            node = self.selection(node)
        while True:
            if self.sign("^", "**"):
                node = self.power(node)
            elif self.sign("!"):
                self.next()
                double = self.sign("!")
                if double:
                    self.next()
                node = Operation("double_factorial" if double else "factorial", (node,))
            elif self.sign("%") or self.command("%") or self.percent_word():
                self.next()
                node = Operation("percent", (node,))
            elif self.name("per") and self.peek(1).value == "cent":
                self.next()
                self.next()
                node = Operation("percent", (node,))
            elif self.command("degree"):
                self.next()
                node = self.degrees(node)
            elif self.sign("_") and isinstance(node, Number):
                self.next()
                node = Operation("base", (node, self.number_base()))
            else:
                return node

    def mixed(self, whole: Number) -> Node:
        r"""Read the fraction right after a number: `6\frac23` is a mixed number, `2\frac{x}{3}` a product."""
        part = self.atom()
        if is_op(part, "div") and whole.value.denominator == 1 and whole.places <= 0:
            above, below = part.args
            if isinstance(above, Number) and isinstance(below, Number) and 0 < above.value < below.value:
                return Operation("add", (whole, part))
        return Operation("mul", (whole, part))

    def selection(self, above: Number) -> Node:
        """Read `5C2` (combinations) or `5P2` (permutations)."""
        if self.peek().spaced or self.peek(1).spaced:
            raise NotMathError("a letter between two numbers")
        sign, below = self.next().value, self.atom()
        chosen = Operation("binomial", (above, below))
        return chosen if sign == "C" else Operation("mul", (chosen, Operation("factorial", (below,))))

    def percent_word(self) -> bool:
        """Whether the next token is the word for percent."""
        token = self.peek()
        return token.kind in ("name", "text") and token.value.rpartition(":")[2].strip(" .").lower() in known.PERCENT

    def number_base(self) -> Node:
        """Read the subscript that names the base of a numeral."""
        base = self.raw()
        word = Words(base.lower())
        value = numeral(base) if base.isdecimal() else meaning(word)
        if not isinstance(value, Number):
            raise NotMathError(f"the base {base[:40]!r}")
        return value

    def degrees(self, node: Node) -> Node:
        """Read what follows a degree sign: a temperature scale, or nothing (an angle)."""
        token = self.peek()
        letter = token.value.partition(":")[2].strip() if token.kind == "text" else token.value
        if token.kind in ("text", "name") and letter in ("C", "F"):
            self.next()
            return Operation("mul", (node, Unit("celsius" if letter == "C" else "fahrenheit")))
        parts: list[Node] = [node]
        for count in (1, 2):
            if self.peek().kind == "number" and self.primes(1)[0] == count:
                part = numeral(self.next().value)
                self.position += self.primes(0)[1]
                parts.append(Operation("div", (part, Number(Fraction(60**count)))))
        if len(parts) > 1:
            node = Operation("add", tuple(parts))
        return Operation("degree", (node,))

    def primes(self, ahead: int) -> tuple[int, int]:
        r"""Return how many primes come at a token, as `''` or `^{\prime\prime}`, and over how many tokens."""
        at = ahead
        while self.peek(at).value in ("'", "prime", "^", "{", "}") and self.peek(at).kind in ("sign", "command"):
            at += 1
        return sum(self.peek(index).value in ("'", "prime") for index in range(ahead, at)), at - ahead

    def power(self, base: Node) -> Node:
        """Read `^` and the exponent."""
        self.next()
        braced = self.sign("{")
        at = 1 if braced else 0
        mark = self.peek(at)
        if mark.kind == "command" and mark.value in ("circ", "degree", "prime"):
            for _ in range(at + 1):
                self.next()
            if braced:
                self.expect("}")
            if mark.value == "prime":
                if not isinstance(base, Symbol):
                    raise NotMathError("a prime on something that is not a name")
                return Symbol(base.name + "'")
            return self.degrees(base)
        if mark.kind in ("text", "name") and mark.value.rpartition(":")[2].strip() in ("th", "st", "nd", "rd"):
            for _ in range(at + 1):
                self.next()
            if braced:
                self.expect("}")
            return base
        if braced:
            return Operation("pow", (base, self.argument()))
        negative = self.sign("-")
        if negative or self.sign("+"):
            self.next()
        with self.deeper():
            exponent = self.atom(exponent=True)
            if self.sign("^", "**"):
                exponent = self.power(exponent)
        return Operation("pow", (base, Operation("neg", (exponent,)) if negative else exponent))

    def argument(self) -> Node:
        """Read the argument of a command: a group, or a single digit, letter or command."""
        if self.sign("{"):
            with self.deeper():
                self.next()
                with self.fresh():
                    node = self.statements(("}",))
                self.expect("}")
            return node
        token = self.peek()
        if token.kind == "number" and len(token.value) > 1 and token.value.isdigit():
            self.next()
            self.position -= 1
            self.tokens[self.position : self.position + 1] = [
                Token("number", token.value[0], token.spaced),
                Token("number", token.value[1:]),
            ]
        with self.deeper():
            return self.atom(exponent=True)

    def atom(self, *, exponent: bool = False) -> Node:
        """Read one operand without what may follow it.

        Args:
            exponent: LaTeX takes one letter here (`x^ab` is x^a b).
        """
        with self.deeper():
            return self.operand(self.next(), exponent=exponent)

    def operand(self, token: Token, *, exponent: bool) -> Node:
        """Read the operand that a token starts."""
        if token.kind == "number":
            return numeral(token.value)
        if token.kind == "name":
            return self.named(token, exponent=exponent)
        if token.kind == "text":
            return self.text(token)
        if token.kind == "command":
            return self.commanded(token.value, exponent=exponent)
        if token.kind == "sign":
            if token.value in "([":
                return self.bracket(token.value)
            if token.value == "{":
                return self.braces("}")
            if token.value == "|":
                return self.absolute(("|",))
            if token.value == "<":
                return self.angled()
            if token.value == "...":
                return Constant("dots")
        self.position -= token.kind != "end"
        raise self.unexpected()

    # -- names ----------------------------------------------------------------------------------------------

    def named(self, token: Token, *, exponent: bool = False) -> Node:
        """Read a run of letters: a function, a constant, a unit, or a product of one-letter variables."""
        word = token.value
        if word[0] > "\u03ff" and self.behind_operand():
            node, rest = counted(word)
            self.tokens[self.position : self.position] = [Token("name", rest)] if rest else []
            return node
        if word in known.FUNCTIONS and not (word in _UNITS_TOO and self.measures(token)):
            return self.function(known.FUNCTIONS[word])
        if len(word) == 1 or word in known.CONSTANTS or word in known.GREEK or word in known.CALLABLE:
            return self.symbol(word, exponent=exponent)
        before = self.tokens[self.position - 2] if self.position > 1 else Token("end", "")
        follows = self.behind_operand()
        if follows and word.lower() in SCALES:
            return scale(word)
        if follows and (unit := joint(word, self.peek().value)) is not None:
            self.next()
            return unit
        if is_unit(word, upright=follows and token.spaced and len(word) > 1):
            return Unit(word)
        split = self.prefix(word)
        if not word.isascii() and not follows:
            raise NotMathError(f"the word {word[:40]!r}")
        if split or len(word) <= (2 if follows and token.spaced and before.kind == "number" else 3) or exponent:
            head = split or word[0]
            self.tokens.insert(self.position, Token("name", word[len(head) :]))
            self.tokens[self.position - 1] = Token("name", head, token.spaced)
            return self.named(self.tokens[self.position - 1])
        if (follows and before.kind != "name") or self.noun(before):
            if not is_noun(word):
                raise NotMathError(f"the word {word[:40]!r}")
            return Unit("degree") if word.lower() in ("degree", "degrees", "deg") else Unit(f"?{word.lower()}")
        raise NotMathError(f"the word {word[:40]!r}")

    def measures(self, token: Token) -> bool:
        """Whether a function's name is the unit of the number before it: `15 min`, but not `2 sec x`."""
        after = self.peek()
        ends = after.kind == "end" or after.value in (",", ";", ".", ")", "/", *known.SEPARATORS)
        ends = ends or (after.kind == "number" and token.value != "sec")
        return ends and token.spaced and self.peek(-2).kind == "number"

    @staticmethod
    def noun(token: Token) -> bool:
        """Whether a token is a word, so that another word may follow it ("5 red apples")."""
        return token.kind == "name" and len(token.value) > 2

    @staticmethod
    def prefix(word: str) -> str:
        """Return the function or constant name that starts a run such as "sinx" or "pir", or ""."""
        for length in range(min(len(word) - 1, 7), 1, -1):
            head = word[:length]
            if len(word) - length <= 2 and (head in known.FUNCTIONS or head == "pi"):
                return head
        return ""

    def symbol(self, word: str, *, exponent: bool = False) -> Node:
        """Read what may be attached to a name: a subscript (`v0` is `v_0`), primes, and the arguments of f(x)."""
        name, token = word, self.peek()
        if self.sign("_") and self.next():
            name += "_" + self.raw()
        elif token.kind == "number" and not (token.spaced or exponent or word in ("i", "pi")):
            name += f"_{self.next().value}" if token.value.isdecimal() else ""
        while self.sign("'"):
            self.next()
            name += "'"
        if name in known.CONSTANTS:
            return Constant(known.CONSTANTS[name])
        if self.sign("(") and not self.peek().spaced and (word in known.CALLABLE or self.at_number(word)):
            inside = self.atom()
            return Operation("call", (Symbol(name), inside))
        return Symbol(name)

    def at_number(self, word: str) -> bool:
        """Whether a bracket holds what only a function takes: `R(0)` and `N(12)` are not products."""
        argument, closer = self.peek(1), self.peek(2)
        return argument.kind == "number" and closer.value == ")" and (word.isupper() or argument.value == "0")

    def raw(self) -> str:
        """Return the text of a subscript."""
        if not self.sign("{"):
            token = self.next()
            if token.kind in ("number", "name", "text", "command"):
                return token.value.partition(":")[2].strip() if token.kind == "text" else token.value
            raise NotMathError("an empty subscript")
        self.next()
        pieces: list[str] = []
        level = 1
        while True:
            token = self.next()
            if token.kind == "end":
                raise NotMathError("a subscript is never closed")
            level += (token.value == "{") - (token.value == "}")
            if level == 0:
                return "".join(pieces)
            pieces.append(token.value.partition(":")[2].strip() if token.kind == "text" else token.value)

    # -- functions ------------------------------------------------------------------------------------------

    def function(self, name: str) -> Node:
        """Read the powers, base and argument of a function."""
        with self.deeper():
            base: Node | None = None
            exponent: Node | None = None
            while self.sign("^", "_"):
                if self.next().value == "_":
                    base = self.argument()
                elif self.sign("-") and self.peek(1).value == "1":
                    self.next()
                    self.next()
                    exponent = Number(Fraction(-1))
                else:
                    exponent = self.argument()
            if name == "sqrt" and self.sign("["):
                self.next()
                base = self.statements(("]",))
                self.expect("]")
            if isinstance(exponent, Number | Operation) and _is_minus_one(exponent) and name in known.INVERSE:
                name, exponent = known.INVERSE[name], None
            arguments = self.function_arguments(single=name in ("sqrt", "cbrt"))
            node = _call(name, base, arguments)
        return Operation("pow", (node, exponent)) if exponent is not None else node

    def function_arguments(self, *, single: bool) -> tuple[Node, ...]:
        """Read the argument: a bracket, or the factors that follow up to a sign or another function."""
        if self.sign("(", "[", "{") or self.command("{"):
            node = self.atom()
            if isinstance(node, Collection) and node.kind in ("bracket", "list", "set"):
                return node.items
            return (node,)
        if single:
            return (self.atom(),)
        negative = self.sign("-")
        if negative:
            self.next()
        node = self.factor()
        while self.starts_factor() and not self.ends_argument():
            node = Operation("mul", (node, self.factor()))
        return (Operation("neg", (node,)) if negative else node,)

    def ends_argument(self) -> bool:
        """Whether an unbracketed argument stops here: at a function, a bracket, text, or a power of e."""
        token = self.peek()
        if token.value in known.FUNCTIONS or token.kind == "text" or token.value in ("(", "[", "|", "{"):
            return True
        return token.value == "e" and self.peek(1).value == "^"

    # -- commands -------------------------------------------------------------------------------------------

    def commanded(self, name: str, *, exponent: bool) -> Node:
        """Read what a LaTeX command starts."""
        if name == "frac":
            above = self.argument()
            return Operation("div", (above, self.argument()))
        if name in ("binom", "dbinom", "tbinom"):
            above = self.argument()
            return Operation("binomial", (above, self.argument()))
        if name in known.FUNCTIONS:
            return self.function(known.FUNCTIONS[name])
        if name in known.OPAQUE:
            return self.series(name) or self.opaque(name)
        if (
            name == "mu"
            and self.peek().kind == "text"
            and (unit := f"u{self.peek().value.partition(':')[2]}") in FACTORS
        ):
            self.next()
            return Unit(unit)
        if name in known.CONSTANTS or name in known.GREEK:
            return self.symbol(name, exponent=exponent)
        if name in ("angle", "measuredangle", "triangle"):
            return Symbol(f"{name} {self.next().value}")
        if name == "det":
            return Operation("det", (self.atom(),))
        if name == "{":
            return self.braces("\\}")
        if name in ("langle", "lfloor", "lceil"):
            return self.bracket(name)
        if name in ("lvert", "vert"):
            return self.absolute(("\\rvert", "\\vert"))
        if name in known.CURRENCIES:
            return Operation("mul", (self.factor(), Unit(known.CURRENCIES[name])))
        if name in ("ldots", "cdots", "dots", "dotsc", "dotsb", "vdots", "ddots"):
            return Constant("dots")
        if name.startswith("begin:"):
            return self.environment(name[6:])
        raise NotMathError(f"the command \\{name[:40]} is not read here")

    def series(self, name: str) -> Node | None:
        """Read a finite sum or product, or nothing where it is none that can be written out."""
        start, tokens = self.position, list(self.tokens)
        if name in ("sum", "prod") and self.sign("_"):
            try:
                self.next()
                low = self.argument()
                if self.sign("^") and self.next():
                    terms = series(name, low, self.argument(), self.product())
                    if terms is not None:
                        return terms
            except NotMathError:
                pass  # it is kept as text
        self.position, self.tokens = start, tokens
        return None

    def opaque(self, name: str) -> Node:
        """Keep the text from a command whose meaning is not computed up to the next relation or separator."""
        pieces = [name]
        level = 0
        while True:
            token = self.peek()
            mark = token.value
            if token.kind == "end" or (level == 0 and (mark in _OPAQUE_ENDS or mark in (")", "]", "}"))):
                break
            level += (mark in ("(", "[", "{")) - (mark in (")", "]", "}"))
            pieces.append(self.next().value)
        return Operation("opaque", (Words(" ".join(pieces).replace("{ ", "").replace(" }", "")),))

    def text(self, token: Token) -> Node:
        """Read upright or decorated text: a constant, a function, a named set, a unit or a counted noun."""
        style, _, body = token.value.partition(":")
        body = body.strip()
        if style == "mathbb":
            if body in known.NUMBER_SETS:
                return Constant(body)
            raise NotMathError(f"the set {body[:40]!r}")
        if style in _VECTORS and body.lstrip("\\") in ("i", "j", "k", "imath", "jmath"):
            return Symbol(f"unit vector {body[-1] if len(body) == 1 else body.lstrip(chr(92))[0]}")
        if style in _DECORATIONS:
            if not body.lstrip("\\").isalnum():
                raise NotMathError(f"{style} over {body[:40]!r}")
            return self.symbol(f"{style} {body.lstrip(chr(92))}")
        if body.replace(".", "", 1).isdigit() and body.isascii():
            return numeral(body)
        attached = self.behind_operand()
        if body in ("K", "T") and style == "text" and not token.spaced:
            raise NotMathError(f"{body} is a thousand or a trillion here, or a unit")
        if not attached and body.strip(". ") in known.MONEY:
            return Operation("mul", (self.factor(), Unit(body.strip(". "))))
        unit, _, link = body.rpartition(" ")
        if attached and link in ("and", "or") and is_unit(unit, upright=True):  # `\text{ hour and }`
            self.tokens.insert(self.position, Token("text", f"text:{link}"))
            return Unit(unit)
        if attached and is_unit(body, upright=True) and not (self.sign("(", "{") or self.command("(")):
            return Unit(body)
        if body in known.FUNCTIONS:
            return self.function(known.FUNCTIONS[body])
        if body in known.CONSTANTS:
            return self.symbol(body)
        if not (attached and style in ("text", "mathrm", "operatorname", "mbox", "textrm", "hbox")):
            if len(body) == 1 and body.isalpha():
                return self.symbol(body)
            if style in ("vec", "mathbf", "bm", "overrightarrow", "mathcal", "mathit", "boldsymbol") and body.isalnum():
                return self.symbol(body)
        if not body or not attached:
            raise NotMathError(f"the text {body[:40]!r}")
        return unit_expression(body)


def _is_minus_one(node: Node) -> bool:
    if is_op(node, "neg"):
        node = node.args[0]
        return isinstance(node, Number) and node.value == 1
    return isinstance(node, Number) and node.value == -1


def _call(name: str, base: Node | None, arguments: tuple[Node, ...]) -> Node:
    if name == "sqrt":
        return Operation("root", (*arguments, base if base is not None else Number(Fraction(2))))
    if name == "cbrt":
        return Operation("root", (*arguments, Number(Fraction(3))))
    if name in ("log", "lg", "lb"):
        if base is None:
            # "log" without a base is the natural logarithm in some fields and the common one in others
            base = {"lg": Number(Fraction(10)), "lb": Number(Fraction(2))}.get(name)
        return Operation("log", arguments if base is None else (*arguments, base))
    if base is not None:
        raise NotMathError(f"a subscript on {name}")
    if name not in ("gcd", "lcm", "min", "max") and len(arguments) != 1:
        raise NotMathError(f"{name} of {len(arguments)} arguments")
    return Operation(name, arguments)
