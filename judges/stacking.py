"""Weights of a panel learnt on gold labels: a logistic regression on the members' values.

Fitting needs scikit-learn (`pip install "adjudge[calibration]"`); using the weights does not, and they are stored as
JSON.  Not covered: members without a value; their weight would have to be guessed, so the panel fails such a sample.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from adjudge.extras import install_hint
from adjudge.logistic import sigmoid


@dataclass(frozen=True, kw_only=True)
class Stacking:
    """`P(right) = sigmoid(intercept + sum of weight * value)`.

    Attributes:
        weights: member to weight; negative where a member is right by being wrong.
        intercept: a constant.
    """

    weights: Mapping[str, float]
    intercept: float = 0.0

    def __post_init__(self) -> None:
        """Reject weights that are not finite numbers."""
        object.__setattr__(self, "weights", dict(self.weights))
        for name, weight in {**self.weights, "the intercept": self.intercept}.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
                raise ValueError(f"the weight of {name!r} is {weight!r}; it must be a finite number")
        if not self.weights:
            raise ValueError("Stacking.weights are empty; make them with Stacking.fit")

    def __call__(self, values: Mapping[str, float]) -> float:
        """Return the probability for one sample.

        Raises:
            ValueError: the members are not those the weights were learnt for.
        """
        if set(values) != set(self.weights):
            raise ValueError(f"the weights are for {', '.join(self.weights)}, and the values of {', '.join(values)}")
        return sigmoid(math.fsum(weight * values[name] for name, weight in self.weights.items()) + self.intercept)

    @classmethod
    def fit(cls, rows: Sequence[Mapping[str, float]], labels: Sequence[int], *, penalty: float = 1.0) -> Self:
        """Learn weights from samples on which every member gave a value.

        Args:
            rows: member to value, for each sample; the same members everywhere.
            labels: as many outcomes, 1 or 0, both present.
            penalty: `penalty/2 * |weights|^2`, > 0, on values divided by their standard deviation.

        Raises:
            ValueError: the rows and labels do not allow a fit.
            ImportError: scikit-learn is not installed.
        """
        if len(rows) != len(labels) or not rows:
            raise ValueError(f"{len(rows)} rows and {len(labels)} labels; give as many of each, and some")
        if set(labels) != {0, 1}:
            raise ValueError(f"the labels are {sorted(set(labels))}; both 1 and 0 must be there, and nothing else")
        if not (math.isfinite(penalty) and penalty > 0):
            raise ValueError(f"penalty={penalty!r}; it must be a finite number above 0")
        names = sorted(rows[0])
        for index, row in enumerate(rows):
            if set(row) != set(names) or not all(math.isfinite(value) for value in row.values()):
                raise ValueError(f"row {index} is {dict(row)!r}; need a finite value of each of {', '.join(names)}")
        columns = {name: [row[name] for row in rows] for name in names}
        centres = {name: math.fsum(column) / len(rows) for name, column in columns.items()}
        scales = {
            name: math.sqrt(math.fsum((value - centres[name]) ** 2 for value in column) / len(rows))
            for name, column in columns.items()
        }
        if flat := [name for name, scale in scales.items() if scale == 0]:
            raise ValueError(
                f"the member {flat[0]!r} gave the same value everywhere, so it has no weight; leave it out"
            )
        try:
            from sklearn.linear_model import LogisticRegression
        except ImportError as error:
            raise ImportError(f"fitting a Stacking needs scikit-learn; {install_hint('calibration')}") from error
        table = [[(row[name] - centres[name]) / scales[name] for name in names] for row in rows]
        fitted: Any = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=1000).fit(table, labels)
        weights = {name: float(weight) / scales[name] for name, weight in zip(names, fitted.coef_[0], strict=True)}
        shift = math.fsum(weights[name] * centres[name] for name in names)
        return cls(weights=weights, intercept=float(fitted.intercept_[0]) - shift)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes equal weights."""
        return {"weights": dict(self.weights), "intercept": self.intercept}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the weights that `to_dict` wrote.

        Raises:
            ValueError: a key is unknown or missing, or a weight is no finite number.
        """
        if not {"weights"} <= set(data) <= {"weights", "intercept"} or not isinstance(data["weights"], Mapping):
            raise ValueError(
                f"stacked weights are {{weights: {{MEMBER: NUMBER}}, intercept: NUMBER}}, not {dict(data)!r}"
            )
        return cls(**data)

    def save(self, path: str | Path) -> None:
        """Write the weights as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read weights that `save` wrote."""
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
