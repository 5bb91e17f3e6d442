"""Solutions in the making, whoever writes their next steps, and what that costs.

A step is what an engine writes up to the text that ends steps.  An engine does not say whether it stopped there or had
nothing to add, so a solution is finished where its last step holds what solutions end with, or nothing more came.

Not covered: which of them are good (`guide`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from adjudge.data_pipelines.steps.rollouts import Completer
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Completion, Fault
from adjudge.protocol import NO_COST, Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A solution, finished or not.

    Attributes:
        text: as far as it goes, with the gap behind its last step if another may follow.
        steps: how many it has.
        tokens: that were generated for it.
        ended: whether nothing follows.
        cut: whether it ends at a limit.
    """

    text: str = ""
    steps: int = 0
    tokens: int = 0
    ended: bool = False
    cut: bool = False


ROOT = Path()


@dataclass(slots=True, kw_only=True)
class Account:
    """What one method spent on one problem.

    Attributes:
        budget: tokens it may generate.
        most: texts it may draw.
        tokens: that were generated.
        draws: texts that were drawn.
        valued: texts whose value was asked for.
        faults: draws that the engine refused; texts without a value.
        cost: of engine and guide.
    """

    budget: int
    most: int
    tokens: int = 0
    draws: int = 0
    valued: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    cost: Cost = NO_COST

    @property
    def spent(self) -> bool:
        """Whether nothing may be drawn any more."""
        return self.tokens >= self.budget or self.draws >= self.most


class Writer:
    """Writes on, for one method and one problem; the same prefix gets fresh draws each time.

    Args:
        problem: what is solved.
        steps: writes one step.
        wholes: writes to the end.
        gap: ends a step.
        ends: is found in the last step of a solution.
        most_steps: of a solution.
        most_tokens: of a solution.
        account: pays.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Completer,
        wholes: Completer,
        gap: str,
        ends: re.Pattern[str],
        most_steps: int,
        most_tokens: int,
        account: Account,
    ) -> None:
        self._problem = problem
        self._steps, self._wholes = steps, wholes
        self._gap, self._ends = gap, ends
        self._most_steps, self._most_tokens = most_steps, most_tokens
        self.account = account
        self._drawn: Counter[tuple[bool, str]] = Counter()

    async def next_steps(self, path: Path, n: int) -> list[Path]:
        """Return `n` drawn ways to go one step on; fewer where the budget does not reach or the engine refuses.

        Raises:
            JobError: the model is gone.
        """
        return [self._longer(path, one) for one in await self._draw(self._steps, path, n, whole=False)]

    async def ends_of(self, path: Path, n: int) -> list[Path]:
        """Return `n` drawn ways to go on to the end; see `next_steps`."""
        return [
            Path(
                text=path.text + one.text,
                steps=path.steps + one.text.count(self._gap) + 1,
                tokens=path.tokens + one.tokens,
                ended=True,
                cut=one.finish_reason == "length",
            )
            for one in await self._draw(self._wholes, path, n, whole=True)
        ]

    async def _draw(self, completer: Completer, path: Path, n: int, *, whole: bool) -> tuple[Completion, ...]:
        account = self.account
        count = min(n, account.most - account.draws)
        if count < 1:
            return ()
        first = self._drawn[whole, path.text]
        self._drawn[whole, path.text] += count
        account.draws += count
        found = await completer.complete(self._problem.prompt, path.text, first=first, n=count)
        if isinstance(found, Fault):
            account.faults["too_long" if found.too_long else found.reason] += count
            return ()
        account.cost += found.cost
        account.tokens += sum(one.tokens for one in found.completions)
        return found.completions

    def _longer(self, path: Path, one: Completion) -> Path:
        """A path with a step more; one that nothing was added to has ended before."""
        steps, tokens = path.steps + 1, path.tokens + one.tokens
        if not one.text.strip():
            return Path(text=path.text, steps=path.steps, tokens=tokens, ended=True)
        done = self._ends.search(one.text) is not None
        cut = not done and (steps >= self._most_steps or tokens >= self._most_tokens)
        unfinished = one.finish_reason == "length"  # the step goes on where it was cut
        return Path(
            text=path.text + one.text + ("" if done or cut or unfinished else self._gap),
            steps=steps,
            tokens=tokens,
            ended=done or cut,
            cut=cut,
        )
