"""A generator that writes what a test says, for tests of what is made of its pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.writer import OnPiece, Piece

Script = Callable[[str, int], str]
"""What follows a text, the copy counted; without an end token unless it is spelled out."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a call of `generate` asked for."""

    prompts: list[tuple[int, ...]]
    copies: int
    seed: int
    limits: list[int] | None


@dataclass(kw_only=True)
class ScriptedGenerator:
    """Writes by a script.

    Attributes:
        policy: whose tokens they are.
        script: says what follows.
        backwards: whether the last pieces are handed over first.
        asked: every call.
    """

    policy: Policy
    script: Script
    backwards: bool = False
    asked: list[Asked] = field(default_factory=list)
    exact: bool = True

    def refresh(self, version: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

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
        """Write pieces; see `Generator`."""
        self.asked.append(
            Asked(
                prompts=[tuple(ids) for ids in prompts],
                copies=copies,
                seed=seed,
                limits=None if limits is None else list(limits),
            )
        )
        places = range(len(prompts) * copies)
        for place in reversed(places) if self.backwards else places:
            at, copy = divmod(place, copies)
            text = self.script(self.policy.tokenizer.decode(list(prompts[at])), copy)
            on_piece(place, self._piece(text, sampling.max_new_tokens if limits is None else limits[at], stops))

    def _piece(self, text: str, most: int, stops: Sequence[str]) -> Piece:
        written = self.policy.tokens.text(text)
        ids: list[int] = []
        while True:
            ids.append(written[len(ids)])
            ended = ids[-1] in self.policy.ends
            stopped = ended or any(stop in self.policy.decode(ids) for stop in stops)
            if stopped or len(ids) == most or len(ids) == len(written):
                break
        return Piece(
            ids=tuple(ids),
            logprobs=tuple(-0.5 - 0.01 * at for at in range(len(ids))),
            finish_reason="stop" if stopped else "length",
            ended=ended,
        )
