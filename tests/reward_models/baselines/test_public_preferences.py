"""On public data the offline baselines beat "longer wins" and chance on held-out prompts, as docs/training.md says.

A smaller model than the default one, so that it takes seconds: no n-grams of characters, and two folds.
`benchmarks/preference_baselines.py` measures the whole.
"""

from __future__ import annotations

import dataclasses
import json
import os

import pytest
from benchmarks.preference_baselines import Options, beats, is_development, measured
from benchmarks.preference_sets import SETS, load

from adjudge.reward_models.baselines.baseline_table import fold_of
from adjudge.reward_models.baselines.features import FeatureOptions
from adjudge.training.examples import Pair, Rating

needs_data = pytest.mark.skipif(not os.environ.get("ADJUDGE_DATA"), reason="ADJUDGE_DATA is not set")
QUICK = FeatureOptions(words=(1, 2), characters=(), bits=16)


@needs_data
@pytest.mark.parametrize("name", ["hh_rlhf", "gsm8k", pytest.param("rmb", marks=pytest.mark.full)])
def test_a_fitted_baseline_beats_length_and_chance(name: str) -> None:
    corpus = load(name)
    if name == "rmb":  # half of it: its responses are long, and 1,500 contests are enough
        half = tuple(pair for pair in corpus.pairs if fold_of(pair.group, 2, 0) == 0)
        corpus = dataclasses.replace(corpus, pairs=half)
    longer, *_, fitted = measured(corpus, {"fitted": QUICK}, Options(folds=2))
    assert (longer.name, fitted.name) == ("longer wins", "fitted")
    assert fitted.won.contests > 700
    assert beats(fitted, [longer]), f"{fitted.won} against {longer.won}"


@needs_data
@pytest.mark.parametrize(
    ("name", "source", "published"),
    [("hh_rlhf", "", 0.443), ("rmb", "Helpfulness", 0.648), ("rmb", "Harmlessness", 0.543)],
)
def test_longer_wins_as_often_as_others_report(name: str, source: str, published: float) -> None:
    """On whole corpora; of RMB a third is here."""
    pairs = [pair for pair in load(name).pairs if pair.source == source]
    longer = sum(len(pair.chosen) > len(pair.rejected) for pair in pairs) / len(pairs)
    assert longer == pytest.approx(published, abs=0.015)


@needs_data
@pytest.mark.parametrize("name", SETS)
def test_a_prompt_has_one_group_and_a_third_is_for_development(name: str) -> None:
    corpus = load(name)
    examples: list[Pair | Rating] = [*corpus.pairs, *corpus.ratings]
    home: dict[str, str] = {}
    for example in examples:
        assert home.setdefault(json.dumps(example.prompt, sort_keys=True), example.group) == example.group
    groups = set(home.values())
    assert sum(map(is_development, groups)) / len(groups) == pytest.approx(1 / 3, abs=0.06)
