from __future__ import annotations

import math
import random

import pytest
from experiments.arena_hard import Style, game, style_controlled

from adjudge.statistics.logistic import sigmoid
from adjudge.statistics.ratings import Match, bootstrap_ratings, fit_strengths

TRUTH = {"baseline": 0.0, "good": 1.0, "plain": 0.0, "weak": -1.0}


def arena(
    games: int, seed: int, *, verbose: str = "", effect: float = 0.0
) -> tuple[list[Match], list[tuple[Style, Style]]]:
    """Games whose outcome follows the true strengths and, by `effect`, the share of tokens; one model writes more."""
    draw = random.Random(seed)
    matches, styles = [], []
    for _ in range(games):
        pair = draw.sample(sorted(TRUTH), 2)
        shown = [
            Style(
                tokens=draw.uniform(200, 400) * (3 if name == verbose else 1),
                headings=draw.randint(0, 4),
                lists=draw.randint(0, 9),
                bold=draw.randint(0, 9),
            )
            for name in pair
        ]
        odds = TRUTH[pair[0]] - TRUTH[pair[1]] + effect * shown[0].differences(shown[1])[0]
        label = draw.choice(["A>B", "A>>B"]) if draw.random() < sigmoid(odds) else draw.choice(["B>A", "B>>A"])
        matches.append(game(label, *pair))
        styles.append((shown[0], shown[1]))
    return matches, styles


@pytest.mark.parametrize(
    ("label", "share", "weight"),
    [("A>>B", 1, 3), ("A>B", 1, 1), ("A=B", 0.5, 1), ("B>A", 0, 1), ("B>>A", 0, 3)],
)
def test_labels(label: str, share: float, weight: float) -> None:
    assert game(label, "m", "n") == Match(first="m", second="n", share=share, weight=weight)
    with pytest.raises(ValueError, match="the label is 'A>>>B'"):
        game("A>>>B", "m", "n")


def test_a_clear_win_counts_three_times() -> None:
    """One clear win against one narrow loss: odds of 3, which is 400 log10(3) = 190.8 points."""
    fitted = fit_strengths([game("A>>B", "m", "baseline"), game("B>A", "m", "baseline")])
    assert fitted.ratings(anchor="baseline")["m"] == pytest.approx(1000 + 400 * math.log10(3))


def test_ratings_come_back_with_their_bounds() -> None:
    matches, _ = arena(3000, seed=1)
    found = bootstrap_ratings(matches, anchor="baseline", rounds=100)
    for name, strength in TRUTH.items():
        rating = found[name]
        assert rating.low is not None
        assert rating.high is not None
        assert rating.value == pytest.approx(1000 + 400 / math.log(10) * strength, abs=40)
        assert rating.low <= 1000 + 400 / math.log(10) * strength <= rating.high


def test_style_control_takes_back_what_verbosity_won() -> None:
    matches, styles = arena(3000, seed=2, verbose="plain", effect=2.0)
    raw = fit_strengths(matches).ratings(anchor="baseline")
    controlled = style_controlled(matches, styles, baseline="baseline", rounds=20)
    rating = controlled.ratings["plain"]
    assert raw["plain"] > 1100
    assert rating.value == pytest.approx(1000, abs=45)
    anchored = style_controlled(matches, styles, baseline="good", rounds=2).ratings
    assert anchored["good"].to_dict() == {"value": 1000, "low": 1000, "high": 1000, "n": len(matches)}
    assert anchored["baseline"].value == pytest.approx(1000 - 400 / math.log(10), abs=45)
    tokens = controlled.effects["tokens"]
    assert tokens.low is not None
    assert tokens.low > 0.3
    for name in ("headings", "lists", "bold"):
        value = controlled.effects[name].value
        assert value is not None
        assert abs(value) < 0.12


def test_styles_are_counts_and_differences_are_shares_of_their_sum() -> None:
    style = Style.of("# Title\n\nSome **bold** words:\n- one\n- two\n")
    assert style == Style(tokens=9, headings=1, lists=2, bold=1)
    other = Style(tokens=3, headings=0, lists=2, bold=0)
    assert style.differences(other) == (0.5, 1.0, 0.0, 1.0)
    assert other.differences(style) == (-0.5, -1.0, 0.0, -1.0)
    assert other.differences(other) == (0.0, 0.0, 0.0, 0.0)


def test_what_cannot_be_known_is_refused() -> None:
    matches, styles = arena(200, seed=3)
    with pytest.raises(ValueError, match="the baseline 'gpt'"):
        style_controlled(matches, styles, baseline="gpt")
    with pytest.raises(ValueError, match="199 pairs of styles"):
        style_controlled(matches, styles[1:], baseline="baseline")
    flat = [(Style(tokens=9, headings=0, lists=1, bold=1), Style(tokens=5, headings=0, lists=2, bold=2))] * 200
    with pytest.raises(ValueError, match="never differ"):
        style_controlled(matches, flat, baseline="baseline")
    few, shown = arena(8, seed=4)
    with pytest.raises(ValueError, match=r"does not connect|no finite optimum"):
        style_controlled(few, shown, baseline=few[0].first)
