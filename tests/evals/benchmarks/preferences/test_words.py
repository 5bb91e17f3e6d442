"""What the worst cases say of right and wrong: words, and never the data they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.pairs import Lists, Pairs
from adjudge.evals.benchmarks.ppe import Ppe
from adjudge.evals.benchmarks.reward_bench import RewardBench, RewardBench2
from adjudge.evals.benchmarks.reward_math import RewardMath
from adjudge.evals.benchmarks.rm_bench import STYLES, Rmb, RmBench
from adjudge.evals.benchmarks.two_orders import JudgeBench

Row = dict[str, Any]

PAIR = {"prompt": "p", "chosen": "a", "rejected": "b"}
BATTLE = {"prompt": "p", "response_1": "a", "response_2": "b", "model_a": "one", "model_b": "two"}
LIST = {"conversation_input": "p", "category_path": "BoN_set/Harmlessness/S1"}


SAID: list[tuple[Benchmark, Row, str, list[str]]] = [
    (
        RewardBench(),
        {**PAIR, "subset": "hep-go"},
        "the first response is better",
        ["chosen", "rejected"],
    ),
    (
        RewardBench2(),
        {"id": "tied:1", "subset": "Ties", "prompt": "p", "chosen": ["a", "b"], "rejected": ["c"]},
        "of 3 responses, right are number 1, 2",
        ["right", "right", "wrong"],
    ),
    (
        RmBench(domain="chat"),
        {"prompt": "p", "chosen": ["a"] * 3, "rejected": ["b"] * 3},
        "each of the first three responses is better than each of the last three",
        [f"{side}, {style}" for side in ("chosen", "rejected") for style in STYLES],
    ),
    (
        Rmb(),
        {**LIST, "chosen": {"answer": "a"}, "reject": {"answer": "b"}},
        "the first response is better",
        ["chosen", "rejected"],
    ),
    (
        Rmb(),
        {**LIST, "bon_best": {"answer": "a"}, "loser_list": [{"answer": "b"}, {"answer": "c"}]},
        "of 3 responses, right is number 1",
        ["right", "wrong", "wrong"],
    ),
    (
        JudgeBench(),
        {"pair_id": "1", "source": "livebench-math", "question": "q", "response_A": "a", "response_B": "b"}
        | {"label": "B>A"},
        "the second response is better",
        ["rejected", "chosen"],
    ),
    (
        RewardMath(),
        {"problem": "p", "solution_reference": ["x", "chosen", "y"], "score": [1, 2, 3]},
        "of 3 responses, right is number 2",
        ["wrong", "right", "wrong"],
    ),
    (
        RewardMath(),
        {"problem": "p", "eval_solution_A": "a", "eval_solution_B": "b", "chosen_position": "B"},
        "the second response is better",
        ["rejected", "chosen"],
    ),
    (
        RewardMath(),
        {"problem": "p", "solution_type": "rejected", "eval_solution": "a"},
        "this solution is wrong",
        [],
    ),
    (
        Ppe(),
        {**BATTLE, "winner": "model_b"},
        "people said: the second response is better",
        ["rejected, one", "chosen, two"],
    ),
    (Ppe(), {**BATTLE, "winner": "tie"}, "people said: a tie: neither response is better", ["one", "two"]),
    (
        Ppe(),
        {"prompt": "p", "response_1": "a", "response_2": "b", "scores": [False, False]},
        "none of the 2 responses is right",
        ["wrong", "wrong"],
    ),
    (Pairs(), PAIR, "the first response is better", ["chosen", "rejected"]),
    (
        Lists(),
        {"prompt": "p", "responses": ["a", "b", "c"], "labels": [0, 1, 1]},
        "of 3 responses, right are number 2, 3",
        ["wrong", "right", "right"],
    ),
]


@pytest.mark.parametrize(("benchmark", "row", "gold", "notes"), SAID)
def test_what_is_right_is_said_in_words(
    outcomes: Any, benchmark: Benchmark, row: Row, gold: str, notes: Sequence[str]
) -> None:
    (case,) = benchmark.cases(row, RowPlace(number=0))
    values = [0.0] * len(case.samples)
    said, found = benchmark.words(outcomes(benchmark, [row], [values])[0])
    assert (said, list(found)) == (gold, list(notes))
    assert len(found) in (0, len(case.samples))
