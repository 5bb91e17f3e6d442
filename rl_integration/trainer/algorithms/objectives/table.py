"""The published objectives by name; each is plain data, and `Objective.but` changes single options.

Defaults are the papers' or, where those differ, the released code's; docs/objectives.md has the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from adjudge.options import named
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import (
    Asymmetric,
    BatchRelative,
    BestOfGroup,
    GroupRelative,
    LeaveOneOut,
    MaximumLikelihood,
    SeveralRewards,
    Signed,
    SoftMean,
    Stratified,
    Tilted,
)
from adjudge.rl_integration.trainer.algorithms.objectives.inside import AttentionRhythm, EffectiveRank
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Critic, Objective
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss, Preference, Rover
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import RelativeEntropy, Steer, TopEntropy
from adjudge.rl_integration.trainer.rewards.groups import Overlong

_GRPO = PolicyLoss(aggregation="sequence_mean")
_DAPO = PolicyLoss(clip_ratio_high=0.28)
_PLAIN = PolicyLoss(surrogate="plain")

OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        # Relative to the group.
        "grpo": Objective(rule=GroupRelative(), policy=_GRPO),
        "dr_grpo": Objective(rule=GroupRelative(scale="none"), policy=PolicyLoss(aggregation="constant")),
        "dapo": Objective(rule=GroupRelative(), policy=_DAPO, overlong=Overlong(), resample=True),
        "gspo": Objective(
            rule=GroupRelative(),
            policy=PolicyLoss(level="sequence", clip_ratio_low=3e-4, clip_ratio_high=4e-4, aggregation="sequence_mean"),
        ),
        "atpo": Objective(
            rule=GroupRelative(),
            policy=PolicyLoss(level="turn", clip_ratio_low=3e-3, clip_ratio_high=4e-3, aggregation="sequence_mean"),
        ),
        "cispo": Objective(rule=GroupRelative(), policy=PolicyLoss(surrogate="detached", clip_ratio_c=5.0)),
        "lite_ppo": Objective(rule=GroupRelative(scale="batch"), policy=PolicyLoss()),
        "rloo": Objective(
            rule=LeaveOneOut(), policy=PolicyLoss(level="whole", aggregation="sequence_mean"), reward_beta=0.05
        ),
        "loop": Objective(rule=LeaveOneOut(), policy=PolicyLoss()),
        "maxrl": Objective(rule=MaximumLikelihood(), policy=PolicyLoss()),
        "passk": Objective(rule=BestOfGroup(), policy=PolicyLoss()),
        "gdpo": Objective(rule=SeveralRewards(), policy=_GRPO),
        "san": Objective(rule=Stratified(), policy=_GRPO),
        "rapo": Objective(
            rule=GroupRelative(),
            policy=PolicyLoss(aggregation="sequence_mean", beta=0.01, kl_estimator="forward", entropy_coef=0.001),
            reweighted_reference=True,
        ),
        # Relative to the batch, or to nothing.
        "reinforce": Objective(rule=BatchRelative(scale=False), policy=_PLAIN),
        "reinforce_plus_plus": Objective(rule=BatchRelative(), policy=PolicyLoss(), reward_beta=0.01),
        "reinforce_plus_plus_baseline": Objective(rule=BatchRelative(baseline="group"), policy=PolicyLoss()),
        "psr": Objective(rule=Signed(right=1.0, wrong=0.0), policy=_PLAIN),
        "nsr": Objective(rule=Signed(right=0.0, wrong=1.0), policy=_PLAIN),
        "w_reinforce": Objective(rule=Signed(right=0.1, wrong=1.0), policy=_PLAIN),
        # For samples of an older policy.
        "opmd": Objective(rule=SoftMean(), policy=PolicyLoss(surrogate="plain", tau=1.0)),
        "asymre": Objective(rule=Asymmetric(), policy=_PLAIN),
        "rec": Objective(rule=GroupRelative(scale="none"), policy=PolicyLoss(surrogate="masked")),
        "red_drop": Objective(rule=Tilted(), policy=_PLAIN),
        "red_weight": Objective(rule=Tilted(how="weight"), policy=_PLAIN),
        "rover": Objective(rule=GroupRelative(scale="none"), policy=Rover()),
        # Weights of tokens.
        "top_entropy": Objective(
            rule=GroupRelative(), policy=PolicyLoss(clip_ratio_high=0.28, weighting=TopEntropy()), resample=True
        ),
        "steer": Objective(rule=GroupRelative(), policy=PolicyLoss(clip_ratio_c=3.0, weighting=Steer())),
        "ettrl": Objective(
            rule=GroupRelative(), policy=PolicyLoss(aggregation="sequence_mean", weighting=RelativeEntropy())
        ),
        # By what goes on inside the policy.
        "attention_rhythm": Objective(rule=GroupRelative(), policy=_GRPO, shaping=AttentionRhythm()),
        "effective_rank": Objective(rule=GroupRelative(), policy=_GRPO, shaping=EffectiveRank()),
        # With a critic, and with pairs.
        "ppo": Objective(rule=None, policy=PolicyLoss(), critic=Critic(), reward_beta=0.05),
        "dpo": Objective(rule=GroupRelative(scale="none"), policy=Preference()),
        "rpo": Objective(rule=GroupRelative(scale="none"), policy=Preference(eta=0.2)),
    }
)


def objective(name: str) -> Objective:
    """Return a published objective, or raise `ValueError`."""
    return named(OBJECTIVES, name, "objective")
