"""What is worth watching about a batch of scored rollouts, and about what is learnt from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.arrays import Bools, Floats
from adjudge.rl_integration.trainer.contract.task import Rollout


def tool_facts(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return the numbers of a batch; none for answers of one turn.

    Returns:
        "tool_calls": answered calls of an answer, on average; "tool_errors": the share of them that were answered with
        an error, if there were any; "tool_tokens": tokens of an answer that tools wrote, on average.
    """
    dialogues = [rollout for rollout in rollouts if rollout.turns]
    if not dialogues:
        return {}
    told = [turn for rollout in dialogues for turn in rollout.turns if turn["role"] == "tool"]
    found = {
        "tool_calls": len(told) / len(dialogues),
        "tool_tokens": sum(int((~rollout.own).sum()) for rollout in dialogues) / len(dialogues),
    }
    return found | ({"tool_errors": sum(not turn["ok"] for turn in told) / len(told)} if told else {})


PART = "parts/"
"""How the names of components' means begin."""

REASON = "failed/"
"""How the names of shares of failures by reason begin."""

_PARTS = 24  # components that are told: the items of a rubric are other ones for every prompt
_SEEN = 0.1  # share of the scores that a component must be in
_DEPTH = 3  # composites in composites


def batch_facts(rollouts: Sequence[Rollout], scores: Sequence[Score], step: int) -> dict[str, float]:
    """Return the numbers of a batch.

    Returns:
        Shares, means over answers, and the mean of every component of the reward ("parts/NAME") over the answers for
        which it was judged.
    """
    count = len(rollouts)
    values = [score.value for score in scores if score.value is not None]
    reasons = Counter(score.reason for score in scores if score.status == "failed")
    return {
        "failed": sum(reasons.values()) / count,
        "abstained": sum(score.status == "abstained" for score in scores) / count,
        **{f"{REASON}{reason}": times / count for reason, times in sorted(reasons.items())},
        **({"reward_std": float(np.std(values))} if values else {}),
        **part_means(scores),
        "completion_length": sum(len(rollout.ids) for rollout in rollouts) / count,
        "clipped_ratio": sum(rollout.finish_reason == "length" for rollout in rollouts) / count,
        "staleness": sum(step - 1 - rollout.version for rollout in rollouts) / count,
        **tool_facts(rollouts),
    }


def part_means(scores: Sequence[Score]) -> dict[str, float]:
    """Return the mean of each component of the rewards, over the answers for which it was judged.

    Components that are in fewer than a tenth of the scores are left out, and of many the most frequent are told.
    """
    found: dict[str, list[float]] = {}
    for score in scores:
        for name, value in _parts(score, "", _DEPTH):
            found.setdefault(name, []).append(value)
    often = sorted(found, key=lambda name: (-len(found[name]), name))[:_PARTS]
    return {
        f"{PART}{name}": float(np.mean(found[name]))
        for name in sorted(often)
        if len(found[name]) >= _SEEN * len(scores)
    }


def advantage_facts(advantages: Sequence[Floats], counted: Bools) -> dict[str, float]:
    """Return mean and spread of the advantages, over the answers that count, each by the mean over its tokens."""
    means = [float(np.mean(row)) for row, counts in zip(advantages, counted, strict=True) if counts and np.size(row)]
    return {"advantage_mean": float(np.mean(means)), "advantage_std": float(np.std(means))} if means else {}


def _parts(score: Score, prefix: str, depth: int) -> Iterator[tuple[str, float]]:
    for name, part in score.parts.items():
        if part.value is not None:
            yield f"{prefix}{name}", part.value
        if depth > 1:
            yield from _parts(part, f"{prefix}{name}/", depth - 1)
