"""Rewards of steps become advantages of tokens as each formula says, and what was not judged has no vote."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.objectives.batches import batches, mean, spread

from adjudge.protocol import StepScore
from adjudge.responses.refine import Refinement
from adjudge.rl_integration.trainer.algorithms.credit.answers import (
    at_last_tokens,
    over_tokens,
    read_steps,
    rows_of_tokens,
    steps_of_tokens,
)
from adjudge.rl_integration.trainer.algorithms.credit.credit import (
    CRITIC_SEARCH,
    GIVEN,
    IGPO,
    SHAPED,
    TANGO,
    Capo,
    Gigpo,
    Shape,
    StepCredit,
    known,
    to_go,
)
from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.rewards.groups import Groups

VALUES = st.lists(st.floats(-2, 2, width=16), max_size=6)


@st.composite
def stepped(draw: st.DrawFn) -> tuple[Groups, list[Floats]]:
    """Groups, and the rewards of each response's steps; none for some, NaN where the response was not judged."""
    groups = draw(batches())
    rows = [np.array(draw(VALUES)) for _ in range(len(groups))]
    return groups, [row if valid else row * math.nan for row, valid in zip(rows, groups.valid, strict=True)]


def members(groups: Groups, row: int) -> list[int]:
    """The valid responses of a row's group; none if the row is not valid or alone."""
    found = [r for r in range(len(groups)) if groups.valid[r] and groups.ids[r] == groups.ids[row]]
    return found if groups.valid[row] and len(found) > 1 else []


def z_scores(rows: list[Floats], groups: Groups, row: int) -> list[float]:
    pool = [float(value) for member in members(groups, row) for value in rows[member]]
    if len(set(pool)) < 2:
        return [0.0] * len(rows[row])
    return [(float(value) - mean(pool)) / (spread(pool) + 1e-4) for value in rows[row]]


def after(values: list[float]) -> list[float]:
    return [math.fsum(values[place:]) for place in range(len(values))]


def placed(rows: list[Floats], groups: Groups, row: int) -> list[float]:
    found = []
    for place, value in enumerate(after(rows[row].tolist())):
        same = [after(rows[member].tolist())[place] for member in members(groups, row) if len(rows[member]) > place]
        found.append(value - mean(same) if len(same) > 1 else 0.0)
    return found


Reference = Callable[[list[Floats], Groups, int], list[float]]
SYSTEMS: dict[str, tuple[StepCredit, Reference]] = {
    "tango": (TANGO, lambda rows, groups, row: after(z_scores(rows, groups, row))),
    "critic search": (CRITIC_SEARCH, z_scores),
    "igpo": (IGPO, lambda rows, groups, row: after(z_scores(rows, groups, row))),
    "shaped": (SHAPED, placed),
    "given": (GIVEN, lambda rows, groups, row: rows[row].tolist()),
}


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=40)
@given(case=stepped())
def test_step_credit_equals_its_formula(name: str, case: tuple[Groups, list[Floats]]) -> None:
    groups, rows = case
    credit, reference = SYSTEMS[name]
    steps = np.full((len(rows), 8), -1, dtype=np.int64)
    for row, rewards in enumerate(rows):
        steps[row, 1 : 1 + len(rewards)] = np.arange(len(rewards))  # the first token belongs to no step
    outcome = np.arange(len(rows), dtype=np.float64) + 1
    found = credit(rows, steps, groups, outcome)
    for row, rewards in enumerate(rows):
        of_steps = [0.0] * 8
        if members(groups, row):
            of_steps = [0.0, *reference(rows, groups, row), *[0.0] * (7 - len(rewards))]
        wanted = [(1 - credit.share) * outcome[row] + credit.share * value for value in of_steps]
        wanted = wanted if groups.valid[row] else [0.0] * 8
        np.testing.assert_allclose(found[row], wanted, rtol=1e-6, atol=1e-8)


