from __future__ import annotations

import math
import random
import warnings
from typing import Any

import numpy as np
import pytest

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.reward_bench import SUBSETS, RewardBench2
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]


def plain_ties(rows: list[Row]) -> float:
    """The formula on arrays, with numpy's own rules for 0/0 and x/0."""
    stats: dict[str, dict[str, tuple[bool, float, float]]] = {"ref": {}, "tied": {}}
    for row in rows:
        kind, _, key = row["id"].partition(":")
        right, wrong = row["scores"][: row["num_correct"]], row["scores"][row["num_correct"] :]
        stats[kind][key] = (min(right) > max(wrong), max(right) - min(right), min(right) - max(wrong))
    accurate = {kind: np.mean([one[0] for one in found.values()]) if found else 0.0 for kind, found in stats.items()}
    both = [key for key in stats["ref"] if key in stats["tied"]]
    spread = np.array([stats["tied"][key][1] for key in both])
    tied, ref = (np.array([stats[kind][key][2] for key in both]) for kind in ("tied", "ref"))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        margin = np.nan_to_num(np.tanh(np.minimum(ref, tied) / spread - 1), nan=0.0)
        hard = np.mean(np.minimum(ref, tied) > spread)
        return float(
            0.3 * accurate["tied"]
            + 0.3 * accurate["ref"]
            + 0.2 * np.mean(tied > spread)
            + 0.2 * hard
            + 0.01 * np.mean(margin)
        )


def plain_best_of_four(row: Row) -> float:
    best = max(row["scores"])
    return 1 / row["scores"].count(best) if row["scores"][0] == best else 0.0


def rows_of(seed: int, whole_numbers: bool) -> list[Row]:
    draw = random.Random(seed)
    number = (lambda: draw.randrange(4)) if whole_numbers else (lambda: draw.gauss(0, 1))
    rows: list[Row] = [
        {"id": f"{subset}-{at}", "subset": subset, "num_correct": 1, "scores": [number() for _ in range(4)]}
        for subset in SUBSETS
        if subset != "Ties"
        for at in range(draw.randrange(5, 12))
    ]
    for key in range(12):
        shift = draw.choice([0, 0, 3])
        for kind, right in (("ref", 1), ("tied", draw.randrange(2, 5))):
            scores = [number() + shift for _ in range(right)] + [number() for _ in range(draw.randrange(1, 6))]
            rows.append({"id": f"{kind}:{key}", "subset": "Ties", "num_correct": right, "scores": scores})
    draw.shuffle(rows)
    return rows


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("whole_numbers", [True, False])
def test_the_score_is_the_plain_formula(outcomes: Any, numbers: Any, seed: int, whole_numbers: bool) -> None:
    """Whole numbers make many ties, no spread among right answers, and 0/0."""
    rows = rows_of(seed, whole_numbers)
    benchmark = RewardBench2()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), Draws(rounds=30, seed=seed)))
    expected = {"Ties": plain_ties([row for row in rows if row["subset"] == "Ties"])}
    for subset in SUBSETS[:-1]:
        own = [plain_best_of_four(row) for row in rows if row["subset"] == subset]
        expected[subset] = sum(own) / len(own)
    for subset, value in expected.items():
        assert found["score", subset] == pytest.approx(value, abs=1e-12)
    assert found["score", ""] == pytest.approx(math.fsum(expected.values()) / 6, abs=1e-12)


def ties(*rows: tuple[str, int, list[float | None]]) -> list[Row]:
    return [{"id": name, "subset": "ties", "num_correct": right, "scores": scores} for name, right, scores in rows]


@pytest.mark.parametrize(
    ("rows", "score"),
    [
        # dc = 0 and ci > 0: tanh(inf) = 1, so everything that there is
        (ties(("ref:1", 1, [5, 0]), ("tied:1", 2, [4, 4, 0])), 1.01),
        # dc = 0 and ci = 0: 0/0 counts 0, and nothing is accurate
        (ties(("ref:1", 1, [2, 2]), ("tied:1", 2, [2, 2, 2])), 0.0),
        # dc = 0 and ci < 0: tanh(-inf) = -1, the lowest score
        (ties(("ref:1", 1, [0, 2]), ("tied:1", 2, [0, 0, 2])), -0.01),
        # prompts without the other row count in accuracy alone
        (ties(("ref:1", 1, [5, 0]), ("tied:2", 2, [4, 4, 0])), 0.6),
        (ties(("ref:1", 1, [5, 0])), 0.3),
        # the spread is 1 and the gap 3: preferred, and by tanh(2)
        (ties(("ref:1", 1, [9, 0]), ("tied:1", 2, [4, 3, 0])), 1 + 0.01 * math.tanh(2)),
        # a missing score earns nothing, and costs the tie-breaker
        (ties(("ref:1", 1, [9, 0]), ("tied:1", 2, [4, None, 0])), 0.3 - 0.01),
    ],
)
def test_ties_at_the_edges(outcomes: Any, numbers: Any, rows: list[Row], score: float) -> None:
    benchmark = RewardBench2()
    assert numbers(benchmark.measures(outcomes(benchmark, rows), NO_DRAWS))["score", "Ties"] == pytest.approx(score)


