"""Critique-GRPO: what the policy is shown, which refinement joins, and after which prompt it is learnt."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.trainer.scripted_writer import Same, Scripted, answering_of

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.curricula.choice import IMPROVERS, ImproverChoice
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import (
    Improved,
    Refinements,
    RefinementsRule,
    critique,
    gold_text,
    quoted,
)
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask

CHAT = Task(id="chat", prompt=[{"role": "system", "content": "s"}, {"role": "user", "content": "2+2?"}], reference="4")
TEXT = Task(id="text", prompt="3+3=", reference="6")


@pytest.fixture(scope="module")
def policy() -> Policy:
    made = tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=500)
    made.tokenizer.chat_template = "{% for turn in messages %}{{ turn['content'] }} {% endfor %}"
    return made


def scripted(first: Sequence[str], again: Sequence[str]) -> Scripted:
    """Writes these answers one after the other, and others where there is a critique."""
    left, later = list(first), list(again)

    def script(task: Task, dice: random.Random) -> str:
        return later.pop(0) if "wrong" in str(task.prompt) else left.pop(0)

    return Scripted(script)


def improved(
    policy: Policy, tasks: Sequence[Task], writer: Scripted, *, scorer: Any = None, count: int = 3, **options: Any
) -> tuple[list[Answered], Improved]:
    """Groups of answers, and what refining them gives."""
    refinements = Refinements(RefinementsRule(**options), policy)
    with answering_of(writer, scorer=scorer) as answering:
        groups = answering.scored([Ask(task=task, count=count) for task in tasks])
        found = refinements.improve(groups, answering)
    refinements.close()
    return groups, found


def test_wrong_answers_are_shown_with_the_right_one_and_the_first_right_refinement_joins(policy: Policy) -> None:
    writer = scripted(["4", "5", "7", "8", "?", "6"], ["9", "4", "6"])
    groups, found = improved(policy, [CHAT, TEXT], writer)
    said = "The answer above is wrong. The right answer is: {}"
    request = "Answer the question again, and answer it right."
    assert writer.shown[2:] == [
        [
            *CHAT.prompt,
            {"role": "assistant", "content": wrong},
            {"role": "user", "content": f"{said}\n\n{request}".format(4)},
        ]
        for wrong in ("5", "7")
    ] + [f"3+3=8\n\n{said.format(6)}\n\n{request}\n\n"], "what was not judged is not criticised"
    assert found.counts == {"refined": 3, "refinements_joined": 2, "refinements_right": 2}
    chat, text = found.groups
    assert chat.rollouts[:3] == groups[0].rollouts
    assert [one.text for one in chat.rollouts] == ["4", "5", "7", "4"]
    assert chat.values == [1.0, 0.0, 0.0, 1.0]
    assert text.values == [0.0, None, 1.0, 1.0]
    for group, before in zip(found.groups, groups, strict=True):
        refined = group.rollouts[-1]
        assert refined.origin == "refined"
        assert refined.task is before.rollouts[0].task, "the scorer sees the task as it is"
        assert refined.prompt_ids == before.rollouts[0].prompt_ids, "it is learnt after the plain prompt"
        assert np.isnan(refined.logprobs).all(), "and what the policy thinks of it there is not known"
        assert len(refined.logprobs) == len(refined.ids)
        assert refined.version == 3


def test_where_nothing_is_right_the_best_joins_unless_only_right_ones_may(policy: Policy) -> None:
    _, found = improved(policy, [TEXT], scripted(["1", "2", "3"], ["5", "?", "7"]))
    assert found.groups[0].values == [0.0] * 4
    assert found.groups[0].rollouts[-1].text == "5"
    assert found.counts["refinements_right"] == 0
    _, strict = improved(policy, [TEXT], scripted(["1", "2", "3"], ["5", "?", "7"]), only_right=True)
    assert [one.origin for one in strict.groups[0].rollouts] == ["policy"] * 3
    assert strict.counts == {"refined": 3, "refinements_joined": 0, "refinements_right": 0}


def test_a_refinement_may_replace_what_it_refines_and_more_than_one_may_join(policy: Policy) -> None:
    _, found = improved(policy, [TEXT], scripted(["1", "6", "2"], ["5", "6"]), replace=True)
    assert [one.text for one in found.groups[0].rollouts] == ["1", "6", "6"]
    assert [one.origin for one in found.groups[0].rollouts] == ["policy", "policy", "refined"]
    _, found = improved(policy, [TEXT], scripted(["1", "2", "3"], ["6", "5", "6"]), keep=2)
    assert found.groups[0].values == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_only_unsolved_groups_are_refined_if_so_asked(policy: Policy) -> None:
    writer = scripted(["4", "5", "5", "1", "1", "1"], ["6", "6", "6"])
    _, found = improved(policy, [CHAT, TEXT], writer, only_unsolved=True)
    assert [len(group.rollouts) for group in found.groups] == [3, 4]


def test_unsolved_tasks_are_decomposed_and_what_stays_unsolved_is_refined(policy: Policy) -> None:
    published = IMPROVERS["cog_rethinker"]
    assert isinstance(published, RefinementsRule)
    hard, three = Task(id="hard", prompt="4+4=", reference="8"), Task(id="three", prompt="1+2=", reference="3")
    said: dict[str, list[str]] = {
        "3+3=": ["6", "0", "1"],
        "4+4=": ["0", "1", "2"],
        "1+2=": ["0", "1", "2"],
        f"{hard.prompt}{published.decompose}": ["8", "7", "8"],
        f"{three.prompt}{published.decompose}": ["0", "?", "4"],
        **{f"1+2={one}\n\nThe answer above is wrong.\n\n{published.request}\n\n": ["3"] for one in "12"},
    }
    writer = Scripted(lambda task, dice: said[str(task.prompt)].pop(0) if said.get(str(task.prompt)) else "9")
    refinements = Refinements(published, policy)
    with answering_of(writer) as answering:
        groups = answering.scored([Ask(task=task, count=3) for task in (TEXT, hard, three)])
        found = refinements.improve(groups, answering)
    assert [group.values for group in found.groups] == [
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 1.0, 1.0],
    ], "right ones alone join; what was decomposed and solved is not refined"
    assert found.counts == {"refined": 9, "refinements_joined": 4, "refinements_right": 4}
    for group, before in zip(found.groups[1:], groups[1:], strict=True):
        for one in group.rollouts[3:]:
            assert one.prompt_ids == before.rollouts[0].prompt_ids, "it is learnt after the direct prompt"


def test_what_a_judge_says_is_the_critique(policy: Policy) -> None:
    writer = scripted(["5"], ["6"])
    improved(policy, [TEXT], writer, count=1, critique="evidence")
    assert "5 is not it" in writer.shown[-1]
    assert "right answer is" not in writer.shown[-1]

    class Judge(Same):
        name = "judge"
        fingerprint = "judge:1"

        def _one(self, sample: Sample) -> Score:
            return Score.scored(0.2, rationale=f"look at {sample.response} <|end|>")

    critic = RewardConfig(scorer=Judge())
    writer = scripted(["5"], ["6"])
    _, found = improved(policy, [TEXT], writer, count=1, critique="evidence", critic=critic)
    assert "look at 5 < |end|>" in writer.shown[-1], "what a model wrote cannot end the prompt"
    assert found.groups[0].values == [0.0, 1.0], "the reward's own scorer judges"


def test_a_critic_that_is_down_criticises_nothing(policy: Policy) -> None:
    class Down(Same):
        name = "down"
        fingerprint = "down:1"

        def _one(self, sample: Sample) -> Score:
            return Score.failed("engine_timeout")

    writer = scripted(["5"], [])
    critic = RewardConfig(scorer=Down())
    groups, found = improved(policy, [TEXT], writer, count=1, critique="evidence", critic=critic)
    assert found.groups == groups
    assert found.counts["refined"] == 0


def test_what_does_not_fit_the_window_is_left_out() -> None:
    small = tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=100)
    groups, found = improved(small, [TEXT], scripted(["1", "2", "3"], []))
    assert found.groups == groups
    assert found.counts == {"refined": 0, "refinements_joined": 0, "refinements_right": 0}


def test_a_scorer_of_groups_scores_the_group_with_its_refinement_anew(policy: Policy) -> None:
    class Longest(Same):
        name = "longest"
        fingerprint = "longest:1"
        groupwise = True

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            most = max(len(str(sample.response)) for sample in samples)
            return [Score.scored(float(len(str(sample.response)) == most)) for sample in samples]

    _, found = improved(policy, [TEXT], scripted(["1", "22"], ["333"]), count=2, scorer=Longest())
    assert found.groups[0].values == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("reference", "wanted"),
    [
        ("4", "4"),
        (4, "4"),
        (0.5, "0.5"),
        (["a", "b"], "a"),
        ({"answer": "B", "choices": ["x"]}, "B"),
        ({"answer": ["p", "q"]}, "p"),
        (None, None),
        ("", None),
        ([], None),
        ({"tests": []}, None),
        (True, None),
    ],
)
def test_right_answers_are_told_where_there_is_one(reference: Any, wanted: str | None) -> None:
    task = Task(id="t", prompt="p", reference=reference)
    assert gold_text(task) == wanted
    said = critique("gold", task, Score.scored(0.0))
    assert said == (None if wanted is None else f"The answer above is wrong. The right answer is: {wanted}")


def test_a_solution_is_told_in_the_place_of_the_answer(policy: Policy) -> None:
    """EGSR: what an expert wrote is written anew in the policy's own words."""
    task = replace(TEXT, extra={"solution": "three and three are 6"})
    writer = scripted(["0", "1"], ["6", "6"])
    options = {"column": "solution", "request": "Write it in your own words.", "only_unsolved": True}
    _, found = improved(policy, [task], writer, count=2, **options)
    assert "The right answer is: three and three are 6\n\nWrite it in your own words." in writer.shown[-1]
    assert found.groups[0].values == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match=r"its extra\['solution'\] is 'None'"):
        RefinementsRule(column="solution").made(policy, [TEXT])


