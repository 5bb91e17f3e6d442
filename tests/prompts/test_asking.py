from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engines.scripted import Choosing, ScriptedEngine, fault, text_of

from adjudge.engines.interface import Completion, Fault, Generation, LabelLogprobs, Prompt, Sampling
from adjudge.prompts.asking import Answer, Fillable, NoVerdict, Retry, ask, ask_labels, ask_often, cost_of
from adjudge.prompts.reading import Blank, LabelReader, keyed_lines
from adjudge.prompts.template import Rendered

READ = LabelReader(form="[[{answer}]]", labels=("yes", "no"))
WARM = Sampling(temperature=1.0)
FORCED = Retry(attempts=1, forced=0.5)


def prompt(text: str) -> Rendered:
    return Rendered(messages=({"role": "user", "content": text},), nonce="0a1b2c3d")


def run(engine: ScriptedEngine, *texts: str, sampling: Sampling = WARM, **options: Any) -> list[Any]:
    return asyncio.run(ask(engine, [prompt(text) for text in texts], sampling, READ, **options))


def test_only_what_could_not_be_read_is_asked_again() -> None:
    engine = ScriptedEngine(lambda prompt, index: f"[[{'yes' if index >= int(text_of(prompt)) else 'perhaps'}]]")
    answers = run(engine, "0", "2", "1", "7")
    assert [answer.value if isinstance(answer, Answer) else answer.reason for answer in answers] == [
        "yes",
        "yes",
        "yes",
        "judge_unparsable",
    ]
    assert [answer.attempts for answer in answers] == [1, 3, 2, 3]
    assert [text_of(one) for one in engine.asked] == ["0", "2", "1", "7", "2", "1", "7", "2", "7"]
    assert [sampling.seed for sampling in engine.samplings] == [0, 1, 2]
    assert [answer.cost.prompt_tokens for answer in answers] == [10, 30, 20, 30]
    assert isinstance(answers[3], NoVerdict)
    assert answers[3].text == "[[perhaps]]"


def test_a_cold_model_is_not_asked_twice_unless_that_changes_something() -> None:
    for retry, temperatures in (
        (Retry(), [0.0]),
        (Retry(attempts=2, temperature=0.7), [0.0, 0.7]),
        (Retry(attempts=2, nudge="go on"), [0.0, 0.0]),
    ):
        engine = ScriptedEngine(lambda prompt, index: "hm")
        run(engine, "x", sampling=Sampling(), retry=retry)
        assert [sampling.temperature for sampling in engine.samplings] == temperatures


def test_a_nudge_goes_behind_the_models_own_words() -> None:
    engine = ScriptedEngine(lambda prompt, index: "[[no]]" if "go on" in text_of(prompt) else "thus <|im_end|>")
    (answer,) = run(engine, "x", sampling=Sampling(), retry=Retry(attempts=2, nudge="go on"))
    assert answer.value == "no"
    assert [(turn["role"], turn["content"]) for turn in engine.asked[1]] == [  # type: ignore[index]
        ("user", "x"),
        ("assistant", "thus <·|im_end|>"),
        ("user", "go on"),
    ]


def test_what_was_cut_off_is_not_read() -> None:
    cut = Completion(text="[[yes]] would be wrong, because", finish_reason="length", tokens=9)
    engine = ScriptedEngine(lambda prompt, index: cut)
    (answer,) = run(engine, "x")
    assert (answer.reason, answer.attempts) == ("judge_truncated", 3)
    engine = ScriptedEngine(lambda prompt, index: "[[no]]" if index else cut)
    (answer,) = run(engine, "x")
    assert answer.value == "no"


@pytest.mark.parametrize("finish", ["stop", "eos_token", "end_turn", "stop_sequence", "FinishReason.STOP", "COMPLETE"])
def test_an_answer_that_the_model_ended_is_read(finish: str) -> None:
    (answer,) = run(ScriptedEngine(lambda prompt, index: Completion(text="[[yes]]", finish_reason=finish)), "x")
    assert answer.value == "yes"


