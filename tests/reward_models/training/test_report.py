"""Held-out numbers against slow or published ways to compute them, and the card that shows them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjudge.reward_models.training.held_out import (
    Rewarded,
    RewardedPairs,
    calibration_error,
    label_measures,
    pair_measures,
    preference_measures,
    rating_measures,
)
from adjudge.reward_models.training.report import TrainingReport
from adjudge.statistics.intervals import wilson
from adjudge.training.examples import Pair, Ranking


def pairs(better: list[float], worse: list[float], **more: Any) -> RewardedPairs:
    count = len(better)
    given = {
        "better_length": [2.0] * count,
        "worse_length": [1.0] * count,
        "probability": [1.0] * count,
        **more,
    }
    return RewardedPairs(
        better=np.array(better),
        worse=np.array(worse),
        clusters=[str(at) for at in range(count)],
        **{name: np.array(value) for name, value in given.items()},
    )


def test_one_reward_for_everything_is_right_nowhere() -> None:
    found, rules = pair_measures(pairs([1.0] * 4, [1.0] * 4))
    assert found["accuracy"].value == 0.0
    assert found["equal_rewards"].value == 1.0
    assert found["brier"].value == 0.25
    assert found["ece"].value == 0.5
    assert rules["longer wins"].value == 1.0


def test_ties_count_for_calibration_alone_and_soft_labels_for_their_side() -> None:
    given = pairs([3.0, 0.0, 0.0], [0.0, 0.0, 2.0], probability=[1.0, 0.5, 0.2])
    found, _ = pair_measures(given)
    assert (found["accuracy"].value, found["accuracy"].n) == (1.0, 2)
    squares = [(1 - 1 / (1 + math.exp(-3))) ** 2, 0.0, (0.2 - 1 / (1 + math.exp(2))) ** 2]
    assert found["brier"].value == pytest.approx(np.mean(squares))


def test_the_trivial_rule_stands_on_the_same_pairs() -> None:
    given = pairs([1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 1.0], better_length=[5, 1, 5, 3], worse_length=[1, 5, 1, 3])
    found, rules = pair_measures(given)
    assert found["accuracy"].value == 0.75
    assert rules["longer wins"].value == (1 + 0 + 1 + 0.5) / 4
    assert found["over_longer_wins"].value == pytest.approx(0.75 - 0.625)


def test_calibration_error_by_hand() -> None:
    believed, outcomes = np.array([0.9, 0.95, 0.1, 0.6]), np.array([1.0, 0.0, 0.0, 1.0])
    # Confidence 0.9 and 0.9 (turned) fall into the ninth bin, 0.95 into the tenth, 0.6 into the third.
    assert calibration_error(believed, outcomes) == pytest.approx(2 / 4 * 0.1 + 1 / 4 * 0.95 + 1 / 4 * 0.4)


def test_ratings_and_labels() -> None:
    predicted, targets = (
        np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 0.0]]),
        np.array([[1.0, np.nan], [3.0, 1.0], [4.0, np.nan]]),
    )
    found, rules = rating_measures(predicted, targets, np.array([2.0, 0.5]), ["a", "b", "c"], ("good", "brief"))
    assert found["mse_good"].value == pytest.approx(1 / 3)
    assert rules["mse_good of the training mean"].value == pytest.approx((1 + 1 + 4) / 3)
    assert found["mse_brief"].n == 1
    assert found["rank_correlation_good"].value == pytest.approx(1)
    found, rules = label_measures(
        np.array([2.0, -1.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([3.0, 1.0, 2.0]), ["a", "b", "c"]
    )
    assert found["accuracy"].value == pytest.approx(2 / 3)
    assert (found["auc"].value, rules["auc of longer is right"].value) == (1.0, 1.0)
    assert rules["always the commoner label"].value == pytest.approx(2 / 3)


def test_lists_give_their_pairs_and_whether_the_best_comes_first() -> None:
    ranking = Ranking(prompt="q", responses=("a", "b", "c"), ranks=(1, 0, 1))

    def judged(rewards: list[float]) -> Rewarded:
        return Rewarded(example=ranking, rewards=np.array(rewards)[:, None], lengths=np.ones(3), cluster="q")

    flat = RewardedPairs.of([judged([0.0, 1.0, 2.0])])
    assert (flat.better.tolist(), flat.worse.tolist()) == ([1.0, 1.0], [0.0, 2.0])
    found, _ = preference_measures([judged([0.0, 1.0, 2.0]), judged([0.0, 3.0, 2.0]), judged([1.0, 1.0, 0.0])])
    assert found["best_first"].value == pytest.approx(1 / 3)


def test_members_of_an_ensemble_are_averaged() -> None:
    pair = Pair(prompt="q", chosen="a", rejected="b")
    one = Rewarded(example=pair, rewards=np.array([[1.0, 3.0], [0.0, 1.0]]), lengths=np.ones(2), cluster="q")
    assert RewardedPairs.of([one]).gaps.tolist() == [1.5]


def test_a_report_comes_back_and_its_card_holds_no_markup_of_the_data(tmp_path: Path) -> None:
    report = TrainingReport(
        what="scalar",
        model="base|model`<script>",
        output=str(tmp_path),
        steps=3,
        data={"rows": 5, "bad_rows": {"| # <img src=x> `rm`\n# Heading": 2}},
        metrics={"accuracy": wilson(3, 4)},
        baselines={"longer wins": wilson(2, 4)},
        config={"loss": {"name": "bt"}, "regularizers": {}},
        warnings=("mind *this*",),
        history=({"loss": 0.5, "step": 2.0},),
        sections={"Use": "As it is."},
    )
    report.write(tmp_path)
    assert TrainingReport.read(tmp_path) == report
    assert TrainingReport.read(tmp_path / "nowhere") is None
    assert json.loads((tmp_path / "report.json").read_text())["metrics"]["accuracy"]["n"] == 4
    card = (tmp_path / "README.md").read_text()
    assert "| accuracy | 0.750 [0.301, 0.954] | 4 |" in card
    assert "| baseline: longer wins | 0.500" in card
    assert "<img" not in card.replace("\\<img", "")
    assert "\n# Heading" not in card
    assert "| loss.name | bt |" in card
