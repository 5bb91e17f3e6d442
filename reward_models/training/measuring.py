"""Rewards of held-out examples, and what they are worth.

Not covered: the metrics themselves (`held_out`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjudge.reward_models.training import category_metrics
from adjudge.reward_models.training.batch_plan import micro_batches
from adjudge.reward_models.training.encoded import Encoded
from adjudge.reward_models.training.held_out import (
    JudgedPairs,
    Numbers,
    label_measures,
    pair_measures,
    rating_measures,
    require_finite,
)
from adjudge.reward_models.training.pair_readers import Example
from adjudge.reward_models.training.pairs import Pair
from adjudge.reward_models.training.ratings import Rating
from adjudge.reward_models.training.report import Measures
from adjudge.statistics.intervals import clustered_mean


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An example with the rewards of its responses.

    Attributes:
        example: what was judged.
        rewards: (responses, outputs).
        lengths: of the responses, in tokens or characters.
        cluster: the prompt's family.
    """

    example: Example
    rewards: Numbers
    lengths: Numbers
    cluster: str


def raw_outputs(network: Any, units: Sequence[Encoded], *, budget: int, device: Any, bf16: bool) -> list[Numbers]:
    """Return the raw numbers, (rows, columns), of each example's responses; paraphrases are left out.

    Args:
        network: a `RewardNetwork`; it is left in evaluation mode.
        units: the examples.
        budget: most tokens of a forward pass, with padding.
        device: where the network is.
        bf16: whether its body computes in bfloat16.
    """
    import torch

    rows = [(at, place) for at, unit in enumerate(units) for place in range(len(unit.ranks) or 1)]
    tokens = [units[at].rows[place] for at, place in rows]
    found: list[Any] = [None] * len(rows)
    network.eval()
    with torch.inference_mode(), torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=bf16):
        for members in micro_batches([len(row) for row in tokens], [[at] for at in range(len(rows))], budget):
            width = max(len(tokens[at]) for at in members)
            ids = torch.zeros(len(members), width, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for line, at in enumerate(members):
                ids[line, : len(tokens[at])] = torch.from_numpy(tokens[at].astype(np.int64))
                mask[line, : len(tokens[at])] = 1
            raw = require_finite(network(ids.to(device), mask.to(device)).double().cpu().numpy())
            for line, at in enumerate(members):
                found[at] = raw[line]
    outputs: list[list[Any]] = [[] for _ in units]
    for (at, _), numbers in zip(rows, found, strict=True):
        outputs[at].append(numbers)
    return [np.stack(numbers) for numbers in outputs]


def judged_pairs(judged: Sequence[Judged]) -> JudgedPairs:
    """Return the pairs of judged pairs and lists; the reward is the mean over columns (members of an ensemble)."""
    two: list[tuple[float, ...]] = []
    clusters: list[str] = []
    for one in judged:
        rewards, lengths = one.rewards.mean(axis=1), one.lengths
        if isinstance(one.example, Pair):
            given = one.example.probability
            sides = [(0, 1, 0.5 if one.example.tie else 1.0 if given is None else given)]
        elif isinstance(one.example, Rating):
            sides = []
        else:
            ranks = one.example.ranks
            sides = [(i, j, 1.0) for i in range(len(ranks)) for j in range(len(ranks)) if ranks[i] < ranks[j]]
        for i, j, probability in sides:
            two.append((rewards[i], rewards[j], lengths[i], lengths[j], probability))
            clusters.append(one.cluster)
    better, worse, better_length, worse_length, told = np.array(two, dtype=float).T
    return JudgedPairs(
        better=better,
        worse=worse,
        better_length=better_length,
        worse_length=worse_length,
        clusters=clusters,
        probability=told,
    )


def preference_measures(judged: Sequence[Judged]) -> Measures:
    """Return what rewards of pairs and lists are worth."""
    found, rules = pair_measures(judged_pairs(judged))
    lists = [one for one in judged if not isinstance(one.example, Pair | Rating)]
    if lists:
        right = [_best_first(one) for one in lists]
        found["best_first"] = clustered_mean(right, [one.cluster for one in lists])
    return found, rules


def rated_measures(judged: Sequence[Judged], *, labels: bool, means: Numbers, attributes: Sequence[str]) -> Measures:
    """Return what predictions of ratings are worth.

    Args:
        judged: rated responses.
        labels: the ratings are labels in [0, 1], and the predictions log-odds.
        means: of each attribute over the training examples.
        attributes: their names.
    """
    clusters = [one.cluster for one in judged]
    targets = np.array([_values(one.example) for one in judged], dtype=float)
    predicted = np.concatenate([one.rewards for one in judged])
    if labels:
        lengths = np.concatenate([one.lengths for one in judged])
        return label_measures(predicted.mean(axis=1), targets[:, 0], lengths, clusters)
    return rating_measures(predicted, targets, means, clusters, attributes)


def category_measures(judged: Sequence[Judged], attributes: Sequence[str]) -> Measures:
    """Return what log-odds of labels that may hold together are worth, and what a rule that always says yes reaches."""
    targets = np.array([_values(one.example) for one in judged], dtype=float)
    return category_metrics.category_measures(np.concatenate([one.rewards for one in judged]), targets, attributes)


def training_means(examples: Sequence[Example]) -> Numbers:
    """Return the mean of each attribute over rated examples; 0 where nothing is rated."""
    values = np.array([_values(example) for example in examples], dtype=float)
    counts = (~np.isnan(values)).sum(axis=0)
    means: Numbers = np.nansum(values, axis=0) / np.maximum(counts, 1)
    return means


def _values(example: Example) -> list[float]:
    assert isinstance(example, Rating)
    return [np.nan if value is None else value for value in example.values]


def _best_first(one: Judged) -> float:
    """1 if a best response has the highest reward and no worse one has it too."""
    assert not isinstance(one.example, Pair | Rating)
    rewards = one.rewards.mean(axis=1)
    best = [reward for reward, rank in zip(rewards, one.example.ranks, strict=True) if rank == min(one.example.ranks)]
    rest = [reward for reward, rank in zip(rewards, one.example.ranks, strict=True) if rank != min(one.example.ranks)]
    return float(max(best) > max(rest))
