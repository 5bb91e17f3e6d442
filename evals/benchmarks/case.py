"""A case of a benchmark, what somebody said of its samples, and what is kept of it: numbers and codes, and no texts.

Most cases say the same in most fields ("scored, scored"; no reasons; no steps), so equal tuples are one object in
memory: 100,000 pairs of numbers take some 60 MB, and without that twice as much.

A scorer of steps takes them from `extra["steps"]` of a sample.  One that splits by itself may cut elsewhere; then its
values are of other steps than the labels, so they are not values, and the sample has failed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, TypeVar

from adjudge.protocol import NO_COST, Cost, Sample, Score, Status, response_text
from adjudge.responses.steps import given_steps, split_steps
from adjudge.score_view import brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A score that stands in the benchmark's own file; its value is None where its author gave no verdict."""

    value: float | None
    steps: tuple[float | None, ...] = ()
    reason: str = ""


NO_VERDICT: Final = "no_verdict"
NOTHING_SAID: Final = Stored(value=None, reason=NO_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is decided at once: a pair, a list of candidates, one solution.

    Attributes:
        id: names it; no two cases of a benchmark share one.
        samples: what the scorer sees: the candidates, in the benchmark's own order.  `Sample.group` is the case's id
            where there are several, so that scorers of groups see them together.
        gold: what is right, as plain JSON data that the benchmark defines.
        cluster: cases that depend on each other (one prompt) share it; "" where the case stands for itself.
        part: subset, section or domain it counts in; "" if there is none.
        stored: what the file itself holds, one for each sample; () where it holds nothing.
        compared: whether the stored values of a pair are shares in two orders, as `Outcome.compared` says.
        texts: whether the row holds the texts; where it holds scores alone, no scorer can be asked.
    """

    id: str
    samples: tuple[Sample, ...]
    gold: Any
    cluster: str = ""
    part: str = ""
    stored: Sequence[Stored] = ()
    compared: bool = False
    texts: bool = True

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(f"the case {self.id!r} has no samples")
        if self.stored and len(self.stored) != len(self.samples):
            raise ValueError(
                f"the case {self.id!r} stores {len(self.stored)} scores for {len(self.samples)} samples; give one each"
            )


NOT_FINITE: Final = "not_finite"
_CUT: Final = "truncated"
_SEEN_IN_PART: Final = (_CUT, "kept")  # what scorers write into the evidence


class Given(NamedTuple):
    """What is kept of a score.

    Attributes:
        reason: why there is none, or the candidate's reason.
        cut_off: whether the scorer saw only a part of the response, or was told that it ends at a limit.
        error: what went wrong, in words, where somebody said so.
        places: first character of each step in the response, and one past its last; () where nobody said.
        answer: the final answer that the scorer found; "" if it says none.
    """

    value: float | None
    status: Status
    reason: str = ""
    steps: tuple[float | None, ...] = ()
    cut_off: bool = False
    cost: Cost = NO_COST
    error: str = ""
    places: tuple[tuple[int, int], ...] = ()
    answer: str = ""

    @property
    def said(self) -> str:
        """The score as text for people."""
        return brief(self)


def of_score(verdict: Score) -> Given:
    """Return what is kept of a scorer's answer."""
    evidence = verdict.evidence
    return Given(
        value=verdict.value,
        status=verdict.status,
        reason=verdict.reason,
        steps=tuple(step.value for step in verdict.steps),
        cut_off=is_cut(verdict.reason, evidence),
        cost=verdict.cost,
        error="" if verdict.value is not None else str(evidence.get("error") or evidence.get("fault") or ""),
        places=tuple((step.start, step.end) for step in verdict.steps),
        answer=answer_in(evidence),
    )


def answer_in(evidence: Mapping[str, Any]) -> str:
    """Return the final answer that a scorer found in a response; "" if it says none."""
    answer = evidence.get("answer")
    return answer if isinstance(answer, str) else ""


def is_cut(reason: str, evidence: Mapping[str, Any]) -> bool:
    """Return whether a score says that the scorer saw only a part of the response, or that it ends at a limit."""
    return reason == _CUT or any(evidence.get(name) for name in _SEEN_IN_PART)


def of_stored(stored: Stored) -> Given:
    """Return what is kept of a score that stands in the benchmark's file; one that is not finite is none."""
    value = None if stored.value is None else finite(stored.value)
    if value is not None:
        return Given(value, "scored", stored.reason, stored.steps)
    return Given(None, "failed", stored.reason or (NO_VERDICT if stored.value is None else NOT_FINITE), stored.steps)


def finite(value: float) -> float | None:
    """Return a number as a float; None for one that is none or does not fit, as JSON may hold."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def stored_of(case: Case) -> list[Given]:
    """Return what the file stores of each sample of a case; one of which nothing is stored has no verdict."""
    return [of_stored(stored) for stored in case.stored or [NOTHING_SAID] * len(case.samples)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a scorer said about one case.

    Attributes:
        values: one for each sample; None where there is no number.
        reasons: one for each sample: why there is no number, or the candidate's reason.
        cut_off: one for each sample: whether the scorer saw only a part of it, or the response itself ends at a limit.
        steps: one for each sample: the values of its steps; () for scorers without steps.
        sizes: one for each sample: characters of the response.
        step_counts: one for each sample: its steps, as `adjudge.responses.steps` splits it; 0 where nobody counted.
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

    @property
    def sample_ids(self) -> list[str]:
        """The case's own id, or with "/0", "/1", ... for several samples."""
        count = len(self.values)
        return [self.id] if count == 1 else [f"{self.id}/{place}" for place in range(count)]

    def with_values(
        self, values: Sequence[float | None], *, steps: Sequence[tuple[float | None, ...]] | None = None
    ) -> Self:
        """Return the same case with other numbers, as a trivial scorer would give them."""
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
_MAX_SHARED: Final = 4_096  # different tuples that are shared; a benchmark with more has little in common


class OutcomeMaker:
    """Makes outcomes; equal parts of them are shared."""

    def __init__(self) -> None:
        self._shared: dict[Any, Any] = {}

    def outcome(self, case: Case, given: Sequence[Given], sizes: Sequence[tuple[int, int]], compared: bool) -> Outcome:
        """Return what is kept of a case."""
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
        """What is right, known by its text; golds that are long are rarely equal, and are not shared."""
        said = repr(gold) if isinstance(gold, dict | list) else ""
        return self._kept(("gold", said), gold) if 0 < len(said) <= _LONGEST_SHARED else gold

    def _one(self, value: H) -> H:
        shared: H = self._kept(value, value)
        return shared

    def _kept(self, key: Hashable, value: Any) -> Any:
        if len(self._shared) < _MAX_SHARED:
            return self._shared.setdefault(key, value)
        return self._shared.get(key, value)


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


MISMATCH: Final = "steps_differ"
"""The reason of a sample whose scorer cut it elsewhere."""


def fitted(sample: Sample, given: Given) -> Given:
    """Return what was given to a sample, or a failure if the values are of other steps than the sample's.

    Each step must hold whatever can be seen of its own given step, in its place.  A scorer that says no places, or 0 to
    0 everywhere, is believed if the number is right; one that gave no steps said nothing that could be wrong.
    """
    texts = sample.extra.get("steps")
    if not given.steps or given.value is None or isinstance(texts, str) or not isinstance(texts, Sequence):
        return given
    if _same(sample, texts, given):
        return given
    return given._replace(
        value=None,
        status="failed",
        reason=MISMATCH,
        steps=(None,) * len(given.steps),
        error=f"{len(given.steps)} values for other steps than the {len(texts)} given ones",
    )


def _same(sample: Sample, texts: Sequence[str], given: Given) -> bool:
    if len(given.steps) != len(texts):
        return False
    if not any(end for _, end in given.places):
        return True
    whole = response_text(sample)
    own = given_steps(whole, texts)
    return (
        own is not None
        and len(own) == len(texts)
        and all(
            whole[start:end].strip() == step.text.strip() and start <= step.end and step.start <= end
            for (start, end), step in zip(given.places, own, strict=True)
        )
    )
