"""What the policy proposes is answered in the same step, by the recipe's own run file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, text_of
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy
from tests.rl_integration.trainer.rollouts.scripted_generator import ScriptedGenerator

from adjudge.cli.main import main
from adjudge.engines.interface import Prompt, Sampling
from adjudge.engines.policy_engine import PolicyEngine
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop import run
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import SelfPlayRule
from adjudge.rl_integration.trainer.rollouts.policy import Policy


def test_a_proposal_that_passes_its_check_is_answered_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two proposers one finds what its question needs; the solver is asked with and without that."""
    monkeypatch.chdir(tmp_path)
    assert main(["recipes", "search_self_play", "--write", "start"]) == 0
    passages = [{"text": "Paris is the capital of France."}, {"text": "Weimar has a park."}]
    Path("start/passages.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages))
    chat_policy().save(Path("model"))

    solving: list[str] = []

    def propose(text: str, copy: int) -> str:
        if "answer is" not in text:
            solving.append(text)
            return f"<think>?</think><answer>{('Paris', 'Rome')[len(solving) % 2]}</answer><|im_end|>"
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
    settings = (
        "output=run",
        "model=../model",
        "rollouts.sampling.max_new_tokens=400",
        "data.held_out=0",
        "steps=1",
        "rollouts.tasks=3",
    )
    monkeypatch.chdir("start")
    told = [text for setting in settings for text in ("--set", setting)]
    assert main(["train", "policy", "run.yaml", *told]) == 0
    (step,) = [json.loads(line) for line in Path("run/steps.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = Counter(text.split("<|im_start|>user\n")[-1].split("<|im_end|>")[0] for text in solving)
    assert asked == {"Which planet is the largest?": 5, "What about Paris?": 5}
    assert step["proposed"] == pytest.approx(1 / 3)
    assert step["grad_norm"] > 0, "of the groups that one alone has a spread"


def test_proposals_need_a_column_that_says_what_a_task_is() -> None:
    with pytest.raises(ValueError, match=r"no task has the extra field 'kind'; name the column"):
        SelfPlayRule().made(chat_policy(), [Task(id="0", prompt="?")])
