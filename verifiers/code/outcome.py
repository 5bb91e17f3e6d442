"""What came of the tests, and what that is worth."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.scoring.bad_reference import BadReferenceError

Stage = Literal["extract", "parse", "compile", "run", "test"]
Credit = Literal["all", "fraction", "staged"]

SHOWN = 300
"""Characters of a value, an output or an error that are kept."""
_MAX_SAID = 1_000  # characters of what broken tests say
_MAX_TESTS = 50
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")  # of an object in memory, another one in every run
_STAGES: dict[Stage, float] = {"extract": 0.0, "parse": 0.0, "compile": 0.0, "run": 0.1, "test": 0.2}


class TestsBrokenError(BadReferenceError):
    """The tests failed by themselves: nothing can be said about the candidate."""

    __test__ = False

    def __init__(self, message: str) -> None:
        super().__init__(message[-_MAX_SAID:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One test: `reason` is a code of `adjudge.reasons`, "" if it passed; `detail` lets a person see why it failed."""

    passed: bool
    reason: str = ""
    seconds: float = 0.0
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Verdict:
    """A candidate's tests.

    Attributes:
        total: how many tests there are; of a pytest file, 1 until it is read.
        skipped: how many tests beside those say nothing, by their own marks.
        stage: how far the candidate came: it fails at this stage, or reached the tests.
    """

    total: int
    skipped: int = 0
    stage: Stage = "test"
    reason: str = ""
    detail: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    memory_mb: float | None = None

    @property
    def passed(self) -> int:
        """How many tests passed."""
        return sum(outcome.passed for outcome in self.outcomes)

    def stopped(self, stage: Stage, reason: str, detail: str) -> Verdict:
        """Return this verdict of a candidate that came no further than a stage."""
        self.stage, self.reason, self.detail = stage, reason, detail
        return self

    def note_memory(self, memory_mb: float | None) -> None:
        """Take in what one of its runs held at most."""
        self.memory_mb = max(self.memory_mb or 0.0, memory_mb or 0.0)

    def value(self, credit: Credit) -> float:
        """Return the score.

        "all" is 1 if every test passed and else 0; "fraction" is the share of tests that passed; "staged" gives 0.1
        to a program that is well formed but fails before any test, 0.2 to one that reaches the tests and passes
        none, from there up to 0.9 in proportion to the tests passed, and 1 for all.
        """
        total = max(self.total, len(self.outcomes))
        share = self.passed / total if total else 0.0
        if total and self.passed == total and not self.reason:
            return 1.0
        if credit == "all":
            return 0.0
        if credit == "fraction":
            return share
        if self.stage != "test":
            return _STAGES[self.stage]
        return 0.2 + 0.7 * share

    def first_reason(self) -> str:
        """Return the reason of the score: what stopped the candidate, or why the first failing test failed."""
        return self.reason or next((outcome.reason for outcome in self.outcomes if not outcome.passed), "")

    def evidence(self, measured: bool = False) -> dict[str, Any]:
        """Return plain data that lets a person check the verdict; what is `measured` differs from run to run."""
        evidence: dict[str, Any] = {"stage": self.stage, "passed": self.passed, "total": self.total}
        if self.detail:
            evidence["error"] = shorten(self.detail, 2 * SHOWN)
        for index, outcome in enumerate(self.outcomes):
            if not outcome.passed:
                evidence["first_failure"] = {"test": index, "reason": outcome.reason, **outcome.detail}
                break
        shown = self.outcomes[:_MAX_TESTS]
        evidence["tests"] = [outcome.passed for outcome in shown]
        if measured:
            evidence["seconds"] = [round(outcome.seconds, 4) for outcome in shown]
            evidence["memory_mb"] = None if self.memory_mb is None else round(self.memory_mb, 1)
        return evidence


def shorten(text: object, most: int = SHOWN) -> str:
    """Return a text, or a value's text, cut in the middle to so many characters."""
    shown = _ADDRESS.sub("0x...", text if isinstance(text, str) else text_of(text))
    if len(shown) <= most:
        return shown
    return f"{shown[: most // 2]} ... {shown[-(most // 2) :]}"


def text_of(value: object) -> str:
    """Return what `repr` says of a value, or why it says nothing."""
    try:
        return repr(value)
    except (ValueError, RecursionError) as error:  # an integer of more than 4300 digits, or deep nesting
        return f"<{type(value).__name__}: {error}>"
