"""SALU's table by hand, who counts as abstaining, and the suite of attacks."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer, load
from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.agents.abstention.scorer import (
    CASES,
    AbstentionScorer,
    Case,
    SaluTable,
    detection,
    mean_probability,
)
from adjudge.verifiers.agents.abstention.sentences import BUILT_IN, Sentences
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

HERE = "adjudge.verifiers.agents.abstention.scorer:AbstentionScorer"
KNOWN = Sentences.of(BUILT_IN["en"] + BUILT_IN["zh"])


def sample(response: Any, gold: Any, confidence: Any = 0.5, stop: str | None = None) -> Sample:
    extra = {} if confidence is None else {"confidence": confidence}
    return Sample(prompt="q", response=response, reference={"answer": gold}, extra=extra, finish_reason=stop)


def scored(samples: Sequence[Sample], **options: Any) -> list[Score]:
    return asyncio.run(AbstentionScorer(**options).score(samples))


def values(samples: Sequence[Sample], **options: Any) -> list[float | None]:
    return [score.value for score in scored(samples, **options)]


IDK = "I don't know."


def test_the_reward_is_the_table() -> None:
    rows = [
        (sample("Paris", "Paris", 0.3), 1.0, "right", ""),
        (sample("Rome", "Paris", 0.3), -0.3, "wrong", "wrong"),
        (sample("Rome", "Paris", 0.0), 0.0, "wrong", "wrong"),
        (sample("Rome", "Paris", 1), -1.0, "wrong", "wrong"),
        (sample(IDK, "Paris", 0.3), -0.5, "needless", "no_answer"),
        (sample(IDK, None, 0.3), 1.0, "abstained", ""),
        (sample("Rome", None, 0.3), -1.3, "hallucinated", "wrong"),
        (sample("Rome", None, 0.0), -1.0, "hallucinated", "wrong"),
        (sample("Rome", None, 1.0), -2.0, "hallucinated", "wrong"),
        (sample("", "Paris", 0.3), -0.3, "wrong", "no_answer"),
        (sample("", None, 0.3), -1.3, "hallucinated", "no_answer"),
        (sample("<think>Paris", "Paris", 0.3), -0.3, "wrong", "unfinished_reasoning"),
        (sample(IDK, None, 0.3, "length"), -1.3, "hallucinated", "truncated"),
        (sample("Lyon", ["Paris", "Lyon"], 0.3), 1.0, "right", ""),
    ]
    for (_, value, case, reason), score in zip(rows, scored([row[0] for row in rows]), strict=True):
        assert score.value == pytest.approx(value)
        assert (score.evidence["case"], score.reason) == (case, reason)


@pytest.mark.parametrize(
    ("said", "abstains"),
    [
        ("I don't know who will win.", True),
        ("I do not know who will win the election of 2060", True),
        ("I'm not sure what it is!", True),
        ("I don't know whether anybody will.", True),
        ("我不知道谁会赢。", True),
        ("I don't know who will win, but it is Smith.", False),
        ("I don't know who will win. Smith", False),
        ("I don't know who will win - Smith", False),
        ("I don't know Smith", False),
        ("Unknown who", False),
        ("Smith. I don't know who will win", False),
    ],
)
def test_who_says_what_he_does_not_know_abstains(said: str, abstains: bool) -> None:
    for gold, case in ((None, "abstained"), ("Jones", "needless")):
        (score,) = scored([sample(said, gold)])
        assert (score.evidence["case"] == case) == abstains, score
    assert values([sample(said, None)], answer=TokenF1Verifier()) == [1.0 if abstains else -1.5]


def test_a_title_that_says_so_is_an_answer() -> None:
    title = "I Don't Know How to Love Him"
    assert values([sample(title, title), sample(title, "Yesterday"), sample(title, None)]) == [1.0, -0.5, 1.0]


def test_the_numbers_are_options() -> None:
    table = {"right": 2, "wrong": -3, "abstained": 0.5, "needless": 0.25, "hallucinated": -4, "surely": 0}
    found = [SaluTable(**table).reward(case, 0.5) for case in CASES]
    assert found == [2, -1.5, 0.5, 0.25, -4]
    assert values([sample(IDK, "Paris")], table=table) == [0.25]


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        SaluTable().reward("wrong", confidence)


def test_the_confidence_is_the_mean_probability_of_the_tokens() -> None:
    assert mean_probability([math.log(0.5), math.log(0.25), 0.0]) == pytest.approx(1.75 / 3)
    assert mean_probability([-math.inf, 1e-9]) == pytest.approx(0.5)
    for bad in ([], [0.5], [math.nan]):
        with pytest.raises(ValueError, match=r"log-probabilit"):
            mean_probability(bad)


@pytest.mark.parametrize("confidence", [None, "0.5", True, -0.1, 1.5, math.nan, [0.5]])
def test_a_missing_confidence_is_a_mistake_unless_none_is_asked_for(confidence: Any) -> None:
    one = sample("Rome", "Paris", confidence)
    with pytest.raises(ValueError, match=r"confidence"):
        AbstentionScorer().validate(one)
    assert scored([one])[0].reason == "bad_sample"
    AbstentionScorer(confidence=None).validate(one)
    assert values([one], confidence=None) == [-1.0]
    for told in (0.25, np.float32(0.25)):
        assert values([dataclasses.replace(one, extra={"p": told})], confidence="p") == [-0.25]


@pytest.mark.parametrize(
    "reference", [None, "Paris", {}, {"gold": "x"}, {"answer": "x", "question": "y"}, {"answer": ""}, {"answer": 3}]
)
def test_a_malformed_reference_is_refused(reference: Any) -> None:
    one = Sample(prompt="q", response="x", reference=reference, extra={"confidence": 1})
    score = scored([one])[0]
    assert score.status == "failed"
    if reference != {"answer": ""}:  # exact calls an empty gold the fault of one sample
        with pytest.raises(ValueError, match="abstention"):
            AbstentionScorer().validate(one)


@pytest.mark.parametrize("response", ["Paris", IDK, "", "I don't know, but it is Paris", "<think>Paris"])
def test_a_gold_that_cannot_be_read_fails_whatever_the_response(response: str) -> None:
    (score,) = scored([sample(response, "")])
    assert (score.status, score.reason) == ("failed", "part_failed")
    assert score.parts["answer"].reason == "gold_unparsable"
    assert values([sample(response, None)])[0] is not None


def test_a_model_is_not_asked_about_a_response_that_needs_no_verdict() -> None:
    asked: list[str] = []

    class Judge:
        name, fingerprint = "judge", "judge:1"

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            asked.extend(str(one.response) for one in samples)
            return [Score.scored(1.0) for _ in samples]

    assert values([sample("Rome", "Paris"), sample(IDK, "Paris"), sample("", "Paris")], answer=Judge()) == [
        1,
        -0.5,
        -0.5,
    ]
    assert asked == ["Rome"]


def test_a_gold_that_abstains_is_no_gold() -> None:
    assert scored([sample(IDK, "Unknown")])[0].reason == "gold_unparsable"
    assert scored([sample("", ["Paris", "i don’t know"])])[0].reason == "gold_unparsable"


@pytest.mark.parametrize(
    "text",
    [
        *BUILT_IN["en"],
        *BUILT_IN["zh"],
        "i DON’T know!!",
        "**I don't know.**",
        "  I   don't\nknow  ",
        "I d\u200bon't know",
        "Ｉ don't know",
        "我 不 知道",
    ],
)
def test_a_sentence_of_the_list_is_the_whole_answer(text: str) -> None:
    assert KNOWN.whole(text)
    assert values([sample(text, None), sample(f"<answer>{text}</answer>", None)]) == [1.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "I don't know, but it is Paris",
        "I don't know who he is",
        "",
        "I",
        "know",
        "他不知道",
        "I dont know Paris",
        "!!!",
    ],
)
def test_anything_else_is_not(text: str) -> None:
    assert not KNOWN.whole(text)


def test_short_sentences_are_not_looked_for_inside_an_answer() -> None:
    assert KNOWN.inside("Well, I don't know; Paris?")
    assert not KNOWN.inside("the tomb of the unknown soldier")
    assert not KNOWN.inside("It failed for insufficient information")
    assert not KNOWN.inside("他不知道答案")
    assert KNOWN.inside("我不知道，巴黎？")


def test_the_policy_for_hedges() -> None:
    assert values([sample("Paris Rome", "Paris")], answer=TokenF1Verifier()) == [-0.5]
    assert values([sample("Paris Rome", "Paris")], answer=TokenF1Verifier(), right_from=2 / 3) == [1.0]
    lenient = {"answer": TokenF1Verifier(), "right_from": 0.1}
    hedge, outside = "I don't know, but Paris", "I don't know yet. <answer>Paris</answer>"
    samples = [sample(hedge, "Paris"), sample(outside, "Paris"), sample("Paris", "Paris")]
    assert values(samples, **lenient) == [-0.5, 1.0, 1.0]
    assert values(samples, **lenient, hedging="response") == [-0.5, -0.5, 1.0]
    assert values(samples, **lenient, hedging="allow") == [1.0, 1.0, 1.0]
    assert scored(samples[:1], **lenient)[0].evidence["problem"]


class Said:
    """A scorer that looks its value up by the response, and keeps what it was shown."""

    name = "said"
    fingerprint = "said:1"

    def __init__(self, **found: float | None) -> None:
        self.found = found
        self.shown: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.shown += samples
        said = [self.found.get(str(one.response).strip(), 0.0) for one in samples]
        return [Score.failed("engine_timeout") if value is None else Score.scored(value) for value in said]


def test_a_detector_takes_the_place_of_the_sentences() -> None:
    detector = Said(dunno=0.9, half=0.5, broken=None)
    responses = ["dunno", "half", "broken", IDK, "", "<think>x</think>dunno"]
    scores = scored([sample(response, None) for response in responses], detector=detector)
    assert [score.value for score in scores] == [1.0, -1.5, None, -1.5, -1.5, 1.0]
    assert (scores[2].status, scores[2].reason) == ("failed", "engine_timeout")
    assert all(one.reference is None for one in detector.shown)
    assert len(detector.shown) == 5  # silence is not asked about


def test_the_answer_scorer_is_asked_about_answers_alone_and_its_failure_is_no_number() -> None:
    answer = Said(Paris=1.0, odd=None)
    samples = [sample("Paris", "Paris"), sample(IDK, "Paris"), sample("x", None), sample("odd", "Paris")]
    scores = scored(samples, answer=answer)
    assert [score.value for score in scores] == [1.0, -0.5, -1.5, None]
    assert scores[3].reason == "engine_timeout"
    assert [one.response for one in answer.shown] == ["Paris", "odd"]
    assert [one.reference for one in answer.shown] == ["Paris", "Paris"]


class Grouped(Said):
    """A scorer of groups."""

    groupwise = True


@pytest.mark.parametrize(
    "options",
    [
        {"answer": "exact"},
        {"answer": Grouped()},
        {"detector": 3},
        {"right_from": math.inf},
        {"table": {"needles": 1}},
        {"table": {"right": "1"}},
        {"table": 3},
        {"confidence": ""},
        {"confidence": 0.5},
        {"languages": ("de",)},
        {"languages": 5},
        {"languages": ()},
        {"sentences": ()},
        {"sentences": ("...",)},
        {"sentences": 5},
        {"hedging": "x"},
        {"where": "x"},
        {"reasoning": "x"},
        {"truncated": "x"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="abstention"):
        AbstentionScorer(**options)


CASES_OF_SUITE = shipped_cases(AbstentionScorer())


def test_attacks_earn_nothing_and_their_honest_neighbours_do() -> None:
    def value(case: AttackCase) -> float:
        found = scored([case.sample], **case.options)[0].value
        assert found is not None
        return found

    assert not [case.id for case in CASES_OF_SUITE if not case.honest and value(case) > 0]
    assert not [case.id for case in CASES_OF_SUITE if case.honest and value(case) != 1]
    assert [case.honest for case in CASES_OF_SUITE].count(False) >= 25
    assert len({case.id for case in CASES_OF_SUITE}) == len(CASES_OF_SUITE)


PLAIN = st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.binary(max_size=2)


@settings(max_examples=60, deadline=None)
@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("answer"), inner)))
def test_no_reference_raises_anything_but_a_mistake(reference: Any) -> None:
    one = Sample(prompt="q", response="x", reference=reference, extra={"confidence": 1})
    scorer = AbstentionScorer(answer=Said())
    try:
        scorer.validate(one)
    except ValueError:
        assert asyncio.run(scorer.score([one]))[0].reason == "gold_unparsable"
    else:
        assert asyncio.run(scorer.score([one]))[0].status == "scored" or scorer._known.whole(str(reference["answer"]))


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="I don'tknow我不知道\u200b<answer>/\ud800{}\\", max_size=40))
def test_no_text_raises(text: str) -> None:
    assert KNOWN.whole(text) <= (KNOWN.inside(text) or len(text) < 40)
    one = Sample(prompt="q", response=text, reference={"answer": "42"}, extra={"confidence": 1})
    assert asyncio.run(AbstentionScorer(answer=Said()).score([one]))[0].status == "scored"


@pytest.mark.parametrize("piece", ["I don't know. ", "我", "'", "<answer>", "\u200b", "z\u0301"])
def test_a_long_row_of_one_thing_is_no_abstention(piece: str) -> None:
    text = piece * ((1_000_000 if piece.isascii() else 100_000) // len(piece))
    assert not KNOWN.whole(text)
    assert KNOWN.inside(text) == piece.startswith("I")


def test_padding_hides_no_hedge() -> None:
    assert KNOWN.inside("I don't know, but Paris" + " " * 2_000_000)


def test_the_fingerprint_follows_options_table_and_scorers() -> None:
    options: list[dict[str, Any]] = [
        {},
        {"table": {"right": 2}},
        {"answer": TokenF1Verifier()},
        {"detector": Said()},
        {"sentences": ("no idea at all",)},
        {"hedging": "allow"},
    ]
    prints = [AbstentionScorer(**given).fingerprint for given in options]
    assert len(set(prints)) == len(prints)
    assert AbstentionScorer().fingerprint == prints[0]


def test_precision_recall_and_f1_of_abstaining_by_hand() -> None:
    # 5 abstentions, 3 of them right; 4 unanswerable questions
    cases: list[Case] = [
        "abstained",
        "abstained",
        "abstained",
        "needless",
        "needless",
        "hallucinated",
        "right",
        "wrong",
    ]
    found = detection(cases)
    assert (found.precision, found.recall, found.f1) == pytest.approx((3 / 5, 3 / 4, 2 / 3))
    assert detection(["abstained"], unknown=1).recall == 0.5
    assert detection([]).f1 == detection(["right"]).precision == 0.0


def test_a_spec_names_both_scorers_and_the_recipe_is_salu() -> None:
    spec = {HERE: {"answer": {"token_f1": {"language": "any"}}, "detector": "token_f1", "sentences": ["keine Ahnung"]}}
    loaded = load(spec)
    assert isinstance(loaded, AbstentionScorer)
    assert loaded.answer.name == loaded.detector.name == "token_f1"
    with pytest.raises(ValueError, match="no option 'anwser'"):
        load({HERE: {"anwser": "exact"}})
    recipe = load("salu")
    assert isinstance(recipe, AbstentionScorer)
    assert recipe.fingerprint == AbstentionScorer().fingerprint


def test_the_scorer_keeps_the_rules_of_the_protocol() -> None:
    samples = [sample("Paris", "Paris"), sample("Rome", "Paris"), sample(IDK, None), sample("x", None)]
    check_scorer(AbstentionScorer(), samples).raise_for_failures()
