"""The answers of a run's first step, of which nothing is learnt: those of a proposer, by the recipe's own run file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from examples.training import next_round
from tests.engines.scripted import ScriptedEngine, text_of
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy
from tests.rl_integration.trainer.rollouts.scripted_generator import ScriptedGenerator

from adjudge.cli.main import main
from adjudge.engines.interface import Prompt, Sampling
from adjudge.engines.policy_engine import PolicyEngine
from adjudge.rl_integration.trainer.loop import run
from adjudge.rl_integration.trainer.rollouts.policy import Policy


def test_tasks_that_pass_their_check_are_the_solvers_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two proposers one finds what its question needs; the solver is asked with and without that."""
    monkeypatch.chdir(tmp_path)
    assert main(["recipes", "search_self_play", "--write", "start"]) == 0
    passages = [{"text": "Paris is the capital of France."}, {"text": "Weimar has a park."}]
    Path("start/passages.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages))
    chat_policy().save(Path("model"))

    def propose(text: str, copy: int) -> str:
        about = "Paris" if "answer is Paris" in text else "Weimar"
        if "<result>" not in text:
            return f"<search>{about}</search>"
        return f"<think>A <question>?</think><question> What about {about}?</question><|im_end|>"

    def answer(prompt: Prompt, index: int) -> str:
        return f"<answer>{'Paris' if 'capital' in text_of(prompt) else 'Rome'}</answer>"

    solver = ScriptedEngine(answer)

    async def generate(self: PolicyEngine, prompts: Sequence[Prompt], sampling: Sampling) -> list[Any]:
        return await solver.generate(prompts, sampling)

    def opened(policy: Policy, *_: Any) -> ScriptedGenerator:
        return ScriptedGenerator(policy=policy, script=propose)

    monkeypatch.setattr(PolicyEngine, "generate", generate)
    monkeypatch.setattr(run, "open_generator", opened)
    next_round.main(
        "start/run.yaml", "solve.jsonl", "model=../model", "rollouts.sampling.max_new_tokens=400", "data.held_out=0"
    )
    rows = [json.loads(line) for line in Path("solve.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == [{"prompt": "What about Paris?", "reference": "Paris", "kind": "solve"}]
    assert Path.cwd() == tmp_path
    assert not list(tmp_path.glob("start/run/checkpoint-*"))
