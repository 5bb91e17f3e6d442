"""JudgeBench (arXiv 2410.12784): hard pairs with a right and a wrong response, judged in both orders.

    a pair is right   where a decision for the right response counts 1, one for the other -1, a tie or none 0, and the
                      sum over the two orders is above 0
    accuracy          share of right pairs, of all and of the parts knowledge, reasoning, math, coding

Read from JudgeBench (`utils/metrics.py`).  A scorer of single responses says the same in both orders.  With
`scorer: stored`, the decisions of the benchmark's own output files count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import NOTHING_SAID, Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, case_of, has, items, shown, text, word
from adjudge.evals.benchmarks.pair import ChoiceBenchmark, pair_measures
from adjudge.evals.reports.result import Measure
from adjudge.statistics.intervals import Draws

LABELS: Final = {"A>B": 0, "B>A": 1}
SHARES: Final = {"A>B": 1.0, "A=B": 0.5, "B>A": 0.0}
"""What a decision gives the response that was shown first; any other word is not a verdict."""

_PARTS: Final = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}


@dataclass(frozen=True, kw_only=True)
class JudgeBench(ChoiceBenchmark):
    """JudgeBench."""

    name: ClassVar[str] = "judge_bench"
    title: ClassVar[str] = "JudgeBench"
    source: ClassVar[str] = "arXiv 2410.12784; ScalerLab/JudgeBench, utils/metrics.py"
    hub: ClassVar[str] = "ScalerLab/JudgeBench"
    split: ClassVar[str] = "gpt"
    columns: ClassVar[str] = (
        "pair_id, source, question, response_A, response_B, label (A>B or B>A); or an output file: pair_id, source, "
        "label, judgments (a decision for each order)"
    )

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row."""
        label = word(row, "label")
        if label not in LABELS:
            raise ValueError(f"the label is {shown(label)}; it must be one of {', '.join(LABELS)}")
        stored = _decisions(row) if has(row, "judgments") else ()
        bare = bool(stored) and not has(row, "response_A")
        yield case_of(
            id=word(row, "pair_id"),
            prompt="" if bare and not has(row, "question") else text(row, "question"),
            responses=2 if bare else [text(row, "response_A"), text(row, "response_B")],
            gold={"better": LABELS[label]},
            part=part_of(word(row, "source")),
            stored=stored,
            compared=bool(stored),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the accuracy, of all pairs and of each part, and the rates of the two orders."""
        return [
            replace(measure, published=measure.name == "accuracy" and measure.part in ("", *_PARTS.values()))
            for measure in pair_measures(outcomes, draws)
        ]


def part_of(source: str) -> str:
    """Return the part of a source, "livebench-math" for one; the source itself where JudgeBench has no such."""
    return next((part for start, part in _PARTS.items() if source.startswith(start)), source)


def _decisions(row: Row) -> tuple[Stored, Stored]:
    """Return each response's share, from the order that shows it first; decisions name what was shown first A."""
    judgments = items(row, "judgments")
    if len(judgments) > 2:
        raise ValueError(
            f"the column 'judgments' holds {len(judgments)} judgments; there is one for each of two orders"
        )
    shares = [_decision(judgment) for judgment in judgments]
    return shares[0], shares[1] if len(shares) == 2 else NOTHING_SAID


def _decision(judgment: Any) -> Stored:
    if judgment is None:
        return NOTHING_SAID
    if not isinstance(judgment, Mapping):
        raise ValueError(f"a judgment is {shown(judgment)}; it must be an object with a decision")
    said = judgment.get("decision")
    if said is not None and not isinstance(said, str):
        raise ValueError(f"a decision is {shown(said)}; it must be one of {', '.join(SHARES)}, or null")
    return Stored(value=SHARES[said]) if said in SHARES else NOTHING_SAID
