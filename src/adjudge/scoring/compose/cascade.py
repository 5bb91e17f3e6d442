"""Cheap scorers first, dear ones only for what is still unknown: rules, then a small model, then a big judge.

A stage settles a sample when it scores it, unless its reason is one of `pass_on` (say "undecided" or
"unparsable_answer": a 0 that means "I could not tell").  What no stage settles ends as follows, in this order:

1. a stage failed: failed, with the reason of the last stage that did (the better judge was down; that is no verdict);
2. a stage scored it with a `pass_on` reason: that score, the last one, stands (declining does not lift a 0);
3. every stage abstained: abstained, "still_unknown".

Not covered: combining the verdicts of several stages; that is `Ensemble`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from adjudge import reasons
from adjudge.options import options_of
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.composite import Composite, reject_groupwise
from adjudge.scoring.compose.part import Part, check_names, check_unweighted, score_all
from adjudge.scoring.compose.spec import Loader, parts_of

_EXAMPLE = "{cascade: [exact, math]}"


@dataclass(frozen=True, kw_only=True)
class Cascade(Composite):
    """Stages asked in order, each only about the samples that no earlier stage settled.

    The value, the steps and the reason are those of the stage that settled the sample; `evidence["stage"]` names it.

    Attributes:
        stages: the scorers in order; names must differ.
        pass_on: reasons of scored verdicts that the next stage shall look at again; none by default.
        name: short name, used in provenance and reports.
    """

    stages: tuple[Part, ...]
    pass_on: tuple[str, ...] = ()
    name: str = "cascade"

    def __post_init__(self) -> None:
        """Reject names that clash, reasons that do not exist, and group scorers in later stages."""
        object.__setattr__(self, "stages", tuple(self.stages))
        check_names(self.stages, inside=self.name)
        check_unweighted(self.stages, inside=self.name)
        reject_groupwise(self.stages[1:], inside=self.name, sees="the samples left over by earlier stages")
        if isinstance(self.pass_on, str):
            raise ValueError(f"Cascade.pass_on is the text {self.pass_on!r}; it must be a list of reasons")
        object.__setattr__(self, "pass_on", tuple(sorted(set(self.pass_on))))
        for reason in self.pass_on:
            if reason not in reasons.CANDIDATE or not reason:
                known = ", ".join(code for code in reasons.CANDIDATE if code)
                raise ValueError(f"Cascade.pass_on holds {reason!r}; a scored verdict has one of the reasons {known}")

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read a list of stages, or `{stages: [...], pass_on: [...], name: ...}`."""
        if not isinstance(body, Mapping):
            body = {"stages": body}
        given = options_of(
            body, ("stages", "pass_on", "name"), inside="cascade", required=("stages",), example=_EXAMPLE
        )
        if isinstance(given["stages"], Mapping):
            raise ValueError(f"the stages of a cascade have an order: give a list, as in {_EXAMPLE}")
        given["stages"] = parts_of(given["stages"], loader, inside="cascade")
        return cls(**given)

    def members(self) -> tuple[Part, ...]:
        """Return the stages."""
        return self.stages

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Ask stage after stage about what is still open."""
        rows: list[dict[str, Score]] = [{} for _ in samples]
        still_open = list(range(len(samples)))
        for stage in self.stages:
            if not still_open:
                break
            found = await score_all([stage], [samples[index] for index in still_open], inside=self.name)
            for index, row in zip(still_open, found, strict=True):
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
