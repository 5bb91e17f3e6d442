"""The mixture that is told: against a search over a grid, and by hand where it is at an edge."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Ran, adjudge  # noqa: F401  # a fixture

from adjudge.data_pipelines.hygiene.mixture import best_mixture

NAMES = ("code", "math", "qa")


def score(w: tuple[float, ...]) -> float:
    """Rises with math, and most where math and code are mixed; qa adds a little beside math alone."""
    code, math, qa = w
    return 0.3 + 0.1 * math - 0.2 * qa + 0.5 * code * math + 0.3 * math * qa - 0.05 * math**2


def grid(steps: int) -> list[tuple[float, ...]]:
    return [
        (a / steps, b / steps, 1 - (a + b) / steps) for a, b in product(range(steps + 1), repeat=2) if a + b <= steps
    ]


def runs(steps: int, of: Callable[[tuple[float, ...]], float] = score) -> list[tuple[dict[str, float], float]]:
    return [(dict(zip(NAMES, w, strict=True)), of(w)) for w in grid(steps)]


def test_the_best_of_a_quadratic_score_is_found_from_runs_on_other_mixtures() -> None:
    found = best_mixture(runs(3))
    best = max(grid(400), key=score)
    assert list(found.weights.values()) == pytest.approx(best, abs=1 / 400)
    assert found.expected == pytest.approx(score(best), abs=1e-5)
    assert found.expected >= score(best) - 1e-12, "no point of the grid is above it"
    assert found.uniform == pytest.approx(score((1 / 3, 1 / 3, 1 / 3)))
    assert found.best_run == max(score(w) for w in grid(3))
    assert found.error == pytest.approx(0, abs=1e-9)


def test_an_edge_and_a_corner_can_be_best() -> None:
    edge = best_mixture(runs(2, lambda w: w[0] * w[1]))
    assert edge.weights == pytest.approx({"code": 0.5, "math": 0.5, "qa": 0})
    assert edge.error is None, "six runs, six numbers"
    corner = best_mixture(runs(2, lambda w: w[2] - w[0] * w[1]))
    assert corner.weights == {"code": 0, "math": 0, "qa": 1}


def test_the_error_is_that_of_fits_without_each_run() -> None:
    def bent(w: tuple[float, ...]) -> float:
        return score(w) + 0.4 * w[0] ** 3

    given = runs(3, bent)
    squares = [
        (known - fitted([*given[:at], *given[at + 1 :]], mixture)) ** 2 for at, (mixture, known) in enumerate(given)
    ]
    assert best_mixture(given).error == pytest.approx((sum(squares) / len(squares)) ** 0.5)


def fitted(given: list[tuple[dict[str, float], float]], at: dict[str, float]) -> float:
    """The value of a quadratic fit at a mixture, from all terms of a + b . w + w . C w, by numpy's own polynomial."""

    def terms(w: dict[str, float]) -> list[float]:
        x, y = w["code"], w["math"]
        return [1, x, y, x * x, x * y, y * y]

    design = np.array([terms(mixture) for mixture, _ in given])
    return float(np.array(terms(at)) @ np.linalg.lstsq(design, np.array([known for _, known in given]))[0])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([({"a": 1.0}, 0.1)], "mix 1 sources"),
        ([({"a": 0.5, "b": 0.4}, 0.1)], "1 in all"),
        ([({"a": 1.5, "b": -0.5}, 0.1)], "below 0"),
        ([({"a": 0.5, "b": 0.5}, 0.1), ({"a": 1.0}, 0.2)], "determine 2 of the fit's 3 numbers"),
    ],
)
def test_runs_that_say_too_little_are_refused(given: list[tuple[dict[str, float], float]], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        best_mixture(given)


def test_the_command_tells_the_mixture(adjudge: Callable[..., Ran], tmp_path: Path) -> None:  # noqa: F811
    rows = [{"weights": mixture, "score": known} for mixture, known in runs(3)]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    ran = adjudge("data", "mixture", str(path), "--json")
    assert (ran.code, ran.json["weights"]) == (0, pytest.approx(dict(best_mixture(runs(3)).weights)))
    assert "expected" in adjudge("data", "mixture", str(path)).out
    path.write_text('{"weights": {"a": "much"}, "score": 1}', encoding="utf-8")
    ran = adjudge("data", "mixture", str(path))
    assert (ran.code, "row 0" in ran.err) == (2, True)
