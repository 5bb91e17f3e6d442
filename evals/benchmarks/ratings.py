"""Scores against ratings: the rates of rated responses, and any file of them.

One rated response with a scorer's number, and the rates of many.

    Pearson, Spearman, Kendall (tau-b)   of numbers and ratings, over the responses with a number
    pairs in order                       of two responses to one prompt with different ratings, the share of pairs whose
                                         better response has the higher number; a tie or a missing number is wrong
    pairs, ties as half                  the same with half a point for a tie
    tied pairs                           share of these pairs with equal numbers
    MSE, MAE, R2, same rating            where numbers are on the scale of the ratings; R2 is 1 - MSE / variance, and
                                         "same rating" the share whose number rounds to the rating; none does not
    no verdict                           share of responses without a number

A correlation says nothing about responses without a number, so it must be read beside how many those are.

Any file of responses with ratings: FeedbackBench, BiGGen-Bench, MT-Bench in Prometheus's form, or one's own.

    adjudge eval ratings FILE --scorer judge.yaml --rating-column human_score

A rating that is a list (several people, several runs of a judge) is its mean.  A row without a rating is not part of
it.

Prometheus turns ratings into pairs and rates again where two are equal, until they differ; here nothing is asked again,
so a tie is wrong in `pairs in order` and half a point in `pairs, ties as half`, which is what a fair coin would get.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import AnyFile, RowPlace, random_share
from adjudge.evals.benchmarks.case import Case, Outcome
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.reports.result import Measure
from adjudge.io.columns import GUESSES
from adjudge.io.values import reference_of
from adjudge.protocol import Sample
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap, share_interval, weighted_bootstrap
from adjudge.statistics.intervals import NO_DRAWS, UNKNOWN, Draws, Interval
from adjudge.statistics.ranks import kendall_of, spearman_of

PEARSON: Final = "Pearson"
SPEARMAN: Final = "Spearman"
KENDALL: Final = "Kendall"
_MAX_DRAWN: Final = 20_000  # rows of a rank correlation with bounds: each resample walks all of them
_BLOCK: Final = 1_000  # rows compared with all others at once


class Rated(NamedTuple):
    """A rated response.

    Attributes:
        rating: of people or of another judge.
        value: the scorer's number; None where it gave none.
        cluster: of responses to one prompt.
    """

    rating: float
    value: float | None
    part: str
    cluster: str


def rating_measures(rows: Sequence[Rated], draws: Draws, *, same_scale: bool, part: str = "") -> list[Measure]:
    """Return the rates of rated responses."""
    known = [row for row in rows if row.value is not None]
    clusters = [row.cluster for row in rows]
    rates = [(name, interval, "high") for name, interval in _correlations(known, draws).items()]
    rates += _pairs(rows, draws)
    if same_scale:
        rates += _distances(known, draws)
        whole = [(math.floor(row.rating + 0.5), row.value) for row in rows]  # round() takes 2.5 for 2
        same = [float(value is not None and math.floor(value + 0.5) == rating) for rating, value in whole]
        rates.append(("same rating", share_interval(same, clusters, draws), "high"))
    rates.append(("no verdict", share_interval([float(row.value is None) for row in rows], clusters, draws), "low"))
    return [Measure(name=name, part=part, interval=interval, better=better) for name, interval, better in rates]


def _correlations(known: Sequence[Rated], draws: Draws) -> dict[str, Interval]:
    if not known:
        return dict.fromkeys((PEARSON, SPEARMAN, KENDALL), UNKNOWN)
    ratings, values, clusters = _columns(known)
    ranks = (spearman_of(values, ratings), kendall_of(values, ratings))
    drawn = draws if len(known) <= _MAX_DRAWN else NO_DRAWS
    spearman, kendall = weighted_bootstrap(clusters, lambda weights: np.array([rank(weights) for rank in ranks]), drawn)
    return {PEARSON: _pearson(ratings, values, clusters, draws), SPEARMAN: spearman, KENDALL: kendall}


def _pearson(ratings: Floats, values: Floats, clusters: Sequence[str], draws: Draws) -> Interval:
    one, other = (_standard(side) for side in (values, ratings))
    if one is None or other is None:
        return Interval(value=None, n=len(ratings))

    def combine(sums: Floats) -> Floats:
        n, x, y, xx, yy, xy = sums.T
        spread = (xx - x * x / n) * (yy - y * y / n)
        correlation = (xy - x * y / n) / np.sqrt(np.where(spread > 1e-12 * n * n, spread, np.nan))
        return np.asarray(np.clip(correlation, -1, 1))[:, None]

    columns = np.column_stack([np.ones(len(one)), one, other, one * one, other * other, one * other])
    return cluster_bootstrap(clusters, columns, combine, draws)[0]


def _standard(side: Floats) -> Floats | None:
    """Return numbers with mean 0 and spread 1, which loses no digits in sums; None for a constant."""
    largest = float(np.abs(side).max())
    scaled = side / largest if largest else side
    spread = float(scaled.std())
    return (scaled - scaled.mean()) / spread if spread > 1e-12 else None


def _distances(known: Sequence[Rated], draws: Draws) -> list[tuple[str, Interval, str]]:
    if not known:
        return [("MSE", UNKNOWN, "low"), ("MAE", UNKNOWN, "low"), ("R2", UNKNOWN, "high")]
    ratings, values, clusters = _columns(known)
    errors, centred = values - ratings, ratings - ratings.mean()

    def combine(sums: Floats) -> Floats:
        n, squared, absolute, rating, rating_squared = sums.T
        variance = rating_squared - rating * rating / n
        return np.column_stack(
            [squared / n, absolute / n, 1 - squared / np.where(variance > 1e-12 * n, variance, np.nan)]
        )

    columns = np.column_stack([np.ones(len(errors)), errors**2, np.abs(errors), centred, centred**2])
    mse, mae, r2 = cluster_bootstrap(clusters, columns, combine, draws)
    return [("MSE", mse, "low"), ("MAE", mae, "low"), ("R2", r2, "high")]


def _pairs(rows: Sequence[Rated], draws: Draws) -> list[tuple[str, Interval, str]]:
    """The pairs of responses to one prompt with different ratings; nothing where there are none."""
    groups: dict[str, list[Rated]] = {}
    for row in rows:
        groups.setdefault(row.cluster, []).append(row)
    counts = {name: counted for name, own in groups.items() if len(own) > 1 and (counted := _counted(own))[0]}
    if not counts:
        return []
    table = np.array(list(counts.values()), dtype=float)
    pairs = int(table[:, 0].sum())
    ordered, half, tied = cluster_bootstrap(
        list(counts),
        table,
        lambda sums: np.column_stack([sums[:, 1], sums[:, 1] + sums[:, 2] / 2, sums[:, 2]]) / sums[:, :1],
        draws,
        counts=[pairs] * 3,
    )
    return [("pairs in order", ordered, "high"), ("pairs, ties as half", half, "high"), ("tied pairs", tied, "none")]


def _counted(own: Sequence[Rated]) -> tuple[int, int, int]:
    """Return how many pairs have different ratings, how many of these are in order, and how many tie."""
    ratings = np.array([row.rating for row in own])
    values = np.array([np.nan if row.value is None else row.value for row in own])
    pairs = right = tied = 0
    for start in range(0, len(own), _BLOCK):
        better = ratings[start : start + _BLOCK, None] > ratings[None, :]
        mine = values[start : start + _BLOCK, None]
        pairs += int(better.sum())
        right += int((better & (mine > values[None, :])).sum())
        tied += int((better & (mine == values[None, :])).sum())
    return pairs, right, tied


def _columns(known: Sequence[Rated]) -> tuple[Floats, Floats, list[str]]:
    ratings = np.array([row.rating for row in known])
    values = np.array([row.value for row in known], dtype=float)
    return ratings, values, [row.cluster for row in known]


def unread_ratings(
    outcomes: Sequence[Outcome], ratings: Sequence[float], low: float, high: float
) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of scorers that do not read; "longer" spreads lengths, if there are texts, over the scale."""
    mean = math.fsum(ratings) / len(ratings)
    sizes = [outcome.sizes[0] for outcome in outcomes]
    shortest = min(sizes)
    step = (high - low) / max(1, max(sizes) - shortest)
    said: dict[str, Callable[[Outcome], float]] = {
        "mean_rating": lambda _: mean,
        "longer": lambda one: low + step * (one.sizes[0] - shortest),
        "random": lambda one: low + (high - low) * random_share(f"{one.id}/0"),
    }
    if not any(sizes):
        del said["longer"]
    return {name: [one.with_values([by(one)]) for one in outcomes] for name, by in said.items()}


