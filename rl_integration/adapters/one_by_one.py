"""Scores for frameworks, which ask for one sample at a time or for a batch, from many threads or coroutines at once.

What is made here can be pickled: the copy loads scorers of its own.

Not covered: scorers that compare the answers to a prompt, unless the framework hands over whole groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.number import checked_fallback, number
from adjudge.rl_integration.adapters.source import Source
from adjudge.rl_integration.client.config import ClientConfig
from adjudge.runtime.loop import run_blocking

GATHER = (
    "put it behind a reward server that gathers them (`cohort`): server=ADDRESS, and group=COLUMN to tell them apart"
)
"""What to do with a scorer of groups where samples come one by one."""


class OneByOne:
    """Scores samples, counts the failed ones, and says which number a framework is given.

    Args:
        framework: its name, for messages.
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there.
        server: a reward server's address, or a `ClientConfig`; None to score in this process.
        fallback: the number that stands for a sample without a score; None to raise.
        most_failed: the share of the latest samples that may fail; 1 for any.
        scorers: a scorer of its own for each of some data sources; `scorer` is for the others.

    Raises:
        ValueError: a scorer is unknown, or an option is out of range.
    """

    def __init__(
        self,
        framework: str,
        *,
        scorer: Any,
        server: str | ClientConfig | None,
        fallback: float | None,
        most_failed: float,
        scorers: Mapping[str, Any] | None = None,
    ) -> None:
        self._again = partial(
            OneByOne,
            framework,
            scorer=scorer,
            server=server,
            fallback=fallback,
            most_failed=most_failed,
            scorers=scorers,
        )
        if scorers is not None and not isinstance(scorers, Mapping):
            raise ValueError(f"scorers={scorers!r}; it must map each data source to a scorer")
        self._framework = framework
        self._fallback = checked_fallback(fallback)
        made = partial(Source, server=server, most_failed=most_failed)
        self._sources = {name: made(spec) for name, spec in (scorers or {}).items()}
        self._others = made(scorer) if scorer is not None or not self._sources else None

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()

    def check_alone(self, remedy: str = GATHER) -> None:
        """Make sure that no scorer needs the other samples of a group to judge one.

        Args:
            remedy: what to do if one does, for the message.

        Raises:
            ValueError: one does.
        """
        if any(source is not None and source.groupwise for source in (*self._sources.values(), self._others)):
            raise ValueError(
                f"the scorer compares the answers to a prompt, and {self._framework} gives them one by one; {remedy}"
            )

    def check_without_reference(self) -> None:
        """Make sure that no scorer of this process compares with a reference, where no place of one was named.

        Raises:
            ValueError: one does; every sample would be out of its scope.
        """
        for source in (*self._sources.values(), self._others):
            if source is not None and source.needs_reference():
                raise ValueError(
                    f"the scorer {source.name!r} compares with a reference, and nothing says where a row of "
                    f"{self._framework} has one: reference=COLUMN"
                )

    async def scores(
        self, samples: Sequence[Sample], data_sources: Sequence[str] = (), *, counted: bool = True
    ) -> list[Score]:
        """Return one score per sample, in order.

        Args:
            samples: what to score.
            data_sources: where each is from, if there are `scorers`.
            counted: whether those that fail count towards `most_failed`.

        Raises:
            TooManyFailures: too many of the latest samples failed.
            ValueError: a data source has no scorer, or the server refuses the request itself.
        """
        places: dict[Source, list[int]] = {}
        for place in range(len(samples)):
            places.setdefault(self._source_of(data_sources[place] if data_sources else ""), []).append(place)
        asked = [
            source.scores([samples[place] for place in chosen], counted=counted) for source, chosen in places.items()
        ]
        found: dict[int, Score] = {}
        for chosen, scores in zip(places.values(), await asyncio.gather(*asked), strict=True):
            found.update(zip(chosen, scores, strict=True))
        return [found[place] for place in range(len(samples))]

    def scores_blocking(self, samples: Sequence[Sample], data_sources: Sequence[str] = ()) -> list[Score]:
        """Return one score per sample, in order, from any thread, also inside a running event loop; see `scores`."""
        return run_blocking(self.scores(samples, data_sources))

    def number(self, score: Score) -> float:
        """Return the value of a score, or the fallback.

        Raises:
            NotScored: there is no value and no fallback.
        """
        return number(score, self._fallback, self._framework)

    def _source_of(self, name: str) -> Source:
        source = self._sources.get(name, self._others)
        if source is None:
            raise ValueError(
                f"data_source {name!r} has no scorer; `scorers` names {', '.join(self._sources)}. Add it there, or "
                "set `scorer` for all the others"
            )
        return source
