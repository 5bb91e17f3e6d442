"""From tasks to rollouts: who writes answers, and what goes on with rows of tokens for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from adjudge.rl_integration.trainer.contract.rollout import FinishReason, Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens that a model wrote in one go.

    Attributes:
        ids: the tokens, the end token included.
        logprobs: log-probability of each when it was drawn, in nats, at the temperature it was drawn with.
        finish_reason: "stop" if it ended or came to a stop text, "length" if it was cut off.
        ended: whether the last token is an end token.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    ended: bool


OnPiece: TypeAlias = Callable[[int, Piece], None]
"""Told the place of a piece among those asked for, and the piece."""


class Generator(Protocol):
    """Goes on with rows of tokens."""

    @property
    def exact(self) -> bool:
        """Whether log-probabilities are those that the policy's own forward pass gives, but for rounding."""
        ...

    def refresh(self, version: int) -> None:
        """Write with the policy's weights as they are now.

        Args:
            version: updates that they have seen; the weights of one version are the same.
        """
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        on_piece: OnPiece,
        limits: Sequence[int] | None = None,
        stops: Sequence[str] = (),
    ) -> None:
        """Write `copies` pieces after each prompt; piece `c` of prompt `p` has the place `p * copies + c`.

        Args:
            prompts: rows of tokens, none of them empty.
            copies: pieces after each.
            sampling: how they are drawn.
            seed: the same seed, weights and prompts give the same pieces.
            on_piece: told each piece as soon as it ends, in the calling thread.
            limits: most tokens of the pieces after each prompt, where they are fewer than `sampling` allows.
            stops: texts that end a piece once its text contains one; the text stays in the piece.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


OnRollout: TypeAlias = Callable[[int, Rollout], None]
"""Told the place of a rollout among those asked for, and the rollout."""


class Writer(Protocol):
    """Answers tasks."""

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return the tokens that answers to a task begin behind.

        Raises:
            ValueError: the prompt is empty, or cannot be written as tokens.
        """
        ...

    def roll_out(
        self,
        tasks: Sequence[Task],
        num_generations: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        version: int,
        name: str,
        on_rollout: OnRollout,
    ) -> list[Rollout]:
        """Return `num_generations` answers to each task, those of a task side by side.

        Args:
            tasks: what to answer.
            num_generations: answers to each.
            sampling: how they are drawn.
            seed: the same seed, policy and tasks give the same answers.
            version: how many updates the policy has seen.
            name: begins the ids of the answers.
            on_rollout: told each answer as soon as it ends.
        """
        ...


def check_room(writer: Writer, tasks: Iterable[Task], *, max_new_tokens: int, window: int) -> None:
    """Look whether each task's prompt can be written, and leaves room for the longest answer.

    Args:
        writer: will answer them.
        tasks: what it will answer.
        max_new_tokens: of an answer.
        window: most tokens of a prompt and its answer together.

    Raises:
        ValueError: one does not.
    """
    for task in tasks:
        length = len(writer.prompt(task))
        if length + max_new_tokens > window:
            raise ValueError(
                f"the prompt of task {task.id!r} has {length} tokens, and with {max_new_tokens} of an answer "
                f"(rollouts.sampling.max_new_tokens) that is more than the {window} that are read; lower "
                "max_new_tokens, or leave long prompts out (data.max_prompt_tokens)"
            )


class SingleTurn:
    """Writes answers of one turn.

    Args:
        policy: whose tokens they are.
        generator: writes.
    """

    def __init__(self, policy: Policy, generator: Generator) -> None:
        self._policy = policy
        self._generator = generator

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return the task's prompt as tokens."""
        return self._policy.encode(task)

    def roll_out(
        self,
        tasks: Sequence[Task],
        num_generations: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        version: int,
        name: str,
        on_rollout: OnRollout,
    ) -> list[Rollout]:
        """Return answers; see `Writer`."""
        prompts = [self._policy.encode(task) for task in tasks]
        found: dict[int, Rollout] = {}

        def done(place: int, piece: Piece) -> None:
            at = place // num_generations
            found[place] = Rollout(
                id=f"{name}:{place}",
                task=tasks[at],
                prompt_ids=prompts[at],
                ids=piece.ids,
                logprobs=np.asarray(piece.logprobs, dtype=np.float32),
                own=np.ones(len(piece.ids), dtype=np.bool_),
                text=self._policy.decode(piece.ids[:-1] if piece.ended else piece.ids),
                finish_reason=piece.finish_reason,
                version=version,
            )
            on_rollout(place, found[place])

        self._generator.refresh(version)
        self._generator.generate(prompts, num_generations, sampling, seed=seed, on_piece=done)
        return [found[place] for place in range(len(tasks) * num_generations)]
