"""Rewards of samples in groups: what every advantage rule reads, and where a missing reward loses its vote.

A group holds the samples of one prompt.  A sample that could not be judged is not valid: it enters no mean, no standard
deviation, no count, and its advantage is 0.  Rules that compare samples with each other need two valid members; a group
with fewer is not counted, and a trainer gives its tokens no loss (`Groups.counted`).

Penalties are subtracted from rewards before advantages: of overlong answers, and of leaving the reference policy.

| shaping | formula | source |
|---|---|---|
| `Overlong` | 0 up to limit - buffer, then linear to -factor at the limit | DAPO, arXiv 2503.14476 |
| `kl_penalty` | r_i - beta * Σ_t (logp - logp_reference) | RLOO, REINFORCE++ |
| `token_rewards` | -beta * (logp - logp_reference) at each token, and the reward at the last | PPO, arXiv 2203.02155 |

The latter two take the log-probabilities under which the tokens were sampled, and no gradient.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from adjudge.options import Count, Options, Range
from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.arrays import (
    Bools,
    Floats,
    Integers,
    check_number,
    flags,
    floats,
    integers,
    same_shape,
)
from adjudge.rl_integration.trainer.data.task import Rollout


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """One reward for each sample, and which samples belong together.

    Attributes:
        rewards: (n,) in any unit; what stands at samples that are not valid is never read.
        ids: (n,) group of each sample; whole numbers from 0 in any order.
        valid: (n,) whether the sample was judged.
        strata: (n,) a second key within the group, for `Stratified`; such as the number of searches.
        parts: (n, k) the rewards of k scorers, for `SeveralRewards`; NaN where one has none.
        names: k names of those scorers, if they have any.
        lengths: (n,) response tokens, for statistics over tokens.

    Raises:
        ValueError: shapes or types differ, a valid reward is not finite, or an id is negative.
    """

    rewards: Floats
    ids: Integers
    valid: Bools
    strata: Integers | None = None
    parts: Floats | None = None
    lengths: Integers | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rewards = floats("rewards", self.rewards)
        if rewards.ndim != 1:
            raise ValueError(f"rewards have the shape {rewards.shape}; give one number for each sample")
        size = rewards.shape
        valid = flags("valid", self.valid)
        same_shape("valid", valid.shape, size)
        ids = integers("ids", self.ids)
        same_shape("ids", ids.shape, size)
        if len(ids) and ids.min() < 0:
            raise ValueError(f"the group {ids.min()} is negative; number groups from 0")
        bad = np.flatnonzero(valid & ~np.isfinite(rewards))
        if len(bad):
            raise ValueError(f"sample {bad[0]} is valid and has the reward {rewards[bad[0]]}; it must be finite")
        for name in ("strata", "lengths"):
            if getattr(self, name) is not None:
                whole = integers(name, getattr(self, name))
                same_shape(name, whole.shape, size)
                object.__setattr__(self, name, whole)
        if self.parts is not None:
            parts = floats("parts", self.parts)
            if parts.ndim != 2 or len(parts) != len(rewards):
                raise ValueError(f"parts have the shape {parts.shape}; give a row for each of {len(rewards)} samples")
            if self.names and len(self.names) != parts.shape[1]:
                raise ValueError(f"there are {len(self.names)} names and {parts.shape[1]} parts; name each")
            object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "rewards", np.where(valid, rewards, 0.0))
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "ids", np.unique(ids, return_inverse=True)[1].reshape(size).astype(np.int64))

    @classmethod
    def of(cls, rewards: Sequence[float | None], groups: Sequence[Hashable]) -> Groups:
        """Return the groups of scores as a scorer gives them: None is a sample that could not be judged."""
        places: dict[Hashable, int] = {}
        ids = [places.setdefault(group, len(places)) for group in groups]
        known = np.array([reward is not None for reward in rewards], dtype=np.bool_)
        given = floats("rewards", [0.0 if reward is None else reward for reward in rewards])
        return cls(rewards=given, ids=np.array(ids, dtype=np.int64), valid=known)

    def __len__(self) -> int:
        return len(self.rewards)

    def sums(self, values: Floats) -> Floats:
        """Return at each sample the sum of the valid members' values of its group."""
        group_sums = np.zeros(int(self.ids.max(initial=-1)) + 1)
        np.add.at(group_sums, self.ids[self.valid], values[self.valid])
        return group_sums[self.ids]

    def counts(self) -> Floats:
        """Return at each sample how many valid members its group has."""
        return self.sums(np.ones(len(self)))

    def counted(self, min_size: int) -> Bools:
        """Return which samples take part: those that are valid, in groups of at least so many valid members."""
        return self.valid & (self.counts() >= min_size)

    def means(self, values: Floats | None = None) -> Floats:
        """Return at each sample the mean of its group's valid members; 0 where there is none."""
        means: Floats = self.sums(self.rewards if values is None else values) / np.maximum(self.counts(), 1)
        return means

    def deviations(self, values: Floats | None = None) -> Floats:
        """Return at each sample the standard deviation of its group, with n - 1 below; 0 for fewer than two.

        A group of equal values has exactly 0, not what rounding leaves.
        """
        given = self.rewards if values is None else values
        squares: Floats = (given - self.means(given)) ** 2
        spread = self.sums(squares) / np.maximum(self.counts() - 1, 1)
        return np.where(self.uniform(given), 0.0, np.sqrt(spread))

    def uniform(self, values: Floats | None = None) -> Bools:
        """Return at each sample whether all valid members of its group have the same value; also of none or one."""
        given = self.rewards if values is None else values
        return np.less_equal(self.largest(given), -self.largest(-given))

    def largest(self, values: Floats | None = None) -> Floats:
        """Return at each sample the largest value among its group's valid members; -inf where there is none."""
        given = self.rewards if values is None else values
        maxima = np.full(int(self.ids.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(maxima, self.ids[self.valid], given[self.valid])
        return maxima[self.ids]


def groups_of(rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Groups:
    """The scores as the rules of advantages read them, with all that any of them may want."""
    names = sorted({name for score in scores for name in score.parts})
    values = [[score.parts[name].value if name in score.parts else None for name in names] for score in scores]
    return replace(
        Groups.of([score.value for score in scores], [rollout.task.id for rollout in rollouts]),
        parts=floats("parts", values) if names else None,  # type: ignore[arg-type]
        names=tuple(names),
        # How often a tool spoke.
        strata=np.array([np.count_nonzero(np.diff(one.own.astype(np.int8), prepend=1) == -1) for one in rollouts]),
        lengths=np.array([len(rollout.ids) for rollout in rollouts], dtype=np.int64),
    )


def informative(groups: Groups, *, spread: float = 0.0) -> Bools:
    """Return (n,) whether the sample's group is worth keeping, as in DAPO's dynamic sampling (arXiv 2503.14476).

    Args:
        groups: the samples; by default verifiers' 0 and 1 are meant, and any two different rewards will do.
        spread: the difference of the best and the worst reward that is needed; a group at it is not kept.
    """
    known = groups.counts() >= 2
    largest = np.where(known, groups.largest(), 0.0)
    smallest = np.where(known, -groups.largest(-groups.rewards), 0.0)
    kept: Bools = known & (largest - smallest > spread)
    return kept


@dataclass(frozen=True, kw_only=True)
class Overlong(Options):
    """DAPO's soft penalty of length.

    Attributes:
        limit: response tokens at which generation stops.
        buffer: tokens before the limit over which the penalty grows.
        factor: the penalty at the limit; the reward's unit.
    """

    limit: Count = 20480
    buffer: Count = 4096
    factor: Annotated[float, Range(ge=0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buffer > self.limit:
            raise ValueError(f"buffer={self.buffer} is more than limit={self.limit}; it must lie before the limit")

    def __call__(self, lengths: Integers) -> Floats:
        """Return (n,) numbers in [-factor, 0] to add to the rewards of responses of so many tokens."""
        excess = np.asarray(lengths, dtype=np.float64) - (self.limit - self.buffer)
        return -self.factor * np.clip(excess / self.buffer, 0.0, 1.0)


def kl_penalty(logp: Floats, reference_logp: Floats, mask: Bools, beta: float) -> Floats:
    """Return (n,) numbers to add to the rewards: -beta times the log-ratio of each response.

    Args:
        logp: (n, t) log-probabilities when the tokens were sampled.
        reference_logp: (n, t) of the reference policy.
        mask: (n, t) tokens of the policy.
        beta: weight of the penalty, 0 or more.

    Raises:
        ValueError: shapes differ, or beta is below 0.
    """
    penalty: Floats = -beta * _log_ratio(logp, reference_logp, mask, beta).sum(axis=1)
    return penalty


def token_rewards(
    rewards: Floats, mask: Bools, *, logp: Floats | None = None, reference_logp: Floats | None = None, beta: float = 0.0
) -> Floats:
    """Return (n, t) token rewards: the response's reward at its last token of the policy, and the penalty at each.

    A response without a token of the policy has no place for its reward, and gets none.

    Args:
        rewards: (n,) one for each response; not read where a row of the mask is empty.
        mask: (n, t) tokens of the policy, of valid samples alone.
        logp: (n, t) log-probabilities when the tokens were sampled; needed unless beta is 0.
        reference_logp: (n, t) of the reference policy; needed unless beta is 0.
        beta: weight of the penalty, 0 or more.

    Raises:
        ValueError: shapes differ, beta is below 0, or log-probabilities are needed and missing.
    """
    mask = flags("mask", mask)
    same_shape("rewards", np.shape(rewards), mask.shape[:1])
    shaped = np.zeros(mask.shape)
    if beta:
        if logp is None or reference_logp is None:
            raise ValueError(f"beta={beta} needs logp and reference_logp; give both, or beta=0")
        shaped -= beta * _log_ratio(logp, reference_logp, mask, beta)
    rows = np.flatnonzero(mask.any(axis=1))
    last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)
    shaped[rows, last[rows]] += np.asarray(rewards, dtype=np.float64)[rows]
    return shaped


def _log_ratio(logp: Floats, reference_logp: Floats, mask: Bools, beta: float) -> Floats:
    check_number("beta", beta, Range(ge=0))
    same_shape("logp", np.shape(logp), np.shape(mask))
    same_shape("reference_logp", np.shape(reference_logp), np.shape(mask))
    hidden = ~flags("mask", mask)
    return np.where(hidden, 0.0, np.where(hidden, 0.0, logp) - np.where(hidden, 0.0, reference_logp))
