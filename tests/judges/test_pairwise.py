from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, fault, field_of, key_of, text_of

from adjudge.engines.interface import Fault, Prompt
from adjudge.judges.language_judge import Opinion
from adjudge.judges.pairwise import Game, PairwiseJudge, settled
from adjudge.protocol import Sample, Score

SAMPLE = Sample(prompt="Say hello.", response="the response", reference="the other one")


def judged(verdict: Callable[[str, str], str]) -> ScriptedEngine:
    def answer(prompt: Prompt, index: int) -> str:
        return f"Verdict {key_of(prompt)}: {verdict(field_of(prompt, 'response_a'), field_of(prompt, 'response_b'))}"

    return ScriptedEngine(answer)


def longer(first: str, second: str) -> str:
    return "tie" if len(first) == len(second) else "A" if len(first) > len(second) else "B"


def score(engine: ScriptedEngine, sample: Sample = SAMPLE, **options: Any) -> Score:
    return asyncio.run(PairwiseJudge(engine=engine, **options).score([sample]))[0]


def mine(first: str, second: str) -> str:
    return "A" if first == "the response" else "B"


def other(first: str, second: str) -> str:
    return "B" if first == "the response" else "A"


@pytest.mark.parametrize(
    ("verdict", "policy", "value"),
    [
        (mine, "both", 1.0),
        (other, "both", 0.0),
        (lambda first, second: "A", "both", 0.5),
        (lambda first, second: "B", "both", 0.5),
        (lambda first, second: "tie", "both", 0.5),
        (lambda first, second: "A" if first == "the response" else "tie", "both", 0.5),
        (lambda first, second: "A" if first == "the response" else "tie", "average", 0.75),
        (lambda first, second: "A" if first == "the response" else "tie", "sum", 1.0),
        (lambda first, second: "B" if first == "the response" else "tie", "sum", 0.0),
        (lambda first, second: "A", "sum", 0.5),
        (lambda first, second: "A", "average", 0.5),
    ],
)
def test_two_orders_and_what_they_come_to(verdict: Any, policy: Any, value: float) -> None:
    one = score(judged(verdict), policy=policy)
    assert one.value == pytest.approx(value, abs=1e-12)
    assert [game["first"] for game in one.evidence["orders"]] == ["response", "other"]


def test_evidence_counts_the_place_that_won() -> None:
    always_first = score(judged(lambda first, second: "A"))
    assert (always_first.evidence["first_won"], always_first.evidence["consistent"]) == (2, 0)
    fair = score(judged(mine))
    assert (fair.evidence["first_won"], fair.evidence["consistent"], fair.evidence["games"]) == (1, 1, 2)
    assert [game["verdict"] for game in fair.evidence["orders"]] == ["A", "B"]


@pytest.mark.parametrize(
    ("options", "value"),
    [({"tie": 0.2}, 0.2), ({"output": "signed"}, 0.0), ({"tie": 0.0, "output": "signed"}, -1.0)],
)
def test_ties_and_outputs(options: dict[str, Any], value: float) -> None:
    assert score(judged(lambda first, second: "tie"), **options).value == pytest.approx(value, abs=1e-12)


def test_probabilities_give_chances() -> None:
    def labels(prompt: Prompt) -> dict[str, float]:
        if field_of(prompt, "response_a") == "the response":
            return {"A": 0.6, "B": 0.2, "tie": 0.1}
        return {"A": 0.4, "B": 0.5}

    engine = ScriptedEngine(labels=labels)
    expected = ((0.6 + 0.05) / 0.9 + 0.5 / 0.9) / 2
    assert score(engine, readout="probabilities", policy="average").value == pytest.approx(expected, abs=1e-12)
    assert score(engine, readout="probabilities", policy="both").value == 1.0


