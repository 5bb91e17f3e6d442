"""VerifyBench and VerifyBench-Hard (arXiv 2505.15801): does a completion reach the reference answer?

    accuracy               share of completions whose verdict is the label
    mean of answer types   plain mean of the accuracies of the four answer types, which are the parts

Not covered: prompting judges (`adjudge.judges` has the benchmark's prompts).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import Row, case_id, cluster_of, field, has, score, text, word
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.preferences.weighted_means import evenly, weighted_means
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.evals.verifying.labelled import Labelled, labelled_case, stored_verdict
from adjudge.evals.verifying.rates import ACCURACY
from adjudge.evals.verifying.truth import Truth


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
        question = text(row, "question")
        yield labelled_case(
            id=case_id(place),
            prompt=question,
            response=text(row, "completion"),
            label=Truth().of(field(row, "gold_correct")),
            reference=field(row, "answer"),
            part=word(row, self.part_column) if has(row, self.part_column) else "",
            cluster=cluster_of(question),
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
        return (
            score(value, self.verdict_column) if _is_number(value) else stored_verdict(value, Truth(), self.threshold)
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
