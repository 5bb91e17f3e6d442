r"""Labels from the equations that steps write down, without rollouts: a scorer says whether both sides are equal.

A step all of whose equations hold is right, one with an equation that fails is wrong, and one without any, or with one
that the scorer cannot judge, is unknown.  So a label speaks of the working alone, and never of its sense.

With a worked solution, a right solution is right in all its steps, in the sense of hard rollout labels.  In a wrong one
a step is good as long as its results are those of the worked solution; the first step with a result that is not there
is taken for the first error, and what follows it stays unknown.  A step that works nothing out is unknown.  If no step
departs, the last one, which holds the wrong answer, is the error.  `benchmarks/step_models.py` measures how often that
is the error that people name.

A claim is "16 - 3 = 13", "<<16-3=13>>", "\(16 - 3 = 13\)".  Calculator annotations count alone where a step has
them, for the text around them says the same again.  Nothing is evaluated here.  Equations with letters, words,
fractions as `\frac`, results without the working, and steps of more than 20,000 characters claim nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from adjudge.data_pipelines.steps.rollouts import Ends, Estimate, Spending, StepLabels
from adjudge.protocol import Sample
from adjudge.training.step_data import Label, first_error

_ANNOTATION = re.compile(r"<<([^<>=]{1,200})=([^<>=]{1,60})>>")
_NUMBER = r"[-+]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d{1,30})?(?:\.\d{1,30})?(?<=\d)%?"
# A blank has one place alone where it can stand: with two, a sum of n terms without "=" takes 4^n steps to give up.
_TERM = rf"(?:\([ ]?)?{_NUMBER}(?:[ ]?\))?"
_EQUATION = re.compile(
    rf"(?<![\w.,=)*/+-])(?<![-+*/][ ])(?P<left>{_TERM}(?:[ ]?[-+*/][ ]?{_TERM}){{1,20}})"
    rf"[ ]?=[ ]?(?P<right>{_NUMBER})(?![\d.,]*\d|[ ]?[*/(])",
    re.ASCII,
)
_SIGNS = {"\\times": "*", "\\cdot": "*", "×": "*", "·": "*", "\\div": "/", "÷": "/", "−": "-", "–": "-", "\\%": "%"}
_MARKS = re.compile(r"\\[()\[\],;!$]|\$(?!\d)|(?<!\d)\$(?=\d)|[{}]")
_CROSS = re.compile(r"(?<=[\d)%])\s*[xX]\s*(?=[\d($])", re.ASCII)
_LONGEST = 20_000  # characters of a step


@dataclass(frozen=True, slots=True)
class Claim:
    """Left equals right."""

    left: str
    right: str


def claims_of(step: str) -> tuple[Claim, ...]:
    """Return the claims of a step, in order; none of one that is too long to be read whole."""
    if len(step) > _LONGEST:
        return ()
    claims = [Claim(left.strip(), right.strip()) for left, right in _ANNOTATION.findall(step)]
    if claims:
        return tuple(claim for claim in claims if re.search(r"\d\s*[^\d\s.,]", claim.left) and claim.left[-1:] != "=")
    text = step
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    text = re.sub(r"[ \t]+", " ", _CROSS.sub("*", _MARKS.sub("", text)))
    claims = [Claim(mark["left"].strip(), mark["right"].strip()) for mark in _EQUATION.finditer(text)]
    return tuple(claim for claim in claims if claim.left.count("(") == claim.left.count(")"))


def number_of(text: str) -> Fraction | None:
    """Return a number written with digits, or None: "1,200", "$5", "266.67", "30%" for 30."""
    plain = text.strip().replace(",", "").lstrip("$€£+").rstrip("%")
    plain = plain.replace("$", "", 1) if plain.startswith("-$") else plain
    if not re.fullmatch(r"-?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})", plain, re.ASCII):
        return None
    return Fraction(plain)


_CLOSE = Fraction(1, 200)  # two decimals, as money is rounded


def results_of(text: str) -> frozenset[Fraction]:
    """Return the numbers that a text works out."""
    return frozenset(number for claim in claims_of(text) if (number := number_of(claim.right)) is not None)


def worked_labels(
    steps: Sequence[str], worked: frozenset[Fraction], *, outcome: bool | None
) -> tuple[tuple[Label, ...], int | None]:
    """Return labels of a solution's steps, and the place of its first error: -1 for none, None if that is not known.

    It is not known where a step that works nothing out stands before the first departure, for that step may be wrong,
    and nothing is where nobody knows the outcome.  `worked` are the results of the worked solution, from `results_of`.
    """
    if outcome is None or not worked:
        return (None,) * len(steps), None
    if outcome:
        return (1.0,) * len(steps), -1
    labels: list[Label] = []
    for at, step in enumerate(steps):
        results = results_of(step)
        departs = any(all(abs(result - one) > _CLOSE for one in worked) for result in results)
        if departs or at == len(steps) - 1:
            known = (*labels, 0.0, *[None] * (len(steps) - at - 1))
            return known, first_error(known)
        labels.append(1.0 if results else None)
    return tuple(labels), None


ROUNDED = '{"math": {"abs_tol": 0.005}}'
"""A scorer that lets results be rounded to two decimals, as money is; the default where none is named."""


async def checked(ends: Ends, steps: Sequence[str], spending: Spending) -> StepLabels:
    """Return a label for each step, and how many of its equations hold, of those that were judged."""
    claims = [claims_of(step) for step in steps]
    samples = [Sample(prompt="", response=claim.right, reference=claim.left) for mine in claims for claim in mine]
    verdicts = iter(await ends.right(samples, spending))
    labels: list[Label] = []
    estimates: list[Estimate] = []
    for mine in claims:
        said = [next(verdicts) for _ in mine]
        holds = [verdict for verdict in said if verdict is not None]
        estimates.append(Estimate(right=sum(holds), judged=len(holds)))
        labels.append(0.0 if False in said else 1.0 if said and None not in said else None)
    return StepLabels(labels=tuple(labels), estimates=tuple(estimates), first_error=first_error(labels))
