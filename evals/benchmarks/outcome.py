"""What is kept of a case once it is scored: numbers and codes, and no texts, so that many fit into memory.

Most cases say the same in most fields ("scored, scored"; no reasons; no steps), so equal tuples are one object in
memory: 100,000 pairs of numbers take some 60 MB, and without that twice as much.

Not covered: the texts of the worst cases, which `adjudge.evals.results.reading` keeps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar

from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.given import Given
from adjudge.protocol import Sample, Status, response_text
from adjudge.solutions.steps import split_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a scorer said about one case.

    Attributes:
        id: of the case.
        gold: of the case.
        cluster: of the case; never "" here.
        part: of the case.
        values: one for each sample; None where there is no number.
        statuses: one for each sample.
        reasons: one for each sample: why there is no number, or the candidate's reason.
        cut_off: one for each sample: whether the scorer saw only a part of it, or the response itself ends at a limit.
        steps: one for each sample: the values of its steps; () for scorers without steps.
        sizes: one for each sample: characters of the response.
        step_counts: one for each sample: its steps, as `adjudge.solutions.steps` splits it; 0 where nobody counted.
        compared: whether each value is the share of its response against the other one of the pair, as a scorer gives
            it whose reference is the other response; the first value then comes from one order, the second from the
            other.
    """

    id: str
    gold: Any
    cluster: str
    part: str
    values: tuple[float | None, ...]
    statuses: tuple[Status, ...]
    reasons: tuple[str, ...]
    cut_off: tuple[bool, ...]
    steps: tuple[tuple[float | None, ...], ...]
    sizes: tuple[int, ...]
    step_counts: tuple[int, ...]
    compared: bool = False

    @property
    def judged(self) -> bool:
        """Whether every sample has a number."""
        return None not in self.values

    def with_values(
        self, values: Sequence[float | None], *, steps: Sequence[tuple[float | None, ...]] | None = None
    ) -> Self:
        """Return the same case with other numbers, as a trivial scorer would give them.

        Args:
            values: one for each sample.
            steps: one for each sample; none if None.
        """
        if len(values) != len(self.values):
            raise ValueError(
                f"the case {self.id!r} has {len(self.values)} samples, and {len(values)} values were given"
            )
        count = len(values)
        return dataclasses.replace(
            self,
            values=tuple(values),
            statuses=tuple("failed" if value is None else "scored" for value in values),
            reasons=("",) * count,
            cut_off=(False,) * count,
            steps=((),) * count if steps is None else tuple(steps),
            compared=False,
        )


H = TypeVar("H", bound=Hashable)

_LONGEST_SHARED: Final = 200  # characters of a gold
_MOST_SHARED: Final = 4_096  # different tuples that are shared; a benchmark with more has little in common


@dataclass(frozen=True, slots=True)
class _Gold:
    """What is right, known by its text: plain data of one text are equal."""

    said: str
    gold: Any = field(compare=False)


class OutcomeMaker:
    """Makes outcomes; equal parts of them are shared."""

    def __init__(self) -> None:
        self._shared: dict[Any, Any] = {}

    def outcome(self, case: Case, given: Sequence[Given], sizes: Sequence[tuple[int, int]], compared: bool) -> Outcome:
        """Return what is kept of a case.

        Args:
            case: the case.
            given: one for each sample.
            sizes: characters and steps of each response, from `measured`.
            compared: whether the values are shares in two orders.
        """
        cut_off = [
            one.cut_off or sample.finish_reason == "length" for one, sample in zip(given, case.samples, strict=True)
        ]
        return Outcome(
            id=case.id,
            gold=self._gold(case.gold),
            cluster=case.cluster or case.id,
            part=self._one(case.part),
            values=tuple(one.value for one in given),
            statuses=self._one(tuple(one.status for one in given)),
            reasons=self._one(tuple(one.reason for one in given)),
            cut_off=self._one(tuple(cut_off)),
            steps=self._one(tuple(one.steps for one in given)),
            sizes=tuple(size for size, _ in sizes),
            step_counts=self._one(tuple(steps for _, steps in sizes)),
            compared=compared,
        )

    def _gold(self, gold: Any) -> Any:
        """Return what is right; equal ones are one object, unless they are long, and so rarely equal."""
        said = repr(gold) if isinstance(gold, dict | list) else ""
        return self._one(_Gold(said, gold)).gold if 0 < len(said) <= _LONGEST_SHARED else gold

    def _one(self, value: H) -> H:
        if len(self._shared) < _MOST_SHARED:
            self._shared.setdefault(value, value)
        found: H = self._shared.get(value, value)
        return found


def measured(sample: Sample) -> tuple[int, int]:
    """Return a response's characters and steps: those that the benchmark gives, or else those between blank lines."""
    try:
        text = response_text(sample)
    except ValueError:  # turns that hold no text; the scorer says what it makes of them
        return 0, 0
    given = sample.extra.get("steps")
    if isinstance(given, Sequence) and not isinstance(given, str):
        return len(text), len(given)
    if text.isprintable():  # on one line, so one step; most short responses are, and nothing is searched
        return len(text), int(bool(text.strip()))
    return len(text), len(split_steps(text))
