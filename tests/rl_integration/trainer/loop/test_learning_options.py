"""Low-rank factors, bfloat16 and activations that are computed again: what they change, and what they do not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file
from tests.rl_integration.trainer.loop.test_learner import rollouts_of, scores_of
from tests.rl_integration.trainer.small_runs import small_config, small_policy, small_run

from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.rollouts.policy import ADAPTER, Policy, merged_weights
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.training.backbones import Lora

LORA = Lora(rank=2)


def learner_of(policy: Policy, objective: str = "grpo", reference: Policy | None = None, **learning: Any) -> Learner:
    config = LearningConfig(**{"learning_rate": 1e-2, **learning})
    choice = ObjectiveChoice(name=objective).made(max_new_tokens=8)
    return Learner(policy, choice, config, temperature=1.0, steps=10, seed=0, reference=reference)


def learnt(learner: Learner, steps: int = 1) -> dict[str, float]:
    for _ in range(steps):
        rollouts = rollouts_of(learner.policy, version=learner.step)
        numbers = learner.learn(rollouts, scores_of(rollouts))
    return numbers


def test_factors_alone_are_trained() -> None:
    policy = small_policy()
    before = {name: value.clone() for name, value in policy.model.named_parameters()}
    learner = learner_of(policy, lora=LORA)
    learnt(learner, 2)
    after = dict(policy.model.named_parameters())
    moved = {
        name
        for name, value in after.items()
        if not torch.equal(value, before.get(name.replace(".base_layer", ""), value + 1))
    }
    assert moved == {name for name in after if ".lora_" in name}
    assert {name.removeprefix("policy.") for name in learner.state()[0]} == moved


def test_a_saved_policy_is_a_plain_one(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    policy = small_policy()
    learnt(learner_of(policy, lora=LORA), 2)
    policy.save(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    assert saved.keys() == small_policy().model.state_dict().keys()
    opened: Any = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.tensor([[3, 4, 5, 6]])
    with torch.no_grad(), policy.without_adapters():
        start = policy.model(ids).logits
    with torch.no_grad():
        torch.testing.assert_close(opened(ids).logits, policy.model(ids).logits, rtol=1e-4, atol=1e-5)
        assert not torch.allclose(opened(ids).logits, start, atol=1e-3), "it has learnt something"


@pytest.mark.parametrize("objective", ["rloo", "dpo"])
def test_the_policy_without_factors_is_the_reference(objective: str) -> None:
    weights = []
    for reference in (None, small_policy()):
        policy = small_policy()
        numbers = learnt(learner_of(policy, objective, reference=reference, lora=LORA), 3)
        weights.append((dict(policy.model.named_parameters()), numbers))
    (left, one), (right, other) = weights
    assert all(torch.equal(left[name], right[name]) for name in right)
    assert one == other


def test_a_value_model_shares_what_is_frozen() -> None:
    policy = small_policy()
    learner = learner_of(policy, "ppo", lora=LORA)
    assert learner.critic is not None
    own = dict(policy.model.base_model.named_parameters())
    for name, value in learner.critic.body.named_parameters():
        assert (value.data_ptr() == own[name].data_ptr()) == (not value.requires_grad), name
    start = {name: value.clone() for name, value in learner.critic.named_parameters()}
    learnt(learner, 2)
    moved = {name for name, value in learner.critic.named_parameters() if not torch.equal(value, start[name])}
    assert "head.weight" in moved
    assert any(".lora_" in name for name in moved)
    assert not any(".base_layer" in name for name in moved)


@pytest.mark.parametrize("lora", [None, LORA])
def test_activations_that_are_computed_again_change_nothing(lora: Lora | None) -> None:
    found = []
    for checkpointing in (False, True):
        policy = small_policy()
        passes = 0

        def count(*_: Any) -> None:
            nonlocal passes
            passes += 1

        learner = learner_of(policy, "ppo", small_policy(), lora=lora, gradient_checkpointing=checkpointing)
        rollouts = rollouts_of(policy)
        policy.model.model.layers[0].mlp.register_forward_pre_hook(count)
        learner.learn(rollouts, scores_of(rollouts))
        found.append(({name: value.detach() for name, value in policy.model.named_parameters()}, passes))
    (left, once), (right, twice) = found
    assert twice == once + 1
    assert all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(
    ("device", "given", "expected"),
    [("cpu", "auto", False), ("cuda", "auto", True), ("cuda", False, False), ("cpu", True, True)],
)
def test_activations_are_computed_again_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, given: Any, expected: bool
) -> None:
    policy = small_policy()
    called: list[bool] = []
    monkeypatch.setattr(policy.model, "gradient_checkpointing_enable", lambda **_: called.append(True))
    monkeypatch.setattr(Policy, "device", SimpleNamespace(type=device))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    learner_of(policy, gradient_checkpointing=given)
    assert bool(called) == expected


def test_bfloat16_computes_coarsely_and_keeps_weights_fine() -> None:
    policy = small_policy()
    learner = learner_of(policy, precision="bf16")
    assert not policy.exact
    assert not TransformersGenerator(policy).exact
    kinds = []
    policy.model.model.layers[0].mlp.register_forward_hook(lambda layer, given, found: kinds.append(found.dtype))
    rollouts = rollouts_of(policy)
    assert set(kinds) == {torch.bfloat16}, "answers are written in the arithmetic that they are learnt in"
    numbers = learner.learn(rollouts, scores_of(rollouts), exact=TransformersGenerator(policy).exact)
    assert set(kinds) == {torch.bfloat16}
    assert 0.9 < numbers["importance_sampling_ratio"] < 1.1, "what was written is corrected for"
    assert {value.dtype for value in policy.model.parameters()} == {torch.float32}
    assert {value.grad.dtype for value in policy.model.parameters() if value.grad is not None} == {torch.float32}


def test_in_32_bits_what_was_written_needs_no_correction(tmp_path: Path) -> None:
    fine = small_run(tmp_path / "fine", small_config(steps=1)).train()
    coarse = small_run(tmp_path / "coarse", small_config(steps=1, learning={"precision": "bf16"})).train()
    assert "importance_sampling_ratio" not in fine.history[0]
    assert "importance_sampling_ratio" in coarse.history[0]


def test_a_value_model_gives_32_bits_in_bfloat16(tmp_path: Path) -> None:
    coarse = small_run(tmp_path, small_config(objective="ppo", steps=1, learning={"precision": "bf16"})).train()
    assert coarse.history[0]["value_grad_norm"] > 0


def test_what_is_trained_must_be_in_32_bits() -> None:
    policy = small_policy()
    policy.model.to(torch.bfloat16)
    with pytest.raises(ValueError, match=r"weights of a tiny new policy are torch.bfloat16 .*float32.*learning.lora"):
        learner_of(policy)


def test_frozen_weights_may_be_coarse(tmp_path: Path) -> None:
    policy = small_policy()
    policy.model.to(torch.bfloat16)
    learner = learner_of(policy, lora=LORA)
    assert not policy.exact
    learnt(learner, 2)
    assert {value.dtype for value in learner.state()[0].values()} == {torch.float32}


@pytest.mark.parametrize("rate", [1e-5, 10.0])
def test_a_saved_policy_keeps_what_it_learnt(tmp_path: Path, caplog: pytest.LogCaptureFixture, rate: float) -> None:
    """Rounded to bfloat16, most of small steps would be gone; large ones leave the weights' type as it is."""
    from transformers import AutoModelForCausalLM

    policy = small_policy()
    for value in policy.model.model.layers.parameters():
        value.data.mul_(8)  # a new model's weights are so small that steps of 1e-5 still show in bfloat16
    policy.model.to(torch.bfloat16)
    start = {name: value.detach().float() for name, value in policy.model.named_parameters()}
    if rate < 1:
        learnt(learner_of(policy, lora=LORA, learning_rate=rate), 10)
    else:
        policy.adapt(LORA, seed=0)
        for name, value in policy.model.named_parameters():
            if ".lora_" in name:
                torch.nn.init.normal_(value, std=rate)
    true = {name: value for name, value in merged_weights(policy.model) if value.dtype == torch.float32}
    policy.save(tmp_path)
    opened: Any = AutoModelForCausalLM.from_pretrained(tmp_path)
    saved = opened.state_dict()
    found, expected = (torch.cat([(kind[name] - start[name]).flatten() for name in true]) for kind in (saved, true))
    assert float(torch.cosine_similarity(found, expected, dim=0)) > 0.99
    assert ("would be lost" in caplog.text) == (rate < 1)
    assert opened.dtype == (torch.float32 if rate < 1 else torch.bfloat16)
    bare = small_policy().model.to(torch.bfloat16)
    bare.load_state_dict({name: start[name] for name in start})
    factors = dict(merged_weights(peft.PeftModel.from_pretrained(bare, str(tmp_path / ADAPTER)).get_base_model()))
    for name, value in true.items():
        torch.testing.assert_close(factors[name], value)


