"""What is handed to the chat template is there in every prompt of a run, or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.trainer.rollouts.chat_policy import TEMPLATE, chat_policy
from tests.rl_integration.trainer.rollouts.small_tools import Lookup
from tests.rl_integration.trainer.small_runs import small_config

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunFile
from adjudge.rl_integration.trainer.loop.policy_run import open_policy, train_policy_run
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rollouts.calls import ChatCalls
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.user import UserChoice
from adjudge.training.config_file import config_of

THOUGHT = "<think>\n\n</think>\n\n"
THINKING = (
    TEMPLATE + "{% if add_generation_prompt and enable_thinking is defined and not enable_thinking %}"
    "{{ '<think>\n\n</think>\n\n' }}{% endif %}"
)
QUIET = {"enable_thinking": False}
TASK = Task(id="a", prompt=[{"role": "user", "content": "2+2?"}])


def policy_with(given: dict[str, Any] | None) -> Policy:
    plain = chat_policy(THINKING)
    return Policy(plain.model, plain.tokenizer, name="a chat policy", chat_template_kwargs=given)


def test_prompts_are_what_the_template_writes() -> None:
    policy = policy_with(QUIET)
    expected = policy.tokenizer.apply_chat_template(
        TASK.prompt, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert policy.tokenizer.decode(policy.encode(TASK)) == expected
    assert policy.encode(TASK) == (*policy_with(None).encode(TASK), *policy.tokens.text(THOUGHT))


def test_prompts_with_tools_and_what_tools_say() -> None:
    quiet, plain = (ChatCalls(policy_with(given), [Lookup()]) for given in (QUIET, None))
    thought = policy_with(QUIET).tokens.text(THOUGHT)
    assert quiet.prompt(TASK) == (*plain.prompt(TASK), *thought)
    assert quiet.answered(["17"]) == [*plain.answered(["17"]), *thought]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"enable_thinkng": False}, r"'enable_thinkng', which the chat template of 'a chat policy' does not read"),
        ({"tools": []}, r"sets 'tools'; give rollouts\.tools"),
        ({"add_generation_prompt": False}, r"'add_generation_prompt'; the trainer says where a chat goes on"),
        ({"chat_template": TEMPLATE}, r"'chat_template'; give model\.chat_template"),
    ],
)
def test_what_changes_nothing_or_is_not_theirs_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        policy_with(given)


def test_a_run_goes_on_with_the_same_ones_alone(tmp_path: Path) -> None:
    def train(given: dict[str, Any] | None, steps: int) -> None:
        config = small_config(steps=steps, tasks=1, num_generations=2)
        Run(policy_with(given), [TASK], config, tmp_path).train(resume=True)

    train(QUIET, 1)
    with pytest.raises(
        ValueError, match=r'other options: model\.chat_template_kwargs was \{"enable_thinking": false\} and is null'
    ):
        train(None, 2)
    train(QUIET, 2)


def run_file(folder: Path, prompt: Any) -> RunFile:
    policy_with(None).save(folder / "model")
    (folder / "rows.jsonl").write_text(json.dumps({"prompt": prompt, "answer": "4"}), encoding="utf-8")
    record = {
        "model": {"name": str(folder / "model"), "chat_template_kwargs": QUIET},
        "data": {"path": str(folder / "rows.jsonl"), "held_out": 0.0},
        "output": str(folder / "run"),
        "reward": "exact",
        "rollouts": {"tasks": 1, "num_generations": 2, "sampling": {"max_new_tokens": 4}},
        "steps": 1,
    }
    return config_of(RunFile, record)


def test_a_file_hands_them_to_its_policy(tmp_path: Path) -> None:
    config = run_file(tmp_path, TASK.prompt)
    policy = open_policy(
        config.model, texts=(), folder=tmp_path / "new", seed=0, learning=LearningConfig(), processes=Processes()
    )
    assert policy.encode(TASK) == policy_with(QUIET).encode(TASK)
    assert train_policy_run(config).steps == 1


def test_a_template_that_leaves_out_system_turns_is_refused(tmp_path: Path) -> None:
    config = run_file(tmp_path, TASK.prompt)
    spoken = replace(config, data=replace(config.data, system="Be brief."), output=str(tmp_path / "spoken"))
    assert train_policy_run(spoken).steps == 1
    silent = tmp_path / "silent.jinja"
    silent.write_text(THINKING.replace("messages %}", "messages if message.role != 'system' %}"), encoding="utf-8")
    model = replace(config.model, chat_template=str(silent))
    assert train_policy_run(replace(config, model=model)).steps == 1
    with pytest.raises(ValueError, match=r"leaves out system turns \(data\.system, .*data\.template"):
        train_policy_run(replace(spoken, model=model, output=str(tmp_path / "silent")))


def test_a_file_whose_prompts_are_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"chat_template_kwargs is set, and no prompt is a chat; .*data\.chat: true"):
        train_policy_run(run_file(tmp_path, "2+2?"))


def test_what_was_measured_at_the_start_is_not_taken_for_that_of_other_prompts(tmp_path: Path) -> None:
    """A run that was killed before its first checkpoint may go on with others, and is measured anew."""
    config = run_file(tmp_path, TASK.prompt)
    (tmp_path / "held.jsonl").write_text(json.dumps({"prompt": "3+3?", "answer": "6"}), encoding="utf-8")
    data = replace(config.data, held_out_path=(str(tmp_path / "held.jsonl"),), chat=True)
    found = []
    for name, given in (("quiet", QUIET), ("again", QUIET), ("plain", {})):
        model = replace(config.model, chat_template_kwargs=given)
        train_policy_run(replace(config, model=model, data=data, output=str(tmp_path / name)))
        found.append(json.loads((tmp_path / name / "start.json").read_text(encoding="utf-8"))["of"])
    assert found[0] == found[1] != found[2]
    user = UserChoice(kind="try_again", options={"scorer": "math"}, max_turns=1)
    rollouts = replace(config.rollouts, user=user)
    train_policy_run(replace(config, data=data, rollouts=rollouts, output=str(tmp_path / "user")))
    found.append(json.loads((tmp_path / "user" / "start.json").read_text(encoding="utf-8"))["of"])
    assert len(set(found)) == 3
