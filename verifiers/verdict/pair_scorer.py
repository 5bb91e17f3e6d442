"""Scorers of pairs: a group holds answers about both sides of a pair, which are held against each other.

The sides are the two orders of a pair, or its two responses.  In training they are two prompts, each with answers of
its own; the trainer scores the tasks of a `cohort` together.

    match="partner"  an answer is held against that of the same rank on the other side: the 3rd against the 3rd
    match="all"      against every answer on the other side, and gets the mean

With "all" the right answers of a side have one value, so an objective that divides by the standard deviation of each
prompt's answers (GRPO) takes the other side out again; use "partner" there, or one that does not divide (Dr. GRPO).

Both are J1's (arXiv 2505.10320), which released no code.  Consistency, where `verdict_share` is 0 there, and which
answers of the two orders belong together is not said: a judge that always prefers the response shown first is right
half the time, and gets nothing.

    consistency = [verdict on (x, a, b) is right] * [verdict on (x, b, a) is right]
    value       = verdict_share * [own verdict is right] + (1 - verdict_share) * consistency

The pointwise reward, for scores of single responses, each rated without sight of the other:

    value = 1 for both answers if score(chosen) > score(rejected), else 0; equal scores are wrong
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from adjudge.fingerprints import fingerprint_of
from adjudge.options import Range, Share, check_options
from adjudge.prompts.reading import frame
from adjudge.protocol import Provenance, Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown
from adjudge.verifiers.verdict.verifier import VerdictVerifier, read_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One answer of a group: the side of the pair that it is about, its own score, and what is compared."""

    side: int
    own: Score
    number: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PairScorer(ABC):
    """Base of the scorers of pairs.

    Attributes:
        match: "partner" or "all"; see the module.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True
    groupwise: ClassVar[bool] = True

    match: Literal["partner", "all"] = "partner"

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")

    @property
    def fingerprint(self) -> str:
        """Name, version and options."""
        return fingerprint_of(self)

    @abstractmethod
    def read(self, sample: Sample) -> Member:
        """Return what an answer says by itself; `BadReferenceError` if nobody can tell which side it is about."""

    @abstractmethod
    def against(self, member: Member, others: Sequence[Member]) -> Score:
        """Return the score of an answer beside those of the other side, one at least."""

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample does not say which side it is about, or what is right there."""
        try:
            self.read(replace(sample, response=""))
        except BadReferenceError as error:
            raise ValueError(f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}: {error}") from error

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; samples of one `group` are one pair."""
        groups: dict[str, list[int]] = {}
        for place, sample in enumerate(samples):
            groups.setdefault(sample.group, []).append(place)
        scores: dict[int, Score] = {}
        for places in groups.values():
            scores.update(zip(places, self._group([samples[place] for place in places]), strict=True))
        origin = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [replace(scores[place], provenance=origin) for place in range(len(samples))]

    def _group(self, samples: Sequence[Sample]) -> list[Score]:
        members: list[Member | BadReferenceError] = []
        for sample in samples:
            try:
                members.append(self.read(sample))
            except BadReferenceError as error:
                members.append(error)
        sides = [[one for one in members if isinstance(one, Member) and one.side == side] for side in (0, 1)]
        ranks = [0, 0]
        scores: list[Score] = []
        for member in members:
            if isinstance(member, BadReferenceError):
                scores.append(Score.failed("gold_unparsable", error=str(member)))
                continue
            rank = ranks[member.side]
            ranks[member.side] += 1
            others = sides[1 - member.side]
            if self.match == "partner":
                others = others[rank : rank + 1]
            scores.append(self._beside(member, [one for one in others if one.own.status == "scored"]))
        return scores

    def _beside(self, member: Member, others: Sequence[Member]) -> Score:
        if member.own.status != "scored":
            return member.own
        if not others:
            return Score.failed(
                "cohort_incomplete",
                error="the group has no answer on the pair's other side to hold this one against",
            )
        return self.against(member, others)


ORDERS = ("given", "swapped")


@dataclass(frozen=True, kw_only=True)
class BothOrdersScorer(PairScorer):
    """1 when a judge is right about a pair in both orders, else 0; compares the answers of a group.

    The reference is the right verdict in this order; `extra["order"]` is "given" or "swapped".

    Attributes:
        style: how the verdict is written, as for `verdict`.
        form: another form, as for `verdict`.
        labels: other labels, as for `verdict`.
        thought: letters and digits that must stand before the verdict.
        verdict_share: weight of the verdict's own reward, in [0, 1].
    """

    name: ClassVar[str] = "verdict_orders"
    version: ClassVar[str] = "2"

    style: str = "j1"
    form: str = ""
    labels: tuple[str, ...] = ()
    thought: int = 1
    verdict_share: Share = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", self._verdict.labels)

    @cached_property
    def _verdict(self) -> VerdictVerifier:
        return VerdictVerifier(style=self.style, form=self.form, labels=self.labels, thought=self.thought, wrong=0.0)

    def read(self, sample: Sample) -> Member:
        """Return the verdict's own score, and the order it is about."""
        order = sample.extra.get("order")
        if order not in ORDERS:
            raise ReferenceFormError(
                f'extra["order"] is {shown(order)}; say whether the pair was shown as "given" or "swapped"'
            )
        own = self._verdict.verify(sample)
        if own.status == "failed":
            raise ReferenceFormError(str(own.evidence.get("error", own.reason)))
        return Member(side=ORDERS.index(order), own=own, number=own.value or 0.0)

    def against(self, member: Member, others: Sequence[Member]) -> Score:
        """Return the share of the other order's verdicts that are right, if this one is."""
        swapped = sum(one.number for one in others) / len(others)
        consistency = member.number * swapped
        value = self.verdict_share * member.number + (1 - self.verdict_share) * consistency
        reason = member.own.reason or ("" if swapped == 1 else "wrong")
        return Score(
            value=value,
            reason=reason,
            parts={"verdict": member.own, "consistency": Score.scored(consistency, reason)},
            evidence={**member.own.evidence, "swapped_right": swapped},
        )


