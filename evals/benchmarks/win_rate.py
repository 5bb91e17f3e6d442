"""AlpacaEval's win rate: how often a model's output is preferred to the baseline's.

A preference is a number from 1 (the baseline's output is better) to 2 (the model's); 1.5 is a draw, and so is the 0
that old annotations use for one.  A missing one is left out and counted.

Source: AlpacaEval 2.

AlpacaEval 2's length-controlled win rate: what it would be if both outputs were equally long.

A logistic model of the preference for the model's output on instruction i:

    logit P = theta + phi * tanh((len_baseline - len_model) / std) + gamma * difficulty_i

`std` is the standard deviation (n - 1) of the difference in characters over the model's annotations.  The win rate is
the mean of P with the length term at 0.  `difficulty_i` is a number that the authors fitted once for each of the 805
instructions.  To keep theta from being bought with length, annotations of "gamed" baselines (the baseline asked to be
concise, and to be verbose) enter the fit with the theta column at 0.  All is fitted with an L1 penalty whose strength
is chosen by 5-fold cross-validation.

Source: Dubois et al. 2024, arXiv 2404.04475, and AlpacaEval's `length_controlled_v1`.  Fitting needs scikit-learn
(`pip install "adjudge[calibration]"`); predicting from given weights needs nothing.  Not covered: the authors' tables
of difficulties and gamed annotations, which have to be given; without them the number is not the leaderboard's.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from adjudge.extras import install_hint
from adjudge.statistics.arrays import Floats, Ints, np
from adjudge.statistics.logistic import sigmoid


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """A row of the leaderboard; rates are in percent.

    Attributes:
        standard_error: of that mean, with the sample's standard deviation (n - 1).
        n_wins: outputs preferred to the baseline's.
        n_wins_base: the other way.
        n_missing: annotations without a preference, in none of the numbers above.
    """

    win_rate: float
    standard_error: float
    n_wins: int
    n_wins_base: int
    n_draws: int
    n_total: int
    n_missing: int = 0

    @property
    def discrete_win_rate(self) -> float:
        """The share of wins, draws as half, in percent."""
        return 100 * (self.n_wins + self.n_draws / 2) / self.n_total

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**asdict(self), "discrete_win_rate": self.discrete_win_rate}


def share_of(preference: float | None) -> float | None:
    """Return a preference as the model's share, from 0 to 1; None for a missing one.

    Raises:
        ValueError: it is no preference.
    """
    if preference is None or math.isnan(preference):
        return None
    if preference == 0:
        return 0.5
    if not 1 <= preference <= 2:
        raise ValueError(
            f"the preference is {preference!r}; it must be from 1 (baseline) to 2 (model), or 0 for a draw"
        )
    return preference - 1


def win_rate(preferences: Sequence[float | None]) -> WinRate:
    """Return the win rate of one model's annotations.

    Raises:
        ValueError: fewer than two annotations have a preference, or one is out of range.
    """
    shares = [share for preference in preferences if (share := share_of(preference)) is not None]
    n = len(shares)
    if n < 2:
        raise ValueError(f"{n} of {len(preferences)} annotations have a preference; a win rate needs two or more")
    mean = math.fsum(shares) / n
    variance = math.fsum((share - mean) ** 2 for share in shares) / (n - 1)
    return WinRate(
        win_rate=100 * mean,
        standard_error=100 * math.sqrt(variance / n),
        n_wins=sum(share > 0.5 for share in shares),
        n_wins_base=sum(share < 0.5 for share in shares),
        n_draws=sum(share == 0.5 for share in shares),
        n_total=n,
        n_missing=len(preferences) - n,
    )


GAMED_WEIGHT = 0.1
"""Weight of one gamed annotation: the published 0.2, shared by the two gamed baselines."""

_STRENGTHS = tuple(10 ** (-4 + 8 * step / 9) for step in range(10))  # scikit-learn's grid for 10 values of C
_FOLDS = 5
_SEED = 123


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One instruction on which a judge compared a model with the baseline.

    Attributes:
        share: how far the model's output is preferred, in [0, 1].
        shorter: `tanh` of how much shorter the model's output is than the baseline's, in standard deviations.
        difficulty: of the instruction; 0 where none is known.
        gamed: whether the "model" is the baseline itself, asked to be concise or verbose.
    """

    share: float
    shorter: float
    difficulty: float = 0.0
    gamed: bool = False


@dataclass(frozen=True, kw_only=True)
class LengthControl:
    """A fitted model.

    Attributes:
        theta: how much better than the baseline the model is, in log-odds; AlpacaEval's `not_gamed_baseline`.
        strength: the C that cross-validation chose; 0 where the weights were given.
    """

    theta: float
    phi: float
    gamma: float
    strength: float = 0.0

    def win_rate(self, difficulties: Sequence[float]) -> float:
        """Return the length-controlled win rate over instructions of these difficulties, in percent."""
        if not difficulties:
            raise ValueError("there are no instructions; give the difficulty of each, or 0 where it is unknown")
        shares = [sigmoid(self.theta + self.gamma * difficulty) for difficulty in difficulties]
        return 100 * math.fsum(shares) / len(shares)


