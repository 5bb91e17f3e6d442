"""How well probabilities match outcomes: calibration error, Brier score, and what confidence buys.

All take plain lists, with labels 1 (right) and 0 (wrong).  Not covered: several classes, bounds
(`adjudge.evals.trust.calibration` has them), and the order of scores (`adjudge.statistics.ranks`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from adjudge.pages.figures import Record
from adjudge.statistics.arrays import Floats, Ints, np

Binning = Literal["equal_width", "equal_mass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin(Record):
    """One bin of a reliability diagram: its bounds, samples (>= 1), their mean probability, and the share right."""

    low: float
    high: float
    count: int
    confidence: float
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError(Record):
    """How far probabilities are from the rates they promise.

    Attributes:
        expected: mean of |rate - confidence| over the bins, weighted by count (ECE), in [0, 1].
        largest: the largest such distance (MCE), in [0, 1].
        bins: from low to high, without empty ones.
    """

    expected: float
    largest: float
    binning: Binning
    bins: tuple[Bin, ...]


def bin_of(probabilities: Floats, bins: int, binning: Binning) -> Ints:
    """Return the bin of each probability, from 0, as `calibration_error` makes them."""
    if binning == "equal_width":
        at = np.ceil(probabilities * bins).astype(np.int64) - 1
        at += (probabilities > (at + 1) / bins).astype(np.int64) - (probabilities <= at / bins)
        return np.clip(at, 0, bins - 1)
    _, level, counts = np.unique(probabilities, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    return (before * bins // len(probabilities))[level]


def calibration_error(
    probabilities: Sequence[float], labels: Sequence[int], *, bins: int = 10, binning: Binning = "equal_width"
) -> CalibrationError:
    """Return the expected calibration error with its bins.

    Args:
        probabilities: in [0, 1].
        labels: as many outcomes, 1 or 0.
        bins: how many; the error depends on it, so state it with the number.
        binning: "equal_width" cuts [0, 1] evenly, bin i holding i/n < p <= (i+1)/n and the first one 0 too (Guo et al.
            2017, arXiv 1706.04599); "equal_mass" gives each bin about as many samples, and never splits equal
            probabilities (Nguyen and O'Connor 2015).

    Raises:
        ValueError: the lists do not fit, a probability lies outside [0, 1], a label is neither 0 nor 1.
    """
    _check(probabilities, labels)
    if bins < 1:
        raise ValueError(f"bins={bins!r}; there must be at least 1")
    if binning not in get_args(Binning):
        raise ValueError(f"binning={binning!r}; it must be one of {', '.join(get_args(Binning))}")
    said, right = np.array(probabilities, dtype=float), np.array(labels)
    places = bin_of(said, bins, binning)
    filled = []
    for at in np.unique(places).tolist():
        inside = said[places == at].tolist()
        low, high = (at / bins, (at + 1) / bins) if binning == "equal_width" else (min(inside), max(inside))
        confidence, rate = math.fsum(inside) / len(inside), float(right[places == at].mean())
        filled.append(Bin(low=low, high=high, count=len(inside), confidence=confidence, rate=rate))
    gaps = [abs(one.rate - one.confidence) for one in filled]
    expected = math.fsum(gap * one.count for gap, one in zip(gaps, filled, strict=True)) / len(said)
    return CalibrationError(expected=expected, largest=max(gaps), binning=binning, bins=tuple(filled))


def brier(probabilities: Sequence[float], labels: Sequence[int]) -> float:
    """Return the mean squared distance between probability and outcome, in [0, 1]; lower is better (Brier 1950)."""
    _check(probabilities, labels)
    return math.fsum((p - label) ** 2 for p, label in zip(probabilities, labels, strict=True)) / len(labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskCoverage:
    """What happens to the error when the least sure verdicts are left out.

    Attributes:
        points: (coverage, risk), coverage rising to 1; risk is the mean loss of what is kept.
        area: mean risk over the coverages 1/n .. 1 (AURC); `excess` is above an order that knows the losses (E-AURC).
    """

    points: tuple[tuple[float, float], ...]
    area: float
    excess: float

    def risk_at(self, coverage: float) -> float:
        """Return the risk at the smallest coverage on the curve that is at least this one, in (0, 1]."""
        if not 0 < coverage <= 1:
            raise ValueError(f"coverage={coverage!r}; it must be above 0 and at most 1")
        return next(risk for at, risk in self.points if at >= coverage - 1e-12)


def risk_coverage(confidences: Sequence[float], losses: Sequence[float]) -> RiskCoverage:
    """Return the risk-coverage curve (El-Yaniv and Wiener 2010; E-AURC: Geifman et al. 2019, arXiv 1805.08206).

    Samples of equal confidence come or go in no order, so within such a block the curve is what a random order gives on
    average: a constant confidence has the same risk everywhere, whatever the order of the rows.

    Args:
        confidences: any finite numbers, higher is surer.
        losses: as many finite numbers >= 0, such as 1 for a wrong verdict and 0 for a right one.

    Raises:
        ValueError: the lists do not fit or hold other numbers.
    """
    if len(confidences) != len(losses) or not losses:
        raise ValueError(f"{len(confidences)} confidences and {len(losses)} losses; give as many of each, and some")
    if not all(map(math.isfinite, confidences)) or not all(math.isfinite(loss) and loss >= 0 for loss in losses):
        raise ValueError("confidences must be finite, and losses finite and >= 0")
    points = _curve(list(zip(confidences, losses, strict=True)))
    area = math.fsum(risk for _, risk in points) / len(points)
    best = _curve([(-loss, loss) for loss in losses])
    excess = area - math.fsum(risk for _, risk in best) / len(best)
    return RiskCoverage(points=points, area=area, excess=max(0.0, excess))


def _curve(pairs: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    points: list[tuple[float, float]] = []
    lost = 0.0
    for _, block in itertools.groupby(sorted(pairs, key=lambda pair: -pair[0]), key=lambda pair: pair[0]):
        losses = [loss for _, loss in block]
        mean = math.fsum(losses) / len(losses)
        for _ in losses:
            lost += mean
            points.append(((len(points) + 1) / len(pairs), lost / (len(points) + 1)))
    return tuple(points)


def _check(values: Sequence[float], labels: Sequence[int]) -> None:
    if len(values) != len(labels) or not labels:
        raise ValueError(f"{len(values)} values and {len(labels)} labels; give as many of each, and some")
    for value in values:
        if not 0 <= value <= 1:
            raise ValueError(f"the value {value!r} is not a probability")
    for label in labels:
        if label not in (0, 1):
            raise ValueError(f"the label {label!r} is neither 0 nor 1")
