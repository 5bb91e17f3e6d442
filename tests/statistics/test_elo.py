from __future__ import annotations

import pytest

from adjudge.statistics.ratings import Match, elo_ratings


def test_points_change_hands_by_hand() -> None:
    """Equal players: the winner takes k/2.  Then 1016 against 1000 expects 1 / (1 + 10^(-16/400)) = 0.52301."""
    won = Match(first="a", second="b", share=1.0)
    assert elo_ratings([won], k=32) == {"a": 1016.0, "b": 984.0}
    again = elo_ratings([won, Match(first="c", second="a", share=0.5)], k=32)
    assert again["c"] == pytest.approx(1000 + 32 * (0.5 - (1 - 0.523014)), abs=1e-3)
    assert sum(again.values()) == pytest.approx(3000)


def test_the_order_of_games_matters_which_is_why_strengths_are_fitted_elsewhere() -> None:
    games = [Match(first="a", second="b", share=1.0), Match(first="b", second="c", share=1.0)]
    assert elo_ratings(games) != elo_ratings(games[::-1])


@pytest.mark.parametrize("options", [{"k": 0.0}, {"base": 1.0}, {"scale": -1.0}], ids=str)
def test_bad_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        elo_ratings([], **options)
