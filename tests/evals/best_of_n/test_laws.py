"""The laws are fitted as SciPy fits them, planted ones are found inside their bounds, and hopeless data are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit, minimize_scalar

from adjudge.evals.best_of_n.curves import PromptCurves, bounded, distances, fit_law, law_curve, refusal
from adjudge.statistics.bootstrap import weighted_bootstrap
from adjudge.statistics.intervals import Draws


def best_of_n(d: Any, alpha: float, beta: float) -> Any:
    return d * (alpha - beta * d)


def rl(d: Any, alpha: float, beta: float) -> Any:
    return d * (alpha - beta * np.log(d))


LAWS: Any = {"best_of_n": best_of_n, "rl": rl}


@pytest.mark.parametrize("law", ["best_of_n", "rl"])
def test_fits_are_those_of_scipy(law: Any) -> None:
    draw = np.random.default_rng(3)
    d = np.linspace(0.4, 4, 9)
    gains = np.array([LAWS[law](d, 0.7, 0.2), LAWS[law](d, 0.5, 0.1)]) + 0.05 * draw.normal(size=(2, 9))
    fit = fit_law(d, gains, law)
    for row in range(2):
        (alpha, beta), _ = curve_fit(LAWS[law], d, gains[row])
        assert [fit.alpha[row], fit.beta[row]] == pytest.approx([alpha, beta], rel=1e-5)
        left = gains[row] - LAWS[law](d, alpha, beta)
        assert fit.residual[row] == pytest.approx(np.sqrt((left**2).mean()), rel=1e-5)
        top = minimize_scalar(lambda x, a=alpha, b=beta: -LAWS[law](x, a, b), bounds=(1e-3, 50), method="bounded")
        assert fit.peak()[row] == pytest.approx(top.x, rel=1e-3)


def test_weighted_fits_with_a_level_are_those_of_scipy() -> None:
    draw = np.random.default_rng(5)
    d, times = np.linspace(0.2, 5, 12), np.random.default_rng(1).integers(0, 4, size=12).astype(float)
    gains = 0.3 + rl(d, 0.7, 0.3) + 0.05 * draw.normal(size=12)
    fit = fit_law(d, gains[None], "rl", weights=times, from_start=False)
    seen = np.repeat(np.arange(12), times.astype(int))
    (start, alpha, beta), _ = curve_fit(lambda x, s, a, b: s + rl(x, a, b), d[seen], gains[seen])
    assert [fit.start[0], fit.alpha[0], fit.beta[0]] == pytest.approx([start, alpha, beta], rel=1e-4)
    places = np.array([0.0, 1.0, 2.0])
    curve = law_curve("rl", places, fit.alpha[0], fit.beta[0], fit.start[0])
    assert curve == pytest.approx([start, start + alpha, start + rl(2.0, alpha, beta)], rel=1e-4)


def test_a_curve_that_never_falls_has_no_peak() -> None:
    d = np.array([0.5, 1.0, 2.0])
    assert np.isnan(fit_law(d, np.array([best_of_n(d, 0.5, -0.1)]), "best_of_n").peak()[0])
    assert np.isnan(fit_law(d, np.array([best_of_n(d, -0.5, 0.1)]), "best_of_n").peak()[0])
    assert np.isnan(fit_law(d, np.array([rl(d, 0.5, -0.1)]), "rl").peak()[0])


@pytest.mark.parametrize(
    ("d", "gains", "why"),
    [
        ([0.5, 1.0], [0.1, 0.2], "needs 3 places"),
        ([0.5, 0.5, 0.5, 1.0], [0.1, 0.2, 0.3, 0.4], "needs 3 places"),
        ([0.5, 1.0, 2.0], [0.0, 0.0, 0.0], "the same everywhere"),
        ([0.5, 1.0, 2.0], [0.1, np.nan, 0.2], "the same everywhere"),
        ([1.0, 1.0 + 1e-8, 1.0 + 2e-8], [0.1, 0.2, 0.3], "too close together"),
    ],
)
def test_data_that_cannot_say_are_refused(d: list[float], gains: list[float], why: str) -> None:
    assert why in refusal(d, np.array([gains]), "best_of_n")


def curves_of(gold: Any, ns: tuple[int, ...]) -> PromptCurves:
    ones = np.ones_like(gold)
    return PromptCurves(ns=ns, known=ones, gold=gold, proxy=gold, proxy_known=ones, others={"oracle": gold})


def test_planted_laws_lie_inside_their_bounds_as_often_as_is_said() -> None:
    """100 data sets of 60 prompts whose curves scatter around a law: 95 % bounds hold alpha and beta 90 times at least.

    The chance of fewer, if the coverage were 95 %, is 1.1 %; percentiles of 60 prompts cover about 93 %.
    """
    ns = (1, 2, 4, 8, 16, 32)
    d = distances(ns)
    held = {"alpha": 0, "beta": 0, "d of the peak": 0}
    truth = {"alpha": 0.8, "beta": 0.3, "d of the peak": 0.8 / 0.6}
    for seed in range(100):
        draw = np.random.default_rng(seed)
        own = draw.normal(1, 0.4, size=(60, 1))
        gold = draw.normal(size=(60, 1)) + own * best_of_n(d, 0.8, 0.3) + 0.1 * draw.normal(size=(60, 6))
        names = [str(at) for at in range(60)]
        found = bounded(curves_of(gold, ns), np.ones((60, 4)), names, Draws(rounds=300, seed=seed)).single
        for name in held:
            low, high = found[name].low, found[name].high
            assert low is not None
            assert high is not None
            held[name] += low <= truth[name] <= high
    assert min(held.values()) >= 86, held
    assert held["alpha"] + held["beta"] < 200, "bounds that always hold are too wide"


def test_resamples_of_a_run_know_the_law_or_say_nothing() -> None:
    d = np.array([0.3, 0.6, 1.2, 2.4])
    gains = np.array([rl(d, 0.6, 0.2)]) + np.array([0.001, -0.001, 0.001, -0.001])

    def statistic(times: Any) -> Any:
        return fit_law(d, gains, "rl", weights=times).alpha

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (alpha,) = weighted_bootstrap(list("abcd"), statistic, Draws(rounds=200))
    assert [alpha.value, alpha.low, alpha.high] == pytest.approx([0.6] * 3, abs=0.02)
