"""Tool-Star's first stage, by the recipe's own commands."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from examples.training import best_conversations
from tests.engines.scripted import ScriptedEngine, text_of
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy
from tests.rl_integration.trainer.rollouts.scripted_generator import ScriptedGenerator

from adjudge.cli.main import main
from adjudge.cli.recipes import recipes
from adjudge.engines import loading
from adjudge.rl_integration.trainer.loop import run
from adjudge.rl_integration.trainer.rollouts.policy import Policy


def test_what_was_never_right_without_tools_is_tried_with_them_and_then_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without tools Paris is known; with them the author is found at once, and the sixth once a hint is heard."""
    monkeypatch.chdir(tmp_path)
    engine = ScriptedEngine(lambda prompt, index: "Paris" if "capital" in text_of(prompt) else "nobody knows")
    monkeypatch.setattr(loading._shelf, "engine", lambda kind, config: engine)
    chat_policy().save(Path("model"))

    def say(text: str, copy: int) -> str:
        if "Faust" in text:
            if "<result>" in text:
                return "<think>.</think><answer>Goethe</answer><|im_end|>"
            return "<think>.</think><search>Faust</search>"
        heard = "Check that by a search" in text
        return f"<think>.</think><answer>{'1/6' if heard else '1/5'}</answer><|im_end|>"

    def opened(policy: Policy, *_: Any) -> ScriptedGenerator:
        return ScriptedGenerator(policy=policy, script=say)

    monkeypatch.setattr(run, "open_generator", opened)
    small = ("rollouts.sampling.max_new_tokens=400", "rollouts.num_generations=2", "data.held_out=0")
    for step in recipes()["tool_star"]["steps"][:-2]:
        program, *words = shlex.split(step, comments=True)
        words = [{"ENGINE": "openai:model", "model=MODEL": "model=../model"}.get(word, word) for word in words]
        if program == "adjudge":
            assert main(words) == 0
        else:
            assert words[0] == "examples/training/best_conversations.py"
            best_conversations.main(*words[1:], *small)

    def rows(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]

    assert {row["input"]["prompt"] for row in rows("easy.jsonl")} == {"What is the capital of France?"}
    assert [row["response"] for row in rows("talks.jsonl")] == [
        "<think>.</think><search>Faust</search>",
        "<think>.</think><answer>Goethe</answer>",
    ]
    hinted = [row for row in rows("hinted.jsonl") if "third" in row["prompt"][1]["content"]]
    assert [row["response"] for row in hinted] == ["<think>.</think><answer>1/6</answer>"]
    assert hinted[0]["prompt"][-1] == {
        "role": "user",
        "content": "Check that by a search or with Python. Then answer again.",
    }
