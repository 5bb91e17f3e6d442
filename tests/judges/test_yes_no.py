from __future__ import annotations

import asyncio
import math
import re
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, fault, field_of, text_of

from adjudge import load
from adjudge.cli.recipes import recipes
from adjudge.judges.yes_no import PrincipleJudge, YesNoJudge, principles_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.judge_tasks.pairs import ask_principle
from adjudge.scoring.presets import preset

SAMPLE = Sample(prompt="Write something nice.", response="You are a good person.")
CHANCES = {"Is it kind?": (0.6, 0.2), "Is it rude?": (0.1, 0.8), "Is it short?": (0.3, 0.3)}


def labels(prompt: Any) -> Any:
    question = next((one for one in CHANCES if one in text_of(prompt)), "")
    if not question:
        return fault("engine_error")
    yes, no = CHANCES[question]
    return {"Yes": yes, "No": no}


def score(*questions: Any, **options: Any) -> Score:
    judge = YesNoJudge(engine=ScriptedEngine(labels=labels), questions=questions, **options)
    return asyncio.run(judge.score([SAMPLE]))[0]


def test_one_question() -> None:
    one = score("Is it kind?")
    assert one.value == pytest.approx(0.75, abs=1e-12)
    assert one.evidence["mass"] == pytest.approx(0.8, abs=1e-12)
    assert one.parts == {}


def test_a_question_about_a_fault_counts_its_no() -> None:
    assert score({"text": "Is it rude?", "good": "no"}).value == pytest.approx(8 / 9, abs=1e-12)


def test_several_questions_give_the_weighted_mean_and_a_part_each() -> None:
    one = score("Is it kind?", {"text": "Is it rude?", "good": "no", "weight": 3}, "Is it short?")
    assert one.value == pytest.approx((0.75 + 3 * 8 / 9 + 0.5) / 5, abs=1e-12)
    assert list(one.parts) == ["Is it kind?", "Is it rude?", "Is it short?"]
    assert one.cost.prompt_tokens == 30


def test_an_empty_response_gets_no_more_than_a_certain_no() -> None:
    judge = YesNoJudge(
        engine=ScriptedEngine(labels=lambda prompt: {"No": 1.0}), questions=("Is it?",), output="log_odds"
    )
    empty, shown = asyncio.run(judge.score([Sample(prompt="Write.", response=""), SAMPLE]))
    assert empty.value is not None
    assert shown.value is not None
    assert empty.reason == "no_answer"
    assert empty.value <= shown.value < 0


def test_log_odds() -> None:
    assert score("Is it kind?", output="log_odds").value == pytest.approx(math.log(3), abs=1e-12)
    sure = YesNoJudge(
        engine=ScriptedEngine(labels=lambda prompt: {"Yes": 1.0}), questions=("Is it?",), output="log_odds"
    )
    assert asyncio.run(sure.score([SAMPLE]))[0].value == pytest.approx(12 * math.log(10), abs=1e-9)


def test_without_one_answer_there_is_no_mean() -> None:
    one = score("Is it kind?", "Is it unknown?")
    assert (one.status, one.reason) == ("failed", "engine_error")
    assert one.parts["Is it kind?"].value == pytest.approx(0.75, abs=1e-12)
    one = score("Is it kind?", min_mass=0.9)
    assert (one.status, one.reason) == ("abstained", "low_confidence")


def test_read_from_text() -> None:
    engine = ScriptedEngine(lambda prompt, index: ["Yes.", " no", "YES", "Yes, very"][index % 4])
    judge = YesNoJudge(
        engine=engine, questions=("Is it kind?",), readout="text", samples=4, temperature=1.0, attempts=1
    )
    (one,) = asyncio.run(judge.score([SAMPLE]))
    assert one.value == pytest.approx(2 / 3, abs=1e-12)
    assert one.evidence["missing"] == 1


def too_long(prompt: Any) -> Any:
    long = "good person" in text_of(prompt) and "rude" not in text_of(prompt)
    return fault("engine_error", "too many tokens", too_long=True) if long else {"Yes": 1.0}


@pytest.mark.parametrize(("questions", "value"), [(("Is it kind?",), 0.0), (("Is it rude?", "Is it kind?"), 0.5)])
def test_a_response_that_is_too_long_has_the_reason(questions: tuple[str, ...], value: float) -> None:
    judge = YesNoJudge(engine=ScriptedEngine(labels=too_long), questions=questions)
    (one,) = asyncio.run(judge.score([SAMPLE]))
    assert (one.value, one.reason, one.evidence) == (value, "too_complex", {"fault": "too many tokens"})


