"""Which engine writes is chosen by options, and what it cannot do is said before anything starts."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from tests.rl_integration.trainer.small_runs import small_policy

from adjudge.rl_integration.trainer.rollouts.opening import open_generator
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig, VllmOptions
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.vllm_generator import VllmGenerator


@pytest.mark.parametrize(
    "option",
    [
        {"dtype": "int8"},
        {"max_model_len": -1},
        {"gpu_memory_utilization": 0.0},
        {"gpu_memory_utilization": 1.5},
        {"kv_cache_gib": -1.0},
        {"kv_cache_gib": float("inf")},
    ],
)
def test_options_out_of_range_are_named(option: dict[str, Any]) -> None:
    ((name, value),) = option.items()
    with pytest.raises(ValueError, match=f"rollouts.vllm option {name}={value!r}"):
        VllmOptions(**option)


def test_the_engine_is_the_one_that_is_named() -> None:
    policy = small_policy()
    assert isinstance(open_generator(policy, RolloutsConfig()), TransformersGenerator)
    chosen = open_generator(policy, RolloutsConfig(engine="vllm"))
    assert isinstance(chosen, VllmGenerator)
    assert not chosen.exact
    engine: Any = "tgi"
    with pytest.raises(ValueError, match=r"rollouts option engine='tgi'; it must be one of transformers, vllm"):
        RolloutsConfig(engine=engine)


def test_what_cannot_work_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = small_policy()
    with pytest.raises(ValueError, match=r"sampling.temperature is 0.001, and vLLM would draw at 0.01"):
        open_generator(policy, RolloutsConfig(engine="vllm", sampling=SamplingConfig(temperature=0.001)))
    with pytest.raises(
        ValueError, match=r"top_p is 0.9 and sampling.temperature 0.7, .* set one of them to 1, or give"
    ):
        open_generator(policy, RolloutsConfig(engine="vllm", sampling=SamplingConfig(temperature=0.7, top_p=0.9)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"rollouts.engine is vllm, which is not installed; .*adjudge\[vllm\]"):
        open_generator(policy, RolloutsConfig(engine="vllm"))
