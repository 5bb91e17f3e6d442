"""A tree searches promising wrong rollouts first, asks no prefix twice, and finds planted errors."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data_pipelines.steps.oracles import Scripted, run

from adjudge.data_pipelines.steps.rollouts import Estimate, Prefix, Rollout
from adjudge.data_pipelines.steps.searches import TreeOptions, grow

STEPS = 6


def policy(slip: float, seed: int) -> Scripted:
    """Writes `STEPS` steps, "good" until it slips and "bad" from there on; a solution with a bad step is wrong."""

    def answer(prefix: Prefix, index: int) -> Rollout:
        chance = random.Random(f"{seed} {prefix} {index}")
        steps = list(prefix)
        while len(steps) < STEPS:
            bad = "bad" in "".join(steps) or chance.random() < slip
            steps.append(f"{'bad' if bad else 'good'} {len(steps)} {chance.randrange(3)}\n")
        return Rollout(
            pieces=tuple(steps[len(prefix) :]), right="bad" not in "".join(steps), length=STEPS - len(prefix)
        )

    return Scripted(answer)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.sampled_from([0.1, 0.3, 0.5]))
def test_errors_are_where_they_were_made_or_before_and_no_prefix_is_asked_twice(seed: int, slip: float) -> None:
    oracle = policy(slip, seed)
    tree = run(grow(oracle, TreeOptions(rollouts=8, searches=20)))
    assert len(set(oracle.prefixes)) == len(oracle.prefixes) == len(tree.states)
    assert len(tree.paths) <= 20
    shown: set[Prefix] = set()
    for path in tree.paths:
        truth = next(at for at, piece in enumerate(path.pieces) if "bad" in piece)
        assert path.error is not None
        assert path.error <= truth  # a policy without luck never reaches the answer from behind the error
        assert path.estimates[path.error + 1].reached is False
        new = {path.pieces[:length] for length in path.fresh}
        assert new
        assert not new & shown
        shown |= new


def test_merit_and_urge_are_the_papers_formulas() -> None:
    options = TreeOptions()
    assert options.merit(0.75, 250) == pytest.approx(0.5**0.25 * 0.9**0.5)
    assert options.urge(3, 16) == pytest.approx(0.125 * 4 / 4)
    assert (options.rollouts, options.searches, options.length) == (8, 100, 500)


def test_the_best_wrong_rollout_is_searched_first() -> None:
    # Root: two wrong rollouts of different length and two right ones; every longer prefix is hopeless.
    def answer(prefix: Prefix, index: int) -> Rollout:
        if prefix:
            return Rollout(pieces=("end",), right=False, length=1)
        wrong = {0: ("long 1", "long 2"), 1: ("short 1", "short 2")}
        if index in wrong:
            return Rollout(pieces=wrong[index], right=False, length=900 if index == 0 else 100)
        return Rollout(pieces=("way",), right=True, length=10)

    tree = run(grow(Scripted(answer), TreeOptions(rollouts=4)))
    assert [path.pieces[0] for path in tree.paths] == ["short 1", "long 1"]
    assert tree.states[()].visits == 2
    first = tree.paths[0]
    assert (first.error, first.estimates) == (0, {1: Estimate(right=0, judged=4), 2: Estimate(right=0, judged=1)})


@pytest.mark.parametrize("right", [True, False])
def test_a_problem_that_is_always_or_never_solved_is_a_root_alone(right: bool) -> None:
    oracle = Scripted(lambda prefix, index: Rollout(pieces=("a", "b"), right=right))
    tree = run(grow(oracle, TreeOptions(rollouts=3)))
    assert (len(tree.states), tree.paths, oracle.calls) == (1, [], 3)


def test_a_given_solution_is_searched_and_has_no_vote() -> None:
    oracle = Scripted(lambda prefix, index: Rollout(pieces=("x",), right=index == 0 and "bad" not in "".join(prefix)))
    given = Rollout(pieces=("ok 1", "ok 2", "bad 3", "bad 4"), right=False, length=1)
    tree = run(grow(oracle, TreeOptions(rollouts=2, searches=1), given=[given]))
    assert tree.states[()].estimate == Estimate(right=1, judged=2)
    assert tree.paths[0].pieces == ("x",) or tree.paths[0].error == 2
    everything = run(grow(oracle, TreeOptions(rollouts=2, searches=50), given=[given]))
    assert [path.error for path in everything.paths if path.pieces == given.pieces] == [2]


def test_wrong_rollouts_that_say_the_same_are_searched_once() -> None:
    oracle = Scripted(lambda prefix, index: Rollout(pieces=("a", "b"), right=not prefix and index == 0))
    tree = run(grow(oracle, TreeOptions(rollouts=4)))
    assert (len(tree.paths), tree.states[()].visits) == (1, 1)


def test_unjudged_rollouts_have_no_vote_and_hide_the_error_rather_than_move_it() -> None:
    def answer(prefix: Prefix, index: int) -> Rollout:
        if not prefix:
            return Rollout(pieces=("a", "b", "c"), right=[True, False, None, None][index])
        return Rollout(pieces=("z",), right=None)

    tree = run(grow(Scripted(answer), TreeOptions(rollouts=4)))
    (path,) = tree.paths
    assert tree.states[()].estimate == Estimate(right=1, judged=2)
    assert path.error is None
    assert set(path.estimates) == {3}
