"""What tools said is read and not learnt; who could not ask them has no vote; and asking them can be learnt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from examples.training.tools_lookup import learn_lookups
from tests.rl_integration.trainer.rollouts.scripted_generator import ScriptedGenerator
from tests.rl_integration.trainer.rollouts.small_tools import Doing, Lookup
from tests.rl_integration.trainer.small_runs import Digits

from adjudge.protocol import Sample, Score, response_text
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.loop.run_logger import tool_facts
from adjudge.rl_integration.trainer.rewards.groups import groups_of
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.calls import TagCalls, Toolbox
from adjudge.rl_integration.trainer.rollouts.dialogue import Dialogue
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.tool import Tool, ToolDown

TASKS = [Task(id=key, prompt=f"{key}?", reference=number) for key, number in (("ab", "17"), ("cd", "28"))]
GROUP = 4


def small_policy(seed: int = 0) -> Policy:
    return tiny_policy("abcdefghijklmnopqrstuvwxyz0123456789<>/?: ", seed=seed, width=16, layers=1, window=128)


def rollouts_of(policy: Policy, tool: Tool) -> list[Rollout]:
    """Groups whose members call the tool never, once, twice and twice."""

    def script(text: str, copy: int) -> str:
        said = text.count("<look>")
        marks = text.count("x") if said else copy  # a copy marks its first piece with its number
        if said == min(marks, 2):
            return f"it is {copy}<|end|>"
        return f"{'' if said else 'x' * copy}<look>{text[:2]}</look>"

    toolbox = Toolbox([tool], threads=2)
    style = TagCalls(policy, toolbox.tools, before="<result>", after="</result>")
    generator = ScriptedGenerator(policy=policy, script=script)
    return Dialogue(policy, generator, style, toolbox, max_turns=4, timeout=20.0).roll_out(
        TASKS,
        GROUP,
        SamplingConfig(max_new_tokens=110),
        seed=0,
        version=0,
        name="b",
        on_rollout=lambda place, one: None,
    )


VALUES = [1.0, 0.0, 0.5, 0.25, 0.0, 1.0, 1.0, 0.0]


def gradient(policy: Policy, reference: Policy, rollouts: Sequence[Rollout], beta: float) -> tuple[float, float]:
    """GRPO's loss of the policy's own tokens and the length of its gradient, from its formula: one answer at a time."""
    rewards = np.array(VALUES).reshape(2, GROUP)
    worth = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)
    losses = []
    for rollout, advantage in zip(rollouts, worth.reshape(-1), strict=True):
        ids = torch.tensor([[*rollout.prompt_ids, *rollout.ids]])
        start = len(rollout.prompt_ids)
        rows = [one.model(input_ids=ids).logits[0, start - 1 : -1].log_softmax(-1) for one in (policy, reference)]
        logp, other = (row.gather(-1, ids[0, start:, None])[:, 0] for row in rows)
        away = other.detach() - logp
        terms = -advantage * (logp - logp.detach()).exp() + beta * (away.exp() - away - 1)
        losses.append(terms[torch.from_numpy(rollout.own)].mean())
    loss = torch.stack(losses).mean()
    policy.model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    squares = [float((value.grad**2).sum()) for value in policy.model.parameters() if value.grad is not None]
    policy.model.zero_grad()
    return float(loss.detach()), float(np.sqrt(sum(squares)))


def learnt(
    rollouts: Sequence[Rollout], policy: Policy, reference: Policy, objective: ObjectiveChoice
) -> dict[str, float]:
    scores = [Score.scored(value) for value in VALUES]
    made = objective.made(max_new_tokens=110)
    learner = Learner(policy, made, LearningConfig(), temperature=1.0, steps=2, seed=0, reference=reference)
    return learner.learn(rollouts, scores)


def test_the_loss_and_its_gradient_are_those_of_the_own_tokens_alone() -> None:
    policy, reference = small_policy(), small_policy(seed=9)
    rollouts = rollouts_of(policy, Lookup())
    assert [int((~one.own).sum()) for one in rollouts] == [0, 19, 38, 38] * 2
    objective = ObjectiveChoice(set={"policy.beta": 0.1, "policy.use_bias_correction_kl": False})
    loss, length = gradient(policy, reference, rollouts, 0.1)
    found = learnt(rollouts, policy, reference, objective)
    assert found["loss"] == pytest.approx(loss, rel=1e-4)
    assert found["grad_norm"] == pytest.approx(length, rel=1e-4)
    all_own = [replace(one, own=np.ones(len(one.ids), dtype=np.bool_)) for one in rollouts]
    unmasked = learnt(all_own, small_policy(), reference, objective)
    assert abs(unmasked["loss"] - loss) > 0.01 * abs(loss)
    assert abs(unmasked["grad_norm"] - length) > 0.05 * length


def test_answers_are_compared_with_those_that_asked_as_often() -> None:
    policy = small_policy()
    rollouts = rollouts_of(policy, Lookup())
    groups = groups_of(rollouts, [Score.scored(value) for value in VALUES])
    assert groups.strata is not None
    assert groups.strata.tolist() == [0, 1, 2, 2] * 2
    found = ObjectiveChoice(name="san").made(max_new_tokens=110).advantages(groups)
    expected = []
    for rewards in (VALUES[:GROUP], VALUES[GROUP:]):
        mean, spread = np.mean(rewards), np.std(rewards, ddof=1)
        whole = (np.array(rewards) - mean) / (spread + 1e-4)
        pair = rewards[2:]
        within = (np.array(pair) - np.mean(pair)) / (np.std(pair, ddof=1) + 1e-4)
        expected += [*whole[:2], *(0.7 * within + 0.3 * whole[2:])]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("by_group", [False, True])
def test_an_answer_whose_tool_was_down_is_failed_and_nobody_is_asked_about_it(by_group: bool) -> None:
    seen: list[str] = []

    class Watched(Digits):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            seen.extend(sample.id for sample in samples)
            return [Score.scored(float("it is" in response_text(sample))) for sample in samples]

    def down(key: str) -> str:
        raise ToolDown("the index is gone")

    rollouts = rollouts_of(small_policy(), Doing(does=down))
    with Rewards(RewardConfig(scorer=Watched())) as rewards:
        rewards.by_group = by_group
        scoring = Scoring(rewards, TASKS, GROUP)
        for place, rollout in enumerate(rollouts):
            scoring.add(place, rollout)
        scores, _ = scoring.wait()
    assert [score.status for score in scores] == ["scored", "failed", "failed", "failed"] * 2
    assert {score.reason for score in scores if score.value is None} == {"engine_unavailable"}
    assert scores[1].evidence == {"error": "the index is gone"}
    assert sorted(seen) == ["b:0", "b:4"]
    assert not groups_of(rollouts, scores).counted(2).any()


def test_the_log_says_how_often_tools_were_called() -> None:
    rollouts = rollouts_of(small_policy(), Lookup(known={"ab": "17"}))
    assert tool_facts(rollouts) == {"tool_calls": 1.25, "tool_errors": 0.5, "tool_tokens": (95 + 120) / 8}
    assert tool_facts([replace(rollout, turns=()) for rollout in rollouts]) == {}


def test_dialogues_survive_being_written_down() -> None:
    tasks = {task.id: task for task in TASKS}
    for rollout in rollouts_of(small_policy(), Lookup()):
        record = json.loads(json.dumps(rollout.to_dict()))
        assert Rollout.from_dict(record, tasks).to_dict() == rollout.to_dict()


def test_a_new_policy_learns_to_ask_and_to_copy_what_it_hears(tmp_path: Path) -> None:
    lines: list[str] = []
    before, after = learn_lookups(tmp_path, seed=1, steps=12, tell=lines.append)
    assert before < 0.2
    assert after > 0.5, lines
    samples = (tmp_path / "run" / "samples.jsonl").read_text(encoding="utf-8")
    assert '\\"role\\": \\"tool\\"' in samples, "the log shows what the tool said"
