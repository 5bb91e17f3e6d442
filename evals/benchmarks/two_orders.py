"""JudgeBench (arXiv 2410.12784): hard pairs with a right and a wrong response, judged in both orders.

    a pair is right   where a decision for the right response counts 1, one for the other -1, a tie or none 0, and the
                      sum over the two orders is above 0
    accuracy          share of right pairs, of all and of the parts knowledge, reasoning, math, coding

Read from JudgeBench (`utils/metrics.py`).  A scorer of single responses says the same in both orders.  With
`scorer: stored`, the decisions of the benchmark's own output files count.

LLMBar (arXiv 2310.07641): pairs whose worse output looks better.

A judge sees each pair in both orders.  The benchmark's number is the mean accuracy of the two orders; beside it stand
the share of pairs that are right in both, and how often the two orders name the same output.  Means over its five
subsets are plain means, as in the paper.

The published kappas were computed on codes that do not match (a verdict for the second output was coded 0, the label
for it 2), and a verdict missing in both orders counts as agreement.  They are given as "(published)", beside what the
words mean.  Order 1 shows the pair's first output first, order 2 its second.

| row | columns |
|---|---|
| of a data set | `input`, `output_1`, `output_2`, `label`; the file's name says the subset |
| of a judge's result file | the same and `results` |
| of a collection of judges | `subset`, `i`, `llm`, `strategy`, `label`, `results` |

The last of the `results` decides, as there.  Rows without texts are for stored verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import NOTHING_SAID, Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, case_of, field, has, items, shown, stem_of, text, text_of, whole, word
from adjudge.evals.benchmarks.pairs import ChoiceBenchmark, pair_measures, sides
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.confusion import kappa, ratio
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
    shares = [NOTHING_SAID, NOTHING_SAID]
    for at, judgment in enumerate(judgments):
        if not isinstance(judgment, Mapping | None):
            raise ValueError(f"a judgment is {shown(judgment)}; it must be an object with a decision")
        said = None if judgment is None else judgment.get("decision")
        if not isinstance(said, str | None):
            raise ValueError(f"a decision is {shown(said)}; it must be one of {', '.join(SHARES)}, or null")
        if said in SHARES:
            shares[at] = Stored(value=SHARES[said])
    return shares[0], shares[1]


_ORDERS: Final = ("swap = False", "swap = True")
_COLLECTION: Final = "LLMBar-"


def subset_of(file: str) -> str:
    """Return the subset that a file's name says: "LLMBar__Adversarial__Manual.json" is Adversarial-Manual."""
    return stem_of(file.rsplit("/", maxsplit=1)[-1]).replace("__", "-").removeprefix(_COLLECTION)


def _stored(row: Mapping[str, Any]) -> tuple[Stored, Stored]:
    """The share of each output where it was shown first, out of the winner that is named in each order."""
    results = field(row, "results")
    last = results[-1] if isinstance(results, list) and results else None
    if not isinstance(last, Mapping) or not all(isinstance(last.get(order), Mapping) for order in _ORDERS):
        raise ValueError(
            f"the column 'results' holds {shown(results)}; its last item must have {' and '.join(map(repr, _ORDERS))}"
        )
    winners = [last[order].get("winner") for order in _ORDERS]
    for winner in winners:
        if winner not in ("1", "2", 1, 2, None):
            raise ValueError(f"a winner in the column 'results' is {shown(winner)}; it must be '1', '2' or null")
    first, second = (
        Stored(value=None, reason="no verdict") if winner is None else Stored(value=float(str(winner) == own))
        for winner, own in zip(winners, "12", strict=True)
    )
    return first, second


ADVERSARIAL: Final = ("Adversarial-Neighbor", "Adversarial-GPTInst", "Adversarial-GPTOut", "Adversarial-Manual")
SUBSETS: Final = ("Natural", *ADVERSARIAL)

_SAID: Final = (1, 0, -1, None)
_GOLD: Final = (1, -1)
_SHAPE: Final = (len(_SAID), len(_SAID), len(_GOLD))
_NAMES: Final[Mapping[str, tuple[str, bool]]] = {  # to the end that is good, and whether the authors define it so
    "accuracy": ("high", True),
    "accuracy, order 1": ("high", True),
    "accuracy, order 2": ("high", True),
    "right in both orders": ("high", True),
    "orders agree": ("high", False),
    "kappa of orders": ("high", False),
    "label kappa, order 1": ("high", False),
    "label kappa, order 2": ("high", False),
    "ties": ("none", False),
    "no verdict": ("low", False),
    "orders agree (published)": ("high", True),
    "kappa, order 1 (published)": ("none", True),
    "kappa, order 2 (published)": ("none", True),
    "mean kappa (published)": ("none", True),
    "kappa of orders (published)": ("none", True),
}


