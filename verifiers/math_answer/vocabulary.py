"""The names the parser knows: functions, relations, constants, environments, and words that separate answers."""

from __future__ import annotations

from typing import Final

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

CURRENCIES: Final[dict[str, str]] = {"$": "$", "euro": "euro", "pounds": "sterling", "yen": "yen", "rupee": "rupee"}

MONEY: Final[frozenset[str]] = frozenset("Rs INR USD US$ EUR GBP CAD AUD".split())
"""Names of currencies that stand before the amount."""


CLOSERS: Final[dict[str, str]] = {"(": ")", "[": "]", "langle": "rangle", "lfloor": "rfloor", "lceil": "rceil"}

CALLABLE: Final[frozenset[str]] = frozenset("f g h F G H P E Var Cov Pr".split())
"""Letters that name a function when a bracket follows at once: `f(x)` is a value of f, `x(x+1)` is a product."""


def names(word: str) -> bool:
    """Whether a word is a function, a constant or a Greek letter."""
    return word in FUNCTIONS or word in CONSTANTS or word in GREEK
