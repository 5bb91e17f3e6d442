"""Questions are counted, equal ones once, and there is never one too many."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.evals.attacks.weak_scorers import KeywordReward, PlainScorer

from adjudge.evals.attacks.attacker import Over, Queries
from adjudge.evals.attacks.target import BARE, AttackRow, Standing, Target, Wrap
from adjudge.protocol import Sample

ROW = AttackRow(id="r", prompt="p", base="bad", reference="42")


class Lengths(PlainScorer):
    """As many points as characters; none for more than 30."""

    def value(self, sample: Sample, text: str) -> float | None:
        return None if len(text) > 30 else float(len(text))


def queries(scorer: PlainScorer, *, budget: int, threshold: float, verdicts: bool = False) -> Queries:
    standing = Standing(row=ROW, base=3.0, good=None, threshold=threshold)
    return Queries("test", Target(scorer), standing, budget=budget, verdicts=verdicts)


def suffixes(sizes: Sequence[int]) -> list[Wrap]:
    return [Wrap(after="x" * size) for size in sizes]


def test_equal_responses_cost_one_question_however_they_are_written() -> None:
    scorer = Lengths()
    asked = queries(scorer, budget=10, threshold=100)
    first = asyncio.run(asked.ask([Wrap(after="xx"), Wrap(after="xx"), Wrap(before="badx", after="x", keep=False)]))
    second = asyncio.run(asked.ask([Wrap(after="xx"), BARE]))
    assert first == [5.0, 5.0, 5.0]
    assert second == [5.0, 3.0]
    assert asked.used == len(scorer.asked) == 2


def test_a_batch_beyond_the_budget_is_asked_as_far_as_it_reaches() -> None:
    scorer = Lengths()
    asked = queries(scorer, budget=5, threshold=100)
    asyncio.run(asked.ask(suffixes([1, 2, 3])))
    with pytest.raises(Over):
        asyncio.run(asked.ask(suffixes([3, 4, 5, 6])))
    with pytest.raises(Over):
        asyncio.run(asked.ask(suffixes([1])))
    assert [len(str(sample.response)) for sample in scorer.asked] == [4, 5, 6, 7, 8]
    assert asked.attempt.queries == 5


def test_a_win_counts_from_its_place_in_the_batch_and_ends_the_search() -> None:
    asked = queries(Lengths(), budget=100, threshold=8)
    asyncio.run(asked.ask(suffixes([1, 2])))
    with pytest.raises(Over):
        asyncio.run(asked.ask(suffixes([3, 4, 7, 9])))
    attempt = asked.attempt
    assert attempt.won is not None
    assert (attempt.won.query, attempt.won.value, attempt.won.wrap.after) == (5, 10.0, "x" * 7)
    assert attempt.queries == 6
    assert attempt.gain == 9.0  # of the best one, which was asked in the same batch


def test_what_has_no_number_is_minus_infinity_and_counted_and_never_a_win() -> None:
    asked = queries(Lengths(), budget=100, threshold=8)
    assert asyncio.run(asked.ask(suffixes([1, 40]))) == [4.0, -math.inf]
    assert asked.attempt.unscored == 1
    assert asked.attempt.won is None


def test_with_verdicts_a_search_sees_no_scores() -> None:
    asked = queries(Lengths(), budget=100, threshold=20, verdicts=True)
    assert asyncio.run(asked.ask(suffixes([1, 9, 40]))) == [0.0, 0.0, 0.0]


def test_saying_the_right_answer_is_no_win_and_the_search_goes_on() -> None:
    class Reader(PlainScorer):
        def value(self, sample: Sample, text: str) -> float | None:
            return float("42" in text or "magic" in text)

    asked = queries(Reader(), budget=100, threshold=1.0)
    asyncio.run(asked.ask([Wrap(after=" 42"), Wrap(after=" 41 or 42"), Wrap(after=" 43")]))
    with pytest.raises(Over):
        asyncio.run(asked.ask([Wrap(after=" magic")]))
    attempt = asked.attempt
    assert attempt.guessed is not None
    assert attempt.hedged is not None
    assert attempt.won is not None
    assert (attempt.guessed.query, attempt.hedged.query, attempt.won.query) == (1, 2, 4)


def test_a_search_is_not_led_to_the_right_answer() -> None:
    """What is paid for the right answer looks like the bad response, so a search does not settle there."""

    class Reader(PlainScorer):
        def value(self, sample: Sample, text: str) -> float | None:
            return 1.0 if "42" in text else 0.5

    asked = queries(Reader(), budget=100, threshold=1.0)
    assert asyncio.run(asked.ask([Wrap(after=" 42"), Wrap(after=" 43")])) == [3.0, 0.5]  # 3 is of the bad response
    verdicts = queries(Reader(), budget=100, threshold=1.0, verdicts=True)
    assert asyncio.run(verdicts.ask([Wrap(after=" 42"), Wrap(after=" 43")])) == [0.0, 0.0]


def test_a_closed_search_keeps_its_numbers_and_none_of_its_texts() -> None:
    asked = queries(Lengths(), budget=100, threshold=100)
    asyncio.run(asked.ask(suffixes([1, 2])))
    before = replace(asked.attempt)
    asked.close()
    assert asked.attempt == before
    assert "xx" not in str(vars(asked)["_known"])
    with pytest.raises(Over):
        asyncio.run(asked.ask(suffixes([1])))


def test_a_search_with_nothing_new_to_ask_ends() -> None:
    scorer = KeywordReward()
    asked = queries(scorer, budget=100, threshold=1.0)

    async def forever() -> int:
        turns = 0
        try:
            while True:
                await asked.ask([BARE])
                turns += 1
        except Over:
            return turns

    assert asyncio.run(forever()) == 1_000
    assert len(scorer.asked) == 1
