r"""Variants by rule: in pairs of one form, one true and one false.

Of an equation that `math` confirms, L = R, and that has no variables or that the input says is proved:

| form | true | false |
|---|---|---|
| equal | L = R | L = R' |
| unequal | L \neq R' | L \neq R |
| below | L < R + k | L < R - k |
| above | L > R - k | L > R + k |

R' is another number, which `math` refutes.  Where R is not a number, k is added on both sides: L + k = R + k is true,
and L + k = R + m false, wherever the two are defined.

Of a strict inequality L < R that the input says is proved, L < R and R < L, and R \geq L and L \geq R.

`math` alone is not believed about variables, because it does not ask where both sides are defined (ln x^2 = 2 ln x).

A conclusion is the last formula between dollar signs, `\(..\)` or `\[..\]` that holds one relation, = or < or >,
between two expressions of numbers, and that the statement claims of all that it speaks of.

Not covered: matrices, complex numbers and other things without an order; formulas with several relations, text, sets,
congruences or plus-minus signs; statements of existence, whose negation says something else; identities that `math`
cannot decide, and inequalities that allow equality: nothing of their form is sure to be false.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Final, Literal, TypeAlias

from adjudge.io.errors import JobError
from adjudge.io.jobs.row_maker import Account
from adjudge.protocol import Sample, Scorer
from adjudge.runtime.contract import score_checked

Label = Literal["proved", "disproved"]
LABELS: Final[tuple[Label, ...]] = ("proved", "disproved")
Source = Literal["theorem", "rule", "model"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One statement made of a theorem, "proved" if it is true.

    Attributes:
        source: the theorem itself, a rule, or a model.
        form: which rule; statements of one form come in pairs, one of each label, so that the form says nothing.
    """

    statement: str
    label: Label
    source: Source
    form: str = ""

    @property
    def key(self) -> str:
        """What two statements share that differ in case and spacing alone."""
        return statement_key(self.statement)


def statement_key(text: str) -> str:
    """Return a text without differences in case, spacing and the mark at its end."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .")


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
    """A relation within a statement."""

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
        written = _NUMBER.fullmatch(self.right)
        if written is None:
            return None
        top, _, bottom = self.right.partition("/")
        if written[1] is not None:
            top, bottom = ("-" if self.right.startswith("-") else "") + written[1], written[2]
        return Fraction(int(top), int(bottom or 1)) if int(bottom or 1) else None

    def stated(self, left: str, sign: str, right: str) -> str:
        """Return the statement with another relation."""
        return f"{self.before}{left} {sign} {right}{self.after}"


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
    (sign,) = relations
    left, whole = inner[: sign.start()].strip(), inner[sign.end() :].strip()
    right = re.sub(r"[.\s]*$", "", whole)
    if not left or not right or not _balanced(left) or not _balanced(right):
        return None
    return Conclusion(statement[:start], left, sign[0], right, whole[len(right) :] + statement[start + len(inner) :])


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


_GONE = ("engine_unavailable", "closed", "worker_died")


Pairs: TypeAlias = tuple[tuple[Variant, Variant], ...]
"""A true and a false statement each."""


async def variants_by_rule(
    conclusion: Conclusion, proved: bool, math: Scorer, random: Random, account: Account
) -> tuple[Pairs, bool]:
    """Return the pairs that the rules make of a conclusion, and whether `math` confirmed it.

    Where there are none, the account has the reason: `rules_not_known`, `rules_refuted` or `rules_undecided`.
    """
    if not proved and not (conclusion.sign == "=" and conclusion.closed):
        account.drop("rules_not_known")
        return (), False
    if conclusion.sign != "=":
        return _of_inequality(conclusion), False
    number, other = conclusion.number, None
    if number is not None:  # another one that looks as plausible: near it, and of its sign where it has one
        other = number + random.choice([step for step in (-2, -1, 1, 2, 3) if number <= 0 or number + step > 0])
    asked = [conclusion.right, latex_number(other) if other is not None else f"{conclusion.right} + 1"]
    samples = [Sample(prompt="", response=f"\\boxed{{{conclusion.left}}}", reference=right) for right in asked]
    same, changed = await score_checked(math, samples)
    account.cost += same.cost + changed.cost
    for score in (same, changed):
        if score.status == "failed" and score.reason in _GONE:
            raise JobError(f"the scorer 'math' cannot judge ({score.reason}); the same call goes on when it can")
    if not same.value or changed.value != 0.0:
        account.drop("rules_refuted" if same.value == 0.0 else "rules_undecided")
        return (), False
    step = random.randint(1, 9)
    if other is not None:
        return _of_number(conclusion, other, step), True
    return _of_identity(conclusion, step, step + random.randint(1, 9)), True


def _pair(
    conclusion: Conclusion, form: str, true: tuple[str, str, str], false: tuple[str, str, str]
) -> tuple[Variant, Variant]:
    return (
        Variant(conclusion.stated(*true), "proved", "rule", form),
        Variant(conclusion.stated(*false), "disproved", "rule", form),
    )


def _of_number(conclusion: Conclusion, other: Fraction, step: int) -> Pairs:
    number = conclusion.number
    assert number is not None
    left, right, wrong = conclusion.left, conclusion.right, latex_number(other)
    more, less = latex_number(number + step), latex_number(number - step)
    return (
        _pair(conclusion, "equal", (left, "=", right), (left, "=", wrong)),
        _pair(conclusion, "unequal", (left, "\\neq", wrong), (left, "\\neq", right)),
        _pair(conclusion, "below", (left, "<", more), (left, "<", less)),
        _pair(conclusion, "above", (left, ">", less), (left, ">", more)),
    )


def _of_identity(conclusion: Conclusion, few: int, many: int) -> Pairs:
    left, right = f"{conclusion.left} + {few}", f"{conclusion.right} + {few}"
    other, more = f"{conclusion.right} + {many}", f"{conclusion.left} + {many}"
    return (
        _pair(conclusion, "equal", (left, "=", right), (left, "=", other)),
        _pair(conclusion, "unequal", (left, "\\neq", other), (left, "\\neq", right)),
        _pair(conclusion, "below", (left, "<", other), (more, "<", right)),
        _pair(conclusion, "above", (more, ">", right), (left, ">", other)),
    )


def _of_inequality(conclusion: Conclusion) -> Pairs:
    small, large = (
        (conclusion.left, conclusion.right) if conclusion.sign == "<" else (conclusion.right, conclusion.left)
    )
    return (
        _pair(conclusion, "below", (small, "<", large), (large, "<", small)),
        _pair(conclusion, "above", (large, ">", small), (small, ">", large)),
        _pair(conclusion, "at_least", (large, "\\geq", small), (small, "\\geq", large)),
        _pair(conclusion, "at_most", (small, "\\leq", large), (large, "\\leq", small)),
    )
