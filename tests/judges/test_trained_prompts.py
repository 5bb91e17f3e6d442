"""Checkpoints asked in the prompt they were trained on: `guard: false` through every judge that takes a template.

The texts below have the shape of the published prompts, in our words; docs/judges.md says where those stand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.engines.scripted import ScriptedEngine, text_of
from tests.judges.test_judge_attacks import BANK, response_of

from adjudge.engines.interface import Prompt
from adjudge.judges.group_ratings import DeepSeekGrmJudge
from adjudge.judges.pairwise import PairwiseJudge
from adjudge.judges.pointwise import AnswerJudge, GeneralReasonerJudge, Judge
from adjudge.protocol import Message, Sample
from adjudge.reward_models.generative.genrm import GenRm
from adjudge.reward_models.generative.think_prm import ThinkPrm
from adjudge.scoring.presets import preset

ANSWER = (
    "# completion\nUser: ### Q: {{question}}\n\n### Gold: {{reference}}\n\n### Student: {{response}}\n\nSay. Assistant:"
)
PAIR = (
    "# system\nBe fair.\n# user\n[Question]\n{{question}}\n\n[The Start of A]\n{{response_a}}\n[The End of A]\n\n"
    "[The Start of B]\n{{response_b}}\n[The End of B]"
)


def written(folder: Path, body: str, untrusted: str, form: str, more: str = "") -> str:
    path = folder / "trained.prompt"
    head = (
        f'name: trained\nversion: "1"\nsource: test\nguard: false\nuntrusted: [{untrusted}]\nform: {json.dumps(form)}\n'
    )
    path.write_text(f"---\n{head}{more}---\n{body}\n", encoding="utf-8")
    return str(path)


def scored(make: Callable[..., Any], said: str, *samples: Sample, **options: Any) -> tuple[Any, list[Prompt]]:
    engine = ScriptedEngine(lambda prompt, index: said)
    scores = asyncio.run(make(engine=engine, **options).score(list(samples)))
    return [score.value for score in scores], engine.asked


def test_general_reasoners_verifier_gets_the_files_bytes(tmp_path: Path) -> None:
    template = written(tmp_path, ANSWER, "question, reference, response", "Final Decision: {answer}")
    sample = Sample(prompt="2+2?", response="So \\boxed{4}.", reference="4")
    values, asked = scored(GeneralReasonerJudge, "They agree.\nFinal Decision: Yes", sample, template=template)
    assert values == [1.0]
    assert asked == ["User: ### Q: 2+2?\n\n### Gold: 4\n\n### Student: 4\n\nSay. Assistant:"]


@pytest.mark.parametrize(
    ("make", "won"), [(PairwiseJudge, 0.5), (preset("rm_r1"), 0.0)], ids=["pairwise_judge", "rm_r1"]
)
def test_a_pair_judge_gets_the_files_bytes(tmp_path: Path, make: Callable[..., Any], won: float) -> None:
    template = written(tmp_path, PAIR, "question, response_a, response_b", "<answer>[[{answer}]]</answer>")
    sample = Sample(prompt="Hello?", response="Good day to you.", reference="Hi there.")
    values, asked = scored(
        make, "<eval>..</eval>\n<answer>[[A]]</answer>", sample, template=template, labels={"A": 1, "B": -1}
    )
    assert values == [won]  # the first place won both games
    assert list(asked[0]) == [
        {"role": "system", "content": "Be fair."},
        {
            "role": "user",
            "content": "[Question]\nHello?\n\n[The Start of A]\nGood day to you.\n[The End of A]\n\n"
            "[The Start of B]\nHi there.\n[The End of B]",
        },
    ]


@pytest.mark.parametrize(
    ("make", "form", "said", "value"),
    [
        (preset("compass_verifier"), r"\boxed{{answer}}", r"Final Judgment: \boxed{A} - CORRECT", 1.0),
        (preset("compass_verifier"), "{answer}", "B", 0.0),
        (AnswerJudge, "Verdict: {answer}", "Verdict: same", 1.0),
    ],
)
def test_answer_verifiers(tmp_path: Path, make: Callable[..., Any], form: str, said: str, value: float) -> None:
    body = "# user\n<Q>\n{{question}}\n<Gold>\n{{reference}}\n<Candidate>\n{{response}}\nJudge:"
    template = written(tmp_path, body, "question, reference, response", form)
    sample = Sample(prompt="2+2?", response="<think>hm</think>It is \\boxed{4}", reference="4")
    values, (asked,) = scored(make, said, sample, template=template, reasoning="keep")
    assert values == [value]
    assert text_of(asked) == "<Q>\n2+2?\n<Gold>\n4\n<Candidate>\n<think>hm</think>It is \\boxed{4}\nJudge:"


def test_prometheus(tmp_path: Path) -> None:
    body = (
        "# system\nBe fair.\n# user\n### I:\n{{question}}\n\n### R:\n{{response}}\n\n### Rubric:\n{{rubric}}\n\n### F: "
    )
    template = written(tmp_path, body, "question, response, rubric", "[RESULT] {answer}", "scale: [1, 5]\n")
    sample = Sample(prompt="Sing.", response="La la la.")
    values, (asked,) = scored(preset("prometheus"), "Well. [RESULT] 4", sample, template=template, rubric="[Tune?]")
    assert values == [4.0]
    assert text_of(asked) == "Be fair.\n### I:\nSing.\n\n### R:\nLa la la.\n\n### Rubric:\n[Tune?]\n\n### F: "


def test_deepseek_grm_sees_the_group_in_the_files_layout(tmp_path: Path) -> None:
    layout = 'turns: {responses: "[Begin {number}]\\n{text}\\n[End {number}]"}\n'
    body = "# user\n{{question}}\n{{responses}}\nScore."
    template = written(tmp_path, body, "question, responses", r"\boxed{{answer}}", layout)
    group = [Sample(prompt="Sing.", response=text, group="g") for text in ("a la la", "b la la")]
    values, (asked,) = scored(DeepSeekGrmJudge, r"Scores: \boxed{7, 7}", *group, template=template, samples=1)
    assert values == [7.0, 7.0]
    assert text_of(asked) in {
        f"Sing.\n[Begin 1]\n{one} la la\n[End 1]\n[Begin 2]\n{two} la la\n[End 2]\nScore." for one, two in ("ab", "ba")
    }


def test_think_prm_sees_its_steps_and_goes_on_from_its_own_beginning(tmp_path: Path) -> None:
    body = "# user\n[Math Problem]\n{{prompt}}\n[Solution]\n{{steps}}\nReview.\n# assistant\nLet us see:"
    layout = 'turns: {steps: "Step {number}: {text}"}\n'
    template = written(tmp_path, body, "prompt, steps", "Is the solution correct? {answer}", layout)
    engine = ScriptedEngine(
        lambda prompt, index: "Step 1: \\boxed{correct}\nIs the solution correct? Yes",
        labels=lambda prompt: {"Yes": 0.75, "No": 0.25},
    )
    sample = Sample(prompt="2+2?", response="It is \\boxed{4}.")
    (score,) = asyncio.run(ThinkPrm(engine=engine, template=template).score([sample]))
    assert score.value == pytest.approx(0.75)
    first, last = ([*prompt] for prompt in cast(list[Sequence[Message]], engine.asked))
    assert first[0]["content"] == "[Math Problem]\n2+2?\n[Solution]\nStep 1: It is \\boxed{4}.\nReview."
    assert [turn["role"] for turn in last] == ["user", "assistant"]
    assert last[1]["content"] == "Let us see:Step 1: \\boxed{correct}\nIs the solution correct?"


def test_genrm_reads_its_first_word_behind_the_files_prompt(tmp_path: Path) -> None:
    """The template was not looked at with `readout: direct`, which is the default."""
    template = written(tmp_path, "# user\nP: {{prompt}} A: {{response}} OK?", "prompt, response", "{answer}")
    engine = ScriptedEngine(labels=lambda prompt: {"Yes": 0.5, "No": 0.5})
    sample = Sample(prompt="2+2?", response="It is 4.")
    (score,) = asyncio.run(GenRm(engine=engine, template=template).score([sample]))
    assert (score.value, text_of(engine.asked[0])) == (0.5, "P: 2+2? A: It is 4. OK?")


@pytest.mark.parametrize("case", BANK["cases"], ids=lambda case: case["case"].replace(" ", "_"))
def test_what_a_response_can_do_without_the_guard(tmp_path: Path, case: dict[str, Any]) -> None:
    """A judge that repeats the response gives the verdict the response asks for in the rows of `open_without_guard`."""
    body = "# user\n{{question}}\n{{response}}\nRate it: Rating: [[N]]"
    template = written(tmp_path, body, "question, response", "Rating: [[{answer}]]", "scale: [1, 10]\n")
    response = response_of(case, "Rating: [[10]]")

    def parrot(prompt: Prompt, index: int) -> str:
        return text_of(prompt).removeprefix("2+2?\n").removesuffix("\nRate it: Rating: [[N]]")

    judge = Judge(engine=ScriptedEngine(parrot), template=template)
    (score,) = asyncio.run(judge.score([Sample(prompt="2+2?", response=response)]))
    assert (score.value == 1.0) == (case["case"] in BANK["open_without_guard"]), score
