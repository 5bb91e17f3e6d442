"""Weights leave a policy as a plain model has them, and the policy stays as it is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer.small_runs import small_policy

from adjudge.rl_integration.trainer.rollouts.policy import checkpoint_weights, merged_weights
from adjudge.training.backbones import Lora, with_lora


def with_factors(model: Any, seed: int = 0) -> Any:
    """The model in peft's wrapping, with factors that are far from nothing."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        adapted = with_lora(model, Lora(rank=2))
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in adapted.named_parameters():
            if "lora_B" in name:
                value.normal_(generator=draw)
    return adapted


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-6, msg=name)


def test_a_plain_models_weights_are_its_own_tensors() -> None:
    model = small_policy().model
    found = dict(merged_weights(model))
    assert found.keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert found[name].data_ptr() == value.data_ptr()


def test_factors_are_added_as_peft_adds_them() -> None:
    model = small_policy().model
    expected = with_factors(copy.deepcopy(model)).merge_and_unload().state_dict()
    wrapped = with_factors(model)
    before = copy.deepcopy(wrapped.state_dict())
    assert_same(dict(merged_weights(wrapped)), expected)
    # The model itself, whose layers peft has changed, has the same names.
    assert_same(dict(merged_weights(model)), expected)
    assert all(torch.equal(value, before[name]) for name, value in wrapped.state_dict().items())
    wrapped.merge_adapter()
    assert_same(dict(merged_weights(wrapped)), expected)
    wrapped.unmerge_adapter()
    with wrapped.disable_adapter():
        plain = dict(merged_weights(wrapped))
    assert_same(plain, small_policy().model.state_dict())


def test_factors_beside_a_part_of_the_model_are_added() -> None:
    model = small_policy().model
    expected = with_factors(copy.deepcopy(model)).merge_and_unload().state_dict()
    model.model = with_factors(model.model)
    assert_same(dict(merged_weights(model)), expected)


def test_tied_weights_come_once() -> None:
    model = small_policy().model
    model.config.tie_word_embeddings = True
    model.tie_weights()
    names = [name for name, _ in merged_weights(model)]
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names


@pytest.mark.parametrize("opened", [False, True])
def test_names_are_those_of_a_checkpoint(tmp_path: Path, opened: bool) -> None:
    """A mixture of experts has its experts in one tensor in memory, and one for each in a checkpoint."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForCausalLM

    kind: Any = AutoModelForCausalLM
    sizes: dict[str, Any] = {
        "vocab_size": 16,
        "hidden_size": 16,
        "intermediate_size": 16,
        "moe_intermediate_size": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
    }
    model = kind.from_config(AutoConfig.for_model("qwen3_moe", **sizes))
    model.save_pretrained(tmp_path)
    if opened:
        model = kind.from_pretrained(tmp_path)
    found = dict(checkpoint_weights(model))
    assert "model.layers.0.mlp.experts.3.up_proj.weight" in found
    assert_same(found, load_file(tmp_path / "model.safetensors"))


def test_adapters_of_another_kind_are_refused() -> None:
    import peft

    options: dict[str, Any] = {"r": 2, "target_modules": "all-linear", "use_dora": True}
    adapted: Any = peft.get_peft_model(small_policy().model, peft.LoraConfig(**options))
    with pytest.raises(ValueError, match="lora_magnitude_vector"):
        dict(merged_weights(adapted))
    options = {"r": 2, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}
    adapted = peft.get_peft_model(small_policy().model, peft.LoraConfig(**options))
    with pytest.raises(ValueError, match="modules_to_save"):
        dict(merged_weights(adapted))
