"""Each preset and example of a generative reward gives what its formula gives by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of
from tests.reward_models.generative.forced_engine import ForcedEngine, turn_of

from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample, Score
from adjudge.scoring import registry

FOLDER = Path(__file__).parents[3] / "examples" / "generative"
PRINTED = "The program printed:\n```\n4\n```"
NAMES = ("genrm_votes", "think_prm")


def with_engine(spec: Any, engine: ScriptedEngine) -> Any:
    """The spec with another engine in the place of every server."""
    if isinstance(spec, dict):
        return {key: engine if key == "engine" else with_engine(value, engine) for key, value in spec.items()}
    return [with_engine(entry, engine) for entry in spec] if isinstance(spec, list) else spec


def score(name: str, engine: ScriptedEngine, response: Any) -> Score:
    spec: Any = {name: {"engine": engine}}
    if name in NAMES:
        spec = with_engine(yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")), engine)
    scorer = registry.load(spec)
    return asyncio.run(scorer.score([Sample(prompt="2+2?", response=response, reference="four")]))[0]


def test_all_are_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_loads(name: str) -> None:
    assert registry.load(str(FOLDER / f"{name}.yaml")).fingerprint


def verdict(prompt: Prompt, index: int) -> str:
    return f"Rationale {index}.\nVerdict {key_of(prompt)}: {'Yes' if index < 6 else 'No'}"


def test_genrm() -> None:
    engine = ScriptedEngine(verdict, labels=lambda p: {"Yes": 0.8 if "Rationale 0" in turn_of(p) else 0.4, "No": 0.2})
    assert score("genrm_cot", engine, "It is four.").value == pytest.approx((0.8 + 7 * 2 / 3) / 8)


def test_genrm_votes() -> None:
    engine = ScriptedEngine(lambda prompt, index: "hm" if index % 8 == 0 else verdict(prompt, index % 8))
    assert score("genrm_votes", engine, "It is four.").value == pytest.approx(5 / 8)


def test_think_prm() -> None:
    def answer(prompt: Prompt, index: int) -> str:
        again = "Let me double check." in text_of(prompt)
        return f"Step 1 is \\boxed{{{'incorrect' if again else 'correct'}}}.\nIs the solution correct? No"

    one = score("think_prm", ScriptedEngine(answer, labels=lambda prompt: {"Yes": 0.25, "No": 0.75}), "It is four.")
    assert one.value == pytest.approx(0.25)
    assert [step.value for step in one.steps] == [0.0]
    assert len(one.evidence["chances"]) == 4


def chances(prompt: Prompt, text: str) -> Sequence[float]:
    """0.8 where somebody has said that it is four, else 0.2."""
    return (0.8, 0.8) if "four" in text_of(prompt) else (0.2, 0.2)


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("<think>Two and two is four.</think><answer>5</answer>", 0.9 * 0.6 + 0.1),
        ("Two and two is four. <answer>5</answer>", 0.9 * 0.6),
        ("<think>Hm.</think><answer>four</answer>", 0.1),
        ("four", 0.0),
    ],
    ids=["both", "no tags", "no reason", "neither"],
)
def test_rlpr(response: str, value: float) -> None:
    assert score("rlpr", ForcedEngine(chances), response).value == pytest.approx(value)


def test_igpo() -> None:
    turns = [
        {"role": "assistant", "content": "I look for it."},
        {"role": "tool", "content": "It is four."},
        {"role": "assistant", "content": "<answer>four or five</answer>"},
    ]
    one = score("igpo", ForcedEngine(chances), turns)
    assert [step.value for step in one.steps] == [pytest.approx(0.6), pytest.approx(0.5)]
    one = score("igpo", ForcedEngine(chances), [*turns[:2], {"role": "assistant", "content": "four"}])
    assert [step.value for step in one.steps] == [pytest.approx(0.6), -2.0]


def test_gen_prm_runs_its_programs_in_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    programs = {"four": "print(2 + 2)", "five": "import os\nprint(open('/etc/shadow').read())"}

    def answer(prompt: Prompt, index: int) -> str:
        if not isinstance(prompt, str) and prompt[-1]["role"] == "assistant":
            return f"\\boxed{{{'Yes' if PRINTED in turn_of(prompt) else 'No'}}}"
        step = field_of(prompt, "step")
        return f"<verify>\n```python\n{programs['four' if 'four' in step else 'five']}\n```\n"

    engine = ScriptedEngine(answer)
    scorer = registry.load({"gen_prm_sandboxed:gen_prm": {"engine": engine, "readout": "votes"}})
    one = asyncio.run(scorer.score([Sample(prompt="2+2?", response="It is four.\n\nIt is five.")]))[0]
    assert [step.value for step in one.steps] == [1.0, 0.0]
    assert "Error" in turn_of(engine.asked[-1])
    sandbox = sys.modules.pop("gen_prm_sandboxed").SandboxedPython(seconds=0.3)
    assert sandbox.run("while True: pass") == "(it was stopped: timeout)"
    assert sandbox.run("2 +").startswith("(it is not Python: ")
