from __future__ import annotations

import math
import random

import pytest

from adjudge.statistics.logistic import sigmoid
from adjudge.statistics.ratings import Match, bootstrap_ratings, fit_strengths, parts_of, points_of, undefeated


def game(first: str, second: str, share: float, weight: float = 1.0) -> Match:
    return Match(first=first, second=second, share=share, weight=weight)


def played(truth: dict[str, float], games: int, seed: int) -> list[Match]:
    """Games between random players whose true strengths are known."""
    draw = random.Random(seed)
    found = []
    for _ in range(games):
        first, second = draw.sample(sorted(truth), 2)
        found.append(game(first, second, float(draw.random() < sigmoid(truth[first] - truth[second]))))
    return found


def test_two_players_have_the_odds_of_their_games() -> None:
    fitted = fit_strengths([game("a", "b", 1.0)] * 3 + [game("b", "a", 1.0)])
    assert fitted.values["a"] - fitted.values["b"] == pytest.approx(math.log(3), abs=1e-9)
    assert math.fsum(fitted.values.values()) == pytest.approx(0, abs=1e-9)
    assert fitted.probability("a", "b") == pytest.approx(0.75)


def test_three_players_by_hand() -> None:
    """a beats b 2:1, b beats c 2:1, a beats c 4:1: the odds multiply, so the fit is exact."""
    matches = [game("a", "b", 2 / 3, 3), game("b", "c", 2 / 3, 3), game("a", "c", 4 / 5, 5)]
    fitted = fit_strengths(matches).values
    assert [fitted["a"] - fitted["b"], fitted["b"] - fitted["c"]] == pytest.approx([math.log(2)] * 2, abs=1e-9)


@pytest.mark.parametrize(
    "same",
    [
        [game("a", "b", 0.5), game("b", "c", 0.25, 4)],
        [game("b", "a", 0.5), game("c", "b", 0.75, 4)],
        [game("a", "b", 1.0, 0.5), game("a", "b", 0.0, 0.5), game("b", "c", 1.0), game("b", "c", 0.0, 3)],
    ],
    ids=["ties", "told from the other side", "a tie is half a win for each"],
)
def test_the_same_games_told_differently_give_the_same_strengths(same: list[Match]) -> None:
    assert fit_strengths(same).values == pytest.approx(
        {"a": -math.log(3) / 3, "b": -math.log(3) / 3, "c": 2 * math.log(3) / 3}
    )


def test_strengths_are_recovered_from_simulated_games() -> None:
    truth = {"a": 1.2, "b": 0.4, "c": 0.0, "d": -0.5, "e": -1.1}
    fitted = fit_strengths(played(truth, 20_000, seed=1)).values
    assert max(abs(fitted[name] - truth[name]) for name in truth) < 0.06


def test_an_unconnected_graph_has_no_ranking() -> None:
    apart = [game("a", "b", 0.5), game("c", "d", 0.5), game("d", "e", 0.5)]
    assert parts_of(apart) == [["c", "d", "e"], ["a", "b"]]
    for ridge in (0.0, 1.0):  # a ridge would give numbers, and they would mean nothing
        with pytest.raises(ValueError, match="no game connects 'c' with 'a'"):
            fit_strengths(apart, ridge=ridge)


def test_who_won_everything_needs_a_ridge() -> None:
    matches = [game("a", "b", 1.0), game("a", "c", 1.0), game("b", "c", 0.4)]
    assert undefeated(matches)
    with pytest.raises(ValueError, match="give a ridge"):
        fit_strengths(matches)
    weak, strong = (fit_strengths(matches, ridge=ridge).values for ridge in (0.01, 1.0))
    assert weak["a"] > strong["a"] > strong["c"] > strong["b"]


def test_ratings_have_the_scale_of_arenas() -> None:
    fitted = fit_strengths([game("model", "baseline", 10 / 11, 11)])
    assert fitted.ratings(anchor="baseline") == pytest.approx({"baseline": 1000.0, "model": 1400.0})
    with pytest.raises(ValueError, match="the anchor 'gpt'"):
        fitted.ratings(anchor="gpt")


def test_bounds_hold_the_truth_about_as_often_as_they_say() -> None:
    truth = {"a": 0.8, "b": 0.0, "c": -0.8}
    unit = 400 / math.log(10)
    hits = 0
    for seed in range(40):
        bounds = bootstrap_ratings(played(truth, 300, seed), anchor="b", rounds=100, seed=seed)
        assert (bounds["b"].low, bounds["b"].value, bounds["b"].high) == (1000.0, 1000.0, 1000.0)
        low, high = bounds["a"].low, bounds["a"].high
        assert low is not None
        assert high is not None
        hits += low <= 1000 + unit * truth["a"] <= high
    assert 33 <= hits <= 40  # 38 expected of 40 at 95 %; 33 or fewer has a chance of 1.4 %


def test_a_bootstrap_does_not_invent_a_ranking() -> None:
    thin = [game("a", "b", 0.5), *[game("b", "c", 0.5)] * 30]
    with pytest.raises(ValueError, match="too few for a bootstrap"):
        bootstrap_ratings(thin, anchor="b")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"second": "a"}, "on both sides"),
        ({"share": 1.1}, "Match.share is 1.1"),
        ({"share": math.nan}, "Match.share is nan"),
        ({"weight": 0.0}, "Match.weight is 0.0"),
    ],
)
def test_bad_games_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Match(**{"first": "a", "second": "b", "share": 0.5, **fields})  # type: ignore[arg-type]


def test_points_are_mean_shares() -> None:
    assert points_of([game("a", "b", 1.0), game("c", "a", 0.5, 3)]) == {"a": 0.625, "b": 0.0, "c": 0.5}
