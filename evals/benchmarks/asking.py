"""Asking a scorer about samples: one number, or one reason why there is none, for each.

Not covered: which samples those are.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.data_pipelines.label.stages import LocalBench
from adjudge.evals.benchmarks.case import Case
from adjudge.protocol import Sample, Score


def check_texts(cases: Sequence[Case]) -> None:
    """Raise `ValueError` if a case holds scores and no texts, so that there is nothing to ask about."""
    bare = next((case.id for case in cases if not case.texts), None)
    if bare is not None:
        raise ValueError(
            f"the case {bare!r} comes from a row that holds scores and no texts, so no scorer can be asked about it; "
            "evaluate what the input holds with --scorer stored"
        )


async def asked(bench: LocalBench, samples: Sequence[Sample]) -> list[Score]:
    """Return the scorer's answers; a sample that lacks what it needs is refused, and the others are judged.

    Raises:
        BrokenScorer: the scorer raised, or its answer breaks the protocol.
    """
    verdicts = await bench.judge(samples)
    found = [verdict for verdict in verdicts if isinstance(verdict, Score)]
    assert len(found) == len(verdicts), "a scorer in this process gives scores, not lines"
    return found
