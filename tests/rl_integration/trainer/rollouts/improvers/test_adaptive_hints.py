"""SEELE: how much of a solution is shown, by what the rounds before have said, and which groups are written anew."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.scripted_writer import Scripted, answering_of

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rollouts.curricula.choice import IMPROVERS
from adjudge.rl_integration.trainer.rollouts.curricula.hints import (
    AdaptiveHints,
    AdaptiveHintsRule,
    needed_share,
)
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.writer import Ask

SOLUTION = "abcdefghijklmnopqrst"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=600)


def by_loops(rounds: list[tuple[float, int, int]], target: float, guess: float) -> float:
    total = below = 0.0
    for slope in (5.0, 10.0, 20.0):
        for place in np.linspace(0, 1, 101):
            weight = 1.0
            for share, right, judged in rounds:
                chance = guess + (1 - guess) / (1 + math.exp(-slope * (share - place)))
                weight *= chance**right * (1 - chance) ** (judged - right)
            odds = (target - guess) / (1 - target)
            total += weight * min(1.0, max(0.0, place + math.log(odds) / slope))
            below += weight
    return total / below


ROUND = st.tuples(st.floats(0, 1), st.integers(0, 4), st.integers(4, 5))


@settings(max_examples=30, deadline=None)
@given(rounds=st.lists(ROUND, min_size=1, max_size=3), target=st.floats(0.4, 0.8), guess=st.sampled_from([0.0, 0.25]))
def test_the_share_is_the_mean_over_the_model(
    rounds: list[tuple[float, int, int]], target: float, guess: float
) -> None:
    found = needed_share(rounds, target=target, guess=guess)
    assert found == pytest.approx(by_loops(rounds, target, guess), rel=1e-6)


def test_more_is_shown_to_who_fails_and_less_to_who_succeeds() -> None:
    none = needed_share([(0.0, 0, 8)], target=0.5, guess=0.0)
    some = needed_share([(0.0, 3, 8)], target=0.5, guess=0.0)
    assert 0.5 < none < 0.7
    assert some < 0.2
    more = needed_share([(0.0, 0, 8), (none, 0, 8)], target=0.5, guess=0.0)
    less = needed_share([(0.0, 0, 8), (none, 8, 8)], target=0.5, guess=0.0)
    assert more > none + 0.1
    assert less < none - 0.1


def test_rounds_come_near_what_a_task_needs(policy: Policy) -> None:
    """Answers are right behind a share that a task asks for, by a steep curve of its own."""
    needs = {"a": 0.15, "b": 0.45, "c": 0.8}
    rates: list[float] = []

    def writes(one: Task, dice: random.Random) -> str:
        shown = str(one.prompt).partition(":\n")[2]
        chance = 1 / (1 + math.exp(-15 * (len(shown) / len(SOLUTION) - needs[one.id])))
        return "4" if dice.random() < chance else "0"

    tasks = [Task(id=name, prompt=f"{name}=", reference="4", extra={"solution": SOLUTION}) for name in needs]
    with answering_of(Scripted(writes)) as answering:
        before = answering.scored([Ask(task=one, count=16) for one in tasks])
        found = AdaptiveHints(AdaptiveHintsRule(rounds=4), policy).improve(before, answering)
    for group in found.groups:
        values = [value for value in group.values if value is not None]
        rates.append(sum(values) / len(values))
        assert len(values) == 16
    assert all(0.2 <= rate <= 0.8 for rate in rates), rates
    assert found.counts["hinted"] == 3
    assert found.counts["hint_rounds"] >= 3


def test_what_is_easy_bare_or_not_judged_stays(policy: Policy) -> None:
    first = ["4", "0", "0", "0", "?", "?", "0", "0"]
    names = {"easy": SOLUTION, "bare": "", "lost": SOLUTION, "hard": SOLUTION}
    tasks = [Task(id=name, prompt=f"{name}=", reference="4", extra={"solution": text}) for name, text in names.items()]
    writer = Scripted(lambda one, dice: first.pop(0) if first else "0")
    with answering_of(writer) as answering:
        before = answering.scored([Ask(task=one, count=2) for one in tasks])
        writer.shown.clear()
        found = AdaptiveHints(AdaptiveHintsRule(rounds=2), policy).improve(before, answering)
    assert found.groups[:3] == before[:3]
    assert found.counts == {"hinted": 1, "hint_rounds": 2, "hint_solved": 0}
    lengths = [len(text.partition(":\n")[2]) for text in writer.shown]
    assert lengths[0] < lengths[-1], "nothing was right, so more was shown"
    assert [one.origin for one in found.groups[3].rollouts] == ["hinted"] * 2
    assert found.groups[3].rollouts[0].task is tasks[3], "the scorer sees the task as it is"
    assert len(found.groups[3].rollouts[0].prompt_ids) > len(before[3].rollouts[0].prompt_ids)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"guess": 0.5}, "guess=0.5, target=0.5"), ({"target": 1.0}, "target=1.0"), ({"rounds": 0}, "rounds=0")],
)
def test_mistakes_name_the_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdaptiveHintsRule(**options)


def test_a_run_without_solutions_is_refused(policy: Policy) -> None:
    with pytest.raises(ValueError, match="no task can be helped"):
        IMPROVERS["seele"].made(policy, [Task(id="one", prompt="1=", reference="1")])
