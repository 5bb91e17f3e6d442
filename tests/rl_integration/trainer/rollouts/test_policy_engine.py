"""`engine: policy`: the very policy, at the version that wrote the answers, and as it was afterwards."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer.small_runs import TASKS, small_config, small_policy, small_run

from adjudge import score_batch
from adjudge.engines.interface import Sampling, TextLogprobs
from adjudge.engines.learning_policy import LEARNING_POLICY, names_policy
from adjudge.engines.loading import engine_of
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.rollouts.policy_engine import PolicyEngine
from adjudge.runtime.contract import BrokenScorer
from adjudge.training.backbones import Lora

REWARD = {"reference_probability": {"engine": "policy"}}


class Likely:
    """How likely the policy finds the reference after the answer; many times, so that it differs."""

    name = "likely"
    fingerprint = "likely:1"
    engine = LEARNING_POLICY

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        prompts = [f"{sample.prompt}{sample.response}" for sample in samples]
        told = await self.engine.reference_logprobs(prompts, [str(sample.reference) for sample in samples])
        return [Score.scored(sum(one.logprobs)) for one in told if isinstance(one, TextLogprobs)]


PROMPTS = [task.prompt for task in TASKS[:6]]
TEXTS = [str(task.reference) for task in TASKS[:6]]


def logprobs(engine: Any) -> list[tuple[float, ...]]:
    return [one.logprobs for one in asyncio.run(engine.reference_logprobs(PROMPTS, TEXTS))]


def test_it_says_what_a_copy_of_it_says_and_is_as_it_was_afterwards(tmp_path: Path) -> None:
    policy = small_policy()
    policy.save(tmp_path)
    before = copy.deepcopy(policy.model.state_dict())
    policy.model.train()
    engine: Any = PolicyEngine(policy)
    saved: Any = TransformersEngine(TransformersConfig(model=str(tmp_path)))
    state = torch.get_rng_state()
    for ours, theirs in zip(logprobs(engine), logprobs(saved), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    labels = {"1": ("1",), "2": ("2",)}
    masses: list[list[float]] = [
        [row.mass for row in asyncio.run(one.label_logprobs(PROMPTS, labels))] for one in (engine, saved)
    ]
    assert masses[0] == pytest.approx(masses[1], abs=1e-5)
    sampling = Sampling(max_tokens=6, temperature=1.0, n=2, seed=3)
    written = [[row.completions for row in asyncio.run(one.generate(PROMPTS, sampling))] for one in (engine, saved)]
    assert written[0] == written[1]
    assert policy.model.training, "the mode is what it was"
    assert torch.equal(state, torch.get_rng_state())
    assert not policy.model.get_output_embeddings()._forward_pre_hooks
    assert all(torch.equal(value, before[name]) for name, value in policy.model.state_dict().items())
    assert all(value.grad is None for value in policy.model.parameters())
    with pytest.raises(ValueError, match="no classifier"):
        asyncio.run(engine.classify(PROMPTS))


def test_factors_count() -> None:
    policy = small_policy()
    plain = logprobs(PolicyEngine(policy))
    policy.adapt(Lora(rank=2), seed=0)
    assert logprobs(PolicyEngine(policy))[0] == pytest.approx(plain[0], abs=1e-6)
    with torch.no_grad():
        for name, value in policy.model.named_parameters():
            if "lora_B" in name:
                value.fill_(0.3)
    assert logprobs(PolicyEngine(policy))[0] != pytest.approx(plain[0], abs=1e-3)


@pytest.mark.parametrize("staleness", [0, 1])
def test_answers_are_scored_by_the_weights_that_wrote_them(tmp_path: Path, staleness: int) -> None:
    """A copy of the policy as it was when an answer was written gives it the same score."""
    config = replace(
        small_config(scorer=Likely(), steps=3, staleness=staleness),
        learning=LearningConfig(learning_rate=0.03),
    )
    run = small_run(tmp_path, config)
    frozen = {0: copy.deepcopy(run.policy.model)}
    seen: list[tuple[Any, Score]] = []

    def on_step(numbers: Any, rollouts: Any, scores: Any) -> bool:
        frozen[int(numbers["step"])] = copy.deepcopy(run.policy.model)
        seen.extend(zip(rollouts, scores, strict=True))
        return False

    run.train(on_step=on_step)
    assert {rollout.version for rollout, _ in seen} == set(range(3 - staleness))
    changed = 0
    for rollout, given in seen[::3]:
        values = {}
        for version, model in frozen.items():
            policy = small_policy()
            policy.model.load_state_dict(model.state_dict())
            with LEARNING_POLICY.standing_for(PolicyEngine(policy)):
                values[version] = score_batch([rollout.sample()], Likely())[0].value
        assert given.value == pytest.approx(values[rollout.version], abs=1e-5)
        changed += values[rollout.version] != pytest.approx(values[3], abs=1e-3)
    assert changed, "the policy has learnt something"


def test_outside_of_a_run_it_says_where_it_works() -> None:
    assert engine_of("policy") is LEARNING_POLICY
    sample = Sample(prompt="1+1=", response="2", reference="2")
    with pytest.raises(BrokenScorer, match="adjudge train policy"):
        score_batch([sample], REWARD)


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (REWARD, True),
        ({"weighted": [{"scorer": {"rlpr": {"engine": "policy"}}, "weight": 1.0}]}, True),
        ({"reference_probability": {"engine": "transformers:policy"}}, False),
        ("math", False),
        ({"judge": {"template": "policy"}}, False),
    ],
)
def test_specs_that_ask_it_are_known(spec: Any, named: bool) -> None:
    assert names_policy(spec) is named


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"reward.cache .* one version"):
        small_config(scorer=REWARD, reward={"cache": "scores.sqlite"})
    with pytest.raises(ValueError, match=r"learning.sharding is 'full'"):
        small_config(scorer=REWARD, learning={"sharding": "full"})
