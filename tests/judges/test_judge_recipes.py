"""Each recipe of a single judge in examples/judges loads as it is, and gives what its formula gives by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of

from adjudge.cli.recipes import run_file
from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample
from adjudge.scoring import registry

NAMES = (
    "answer_cascade",
    "critique_first",
    "expected_score",
    "g_eval",
    "general_reasoner",
    "group_win_rate",
)
FOLDER = Path(__file__).parents[2] / "examples" / "judges"


def with_engine(spec: Any, engine: ScriptedEngine) -> Any:
    """The spec with another engine in the place of every server."""
    if isinstance(spec, dict):
        return {key: engine if key == "engine" else with_engine(value, engine) for key, value in spec.items()}
    return [with_engine(entry, engine) for entry in spec] if isinstance(spec, list) else spec


def values(name: str, engine: ScriptedEngine, *samples: Sample) -> list[float | None]:
    spec = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return [one.value for one in asyncio.run(registry.load(with_engine(spec, engine)).score(samples))]


def answers(*responses: str, **fields: Any) -> list[Sample]:
    return [Sample(**{"prompt": "How many?", "response": response, **fields}) for response in responses]


@pytest.mark.parametrize("name", NAMES)
def test_it_loads(name: str) -> None:
    assert registry.load(str(FOLDER / f"{name}.yaml")).fingerprint


def test_the_cascade_asks_about_what_rules_cannot_read() -> None:
    engine = ScriptedEngine(lambda prompt, index: f"Verdict {key_of(prompt)}: same")
    samples = answers(r"\boxed{12}", r"\boxed{13}", "There must be a dozen of them!", reference="12")
    assert values("answer_cascade.yaml", engine, *samples) == [1.0, 0.0, 1.0]
    assert len(engine.asked) == 1


def test_the_expected_score() -> None:
    engine = ScriptedEngine(labels=lambda prompt: {"4": 0.3, "10": 0.6})
    assert values("expected_score.yaml", engine, *answers("so many"))[0] == pytest.approx((8 - 1) / 9, abs=1e-12)


def test_the_median_of_five_critics() -> None:
    said = {"0": "bad", "1": "good", "2": "fair", "3": "good", "4": "bad"}

    def answer(prompt: Prompt, index: int) -> str:
        critique = field_of(prompt, "critique")
        return f"Verdict {key_of(prompt)}: {said[critique]}" if critique else str(index)

    assert values("critique_first.yaml", ScriptedEngine(answer), *answers("so many")) == [0.5]


def test_the_win_rate_in_a_group() -> None:
    def answer(prompt: Prompt, index: int) -> str:
        first, second = field_of(prompt, "response_a"), field_of(prompt, "response_b")
        if "jam" in first + second:
            return "I will not say."
        return f"Verdict {key_of(prompt)}: {'A' if len(first) > len(second) else 'B'}"

    samples = answers("a b", "a b c", "a b c d", "jam it", group="g")
    assert values("group_win_rate.yaml", ScriptedEngine(answer), *samples) == [-1.0, 0.0, 1.0, -1.0]


def test_zyn_is_centred_and_scaled() -> None:
    def chances(prompt: Prompt) -> dict[str, float]:
        return {"Yes": 0.2, "No": 0.6} if "insult" in text_of(prompt) else {"Yes": 0.8, "No": 0.2}

    questions = ["Is this text friendly?", {"text": "Does this text insult anybody?", "good": "no"}]
    scorer = registry.load({"zyn_reward": {"engine": ScriptedEngine(labels=chances), "questions": questions}})
    (one,) = asyncio.run(scorer.score(answers("you fool")))
    assert one.value == pytest.approx(((0.8 + 0.75) / 2 - 0.5) * 10, abs=1e-12)


def test_g_eval_and_general_reasoner() -> None:
    engine = ScriptedEngine(lambda prompt, index: "Look.", labels=lambda prompt: {"2": 0.5, "3": 0.5})
    assert values("g_eval.yaml", engine, *answers("so many")) == [2.5]
    engine = ScriptedEngine(lambda prompt, index: "Final Decision: Yes")
    samples = answers(r"\boxed{12 apples}", "no idea", reference="12")
    assert values("general_reasoner.yaml", engine, *samples) == [pytest.approx(0.95, abs=1e-12), -0.5]


@pytest.mark.parametrize(
    ("recipe", "reference", "said", "value"),
    [
        (
            "rm_r1",
            "A",
            "<type>Chat</type><rubric>r <justify>j</justify></rubric><eval>e</eval><answer>[[A]]</answer>",
            1.0,
        ),
        (
            "rm_r1",
            "A",
            "<type>Chat</type><rubric>r <justify>j</justify></rubric><eval>e</eval><answer>[[B]]</answer>",
            -1.0,
        ),
        ("critique_coder", "T", "It adds rightly. \\conclusion{T}", 1.0),
        ("critique_coder", "T", "It adds wrongly. \\conclusion{F}", 0.0),
    ],
)
def test_run_files_of_judges_pay_what_their_papers_pay(recipe: str, reference: Any, said: str, value: float) -> None:
    scorer = registry.load(run_file(recipe)["reward"]["scorer"])
    (one,) = asyncio.run(scorer.score([Sample(prompt="q", response=said, reference=reference)]))
    assert one.value == value, one
