"""IGPO: what each turn adds, the terminal reward, and turns that try to earn by being many."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engines.scripted import fault
from tests.reward_models.generative.forced_engine import ForcedEngine, turn_of

from adjudge.engines.interface import Fault, Prompt
from adjudge.protocol import Sample, Score, Scorer
from adjudge.reward_models.generative.information_gain import InformationGain
from adjudge.scoring import registry

SEARCH = {"role": "assistant", "content": "I look for it. <search>2+2</search>"}
FOUND = {"role": "tool", "content": "It is four."}
IDLE = [{"role": "assistant", "content": "I look again."}, {"role": "tool", "content": "Nothing."}]
ANSWER = {"role": "assistant", "content": "<answer>four</answer>"}
TRAJECTORY = [SEARCH, FOUND, *IDLE, ANSWER]


def chances(prompt: Prompt, text: str) -> Sequence[float]:
    """0.1 for the question alone, 0.6 once the search has found it, a little less with each idle turn."""
    assert not isinstance(prompt, str)
    known = any(turn["content"] == FOUND["content"] for turn in prompt)
    idle = sum(turn["content"] == "Nothing." for turn in prompt)
    return (0.6 - 0.01 * idle,) * 2 if known else (0.1,)


def score(
    response: Any = TRAJECTORY, *, engine: Any = chances, terminal: Any = None, **options: Any
) -> tuple[Score, ForcedEngine]:
    made = ForcedEngine(engine)
    sample = Sample(prompt="2+2?", response=response, reference="four")
    scorer = InformationGain(engine=made, terminal=None if terminal is None else registry.load(terminal), **options)
    return asyncio.run(scorer.score([sample]))[0], made


TERMINAL = {"token_f1": {"where": "tag"}}


def values(one: Score) -> list[Any]:
    return [None if step.value is None else round(step.value, 9) for step in one.steps]


def test_turns_gain_what_they_add_and_the_answer_gets_the_terminal_reward() -> None:
    one, engine = score(terminal=TERMINAL)
    assert values(one) == [0.5, -0.01, 1.0]
    assert [step.label for step in one.steps] == ["gain", "gain", "answer"]
    assert one.value == pytest.approx(0.59 - 0.1 + 1.0)
    assert one.evidence["probabilities"] == pytest.approx([0.1, 0.6, 0.59])
    assert one.parts["terminal"].value == 1.0
    text = "\n".join(turn["content"] for turn in TRAJECTORY if turn["role"] == "assistant")
    assert [text[step.start : step.end] for step in one.steps] == [
        turn["content"] for turn in TRAJECTORY if turn["role"] == "assistant"
    ]
    assert [len(prompt) for prompt, _ in engine.forced] == [2, 4, 6]
    assert all(turn_of(prompt) == "<answer>" and text == "four" for prompt, text in engine.forced)


@pytest.mark.parametrize(
    ("options", "gains"),
    [
        ({}, [0.1, -0.2]),
        ({"gain": "log_ratio"}, [math.log(2), math.log(0.5)]),
        ({"gain": "log_ratio", "pooling": "prod"}, [math.log(4), math.log(0.25)]),
        ({"gain": "log_ratio", "pooling": "min"}, [math.log(2), math.log(0.5)]),
    ],
)
def test_sights_gain_is_one_of_log_probabilities(options: Any, gains: list[float]) -> None:
    told = {0: (0.1, 0.1), 1: (0.2, 0.2), 2: (0.1, 0.1)} if options else {0: (0.3,), 1: (0.4,), 2: (0.2,)}
    one, _ = score(engine=lambda prompt, text: told[sum(turn["role"] == "tool" for turn in prompt)], **options)
    assert [step.value for step in one.steps] == pytest.approx([*gains, None])
    if options:
        nothing, _ = score(engine=lambda prompt, text: (1e-200, 1e-200), **options)
        assert [step.value for step in nothing.steps] == [0.0, 0.0, None]


def test_without_a_terminal_scorer_the_answer_is_not_judged() -> None:
    one, _ = score()
    assert values(one) == [0.5, -0.01, None]
    assert one.value == pytest.approx(0.49)


@pytest.mark.parametrize(
    ("response", "steps", "reason"),
    [
        ([SEARCH, FOUND, {"role": "assistant", "content": "four it is"}], [0.5, -2.0], "no_answer"),
        ([SEARCH, FOUND], [0.5 - 2.0], "no_answer"),
        ([ANSWER, FOUND], [0.5 - 2.0], "no_answer"),
        ([{"role": "assistant", "content": "<answer>five</answer>"}], [0.0], "wrong"),
    ],
    ids=["no answer tag", "ends with a tool", "answers and goes on", "answers at once"],
)
def test_the_last_turn(response: Any, steps: list[float], reason: str) -> None:
    one, _ = score(response, terminal=TERMINAL)
    assert (values(one), one.reason) == (steps, reason)


def test_a_text_is_one_turn() -> None:
    one, engine = score("<answer>four</answer>", terminal=TERMINAL)
    assert (values(one), one.value, len(engine.forced)) == ([1.0], 1.0, 1)


@pytest.mark.parametrize("idle", [0, 1, 5])
def test_idle_turns_earn_nothing(idle: int) -> None:
    """However the trajectory is cut into turns, the sum is the last probability less the first."""
    one, _ = score([SEARCH, FOUND, *IDLE * idle, ANSWER])
    assert one.value == pytest.approx(0.6 - 0.01 * idle - 0.1)
    assert math.fsum(value for value in values(one) if value is not None) == pytest.approx(one.value)


def test_a_turn_that_misleads_and_takes_it_back_earns_nothing_in_sum() -> None:
    table = itertools.cycle([0.1, 0.6, 0.05, 0.6])

    def dip(prompt: Prompt, text: str) -> Sequence[float]:
        return (next(table),)

    one, _ = score([SEARCH, FOUND, *IDLE, *IDLE, ANSWER], engine=dip)
    assert values(one) == [0.5, -0.55, 0.55, None]
    assert one.value == pytest.approx(0.5)


def test_a_terminal_scorer_without_a_number_leaves_the_whole_without() -> None:
    class Broken:
        name = "broken"
        fingerprint = "broken:1"

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            return [Score.failed("engine_timeout") for _ in samples]

    made: Scorer = Broken()
    scorer = InformationGain(engine=ForcedEngine(chances), terminal=made)
    (one,) = asyncio.run(scorer.score([Sample(prompt="2+2?", response=TRAJECTORY, reference="four")]))
    assert (one.status, one.reason) == ("failed", "engine_timeout")
    assert values(one) == [0.5, -0.01, None]


def refusing(bad: Fault, word: str) -> Any:
    def answer(prompt: Prompt, text: str) -> Sequence[float] | Fault:
        assert not isinstance(prompt, str)
        return bad if any(word in turn["content"] for turn in prompt) else (0.5,)

    return answer


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (refusing(fault("engine_error", too_long=True), "four"), (0.0, "too_complex")),
        (refusing(fault("engine_error"), "four"), (0.0, "bad_format")),
        (refusing(fault("engine_error"), ""), (None, "engine_error")),
        (refusing(fault("engine_unavailable"), "four"), (None, "engine_unavailable")),
    ],
    ids=["long", "odd", "everything", "gone"],
)
def test_whose_fault_it_is(engine: Any, expected: Any) -> None:
    one, _ = score(engine=engine)
    assert (one.value, one.reason) == expected


def test_a_trajectory_of_so_many_turns_that_none_fits_scores_0() -> None:
    """Even emptied it does not fit; the question alone does."""
    one, _ = score(engine=lambda prompt, text: fault("engine_error", too_long=True) if len(prompt) > 4 else (0.5,))
    assert (one.value, one.reason) == (0.0, "too_complex")


def test_a_template_without_tools_is_no_fault_of_the_response() -> None:
    def no_tools(prompt: Prompt, text: str) -> Sequence[float] | Fault:
        assert not isinstance(prompt, str)
        return fault("engine_error") if any(turn["role"] == "tool" for turn in prompt) else (0.5,)

    one, _ = score(engine=no_tools)
    assert (one.status, one.reason) == ("failed", "engine_error")


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ([], "no_answer"),
        ([{"role": "tool", "content": "four"}], "no_answer"),
        ([{"role": "assistant", "content": None}], "no_answer"),
        ([{"role": "assistant", "content": 3}], "no_answer"),
        ([{"role": "system", "content": "four"}, ANSWER], "bad_format"),
        (IDLE * 65, "too_complex"),
        ("x " * 200_000, "too_complex"),
    ],
    ids=["nothing", "no turn", "no content", "a number", "a system turn", "many turns", "long"],
)
def test_what_is_no_trajectory_is_not_asked_about(response: Any, reason: str) -> None:
    one, engine = score(response)
    assert (one.value, one.reason, engine.forced) == (0.0, reason, [])


def test_a_spec_names_its_terminal_scorer() -> None:
    path = "adjudge.reward_models.generative.information_gain:InformationGain"
    scorer = registry.load({path: {"engine": ForcedEngine(chances), "terminal": TERMINAL, "malformed": -1.0}})
    (one,) = asyncio.run(scorer.score([Sample(prompt="2+2?", response=TRAJECTORY, reference="four")]))
    assert one.parts["terminal"].provenance.scorer == "token_f1"
    other = registry.load({path: {"engine": ForcedEngine(chances), "terminal": "exact", "malformed": -1.0}})
    assert scorer.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("body", "complaint"),
    [("token_f1", "mapping"), ({"engin": 1}, "no option 'engin'"), ({}, "needs the option 'engine'")],
    ids=["text", "unknown", "no engine"],
)
def test_a_spec_that_is_none(body: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        registry.load({"adjudge.reward_models.generative.information_gain:InformationGain": body})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"terminal": 3}, "give a scorer"),
        ({"malformed": math.nan}, "finite"),
        ({"max_turns": 0}, "whole number, at least 1"),
    ],
    ids=["terminal", "malformed", "turns"],
)
def test_options_that_mean_nothing(options: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        InformationGain(engine=ForcedEngine(chances), **options)