@pytest.mark.parametrize("finish", ["content_filter", "refusal", "tool_calls", "SAFETY", "", "unknown"])
def test_an_answer_that_something_else_ended_is_neither_read_nor_asked_for(finish: str) -> None:
    engine = Choosing(lambda choice: choice[0], 0.9)
    engine.answers = lambda prompt, index: Completion(text="[[yes]]", finish_reason=finish)
    (found,) = run(engine, "x", retry=FORCED)
    assert (found.reason, len(engine.asked)) == ("judge_unparsable", 1)
    assert f"finish_reason {finish!r}" in found.detail


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("<think>[[yes]]? No, wrong.</think>\n[[no]]", "no"),
        ("[[yes]]? No, wrong.</think>\n[[no]]", "no"),
        ("<think>[[yes]]? No, wrong.</think>\nI cannot say.", None),
        ("<think>[[yes]], but", None),
    ],
)
def test_a_draft_of_a_verdict_in_the_thinking_is_none(text: str, verdict: str | None) -> None:
    (answer,) = run(ScriptedEngine(lambda prompt, index: text), "x")
    assert getattr(answer, "value", None) == verdict


def test_a_thinker_that_came_to_no_end_is_asked_with_its_thoughts_in_view() -> None:
    engine = Choosing(lambda choice: choice[-1], 0.9)
    engine.answers = lambda prompt, index: Completion(text="<think>[[yes]], but", finish_reason="length")
    (answer,) = run(engine, "x", retry=FORCED)
    assert (answer.value, answer.forced) == ("no", True)
    assert "<·think>[[yes]], but" in text_of(engine.asked[-1])


@pytest.mark.parametrize(
    "said",
    [
        Completion(text="", finish_reason="stop"),
        Completion(text=" \n", finish_reason="stop"),
        Completion(text="", finish_reason="length", reasoning="hm"),
        Completion(text="", finish_reason="stop", reasoning="[[yes]]"),
    ],
)
def test_a_model_that_said_nothing_has_no_verdict(said: Completion) -> None:
    engine = Choosing(lambda choice: choice[0], 0.9)
    engine.answers = lambda prompt, index: said
    (found,) = run(engine, "x", retry=FORCED)
    assert isinstance(found, NoVerdict)
    assert len(engine.asked) == 1


def test_a_fault_is_passed_on_and_costs_nobody_elses_answer() -> None:
    engine = ScriptedEngine(lambda prompt, index: fault("engine_timeout") if text_of(prompt) == "x" else "[[yes]]")
    lost, answer = run(engine, "x", "y")
    assert lost == Fault(reason="engine_timeout", detail="scripted")
    assert answer.value == "yes"
    assert len(engine.asked) == 2, "what an engine could not do, it has tried itself"


def test_what_was_paid_before_a_fault_is_counted() -> None:
    engine = ScriptedEngine(lambda prompt, index: fault("engine_error") if index else "hm")
    (lost,) = run(engine, "x")
    assert (lost.reason, lost.cost.prompt_tokens) == ("engine_error", 10)
    several = asyncio.run(ask_often(engine, [prompt("x")], Sampling(n=2, temperature=1.0), READ))
    assert cost_of(several[0]).prompt_tokens == 0


def test_equal_prompts_are_asked_once_and_paid_once() -> None:
    engine = ScriptedEngine(lambda prompt, index: "[[yes]] sure")
    answers = run(engine, "x", "y", "x")
    assert len(engine.asked) == 2
    assert [answer.value for answer in answers] == ["yes"] * 3
    assert cost_of(answers).prompt_tokens == 20
    assert cost_of(answers).completion_tokens == 4


def test_several_verdicts_are_filled_up_with_fresh_seeds() -> None:
    engine = ScriptedEngine(lambda prompt, index: "[[yes]]" if index in (1, 4) else "hm")
    several = asyncio.run(ask_often(engine, [prompt("x")], Sampling(n=3, temperature=1.0), READ))
    assert [type(answer) for answer in several[0]] == [Answer, Answer, NoVerdict]
    assert [(sampling.n, sampling.seed) for sampling in engine.samplings] == [(3, 0), (2, 3), (1, 6)]


def test_what_a_prompt_gets_does_not_depend_on_the_others() -> None:
    def answers(prompt: Prompt, index: int) -> str:
        return f"[[{'yes' if index == len(text_of(prompt)) % 3 else 'hm'}]] {index}"

    texts = ["a", "bb", "ccc", "dddd"]
    together = run(ScriptedEngine(answers), *texts)
    alone = [run(ScriptedEngine(answers), text)[0] for text in texts]
    assert together == alone


