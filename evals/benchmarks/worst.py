"""How many there are of what, and the cases to read: those that a scorer got most wrong, then those without a verdict.

A case is worse the less it earns, and the further apart the numbers were that decided it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Final

from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.case import Case, Given, Outcome
from adjudge.evals.benchmarks.pair import verdict
from adjudge.evals.reports.result import Counts, ReadCase, ReadResponse, as_text, cut


def sample_ids(outcome: Outcome) -> list[str]:
    """Return the ids of a case's samples: its own, or with "/0", "/1", ... for several."""
    count = len(outcome.values)
    return [outcome.id] if count == 1 else [f"{outcome.id}/{place}" for place in range(count)]


def counted(outcomes: Sequence[Outcome], unreadable: int) -> Counts:
    """Return the counts of all cases."""
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for outcome in outcomes:
        statuses.update(outcome.statuses)
        for status, reason in zip(outcome.statuses, outcome.reasons, strict=True):
            if status != "scored":
                reasons[reason] += 1
    return Counts(
        cases=len(outcomes),
        samples=sum(statuses.values()),
        scored=statuses["scored"],
        abstained=statuses["abstained"],
        failed=statuses["failed"],
        cut_off=sum(sum(outcome.cut_off) for outcome in outcomes),
        tied=sum(_is_tied(outcome) for outcome in outcomes),
        unreadable=unreadable,
        reasons=dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))),
    )


def _is_tied(outcome: Outcome) -> bool:
    """Whether the best value is shared, or two orders of a pair come to nothing."""
    if len(outcome.values) == 2:
        return verdict(outcome) == 0
    known = [value for value in outcome.values if value is not None]
    return len(known) > 1 and known.count(max(known)) > 1


_MAX_RESPONSES: Final = 16


class Worst:
    """Keeps the worst cases."""

    def __init__(self, benchmark: Benchmark, most: int) -> None:
        self._benchmark = benchmark
        self._most = most
        self._wrong: list[tuple[float, int, ReadCase]] = []
        self._unjudged: list[ReadCase] = []
        self._seen = 0

    def look(self, case: Case, outcome: Outcome, given: Sequence[Given]) -> None:
        """Keep the case if it is among the worst so far."""
        if not self._most:
            return
        self._seen += 1
        credit = self._benchmark.credit(outcome)
        if credit is None:
            status = next((status for status in outcome.statuses if status != "scored"), "")
            if status and len(self._unjudged) < self._most:  # without one, the benchmark itself has no right answer
                self._unjudged.append(self._read(case, outcome, given, status, 0.0))
            return
        if credit >= 1:
            return
        known = [value for value in outcome.values if value is not None]
        weight = (1 - credit) * (1 + max(known) - min(known)) if known else 1 - credit
        entry = (weight, -self._seen)  # of two that are as bad, the earlier one
        if len(self._wrong) == self._most and entry <= self._wrong[0][:2]:
            return
        read = self._read(case, outcome, given, _verdict(credit, outcome), weight)
        push = heapq.heappush if len(self._wrong) < self._most else heapq.heappushpop
        push(self._wrong, (*entry, read))

    def cases(self) -> tuple[ReadCase, ...]:
        """Return the cases, the worst ones first; a quarter of the places is for those without a verdict."""
        reserved = min(len(self._unjudged), max(self._most // 4, self._most - len(self._wrong)))
        wrong = [read for _, _, read in sorted(self._wrong, key=lambda entry: entry[:2], reverse=True)]
        return (*wrong[: self._most - reserved], *self._unjudged[:reserved])

    def _read(self, case: Case, outcome: Outcome, given: Sequence[Given], said: str, weight: float) -> ReadCase:
        gold, notes = self._benchmark.words(outcome)
        shown = list(zip(case.samples, given, strict=True))[:_MAX_RESPONSES]
        return ReadCase(
            id=case.id,
            part=case.part,
            verdict=said,
            weight=weight,
            prompt=cut(as_text(case.samples[0].prompt)),
            responses=tuple(
                ReadResponse(
                    text=cut(as_text(sample.response)),
                    said=one.said,
                    value=one.value,
                    note=notes[place] if place < len(notes) else "",
                )
                for place, (sample, one) in enumerate(shown)
            ),
            gold=cut(gold),
        )


def _verdict(credit: float, outcome: Outcome) -> str:
    if len(outcome.values) == 2 and verdict(outcome) == 0:
        return "tied"
    return "wrong" if credit <= 0 else "partly right"
