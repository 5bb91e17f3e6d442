"""Public candidates become pairs, and a reward model that is trained on them beats its baselines on other problems.

`benchmarks/data_to_models.py` has the full table.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.pairs.config import LeaksConfig, PairsConfig
from adjudge.data_pipelines.pairs.leaks import find_leaks
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.reward_models.training.report import TrainingReport
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.config_file import config_of

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
pytestmark = pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def packed(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def split(folder: Path, source: str, **options: Any) -> dict[str, str]:
    files = {part: str(folder / f"{part}.jsonl") for part in ("train", "test")}
    for part, file in files.items():
        given: Any = {"part": part, "test_share": 0.3, **options}
        build_pairs(PairsConfig(input=source, output=file, **given))
    checks = {check.name: check for check in find_leaks(LeaksConfig(train=files["train"], test=files["test"])).checks}
    assert not any(checks[name].found for name in ("prompts", "near_prompts", "pairs", "contradictions"))
    return files


def trained(folder: Path, files: Mapping[str, str]) -> TrainingReport:
    data = {"path": files["train"], "held_out_path": files["test"]}
    report = train_scalar(config_of(ScalarTraining, {"model": "ngrams", "data": data, "output": str(folder / "model")}))
    assert not report.data["bad_rows"]
    assert report.data["prompt_is_held_out"] == 0
    return report


@pytest.mark.full
def test_gsm8k_solutions_that_we_label_teach_a_reward_model(tmp_path: Path) -> None:
    labelled = str(tmp_path / "labelled.jsonl")
    run_label(
        LabelConfig(
            input=str(DATA / "gsm8k" / "model_solutions.jsonl"),
            output=labelled,
            scorer="math",
            prompt_column="question",
            response_column=tuple(f"{model}.solution" for model in MODELS),
            reference_column="ground_truth",
            keep_columns=True,
            workers=1,
        )
    )
    report = trained(tmp_path, split(tmp_path, labelled, rule="pass_fail"))
    above = report.metrics["over_longer_wins"]
    assert above.low is not None
    assert above.low > 0.05, (above, report.metrics["accuracy"])


def test_programs_with_labels_teach_a_reward_model(tmp_path: Path) -> None:
    problems = {row["task_id"]: row["prompt"] for row in packed("code/HumanEval.jsonl.gz")}
    programs = sorted(packed("code/humaneval_candidates.jsonl.gz"), key=lambda row: row["task_id"])
    source = write(tmp_path / "in.jsonl", ({"prompt": problems[row["task_id"]], **row} for row in programs))
    words = ("pass=1", "fail=0", "timeout=0")
    columns = {"response_column": "program", "score_column": "label", "group_column": "task_id"}
    files = split(tmp_path, source, rule="pass_fail", score_word=words, max_pairs=8, weights="prompt", **columns)
    report = trained(tmp_path, files)
    accuracy, above = report.metrics["accuracy"], report.metrics["over_longer_wins"]
    assert accuracy.low is not None
    assert above.low is not None
    assert accuracy.low > 0.5, accuracy
    assert above.low > 0, above


def test_designs_are_paired_by_how_far_they_came(tmp_path: Path) -> None:
    designs = {row["design"]: row["description"] for row in packed("verilog/rtllm_designs.jsonl.gz")}
    candidates = sorted(packed("verilog/rtllm_candidates.jsonl.gz"), key=lambda row: row["design"])
    status = {f"{row['design']} {row['trial']}": row["status"] for row in candidates}
    rows = ({"prompt": designs[row["design"]], "id": f"{row['design']} {row['trial']}", **row} for row in candidates)
    words = ("compile=-2", "timeout=-1", "fail=0", "pass=1")
    output = tmp_path / "pairs.jsonl"
    report = build_pairs(
        PairsConfig(
            input=write(tmp_path / "in.jsonl", rows),
            output=str(output),
            rule="all_ordered",
            response_column="source",
            score_column="status",
            score_word=words,
            group_column="design",
        )
    )
    worth = {word: float(number) for word, number in (entry.split("=") for entry in words)}
    pairs = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(pairs) == report.made > 80
    for pair in pairs:
        better, worse = status[pair["chosen_id"]], status[pair["rejected_id"]]
        assert pair["margin"] == worth[better] - worth[worse] > 0
        assert pair["chosen_id"].split()[0] == pair["rejected_id"].split()[0] == pair["group"]
    mixed = Counter(row["design"] for row in candidates if row["status"] == "pass")
    passed = {pair["group"] for pair in pairs if status[pair["chosen_id"]] == "pass"}
    assert passed == {design for design, count in mixed.items() if count < 5}
