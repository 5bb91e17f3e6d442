"""The options of unit-test synthesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.io.jobs.config import JobConfig

Domain = Literal["seen", "wide"]
MOST_TESTS = 50
"""The evidence of `code` names the outcome of so many tests."""


@dataclass(frozen=True, kw_only=True)
class UnitTestsConfig(JobConfig):
    """Make unit tests for programming tasks, from reference solutions that agree.

    Inputs come from known tests and examples, changed at random, from the types of a function's arguments, or from
    a program that a model writes.  A test is kept if enough solutions give the same output for its input; a task is
    kept if enough solutions pass all its tests.  Everything runs in the sandbox of the `code` scorer.

    Raises:
        ValueError: an option is out of its range.
    """

    prompt_column: str = "prompt"
    """Column of the task's text; examples in it (>>> f(1)) are inputs."""

    entry_point_column: str = "entry_point"
    """Column of the function's name; where it is empty, programs read standard input and print."""

    solutions_column: str = "solutions"
    """Column of reference solutions: a list of programs, or one program."""

    wrong_column: str = ""
    """Column of programs that are known to be wrong, a list or one; they show which tests tell."""

    label_column: str = ""
    """Column that says whether a row's solutions are right (pass, true, 1) or wrong (fail, timeout, false, 0)."""

    group_column: str = ""
    """Column that rows of one task share, where each row holds one program; rows of a task stand together."""

    tests_column: str = "tests"
    """Column of known tests, in any form that `code` reads; their inputs are used."""

    language: str = "python"
    """Language of programs that read standard input."""

    solutions: int = 10
    """Solutions that are run, the first so many that differ; a task with fewer is dropped."""

    agree: int = 7
    """So many of them must give the same output for a test to be kept."""

    passing: int = 9
    """So many of them must pass all kept tests for a task to be kept."""

    inputs: int = 60
    """Inputs that are tried for a task."""

    tests: int = 20
    """Tests that are kept for a task at most, 50 or fewer; those that tell apart most wrong programs first."""

    least_tests: int = 3
    """A task with fewer is dropped."""

    domain: Domain = "seen"
    """How far inputs leave what the known ones show.  seen: no smaller numbers, no new letters, no empty values.
    wide: zero, negative numbers, other letters and empty values too, which tasks may not define."""

    engine: str = ""
    """A model that writes programs that make inputs: transformers:MODEL, vllm:MODEL or openai:MODEL, or a mapping as
    YAML.  Without one, none is asked."""

    max_tokens: int = 1024
    """Tokens of such a program."""

    seconds: float = 10.0
    """For a run of a program: one input, or all calls of a solution until one gets nowhere."""

    memory_mb: int = 1024
    """MiB for a run."""

    seed: int = 0
    """Another seed gives other inputs."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        for name in ("solutions", "agree", "passing", "inputs", "tests", "least_tests", "max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be 1 or more")
        for name in ("agree", "passing"):
            if getattr(self, name) > self.solutions:
                raise ValueError(
                    f"--{name} is {getattr(self, name)} and --solutions {self.solutions}; it cannot be more than those"
                )
        if 2 * self.agree <= self.solutions:
            raise ValueError(
                f"--agree is {self.agree} of {self.solutions}; it must be more than half, or two could win"
            )
        if self.tests > MOST_TESTS:
            raise ValueError(f"--tests is {self.tests}; it must be {MOST_TESTS} or fewer")
        if self.least_tests > self.tests:
            raise ValueError(f"--least-tests is {self.least_tests} and --tests {self.tests}; lower the first")
        if self.inputs > 1000:
            raise ValueError(f"--inputs is {self.inputs}; it must be 1000 or fewer")
        if self.domain not in ("seen", "wide"):
            raise ValueError(f"--domain is {self.domain!r}; it must be seen or wide")
        if not 0 < self.seconds <= 30:
            raise ValueError(f"--seconds is {self.seconds}; it must be above 0 and at most 30")
        if not 32 <= self.memory_mb <= 1024:
            raise ValueError(f"--memory-mb is {self.memory_mb}; it must be from 32 to 1024")
