"""Any file of responses with ratings: FeedbackBench, BiGGen-Bench, MT-Bench in Prometheus's form, or one's own.

    adjudge eval ratings FILE --scorer judge.yaml --rating-column human_score

What the numbers are stands in `adjudge.evals.ratings.rated`.  A rating that is a list (several people, several runs of
a judge) is its mean.  A row without a rating is no part of it.

Prometheus turns ratings into pairs and rates again where two are equal, until they differ; here nothing is asked again,
so a tie is wrong in `pairs in order` and half a point in `pairs, ties as half`, which is what a fair coin would get.

Not covered: labels without an order (`adjudge.evals.verifying`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import (
    Row,
    asked_and_said,
    case_id,
    cluster_of,
    field,
    first_of,
    has,
    named,
    score,
    shown,
    word,
)
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.ratings.rated import Rated, rating_measures, unread_ratings
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.io.columns import GUESSES
from adjudge.io.values import reference_of
from adjudge.protocol import Sample

_SECTION: Final = re.compile(r"^###\s*([^\n:]+):[ \t]*\n?", re.MULTILINE)
_INSTRUCTION: Final = "the instruction to evaluate"
_RESPONSE: Final = "response to evaluate"
_REFERENCE: Final = "reference answer"
_RUBRIC: Final = "score rubric"
_LEVELS: Final = ("1", "2", "3", "4", "5")


class Asked(NamedTuple):
    """What such a text asks about.

    Attributes:
        instruction: the prompt.
        response: to be rated.
        reference: an answer that gets the best rating; "" if there is none.
        rubric: what the ratings mean.
    """

    instruction: str
    response: str
    reference: str
    rubric: str


def taken_apart(text: str) -> Asked | None:
    """Return the parts of a text in Prometheus's form; None where it is something else.

    The first heading of each name counts before the response, and the last one behind it, so that a response may hold
    headings of its own.
    """
    found = [(match.group(1).strip().casefold(), match.start(), match.end()) for match in _SECTION.finditer(text)]
    opening = _first(found, _INSTRUCTION)
    answered = _first(found, _RESPONSE)
    rubric = _last(found, _RUBRIC)
    if opening is None or answered is None or rubric is None or not opening[2] <= answered[1] < rubric[1]:
        return None
    reference = _last([one for one in found if answered[2] <= one[1] < rubric[1]], _REFERENCE)
    behind = [one for one in found if one[1] > rubric[1]]
    end = behind[-1][1] if behind else len(text)
    return Asked(
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


def _first(found: list[tuple[str, int, int]], name: str) -> tuple[str, int, int] | None:
    return next((one for one in found if one[0].startswith(name)), None)


def _last(found: list[tuple[str, int, int]], name: str) -> tuple[str, int, int] | None:
    return next((one for one in reversed(found) if one[0].startswith(name)), None)


_RATINGS: Final = ("rating", "human_score", "human_scores", "gpt4_score", "orig_score", "score")
_PROMPTS: Final = ("prompt", "orig_instruction", "input", *GUESSES["prompt"])
_RESPONSES: Final = ("response", "orig_response", *GUESSES["response"])
_REFERENCES: Final = ("reference_answer", "orig_reference_answer", *GUESSES["reference"])
_RUBRICS: Final = ("rubric", "score_rubric", "orig_criteria")
_PARTS: Final = ("category", "capability", "language")
_WHOLE: Final = "instruction"
_PUBLISHED: Final = ("Pearson", "Spearman", "Kendall")


@dataclass(frozen=True, kw_only=True)
class Ratings(Benchmark):
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
    score. Of every column: a.b.c reaches into nested objects, a.0 into lists."""

    prompt_column: str = ""
    """Column of the prompt; "" tries the usual names."""

    response_column: str = ""
    """Column of the response."""

    part_column: str = ""
    """Column of the subset that a row counts in; "" tries category, capability and
    language."""

    cluster_column: str = ""
    """Column that rows of one prompt share; without one, the prompt."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    score_column: str = ""
    """Column of stored scores."""

    same_scale: bool = False
    """Whether the scorer's numbers are on the scale of the ratings."""

    low: float = 1.0
    """The lowest rating there is."""

    high: float = 5.0
    """The highest one."""

    def __post_init__(self) -> None:
        """Reject scales without a length."""
        if not -1e300 < self.low < self.high < 1e300:
            raise ValueError(f"ratings go from {self.low!r} to {self.high!r}; the highest must lie above the lowest")

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row; nothing where it has no rating."""
        column = self.rating_column or first_of(row, _RATINGS) or next((name for name in _RATINGS if name in row), None)
        column = named(row, column or "", _RATINGS, "rating")
        if not has(row, column):
            if column in row or "." in column:
                return
            field(row, column)
        sample = self._sample(row)
        part = self.part_column or first_of(row, _PARTS)
        cluster = word(row, self.cluster_column) if self.cluster_column else ""
        yield Case(
            id=word(row, self.id_column) if self.id_column else case_id(place),
            samples=(sample,),
            gold={"rating": self._rating(field(row, column), column)},
            cluster=cluster or (cluster_of(sample.prompt) if sample.prompt else ""),
            part=word(row, part) if part else "",
            stored=self._stored(row),
            texts=bool(sample.response) or not self.score_column,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of all responses, and of each part."""
        rows = [self._rated(outcome) for outcome in outcomes]
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

    def _rated(self, outcome: Outcome) -> Rated:
        return Rated(outcome.gold["rating"], outcome.values[0], outcome.part, outcome.cluster)

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
        prompt = self.prompt_column or first_of(row, _PROMPTS)
        response = self.response_column or first_of(row, _RESPONSES)
        reference, rubric = first_of(row, _REFERENCES), first_of(row, _RUBRICS)
        if not self.score_column:
            response = named(row, response or "", _RESPONSES, "response")
        question, said = asked_and_said(row, prompt, response)
        return Sample(
            prompt=question,
            response=said,
            reference=reference_of(field(row, reference)) if reference else None,
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

    def _stored(self, row: Row) -> tuple[Stored, ...]:
        if not self.score_column:
            return ()
        return (score(field(row, self.score_column) if has(row, self.score_column) else None, self.score_column),)


def _rubric(row: Row, column: str) -> Any:
    if column != "orig_criteria":
        return as_rubric(field(row, column))
    levels = {f"score{level}_description": row.get(f"orig_score{level}_description") for level in range(1, 6)}
    return as_rubric({"criteria": field(row, column), **levels})


def _number(value: Any, column: str) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"the column {column!r} holds {shown(value)}; a rating must be a finite number")
    return float(value)