def test_the_mix_is_of_parts_that_were_normalised_apart() -> None:
    groups = Groups.of([1.0, 0.0], ["a", "a"])
    steps = np.array([[0, 1], [0, 1]])
    one = TANGO([np.array([1.0, 0.0]), np.array([0.0, 1.0])], steps, groups, np.array([1.0, -1.0]))
    hundred = TANGO([np.array([100.0, 0.0]), np.array([0.0, 100.0])], steps, groups, np.array([1.0, -1.0]))
    np.testing.assert_allclose(one, hundred, rtol=1e-2)


def test_values_are_shaped_as_scorers_of_steps_shape_them() -> None:
    values = np.array([0.9, 0.4, 0.8, 0.7])
    np.testing.assert_allclose(Shape(how="clip", eta=0.6)(values), [0.0, -0.2, 0.0, 0.0])
    np.testing.assert_allclose(Shape(how="delta")(values), [0.5, -0.4, 0.8, 0.0])
    np.testing.assert_allclose(Shape(how="clip_delta", eta=0.6)(values), [0.2, -0.2, 0.0, 0.0], atol=1e-12)
    weights = np.exp(-values / 0.2)
    np.testing.assert_allclose(Shape(how="min_form", temperature=0.2)(values), values * weights / weights.sum())
    for how in get_args(Refinement):
        assert Shape(how=how)(np.zeros(0)).shape == (0,), "an answer without steps has no rewards of steps"


@given(value=st.floats(0.0, 1.0), times=st.integers(1, 50))
def test_repeating_a_step_pays_no_more(value: float, times: int) -> None:
    solution = np.array([0.7, *[value] * times, 0.9, 0.8])
    refined = Shape(how="delta")(solution)
    assert math.isclose(refined.sum(), 0.7, abs_tol=1e-9)
    np.testing.assert_allclose(to_go(refined)[:-1], solution[:-1], atol=1e-9)
    assert Shape(how="clip", eta=0.5)(solution).sum() <= 0


@given(values=VALUES, gamma=st.sampled_from([0.0, 0.5, 1.0]))
def test_what_follows_is_summed_with_a_discount(values: list[float], gamma: float) -> None:
    found = to_go(np.array(values), gamma)
    for place in range(len(values)):
        wanted = math.fsum(gamma ** (later - place) * values[later] for later in range(place, len(values)))
        assert math.isclose(found[place], wanted, rel_tol=1e-9, abs_tol=1e-9)


def test_tokens_belong_to_the_first_step_that_they_have_a_character_of() -> None:
    text_spans = [(0, 5), (6, 6), (6, 10)]
    offsets = [(0, 2), (2, 6), (5, 6), (6, 8), (9, 12), (10, 11), (0, 0)]
    steps = steps_of_tokens(text_spans, offsets)
    assert steps.tolist() == [0, 0, -1, 2, 2, -1, -1]
    blanks = steps_of_tokens([(0, 5), (6, 9), (10, 12)], [(0, 5), (5, 9), (8, 12), (9, 10), (9, 11)])
    assert blanks.tolist() == [0, 1, 1, -1, 2], "a word's token begins with the blank before it"
    numbers = np.array([1.0, 2.0, 3.0])
    assert over_tokens(numbers, steps).tolist() == [1, 1, 0, 3, 3, 0, 0]
    assert at_last_tokens(numbers, steps).tolist() == [0, 1, 0, 0, 3, 0, 0]
    assert over_tokens(np.zeros(0), np.array([-1, -1])).tolist() == [0, 0]
    assert at_last_tokens(np.zeros(0), np.zeros(0, dtype=np.int64)).tolist() == []
    assert steps_of_tokens([], [(0, 3)]).tolist() == [-1]
    assert rows_of_tokens([], np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)


