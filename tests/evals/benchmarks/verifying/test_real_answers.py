"""Public corpora: the shares that their labels hold, the real verifiers on them, and GPT-4's ratings of itself."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.evals.benchmarks.judging.made import numbers, run

from adjudge.evals.benchmarks.answers import Gsm8k, IfBench, IfEval, Math
from adjudge.evals.benchmarks.labels import Labels
from adjudge.evals.benchmarks.programs import Bird, HumanEval
from adjudge.evals.benchmarks.ratings import Ratings

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
pytestmark = pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")

PUBLISHED = {"6b_finetuning": 0.2168, "6b_verification": 0.3904, "175b_finetuning": 0.3472, "175b_verification": 0.5625}
"""Accuracies on all 1,319 test problems, as the authors' labels have them."""


def lines(path: str) -> list[dict[str, Any]]:
    data = (DATA / path).read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.endswith(".gz") else data).splitlines()]


def test_every_label_of_gsm8ks_model_solutions_is_the_math_verifiers() -> None:
    result = run(Gsm8k(), DATA / "gsm8k/model_solutions.jsonl", "math")
    found = numbers(result.measures)
    rows = lines("gsm8k/model_solutions.jsonl")
    assert (result.counts.cases, found["accuracy", ""]) == (4 * len(rows), 1.0)
    for model, published in PUBLISHED.items():
        share = sum(row[model]["is_correct"] for row in rows) / len(rows)
        assert found["labelled right", model] == found["called right", model] == pytest.approx(share)
        whole = len(rows) > 1300
        assert share == pytest.approx(published, abs=5e-5 if whole else 0.03)


def test_one_label_of_maths_responses_is_wrong_and_it_is_the_case_to_read() -> None:
    result = run(Math(), DATA / "math_responses/math_cot.jsonl", "math")
    assert numbers(result.measures)["accuracy", ""] == 399 / 400
    (case,) = result.worst
    assert (case.id, case.gold) == ("36:7", "labelled wrong")
    assert case.responses[0].text.rstrip(" .").endswith("\\boxed{10000}\\)")  # the answer is 10{,}000


def test_a_reward_models_stored_scores_of_the_same_responses() -> None:
    rows = lines("math_responses/math_cot.jsonl")
    found = numbers(run(Math(threshold=1.5), DATA / "math_responses/math_cot.jsonl").measures)
    labels = np.array([label for row in rows for label in row["score"]])
    values = np.array([value[0] for row in rows for value in row["pred_score"]])
    assert found["accuracy", ""] == pytest.approx(np.mean(labels == (values >= 1.5)))
    area = stats.mannwhitneyu(values[labels], values[~labels]).statistic / (labels.sum() * (~labels).sum())
    assert found["AUROC", ""] == pytest.approx(area)


def test_the_first_programs_of_humaneval_get_their_labels() -> None:
    problems = str(DATA / "code/HumanEval.jsonl.gz")
    result = run(HumanEval(problems=problems, k=(1, 10)), DATA / "code/humaneval_candidates.jsonl.gz", "code", limit=60)
    found = numbers(result.measures)
    assert found["accuracy", ""] == 1.0
    assert found["pass@10", ""] == found["pass@10 by labels", ""]


def test_levels_of_nine_models_are_those_of_their_labels() -> None:
    path = "instructions/ifeval_responses.jsonl.gz"
    rows = lines(path)
    found = numbers(
        run(
            IfEval(verdict_column="loose", prompts=str(DATA / "instructions/ifeval_prompts.jsonl")), DATA / path
        ).measures
    )
    for by, column in (("", "loose"), (" by labels", "strict")):
        for model in {row["model"] for row in rows}:
            own = [row[column] for row in rows if row["model"] == model]
            assert len(own) == 541
            assert found[f"prompt-level accuracy{by}", model] == pytest.approx(sum(map(all, own)) / 541)
            assert found[f"instruction-level accuracy{by}", model] == pytest.approx(
                np.mean([one for each in own for one in each])
            )


def test_levels_of_ifbench_are_those_of_its_own_results() -> None:
    for path in ("instructions/ifbench_strict.jsonl", "instructions/ifbench_loose.jsonl"):
        rows = lines(path)
        found = numbers(run(IfBench(prompts=str(DATA / "instructions/ifbench_prompts.jsonl")), DATA / path).measures)
        assert found["prompt-level accuracy", ""] == pytest.approx(
            np.mean([row["follow_all_instructions"] for row in rows])
        )


def test_an_llms_opinion_of_queries_against_what_they_find() -> None:
    path = "sql/ibm_eval/predictions_eval_full.jsonl"
    rows = [row["eval"] for row in lines(path) if row["eval"]["execution_accuracy"] is not None]
    agreed = np.mean([row["llm_score"] == row["execution_accuracy"] for row in rows])
    for benchmark in (
        Bird(score_column="eval.llm_score"),
        Labels(label_column="eval.execution_accuracy", score_column="eval.llm_score"),
    ):
        assert numbers(run(benchmark, DATA / path).measures)["accuracy", ""] == pytest.approx(agreed)


def test_gpt_4_rates_the_same_answers_alike() -> None:
    path = "prometheus/mt_bench_eval.jsonl.gz"
    benchmark = Ratings(rating_column="gpt4_score.0", score_column="gpt4_score.1", part_column="response_source")
    result = run(benchmark, DATA / path)
    found = numbers(result.measures)
    rows = lines(path)
    first, second = ([row["gpt4_score"][at] for row in rows] for at in (0, 1))
    assert found["Pearson", ""] == pytest.approx(stats.pearsonr(first, second).statistic)
    assert found["Spearman", ""] == pytest.approx(stats.spearmanr(first, second).statistic)
    assert found["Kendall", ""] == pytest.approx(stats.kendalltau(first, second).statistic)
    assert result.counts.cases == 320
