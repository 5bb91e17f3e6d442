"""Hints: which groups get them, how much, what the scorer sees, and which prompt the answers are learnt after."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.trainer.scripted_writer import Same, Scripted, answering_of

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rollouts.curricula.choice import IMPROVERS
from adjudge.rl_integration.trainer.rollouts.curricula.hints import Hints, HintsRule
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import Improved, with_more
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Ask

LEAD = "\n\nA right solution begins like this:\n"


def task(name: str, **extra: Any) -> Task:
    return Task(id=name, prompt=f"{name}=", reference="4", extra={"solution": "abcdefgh", "hint": "idea", **extra})


@pytest.fixture(scope="module")
def policy() -> Policy:
    return tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=600)


def helped(
    policy: Policy, groups: Sequence[tuple[Task, list[str]]], script: dict[str, str], **options: Any
) -> tuple[Scripted, list[Answered], Improved]:
    """Groups with these answers, and what hints make of them; a script says what is written after an ending."""
    first = [text for _, texts in groups for text in texts]

    def writes(one: Task, dice: random.Random) -> str:
        if len(first) > 0:
            return first.pop(0)
        return next((text for ending, text in script.items() if str(one.prompt).endswith(ending)), "0")

    writer = Scripted(writes)
    with answering_of(writer) as answering:
        before = answering.scored([Ask(task=one, count=len(texts)) for one, texts in groups])
        writer.shown.clear()
        found = Hints(HintsRule(**options), policy).improve(before, answering)
    return writer, before, found


def test_unsolved_groups_get_more_of_the_solution_until_something_is_right(policy: Policy) -> None:
    groups = [
        (task("easy"), ["4", "0"]),
        (task("soon"), ["0", "1"]),
        (task("late", solution="ABCDEFGH"), ["0", "1"]),
        (task("never", solution="stuvwxyz"), ["0", "1"]),
        (task("bare", solution=""), ["0", "1"]),
        (task("lost"), ["?", "?"]),
        (task("half"), ["?", "0"]),
    ]
    writer, before, found = helped(policy, groups, {"ab": "4", "ABCDEF": "4"})
    assert writer.shown == [
        *[f"{name}={LEAD}{part}" for name, part in (("soon", "ab"), ("late", "AB"), ("never", "st"), ("half", "ab"))],
        *[f"{name}={LEAD}{part}" for name, part in (("late", "ABCD"), ("never", "stuv"))],
        *[f"{name}={LEAD}{part}" for name, part in (("late", "ABCDEF"), ("never", "stuvwx"))],
    ]
    assert found.counts == {"unsolved": 5, "hinted": 4, "hint_solved": 3}
    values = [group.values for group in found.groups]
    assert values == [[1, 0], [1, 1], [1, 1], [0, 0], [0, 0], [None, None], [1, 1]]
    for place in (0, 4, 5):
        assert found.groups[place] == before[place]
    for rollout in found.groups[2].rollouts:
        assert rollout.origin == "hinted"
        assert rollout.task is groups[2][0], "the scorer sees the task as it is"
        assert rollout.prompt_ids == tuple(map(ord, f"late={LEAD}ABCDEF")), "it is learnt after what it was written to"
        assert rollout.logprobs.tolist() == [-1.0, -2.0], "with the probabilities it was written with"


def test_nurl_gives_all_but_one_answer_an_abstract_hint(policy: Policy) -> None:
    rule = IMPROVERS["nurl"]
    assert isinstance(rule, HintsRule)
    groups = [(task("hard"), ["0", "0", "0", "0"]), (task("none", hint=""), ["0", "0"])]
    writer, _, found = helped(policy, groups, {"Hint: idea": "4", "hard=": "4"}, **vars_of(rule))
    assert sorted(writer.shown) == ["hard=", "hard=\n\nHint: idea"]
    hard = found.groups[0]
    assert [one.origin for one in hard.rollouts] == ["hinted"] * 3 + ["policy"]
    assert [len(one.prompt_ids) for one in hard.rollouts] == [17] * 3 + [5]
    assert len(found.groups[1].rollouts) == 2


def vars_of(rule: HintsRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in rule.__dataclass_fields__}


def test_answers_may_be_learnt_after_the_plain_prompt(policy: Policy) -> None:
    _, before, found = helped(policy, [(task("hard"), ["0", "0"])], {"ab": "4"}, learnt_with="plain")
    for rollout in found.groups[0].rollouts:
        assert rollout.prompt_ids == before[0].rollouts[0].prompt_ids
        assert np.isnan(rollout.logprobs).all()


def test_the_policy_writes_hints_where_there_are_none_and_gives_no_answer_away(policy: Policy) -> None:
    groups = [(task("a", hint=""), ["0"]), (task("b", hint=""), ["0"]), (task("c", hint="idea"), ["0"])]
    told = "without any step and without the answer."

    def script(one: Task, dice: random.Random) -> str:
        prompt = str(one.prompt)
        if prompt.endswith("Explain in a few sentences why it is right."):
            return f"because {one.id}"
        if prompt.endswith(told):
            return "think of 44<|end|>" if one.id == "a" else "it is 4!"
        return "4" if "Hint" in prompt else "0"

    writer = Scripted(script)
    with answering_of(writer) as answering:
        before = answering.scored([Ask(task=one, count=1) for one, _ in groups])
        rule = HintsRule(column="hint", shares=(1.0,), lead=" Hint: ", written=True)
        found = Hints(rule, policy).improve(before, answering)
    assert any("The right answer is: 4\n" in shown for shown in writer.shown)
    assert any("because b" in shown and shown.endswith(told) for shown in writer.shown)
    assert [shown for shown in writer.shown if "Hint: " in shown] == ["a= Hint: think of 44< |end|>", "c= Hint: idea"]
    assert [group.values for group in found.groups] == [[1.0], [0.0], [1.0]]


def test_hints_that_leave_no_room_are_not_given() -> None:
    small = tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=60)
    groups = [(task("hard", solution="x" * 40), ["0", "0"])]
    writer, before, found = helped(small, groups, {})
    assert writer.shown == [f"hard={LEAD}{'x' * 10}"]
    assert found.counts["hinted"] == 1
    tight = tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=40)
    writer, before, found = helped(tight, groups, {})
    assert writer.shown == []
    assert found.groups == before


def test_help_goes_to_the_end_of_what_the_user_says_last() -> None:
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "q", "name": "n"}]
    assert with_more(chat, " more") == [chat[0], {"role": "user", "content": "q more", "name": "n"}]
    assert chat[1]["content"] == "q"
    spoken = [*chat, {"role": "assistant", "content": "a"}]
    assert with_more(spoken, " more") == [*spoken, {"role": "user", "content": "more"}]
    assert with_more("q", " more") == "q more"


def test_hinted_answers_of_a_scorer_that_fails_say_nothing(policy: Policy) -> None:
    class Falls(Same):
        name = "falls"
        fingerprint = "falls:1"

        def _one(self, sample: Sample) -> Score:
            return Score.failed("engine_timeout") if sample.response == "9" else super()._one(sample)

    writer = Scripted(lambda one, dice: "9" if LEAD in str(one.prompt) else "0")
    with answering_of(writer, scorer=Falls()) as answering:
        before = answering.scored([Ask(task=task("hard"), count=2)])
        found = Hints(HintsRule(), policy).improve(before, answering)
    assert found.groups[0].values == [None, None]
    assert found.counts == {"unsolved": 1, "hinted": 1, "hint_solved": 0}
