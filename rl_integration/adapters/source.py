"""Where an adapter gets its scores: a scorer in this process, or one behind a reward server.

Not covered: what a framework makes of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.api import load, score_rows
from adjudge.protocol import MissingReferenceError, Sample, Score
from adjudge.rl_integration.adapters.recent_failures import RecentFailures
from adjudge.rl_integration.client.client import AsyncClient
from adjudge.rl_integration.client.config import ClientConfig
from adjudge.runtime.contract import is_groupwise, validate_sample


class Source:
    """Scores from a scorer here or from a server, of which only so many may fail.

    Args:
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there, or None where there is one.
        server: a reward server's address, or a `ClientConfig`; None to score in this process.
        most_failed: the share of the latest samples that may fail; 1 for any.

    Raises:
        ValueError: the scorer is unknown, or an option is out of range.
    """

    def __init__(self, scorer: Any, server: str | ClientConfig | None, most_failed: float) -> None:
        self._recent = RecentFailures(most_failed)
        # Loaded here and not by the first request: with a model as scorer, 32 threads would load 32 of it.
        self._scorer: Any = load(scorer) if server is None else scorer
        self._client = None if server is None else AsyncClient(server)
        self.groupwise = server is None and is_groupwise(self._scorer)

    @property
    def name(self) -> str:
        """The scorer's name."""
        return str(getattr(self._scorer, "name", self._scorer))

    def needs_reference(self) -> bool:
        """Return whether the scorer refuses a sample because it has no reference; a server is not asked."""
        if self._client is not None:
            return False
        try:
            validate_sample(self._scorer, Sample(prompt="", response=""))
        except MissingReferenceError:
            return True
        except ValueError:
            return False  # it lacks something else too, which a row will have or will be told of
        return False

    async def scores(self, samples: Sequence[Sample], *, counted: bool = True) -> list[Score]:
        """Return one score per sample, in order; one that the scorer is not for abstains with "out_of_scope".

        Args:
            samples: what to score.
            counted: whether those that fail count towards `most_failed`.

        Raises:
            TooManyFailures: too many of the latest samples failed.
            ValueError: the server refuses the request itself.
        """
        if self._client is None:
            scores = await score_rows(self._scorer, samples)
        else:
            scores = await self._client.score(samples, self._scorer)
        for sample, score in zip(samples, scores, strict=True) if counted else ():
            self._recent.count(sample, score)
        return scores
