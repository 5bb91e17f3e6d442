"""Scores with steps find their tokens: over turns, around tools, and not at all where that cannot be told."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.credit.answers_of_letters import (
    answer,
    decode,
    dialogue,
    encode,
    rollout,
    stepped,
)

from adjudge.protocol import Score, response_text
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.data.task import Rollout


def steps_of(one: Rollout, score: Score) -> list[int]:
    return [int(step) for step in Answers.of([one], [score], decode).steps[0]]


def test_tokens_of_one_turn_have_the_steps_of_their_characters() -> None:
    found = Answers.of(
        [answer("ab\ncd"), answer("xy", ended=False)],
        [stepped(1.0, (0.5, 0, 2), (0.25, 3, 5)), stepped(0.0, (1.0, 0, 1))],
        decode,
    )
    assert found.steps.tolist() == [[0, 0, -1, 1, 1, -1], [0, -1, -1, -1, -1, -1]]
    assert found.own.tolist() == [[True] * 6, [True] * 2 + [False] * 4]
    assert [values.tolist() for values in found.values] == [[0.5, 0.25], [1.0]]
    assert found.turns.tolist() == [[0] * 6, [0] * 2 + [-1] * 4]
    assert found.worth.tolist() == [1.0, 0.0]


def test_the_scorer_saw_what_was_begun_before_what_was_written() -> None:
    one = answer("cd\nef")
    begun = replace(one, task=replace(one.task, begun="ab\nx"))
    score = stepped(1.0, (0.1, 0, 2), (0.2, 3, 6), (0.3, 7, 9))
    assert steps_of(begun, score) == [1, 1, -1, 2, 2, -1]


def test_what_a_tool_said_belongs_to_no_step() -> None:
    one = dialogue(("assistant", "ask"), ("tool", "TOOL"), ("assistant", "yes"))
    assert response_text(one.sample()) == "ask\nyes"
    found = Answers.of([one], [stepped(1.0, (0.1, 0, 3), (0.9, 4, 7))], decode)
    assert found.steps[0].tolist() == [0] * 4 + [-1] * 4 + [1] * 4
    assert found.turns[0].tolist() == [0] * 4 + [-1] * 4 + [1] * 4
    halves = steps_of(one, stepped(1.0, (0.1, 0, 2), (0.9, 2, 6)))
    assert halves == [0, 0, 1, -1] + [-1] * 4 + [1, 1, -1, -1], "a step may go on in the next turn"


def test_a_turn_that_is_one_step_has_all_of_its_tokens_whatever_its_text() -> None:
    runs = [(encode("think <call>"), True), (encode("42"), False), (encode("so 42"), True)]
    turns = (
        {"role": "assistant", "content": "think"},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "So 42."},
    )
    one = rollout(runs, text="So 42.", task="q", turns=turns)
    assert steps_of(one, stepped(1.0, (0.1, 0, 5), (0.9, 6, 12))) == [0] * 12 + [-1] * 2 + [1] * 5
    assert steps_of(one, stepped(1.0, (0.1, 2, 4))) == [-1, -1, 0, 0] + [-1] * 15, "that text is among the tokens'"
    lost = Answers.of([one], [stepped(1.0, (0.1, 0, 5), (0.5, 6, 8), (0.9, 8, 12))], decode)
    assert not lost.known[0]
    assert set(lost.steps[0].tolist()) == {-1}, "'So 42.' is not what the tokens say, and it has two steps"


def test_a_text_that_was_stripped_is_found_in_what_the_tokens_say() -> None:
    one = rollout([(encode("\n ab cd \n"), True)], text="ab cd", task="q")
    assert steps_of(one, stepped(1.0, (0.1, 0, 2), (0.9, 3, 5))) == [-1, -1, 0, 0, -1, 1, 1, -1, -1]


def test_a_turn_without_text_is_still_a_turn() -> None:
    runs = [(encode("<call>"), True), (encode("42"), False), (encode("ok"), True)]
    turns = (
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "ok"},
    )
    one = rollout(runs, text="ok", task="q", turns=turns)
    assert response_text(one.sample()) == "\nok"
    assert steps_of(one, stepped(1.0, (0.3, 0, 0), (0.9, 1, 3))) == [0] * 6 + [-1] * 2 + [1] * 2


@pytest.mark.parametrize(
    ("one", "score"),
    [
        (answer("abcd"), stepped(1.0)),
        (answer("abcd"), stepped(1.0, (0.5, 0, 2), (None, 2, 4))),
        (answer("abcd"), stepped(None, (0.5, 0, 2), (0.5, 2, 4))),
        (dialogue(("assistant", "a"), ("assistant", "b")), stepped(1.0, (0.5, 0, 1))),
        (rollout([(encode("xabab"), True)], text="ab", task="q"), stepped(1.0, (0.5, 0, 1), (0.2, 1, 2))),
    ],
    ids=["no steps", "a step not judged", "not judged", "turns in one run of tokens", "a text that is there twice"],
)
def test_steps_that_are_not_known(one: Rollout, score: Score) -> None:
    found = Answers.of([one], [score], decode)
    assert not found.known[0]
    assert len(found.values[0]) == 0
    assert set(found.steps[0].tolist()) == {-1}


def test_steps_may_be_a_parts() -> None:
    inner = stepped(0.3, (0.7, 0, 2), (0.3, 2, 4))
    score = Score(value=1.0, parts={"mix": Score(value=0.5, parts={"prm": inner}), "math": Score.scored(1.0)})
    lacking = Score(value=0.0, parts={"math": Score.scored(0.0)})
    failed = Score(value=1.0, parts={"mix": Score.failed("engine_timeout"), "math": Score.scored(1.0)})
    answers = Answers.of([answer("abcd")] * 3, [score, lacking, failed], decode, part="mix.prm")
    assert answers.known.tolist() == [True, False, False]
    assert answers.values[0].tolist() == [0.7, 0.3]
    assert answers.worth.tolist() == [1.0, 0.0, 1.0], "the answers' worth stays the whole score's"
    assert not Answers.of([answer("abcd")], [score], decode).known[0]
    with pytest.raises(ValueError, match=r"credit.part is 'prm', and no score has parts"):
        Answers.of([answer("abcd")], [stepped(1.0)], decode, part="prm")
    nothing = Answers.of([answer("abcd")], [Score.failed("engine_timeout")], decode, part="prm")
    assert math.isnan(nothing.worth[0])
    assert Answers.of([], [], decode).own.shape == (0, 0)


@settings(max_examples=60)
@given(data=st.data())
def test_each_letter_has_the_step_that_holds_it(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
    turns = [("assistant", texts[0])]
    for text in texts[1:]:
        turns += [("tool", "T"), ("assistant", text)]
    one = dialogue(*turns)
    graded = response_text(one.sample())
    edges = sorted(data.draw(st.lists(st.integers(0, len(graded)), min_size=2, max_size=6, unique=True)))
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    found = steps_of(one, stepped(1.0, *((0.5, begin, end) for begin, end in spans)))
    wanted: list[int] = []
    at = 0
    for role, text in turns:
        if role == "tool":
            wanted += [-1]
            continue
        holding = [
            next((k for k, (begin, end) in enumerate(spans) if begin <= at + c < end), -1) for c in range(len(text))
        ]
        ends = holding[0] if len(set(holding)) == 1 and _covers(spans, holding[0], at, at + len(text)) else -1
        wanted += [*holding, ends]
        at += len(text) + 1
    assert found == wanted


def _covers(spans: list[tuple[int, int]], step: int, begin: int, end: int) -> bool:
    return step >= 0 and spans[step][0] <= begin and end <= spans[step][1]


def test_arrays_are_as_wide_as_the_longest_answer() -> None:
    found = Answers.of([answer("abc"), answer("")], [stepped(1.0), stepped(0.0)], decode)
    assert found.own.shape == found.steps.shape == found.turns.shape == (2, 4)
    assert np.array_equal(found.own.sum(axis=1), [4, 1])