_SECTION: Final = re.compile(r"^###\s*([^\n:]+):[ \t]*\n?", re.MULTILINE)
_INSTRUCTION: Final = "the instruction to evaluate"
_RESPONSE: Final = "response to evaluate"
_REFERENCE: Final = "reference answer"
_RUBRIC: Final = "score rubric"
_LEVELS: Final = ("1", "2", "3", "4", "5")


class PrometheusText(NamedTuple):
    """What such a text asks about.

    Attributes:
        reference: an answer that gets the best rating; "" if there is none.
    """

    instruction: str
    response: str
    reference: str
    rubric: str


def taken_apart(text: str) -> PrometheusText | None:
    """Return the parts of a text in Prometheus's form; None where it is something else.

    The first heading of each name counts before the response, and the last one behind it, so that a response may hold
    headings of its own.
    """
    headings = [(match.group(1).strip().casefold(), match.start(), match.end()) for match in _SECTION.finditer(text)]
    opening = _first(headings, _INSTRUCTION)
    answered = _first(headings, _RESPONSE)
    rubric = _first(headings[::-1], _RUBRIC)
    if opening is None or answered is None or rubric is None or not opening[2] <= answered[1] < rubric[1]:
        return None
    reference = _first([one for one in headings[::-1] if answered[2] <= one[1] < rubric[1]], _REFERENCE)
    behind = [one for one in headings if one[1] > rubric[1]]
    end = behind[-1][1] if behind else len(text)
    return PrometheusText(
        instruction=text[opening[2] : answered[1]].strip(),
        response=text[answered[2] : (reference or rubric)[1]].strip(),
        reference=text[reference[2] : rubric[1]].strip() if reference else "",
        rubric=text[rubric[2] : end].strip(),
    )


