from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest
from tests.engines.scripted import Choosing, Said, ScriptedEngine, fault, field_of, key_of, text_of

from adjudge.engines.interface import Completion, Prompt
from adjudge.prompts.asking import Answer
from adjudge.prompts.reading import LabelReader
from adjudge.prompts.scorer import Case, ModelScorer, guard
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import Sample, Score

READ = LabelReader(form="Verdict {nonce}: {answer}", labels=("yes", "no"))


@dataclass(frozen=True, kw_only=True)
class YesScorer(ModelScorer):
    """Does the judge say yes?"""

    name: ClassVar[str] = "yes"
    needs_reference: ClassVar[bool] = True

    stern: bool = False

    def templates(self) -> tuple[Template, ...]:
        return (load_template("judges/answer"),)

    def check_reference(self, sample: Sample) -> None:
        if not isinstance(sample.reference, str):
            raise ValueError(f"the reference is {sample.reference!r}; it must be text")

    def prompt(self, case: Case) -> Rendered:
        return self.render(
            self.templates()[0],
            {
                "question": case.sample.prompt,
                "reference": case.sample.reference,
                "response": case.response,
                "answers": "yes or no",
            },
        )

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        return await self.decided(cases, self.prompt, READ, self.verdict)

    def verdict(self, case: Case, answers: Sequence[Answer[str]]) -> Score:
        return Score.scored(float(answers[0].value == "yes"))


TURNS = [
    {"role": "assistant", "content": "four"},
    {"role": "tool", "content": "5"},
    {"role": "assistant", "content": "it is"},
]


def says(answer: str) -> ScriptedEngine:
    return ScriptedEngine(lambda prompt, index: f"Verdict {key_of(prompt)}: {answer}")


def sample(response: Any = "four it is", **fields: Any) -> Sample:
    return Sample(**{"prompt": "2+2?", "response": response, "reference": "4", **fields})


def score(engine: ScriptedEngine, one: Sample, **options: Any) -> Score:
    return asyncio.run(YesScorer(engine=engine, **options).score([one]))[0]


def test_a_verdict_becomes_a_score_with_its_origin_and_cost() -> None:
    scorer = YesScorer(engine=says("yes"))
    (one,) = asyncio.run(scorer.score([sample()]))
    assert one.value == 1.0
    assert one.provenance.to_dict() == {
        "scorer": "yes",
        "fingerprint": scorer.fingerprint,
        "engine": "scripted",
        "revision": "script answer@1",
    }
    assert (one.cost.prompt_tokens, one.cost.completion_tokens) == (10, 3)


@pytest.mark.parametrize(
    ("response", "options", "reason"),
    [
        ("", {}, "no_answer"),
        (" \n\t", {}, "no_answer"),
        (":", {"min_words": 1}, "no_answer"),
        ("Yes", {}, "no_answer"),
        ("... !!! ___", {"min_words": 1}, "no_answer"),
        ("Thought process:", {"min_words": 1}, "no_answer"),
        ("Let's solve this problem step by step.", {"min_words": 1}, "no_answer"),
        ("解", {"min_words": 1}, "no_answer"),
        ("<think>so it is four", {}, "unfinished_reasoning"),
        ("<think>so it is four</think>", {}, "no_answer"),
        ([], {}, "no_answer"),
        ([{"role": "user", "content": "four it is"}], {}, "no_answer"),
        ([{"role": "assistant", "content": 4}], {}, "no_answer"),
        ("a b " * 30, {"max_characters": 100}, "too_complex"),
    ],
)
def test_a_response_with_nothing_to_judge_scores_0_and_is_not_shown(
    response: Any, options: dict[str, Any], reason: str
) -> None:
    engine = says("yes")
    one = score(engine, sample(response), **options)
    assert (one.value, one.reason) == (0.0, reason)
    assert engine.asked == []


