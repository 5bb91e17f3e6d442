"""The names the parser knows: functions, relations, constants, environments, and words that separate answers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from adjudge.responses.number_words import NUMBER_WORD as NUMBER_WORD
from adjudge.responses.number_words import NUMBER_WORDS
from adjudge.verifiers.math.nodes import Constant, Node, Number, Operation, Unit, Words
from adjudge.verifiers.math.units import DEGREES, is_unit

FUNCTIONS: Final[dict[str, str]] = {
    name: name
    for name in (
        "sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arcsinh "
        "arccosh arctanh exp ln log gcd lcm min max floor ceil sqrt cbrt abs arg Re Im erf sgn"
    ).split()
} | {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "acot": "arccot", "tg": "tan", "ctg": "cot", "cosec": "csc",
    "arctg": "arctan", "sh": "sinh", "ch": "cosh", "th": "tanh", "lg": "lg", "lb": "lb", "arsinh": "arcsinh",
    "arcosh": "arccosh", "artanh": "arctanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "ceiling": "ceil", "sign": "sgn", "operatorname": "", "GCD": "gcd", "LCM": "lcm", "arth": "arctanh",
}  # fmt: skip
FUNCTIONS.pop("operatorname")

INVERSE: Final[dict[str, str]] = {
    name: f"arc{name}" for name in "sin cos tan cot sec csc sinh cosh tanh".split()
} | {"ln": "exp", "exp": "ln"}  # fmt: skip

RELATIONS: Final[dict[str, str]] = {
    "=": "=", "==": "=", ":=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=", "le": "<=", "leq": "<=",
    "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "lt": "<", "gt": ">",
    "ne": "!=", "neq": "!=", "approx": "~", "simeq": "~", "cong": "cong", "in": "in", "to": "->", "rightarrow": "->",
    "equiv": "===", "subset": "subset", "subseteq": "subseteq", "mapsto": "->", "sim": "sim", "notin": "notin",
    "mid": "|", "Rightarrow": "=>", "implies": "=>", "iff": "<=>", "Leftrightarrow": "<=>", "propto": "propto",
    "parallel": "||", "perp": "perp", "ll": "<<", "gg": ">>", "colon": ":",
}  # fmt: skip

CONSTANTS: Final[dict[str, str]] = {
    "pi": "pi", "e": "e", "i": "i", "imath": "i", "infty": "oo", "infinity": "oo", "inf": "oo", "Inf": "oo", "oo": "oo",
    "emptyset": "empty", "varnothing": "empty", "Pi": "Pi", "Infinity": "oo",
}  # fmt: skip

NUMBER_SETS: Final[frozenset[str]] = frozenset("R Z N Q C".split())

GREEK: Final[frozenset[str]] = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron rho varrho "
    "sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega ell "
    "hbar nabla partial jmath aleph wp".split()
)

SEPARATORS: Final[frozenset[str]] = frozenset({"and", "or", "或", "和", "以及", "und", "oder", "et", "ou"})

DISJUNCTIONS: Final[frozenset[str]] = frozenset({"or", "或", "oder", "ou"})

PERCENT: Final[frozenset[str]] = frozenset({"percent", "pct", "percentage", "per cent"})

OPAQUE: Final[frozenset[str]] = frozenset(
    "lim sum prod int iint iiint oint limsup liminf sup inf bigcup bigcap partial nabla forall exists".split()
)
"""Commands whose meaning is not computed: what they start is kept as text up to the next relation or separator."""

MATRICES: Final[frozenset[str]] = frozenset(
    "matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix psmallmatrix bsmallmatrix array".split()
)

CURRENCIES: Final[dict[str, str]] = {"$": "$", "euro": "euro", "pounds": "sterling", "yen": "¥", "rupee": "rupee"}

MONEY: Final[frozenset[str]] = frozenset("Rs INR USD US$ EUR GBP CAD AUD".split())
"""Names of currencies that stand before the amount."""


CLOSERS: Final[dict[str, str]] = {"(": ")", "[": "]", "langle": "rangle", "lfloor": "rfloor", "lceil": "rceil"}

CALLABLE: Final[frozenset[str]] = frozenset("f g h F G H P E Var Cov Pr".split())
"""Letters that name a function when a bracket follows at once: `f(x)` is a value of f, `x(x+1)` is a product."""


def names(word: str) -> bool:
    """Whether a word is a function, a constant or a Greek letter."""
    return word in FUNCTIONS or word in CONSTANTS or word in GREEK


MAX_WORDS: Final = 12  # a longer gold in words is an explanation that no rule can compare

_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|textit|mathbf|operatorname|mbox|rm|bf)\b|\\[,;:! ]|[{}$~]|\\[()\[\]]")
_ARTICLES: Final = frozenset({"the", "a", "an"})

_SAME: Final[dict[str, str]] = {
    "no solutions": "no solution", "no real solution": "no solution", "no real solutions": "no solution",
    "dne": "does not exist", "limit does not exist": "does not exist", "it does not exist": "does not exist",
    "infinitely many": "infinitely many solutions", "divergent": "diverges", "convergent": "converges",
    "it diverges": "diverges", "it converges": "converges", "series diverges": "diverges",
    "series converges": "converges", "none exist": "none", "all reals": "all real numbers", "correct": "true",
    "incorrect": "false", "not defined": "undefined",
    "even function": "even", "odd function": "odd", "even number": "even",
    "odd number": "odd",
}  # fmt: skip

PHRASES: Final = frozenset("yes no true false none dne odd even all never always undefined".split())
"""Short words that would otherwise read as products of letters."""

_MEANING: Final[dict[str, Node]] = {
    "no solution": Constant("empty"),
    "empty set": Constant("empty"),
    "all real numbers": Constant("R"),
    "infinity": Constant("oo"),
}


def words(text: str) -> Words | None:
    """Return a text of a few words in a comparable form, or None when it is not one.

    Digits and signs make a text something other than words: they would have to be understood.
    """
    bare = _MARKUP.sub(" ", text).strip(" .,;:!?()[]\"'\n\t")
    if not bare or len(bare) > 200 or bare[0] in "-−+" or text.strip().endswith("!"):
        return None
    spoken = _WORD.findall(bare)
    if not spoken or len(spoken) > MAX_WORDS or any(any(sign.isdigit() for sign in word) for word in spoken):
        return None
    if _WORD.sub("", bare).strip(" ,.;:'\"-()!?\n\t，。、；："):
        return None
    if len(spoken) > 2 and [word.lower() for word in spoken[:2]] in (["there", "is"], ["there", "are"]):
        spoken = spoken[2:]
    kept = [word for word in (word.lower() for word in spoken) if word not in _ARTICLES] or [spoken[0].lower()]
    joined = " ".join(kept)
    return Words(_SAME.get(joined, joined))


def meaning(text: Words) -> Node:
    """Return the mathematical object that a phrase names, or the words themselves."""
    if text.text in NUMBER_WORDS:
        return Number(Fraction(NUMBER_WORDS[text.text]))
    number, _, unit = text.text.partition(" ")
    if number in NUMBER_WORDS and unit not in DEGREES and is_unit(unit, upright=True):
        return Operation("mul", (Number(Fraction(NUMBER_WORDS[number])), Unit(unit)))
    return _MEANING.get(text.text, text)