SIDES = ("chosen", "rejected")


@dataclass(frozen=True, kw_only=True)
class ScoreOrderScorer(PairScorer):
    """1 when the better response of a pair gets the higher score, else 0; compares the answers of a group.

    The reference is which response was rated: "chosen" or "rejected".

    Attributes:
        form: how the score is written.
        low: the lowest score.
        high: the highest.
        thought: letters and digits that must stand before the score.
    """

    name: ClassVar[str] = "verdict_scores"
    version: ClassVar[str] = "2"

    form: str = "<score>{answer}</score>"
    low: float = 0.0
    high: float = 10.0
    thought: Annotated[int, Range(ge=0)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        frame(self.form)
        if not self.low < self.high:
            raise ValueError(f"{self.name}: the scores go from {self.low!r} to {self.high!r}; the low end comes first")

    def read(self, sample: Sample) -> Member:
        """Return the rating; one that cannot be read is wrong whatever the other one is."""
        if not isinstance(sample.reference, str) or sample.reference not in SIDES:
            raise ReferenceFormError(
                f'the reference is {shown(sample.reference)}; say whether the "chosen" or the "rejected" '
                "response was rated"
            )
        side = SIDES.index(sample.reference)
        numbers, written = read_numbers(sample, (self.form,), self.low, self.high)
        reason = written.reason or ("" if written.thought >= self.thought else "bad_format")
        if reason:
            return Member(side=side, own=Score.scored(0.0, reason, rating=None), number=float("nan"))
        return Member(side=side, own=Score.scored(1.0, rating=numbers[0]), number=numbers[0])

    def against(self, member: Member, others: Sequence[Member]) -> Score:
        """Return the share of the other response's ratings that are in the right order with this one."""
        sign = 1 if member.side == 0 else -1
        value = sum(sign * member.number > sign * one.number for one in others) / len(others)
        reason = member.own.reason or ("" if value == 1 else "wrong")
        return Score(value=value, reason=reason, evidence={**member.own.evidence, "side": SIDES[member.side]})
