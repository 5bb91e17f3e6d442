from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge.protocol import Sample, Score, StepScore
from adjudge.scoring.compose import Cascade, Part

DOCS = Path(__file__).parents[3] / "docs"

VERDICTS: dict[str, Score] = {
    "right": Score(value=1.0, uncertainty=0.1, steps=(StepScore(value=1.0),)),
    "wrong": Score.scored(0.0, "wrong"),
    "undecided": Score.scored(0.0, "undecided"),
    "unparsable": Score.scored(0.0, "unparsable_answer"),
    "failed": Score.failed("engine_unavailable"),
    "unreadable": Score.failed("judge_unparsable"),
    "declines": Score.abstained("low_confidence"),
}


@dataclass(frozen=True)
class Stage:
    """Gives the verdict that the prompt's n-th word names; remembers which samples it saw."""

    place: int
    fingerprint: str = "stage:1"
    asked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"stage{self.place}"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.asked.extend(str(sample.prompt) for sample in samples)
        return [VERDICTS[str(sample.prompt).split()[self.place]] for sample in samples]


def build(**options: Any) -> tuple[Cascade, list[Stage]]:
    stages = [Stage(place) for place in range(3)]
    return Cascade(stages=tuple(Part(stage) for stage in stages), **options), stages


def run(cascade: Cascade, *stories: str) -> list[Score]:
    return asyncio.run(cascade.score([Sample(prompt=story, response="r") for story in stories]))


@pytest.mark.parametrize(
    ("story", "status", "value", "reason", "stage"),
    [
        ("right failed failed", "scored", 1.0, "", "stage0"),
        ("wrong right right", "scored", 0.0, "wrong", "stage0"),
        ("declines wrong right", "scored", 0.0, "wrong", "stage1"),
        ("failed declines right", "scored", 1.0, "", "stage2"),
        ("undecided right wrong", "scored", 1.0, "", "stage1"),
        ("unparsable undecided right", "scored", 1.0, "", "stage2"),
        ("declines declines declines", "abstained", None, "still_unknown", None),
        ("failed unreadable declines", "failed", None, "judge_unparsable", "stage1"),
        ("undecided unparsable declines", "scored", 0.0, "unparsable_answer", "stage1"),
        ("undecided declines failed", "failed", None, "engine_unavailable", "stage2"),
        ("declines declines undecided", "scored", 0.0, "undecided", "stage2"),
    ],
)
def test_the_first_stage_that_knows_decides(
    story: str, status: str, value: float | None, reason: str, stage: str | None
) -> None:
    cascade, _ = build(pass_on=["undecided", "unparsable_answer"])
    (score,) = run(cascade, story)
    assert (score.status, score.value, score.reason) == (status, value, reason)
    assert score.evidence.get("stage") == stage


@pytest.mark.parametrize(
    ("response", "value", "stage"),
    [
        (r"It is \boxed{2}", 1.0, "exact"),
        (r"It is \boxed{2.0}", 1.0, "math"),
        (r"It is \boxed{\frac{4}{2}}", 1.0, "math"),
        ("So x = 2.0.", 1.0, "math"),
        (r"It is \boxed{3}", 0.0, "math"),
        ("", 0.0, "math"),
    ],
)
@pytest.mark.parametrize("page", ["composition.md", "labeling.md"])
def test_the_documented_cascade_asks_math_about_what_is_not_equal_as_text(
    response: str, value: float, stage: str, page: str
) -> None:
    (spec,) = re.findall(r"^cascade: .*exact, math.*$", (DOCS / page).read_text(), re.MULTILINE)
    score = adjudge.score("q", response, "2", scorer=spec)
    assert (score.value, score.evidence["stage"]) == (value, stage)


def test_later_stages_see_only_what_is_open() -> None:
    cascade, stages = build()
    stories = ["right right right", "declines wrong right", "failed declines right", "undecided right right"]
    scores = run(cascade, *stories)
    assert [score.value for score in scores] == [1.0, 0.0, 1.0, 0.0]
    assert [stage.asked for stage in stages] == [stories, stories[1:3], stories[2:3]]
    assert [list(score.parts) for score in scores] == [
        ["stage0"],
        ["stage0", "stage1"],
        ["stage0", "stage1", "stage2"],
        ["stage0"],
    ]


def test_steps_and_uncertainty_come_from_the_deciding_stage() -> None:
    cascade, _ = build()
    (score,) = run(cascade, "declines right right")
    assert (score.uncertainty, score.steps) == (0.1, (StepScore(value=1.0),))


def test_mistakes_are_refused() -> None:
    stage = Part(Stage(0))
    with pytest.raises(ValueError, match="holds 'undecide'"):
        Cascade(stages=(stage,), pass_on=("undecide",))
    with pytest.raises(ValueError, match="holds ''"):
        Cascade(stages=(stage,), pass_on=("",))
    with pytest.raises(ValueError, match=r"does not weigh its parts, and 'stage0' has the weight 2\.0"):
        Cascade(stages=(Part(Stage(0), weight=2.0),))
    with pytest.raises(ValueError, match="no parts"):
        Cascade(stages=())
