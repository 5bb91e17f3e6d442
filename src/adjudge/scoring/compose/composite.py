"""What every composite shares: its identity, its checks, and where its scores say they come from.

Not covered: the mixing itself; each composite is one file beside this one.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar

from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import NO_COST, Provenance, Sample, Score
from adjudge.runtime.contract import is_groupwise
from adjudge.scoring.compose.part import Part


class Composite(ABC):
    """A scorer made of scorers: a frozen dataclass whose fields are its parts and its options.

    A composite returns one score per sample, in order; `Score.parts` keeps the score of every part that was
    asked, and `Score.cost` is their sum.

    Attributes:
        name: short name, used in provenance and reports.
        version: bumped whenever the same parts and options could give another score.
    """

    name: str
    version: ClassVar[str] = "1"

    @abstractmethod
    def members(self) -> tuple[Part, ...]:
        """Return all parts, whether or not they are asked for every sample."""

    @abstractmethod
    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order, with the parts filled in."""

    @property
    def fingerprint(self) -> str:
        """Kind, version, options and the fingerprints of the parts."""
        return fingerprint_of(self, type(self).__qualname__)

    @property
    def groupwise(self) -> bool:
        """Whether a score depends on the other samples of its group; such a scorer needs whole groups."""
        return any(is_groupwise(part.scorer) for part in self.members())

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the part that lacks something in this sample."""
        for part in self.members():
            part.validate(sample, inside=self.name)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order.

        Raises:
            BrokenScorer: a part raised, or did not return one proper score per sample.
        """
        if not samples:
            return []
        who = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [
            dataclasses.replace(
                score, provenance=who, cost=reduce(add, (part.cost for part in score.parts.values()), NO_COST)
            )
            for score in await self.mix(samples)
        ]


def no_number(parts: Mapping[str, Score], **evidence: Any) -> Score:
    """Return the failed score of a composite whose parts leave it without a number."""
    return Score(value=None, status="failed", reason="part_failed", parts=parts, evidence=evidence)


def missing(parts: Mapping[str, Score]) -> dict[str, str]:
    """Return the parts without a number, each with its status and reason, as evidence."""
    return {name: f"{part.status}: {part.reason}" for name, part in parts.items() if part.value is None}


def reject_groupwise(parts: Sequence[Part], *, inside: str, sees: str) -> None:
    """Raise `ValueError` if a part needs whole groups and the composite would show it only some samples."""
    for part in parts:
        if is_groupwise(part.scorer):
            raise ValueError(
                f"the part {part.name!r} of {inside!r} compares the members of a group, and there it would see only "
                f"{sees}; put the group statistic around {inside!r} instead"
            )
