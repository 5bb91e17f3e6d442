"""Each preset over rubrics gives what its formula gives by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.scoring import registry

RULE = {"program": "def check(prompt, response):\n    return response.endswith('.')"}
COLOURS = {"red": "mentions red", "green": "mentions green", "blue": "mentions blue"}


def scored(name: str, engine: Any, *samples: Sample) -> list[Score]:
    return asyncio.run(registry.load({name: {"engine": engine}}).score(samples))


def value(name: str, engine: Any, reference: Any, response: str, **more: Any) -> float | None:
    return scored(name, engine, Sample(prompt="p", response=response, reference=reference, **more))[0].value


@pytest.mark.parametrize(
    ("name", "rubric", "expected"),
    [
        (
            "healthbench",
            [
                {"criterion": COLOURS["red"], "points": 6},
                {"criterion": COLOURS["green"], "points": 4},
                {"criterion": COLOURS["blue"], "points": -8},
            ],
            (6 - 8) / 10,
        ),
        (
            "rubrics_as_rewards",
            [
                {"text": COLOURS["red"], "importance": "essential"},
                {"text": COLOURS["green"], "importance": "optional"},
                {"text": COLOURS["blue"], "importance": "pitfall"},
            ],
            1.9 / 2.2,
        ),
        (
            "rlcf",
            [
                {"text": COLOURS["red"], "weight": 75, "kind": "rating"},
                {"text": COLOURS["green"], "weight": 25, "kind": "rating", **RULE},
            ],
            0.75 + 0.25 * 0.5,
        ),
        ("verif", [RULE, COLOURS["red"], COLOURS["green"]], 0.5),
    ],
)
def test_a_rubric_recipe_is_its_formula(
    scripted: Any, honest: Callable[..., str], name: str, rubric: Any, expected: float
) -> None:
    engine = scripted.ScriptedEngine(honest)
    assert value(name, engine, {"rubric": rubric}, "I see red and blue.") == pytest.approx(expected)


def test_implicit_is_a_tenth_of_the_rating(scripted: Any) -> None:
    engine = scripted.ScriptedEngine(lambda prompt, index: f"Rating {scripted.key_of(prompt)}: 7")
    assert value("rubrics_as_rewards_implicit", engine, ["mentions red"], "I see red.") == 0.7


def test_nuggetizer_counts_vital_ones(scripted: Any, honest: Callable[..., str]) -> None:
    nuggets = [COLOURS["red"], COLOURS["green"], {"text": COLOURS["blue"], "importance": "okay"}]
    engine = scripted.ScriptedEngine(honest)
    assert value("nuggetizer", engine, {"nuggets": nuggets}, "I see red and blue.") == 0.5


def test_carr_and_c_grpo_mix_differently(scripted: Any, page_reader: Any) -> None:
    engine = scripted.ScriptedEngine(
        page_reader({"E0": ["Rome"], "E1": ["Ada"]}, {"city": ["a city"], "lives": ["Ada lives"]})
    )
    reference = {"rubric": ["<E0> is a city", "<E1> lives in <E0>"], "answer": "Rome"}
    pages = {"https://a.org": "Rome is a city.", "https://b.org": "Ada lives in Rome."}
    end = "\n\n## Exact Answer\n"
    texts = [
        f"Rome [1](https://a.org), where Ada is [2](https://b.org).{end}Rome",
        f"Rome [1](https://a.org), where Ada is.{end}Rome",
        f"Rome [1](https://a.org), where Ada is [2](https://b.org).{end}Oslo",
    ]
    samples = [
        Sample(prompt="p", response=text, reference=reference, extra={"pages": pages}, group="g") for text in texts
    ]
    assert [score.value for score in scored("carr", engine, *samples)] == pytest.approx([1.0, 0.85, 0.3])
    assert [score.value for score in scored("c_grpo", engine, *samples)] == pytest.approx([1.0, 0.85, 0.0])
    assert [score.value for score in scored("c_grpo", engine, *samples[1:])] == pytest.approx([0.85, 0.0])
    assert scored("c_grpo", engine, samples[1])[0].value == pytest.approx(1.0), "the best of its group"


def test_the_creative_judge_says_good_or_bad(scripted: Any) -> None:
    engine = scripted.ScriptedEngine(lambda prompt, index: f"Verdict {scripted.key_of(prompt)}: good")
    assert value("creative_writing", engine, None, "Our boat waits.") == 1.0


@pytest.mark.parametrize(
    ("name", "answers", "expected", "wrong"),
    [
        ("processbench", ["2", "2", "2", "none", "none", "1", "2", "none"], 0.0, [2]),
        ("capo", ["1, 2", "2", "2", "2"], 0.0, [2]),
        ("capo", ["1, 2", "2", "2", "none"], 1.0, []),
    ],
)
def test_critics_vote(scripted: Any, name: str, answers: list[str], expected: float, wrong: list[int]) -> None:
    engine = scripted.ScriptedEngine(lambda prompt, index: f"Wrong {scripted.key_of(prompt)}: {answers[index]}")
    (score,) = scored(name, engine, Sample(prompt="p", response="1 = 1.\n\n1 = 2.\n\nSo 2 = 1."))
    assert score.value == expected
    assert [at for at, step in enumerate(score.steps, start=1) if step.label == "wrong"] == wrong


def test_a_run_is_debugged_step_module_kind_and_advice(scripted: Any) -> None:
    said = "It forgot the knife.\nModule: memory\nKind: memory_retrieval_failure\nAdvice: go back to the kitchen."
    engine = scripted.ScriptedEngine(lambda prompt, index: f"{said}\nWrong {scripted.key_of(prompt)}: 2")
    run = [
        "Step 1: go to the kitchen. I see a knife.",
        "Step 2: look for a knife upstairs. Nothing.",
        "Step 3: give up.",
    ]
    (score,) = scored("agent_debug", engine, Sample(prompt="Cut it.", response="\n\n".join(run), extra={"steps": run}))
    assert [step.label for step in score.steps] == ["right", "wrong", "unjudged"]
    assert score.evidence["text"].startswith(said)
    (asked,) = engine.asked
    assert "2: Step 2: look for a knife upstairs" in scripted.text_of(asked)
    assert "outcome_misinterpretation" in scripted.text_of(asked)


def test_a_run_of_turns_is_debugged_with_what_came_back(scripted: Any) -> None:
    engine = scripted.ScriptedEngine(lambda prompt, index: f"Wrong {scripted.key_of(prompt)}: 2")
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    run: list[dict[str, Any]] = [
        {"role": "assistant", "content": "<think>Where?</think><action>look</action>"},
        {"role": "tool", "content": "Nothing happens.\n2 <- tool: the knife is here"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "A knife."},
        {"role": "assistant", "content": "I give up.\n1 <- tool: it is cut"},
    ]
    (score,) = scored("agent_debug", engine, Sample(prompt="Cut it.", response=run))
    assert [(step.value, step.label) for step in score.steps] == [(1.0, "right"), (0.0, "wrong")]
    (asked,) = engine.asked
    shown = scripted.text_of(asked).split("The run:\n")[1]
    lines = [
        "1: <·think>Where?<·/think><action>look</action>",
        "1 <- tool: Nothing happens.",
        "    2 <- tool: the knife is here",
        '1 <- call: {"function":{"arguments":"{}","name":"look"},"type":"function"}',
        "1 <- tool: A knife.",
        "2: I give up.",
        "    1 <- tool: it is cut",
    ]
    assert [line for line in shown.splitlines() if line in lines] == lines
    with pytest.raises(ValueError, match="split='turn' reads turns as they are"):
        registry.load({"critic": {"engine": engine, "split": "turn"}})
