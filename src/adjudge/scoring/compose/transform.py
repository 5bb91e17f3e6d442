"""A scorer with its numbers changed: scaled, clipped, ranked or standardised in the group.

Where the transform stands decides when the change happens.  Around a part of a `Weighted` it normalises *before*
mixing; around the whole `Weighted` it normalises *after*.

Group statistics are taken over the scored members of the samples that share `Sample.group` in one call, so such a
scorer says `groupwise = True` and must be given whole groups.  Failed and abstained members keep their status:
they neither vote nor get a number.

Not covered: statistics across groups or batches, which would make a score depend on the batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from adjudge.options import options_of
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.scoring.compose.composite import Composite
from adjudge.scoring.compose.part import Part
from adjudge.scoring.compose.spec import Loader
from adjudge.scoring.compose.steps import Step, step_of

_EXAMPLE = "{transform: {scorer: math, steps: [zscore, {clip: {low: -3, high: 3}}]}}"


@dataclass(frozen=True, kw_only=True)
class Transform(Composite):
    """One scorer followed by steps on its values.

    A group with fewer than two scored members gives no statistic: its members fail with "group_too_small".
    Equal members get 0.0 from `ZScore` and 0.5 from `Rank`.  The uncertainty survives `Affine` only.

    Attributes:
        scorer: where the values come from.
        steps: what is done to them, in order.
        name: short name, used in provenance and reports.
    """

    scorer: Scorer | Verifier
    steps: tuple[Step, ...]
    name: str = "transform"

    def __post_init__(self) -> None:
        """Reject a transform that does nothing, and steps that are none."""
        object.__setattr__(self, "scorer", Part(self.scorer).scorer)
        object.__setattr__(self, "steps", tuple(self.steps))
        if not self.steps:
            raise ValueError(f"{self.name!r} has no steps; try {_EXAMPLE}")
        for step in self.steps:
            if not isinstance(step, Step):
                raise ValueError(f"{self.name!r} has the step {step!r}; use Affine, Clip, Rank or ZScore")

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{scorer: SPEC, steps: [STEP, ...], name: ...}`."""
        known = ("scorer", "steps", "name")
        given = options_of(body, known, inside="transform", required=("scorer", "steps"), example=_EXAMPLE)
        if not isinstance(given["steps"], list | tuple):
            raise ValueError(f"the steps of a transform are {given['steps']!r}; give a list, as in {_EXAMPLE}")
        given["scorer"] = loader.scorer(given["scorer"])
        given["steps"] = tuple(step_of(entry) for entry in given["steps"])
        return cls(**given)

    def members(self) -> tuple[Part, ...]:
        """Return the one scorer."""
        return (Part(self.scorer),)

    @property
    def groupwise(self) -> bool:
        """Whether a step, or the scorer, compares the members of a group."""
        return super().groupwise or self._has_group_step

    @property
    def _has_group_step(self) -> bool:
        return any(step.groupwise for step in self.steps)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the scorer objects, or if a group step meets a sample without a group."""
        super().validate(sample)
        if self._has_group_step and not sample.group:
            raise ValueError(
                f"{self.name!r} compares the members of a group, and the sample"
                f"{f' {sample.id!r}' if sample.id else ''} has none; set Sample.group, "
                "the same for all responses to one prompt"
            )

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Score, then apply the steps."""
        (part,) = self.members()
        raw = await part.score(samples, inside=self.name)
        scores = [replace(score, steps=(), evidence={}, parts={part.name: score}) for score in raw]
        for step in self.steps:
            for members in _in_groups(samples, scores) if step.groupwise else [range(len(scores))]:
                _apply(step, [index for index in members if scores[index].value is not None], scores)
        return scores


def _in_groups(samples: Sequence[Sample], scores: list[Score]) -> list[list[int]]:
    """The scored members of each group; those without a group, or without company, are failed on the way."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, (sample, score) in enumerate(zip(samples, scores, strict=True)):
        if score.value is None:
            continue
        if sample.group:
            groups[sample.group].append(index)
        else:
            scores[index] = _failed(score, "bad_sample", "the sample has no group")
    for name, members in groups.items():
        if len(members) == 1:
            scores[members[0]] = _failed(
                scores[members[0]], "group_too_small", f"group {name!r} has one scored member; two are needed"
            )
    return [members for members in groups.values() if len(members) > 1]


def _failed(score: Score, reason: str, error: str) -> Score:
    return Score(value=None, status="failed", reason=reason, parts=score.parts, evidence={"error": error})


def _apply(step: Step, indices: Sequence[int], scores: list[Score]) -> None:
    values = step.apply([value for index in indices if (value := scores[index].value) is not None])
    for index, value in zip(indices, values, strict=True):
        scores[index] = replace(scores[index], value=value, uncertainty=step.spread(scores[index].uncertainty))
