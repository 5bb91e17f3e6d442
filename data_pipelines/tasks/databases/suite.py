"""Which databases tell the accepted queries from others, and the few that do it as well as all of them.

Queries run through the scorer `sql`, which shuts out what a query must not do.  A query counts as told apart on a
database when it runs there and gives another result than every accepted one.  A mutant that never is may mean the same
as the accepted query; so a share below 1 is no fault by itself.

Not covered: queries that differ only in time, or only on databases that nobody made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge import registry
from adjudge.io.errors import JobError
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import score_checked

_MOST_CELLS = 20_000  # rows of one result; made databases give far fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a database is good for.

    Attributes:
        runs: whether an accepted query runs on it.
        finds: whether an accepted query finds something on it.
        told: the numbers of the other queries that it tells apart.
        ran: the numbers of those that run on it.
        fault: why no accepted query runs.
    """

    runs: bool
    finds: bool
    told: frozenset[int] = frozenset()
    ran: frozenset[int] = frozenset()
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Judges:
    """The scorers that compare results: one wants accepted queries to find something, the other does not."""

    strict: Scorer
    lenient: Scorer

    @classmethod
    def of(cls, moment: str, seconds: float) -> Judges:
        """Return the judges of a job.

        Raises:
            ValueError: a package that the scorer needs is not installed.
        """
        options = {"moment": moment, "seconds": seconds, "rows": _MOST_CELLS, "variations": 0}
        return cls(
            strict=registry.load({"sql": {**options, "empty": "refuse"}}),
            lenient=registry.load({"sql": {**options, "empty": "accept"}}),
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever a comparison could come out otherwise."""
        return self.strict.fingerprint

    async def aims(self, files: Sequence[str], accepted: Sequence[str], others: Sequence[str]) -> list[Aim]:
        """Return what each database is good for.

        Args:
            files: SQLite files.
            accepted: the accepted queries.
            others: the queries to tell from them.

        Raises:
            JobError: the engine is gone.
        """
        references: list[Mapping[str, Any]] = [{"sql": list(accepted), "database": file} for file in files]
        first = _response(accepted[0])
        finds = await self._scored(self.strict, [(first, reference) for reference in references])
        runs = await self._scored(self.lenient, [(first, reference) for reference in references])
        pairs = [(_response(other), reference) for reference in references for other in others]
        verdicts = await self._scored(self.lenient, pairs)
        aims = []
        for at, (found, ran) in enumerate(zip(finds, runs, strict=True)):
            mine = verdicts[at * len(others) : (at + 1) * len(others)]
            told = frozenset(number for number, verdict in enumerate(mine) if verdict.reason == "wrong")
            same = frozenset(number for number, verdict in enumerate(mine) if verdict.value == 1.0)
            fault = "" if ran.value == 1.0 else str(ran.evidence.get("error", ran.reason))
            aims.append(Aim(runs=ran.value == 1.0, finds=found.value == 1.0, told=told, ran=told | same, fault=fault))
        return aims

    async def _scored(self, scorer: Scorer, pairs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Score]:
        samples = [Sample(prompt="", response=response, reference=reference) for response, reference in pairs]
        scores = await score_checked(scorer, samples)
        lost = next((score for score in scores if score.reason == "engine_unavailable"), None)
        if lost is not None:
            raise JobError(f"a database cannot be opened: {lost.evidence.get('error', '')}")
        return scores


def _response(query: str) -> str:
    """Return a query as a response that holds nothing else; no query holds the closing tag outside a text."""
    return f"<sql>{query}</sql>"


def chosen(aims: Sequence[Aim], most: int, *, distill: bool) -> list[int]:
    """Return the numbers of the databases to keep, in the order in which they were chosen.

    The first is one on which an accepted query finds something.  Each one tells the most queries apart that none before
    it does, and of equals the most in all; the rest of equals go to the first.

    Args:
        aims: what each database is good for.
        most: how many at most.
        distill: end as soon as none tells a further query apart.
    """
    kept: list[int] = []
    reached: frozenset[int] = frozenset()
    while len(kept) < most:
        left = [at for at, aim in enumerate(aims) if at not in kept and aim.runs and (aim.finds or kept)]
        best = max(
            left, key=lambda at: (len(aims[at].told - reached), aims[at].finds, len(aims[at].told), -at), default=None
        )
        if best is None or (distill and kept and not aims[best].told - reached):
            break
        kept.append(best)
        reached |= aims[best].told
    return kept
