r"""The last relation of a statement, where it is plain enough to be changed by rule.

The formal subset: the last formula between dollar signs, `\(..\)` or `\[..\]` holds one relation, = or < or >, between
two expressions of numbers, and the statement claims it of all that it speaks of.

Not covered: matrices, complex numbers and other things without an order; formulas with several relations, text, sets,
congruences or plus-minus signs; and statements of existence, whose negation says something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

_FORMULA = re.compile(r"\$\$?([^$]+)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_RELATION = re.compile(r"(?<![\\a-zA-Z:<>=!])(?:=|<|>)(?![=<>])")
_OTHER = re.compile(
    r"\\(?:n?leq?|n?geq?|neq?|l[lt]|g[gt]|equiv|cong|sim|approx|in|notin|subset\w*|supset\w*|cup|cap|to|mapsto|pm|mp"
    r"|text\w*|mathrm|operatorname|mod|pmod|bmod|mid|forall|exists|quad|qquad|implies|iff|Rightarrow|begin|cdots|[ld]?dots"
    r"|propto|perp|parallel|vec|mathbb|mathcal)(?![a-zA-Z])|[;,:]|[≤≥≠≡∈⊂±]|!="
)
_EXISTENCE = re.compile(
    r"\b(?:exists?|there (?:is|are)|some|at least one|infinitely|\\exists)\b|\\exists", re.IGNORECASE
)
_NOT_REAL = re.compile(
    r"complex|matri|vector|operator|group|ring\b|quaternion|modul|field|algebra|\b(?:sets?|mod)\b|\\mathbb\{?C",
    re.IGNORECASE,
)  # where + 1, <, or ab = ba may mean nothing
_DENIED = re.compile(r"\b(?:not|never|no|cannot|unless|without|false|fails?)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d{1,12}|[+-]?\\d?frac\{(\d{1,12})\}\{(\d{1,12})\}|[+-]?\d{1,12}/\d{1,12}")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A relation within a statement.

    Attributes:
        before: the statement up to it.
        left: left side, as LaTeX.
        sign: "=", "<" or ">".
        right: right side.
        after: the rest of the statement.
    """

    before: str
    left: str
    sign: str
    right: str
    after: str

    @property
    def closed(self) -> bool:
        """Whether it speaks of numbers alone, without variables; e is taken for a variable."""
        return not re.search(r"[A-Za-z]", re.sub(r"\\[a-zA-Z]+", "", f"{self.left} {self.right}"))

    @property
    def number(self) -> Fraction | None:
        """The right side where it is written as a number, else None."""
        found = _NUMBER.fullmatch(self.right)
        if found is None:
            return None
        if found[1] is None:
            top, _, bottom = self.right.partition("/")
            return Fraction(int(top), int(bottom or 1)) if int(bottom or 1) else None
        sign = -1 if self.right.startswith("-") else 1
        return sign * Fraction(int(found[1]), int(found[2])) if int(found[2]) else None

    def stated(self, left: str, sign: str, right: str) -> str:
        """Return the statement with another relation."""
        return f"{self.before}{left} {sign} {right}{self.after}"

    def turned(self) -> Conclusion:
        """Return the same relation read from right to left."""
        sign = {"<": ">", ">": "<"}.get(self.sign, self.sign)
        return replace(self, left=self.right, sign=sign, right=self.left)


def conclusion_of(statement: str) -> Conclusion | None:
    """Return the conclusion of a statement, or None where it is not of the formal subset."""
    if any(words.search(statement) for words in (_EXISTENCE, _DENIED, _NOT_REAL)):
        return None
    formulas = list(_FORMULA.finditer(statement))
    if not formulas:
        return None
    last = formulas[-1]
    place = next(number for number in (1, 2, 3) if last[number] is not None)
    inner, start = last[place], last.start(place)
    if re.search(
        r"\w", re.sub(r"\b(?:holds|always|hold|for all|for every|we have|true|is)\b", "", statement[last.end() :])
    ):
        return None  # conditions that follow the formula would be cut off from it
    relations = list(_RELATION.finditer(inner))
    if len(relations) != 1 or _OTHER.search(inner):
        return None
    found = relations[0]
    left, right = inner[: found.start()].strip(), inner[found.end() :].strip()
    closing = re.search(r"[.\s]*$", right)
    tail = closing[0] if closing else ""
    right = right[: len(right) - len(tail)]
    if not left or not right or not _balanced(left) or not _balanced(right):
        return None
    return Conclusion(statement[:start], left, found[0], right, tail + statement[start + len(inner) :])


def _balanced(text: str) -> bool:
    closing = {"(": ")", "[": "]", "{": "}"}
    wanted: list[str] = []
    for letter in text:
        if letter in closing:
            wanted.append(closing[letter])
        elif letter in ")]}" and (not wanted or wanted.pop() != letter):
            return False
    return not wanted and text.count("|") % 2 == 0


def latex_number(value: Fraction) -> str:
    r"""Return a number as LaTeX: "3", "-3" or "\frac{1}{2}"."""
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