def as_rubric(given: Any) -> Any:
    """Return a rubric as `extra["rubric"]` holds it: `{"criteria": .., "1": .., .. "5": ..}`, or what was given.

    BiGGen-Bench writes `score1_description`, and the Feedback Collection `orig_score1_description`, for the levels.
    """
    if not isinstance(given, Mapping) or "criteria" not in given:
        return given
    levels = {level: given.get(f"score{level}_description", given.get(level)) for level in _LEVELS}
    return {"criteria": given["criteria"], **{level: said for level, said in levels.items() if said is not None}}


def _first(headings: list[tuple[str, int, int]], name: str) -> tuple[str, int, int] | None:
    return next((one for one in headings if one[0].startswith(name)), None)


_RATINGS: Final = ("rating", "human_score", "human_scores", "gpt4_score", "orig_score", "score")
_PROMPTS: Final = ("prompt", "orig_instruction", "input", *GUESSES["prompt"])
_RESPONSES: Final = ("response", "orig_response", *GUESSES["response"])
_REFERENCES: Final = ("reference_answer", "orig_reference_answer", *GUESSES["reference"])
_RUBRICS: Final = ("rubric", "score_rubric", "orig_criteria")
_PARTS: Final = ("category", "capability", "language")
_WHOLE: Final = "instruction"
_PUBLISHED: Final = ("Pearson", "Spearman", "Kendall")


