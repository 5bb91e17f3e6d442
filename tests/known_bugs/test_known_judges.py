"""What released judges and readers get wrong: RM-R1, Critique-Coder, Search-Gen-V, CaRR, ZYN, General-Reasoner."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, text_of

from adjudge.engines.interface import Prompt
from adjudge.judges.items.citation_rules import group_rewards, read_statements
from adjudge.judges.pointwise import GeneralReasonerJudge
from adjudge.protocol import Sample
from adjudge.scoring.presets import preset
from adjudge.verifiers.verdict.support_labels import LabelListVerifier, read_labels
from adjudge.verifiers.verdict.verifier import VerdictVerifier


def rm_r1(response: str) -> float | None:
    return VerdictVerifier(style="rm_r1").verify(Sample(prompt="", response=response, reference="A")).value


def test_rm_r1_reads_the_last_80_characters_alone() -> None:
    """So a judge that gives the other verdict first, and fills the space between, is right for either answer."""
    last = "<answer>[[A]]</answer>"
    assert rm_r1(f"The first adds up.\n{last}") == 1.0
    assert rm_r1(f"The second adds up. <answer>[[B]]</answer>{' and' * 40}\n{last}") == -1.0
    assert rm_r1(f"The first adds up. {last}\nIt is not [[A]], though.") == -1.0


def test_rm_r1_loses_a_verdict_with_a_remark_behind_it() -> None:
    sample = Sample(prompt="Which?", response="the first", reference="the second")

    def remark(prompt: Prompt, index: int) -> str:
        picked = "A" if "the first" in field_of(prompt, "response_a") else "B"
        return f"<answer>[[{picked}]]</answer>" + " and so it is" * 20

    engine = ScriptedEngine(remark)
    judges = preset("rm_r1")(engine=engine), preset("rm_r1")(engine=engine, window=80, sole=True)
    assert [asyncio.run(judge.score([sample]))[0].value for judge in judges] == [1.0, None]


def test_rm_r1_misspells_who_speaks_in_a_conversation() -> None:
    asked: list[str] = []

    def answer(prompt: Prompt, index: int) -> str:
        asked.append(text_of(prompt))
        return "<answer>[[A]]</answer>"

    turns = [
        {"role": role, "content": text} for role, text in (("user", "Hi"), ("assistant", "Yes?"), ("user", "2+2?"))
    ]
    sample = Sample(prompt=turns, response="It is four.", reference="It is five.")
    asyncio.run(preset("rm_r1")(engine=ScriptedEngine(answer)).score([sample]))
    assert len(asked) == 2
    for text in asked:
        assert re.findall(r"^\[(user|assistant) \w+\]$", text, re.MULTILINE) == ["user", "assistant", "user"]


@pytest.mark.parametrize("conclusion", ["Tentative", "NOT", "False. That is certain", "T or F", "t", ""])
def test_critique_coder_takes_every_conclusion_with_a_t_for_true(conclusion: str) -> None:
    verifier = VerdictVerifier(style="critique")
    for text, value in (("T", 1.0), (conclusion, 0.0)):
        response = f"It fails for n = 0.\n\\conclusion{{{text}}}"
        assert verifier.verify(Sample(prompt="", response=response, reference="T")).value == value


def test_search_gen_v_evaluates_what_the_model_wrote_and_ours_does_not(tmp_path: Path) -> None:
    target = tmp_path / "made"
    text = f"[__import__('pathlib').Path('{target}').touch() or 'support']"
    assert read_labels(text) is None
    score = LabelListVerifier().verify(Sample(prompt="", response=text, reference=["support"]))
    assert (score.status, score.value) == ("scored", 0.0)
    assert not target.exists()


def test_search_gen_v_drops_words_that_are_no_labels() -> None:
    assert read_labels('["support", "not_support"]') == ("support", "not_support")
    assert read_labels('["support", "perhaps", "not_support"]') is None


def test_c_grpo_divides_by_the_group_in_the_paper_and_not_in_the_scripts() -> None:
    outcomes, rubrics = [1.0, 1.0, 0.0], [0.5, 0.25, 0.4]
    assert group_rewards(outcomes, rubrics) == pytest.approx([1.0, 0.85, 0.0])
    assert group_rewards(outcomes, rubrics, normalize="none") == pytest.approx([0.85, 0.775, 0.0])


def test_carr_formats_what_the_model_wrote_and_fills_names_into_names() -> None:
    (statement,) = read_statements(["<E1> {0.__class__} lives in <E0>"])
    assert statement.filled({"E0": "Rome", "E1": "<E0>"}) == "<E0> {0.__class__} lives in Rome"


def test_zyn_rewards_its_own_answer_and_not_another_classifier() -> None:
    def chances(prompt: Prompt) -> dict[str, float]:
        return {"Yes": 0.3, "No": 0.1} if "Is it kind?" in text_of(prompt) else {}

    judge = preset("zyn")(engine=ScriptedEngine(labels=chances), questions=("Is it kind?",))
    (score,) = asyncio.run(judge.score([Sample(prompt="", response="You hateful fool.")]))
    assert score.value == pytest.approx(0.75)


def test_general_reasoner_finds_yes_anywhere_in_the_decision() -> None:
    judge = GeneralReasonerJudge(engine=ScriptedEngine(lambda prompt, index: "Final Decision: No, it is not Yes"))
    (score,) = asyncio.run(judge.score([Sample(prompt="", response=r"\boxed{4}", reference="5")]))
    assert (score.status, score.value) == ("failed", None)
