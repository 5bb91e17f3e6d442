"""Several judges of the same thing, and one verdict.

    equal, mean        mean of the members' values (PoLL, arXiv 2404.18796, for scales)
    equal, majority    1 or 0 by the larger number of votes (PoLL for yes or no); a tie is nobody's verdict
    Dawid-Skene        P(right) given the members' votes, each worth what its confusion matrix says
    stacked            P(right) by a logistic regression on the members' values

A vote is a member's value against `threshold`: above it yes, below it no, equal to it none.  Members without a number
do not vote and are never taken for 0; with fewer than `quorum` numbers the sample fails.

The default quorum is all of them.  A smaller one keeps a panel going when a member is down, and it lets a response that
breaks the strictest member be judged by the others alone: lower it for labelling, not for rewards.

Weights of a panel learnt on gold labels: a logistic regression on the members' values.

Fitting needs scikit-learn (`pip install "adjudge[calibration]"`); using the weights does not, and they are stored as
JSON.

Not covered: worst case and lower bounds (`adjudge.scoring.compose.Ensemble`), and judges that see each other's answers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from adjudge.extras import install_hint
from adjudge.judges.dawid_skene import DawidSkene
from adjudge.options import Count, check_options, options_of
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.composite import Composite, missing, no_number
from adjudge.scoring.compose.part import Part, check_names, check_unweighted, score_all
from adjudge.scoring.compose.spec import Loader, parts_of
from adjudge.statistics.logistic import sigmoid


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


Vote = Literal["mean", "majority"]

YES, NO = "1", "0"
"""The classes of a `DawidSkene` model that weighs a panel."""

_OPTIONS = ("parts", "weights", "vote", "quorum", "threshold", "name")
_EXAMPLE = "{panel: {parts: [JUDGE, JUDGE, JUDGE], vote: majority}}"


@dataclass(frozen=True, kw_only=True)
class Panel(Composite):
    """One value in [0, 1] out of several judges, with equal or with learnt weights.

    `Score.uncertainty` is the population standard deviation of the members' values, for equal weights and the mean;
    learnt weights give a probability, which is its own uncertainty.

    Attributes:
        parts: the members; names must differ, weights are not used.
        weights: "equal", or a fitted `DawidSkene` (classes "0" and "1") or `Stacking` over the members' names.
        vote: how equal weights decide.
        quorum: how many members must have scored; None means all.  Stacked weights need all.
        threshold: the value above which a member says yes.
        name: short name, used in provenance and reports.
    """

    parts: tuple[Part, ...]
    weights: Literal["equal"] | DawidSkene | Stacking = "equal"
    vote: Vote = "mean"
    quorum: Count | None = None
    threshold: float = 0.5
    name: str = "panel"

    def __post_init__(self) -> None:
        """Reject options that do not fit together, and weights learnt for other members."""
        object.__setattr__(self, "parts", tuple(self.parts))
        check_names(self.parts, inside=self.name)
        check_unweighted(self.parts, inside=self.name)
        names = {part.name for part in self.parts}
        check_options(self, "Panel option")
        if (self.quorum or 1) > len(names):
            raise ValueError(f"Panel option quorum={self.quorum!r}; it must be at most {len(names)}, the members")
        if isinstance(self.weights, DawidSkene):
            if set(self.weights.classes) != {YES, NO}:
                raise ValueError(f'a panel votes "1" or "0", and its weights know {", ".join(self.weights.classes)}')
            if unknown := sorted(names - set(self.weights.confusion)):
                raise ValueError(f"the panel's member {unknown[0]!r} has no learnt confusion; fit the weights with it")
        elif isinstance(self.weights, Stacking):
            if set(self.weights.weights) != names:
                raise ValueError(
                    f"the panel's members are {', '.join(sorted(names))}, and its weights are for "
                    f"{', '.join(sorted(self.weights.weights))}; fit them again, or name the members alike"
                )
            if self.quorum not in (None, len(names)):
                raise ValueError(f"Panel.quorum is {self.quorum}; stacked weights need every member, so leave it out")
        elif self.weights != "equal":
            raise ValueError(f'Panel.weights are {self.weights!r}; give "equal", a DawidSkene or a Stacking')
        if self.weights != "equal" and self.vote != "mean":
            raise ValueError(f"Panel.vote is {self.vote!r}; learnt weights decide by themselves, so leave it out")

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read a list of members, or `{parts: [...], weights: {dawid_skene: FILE}, quorum: ..., ...}`."""
        if not isinstance(body, Mapping):
            body = {"parts": body}
        given = options_of(body, _OPTIONS, inside="panel", required=("parts",), example=_EXAMPLE)
        if isinstance(given["parts"], Mapping):
            raise ValueError(f"a panel's weights are equal or learnt: give its parts as a list, as in {_EXAMPLE}")
        given["parts"] = parts_of(given["parts"], loader, inside="panel")
        given["weights"] = _weights_of(given.get("weights", "equal"), loader)
        return cls(**given)

    def members(self) -> tuple[Part, ...]:
        """Return the members."""
        return self.parts

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Ask all members at the same time and weigh what they say."""
        return [self._verdict(row) for row in await score_all(self.parts, samples, inside=self.name)]

    def votes(self, values: Mapping[str, float]) -> dict[str, str]:
        """Return each member's vote, "1" or "0"; a member that sits on the threshold has none."""
        return {
            name: YES if value > self.threshold else NO for name, value in values.items() if value != self.threshold
        }

    def _verdict(self, parts: Mapping[str, Score]) -> Score:
        values = {name: part.value for name, part in parts.items() if part.value is not None}
        absent = missing(parts)
        needed = len(self.parts) if self.quorum is None else self.quorum
        if len(values) < needed:
            return no_number(parts, missing=absent, needed=needed)
        evidence: dict[str, Any] = {"missing": absent} if absent else {}
        if isinstance(self.weights, Stacking):
            return Score(value=self.weights(values), parts=parts, evidence=evidence)
        if self.weights == "equal" and self.vote == "mean":
            mean = math.fsum(values.values()) / len(values)
            spread = math.hypot(*(value - mean for value in values.values())) / math.sqrt(len(values))
            return Score(value=mean, uncertainty=spread, parts=parts, evidence=evidence)
        votes = self.votes(values)
        evidence = {"votes": votes, **evidence}
        if isinstance(self.weights, DawidSkene):
            if not votes:
                return _declined(parts, evidence)
            return Score(value=self.weights.posterior(votes)[YES], parts=parts, evidence=evidence)
        ahead = sum(1 if vote == YES else -1 for vote in votes.values())
        return Score(value=float(ahead > 0), parts=parts, evidence=evidence) if ahead else _declined(parts, evidence)


def _declined(parts: Mapping[str, Score], evidence: Mapping[str, Any]) -> Score:
    return Score(value=None, status="abstained", reason="low_confidence", parts=parts, evidence=evidence)


def _weights_of(given: Any, loader: Loader) -> Literal["equal"] | DawidSkene | Stacking:
    if given == "equal":
        return "equal"
    kinds: dict[str, type[DawidSkene] | type[Stacking]] = {"dawid_skene": DawidSkene, "stacked": Stacking}
    if isinstance(given, Mapping) and len(given) == 1 and (kind := kinds.get(next(iter(given)))) is not None:
        (written,) = given.values()
        if isinstance(written, str):
            return kind.load(loader.file(written))
        if isinstance(written, Mapping):
            return kind.from_dict(written)
    raise ValueError(
        f"a panel has the weights {given!r}; give `equal`, `{{dawid_skene: FILE}}` or `{{stacked: FILE}}`, where "
        "a file is what `save` of a fitted model wrote"
    )