def test_critiques_say_what_is_known() -> None:
    assert critique("verdict", TEXT, Score.scored(0.0)) == "The answer above is wrong."
    facts = Score.scored(0.0, reason="no_answer", found="7", odd=["x"], empty=" ")
    assert critique("evidence", TEXT, facts) == "The answer above is wrong.\n\nno answer\nfound: 7"
    assert critique("evidence", TEXT, Score.scored(0.0)) is None
    long = critique("evidence", TEXT, Score.scored(0.0, rationale="x" * 9000 + "end"))
    assert long is not None
    assert len(long) < 2100
    assert long.endswith("end")


def test_special_tokens_in_quotations_are_spelled_apart(policy: Policy) -> None:
    assert quoted(policy, "a<|end|>b<|pad|>") == "a< |end|>b< |pad|>"
    text = "9<|end|>8"
    ends = policy.ends
    assert ends & set(policy.tokens.text(text))
    assert not ends & set(policy.tokens.text(quoted(policy, text)))


@pytest.mark.parametrize(
    ("record", "tasks", "message"),
    [
        ({"name": "critic"}, [], "unknown improver 'critic'; there are critique_grpo"),
        ({"set": {"keep": 1}}, [], "without improver.name"),
        ({"name": "critique_grpo", "set": {"keep": 0}}, [], "keep=0"),
        ({"name": "critique_grpo", "set": {"kep": 1}}, [], "improver.set.kep"),
        ({"name": "critique_grpo", "set": {"critique": "harsh"}}, [], "harsh"),
        ({"name": "critique_grpo", "set": {"critic": "math"}}, [], "does not read"),
        ({"name": "critique_grpo"}, [Task(id="a", prompt="p")], "the task 'a' has no right answer"),
        ({"name": "critique_grpo"}, [Task(id="a", prompt="p", reference="1", cohort="c")], "scored together"),
        ({"name": "ghpo"}, [Task(id="a", prompt="p")], "no task can be helped: none has an extra field 'solution'"),
        ({"name": "ghpo"}, [Task(id="a", prompt="p", extra={"solution": 3})], "help that is not text: 3"),
        ({"name": "ghpo", "set": {"shares": []}}, [], "shares is empty"),
        ({"name": "ghpo", "set": {"shares": [1.5]}}, [], "shares=1.5"),
        ({"name": "nurl", "set": {"learnt_with": "both"}}, [], "both"),
    ],
)
def test_mistakes_are_named_before_any_work(
    policy: Policy, record: dict[str, Any], tasks: list[Task], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ImproverChoice(**record).made(policy, tasks)


def test_a_chat_template_that_refuses_a_second_turn_is_found_before_any_work() -> None:
    refusing = tiny_policy("0123456789+=? ", seed=0, width=8, layers=1, window=500)
    refusing.tokenizer.chat_template = (
        "{% if messages | length > 2 %}{{ raise_exception('one question only') }}{% endif %}{{ messages[1].content }}"
    )
    with pytest.raises(ValueError, match=r"prompt of task 'chat' cannot be written: .*one question only"):
        ImproverChoice(name="critique_grpo").made(refusing, [TEXT, CHAT])
    ImproverChoice(name="ghpo").made(refusing, [replace(CHAT, extra={"solution": "2 and 2"})])
    spoken = [*CHAT.prompt, {"role": "assistant", "content": "so"}]
    with pytest.raises(ValueError, match="one question only"):
        ImproverChoice(name="ghpo").made(refusing, [replace(CHAT, prompt=spoken, extra={"solution": "2 and 2"})])


def test_asking_for_nothing_writes_nothing(policy: Policy) -> None:
    writer = Scripted()
    with answering_of(writer) as answering:
        assert isinstance(answering, Answering)
        assert answering.scored([]) == []
        assert answering.texts([]) == []
    assert writer.shown == []
