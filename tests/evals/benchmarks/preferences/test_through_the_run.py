"""The benchmarks inside a run: stored scores, a scorer, rows that are not cases, and rows without texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import BenchmarkConfig
from adjudge.evals.benchmarks.pairs import Pairs
from adjudge.evals.benchmarks.reward_math import RewardMath
from adjudge.evals.benchmarks.rm_bench import RmBench
from adjudge.evals.benchmarks.run import run_benchmark
from adjudge.evals.reports.result import Result


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def accuracy(result: Result) -> float | None:
    return next(measure.interval.value for measure in result.measures if measure.name == "accuracy")


def test_a_verifier_is_evaluated_on_pairs_as_any_scorer(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n} x 2?", "chosen": f"\\boxed{{{2 * n}}}", "rejected": "\\boxed{-1}"} for n in range(12)]
    rows[3]["rejected"] = rows[3]["chosen"]
    file = written(tmp_path / "pairs.jsonl", [*rows, {"prompt": "no responses"}])
    result = run_benchmark(BenchmarkConfig(input=file, scorer="{repetition: {}}", resamples=50), Pairs())
    assert accuracy(result) == 0.0, "neither repeats itself, and a tie is wrong"
    assert (result.counts.cases, result.counts.tied, result.counts.unreadable) == (12, 12, 1)
    longer = result.measures[0].baselines["longer"]
    assert longer == pytest.approx(sum(len(r["chosen"]) > len(r["rejected"]) for r in rows) / 12)
    assert any("row 12" in note and "--label-column" not in note for note in result.notes)


def test_rows_without_texts_are_for_stored_scores_alone(tmp_path: Path) -> None:
    row = {"problem": "p", "solution_reference": ["chosen", "x"], "score": [1.0, 0.0]}
    file = written(tmp_path / "scores.jsonl", [row, {**row, "problem": "q", "score": [None, 1.0]}])
    result = run_benchmark(BenchmarkConfig(input=file, scorer="stored", resamples=0), RewardMath())
    assert accuracy(result) == 0.5
    assert result.counts.failed == 1
    with pytest.raises(ValueError, match="scores and no texts, so no scorer"):
        run_benchmark(BenchmarkConfig(input=file, scorer="{repetition: {}}"), RewardMath())
    with pytest.raises(ValueError, match="'0' comes from a row that holds scores and no texts"):
        run_benchmark(BenchmarkConfig(input=file, samples=str(tmp_path / "samples.jsonl")), RewardMath())
    assert not (tmp_path / "samples.jsonl").exists()


def test_a_folder_of_domains_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    row = {"prompt": "p", "chosen": ["a", "aa", "aaa"], "rejected": ["b", "bb", "bbb"]}
    for domain in ("chat", "safety-refuse"):
        (tmp_path / f"{domain}_filtered.json").write_text(json.dumps([row, row]), encoding="utf-8")
    config = BenchmarkConfig(input=str(tmp_path), scorer="{repetition: {}}", resamples=0)
    result = run_benchmark(config, RmBench())
    assert {measure.part for measure in result.measures} == {"", "chat", "safety"}
    hard = {measure.part: measure for measure in result.measures if measure.name == "hard"}
    easy = {measure.part: measure for measure in result.measures if measure.name == "easy"}
    assert (hard[""].baselines["longer"], easy[""].baselines["longer"]) == (0.0, 1.0)
    assert len(result.figures) == 1
