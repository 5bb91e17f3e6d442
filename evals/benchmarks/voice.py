"""Who is asked about the samples of cases: a scorer, the scores in the benchmark's file, or a file of scores.

A score that depends on its group is kept under the whole group: the other samples, their order, and its own place.

Not covered: two orders of a pair (`comparing`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol

from adjudge import registry
from adjudge.data_pipelines.label.stages import LocalBench
from adjudge.evals.benchmarks.asking import asked
from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.comparing import Comparing, compares
from adjudge.evals.benchmarks.config import STORED, BenchmarkConfig
from adjudge.evals.benchmarks.given import Given, of_score, stored_of
from adjudge.evals.benchmarks.other_input import OtherInput
from adjudge.evals.benchmarks.score_file import ScoreFile
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.cache import CachedScorer, ScoreCache, score_key
from adjudge.runtime.contract import score_checked


class KeptScorer(CachedScorer):
    """A scorer in front of which a cache stands.

    Args:
        scorer: the scorer to ask for what is not kept.
        cache: where scores are kept.
    """

    def __init__(self, scorer: Scorer, cache: ScoreCache) -> None:
        super().__init__(scorer, cache)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; the samples of one group stand together, and are a whole group."""
        if not self.groupwise:
            return await super().score(samples)
        groups = [list(members) for _, members in groupby(samples, key=lambda sample: sample.group)]
        keys = [_keys(self.fingerprint, group) for group in groups]
        known = await asyncio.to_thread(self.cache.get, [key for some in keys for key in some])
        missing = [place for place, some in enumerate(keys) if not some or any(key not in known for key in some)]
        fresh = iter(await score_checked(self.scorer, [sample for place in missing for sample in groups[place]]))
        scores = {place: [next(fresh) for _ in groups[place]] for place in missing}
        await asyncio.to_thread(
            self.cache.put,
            {key: score for place in missing for key, score in zip(keys[place], scores[place], strict=False)},
        )
        return [
            score
            for place, some in enumerate(keys)
            for score in (scores[place] if place in scores else [known[key] for key in some])
        ]


def _keys(fingerprint: str, group: Sequence[Sample]) -> list[bytes]:
    """The key of each sample of a group; none where the group holds something that JSON cannot."""
    try:
        whole = hashlib.sha256(b"".join(score_key(fingerprint, sample) for sample in group)).digest()
    except TypeError:
        return []
    return [hashlib.sha256(whole + place.to_bytes(4)).digest() for place in range(len(group))]


_CACHE: Final = "scores.sqlite"
_CACHE_BYTES: Final = 16 << 30
_SCORE_FILES: Final = (".jsonl", ".ndjson", ".parquet", ".jsonl.gz", ".ndjson.gz")


class Voice(Protocol):
    """Whoever has a number for each sample of a case."""

    def sees_orders(self, case: Case) -> bool:
        """Return whether the numbers of this pair are shares of its responses, one from each order."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Return what a report says of it: at least "name" and "fingerprint"."""
        ...

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what is given to each sample of each case.

        Raises:
            ValueError: there is nothing for a sample, and the message says how to get it.
            BrokenScorer: the scorer raised, or its answer breaks the protocol.
        """
        ...


class ScorerVoice:
    """A scorer that sees each sample.

    Args:
        bench: the scorer, ready to be asked.
        spec: what it was made of.
    """

    def __init__(self, bench: LocalBench, spec: str) -> None:
        self._bench = bench
        self._spec = spec

    def sees_orders(self, case: Case) -> bool:
        """Return that it sees single responses."""
        return False

    def facts(self) -> Mapping[str, Any]:
        """Return its name, fingerprint and spec."""
        return {"name": self._bench.name, "fingerprint": self._bench.fingerprint, "spec": self._spec}

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what the scorer says; cases stay whole, so that scorers of groups see theirs."""
        verdicts = iter(await asked(self._bench, [sample for case in cases for sample in case.samples]))
        return [[of_score(next(verdicts)) for _ in case.samples] for case in cases]


class StoredVoice:
    """The scores that stand in the benchmark's own file."""

    def sees_orders(self, case: Case) -> bool:
        """Return what the file says."""
        return case.compared

    def facts(self) -> Mapping[str, Any]:
        """Return that they are stored."""
        return {"name": STORED, "fingerprint": ""}

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what is stored; a case of which nothing is has no verdict."""
        return [stored_of(case) for case in cases]


class FileVoice:
    """Scores by sample id, in a file.

    Args:
        file: the scores.
        compared: whether they are shares in two orders.
    """

    def __init__(self, file: ScoreFile, *, compared: bool) -> None:
        self.file = file
        self._compared = compared

    def sees_orders(self, case: Case) -> bool:
        """Return what was said of the file."""
        return self._compared

    def facts(self) -> Mapping[str, Any]:
        """Return who gave the scores, as far as the file says, and its name."""
        return self.file.facts()

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return the scores of the samples' ids."""
        return [[self.file.take(sample.id) for sample in case.samples] for case in cases]


@contextmanager
def voices(config: BenchmarkConfig, benchmark: Benchmark) -> Iterator[tuple[Voice, Voice | None]]:
    """Open who is evaluated, and whom it is tested against if there is one.

    With an output folder, scores are kept there, and a run that was stopped goes on.

    Raises:
        ValueError: a spec, a file of scores or the folder is no good.
    """
    with ExitStack() as opened:
        specs = [spec for spec in (config.scorer, config.against) if spec and not _is_file(spec) and spec != STORED]
        cache = None
        if config.output and specs:
            path = Path(config.output) / _CACHE
            cache = opened.enter_context(ScoreCache(path, max_bytes=_CACHE_BYTES))
        first = _of_file(config.scores, config) if config.scores else _of_spec(config.scorer, config, cache)
        yield first, _second(config, benchmark, cache)


def _second(config: BenchmarkConfig, benchmark: Benchmark, cache: ScoreCache | None) -> Voice | None:
    if config.against_input:
        return OtherInput(config, benchmark)
    if not config.against:
        return None
    return _of_file(config.against, config) if _is_file(config.against) else _of_spec(config.against, config, cache)


def _is_file(spec: str) -> bool:
    return spec.endswith(_SCORE_FILES)  # a .json file is a spec


def _of_file(path: str, config: BenchmarkConfig) -> Voice:
    return FileVoice(ScoreFile(path, config.scores_of), compared=config.compare == "yes")


def _of_spec(spec: str, config: BenchmarkConfig, cache: ScoreCache | None) -> Voice:
    if spec == STORED:
        return StoredVoice()
    scorer = registry.load(spec)
    bench = LocalBench(scorer if cache is None else KeptScorer(scorer, cache))
    if config.compare == "yes" or (config.compare == "auto" and compares(scorer)):
        return Comparing(bench, scorer, spec)
    return ScorerVoice(bench, spec)
