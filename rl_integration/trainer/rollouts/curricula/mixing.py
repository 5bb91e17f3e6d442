"""How much of a batch each source of prompts gets, by how much was learnt from it lately: SEC and DUMP.

| rule | score of source j | temperature of the softmax | source |
|---|---|---|---|
| `Sec` | moving average over batches of mean |A| | 0.2 to 1, tuned | SEC, arXiv 2505.14970 |
| `Dump` | mean |A| of the last 300 samples + sqrt(2 ln(N + 1) / (n_j + 1)) | 0.1 | DUMP, arXiv 2504.09710 |

n_j counts the samples of j, N those of all.  SEC's temperatures are from memory of the paper, as is the weight 0.5 of
the newest batch (`Record(rate=0.5)`).  A source that was never drawn has SEC's score 0 and DUMP's largest bonus.

Not covered: which prompt of a source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_above
from adjudge.rl_integration.trainer.rollouts.curricula.record import Record


@dataclass(frozen=True, kw_only=True)
class Sec:
    """Chances of sources by the moving average of advantages; see the module.

    Attributes:
        temperature: small for nearly always the best source.
    """

    temperature: float = 0.2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_above("temperature", self.temperature, 0.0)

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        return _softmax([record.source(name).value for name in sources], self.temperature)


@dataclass(frozen=True, kw_only=True)
class Dump:
    """Chances of sources by recent advantages and an upper bound for what is not known; see the module.

    Attributes:
        temperature: small for nearly always the best source.
    """

    temperature: float = 0.1

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_above("temperature", self.temperature, 0.0)

    def chances(self, record: Record, sources: Sequence[str]) -> Floats:
        """Return (k,) chances that sum to 1."""
        known = [record.source(name) for name in sources]
        total = sum(one.seen for one in known)
        scores = [one.mean + math.sqrt(2 * math.log(total + 1) / (one.seen + 1)) for one in known]
        return _softmax(scores, self.temperature)


def _softmax(scores: Sequence[float], temperature: float) -> Floats:
    if not len(scores):
        raise ValueError("there are no sources to choose from; give at least one")
    powers = np.exp((np.array(scores) - max(scores)) / temperature)
    chances: Floats = powers / powers.sum()
    return chances
