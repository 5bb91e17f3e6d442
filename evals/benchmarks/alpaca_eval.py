"""AlpacaEval 2: how often a model's output is preferred to a baseline's, as a judge sees it.

It measures the model that wrote the outputs.  To measure the judge, see `annotators`.

| input | scorer |
|---|---|
| annotations: `instruction`, `output_1` (baseline), `output_2` (model), `preference` from 1 to 2 | `stored`, or any |
| outputs: `instruction`, `output`, with `baseline` naming a file of the baseline's outputs | any |

The win rate is the mean share of the model's outputs; annotations without a preference are in none of the numbers, as
there, and are counted beside.  The length-controlled one is a fit (`adjudge.evals.benchmarks.win_rate`); without
the authors' difficulties and gamed baselines it is not the leaderboard's, and its name says so.  It has no bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import cluster_of, keyed_rows, shown, text_of
from adjudge.evals.benchmarks.pair import EVEN, sides
from adjudge.evals.benchmarks.win_rate import Annotation, annotations_of, fit_length_control, share_of
from adjudge.evals.reports.result import Measure
from adjudge.protocol import Sample
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap, share_interval
from adjudge.statistics.confusion import ratio
from adjudge.statistics.intervals import Draws, Interval

_NAMES: Final = ("win rate", "standard error", "discrete win rate", "wins", "losses", "draws")


@dataclass(frozen=True, kw_only=True)
class AlpacaEval(Benchmark):
    """Win rates of a model against a baseline, in [0, 1]."""

    name: ClassVar[str] = "alpaca_eval"
    title: ClassVar[str] = "AlpacaEval"
    source: ClassVar[str] = "arXiv 2404.04475; tatsu-lab/alpaca_eval, src/alpaca_eval/metrics"
    columns: ClassVar[str] = "instruction, output_1, output_2, preference; or instruction, output"
    of_scorer: ClassVar[bool] = False
    places: ClassVar[bool | None] = False  # the baseline's output always comes first

    baseline: str = ""
    """A file of the baseline's outputs, where the input holds one model's outputs."""

    length_control: bool = False
    """Whether the length-controlled win rate is fitted too; needs scikit-learn."""

    difficulties: str = ""
    """A file of the instructions' difficulties: instruction, difficulty."""

    gamed: str = ""
    """A file of annotations of the baseline asked to be concise, and to be verbose."""

    def __post_init__(self) -> None:
        _ = self._baseline, self._difficulties, self._gamed

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row: the baseline's output, then the model's."""
        instruction = text_of(row, "instruction")
        stored = _stored(row) if "preference" in row else ()
        if "output" in row and "output_2" not in row:
            outputs = (self._baseline_of(instruction), text_of(row, "output"))
        else:
            outputs = (text_of(row, "output_1"), text_of(row, "output_2"))
        model = row.get("generator") or row.get("generator_2") or ""
        return [
            Case(
                id=f"{place.number}",
                samples=tuple(Sample(prompt=instruction, response=output) for output in outputs),
                gold={"model": str(model), "difficulty": self._difficulty_of(instruction)},
                cluster=cluster_of(instruction),
                stored=stored,
                compared=bool(stored),
            )
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return the share of the model's output."""
        return share_of_model(outcome)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return whose outputs the two are."""
        model = outcome.gold["model"] or "model"
        return f"neither is right or wrong; wrong here means that {model} loses", ("baseline", model)

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the win rates, their standard error, the counts as shares, and what is without a preference."""
        shares = [share_of_model(outcome) for outcome in outcomes]
        clusters = [outcome.cluster for outcome in outcomes]
        known = sum(share is not None for share in shares)
        intervals = cluster_bootstrap(clusters, _columns(shares), _numbers, draws, counts=[known] * len(_NAMES))
        found = [
            Measure(name=name, interval=interval, better="none", published=True)
            for name, interval in zip(_NAMES, intervals, strict=True)
        ]
        missing = share_interval([float(share is None) for share in shares], clusters, draws)
        found.append(Measure(name="no preference", interval=missing, better="low"))
        return [*found, *self._controlled(outcomes, shares)] if self.length_control else found

    def _controlled(self, outcomes: Sequence[Outcome], shares: Sequence[float | None]) -> list[Measure]:
        rows = [(one, share) for one, share in zip(outcomes, shares, strict=True) if share is not None]
        full = bool(self.difficulties and self.gamed)
        name = "LC win rate" if full else "LC win rate, these annotations alone"
        levels = [one.gold["difficulty"] or 0.0 for one, _ in rows]
        try:
            own, base = [one.sizes[1] for one, _ in rows], [one.sizes[0] for one, _ in rows]
            made = annotations_of([share for _, share in rows], own, base, levels)
            value = fit_length_control(made, self._gamed).win_rate(levels) / 100
        except ValueError:  # too few annotations, or outputs that never differ in length: there is no such number
            value = None
        return [Measure(name=name, interval=Interval(value=value, n=len(rows)), better="none", published=full)]

    def _baseline_of(self, instruction: str) -> str:
        if not self.baseline:
            raise ValueError("the row holds one output; name the file of the baseline's outputs with --baseline")
        rows = self._baseline.get(instruction)
        if rows is None:
            raise ValueError(f"the baseline has no output for the instruction {shown(instruction)}")
        return text_of(rows[0], "output")

    def _difficulty_of(self, instruction: str) -> float | None:
        if not self.difficulties:
            return None
        rows = self._difficulties.get(instruction)
        if rows is None:
            raise ValueError(f"there is no difficulty of the instruction {shown(instruction)}")
        return _number(rows[0], "difficulty", "instruction_difficulty")

    @cached_property
    def _baseline(self) -> dict[str, list[dict[str, Any]]]:
        return keyed_rows(self.baseline, lambda row: text_of(row, "instruction")) if self.baseline else {}

    @cached_property
    def _difficulties(self) -> dict[str, list[dict[str, Any]]]:
        return keyed_rows(self.difficulties, lambda row: text_of(row, "instruction")) if self.difficulties else {}

    @cached_property
    def _gamed(self) -> list[Annotation]:
        """The gamed baselines' annotations, each with the spread of its own outputs' lengths."""
        if not self.gamed:
            return []
        by_model = keyed_rows(self.gamed, lambda row: str(row.get("generator_2", "")), several=True)
        found = []
        for rows in by_model.values():
            known = [(row, share) for row in rows if (share := _share(row)) is not None]
            made = annotations_of(
                [share for _, share in known],
                [len(text_of(row, "output_2")) for row, _ in known],
                [len(text_of(row, "output_1")) for row, _ in known],
                [self._difficulty_of(text_of(row, "instruction")) or 0.0 for row, _ in known],
            )
            found += [replace(one, gamed=True) for one in made]
        return found


