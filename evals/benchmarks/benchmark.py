"""The contract of a benchmark, the options of its run, and the trivial scorers beside it.

A benchmark knows its rows and its metric: rows become cases, and the scores of cases the published numbers.  It does
not know scorers, files or pages: `adjudge.evals.benchmarks.run` reads rows, asks a scorer (or takes stored scores), and
hands the outcomes back.  A case without a verdict counts as wrong in the published number and is counted beside it.

Trivial scorers do not read: the longer response, the one with more steps, the first one, any one.  A benchmark on which
one of them does well measures less than its name says, and a scorer that is no better than they are has shown nothing.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge.evals.benchmarks.case import Case, Outcome
from adjudge.evals.reports.config import EvalConfig
from adjudge.evals.reports.result import Measure
from adjudge.options import Options, Range
from adjudge.pages.figures import Figure
from adjudge.statistics.intervals import Draws

STORED: Final = "stored"
"""The scorer that stands for the scores in the benchmark's own file."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig(EvalConfig):
    """Evaluate a scorer, or stored scores, on a benchmark."""

    needs_input: ClassVar[bool] = False

    input: str = ""
    """A file, a folder of files or of a saved dataset, or a dataset of the hub.
    Without it, the benchmark's own name on the hub."""

    scorer: str = ""
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "stored" takes the scores that stand in the input."""

    scores: str = ""
    """A file of scores by sample id, as adjudge label writes it, in place of a
    scorer; the samples to label are written with --samples."""

    scores_of: str = ""
    """Whose scores of that file, where it holds several by name."""

    against: str = ""
    """A second scorer to test the first one against: a spec, "stored", or a file of
    scores."""

    against_input: str = ""
    """Another input of the benchmark with the same cases, whose stored scores to
    test against: the outputs of another model."""

    compare: Literal["auto", "yes", "no"] = "auto"
    """Whether the scorer's reference is the other response of a pair.
    "auto" asks the scorer."""

    samples: str = ""
    """Only write the samples of the benchmark to this .jsonl file, to be scored
    elsewhere."""

    batch_size: Annotated[int, Range(ge=1)] = 256
    """Samples handed to the scorer in one call; no score depends on it."""

    in_flight: Annotated[int, Range(ge=1)] = 4
    """Batches that are scored at the same time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples:
            self._check_samples_alone()
            return
        if bool(self.scorer) == bool(self.scores):
            given = "both are given" if self.scorer else "neither is given"
            raise ValueError(
                f"a benchmark evaluates a scorer or a file of scores, and {given}; give --scorer SPEC (or "
                '"stored"), or --scores FILE'
            )
        if self.against and self.against_input:
            raise ValueError("against and against_input are both given; test against one of them at a time")
        if self.scores_of and not self.scores:
            raise ValueError(f"scores_of is {self.scores_of!r}, and there is no file of scores; give it with --scores")

    def _check_samples_alone(self) -> None:
        given = [name for name in ("scorer", "scores", "against", "against_input", "output") if getattr(self, name)]
        if given:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ValueError(
                f"--samples only writes the samples, and nothing is scored; drop {flags}, or drop --samples"
            )


_SAID: Final[Mapping[str, Callable[[Outcome], Sequence[float]]]] = {
    "longer": lambda one: one.sizes,
    "shorter": lambda one: [-size for size in one.sizes],
    "more_steps": lambda one: one.step_counts,
    "fewer_steps": lambda one: [-count for count in one.step_counts],
    "first": lambda one: range(len(one.values), 0, -1),
    "last": lambda one: range(len(one.values)),
    "random": lambda one: [random_share(f"{one.id}/{place}") for place in range(len(one.values))],
}