@dataclass(frozen=True, kw_only=True)
class Ratings(AnyFile):
    """Any file of responses with ratings."""

    name: ClassVar[str] = "ratings"
    title: ClassVar[str] = "Ratings"
    source: ClassVar[str] = "arXiv 2310.08491, 2405.01535 (Prometheus), 2406.05761 (BiGGen-Bench)"
    columns: ClassVar[str] = (
        "prompt, response, rating (a number, or a list of them), reference_answer, rubric; or an instruction in "
        "Prometheus's form; other names by option"
    )

    rating_column: str = ""
    """Column of the rating; "" tries rating, human_score, gpt4_score, orig_score and
    score."""

    response_column: str = ""
    """Column of the response."""

    part_column: str = ""
    """Column of the subset that a row counts in; "" tries category, capability and
    language."""

    score_column: str = ""
    """Column of stored scores."""

    same_scale: bool = False
    """Whether the scorer's numbers are on the scale of the ratings."""

    low: float = 1.0
    """The lowest rating there is."""

    high: float = 5.0
    """The highest one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -1e300 < self.low < self.high < 1e300:
            raise ValueError(f"ratings go from {self.low!r} to {self.high!r}; the highest must lie above the lowest")

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row; nothing where it has no rating."""
        column = fields.labelled_by(row, self.rating_column, _RATINGS, "rating")
        if column is None:
            return
        sample = self._sample(row)
        name, part, cluster = fields.named_case(self, row, place, sample.prompt)
        usual, stored = fields.first_of(row, _PARTS), fields.stored_column(row, self.score_column)
        yield Case(
            id=name,
            samples=(sample,),
            gold={"rating": self._rating(fields.field(row, column), column)},
            cluster=cluster,
            part=fields.word(row, usual) if usual and not self.part_column else part,
            stored=() if stored is None else (stored,),
            texts=bool(sample.response) or not self.score_column,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of all responses, and of each part."""
        rows = [Rated(outcome.gold["rating"], outcome.values[0], outcome.part, outcome.cluster) for outcome in outcomes]
        measures = rating_measures(rows, draws, same_scale=self.same_scale)
        for part in dict.fromkeys(row.part for row in rows if row.part):
            own = [row for row in rows if row.part == part]
            measures += rating_measures(own, draws, same_scale=self.same_scale, part=part)
        return [replace(one, published=one.name in _PUBLISHED) for one in measures]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 less the distance from the rating, in lengths of the scale; None without a number or a scale."""
        value = outcome.values[0]
        if value is None or not self.same_scale:
            return None
        return float(1 - min(1.0, abs(value - outcome.gold["rating"]) / (self.high - self.low)))

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return what is said without reading: the mean rating, the length, a number by chance."""
        return unread_ratings(outcomes, [outcome.gold["rating"] for outcome in outcomes], self.low, self.high)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return the rating."""
        return f"rated {outcome.gold['rating']:g}", ()

    def _sample(self, row: Row) -> Sample:
        whole = row.get(_WHOLE)
        asked = None if self.prompt_column or self.response_column or not isinstance(whole, str) else taken_apart(whole)
        if asked is not None:
            return Sample(
                prompt=asked.instruction,
                response=asked.response,
                reference=asked.reference or None,
                extra={"rubric": asked.rubric},
            )
        prompt = self.prompt_column or fields.first_of(row, _PROMPTS)
        response = self.response_column or fields.first_of(row, _RESPONSES)
        reference, rubric = fields.first_of(row, _REFERENCES), fields.first_of(row, _RUBRICS)
        if not self.score_column:
            response = fields.named(row, response or "", _RESPONSES, "response")
        question, said = fields.asked_and_said(row, prompt, response)
        return Sample(
            prompt=question,
            response=said,
            reference=reference_of(fields.field(row, reference)) if reference else None,
            extra={"rubric": _rubric(row, rubric)} if rubric else {},
        )

    def _rating(self, value: Any, column: str) -> float:
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        numbers = [_number(one, column) for one in several]
        if not numbers:
            raise ValueError(f"the column {column!r} holds {shown(value)}; it must be a number, or a list of numbers")
        mean = math.fsum(numbers) / len(numbers)
        if not self.low <= mean <= self.high:
            raise ValueError(
                f"the column {column!r} holds {shown(value)}, and ratings go from {self.low:g} to {self.high:g}; say "
                "what the scale is with --low and --high"
            )
        return mean


def _rubric(row: Row, column: str) -> Any:
    if column != "orig_criteria":
        return as_rubric(fields.field(row, column))
    levels = {f"score{level}_description": row.get(f"orig_score{level}_description") for level in range(1, 6)}
    return as_rubric({"criteria": fields.field(row, column), **levels})


def _number(value: Any, column: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float | str) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"the column {column!r} holds {shown(value)}; a rating must be a finite number")
    return number
