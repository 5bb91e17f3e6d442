"""How answers are drawn.

Not covered: nucleus and top-k sampling: learning needs the probabilities of what was drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """How answers are drawn.

    Attributes:
        max_new_tokens: tokens of an answer, the end token included.
        temperature: what logits are divided by; 0 takes the likeliest token.
        max_num_seqs: answers written side by side.
    """

    max_new_tokens: int = 256
    temperature: float = 1.0
    max_num_seqs: int = 256

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for option in ("max_new_tokens", "max_num_seqs"):
            if getattr(self, option) < 1:
                raise ValueError(f"sampling.{option} is {getattr(self, option)!r}; it must be at least 1")
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"sampling.temperature is {self.temperature!r}; it must be 0 or more")
