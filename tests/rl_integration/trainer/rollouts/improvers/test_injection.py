"""Answers that were written to another prompt: their probabilities, their loss and its gradient, and one update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.small_runs import TASKS, small_policy

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import Injected, PolicyLoss
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import TokenBatch
from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.loop.learning_batch import injected, with_logprobs
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import Writer


def batch(seed: int, *, helped: list[bool]) -> TokenBatch:
    draw = torch.Generator().manual_seed(seed)
    noise = [torch.randn(len(helped), 5, generator=draw, dtype=torch.float64) for _ in range(4)]
    logp = -noise[0].abs() - 0.05
    return TokenBatch(
        logp=logp,
        mask=torch.rand(len(helped), 5, generator=draw) < 0.8,
        advantages=noise[1][:, 0],
        old_logp=logp + 0.3 * noise[2],
        sampler_logp=logp + 0.3 * noise[3],
        injected=torch.tensor(helped),
    )


def sigmoid(value: float) -> float:
    return float(1 / (1 + np.exp(-value)))


@settings(max_examples=40)
@given(seed=st.integers(0, 99), gamma=st.sampled_from([0.02, 0.1, 0.5]), helped=st.lists(st.booleans(), min_size=1))
def test_the_loss_is_the_formula_for_injected_rows_and_the_usual_one_for_the_rest(
    seed: int, gamma: float, helped: list[bool]
) -> None:
    tokens = batch(seed, helped=helped[:6])
    found = PolicyLoss(injected=Injected(gamma=gamma))(tokens).loss
    assert tokens.sampler_logp is not None
    logp, old, sampler = tokens.logp.numpy(), tokens.old.numpy(), tokens.sampler_logp.numpy()
    wanted = 0.0
    for row, column in np.argwhere(tokens.mask.numpy()):
        advantage = float(tokens.advantages[row, column])
        if helped[row]:
            # p / (p + gamma) is the logistic function of log p - log gamma.
            wanted -= advantage * sigmoid(logp[row, column] - np.log(gamma))
        else:
            ratio = np.exp(logp[row, column] - old[row, column])
            surrogate = -min(ratio * advantage, float(np.clip(ratio, 0.8, 1.2)) * advantage)
            wanted += surrogate * min(np.exp(old[row, column] - sampler[row, column]), 2.0)
    assert float(found) == pytest.approx(wanted / max(1, int(tokens.mask.sum())), rel=1e-9, abs=1e-12)


def test_the_gradient_is_that_of_finite_differences_and_largest_where_p_is_gamma() -> None:
    tokens = batch(3, helped=[True, False, True])
    loss = PolicyLoss(surrogate="plain")
    leaf = tokens.logp.clone().requires_grad_()
    loss(replace(tokens, logp=leaf)).loss.backward()  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    for row, column in np.argwhere(tokens.mask.numpy()):
        step = torch.zeros_like(tokens.logp)
        step[row, column] = 1e-6
        sides = [float(loss(replace(tokens, logp=tokens.logp + sign * step)).loss) for sign in (1, -1)]
        assert float(leaf.grad[row, column]) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-9)
    chances = torch.tensor([[0.001, 0.03, 0.1, 0.3, 0.999]], dtype=torch.float64)
    leaf = chances.log().requires_grad_()
    ones = torch.ones_like(chances)
    Injected()(TokenBatch(logp=leaf, mask=ones.bool(), advantages=ones)).sum().backward()  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    assert leaf.grad[0].abs().argmax() == 2
    np.testing.assert_allclose(leaf.grad[0], -0.1 * chances[0] / (chances[0] + 0.1) ** 2)


@pytest.mark.parametrize("exploration", [0.0, 0.5, 2.0])
def test_rl_plus_weighs_by_a_mixture_and_by_what_is_unlikely(exploration: float) -> None:
    tokens = batch(5, helped=[True, True])
    leaf = tokens.logp.clone().requires_grad_()
    rule = PolicyLoss(injected=Injected(form="mixture", exploration=exploration))
    loss = rule(replace(tokens, logp=leaf)).loss
    loss.backward()  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    wanted, slopes = 0.0, np.zeros(leaf.shape)
    count = int(tokens.mask.sum())
    for row, column in np.argwhere(tokens.mask.numpy()):
        p, q = float(tokens.logp[row, column].exp()), float(tokens.old[row, column].exp())
        part = -float(tokens.advantages[row, column]) * (1 - p) ** exploration * p / (0.75 * q + 0.25) / count
        wanted += part
        slopes[row, column] = part  # of log p: the weight of what is unlikely is held
    assert float(loss.detach()) == pytest.approx(wanted)
    np.testing.assert_allclose(leaf.grad, slopes, atol=1e-12)


def test_parts_of_an_update_sum_to_the_whole() -> None:
    tokens = batch(4, helped=[True, False, False, True])
    loss = PolicyLoss()
    parts = sum(float(loss(tokens.part(slice(at, at + 1))).loss) for at in range(4))
    assert parts == pytest.approx(float(loss(tokens).loss))
    with pytest.raises(ValueError, match="injected has the shape"):
        replace(tokens, injected=torch.tensor([True]))
    with pytest.raises(ValueError, match="gamma=0"):
        Injected(gamma=0.0)


def written(policy: Policy, task: Task, count: int) -> list[Rollout]:
    return Writer(policy, TransformersGenerator(policy)).roll_out(
        [task], count, SamplingConfig(max_new_tokens=6), seed=4, version=0, name="w", on_rollout=lambda *_: None
    )


def group(policy: Policy) -> list[Rollout]:
    """Three plain answers, and one that was written to a longer prompt."""
    plain = written(policy, TASKS[1], 3)
    (help_,) = written(policy, replace(TASKS[1], prompt="1+1=9 9 9 9 "), 1)
    unknown = np.full_like(help_.logprobs, np.nan)
    return [*plain, replace(help_, task=TASKS[1], prompt_ids=plain[0].prompt_ids, logprobs=unknown, origin="refined")]


def plain_logprobs(policy: Policy, rollout: Rollout) -> Floats:
    """What the policy thinks of an answer after the prompt that the rollout has, one row at a time, without padding."""
    ids = torch.tensor([[*rollout.prompt_ids, *rollout.ids]])
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits[0, len(rollout.prompt_ids) - 1 : -1].double()
    found: Floats = logits.log_softmax(-1).gather(-1, torch.tensor(rollout.ids)[:, None])[:, 0].numpy()
    return found


def test_probabilities_are_those_after_the_prompt_that_is_learnt() -> None:
    policy = small_policy()
    rollouts = group(policy)
    (helped,) = written(policy, replace(TASKS[1], prompt="1+1=9 9 9 9 "), 1)
    assert injected(rollouts).tolist() == [False] * 3 + [True]
    asked: list[Rollout] = []

    def ask(some: Sequence[Rollout]) -> list[Floats]:
        asked.extend(some)
        return [plain_logprobs(policy, one) for one in some]

    known = with_logprobs(rollouts, ask)
    assert asked == rollouts[3:]
    assert known[:3] == rollouts[:3]
    np.testing.assert_allclose(known[3].logprobs, plain_logprobs(policy, rollouts[3]), rtol=1e-5)
    assert np.abs(known[3].logprobs - helped.logprobs).max() > 1e-3, "with the help it thought otherwise"


@pytest.mark.parametrize("ahead", [0, 1])
def test_an_update_shapes_what_was_injected_and_nothing_else(ahead: int) -> None:
    policy = small_policy()
    rollouts = group(policy)
    scores = [Score.scored(value) for value in (0.0, 0.0, 0.0, 1.0)]
    objective = ObjectiveChoice(name="dr_grpo", set={"policy.beta": 0.1}).made(max_new_tokens=6)
    reference = small_policy(seed=5)
    learner = Learner(policy, objective, LearningConfig(), temperature=1.0, steps=10, seed=0, reference=reference)
    learner.step = ahead
    advantages = [-0.25, -0.25, -0.25, 0.75]
    wanted = 0.0
    for rollout, advantage in zip(rollouts, advantages, strict=True):
        now, before = plain_logprobs(policy, rollout), plain_logprobs(reference, rollout)
        shaped = np.exp(now) / (np.exp(now) + 0.1) if rollout.origin == "refined" else np.ones_like(now)
        gap = before - now
        wanted += float((-advantage * shaped + 0.1 * (np.exp(gap) - gap - 1)).sum())
    numbers = learner.learn(rollouts, scores)
    assert numbers["loss"] == pytest.approx(wanted / (4 * 6), rel=1e-4)
    assert all(np.isfinite(value) for value in numbers.values())


def test_a_right_refinement_makes_itself_likelier_after_the_plain_prompt() -> None:
    policy = small_policy()
    rollouts = group(policy)
    before = plain_logprobs(policy, rollouts[3]).sum()
    objective = ObjectiveChoice(name="dr_grpo").made(max_new_tokens=6)
    learner = Learner(policy, objective, LearningConfig(learning_rate=1e-2), temperature=1.0, steps=10, seed=0)
    for _ in range(5):
        learner.learn(rollouts, [Score.scored(value) for value in (0.0, 0.0, 0.0, 1.0)])
    assert plain_logprobs(policy, rollouts[3]).sum() > before + 1


def test_a_rollout_without_probabilities_survives_a_checkpoint() -> None:
    rollout = group(small_policy())[3]
    again = Rollout.from_dict(rollout.to_dict(), {TASKS[1].id: TASKS[1]})
    assert np.isnan(again.logprobs).all()
    assert again.origin == "refined"


@pytest.mark.parametrize("objective", ["ppo", "dpo", "rover", "gspo", "cispo", "steer", "rloo"])
def test_other_objectives_take_injected_answers_too(objective: str) -> None:
    policy = small_policy()
    made = ObjectiveChoice(name=objective).made(max_new_tokens=6)
    learner = Learner(
        policy,
        made,
        LearningConfig(learning_rate=1e-3, epochs=1 if objective == "rover" else 2),
        temperature=1.0,
        steps=10,
        seed=0,
        reference=small_policy(seed=5) if made.needs_reference else None,
    )
    numbers = learner.learn(group(policy), [Score.scored(value) for value in (0.0, 0.5, 0.0, 1.0)])
    assert all(np.isfinite(value) for value in numbers.values()), numbers


def test_copies_say_how_often_an_answer_is_learnt_from() -> None:
    losses = {}
    for name, copies in {"all": [1, 1, 1], "some": [0, 2, 1], "none": [0, 0, 0]}.items():
        policy = small_policy()
        rollouts = written(policy, TASKS[2], 3)
        objective = ObjectiveChoice(name="reinforce", set={}).made(max_new_tokens=6)
        learner = Learner(policy, objective, LearningConfig(), temperature=1.0, steps=10, seed=0)
        worth = [plain_logprobs(policy, one).sum() for one in rollouts]
        lengths = [len(one.ids) for one in rollouts]
        advantages = np.array([1.0, 0.4, 0.1]) - 0.5  # the mean is of all three, learnt from or not
        numbers = learner.learn(rollouts, [Score.scored(value) for value in (1.0, 0.4, 0.1)], copies=copies)
        losses[name] = numbers.get("loss")
        if any(copies):
            total = sum(-n * a * w for n, a, w in zip(copies, advantages, worth, strict=True))
            tokens = sum(n * length for n, length in zip(copies, lengths, strict=True))
            assert losses[name] == pytest.approx(total / tokens, rel=1e-4)
    assert losses["none"] is None
    assert losses["all"] != losses["some"]
