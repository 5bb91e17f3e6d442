"""What prefixes are worth to a scorer that sees them, or that sees the ends that may come of them.

The reference is never shown: a guide that needed it could not guide anybody.

Not covered: what is true of solutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from adjudge.data_pipelines.label.stages import LocalBench
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.evals.benchmarks.asking import asked
from adjudge.evals.best_of_n.said import UNFIT, said_by
from adjudge.evals.decoding.paths import Path, Writer
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE
from adjudge.protocol import Score


class Guide:
    """Values of paths, for one method and one problem; no text is asked about twice.

    Args:
        problem: what is solved.
        bench: the scorer.
        writer: draws ends, and its account pays.
        aggregate: how values of steps become one number; "" for the score's own value.
        rollouts: ends that stand for a path that has not ended; 0 asks about the path itself.
    """

    def __init__(self, problem: Problem, *, bench: LocalBench, writer: Writer, aggregate: str, rollouts: int) -> None:
        self._problem = replace(problem, reference=None)
        self._bench = bench
        self._writer = writer
        self._aggregate = aggregate
        self._rollouts = rollouts
        self._known: dict[tuple[str, bool], float | None] = {}
        self.seen: list[Path] = []

    async def values(self, paths: Sequence[Path]) -> list[float | None]:
        """Return what paths are worth; None where the scorer has no number.

        Ends that were drawn on the way are kept in `seen`.

        Raises:
            JobError: a model is gone.
            BrokenScorer: the scorer raised.
        """
        if not self._rollouts:
            return await self._asked(paths)
        found: list[float | None] = []
        for path in paths:
            ends = [path] if path.ended else await self._writer.ends_of(path, self._rollouts)
            self.seen += [end for end in ends if end is not path]
            known = [value for value in await self._asked(ends) if value is not None]
            found.append(math.fsum(known) / len(known) if known else None)
        return found

    async def _asked(self, paths: Sequence[Path]) -> list[float | None]:
        account = self._writer.account
        lacking = list(
            {(path.text, path.cut): path for path in paths if (path.text, path.cut) not in self._known}.values()
        )
        samples = [
            self._problem.sample(path.text.rstrip(), finish_reason="length" if path.cut else None) for path in lacking
        ]
        for path, score in zip(lacking, await asked(self._bench, samples), strict=True):
            said = (said_by(score) if isinstance(score, Score) else UNFIT).by(self._aggregate)
            if isinstance(score, Score):
                account.cost += score.cost
                if score.status == "failed" and score.reason in GONE:
                    raise JobError(f"the model behind the scorer {self._bench.name!r} is gone ({score.reason})")
            account.valued += 1
            account.faults["no value"] += said.value is None
            self._known[path.text, path.cut] = said.value
        return [self._known[path.text, path.cut] for path in paths]
