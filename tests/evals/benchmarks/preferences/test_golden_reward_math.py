"""RewardMATH's published numbers, and those of RewardBench's math-prm pairs, out of the authors' stored scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.evals.benchmarks.benchmark import BenchmarkConfig
from adjudge.evals.benchmarks.reward_math import RewardMath
from adjudge.evals.benchmarks.run import run_benchmark
from adjudge.evals.reports.result import Result


def evaluated(corpora: Path, name: str, resamples: int = 0) -> Result:
    file = corpora / "rewardmath" / f"{name}.jsonl.gz"
    return run_benchmark(BenchmarkConfig(input=str(file), scorer="stored", resamples=resamples), RewardMath())


def values(result: Result) -> dict[str, float]:
    return {one.name: one.interval.known for one in result.measures}


@pytest.mark.parametrize(
    ("name", "n", "strict", "with_ties", "shared", "mrr", "mean_rank"),
    [
        ("internlm2", 483, 37.27, 37.27, 37.27, 0.5517, 0.5517),
        ("internlm2_20b", 483, 33.95, 33.95, 33.95, 0.5196, 0.5195),
        ("ArmoRM", 483, 20.50, 21.53, 21.01, 0.4354, 0.4270),
        ("gpt4o", 485, 25.98, 51.75, 35.71, 0.6700, 0.5216),
        ("llama3_70B", 483, 0.62, 65.42, 13.20, 0.7287, 0.2632),
        ("llama3_8B", 483, 2.07, 44.72, 11.99, 0.6125, 0.2626),
    ],
)
def test_lists(
    corpora: Path, name: str, n: int, strict: float, with_ties: float, shared: float, mrr: float, mean_rank: float
) -> None:
    """The published rank gives ties the best place: llama3_70B, which is seldom alone in front, gets .73 by it."""
    result = evaluated(corpora, f"{name}_reward", resamples=200)
    found = values(result)
    assert [round(100 * found[key], 2) for key in ("accuracy", "accuracy, ties as right", "accuracy, ties shared")] == [
        strict,
        with_ties,
        shared,
    ]
    assert [round(found[key], 4) for key in ("MRR", "MRR, ties share their ranks")] == [mrr, mean_rank]
    assert result.counts.cases == n
    first = result.measures[0].interval
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.known < first.high


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Math_Shepherd_reward", {"product": 17.18, "last": 18.22, "min": 15.32, "mean": 15.11}),
        (
            "rewardbench_Math_Shepherd",
            {"product": 94.41, "min": 83.0, "mean": 81.21, "max": 68.68, "last": 65.77},
        ),
        ("rewardbench_ReasonEval_34B", {"product": 83.45, "mean": 18.34}),
    ],
)
def test_aggregates_of_steps(corpora: Path, name: str, expected: dict[str, float]) -> None:
    found = values(evaluated(corpora, name))
    assert {how: round(100 * found[f"accuracy ({how})"], 2) for how in expected} == expected
    assert found["accuracy"] == found["accuracy (min)"], "the default aggregate is the stored value"


def test_the_step_count_alone_beats_most_aggregates_where_chosen_solutions_are_short(corpora: Path) -> None:
    result = evaluated(corpora, "rewardbench_Math_Shepherd")
    assert round(100 * (result.measures[0].baselines["fewer_steps"] or 0.0), 2) == 92.84
    found = values(result)
    assert found["rank correlation with the number of steps (product)"] == pytest.approx(-0.8184, abs=5e-5)
    assert found["rank correlation with the number of steps (sum)"] == pytest.approx(0.7317, abs=5e-5)
    assert result.counts.cases == 894, "one solution in each row"
    assert result.measures[0].interval.n == 447


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("ArmoRM", 92.84),
        ("Eurus-RM", 60.85),
        ("GRM-Llama3-8B", 91.50),
        ("GRM_Gemma_2B", 93.06),
        ("Skywork-Llama-3.1-8B", 96.87),
        ("beaver", 51.45),
        ("internlm2-20b", 95.08),
        ("internlm2", 92.84),
        ("oasst-rm", 60.40),
    ],
)
def test_pairs_of_math_prm(corpora: Path, name: str, accuracy: float) -> None:
    assert round(100 * values(evaluated(corpora, f"rewardbench_{name}"))["accuracy"], 2) == accuracy


@pytest.mark.parametrize(
    ("name", "first", "unjudged"),
    [("gpt4o_pairwise", 0.530, 4), ("llama3_70B_pairwise", 0.582, 5), ("llama3_8B_pairwise", 0.597, 621)],
)
def test_pairwise_verdicts(corpora: Path, name: str, first: float, unjudged: int) -> None:
    result = evaluated(corpora, f"{name}_reward")
    found = values(result)
    assert round(found["single pairs: the first one wins"], 3) == first
    assert round(found["single pairs: no verdict"] * 4_347) == unjudged
    assert (result.counts.cases, result.counts.failed) == (4_347, 2 * unjudged)
    assert result.measures[0].interval.n == 483
