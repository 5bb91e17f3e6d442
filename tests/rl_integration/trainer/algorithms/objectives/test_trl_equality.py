"""Advantages, losses and gradients equal those that TRL's own trainers compute for the same batch of a real model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engines.tiny_models import write_model

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import (
    GroupRelative,
    LeaveOneOut,
    SeveralRewards,
)
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import ImportanceSampling, TokenBatch, TopEntropy
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.rewards.groups import Groups, kl_penalty
from adjudge.rl_integration.trainer.rollouts.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own

MEMBERS = 4
REWARDS = [1.0, 0.0, 0.25, 1.0, 0.5, 0.5, 0.5, 0.5, 0.0, 1.0, None, 3.0, None, None, -2.0, None]
KEPT = [1.0, 0.0, 0.25, 1.0, 0.5, 0.5, 0.5, 0.5, 0.0, 1.0, 1.5, 3.0, 2.0, 1.0, -2.0, 0.0]
IDS = [place // MEMBERS for place in range(len(REWARDS))]
LENGTH = 7

Reward = Sequence[float | None]


@dataclass
class Peer:
    """One of TRL's trainers, with rewards that a test sets."""

    trainer: Any
    rewards: list[Reward]

    def batch(self, *rewards: Reward) -> dict[str, Any]:
        """Sample completions, score them as set, and return what the trainer trains on."""
        self.rewards[:] = rewards
        torch.manual_seed(3)
        prompts = [{"prompt": f"What is {place} + {place}?"} for place in IDS]
        made: dict[str, Any] = self.trainer._generate_and_score_completions(prompts)
        return made

    def tokens(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probabilities and entropies of the completions, with gradient."""
        return self._read(batch, self.trainer.model, compute_entropy=True)

    def reference(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return log-probabilities of the completions under the reference policy."""
        return self._read(batch, self.trainer.ref_model, compute_entropy=False)[0].detach()

    def _read(self, batch: dict[str, Any], model: Any, *, compute_entropy: bool) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        width = batch["completion_ids"].shape[1]
        logps, entropies, _ = self.trainer._get_per_token_logps_and_entropies(
            model, ids, mask, width, compute_entropy=compute_entropy
        )
        return logps, entropies

    def gradient(self, loss: torch.Tensor) -> torch.Tensor:
        weights = [weight for weight in self.trainer.model.parameters() if weight.requires_grad]
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)])


def made(kind: str, folder: Path, model: str, **options: Any) -> Peer:
    from datasets import Dataset

    trl: Any = importlib.import_module("trl")  # its names are lazy, which type checkers do not see
    rewards: list[Reward] = [KEPT, KEPT]

    def reward(place: int) -> Callable[..., Reward]:
        def given(**_: Any) -> Reward:
            return rewards[place]

        given.__name__ = f"reward_{place}"
        return given

    config = getattr(trl, f"{kind}Config")(
        output_dir=str(folder),
        per_device_train_batch_size=len(REWARDS),
        num_generations=MEMBERS,
        max_completion_length=LENGTH,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        disable_tqdm=True,
        seed=1,
        **options,
    )
    functions = [reward(place) for place in range(len(options.get("reward_weights", [1.0])))]
    rows = Dataset.from_list([{"prompt": "a"}] * len(REWARDS))
    trainer = getattr(trl, f"{kind}Trainer")(model=model, reward_funcs=functions, args=config, train_dataset=rows)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return Peer(trainer=trainer, rewards=rewards)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_model(tmp_path_factory.mktemp("policy") / "model"))