@pytest.mark.parametrize(
    ("response", "options", "told"),
    [
        ("Yes", {}, "the response has fewer words than min_words=2, so the model was not asked"),
        ("", {"min_words": 1}, "fewer words than min_words=1"),
        ("a b " * 30, {"max_characters": 100}, "the response has 120 characters, and max_characters=100"),
        ("Let's solve this problem step by step.", {}, "the response is made of openings alone"),
    ],
)
def test_what_a_response_that_is_not_shown_lacks_is_evidence(response: str, options: dict[str, Any], told: str) -> None:
    assert told in score(says("yes"), sample(response), **options).evidence["error"]


@pytest.mark.parametrize(
    ("response", "options", "shown"),
    [
        ("4", {"min_words": 1}, "4"),
        ("二加二等於四", {}, "二加二等於四"),
        ("<think>2+2</think> four it is", {}, "four it is"),
        ("<think>2+2</think> four it is", {"reasoning": "keep"}, "<·think>2+2<·/think> four it is"),
        (TURNS, {}, "four\nit is"),
    ],
)
def test_what_is_shown(response: Any, options: dict[str, Any], shown: str) -> None:
    engine = says("yes")
    assert score(engine, sample(response), **options).value == 1.0
    assert field_of(engine.asked[0], "response") == shown


def test_a_bad_sample_fails_alone() -> None:
    scorer = YesScorer(engine=says("yes"))
    samples = [sample(reference=None), sample(), sample(reference=4), sample("", reference=4)]
    found = asyncio.run(scorer.score(samples))
    assert [one.reason for one in found] == ["bad_sample", "", "gold_unparsable", "gold_unparsable"]
    with pytest.raises(ValueError, match="sample 'seven': the reference is 4"):
        scorer.validate(sample(reference=4, id="seven"))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (fault("engine_timeout"), "engine_timeout"),
        (fault("engine_error"), "engine_error"),
        ("I like it.", "judge_unparsable"),
        (Completion(text="Verdict", finish_reason="length"), "judge_truncated"),
    ],
)
def test_silence_is_no_number(said: Said, reason: str) -> None:
    one = score(ScriptedEngine(lambda prompt, index: said), sample())
    assert (one.value, one.status, one.reason) == (None, "failed", reason)
    assert one.evidence["fault"]


def test_a_response_that_leaves_the_judge_speechless_can_be_scored_0() -> None:
    one = score(ScriptedEngine(lambda prompt, index: "no comment"), sample(), undecided="zero")
    assert (one.value, one.reason, one.evidence["judge"]) == (0.0, "undecided", "judge_unparsable")
    assert one.cost.completion_tokens == 2
    one = score(ScriptedEngine(lambda prompt, index: fault()), sample(), undecided="zero")
    assert one.status == "failed", "an engine that is down is nobody's zero"


@pytest.mark.parametrize(("window", "reason"), [(2_000, "too_complex"), (100, "engine_error")])
def test_only_a_response_that_is_too_long_itself_scores_0(window: int, reason: str) -> None:
    def answer(prompt: Prompt, index: int) -> Said:
        if len(text_of(prompt)) > window:
            return fault("engine_error", "9000 tokens, and the window holds 4096", too_long=True)
        return f"Verdict {key_of(prompt)}: yes"

    one = score(ScriptedEngine(answer), sample("four " * 400))
    assert one.reason == reason
    assert one.value == (0.0 if reason == "too_complex" else None)


def test_the_engines_own_special_tokens_are_broken_up() -> None:
    engine = ScriptedEngine(lambda prompt, index: f"Verdict {key_of(prompt)}: no", special_tokens=("ENDTURN",))
    score(engine, sample("four ENDTURN five"))
    assert field_of(engine.asked[0], "response") == "four E·NDTURN five"


def test_a_model_without_a_system_turn() -> None:
    engine = says("yes")
    score(engine, sample(), system_turn=False)
    assert [turn["role"] for turn in engine.asked[0]] == ["user"]  # type: ignore[index]


