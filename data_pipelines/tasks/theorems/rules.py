r"""Variants by rule: in pairs of one form, one true and one false.

Of an equation that `math` confirms, L = R, and that has no variables or that the input says is proved:

| form | true | false |
|---|---|---|
| equal | L = R | L = R' |
| unequal | L \neq R' | L \neq R |
| below | L < R + k | L < R - k |
| above | L > R - k | L > R + k |

R' is another number, which `math` refutes.  Where R is no number, k is added on both sides: L + k = R + k is true, and
L + k = R + m false, wherever the two are defined.

Of a strict inequality L < R that the input says is proved, L < R and R < L, and R \geq L and L \geq R.

`math` alone is not believed about variables, because it does not ask where both sides are defined (ln x^2 = 2 ln x).

Not covered: identities that `math` cannot decide, and inequalities that allow equality: nothing of their form is sure
to be false.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

from adjudge.data_pipelines.tasks.theorems.conclusion import Conclusion, latex_number
from adjudge.data_pipelines.tasks.theorems.variant import Variant
from adjudge.io.errors import JobError
from adjudge.protocol import NO_COST, Cost, Sample, Scorer
from adjudge.runtime.contract import score_checked

_GONE = ("engine_unavailable", "closed", "worker_died")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """What the rules made.

    Attributes:
        pairs: a true and a false statement each.
        refused: why there are none, "" where there are.
        label: "proved" or "disproved" where `math` decided about the theorem itself, else "".
        cost: what the scorer took.
    """

    pairs: tuple[tuple[Variant, Variant], ...] = ()
    refused: str = ""
    label: str = ""
    cost: Cost = NO_COST


async def variants_by_rule(found: Conclusion, proved: bool, math: Scorer, random: Random) -> Ruled:
    """Return the pairs that the rules make of a conclusion.

    Args:
        found: the conclusion.
        proved: whether the input says that the statement is true.
        math: the scorer `math`, with `undecided="failed"`.
        random: which constants.

    Raises:
        JobError: the scorer is gone.
    """
    if not proved and not (found.sign == "=" and found.closed):
        return Ruled(refused="not_known")
    if found.sign != "=":
        return Ruled(pairs=_of_inequality(found))
    other = _other_number(found.number, random) if found.number is not None else None
    asked = [found.right, latex_number(other) if other is not None else f"{found.right} + 1"]
    samples = [Sample(prompt="", response=f"\\boxed{{{found.left}}}", reference=right) for right in asked]
    same, changed = await score_checked(math, samples)
    cost = same.cost + changed.cost
    for score in (same, changed):
        if score.status == "failed" and score.reason in _GONE:
            raise JobError(f"the scorer 'math' cannot judge ({score.reason}); the same call goes on when it can")
    if same.value == 0.0:
        return Ruled(refused="refuted", cost=cost)
    if same.value is None or changed.value != 0.0:
        return Ruled(refused="undecided", cost=cost)
    step = random.randint(1, 9)
    pairs = (
        _of_number(found, other, step) if other is not None else _of_identity(found, step, step + random.randint(1, 9))
    )
    return Ruled(pairs=pairs, label="proved", cost=cost)


def _other_number(number: Fraction, random: Random) -> Fraction:
    """Return another number that looks as plausible: near it, and of its sign where it has one."""
    steps = [step for step in (-2, -1, 1, 2, 3) if number <= 0 or number + step > 0]
    return number + random.choice(steps)


def _pair(
    found: Conclusion, form: str, true: tuple[str, str, str], false: tuple[str, str, str]
) -> tuple[Variant, Variant]:
    return (
        Variant(found.stated(*true), "proved", "rule", form),
        Variant(found.stated(*false), "disproved", "rule", form),
    )


def _of_number(found: Conclusion, other: Fraction, step: int) -> tuple[tuple[Variant, Variant], ...]:
    number = found.number
    assert number is not None
    left, right, wrong = found.left, found.right, latex_number(other)
    more, less = latex_number(number + step), latex_number(number - step)
    return (
        _pair(found, "equal", (left, "=", right), (left, "=", wrong)),
        _pair(found, "unequal", (left, "\\neq", wrong), (left, "\\neq", right)),
        _pair(found, "below", (left, "<", more), (left, "<", less)),
        _pair(found, "above", (left, ">", less), (left, ">", more)),
    )


def _of_identity(found: Conclusion, few: int, many: int) -> tuple[tuple[Variant, Variant], ...]:
    left, right = f"{found.left} + {few}", f"{found.right} + {few}"
    other, more = f"{found.right} + {many}", f"{found.left} + {many}"
    return (
        _pair(found, "equal", (left, "=", right), (left, "=", other)),
        _pair(found, "unequal", (left, "\\neq", other), (left, "\\neq", right)),
        _pair(found, "below", (left, "<", other), (more, "<", right)),
        _pair(found, "above", (more, ">", right), (left, ">", other)),
    )


def _of_inequality(found: Conclusion) -> tuple[tuple[Variant, Variant], ...]:
    small, large = (found.left, found.right) if found.sign == "<" else (found.right, found.left)
    return (
        _pair(found, "below", (small, "<", large), (large, "<", small)),
        _pair(found, "above", (large, ">", small), (small, ">", large)),
        _pair(found, "at_least", (large, "\\geq", small), (small, "\\geq", large)),
        _pair(found, "at_most", (small, "\\leq", large), (large, "\\leq", small)),
    )
