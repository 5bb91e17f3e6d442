"""TTRL's pseudo-label: the group's most frequent answer, and what a policy may try with it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from adjudge.protocol import Cost, Sample, Score
from adjudge.scoring import registry
from adjudge.verifiers.text.majority_vote import MajorityVote


def scored(*responses: str, **options: Any) -> list[Score]:
    scorer = registry.load({"majority_vote": {"scorer": "math", **options}})
    return asyncio.run(scorer.score([Sample(prompt="q", response=said, group="g") for said in responses]))


def boxed(*answers: str) -> list[str]:
    return [rf"So \boxed{{{answer}}}." for answer in answers]


def test_answers_that_are_equal_as_mathematics_vote_together() -> None:
    scores = scored(*boxed("0.5", "7", r"\frac{1}{2}", "7", "1/2"))
    assert [score.value for score in scores] == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert scores[0].evidence["votes"] == {"7": 2, r"\frac{1}{2}": 3}
    assert scores[0].evidence["reference"] == r"\frac{1}{2}"


@pytest.mark.parametrize(
    ("answers", "options", "wanted"),
    [
        ((r"5\text{ cm}", "5", r"5\text{ m}"), {}, [None, None, None]),
        ((r"5\text{ cm}", r"5\text{ cm}", "5", r"5\text{ m}", r"5\text{ m}"), {}, [None] * 5),
        ((r"5\text{ cm}", r"5\text{ cm}", "5", r"5\text{ m}"), {}, [1.0, 1.0, 1.0, 0.0]),
        (("1.0", "1.1", "1.2"), {"scorer": {"math": {"abs_tol": 0.1}}}, [None, None, None]),
        (("1/3", "0.333333", "0.3333334"), {"scorer": {"math": {"rel_tol": 1e-6}}}, None),
        (("a b c", "a b", "b c"), {"scorer": {"token_f1": {"where": "boxed"}}, "right": 0.7}, None),
        (("{{", "4", "5", "4", "5"), {}, None),
    ],
)
def test_the_order_of_the_responses_decides_nothing(
    answers: tuple[str, ...], options: dict[str, Any], wanted: list[float | None] | None
) -> None:
    """Though "equal" is not transitive: 5 equals 5 cm and 5 m, 1.1 equals 1.0 and 1.2."""
    found = set()
    orders = itertools.permutations(range(len(answers)))
    for order in {tuple(answers[at] for at in order): order for order in orders}.values():
        scores = scored(*boxed(*(answers[at] for at in order)), where="boxed", **options)
        told = sorted((at, score.value, str(score.evidence)) for at, score in zip(order, scores, strict=True))
        found.add(repr(told))
        if wanted is not None:
            assert [value for _, value, _ in told] == wanted
    assert len(found) == 1


def test_the_samples_own_reference_is_not_looked_at() -> None:
    scorer = registry.load("ttrl")
    samples = [Sample(prompt="q", response=said, reference="7", group="g") for said in boxed("3", "3", "7")]
    assert [score.value for score in asyncio.run(scorer.score(samples))] == [1.0, 1.0, 0.0]


def test_near_texts_are_one_camp_where_the_scorer_says_so() -> None:
    long = "all of these many words are the same in two of three texts here " * 5
    near = {"scorer": {"token_f1": {"where": "response"}}, "where": "response", "right": 0.9}
    scores = scored(long, "something else", long + "indeed", **near)
    assert [round(score.value or 0.0, 1) for score in scores] == [1.0, 0.0, 1.0]
    assert [score.status for score in scored(long, long + "4", where="auto")] == ["abstained", "abstained"]


def test_the_preset_lets_boxes_alone_vote() -> None:
    samples = [Sample(prompt="q", response=said, group="g") for said in ("The answer is 4.", "The answer is 4.")]
    assert {score.status for score in asyncio.run(registry.load("ttrl").score(samples))} == {"abstained"}


def test_groups_do_not_vote_for_each_other() -> None:
    scorer = registry.load("ttrl")
    rows = [("a", "1"), ("b", "2"), ("a", "1"), ("b", "1"), ("b", "2")]
    samples = [Sample(prompt="q", response=boxed(answer)[0], group=group) for group, answer in rows]
    assert [score.value for score in asyncio.run(scorer.score(samples))] == [1.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("responses", [boxed("1", "2"), ["", "  "], ["<think>never done"], [r"\boxed{1} or \boxed{2}"]])
def test_no_majority_is_no_number(responses: list[str]) -> None:
    assert {(score.value, score.status, score.reason) for score in scored(*responses, where="boxed")} == {
        (None, "abstained", "low_confidence")
    }


@pytest.mark.parametrize(
    ("attack", "responses", "wanted"),
    [
        ("padding", [*boxed("4", "4"), "x " * 900 + boxed("5")[0]], [1.0, 1.0, 0.0]),
        ("empty answers", [*boxed("4"), "", "", ""], [1.0, 0.0, 0.0, 0.0]),
        ("unfinished ones", [*boxed("4"), r"<think>\boxed{5}", r"<think>\boxed{5}"], [1.0, 0.0, 0.0]),
        ("several answers", [*boxed("4"), *[r"\boxed{5} or \boxed{6}"] * 2], [1.0, 0.0, 0.0]),
        ("the same text without a box", [*boxed("4"), "five", "five"], [1.0, 0.0, 0.0]),
        ("open: all the same wrong answer, as TTRL itself collapses", boxed("5", "5", "5"), [1.0, 1.0, 1.0]),
        ("honest: one alone", boxed("4"), [1.0]),
    ],
)
def test_attacks(attack: str, responses: list[str], wanted: list[float]) -> None:
    assert [score.value for score in scored(*responses, where="boxed")] == wanted, attack


class Judge:
    """Says that every answer is every other one, or that it is down."""

    name = "judge"
    fingerprint = "judge:1"
    needs_reference = True

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        cost = Cost(prompt_tokens=1)
        made = [Score.failed(self.fault) if self.fault else Score.scored(1.0) for _ in samples]
        return [Score(value=one.value, status=one.status, reason=one.reason, cost=cost) for one in made]


@pytest.mark.parametrize(("fault", "status", "value"), [("", "scored", 1.0), ("engine_unavailable", "failed", None)])
def test_a_vote_that_could_not_be_asked_for_is_unknown_and_every_question_costs(
    fault: str, status: str, value: float | None
) -> None:
    scorer = MajorityVote(scorer=Judge(fault))
    scores = asyncio.run(scorer.score([Sample(prompt="q", response=said, group="g") for said in boxed("1", "2")]))
    assert [(score.status, score.value) for score in scores] == [(status, value)] * 2
    assert sum(score.cost.prompt_tokens for score in scores) == (2 if fault else 4)


def test_wants_a_group_and_no_reference() -> None:
    scorer: Any = registry.load("ttrl")
    scorer.validate(Sample(prompt="q", response="4", group="g"))
    assert scorer.groupwise
    with pytest.raises(ValueError, match="group"):
        scorer.validate(Sample(prompt="q", response="4"))
    (alone,) = asyncio.run(scorer.score([Sample(prompt="q", response="4")]))
    assert alone.reason == "bad_sample"
    with pytest.raises(ValueError, match="responses with an answer"):
        registry.load({"majority_vote": {"scorer": "kimi_k15_length"}})
