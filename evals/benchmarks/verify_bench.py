"""VerifierBench (arXiv 2508.03686): is a response right, wrong, or no valid answer at all?

    accuracy   share of responses whose verdict is one of A (right), B (wrong), C (invalid), and the label
    macro-F1   mean F1 of the three classes; F1 is that of "right" alone

A scorer says "invalid" by a value below the threshold with a reason such as no_answer, truncated or repetition.  A
scorer that never does so is not lost: `accuracy, invalid as wrong` and its F1 take B and C for one class.

VerifyBench and VerifyBench-Hard (arXiv 2505.15801): does a completion reach the reference answer?

    accuracy               share of completions whose verdict is the label
    mean of answer types   plain mean of the accuracies of the four answer types, which are the parts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, case_id, field, optional_word, score, text
from adjudge.evals.benchmarks.labels import (
    ACCURACY,
    INVALID,
    RIGHT,
    USUAL,
    WRONG,
    Labelled,
    LabelledVerdict,
    labelled_case,
    stored_verdict,
    truth_of,
)
from adjudge.evals.reports.result import Measure
from adjudge.statistics.bootstrap import evenly, weighted_means
from adjudge.statistics.confusion import confusion_intervals
from adjudge.statistics.intervals import Draws

LETTERS: Final[Mapping[str, str]] = {"a": RIGHT, "b": WRONG, "c": INVALID}
_WORDS: Final[Mapping[str, str]] = {**USUAL, **LETTERS}


@dataclass(frozen=True, kw_only=True)
class VerifierBench(Labelled):
    """VerifierBench."""

    name: ClassVar[str] = "verifier_bench"
    title: ClassVar[str] = "VerifierBench"
    source: ClassVar[str] = "arXiv 2508.03686; open-compass/CompassVerifier"
    hub: ClassVar[str] = "opencompass/VerifierBench"
    split: ClassVar[str] = "test"
    columns: ClassVar[str] = (
        "question, gold_answer, llm_response, gold_judgment (A, B, C or correct, incorrect, invalid), domain, "
        "answer_type, data_source"
    )
    published: ClassVar[tuple[str, ...]] = (ACCURACY, "macro-F1", "F1")

    part_column: str = "domain"
    """Column of the part: domain, answer_type or data_source."""

    verdict_column: str = "judgment"
    """Column of stored verdicts in the words of the labels."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Right, wrong and invalid."""
        return RIGHT, WRONG, INVALID

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row."""
        yield labelled_case(
            id=case_id(place),
            prompt=text(row, "question"),
            response=text(row, "llm_response"),
            label=truth_of(field(row, "gold_judgment"), _WORDS),
            reference=field(row, "gold_answer"),
            part=optional_word(row, self.part_column),
            stored=self._stored(row),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of three classes, then accuracy and F1 of two."""
        two = [_two(self.judged(outcome)) for outcome in outcomes]
        gold, said = [str(one.gold) for one in two], [one.said for one in two]
        clusters = [one.cluster for one in two]
        rates = confusion_intervals(gold, said, clusters, (RIGHT, WRONG), draws, positive=RIGHT)
        beside = [
            Measure(name=f"{name}, invalid as wrong", interval=rates[name]) for name in (ACCURACY, "macro-F1", "MCC")
        ]
        three = list(super().measures(outcomes, draws))
        whole = next((at for at, one in enumerate(three) if one.part), len(three))
        return [*three[:whole], *beside, *three[whole:]]

    def _stored(self, row: Row) -> Stored | None:
        if self.verdict_column not in row:
            return None
        return stored_verdict(row[self.verdict_column], self.threshold, _WORDS)


def _two(one: LabelledVerdict) -> LabelledVerdict:
    return one._replace(
        gold=WRONG if one.gold == INVALID else one.gold, said=WRONG if one.said == INVALID else one.said
    )


@dataclass(frozen=True, kw_only=True)
class VerifyBench(Labelled):
    """VerifyBench."""

    name: ClassVar[str] = "verify_bench"
    title: ClassVar[str] = "VerifyBench"
    source: ClassVar[str] = "arXiv 2505.15801; ZJU-REAL/VerifyBench"
    hub: ClassVar[str] = "ZJU-REAL/VerifyBench"
    columns: ClassVar[str] = "question, answer, completion, gold_correct, answer_type, source, completion_model"
    published: ClassVar[tuple[str, ...]] = (ACCURACY,)

    part_column: str = "answer_type"
    """Column of the part: answer_type, answer_subtype, source or completion_model."""

    verdict_column: str = "judgement"
    """Column of stored verdicts in the words of the labels, or of values."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the completion of a row."""
        yield labelled_case(
            id=case_id(place),
            prompt=text(row, "question"),
            response=text(row, "completion"),
            label=truth_of(field(row, "gold_correct")),
            reference=field(row, "answer"),
            part=optional_word(row, self.part_column),
            stored=self._stored(row),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates, and the mean accuracy of the answer types behind the accuracy of all."""
        first, *rest = super().measures(outcomes, draws)
        parts = [outcome.part for outcome in outcomes]
        names = sorted(set(parts))
        if len(names) < 2:
            return [first, *rest]
        right = [self.credit(outcome) or 0.0 for outcome in outcomes]
        clusters = [outcome.cluster for outcome in outcomes]
        (mean,) = weighted_means(right, parts, clusters, [evenly(names)], draws)
        name = f"mean of {len(names)} {self.part_column.replace('_', ' ')}s"
        return [first, Measure(name=name, interval=mean), *rest]

    def _stored(self, row: Row) -> Stored | None:
        if self.verdict_column not in row:
            return None
        value = row[self.verdict_column]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return score(value, self.verdict_column)
        return stored_verdict(value, self.threshold)