def annotations_of(
    shares: Sequence[float], lengths: Sequence[int], baseline_lengths: Sequence[int], difficulties: Sequence[float]
) -> list[Annotation]:
    """Return annotations of one model from its outputs' lengths in characters and the baseline's.

    Raises:
        ValueError: the lists differ in length, or the lengths never differ.
    """
    if not len(shares) == len(lengths) == len(baseline_lengths) == len(difficulties) or len(shares) < 2:
        raise ValueError(
            f"{len(shares)} shares, {len(lengths)} and {len(baseline_lengths)} lengths and {len(difficulties)} "
            "difficulties; give as many of each, two or more"
        )
    differences = [base - own for own, base in zip(lengths, baseline_lengths, strict=True)]
    mean = math.fsum(differences) / len(differences)
    std = math.sqrt(math.fsum((one - mean) ** 2 for one in differences) / (len(differences) - 1))
    if std == 0:
        raise ValueError(
            "the two outputs differ in length by the same number everywhere, so length has no effect to fit"
        )
    return [
        Annotation(share=share, shorter=math.tanh(difference / std), difficulty=difficulty)
        for share, difference, difficulty in zip(shares, differences, difficulties, strict=True)
    ]


def fit_length_control(annotations: Sequence[Annotation], gamed: Sequence[Annotation] = ()) -> LengthControl:
    """Fit the model of one model's annotations.

    Args:
        annotations: of the model, at least 10.
        gamed: of the gamed baselines; each weighs 0.1.

    Raises:
        ValueError: there are too few annotations, a share is out of range, or the fit does not settle.
        ImportError: scikit-learn is not installed.
    """
    if len(annotations) < 2 * _FOLDS:
        raise ValueError(f"{len(annotations)} annotations; {_FOLDS}-fold cross-validation needs {2 * _FOLDS} or more")
    rows = [*gamed, *annotations]
    for row in rows:
        if not 0 <= row.share <= 1:
            raise ValueError(f"an annotation has the share {row.share!r}; it must be in [0, 1]")
    try:
        from sklearn.model_selection import GroupKFold
    except ImportError as error:
        raise ImportError(f"fitting length control needs scikit-learn; {install_hint('calibration')}") from error
    design = np.array([[row.shorter, row.difficulty, float(not row.gamed)] for row in rows])
    shares = np.array([row.share for row in rows])
    weights = np.array([GAMED_WEIGHT if row.gamed else 1.0 for row in rows])
    table = _Table(design=np.vstack([design, design]), chance=np.r_[shares, 1 - shares], weight=np.r_[weights, weights])
    groups = np.tile(np.arange(len(rows)), 2)  # the two copies of a row are never on both sides
    folds = list(GroupKFold(n_splits=_FOLDS).split(table.design, groups=groups))
    losses = [
        sum(table.loss(held, table.fit(train, strength)) for train, held in folds) / _FOLDS for strength in _STRENGTHS
    ]
    strength = _STRENGTHS[losses.index(min(losses))]
    phi, gamma, theta = (float(value) for value in table.fit(np.arange(2 * len(rows)), strength, final=True))
    return LengthControl(theta=theta, phi=phi, gamma=gamma, strength=strength)


@dataclass(frozen=True, kw_only=True)
class _Table:
    """Rows, each there twice: as preferred with the chance `share`, and as not preferred with the rest."""

    design: Floats
    chance: Floats
    weight: Floats

    def fit(self, rows: Ints, strength: float, *, final: bool = False) -> Floats:
        """Return the coefficients of an L1-penalised fit to some of the rows.

        Of the fits that only choose a strength, one that does not settle is judged by its loss like the others.

        Raises:
            ValueError: the final fit does not settle.
        """
        from sklearn import __version__
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        # 1.8 has another name for an L1 penalty; before it, `l1_ratio` was ignored without a word.
        renamed = tuple(int(part) for part in __version__.split(".")[:2]) >= (1, 8)
        penalty: dict[str, Any] = {"l1_ratio": 1} if renamed else {"penalty": "l1"}
        model: Any = LogisticRegression(
            C=strength, solver="liblinear", fit_intercept=False, random_state=_SEED, **penalty
        )
        preferred = rows < len(self.chance) // 2
        with warnings.catch_warnings():
            warnings.simplefilter("error" if final else "ignore", ConvergenceWarning)
            try:
                model.fit(self.design[rows], preferred, sample_weight=self.chance[rows] * self.weight[rows])
            except ConvergenceWarning as error:
                raise ValueError(
                    f"the fit does not settle at the strength {strength:g}: length or difficulty tells nearly all "
                    "preferences apart, so there is no length-controlled win rate"
                ) from error
        coefficients: Floats = model.coef_[0]
        return coefficients

    def loss(self, rows: Ints, coefficients: Floats) -> float:
        """Return the mean weighted log-loss of the rows against their shares."""
        total = 0.0
        for row in rows:
            share = self.chance[row] if row < len(self.chance) // 2 else 1 - self.chance[row]
            z = float(self.design[row] @ coefficients)
            grown = math.log1p(math.exp(-abs(z))) + max(z, 0.0)  # log(1 + e^z)
            total += float(self.weight[row]) * (grown - float(share) * z)
        return total / len(rows)
