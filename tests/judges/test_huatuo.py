"""HuatuoGPT-o1's reward, with a language model and with a two-label classifier in a prompt of its own."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engines.scripted import ScriptedEngine, text_of
from tests.engines.tiny_models import write_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from adjudge.engines.interface import Engine, Fault, LabelLogprobs, Logits, Prompt
from adjudge.engines.loading import engine_of
from adjudge.judges.pointwise import AnswerJudge
from adjudge.prompts.asking import ask_labels
from adjudge.prompts.template import Rendered
from adjudge.protocol import Sample, Score
from adjudge.scoring import registry

GOOD = "## Thinking\n\nIt is 5. No.\n\n## Final Response\n\nIt is four."


def scored(response: str, chance: float) -> tuple[Score, ScriptedEngine]:
    engine = ScriptedEngine(labels=lambda prompt: {"same": chance, "different": 1 - chance})
    scorer = registry.load({"huatuo_gpt_o1": {"engine": engine}})
    (score,) = asyncio.run(scorer.score([Sample(prompt="2+2?", response=response, reference="4")]))
    return score, engine


@pytest.mark.parametrize(("chance", "value"), [(1.0, 1.0), (0.41, 1.0), (0.4, 0.1), (0.0, 0.1)])
def test_the_chance_decides_between_two_values(chance: float, value: float) -> None:
    score, engine = scored(GOOD, chance)
    assert score.value == value
    assert "It is four." in text_of(engine.asked[0])
    assert "It is 5" not in text_of(engine.asked[0])


@pytest.mark.parametrize(
    ("attack", "response"),
    [
        ("no thinking", "## Final Response\n\nIt is four."),
        ("no heading", "It is four."),
        ("two final responses", GOOD + "\n\n## Final Response\n\nIt is five."),
        ("two thoughts", "## Thinking\n\n" + GOOD),
        ("headings alone", "## Thinking\n\n## Final Response\n\n"),
        ("empty", ""),
    ],
)
def test_without_the_form_there_is_nothing(attack: str, response: str) -> None:
    score, engine = scored(response, 1.0)
    assert (score.value, engine.asked) == (0.0, []), attack


def test_an_opening_alone_is_not_shown() -> None:
    score, engine = scored("## Thinking\n\nHm.\n\n## Final Response\n\nThe answer is:", 1.0)
    assert (score.value, engine.asked) == (0.1, [])


class Classifier(ScriptedEngine):
    """A classifier with fixed outputs."""

    def __init__(self, *values: float) -> None:
        super().__init__()
        self.values = values

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        self.asked.extend(prompts)
        return [Logits(values=self.values) for _ in prompts]


def classified(folder: Path, engine: Engine, **options: Any) -> Score:
    path = folder / "own.prompt"
    head = 'name: own\nversion: "1"\nsource: test\nguard: false\nuntrusted: [response, reference]\nform: "{answer}"\n'
    path.write_text(
        f"---\n{head}---\n# completion\n<R>{{{{response}}}}</R><G>{{{{reference}}}}</G>\n", encoding="utf-8"
    )
    labels = {"False": 0.0, "True": 1.0}
    judge = AnswerJudge(engine=engine, template=str(path), readout="classes", labels=labels, reasons={}, **options)
    return asyncio.run(judge.score([Sample(prompt="2+2?", response=GOOD, reference="4")]))[0]


def test_a_classifier_is_read_by_its_softmax(tmp_path: Path) -> None:
    engine = Classifier(1.0, 3.0)
    score = classified(tmp_path, engine, answer_after="## Final Response\n\n")
    assert score.value == pytest.approx(1 / (1 + 2.718281828459045**-2))
    assert engine.asked == ["<R>It is four.</R><G>4</G>"]
    assert score.evidence["mass"] == 1.0


@pytest.mark.parametrize("values", [(1.0,), (1.0, 2.0, 3.0), (1.0, float("nan"))])
def test_a_classifier_of_other_classes_has_failed(tmp_path: Path, values: tuple[float, ...]) -> None:
    score = classified(tmp_path, Classifier(*values))
    assert (score.value, score.reason) == (None, "engine_error")
    assert "for the labels False, True" in score.evidence["fault"]


def test_the_chances_of_all_classes_make_one() -> None:
    prompt = Rendered(messages=({"role": "completion", "content": "x"},))
    (found,) = asyncio.run(
        ask_labels(Classifier(700.0, 702.0), [prompt], {"no": ("no",), "yes": ("yes",)}, classes=True)
    )
    assert isinstance(found, LabelLogprobs)
    assert sum(map(math.exp, found.logprobs.values())) == pytest.approx(1.0)


def test_a_real_classifier_reads_the_bytes_of_the_prompt(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "classifier", task="classify", labels=2)
    engine = engine_of({"transformers": {"model": str(folder), "device": "cpu"}})
    score = classified(tmp_path, engine, answer_after="## Final Response\n\n")
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    ids = AutoTokenizer.from_pretrained(folder)("<R>It is four.</R><G>4</G>", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        chances = model(torch.tensor([ids])).logits.softmax(dim=-1)[0]
    assert score.value == pytest.approx(float(chances[1]), abs=1e-5)
