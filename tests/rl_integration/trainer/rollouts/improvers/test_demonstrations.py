"""Demonstrations: which groups get one, how it is judged, and that it is learnt from as nobody's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.trainer.scripted_writer import Same, Scripted, answering_of
from tests.rl_integration.trainer.small_runs import Digits, small_config, small_run

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rollouts.curricula.choice import IMPROVERS, ImproverChoice
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import DemonstrationsRule, Improved
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Ask


@pytest.fixture(scope="module")
def policy() -> Policy:
    return tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=600)


def task(name: str, **extra: Any) -> Task:
    return Task(id=name, prompt=f"{name}=", reference="4", extra=extra)


def shown(policy: Policy, *tasks: Task, **options: Any) -> tuple[list[Answered], Improved]:
    writer = Scripted(lambda one, dice: "4" if one.id == "easy" else "0")
    with answering_of(writer, scorer=Same()) as answering:
        before = answering.scored([Ask(task=one, count=2) for one in tasks])
        return before, DemonstrationsRule(**options).made(policy, tasks).improve(before, answering)


def test_a_demonstration_is_a_member_that_is_judged_and_has_no_probabilities(policy: Policy) -> None:
    tasks = [
        task("hard", demonstration="4"),
        task("wrong", demonstration="7"),
        task("bare"),
        task("long", demonstration="4" * 99),
    ]
    before, found = shown(policy, *tasks)
    assert [len(group.rollouts) for group in found.groups] == [3, 3, 2, 2]
    assert [group.values[-1] for group in found.groups[:2]] == [1.0, 0.0]
    assert found.groups[2:] == before[2:]
    assert found.counts == {"demonstrated": 2, "demonstrated_solved": 1}
    one = found.groups[0].rollouts[-1]
    assert (one.text, one.origin, one.finish_reason) == ("4", "demonstration", "stop")
    assert one.ids == (*policy.tokens.text("4"), min(policy.ends))
    assert one.own.all()
    assert np.isnan(one.logprobs).all()
    assert one.prompt_ids == before[0].rollouts[0].prompt_ids
    assert len({rollout.id for rollout in found.groups[0].rollouts}) == 3


def test_a_demonstration_ends_what_was_begun(policy: Policy) -> None:
    whole = Task(id="w", prompt="6*7=", reference="42", extra={"demonstration": "2"}, begun="4")
    other = replace(whole, id="o", extra={"demonstration": "42"})
    before, found = shown(policy, whole, other)
    assert [group.values[-1] for group in found.groups] == [1.0, 1.0]
    assert [group.rollouts[-1].text for group in found.groups] == ["2", "2"], "a whole one is not repeated"
    assert found.groups[0].rollouts[-1].prompt_ids == before[0].rollouts[0].prompt_ids, "which hold what was begun"


def test_only_unsolved_groups_may_be_helped(policy: Policy) -> None:
    tasks = [task("easy", demonstration="4"), task("hard", demonstration="4")]
    _, found = shown(policy, *tasks, only_unsolved=True)
    assert [len(group.rollouts) for group in found.groups] == [2, 3]


@pytest.mark.parametrize(
    ("extra", "message"), [({}, "no task has a demonstration"), ({"demonstration": 4}, "not text: 4")]
)
def test_mistakes_name_the_value(policy: Policy, extra: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IMPROVERS["luffy"].made(policy, [task("one", **extra)])


def test_a_policy_learns_what_it_is_shown_and_would_never_have_tried(tmp_path: Path) -> None:
    tasks = [Task(id=f"{n}", prompt=f"{n}+", reference="", extra={"demonstration": "77"}) for n in range(8)]
    chances = []
    for name in ("", "luffy"):
        config = small_config(scorer=Sevens(), steps=25, save_steps=100, improver=ImproverChoice(name=name))
        run = small_run(tmp_path / (name or "plain"), config, tasks=tasks)
        chances.append(run.train().history[-1]["reward"])
    assert chances[1] > chances[0] + 0.3, chances


class Sevens(Digits):
    """Two sevens, and nothing else."""

    name = "sevens"
    fingerprint = "sevens:1"

    def _share(self, text: str) -> float:
        return float(text == "77")
