"""Any file of lists: several responses to a prompt, of which one or some are right.

    accuracy            what picking the highest score earns; where k share it, each is picked with 1/k
    right alone on top  share of lists in which every response with the highest score is right
    reciprocal rank     mean of 1 / rank of the best right response; equal scores share the mean of their ranks

Not covered: graded lists (`adjudge eval ratings`), and how accuracy grows with n (`adjudge eval best_of_n`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.fields import (
    Row,
    asked_and_said,
    case_id,
    cluster_of,
    field,
    first_of,
    items,
    named,
    scores,
    shown,
    texts,
    word,
)
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.benchmarks.trivial import trivial_choices
from adjudge.evals.preferences.pair import list_words, pair_case, without_sizes
from adjudge.evals.preferences.ranked import list_measures, ranked
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.io.values import Text

_PROMPTS: Final = ("prompt", "question", "instruction", "query", "problem", "input")
_RESPONSES: Final = ("responses", "completions", "candidates", "outputs", "solutions", "generations")
_RIGHT: Final = ("right", "best", "correct_index", "answer_index", "best_index")
_LABELS: Final = ("labels", "correct", "is_correct")
_SCORES: Final = ("scores", "score", "rewards")


@dataclass(frozen=True, kw_only=True)
class Lists(Benchmark):
    """Any file of lists."""

    name: ClassVar[str] = "lists"
    title: ClassVar[str] = "Lists"
    source: ClassVar[str] = "lists counted as RewardBench 2 does (arXiv 2506.01937)"
    columns: ClassVar[str] = "prompt, responses, and right (a place or places, from 0) or labels (0 or 1 for each)"

    prompt_column: str = ""
    """Column of the prompt; "" tries the usual names."""

    responses_column: str = ""
    """Column of the list of responses."""

    right_column: str = ""
    """Column with the place of the right response, from 0, or a list of places."""

    labels_column: str = ""
    """Column with a list of labels: 1 or true for a right response, else 0 or
    false."""

    scores_column: str = ""
    """Column with a list of stored scores."""

    part_column: str = ""
    """Column of the subset that a list counts in."""

    cluster_column: str = ""
    """Column that lists share which depend on each other; without one, the
    prompt."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    def __post_init__(self) -> None:
        """Reject options that contradict each other."""
        if self.right_column and self.labels_column:
            raise ValueError("right_column and labels_column both say what is right; give one of them")

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the list of a row; the gold is `{"right": [places]}`."""
        responses = texts(row, named(row, self.responses_column, _RESPONSES, "responses"))
        right = self._right(row, len(responses))
        prompt_name = self.prompt_column or first_of(row, _PROMPTS)
        prompt, _ = asked_and_said(row, prompt_name, None)
        scored = self.scores_column or _scored(row, len(responses))
        yield pair_case(
            id=word(row, self.id_column) if self.id_column else case_id(place),
            prompt=prompt,
            responses=responses,
            gold={"right": right},
            part=word(row, self.part_column) if self.part_column else "",
            cluster=word(row, self.cluster_column) if self.cluster_column else self._cluster(prompt, place),
            stored=scores(row, scored, len(responses)) if scored else (),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of lists, of all and of each part."""
        return list_measures(outcomes, draws)

    def credit(self, outcome: Outcome) -> float | None:
        """Return the share of right responses among those with the highest score."""
        return ranked(outcome.values, outcome.gold["right"]).credit if outcome.judged else None

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which responses are right."""
        return list_words(len(outcome.values), outcome.gold["right"])

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return trivial scorers."""
        made = trivial_choices(outcomes)
        return made if any(any(outcome.sizes) for outcome in outcomes) else without_sizes(made)

    def _cluster(self, prompt: Text, place: RowPlace) -> str:
        return cluster_of(prompt) if prompt else case_id(place)

    def _right(self, row: Row, count: int) -> list[int]:
        places = self.right_column or (None if self.labels_column else first_of(row, _RIGHT))
        if places:
            value = field(row, places)
            found = [_place(one, places, count) for one in (value if isinstance(value, list | tuple) else [value])]
        else:
            labels = self.labels_column or first_of(row, _LABELS)
            if labels is None:
                raise ValueError(
                    "nothing says which response is right; name a column with --right-column or --labels-column"
                )
            values = items(row, labels)
            if len(values) != count:
                raise ValueError(f"the column {labels!r} holds {len(values)} labels for {count} responses")
            found = [at for at, value in enumerate(values) if _label(value, labels)]
        right = sorted(set(found))
        if not 0 < len(right) < count:
            raise ValueError(f"{len(right)} of {count} responses are right; a list needs right and wrong ones")
        return right


def _scored(row: Row, count: int) -> str | None:
    return next((name for name in _SCORES if isinstance(row.get(name), list) and len(row[name]) == count), None)


def _place(value: Any, name: str, count: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a place from 0 to {count - 1}")
    return value


def _label(value: Any, name: str) -> bool:
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise ValueError(f"the column {name!r} holds {shown(value)}; a label must be 1 or 0, true or false")
