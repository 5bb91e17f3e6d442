"""The log of an RL run: its law, where gold turns, and columns by other names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjudge.evals.best_of_n.config import BestOfNConfig
from adjudge.evals.best_of_n.evaluating import run_best_of_n
from adjudge.evals.best_of_n.run_log import Point, first_fall
from adjudge.evals.reports.result import Result


def written(path: Path, rows: Sequence[Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def evaluated(path: str, **options: Any) -> Result:
    given: dict[str, Any] = {"resamples": 200} | options
    return run_best_of_n(BestOfNConfig(input=path, run_log=True, **given))


def run(alpha: float, beta: float, *, noise: float = 0.0, seed: int = 0, start: float = 0.4) -> list[dict[str, Any]]:
    """Steps of a run that keeps the law of RL, measured every second step."""
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [{"step": 0, "kl": 0.0, "reward": 0.0, "gold": start}]
    for step in range(1, 41):
        d = 0.25 * step
        row = {"step": step, "kl": d * d, "reward": d}
        if step % 2 == 0:
            row["gold"] = start + d * (alpha - beta * np.log(d)) + noise * draw.normal()
        rows.append(row)
    return rows


def numbers(result: Result, part: str = "") -> dict[str, Any]:
    return {one.name: one.interval for one in result.measures if one.part == part}


def test_a_planted_law_is_found_inside_its_bounds_as_often_as_is_said(tmp_path: Path) -> None:
    held = 0
    for seed in range(30):
        law = numbers(evaluated(written(tmp_path / "a.jsonl", run(0.9, 0.4, noise=0.05, seed=seed))), "law of RL")
        held += law["alpha"].low <= 0.9 <= law["alpha"].high
        assert law["gold at the start"].value == 0.4
    assert 24 <= held < 30  # percentiles of twenty measurements cover a little less than 95 %


def test_the_peak_and_the_turn_are_those_of_the_law(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path / "a.jsonl", run(0.9, 0.6, noise=0.01)))
    assert numbers(result, "law of RL")["d of the peak"].value == pytest.approx(np.exp(0.9 / 0.6 - 1), rel=0.05)
    (turn,) = [check for check in result.checks if "falls" in check.name]
    assert turn.passed is False
    ends = numbers(result)
    assert ends["step of the highest gold"].value in (6, 8)
    assert ends["gold lost behind its peak"].value > 1
    assert [figure.to_dict()["series"][0]["points"] for figure in result.figures] == [True, True]
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_run_that_only_gains_is_not_said_to_fall(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path / "a.jsonl", run(0.9, 0.05, noise=0.02)))
    assert [check.passed for check in result.checks] == [True]


def test_noise_alone_is_seldom_taken_for_a_fall() -> None:
    """Of 200 level runs with known errors, at most 5 % are said to fall, and 18 with a chance of 0.6 % at that rate."""
    draw = np.random.default_rng(1)
    falls = 0
    for _ in range(200):
        golds = draw.normal(scale=0.1, size=20)
        points = [Point(step=at, kl=float(at), proxy=None, gold=float(g), gold_error=0.1) for at, g in enumerate(golds)]
        falls += first_fall(points, 0.95) is not None
    assert falls <= 18


def test_the_journal_of_the_trainer_is_read_in_its_folder(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "divergence": 0.01, "start_gold": 0.5, "start_gold_error": 0.01, "start_proxy": 0.2},
        *(
            {
                "step": step,
                "divergence": 0.04 * step,
                "gold": 0.5 + 0.1 * step,
                "gold_error": 0.01,
                "proxy": 0.2 + step,
                "proxy_error": 0.1,
            }
            for step in range(2, 8)
        ),
        {"step": 8, "divergence": 0.4},
    ]
    written(tmp_path / "steps.jsonl", rows)
    written(tmp_path / "samples.jsonl", [{"step": 1, "prompt": "p"}])
    result = evaluated(str(tmp_path))
    assert result.counts.cases == 7
    assert numbers(result, "law of RL")["gold at the start"].value == 0.5
    assert result.scorer["name"] == "proxy"
    assert "columns: divergence 'divergence', proxy 'proxy', gold 'gold'" in result.notes


def test_other_names_are_named(tmp_path: Path) -> None:
    rows = [{"iteration": at, "d": {"kl": at}, "r": at, "true": at} for at in range(5)]
    path = written(tmp_path / "a.jsonl", rows)
    result = evaluated(path, kl_column="d.kl", proxy="r", gold="column:true")
    assert result.counts.cases == 5
    with pytest.raises(ValueError, match="name it with --kl-column"):
        evaluated(path, proxy="r", gold="true")
    with pytest.raises(ValueError, match="--kl-column 'nope': the input has no such column"):
        evaluated(path, kl_column="nope", proxy="r", gold="true")
    with pytest.raises(ValueError, match="name it with --kl-column"):  # it is the divergence from the step before
        evaluated(written(tmp_path / "c.jsonl", [{"approx_kl": 1, "reward": 1, "gold": 2}]))
    with pytest.raises(ValueError, match="no step of"):
        evaluated(written(tmp_path / "b.jsonl", [{"kl": 1, "reward": 1}, {"gold": 2}]))


def test_too_few_measurements_leave_everything_open(tmp_path: Path) -> None:
    rows = [{"kl": at, "reward": at, "gold": at} for at in range(2)]
    result = evaluated(written(tmp_path / "a.jsonl", rows))
    assert [check.passed for check in result.checks] == [None, None]
    assert not [one for one in result.measures if one.part]
