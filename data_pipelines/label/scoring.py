"""The scorers of a label job, loaded by their specs, here or on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from adjudge.data_pipelines.label.asked import Asked
from adjudge.data_pipelines.label.bench import Bench, LocalBench
from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.stages import Stage, Stages
from adjudge.protocol import Scorer

Load: TypeAlias = Callable[[], Stages]
"""Makes the scorers ready."""

Specs: TypeAlias = Sequence[Any]
"""What each scorer is made of: a spec, or a scorer that was given as an object."""


@contextmanager
def loader(config: LabelConfig, given: Scorer | None, note: Callable[[str], None]) -> Iterator[Load]:
    """Hand out a function that makes the scorers ready, and close at the end what it opened.

    Args:
        config: names the scorers, the engine, the cache and the number of workers.
        given: a scorer to use in place of those that the config names.
        note: is told what is worth knowing while workers start.

    Raises:
        ValueError: from the function, if a spec, the cache or the cluster is no good.
    """
    asked, named = config.asked()
    if given is not None:
        asked, named = (Asked("", ""),), False
    with ExitStack() as opened:

        def load() -> Stages:
            specs = [given if given is not None else each.spec for each in asked]
            benches: Sequence[Bench]
            if config.engine == "ray":
                from adjudge.data_pipelines.label.ray_engine.crews import ray_benches

                names = [each.name for each in asked]
                benches = opened.enter_context(ray_benches(config, names, specs, note))
            else:
                benches = _local(config, specs, opened)
            stages = tuple(
                Stage(name=each.name or bench.name, bench=bench, unless=each.unless)
                for each, bench in zip(asked, benches, strict=True)
            )
            return Stages(each=stages, named=named, doubt=frozenset(config.doubt))

        yield load


def _local(config: LabelConfig, specs: Specs, opened: ExitStack) -> list[Bench]:
    from adjudge import registry

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