def trivial_choices(outcomes: Sequence[Outcome], *, places: bool | None = None) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes that trivial scorers of candidates would have, by their names.

    Each list is made when it is asked for, so that one of them is in memory at a time.

    Args:
        outcomes: of all cases.
        places: whether the order of the candidates is a scorer's to see, so that "first" and "last" mean something;
            None says so where the right place is not the same in every case: a file of pairs that holds the chosen
            response first has it there because of the file.

    Returns:
        "longer" and "shorter" where the input holds the responses; "more_steps" and "fewer_steps" where steps were
        counted; "first" and "last"; "random", which is a function of the case's id.  Nothing where no case has
        candidates.
    """
    if all(len(outcome.values) < 2 for outcome in outcomes):
        return {}
    if places is None:
        places = len({json.dumps(outcome.gold, sort_keys=True, default=str) for outcome in outcomes}) > 1
    kinds = {
        ("longer", "shorter"): any(any(outcome.sizes) for outcome in outcomes),
        ("more_steps", "fewer_steps"): any(any(outcome.step_counts) for outcome in outcomes),
        ("first", "last"): places,
        ("random",): True,
    }
    return _Made(outcomes, [name for names, some in kinds.items() if some for name in names])


def random_share(name: str) -> float:
    """Return a number in [0, 1) that a name decides: the same in every run, independent between names."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), key=b"adjudge trivial", digest_size=7).digest()
    return (int.from_bytes(digest) >> 3) / (1 << 53)


class _Made(Mapping[str, Sequence[Outcome]]):
    def __init__(self, outcomes: Sequence[Outcome], names: Sequence[str]) -> None:
        self._outcomes, self._said = outcomes, {name: _SAID[name] for name in names}

    def __getitem__(self, name: str) -> Sequence[Outcome]:
        said = self._said[name]
        return [outcome.with_values([float(value) for value in said(outcome)]) for outcome in self._outcomes]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlace:
    """Where a row stands: its number in the input, from 0, and its file's name without the folder, if it has one."""

    number: int
    file: str = ""


class Benchmark(Options, ABC):
    """A benchmark; a frozen, keyword-only dataclass whose fields are its options.

    Attributes:
        name: in `adjudge eval NAME`; snake_case.
        source: paper and code that its metric was read from.
        hub: name on the Hugging Face hub that stands for the input where the user gives none; "" if there is none.
        columns: what its rows hold, in a few words, for people whose file does not fit.
        wants: what a scorer must give: "values", or "steps".
        of_scorer: whether the numbers say how good the scorer is.  AlpacaEval's say how good a model is, as the scorer
            sees it: neither end is good for the scorer, and trivial scorers stand beside all of them.
        places: whether trivial scorers see the order of the candidates, as `trivial_choices` takes it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    hub: ClassVar[str] = ""
    split: ClassVar[str] = ""
    columns: ClassVar[str]
    wants: ClassVar[str] = "values"
    of_scorer: ClassVar[bool] = True
    places: ClassVar[bool | None] = None

    def __post_init__(self) -> None:
        """Check the options, and read the other files that they name, so that what is wrong with them is said first."""
        super().__post_init__()
        for name in dir(type(self)):
            if isinstance(getattr(type(self), name), cached_property):
                getattr(self, name)

    @abstractmethod
    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the cases of one row; none where the row is not part of the benchmark.

        Raises:
            ValueError: the row is not what `columns` says; the message names the column and what is wrong.
        """

    @abstractmethod
    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the benchmark's numbers, its published one first, with bounds where `draws.rounds` is not 0.

        Args:
            outcomes: of all cases, at least one, in the order of the input.
            draws: how bounds are drawn; with 0 rounds only values are wanted, and nothing is drawn.
        """

    @abstractmethod
    def credit(self, outcome: Outcome) -> float | None:
        """Return what a case earns, in [0, 1]: 1 right, 0 wrong, parts for ties; None where it has no verdict.

        Paired tests between two scorers and the list of worst cases are made of it.
        """

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return the outcomes that trivial scorers would have, by their names (`trivial_choices`).

        Without candidates to choose from there are none, and a benchmark of another kind names its own.
        """
        return trivial_choices(outcomes, places=self.places)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return what is right in words, and a word for each sample ("chosen", "rejected") or none, for readers."""
        return json.dumps(outcome.gold, ensure_ascii=False, default=str), ()

    def figures(self, outcomes: Sequence[Outcome], measures: Sequence[Measure]) -> Sequence[Figure]:
        """Return what is worth drawing beside the bars of all parts, which every report has."""
        return ()


@dataclass(frozen=True, kw_only=True)
class AnyFile(Benchmark):
    """A benchmark of any file, whose options name columns; a.b.c reaches into nested objects, a.0 into lists."""

    prompt_column: str = ""
    """Column of the prompt; "" tries the usual names. Of every column: a.b.c reaches
    into nested objects, a.0 into lists."""

    part_column: str = ""
    """Column of the subset that a row counts in."""

    cluster_column: str = ""
    """Column that rows share which depend on each other; without one, the prompt."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""
