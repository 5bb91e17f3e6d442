"""What every evaluation returns, whatever it evaluates: one record that prints, is written as JSON, and is a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from adjudge.pages.figures import Figure, Record
from adjudge.protocol import NO_COST, Cost, Message, content_text
from adjudge.statistics.arrays import ArrayLike, Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap, difference_interval, mean_interval, opened
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.significance import holm, permutation_test


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measured number.

    Attributes:
        name: what is measured: "accuracy", "F1", "rank correlation".
        part: of what: a subset or section; "" for the whole.
        interval: the number in its own unit (shares in [0, 1], never per cent), bounds, and how many cases it is of.
        baselines: the same number of trivial scorers, by their names; None where they have none.
        better: which end is good; "none" for numbers that are neither.
        published: whether the benchmark's authors define it so, and others can compare it.
    """

    name: str
    interval: Interval
    part: str = ""
    baselines: Mapping[str, float | None] = field(default_factory=dict)
    better: str = "high"
    published: bool = False

    def __post_init__(self) -> None:
        if self.better not in ("high", "low", "none"):
            raise ValueError(f"Measure.better is {self.better!r}; it must be 'high', 'low' or 'none'")

    @classmethod
    def mean(
        cls,
        name: str,
        values: ArrayLike,
        clusters: Sequence[str],
        draws: Draws,
        part: str = "",
        better: str = "high",
        published: bool = False,
    ) -> Measure:
        """Return the mean of a number that each case has, with its bounds (`mean_interval`)."""
        interval = mean_interval(values, clusters, draws)
        return cls(name=name, interval=interval, part=part, better=better, published=published)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "name": self.name,
            "part": self.part,
            **self.interval.to_dict(),
            "baselines": dict(self.baselines),
            "better": self.better,
            "published": self.published,
        }


class Sought(NamedTuple):
    """A number that is wanted of sums over cases; see `Measure` and `measures_of_sums`.

    Attributes:
        n: how many cases it rests on; all without it.
        clusters: of a share, how many clusters these are, for bounds where it is 0 or 1 (`opened`).
    """

    name: str
    part: str = ""
    better: str = "high"
    published: bool = False
    n: int | None = None
    clusters: int = 0


def measures_of_sums(
    sought: Iterable[Sought],
    clusters: Sequence[str],
    columns: Floats,
    combine: Callable[[Floats], Floats],
    draws: Draws,
) -> list[Measure]:
    """Return numbers that are functions of column sums, named in the order in which `combine` has them.

    The other arguments are those of `cluster_bootstrap`.
    """
    wanted = list(sought)
    counts = [len(clusters) if one.n is None else one.n for one in wanted]
    intervals = cluster_bootstrap(clusters, columns, combine, draws, counts=counts)
    return [
        Measure(
            name=one.name,
            part=one.part,
            interval=opened(interval, one.clusters, draws),
            better=one.better,
            published=one.published,
        )
        for one, interval in zip(wanted, intervals, strict=True)
    ]


_MAX_TEXT: Final = 4_000  # characters of a text; a page of 50 pairs then has half a MB


