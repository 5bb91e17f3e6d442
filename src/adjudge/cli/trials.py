"""What `adjudge check` tries, finds and says, and how it asks a scorer."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import BrokenScorer, score_checked
from adjudge.runtime.loop import in_thread, run_blocking

T = TypeVar("T")
Judge = Callable[[Scorer, Sequence[Sample]], Coroutine[Any, Any, list[Score]]]

_FIRST_CHUNK: Final = 16

Outcome = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A response whose score is known beforehand."""

    how: str
    sample: Sample

    def finding(self, score: Score, problem: str) -> Finding:
        """Return what is wrong with its score."""
        return Finding(row=self.sample.id, how=self.how, sample=self.sample, score=score, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A score that is not what it must be."""

    row: str
    how: str
    problem: str
    sample: Sample | None = None
    score: Score | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "row": self.row,
            "how": self.how,
            "problem": self.problem,
            "sample": self.sample.to_dict() if self.sample else None,
            "score": self.score.to_dict() if self.score else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The outcome of one kind of trial."""

    name: str
    outcome: Outcome
    tried: int = 0
    detail: str = ""
    findings: tuple[Finding, ...] = ()
    scorer: str = ""

    @classmethod
    def of(cls, name: str, tried: int, findings: Sequence[Finding], fine: str, bad: str = "") -> Check:
        """Return what trials came to: `fine`, or where there are findings how many failed, or `bad`."""
        outcome: Outcome = "failed" if findings else "ok"
        detail = (bad or f"{len(findings)} failed") if findings else fine
        return cls(name=name, outcome=outcome, tried=tried, detail=detail, findings=tuple(findings))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            **{name: getattr(self, name) for name in ("name", "scorer", "outcome", "tried", "detail")},
            "findings": [finding.to_dict() for finding in self.findings],
        }


def growing(items: Sequence[T], size: int, budget: float | None) -> Iterator[Sequence[T]]:
    """Yield items in chunks that grow up to a size, and no more of them once a time has passed.

    Args:
        items: what is cut.
        size: most items of a chunk.
        budget: seconds after which no chunk follows; None yields all, in chunks of that size.
    """
    began = time.monotonic()
    start, step = 0, size if budget is None else min(_FIRST_CHUNK, size)
    while start < len(items) and (start == 0 or budget is None or time.monotonic() - began < budget):
        yield items[start : start + step]
        start, step = start + step, min(2 * step, size)


def score_in_time(
    scorer: Scorer, samples: Sequence[Sample], seconds: float, judge: Judge = score_checked
) -> list[Score]:
    """Return the scores of one call.

    Args:
        scorer: the scorer.
        samples: what it scores.
        seconds: longest time it may take, unless it is a verifier, which has limits of its own.
        judge: how it is asked.

    Raises:
        BrokenScorer: it does not return in time.
    """
    if isinstance(getattr(scorer, "verifier", None), Verifier):
        return run_blocking(judge(scorer, samples))
    # Nothing can kill a call in this process: its thread is left behind, and does not keep the program from ending.
    answer = in_thread(lambda: run_blocking(judge(scorer, samples)))
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        if answer.done():  # the scorer itself raised it
            raise
        raise BrokenScorer(
            f"the scorer {scorer.name!r} did not return within {seconds:g} s for {len(samples)} "
            "samples; if it needs longer, give more with --seconds"
        ) from error
