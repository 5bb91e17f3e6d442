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

Fitting needs scikit-learn (`pip install "adjudge[data]"`); using the weights does not, and they are stored as
JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from adjudge.extras import install_hint
from adjudge.judges.dawid_skene import DawidSkene
from adjudge.options import Count
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.combination import spread_of
from adjudge.scoring.compose.composite import Composite, Loader, Part, missing, no_number
from adjudge.scoring.compose.saved import Saved
from adjudge.statistics.logistic import sigmoid


@dataclass(frozen=True, kw_only=True)
class Stacking(Saved):
    """`P(right) = sigmoid(intercept + sum of weight * value)`.

    Attributes:
        weights: member to weight; negative where a member is right by being wrong.
        intercept: a constant.
    """

    called: ClassVar[str] = "stacked weights"

    weights: Mapping[str, float]
    intercept: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise ValueError(f"stacked weights are {self.weights!r}; they must be a mapping of members to numbers")
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
            raise ImportError(f"fitting a Stacking needs scikit-learn; {install_hint('data')}") from error
        table = [[(row[name] - centres[name]) / scales[name] for name in names] for row in rows]
        fitted: Any = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=1000).fit(table, labels)
        weights = {name: float(weight) / scales[name] for name, weight in zip(names, fitted.coef_[0], strict=True)}
        shift = math.fsum(weights[name] * centres[name] for name in names)
        return cls(weights=weights, intercept=float(fitted.intercept_[0]) - shift)


Vote = Literal["mean", "majority"]

YES, NO = "1", "0"
"""The classes of a `DawidSkene` model that weighs a panel."""


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

    spec_form: ClassVar[str] = "a list of members, or `{parts: [...], weights: {dawid_skene: FILE}, quorum: ..., ...}`"
    example: ClassVar[str] = "{panel: {parts: [JUDGE, JUDGE, JUDGE], vote: majority}}"
    short_for: ClassVar[str] = "parts"

    parts: tuple[Part, ...]
    weights: Literal["equal"] | DawidSkene | Stacking = "equal"
    vote: Vote = "mean"
    quorum: Count | None = None
    threshold: float = 0.5
    name: str = "panel"

    def __post_init__(self) -> None:
        super().__post_init__()
        names = {part.name for part in self.parts}
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
                raise ValueError(f"Panel option quorum={self.quorum}; stacked weights need every member: leave it out")
        elif self.weights != "equal":
            raise ValueError(f'Panel option weights={self.weights!r}; give "equal", a DawidSkene or a Stacking')
        if self.weights != "equal" and self.vote != "mean":
            raise ValueError(f"Panel option vote={self.vote!r}; learnt weights decide by themselves, so leave it out")

    @classmethod
    def read(cls, given: dict[str, Any], loader: Loader) -> dict[str, Any]:
        """Return the options with learnt weights, read from their file or their content."""
        weights = given.get("weights", "equal")
        if weights == "equal":
            return given
        kinds: dict[str, type[DawidSkene] | type[Stacking]] = {"dawid_skene": DawidSkene, "stacked": Stacking}
        if isinstance(weights, Mapping) and len(weights) == 1 and (kind := kinds.get(next(iter(weights)))) is not None:
            (written,) = weights.values()
            if isinstance(written, str | Mapping):
                fitted = kind.load(loader.file(written)) if isinstance(written, str) else kind.from_dict(written)
                return given | {"weights": fitted}
        raise ValueError(
            f"a panel has the weights {weights!r}; give `equal`, `{{dawid_skene: FILE}}` or `{{stacked: FILE}}`, where "
            "a file is what `save` of a fitted model wrote"
        )

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Ask all members at the same time and weigh what they say."""
        return [self._verdict(row) for row in await self.ask(self.parts, samples)]

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
            return Score(value=mean, uncertainty=spread_of([*values.values()]), parts=parts, evidence=evidence)
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