def game(verdict: dict[str, float], *, response_first: bool = True) -> Game:
    advantages = {"A>>B": 3.0, "A>B": 1.0, "A=B": 0.0, "B>A": -1.0, "B>>A": -3.0}
    return Game(response_first=response_first, opinion=Opinion(shares=verdict), advantages=advantages)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ("A>>B", "B>>A", 1.0),
        ("A>>B", "A>B", 3 / 4),
        ("A>>B", "A>>B", 0.5),
        ("A>>B", "A=B", 3.5 / 4),
        ("A=B", "A=B", 0.5),
        ("B>A", "A>>B", 0.0),
        ("A>B", "A>>B", 1 / 4),
    ],
)
def test_a_clear_win_is_three_games(first: str, second: str, value: float) -> None:
    """The first game shows the response first, the second one shows it second."""
    games = [game({first: 1.0}), game({second: 1.0}, response_first=False)]
    assert settled(games, "weighted", 0.5) == pytest.approx(value, abs=1e-12)


def test_one_order_is_a_coin_that_both_texts_toss() -> None:
    judge = PairwiseJudge(engine=judged(lambda first, second: "A"), orders="one")
    samples = [Sample(prompt="q", response=f"text {n}", reference=f"other {n}") for n in range(200)]
    turned = [Sample(prompt="q", response=f"other {n}", reference=f"text {n}") for n in range(200)]
    values = [one.value for one in asyncio.run(judge.score(samples))]
    assert 70 < sum(value for value in values if value is not None) < 130
    assert [one.value for one in asyncio.run(judge.score(turned))] == [
        1 - value for value in values if value is not None
    ]


def test_equal_responses_tie_without_a_game() -> None:
    engine = judged(mine)
    one = score(engine, Sample(prompt="q", response="same text", reference="<think>hm</think> same text\n"))
    assert (one.value, one.evidence["identical"], engine.asked) == (0.5, True, [])


def test_a_good_answer_can_be_shown() -> None:
    engine = judged(mine)
    score(engine, Sample(prompt="q", response="the response", reference={"response": "x y", "answer": "gold"}))
    assert field_of(engine.asked[0], "reference") == "gold"
    score(engine)
    assert "for comparison" not in text_of(engine.asked[2])


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "",
        " ",
        3,
        {"answer": "x"},
        {"response": "x", "more": 1},
    ],
)
def test_references_without_another_response(reference: Any) -> None:
    one = score(judged(mine), Sample(prompt="q", response="a b", reference=reference))
    assert one.status == "failed"
    assert one.reason in ("bad_sample", "gold_unparsable")


def test_one_order_that_fails_fails_the_pair() -> None:
    def answer(prompt: Prompt, index: int) -> Any:
        if field_of(prompt, "response_a") == "the response":
            return f"Verdict {key_of(prompt)}: A"
        return "no idea"

    one = score(ScriptedEngine(answer))
    assert (one.status, one.reason) == ("failed", "judge_unparsable")


def group(*responses: str, name: str = "g", **more: Any) -> list[Sample]:
    return [Sample(prompt="q", response=response, group=name, **more) for response in responses]


def run(engine: ScriptedEngine, samples: list[Sample], **options: Any) -> list[Score]:
    return asyncio.run(PairwiseJudge(engine=engine, against="group", **options).score(samples))


def test_in_a_group_everybody_meets_everybody() -> None:
    engine = judged(longer)
    scores = run(engine, [*group("a b", "a b c", "a b c d"), *group("x y", "x y z", name="h")])
    assert [one.value for one in scores] == [0.0, 0.5, 1.0, 0.0, 1.0]
    assert len(engine.asked) == 6 + 2, "each ordered pair is one prompt"
    assert sum(one.cost.prompt_tokens for one in scores) == 80
    assert scores[0].evidence["opponents"] == 2
    back = run(judged(longer), [*group("a b c d", "a b c", "a b")])
    assert [one.value for one in back] == [1.0, 0.5, 0.0]


def test_who_says_nothing_loses_to_everybody() -> None:
    scores = run(judged(longer), group("a b", "", "a b c", ":"))
    assert [one.value for one in scores] == [2 / 3, 0.0, 1.0, 0.0]
    assert scores[0].evidence["forfeits"] == 2
    (alone, *_) = run(judged(longer), group("a b", "", ""))
    assert alone.value == 1.0