def test_labels_are_asked_once_for_each_prompt() -> None:
    engine = ScriptedEngine(labels=lambda prompt: fault() if text_of(prompt) == "z" else {"yes": 0.25, "no": 0.5})
    labels = {"yes": ("yes",), "no": ("no",)}
    found = asyncio.run(ask_labels(engine, [prompt(text) for text in ("x", "z", "x")], labels))
    assert len(engine.asked) == 2
    assert isinstance(found[1], Fault)
    first, copy = found[0], found[2]
    assert isinstance(first, LabelLogprobs)
    assert isinstance(copy, LabelLogprobs)
    assert (first.mass, first.cost.prompt_tokens) == (0.75, 10)
    assert (copy.logprobs, copy.cost.prompt_tokens) == (first.logprobs, 0)


def test_an_engine_that_loses_results_is_not_believed() -> None:
    class Losing(ScriptedEngine):
        async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
            return (await super().generate(prompts, sampling))[:-1]

    with pytest.raises(RuntimeError, match="gave 1 results for 2 prompts"):
        run(Losing(lambda prompt, index: "[[yes]]"), "x", "y")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"attempts": 0}, "at least once"), ({"temperature": 0.0}, "must be above 0"), ({"temperature": -1.0}, "above 0")],
)
def test_retries_that_mean_nothing(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Retry(**options)


def test_one_verdict_each_is_one() -> None:
    with pytest.raises(ValueError, match="use ask_often"):
        run(ScriptedEngine(), "x", sampling=Sampling(n=2, temperature=1.0))


def test_a_model_that_gave_no_verdict_is_asked_for_it_alone() -> None:
    engine = Choosing(lambda choice: choice[-1], 0.9)
    (answer,) = run(engine, "x", retry=FORCED)
    assert (answer.value, answer.forced, answer.mass, answer.attempts) == ("no", True, 0.9, 1)
    assert answer.text == "hm <|im_end|>\n\n[[no]]"
    assert answer.cost.prompt_tokens == 17
    assert engine.samplings[-1].choice == ("yes", "no")
    assert engine.samplings[-1].temperature == 0
    turns: Any = engine.asked[-1]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert turns[1]["content"] == "hm <·|im_end|>"  # its own words may hold what the response smuggled into them
    assert turns[2]["content"] == "So is it yes or no? Answer with that alone."


@pytest.mark.parametrize(
    ("retry", "mass", "chooses"),
    [(Retry(attempts=1), 0.9, True), (FORCED, 0.49, True), (FORCED, 0.9, False)],
)
def test_a_verdict_is_not_forced_unasked_nor_out_of_a_model_that_would_say_something_else(
    retry: Retry, mass: float, chooses: bool
) -> None:
    engine = Choosing(lambda choice: choice[0], mass)
    engine.chooses = chooses
    (found,) = run(engine, "x", retry=retry)
    assert isinstance(found, NoVerdict)
    assert found.reason == "judge_unparsable"
    assert ("probability 0.49 (< 0.5)" in found.detail) == (mass < 0.5)


def test_a_server_that_does_not_tell_the_mass_is_trusted_and_one_that_refuses_is_not() -> None:
    (known,) = run(Choosing(lambda choice: choice[0], None), "x", retry=FORCED)
    assert (known.value, known.forced, known.mass) == ("yes", True, None)
    (unknown,) = run(Choosing(lambda choice: "I cannot say.", None), "x", retry=FORCED)
    assert isinstance(unknown, NoVerdict)


def test_what_a_model_did_say_is_not_asked_for_again() -> None:
    engine = Choosing(lambda choice: choice[0], 1.0)
    engine.answers = lambda prompt, index: "[[no]]"
    (answer,) = run(engine, "x", retry=FORCED)
    assert (answer.value, answer.forced, len(engine.asked)) == ("no", False, 1)


def test_several_places_are_filled_one_by_one_and_the_least_mass_counts() -> None:
    masses = iter([0.9, 0.6])
    engine = Choosing(lambda choice: choice[0], 1.0)
    names = {"1": ("yes", "no"), "2": ("good", "bad")}

    def read(text: str, nonce: str = "", /) -> dict[str, str] | None:
        engine.mass = 0.0
        return keyed_lines(text, nonce, tuple(names), ("yes", "no", "good", "bad"))

    def pick(choice: Sequence[str]) -> str:
        engine.mass = next(masses)
        return choice[0]

    engine.pick = pick
    reader = Fillable(read, lambda nonce: Blank.of_lines(nonce, names))
    (answer,) = asyncio.run(ask(engine, [prompt("x")], Sampling(), reader, retry=FORCED))
    assert isinstance(answer, Answer)
    assert answer.value == {"1": "yes", "2": "good"}
    assert answer.mass == 0.6
    turns: Any = engine.asked[-1]
    assert turns[2]["content"] == "So is what stands behind `0a1b2c3d 2:` good or bad? Answer with that alone."
    assert [one.choice for one in engine.samplings[1:]] == [("yes", "no"), ("good", "bad")]


def test_half_a_verdict_in_the_text_does_not_spoil_the_one_that_is_asked_for() -> None:
    engine = Choosing(lambda choice: choice[0], 0.9)
    engine.answers = lambda prompt, index: "0a1b2c3d 1"
    read = Fillable(
        lambda text, nonce="", /: keyed_lines(text, "0a1b2c3d", ("1",), ("yes", "no")),
        lambda nonce: Blank.of_lines("0a1b2c3d", {"1": ("yes", "no")}),
    )
    (answer,) = asyncio.run(ask(engine, [prompt("x")], Sampling(), read, retry=FORCED))
    assert isinstance(answer, Answer)
    assert (answer.value, answer.forced) == ({"1": "yes"}, True)


def test_places_that_must_differ_leave_the_last_no_choice() -> None:
    engine = Choosing(lambda choice: choice[-1], 0.8)
    numbers = ("1", "2", "3")
    blank = Blank.of("Ranking {nonce}: {answer}", "0a1b2c3d", [numbers] * 3, between=" > ", distinct=True)
    reader = Fillable(lambda text, nonce="", /: text if "Ranking" in text else None, lambda nonce: blank)
    (answer,) = asyncio.run(ask(engine, [prompt("x")], Sampling(), reader, retry=FORCED))
    assert isinstance(answer, Answer)
    assert answer.text.endswith("Ranking 0a1b2c3d: 3 > 2 > 1")
    assert len(engine.samplings) == 3


@pytest.mark.parametrize(("ending", "known"), [("stop", True), ("length", False)])
def test_a_place_without_choices_takes_one_line_of_words(ending: str, known: bool) -> None:
    engine = Choosing(lambda choice: choice[0], 0.9)
    alone = Completion(text=' "Tacoma" ', finish_reason=ending)
    engine.answers = lambda prompt, index: "Tacoma" if len(prompt) == 1 else alone
    read = Fillable(
        lambda text, nonce="", /: text.partition("Answer 0a1b2c3d: ")[2] or None,
        lambda nonce: Blank.of("Answer {nonce}: {answer}", nonce, [()]),
    )
    (answer,) = asyncio.run(ask(engine, [prompt("x")], Sampling(), read, retry=FORCED))
    turns: Any = engine.asked[-1]
    assert turns[2]["content"] == "So what stands behind `Answer 0a1b2c3d:`? Answer with that alone."
    assert engine.samplings[-1].stop == ("\n",)
    said = (answer.value, answer.forced, answer.mass) if isinstance(answer, Answer) else None
    assert said == (("Tacoma", True, None) if known else None)


def test_one_sample_that_cannot_be_forced_does_not_take_the_others_with_it() -> None:
    engine = Choosing(lambda choice: choice[0], 0.9)
    masses = iter([0.9, 0.1])

    def pick(choice: Sequence[str]) -> str:
        engine.mass = next(masses)
        return choice[0]

    engine.pick = pick
    sampling = Sampling(n=2, temperature=1.0)
    (found,) = asyncio.run(ask_often(engine, [prompt("x")], sampling, READ, retry=FORCED))
    assert [type(one) for one in found] == [Answer, NoVerdict]
