"""Cheap scorers first, dear ones only for what is still unknown: rules, then a small model, then a big judge.

A stage settles a sample when it scores it, unless its reason is one of `pass_on` (say "undecided" or
"unparsable_answer": a 0 that means "I could not tell").  What no stage settles ends as follows, in this order:

1. a stage failed: failed, with the reason of the last stage that did (the better judge was down; that is no verdict);
2. a stage scored it with a `pass_on` reason: that score, the last one, stands (declining does not lift a 0);
3. every stage abstained: abstained, "still_unknown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from adjudge import reasons
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose.composite import Composite, Part


@dataclass(frozen=True, kw_only=True)
class Cascade(Composite):
    """Stages asked in order, each only about the samples that no earlier stage settled.

    The value, the steps and the reason are those of the stage that settled the sample; `evidence["stage"]` names it.

    Attributes:
        stages: the scorers in order; names must differ.
        pass_on: reasons of scored verdicts that the next stage shall look at again; none by default.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "a list of stages, or `{stages: [...], pass_on: [...], name: ...}`"
    example: ClassVar[str] = "{cascade: [exact, math]}"
    short_for: ClassVar[str] = "stages"

    stages: tuple[Part, ...]
    pass_on: tuple[str, ...] = ()
    name: str = "cascade"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reject_groupwise(self.stages[1:], sees="the samples left over by earlier stages")
        if isinstance(self.pass_on, str):
            raise ValueError(f"Cascade.pass_on is the text {self.pass_on!r}; it must be a list of reasons")
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
