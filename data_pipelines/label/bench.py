"""One scorer of a job, ready to be asked, and its verdict about one sample.

A worker in another process sends a score as the text that the output will hold, so that writing it there costs this
process nothing, and evidence of any kind survives the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple, Protocol, TypeAlias

from adjudge.protocol import NO_COST, Cost, Sample, Score, Scorer, Status
from adjudge.runtime.contract import is_groupwise, validate_sample
from adjudge.runtime.pool import Pool, as_default
from adjudge.scoring.api import score_rows

_OF_THE_ROW: Final = ("bad_sample", "gold_unparsable", "gold_timeout", "group_too_small")


class Written(NamedTuple):
    """A score as it will stand in the output, and what is counted of it.

    Attributes:
        text: its fields as the inside of a JSON object, from `value` to `uncertainty`.
        value: the number, or None.
        status: "scored", "abstained" or "failed".
        reason: a code from `adjudge.reasons`.
        scorer: who gave it.
        cost: what it cost.
        error: why it failed, in words: what the server said, say; of a composite, what its first failed part says.
        of_the_row: whether the row is why it failed, and not the scorer.
    """

    text: str
    value: float | None
    status: Status
    reason: str
    scorer: str
    cost: Cost = NO_COST
    error: str = ""
    of_the_row: bool = False


Verdict: TypeAlias = Score | Written
"""One scorer about one sample."""


def settles(verdict: Verdict, doubt: frozenset[str]) -> bool:
    """Return whether a verdict is a number whose reason leaves no doubt."""
    return verdict.status == "scored" and verdict.reason not in doubt


def cause_of(score: Score) -> tuple[str, bool]:
    """Return why a score failed, in words, and whether the row is why; of a composite, what its first failed part says.

    Where the evidence says nothing the words are "".
    """
    part = next(((name, part) for name, part in score.parts.items() if part.status == "failed"), None)
    if score.reason == "part_failed" and part is not None:
        error, of_the_row = cause_of(part[1])
        return f"{part[0]}: {part[1].reason}{f': {error}' if error else ''}", of_the_row
    said = score.evidence.get("error") or score.evidence.get("fault") or ""
    if said and isinstance(score.evidence.get("text"), str):
        said = f"{said}: {score.evidence['text']!r}"  # what a judge wrote instead of a verdict
    return str(said), score.reason in _OF_THE_ROW


class Bench(Protocol):
    """One scorer, ready to be asked."""

    @property
    def name(self) -> str:
        """The scorer's name."""
        ...

    @property
    def fingerprint(self) -> str:
        """The scorer's fingerprint."""
        ...

    @property
    def groupwise(self) -> bool:
        """Whether it compares the samples of a group, and so needs whole groups."""
        ...

    @property
    def width(self) -> int:
        """How many workers share the batches; this process counts as one."""
        ...

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample lacks what the scorer needs."""
        ...

    async def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        """Return one verdict for each sample, in order."""
        ...


class LocalBench:
    """A scorer in this process."""

    width = 1

    def __init__(self, scorer: Scorer, pool: Pool | None = None) -> None:
        self._scorer = scorer
        self._pool = pool
        self.name, self.fingerprint, self.groupwise = scorer.name, scorer.fingerprint, is_groupwise(scorer)

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample lacks what the scorer needs."""
        validate_sample(self._scorer, sample)

    async def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        """Return one verdict for each sample, in order."""
        with as_default(self._pool) if self._pool is not None else nullcontext():
            return [*await score_rows(self._scorer, samples)]
