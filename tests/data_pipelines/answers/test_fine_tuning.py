"""From a model's answers to a model that was fine-tuned on the right ones, by the commands of the example."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest
from tests.data_pipelines.answers.test_sampling import ROWS, answers
from tests.engines.scripted import ScriptedEngine
from tests.engines.tiny_models import write_model

from adjudge.cli import main
from adjudge.data_pipelines.answers.config import SampleConfig
from adjudge.data_pipelines.answers.sampling import make_sample

sft = importlib.import_module("examples.training.sft")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the commands of the example keep."""
    monkeypatch.chdir(tmp_path)
    Path("problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    make_sample(SampleConfig(input="problems.jsonl", output="answers.jsonl", n=4), engine=ScriptedEngine(answers))
    assert main.main(["label", "answers.jsonl", "labels.jsonl", "--scorer", "math", "--keep-columns"]) == 0
    assert main.main(["data", "filter", "labels.jsonl", "kept.jsonl", "--rule", "passed", "--pass-score", "1"]) == 0
    return "kept.jsonl"


def test_right_answers_alone_become_rows_of_trl(kept: str) -> None:
    rows = [sft.turns(json.loads(line)) for line in Path(kept).read_text().splitlines()]
    assert len(rows) == 8
    assert rows[0] == {
        "prompt": [{"role": "user", "content": "1+1?"}],
        "completion": [{"role": "assistant", "content": "It is \\boxed{2}."}],
    }
    assert sft.turns({"prompt": rows[0]["prompt"], "response": "It is \\boxed{2}."}) == rows[0]
    assert sft.turns({"prompt": "1+1?", "response": rows[0]["completion"]}) == rows[0]


def test_an_answer_that_was_sampled_anew_is_the_one_that_is_learnt() -> None:
    """A row that was labelled has its answer inside; one that a model then answered again has the new one outside."""
    labelled = {"value": 0.0, "provenance": {}, "input": {"question": "1+1?", "response": "3"}}
    again = {**labelled, "response": "I do not know."}
    assert sft.turns(labelled)["completion"] == [{"role": "assistant", "content": "3"}]
    assert sft.turns(again)["completion"] == [{"role": "assistant", "content": "I do not know."}]
    assert sft.turns({**labelled, "response": None}) == sft.turns(labelled), "as datasets fills in what a row lacks"
    twice = {"value": 1.0, "provenance": {}, "input": again}
    assert sft.turns(twice) == sft.turns(again)
    assert sft.turns({"prompt": "Add.", "input": "1 and 1", "response": "2"})["prompt"][0]["content"] == "Add."


@pytest.mark.full
def test_trl_learns_the_answers(kept: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "model")
    flags = "--output_dir tuned --max_steps 30 --learning_rate 1e-2 --use_cpu --bf16 False --report_to none"
    sft.main(kept, "model", *flags.split(), "--save_strategy", "no", "--logging_steps", "1")
    losses = [float(loss) for loss in re.findall(r"'loss': '?([\d.]+)", capfd.readouterr().out)]
    assert len(losses) == 30
    assert losses[-1] < 0.5 * losses[0]
    assert (tmp_path / "tuned/model.safetensors").exists()
