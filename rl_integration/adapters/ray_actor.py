"""A reward service in a Ray actor, for rewards, trainers and other actors of one Ray.

    actor = ray.remote(num_cpus=2)(RewardActor).remote({"math": "math", "rm": LaneConfig(scorer=..., batch=32)})
    scores = await actor.score.remote(samples, "math")

Requests of all callers share the queues, batches and deadlines of one `RewardService`.  Calls of an actor with
coroutines run side by side (`max_concurrency`, 1000 unless said otherwise).  If the actor dies, its callers get Ray's
`RayActorError`, and no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import LaneStats
from adjudge.rl_integration.service.tickets import Traffic


class RewardActor:
    """What `ray.remote` makes an actor of.

    Args:
        scorers: name to a spec or a `LaneConfig`; scorers given as objects must be picklable.

    Raises:
        ValueError: there are no scorers, or one is unknown or misconfigured.
    """

    def __init__(self, scorers: Mapping[str, Any]) -> None:
        self._service = RewardService(scorers)

    async def score(
        self,
        samples: Sequence[Sample | Mapping[str, Any]],
        scorer: str | None = None,
        *,
        client: str = "",
        traffic: Traffic = "train",
        within: float | None = None,
    ) -> list[Score]:
        """Return one score per sample, in order.

        Args:
            samples: samples, or mappings of their fields.
            scorer: which one; may be left out where there is one.
            client: whose they are; clients share a scorer fairly.
            traffic: "train" or "eval".
            within: seconds after which nobody needs the answer.

        Raises:
            ValueError: there is no such scorer, or a row is not a sample.
            Refused: nothing was begun; `retry_after` says when to try again.
        """
        return await self._service.score(self._named(scorer), samples, client=client, traffic=traffic, within=within)

    async def reload(self, scorer: str, given: Any) -> None:
        """Put another scorer, or another configuration, in a name's place; see `RewardService.reload`."""
        self._service.reload(scorer, given)

    async def stats(self) -> list[LaneStats]:
        """Return the numbers of every scorer."""
        return self._service.stats()

    async def drain(self, seconds: float | None = None) -> bool:
        """Accept nothing more, wait for what was accepted, and return whether all of it was answered."""
        return await self._service.drain(seconds)

    def _named(self, scorer: str | None) -> str:
        names = self._service.names
        if scorer is None and len(names) > 1:
            raise ValueError(f"name the scorer; there are {', '.join(names)}")
        return names[0] if scorer is None else scorer
