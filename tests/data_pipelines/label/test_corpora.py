"""The label job on public corpora as they are, read through ADJUDGE_DATA."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.protocol import Sample, Score, response_text

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
pytestmark = pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
FILES = {
    "math_golds/college_math.jsonl": 1409,
    "math_responses/math_cot.jsonl": 50,
    "processbench/gsm8k.json": 400,
    "instructions/ifeval_prompts.jsonl": 541,
    "code/HumanEval.jsonl.gz": 164,
    "code/humaneval_candidates.jsonl.gz": 3280,
    "rmb/pairwise.jsonl.gz": 4848,
    "alpaca_eval/evaluators_leaderboard.csv": None,
    "alpaca_eval/leaderboard_weighted.csv": None,
}


class LastLine:
    """1 where the last line of the response is that of the reference."""

    name = "last_line"
    fingerprint = "last_line:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [
            Score.scored(float(response_text(sample).splitlines()[-1:] == sample.reference.splitlines()[-1:]))
            for sample in samples
        ]


@pytest.mark.parametrize("name", FILES)
def test_every_row_of_a_corpus_is_read(name: str) -> None:
    rows = list(open_source(str(DATA / name), limit=16 << 20).rows(Cursor()))
    assert [row.error for row in rows if row.error] == []
    assert len(rows) == (FILES[name] or len(rows)) > 0


def test_gsm8k_solutions_of_four_models_by_dotted_columns(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    config = LabelConfig(
        input=str(DATA / "gsm8k" / "model_solutions.jsonl"),
        output=str(output),
        response_column=tuple(f"{model}.solution" for model in MODELS),
        keep_columns=True,
    )
    report = run_label(config, scorer=LastLine())
    assert (report.rows, report.samples, report.failed) == (660, 2640, 0)
    for number, line in enumerate(output.read_bytes().splitlines()):
        record = json.loads(line)
        model = MODELS[number % 4]
        assert (record["row"], record["id"]) == (number // 4, f"{number // 4}/{number % 4}")
        assert record["column"] == f"{model}.solution"
        if record["value"]:
            assert record["input"][model]["is_correct"]


def test_eight_responses_of_a_row_are_eight_scores(tmp_path: Path) -> None:
    config = LabelConfig(
        input=str(DATA / "math_responses" / "math_cot.jsonl"),
        output=str(tmp_path / "out.jsonl"),
        response_column=("code",),
        reference_column="gt",
    )
    report = run_label(config, scorer=LastLine())
    assert (report.rows, report.samples, report.failed) == (50, 400, 0)
