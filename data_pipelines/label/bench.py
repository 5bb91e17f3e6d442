"""Where a scorer works: in this process, or in workers on a cluster.  A job asks both in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Protocol

from adjudge.api import score_rows
from adjudge.data_pipelines.label.verdicts import Verdict
from adjudge.protocol import Sample, Scorer
from adjudge.runtime.contract import is_groupwise, validate_sample
from adjudge.runtime.pool import Pool, as_default


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
        """Return one verdict for each sample, in order.

        Raises:
            BrokenScorer: the scorer raised, or its answer breaks the protocol.
            JobError: the workers are gone, and the message says how to go on.
        """
        ...


class LocalBench:
    """A scorer in this process.

    Args:
        scorer: who is asked.
        pool: worker processes for verifiers, or None for those that all scorers of the process share.
    """

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
