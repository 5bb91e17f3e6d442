from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adjudge.judges.dawid_skene import DawidSkene, Fit, fit_dawid_skene

HALF = (0.5, 0.5)


def model(shares: tuple[float, float] = HALF, **right: float) -> DawidSkene:
    """Raters that are right with the same chance on both classes."""
    return DawidSkene(
        classes=("0", "1"),
        shares=shares,
        confusion={rater: ((p, 1 - p), (1 - p, p)) for rater, p in right.items()},
    )


def simulated(
    right: dict[str, tuple[float, float]], items: int, share: float, seed: int, seen: float = 1.0
) -> tuple[list[dict[str, str]], list[str]]:
    """Votes of raters with known chances to be right on "0" and on "1", and the truths."""
    draw = random.Random(seed)
    truths = ["1" if draw.random() < share else "0" for _ in range(items)]
    votes = [
        {
            rater: truth if draw.random() < chances[int(truth)] else str(1 - int(truth))
            for rater, chances in right.items()
            if draw.random() < seen
        }
        for truth in truths
    ]
    return votes, truths


@pytest.mark.parametrize(
    ("votes", "posterior"),
    [
        ({}, 0.5),
        ({"good": "1"}, 0.9),
        ({"good": "1", "fair": "0"}, 0.9 * 0.4 / (0.9 * 0.4 + 0.1 * 0.6)),
        ({"good": "0", "fair": "1", "liar": "0"}, 0.1 * 0.6 * 0.8 / (0.1 * 0.6 * 0.8 + 0.9 * 0.4 * 0.2)),
        ({"coin": "1"}, 0.5),
    ],
    ids=["nobody", "one", "two apart", "a liar counts against what it says", "a coin counts for nothing"],
)
def test_posteriors_by_hand(votes: dict[str, str], posterior: float) -> None:
    raters = model(good=0.9, fair=0.6, liar=0.2, coin=0.5)
    assert raters.posterior(votes)["1"] == pytest.approx(posterior)


def test_one_em_step_by_hand() -> None:
    """Three raters, three items; beliefs start at the share of votes, so the first M-step is counting by fractions.

    Item 1: 1 1 1 -> belief 1.  Item 2: 1 1 0 -> 2/3.  Item 3: 0 0 0 -> 0.  Share of "1": 5/9.
    Rater c says "1" on item 1 alone: P(1 | 1) = 1 / (5/3) = .6, P(0 | 0) = (1/3 + 1) / (4/3) = 1.
    Rater a says "1" on items 1 and 2: P(1 | 1) = 1, P(1 | 0) = (1/3) / (4/3) = .25.
    """
    votes = [{"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "1", "c": "0"}, {"a": "0", "b": "0", "c": "0"}]
    fit = fit_dawid_skene(votes, smoothing=1e-9, steps=1)
    assert fit.model.shares == pytest.approx((4 / 9, 5 / 9))
    assert fit.model.confusion["c"][1] == pytest.approx((0.4, 0.6))
    assert fit.model.confusion["c"][0] == pytest.approx((1.0, 0.0), abs=1e-8)
    assert fit.model.confusion["a"][0] == pytest.approx((0.75, 0.25))
    chance = 5 / 9 * 1 * 1 * 0.4, 4 / 9 * 0.25 * 0.25 * 1.0
    assert fit.posteriors[1]["1"] == pytest.approx(chance[0] / sum(chance))
    assert not fit.converged


def test_raters_are_recovered_from_their_votes_alone() -> None:
    right = {"a": (0.95, 0.9), "b": (0.8, 0.7), "c": (0.6, 0.9), "d": (0.55, 0.55), "liar": (0.2, 0.3)}
    votes, truths = simulated(right, 3000, 0.3, seed=5, seen=0.8)
    fit = fit_dawid_skene(votes)
    assert fit.converged
    for rater, chances in right.items():
        for truth in (0, 1):
            assert fit.model.confusion[rater][truth][truth] == pytest.approx(chances[truth], abs=0.05)
    assert fit.model.shares[1] == pytest.approx(0.3, abs=0.03)
    learnt = sum((one["1"] > 0.5) == (truth == "1") for one, truth in zip(fit.posteriors, truths, strict=True))
    majority = sum(
        Counter(one.values()).most_common(1)[0][0] == truth if one else 0
        for one, truth in zip(votes, truths, strict=True)
    )
    assert learnt / 3000 > 0.9 > 0.85 > majority / 3000
    for before, after in itertools.pairwise(fit.log_likelihood):
        assert after >= before - 0.05  # the pseudo-counts are worth a hundredth of a vote


def test_gold_turns_a_panel_of_liars_around() -> None:
    """Most raters lie, so the votes alone are read backwards; 30 known truths of 600 are enough."""
    votes, truths = simulated({"a": (0.2, 0.2), "b": (0.3, 0.3), "c": (0.25, 0.25)}, 600, 0.5, seed=2)
    gold = [truth if index < 30 else None for index, truth in enumerate(truths)]

    def right(fit: Fit) -> float:
        rest = list(zip(fit.posteriors, truths, strict=True))[30:]
        return sum((one["1"] > 0.5) == (truth == "1") for one, truth in rest) / len(rest)

    assert right(fit_dawid_skene(votes)) < 0.25
    assert right(fit_dawid_skene(votes, gold=gold)) > 0.8


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    fitted = fit_dawid_skene(simulated({"a": (0.9, 0.9), "b": (0.7, 0.7)}, 50, 0.5, seed=0)[0]).model
    fitted.save(tmp_path / "raters.json")
    assert DawidSkene.load(tmp_path / "raters.json") == fitted


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit_dawid_skene([]), "no votes"),
        (lambda: fit_dawid_skene([{"a": "1"}]), "two or more"),
        (lambda: fit_dawid_skene([{"a": "1"}, {"a": "0"}], smoothing=0.0), "smoothing=0.0"),
        (lambda: fit_dawid_skene([{"a": "1"}, {"a": "0"}], gold=["1"]), "1 gold labels for 2 items"),
        (lambda: model(a=0.9).posterior({"b": "1"}), "'b' was not learnt"),
        (lambda: model(a=0.9).posterior({"a": "yes"}), "voted 'yes'"),
        (lambda: model(a=1.0), "probabilities above 0"),
        (lambda: DawidSkene.from_dict({"classes": ["0", "1"]}), "needs the option 'shares'"),
    ],
    ids=["nothing", "one class", "no smoothing", "gold", "rater", "vote", "certainty", "file"],
)
def test_mistakes_are_named(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