def test_the_fingerprint_knows_what_could_change_a_score() -> None:
    class Other(ScriptedEngine):
        fingerprint = "scripted:2"

    base = YesScorer(engine=ScriptedEngine())
    assert base.fingerprint == YesScorer(engine=ScriptedEngine()).fingerprint
    others = [
        YesScorer(engine=Other()),
        YesScorer(engine=ScriptedEngine(), stern=True),
        YesScorer(engine=ScriptedEngine(), max_tokens=5),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reasoning": "drop"}, "reasoning='drop'"),
        ({"undecided": "half"}, "undecided='half'"),
        ({"min_words": 0}, "min_words=0"),
        ({"max_characters": 0}, "max_characters=0"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"attempts": 0}, "attempts is 0"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        YesScorer(engine=ScriptedEngine(), **options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Solution: Thought process:", "no_answer"),
        ("Let's think step by step. " * 200, "no_answer"),
        ("**Final answer:**\n\nThe answer is ...", "no_answer"),
        ("The answer is 4", ""),
        ("Solutions exist.", ""),
        ("Thought process: it is four.", ""),
        ("solution " * 4_000 + "x", ""),
    ],
    ids=["two", "many", "marked up", "an answer", "a word that begins like one", "a thought", "long, and a word"],
)
def test_openings_alone_are_no_answer(text: str, said: str) -> None:
    assert guard(text, min_words=1, max_characters=50_000) == said


def test_the_guard_counts_words_in_scripts_without_blanks() -> None:
    assert [guard(text, min_words=3, max_characters=99) for text in ("一二", "一二三", "a b", "a b c")] == [
        "no_answer",
        "",
        "no_answer",
        "",
    ]


def test_a_forced_verdict_says_so_in_the_evidence_and_can_in_the_fingerprint() -> None:
    engine = Choosing(lambda choice: choice[0], 0.7)
    sample = Sample(prompt="2+2?", response="It is four.", reference="4")
    scorer = YesScorer(engine=engine)
    (score,) = asyncio.run(scorer.score([sample]))
    assert score.value == 1.0
    assert score.evidence["forced_mass"] == 0.7
    assert scorer.fingerprint.endswith("+forced")
    assert not YesScorer(engine=engine, forced_mass=None).fingerprint.endswith("+forced")
    engine.mass = 0.1
    (score,) = asyncio.run(YesScorer(engine=engine, undecided="zero").score([sample]))
    assert (score.value, score.reason) == (0.0, "undecided")
    (score,) = asyncio.run(YesScorer(engine=engine, forced_mass=0).score([sample]))
    assert (score.value, score.evidence["forced_mass"]) == (1.0, 0.1)


EXAMPLE = {"question": "1+1?", "reference": "2", "response": "3", "answer": "3 is not 2.\nVerdict {nonce}: no"}


def test_examples_are_shown_to_the_model_and_belong_to_the_fingerprint() -> None:
    engine = says("yes")
    one = score(engine, sample(), examples=[EXAMPLE, {**EXAMPLE, "response": "2", "answer": "Verdict {nonce}: yes"}])
    assert one.value == 1.0
    prompt: Any = engine.asked[0]
    assert [turn["role"] for turn in prompt] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert re.fullmatch(r"3 is not 2\.\nVerdict [0-9a-f]{8}: no", prompt[2]["content"])
    assert one.provenance.fingerprint != YesScorer(engine=engine).fingerprint


@pytest.mark.parametrize(
    "example",
    [
        "3 is not 2",
        {**EXAMPLE, "answer": ""},
        {**EXAMPLE, "answer": 1},
        {"question": "1+1?", "response": "3", "answer": "no"},
        {**EXAMPLE, "replies": "3"},
    ],
)
def test_what_is_no_example_is_refused_with_the_fields_that_one_has(example: Any) -> None:
    with pytest.raises(ValueError, match=r"examples: .* the fields are: question, reference, response \(answer\)"):
        YesScorer(engine=says("yes"), examples=[example])


def test_one_example_stands_for_a_list_and_a_number_for_none() -> None:
    assert list(YesScorer(engine=says("yes"), examples=cast("Any", EXAMPLE)).examples) == [EXAMPLE]
    with pytest.raises(ValueError, match="examples: 5 is none"):
        YesScorer(engine=says("yes"), examples=cast("Any", 5))
