"""Passes over rollouts, each as large as memory allows."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rollouts.token_rows import padded_tokens, within_budget

_LOG = logging.getLogger("adjudge.trainer")

T = TypeVar("T")


class Torn(torch.OutOfMemoryError):
    """Memory ran out when a pass had given gradients to some of the weights."""


class Passes:
    """Divides rollouts into passes.

    Args:
        processes: those that make passes together.
        tokens: most of a pass, padding included, to begin with.
        sharded: whether a pass is one that all processes make.

    Attributes:
        tokens: most of a pass now.
    """

    def __init__(self, processes: Processes, *, tokens: int, sharded: bool) -> None:
        self._processes = processes
        self.tokens = tokens
        self._sharded = sharded

    def __call__(
        self,
        rollouts: Sequence[Rollout],
        places: Sequence[int],
        units: Callable[[Sequence[int]], list[list[int]]],
        run: Callable[[Sequence[int]], T],
        idle: Callable[[], object],
    ) -> Iterator[T]:
        """Yield what comes of each pass; one that memory does not hold is halved, and with it all that follow.

        With shards all processes make as many passes, the last of them `idle`, and none can be made anew.
        """
        left = deque(within_budget(rollouts, units(places), self.tokens))
        if self._sharded:
            lacking = max(self._processes.all_gather([len(left)])) - len(left)
            try:
                for part in left:
                    yield run(part)
                for _ in range(lacking):
                    idle()
            except torch.OutOfMemoryError as error:
                raise torch.OutOfMemoryError(
                    f"a pass does not fit into memory ({error}); lower learning.micro_tokens ({self.tokens}): "
                    "with learning.sharding: full the other processes are in that pass, too, so it is not halved"
                ) from error
            return
        while left:
            part = left.popleft()
            try:
                done = run(part)
            except torch.OutOfMemoryError as error:
                self._halve(rollouts, part, error, whole=len(units(part)) == 1)
                if isinstance(error, Torn):
                    raise
            else:
                yield done
                continue
            torch.cuda.empty_cache()  # behind the handler, which holds what the pass made
            places = [*part, *(place for more in left for place in more)]
            left = deque(within_budget(rollouts, units(places), self.tokens))

    def _halve(self, rollouts: Sequence[Rollout], part: Sequence[int], error: Exception, *, whole: bool) -> None:
        tokens = padded_tokens(rollouts, part)
        if whole:
            raise torch.OutOfMemoryError(
                f"a pass of {tokens} tokens, the least that can be read at once, does not fit into memory ({error}); "
                "set learning.gradient_checkpointing or learning.lora, or lower rollouts.sampling.max_new_tokens"
            ) from error
        self.tokens = min(self.tokens, tokens) // 2
        _LOG.warning(
            "a pass of %d tokens does not fit into memory; from here on passes have at most %d; set "
            "learning.micro_tokens to that (%s)",
            tokens,
            self.tokens,
            error,
        )
