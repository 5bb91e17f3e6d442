"""An update is that of the whole batch, however it is cut, and whatever need not be read again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.rl_integration.trainer.small_runs import TASKS, small_policy

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import Writer

GROUP = 6


def rollouts_of(policy: Policy, version: int = 0) -> list[Rollout]:
    return Writer(policy, TransformersGenerator(policy)).roll_out(
        TASKS[:5],
        GROUP,
        SamplingConfig(max_new_tokens=8),
        seed=1,
        version=version,
        name="b",
        on_rollout=lambda *_: None,
    )


def scores_of(rollouts: Sequence[Rollout]) -> list[Score]:
    """Scores with a group that is flat, one with a single judged member, and lost ones here and there."""
    scores: list[Score] = []
    for place, rollout in enumerate(rollouts):
        group, member = divmod(place, GROUP)
        lost = (group == 1 and member > 0) or place % 7 == 3
        value = 0.5 if group == 2 else sum(character.isdigit() for character in rollout.text) / 8
        scores.append(Score.failed("engine_timeout") if lost else Score.scored(value))
    return scores


def updated(objective: str, *, learning: dict[str, Any] | None = None, set: dict[str, Any] | None = None) -> Any:
    """The weights after one step, and the step's numbers."""
    policy = small_policy()
    rollouts = rollouts_of(policy)
    choice = ObjectiveChoice(name=objective, set=set or {}).made(max_new_tokens=8)
    config = LearningConfig(**{"learning_rate": 1e-2, **(learning or {})})
    reference = small_policy(seed=5) if choice.needs_reference else None
    learner = Learner(policy, choice, config, temperature=1.0, steps=10, seed=0, reference=reference)
    numbers = learner.learn(rollouts, scores_of(rollouts))
    return {name: value.detach() for name, value in policy.model.named_parameters()}, numbers


@pytest.mark.parametrize(
    "objective", ["grpo", "dr_grpo", "dapo", "gspo", "rloo", "ppo", "dpo", "opmd", "top_entropy", "steer", "ettrl"]
)
@pytest.mark.parametrize("how", [{"micro_tokens": 40}, {"micro_tokens": 60, "use_prefix_grouper": True}])
def test_cutting_a_batch_or_sharing_prompts_changes_nothing(objective: str, how: dict[str, Any]) -> None:
    whole, numbers = updated(objective)
    cut, others = updated(objective, learning=how)
    for name, value in whole.items():
        # AdamW's first step is the gradient's sign: where that is nearly 0, rounding decides.
        assert float((value - cut[name]).abs().quantile(0.99)) < 1e-4, name
    for name in numbers:
        assert numbers[name] == pytest.approx(others[name], abs=2e-4), name


def test_a_prompt_is_read_once_for_all_answers_in_a_pass() -> None:
    read = []
    for shared in (False, True):
        policy = small_policy()
        rollouts = rollouts_of(policy)
        config = LearningConfig(use_prefix_grouper=shared)
        learner = Learner(policy, ObjectiveChoice().made(max_new_tokens=8), config, temperature=1.0, steps=10, seed=0)
        tokens: list[int] = []
        policy.model.base_model.register_forward_pre_hook(
            lambda _, args, given, tokens=tokens: tokens.append(given["input_ids"].numel()), with_kwargs=True
        )
        learner.learn(rollouts, [Score.scored(place % 2) for place in range(len(rollouts))])
        read.append(sum(tokens))
    longest = max(len(rollout.prompt_ids) for rollout in rollouts)
    assert read[0] - read[1] == 5 * (GROUP - 1) * longest


def test_answers_without_a_gradient_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    plain = Policy.logprobs

    def counted(self: Policy, rows: Any, **options: Any) -> Any:
        read.append(len(rows.own))
        return plain(self, rows, **options)

    monkeypatch.setattr(Policy, "logprobs", counted)
    skipping, numbers = updated("grpo")
    seen = sum(read)
    read.clear()
    # A divergence of weight 1e-12 changes no float32, and makes every answer count.
    every, _ = updated("grpo", set={"policy.beta": 1e-12})
    assert seen < GROUP * 3 <= sum(read) - 5 * GROUP, "the reference policy reads them all, too"
    for name, value in skipping.items():
        assert float((value - every[name]).abs().quantile(0.99)) < 1e-4, name
    assert numbers["trained"] == pytest.approx(seen / (5 * GROUP))