def test_groups_that_are_none() -> None:
    (alone,) = run(judged(longer), group("a b"))
    assert (alone.status, alone.reason) == ("failed", "group_too_small")
    mixed = [*group("a b"), Sample(prompt="another", response="a b c", group="g")]
    assert [one.reason for one in run(judged(longer), mixed)] == ["bad_sample"] * 2
    with pytest.raises(ValueError, match=re.escape("set Sample.group")):
        PairwiseJudge(engine=ScriptedEngine(), against="group").validate(Sample(prompt="q", response="a b"))


def test_a_text_that_leaves_the_judge_speechless_takes_only_itself_out() -> None:
    """Of four, one makes every verdict unreadable: it fails, and the others are judged by their other games."""

    def answer(prompt: Prompt, index: int) -> str | Fault:
        first, second = field_of(prompt, "response_a"), field_of(prompt, "response_b")
        if "jam" in first + second:
            return "I cannot compare these."
        return f"Verdict {key_of(prompt)}: {longer(first, second)}"

    scores = run(ScriptedEngine(answer), group("a b", "a b c", "a b c d", "jam jam jam"))
    assert [one.value for one in scores] == [0.0, 0.5, 1.0, None]
    assert [one.evidence.get("missing") for one in scores[:3]] == [1, 1, 1]
    assert scores[3].reason == "judge_unparsable"
    failed = run(ScriptedEngine(lambda prompt, index: fault()), group("a b", "a b c"))
    assert [one.reason for one in failed] == ["engine_unavailable"] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"against": "all"}, "against='all'"),
        ({"orders": "three"}, "orders='three'"),
        ({"policy": "vote"}, "policy='vote'"),
        ({"output": "scale"}, "output='scale'"),
        ({"tie": 2}, "tie=2"),
        ({"labels": {"A": 1, "B": 1}}, "one for a loss"),
        ({"labels": ["A", "B"]}, "it must be a mapping"),
        ({"labels": {"A": 1, "a": -1}}, "differ by more than case"),
        ({"template": "judges/mt_bench_pair"}, "as in labels: {A: .., B: .., C: ..}"),
        ({"window": -1}, "the whole text"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        PairwiseJudge(engine=ScriptedEngine(), **options)


def window(holds: int) -> ScriptedEngine:
    """A model that prefers what is longer, and reads two responses of so many characters together at most."""

    def answer(prompt: Prompt, index: int) -> str | Fault:
        shown = [field_of(prompt, f"response_{side}") for side in "ab"]
        if sum(map(len, shown)) > holds:
            return fault("engine_error", "too long", too_long=True)
        return f"Verdict {key_of(prompt)}: {longer(*shown)}"

    return ScriptedEngine(answer)


@pytest.mark.parametrize(
    ("response", "other", "found"),
    [
        ("in short", "x " * 80, (None, "engine_error")),
        ("x " * 80, "in short", (0.0, "too_complex")),
        ("x " * 80 + "y", "x " * 80, (0.0, "too_complex")),
        ("x " * 200, "in short", (0.0, "too_complex")),
        ("in short", "x " * 20, (0.0, "")),
    ],
)
def test_the_longer_of_two_is_to_blame_for_a_prompt_that_is_too_long(response: str, other: str, found: Any) -> None:
    one = score(window(162), Sample(prompt="q", response=response, reference=other))
    assert (one.value, one.reason) == found


def test_in_a_group_long_responses_lose_and_short_ones_play_on_without_them() -> None:
    texts = ["in short", "in very short", "x " * 80, "x " * 80 + "y"]
    samples = [Sample(prompt="q", response=text, group="g") for text in texts]
    scores = asyncio.run(PairwiseJudge(engine=window(162), against="group").score(samples))
    assert [(one.value, one.reason) for one in scores] == [
        (0.0, ""),
        (1.0, ""),
        (0.0, "too_complex"),
        (0.0, "too_complex"),
    ]
    assert [one.evidence.get("fault") for one in scores] == [None, None, "too long", "too long"]


def test_a_fault_of_the_second_order_does_not_hide_what_the_first_cost() -> None:
    def answer(prompt: Prompt, index: int) -> str | Fault:
        ahead = field_of(prompt, "response_a") == "the response"
        return f"Verdict {key_of(prompt)}: A" if ahead else fault("engine_error")

    one = score(ScriptedEngine(answer))
    assert (one.status, one.reason, one.cost.prompt_tokens) == ("failed", "engine_error", 10)
