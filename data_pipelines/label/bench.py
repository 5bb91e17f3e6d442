"""The scorers of a job, ready to be asked, and who is asked about what: the cheap ones first, the dear ones after.

Scorers that wait for nobody are asked at the same time.  One that another may spare is asked when that one has
answered, and only about what it left open.  A worker in another process sends a score as the text that the output will
hold, so that writing it there costs this process nothing, and evidence of any kind survives the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from adjudge.data_pipelines.label.config import Asked, LabelConfig
from adjudge.protocol import EMPTY, NO_COST, Cost, Sample, Score, Scorer, Status
from adjudge.runtime.contract import is_groupwise, validate_sample
from adjudge.runtime.pool import Pool, as_default
from adjudge.scoring.api import score_rows

_OF_THE_ROW: Final = ("bad_sample", "gold_unparsable", "gold_timeout", "group_too_small")


class Written(NamedTuple):
    """A score as it will stand in the output, and what is counted of it.

    Attributes:
        text: its fields as the inside of a JSON object, from `value` to `uncertainty`.
        scorer: who gave it.
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
    failed = [(name, part) for name, part in score.parts.items() if part.status == "failed"]
    part = next((one for one in failed if score.reason in ("part_failed", one[1].reason)), None)
    if part is not None:
        error, of_the_row = cause_of(part[1])
        return f"{part[0]}: {part[1].reason}{f': {error}' if error else ''}", of_the_row
    said = score.evidence.get("error") or score.evidence.get("fault") or ""
    if said and isinstance(score.evidence.get("text"), str):
        said = f"{said}: {score.evidence['text']!r}"  # what a judge wrote instead of a verdict
    return str(said), score.reason in _OF_THE_ROW


class Bench(Protocol):
    """One scorer, ready to be asked.

    Attributes:
        name: the scorer's.
        fingerprint: the scorer's.
        groupwise: whether it compares the samples of a group, and so needs whole groups.
        width: how many workers share the batches; this process counts as one.
    """

    name: str
    fingerprint: str
    groupwise: bool
    width: int

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


Column: TypeAlias = list[Verdict | None]
"""What one scorer said about each sample; None where it was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One scorer of a job."""

    name: str
    bench: Bench
    unless: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.unless and self.bench.groupwise:
            raise ValueError(
                f"the scorer {self.name!r} compares the samples of a group, and behind --unless it would see only some "
                "of them; take it out of --unless"
            )

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on."""
        return {"name": self.bench.name, "fingerprint": self.bench.fingerprint}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """All scorers of a job.

    Attributes:
        each: in the order of the call; a stage stands behind those that may spare it.
        named: whether a line of the output holds several scores, by name; otherwise there is one stage.
        doubt: reasons of numbers that settle nothing.

    Raises:
        ValueError: two stages have one name.
    """

    each: tuple[Stage, ...]
    named: bool = False
    doubt: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        names = self.names
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two scorers are called {name!r}; name one of them, as in --scorer OTHER_NAME=SPEC")

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(stage.name for stage in self.each)

    @property
    def groupwise(self) -> bool:
        """Whether a scorer needs whole groups."""
        return any(stage.bench.groupwise for stage in self.each)

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample lacks what a scorer needs; with several scorers it says which."""
        for stage in self.each:
            try:
                stage.bench.check(sample)
            except ValueError as error:
                raise type(error)(f"the scorer {stage.name!r}: {error}") if self.named else error from None

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on."""
        if not self.named:
            return {"scorer": self.each[0].identity()}
        scorers = {stage.name: stage.identity() | {"unless": list(stage.unless)} for stage in self.each}
        return {"scorers": scorers, "order": list(self.names), "doubt": sorted(self.doubt)}

    async def judge(self, samples: Sequence[Sample], earlier: Mapping[str, Column] = EMPTY) -> dict[str, Column]:
        """Return the verdicts of each stage."""
        if len(self.each) == 1 and not earlier:
            (stage,) = self.each
            return {stage.name: [*await stage.bench.judge(samples)]}
        tasks: dict[str, asyncio.Task[Column]] = {}
        for stage in self.each:
            again = self._ask_again(stage, samples, earlier[stage.name]) if earlier else None
            tasks[stage.name] = asyncio.create_task(again or self._ask(stage, samples, tasks))
        try:
            await asyncio.gather(*tasks.values())
        except BaseException:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            raise
        return {name: task.result() for name, task in tasks.items()}

    async def _ask(self, stage: Stage, samples: Sequence[Sample], tasks: Mapping[str, asyncio.Task[Column]]) -> Column:
        before = [await tasks[name] for name in stage.unless]
        asked = [
            index
            for index in range(len(samples))
            if not any((verdict := column[index]) is not None and settles(verdict, self.doubt) for column in before)
        ]
        return await _asked(stage, samples, asked, [None] * len(samples))

    async def _ask_again(self, stage: Stage, samples: Sequence[Sample], earlier: Column) -> Column:
        failed = [index for index, verdict in enumerate(earlier) if verdict is not None and verdict.status == "failed"]
        return await _asked(stage, samples, failed, [*earlier])


async def _asked(stage: Stage, samples: Sequence[Sample], places: Sequence[int], column: Column) -> Column:
    """Return the column with what a stage says about the samples at some places."""
    if places:
        verdicts = await stage.bench.judge([samples[place] for place in places])
        for place, verdict in zip(places, verdicts, strict=True):
            column[place] = verdict
    return column


def load_stages(config: LabelConfig, given: Scorer | None, note: Callable[[str], None], opened: ExitStack) -> Stages:
    """Make the scorers of a job ready, a given one in place of those that it names; `opened` closes them.

    Raises:
        ValueError: a spec, the cache or the cluster is no good.
    """
    asked, named = config.asked() if given is None else ((Asked("", ""),), False)
    specs = [each.spec if given is None else given for each in asked]
    benches: Sequence[Any]
    if config.engine == "ray":
        from adjudge.data_pipelines.label.ray_workers import ray_benches

        benches = opened.enter_context(ray_benches(config, [each.name for each in asked], specs, note))
    else:
        benches = _local(config, specs, opened)
    stages = tuple(
        Stage(name=each.name or bench.name, bench=bench, unless=each.unless)
        for each, bench in zip(asked, benches, strict=True)
    )
    return Stages(each=stages, named=named, doubt=frozenset(config.doubt))


def _local(config: LabelConfig, specs: Sequence[Any], opened: ExitStack) -> list[Bench]:
    from adjudge.scoring import registry

    pool = None
    if config.workers is not None:
        from adjudge.runtime.pool import Pool

        pool = opened.enter_context(Pool(config.workers))
    scorers = [registry.load(spec) if isinstance(spec, str) else spec for spec in specs]
    if config.cache:
        from adjudge.runtime.cache import CachedScorer, ScoreCache

        cache = opened.enter_context(ScoreCache(config.cache))
        scorers = [CachedScorer(scorer, cache) for scorer in scorers]
    return [LocalBench(scorer, pool) for scorer in scorers]
