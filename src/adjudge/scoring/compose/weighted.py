"""The weighted sum of several scores: correctness plus a little for form, minus a little for length.

    value = sum over parts of weight * value

Scales are the caller's business: put a `Transform` around a part to normalize before mixing, or around the whole
to normalize after.

Not covered: bonuses that count only when the main score is positive; that is `Gate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from adjudge.options import check_options, options_of
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.composite import Composite, missing, no_number
from adjudge.scoring.compose.part import Part, check_names, score_all
from adjudge.scoring.compose.spec import Loader, parts_of

Missing = Literal["fail", "skip", "renormalize"]

_EXAMPLE = "{weighted: {math: 1.0, format: 0.1}}"


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

    parts: tuple[Part, ...]
    missing: Missing = "fail"
    name: str = "weighted"

    def __post_init__(self) -> None:
        """Reject an empty mix, names that clash, and weights that cannot be renormalised."""
        object.__setattr__(self, "parts", tuple(self.parts))
        check_names(self.parts, inside=self.name)
        check_options(self, "Weighted option")
        for part in self.parts:
            if self.missing == "renormalize" and part.weight <= 0:
                raise ValueError(
                    f'missing="renormalize" needs positive weights, and {part.name!r} has {part.weight}; '
                    'use "skip" or "fail"'
                )

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{NAME: WEIGHT, ...}`, a list of parts, or `{parts: ..., missing: ..., name: ...}`."""
        if not (isinstance(body, Mapping) and "parts" in body):
            return cls(parts=parts_of(body, loader, inside="weighted"))
        given = options_of(body, ("parts", "missing", "name"), inside="weighted", example=_EXAMPLE)
        given["parts"] = parts_of(given["parts"], loader, inside="weighted")
        return cls(**given)

    def members(self) -> tuple[Part, ...]:
        """Return the parts."""
        return self.parts

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the weighted sum for each sample."""
        return [self._sum(row) for row in await score_all(self.parts, samples, inside=self.name)]

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
