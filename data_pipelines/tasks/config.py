"""The options of the jobs that make tasks and what their answers are checked with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from adjudge.engines.interface import Sampling
from adjudge.io.jobs.config import JobConfig
from adjudge.options import Range

Domain = Literal["seen", "wide"]
MAX_TESTS = 50
"""The evidence of `code` names the outcome of so many tests."""


@dataclass(frozen=True, kw_only=True)
class UnitTestsConfig(JobConfig):
    """Make unit tests for programming tasks, from reference solutions that agree.

    Inputs come from known tests and examples, changed at random, from the types of a function's arguments, or from
    a program that a model writes.  A test is kept if enough solutions give the same output for its input; a task is
    kept if enough solutions pass all its tests.  Everything runs in the sandbox of the `code` scorer.
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

    solutions: Annotated[int, Range(ge=1)] = 10
    """Solutions that are run, the first so many that differ; a task with fewer is dropped."""

    agree: Annotated[int, Range(ge=1)] = 7
    """So many of them must give the same output for a test to be kept."""

    passing: Annotated[int, Range(ge=1)] = 9
    """So many of them must pass all kept tests for a task to be kept."""

    inputs: Annotated[int, Range(ge=1, le=1000)] = 60
    """Inputs that are tried for a task."""

    tests: Annotated[int, Range(ge=1, le=MAX_TESTS)] = 20
    """Tests that are kept for a task at most, 50 or fewer; those that tell apart most wrong programs first."""

    min_tests: Annotated[int, Range(ge=1)] = 3
    """A task with fewer is dropped."""

    domain: Domain = "seen"
    """How far inputs leave what the known ones show.  seen: no smaller numbers, no new letters, no empty values.
    wide: zero, negative numbers, other letters and empty values too, which tasks may not define."""

    engine: str = ""
    """A model that writes programs that make inputs: transformers:MODEL, vllm:MODEL or openai:MODEL, or a mapping as
    YAML.  Without one, none is asked."""

    max_tokens: Annotated[int, Range(ge=1)] = 1024
    """Tokens of such a program."""

    seconds: Annotated[float, Range(gt=0, le=30)] = 10.0
    """For a run of a program: one input, or all calls of a solution until one gets nowhere."""

    memory_mb: Annotated[int, Range(ge=32, le=1024, unit="MiB")] = 1024
    """MiB for a run."""

    seed: int = 0
    """Another seed gives other inputs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("agree", "passing"):
            if getattr(self, name) > self.solutions:
                raise ValueError(
                    f"--{name} is {getattr(self, name)} and --solutions {self.solutions}; it cannot be more than those"
                )
        if 2 * self.agree <= self.solutions:
            raise ValueError(
                f"--agree is {self.agree} of {self.solutions}; it must be more than half, or two could win"
            )
        if self.min_tests > self.tests:
            raise ValueError(f"--min-tests is {self.min_tests} and --tests {self.tests}; lower the first")


LEVELS: Final[Mapping[int, tuple[int, int]]] = {1: (1, 2), 2: (2, 4), 3: (3, 6), 4: (4, 7)}
"""Least and most constraints of a level; it has as many classes as its number (MulDimIF, 2505.07591)."""

PATTERNS: Final = ("listing", "incorporation", "example")
Witness = Literal["required", "optional"]


@dataclass(frozen=True, kw_only=True)
class ConstraintsConfig(JobConfig):
    """Add constraints to prompts that programs can check, or look at those that prompts have.

    Constraints that contradict each other are never kept together, and a response that meets them all is built, as
    proof that they can be met.
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

    per_prompt: Annotated[int, Range(ge=1)] = 1
    """New prompts for each prompt."""

    witness: Witness = "required"
    """required: keep only constraints with a response that meets them all.
    optional: keep those of which nobody knows, too."""

    seed: int = 0
    """Another seed gives other constraints."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pattern or set(self.pattern) - set(PATTERNS):
            raise ValueError(f"--pattern is {', '.join(self.pattern)!r}; give some of {', '.join(PATTERNS)}")
        if not self.level or set(self.level) - set(LEVELS):
            raise ValueError(f"--level is {', '.join(map(str, self.level))!r}; give some of 1, 2, 3 and 4")


@dataclass(frozen=True, kw_only=True)
class TheoremsConfig(JobConfig):
    r"""Make statements to prove or disprove, of theorems.

    Rules change the last formula of a theorem, L = R or L < R, and `math` confirms what is true and refutes what is
    not; a model, if one is named, writes further variants.  A theorem is kept if it comes to true and false statements.
    """

    needed: ClassVar[tuple[str, ...]] = ("theorem_column",)

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

    variants: Annotated[int, Range(ge=2)] = 4
    """Variants that the model is asked for."""

    votes: Annotated[int, Range(ge=0)] = 3
    """Further answers of the model that must agree with a variant's label; 0 asks for none."""

    max_statements: Annotated[int, Range(ge=2)] = 8
    """Statements of a theorem, an even number: as many true as false ones."""

    unbalanced: bool = False
    """Keep all statements of a theorem that has at least one of each label, not as many true as false ones."""

    max_tokens: int = 4096
    """Most tokens of one answer of the model."""

    temperature: float = 0.7
    """How freely the model writes."""

    seed: int = 0
    """Where random numbers start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_statements % 2:
            raise ValueError(f"--max-statements is {self.max_statements}; it must be an even number from 2")
        Sampling(max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed)


Part = Literal["all", "train", "test"]


@dataclass(frozen=True, kw_only=True)
class TasksConfig(JobConfig):
    """Write tasks with known answers, from programs that make them.

    A task depends on its family, its level, the seed, its number and the family's version, and on nothing else.
    Which part a task belongs to depends on its text and the test share alone, so files of different parts never
    share one if their test share is the same.
    """

    input: str = ""
    """Not used: there is no input."""

    family: tuple[str, ...] = ("integers",)
    """integers, fractions, equation, remainder, bases or divisors; gym/NAME for a family of reasoning-gym, gym/* for
    all of those.  Several take turns."""

    level: tuple[int, ...] = ()
    """Levels of difficulty, from 1; several take turns.  Without one, each family's own default."""

    count: Annotated[int, Range(ge=1)] = 1000
    """How many tasks are tried; repeated texts and those of the other part are left out of them."""

    seed: int = 0
    """Another seed gives other tasks."""

    part: Part = "all"
    """train or test: only the tasks of that part."""

    test_share: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """Share of all texts that belongs to the part `test`."""

    repeats: bool = False
    """Keep tasks whose text came before; this spares looking at all of them first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.input:
            raise ValueError(f"tasks are made from nothing, and the input is {self.input!r}; leave it out")
        if not self.family:
            raise ValueError("there is no --family; name one, such as integers")
        if any(level < 1 for level in self.level):
            raise ValueError(f"--level is {min(self.level)}; levels are counted from 1")


@dataclass(frozen=True, kw_only=True)
class TestbenchesConfig(JobConfig):
    """Make a Verilog test bench of each reference design, and keep those that tell wrong designs from right ones.

    Without a model the bench shows the design rows of inputs and expects what the reference design answered. With one
    (--engine) the model writes it: function points, test cases, text.
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
    """Model that writes the benches, such as openai:NAME; without one they are recorded from the reference design."""

    max_tokens: Annotated[int, Range(ge=64, le=1_000_000)] = 4096
    """Most tokens of one answer of the model."""

    temperature: Annotated[float, Range(ge=0)] = 0.6
    """Temperature of the model."""

    attempts: Annotated[int, Range(ge=1, le=20)] = 3
    """How often the model is asked the same when its answer cannot be read."""

    compile_rounds: Annotated[int, Range(ge=0, le=20)] = 3
    """How often the model may repair a bench that does not compile or end."""

    align_rounds: Annotated[int, Range(ge=0, le=20)] = 3
    """How often it may repair expected values that the reference contradicts."""

    rounds: Annotated[int, Range(ge=1, le=6)] = 3
    """Most benches that are recorded, each larger, while one reaches too few lines or
    lets wrong designs pass; with a model, repairs for lines that are not reached."""

    coverage: Annotated[float, Range(ge=0, le=1)] = 0.9
    """Share of the reference's lines to reach, measured by Verilator (10 s a round); 0 does not measure it."""

    effort: Annotated[int, Range(ge=16, le=20_000)] = 300
    """Clock cycles, or rows of inputs, of the first recorded bench; each further round has four times as many."""

    mutants: Annotated[int, Range(ge=0, le=200)] = 12
    """Wrong designs made of each reference by changing one thing."""

    min_killed: Annotated[float, Range(ge=0, le=1)] = 0.8
    """Share of the wrong designs that must fail for a bench to be kept."""

    seconds: Annotated[float, Range(ge=0.1, le=600)] = 20.0
    """Wall-clock seconds that one simulation may take."""

    seed: int = 0
    """Decides the rows, the mutants and the model's samples."""

    isolation: Literal["bubblewrap", "none"] = "bubblewrap"
    """How simulations are kept apart; none is for sources that you trust."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mutants and not self.wrong_column:
            raise ValueError(
                "--mutants is 0 and --wrong-column names nothing, so no bench could show that it tells designs apart; "
                "allow mutants, or name a column of wrong designs"
            )


EDGES: Final = ("nulls", "duplicates", "ties", "empty", "dates", "zeros")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass(frozen=True, kw_only=True)
class DatabasesConfig(JobConfig):
    """Make SQLite databases from schemas and sample values, and keep those that tell an accepted query from wrong ones.

    A row names a schema, and, where there is one, a query. Wrong queries are mutants of that query and the row's own
    candidates. Rows without a query get databases all the same.
    """

    schema_column: str = "schema"
    """Column of the schema: CREATE TABLE statements, {table: {column: type}}, or the form of BIRD's schema files."""

    values_column: str = "values"
    """Column of sample values: {table: {column: [value, ...]}}."""

    database_column: str = "database"
    """Column of a SQLite file, whose schema and values are taken where the row has
    no schema, and beside which the made databases are measured."""

    database_folder: str = ""
    """Folder of those files; a name stands for NAME, NAME.sqlite or NAME/NAME.sqlite in it."""

    schemas: str = ""
    """JSON file of schemas by name, such as BIRD's."""

    name_column: str = "db_id"
    """Column of the name in that file."""

    sql_column: str = "sql"
    """Column of the accepted query, or of a list of them."""

    candidates_column: str = ""
    """Column of further queries to tell from the accepted ones."""

    prompt_column: str = "prompt"
    """Column of the question; it is handed on."""

    id_column: str = "id"
    """Column of the id; without one, the number of the row, from 0."""

    folder: str = ""
    """Folder for the databases; without one, OUT's name with _databases behind
    it, beside OUT. The rows name the files as they lie under it."""

    count: Annotated[int, Range(ge=1, le=32)] = 4
    """Most databases for each row."""

    distill: bool = False
    """Keep no database that tells nothing apart beyond those before it."""

    tries: Annotated[int, Range(ge=1, le=20)] = 3
    """Databases tried for each one wanted."""

    edges: tuple[str, ...] = EDGES
    """Edge cases that every other database holds; give it several times. One of
    nulls, duplicates, ties, empty, dates, zeros; none leaves all out."""

    min_told: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Share of the mutants that the databases must tell apart for a row to be kept."""

    moment: str = "2025-01-01 00:00:00"
    """What SQLite's clock shows; the sql scorer's own default."""

    seconds: Annotated[float, Range(ge=0.05, le=600)] = 5.0
    """Seconds that the accepted query, or another, may take."""

    seed: int = 0
    """Decides every row of every database."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := [name for name in self.edges if name not in (*EDGES, "none")]:
            raise ValueError(f"--edges is {unknown[0]!r}; it must be one of {', '.join(EDGES)}, none")
        if not _MOMENT.fullmatch(self.moment):
            raise ValueError(f"--moment is {self.moment!r}; write it like 2025-01-01 00:00:00")

    @property
    def made_folder(self) -> Path:
        """Where the databases lie."""
        output = Path(self.output)
        stem = output.name.removesuffix(".gz")
        return Path(self.folder) if self.folder else output.with_name(f"{stem.rpartition('.')[0] or stem}_databases")
