"""AgentDebug's loop, by the recipe's own commands, with an agent that searches."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from examples.training import retry_rows, rollouts
from tests.engines.scripted import ScriptedEngine, key_of, text_of
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy
from tests.rl_integration.trainer.rollouts.scripted_generator import ScriptedGenerator

from adjudge.cli.main import main
from adjudge.cli.recipes import recipes
from adjudge.engines import loading
from adjudge.rl_integration.trainer.loop import run
from adjudge.rl_integration.trainer.rollouts.policy import Policy

ADVICE = "It never looked.\nplanning\ninefficient_plan\nSearch for Faust."


def test_an_agent_tries_again_with_its_tools_and_the_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The author is found at the second try, since the advice is heard; the planet never; the capital at once."""
    monkeypatch.chdir(tmp_path)
    seen: list[str] = []

    def judge(prompt: Any, index: int) -> str:
        seen.append(text_of(prompt))
        return f"{ADVICE}\nWrong {key_of(prompt)}: 1"

    monkeypatch.setattr(loading._shelf, "engine", lambda kind, config: ScriptedEngine(judge))
    assert main(["recipes", "search_r1", "--write", "RUN"]) == 0
    passages = [{"text": "Goethe wrote Faust."}, {"text": "Paris is a city."}]
    Path("RUN/passages.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages))
    chat_policy().save(Path("model"))
    asked: list[str] = []

    def say(text: str, copy: int) -> str:
        asked.append(text)
        if "capital" in text:
            return "<answer>Paris</answer><|im_end|>"
        if "Search for Faust." not in text or "planet" in text:
            return "<answer>nobody</answer><|im_end|>"
        return "<answer>Goethe</answer><|im_end|>" if "wrote Faust." in text else "<search>Faust</search>"

    def opened(policy: Policy, *_: Any) -> ScriptedGenerator:
        return ScriptedGenerator(policy=policy, script=say)

    monkeypatch.setattr(run, "open_generator", opened)
    small = (
        "model=../model",
        "reward.scorer={exact: {where: tag}}",
        "rollouts.sampling.max_new_tokens=400",
        "rollouts.num_generations=2",
        "data.held_out=0",
    )
    steps = [shlex.split(step, comments=True) for step in recipes()["agent_debug"]["steps"]]
    for program, *words in [*steps, *steps[1:3]]:
        words = [word.replace("ENGINE", "'openai:judge'") for word in words]
        if program == "adjudge":
            assert main([*words, "--overwrite"]) == 0
        else:
            script = {"rollouts": rollouts, "retry_rows": retry_rows}[Path(words[0]).stem]
            script.main(*words[1:], *(small if script is rollouts else ()))

    def rows(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]

    assert {row["task"]: row["score"] for row in rows("runs.jsonl")} == {
        "Who wrote Faust?": 1.0,
        "Which planet is the largest?": 0.0,
    }
    found, _ = (row for row in rows("runs.jsonl") if row["score"])
    assert [turn["role"] for turn in found["response"]] == ["assistant", "tool", "assistant"]
    again = [text for text in asked if ADVICE in text]
    assert all("nobody" in text for text in again), "the failed run is in view"
    assert sum("planet" in text for text in seen) == 2
    assert sum("Faust?" in text for text in seen) == 1, "what succeeded is not debugged"
