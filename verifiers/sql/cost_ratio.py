"""How much cheaper a right query is than the reference, on the same databases.

Not covered: caches.  Both queries have run before, so both find the pages in memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final, Literal

from adjudge.verifiers.sql.engine import Engine, Fault, QueryLimits
from adjudge.verifiers.sql.rewards import usual_ratio
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine

WORST: Final = 0.01  # of a candidate that cannot be measured within the limits: below every step of the reward


def cost_ratio(
    gold: str,
    candidate: str,
    engines: Sequence[Engine],
    limits: QueryLimits,
    cost: Literal["steps", "seconds"],
    iterations: int,
) -> float:
    """Return reference cost / candidate cost, the mean over the databases.

    Args:
        gold: the reference's query.
        candidate: a query with the same results.
        engines: the databases; SQLite for `cost="steps"`.
        limits: what one run may use.
        cost: "steps" counts instructions once; "seconds" times each query.
        iterations: how often, in turns.
    """
    ratios = []
    for engine in engines:
        if cost == "steps" and isinstance(engine, SqliteEngine):
            counts = engine.steps(gold, limits), engine.steps(candidate, limits)
            wanted, found = counts
            ratios.append(WORST if isinstance(found, Fault) or isinstance(wanted, Fault) else wanted / found)
        else:
            ratios.append(_timed(gold, candidate, engine, limits, iterations))
    return statistics.fmean(ratios)


def _timed(gold: str, candidate: str, engine: Engine, limits: QueryLimits, iterations: int) -> float:
    golds: list[float] = []
    candidates: list[float] = []
    for _ in range(iterations):
        for sql, times in ((gold, golds), (candidate, candidates)):
            done = engine.run(sql, limits)
            if isinstance(done, Fault):
                return WORST
            times.append(max(done.seconds, 1e-7))
    return usual_ratio(golds, candidates)
