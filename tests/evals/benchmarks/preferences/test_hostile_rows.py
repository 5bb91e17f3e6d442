"""Whatever stands in a row: it becomes cases, or a `ValueError` says what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.fields import as_text, cluster_of, score, shown, whole, word
from adjudge.evals.benchmarks.pairs import Lists, Pairs
from adjudge.evals.benchmarks.ppe import Ppe
from adjudge.evals.benchmarks.reward_bench import RewardBench, RewardBench2
from adjudge.evals.benchmarks.reward_math import RewardMath
from adjudge.evals.benchmarks.rm_bench import Rmb, RmBench
from adjudge.evals.benchmarks.two_orders import JudgeBench

BENCHMARKS: list[tuple[Benchmark, list[str]]] = [
    (RewardBench(), ["subset", "id", "prompt", "chosen", "rejected", "scores_chosen", "scores_rejected"]),
    (RewardBench2(), ["subset", "id", "prompt", "chosen", "rejected", "scores", "num_correct"]),
    (RmBench(), ["domain", "id", "prompt", "chosen", "rejected", "score_chosen", "score_rejected"]),
    (Rmb(), ["conversation_input", "category_path", "chosen", "reject", "bon_best", "loser_list", "pair_uid"]),
    (JudgeBench(), ["pair_id", "source", "label", "question", "response_A", "response_B", "judgments"]),
    (
        RewardMath(),
        ["problem", "score", "solution_reference", "chosen_position", "solution_type", "output", "problem_id"],
    ),
    (
        Ppe(),
        ["prompt", "winner", "response_1", "response_2", "scores", "sampled_conflict_pairs", "score_1", "score_2"],
    ),
    (Pairs(), ["prompt", "chosen", "rejected", "response_a", "response_b", "label", "score_a", "score_b"]),
    (Lists(), ["prompt", "responses", "right", "labels", "scores"]),
]

WORDS = st.sampled_from([
    "A>B", "A", "hep-go", "Ties", "Math", "chat", "ref:1", "tied:1", "Pairwise_set/Harmlessness/S1", "chosen", "tie",
    "human_to_GPT-4", "model_a", "", "\n\nHuman: hi\n\nAssistant: x", "\ud800", "{0}%s", "x" * 300,
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.just(10**400)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["role", "content", "answer", "decision", "step_scores", "reward"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


def read(benchmark: Benchmark, row: dict[str, Any], file: str) -> tuple[list[Case], str]:
    """The cases of a row, or what is wrong with it."""
    try:
        return list(benchmark.cases(row, RowPlace(number=3, file=file))), ""
    except ValueError as error:
        return [], str(error)


@pytest.mark.parametrize(("benchmark", "columns"), BENCHMARKS, ids=[one.name for one, _ in BENCHMARKS])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_row_is_read_or_refused_in_words(benchmark: Benchmark, columns: list[str], data: st.DataObject) -> None:
    row: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(columns), VALUES))
    cases, wrong = read(benchmark, row, data.draw(WORDS))
    assert len(wrong) < 2_000, "a huge value does not make a huge message"
    for case in cases:
        assert case.id
        assert case.samples
        assert all(sample.id == f"{case.id}/{at}" for at, sample in enumerate(case.samples))


def test_values_are_read_as_what_they_are() -> None:
    assert score(10**400, "x").reason == "not_finite"
    assert (score([0.5], "x").value, score("0.5", "x").value, score("", "x").reason) == (0.5, 0.5, "no_verdict")
    assert (whole({"n": 3.0}, "n"), word({"n": 3}, "n")) == (3, "3")
    assert as_text([{"from": "human", "value": "x"}], "x") == [{"role": "user", "content": "x"}]
    assert as_text(5, "x") == "5"
    assert cluster_of("x") != cluster_of([{"role": "user", "content": "x"}])
    assert len(shown("x" * 10_000)) < 100
    for value in (True, 1.5, "three", None, [3]):
        with pytest.raises(ValueError, match=r"whole number|is missing"):
            whole({"n": value}, "n")
