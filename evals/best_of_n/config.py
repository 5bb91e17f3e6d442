"""The options of evaluations that look at several responses to each prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from adjudge.evals.results.config import EvalConfig
from adjudge.io.columns import Wanted
from adjudge.solutions.aggregate import AGGREGATES


@dataclass(frozen=True, kw_only=True)
class CandidatesConfig(EvalConfig):
    """Options that name the columns of prompts and responses.

    Raises:
        ValueError: an option is out of range.
    """

    gold: str = ""
    """What is true of a response: column:NAME, a file that adjudge label wrote, or a scorer.
    A column may hold a list for a list of responses; of several response columns, name as many with commas."""

    prompt_column: str = ""
    """Column of the prompt: text or chat turns."""

    response_column: tuple[str, ...] = ()
    """Column of the response: text, or a list of responses; give it several times for several columns of a row.
    Where all numbers are in columns, there may be none."""

    reference_column: str = ""
    """Column of what scorers check against."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    group_column: str = ""
    """Column that responses to one prompt share; without one, those of one row, or of the same prompt."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        if not self.gold and self._needs_gold:
            raise ValueError(
                "there is no gold; give column:NAME, a file of scores, or a scorer that says what is true of a response"
            )

    @property
    def _needs_gold(self) -> bool:
        return True

    def wanted_columns(self) -> Wanted:
        """Return the column names that were given."""
        return Wanted(
            prompt=self.prompt_column,
            responses=self.response_column,
            reference=self.reference_column,
            id=self.id_column,
            group=self.group_column,
        )


@dataclass(frozen=True, kw_only=True)
class BestOfNConfig(CandidatesConfig):
    """Measure what best-of-n gains: by the scorer that chooses (the proxy), and in truth (gold).

    Curves for n = 1, 2, 4, .. are expectations over all ways to draw n of a prompt's responses, ties included.  With
    them come what a random, a perfect and a length-loving chooser get, how the two scores agree, and the published law
    of over-optimisation.  With --run-log the same is told of an RL run.

    Raises:
        ValueError: an option is out of range.
    """

    proxy: str = ""
    """The scorer that chooses: column:NAME, a file that adjudge label wrote, or a scorer."""

    aggregate: str = ""
    """How the values of steps become one number, such as min or product; without it, the score's own value."""

    answers: str = ""
    """Column of the final answer, for a majority vote as a baseline."""

    most: int = 0
    """Largest n; 0 for as many responses as most prompts have."""

    bins: int = 10
    """Bins of the proxy, equally full, in which the mean of gold is shown."""

    run_log: bool = False
    """The input holds steps of an RL run with its divergence, proxy and gold: a folder that adjudge train policy
    made, or any file of rows."""

    kl_column: str = ""
    """Column of the divergence from the first policy, in nats, for --run-log."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        if not self.proxy and not self.run_log:
            raise ValueError(
                "there is no proxy; give column:NAME, a file of scores, or the scorer that is to choose among responses"
            )
        if self.kl_column and not self.run_log:
            raise ValueError(f"--kl-column is {self.kl_column!r}, which is for --run-log; best-of-n knows its own")
        check_aggregate(self.aggregate, "--aggregate")
        if self.most < 0:
            raise ValueError(f"--most is {self.most!r}; give the largest n, or 0")
        if self.bins < 2:
            raise ValueError(f"--bins is {self.bins!r}; it must be at least 2")

    @property
    def _needs_gold(self) -> bool:
        return not self.run_log


@dataclass(frozen=True, kw_only=True)
class PassAtKConfig(CandidatesConfig):
    """Measure how many prompts are solved in k attempts: by one of them, by all of them, by their majority.

    The expectations are over all ways to draw k of a prompt's responses.

    Raises:
        ValueError: an option is out of range.
    """

    pass_at: float = 1.0
    """The least gold of a right response."""

    k: tuple[int, ...] = ()
    """A number of attempts; give it several times. Without it 1, 2, 4, .. up to what prompts have, 1024 at most."""

    answers: str = ""
    """Column of the final answer, for the majority of k attempts (maj@k)."""

    subsets: int = 1_000
    """Most ways to draw k responses that maj@k looks at; where there are more, so many are drawn."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        for k in self.k:
            if k < 1:
                raise ValueError(f"--k is {k!r}; it must be 1 or more")
        check_finite(self.pass_at, "--pass-at")
        check_subsets(self.subsets)


def options_of(config: EvalConfig) -> dict[str, Any]:
    """Return the options as plain data, without paths and those that are as they were."""
    return {
        item.name: value
        for item in fields(config)
        if item.name not in ("input", "output") and (value := getattr(config, item.name)) not in ("", (), None)
    }


def check_aggregate(name: str, flag: str) -> None:
    """Raise `ValueError` unless a name is "" or one of the aggregates."""
    if name and name not in AGGREGATES:
        raise ValueError(f"{flag} is {name!r}; it must be one of {', '.join(AGGREGATES)}")


def check_finite(number: float, flag: str) -> None:
    """Raise `ValueError` for infinities and for what is no number, which no gold reaches."""
    if not math.isfinite(number):
        raise ValueError(f"{flag} is {number!r}; it must be a finite number")


def check_subsets(count: int) -> None:
    """Raise `ValueError` unless there are enough draws to state an error of them."""
    if count < 2:
        raise ValueError(f"--subsets is {count!r}; it must be at least 2")
