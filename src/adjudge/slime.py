"""slime: a reward for samples and groups, and reward normalisation in which removed samples have no vote.

    # my_rewards.py
    reward = SlimeReward(scorer="math", fallback=0.0)

with slime's options `custom-rm-path` set to `my_rewards.reward` and `custom-reward-post-process-path` to
`adjudge.slime.normalized_rewards`.

slime wants a number for every sample.  One without a score is given the `fallback` and marked with `remove_sample`,
which takes it out of the loss; `normalized_rewards` also takes it out of its group's mean and standard deviation, where
slime itself leaves it.

Written from slime's source (commit 624b824).  Not covered: evaluation, which averages the fallback like any number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward

_ENDS = {"completed": "stop", "truncated": "length", "aborted": "abort"}
_CENTRED = ("grpo", "gspo", "cispo", "rloo", "reinforce_plus_plus_baseline")
_SCALED = ("grpo", "gspo", "cispo")


@dataclass(eq=False, kw_only=True)
class SlimeReward(RowReward):
    """Scores one of slime's samples, or a list of them: slime calls the same function with either.

    Attributes:
        reference: where the reference is among the sample's metadata and its `label`.

    The others are those of `RowReward`; the group is slime's own unless one is named.
    """

    framework = "slime"
    remedy = ""
    reference: Place = "label"

    async def __call__(self, args: Any, sample: Any, **_options: Any) -> Any:
        """Return a reward, or a list of them for a list; called by slime.

        Args:
            args: slime's options; `reward_key` is read.
            sample: a `slime.utils.types.Sample`, or a list of them.
            _options: what some versions pass besides (`evaluation`); not used.

        Returns:
            A number; with `reward_key` set an object with the number under it, the status and the reason.

        Raises:
            NotScored: a sample has no score, and there is no fallback.
            TooManyFailures: too many of the latest samples failed.
            ValueError: the metadata lacks the reference, `eval_reward_key` is set without `reward_key`, or there is a
                list within the list.
        """
        keys = _reward_keys(args)
        several = isinstance(sample, list | tuple)
        if not several:
            self._asked.check_alone("set its option group-rm, with which it gives whole groups")
        given = sample if several else [sample]
        rows = [_row(one) for one in given]
        scores = await self.scores(rows, [self._sample(row, one) for row, one in zip(rows, given, strict=True)])
        rewards: list[Any] = [self._asked.number(score) for score in scores]
        for one, score in zip(given, scores, strict=True):
            if score.value is None:
                one.remove_sample = True
        if keys:
            rewards = [
                {**dict.fromkeys(keys, reward), "status": score.status, "reason": score.reason}
                for reward, score in zip(rewards, scores, strict=True)
            ]
        return rewards if several else rewards[0]

    def _sample(self, row: Mapping[str, Any], given: Any) -> Sample:
        return self.made_sample(
            row,
            given.prompt,
            given.response,
            group="" if given.group_index is None else str(given.group_index),
            finish_reason=_ENDS.get(getattr(given.status, "value", given.status)),
        )


def _row(given: Any) -> dict[str, Any]:
    if isinstance(given, list | tuple):
        raise ValueError(
            "slime gave a list within a list: a generate function that makes several samples of one, with group-rm, "
            "for which slime itself takes no rewards; leave group-rm out, or make one sample of each"
        )
    return {**(given.metadata if isinstance(given.metadata, Mapping) else {}), "label": given.label}


def _reward_keys(args: Any) -> list[str]:
    train, evaluation = getattr(args, "reward_key", None), getattr(args, "eval_reward_key", None)
    if evaluation and not train:
        raise ValueError(
            f"slime's eval_reward_key is {evaluation!r} and reward_key is not set: evaluation would want an object and "
            "training a number. Set both, or neither"
        )
    return [key for key in dict.fromkeys((train, evaluation)) if key]


def normalized_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Return raw and normalised rewards as slime does, with `remove_sample` leaving a sample out of its group.

    A removed sample gets the mean of the others of its group, and so the advantage 0.  Groups are told by `group_index`
    and may differ in size; slime itself takes one mean over the whole batch where they do.

    Args:
        args: slime's options: `advantage_estimator`, `rewards_normalization`, `grpo_std_normalization`, `reward_key`.
        samples: all samples of the batch, each with a reward.

    Raises:
        ValueError: a sample has no `group_index`, or its reward is not a finite number.
    """
    raw = [_reward(args, sample) for sample in samples]
    groups: dict[Any, list[int]] = {}
    for place, sample in enumerate(samples):
        if sample.group_index is None:
            raise ValueError(f"sample {place} of slime has no group_index; without it no group has a mean")
        groups.setdefault(sample.group_index, []).append(place)
    rewards = list(raw)
    estimator = args.advantage_estimator
    centred = bool(args.rewards_normalization) and estimator in _CENTRED
    scaled = estimator in _SCALED and bool(getattr(args, "grpo_std_normalization", False))
    for places in groups.values():
        voting = [place for place in places if not samples[place].remove_sample]
        votes = [raw[place] for place in voting]
        for place in places:
            if samples[place].remove_sample:
                raw[place] = math.fsum(votes) / len(votes) if votes else raw[place]
                rewards[place] = 0.0 if centred else raw[place]
        if centred:
            made = _centred(votes, scaled=scaled, leave_one_out=estimator == "rloo")
            for place, value in zip(voting, made, strict=True):
                rewards[place] = value
    return raw, rewards


def _centred(values: Sequence[float], *, scaled: bool, leave_one_out: bool) -> list[float]:
    """Values less their mean; over the standard deviation if `scaled`, or less the mean of the others."""
    count = len(values)
    if count < 2:
        return [0.0] * count  # there is nothing to compare with; the deviation of one value is not a number
    mean = math.fsum(values) / count
    apart = [value - mean for value in values]
    if leave_one_out:
        return [value * count / (count - 1) for value in apart]
    if not scaled:
        return apart
    deviation = math.sqrt(math.fsum(value * value for value in apart) / (count - 1))
    return [value / (deviation + 1e-6) for value in apart]


def _reward(args: Any, sample: Any) -> float:
    key = getattr(args, "reward_key", None)
    reward = sample.reward.get(key) if key and isinstance(sample.reward, Mapping) else sample.reward
    if not isinstance(reward, Real) or not math.isfinite(reward):
        raise ValueError(
            f"a sample of slime (index {sample.index}) has the reward {reward!r}; it must be a finite number, or an "
            "object with one under reward_key"
        )
    return float(reward)
