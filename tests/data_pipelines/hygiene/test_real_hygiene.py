"""Hygiene of public corpora as they are, read through ADJUDGE_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.data_pipelines.hygiene.row_files import read

from adjudge.data_pipelines.hygiene.config import DecontaminateConfig, DedupConfig, DifficultyConfig
from adjudge.data_pipelines.hygiene.decontaminate import BenchmarkIndex, run_decontaminate
from adjudge.data_pipelines.hygiene.dedup import run_dedup
from adjudge.data_pipelines.hygiene.difficulty import run_difficulty
from adjudge.data_pipelines.hygiene.rows import SideFile

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
pytestmark = pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")


def test_the_train_half_of_gsm8k_holds_few_questions_of_its_test_half(tmp_path: Path) -> None:
    config = DecontaminateConfig(
        input=str(DATA / "gsm8k/train.jsonl"),
        output=str(tmp_path / "out.jsonl"),
        benchmark=(str(DATA / "gsm8k/test.jsonl"),),
        dropped=True,
    )
    report = run_decontaminate(config)
    # Looked at: three are problems of the test half with other names and numbers, and one shares a sentence with one.
    assert (report.rows, report.made, report.dropped) == (7473, 7469, {"in_benchmark": 4})
    shares = [row["dropped_share"] for row in read(config.dropped_output)]
    assert max(shares) < 0.7


def test_gsm8k_holds_one_near_copy(tmp_path: Path) -> None:
    config = DedupConfig(input=str(DATA / "gsm8k/train.jsonl"), output=str(tmp_path / "one.jsonl"), dropped=True)
    assert run_dedup(config).dropped == {"near_copy": 1}
    (left_out,) = read(config.dropped_output)
    assert left_out["dropped_similarity"] == pytest.approx(32 / 34)  # another name in the first word
    assert left_out["question"].startswith("Amanda received $50 as a gift.")


def test_programs_of_mbpp_are_not_those_of_humaneval_but_humaneval_is_found_in_itself(tmp_path: Path) -> None:
    humaneval = SideFile(str(DATA / "code/HumanEval.jsonl.gz"), limit=1 << 24)
    questions = [("HumanEval", number, row["prompt"]) for number, row in humaneval.rows()]
    index = BenchmarkIndex(questions, ngram=10, frame=10)
    mbpp = SideFile(str(DATA / "code/mbpp_sanitized.jsonl"), limit=1 << 24)
    hits = [number for number, row in mbpp.rows() if index.search(f"{row['prompt']}{row['canonical_solution']}")]
    assert hits == []
    found = [max((hit.share for hit in index.search(text.upper())), default=0.0) for *_, text in questions]
    assert found == [1.0] * 164


def test_the_passes_of_real_candidates_add_up(tmp_path: Path) -> None:
    rows = [row for _, row in SideFile(str(DATA / "code/humaneval_candidates.jsonl.gz"), limit=1 << 24).rows()]
    assert {"task_id", "label"} <= rows[0].keys()
    scores = tmp_path / "scores.jsonl"
    scores.write_text(
        "".join(f'{{"task": "{row["task_id"]}", "score": {int(row["label"] == "pass")}}}\n' for row in rows)
    )
    config = DifficultyConfig(
        input=str(scores), output=str(tmp_path / "out.jsonl"), group_column="task", one_per_prompt=True
    )
    report = run_difficulty(config)
    found = read(config.output)
    assert report.made == 164
    passes = sum(row["label"] == "pass" for row in rows)
    assert sum(row["pass_rate"] * row["pass_n"] for row in found) == pytest.approx(passes)
