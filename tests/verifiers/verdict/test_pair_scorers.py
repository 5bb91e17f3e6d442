"""Both orders of a pair, and ratings of its two responses: J1's rewards by hand."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.runtime.contract import is_groupwise
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.verdict.pair_scorer import BothOrdersScorer, ScoreOrderScorer


def verdicts(given: str, swapped: str, *, group: str = "pair") -> list[Sample]:
    """Answers to a pair whose better response is A as given, B when swapped; a letter each, "-" for no verdict."""
    return [
        Sample(
            prompt="Which?",
            response="Hm." if letter == "-" else f"Look.\n<answer>{letter}</answer>",
            reference=gold,
            group=group,
            extra={"order": order},
        )
        for letters, gold, order in ((given, "A", "given"), (swapped, "B", "swapped"))
        for letter in letters
    ]


def ratings(chosen: Sequence[Any], rejected: Sequence[Any], *, group: str = "pair") -> list[Sample]:
    return [
        Sample(prompt="Rate.", response=f"Look.\n<score>{number}</score>", reference=side, group=group)
        for numbers, side in ((chosen, "chosen"), (rejected, "rejected"))
        for number in numbers
    ]


def scored(scorer: Any, samples: Sequence[Sample]) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def values(scorer: Any, samples: Sequence[Sample]) -> list[float | None]:
    return [score.value for score in scored(scorer, samples)]


@pytest.mark.parametrize(
    ("given", "swapped", "expected"),
    [
        ("A", "B", [1, 1]),
        ("A", "A", [0, 0]),  # prefers whatever stands first
        ("B", "B", [0, 0]),
        ("B", "A", [0, 0]),  # consistent, and wrong
        ("A", "-", [0, 0]),
        ("AAB", "BAB", [1, 0, 0, 1, 0, 0]),
    ],
)
def test_a_verdict_pays_if_its_partner_is_right_too(given: str, swapped: str, expected: list[float]) -> None:
    assert values(BothOrdersScorer(), verdicts(given, swapped)) == expected


def test_against_all_a_right_verdict_gets_the_share_of_the_other_order() -> None:
    found = values(BothOrdersScorer(match="all"), verdicts("AAAB", "BAAA"))
    assert found == [0.25, 0.25, 0.25, 0.0, 0.75, 0.0, 0.0, 0.0]


def test_a_share_of_the_verdict_itself_can_be_mixed_in() -> None:
    scores = scored(BothOrdersScorer(verdict_share=0.25), verdicts("AB", "AB"))
    # partners: A with A (first right, second wrong), B with B (first wrong, second right)
    assert [score.value for score in scores] == [0.25, 0.0, 0.0, 0.25]
    assert [score.parts["verdict"].value for score in scores] == [1.0, 0.0, 0.0, 1.0]
    assert [score.parts["consistency"].value for score in scores] == [0.0] * 4
    assert [score.evidence["verdict"] for score in scores] == ["A", "B", "A", "B"]
    assert scores[0].reason == "wrong"
    assert scores[0].provenance.scorer == "verdict_orders"


@pytest.mark.parametrize(
    ("chosen", "rejected", "expected"),
    [
        ([8], [3], [1, 1]),
        ([3], [8], [0, 0]),
        ([5], [5], [0, 0]),
        ([5], ["5.0"], [0, 0]),
        ([9], ["high"], [0, 0]),
        ([9], [11], [0, 0]),
        ([9, 2], [1, 3], [1, 0, 1, 0]),
    ],
)
def test_both_ratings_pay_if_their_order_is_right(chosen: Any, rejected: Any, expected: list[float]) -> None:
    assert values(ScoreOrderScorer(), ratings(chosen, rejected)) == expected


def test_against_all_a_rating_gets_the_share_of_pairs_in_the_right_order() -> None:
    found = values(ScoreOrderScorer(match="all"), ratings([9, 2, 6], [1, 6]))
    expected = [1.0, 0.5, 0.5, 1.0, 1 / 3]
    assert all(math.isclose(one or 0.0, other) for one, other in zip(found, expected, strict=True))


def test_an_answer_without_another_side_is_unknown_and_no_zero() -> None:
    for scorer, samples in (
        (BothOrdersScorer(), verdicts("AA", "B")),
        (ScoreOrderScorer(), ratings([9, 8], [1])),
    ):
        found = scored(scorer, samples)
        assert [score.value for score in found] == [1.0, None, 1.0]
        assert (found[1].status, found[1].reason) == ("failed", "cohort_incomplete")


def test_a_member_that_cannot_be_placed_has_no_vote() -> None:
    lost = replace(verdicts("A", "B")[0], extra={})
    found = scored(BothOrdersScorer(match="all"), [lost, *verdicts("A", "B")])
    assert [score.reason for score in found] == ["gold_unparsable", "", ""]
    odd = replace(verdicts("A", "B")[0], reference="C")
    assert scored(BothOrdersScorer(), [odd])[0].reason == "gold_unparsable"


def test_pairs_do_not_see_each_other() -> None:
    both = [*verdicts("A", "B", group="one"), *verdicts("A", "A", group="two")]
    assert values(BothOrdersScorer(), both) == [1, 1, 0, 0]
    mixed = [both[0], both[2], both[1], both[3]]
    assert values(BothOrdersScorer(), mixed) == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("scorer", "changes", "message"),
    [
        (BothOrdersScorer(), {"extra": {}}, 'extra\\["order"\\] is None'),
        (BothOrdersScorer(), {"extra": {"order": "ba"}}, "is 'ba'"),
        (BothOrdersScorer(), {"reference": "C"}, "must be one of A, B"),
        (ScoreOrderScorer(), {"reference": "A"}, "the reference is 'A'; say whether the \"chosen\""),
        (ScoreOrderScorer(), {"reference": ["chosen"]}, "the reference is"),
    ],
)
def test_samples_that_do_not_say_their_side_are_refused(scorer: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scorer.validate(replace(verdicts("A", "B")[0], **changes))


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (BothOrdersScorer, {"match": "some"}, "match='some'"),
        (BothOrdersScorer, {"verdict_share": 1.5}, "verdict_share=1.5"),
        (BothOrdersScorer, {"style": "j9"}, "style='j9'"),
        (ScoreOrderScorer, {"form": "score"}, "must hold"),
        (ScoreOrderScorer, {"low": 1, "high": 0}, "from 1 to 0"),
        (ScoreOrderScorer, {"thought": -1}, "thought=-1"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_the_fingerprint_tells_options_apart() -> None:
    scorers = (BothOrdersScorer(), BothOrdersScorer(match="all"), BothOrdersScorer(verdict_share=0.5))
    assert len({scorer.fingerprint for scorer in scorers}) == 3


@pytest.mark.parametrize("match", ["partner", "all"])
def test_the_scorers_conform(match: Any) -> None:
    orders = [*verdicts("AB", "BA", group="one"), *verdicts("AA", "BA", group="two")]
    scores = [*ratings([9, 2], [1, 3], group="one"), *ratings([5, 5], [5, 1], group="two")]
    scorer: Any
    for scorer, samples in ((BothOrdersScorer(match=match), orders), (ScoreOrderScorer(match=match), scores)):
        assert is_groupwise(scorer)
        check_scorer(scorer, samples).raise_for_failures()