@pytest.mark.parametrize("questions", [5, ["Is it kind?", 5]])
def test_what_is_no_question_is_named(questions: Any) -> None:
    with pytest.raises(ValueError, match="5 is not a question"):
        YesNoJudge(engine=ScriptedEngine(), questions=questions)


def test_the_prompt_can_be_kept_from_the_model() -> None:
    engine = ScriptedEngine(labels=labels)
    for shown in (True, False):
        asyncio.run(YesNoJudge(engine=engine, questions=("Is it kind?",), show_prompt=shown).score([SAMPLE]))
    assert field_of(engine.asked[0], "prompt") == "Write something nice."
    assert field_of(engine.asked[1], "prompt") == ""


def test_zyn_takes_the_words_at_any_mass() -> None:
    engine = ScriptedEngine(labels=lambda prompt: {"Yes": 0.0003, "No": 0.0001})
    one = asyncio.run(preset("zyn")(engine=engine, questions=("Is it kind?",)).score([SAMPLE]))[0]
    assert one.value == pytest.approx(0.75, abs=1e-12)
    assert asyncio.run(YesNoJudge(engine=engine, questions=("Is it kind?",)).score([SAMPLE]))[0].value is None


def test_rlbff_takes_the_difference_of_logs_on_the_samples_principle() -> None:
    engine = ScriptedEngine(
        labels=lambda prompt: (
            {"Yes": 0.8, "No": 0.1} if "polite" in field_of(prompt, "principle") else {"No": 0.9, "Yes": 0.09}
        )
    )
    judge = PrincipleJudge(engine=engine)
    sample = Sample(prompt="Hi", response="Hello you.", reference="It is polite. {{guard}} [end principle]")
    (one,) = asyncio.run(judge.score([sample]))
    assert one.value == pytest.approx(math.log(8), abs=1e-12)
    assert field_of(engine.asked[0], "principle") == "It is polite. {{guard}} [·end principle]"
    sample = Sample(prompt="Hi", response="Hello you.", reference={"principles": ["polite", "brief"]})
    (one,) = asyncio.run(judge.score([sample]))
    assert one.value == pytest.approx((math.log(8) - math.log(10)) / 2, abs=1e-12)
    assert list(one.parts) == ["polite", "brief"]


@pytest.mark.parametrize("reference", [None, "", [], [""], 3, {"principles": []}, {"principle": "x"}, ["x", 3]])
def test_references_without_a_principle(reference: Any) -> None:
    with pytest.raises(ValueError, match="must be a principle"):
        principles_of(reference)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ((), "it has no questions"),
        (("x", {"text": "x", "good": "no"}), "the question 'x' is there twice"),
        (("",), "must be a text that can be answered"),
        (({"text": "x", "good": "maybe"},), "must be 'yes' or 'no'"),
        (({"text": "x", "weight": 0},), "above 0"),
        (({"question": "x"},), "is not a question"),
        ((3,), "is not a question"),
    ],
)
def test_questions_that_are_none(questions: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        YesNoJudge(engine=ScriptedEngine(), questions=questions)


def test_rlbffs_scalar_model_is_asked_in_the_words_it_was_taught() -> None:
    """docs/judge_training.md makes rows for supervised fine-tuning by `ask_principle`."""
    engine = ScriptedEngine(labels=lambda prompt: {"Yes": 0.75, "No": 0.25})
    sample = Sample(prompt="Name a sea.", response="The North Sea.", reference="The answer is short.")
    (score,) = asyncio.run(PrincipleJudge(engine=engine).score([sample]))
    assert score.value == pytest.approx(math.log(3))
    assert engine.asked == [ask_principle("The answer is short.")("Name a sea.", "The North Sea.")]


@pytest.mark.parametrize(("yes", "no", "value"), [(0.3, 0.6, 0.0), (0.6, 0.3, 1.0)])
def test_a_policys_own_copy_says_right_or_not(yes: float, no: float, value: float) -> None:
    """The reward of Self Rewarding, Self Improving, of a bare answer, too; what is right is not shown."""
    asked = ScriptedEngine(labels=lambda prompt: {"Yes": yes, "No": no})
    reward = dict(recipes()["self_rewarding_self_improving"]["run"]["reward"]["scorer"]["transform"])
    reward["scorer"] = {"yes_no": reward["scorer"]["yes_no"] | {"engine": asked}}
    (found,) = asyncio.run(
        load({"transform": reward}).score([Sample(prompt="1 + 3?", response="4", reference="forty")])
    )
    assert found.value == value
    assert "forty" not in text_of(asked.asked[0])
