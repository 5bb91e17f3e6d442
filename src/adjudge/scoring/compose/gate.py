"""A gate first, then the main score, then bonuses: the order in which most published rewards are built.

    gate < threshold              -> otherwise, with the reason "gated"; nothing else is asked
    gate >= threshold, main <= 0  -> main
    gate >= threshold, main > 0   -> main + sum over bonuses of weight * value

So a malformed or unsafe response cannot collect the main score, and a wrong one cannot collect bonuses.  A gate
that gave no number is not a closed gate: the sample fails, it does not score 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.scoring.compose.composite import Composite, Part, missing, no_number


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

    spec_form: ClassVar[str] = "`{gate: SPEC, main: SPEC, bonuses: PARTS, threshold: ..., otherwise: ..., name: ...}`"
    example: ClassVar[str] = "{gate: {gate: format, main: math, otherwise: 0.0}}"
    weighs: ClassVar[bool] = True

    gate: Scorer | Verifier
    main: Scorer | Verifier
    bonuses: tuple[Part, ...] = ()
    threshold: float = 1.0
    otherwise: float = 0.0
    name: str = "gate"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reject_groupwise(self.members()[1:], sees="the samples that pass the gate")

    def members(self) -> tuple[Part, ...]:
        """Return the gate, the main scorer and the bonuses."""
        return (Part(self.gate, name="gate"), Part(self.main, name="main"), *self.bonuses)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Ask the gate, then the main scorer where it passed, then the bonuses where that was positive."""
        gate, main, *bonuses = self.members()
        rows = await self.ask([gate], samples)
        for parts, earned in (([main], self._passed), (bonuses, _earns_bonus)):
            chosen = [index for index, row in enumerate(rows) if earned(row)]
            if chosen and parts:
                answers = await self.ask(parts, [samples[index] for index in chosen])
                for index, row in zip(chosen, answers, strict=True):
                    rows[index].update(row)
        return [self._verdict(row) for row in rows]

    def _passed(self, parts: Mapping[str, Score]) -> bool:
        gate = parts["gate"].value
        return gate is not None and gate >= self.threshold

    def _verdict(self, parts: Mapping[str, Score]) -> Score:
        if absent := missing(parts):
            return no_number(parts, missing=absent)
        if not self._passed(parts):
            return Score(value=self.otherwise, reason="gated", parts=parts)
        main = parts["main"]
        bonus = math.fsum(part.weight * (parts[part.name].value or 0.0) for part in self.bonuses if part.name in parts)
        return Score(value=(main.value or 0.0) + bonus, reason=main.reason, parts=parts)


def _earns_bonus(parts: Mapping[str, Score]) -> bool:
    main = parts.get("main")
    return main is not None and main.value is not None and main.value > 0
