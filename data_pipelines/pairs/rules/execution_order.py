"""Programs by how far they came: compile error < runtime error < failed test < pass (HERON's released code).

The outcome is read from what the scorers `code` and `verilog` say beside the score: the evidence's `stage`, and the
reason.  A response without a program, and one that tampered, stand with those that do not compile: HERON says nothing
of them.

Not covered: how many tests failed; the score of `code: {credit: fraction}` orders those, with `all_ordered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final, Literal

from adjudge.data_pipelines.pairs.answers import Answer, ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import Rule
from adjudge.io.jobs.maker import Kind

Outcome = Literal["compile_error", "runtime_error", "failed_test", "passed"]

LEVELS: Final[Mapping[str, float]] = {"compile_error": -2, "runtime_error": -1, "failed_test": 0, "passed": 1}
RETURNS: Final[Mapping[str, float]] = {
    "compile_error": -1.0,
    "runtime_error": -0.6,
    "failed_test": -0.3,
    "passed": 1.0,
}
_UNBUILT_STAGES = frozenset({"extract", "parse", "compile", "syntax", "rules", "ports", "elaborate"})
_UNBUILT_REASONS = frozenset({"no_answer", "several_answers", "unparsable_answer", "bad_format", "tampering"})
_CRASHED = frozenset(
    {"candidate_error", "candidate_timeout", "candidate_memory", "candidate_crash", "candidate_output"}
)


@dataclass(frozen=True, kw_only=True)
class ExecutionOrder(Rule):
    """A program that came farther wins; two that came equally far are no pair.

    Attributes:
        margin: "levels" (-2, -1, 0, 1) or "returns" (-1, -0.6, -0.3, 1): differences of these are margins.
    """

    name: ClassVar[str] = "execution_order"

    margin: Literal["levels", "returns"] = "levels"

    def __post_init__(self) -> None:
        """Reject another margin."""
        if self.margin not in ("levels", "returns"):
            raise ValueError(f"execution_order: margin is {self.margin!r}; it must be levels or returns")

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What each of the two came to."""
        return {"chosen_outcome": "text", "rejected_outcome": "text"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        worth = LEVELS if self.margin == "levels" else RETURNS
        outcomes = [(one, outcome_of(one)) for one, _ in group.ranked()]
        known = [(one, outcome) for one, outcome in outcomes if outcome is not None]
        known.sort(key=lambda one: -LEVELS[one[1]])
        for (better, high), (worse, low) in combinations(known, 2):
            if high != low:
                more = {"chosen_outcome": high, "rejected_outcome": low}
                yield Pair(chosen=better, rejected=worse, margin=worth[high] - worth[low], more=more)


def outcome_of(answer: Answer) -> Outcome | None:
    """Return how far a program came; None where neither score, stage nor reason says."""
    if answer.score is not None and answer.score >= 1:
        return "passed"
    reason, stage = (str(answer.told(path)) for path in ("reason", "evidence.stage"))  # whatever a row holds there
    if stage in _UNBUILT_STAGES or reason in _UNBUILT_REASONS:
        return "compile_error"
    if stage == "run" and reason != "wrong":
        return "runtime_error"
    if reason in _CRASHED:
        return "runtime_error"
    return "failed_test" if stage in ("test", "run", "proof") or reason == "wrong" else None
