from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.scalar.reward_scorer import Rating
from adjudge.reward_models.scalar.scorer import Readout, weights_of
from adjudge.scoring.compose.combination import Combination

NUMBERS = st.floats(-50, 50)


def near(value: Any) -> Any:
    """The value, up to rounding."""
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def rows(count: int) -> st.SearchStrategy[list[float]]:
    return st.lists(NUMBERS, min_size=count, max_size=count)


def head(kind: Any, **shape: Any) -> HeadConfig:
    return HeadConfig(kind=kind, **shape)


@given(rows(4), rows(4))
def test_linear(raw: list[float], weights: list[float]) -> None:
    reading = Readout(head=head("linear", outputs=4), weights=tuple(weights)).read(raw)
    assert reading.reward == near(float(np.dot(raw, weights)))
    assert reading.spread is None
    assert Readout(head=head("linear")).read(raw[:1]).reward == raw[0]


@given(rows(3), st.lists(st.floats(-8, 8), min_size=3, max_size=3), rows(3))
def test_gaussian(means: list[float], logs: list[float], weights: list[float]) -> None:
    reading = Readout(head=head("gaussian", outputs=3), weights=tuple(weights)).read([*means, *logs])
    spread = math.sqrt(float(np.sum((np.array(weights) * np.exp(logs)) ** 2)))
    assert reading.reward == near(float(np.dot(means, weights)))
    assert reading.spread == near(spread)


@pytest.mark.parametrize("risk", [0.5, 0.25, 0.05])
def test_the_worst_share_of_a_gaussian_is_that_of_a_sample(risk: float) -> None:
    reading = Readout(head=head("gaussian"), risk=risk).read([1.5, math.log(2.0)])
    sample = np.sort(np.random.default_rng(0).normal(1.5, 2.0, 1_000_000))
    assert reading.reward == pytest.approx(sample[: int(risk * 1_000_000)].mean(), abs=0.03)


@given(rows(15), rows(3), st.sampled_from([0.2, 0.4, 0.6, 1.0]))
def test_quantile(raw: list[float], weights: list[float], risk: float) -> None:
    reading = Readout(head=head("quantile", outputs=3, levels=5), weights=tuple(weights), risk=risk).read(raw)
    summed = np.array(weights) @ np.array(raw).reshape(3, 5)
    assert reading.reward == near(float(np.sort(summed)[: round(5 * risk)].mean()))
    assert reading.spread == pytest.approx(float(summed.std()), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("risk", "wanted"), [(1.0, 2.0), (0.5, (0 + 1 + 0.5 * 2) / 2.5), (0.1, 0.0), (1e-9, 0.0)])
def test_a_share_that_falls_between_two_quantiles_counts_in_part(risk: float, wanted: float) -> None:
    assert Readout(head=head("quantile", levels=5), risk=risk).read([4, 3, 2, 1, 0]).reward == pytest.approx(wanted)


@given(rows(6), st.floats(0.1, 20))
def test_gating(raw: list[float], temperature: float) -> None:
    reading = Readout(head=head("gating", outputs=3, temperature=temperature), labels=("a", "b", "c")).read(raw)
    logits = np.array(raw[3:]) / temperature
    gate = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert reading.reward == near(float(np.dot(raw[:3], gate)))
    assert reading.evidence["gate"] == pytest.approx(dict(zip("abc", gate, strict=True)))
    fixed = Readout(head=head("gating", outputs=3), weights=(1.0, 0.0, -1.0)).read(raw)
    assert fixed.reward == near(raw[0] - raw[2])


@given(rows(6))
def test_members_of_a_multi_head(raw: list[float]) -> None:
    rewards = np.array(raw).reshape(3, 2) @ np.array([1.0, -0.5])
    made = Readout(head=head("multi", outputs=2, members=3), weights=(1.0, -0.5), combine=Combination(rule="min"))
    reading = made.read(raw)
    assert reading.reward == near(float(rewards.min()))
    assert reading.spread == pytest.approx(float(rewards.std()), rel=1e-6, abs=1e-6)
    assert reading.evidence["members"] == pytest.approx(list(rewards))
    plain = Readout(head=head("multi", members=6)).read(raw)
    assert plain.reward == near(float(np.mean(raw)))


def test_gaussian_members_are_brme() -> None:
    """Three Gaussian heads: the nominal reward is that of the head with the smallest deviation (arXiv 2409.15360)."""
    rule = Combination(rule="nominal_min", share=0.6, nominal="surest")
    reading = Readout(head=head("gaussian", outputs=3), combine=rule).read([2.0, 5.0, -1.0, 0.0, -3.0, 1.0])
    assert reading.reward == pytest.approx(0.6 * 5.0 + 0.4 * -1.0)
    within = (np.exp([0.0, -3.0, 1.0]) ** 2).mean()
    assert reading.spread == pytest.approx(math.sqrt(np.var([2.0, 5.0, -1.0]) + within))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"head": head("linear", outputs=3)}, "say what each weighs"),
        ({"head": head("multi", outputs=2, members=2)}, "say what each weighs"),
        ({"head": head("linear", outputs=3), "labels": ("x", "y", "z")}, "x: 1.0, y: 1.0"),
        ({"head": head("linear", outputs=3), "weights": (1.0,)}, "1 weights"),
        ({"head": head("linear"), "risk": 0.5}, "'linear'"),
        ({"head": head("quantile", levels=3), "risk": 0.0}, "0.0"),
        ({"head": head("gating", outputs=2), "combine": Combination()}, "gate"),
        ({"head": head("linear"), "combine": Combination()}, "has 1"),
        ({"head": head("linear", outputs=2), "combine": Combination(), "weights": (1.0, 1.0)}, "one of the two"),
        ({"head": head("multi", members=2), "combine": Combination(rule="nominal_min", nominal="surest")}, "surest"),
    ],
)
def test_options_that_do_not_fit_the_head_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Readout(**options)


def test_other_columns_than_the_head_has_are_refused() -> None:
    with pytest.raises(ValueError, match="gave 2 numbers"):
        Readout(head=head("linear")).read([1.0, 2.0])


def test_weights_by_name_and_by_place() -> None:
    assert weights_of({"y": 2}, ("x", "y"), 2) == (0.0, 2.0)
    assert weights_of({"0": 2, "1": 3}, (), 2) == (2.0, 3.0)
    assert weights_of([1, 2], ("x", "y"), 2) == (1.0, 2.0)
    with pytest.raises(ValueError, match="'z'"):
        weights_of({"z": 1.0}, ("x", "y"), 2)
    with pytest.raises(ValueError, match="inf"):
        weights_of([1.0, math.inf], (), 2)


@given(st.floats(-1e4, 1e4), st.floats(0, 10))
def test_shapes_of_a_reward(reward: float, spread: float) -> None:
    rating = Rating(reward=reward, spread=spread)
    share = float(np.exp(-np.logaddexp(0.0, -np.longdouble(reward))))
    assert rating.shaped("reward", 1.0) == (reward - 1.0, spread)
    assert rating.shaped("sigmoid")[0] == pytest.approx(share, rel=1e-9, abs=1e-300)
    assert rating.shaped("log_sigmoid")[0] == pytest.approx(float(-np.logaddexp(0.0, -np.longdouble(reward))), rel=1e-9)
    slope = rating.shaped("sigmoid")[1]
    assert slope == pytest.approx(share * float(np.exp(-np.logaddexp(0.0, reward))) * spread, abs=1e-12)
    assert rating.shaped("log_sigmoid")[1] == pytest.approx(
        float(np.exp(-np.logaddexp(0.0, reward))) * spread, abs=1e-9
    )