def cut(text: str, most: int = _MAX_TEXT) -> str:
    """Return a text without its middle where it is longer than `most`; it says how many characters are missing."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[... {len(text) - head - tail} characters ...]\n{text[len(text) - tail :]}"


def as_text(given: str | Sequence[Message]) -> str:
    """Return a text, or chat turns as a person reads them: each with its role."""
    if isinstance(given, str):
        return given
    return "\n\n".join(f"{turn.get('role', '')}: {_content(turn)}" for turn in given)


def _content(turn: Message) -> str:
    try:
        return content_text(turn.get("content"))
    except ValueError:
        return str(turn.get("content"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResponse(Record):
    """One response of a case.

    Attributes:
        text: what was judged; long texts are cut in the middle, with the number of characters that are missing.
        said: the score as text: "0.731", or "failed (engine_timeout)".
        note: what the case says of it: "chosen", "has error 3".
    """

    text: str
    said: str
    value: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCase(Record):
    """A case to read.

    Attributes:
        verdict: "wrong", "tied", "failed", "abstained"; or another word of the evaluation.
        weight: how bad it is, for sorting; larger is worse.
    """

    id: str
    part: str
    verdict: str
    weight: float
    prompt: str
    responses: tuple[ReadResponse, ...]
    gold: str


SCHEMA = 1  # of `Result.to_dict`; it grows when a key changes its meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Record):
    """How many there are of what; nothing here is in two columns by accident.

    Attributes:
        cut_off: samples of which the scorer saw only a part, or that end at a limit themselves, scored or not.
        tied: cases whose deciding values were equal.
        unreadable: rows of the input that are not cases.
        reasons: samples by the reason code of what is not a number.
    """

    cases: int = 0
    samples: int = 0
    scored: int = 0
    abstained: int = 0
    failed: int = 0
    cut_off: int = 0
    tied: int = 0
    unreadable: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Record):
    """A test of one scorer against another one on the same cases.

    Attributes:
        test: of which kind: "McNemar, exact", "permutation of clusters".
        difference: first minus second, with bounds.
        p: chance of so large a difference if there were none; None where the data say nothing.
        p_adjusted: the same after Holm's correction for all comparisons of this result; None if `p` is.
    """

    name: str
    part: str = ""
    test: str
    first: float | None
    second: float | None
    difference: Interval
    p: float | None
    p_adjusted: float | None = None
    other: str = ""


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return comparisons with p-values that are corrected for all of them, by Holm's method."""
    ps = holm([one.p for one in comparisons])
    return [replace(one, p_adjusted=p) for one, p in zip(comparisons, ps, strict=True)]


def paired(
    rates: Mapping[str, Sequence[float]], base: str, clusters: Sequence[str], draws: Draws, *, of: str, part: str = ""
) -> list[Comparison]:
    """Return each rate against that of `base`, case by case; `of` says what a cluster is: "prompts"."""
    second = np.asarray(rates[base], dtype=float)
    comparisons = []
    for name, values in rates.items():
        if name == base:
            continue
        first = np.asarray(values, dtype=float)
        comparisons.append(
            Comparison(
                name=name,
                part=part,
                test=f"permutation of {of}",
                first=float(first.mean()),
                second=float(second.mean()),
                difference=difference_interval(first, second, clusters, draws),
                p=permutation_test(first - second, clusters, draws) if draws.rounds else None,
                other=base,
            )
        )
    return adjusted(comparisons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Record):
    """A rule that a scorer must keep: an invariance, a sensitivity, a bound.

    Attributes:
        passed: whether it holds; None where it could not be tried, and `detail` says why.
        detail: the numbers, in one sentence.
    """

    name: str
    passed: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Record):
    """The outcome of an evaluation.

    Attributes:
        kind: of evaluation: the name in `adjudge eval KIND`.
        scorer: facts about what was evaluated: at least "name" and "fingerprint".
        source: facts about the input: "name", "rows", "digest", whatever names it again.
        figures: what is worth drawing, beside bars of the measures, which every report has.
        options: of the evaluation, as plain data: seed, level, resamples, limits.
        cost: of the scores; zeros where they were stored.
        asked: whether a scorer was asked in this run; what a file of scores lacks is a fact about the file.
    """

    kind: str
    title: str
    scorer: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    counts: Counts = Counts()
    checks: tuple[Check, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    figures: tuple[Figure, ...] = ()
    worst: tuple[ReadCase, ...] = ()
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    cost: Cost = NO_COST
    asked: bool = True

    @property
    def found(self) -> bool:
        """Whether something was found that the exit code must say: a rule broken, a sample that could not be judged.

        Scores that are missing in a file count as failed too, but nobody can judge them by another run.
        """
        return any(check.passed is False for check in self.checks) or (self.asked and self.counts.failed > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data = Record.to_dict(self)
        del data["asked"]
        return {"schema": SCHEMA, **data, "found": self.found}