@pytest.mark.parametrize(
    ("objective", "stale", "minibatches", "reads"),
    [("grpo", False, 1, 0), ("top_entropy", False, 1, 1), ("top_entropy", True, 2, 3 / 2), ("steer", False, 2, 1)],
)
def test_tokens_are_compared_by_one_more_pass_where_none_is_there_to_use(
    monkeypatch: pytest.MonkeyPatch, objective: str, stale: bool, minibatches: int, reads: float
) -> None:
    """Old answers are read before the first of several updates anyway: all of them, and then the second half again."""
    read: list[int] = []
    plain = Policy.logprobs

    def counted(self: Policy, rows: Any, **options: Any) -> Any:
        read.append(0 if torch.is_grad_enabled() else len(rows.own))
        return plain(self, rows, **options)

    policy = small_policy()
    rollouts = rollouts_of(policy)
    monkeypatch.setattr(Policy, "logprobs", counted)
    choice = ObjectiveChoice(name=objective).made(max_new_tokens=8)
    config = LearningConfig(minibatches=minibatches)
    learner = Learner(policy, choice, config, temperature=1.0, steps=10, seed=0)
    scores = [Score.scored(place % 2) for place in range(len(rollouts))]
    learner.learn(rollouts[: 4 * GROUP], scores[: 4 * GROUP], exact=not stale)
    assert sum(read) == reads * 4 * GROUP


def update(
    objective: str, patch: pytest.MonkeyPatch | None = None, where: str = "", most: int = 0, micro_tokens: int = 400
) -> Any:
    """The gradients of an update, its numbers, and the rows of each pass that fitted.

    Passes of more rows than `most` run out of memory, at some place; or the third one does, once.
    """
    policy = small_policy()
    rollouts = rollouts_of(policy)
    choice = ObjectiveChoice(name=objective).made(max_new_tokens=8)
    reference = small_policy(seed=5) if choice.needs_reference else None
    config = LearningConfig(max_grad_norm=0.0, micro_tokens=micro_tokens)
    learner = Learner(policy, choice, config, temperature=1.0, steps=10, seed=0, reference=reference)
    plain = Policy.logprobs
    rows: list[int] = []
    passes: list[int] = []

    def logprobs(self: Policy, given: Any, **options: Any) -> Any:
        rows.append(len(given.own))
        if (where == "forward" and rows[-1] > most) or (where == "third" and len(rows) == 3):
            raise torch.OutOfMemoryError("CUDA out of memory")
        passes.append(rows[-1])
        return plain(self, given, **options)

    def fail(grad: torch.Tensor) -> None:
        if rows[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")

    if patch is not None:
        patch.setattr(Policy, "logprobs", logprobs)
    if where == "backward":  # the embedding's gradient is the last: all others are there
        policy.model.get_input_embeddings().weight.register_hook(fail)
    if where == "critic" and learner.critic is not None:
        learner.critic.head.weight.register_hook(fail)  # type: ignore[no-untyped-call]
    numbers = learner.learn(rollouts, scores_of(rollouts))
    models = (policy.model, learner.critic)
    grads = [value.grad for model in models if model is not None for value in model.parameters()]
    return torch.cat([grad.flatten() for grad in grads if grad is not None]), numbers, passes


@pytest.mark.parametrize(
    ("objective", "where", "most"),
    [
        ("grpo", "forward", 3),
        ("grpo", "backward", 3),
        ("dpo", "forward", 6),
        ("dpo", "backward", 6),
        ("ppo", "forward", 3),
        ("ppo", "critic", 3),
        ("top_entropy", "forward", 3),
    ],
)
def test_an_update_that_runs_out_of_memory_is_made_in_smaller_passes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, objective: str, where: str, most: int
) -> None:
    whole, numbers, _ = update(objective)
    found, others, _ = update(objective, monkeypatch, where, most)
    assert float((found - whole).norm()) <= 1e-5 * float(whole.norm())
    assert others == pytest.approx(numbers, rel=1e-4, abs=1e-6)
    told = [record.getMessage() for record in caplog.records]
    assert 1 <= len(told) <= 4, "each size once"
    assert all("does not fit into memory; from here on passes have at most" in one for one in told)


def test_passes_that_fitted_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _, once = update("grpo", monkeypatch, micro_tokens=60)
    monkeypatch.undo()
    found, _, passes = update("grpo", monkeypatch, "third", micro_tokens=60)
    assert len(once) >= 3
    assert passes[:2] == once[:2]
    assert len(passes) > len(once)
    assert sum(passes) == sum(once)
    assert float((found - whole).norm()) <= 1e-5 * float(whole.norm())


def test_one_answer_that_does_not_fit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(torch.OutOfMemoryError, match=r"a pass of \d+ tokens, the least .* learning\.lora"):
        update("grpo", monkeypatch, "forward", 0)


