"""What runs in a Ray actor: one scorer, asked about batches as they come.

Samples come as plain tuples and verdicts go back as the text of the output, which costs the calling process little.
Verifiers run in worker processes of this actor, as they do elsewhere.

Not covered: threads, or several scorers in one actor; Ray starts more actors for that.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.label.ray_engine.order import Order, versions
from adjudge.data_pipelines.label.records import ScoreWriter
from adjudge.data_pipelines.label.verdicts import Written
from adjudge.protocol import Provenance, Sample, Score, Scorer

Fields: TypeAlias = tuple[Any, ...]
"""A sample as it travels: frozen dataclasses are pickled by Python code, field by field, and tuples are not."""

_NAMES: Final = ("prompt", "response", "reference", "id", "group", "finish_reason", "extra")
fields_of = attrgetter(*_NAMES)


class Worker:
    """A scorer behind a Ray actor.

    Args:
        order: what to load.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._bench: LocalBench | None = None
        self._scores: ScoreWriter | None = None

    async def open(self) -> tuple[str, str, bool]:
        """Load the scorer and return its name, its fingerprint, and whether it needs whole groups.

        Raises:
            ValueError: it cannot be loaded here, or versions differ.
        """
        there, here = self._order["versions"], versions()
        for package, wanted in there.items():
            if here[package] != wanted:
                raise ValueError(
                    f"the job runs with {package} {wanted}, and a Ray worker on {os.uname().nodename} has "
                    f"{here[package]}; install the same version on every machine"
                )
        sys.path += [entry for entry in self._order["path"] if entry not in sys.path]
        scorer = self._loaded()
        from adjudge.runtime.pool import Pool

        self._bench = bench = LocalBench(scorer, Pool(self._order["processes"]))
        provenance = Provenance(scorer=bench.name, fingerprint=bench.fingerprint)
        self._scores = ScoreWriter(provenance, timings=self._order["timings"])
        return bench.name, bench.fingerprint, bench.groupwise

    async def check(self, fields: Fields) -> str:
        """Return what the scorer needs and the sample lacks, or ""."""
        assert self._bench is not None, "check before open"
        try:
            self._bench.check(_sample(fields))
        except ValueError as error:
            return str(error)
        return ""

    async def judge(self, rows: Sequence[Fields]) -> list[Written]:
        """Return one verdict for each sample, in order.

        Raises:
            BrokenScorer: the scorer raised, or its answer breaks the protocol.
        """
        assert self._bench is not None, "judge before open"
        assert self._scores is not None, "judge before open"
        verdicts = await self._bench.judge([_sample(fields) for fields in rows])
        return [self._scores.write(verdict) if isinstance(verdict, Score) else verdict for verdict in verdicts]

    def _loaded(self) -> Scorer:
        from adjudge import registry

        _change_folder(self._order["base"])
        packed = self._order["scorer"]
        scorer = registry.load(self._order["spec"] if packed is None else pickle.loads(packed))
        _change_folder(self._order["folder"])
        if not self._order["cache"]:
            return scorer
        from adjudge.runtime.cache import CachedScorer, ScoreCache

        return CachedScorer(scorer, ScoreCache(self._order["cache"]))


def _sample(fields: Fields) -> Sample:
    return Sample(**dict(zip(_NAMES, fields, strict=True)))


def _change_folder(folder: str) -> None:
    """Go where relative names start; a machine that has no such folder has nothing to find there either."""
    if os.path.isdir(folder):
        os.chdir(folder)
