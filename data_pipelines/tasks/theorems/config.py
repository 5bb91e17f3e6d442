"""The options of theorem variants."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.engines.interface import Sampling
from adjudge.io.jobs.config import JobConfig


@dataclass(frozen=True, kw_only=True)
class TheoremsConfig(JobConfig):
    r"""Make statements to prove or disprove, of theorems.

    Rules change the last formula of a theorem, L = R or L < R, and `math` confirms what is true and refutes what is
    not; a model, if one is named, writes further variants.  A theorem is kept if it comes to true and false statements.

    Raises:
        ValueError: an option is out of its range.
    """

    theorem_column: str = "theorem"
    """Column of the statement, text with LaTeX."""

    label_column: str = ""
    """Column that says whether it is proved (true) or disproved (false).
    Without one, only what the math scorer confirms is believed."""

    no_rules: bool = False
    """Leave the rules out; a model alone makes variants."""

    engine: str = ""
    """A model that writes variants: transformers:MODEL, vllm:MODEL or openai:MODEL, or a mapping as YAML.
    Without one, none is asked."""

    variants: int = 4
    """Variants that the model is asked for."""

    votes: int = 3
    """Further answers of the model that must agree with a variant's label; 0 asks for none."""

    most: int = 8
    """Statements of a theorem at most, an even number: as many true as false ones."""

    unbalanced: bool = False
    """Keep all statements of a theorem that has at least one of each label, not as many true as false ones."""

    max_tokens: int = 4096
    """Most tokens of one answer of the model."""

    temperature: float = 0.7
    """How freely the model writes."""

    seed: int = 0
    """Where random numbers start."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        if not self.theorem_column:
            raise ValueError("--theorem-column is empty; name the column of the statement")
        if self.variants < 2:
            raise ValueError(f"--variants is {self.variants}; it must be 2 or more, for both labels")
        if self.votes < 0:
            raise ValueError(f"--votes is {self.votes}; it must be 0 or more")
        if self.most < 2 or self.most % 2:
            raise ValueError(f"--most is {self.most}; it must be an even number from 2")
        Sampling(max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed)
