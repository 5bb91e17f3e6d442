"""The weighted sum of several scores: correctness plus a little for form, minus a little for length.

    value = sum over parts of weight * value

Scales are the caller's business: put a `Transform` around a part to normalize before mixing, or around the whole
to normalize after.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.composite import Composite, Part, missing, no_number

Missing = Literal["fail", "skip", "renormalize"]


@dataclass(frozen=True, kw_only=True)
class Weighted(Composite):
    """Weighted sum of parts that all run at the same time.

    Attributes:
        parts: the scorers with their weights; names must differ.
        missing: what happens to a sample for which a part has no number.  "fail" (default): the whole has none
            either.  "skip": the part counts as 0.  "renormalize": the weights of the other parts are scaled up to
            the same total, which needs all weights to be positive.  With no part left it always fails.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "`{NAME: WEIGHT, ...}`, a list of parts, or `{parts: ..., missing: ..., name: ...}`"
    example: ClassVar[str] = "{weighted: {math: 1.0, format: 0.1}}"
    short_for: ClassVar[str] = "parts"
    weighs: ClassVar[bool] = True

    parts: tuple[Part, ...]
    missing: Missing = "fail"
    name: str = "weighted"

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in self.parts:
            if self.missing == "renormalize" and part.weight <= 0:
                raise ValueError(
                    f'missing="renormalize" needs positive weights, and {part.name!r} has {part.weight}; '
                    'use "skip" or "fail"'
                )

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the weighted sum for each sample."""
        return [self._sum(row) for row in await self.ask(self.parts, samples)]

    def _sum(self, parts: Mapping[str, Score]) -> Score:
        absent = missing(parts)
        terms = {
            part.name: (part.weight, value) for part in self.parts if (value := parts[part.name].value) is not None
        }
        if not terms or (absent and self.missing == "fail"):
            return no_number(parts, missing=absent)
        value = math.fsum(weight * value for weight, value in terms.values())
        if absent and self.missing == "renormalize":
            total = math.fsum(part.weight for part in self.parts)
            value *= total / math.fsum(weight for weight, _ in terms.values())
        return Score(value=value, parts=parts, evidence={"missing": absent} if absent else {})
