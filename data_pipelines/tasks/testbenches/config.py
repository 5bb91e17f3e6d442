"""The options of a job that makes test benches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from adjudge.io.jobs.config import JobConfig


@dataclass(frozen=True, kw_only=True)
class TestbenchesConfig(JobConfig):
    """Make a Verilog test bench of each reference design, and keep those that tell wrong designs from right ones.

    Without a model the bench shows the design rows of inputs and expects what the reference design answered. With one
    (--engine) the model writes it: function points, test cases, text.

    Raises:
        ValueError: an option is out of its range.
    """

    design_column: str = "reference"
    """Column of the reference design's source."""

    prompt_column: str = "prompt"
    """Column of the specification; a model needs it, otherwise it is handed on."""

    top_column: str = "top"
    """Column of the name that the tested module must have."""

    top: str = ""
    """That name for rows without one; left out, the reference's own."""

    files_column: str = "files"
    """Column of data files that the reference design reads: {name: text}."""

    wrong_column: str = ""
    """Column of designs, or a list of them, known to be wrong; none may pass."""

    id_column: str = "id"
    """Column of the id; without one, the number of the row, from 0."""

    engine: str = ""
    """Model that writes the benches, such as openai:NAME; without one they are
    recorded from the reference design."""

    max_tokens: int = 4096
    """Most tokens of one answer of the model."""

    temperature: float = 0.6
    """Temperature of the model."""

    attempts: int = 3
    """How often the model is asked the same when its answer cannot be read."""

    compile_rounds: int = 3
    """How often the model may repair a bench that does not compile or end."""

    align_rounds: int = 3
    """How often it may repair expected values that the reference contradicts."""

    rounds: int = 3
    """Most benches that are recorded, each larger, while one reaches too few lines or
    lets wrong designs pass; with a model, repairs for lines that are not reached."""

    coverage: float = 0.9
    """Share of the reference's lines to reach, measured by Verilator (10 s a
    round); 0 does not measure it."""

    effort: int = 300
    """Clock cycles, or rows of inputs, of the first recorded bench; each further
    round has four times as many."""

    mutants: int = 12
    """Wrong designs made of each reference by changing one thing."""

    min_killed: float = 0.8
    """Share of the wrong designs that must fail for a bench to be kept."""

    seconds: float = 20.0
    """Wall-clock seconds that one simulation may take."""

    seed: int = 0
    """Decides the rows, the mutants and the model's samples."""

    isolation: Literal["bubblewrap", "none"] = "bubblewrap"
    """How simulations are kept apart; none is for sources that you trust."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        for name, least, most in (
            ("max_tokens", 64, 1_000_000),
            ("attempts", 1, 20),
            ("compile_rounds", 0, 20),
            ("align_rounds", 0, 20),
            ("rounds", 1, 6),
            ("effort", 16, 20_000),
            ("mutants", 0, 200),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"--{name.replace('_', '-')} is {value}; it must be from {least} to {most}")
        for name in ("coverage", "min_killed"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be a share from 0 to 1")
        if not 0.1 <= self.seconds <= 600:
            raise ValueError(f"--seconds is {self.seconds}; it must be from 0.1 to 600")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"--temperature is {self.temperature}; it must be 0 or more")
        if not self.mutants and not self.wrong_column:
            raise ValueError(
                "--mutants is 0 and --wrong-column names nothing, so no bench could show that it tells designs apart; "
                "allow mutants, or name a column of wrong designs"
            )
        if self.isolation not in ("bubblewrap", "none"):
            raise ValueError(f"--isolation is {self.isolation!r}; it must be bubblewrap or none")
