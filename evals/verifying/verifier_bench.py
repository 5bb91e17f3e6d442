"""VerifierBench (arXiv 2508.03686): is a response right, wrong, or no valid answer at all?

    accuracy   share of responses whose verdict is one of A (right), B (wrong), C (invalid), and the label
    macro-F1   mean F1 of the three classes; F1 is that of "right" alone

A scorer says "invalid" by a value below the threshold with a reason such as no_answer, truncated or repetition.  A
scorer that never does so is not lost: `accuracy, invalid as wrong` and its F1 take B and C for one class.

Not covered: prompting judges (`adjudge.judges` has CompassVerifier's).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import Row, case_id, field, has, text, word
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.evals.verifying.labelled import Labelled, labelled_case, stored_verdict
from adjudge.evals.verifying.rates import ACCURACY, Judged
from adjudge.evals.verifying.truth import INVALID, RIGHT, WRONG, Truth

LETTERS: Final[Mapping[str, str]] = {"a": RIGHT, "b": WRONG, "c": INVALID}
_TRUTH: Final = Truth(more=LETTERS)
_JUDGMENTS: Final = "judgment"


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

    verdict_column: str = _JUDGMENTS
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
            label=_TRUTH.of(field(row, "gold_judgment")),
            reference=field(row, "gold_answer"),
            part=word(row, self.part_column) if has(row, self.part_column) else "",
            stored=self._stored(row),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of three classes, then accuracy and F1 of two."""
        from adjudge.evals.statistics.confusion import confusion_intervals

        two = [_two(self.judged(outcome)) for outcome in outcomes]
        gold, said = [str(one.gold) for one in two], [one.said for one in two]
        found = confusion_intervals(gold, said, [one.cluster for one in two], (RIGHT, WRONG), draws, positive=RIGHT)
        beside = [
            Measure(name=f"{name}, invalid as wrong", interval=found[name]) for name in (ACCURACY, "macro-F1", "MCC")
        ]
        rates = list(super().measures(outcomes, draws))
        whole = next((at for at, one in enumerate(rates) if one.part), len(rates))
        return [*rates[:whole], *beside, *rates[whole:]]

    def _stored(self, row: Row) -> Stored | None:
        if self.verdict_column not in row:
            return None
        return stored_verdict(row[self.verdict_column], _TRUTH, self.threshold)


def _two(one: Judged) -> Judged:
    return one._replace(
        gold=WRONG if one.gold == INVALID else one.gold, said=WRONG if one.said == INVALID else one.said
    )