def test_lost_samples_leave_no_trace() -> None:
    """What a lost sample's answer was makes no difference."""
    policy, other = small_policy(), small_policy()
    rollouts = rollouts_of(policy)
    scores = scores_of(rollouts)
    changed = [
        rollout
        if score.value is not None
        else Rollout(
            id=rollout.id,
            task=rollout.task,
            prompt_ids=rollout.prompt_ids,
            ids=(3, 4, 5),
            logprobs=np.array([-9.0, np.nan, -1.0], dtype=np.float32),
            own=np.ones(3, dtype=np.bool_),
            text="345",
            finish_reason="length",
            version=0,
        )
        for rollout, score in zip(rollouts, scores, strict=True)
    ]
    for one, given in ((policy, rollouts), (other, changed)):
        choice = ObjectiveChoice().made(max_new_tokens=8)
        Learner(one, choice, LearningConfig(learning_rate=1e-2), temperature=1.0, steps=1, seed=0).learn(given, scores)
    for left, right in zip(policy.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(left, right)


def test_answers_of_an_older_policy_are_corrected_for() -> None:
    policy = small_policy()
    rollouts = rollouts_of(small_policy(seed=9))
    choice = ObjectiveChoice().made(max_new_tokens=8)
    learner = Learner(policy, choice, LearningConfig(learning_rate=1e-2), temperature=1.0, steps=9, seed=0)
    fresh = learner.learn(rollouts, scores_of(rollouts), exact=True)
    assert "importance_sampling_ratio" not in fresh, "they say that they are of this policy"
    stale = learner.learn(rollouts, scores_of(rollouts))
    assert stale["importance_sampling_ratio"] != pytest.approx(1.0, abs=1e-3)


def test_a_gradient_that_is_no_number_stops_the_run() -> None:
    policy = small_policy()
    rollouts = rollouts_of(policy)
    choice = ObjectiveChoice().made(max_new_tokens=8)
    learner = Learner(policy, choice, LearningConfig(), temperature=1.0, steps=9, seed=0)
    with torch.no_grad():
        next(iter(policy.model.parameters())).fill_(float("nan"))
    with pytest.raises(ValueError, match="gradient of step 1 is nan"):
        learner.learn(rollouts, scores_of(rollouts))


def test_objectives_that_need_a_reference_say_so() -> None:
    choice = ObjectiveChoice(name="rloo").made(max_new_tokens=8)
    with pytest.raises(ValueError, match="reference"):
        Learner(small_policy(), choice, LearningConfig(), temperature=1.0, steps=1, seed=0)


@pytest.mark.parametrize(
    ("decay", "expected"),
    [("constant", [1 / 3, 2 / 3, 1, 1, 1]), ("linear", [1 / 3, 2 / 3, 1, 2 / 3, 1 / 3])],
)
def test_the_learning_rate_rises_and_falls(decay: Any, expected: list[float]) -> None:
    config = LearningConfig(warmup_steps=2, decay=decay)
    assert [config.share(step, 5) for step in range(5)] == pytest.approx(expected)


def test_a_reference_is_taken_to_the_power_of_the_score() -> None:
    policy, reference = small_policy(), small_policy(seed=5)
    rollouts = rollouts_of(policy)[:4]
    values = [0.0, 0.5, 1.0, None]
    scores = [Score.failed("engine_timeout") if value is None else Score.scored(value) for value in values]
    choice = ObjectiveChoice(name="rapo").made(max_new_tokens=8)
    learner = Learner(policy, choice, LearningConfig(), temperature=2.0, steps=1, seed=0, reference=reference)
    found = learner._of_reference(reference, rollouts, scores)
    for rollout, value, row in zip(rollouts, values, found, strict=True):
        ids = [*rollout.prompt_ids, *rollout.ids]
        with torch.no_grad():
            logits = reference.model(torch.tensor([ids])).logits[0].double() / 2.0
        for at, token in enumerate(rollout.ids):
            chances = logits[len(rollout.prompt_ids) + at - 1].softmax(0) ** (1.0 if value is None else value)
            assert row[at] == pytest.approx(math.log(chances[token] / chances.sum()), abs=1e-5)


def test_clipped_tokens_are_a_share_of_all_tokens() -> None:
    def clipped(groups: int) -> float:  # all but the first group are flat
        policy = small_policy()
        first = rollouts_of(policy)[:GROUP]
        rollouts = [replace(one, task=task) for task in TASKS[:groups] for one in first]
        learner = Learner(
            policy,
            ObjectiveChoice(name="grpo").made(max_new_tokens=8),
            LearningConfig(learning_rate=5e-2, epochs=2),
            temperature=1.0,
            steps=10,
            seed=0,
        )
        scores = [Score.scored(float(at) if at < GROUP else 1.0) for at in range(len(rollouts))]
        numbers = learner.learn(rollouts, scores)
        assert numbers["trained"] == pytest.approx(1 / groups)
        return numbers["clip_ratio_low"] + numbers["clip_ratio_high"]

    assert clipped(1) > 0.1
    assert clipped(4) == pytest.approx(clipped(1) / 4, rel=0.05)
