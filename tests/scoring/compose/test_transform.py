from __future__ import annotations

import asyncio
import json
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.scoring.compose import Affine, Clip, Part, Rank, Step, Transform, Weighted, ZScore
from adjudge.scoring.compose.transform import Gaussian, Reciprocal, Threshold, step_of

repeatable = settings(deadline=None, derandomize=True)


@dataclass(frozen=True)
class Reads:
    """Scores the response as a number, or as the status it names; with `key`, an entry of it."""

    name: str = "reads"
    key: str = ""
    fingerprint: str = "reads:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self.one(json.loads(str(sample.response))) for sample in samples]

    def one(self, data: Any) -> Score:
        value = data[self.key] if self.key else data
        if value == "failed":
            return Score.failed("engine_unavailable")
        if value == "abstained":
            return Score.abstained("low_confidence")
        return Score(value=value, uncertainty=0.5, reason="" if value else "wrong")


def run(steps: Sequence[Step], values: Sequence[Any], groups: str = "") -> list[Score]:
    groups = groups or "g" * len(values)
    samples = [
        Sample(prompt="p", response=json.dumps(value), group=group.strip())
        for value, group in zip(values, groups, strict=True)
    ]
    return asyncio.run(Transform(scorer=Reads(), steps=tuple(steps)).score(samples))


def numbers(scores: Sequence[Score]) -> list[float | None]:
    return [score.value for score in scores]


def test_affine_and_clip_look_at_one_value() -> None:
    scores = run([Affine(scale=-2.0, shift=1.0), Clip(low=-3.0, high=0.5)], [0.0, 1.0, 5.0], "abc")
    assert numbers(scores) == [0.5, -1.0, -3.0]
    assert [score.parts["reads"].value for score in scores] == [0.0, 1.0, 5.0]
    assert [score.reason for score in scores] == ["wrong", "", ""]
    assert numbers(run([Clip(low=0.0)], [-1.0, 7.0])) == [0.0, 7.0]
    assert numbers(run([Clip(high=0.0)], [-1.0, 7.0])) == [-1.0, 0.0]


def test_uncertainty_is_scaled_by_affine_and_unknown_after_anything_else() -> None:
    assert run([Affine(scale=-4.0)], [1.0])[0].uncertainty == 2.0
    for step in (Clip(low=0.0), Rank(), ZScore()):
        assert run([step], [1.0, 2.0])[0].uncertainty is None


def test_a_reciprocal_is_bounded_by_the_least_value() -> None:
    scores = run([Affine(scale=-1.0), Reciprocal(least=0.5)], [-4.0, -0.1, 2.0], "abc")
    assert [score.value for score in scores] == [0.25, 2.0, 2.0]
    assert step_of({"reciprocal": {"least": 0.5}}) == Reciprocal(least=0.5)
    with pytest.raises(ValueError, match="least=0"):
        Reciprocal(least=0.0)


def test_a_gaussian_is_1_at_its_centre_and_falls_to_both_sides() -> None:
    scores = run([Gaussian(center=2.0, width=0.5)], [2.0, 2.5, 1.0, 1e200], "abcd")
    assert [score.value for score in scores] == pytest.approx([1.0, math.exp(-1), math.exp(-4), 0.0])
    assert step_of({"gaussian": {"center": 2}}) == Gaussian(center=2)
    with pytest.raises(ValueError, match="width=0"):
        Gaussian(width=0.0)


def test_a_threshold_is_passed_by_what_is_above_it() -> None:
    scores = run([Threshold(above=0.4, high=1.0, low=0.1)], [0.4, 0.41, -3.0], "abc")
    assert [score.value for score in scores] == [0.1, 1.0, 0.1]
    assert step_of({"threshold": {"above": 0.4, "low": 0.1}}) == Threshold(above=0.4, high=1.0, low=0.1)


def test_z_scores_are_those_of_grpo() -> None:
    values = [0.0, 1.0, 1.0, 0.5]
    spread = statistics.stdev(values)
    expected = [(value - 0.625) / (spread + 1e-6) for value in values]
    assert numbers(run([ZScore()], values)) == pytest.approx(expected, rel=1e-12)
    exact = [(value - 0.625) / statistics.pstdev(values) for value in values]
    assert numbers(run([ZScore(ddof=0, eps=0.0)], values)) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e-320, 1e100])
@pytest.mark.parametrize("step", [ZScore(), ZScore(eps=0.0), ZScore(ddof=0, eps=0.0)])
def test_equal_members_have_no_advantage(value: float, step: ZScore) -> None:
    assert numbers(run([step], [value] * 3)) == [0.0, 0.0, 0.0]


def test_rounding_noise_is_not_blown_up() -> None:
    scores = numbers(run([ZScore()], [0.1 + 0.2, 0.3, 0.3]))
    assert max(abs(score or 0.0) for score in scores) < 1e-9