@pytest.fixture(scope="module")
def grpo(model: str, tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return made("GRPO", tmp_path_factory.mktemp("grpo"), model, beta=0.1, reward_weights=[1.0, 0.5])


@pytest.fixture(scope="module")
def rloo(model: str, tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return made("RLOO", tmp_path_factory.mktemp("rloo"), model, beta=0.05)


def groups(*rewards: Reward) -> Groups:
    parts = np.array([[np.nan if one is None else one for one in reward] for reward in rewards]).T
    weights = np.array([1.0, 0.5])[: parts.shape[1]]
    valid = np.asarray(~np.isnan(parts).all(axis=1))
    return Groups(rewards=np.nansum(parts * weights, axis=1), ids=np.array(IDS), valid=valid, parts=parts)


def disturbed(shape: torch.Size, size: float, seed: int) -> torch.Tensor:
    return size * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_grpo_advantages(grpo: Peer, scale: Any) -> None:
    grpo.trainer.scale_rewards = scale
    given = (REWARDS, [None if one is None else one**2 for one in REWARDS])
    theirs = grpo.batch(*given)["advantages"]
    grpo.trainer.scale_rewards = "group"
    np.testing.assert_allclose(GroupRelative(scale=scale)(groups(*given)), theirs.numpy(), atol=2e-5)


def test_advantages_of_several_rewards_that_are_normalised_before_they_are_mixed(grpo: Peer) -> None:
    other = [float(place % 3) for place in range(len(KEPT))]
    grpo.trainer.multi_objective_aggregation = "normalize_then_sum"
    theirs = grpo.batch(KEPT, other)["advantages"]
    grpo.trainer.multi_objective_aggregation = "sum_then_normalize"
    ours = SeveralRewards(weights=(1.0, 0.5))(groups(KEPT, other))
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)
    after = grpo.batch(KEPT, other)["advantages"]
    ours = SeveralRewards(weights=(1.0, 0.5), normalize="after")(groups(KEPT, other))
    np.testing.assert_allclose(ours, after.numpy(), atol=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_rloo_advantages(rloo: Peer, normalize: bool) -> None:
    rloo.trainer.normalize_advantages = normalize
    theirs = rloo.batch(REWARDS)["advantages"]
    rloo.trainer.normalize_advantages = False
    np.testing.assert_allclose(LeaveOneOut(normalize=normalize)(groups(REWARDS)), theirs.numpy(), atol=1e-5)


def test_rloo_advantages_with_a_penalty_for_leaving_the_reference(rloo: Peer) -> None:
    weight = rloo.trainer.ref_model.lm_head.weight
    change = disturbed(weight.shape, 0.1, 4)
    with torch.no_grad():
        weight += change
        batch = rloo.batch(KEPT)
        logps, reference = rloo.tokens(batch)[0].detach(), rloo.reference(batch)
        weight -= change
    objective = OBJECTIVES["rloo"]
    mask = batch["completion_mask"].numpy()
    penalty = kl_penalty(logps.double().numpy(), reference.double().numpy(), mask, objective.reward_beta)
    assert np.abs(penalty).min() > 1e-3
    given = groups(KEPT)
    ours = objective.advantages(replace(given, rewards=given.rewards + penalty))
    np.testing.assert_allclose(ours, batch["advantages"].numpy(), atol=1e-4)


@pytest.fixture(scope="module")
def batch(grpo: Peer) -> dict[str, Any]:
    """Completions of different lengths, and policies that have moved apart."""
    found = grpo.batch(KEPT, KEPT)
    lengths = torch.tensor([1 + place % LENGTH for place in range(len(KEPT))])
    found["completion_mask"] = (torch.arange(found["completion_ids"].shape[1]) < lengths[:, None]).int()
    found["num_items_in_batch"] = found["completion_mask"].sum()
    logps = grpo.tokens(found)[0].detach()
    found["old_per_token_logps"] = logps + disturbed(logps.shape, 0.3, 1)
    found["ref_per_token_logps"] = logps + disturbed(logps.shape, 0.5, 2)
    return found


CASES: dict[str, tuple[dict[str, Any], PolicyLoss]] = {
    "grpo": ({"loss_type": "grpo"}, OBJECTIVES["grpo"].policy),  # type: ignore[dict-item]
    "dapo": ({"loss_type": "dapo", "epsilon_high": 0.28}, OBJECTIVES["dapo"].policy),  # type: ignore[dict-item]
    "dr_grpo": (
        {"loss_type": "dr_grpo"},
        OBJECTIVES["dr_grpo"].but({"policy.length": LENGTH}).policy,  # type: ignore[dict-item]
    ),
    "cispo": ({"loss_type": "cispo", "epsilon_high": 5.0}, OBJECTIVES["cispo"].policy),  # type: ignore[dict-item]
    "gspo": (
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 3e-4, "epsilon_high": 4e-4},
        OBJECTIVES["gspo"].policy,  # type: ignore[dict-item]
    ),
    "kl": ({"loss_type": "bnpo", "beta": 0.1}, PolicyLoss(beta=0.1)),
    "divergence alone": (
        {"loss_type": "bnpo", "beta": 0.1, "use_bias_correction_kl": False},
        PolicyLoss(beta=0.1, use_bias_correction_kl=False),
    ),
    "dual clip": ({"loss_type": "bnpo", "delta": 1.25}, PolicyLoss(clip_ratio_c=1.25)),
    "top entropy": ({"loss_type": "bnpo", "top_entropy_quantile": 0.6}, PolicyLoss(weighting=TopEntropy(share=0.6))),
    "stale": (
        {"loss_type": "bnpo", "use_vllm": True, "vllm_importance_sampling_correction": True},
        PolicyLoss(importance_sampling=ImportanceSampling(high=1.2)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients(grpo: Peer, batch: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options, ours = CASES[name]
    trainer = grpo.trainer
    for option, value in {"beta": 0.0, "epsilon_low": 0.2, "epsilon_high": 0.2, **options}.items():
        monkeypatch.setattr(trainer if hasattr(trainer, option) else trainer.args, option, value)
    sampler = batch["old_per_token_logps"] + disturbed(batch["old_per_token_logps"].shape, 0.4, 5)
    ratio = (batch["old_per_token_logps"] - sampler).exp().clamp(max=1.2)
    theirs = trainer._compute_loss(trainer.model, {**batch, "importance_sampling_ratio": ratio})
    logps, entropies = grpo.tokens(batch)
    advantages = GroupRelative()(groups(KEPT, KEPT))
    np.testing.assert_allclose(advantages, batch["advantages"].numpy(), atol=1e-5)
    value = ours(
        TokenBatch(
            logp=logps,
            mask=batch["completion_mask"],
            advantages=torch.tensor(advantages),
            old_logp=batch["old_per_token_logps"],
            reference_logp=batch["ref_per_token_logps"],
            entropy=entropies,
            sampler_logp=sampler if name == "stale" else None,
        )
    )
    torch.testing.assert_close(value.loss, theirs, rtol=1e-4, atol=1e-6)
    slopes = grpo.gradient(theirs)
    assert slopes.norm() > 1e-3
    torch.testing.assert_close(grpo.gradient(value.loss), slopes, rtol=1e-3, atol=1e-5)


def test_the_rloo_loss_and_its_gradient(rloo: Peer) -> None:
    batch = rloo.batch(KEPT)
    lengths = torch.tensor([1 + place % LENGTH for place in range(len(KEPT))])
    mask = (torch.arange(batch["completion_ids"].shape[1]) < lengths[:, None]).int()
    batch["completion_mask"] = mask
    old = rloo.tokens(batch)[0].detach()
    old = old + disturbed(old.shape, 0.1, 1)
    theirs = rloo.trainer._compute_loss(rloo.trainer.model, {**batch, "old_logps": (old * mask).sum(dim=1)})
    advantages = torch.tensor(OBJECTIVES["rloo"].advantages(groups(KEPT)))
    tokens = TokenBatch(logp=rloo.tokens(batch)[0], mask=mask, advantages=advantages, old_logp=old)
    ours = OBJECTIVES["rloo"].loss(tokens).loss
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(rloo.gradient(ours), rloo.gradient(theirs), rtol=1e-3, atol=1e-5)


def test_samples_without_a_score_are_out_of_the_mean_that_trl_keeps_them_in(grpo: Peer, batch: dict[str, Any]) -> None:
    given = groups(REWARDS, REWARDS)
    objective = OBJECTIVES["grpo"]
    counted = objective.counted(given)
    advantages = torch.tensor(objective.advantages(given))
    grpo.trainer.beta, grpo.trainer.loss_type = 0.0, "grpo"
    theirs = grpo.trainer._compute_loss(grpo.trainer.model, {**batch, "advantages": advantages.float()})
    tokens = TokenBatch(
        logp=grpo.tokens(batch)[0],
        mask=batch["completion_mask"],
        advantages=advantages,
        old_logp=batch["old_per_token_logps"],
        counted=torch.tensor(counted),
    )
    ours = objective.loss(tokens).loss
    assert counted.sum() == 11
    torch.testing.assert_close(ours * 11 / len(REWARDS), theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("loss_type", "policy"),
    [
        ("dapo", PolicyLoss()),
        ("grpo", PolicyLoss(aggregation="sequence_mean")),
        ("dr_grpo", PolicyLoss(aggregation="constant", length=LENGTH)),
    ],
)
def test_the_gradient_without_completions_that_were_cut_off(
    grpo: Peer, model: str, loss_type: str, policy: PolicyLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    causal: Any = AutoModelForCausalLM
    trainer = grpo.trainer
    ends = list(range(0, trainer.model.config.vocab_size, 6))
    settings = {"beta": 0.0, "loss_type": loss_type, "mask_truncated_completions": True, "eos_token_ids": ends}
    for name, value in settings.items():
        monkeypatch.setattr(trainer, name, value)
    batch = grpo.batch(KEPT, KEPT)
    slopes = grpo.gradient(trainer._compute_loss(trainer.model, batch))
    prompts, answers, rollouts = batch["prompt_ids"], batch["completion_ids"], []
    for place, row in enumerate(answers.tolist()):
        end = next((at + 1 for at, token in enumerate(row) if token in ends), len(row))
        rollout = Rollout(
            id=str(place),
            task=Task(id=str(IDS[place]), prompt=""),
            prompt_ids=tuple(prompts[place][batch["prompt_mask"][place].bool()].tolist()),
            ids=tuple(row[:end]),
            logprobs=np.zeros(end, dtype=np.float32),
            own=np.ones(end, dtype=np.bool_),
            text="",
            finish_reason="stop" if row[end - 1] in ends else "length",
            version=0,
        )
        rollouts.append(rollout)
    cut = sum(rollout.finish_reason == "length" for rollout in rollouts)
    assert 0 < cut < len(rollouts)
    learner = Learner(
        Policy(causal.from_pretrained(model), trainer.processing_class, name="policy"),
        Objective(rule=GroupRelative(), policy=policy),
        LearningConfig(max_grad_norm=0.0, mask_truncated_completions=True),
        temperature=1.0,
        steps=1,
        seed=0,
    )
    numbers = learner.learn(rollouts, [Score.scored(value) for value in KEPT])
    ours = torch.cat([value.grad.flatten() for value in learner.policy.model.parameters() if value.requires_grad])
    assert numbers["trained"] <= 1 - cut / len(rollouts)
    assert slopes.norm() > 1e-3
    torch.testing.assert_close(ours, slopes, rtol=1e-3, atol=1e-5)