def share_of_model(outcome: Outcome) -> float | None:
    """Return how far the second output of a pair is preferred, from 0 to 1.

    Of shares in two orders, the mean, or the one that is there; of scores, 1 for the higher one and a half for a tie.
    """
    if outcome.compared:
        first, second = outcome.values
        known = [share for share in (None if first is None else 2 * EVEN - first, second) if share is not None]
        return sum(known) / len(known) if known else None
    sign, _ = sides(outcome)
    return None if sign is None else EVEN - sign / 2


def _share(row: Mapping[str, Any]) -> float | None:
    found = row.get("preference")
    if isinstance(found, bool) or not (found is None or isinstance(found, int | float)):
        raise ValueError(f"the column 'preference' holds {shown(found)}; it must be a number from 1 to 2, or null")
    return share_of(found)


def _stored(row: Mapping[str, Any]) -> tuple[Stored, ...]:
    share = _share(row)
    if share is None:
        return (Stored(value=None, reason="no preference"),) * 2
    return Stored(value=1 - share), Stored(value=share)


def _number(row: Mapping[str, Any], *names: str) -> float:
    for name in names:
        found = row.get(name)
        if isinstance(found, str):  # CSV
            found = float(found)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
    raise ValueError(f"the row has no number in {' or '.join(names)}")


def _columns(shares: Sequence[float | None]) -> Floats:
    """Whether there is a preference, the share, its square, and win, loss or draw."""
    return np.array(
        [
            [0.0] * 6
            if share is None
            else [1.0, share, share * share, float(share > EVEN), float(share < EVEN), float(share == EVEN)]
            for share in shares
        ]
    )


def _numbers(sums: Floats) -> Floats:
    count, total, squares, wins, losses, ties = (sums[:, at] for at in range(6))
    mean = ratio(total, count)
    variance = np.maximum(ratio(squares - count * mean**2, count - 1), 0.0)
    error = np.sqrt(ratio(variance, count))
    rates = [ratio(part, count) for part in (wins + ties / 2, wins, losses, ties)]
    return np.column_stack([mean, error, *rates])
