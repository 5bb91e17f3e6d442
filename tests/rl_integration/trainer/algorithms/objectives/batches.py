"""Random groups of rewards, random tokens, and the plain loops that the rules are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from hypothesis import strategies as st

from adjudge.rl_integration.trainer.algorithms.objectives.tokens import TokenBatch
from adjudge.rl_integration.trainer.rewards.groups import Groups

Formula: TypeAlias = Callable[[list[float]], list[float]]

UNIT = st.sampled_from([0.0, 1.0]) | st.floats(0, 1, width=16)
ANY = st.sampled_from([-1.0, 0.0, 1.0]) | st.floats(-3, 3, width=16)


@st.composite
def batches(draw: st.DrawFn, rewards: st.SearchStrategy[float] = ANY) -> Groups:
    """Return up to five groups of up to six, interleaved; some samples not valid, some groups of one or of equals."""
    members: list[tuple[int, float | None]] = []
    for group in range(draw(st.integers(0, 5))):
        size = draw(st.integers(1, 6))
        values = (
            [draw(rewards)] * size if draw(st.booleans()) else draw(st.lists(rewards, min_size=size, max_size=size))
        )
        lost = draw(st.lists(st.booleans(), min_size=size, max_size=size) | st.just([False] * size))
        members += [(group * 7, None if gone else one) for one, gone in zip(values, lost, strict=True)]
    order = draw(st.permutations(members))
    return Groups(
        rewards=np.array([math.nan if reward is None else reward for _, reward in order]),
        ids=np.array([group for group, _ in order], dtype=np.int64),
        valid=np.array([reward is not None for _, reward in order], dtype=np.bool_),
        strata=np.array([place % 2 for place in range(len(order))], dtype=np.int64),
        lengths=np.array([1 + place % 5 for place in range(len(order))], dtype=np.int64),
    )


def in_groups(groups: Groups, formula: Formula, least: int = 2) -> list[float]:
    """Return what a formula makes of the valid rewards of each group, 0 for all others."""
    found = [0.0] * len(groups)
    for group in set(groups.ids.tolist()):
        rows = [row for row in range(len(groups)) if groups.ids[row] == group and groups.valid[row]]
        if len(rows) >= least:
            for row, value in zip(rows, formula([float(groups.rewards[row]) for row in rows]), strict=True):
                found[row] = value
    return found


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def spread(values: list[float]) -> float:
    """The standard deviation with n - 1 below."""
    if len(values) < 2:
        return 0.0
    return math.sqrt(math.fsum((value - mean(values)) ** 2 for value in values) / (len(values) - 1))


def token_batch(seed: int, rows: int = 6, width: int = 5, **more: Any) -> TokenBatch:
    """Random responses with gaps, as tools leave them, in groups of three; the second of them does not count."""
    draw = torch.Generator().manual_seed(seed)
    noise = [torch.randn(rows, width, generator=draw, dtype=torch.float64) for _ in range(6)]
    mask = torch.rand(rows, width, generator=draw) < 0.8
    counted = torch.tensor([place != 1 for place in range(rows)])
    logp = -noise[0].abs() - 0.1
    given: dict[str, Any] = {
        "logp": logp,
        "mask": mask,
        "advantages": noise[1][:, 0],
        "counted": counted,
        "old_logp": logp + 0.3 * noise[2],
        "sampler_logp": logp + 0.3 * noise[2] + 0.3 * noise[3],
        "reference_logp": logp + 0.5 * noise[4],
        "entropy": 2 * noise[5].abs(),
        "next_value": noise[3] / 5,
        "group": torch.arange(rows) // 3,
    }
    return TokenBatch(**{**given, **more})