@dataclass(frozen=True, kw_only=True)
class LlmBar(Benchmark):
    """LLMBar, with stored verdicts or any scorer.

    A missing verdict is never right.  A scorer of single outputs says the same in both orders; where its two scores are
    equal, it is right in neither, unless `ties` says so.
    """

    name: ClassVar[str] = "llm_bar"
    title: ClassVar[str] = "LLMBar"
    source: ClassVar[str] = "arXiv 2310.07641; princeton-nlp/LLMBar, LLMEvaluator/evaluate.py"
    columns: ClassVar[str] = 'input, output_1, output_2, label (1 or 2); "results" where verdicts are stored'

    judge: str = ""
    """Whose stored verdicts, where the file holds those of several judges."""

    strategy: str = ""
    """Of which prompting strategy, where it holds several."""

    ties: Literal["wrong", "by_place"] = "wrong"
    """What equal scores of single outputs are: wrong, or the win of whichever output
    is shown second, as in the published statistics of ratings."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row; none where its verdicts are another judge's or strategy's."""
        label = whole(row, "label")
        if label not in (1, 2):
            raise ValueError(f"the column 'label' holds {label}; it must be 1 or 2")
        stored, textless = "results" in row, "results" in row and "input" not in row
        subset = str(row["subset"]) if row.get("subset") else subset_of(place.file)
        judge, strategy = (str(row.get(name) or "") for name in ("llm", "strategy"))
        number = whole(row, "i") if textless else place.number
        case = case_of(
            id="/".join(filter(None, (subset, judge, strategy, str(number)))),
            prompt="" if textless else text_of(row, "input"),
            responses=2 if textless else [text_of(row, name) for name in ("output_1", "output_2")],
            gold={"label": label, "subset": subset, "judge": judge, "strategy": strategy},
            cluster=f"{subset}/{number}" if textless else "",
            part=subset if self.judge and self.strategy else " ".join(filter(None, (subset, judge, strategy))),
            stored=_stored(row) if stored else (),
            compared=stored,
        )
        return [case] if self.judge in ("", judge) and self.strategy in ("", strategy) else []

    def credit(self, outcome: Outcome) -> float | None:
        """Return half a point for each order that is right; None without a verdict in either."""
        said = self._said(outcome)
        return None if said == (None, None) else sum(one == _side(outcome) for one in said) / 2

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which output is better."""
        label = outcome.gold["label"]
        return f"output {label} is better", ["chosen" if place == label else "rejected" for place in (1, 2)]

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of all pairs, of each part, and the means over subsets where all of them are there."""
        parts: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            parts.setdefault(outcome.part, []).append(outcome)
        measures = [*self._means(outcomes, draws), *self._rates(outcomes, "", draws)]
        for part, rows in parts.items() if len(parts) > 1 else ():
            measures += self._rates(rows, part, draws)
        return measures

    def _said(self, outcome: Outcome) -> tuple[int | None, int | None]:
        said = sides(outcome)
        return (-1, 1) if self.ties == "by_place" and not outcome.compared and said == (0, 0) else said

    def _cells(self, outcomes: Sequence[Outcome], rows: int = 1, row: Sequence[int] = ()) -> Floats:
        """One-hot cells (verdict in one order, in the other, gold), for each of `rows` tables; `row` says in which."""
        columns = np.zeros((len(outcomes), rows, *_SHAPE))
        for at, outcome in enumerate(outcomes):
            one, other = (_SAID.index(said) for said in self._said(outcome))
            columns[at, row[at] if row else 0, one, other, _GOLD.index(_side(outcome))] = 1.0
        return columns.reshape(len(outcomes), -1)

    def _rates(self, outcomes: Sequence[Outcome], part: str, draws: Draws) -> list[Measure]:
        clusters = [outcome.cluster for outcome in outcomes]
        distinct = len(set(clusters))
        sought = [
            Sought(name, part, better, published, clusters=0 if "kappa" in name else distinct)
            for name, (better, published) in _NAMES.items()
        ]
        cells = self._cells(outcomes)
        return measures_of_sums(sought, clusters, cells, lambda sums: _rates_of(sums.reshape(-1, *_SHAPE)), draws)

    def _means(self, outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
        """The means over the adversarial subsets and over all five, of each judge whose verdicts are all there."""
        judges: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            judge = " ".join(filter(None, (outcome.gold["judge"], outcome.gold["strategy"])))
            judges.setdefault(judge, []).append(outcome)
        measures = []
        for judge, theirs in judges.items():
            rows = [outcome for outcome in theirs if outcome.gold["subset"] in SUBSETS]
            if {outcome.gold["subset"] for outcome in rows} < set(SUBSETS):
                continue
            counts = {
                "mean of 5 subsets": len(rows),
                "mean of 4 adversarial": sum(outcome.gold["subset"] in ADVERSARIAL for outcome in rows),
            }
            part = judge if len(judges) > 1 else ""
            measures += measures_of_sums(
                [Sought(name, part, published=True, n=count) for name, count in counts.items()],
                [outcome.cluster for outcome in rows],
                self._cells(rows, len(SUBSETS), [SUBSETS.index(outcome.gold["subset"]) for outcome in rows]),
                _means,
                draws,
            )
        return measures


def _side(outcome: Outcome) -> int:
    return 1 if outcome.gold["label"] == 1 else -1


def _means(sums: Floats) -> Floats:
    """The two means of sums of cells of each subset."""
    cells = sums.reshape(-1, len(SUBSETS), *_SHAPE)
    accuracies = np.stack([_accuracies(cells[:, at])[0] for at in range(len(SUBSETS))], axis=1)
    return np.stack([accuracies.mean(axis=1), accuracies[:, 1:].mean(axis=1)], axis=1)


def _accuracies(cells: Floats) -> tuple[Floats, ...]:
    """The mean accuracy of the orders, those of each, and the share right in both."""
    count = cells.sum(axis=(1, 2, 3))
    win, loss = _SAID.index(1), _SAID.index(-1)
    straight = ratio(cells[:, win, :, 0].sum(axis=1) + cells[:, loss, :, 1].sum(axis=1), count)
    swapped = ratio(cells[:, :, win, 0].sum(axis=1) + cells[:, :, loss, 1].sum(axis=1), count)
    return (straight + swapped) / 2, straight, swapped, ratio(cells[:, win, win, 0] + cells[:, loss, loss, 1], count)


def _rates_of(cells: Floats) -> Floats:
    """The numbers of `_NAMES`, of blocks (b, verdict in one order, in the other, gold)."""
    count = cells.sum(axis=(1, 2, 3))
    orders = cells.sum(axis=3)
    one, other = cells.sum(axis=2), cells.sum(axis=1)
    missing, tie = _SAID.index(None), _SAID.index(0)
    same = np.diagonal(orders, axis1=1, axis2=2)
    published = [kappa(_published(side)) for side in (one, other)]
    return np.stack(
        [
            *_accuracies(cells),
            ratio(same[:, :missing].sum(axis=1), count),
            kappa(orders[:, :missing, :missing]),
            kappa(_against_labels(one)),
            kappa(_against_labels(other)),
            ratio(one[:, tie].sum(axis=1) + other[:, tie].sum(axis=1), 2 * count),
            ratio(one[:, missing].sum(axis=1) + other[:, missing].sum(axis=1), 2 * count),
            ratio(same.sum(axis=1), count),
            *published,
            (published[0] + published[1]) / 2,
            kappa(_coded(orders)),
        ],
        axis=1,
    )


def _against_labels(side: Floats) -> Floats:
    """Verdicts that are there against labels, (b, 3, 3); no label is a tie."""
    judged = side[:, : _SAID.index(None)]
    return np.stack([judged[:, :, 0], np.zeros_like(judged[:, :, 0]), judged[:, :, 1]], axis=2)


def _published(side: Floats) -> Floats:
    """LLMBar's codes, (b, 3, 3): a verdict is 1 for the first output and 0 for all else, a label 1 or 2."""
    coded = np.zeros((len(side), 3, 3))
    coded[:, 1, 1:] = side[:, 0]
    coded[:, 0, 1:] = side[:, 1:].sum(axis=1)
    return coded


def _coded(orders: Floats) -> Floats:
    """The two orders in these codes, (b, 2, 2)."""
    first = np.stack([orders[:, 0], orders[:, 1:].sum(axis=1)], axis=1)
    return np.stack([first[:, :, 0], first[:, :, 1:].sum(axis=2)], axis=2)
