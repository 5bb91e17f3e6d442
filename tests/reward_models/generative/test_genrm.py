"""GenRM: the first word, rationales, votes, and what becomes of silence."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import statistics
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, fault, field_of, key_of
from tests.reward_models.generative.forced_engine import turn_of

from adjudge.engines.interface import Completion, Prompt
from adjudge.protocol import Sample, Score
from adjudge.reward_models.generative.genrm import GenRm

SAMPLE = Sample(prompt="2+2?", response="I think that it is 4.", reference="4")
SAID = ("Yes", "No", "Yes", "Yes")
CHANCES = (0.9, 0.4, 0.8, 0.7)


def verdict(prompt: Prompt, said: str) -> str:
    return f"Fine so far.\nVerdict {key_of(prompt)}: {said}"


def rationale(prompt: Prompt, index: int) -> str:
    return f"Rationale {index}.\n{verdict(prompt, SAID[index])}"


def by_rationale(prompt: Prompt) -> dict[str, float]:
    """P(Yes) behind the rationale that the turn holds, with a mass of 0.8."""
    turn = turn_of(prompt)
    chance = CHANCES[int(turn.split("Rationale ")[1][0])]
    return {"Yes": 0.8 * chance, "No": 0.8 * (1 - chance)}


def score(engine: ScriptedEngine, sample: Sample = SAMPLE, **options: Any) -> Score:
    return asyncio.run(GenRm(engine=engine, **options).score([sample]))[0]


def chains(engine: ScriptedEngine, **options: Any) -> Score:
    return score(engine, **{"readout": "probabilities", "chains": 4, "temperature": 1.0, "attempts": 1, **options})


def test_the_first_word() -> None:
    engine = ScriptedEngine(labels=lambda prompt: {"Yes": 0.6, "No": 0.2})
    one = score(engine)
    assert one.value == pytest.approx(0.75)
    assert one.uncertainty == pytest.approx(math.sqrt(0.75 * 0.25))
    assert one.evidence["mass"] == pytest.approx(0.8)
    (asked,) = engine.asked
    assert [field_of(asked, name) for name in ("prompt", "reference", "response")] == ["2+2?", "4", SAMPLE.response]


def test_an_empty_response_gets_no_more_than_a_certain_no() -> None:
    certain = ScriptedEngine(labels=lambda prompt: {"No": 1.0})
    shown = score(certain, output="log_odds").value
    empty = score(certain, dataclasses.replace(SAMPLE, response=""), output="log_odds").value
    assert shown is not None
    assert empty is not None
    assert empty <= shown < 0


def test_log_odds_of_the_first_word() -> None:
    one = score(ScriptedEngine(labels=lambda prompt: {"Yes": 0.6, "No": 0.2}), output="log_odds")
    assert one.value == pytest.approx(math.log(3))


def test_a_question_of_ones_own() -> None:
    engine = ScriptedEngine(labels=lambda prompt: {"Yes": 0.9})
    score(engine, question="Would a careful reader accept it?")
    assert "Would a careful reader accept it? Say Yes or No" in str(engine.asked[0])


def test_little_mass_abstains_or_is_put_to_the_vote() -> None:
    def unsure() -> ScriptedEngine:
        return ScriptedEngine(rationale, labels=lambda prompt: {"Yes": 0.1, "No": 0.1})

    one = score(unsure())
    assert (one.status, one.reason) == ("abstained", "low_confidence")
    one = score(unsure(), low_mass="sample", chains=4, temperature=1.0)
    assert one.value == 0.75
    assert one.evidence["verdicts"] == list(SAID)
    assert one.cost.prompt_tokens == 20


def test_rationales_are_averaged_where_their_verdict_stands() -> None:
    engine = ScriptedEngine(rationale, labels=by_rationale)
    one = chains(engine)
    assert one.value == pytest.approx(statistics.mean(CHANCES))
    assert one.uncertainty == pytest.approx(statistics.stdev(CHANCES) / 2)
    assert one.evidence["chances"] == pytest.approx(CHANCES)
    assert one.evidence["mass"] == pytest.approx(0.8)
    asked, *read = engine.asked
    assert [turn_of(prompt) for prompt in read] == [
        f"Rationale {index}.\nFine so far.\nVerdict {key_of(asked)}:" for index in range(4)
    ]
    assert one.cost.prompt_tokens == 50


@pytest.mark.parametrize(
    ("combine", "value"), [("mean", 0.75), ("majority", 1.0)], ids=["unbiased", "what a vote decides"]
)
def test_votes_count_the_verdicts(combine: Any, value: float) -> None:
    one = chains(ScriptedEngine(rationale), readout="votes", combine=combine)
    assert one.value == value
    assert one.uncertainty == pytest.approx(math.sqrt(0.25 * 0.75 / 3))


def test_a_draw_is_a_half() -> None:
    engine = ScriptedEngine(lambda prompt, index: verdict(prompt, ("Yes", "No")[index]))
    assert chains(engine, readout="votes", chains=2, combine="majority").value == 0.5


def silent(texts: tuple[Any, ...]) -> ScriptedEngine:
    def answer(prompt: Prompt, index: int) -> Any:
        said = texts[index % len(texts)]
        return verdict(prompt, said) if said in ("Yes", "No") else said

    return ScriptedEngine(answer)


CUT = Completion(text="Verdict", finish_reason="length")


@pytest.mark.parametrize(
    ("texts", "options", "expected"),
    [
        (("Yes", "No", "hm", CUT), {}, (0.5, "scored", "")),
        (("Yes", "hm", "hm", CUT), {}, (None, "failed", "judge_truncated")),
        (("Yes", "hm", CUT, "hm"), {"undecided": "zero"}, (0.25, "scored", "")),
        (("hm", "hm", "hm", "hm"), {}, (None, "failed", "judge_unparsable")),
        (("hm", "hm", "hm", "hm"), {"undecided": "zero"}, (0.0, "scored", "undecided")),
        (("Yes", "hm", "hm", "hm"), {"quorum": 0.25}, (1.0, "scored", "")),
        (("Yes", "Yes", "Yes", fault()), {}, (None, "failed", "engine_unavailable")),
        (("Yes", "Yes", "Yes", fault()), {"undecided": "zero"}, (None, "failed", "engine_unavailable")),
    ],
    ids=[
        "quorum",
        "no quorum",
        "silence is a no",
        "all silent",
        "all zero",
        "own quorum",
        "fault",
        "no zero for a fault",
    ],
)
def test_silence(texts: tuple[Any, ...], options: Any, expected: Any) -> None:
    one = chains(silent(texts), readout="votes", **options)
    assert (one.value, one.status, one.reason) == expected


def test_a_chain_whose_words_are_unlikely_is_dropped_or_voted() -> None:
    def labels(prompt: Prompt) -> dict[str, float]:
        return {"Yes": 0.1} if "Rationale 1" in turn_of(prompt) else by_rationale(prompt)

    one = chains(ScriptedEngine(rationale, labels=labels))
    assert one.value == pytest.approx((0.9 + 0.8 + 0.7) / 3)
    assert one.evidence["missing"] == 1
    one = chains(ScriptedEngine(rationale, labels=labels), low_mass="sample")
    assert one.value == pytest.approx((0.9 + 0.0 + 0.8 + 0.7) / 4)
    one = chains(ScriptedEngine(rationale, labels=lambda prompt: {"Yes": 0.1}))
    assert (one.status, one.reason) == ("abstained", "low_confidence")
    assert one.cost.prompt_tokens == 50


def test_a_fault_of_the_engine_behind_one_chain_leaves_the_whole_without() -> None:
    """The other chains do not stand in for it: what is missing is not missing by chance."""

    def labels(prompt: Prompt) -> Any:
        return fault("engine_overloaded") if "Rationale 1" in turn_of(prompt) else by_rationale(prompt)

    one = chains(ScriptedEngine(rationale, labels=labels))
    assert (one.status, one.reason) == ("failed", "engine_overloaded")


def test_a_double_check_takes_the_verdict_back_and_asks_on() -> None:
    def answer(prompt: Prompt, index: int) -> str:
        again = not isinstance(prompt, str) and prompt[-1]["role"] == "assistant"
        return f" No, it is wrong.\n{verdict(prompt[:-1], 'No')}" if again else f"It holds.\n{verdict(prompt, 'Yes')}"

    engine = ScriptedEngine(answer, labels=lambda prompt: {"No": 0.9})
    one = score(engine, readout="probabilities", double_checks=2)
    assert one.value == 0.0
    first, second, third, read = engine.asked
    key = key_of(first)
    assert turn_of(second) == "It holds.\nFine so far.\n\nLet me double check."
    assert turn_of(third) == f"{turn_of(second)} No, it is wrong.\nFine so far.\n\nLet me double check."
    assert turn_of(read).endswith(f"Fine so far.\nVerdict {key}:")


def test_a_double_check_goes_on_inside_the_thinking() -> None:
    def answer(prompt: Prompt, index: int) -> str:
        again = not isinstance(prompt, str) and prompt[-1]["role"] == "assistant"
        asked = prompt[:-1] if again else prompt
        return f"Hm.\n</think>\n\n{verdict(asked, 'Yes')}"

    engine = ScriptedEngine(answer, labels=lambda prompt: {"Yes": 0.9})
    score(engine, readout="probabilities", double_checks=1)
    _, second, read = engine.asked
    assert turn_of(second) == "<think>\nHm.\n\nLet me double check."
    assert turn_of(read).startswith("<think>\nHm.\n\nLet me double check.Hm.\n</think>\n\nFine so far.\nVerdict")


@pytest.mark.parametrize("opening", ["<think>\n", ""])
def test_a_verdict_counts_behind_the_thinking_alone(opening: str) -> None:
    """Also where the chat template wrote the opening tag."""

    def answer(prompt: Prompt, index: int, last: str = "No") -> str:
        return f"{opening}{verdict(prompt, 'Yes')}? No, wrong.\n</think>\n\n{verdict(prompt, last) if last else last}"

    engine = ScriptedEngine(answer, labels=lambda prompt: {"No": 0.9})
    assert score(engine, readout="votes").value == 0.0
    assert score(engine, readout="probabilities").value == 0.0
    read = turn_of(engine.asked[-1])
    assert read.startswith("<think>\nFine so far.\nVerdict")
    assert read.endswith(f"</think>\n\nFine so far.\nVerdict {key_of(engine.asked[0])}:")
    silent = ScriptedEngine(lambda prompt, index: answer(prompt, index, ""))
    assert score(silent, readout="votes").reason == "judge_unparsable"


def test_reasoning_that_the_engine_separates_stands_before_the_verdict() -> None:
    def answer(prompt: Prompt, index: int) -> Completion:
        return Completion(text=verdict(prompt, "Yes"), reasoning="It adds up.", finish_reason="stop", tokens=3)

    engine = ScriptedEngine(answer, labels=lambda prompt: {"Yes": 0.9})
    score(engine, readout="probabilities")
    assert turn_of(engine.asked[-1]).startswith("<think>\nIt adds up.\n</think>\n\nFine so far.")


def test_control_tokens_that_a_rationale_quotes_are_broken_up() -> None:
    def answer(prompt: Prompt, index: int) -> str:
        return f"They wrote <|im_end|> and <end>.\n{verdict(prompt, 'Yes')}"

    engine = ScriptedEngine(answer, labels=lambda prompt: {"Yes": 0.9}, special_tokens=("<end>",))
    score(engine, readout="probabilities")
    assert turn_of(engine.asked[-1]).startswith("They wrote <·|im_end|> and <·end>.")


def test_a_window_that_a_chain_fills_is_no_fault_of_the_engine() -> None:
    def labels(prompt: Prompt) -> Any:
        return fault("engine_error", too_long=True)

    one = score(ScriptedEngine(rationale, labels=labels), readout="probabilities", chains=1)
    assert (one.status, one.reason) == ("failed", "judge_truncated")
    one = score(ScriptedEngine(rationale, labels=labels), readout="probabilities", chains=1, undecided="zero")
    assert (one.value, one.reason) == (0.0, "undecided")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"chains": 0}, "whole number, at least 1"),
        ({"chains": 2}, "set a temperature"),
        ({"readout": "text"}, "readout='text'"),
        ({"combine": "median"}, "combine='median'"),
        ({"quorum": 0.0}, "above 0 and at most 1"),
        ({"min_mass": 1.5}, "at most 1"),
        ({"decision_temperature": 0.0}, "number above 0"),
        ({"double_checks": 1}, "nothing is written"),
        ({"question": ""}, "answered by Yes or No"),
        ({"template": "judges/rm_r1"}, "Yes or No"),
        ({"low_mass": "guess"}, "low_mass='guess'"),
        ({"output": "logit"}, "output='logit'"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, dict) else "",
)
def test_options_that_mean_nothing(options: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        GenRm(engine=ScriptedEngine(), **options)


def test_a_reference_that_is_no_text_fails() -> None:
    one = score(ScriptedEngine(), Sample(prompt="2+2?", response="I think 4.", reference=4))
    assert (one.status, one.reason) == ("failed", "gold_unparsable")
