"""A monotone map from a scorer's values to probabilities, fitted once and then plain data.

`Calibration.fit` needs scikit-learn (`pip install "adjudge[data]"`); using a map does not, and a map is
stored as JSON, never as a pickle.

    isotonic   piecewise linear through the knots, constant beyond them (scikit-learn's IsotonicRegression)
    platt      1 / (1 + exp(-(slope * value + intercept))), slope > 0, fitted to Platt's smoothed targets
               (Platt 1999: (n1 + 1)/(n1 + 2) for the n1 right ones, 1/(n0 + 2) for the n0 wrong ones)
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from adjudge.extras import install_hint
from adjudge.options import Options, Range
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.scoring.compose.composite import Composite, Loader
from adjudge.scoring.compose.saved import Saved
from adjudge.statistics.logistic import sigmoid

Kind = Literal["isotonic", "platt"]


@dataclass(frozen=True, kw_only=True)
class Calibration(Options, Saved, what="Calibration option"):
    """A frozen, monotone map from a value to a probability.

    Attributes:
        kind: "isotonic" or "platt".
        knots: isotonic only: (value, probability) pairs, values strictly rising, probabilities never falling.
        slope: platt only, > 0.
        intercept: platt only.
    """

    called: ClassVar[str] = "a calibration map"

    kind: Kind
    knots: tuple[tuple[float, float], ...] = ()
    slope: Annotated[float, Range(gt=0)] = 1.0
    intercept: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.knots, list | tuple) or not all(
            isinstance(knot, list | tuple) and len(knot) == 2 for knot in self.knots
        ):
            raise ValueError(f"Calibration option knots={self.knots!r}; it must be [value, probability] pairs")
        knots = tuple((_number(x, "value"), _number(y, "probability")) for x, y in self.knots)
        object.__setattr__(self, "knots", knots)
        if self.kind == "isotonic":
            if not knots:
                raise ValueError("an isotonic Calibration needs knots; make one with Calibration.fit")
            for (x, y), (next_x, next_y) in itertools.pairwise(knots):
                if not (x < next_x and y <= next_y):
                    raise ValueError(f"Calibration.knots {(x, y)} and {(next_x, next_y)} are not in rising order")
            if knots[0][1] < 0 or knots[-1][1] > 1:
                raise ValueError("Calibration.knots hold a probability outside 0..1")

    def __call__(self, value: float) -> float:
        """Return the probability that stands for a value."""
        if self.kind == "platt":
            return sigmoid(self.slope * value + self.intercept)
        at = bisect.bisect_right(self.knots, value, key=lambda knot: knot[0])
        if at == 0:
            return self.knots[0][1]
        if at == len(self.knots):
            return self.knots[-1][1]
        (x0, y0), (x1, y1) = self.knots[at - 1 : at + 1]
        share = (value - x0) / (x1 - x0)
        return min(max(y0 + share * (y1 - y0), y0), y1)

    @classmethod
    def fit(cls, values: Sequence[float], labels: Sequence[float], *, kind: Kind = "isotonic") -> Self:
        """Fit a map on scores with known outcomes.

        Args:
            values: finite scores, at least two different ones.
            labels: as many outcomes: 1 (right) or 0 (wrong), both of them present.
            kind: "isotonic" (needs some hundred samples) or "platt" (two parameters).

        Raises:
            ValueError: the data do not allow a fit; the message says why.
            ImportError: scikit-learn is not installed.
        """
        xs, ys = _training_data(values, labels)
        if kind not in ("isotonic", "platt"):
            raise ValueError(f'the calibration kind is {kind!r}; it must be "isotonic" or "platt"')
        try:
            import sklearn  # noqa: F401 asked for here so that the error below names the remedy
        except ImportError as error:
            raise ImportError(f"fitting a Calibration needs scikit-learn; {install_hint('data')}") from error
        if kind == "isotonic":
            return cls(kind=kind, knots=_isotonic(xs, ys))
        slope, intercept = _platt(xs, ys)
        return cls(kind=kind, slope=slope, intercept=intercept)


def _training_data(values: Sequence[float], labels: Sequence[float]) -> tuple[list[float], list[int]]:
    if len(values) != len(labels):
        raise ValueError(f"{len(values)} values and {len(labels)} labels cannot be paired; give one label per value")
    xs = [_number(value, "value") for value in values]
    ys = [int(label) if label in (0, 1) else -1 for label in labels]
    if -1 in ys:
        raise ValueError(f"the label {labels[ys.index(-1)]!r} is neither 0 nor 1")
    if len(set(ys)) < 2 or len(set(xs)) < 2:
        raise ValueError("a calibration needs both right and wrong samples and at least two different values")
    return xs, ys


def _isotonic(xs: list[float], ys: list[int]) -> tuple[tuple[float, float], ...]:
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True).fit(xs, ys)
    return tuple(zip(fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist(), strict=True))


def _platt(xs: list[float], ys: list[int]) -> tuple[float, float]:
    from sklearn.linear_model import LogisticRegression

    right = sum(ys)
    high, low = (right + 1) / (right + 2), 1 / (len(ys) - right + 2)
    targets = [high if y else low for y in ys]
    centre = math.fsum(xs) / len(xs)
    scale = math.hypot(*(x - centre for x in xs)) / math.sqrt(len(xs))  # lbfgs converges slowly on raw scales
    column = [[(x - centre) / scale] for x in xs]
    model: Any = LogisticRegression(C=math.inf, tol=1e-8, max_iter=1000)
    model.fit(column * 2, [1] * len(xs) + [0] * len(xs), sample_weight=targets + [1 - target for target in targets])
    slope = float(model.coef_[0][0]) / scale
    if not slope > 0:
        raise ValueError(
            "right samples do not have higher values than wrong ones, so no rising map fits; check the labels' "
            "meaning, or turn the values around first with a Transform"
        )
    return slope, float(model.intercept_[0]) - slope * centre


def _number(value: object, what: str) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"a calibration has the {what} {value!r}; it must be a finite number")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Calibrated(Composite):
    """One scorer followed by a `Calibration`; the map is part of the fingerprint.

    Samples the scorer fails or abstains on keep that status.

    Attributes:
        scorer: where the values come from.
        map: the fitted map.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "`{scorer: SPEC, map: FILE or MAP, name: ...}`"
    example: ClassVar[str] = "{calibrated: {scorer: SCORER, map: calibration.json}}"

    scorer: Scorer | Verifier
    map: Calibration
    name: str = "calibrated"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.map, Calibration):
            raise ValueError(f"Calibrated option map={self.map!r}; make one with Calibration.fit or Calibration.load")

    @classmethod
    def read(cls, given: dict[str, Any], loader: Loader) -> dict[str, Any]:
        """Return the options with the map, read from its file or its content."""
        written = given["map"]
        if isinstance(written, str):
            return given | {"map": Calibration.load(loader.file(written))}
        if not isinstance(written, Mapping):
            raise ValueError(f"the map of a calibrated scorer is {written!r}; give a JSON file or its content")
        return given | {"map": Calibration.from_dict(written)}

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Score, then map each value."""
        (part,) = self.members()
        return [
            replace(
                score,
                value=None if score.value is None else self.map(score.value),
                uncertainty=None,
                steps=(),
                evidence={},
                parts={part.name: score},
            )
            for score in await part.score(samples, inside=self.name)
        ]
