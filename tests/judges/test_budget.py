from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.engines.scripted import Said, ScriptedEngine, fault, text_of

from adjudge.engines.interface import Completion, Generation, Prompt, Sampling
from adjudge.judges import language_judge
from adjudge.judges.language_judge import BudgetForced, thinking
from adjudge.protocol import Sample
from adjudge.scoring.presets import preset

COLD = Sampling()
CHAT = ({"role": "user", "content": "Which?"},)


def done(text: str, **more: Any) -> Completion:
    return Completion(**{"text": text, "finish_reason": "stop", "tokens": 3, **more})


@pytest.mark.parametrize(
    ("completion", "form", "kept"),
    [
        (done("so A.\n</think>\n[[A]]"), "[[{answer}]]", "so A."),
        (done("A is fine.\nMy verdict: [[A]]"), "[[{answer}]]", "A is fine."),
        (done("A.\nVerdict 0a1b2c3d: A"), "Verdict {nonce}: {answer}", "A."),
        (done("<answer>A</answer>"), "<answer>{answer}</answer>", ""),
        (done("just thinking \n"), "[[{answer}]]", "just thinking"),
        (done("Yes"), "{answer}", "Yes"),
        (done("[[A]]", reasoning="hm, A\n"), "[[{answer}]]", "<think>\nhm, A"),
    ],
)
def test_where_the_thinking_ends(completion: Completion, form: str, kept: str) -> None:
    assert thinking(completion, form) == kept


def run(engine: ScriptedEngine, sampling: Sampling = COLD, **options: Any) -> Any:
    forced = BudgetForced(engine=engine, form="[[{answer}]]", **options)
    return asyncio.run(forced.generate([CHAT], sampling))[0]


def answer(prompt: Prompt, index: int) -> Said:
    """A model that changes its mind with every Wait."""
    turns = [dict(turn) for turn in prompt if not isinstance(turn, str)]
    waits = turns[-1]["content"].count("Wait") if turns[-1]["role"] == "assistant" else 0
    return done(f" thought {waits}\n[[{'AB'[waits % 2]}]]")


def test_the_model_goes_on_where_it_wanted_to_stop() -> None:
    engine = ScriptedEngine(answer)
    found = run(engine, times=2)
    assert isinstance(found, Generation)
    assert found.completions[0].text == " thought 0\nWait thought 1\nWait thought 2\n[[A]]"
    assert found.completions[0].tokens == 9
    assert found.cost.prompt_tokens == 30
    assert engine.asked[1] == [*CHAT, {"role": "assistant", "content": " thought 0\nWait"}]


def test_reasoning_that_the_engine_separates_is_closed_before_the_answer() -> None:
    engine = ScriptedEngine(lambda prompt, index: done("[[A]]", reasoning="hm"))
    assert run(engine, times=2).completions[0].text == "<think>\nhm\nWaithm\nWaithm\n</think>\n\n[[A]]"


def test_a_choice_is_not_thought_over() -> None:
    engine = ScriptedEngine(lambda prompt, index: done("A"))
    assert run(engine, Sampling(choice=("A", "B")), times=2).completions[0].text == "A"
    assert len(engine.asked) == 1


def test_without_extensions_nothing_changes() -> None:
    assert run(ScriptedEngine(answer), times=0).completions[0].text == " thought 0\n[[A]]"


def test_a_budget_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine(answer)
    monkeypatch.setattr(language_judge, "MAX_TOKENS", 5)
    assert run(engine, times=9).completions[0].tokens == 6


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
def test_what_the_model_did_not_end_itself_is_not_extended(finish: str) -> None:
    cut = ScriptedEngine(lambda prompt, index: done("hm", finish_reason=finish))
    assert run(cut, times=9).completions[0].text == "hm"
    assert len(cut.asked) == 1


def test_each_of_several_completions_goes_on_by_itself() -> None:
    engine = ScriptedEngine(lambda prompt, index: done(f"{text_of(prompt)[-6:]}{index}\n[[A]]"))
    found = run(engine, Sampling(n=2, temperature=1.0, seed=5), times=1)
    assert [completion.text for completion in found.completions] == [
        "Which?5\nWait\nWait"[:-5] + "5\nWait5\n[[A]]",
        "Which?6\nWait\nWait"[:-5] + "6\nWait6\n[[A]]",
    ]


def test_a_fault_on_the_way_is_the_result() -> None:
    def broken(prompt: Prompt, index: int) -> Said:
        return fault("engine_timeout") if "Wait" in text_of(prompt) else done("hm\n[[A]]")

    assert run(ScriptedEngine(broken), times=1).reason == "engine_timeout"


def test_the_fingerprint_tells_the_extensions() -> None:
    engine = ScriptedEngine()
    prints = {
        BudgetForced(engine=engine, times=times, form=form).fingerprint for times in (1, 2) for form in ("", "{answer}")
    }
    assert len(prints) == 4


def test_a_judge_is_made_to_think_again() -> None:
    """The first thought prefers what is shown first, and the second one prefers the response itself."""

    def second_thoughts(prompt: Prompt, index: int) -> str:
        if "Wait" not in text_of(prompt):
            return "A looks good.\n<answer>A</answer>"
        first = text_of(prompt).index("right") < text_of(prompt).index("wrong")
        return f" no.\n<answer>{'A' if first else 'B'}</answer>"

    sample = Sample(prompt="q", response="the right one", reference="the wrong one")
    for extend, value in ((0, 0.5), (1, 1.0)):
        judge = preset("j1_budget")(engine=ScriptedEngine(second_thoughts), extend=extend)
        (one,) = asyncio.run(judge.score([sample]))
        assert one.value == value
