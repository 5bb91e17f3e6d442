"""Any file of responses that are labelled right or wrong.

    adjudge eval labels FILE --scorer math --label-column is_correct
    adjudge eval labels FILE --scorer stored --label-column human --score-column judge.value

The second line asks how well one column predicts another: a judge's opinion against what a program found.  A row whose
label is empty is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import Row, asked_and_said, case_id, field, first_of, has, named, score, word
from adjudge.evals.benchmarks.labelled import INVALID, RIGHT, WRONG, Labelled, Truth, labelled_case
from adjudge.io.columns import GUESSES
from adjudge.io.values import reference_of

_LABELS: Final = ("label", "is_correct", "correct", "gold_label", "passed", "gold_correct")
_SCORES: Final = ("value", "score", "reward", "prediction")


@dataclass(frozen=True, kw_only=True)
class Labels(Labelled):
    """Any file of labelled responses."""

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Labelled responses"
    source: ClassVar[str] = "rates as scikit-learn defines them"
    columns: ClassVar[str] = "prompt, response, reference, label (1 or 0, true or false, ...); other names by option"

    prompt_column: str = ""
    """Column of the prompt; "" tries the usual names. Of every column: a.b.c reaches
    into nested objects."""

    response_column: str = ""
    """Column of the response."""

    reference_column: str = ""
    """Column of what the scorer compares with."""

    label_column: str = ""
    """Column of the label; "" tries label, is_correct, correct, gold_label, passed
    and gold_correct."""

    right_label: tuple[str, ...] = ()
    """What the label says of a right response. Give it several times for several
    words; without the three, the usual words are known."""

    wrong_label: tuple[str, ...] = ()
    """What it says of a wrong one."""

    invalid_label: tuple[str, ...] = ()
    """What it says of a response that is no answer."""

    three_classes: bool = False
    """Whether no answer is a class of its own; otherwise it counts as wrong."""

    part_column: str = ""
    """Column of the subset that a row counts in."""

    cluster_column: str = ""
    """Column that rows share which depend on each other; without one, the prompt."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    score_column: str = ""
    """Column of stored scores; "" tries value, score, reward and prediction."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Two classes, or three where no answer is one."""
        return (RIGHT, WRONG, INVALID) if self.three_classes else (RIGHT, WRONG)

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row; nothing where its label is empty."""
        given = self.label_column or first_of(row, _LABELS) or next((name for name in _LABELS if name in row), None)
        given = named(row, given or "", _LABELS, "label")
        if not has(row, given):
            if given in row or "." in given:
                return
            field(row, given)
        label = Truth(right=self.right_label, wrong=self.wrong_label, invalid=self.invalid_label).of(field(row, given))
        prompt_column = self.prompt_column or first_of(row, GUESSES["prompt"])
        response_column = self.response_column or first_of(row, GUESSES["response"])
        stored = self._stored(row)
        if response_column is None and stored is None:
            named(row, "", GUESSES["response"], "response")
        prompt, response = asked_and_said(row, prompt_column, response_column)
        yield labelled_case(
            id=word(row, self.id_column) if self.id_column else case_id(place),
            prompt=prompt,
            response=response,
            label=label if label in self.classes else WRONG,
            reference=self._reference(row, given),
            part=word(row, self.part_column) if self.part_column else "",
            cluster=word(row, self.cluster_column)
            if self.cluster_column
            else ("" if prompt_column else case_id(place)),
            stored=stored,
            texts=response_column is not None,
        )

    def _reference(self, row: Row, label_column: str) -> Any:
        name = self.reference_column or first_of(row, [one for one in GUESSES["reference"] if one != label_column])
        return reference_of(field(row, name)) if name else None

    def _stored(self, row: Row) -> Stored | None:
        name = self.score_column or next((name for name in _SCORES if isinstance(row.get(name), int | float)), None)
        if name is None:
            return None
        value = field(row, name) if has(row, name) else None
        return score(float(value) if isinstance(value, bool) else value, name)
