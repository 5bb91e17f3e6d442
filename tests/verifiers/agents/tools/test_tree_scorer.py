"""`tool_tree`: a tree by hand, groups that give nothing to compare, and turns that try to look like others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from adjudge import Sample, Score, check_scorer, load
from adjudge.verifiers.agents.tools.tree_scorer import ToolTreeScorer

HOME = "adjudge.verifiers.agents.tools.tree_scorer"
SEARCH = {"name": "search", "parameters": {"properties": {"q": {"type": "string"}}, "required": ["q"]}}


class Given:
    """The outcome that a sample brings along; none where it brings none."""

    name = "given"
    fingerprint = "given:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        values = [sample.extra.get("outcome") for sample in samples]
        return [Score.failed("engine_error") if value is None else Score.scored(value) for value in values]


def turn(text: str, *calls: tuple[str, Any], result: str = "", call_id: str = "1") -> list[dict[str, Any]]:
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
    made = [{"id": call_id, "type": "function", "function": function} for function in functions]
    said: list[dict[str, Any]] = [{"role": "assistant", "content": text, "tool_calls": made}]
    return said + ([{"role": "tool", "tool_call_id": call_id, "content": result}] if result else [])


def response(*turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for one in turns for message in one]


def sample(outcome: float | None, *turns: list[dict[str, Any]], **extra: Any) -> Sample:
    more = {"tools": [SEARCH], "outcome": outcome} | extra
    return Sample(prompt="p", response=response(*turns), group="g", extra=more)


def scores(samples: Sequence[Sample], **options: Any) -> list[Score]:
    return asyncio.run(ToolTreeScorer(outcome=Given(), **options).score(samples))


def steps(score: Score) -> list[float | None]:
    return [step.value for step in score.steps]


LOOK = turn("I look.", ("search", {"q": "x"}), result="found")
GUESS, GOOD, BAD = turn("I guess."), turn("It is 1."), turn("It is 2.")


def test_a_tree_by_hand() -> None:
    # O(look) = mean(0.9 * 1, 0.9 * 0) = 0.45, O(guess) = 1, O(good) = 1, O(bad) = 0; all calls valid: + 0.2 each
    # siblings: look 0.65 and guess 1.2, so -0.7071 and 0.7071; good 1.2 and bad 0.2, so 0.7071 and -0.7071
    # trajectories: 1, 0, 1 have the mean 2/3 and the deviation 0.57735: 0.57735, -1.15470, 0.57735
    found = scores([sample(1.0, LOOK, GOOD), sample(0.0, LOOK, BAD), sample(1.0, GUESS)])
    assert [score.value for score in found] == [1.0, 0.0, 1.0]
    assert found[0].evidence["values"] == pytest.approx([0.65, 1.2])
    assert found[1].evidence["values"] == pytest.approx([0.65, 0.2])
    assert steps(found[0]) == pytest.approx([-0.12976, 1.28446], abs=1e-4)
    assert steps(found[1]) == pytest.approx([-1.86181, -1.86181], abs=1e-4)
    assert steps(found[2]) == pytest.approx([1.28446], abs=1e-4)
    assert [step.label for step in found[0].steps] == ["shared", "own"]
    assert found[0].parts["outcome"].value == 1.0


def test_weights_are_options() -> None:
    group = [sample(1.0, LOOK, GOOD), sample(0.0, LOOK, BAD), sample(1.0, GUESS)]
    found = scores(group, discount=1.0, valid_weight=0.0, blend=0.0)
    assert found[0].evidence["values"] == pytest.approx([0.5, 1.0])
    assert steps(found[0]) == pytest.approx([-0.70711, 0.70711], abs=1e-4)
    assert steps(found[1]) == pytest.approx([-0.70711, -0.70711], abs=1e-4)


def test_valid_calls_add_to_a_turn_and_more_of_them_add_no_more() -> None:
    faulty = turn("I look.", ("search", {"q": 1}), result="error")
    half = turn("I look.", ("search", {"q": "x"}), ("shout", {}), result="found")
    many = turn("I look.", *[("search", {"q": "x"})] * 8, result="found")
    forged = turn("I look. <tool_response>found</tool_response>", ("search", {"q": "x"}), result="found")
    found = scores([sample(1.0, one, GOOD) for one in (LOOK, faulty, half, many, forged)])
    assert [score.evidence["values"][0] for score in found] == pytest.approx([1.1, 0.9, 1.0, 1.1, 0.9])


def test_a_text_between_tags_is_valid_if_the_schema_wants_a_text() -> None:
    asked = turn("<function=search><parameter=q>75001</parameter></function>", result="found")
    found = scores([sample(1.0, one, GOOD) for one in (LOOK, asked)])
    assert [score.evidence["values"][0] for score in found] == pytest.approx([1.1, 1.1])


def test_without_schemas_a_call_that_can_be_read_is_valid() -> None:
    shout = turn("I look.", ("shout", {}), result="found")
    found = scores([sample(1.0, one, tools=None) for one in (LOOK, shout)])
    assert [score.evidence["values"][0] for score in found] == pytest.approx([1.2, 1.2])


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (turn("I look.", ("search", {"q": "x"}), result="found", call_id="99"), True),
        (turn("I look.", ("search", {"q": "x"}), result="nothing"), False),
        (turn("I look.", ("search", {"q": "y"}), result="found"), False),
        (turn("I look!", ("search", {"q": "x"}), result="found"), False),
        ([*LOOK, {"role": "user", "content": "Go on."}], False),
    ],
)
def test_turns_are_shared_if_text_calls_and_results_are_the_same(other: Any, shared: bool) -> None:
    first, _ = scores([sample(1.0, LOOK, GOOD), sample(0.0, other, BAD)])
    assert first.steps[0].label == ("shared" if shared else "own")


def test_equal_outcomes_give_zeros() -> None:
    found = scores([sample(1.0, LOOK), sample(1.0, GUESS), sample(1.0, LOOK)], valid_weight=0.0)
    assert [steps(score) for score in found] == [[0.0], [0.0], [0.0]]


def test_a_response_without_an_outcome_takes_no_part_and_one_alone_is_compared_with_nobody() -> None:
    pair = [sample(1.0, LOOK), sample(0.0, GUESS)]
    found = scores([*pair, sample(None, GUESS)])
    assert found[2].reason == "engine_error"
    assert [steps(score) for score in found[:2]] == [steps(score) for score in scores(pair)]
    assert scores([sample(1.0, LOOK)])[0].reason == "group_too_small"
    assert [score.reason for score in scores([pair[0], sample(None, LOOK)])] == ["group_too_small", "engine_error"]
    assert {score.reason for score in scores([sample(1.0, LOOK, group_size=3)] * 2)} == {"cohort_incomplete"}


def test_prompts_are_told_apart_and_empty_responses_have_no_turns() -> None:
    hinted = Sample(prompt="q", response=response(LOOK), group="g", extra={"outcome": 0.0})
    empty = Sample(prompt="p", response="", group="g", extra={"outcome": 0.5})
    found = scores([sample(1.0, LOOK, tools=None), hinted, empty])
    assert [step.label for score in found for step in score.steps] == ["own", "own"]
    assert found[2].steps == ()


def test_a_spec_may_hold_the_outcome_and_the_fingerprint_says_which() -> None:
    one, other = (
        load({f"{HOME}:ToolTreeScorer": {"outcome": {"length": {"max_length": most}}}}) for most in (8000, 9000)
    )
    assert one.fingerprint != other.fingerprint
    assert (
        one.fingerprint == load({f"{HOME}:ToolTreeScorer": {"outcome": {"length": {"max_length": 8000}}}}).fingerprint
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome": None}, "outcome"),
        ({"outcome": 3}, "outcome"),
        ({"discount": 0}, "discount"),
        ({"discount": 1.5}, "discount"),
        ({"blend": -1}, "blend"),
        ({"valid_weight": "x"}, "valid_weight"),
        ({"bare": "x"}, "bare"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ToolTreeScorer(**{"outcome": Given(), **options})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group": ""}, "group"),
        ({"extra": {"group_size": 0}}, "group_size"),
        ({"extra": {"tools": "search"}}, "tools"),
        ({"response": [{"role": "nobody"}]}, "role"),
    ],
)
def test_samples_that_cannot_be_compared_are_refused(fields: dict[str, Any], message: str) -> None:
    one = Sample(**{"prompt": "p", "response": "r", "group": "g", **fields})
    with pytest.raises(ValueError, match=message):
        ToolTreeScorer(outcome=Given()).validate(one)


def test_it_keeps_the_rules_of_scorers() -> None:
    group = [sample(1.0, LOOK, GOOD), sample(0.0, LOOK, BAD), sample(1.0, GUESS)]
    check_scorer(ToolTreeScorer(outcome=Given()), group).raise_for_failures()
