"""HelpSteer (arXiv 2311.09528) and HelpSteer2 (arXiv 2406.08673): five attributes that people rated from 0 to 4.

A scorer gives a response one number.  With `attribute` it is compared with that attribute; without, with each of the
five, and with the attribute `goal` first.  A model with a number for each attribute is evaluated by stored predictions:
five columns, or a list in one.

    mean of attributes   plain mean of the attributes' Pearson correlations; of MSE and R2 too where numbers are on the
                         scale of the ratings
    each attribute       all rates of `adjudge.evals.benchmarks.ratings`

Not covered: HelpSteer2's preferences, which are pairs (`adjudge.evals.benchmarks.pairs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import NO_VERDICT, Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, case_id, case_of, field, has, items, names_of, score, shown, text
from adjudge.evals.benchmarks.ratings import Rated, rating_measures, unread_ratings
from adjudge.evals.reports.result import Measure
from adjudge.statistics.intervals import Draws, Interval

ATTRIBUTES: Final = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
LOW: Final = 0.0
HIGH: Final = 4.0
_PREDICTED: Final = "predicted_attributes"  # the reason of a stored score whose steps are the five predictions
_MEANS: Final = ("Pearson", "MSE", "R2")


@dataclass(frozen=True, kw_only=True)
class HelpSteer(Benchmark):
    """HelpSteer and HelpSteer2."""

    name: ClassVar[str] = "help_steer"
    title: ClassVar[str] = "HelpSteer"
    source: ClassVar[str] = "arXiv 2311.09528, 2406.08673"
    hub: ClassVar[str] = "nvidia/HelpSteer2"
    split: ClassVar[str] = "validation"
    columns: ClassVar[str] = "prompt, response, and helpfulness, correctness, coherence, complexity, verbosity (0 to 4)"

    attribute: Literal["helpfulness", "correctness", "coherence", "complexity", "verbosity"] | None = None
    """The attribute that the scorer's number is about; without one, all are looked
    at, helpfulness first."""

    prediction_columns: str = "predicted_{attribute}"
    """Columns of stored predictions, with {attribute} in their name; or one column
    with a list of five, in the order above."""

    same_scale: bool = False
    """Whether the scorer's numbers are on the scale of the ratings, 0 to 4; stored
    predictions of attributes are."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row."""
        ratings = {name: _rating(field(row, name), name) for name in ATTRIBUTES if has(row, name)}
        if not ratings:
            raise ValueError(f"the row has none of the ratings {', '.join(ATTRIBUTES)}; it has {names_of(row)}")
        yield case_of(
            id=case_id(place),
            prompt=text(row, "prompt"),
            responses=[text(row, "response")],
            gold=ratings,
            stored=self._stored(row),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the means over attributes where there are several, and the rates of each."""
        rates = {name: self._of(name, outcomes, draws) for name in self._attributes(outcomes)}
        if len(rates) == 1:
            return next(iter(rates.values()))
        every = [one for own in rates.values() for one in own]
        kinds = [[one for one in every if one.name == kind] for kind in _MEANS]
        return [*(_mean(own) for own in kinds if own), *every]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 less the mean distance from the ratings, in lengths of the scale; None without numbers or scale."""
        names = [name for name in self._attributes([outcome]) if name in outcome.gold]
        values = [_value(outcome, name) for name in names]
        if not names or None in values or not self._on_scale(outcome):
            return None
        gaps = [abs(value - outcome.gold[name]) for name, value in zip(names, values, strict=True) if value is not None]
        return float(1 - min(1.0, sum(gaps) / len(gaps) / (HIGH - LOW)))

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return what is said without reading; the mean rating is that of the first attribute that is looked at."""
        first = self._attributes(outcomes)[0]
        rated = [outcome for outcome in outcomes if first in outcome.gold]
        return unread_ratings(outcomes, [outcome.gold[first] for outcome in rated], LOW, HIGH)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return the ratings."""
        return ", ".join(f"{name} {rating:g}" for name, rating in outcome.gold.items()), ()

    def _attributes(self, outcomes: Sequence[Outcome]) -> list[str]:
        wanted = [self.attribute] if self.attribute else ATTRIBUTES
        return [name for name in wanted if any(name in outcome.gold for outcome in outcomes)] or list(wanted)

    def _of(self, name: str, outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
        rows = [
            Rated(outcome.gold[name], _value(outcome, name), "", outcome.cluster)
            for outcome in outcomes
            if name in outcome.gold
        ]
        if not rows:
            raise ValueError(f"no row has a rating of the attribute {name!r}")
        on_scale = all(self._on_scale(outcome) for outcome in outcomes)
        return rating_measures(rows, draws, same_scale=on_scale, part=name)

    def _on_scale(self, outcome: Outcome) -> bool:
        return self.same_scale or outcome.reasons[0] == _PREDICTED

    def _stored(self, row: Row) -> tuple[Stored, ...]:
        """Return stored predictions as the steps of one score, whose value is the first one that is known."""
        columns = [self.prediction_columns.replace("{attribute}", name) for name in ATTRIBUTES]
        if len(set(columns)) == 1:
            if not has(row, columns[0]):
                return ()
            cells = list(items(row, columns[0]))
            if len(cells) != len(ATTRIBUTES):
                raise ValueError(f"the column {columns[0]!r} holds {len(cells)} numbers; give {len(ATTRIBUTES)}")
        elif any(has(row, column) for column in columns):
            cells = [field(row, column) if has(row, column) else None for column in columns]
        else:
            return ()
        values = [score(cell, column).value for cell, column in zip(cells, columns, strict=True)]
        first = next((value for value in values if value is not None), None)
        return (Stored(value=first, steps=tuple(values), reason=NO_VERDICT if first is None else _PREDICTED),)


def _value(outcome: Outcome, name: str) -> float | None:
    if outcome.reasons[0] == _PREDICTED:
        return outcome.steps[0][ATTRIBUTES.index(name)]
    return outcome.values[0]


def _mean(rates: Sequence[Measure]) -> Measure:
    """The plain mean; unknown where one of them is.  It has no bounds: those of its parts are beside it."""
    known = [one.interval.value for one in rates if one.interval.value is not None]
    mean = sum(known) / len(known) if len(known) == len(rates) else None
    n = max(one.interval.n for one in rates)
    return replace(rates[0], part="mean of attributes", interval=Interval(value=mean, n=n))


def _rating(value: Any, name: str) -> float:
    number = score(value, name).value
    if number is None or not LOW <= number <= HIGH:
        raise ValueError(f"the column {name!r} holds {shown(value)}; a rating must be a number from 0 to 4")
    return number
