"""JudgeBench's published accuracies out of its own output files."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.evals.benchmarks.benchmark import BenchmarkConfig
from adjudge.evals.benchmarks.run import run_benchmark
from adjudge.evals.benchmarks.two_orders import JudgeBench


@pytest.mark.parametrize(
    ("model", "overall", "knowledge", "reasoning", "math", "coding"),
    [
        ("Ray2333_GRM-Gemma-2B-rewardmodel-ft", 59.43, 62.99, 53.06, 64.29, 54.76),
        ("Skywork_Skywork-Reward-Gemma-2-27B", 64.29, 59.74, 66.33, 83.93, 50.00),
        ("Skywork_Skywork-Reward-Llama-3.1-8B", 62.29, 59.09, 64.29, 76.79, 50.00),
        ("internlm_internlm2-20b-reward", 63.43, 62.34, 69.39, 66.07, 50.00),
        ("internlm_internlm2-7b-reward", 59.43, 56.49, 61.22, 71.43, 50.00),
    ],
)
def test_stored_decisions_give_the_published_accuracies(
    corpora: Path, model: str, overall: float, knowledge: float, reasoning: float, math: float, coding: float
) -> None:
    file = corpora / "judgebench" / f"outputs_gpt4o__reward_model__{model}.jsonl.gz"
    config = BenchmarkConfig(input=str(file), scorer="stored", resamples=200)
    result = run_benchmark(config, JudgeBench())
    found = {one.part: one.interval.known for one in result.measures if one.name == "accuracy" and one.published}
    assert {part: round(100 * value, 2) for part, value in found.items()} == {
        "": overall,
        "knowledge": knowledge,
        "reasoning": reasoning,
        "math": math,
        "coding": coding,
    }
    assert (result.counts.cases, result.counts.failed) == (350, 0)
    orders = {one.name: one.interval.known for one in result.measures if not one.part}
    assert round(350 * (1 - orders["same winner in both orders"])) == round(350 * orders["ties"]) == result.counts.tied


def test_the_longer_response_wins_where_the_reference_says(corpora: Path) -> None:
    file = corpora / "judgebench" / "dataset=judgebench,response_model=gpt-4o-2024-05-13.jsonl"
    config = BenchmarkConfig(input=str(file), scorer="{length: {unit: words}}", resamples=0)
    (first, *_) = run_benchmark(config, JudgeBench()).measures
    assert {name: round(value or 0.0, 3) for name, value in first.baselines.items()} | {"random": 0.0} == {
        "longer": 0.460,
        "shorter": 0.540,
        "more_steps": 0.437,
        "fewer_steps": 0.457,
        "first": 0.551,
        "last": 0.449,
        "random": 0.0,
    }
