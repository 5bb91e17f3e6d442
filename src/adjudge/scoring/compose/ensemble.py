"""Several scorers of the same thing, reduced to one value that is harder to fool than any of them.

With member values v_1..v_n, their mean m and their population standard deviation s = sqrt(mean((v_i - m)^2)):

    mean          m
    median        the middle value, or the mean of the two middle ones
    min           min(v_i)                                worst case (WCO, Coste et al. 2023, arXiv 2310.02743)
    lower_bound   m - k * s                               after UWO of the same paper, with s instead of s^2, so that
                                                          k has no unit
    nominal_min   share * nominal + (1 - share) * min(v_i)  reward-robust RLHF (Yan et al. 2024, arXiv 2409.15360)

`nominal` is the mean, the value of one member by name, or that of the "surest" member: the one with the smallest
`Score.uncertainty`, as in the paper.  `Score.uncertainty` of the result is s.

Members must share a scale; put a `Transform` around those that do not.

Not covered: votes over labels, and judges that see each other's answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from adjudge.options import check_options, options_of
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.combination import Combination, spread_of
from adjudge.scoring.compose.composite import Composite, missing, no_number
from adjudge.scoring.compose.part import Part, check_names, check_unweighted, score_all
from adjudge.scoring.compose.spec import Loader, parts_of

Rule = Literal["mean", "median", "min", "lower_bound", "nominal_min"]

_OPTIONS = ("parts", "rule", "k", "share", "nominal", "min_members", "name")
_EXAMPLE = "{ensemble: {parts: [SCORER, SCORER], rule: lower_bound, k: 1.0}}"


@dataclass(frozen=True, kw_only=True)
class Ensemble(Composite):
    """One value out of several scorers of the same thing.

    Attributes:
        parts: the members; names must differ, weights are not used.
        rule: how values become one; the module docstring has the formulas.
        k: how many standard deviations "lower_bound" goes down, >= 0.
        share: the share of the nominal value in "nominal_min", from 0 to 1.
        nominal: "mean", "surest", or a member's name.
        min_members: how many members must have scored; None means all.  With fewer the sample fails.
        name: short name, used in provenance and reports.
    """

    parts: tuple[Part, ...]
    rule: Rule = "mean"
    k: float = 1.0
    share: float = 0.5
    nominal: str = "mean"
    min_members: int | None = None
    name: str = "ensemble"

    def __post_init__(self) -> None:
        """Reject options outside their range."""
        object.__setattr__(self, "parts", tuple(self.parts))
        check_names(self.parts, inside=self.name)
        check_unweighted(self.parts, inside=self.name)
        check_options(self, "Ensemble option")
        _ = self._combination  # checks its own
        names = [part.name for part in self.parts]
        if self.nominal not in ("mean", "surest", *names):
            raise ValueError(
                f'Ensemble.nominal is {self.nominal!r}; it must be "mean", "surest" or a member: {", ".join(names)}'
            )
        needed = self.min_members
        if needed is not None and not (type(needed) is int and 1 <= needed <= len(self.parts)):
            raise ValueError(f"Ensemble.min_members is {needed!r}; it must be between 1 and {len(self.parts)}")

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read a list of members, or `{parts: [...], rule: ..., k: ..., ...}`."""
        if not isinstance(body, Mapping):
            body = {"parts": body}
        given = options_of(body, _OPTIONS, inside="ensemble", required=("parts",), example=_EXAMPLE)
        if isinstance(given["parts"], Mapping):
            raise ValueError(f"an ensemble does not weigh its members: give a list, as in {_EXAMPLE}")
        given["parts"] = parts_of(given["parts"], loader, inside="ensemble")
        return cls(**given)

    @property
    def _combination(self) -> Combination:
        return Combination(rule=self.rule, k=self.k, share=self.share)

    def members(self) -> tuple[Part, ...]:
        """Return the members."""
        return self.parts

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Reduce the members' values for each sample."""
        return [self._verdict(row) for row in await score_all(self.parts, samples, inside=self.name)]

    def _verdict(self, parts: Mapping[str, Score]) -> Score:
        values = {name: part.value for name, part in parts.items() if part.value is not None}
        absent = missing(parts)
        needed = len(self.parts) if self.min_members is None else self.min_members
        if len(values) < needed:
            return no_number(parts, missing=absent, needed=needed)
        numbers = list(values.values())
        nominal = None
        if self.rule == "nominal_min" and self.nominal != "mean":
            nominal = self._nominal(parts, values)
            if nominal is None:
                return no_number(parts, missing=absent, nominal=self.nominal)
        return Score(
            value=self._combination.of(numbers, nominal=nominal),
            uncertainty=spread_of(numbers),
            parts=parts,
            evidence={"missing": absent} if absent else {},
        )

    def _nominal(self, parts: Mapping[str, Score], values: Mapping[str, float]) -> float | None:
        """The nominal member's value, or None if it has no number or no member tells its uncertainty."""
        if self.nominal != "surest":
            return values.get(self.nominal)
        sure = [(spread, name) for name in values if (spread := parts[name].uncertainty) is not None]
        return values[min(sure)[1]] if sure else None
