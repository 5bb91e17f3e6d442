"""A fitted preference model as plain arrays: how it rates a chat, what decided, and its files.

A folder holds `preference_model.json` (options, names, facts) and `weights.npz` (arrays, no pickle).  A reward is a
sum: the intercept, one weight for each hashed n-gram times its share of the text, and one for each standardised
statistic.  A statistic outside the range that the training data had counts as the end of that range, so a reward is
bounded whatever a response holds, and a straight line is never followed to where nobody looked.  For the same reason
nothing is extrapolated to a response that says nothing: its reward is the smallest of the training data.
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
from adjudge.reward_models.baselines.features import (
    SALTS,
    STATISTICS,
    FeatureOptions,
    Features,
    features_of,
    sides_of,
)
from adjudge.reward_models.baselines.linear_files import LinearFiles, check_digest, check_names, dot
from adjudge.reward_models.baselines.ngrams import characters_of, spellings, words_of

FORMAT = 1
"""Version of the files and of what the features mean; other versions are refused."""

_NGRAMS = ("words", "characters")
_PER_STATISTIC = ("lows", "highs", "means", "scales", "statistics")
_ARRAYS = (*_NGRAMS, *_PER_STATISTIC)
_FILES = LinearFiles(
    called="preference model",
    notes="preference_model.json",
    arrays="weights.npz",
    format=FORMAT,
    remedy="fit one with PreferenceModel.fit, or name its folder",
)
_NUMBERS = ("intercept", "mean", "std", "least")
_SPELT = 40  # characters of an n-gram that are shown


@dataclass(frozen=True, kw_only=True, eq=False)
class PreferenceWeights:
    """Weights of a linear preference model.

    Attributes:
        options: what is looked at.
        words: float32, one weight for each column of the n-grams of words.
        characters: the same for characters.
        lows: float64, the lowest value of each statistic that counts.
        highs: float64, the highest.
        means: float64, what is subtracted from each statistic.
        scales: float64, above 0, what it is divided by then.
        statistics: float64, its weight.
        intercept: added to every reward; the mean reward of the training data is 0, or, where ratings were learnt from,
            a reward of 0 stands for an even chance of being right.
        mean: of the rewards of the training data.
        std: their standard deviation, above 0.
        least: the smallest of them; the reward of a response that says nothing.
        trained: plain facts: how many pairs and ratings, a digest of the data, the strength of the penalty.
    """

    options: FeatureOptions
    words: npt.NDArray[np.float32]
    characters: npt.NDArray[np.float32]
    lows: npt.NDArray[np.float64]
    highs: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]
    statistics: npt.NDArray[np.float64]
    intercept: float = 0.0
    mean: float = 0.0
    std: float = 1.0
    least: float = 0.0
    trained: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject arrays that do not fit the options, and numbers that are none."""
        wanted = dict.fromkeys(_NGRAMS, (1 << self.options.bits,))
        wanted |= dict.fromkeys(_PER_STATISTIC, (len(self.options.names),))
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the {name} of a preference model must be {shape[0]} finite numbers")
        if not (self.scales > 0).all() or not (math.isfinite(self.std) and self.std > 0):
            raise ValueError("a preference model has a standard deviation that is not above 0")
        if not all(math.isfinite(getattr(self, name)) for name in _NUMBERS):
            raise ValueError("a preference model has an intercept, a mean or a least reward that is not finite")

    def reward(self, chat: Sequence[Message]) -> float:
        """Return the reward of a finished chat; higher is better."""
        return self.reward_of(features_of(chat, self.options))

    def reward_of(self, features: Features) -> float:
        """Return the reward of a chat whose features are known."""
        if features.empty:
            return self.least
        shares = (dot(self.words, features.words), dot(self.characters, features.characters))
        return self.intercept + sum(shares) + float(self._standardised(features) @ self.statistics)

    def explained(self, chat: Sequence[Message], count: int) -> dict[str, Any]:
        """Return what decided: the part of each group of features, and the largest single parts.

        Args:
            chat: a finished chat.
            count: how many statistics and how many n-grams are named.

        Returns:
            `groups`, the intercept among them, adds up to the reward; `statistics` and `ngrams` are
            `[name, part]`, the largest parts first.
        """
        features = features_of(chat, self.options)
        if features.empty:
            return {"groups": {"empty": self.least}, "statistics": [], "ngrams": []}
        parts = self._standardised(features) * self.statistics
        groups = {"intercept": self.intercept}
        groups |= {name: dot(getattr(self, name), getattr(features, name)) for name in _NGRAMS}
        at = 0
        for group in self.options.groups:
            groups[group] = float(parts[at : at + len(STATISTICS[group])].sum())
            at += len(STATISTICS[group])
        largest = np.argsort(-np.abs(parts), kind="stable")[:count]
        named = [[self.options.names[place], float(parts[place])] for place in largest if parts[place]]
        return {"groups": groups, "statistics": named, "ngrams": self._ngrams(chat, features, count)}

    def _ngrams(self, chat: Sequence[Message], features: Features, count: int) -> list[list[Any]]:
        """The n-grams with the largest parts, with the first spelling in the text that was hashed there."""
        _, response = sides_of(chat)
        found: list[tuple[str, float]] = []
        for name, cut in (("words", words_of), ("characters", characters_of)):
            columns, values = getattr(features, name)
            parts = getattr(self, name)[columns].astype(np.float64) * values
            largest = [place for place in np.argsort(-np.abs(parts), kind="stable")[:count] if parts[place]]
            wanted = [int(columns[place]) for place in largest]
            sizes = getattr(self.options, name)
            spelt = spellings(cut(response), sizes, wanted, bits=self.options.bits, salt=SALTS[name])
            found += [(spelt[int(columns[place])][:_SPELT], float(parts[place])) for place in largest]
        return [list(part) for part in sorted(found, key=lambda part: -abs(part[1]))[:count]]

    def _standardised(self, features: Features) -> npt.NDArray[np.float64]:
        return (np.clip(features.statistics, self.lows, self.highs) - self.means) / self.scales

    @functools.cached_property
    def digest(self) -> str:
        """16 hex digits that change with whatever can change a reward."""
        found = hashlib.sha256(wire.dumps([FORMAT, asdict(self.options), self._numbers()]).encode())
        for name in _ARRAYS:
            found.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return found.hexdigest()[:16]

    def _numbers(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in _NUMBERS}

    def save(self, folder: str | Path) -> Path:
        """Write the model's two files into a folder, which is made if it is not there; return the folder."""
        notes = {
            "options": asdict(self.options),
            "names": list(self.options.names),
            **self._numbers(),
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
        options = FeatureOptions(**notes["options"])
        check_names(options.names, notes["names"])
        found = cls(options=options, trained=notes["trained"], **{name: notes[name] for name in _NUMBERS}, **arrays)
        check_digest(found.digest, notes["digest"])
        return found
