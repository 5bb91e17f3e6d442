"""Several scorers of the same thing, reduced to one value that is harder to fool than any of them.

`adjudge.scoring.compose.combination` has the formulas of the rules.  `nominal` is the mean, the value of one member by
name, or that of the "surest" member: the one with the smallest `Score.uncertainty`.  `Score.uncertainty` of the result
is the population standard deviation of the values.

Members must share a scale; put a `Transform` around those that do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from adjudge.options import Count
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.combination import Combination, spread_of
from adjudge.scoring.compose.composite import Composite, Part, missing, no_number

Rule = Literal["mean", "median", "min", "lower_bound", "nominal_min"]


@dataclass(frozen=True, kw_only=True)
class Ensemble(Composite):
    """One value out of several scorers of the same thing.

    Attributes:
        parts: the members; names must differ, weights are not used.
        rule: how values become one; `adjudge.scoring.compose.combination` has the formulas.
        k: how many standard deviations "lower_bound" goes down, >= 0.
        share: the share of the nominal value in "nominal_min", from 0 to 1.
        nominal: "mean", "surest", or a member's name.
        min_members: how many members must have scored; None means all.  With fewer the sample fails.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "a list of members, or `{parts: [...], rule: ..., k: ..., ...}`"
    example: ClassVar[str] = "{ensemble: {parts: [SCORER, SCORER], rule: lower_bound, k: 1.0}}"
    short_for: ClassVar[str] = "parts"

    parts: tuple[Part, ...]
    rule: Rule = "mean"
    k: float = 1.0
    share: float = 0.5
    nominal: str = "mean"
    min_members: Count | None = None
    name: str = "ensemble"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._combination  # checks its own
        names = [part.name for part in self.parts]
        if self.nominal not in ("mean", "surest", *names):
            raise ValueError(
                f'Ensemble.nominal is {self.nominal!r}; it must be "mean", "surest" or a member: {", ".join(names)}'
            )
        if self.min_members is not None and self.min_members > len(names):
            raise ValueError(f"Ensemble option min_members={self.min_members!r}; it must be at most {len(names)}")

    @property
    def _combination(self) -> Combination:
        return Combination(rule=self.rule, k=self.k, share=self.share)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Reduce the members' values for each sample."""
        return [self._verdict(row) for row in await self.ask(self.parts, samples)]

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
