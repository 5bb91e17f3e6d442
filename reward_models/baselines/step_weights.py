"""A fitted process model without a network as plain arrays: how it judges steps, and its files.

A folder holds `step_model.json` (options, names, facts) and `step_weights.npz` (arrays, no pickle).  The log-odds of a
step are a sum: the intercept, one weight for each hashed term times its share, and one for each standardised statistic.
A statistic outside the range that the training data had counts as the end of that range, so log-odds are bounded
whatever a step holds.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from adjudge import wire
from adjudge.protocol import Message
from adjudge.reward_models.baselines.linear_files import LinearFiles, check_digest, check_names, dot
from adjudge.reward_models.baselines.linear_fit import Scaling
from adjudge.reward_models.baselines.step_features import StepFeatureOptions, StepFeatures, features_of_steps
from adjudge.reward_models.baselines.step_statistics import GROUPS
from adjudge.statistics.logistic import sigmoid

FORMAT = 1
"""Version of the files and of what the features mean; other versions are refused."""

_TERMS = ("words", "operations")
_PER_STATISTIC = ("lows", "highs", "means", "scales", "statistics")
_ARRAYS = (*_TERMS, *_PER_STATISTIC)
_FILES = LinearFiles(
    called="step model",
    notes="step_model.json",
    arrays="step_weights.npz",
    format=FORMAT,
    remedy="fit one with adjudge train prm and model: ngrams, or name its folder",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class StepWeights:
    """Weights of a linear process model.

    Attributes:
        options: what is looked at.
        words: float32, one weight for each column of the n-grams.
        operations: float32, the same for signs crossed with words.
        lows: float64, the lowest value of each statistic that counts.
        highs: float64, the highest.
        means: float64, what is subtracted from each statistic.
        scales: float64, above 0, what it is divided by then.
        statistics: float64, its weight.
        intercept: added to the log-odds of every step.
        trained: plain facts: how many solutions and steps, a digest of the data, the strength of the penalty.
    """

    options: StepFeatureOptions
    words: npt.NDArray[np.float32]
    operations: npt.NDArray[np.float32]
    lows: npt.NDArray[np.float64]
    highs: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]
    statistics: npt.NDArray[np.float64]
    intercept: float = 0.0
    trained: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject arrays that do not fit the options, and numbers that are none."""
        wanted = dict.fromkeys(_TERMS, (1 << self.options.bits,))
        wanted |= dict.fromkeys(_PER_STATISTIC, (len(self.options.names),))
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the {name} of a step model must be {shape[0]} finite numbers")
        if not (self.scales > 0).all():
            raise ValueError("a step model has a scale that is not above 0")
        if not math.isfinite(self.intercept):
            raise ValueError("a step model has an intercept that is not finite")

    def chances(self, problem: str | Sequence[Message], steps: Sequence[str]) -> list[float]:
        """Return the probability that each step of a solution is right, in order."""
        return [self.chance(features) for features in features_of_steps(problem, steps, self.options)]

    def chance(self, features: StepFeatures) -> float:
        """Return the probability that a step is right whose features are known, in (0, 1)."""
        return chance_of(self.parts(features))

    def parts(self, features: StepFeatures) -> dict[str, float]:
        """Return what each group of features adds to a step's log-odds, the intercept among them."""
        groups = {"intercept": self.intercept}
        groups |= {name: dot(getattr(self, name), getattr(features, name)) for name in _TERMS}
        scaled = Scaling(self.lows, self.highs, self.means, self.scales).applied(features.statistics)
        parts, at = scaled * self.statistics, 0
        for group in self.options.groups:
            groups[group] = math.fsum(parts[at : at + len(GROUPS[group])])
            at += len(GROUPS[group])
        return groups

    @functools.cached_property
    def digest(self) -> str:
        """16 hex digits that change with whatever can change a probability."""
        found = hashlib.sha256(wire.dumps([FORMAT, asdict(self.options), self.intercept]).encode())
        for name in _ARRAYS:
            found.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return found.hexdigest()[:16]

    def save(self, folder: str | Path) -> Path:
        """Write the model's two files into a folder, which is made if it is not there; return the folder."""
        notes = {
            "options": asdict(self.options),
            "names": list(self.options.names),
            "intercept": self.intercept,
            "trained": dict(self.trained),
            "digest": self.digest,
        }
        return _FILES.write(folder, notes, {name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            ValueError: the files are missing or damaged, or were written by another version of the features.
        """
        return _FILES.read(folder, _ARRAYS, cls._made)

    @classmethod
    def _made(cls, notes: Mapping[str, Any], arrays: dict[str, Any]) -> Self:
        options = StepFeatureOptions(**notes["options"])
        check_names(options.names, notes["names"])
        found = cls(options=options, trained=notes["trained"], intercept=notes["intercept"], **arrays)
        check_digest(found.digest, notes["digest"])
        return found


def chance_of(parts: Mapping[str, float]) -> float:
    """Return the probability whose log-odds are the sum of parts."""
    return sigmoid(math.fsum(parts.values()))
