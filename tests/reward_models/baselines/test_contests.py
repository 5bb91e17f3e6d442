"""Shares and intervals of contests, and the baselines that stand beside a result."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.reward_models.baselines.demo_preferences import polite_pairs

from adjudge.reward_models.baselines.baseline_table import (
    RULES,
    Answer,
    Contest,
    baseline_table,
    contests_of_pairs,
    contests_of_ratings,
    fold_of,
    held_out_wins,
    share,
    steps_in,
    wins,
)
from adjudge.reward_models.baselines.features import FeatureOptions
from adjudge.training.examples import Pair, Rating

WORDS = FeatureOptions(words=(1,), characters=(), groups=(), bits=20)  # no two of these words share a column


def contest(group: str, other: str = "", weight: float = 1.0) -> Contest:
    better = Answer(prompt=group, response="better", group=group)
    return Contest(better=better, worse=Answer(prompt="", response="worse", group=other or group), weight=weight)


def test_wins_and_ties_are_counted() -> None:
    lengths = [("long answer", "short"), ("no", "a long one"), ("same", "size")]
    found = contests_of_pairs([Pair(prompt="p", chosen=one, rejected=other) for one, other in lengths])
    assert wins(found, RULES["longer wins"]).tolist() == [1, 0, 0.5]
    assert wins(found, RULES["shorter wins"]).tolist() == [0, 1, 0.5]


def test_the_preferred_side_of_a_soft_label_is_the_better_one() -> None:
    pair = Pair(prompt="p", chosen="one", rejected="other")
    ways = [
        pair,
        dataclasses.replace(pair, probability=0.2),
        dataclasses.replace(pair, probability=0.5),
        dataclasses.replace(pair, tie=True),
        dataclasses.replace(pair, weight=0.0),
    ]
    assert [found.better.response for found in contests_of_pairs(ways)] == ["one", "other"]


@pytest.mark.parametrize(
    ("text", "steps"),
    [("one", 1), ("one\ntwo\n\n", 2), ("one\n\ntwo\nstill two", 2), (" \n\n ", 0)],
)
def test_steps_are_counted(text: str, steps: int) -> None:
    assert steps_in(text) == steps


def test_a_share_and_its_interval() -> None:
    """10 of 40 prompts won: the bootstrap's bounds are the binomial's 2.5 % and 97.5 % points, 5 and 15."""
    found = share([contest(f"g{place}") for place in range(40)], np.array([1.0] * 10 + [0.0] * 30))
    assert (found.value, found.contests, found.groups) == (0.25, 40, 40)
    assert found.low == pytest.approx(5 / 40, abs=0.011)
    assert found.high == pytest.approx(15 / 40, abs=0.03)


def test_copies_within_a_prompt_make_nothing_surer() -> None:
    once = share([contest(f"g{place}") for place in range(30)], np.array([1.0, 0.0, 0.0] * 10))
    copied = share([contest(f"g{place}") for place in range(30) for _ in range(9)], np.repeat([1.0, 0.0, 0.0] * 10, 9))
    assert (copied.value, copied.low, copied.high) == pytest.approx((once.value, once.low, once.high))
    assert copied.groups == once.groups


def test_weights_count() -> None:
    found = share([contest("a", weight=3.0), contest("b", weight=1.0)], np.array([1.0, 0.0]))
    assert found.value == 0.75


def test_a_difference_is_paired() -> None:
    """Two scores that win the same contests differ by nothing, however wide their own intervals are."""
    contests = [contest(f"g{place}") for place in range(20)]
    won = np.array([1.0, 0.0] * 10)
    alone, same = share(contests, won), share(contests, won, against=won)
    assert alone.high - alone.low > 0.3
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert share(contests, won, against=1 - won).value == 0
    assert share(contests, won, against=0 * won).value == 0.5


def test_contests_of_two_prompts_depend_on_both() -> None:
    """All contests against one prompt that is drawn twice or never: a resample without it has nothing to tell."""
    contests = [contest(f"g{place}", "common") for place in range(20)]
    found = share(contests, np.ones(20))
    assert (found.value, found.low, found.high, found.groups) == (1, 1, 1, 21)


def test_ratings_meet_across_prompts_of_one_source() -> None:
    ratings = [
        Rating(prompt=f"p{place}", response=f"r{place}", values=(float(place % 4 == 0),), source="ab"[place % 2])
        for place in range(80)
    ]
    ratings.append(Rating(prompt="unsure", response="r", values=(0.5,), source="a"))
    found = contests_of_ratings(ratings, seed=3)
    assert {one.source for one in found} == {"a"}  # every fourth is right, all of them of even places
    right = {one.better.response for one in found}
    assert right == {f"r{place}" for place in range(0, 80, 4)}
    assert not right & {one.worse.response for one in found}
    assert len(found) == 20 * 8
    assert contests_of_ratings(ratings, seed=3) == found
    assert contests_of_ratings(ratings, seed=4) != found


def test_folds_do_not_depend_on_what_else_there_is() -> None:
    folds = [fold_of(f"group {place}", 5, 0) for place in range(1000)]
    assert min(np.bincount(folds, minlength=5)) > 150
    assert folds != [fold_of(f"group {place}", 5, 1) for place in range(1000)]


def test_a_prompt_that_is_held_out_teaches_nothing() -> None:
    """Each prompt has words of its own that tell its sides apart: whoever learns from it wins, nobody else can."""
    pairs = [
        Pair(prompt=f"p{place}", chosen=f"good{place} word", rejected=f"bad{place} word", group=f"g{place}")
        for place in range(40)
        for _ in range(3)
    ]
    contests = contests_of_pairs(pairs)
    assert held_out_wins(contests, pairs, [], WORDS, folds=4).tolist() == [0.5] * 120
    kinder = [dataclasses.replace(pair, chosen=f"{pair.chosen} kindly") for pair in pairs]
    assert held_out_wins(contests_of_pairs(kinder), kinder, [], WORDS, folds=4).tolist() == [1.0] * 120


def test_the_table_tells_a_model_from_the_rules() -> None:
    pairs = [
        dataclasses.replace(pair, source=f"cell {place % 2}") for place, pair in enumerate(polite_pairs(160, seed=1))
    ]
    rows = {row.name: row for row in baseline_table(pairs, models={"words": WORDS}, folds=3)}
    assert set(rows) == {*RULES, "words"}
    assert rows["words"].won.low > max(rows[rule].won.high for rule in RULES)
    assert rows["longer wins"].above.value == 0
    assert rows["words"].above.low > 0
    assert rows["words"].won.groups == 40
    assert set(rows["words"].cells) == {"cell 0", "cell 1"}
    assert str(rows["words"].won).startswith("100.0 [")


def test_only_some_prompts_are_reported() -> None:
    pairs = [dataclasses.replace(pair, group=f"g{place % 20}") for place, pair in enumerate(polite_pairs(60, seed=1))]
    (row, *_) = baseline_table(pairs, models={}, only=frozenset({"g1", "g2"}))
    assert (row.won.contests, row.won.groups) == (6, 2)


def test_nothing_to_report_is_an_error() -> None:
    with pytest.raises(ValueError, match="no contest to report"):
        baseline_table([], [Rating(prompt="p", response="r", values=(1.0,))])
    with pytest.raises(ValueError, match="folds is 1"):
        baseline_table(polite_pairs(20, seed=1), folds=1)
