"""The options of constraint composition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.data_pipelines.tasks.constraints.drawing import LEVELS
from adjudge.data_pipelines.tasks.constraints.wording import PATTERNS
from adjudge.io.jobs.config import JobConfig

Witness = Literal["required", "optional"]


@dataclass(frozen=True, kw_only=True)
class ConstraintsConfig(JobConfig):
    """Add constraints to prompts that programs can check, or look at those that prompts have.

    Constraints that contradict each other are never kept together, and a response that meets them all is built, as
    proof that they can be met.

    Raises:
        ValueError: an option is out of its range.
    """

    prompt_column: str = "prompt"
    """Column of the prompt, a text."""

    constraints_column: str = ""
    """Column of constraints that prompts state already, [{"kind": .., "args": ..}].
    They are looked at, and none are added."""

    pattern: tuple[str, ...] = PATTERNS
    """How constraints are stated: listing, incorporation or example; several take turns."""

    level: tuple[int, ...] = tuple(LEVELS)
    """Levels, 1 to 4: how many of the classes content, format, language and length; several take turns."""

    per_prompt: int = 1
    """New prompts for each prompt."""

    witness: Witness = "required"
    """required: keep only constraints with a response that meets them all.
    optional: keep those of which nobody knows, too."""

    seed: int = 0
    """Another seed gives other constraints."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        if not self.pattern or set(self.pattern) - set(PATTERNS):
            raise ValueError(f"--pattern is {', '.join(self.pattern)!r}; give some of {', '.join(PATTERNS)}")
        if not self.level or set(self.level) - set(LEVELS):
            raise ValueError(f"--level is {', '.join(map(str, self.level))!r}; give some of 1, 2, 3 and 4")
        if self.per_prompt < 1:
            raise ValueError(f"--per-prompt is {self.per_prompt}; it must be 1 or more")
        if self.witness not in ("required", "optional"):
            raise ValueError(f"--witness is {self.witness!r}; it must be required or optional")
