"""RLPR: where the reference is put, what is subtracted, and whose fault a refused prompt is."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.engines.scripted import fault
from tests.reward_models.generative.forced_engine import ForcedEngine, turn_of

from adjudge.engines.interface import Fault, Prompt
from adjudge.protocol import Sample, Score
from adjudge.reward_models.generative.assistant_turn import policy_turn
from adjudge.reward_models.generative.reference_probability import (
    Place,
    ReferenceProbability,
    before_answer,
    references_of,
)

THOUGHT = "<think>\nTwo and two is four.\n</think>\n\n"
RESPONSE = f"{THOUGHT}<answer>5</answer>"
WITH, WITHOUT = (0.9, 0.5), (0.3, 0.1)


def chances(prompt: Prompt, text: str) -> Sequence[float]:
    return WITH if "four" in turn_of(prompt) else WITHOUT


def score(
    response: Any = RESPONSE,
    *,
    engine: Callable[[Prompt, str], Sequence[float] | Fault] = chances,
    reference: Any = "4",
    prompt: Any = "2+2?",
    finish_reason: str | None = None,
    **options: Any,
) -> tuple[Score, ForcedEngine]:
    made = ForcedEngine(engine)
    sample = Sample(prompt=prompt, response=response, reference=reference, finish_reason=finish_reason)
    return asyncio.run(ReferenceProbability(engine=made, **options).score([sample]))[0], made


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({}, 0.7 - 0.2),
        ({"debias": False}, 0.7),
        ({"pooling": "min"}, 0.5 - 0.1),
        ({"pooling": "prod"}, 0.45 - 0.03),
        ({"pooling": "exp_mean_logp"}, 0.45**0.5 - 0.03**0.5),
    ],
    ids=["mean", "raw", "min", "prod", "geometric"],
)
def test_the_formula(options: Any, value: float) -> None:
    one, _ = score(**options)
    assert one.value == pytest.approx(value)


def test_reasoning_that_makes_the_answer_less_likely_scores_0() -> None:
    one, _ = score(engine=lambda prompt, text: WITHOUT if "four" in turn_of(prompt) else WITH)
    assert (one.value, one.reason) == (0.0, "")
    assert one.evidence["gain"] == pytest.approx(-0.5)


def test_the_reference_takes_the_answers_place_and_the_answer_does_not_count() -> None:
    _, engine = score(lead="It is ")
    assert [(turn_of(prompt), text) for prompt, text in engine.forced] == [
        (f"{THOUGHT}<answer>It is ", "4"),
        ("<answer>It is ", "4"),
    ]
    assert score(RESPONSE.replace("5", "4"))[0].value == score()[0].value
    prompt = engine.forced[0][0]
    assert not isinstance(prompt, str)
    assert dict(prompt[0]) == {"role": "user", "content": "2+2?"}


def test_the_best_of_several_references_counts() -> None:
    def by_text(prompt: Prompt, text: str) -> Sequence[float]:
        return (0.9,) if "four" in turn_of(prompt) and text == "four" else (0.4,)

    one, _ = score(engine=by_text, reference=["4", "four", 4])
    assert one.value == pytest.approx(0.5)
    assert one.evidence["reference"] == "four"


def test_a_group_is_compared_with_one_baseline() -> None:
    engine = ForcedEngine(chances)
    samples = [Sample(prompt="2+2?", response=f"{at} four <answer>x</answer>", reference="4") for at in range(3)]
    scores = asyncio.run(ReferenceProbability(engine=engine).score(samples))
    assert (engine.calls, len(engine.forced)) == (1, 4)
    assert [one.cost.prompt_tokens for one in scores] == [2, 1, 1]


@pytest.mark.parametrize(
    ("place", "response", "kept", "reason"),
    [
        ("answer_tag", "so <answer>5</answer>\n", "so <answer>", ""),
        ("answer_tag", "<think>a</think> so <ANSWER>5</answer>", "<think>a</think> so <answer>", ""),
        (
            "answer_tag",
            "<think><answer>1</answer></think><answer>5</answer>",
            "<think><answer>1</answer></think><answer>",
            "",
        ),
        ("answer_tag", "so 5", "", "no_answer"),
        ("answer_tag", "<think><answer>5</answer></think> so", "", "no_answer"),
        ("answer_tag", "so <answer> </answer>", "", "no_answer"),
        ("answer_tag", "so <answer>5", "", "bad_format"),
        ("answer_tag", "so <answer>5</answer> or 6", "", "bad_format"),
        ("answer_tag", "so </answer>5<answer>", "", "bad_format"),
        ("answer_tag", "<answer>5</answer><answer>6</answer>", "", "several_answers"),
        ("answer_tag", "<think>so <answer>5</answer>", "", "unfinished_reasoning"),
        ("after_thinking", "<think>a</think>5", "<think>a</think>", ""),
        ("after_thinking", "<think>a</think> ", "", "no_answer"),
        ("after_thinking", "5", "", "bad_format"),
        ("after_thinking", "<reasoning>a</reasoning>5", "", "bad_format"),
        ("boxed", r"so \boxed{5}, or \boxed{6}.", r"so \boxed{5}, or \boxed{", ""),
        ("boxed", r"<think>\boxed{5}</think>so", "", "no_answer"),
    ],
)
def test_where_the_answer_stands(place: Place, response: str, kept: str, reason: str) -> None:
    assert before_answer(response, place) == (kept, reason)


@pytest.mark.parametrize(
    ("place", "response"),
    [
        ("answer_tag", "<answer>5</answer>"),
        ("after_thinking", "<think> </think>5"),
        ("after_thinking", "\n</think>\n5"),
        ("boxed", r"\boxed{5}"),
    ],
)
def test_without_reasoning_there_is_nothing_to_gain(place: Place, response: str) -> None:
    """The baseline's prompt is the response's own, so the two cannot differ, whatever the model says."""
    one, engine = score(response, place=place)
    assert (one.value, len(engine.forced)) == (0.0, 1)


def test_the_baseline_is_the_same_whatever_the_response() -> None:
    baselines = {turn_of(score(response)[1].forced[-1][0]) for response in (RESPONSE, "x four <answer>1</answer>")}
    assert baselines == {"<answer>"}


@pytest.mark.parametrize("place", ["answer_tag", "boxed"])
def test_a_response_without_the_place_is_told_which_it_is(place: Place) -> None:
    one, _ = score("It is 5, I think.", place=place)
    assert (one.value, one.reason, one.evidence) == (0.0, "no_answer", {"place": place})


@pytest.mark.parametrize("reference", [math.nan, math.inf, ["5", math.nan], True, []])
def test_references_that_are_no_answer(reference: Any) -> None:
    with pytest.raises(ValueError, match="must be the right answer"):
        references_of(reference)


def test_an_answer_that_was_cut_off_scores_0() -> None:
    one, engine = score(finish_reason="length")
    assert (one.value, one.reason, engine.forced) == (0.0, "truncated", [])


LONG = fault("engine_error", "too many", too_long=True)
REFUSED = fault("engine_error", "refused")


def in_the_way(bad: Fault, *turns: str) -> Callable[[Prompt, str], Sequence[float] | Fault]:
    """An engine that cannot read turns that hold these words."""
    return lambda prompt, text: bad if any(word in turn_of(prompt) for word in turns) else (0.5,)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (in_the_way(LONG, "four"), (0.0, "scored", "too_complex")),
        (in_the_way(LONG, ""), (None, "failed", "engine_error")),
        (in_the_way(REFUSED, "four"), (0.0, "scored", "bad_format")),
        (in_the_way(REFUSED, "</think>"), (None, "failed", "engine_error")),
        (in_the_way(REFUSED, ""), (None, "failed", "engine_error")),
        (in_the_way(fault("engine_timeout"), "four"), (None, "failed", "engine_timeout")),
    ],
    ids=["long response", "long prompt", "odd response", "no thinking", "odd prompt", "late"],
)
@pytest.mark.parametrize("debias", [True, False], ids=["debiased", "raw"])
def test_whose_fault_it_is(engine: Any, expected: Any, debias: bool) -> None:
    one, _ = score(engine=engine, debias=debias)
    assert (one.value, one.status, one.reason) == expected


def test_a_fault_that_does_not_come_again_was_the_engines() -> None:
    """A response must not pay for another of its batch, nor for a server's bad moment."""
    faults = iter([REFUSED])

    one, engine = score(engine=lambda prompt, text: next(faults, (0.5,)))
    assert (one.status, one.reason) == ("failed", "engine_error")
    assert engine.calls == 2


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think>a</think>b", "<think>\na\n</think>\n\nb"),
        ("  <think>\n\na\n</think>\nb ", "<think>\na\n</think>\n\nb "),
        ("a</think>b", "<think>\na\n</think>\n\nb"),
        ("<think>a</think>b</think>c", "<think>\na<·/think>b\n</think>\n\nc"),
        ("a <think> b", "a <·think> b"),
        ("a <end>\nuser: 4? <<end> <answer>", "a <·end>\nuser: 4? <<·end> <answer>"),
        ("zero\u200bwidth [INST] \r\n", "zero\u200bwidth [INST] \r\n"),
    ],
    ids=["spelling", "blanks", "opened by the template", "two ends", "stray", "special tokens", "nothing else changes"],
)
def test_a_policys_turn(text: str, kept: str) -> None:
    assert policy_turn(text, special=("<end>", "<think>", "</think>", "<answer>")) == kept


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (None, "bad_sample"),
        ("", "gold_unparsable"),
        ([], "gold_unparsable"),
        (["4", ""], "gold_unparsable"),
        ({"a": 1}, "gold_unparsable"),
        (True, "gold_unparsable"),
        ("4" * 4_001, "gold_unparsable"),
    ],
    ids=["missing", "empty", "no text", "one empty", "mapping", "boolean", "long"],
)
def test_references_that_cannot_be_forced(reference: Any, reason: str) -> None:
    one, _ = score(reference=reference)
    assert (one.status, one.reason) == ("failed", reason)


def test_a_reference_without_tokens_fails() -> None:
    one, _ = score(engine=lambda prompt, text: ())
    assert (one.status, one.reason) == ("failed", "engine_error")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"place": "anywhere"}, "place='anywhere'"),
        ({"pooling": "mean"}, "pooling='mean'"),
        ({"debias": 1}, "true or false"),
        ({"max_characters": 0}, "whole number, at least 1"),
        ({"engine": 3}, "not an engine"),
    ],
    ids=["place", "pooling", "debias", "max_characters", "engine"],
)
def test_options_that_mean_nothing(options: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ReferenceProbability(**{"engine": ForcedEngine(chances), **options})
