"""What goes on with rows of tokens: a model of `transformers`, vLLM, or whatever else has these methods.

Not covered: tasks and answers (`writer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from adjudge.rl_integration.trainer.contract.rollout import FinishReason
from adjudge.rl_integration.trainer.rollouts.sampling import SamplingConfig


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
