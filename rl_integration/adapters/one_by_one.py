"""Scores for frameworks, which ask for one sample at a time or for a batch, from many threads or coroutines at once.

What is made here can be pickled: the copy loads scorers of its own.

Not covered: scorers that compare the answers to a prompt, unless the framework hands over whole groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from adjudge.protocol import MissingReferenceError, Sample, Score
from adjudge.rl_integration.adapters.failures import RecentFailures, checked_fallback, number
from adjudge.rl_integration.adapters.row import named
from adjudge.rl_integration.client.client import AsyncClient, ClientConfig, in_order, names_at
from adjudge.runtime.contract import is_groupwise, validate_sample
from adjudge.runtime.loop import run_blocking
from adjudge.scoring.api import load, malformed, score_rows
from adjudge.scoring.compose.composite import Composite


class Source:
    """Scores from a scorer here or from a server, of which only so many may fail.

    Raises:
        ValueError: the scorer is unknown, or an option is out of range.
    """

    def __init__(self, scorer: Any, server: str | ClientConfig | None, max_failed: float) -> None:
        self._recent = RecentFailures(max_failed)
        # Loaded here and not by the first request: with a model as scorer, 32 threads would load 32 of it.
        self.scorer: Any = load(scorer) if server is None else scorer
        self._client = None if server is None else AsyncClient(server)
        self.here = server is None
        self.groupwise = self.here and is_groupwise(self.scorer)

    async def scores(self, samples: Sequence[Sample], *, counted: bool = True) -> list[Score]:
        """Return one score per sample, in order; one that the scorer is not for abstains with "out_of_scope".

        Args:
            samples: what to score.
            counted: whether those that fail count towards `max_failed`; if not, a server that does not answer is an
                error at once.

        Raises:
            TooManyFailures: too many of the latest samples failed.
            ValueError: the server refuses the request itself, or does not answer.
        """
        if self._client is None:
            scores = await score_rows(self.scorer, samples)
        else:
            if not counted:
                await _look_at(self._client.config)
            scores = await _answered(self._client, samples, self.scorer)
        for sample, score in zip(samples, scores, strict=True) if counted else ():
            self._recent.count(sample, score)
        return scores


async def _answered(client: AsyncClient, samples: Sequence[Sample], scorer: Any) -> list[Score]:
    """The server's scores; it would refuse all of a request for one sample that is none, which fails here alone."""
    bad = {place: score for place, sample in enumerate(samples) if (score := malformed(sample)) is not None}
    sent = [place for place in range(len(samples)) if place not in bad]
    scores = await client.score([samples[place] for place in sent], scorer)
    return in_order([sent, list(bad)], [scores, list(bad.values())])


async def _look_at(config: ClientConfig) -> None:
    try:
        await names_at(config)
    except ConnectionError as error:
        raise ValueError(
            f"server={config.url!r} does not answer ({error}); start it with adjudge serve, or correct the address"
        ) from error


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
        max_failed: the share of the latest samples that may fail; 1 for any.
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
        max_failed: float,
        scorers: Mapping[str, Any] | None = None,
    ) -> None:
        self._again = partial(
            OneByOne, framework, scorer=scorer, server=server, fallback=fallback, max_failed=max_failed, scorers=scorers
        )
        if scorers is not None and not isinstance(scorers, Mapping):
            raise ValueError(f"scorers={scorers!r}; it must map each data source to a scorer")
        self._framework = framework
        self._fallback = checked_fallback(fallback)
        made = partial(Source, server=server, max_failed=max_failed)
        self._sources = {named(name): made(spec) for name, spec in (scorers or {}).items()}
        self._others = made(scorer) if scorer is not None or not self._sources else None

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()

    @property
    def groupwise(self) -> bool:
        """Whether a scorer of this process needs the other samples of a group to judge one."""
        return any(source.groupwise for source in self._all())

    def check_alone(self, remedy: str = GATHER) -> None:
        """Raise `ValueError` if a scorer needs the other samples of a group to judge one."""
        if self.groupwise:
            raise ValueError(
                f"the scorer compares the answers to a prompt, and {self._framework} gives them one by one; {remedy}"
            )

    def check_without_reference(self) -> None:
        """Make sure that no scorer of this process compares with a reference, where no place of one was named.

        Raises:
            ValueError: one does; every sample would be out of its scope.
        """
        for source in self._all():
            try:
                if source.here:
                    validate_sample(source.scorer, Sample(prompt="", response=""))
            except MissingReferenceError:
                raise ValueError(
                    f"the scorer {getattr(source.scorer, 'name', source.scorer)!r} compares with a reference, and "
                    f"nothing says where a row of {self._framework} has one: reference=COLUMN"
                ) from None
            except ValueError:
                pass  # it lacks something else too, which a row will have or will be told of

    def check_parts(self, names: Sequence[str]) -> None:
        """Make sure that some scorer has each part that is to be logged, where all of them say which they have.

        Raises:
            ValueError: none has; its number would be missing for ever.
        """
        sources = self._all()
        if any(source.groupwise or not isinstance(source.scorer, Composite) for source in sources):
            return
        known = sorted({part.name for source in sources for part in source.scorer.members()})
        for name in names:
            if name not in known:
                raise ValueError(f"parts names {name!r}, and the parts of the scorer are {', '.join(known)}")

    async def scores(
        self, samples: Sequence[Sample], data_sources: Sequence[str] = (), *, counted: bool = True
    ) -> list[Score]:
        """Return one score per sample, in order.

        Args:
            samples: what to score.
            data_sources: where each is from, if there are `scorers`.
            counted: whether those that fail count towards `max_failed`.

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
        return in_order(places.values(), await asyncio.gather(*asked))

    def scores_blocking(self, samples: Sequence[Sample], data_sources: Sequence[str] = ()) -> list[Score]:
        """Return one score per sample, in order, from any thread, also inside a running event loop; see `scores`."""
        return run_blocking(self.scores(samples, data_sources))

    def number(self, score: Score) -> float:
        """Return the value of a score, or the fallback."""
        return number(score, self._fallback, self._framework)

    def _all(self) -> list[Source]:
        return [*self._sources.values(), *([] if self._others is None else [self._others])]

    def _source_of(self, name: str) -> Source:
        source = self._sources.get(name, self._others)
        if source is None:
            raise ValueError(
                f"data_source {name!r} has no scorer; `scorers` names {', '.join(self._sources)}. Add it there, or "
                "set `scorer` for all the others"
            )
        return source
