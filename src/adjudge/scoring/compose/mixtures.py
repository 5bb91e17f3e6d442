"""Several scorers in one: a weighted sum, a gate before the main score, stages asked in turn, an ensemble.

Scales are the caller's business: put a `Transform` around a part to normalize before mixing, or around the whole to
normalize after.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from adjudge import reasons
from adjudge.options import Count
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.scoring.compose.combination import Combination, spread_of
from adjudge.scoring.compose.composite import Composite, Part, missing, no_number

Missing = Literal["fail", "skip", "renormalize"]
Rule = Literal["mean", "median", "min", "lower_bound", "nominal_min"]


@dataclass(frozen=True, kw_only=True)
class Weighted(Composite):
    """Weighted sum of parts that all run at the same time: correctness, a little for form, minus a little for length.

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
        value = _total(terms)
        if absent and self.missing == "renormalize":
            total = math.fsum(part.weight for part in self.parts)
            value = total * (value / math.fsum(weight for weight, _ in terms.values()))  # of ones exactly the total
        return Score(value=value, parts=parts, evidence={"missing": absent} if absent else {})


def _total(terms: Mapping[str, tuple[float, float]]) -> float:
    """The sum of weights times values, by name.

    Raises:
        ValueError: it is not finite; the message names the part that is to blame.
    """
    try:
        value = math.fsum(weight * value for weight, value in terms.values())
    except (OverflowError, ValueError):  # on the way, and infinite ones of both signs
        value = math.inf
    if math.isfinite(value):
        return value
    name = max(terms, key=lambda name: (abs(terms[name][0] * terms[name][1]), abs(terms[name][1])))
    weight, large = terms[name]
    raise ValueError(
        f"the part {name!r} has the value {large!r}, which is too large to be summed with the weight {weight!r}; bring "
        "it into range with a transform"
    )


@dataclass(frozen=True, kw_only=True)
class Gate(Composite):
    """A main score that counts only behind a gate, with bonuses that count only when it is positive.

        gate < threshold              -> otherwise, with the reason "gated"; nothing else is asked
        gate >= threshold, main <= 0  -> main
        gate >= threshold, main > 0   -> main + sum over bonuses of weight * value

    So a malformed or unsafe response cannot collect the main score, and a wrong one cannot collect bonuses.  A gate
    that gave no number is not a closed gate: the sample fails, it does not score 0.

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
        for parts, earned in (([main], self._passed), (bonuses, self._earns_bonus)):
            chosen = [index for index, row in enumerate(rows) if earned(row)]
            if chosen and parts:
                answers = await self.ask(parts, [samples[index] for index in chosen])
                for index, row in zip(chosen, answers, strict=True):
                    rows[index].update(row)
        return [self._verdict(row) for row in rows]

    def _passed(self, parts: Mapping[str, Score]) -> bool:
        gate = parts["gate"].value
        return gate is not None and gate >= self.threshold

    def _earns_bonus(self, parts: Mapping[str, Score]) -> bool:
        return "main" in parts and (parts["main"].value or 0.0) > 0

    def _verdict(self, parts: Mapping[str, Score]) -> Score:
        if absent := missing(parts):
            return no_number(parts, missing=absent)
        if not self._passed(parts):
            return Score(value=self.otherwise, reason="gated", parts=parts)
        main = parts["main"]
        bonuses = {
            part.name: (part.weight, parts[part.name].value or 0.0) for part in self.bonuses if part.name in parts
        }
        value = (main.value or 0.0) + _total(bonuses)
        return Score(value=value, reason=main.reason, parts=parts)


@dataclass(frozen=True, kw_only=True)
class Cascade(Composite):
    """Stages asked in order, cheap ones first, each only about the samples that no earlier stage settled.

    A stage settles a sample when it scores it, unless its reason is one of `pass_on`: "undecided" or
    "unparsable_answer", a 0 of `math` that means "I could not tell"; "wrong" and "no_answer" of `exact`, which knows
    equal texts alone.  What no stage settles ends as follows, in this order:

    1. a stage failed: failed, with the reason of the last stage that did (the better judge was down: no verdict);
    2. a stage scored it with a `pass_on` reason: that score, the last one, stands (declining does not lift a 0);
    3. every stage abstained: abstained, "still_unknown".

    The value, the steps and the reason are those of the stage that settled the sample; `evidence["stage"]` names it.

    Attributes:
        stages: the scorers in order; names must differ.
        pass_on: reasons of scored verdicts that the next stage shall look at again; none by default.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "a list of stages, or `{stages: [...], pass_on: [...], name: ...}`"
    example: ClassVar[str] = "{cascade: {stages: [exact, math], pass_on: [wrong, no_answer]}}"
    short_for: ClassVar[str] = "stages"

    stages: tuple[Part, ...]
    pass_on: tuple[str, ...] = ()
    name: str = "cascade"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reject_groupwise(self.stages[1:], sees="the samples left over by earlier stages")
        object.__setattr__(self, "pass_on", tuple(sorted(set(self.pass_on))))
        for reason in self.pass_on:
            if reason not in reasons.CANDIDATE or not reason:
                known = ", ".join(code for code in reasons.CANDIDATE if code)
                raise ValueError(f"Cascade.pass_on holds {reason!r}; a scored verdict has one of the reasons {known}")

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Ask stage after stage about what is still open."""
        rows: list[dict[str, Score]] = [{} for _ in samples]
        still_open = list(range(len(samples)))
        for stage in self.stages:
            if not still_open:
                break
            answers = await self.ask([stage], [samples[index] for index in still_open])
            for index, row in zip(still_open, answers, strict=True):
                rows[index].update(row)
            still_open = [index for index in still_open if not self._settles(rows[index][stage.name])]
        return [self._verdict(row) for row in rows]

    def _settles(self, score: Score) -> bool:
        return score.status == "scored" and score.reason not in self.pass_on

    def _verdict(self, parts: Mapping[str, Score]) -> Score:
        last = list(parts.items())[::-1]
        for wanted in ("settled", "failed", "scored"):
            for stage, score in last:
                if self._settles(score) if wanted == "settled" else score.status == wanted:
                    return replace(score, parts=parts, evidence={"stage": stage})
        return Score(value=None, status="abstained", reason="still_unknown", parts=parts)


@dataclass(frozen=True, kw_only=True)
class Ensemble(Composite):
    """One value out of several scorers of the same thing on one scale, harder to fool than any of them.

    `adjudge.scoring.compose.combination` has the formulas.  `nominal` is the mean, the value of one member by name, or
    that of the "surest" member: the one with the smallest `Score.uncertainty`.  `Score.uncertainty` of the result is
    the population standard deviation of the values.

    Attributes:
        parts: the members; names must differ, weights are not used.
        rule: how values become one.
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
                f'Ensemble option nominal={self.nominal!r}; it must be "mean", "surest" or a member: {", ".join(names)}'
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
        if self.nominal != "surest":
            return values.get(self.nominal)
        sure = [(spread, name) for name in values if (spread := parts[name].uncertainty) is not None]
        return values[min(sure)[1]] if sure else None
