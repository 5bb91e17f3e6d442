"""A gate first, then the main score, then bonuses: the order in which most published rewards are built.

    gate < threshold              -> otherwise, with the reason "gated"; nothing else is asked
    gate >= threshold, main <= 0  -> main
    gate >= threshold, main > 0   -> main + sum over bonuses of weight * value

So a malformed or unsafe response cannot collect the main score, and a wrong one cannot collect bonuses.  A gate
that gave no number is not a closed gate: the sample fails, it does not score 0.

Not covered: gates that scale the main score instead of blocking it; that is `Weighted` or a scorer of your own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from adjudge.options import check_options, options_of
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.scoring.compose.composite import Composite, missing, no_number, reject_groupwise
from adjudge.scoring.compose.part import Part, check_names, score_all
from adjudge.scoring.compose.spec import Loader, parts_of

_OPTIONS = ("gate", "main", "bonuses", "threshold", "otherwise", "name")
_EXAMPLE = "{gate: {gate: format, main: math, otherwise: 0.0}}"


@dataclass(frozen=True, kw_only=True)
class Gate(Composite):
    """A main score that counts only behind a gate, with bonuses that count only when it is positive.

    Attributes:
        gate: asked first, for every sample.
        main: asked for the samples that pass the gate.
        bonuses: asked, all at the same time, for the samples whose main score is above 0; weights may be negative.
        threshold: the gate's lowest passing value.
        otherwise: the value of a sample that does not pass.
        name: short name, used in provenance and reports.
    """

    gate: Scorer | Verifier
    main: Scorer | Verifier
    bonuses: tuple[Part, ...] = ()
    threshold: float = 1.0
    otherwise: float = 0.0
    name: str = "gate"

    def __post_init__(self) -> None:
        """Check the options; reject names that clash, and group scorers behind the gate."""
        object.__setattr__(self, "bonuses", tuple(self.bonuses))
        object.__setattr__(self, "gate", Part(self.gate).scorer)
        object.__setattr__(self, "main", Part(self.main).scorer)
        check_options(self, "Gate option")
        _, main, *bonuses = self.members()
        if bonuses:
            check_names(bonuses, inside=self.name, reserved=("gate", "main"))
        reject_groupwise([main, *bonuses], inside=self.name, sees="the samples that pass the gate")

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{gate: SPEC, main: SPEC, bonuses: PARTS, threshold: ..., otherwise: ..., name: ...}`."""
        given = options_of(body, _OPTIONS, inside="gate", required=("gate", "main"), example=_EXAMPLE)
        given["gate"] = loader.scorer(given["gate"])
        given["main"] = loader.scorer(given["main"])
        if "bonuses" in given:
            given["bonuses"] = parts_of(given["bonuses"], loader, inside="gate")
        return cls(**given)

    def members(self) -> tuple[Part, ...]:
        """Return the gate, the main scorer and the bonuses."""
        return (Part(self.gate, name="gate"), Part(self.main, name="main"), *self.bonuses)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Ask the gate, then the main scorer where it passed, then the bonuses where that was positive."""
        gate, main, *bonuses = self.members()
        rows: list[dict[str, Score]] = await score_all([gate], samples, inside=self.name)
        await self._extend(rows, [main], samples, lambda row: self._passed(row["gate"]))
        await self._extend(rows, bonuses, samples, _earns_bonus)
        return [self._verdict(row) for row in rows]

    async def _extend(
        self,
        rows: list[dict[str, Score]],
        parts: Sequence[Part],
        samples: Sequence[Sample],
        wanted: Callable[[Mapping[str, Score]], bool],
    ) -> None:
        chosen = [index for index, row in enumerate(rows) if wanted(row)]
        if not chosen or not parts:
            return
        found = await score_all(parts, [samples[index] for index in chosen], inside=self.name)
        for index, row in zip(chosen, found, strict=True):
            rows[index].update(row)

    def _passed(self, gate: Score) -> bool:
        return gate.value is not None and gate.value >= self.threshold

    def _verdict(self, parts: Mapping[str, Score]) -> Score:
        if absent := missing(parts):
            return no_number(parts, missing=absent)
        if not self._passed(parts["gate"]):
            return Score(value=self.otherwise, reason="gated", parts=parts)
        main = parts["main"]
        bonus = math.fsum(part.weight * (parts[part.name].value or 0.0) for part in self.bonuses if part.name in parts)
        return Score(value=(main.value or 0.0) + bonus, reason=main.reason, parts=parts)


def _earns_bonus(parts: Mapping[str, Score]) -> bool:
    main = parts.get("main")
    return main is not None and main.value is not None and main.value > 0
