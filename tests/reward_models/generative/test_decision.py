"""P(Yes), and several of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engines.interface import LabelLogprobs
from adjudge.prompts.scorer import Unsure
from adjudge.reward_models.generative.chain_scorer import Decision, combined, decision_of, log_odds

CHANCES = st.floats(1e-6, 0.5)


def read(yes: float, no: float) -> LabelLogprobs:
    logs = {word: math.log(chance) if chance else -1e9 for word, chance in (("Yes", yes), ("No", no))}
    return LabelLogprobs(logprobs=logs, mass=yes + no)


@given(CHANCES, CHANCES)
def test_the_chance_is_the_share_of_yes(yes: float, no: float) -> None:
    found = decision_of(read(yes, no), min_mass=0.0)
    assert isinstance(found, Decision)
    assert found.chance == pytest.approx(yes / (yes + no), abs=1e-12)


@pytest.mark.parametrize(
    ("yes", "no", "temperature", "chance"),
    [
        (0.6, 0.3, 2.0, math.sqrt(2) / (math.sqrt(2) + 1)),
        (0.6, 0.3, 0.5, 0.8),
        (0.9, 0.0, 1.0, 1.0),
        (0.0, 0.9, 1.0, 0.0),
    ],
    ids=["warm", "cold", "never no", "never yes"],
)
def test_the_temperature_divides_the_log_odds(yes: float, no: float, temperature: float, chance: float) -> None:
    found = decision_of(read(yes, no), min_mass=0.5, temperature=temperature)
    assert isinstance(found, Decision)
    assert found.chance == pytest.approx(chance, abs=1e-12)


@pytest.mark.parametrize(("yes", "no", "least"), [(0.2, 0.2, 0.5), (0.0, 0.0, 0.0)], ids=["little", "none"])
def test_without_mass_there_is_no_chance(yes: float, no: float, least: float) -> None:
    assert isinstance(decision_of(read(yes, no), min_mass=least), Unsure)


@pytest.mark.parametrize(
    ("chance", "odds"), [(0.5, 0.0), (0.75, math.log(3)), (1.0, 12 * math.log(10)), (0.0, -12 * math.log(10))]
)
def test_log_odds_are_finite(chance: float, odds: float) -> None:
    assert log_odds(chance) == pytest.approx(odds, abs=1e-9)


@pytest.mark.parametrize(
    ("chances", "mean", "majority"),
    [([0.9, 0.2, 0.1], 0.4, 0.0), ([1.0, 1.0, 0.0], 2 / 3, 1.0), ([0.9, 0.1], 0.5, 0.5), ([0.6, 0.5], 0.55, 1.0)],
    ids=["the mean weighs", "votes", "draw", "one half says nothing"],
)
def test_chances_are_combined(chances: list[float], mean: float, majority: float) -> None:
    assert combined(chances, "mean") == pytest.approx(mean)
    assert combined(chances, "majority") == majority


def test_nothing_cannot_be_combined() -> None:
    with pytest.raises(ValueError, match="no chance"):
        combined([], "mean")
