"""What searches know about a solution in the making: rollouts from a prefix, whether they ended right, what they cost.

A prefix is a tuple of pieces, steps with the gaps behind them, so that joining them gives the very text.

Monte-Carlo labels (Math-Shepherd, arXiv 2312.08935) are the share of rollouts from each prefix that end right; the last
prefix is the whole solution, whose outcome is known.  A wrong step from which the policy finds back has a high share,
and a right step of a problem that is too hard for it has none.

An end is right from a score of `pass_at` on; a score that is not a number has no vote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

from adjudge.engines.interface import Engine, Fault, Generation, Prompt, Sampling
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import scores_of, stop_if_gone
from adjudge.io.jobs.row_maker import Account
from adjudge.protocol import Message, Sample, Scorer
from adjudge.training.step_data import Label, first_error

Prefix: TypeAlias = tuple[str, ...]
"""The first pieces of a solution; `()` before its first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One way on from a prefix to an end.

    Attributes:
        pieces: what follows the prefix, cut into steps; none where the model added nothing to see.
        right: whether the solution that came of it is right; None where that could not be judged.
        length: tokens of what was added.
    """

    pieces: Prefix
    right: bool | None
    length: int = 0


class Oracle(Protocol):
    """Whoever can go on from a prefix."""

    async def rollouts(self, prefix: Prefix, n: int) -> Sequence[Rollout]:
        """Return the first `n` rollouts from a prefix: those that were asked for before, and as many new ones as lack.

        Fewer come back where the budget does not cover the new ones, or the model cannot read the prefix.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How often rollouts from one prefix ended right.

    Attributes:
        right: how many did.
        judged: how many were judged; those that could not be have no vote.
    """

    right: int = 0
    judged: int = 0

    @property
    def value(self) -> float | None:
        """The share that ended right (Math-Shepherd's soft estimate); None if none was judged."""
        return self.right / self.judged if self.judged else None

    @property
    def reached(self) -> bool | None:
        """Whether any ended right (its hard estimate); None if none was judged."""
        return self.right > 0 if self.judged else None


UNKNOWN = Estimate()


def estimate_of(rollouts: Iterable[Rollout]) -> Estimate:
    """Return the votes of rollouts; those that nobody could judge have none."""
    votes = [rollout.right for rollout in rollouts if rollout.right is not None]
    return Estimate(right=sum(votes), judged=len(votes))


def certain(outcome: bool | None) -> Estimate:
    """Return the estimate of a whole solution: its own outcome, with one vote."""
    return UNKNOWN if outcome is None else Estimate(right=int(outcome), judged=1)


async def monte_carlo(oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None) -> tuple[Estimate, ...]:
    """Return an estimate for each step, in order; (n - 1) k calls for n steps."""
    drawn = await asyncio.gather(*[oracle.rollouts(pieces[:length], k) for length in range(1, len(pieces))])
    return (*map(estimate_of, drawn), certain(outcome))


Hardness: TypeAlias = Literal["soft", "hard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLabels:
    """What a method says about the steps of one solution, in order.

    Attributes:
        labels: the probability, for each step, that the right answer is reached from it on; None where nobody knows.
        values: what the method computes, in its own units, None where unknown; () where that is the labels.
        estimates: the votes behind each step, where there are any.
        start: the value before the first step; None where the method does not ask for it.
        first_error: place of the first wrong step, from 0; -1 for none; None where that is not known.
    """

    labels: tuple[Label, ...]
    values: tuple[float | None, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    start: float | None = None
    first_error: int | None = None


def label_of(estimate: Estimate, hardness: Hardness) -> Label:
    """Return the share of rollouts that ended right, or 1.0 as soon as one did; None where none was judged."""
    if hardness == "soft" or estimate.reached is None:
        return estimate.value
    return float(estimate.reached)


def shares(estimates: Iterable[Estimate]) -> tuple[float | None, ...]:
    """Return the share of rollouts from each prefix that ended right."""
    return tuple(estimate.value for estimate in estimates)


def first_unreached(estimates: Iterable[Estimate]) -> int | None:
    """Return the place of the first step from which no rollout ended right; see `first_error`."""
    return first_error([label_of(estimate, "hard") for estimate in estimates])


@dataclass(slots=True, kw_only=True)
class Spending(Account):
    """The account of one row; `calls` are rollouts drawn, `asks` requests for them, other counts say what went wrong.

    Attributes:
        most: rollouts that may be drawn; None for any number.
    """

    most: int | None = None

    def take(self, calls: int) -> bool:
        """Take rollouts from the budget, all or none, and return whether it covered them."""
        if self.most is not None and self.counts["calls"] + calls > self.most:
            self.counts["over_budget"] += 1
            return False
        self.counts["calls"] += calls
        self.counts["asks"] += 1
        return True


_DRAWS = 1 << 16  # of one prefix; the seeds of two configurations stay apart


@dataclass(frozen=True, kw_only=True)
class EngineCompleter:
    """An engine that writes the rest of a solution.

    Attributes:
        engine: the language model.
        sampling: how it writes; `n` and `seed` are set for each prefix.
        chat: the prompt is a user's turn and the prefix the beginning of the assistant's; else both are plain text.
    """

    engine: Engine
    sampling: Sampling
    chat: bool = True

    @property
    def fingerprint(self) -> str:
        """The engine's, with all that shapes what it writes."""
        return f"{self.engine.fingerprint} {self.sampling} chat={self.chat}"

    async def complete(self, prompt: str | Sequence[Message], prefix: str, *, first: int, n: int) -> Generation | Fault:
        """Return draws `first` to `first + n - 1` of a prefix; they depend on prompt, prefix and these numbers alone.

        The text of each goes on behind the prefix.  Blanks at the prefix's end are not shown to the model, whose tokens
        begin with them; where it writes them, they are taken off.
        """
        shown = prefix.rstrip(" \t")
        seed = self.sampling.seed * _DRAWS + first
        try:
            (drawn,) = await self.engine.generate([self._asked(prompt, shown)], replace(self.sampling, n=n, seed=seed))
        except ValueError as error:  # the engine says that it cannot do this at all
            raise JobError(f"the engine {self.engine.name!r} cannot go on from a prefix: {error}") from error
        stop_if_gone(self.engine, drawn)
        if isinstance(drawn, Fault) or shown == prefix:
            return drawn
        return replace(drawn, completions=tuple(replace(one, text=one.text.lstrip(" \t")) for one in drawn.completions))

    def _asked(self, prompt: str | Sequence[Message], prefix: str) -> Prompt:
        if not self.chat:
            return f"{prompt}{prefix}"
        turns: list[Any] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        return [*turns, {"role": "assistant", "content": prefix}] if prefix else turns


@dataclass(frozen=True, kw_only=True)
class Ends:
    """Judges of whole solutions."""

    scorer: Scorer
    pass_at: float = 1.0

    async def right(self, samples: Sequence[Sample], spending: Spending) -> list[bool | None]:
        """Return whether each solution is right; None where the scorer gave no number."""
        scores = await scores_of(self.scorer, samples)
        spending.cost = sum((score.cost for score in scores), spending.cost)
        spending.counts["unjudged"] += sum(score.value is None for score in scores)
        return [None if score.value is None else score.value >= self.pass_at for score in scores]
