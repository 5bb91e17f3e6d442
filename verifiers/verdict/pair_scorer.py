"""What the scorers of pairs have in common: a group holds answers about both sides of a pair, held against each other.

The sides are the two orders of a pair, or its two responses.  In training they are two prompts, each with answers of
its own; the trainer scores the tasks of a `cohort` together.

    match    an answer is held against
    partner  the answer of the same rank on the other side: the 3rd against the 3rd
    all      every answer on the other side, and gets the mean

With `all` the right answers of a side have one value, so an objective that divides by the standard deviation of each
prompt's answers (GRPO) takes the other side out again; use `partner` there, or one that does not divide (Dr. GRPO).

Not covered: more than two sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from adjudge.bad_reference import BadReferenceError
from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import Provenance, Sample, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One answer of a group, as far as it can be read by itself.

    Attributes:
        side: which side of the pair it is about, 0 or 1.
        own: its score by itself: `failed` where its reference cannot be read.
        number: what is compared with the other side.
    """

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
        """Reject a match that there is not."""
        if self.match not in ("partner", "all"):
            raise ValueError(f"{self.name}: match is {self.match!r}; it must be partner or all")

    @property
    def fingerprint(self) -> str:
        """Name, version and options, as 16 hex digits after the name."""
        return fingerprint_of(self)

    @abstractmethod
    def read(self, sample: Sample) -> Member:
        """Return what an answer says by itself.

        Raises:
            BadReferenceError: nobody can tell which side it is about.
        """

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
        found: dict[int, Score] = {}
        for places in groups.values():
            found.update(zip(places, self._group([samples[place] for place in places]), strict=True))
        origin = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [replace(found[place], provenance=origin) for place in range(len(samples))]

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