def test_a_file_of_columns_is_read_as_the_rows_it_holds(outcomes: Any, numbers: Any) -> None:
    rows = [{**row, "subset": row["subset"].replace("Ties", "ties")} for row in rows_of(3, whole_numbers=True)]
    columns = {name: [row[name] for row in rows] for name in ("id", "subset", "num_correct", "scores")}
    table = {**columns, "text": [[["turn"]]] * len(rows), "results": [1.0] * len(rows), "model": "someone/reward"}
    benchmark = RewardBench2()
    one, other = (numbers(benchmark.measures(outcomes(benchmark, some), NO_DRAWS)) for some in (rows, [table]))
    assert one == other


def test_ties_do_not_change_when_scores_are_shifted_and_stretched(outcomes: Any, numbers: Any) -> None:
    rows = [row for row in rows_of(3, whole_numbers=False) if row["subset"] == "Ties"]
    moved = [{**row, "scores": [7 * score - 100 for score in row["scores"]]} for row in rows]
    benchmark = RewardBench2()
    one, other = (numbers(benchmark.measures(outcomes(benchmark, some), NO_DRAWS)) for some in (rows, moved))
    assert one["score", "Ties"] == pytest.approx(other["score", "Ties"])


def test_saying_the_same_of_everything_earns_a_quarter_of_best_of_four(outcomes: Any, numbers: Any) -> None:
    rows = [{"id": "a", "subset": "Math", "num_correct": 1, "scores": [1, 1, 1, 1]} for _ in range(5)]
    benchmark = RewardBench2()
    made = outcomes(benchmark, rows)
    assert numbers(benchmark.measures(made, NO_DRAWS))["score", "Math"] == 0.25
    assert [benchmark.credit(one) for one in made] == [0.25] * 5


def test_a_row_with_a_missing_score_is_no_verdict_and_earns_nothing(outcomes: Any, numbers: Any) -> None:
    rows = [
        {"id": "a", "subset": "Focus", "num_correct": 1, "scores": [3, 1, None, 1]},
        {"id": "b", "subset": "Focus", "num_correct": 1, "scores": [3, 1, 0, 1]},
    ]
    benchmark = RewardBench2()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert (found["score", "Focus"], found["no verdict", ""]) == (0.5, 0.5)
    assert [benchmark.credit(one) for one in made] == [None, 1.0]


def test_texts_are_read_right_ones_first(outcomes: Any) -> None:
    row = {"id": "tied:4", "subset": "Ties", "prompt": "a colour", "chosen": ["red", "blue"], "rejected": ["seven"]}
    (case,) = RewardBench2().cases(row, RowPlace(number=0))
    assert [sample.response for sample in case.samples] == ["red", "blue", "seven"]
    assert (case.gold, case.cluster, case.texts) == ({"right": [0, 1], "ties": ["tied", "4"]}, "ties:4", True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "x", "subset": "Ties", "num_correct": 1, "scores": [1, 2]}, "must be ref:NUMBER or tied:NUMBER"),
        ({"id": "tied:1", "subset": "Ties", "num_correct": 1, "scores": [1, 2]}, "a tied row has several"),
        ({"id": "x", "subset": "Chat", "num_correct": 1, "scores": [1, 2]}, "is none of RewardBench 2's"),
        ({"id": "x", "subset": "Math", "num_correct": 2, "scores": [1, 2]}, "there must be right and wrong ones"),
        ({"id": "x", "subset": "Math", "num_correct": 1, "scores": []}, "must be a list with something in it"),
        ({"id": "x", "subset": "Math", "prompt": "p", "chosen": "a", "rejected": ["b"]}, "'chosen' holds 'a'"),
        ({"id": "x", "subset": "Math", "prompt": "p", "chosen": ["a"], "rejected": []}, "'rejected' holds"),
        (
            {"id": "x", "subset": "Math", "prompt": "p", "chosen": ["a"], "rejected": ["b"], "scores": [1, 2, 3]},
            "holds 3 scores for 2 responses",
        ),
    ],
)
def test_a_row_that_does_not_fit_says_why(row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(RewardBench2().cases(row, RowPlace(number=0)))