def test_a_policy_has_its_factors_once() -> None:
    policy = small_policy()
    learner_of(policy, lora=LORA)
    names = [name for name, _ in policy.model.named_parameters()]
    learner_of(policy, lora=LORA)
    assert [name for name, _ in policy.model.named_parameters()] == names
    with pytest.raises(ValueError, match="already has"):
        learner_of(policy, lora=Lora(rank=4))
    with pytest.raises(ValueError, match="no factors"), small_policy().without_adapters():
        pass


def test_the_same_seed_makes_the_same_factors() -> None:
    torch.manual_seed(1)
    one, other, third = small_policy(), small_policy(), small_policy()
    for policy, seed in ((one, 0), (other, 0), (third, 1)):
        policy.adapt(LORA, seed=seed)
    left, right, odd = (dict(policy.model.named_parameters()) for policy in (one, other, third))
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert not all(torch.equal(left[name], odd[name]) for name in left)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"precision": "fp8"}, "learning option precision='fp8'; it must be one of auto, fp32, bf16"),
        ({"lora": Lora(dropout=0.1)}, "learning.lora.dropout is 0.1.*set it to 0"),
    ],
)
def test_what_cannot_be_meant_is_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        LearningConfig(**options)


def test_targets_that_name_no_layer_are_told() -> None:
    with pytest.raises(ValueError, match=r"lora\.targets are nowhere"):
        learner_of(small_policy(), lora=Lora(targets=("nowhere",)))
