"""What can be counted in one step of a solution, beside the problem and the steps before it.

Nothing behind the step is looked at, and nothing that says what the answer is: a step's statistics are the same
whatever follows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from adjudge.reward_models.baselines.step_ledger import ORIGINS, Ledger, Origin, StepText, computation

_ANSWER = re.compile(r"\s*(?:A:|####|(?:the\s+)?(?:final\s+)?answer\b)", re.IGNORECASE)
_KNOTS = (2.0, 2.5, 3.0, 3.5)  # in log(words): 7, 12, 20 and 33 words
_ALIKE = 0.34  # share of the words beside two numbers that they have in common: the same things are counted
_SIGNS = "+-*/"
_SHOWN: tuple[Origin, ...] = tuple(origin for origin in ORIGINS if origin != "here")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "problem": ("log words asked", "log numbers asked", "log words in the question"),
    "place": ("log steps before", "first step", "log results before", "given numbers used before", "answer line"),
    "length": ("log characters", "log words", "log words over those before", *(f"words above e^{k:g}" for k in _KNOTS)),
    "arithmetic": (
        "has equations",
        "several equations",
        "any wrong equation",
        "more than two operands",
        "a number alone",
        *(f"has {sign}" for sign in _SIGNS),
        "two kinds of signs",
    ),
    "operands": (
        *(f"operands {origin}" for origin in _SHOWN),
        *(f"any operand {origin}" for origin in _SHOWN),
        "all operands given",
        "both given and last",
        "operands used before",
        "given operands used before",
        "an operand twice",
        "operand one",
        "operand below one",
        *(f"given {sign} given" for sign in _SIGNS),
        *(f"last {sign} given" for sign in _SIGNS),
        *(f"last {sign} earlier" for sign in _SIGNS),
        *(f"given {sign} last" for sign in _SIGNS),
        *(f"{sign} of like things" for sign in _SIGNS),
    ),
    "results": (
        "result given",
        "result was there",
        "computation was there",
        "result negative",
        "result zero",
        "result below one",
        "result not whole",
        "log result over largest given",
        "log result over last",
        "result over all given",
        "result an operand",
    ),
    "flow": (
        "given numbers unused after",
        "log given numbers unused after",
        "given numbers newly used",
        "last result used",
        "results unused after",
        "answer is the last result",
        "answer is given",
        "answer from nowhere",
        "answer with numbers unused",
    ),
    "words": (
        "words from the problem",
        "words from the question",
        "question words said",
        "words from steps before",
        "words new",
        "copied from the step before",
        "words about operands",
    ),
    "before": (
        "step before has equations",
        "step before has a wrong equation",
        "log words before",
        *(f"step before has {sign}" for sign in _SIGNS),
    ),
}


def step_statistics(step: StepText, ledger: Ledger) -> dict[str, float]:
    """Return the statistics of a step, by name and in the order of `GROUPS`; all are finite."""
    values: dict[str, Sequence[float]] = {
        "problem": (math.log1p(len(ledger.asked)), math.log1p(len(ledger.given)), math.log1p(len(ledger.question))),
        "place": _place(step, ledger),
        "length": _length(step, ledger),
        "arithmetic": _arithmetic(step),
        "operands": _operands(step, ledger),
        "results": _results(step, ledger),
        "flow": _flow(step, ledger),
        "words": _words(step, ledger),
        "before": _before(ledger.previous),
    }
    return {
        name: float(value) for group, names in GROUPS.items() for name, value in zip(names, values[group], strict=True)
    }


def is_answer(step: StepText) -> bool:
    """Return whether a step says that it is the answer: "A:", "####", "The answer is"."""
    return _ANSWER.match(step.text) is not None


def _place(step: StepText, ledger: Ledger) -> Sequence[float]:
    return (
        math.log1p(ledger.steps),
        ledger.steps == 0,
        math.log1p(len(ledger.results)),
        1 - len(ledger.unused) / max(1, len(ledger.given)),
        is_answer(step),
    )


def _length(step: StepText, ledger: Ledger) -> Sequence[float]:
    size = math.log1p(len(step.words))
    before = math.log1p(len(ledger.previous.words)) if ledger.previous else size
    return (math.log1p(len(step.text)), size, size - before, *(max(0.0, size - knot) for knot in _KNOTS))


def _arithmetic(step: StepText) -> Sequence[float]:
    signs = step.signs
    return (
        bool(step.equations),
        len(step.equations) > 1,
        any(not equation.holds for equation in step.equations),
        any(len(equation.operands) > 2 for equation in step.equations),
        bool(step.numbers) and not step.equations,
        *(sign in signs for sign in _SIGNS),
        len(set(signs)) > 1,
    )


def _operands(step: StepText, ledger: Ledger) -> Sequence[float]:
    found = ledger.origins(step)
    origins = [origin for equation in found for origin in equation]
    operands = [value for equation in step.equations for value in equation.operands]
    counts = Counter(origins)
    total = max(1, len(origins))
    pairs = _pairs(step, found, ledger)
    ways = (("given", "given"), ("last", "given"), ("last", "earlier"), ("given", "last"))
    return (
        *(counts[origin] / total for origin in _SHOWN),
        *(counts[origin] > 0 for origin in _SHOWN),
        bool(origins) and counts["given"] == len(origins),
        counts["given"] > 0 and counts["last"] > 0,
        sum(value in ledger.used for value in operands) / total,
        sum(value in ledger.used and value in ledger.given for value in operands) > 0,
        len(set(operands)) < len(operands),
        1.0 in operands,
        any(0 < value < 1 for value in operands),
        *(pairs[f"{one} {sign} {other}"] > 0 for one, other in ways for sign in _SIGNS),
        *(pairs[f"{sign} alike"] > 0 for sign in _SIGNS),
    )


def _pairs(step: StepText, origins: Sequence[Sequence[Origin]], ledger: Ledger) -> Counter[str]:
    """Where neighbours come from, with the sign between them; and the signs between like things."""
    pairs: Counter[str] = Counter()
    for equation, found in zip(step.equations, origins, strict=True):
        if len(equation.operators) != len(found) - 1:  # a minus before a number, or brackets that hide a sign
            continue
        for at, sign in enumerate(equation.operators):
            pairs[f"{found[at]} {sign} {found[at + 1]}"] += 1
            one, other = (ledger.about.get(value, {}).keys() for value in equation.operands[at : at + 2])
            pairs[f"{sign} alike"] += len(one & other) > _ALIKE * max(1, min(len(one), len(other)))
    return pairs


def _results(step: StepText, ledger: Ledger) -> Sequence[float]:
    if not step.equations:
        return (0.0,) * len(GROUPS["results"])
    results = [equation.result for equation in step.equations]
    last = max(map(abs, ledger.last), default=0.0)
    size = abs(results[-1])
    return (
        any(result in ledger.given for result in results),
        any(result in ledger.results for result in results),
        any(computation(equation) in ledger.done for equation in step.equations),
        min(results) < 0,
        0.0 in results,
        any(0 < result < 1 for result in results),
        any(result != int(result) for result in results),
        math.log((size + 1) / (ledger.largest + 1)),
        math.log((size + 1) / (last + 1)) if ledger.last else 0.0,
        size > ledger.total,
        any(equation.result in equation.operands for equation in step.equations),
    )


def _flow(step: StepText, ledger: Ledger) -> Sequence[float]:
    newly = len(ledger.unused & step.operands)
    left = len(ledger.unused) - newly
    ends = is_answer(step) and bool(step.numbers)
    answer = step.numbers[-1] if step.numbers else math.nan
    return (
        left / max(1, len(ledger.given)),
        math.log1p(left),
        min(newly, 3),
        bool(ledger.last & step.operands),
        math.log1p(len(ledger.idle - step.operands)),
        ends and answer in ledger.last,
        ends and answer in ledger.given,
        ends and answer not in ledger.given and answer not in ledger.results,
        left / max(1, len(ledger.given)) if ends else 0.0,
    )


def _words(step: StepText, ledger: Ledger) -> Sequence[float]:
    words = set(step.words)
    size = max(1, len(words))
    about = {word for equation in step.equations for value in equation.operands for word in ledger.about.get(value, ())}
    before = set(ledger.previous.words) if ledger.previous else set()
    return (
        len(words & ledger.asked) / size,
        len(words & ledger.question) / size,
        len(words & ledger.question) / max(1, len(ledger.question)),
        len(words & ledger.said) / size,
        len(words - ledger.asked - ledger.said) / size,
        len(words & before) / size,
        len(words & about) / size,
    )


def _before(previous: StepText | None) -> Sequence[float]:
    if previous is None:
        return (0.0,) * len(GROUPS["before"])
    return (
        bool(previous.equations),
        any(not equation.holds for equation in previous.equations),
        math.log1p(len(previous.words)),
        *(sign in previous.signs for sign in _SIGNS),
    )