def test_deviations_too_small_to_square_do_not_divide_by_zero() -> None:
    assert numbers(run([ZScore(eps=0.0)], [0.0, 5e-324])) == [0.0, 0.0]


def test_ranks_run_from_0_to_1_and_ties_share() -> None:
    assert numbers(run([Rank()], [5.0, -1.0, 7.0])) == [0.5, 0.0, 1.0]
    assert numbers(run([Rank()], [1.0, 3.0, 3.0, 9.0])) == [0.0, 0.5, 0.5, 1.0]
    assert numbers(run([Rank()], [2.0, 2.0])) == [0.5, 0.5]
    assert numbers(run([Rank()], [0.0, -0.0, 1.0])) == [0.25, 0.25, 1.0]


@repeatable
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9), st.integers(0, 99))
def test_group_steps_follow_their_members_in_any_order(values: list[float], seed: int) -> None:
    order = list(range(len(values)))
    random.Random(seed).shuffle(order)
    for step in (ZScore(), ZScore(ddof=0, eps=0.0), Rank()):
        straight = numbers(run([step], values))
        assert numbers(run([step], [values[i] for i in order])) == [straight[i] for i in order]


@repeatable
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9))
def test_ranks_keep_the_order_and_are_centred(values: list[float]) -> None:
    ranks = [rank or 0.0 for rank in numbers(run([Rank()], values))]
    assert sum(ranks) == pytest.approx(len(ranks) / 2)
    for value, rank in zip(values, ranks, strict=True):
        for other, other_rank in zip(values, ranks, strict=True):
            assert (value < other) == (rank < other_rank)


def test_groups_do_not_mix() -> None:
    scores = run([ZScore(ddof=0, eps=0.0)], [0.0, 10.0, 1.0, 20.0], "abab")
    assert numbers(scores) == [-1.0, -1.0, 1.0, 1.0]


def test_failed_members_neither_vote_nor_get_a_number() -> None:
    scores = run([ZScore(ddof=0, eps=0.0)], [0.0, "failed", 1.0, "abstained"])
    assert numbers(scores) == [-1.0, None, 1.0, None]
    assert [score.reason for score in scores] == ["wrong", "engine_unavailable", "", "low_confidence"]
    assert scores[1].parts["reads"].status == "failed"


@pytest.mark.parametrize("step", [ZScore(), Rank()])
def test_a_group_of_one_gives_no_statistic(step: Step) -> None:
    scores = run([step], [1.0, 1.0, "failed", 2.0, 3.0], "abbcc")
    assert [score.reason for score in scores] == [
        "group_too_small",
        "group_too_small",
        "engine_unavailable",
        "",
        "",
    ]
    assert "group 'a' has one scored member" in scores[0].evidence["error"]


def test_a_sample_without_a_group_is_a_mistake_said_early_and_a_failure_said_late() -> None:
    transform = Transform(scorer=Reads(), steps=(ZScore(),))
    lonely = Sample(prompt="p", response="1.0", id="row-1")
    with pytest.raises(ValueError, match=r"'row-1' has none; set Sample\.group"):
        transform.validate(lonely)
    assert [score.reason for score in run([ZScore()], [1.0, 2.0, 3.0], " gg")] == ["bad_sample", "", ""]
    Transform(scorer=Reads(), steps=(Affine(2.0),)).validate(lonely)


def test_before_or_after_mixing_is_where_the_transform_stands() -> None:
    right, style = Reads("right", key="right"), Reads("style", key="style")
    zscore = (ZScore(ddof=0, eps=0.0),)
    before = Weighted(
        parts=(
            Part(Transform(scorer=right, steps=zscore), name="right"),
            Part(Transform(scorer=style, steps=zscore), name="style", weight=0.5),
        )
    )
    after = Transform(scorer=Weighted(parts=(Part(right), Part(style, weight=0.5))), steps=zscore)
    responses = [{"right": 1.0, "style": 0.0}, {"right": 0.0, "style": 100.0}]
    samples = [Sample(prompt="p", response=json.dumps(response), group="g") for response in responses]
    assert numbers(asyncio.run(before.score(samples))) == [0.5, -0.5]
    assert numbers(asyncio.run(after.score(samples))) == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Affine(scale=math.inf), r"Affine option scale"),
        (lambda: Affine(shift="1e-3"), "YAML reads 1e-3 as text"),  # type: ignore[arg-type]
        (lambda: Clip(), "needs `low`, `high` or both"),
        (lambda: Clip(low=1.0, high=0.0), "must not be above"),
        (lambda: Clip(low=math.nan), r"Clip option low"),
        (lambda: ZScore(ddof=2), r"ZScore option ddof"),  # type: ignore[arg-type]
        (lambda: ZScore(eps=-1.0), r"ZScore option eps"),
        (lambda: Transform(scorer=Reads(), steps=()), "has no steps"),
        (lambda: Transform(scorer=Reads(), steps=("rank",)), "use Affine, Clip, Threshold, Reciprocal, Gaussian"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_refused(build: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        build()
