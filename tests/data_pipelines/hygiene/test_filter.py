"""The filters end to end, each against numbers worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tests.data_pipelines.hygiene.row_files import read, write

from adjudge.data_pipelines.hygiene.config import FilterConfig, FilterRule
from adjudge.data_pipelines.hygiene.filter import run_filter, sieve_of
from adjudge.io.jobs.report import JobReport


def run(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> tuple[list[dict[str, Any]], JobReport]:
    given = write(tmp_path / "in.jsonl", rows)
    config = FilterConfig(input=given, output=str(tmp_path / "out.jsonl"), overwrite=True, **options)
    report = run_filter(config)
    return read(config.output), report


def scored(**groups: list[float | None]) -> list[dict[str, Any]]:
    return [{"group": name, "score": score} for name, scores in groups.items() for score in scores]


SPREAD = scored(
    equal=[0.1, 0.1, 0.1], little=[0.5, 0.52], wide=[0.0, 1.0], some=[0.0, 0.0, 0.3], one=[1.0], lost=[1.0, None]
)
DEVIATIONS = {"little": 0.02 / math.sqrt(2), "wide": 1 / math.sqrt(2), "some": 0.3 / math.sqrt(3), "equal": 0.0}


def groups_of(rows: list[dict[str, Any]]) -> set[str]:
    return {row["group"] for row in rows}


def test_prompts_of_equal_scores_teach_nothing(tmp_path: Path) -> None:
    rows, report = run(tmp_path, SPREAD)
    assert groups_of(rows) == {"little", "wide", "some"}
    assert report.dropped == {"equal_scores": 3, "too_few_scores": 3}
    for row in rows:
        assert row["score_spread"] == pytest.approx(DEVIATIONS[row["group"]])


def test_a_least_deviation_and_a_share_of_the_mean_and_a_quantile(tmp_path: Path) -> None:
    rows, report = run(tmp_path, SPREAD, min_spread=0.05)
    assert groups_of(rows) == {"wide", "some"}
    assert report.dropped["little_spread"] == 2
    mean = sum(DEVIATIONS.values()) / 4
    rows, report = run(tmp_path, SPREAD, rule="relative_spread", beta=0.9)
    assert groups_of(rows) == {name for name, spread in DEVIATIONS.items() if spread >= 0.9 * mean} == {"wide"}
    assert report.counts["min_spread"] == pytest.approx(0.9 * mean)
    rows, report = run(tmp_path, SPREAD, rule="spread_quantile", quantile=0.5)
    assert groups_of(rows) == {"wide", "some"}
    assert report.counts["min_spread"] == pytest.approx(np.quantile(list(DEVIATIONS.values()), 0.5))


def test_prompts_that_all_deviate_alike_reach_their_own_mean(tmp_path: Path) -> None:
    groups: dict[str, list[float | None]] = {f"g{number}": [0.0, 1.0] for number in range(7)}
    rows, _ = run(tmp_path, scored(**groups), rule="relative_spread", beta=1.0)
    assert len(rows) == 14  # the mean of the seven comes out one bit above each of them


def test_prompts_that_stay_hard_are_those_under_half_whose_rate_does_not_rise(tmp_path: Path) -> None:
    rounds: dict[str, list[list[float | None]]] = {  # of each prompt, the scores of rounds 1, 2, 4
        "never": [[0, 0], [0, 0], [0, 0]],
        "worse": [[1, 0, 0], [0, 0, 0], [0, 0, 1, 0]],
        "better": [[0, 0, 0], [0, 0, 1], [0, 0, 1]],
        "once": [[0, 0], [1, 0], [0, 0]],
        "short": [[0, 0], [None, None], []],
    }
    given = [
        {"group": name, "step": at, "score": score}
        for name, per_round in rounds.items()
        for at, scores in zip((1, 2, 4), per_round, strict=True)
        for score in scores
    ]
    rows, report = run(tmp_path, given, rule="persistent", round_column="step")
    assert groups_of(rows) == {"never", "worse"}
    assert report.dropped == {"improves": 9, "was_solved": 6, "too_few_rounds": 4}
    slope = next(row["rate_slope"] for row in rows if row["group"] == "worse")
    rates, mean = {1: 1 / 3, 2: 0.0, 4: 0.25}, 7 / 3
    wanted = sum((at - mean) * rate for at, rate in rates.items()) / sum((at - mean) ** 2 for at in rates)
    assert slope == pytest.approx(wanted)
    with pytest.raises(ValueError, match="go together"):
        run(tmp_path, given, rule="persistent")


def test_a_score_without_measure_stops_nothing(tmp_path: Path) -> None:
    given = scored(fine=[0.0, 1.0], huge=[1e200, -1e200], tiny=[1e-200, 2e-200])
    rows, _ = run(tmp_path, given)
    spreads = {row["group"]: row["score_spread"] for row in rows}
    assert spreads["huge"] == pytest.approx(math.sqrt(2) * 1e200)
    assert spreads["tiny"] == pytest.approx(1e-200 / math.sqrt(2))
    rows, _ = run(tmp_path, given, rule="pf_ppo", policy="power")
    assert [row["weight"] for row in rows] == pytest.approx([2.0, 1.0, 1.0, 0.4, 1.6])


def proxy_rows() -> list[dict[str, Any]]:
    """At the top and at the bottom the reward is the truth; between them it says nothing."""
    rows = []
    for group in range(30):
        middle = [(0.4 + 0.05 * at, float((at + group) % 2)) for at in range(4)]
        for reward, true in [(1.0 + group % 2, 1.0), (-1.0, 0.0), *middle]:
            rows.append({"group": f"g{group}", "score": reward, "true": true})
    return rows


def weighted_r2(rows: list[dict[str, Any]], weights: np.ndarray[Any, Any]) -> float:
    """R² of weighted least squares, by solving for the line."""
    x = np.array([row["score"] for row in rows])
    y = np.array([row["true"] for row in rows])
    design = np.stack([np.ones_like(x), x], axis=1) * np.sqrt(weights)[:, None]
    coefficients, *_ = np.linalg.lstsq(design, y * np.sqrt(weights), rcond=None)
    residual = weights @ (y - coefficients[0] - coefficients[1] * x) ** 2
    return float(1 - residual / (weights @ (y - weights @ y / weights.sum()) ** 2))


def test_pf_ppo_takes_the_policy_whose_rewards_say_most_about_the_truth(tmp_path: Path) -> None:
    given = proxy_rows()
    rows, report = run(tmp_path, given, rule="pf_ppo", true_column="true")
    assert {row["policy"] for row in rows} == {"best_worst"}
    assert [row["weight"] for row in rows] == [3.0] * 60  # six responses, two of which are drawn
    assert report.dropped == {"no_weight": 120}
    ends = np.array([3.0 if abs(row["score"]) >= 1 else 0.0 for row in given])
    assert report.counts["r2_best_worst"] == pytest.approx(weighted_r2(given, ends))
    mixed = np.array([6 * (0.4 if row["score"] >= 1 else 0.1) / 0.9 for row in given])
    assert report.counts["r2_best_random"] == pytest.approx(weighted_r2(given, mixed))
    squares = np.array([row["score"] ** 2 for row in given]).reshape(30, 6)
    power = (6 * squares / squares.sum(axis=1, keepdims=True)).reshape(-1)
    assert report.counts["r2_power"] == pytest.approx(weighted_r2(given, power))
    assert "r2_best" not in report.counts  # the best are all right, so no line can be fitted


def test_pf_ppo_takes_the_policy_that_is_named_and_leaves_out_unknown_rewards(tmp_path: Path) -> None:
    rows, report = run(tmp_path, scored(a=[1.0, 3.0, None], b=[2.0]), rule="pf_ppo", policy="power", exponent=1.0)
    assert [(row["group"], row["weight"]) for row in rows] == [("a", 0.5), ("a", 1.5), ("b", 1.0)]
    assert report.dropped == {"unknown_score": 1}


def test_pf_ppo_reads_no_score_out_of_a_list_that_comes_late(tmp_path: Path) -> None:
    given = [{"group": f"g{number % 9}", "score": 1.0 + number % 3, "true": number % 3} for number in range(120)]
    late = [{"group": "g0", "score": score, "true": 1.0} for score in ([], [9.0, 0.0])]
    rows, report = run(tmp_path, [*given, *late], rule="pf_ppo", policy="power", true_column="true")
    assert (len(rows), report.dropped) == (120, {"unknown_score": 2})
    given[110]["true"] = []
    _, report = run(tmp_path, given, rule="pf_ppo", policy="power", true_column="true")
    assert report.counts["r2_power"] == pytest.approx(1.0)


def test_pf_ppo_says_when_nothing_tells_the_policies_apart(tmp_path: Path) -> None:
    rows = [{"group": "a", "score": score, "true": 1} for score in (1.0, 2.0)]
    with pytest.raises(ValueError, match="--policy"):
        run(tmp_path, rows, rule="pf_ppo", true_column="true")


def test_what_was_guessed_is_left_out_and_what_nobody_tried_is_counted(tmp_path: Path) -> None:
    tries: list[dict[str, Any]] = [
        {"prompt": "Guess ME", "score": 0.0},
        {"prompt": "guess me", "score": 1.0},
        {"prompt": "think", "score": 0.0},
        {"prompt": "think", "score": None},
    ]
    guesses = write(tmp_path / "tries.jsonl", tries)
    given = [{"prompt": text} for text in ("guess me", "think", "new", "guess  me")]
    rows, report = run(tmp_path, given, rule="guessed", guesses=guesses)
    assert [(row["prompt"], row["guess_tries"]) for row in rows] == [("think", 1), ("new", 0)]
    assert (report.dropped, report.counts) == ({"guessed": 2}, {"rows_not_tried": 1})
    rows, _ = run(tmp_path, given, rule="guessed", guesses=guesses, guessed_times=2)
    assert len(rows) == 4
    with pytest.raises(ValueError, match=r"no prompt of .* was tried.*--group-column"):
        run(tmp_path, [{"prompt": "other"}], rule="guessed", guesses=guesses)


def test_tries_in_another_order_are_joined_by_their_prompts(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [{"group": str(at), "prompt": text} for at, text in enumerate(("easy", "hard"))]
    tries = [{"group": str(at), "prompt": text, "score": text == "easy"} for at, text in enumerate(("hard", "easy"))]
    guesses = write(tmp_path / "tries.jsonl", tries)
    rows, _ = run(tmp_path, given, rule="guessed", guesses=guesses)
    assert [row["prompt"] for row in rows] == ["hard"]
    rows, _ = run(tmp_path, given, rule="guessed", guesses=guesses, group_column="group")
    assert [row["prompt"] for row in rows] == ["easy"]
    alone = [{"group": row["group"]} for row in given]
    with pytest.raises(ValueError, match="--group-column"):
        run(tmp_path, alone, rule="guessed", guesses=guesses)
    rows, _ = run(tmp_path, alone, rule="guessed", guesses=guesses, group_column="group")
    assert [row["group"] for row in rows] == ["0"]


def test_texts_by_length_and_repetition(tmp_path: Path) -> None:
    loop = "the same ten words come again and again and again " * 6
    rows = [{"prompt": text} for text in ("one", "one two", "one two three", loop)]
    kept, report = run(tmp_path, rows, rule="length", min_words=2, max_words=3)
    assert [row["prompt"] for row in kept] == ["one two", "one two three"]
    assert report.dropped == {"too_long": 1, "too_short": 1}
    kept, report = run(tmp_path, rows, rule="repetition", dropped=True)
    assert report.dropped == {"repetition": 1}
    (left_out,) = read(tmp_path / "out.jsonl.dropped.jsonl")
    assert (left_out["dropped_times"], left_out["dropped_repeated"].split()[0]) == (6, "the")
    assert run(tmp_path, rows, rule="repetition", repeat_times=7)[1].dropped == {}


def test_every_rule_has_a_sieve_and_the_fingerprint_of_one_changes_with_its_options(tmp_path: Path) -> None:
    guesses = write(tmp_path / "tries.jsonl", [{"prompt": "a", "score": 1}])
    for rule in get_args(FilterRule):
        needed: dict[str, dict[str, Any]] = {"guessed": {"guesses": guesses}, "persistent": {"round_column": "step"}}
        config = FilterConfig(input="x", output="y", rule=rule, true_column="t", **needed.get(rule, {}))
        assert sieve_of(config).options
    one = sieve_of(FilterConfig(input="x", output="y", min_spread=0.1))
    other = sieve_of(FilterConfig(input="x", output="y", min_spread=0.2))
    assert one.options != other.options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rule": "none"}, "--rule"),
        ({"rule": "pf_ppo"}, "--true-column"),
        ({"rule": "pf_ppo", "policy": "worst"}, "--policy"),
        ({"rule": "guessed"}, "--guesses"),
        ({"guesses": "f.jsonl"}, "--rule guessed"),
        ({"quantile": 1.5}, "--quantile"),
        ({"beta": math.nan}, "--beta"),
        ({"min_words": 9, "max_words": 3}, "--max-words"),
        ({"repeat_times": 1}, "--repeat-times"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FilterConfig(input="x", output="y", **options)


def test_responses_that_passed_stay_and_an_unknown_score_is_no_pass(tmp_path: Path) -> None:
    rows, report = run(tmp_path, scored(a=[1.0, 0.5, 0.4], b=[None, 0.9]), rule="passed")
    assert [row["score"] for row in rows] == [1.0, 0.5, 0.9]
    assert report.dropped == {"not_passed": 1, "unknown_score": 1}
    rows, _ = run(tmp_path, scored(a=[1.0, 0.5]), rule="passed", pass_score=1.0)
    assert [row["score"] for row in rows] == [1.0]
    rows, report = run(tmp_path, scored(a=[-0.01, -0.5, -3.0, -3.1]), rule="passed", pass_score=-3.0, max_score=-0.05)
    assert [row["score"] for row in rows] == [-0.5, -3.0]
    assert report.dropped == {"too_high": 1, "not_passed": 1}
    with pytest.raises(ValueError, match="holds lists; --rule passed"):
        run(tmp_path, [{"group": "a", "score": [1.0, 0.0]}], rule="passed")
