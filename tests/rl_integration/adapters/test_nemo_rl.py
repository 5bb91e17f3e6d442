"""NeMo RL's calls of an environment, on types of the shape its source declares (commit 7ea279ab)."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.nemo_rl import NemoRlReward
from adjudge.rl_integration.adapters.failures import NotScored


class EnvironmentReturn(NamedTuple):
    observations: Any
    metadata: Any
    next_stop_strings: Any
    rewards: Any
    terminateds: Any
    answers: Any = None


@pytest.fixture(autouse=True)
def nemo_rl(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("nemo_rl.environments.interfaces")
    module.__dict__.update(EnvironmentInterface=object, EnvironmentReturn=EnvironmentReturn)
    for name in ("nemo_rl", "nemo_rl.environments"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "nemo_rl.environments.interfaces", module)


def log(*answers: str) -> list[dict[str, Any]]:
    turns = [{"role": "user", "content": "1+1?", "token_ids": torch.tensor([1])}]
    return [*turns, *({"role": "assistant", "content": text, "token_ids": torch.tensor([2])} for text in answers)]


def test_a_batch_is_scored_and_every_episode_ends() -> None:
    environment = NemoRlReward("math", fallback=-1.0).environment()({"num_workers": 1})
    rows = [{"ground_truth": gold} for gold in ("2", "2", "\\frac{1}{")]
    found = environment.step([log("\\boxed{2}"), log("\\boxed{3}"), log("\\boxed{2}")], rows)
    assert found.rewards.tolist() == [1.0, 0.0, -1.0]
    assert found.terminateds.tolist() == [1.0, 1.0, 1.0]
    assert found.metadata == rows
    said = [turn["content"] for turn in found.observations]
    assert said == ["scored", "scored wrong", "failed gold_unparsable"]
    batch, metrics = environment.global_post_process_and_metrics({"rewards": found.rewards})
    assert metrics == {"reward": 0.0}
    assert batch["rewards"] is found.rewards


def test_the_scorer_gets_prompt_answer_and_whole_groups() -> None:
    scorer = Scripted(groupwise=True)
    NemoRlReward(scorer).environment()().step([log("1"), log("1")], [{"ground_truth": "2"}] * 2)
    (first, second) = scorer.seen
    assert first.prompt == [{"role": "user", "content": "1+1?"}]
    assert first.response == [{"role": "assistant", "content": "1"}]
    assert first.group == second.group
    NemoRlReward(scorer).environment()().step([log("1")], [{"ground_truth": "3"}])
    assert scorer.seen[-1].group != first.group, "another reference is another row"


class Image:
    def __init__(self, pixels: bytes) -> None:
        self.pixels = pixels

    def tobytes(self) -> bytes:
        return self.pixels


def test_content_may_be_parts_and_images_tell_groups_apart() -> None:
    def seen(image: Any) -> list[dict[str, Any]]:
        question = [{"type": "image", "image": image}, {"type": "text", "text": "How many?"}]
        answer = [{"type": "text", "text": "It is \\boxed{\\frac{1}{2}}"}]
        return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]

    rows = [{"ground_truth": "1/2"}] * 5
    logs = [*map(seen, (Image(b"a"), Image(b"a"), Image(b"b"), object(), object()))]
    assert NemoRlReward("math").environment()().step(logs, rows).rewards.tolist() == [1.0] * 5
    scorer = Scripted(groupwise=True)
    NemoRlReward(scorer).environment()().step(logs, rows)
    assert scorer.seen[0].prompt == [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "How many?"}]}
    ]
    first, same, other, thing, another = (sample.group for sample in scorer.seen)
    assert first == same != other
    assert thing == another, "where an object lies in memory says nothing of it"


def test_content_of_none_is_an_empty_text() -> None:
    turns = [{"role": "user", "content": None}, {"role": "assistant", "content": None}]
    assert NemoRlReward("math").environment()().step([turns], [{"ground_truth": "2"}]).rewards.tolist() == [0.0]


def test_an_answered_example_in_the_prompt_is_not_the_answer() -> None:
    def few_shot(example: str, answer: str) -> list[dict[str, Any]]:
        turns = (("user", "1+1?"), ("assistant", example), ("user", "2+0?"), ("assistant", answer))
        return [{"role": role, "content": text} for role, text in turns]

    logs = [few_shot("\\boxed{2}", "I do not know"), few_shot("\\boxed{7}", "\\boxed{2}")]
    returned = NemoRlReward("math").environment()().step(logs, [{"ground_truth": "2"}] * 2)
    assert returned.rewards.tolist() == [0.0, 1.0]


def test_without_a_fallback_the_run_hears_why() -> None:
    with pytest.raises(NotScored, match="NeMo RL wants a number for it"):
        NemoRlReward(Scripted()).environment()().step([log("fail")], [{"ground_truth": "2"}])
