"""Every key of a configuration file is listed and explained, and words of other trainers lead to ours."""

from __future__ import annotations

from dataclasses import MISSING
from typing import Any

import pytest

from adjudge.cli.train import _BY_REWARDS, TRAINERS, _named
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES, objective
from adjudge.training.config_keys import WORDS, config_keys, meant

KINDS: dict[str, Any] = {name: _named(homes[0]) for name, homes in TRAINERS.items()} | {"run": _named(_BY_REWARDS)}
PATHS = {key.path: key for kind in KINDS.values() for key in config_keys(kind)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_explained(kind: str) -> None:
    keys = list(config_keys(KINDS[kind]))
    assert len(keys) > 30
    assert [key.path for key in keys if not key.said] == []
    assert {key.path for key in keys if key.default is MISSING and not key.parent} <= {
        "model",
        "data",
        "output",
        "reward",
    }


@pytest.mark.parametrize(
    ("kind", "word", "value", "ours"),
    [
        ("run", "lr", 1e-6, ["learning.learning_rate"]),
        ("rm", "lr", 1e-6, ["schedule.learning_rate"]),
        ("run", "learning_rate", 1e-6, ["learning.learning_rate"]),
        ("run", "num_generations", 8, ["rollouts.num_generations"]),
        ("run", "rollouts.num_generations", 8, ["rollouts.num_generations"]),
        ("run", "kl_coef", 0.1, ["objective.set.reward_beta"]),
        ("run", "kl_loss_coef", 0.1, ["objective.set.policy.beta"]),
        ("run", "target_kl", 0.1, []),
        ("run", "generation_batch_size", 64, ["rollouts.tasks"]),
        ("run", "scale_rewards", "batch", ["objective.set.rule.scale"]),
        ("run", "algorithm", {"norm_adv_by_std_in_grpo": True}, ["objective.set.rule.scale"]),
        ("run", "algorithm", {"use_kl_in_reward": True}, ["objective.set.reward_beta"]),
        ("run", "importance_sampling_level", "sequence", ["objective.set.policy.level"]),
        ("run", "top_entropy_quantile", 0.2, ["objective.set.policy.weighting.share"]),
        ("run", "learning.lora.r", 8, ["learning.lora.rank"]),
        ("rm", "schedule.lora.r", 8, ["schedule.lora.rank"]),
        ("policy", "beta", 0.1, ["loss.beta"]),
        ("run", "max_completion_length", 256, ["rollouts.sampling.max_new_tokens"]),
        ("rm", "per_device_train_batch_size", 8, ["schedule.batch_size"]),
        ("run", "per_device_train_batch_size", 8, ["rollouts.tasks"]),
        ("rm", "report_to", "wandb", ["schedule.report_to"]),
        ("run", "logs", ["wandb"], ["report_to"]),
        ("run", "actor_rollout_ref", {"rollout": {"n": 8}}, ["rollouts.num_generations"]),
        ("run", "algorithm", {"adv_estimator": "grpo"}, ["objective.name"]),
        ("run", "algorithm", {"adv_estimator": "gae", "lam": 1}, ["objective.name", "objective.set.critic.gae.lam"]),
        ("run", "rollouts.ahead", 1, ["rollouts.staleness"]),
        ("run", "rollouts.sampling.most_new_tokens", 8, ["rollouts.sampling.max_new_tokens"]),
        ("run", "guard", {"gold": {"most_failed": 0.1}}, ["guard.gold.max_failed"]),
        ("run", "critic", {"optim": {"lr": 1e-5}}, ["learning.critic_learning_rate"]),
        ("rm", "schedule.epoch", 2, ["schedule.epochs"]),
        ("rm", "schedule.steps", 2, ["schedule.epochs"]),
        ("run", "stepps", 2, ["steps"]),
        ("rm", "xyzzy", 2, []),
    ],
    ids=str,
)
def test_what_is_meant(kind: str, word: str, value: Any, ours: list[str]) -> None:
    assert meant(KINDS[kind], word, value) == ours


@pytest.mark.parametrize("word", WORDS)
def test_words_of_others_stand_for_keys_that_exist(word: str) -> None:
    assert word == word.lower()
    for path in WORDS[word]:
        mapping, _, inside = path.partition(".set.")
        if mapping == "objective":
            change = {inside: None}
            tried = [_refusal(name, change) for name in OBJECTIVES]
            assert not all("there is no option" in problem for problem in tried), path
        elif path not in ("--resume", "regularizers.centering"):
            assert path in PATHS, path


def _refusal(name: str, change: dict[str, Any]) -> str:
    try:
        objective(name).but(change)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""