def test_steps_of_which_one_was_not_judged_are_not_read() -> None:
    steps = (StepScore(value=0.5, start=0, end=3), StepScore(value=1.0, start=3, end=7))
    values, spans = read_steps(steps)
    assert (values.tolist(), spans) == ([0.5, 1.0], [(0, 3), (3, 7)])
    values, spans = read_steps((*steps, StepScore(value=None, start=7, end=9)))
    assert (values.tolist(), spans) == ([], [])
    assert read_steps(())[1] == []


@pytest.mark.parametrize("scale", [False, True])
@settings(max_examples=40)
@given(case=stepped(), states=st.lists(st.sampled_from("abc"), min_size=400, max_size=400))
def test_gigpo_equals_its_formula(scale: bool, case: tuple[Groups, list[Floats]], states: list[str]) -> None:
    groups, rows = case
    anchors = [[states[row * 7 + place] for place in range(len(rewards))] for row, rewards in enumerate(rows)]
    found = Gigpo(gamma=0.9, scale=scale).of_steps(rows, anchors, groups)

    def relative(value: float, peers: list[float]) -> float:
        if len(peers) < 2 or len(set(peers)) < 2:
            return 0.0
        return (value - mean(peers)) / (spread(peers) + 1e-6 if scale else 1.0)

    for row, rewards in enumerate(rows):
        same = members(groups, row)
        for place in range(len(rewards)):
            returns = {
                (other, at): math.fsum(0.9 ** (k - at) * float(rows[other][k]) for k in range(at, len(rows[other])))
                for other in same
                for at in range(len(rows[other]))
            }
            peers = [value for (o, at), value in returns.items() if anchors[o][at] == anchors[row][place]]
            wanted = 0.0
            if same:
                # Sums in another order may differ in the last bit, where equal returns give 0.
                wanted = relative(returns[row, place], peers) if spread(peers) > 1e-12 else 0.0
            assert math.isclose(found[row][place], wanted, rel_tol=1e-5, abs_tol=1e-7)


def groups_of_two() -> Groups:
    return Groups.of([1.0, 0.0], ["a", "a"])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: known(np.array([1.0, math.nan])), "step 1 has the value nan; leave out the steps"),
        (lambda: to_go(np.ones(1), 2.0), "gamma=2.0"),
        (lambda: Shape(temperature=0.0), "temperature=0.0"),
        (lambda: Shape(eta=math.inf), "eta=inf"),
        (lambda: Shape(how="best"), "how='best'"),  # type: ignore[arg-type]
        (lambda: Shape()(np.array([math.nan])), "step 0 has the value nan"),
        (lambda: steps_of_tokens([(0, 5), (4, 6)], []), "overlap or are out of order"),
        (lambda: over_tokens(np.ones(1), np.array([1])), "belongs to step 1, and there are 1 numbers"),
        (lambda: rows_of_tokens([np.ones(1)], np.zeros((2, 1), dtype=np.int64)), "steps of 1 responses"),
        (lambda: TANGO.of_steps([np.ones(1)], groups_of_two()), "rewards of steps has the shape"),
        (lambda: TANGO.of_steps([np.ones(1), np.array([math.inf])], groups_of_two()), "step 0 has the value inf"),
        (lambda: StepCredit(share=1.1), "share=1.1"),
        (lambda: StepCredit(peers="all"), "peers='all'"),  # type: ignore[arg-type]
        (lambda: Capo(correct=0.5), "correct=0.5; it must be a finite number, at least 1"),
        (
            lambda: Gigpo().of_steps([np.ones(1)] * 2, [["a"], []], groups_of_two()),
            "episode 1 has 1 rewards",
        ),
        (lambda: Gigpo(gamma=-1.0), "gamma=-1.0"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()


def test_the_steps_of_the_only_judged_response_are_compared_with_none() -> None:
    groups = replace(groups_of_two(), valid=np.array([True, False]))
    for credit in (TANGO, IGPO, CRITIC_SEARCH):
        found = credit.of_steps([np.array([1.0, 2.0]), np.array([math.nan])], groups)
        assert not np.concatenate(found).any()
