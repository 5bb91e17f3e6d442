"""`best_of_n` end to end: curves against counting, what is missing, where scores come from, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from adjudge.evals.best_of_n.attempts import typical_size
from adjudge.evals.best_of_n.config import BestOfNConfig
from adjudge.evals.best_of_n.evaluating import run_best_of_n
from adjudge.evals.reports.result import Result
from adjudge.protocol import Sample, Score


def written(folder: Path, rows: Sequence[Any], name: str = "in.jsonl") -> str:
    path = folder / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def evaluated(path: str, **options: Any) -> Result:
    given: dict[str, Any] = {"proxy": "column:proxy", "gold": "column:gold", "resamples": 0} | options
    return run_best_of_n(BestOfNConfig(input=path, **given))


def measured(result: Result, name: str, part: str = "") -> Any:
    (found,) = [one for one in result.measures if one.name == name and one.part == part]
    return found


def rows_of(prompts: Sequence[Sequence[tuple[float | None, float | None]]], text: str = "x") -> list[dict[str, Any]]:
    return [
        {"prompt": f"p{at}", "response": text * (1 + place), "proxy": proxy, "gold": gold}
        for at, responses in enumerate(prompts)
        for place, (proxy, gold) in enumerate(responses)
    ]


def slow(responses: Sequence[tuple[Any, Any]], n: int, key: int = 0) -> float:
    """The expected gold of the best of n, subset by subset, with responses that have a gold."""
    known = [one for one in responses if one[1] is not None]
    values = []
    for subset in itertools.combinations(known, n):
        keys = [one[key] for one in subset if one[key] is not None]
        best = [one[1] for one in subset if not keys or one[key] == max(keys)]
        values.append(sum(best) / len(best))
    return float(sum(values) / len(values))


PROMPTS: list[list[tuple[float | None, float | None]]] = [
    [(1.0, 0.0), (2.0, 1.0), (2.0, 0.5), (None, 1.0)],
    [(0.3, 0.2), (0.1, 0.9), (0.3, 0.4), (0.2, None), (0.0, 0.1)],
    [(None, 0.7), (None, 0.1), (None, 0.4), (None, 0.0)],
]


def test_curves_are_those_of_counting_with_ties_and_missing_scores(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path, rows_of(PROMPTS)))
    for n in (1, 2, 4):
        gold = measured(result, "gold of best-of-n", f"n={n}")
        assert gold.interval.value == pytest.approx(np.mean([slow(one, n) for one in PROMPTS]))
        oracle = measured(result, "gold of the best response", f"n={n}").interval
        assert oracle.value == pytest.approx(np.mean([slow(one, n, key=1) for one in PROMPTS]))
        assert gold.baselines["random"] == pytest.approx(np.mean([slow(one, 1) for one in PROMPTS]))
        sized = [[(float(place), gold) for place, (_, gold) in enumerate(one)] for one in PROMPTS]
        assert gold.baselines["longest"] == pytest.approx(np.mean([slow(one, n) for one in sized]))
        shorter = [[(-place, gold) for place, gold in one] for one in sized]
        assert gold.baselines["shortest"] == pytest.approx(np.mean([slow(one, n) for one in shorter]))
        if n > 1:
            lost = oracle.value - gold.interval.value
            assert measured(result, "regret", f"n={n}").interval.value == pytest.approx(lost)
    proxy = measured(result, "proxy of best-of-n", "n=4").interval
    assert (proxy.value, proxy.n) == (pytest.approx((2.0 + 0.3) / 2), 2)
    assert (result.counts.samples, result.counts.scored, result.counts.failed) == (13, 7, 6)
    assert result.counts.reasons == {"gold: no score": 1, "proxy: no score": 5}
    told = " ".join(result.notes)
    assert "1 responses have no gold" in told
    assert "5 responses have no proxy" in told


def test_the_gap_is_the_difference_of_gains_in_standard_deviations(tmp_path: Path) -> None:
    prompts = [[(0.0, 3.0), (2.0, 4.0), (4.0, 2.0)], [(10.0, 1.0), (16.0, 1.0), (13.0, 1.0)]]
    result = evaluated(written(tmp_path, rows_of(prompts)))
    proxy_sd = math.sqrt((4 + 0 + 4 + 9 + 9 + 0) / 6)
    gold_sd = math.sqrt((0 + 1 + 1) / 6)
    risen = ((4 - 2) + (16 - 13)) / 2
    gained = ((2 - 3) + 0) / 2
    gap = measured(result, "gap in standard deviations", "n=3").interval
    assert gap.value == pytest.approx(risen / proxy_sd - gained / gold_sd)


def test_prompts_of_other_sizes_count_only_where_they_reach(tmp_path: Path) -> None:
    prompts = [[(float(at), float(at == 3)) for at in range(4)], [(1.0, 1.0), (0.0, 0.0)], [(2.0, 1.0), (3.0, 0.0)]]
    result = evaluated(written(tmp_path, rows_of(prompts)), most=4)
    assert [measured(result, "gold of best-of-n", f"n={n}").interval.n for n in (1, 2, 4)] == [3, 3, 1]
    assert measured(result, "gold of best-of-n", "n=4").interval.value == 1.0
    assert any("n=1: 3, n=2: 3, n=4: 1" in note for note in result.notes)
    assert measured(evaluated(written(tmp_path, rows_of(prompts))), "gold of best-of-n", "n=2").interval.n == 3
    assert evaluated(written(tmp_path, rows_of(prompts)), most=64).measures[0].part == "n=4"


def test_half_of_the_prompts_reach_the_largest_n() -> None:
    assert typical_size([[0] * size for size in (2, 4, 8)]) == 4  # type: ignore[misc]
    assert typical_size([[0] * size for size in (2, 8)]) == 8  # type: ignore[misc]


def test_a_proxy_that_is_optimised_too_far_is_seen(tmp_path: Path) -> None:
    """Gold rises with the proxy up to 1.2 and falls behind it: the curve turns, and so does the law."""
    draw = np.random.default_rng(0)
    prompts = [[(float(x), float(x - 0.55 * max(x, 0) ** 2)) for x in draw.normal(size=64)] for _ in range(80)]
    result = evaluated(written(tmp_path, rows_of(prompts)), resamples=200)
    peak = measured(result, "n of the highest gold").interval
    assert peak.value in (2, 4, 8)
    assert measured(result, "gold lost behind its peak").interval.low > 0.1
    law = {name: measured(result, name, "law of best-of-n").interval for name in ("alpha", "beta", "d of the peak")}
    assert law["beta"].low > 0
    assert law["d of the peak"].low <= math.sqrt(math.log(peak.value) - 1 + 1 / peak.value) * 1.3
    assert [check.passed for check in result.checks] == [False]
    assert result.found
    assert [figure.to_dict()["kind"] for figure in result.figures] == ["curves"] * 4
    assert json.dumps(result.to_dict(), allow_nan=False)


def test_too_few_responses_leave_the_law_out_and_say_why(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path, rows_of([[(1.0, 1.0), (0.0, 0.0)], [(0.0, 1.0), (1.0, 0.5)]])))
    (check,) = [one for one in result.checks if "fitted" in one.name]
    assert check.passed is None
    assert "needs 3 places" in check.detail
    assert not [one for one in result.measures if one.name == "alpha"]


def test_agreement_within_prompts_is_that_of_plain_formulas(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    prompts = [[(float(p), float(g)) for p, g in draw.integers(0, 5, size=(6, 2)) + at] for at in range(9)]
    result = evaluated(written(tmp_path, rows_of(prompts)))
    ranks = [np.asarray(spearmanr([p for p, _ in one], [g for _, g in one]))[0] for one in prompts]
    found = measured(result, "rank correlation within prompts").interval
    assert found.value == pytest.approx(np.mean(ranks))
    proxy = np.concatenate([np.array([p for p, _ in one]) - np.mean([p for p, _ in one]) for one in prompts])
    gold = np.concatenate([np.array([g for _, g in one]) - np.mean([g for _, g in one]) for one in prompts])
    r2 = measured(result, "R² within prompts").interval.value
    assert r2 == pytest.approx(np.corrcoef(proxy, gold)[0, 1] ** 2)


def test_filters_keep_what_is_reliable(tmp_path: Path) -> None:
    """A proxy that is right at both ends and noise between: the best and the worst tell more than all."""
    draw = np.random.default_rng(4)
    prompts = [
        [(1.0, 1.0), (0.0, 0.0), *((float(x), float(y)) for x, y in draw.uniform(0.3, 0.7, size=(6, 2)))]
        for _ in range(40)
    ]
    result = evaluated(written(tmp_path, rows_of(prompts)), bins=4)
    kept = {one.part: one.interval.value for one in result.measures if one.name == "R² of what a filter keeps"}
    assert kept["best_worst"] == pytest.approx(1.0)
    assert kept["best"] is None
    assert kept["all"] == pytest.approx(
        np.corrcoef([p for one in prompts for p, _ in one], [g for one in prompts for _, g in one])[0, 1] ** 2
    )
    bins = result.figures[-1].to_dict()["series"][0]
    assert len(bins["x"]) == 4
    assert bins["x"] == sorted(bins["x"])
    assert bins["y"][0] < 0.3 < 0.7 < bins["y"][-1]


def test_a_proxy_that_is_always_the_same_gains_nothing(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path, rows_of([[(1.0, float(at)) for at in range(8)]] * 3)))
    assert measured(result, "gold of best-of-n", "n=8").interval.value == pytest.approx(3.5)
    assert measured(result, "rank correlation within prompts").interval.value is None
    assert [check.detail for check in result.checks if "fitted" in check.name] == [
        "gold is the same everywhere, so there is nothing to fit"
    ]


def test_lists_and_several_columns_are_the_same_as_single_rows(tmp_path: Path) -> None:
    single = rows_of([[(0.1, 1.0), (0.9, 0.0), (0.5, 0.5)], [(3.0, 0.2), (1.0, 0.7), (2.0, 0.1)]])
    listed = [
        {name: [row[name] for row in rows] for name in ("response", "proxy", "gold")} | {"prompt": rows[0]["prompt"]}
        for rows in (single[:3], single[3:])
    ]
    columns = [
        {"prompt": row["prompt"]}
        | {f"r{at}": {"text": row["response"][at], "p": row["proxy"][at], "g": row["gold"][at]} for at in range(3)}
        for row in listed
    ]
    named = {
        "response_column": ("r0.text", "r1.text", "r2.text"),
        "proxy": "column:r0.p,r1.p,r2.p",
        "gold": "column:r0.g,r1.g,r2.g",
    }
    without = [{"group": row["prompt"], "proxy": row["proxy"], "gold": row["gold"]} for row in single]
    results = [
        evaluated(written(tmp_path, single, "a.jsonl")),
        evaluated(written(tmp_path, listed, "b.jsonl")),
        evaluated(written(tmp_path, columns, "c.jsonl"), **named),
        evaluated(written(tmp_path, without, "d.jsonl"), group_column="group"),
    ]
    golds = [[one.interval.value for one in result.measures if "gold of" in one.name] for result in results]
    assert golds[0] == golds[1] == golds[2] == golds[3]
    assert "longest" not in results[3].measures[0].baselines


def test_one_element_lists_are_numbers_and_steps_are_aggregated(tmp_path: Path) -> None:
    rows = [
        {"prompt": "p", "response": ["a", "b"], "gold": [0, 1], "proxy": [[0.9, 0.1], [0.5, 0.4]], "one": [[1], [2]]}
    ]
    path = written(tmp_path, rows)
    assert measured(evaluated(path, aggregate="min"), "gold of best-of-n", "n=2").interval.value == 1
    assert measured(evaluated(path, aggregate="max"), "gold of best-of-n", "n=2").interval.value == 0
    assert measured(evaluated(path, proxy="column:one"), "gold of best-of-n", "n=2").interval.value == 1
    with pytest.raises(ValueError, match="2 x proxy: steps without an aggregate"):
        evaluated(path)  # a list of steps is not a number before somebody says how


def test_a_file_of_scores_is_read_by_id(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": "q", "prompt": "p", "response": ["a", "b", "c"], "gold": [0, 1, 0]}])
    scores: list[Any] = [
        {"id": "q/1", "group": "q", "value": 5.0, "status": "scored", "reason": "", "steps": []},
        {"id": "q/0", "group": "q", "value": None, "status": "abstained", "reason": "refused", "steps": []},
    ]
    result = evaluated(path, proxy=written(tmp_path, scores, "s.jsonl"))
    assert measured(result, "gold of best-of-n", "n=2").interval.value == pytest.approx(2 / 3)
    assert (result.counts.abstained, result.counts.failed) == (1, 1)
    assert result.counts.reasons == {"proxy: no score": 1, "proxy: refused": 1}
    with pytest.raises(ValueError, match="two scores with the id 'q/1'"):
        evaluated(path, proxy=written(tmp_path, [scores[0], scores[0]], "t.jsonl"))
    with pytest.raises(ValueError, match="is not a score"):
        evaluated(path, proxy=written(tmp_path, [{"a": 1}], "u.jsonl"))
    twice = written(tmp_path, [{"id": "q", "prompt": "p", "response": x, "gold": 1} for x in "ab"], "v.jsonl")
    with pytest.raises(ValueError, match="unique ids"):
        evaluated(twice, proxy=str(tmp_path / "s.jsonl"))


class Shortest:
    """Likes short responses, and fails on what holds "?"."""

    name = "shortest"
    fingerprint = "shortest:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [
            Score.failed("verifier_error") if "?" in str(one.response) else Score.scored(-float(len(one.response)))
            for one in samples
        ]


def test_scorers_are_asked(tmp_path: Path) -> None:
    rows = [{"prompt": "p", "response": text, "gold": gold} for text, gold in (("aaa", 0), ("b", 1), ("?", 1))]
    result = evaluated(written(tmp_path, rows), proxy=f"{__name__}:Shortest")
    assert measured(result, "gold of best-of-n", "n=3").interval.value == 1
    assert result.scorer == {"name": "shortest", "fingerprint": "shortest:1"}
    assert result.counts.reasons == {"proxy: verifier_error": 1}
    exact = evaluated(
        written(tmp_path, [{"prompt": "p", "response": x, "answer": "b"} for x in ("b", "c")], "e.jsonl"),
        proxy=f"{__name__}:Shortest",
        gold="exact",
    )
    assert exact.measures[0].interval.value == pytest.approx(0.5)


def test_majority_of_answers_is_a_baseline(tmp_path: Path) -> None:
    rows = [{"prompt": "p", "response": ["a", "b", "c", "d"], "proxy": [1, 2, 3, 4], "gold": [1, 1, 0, 0.5]}]
    rows[0]["said"] = ["7", " 7", "8", None]
    result = evaluated(written(tmp_path, rows), answers="said")
    assert measured(result, "gold of best-of-n", "n=4").baselines["majority"] == pytest.approx(1.0)
    pairs = [(1, 1), (1, 0), (1, 0.5), (1, 0), (1, 0.5), (0, 0.5)]
    answers = ["77", "78", "7-", "78", "7-", "8-"]
    worth = [
        first if said[1] == "-" else (first + second) / 2 for (first, second), said in zip(pairs, answers, strict=True)
    ]
    assert measured(result, "gold of best-of-n", "n=2").baselines["majority"] == pytest.approx(np.mean(worth))


def test_worst_choices_can_be_read(tmp_path: Path) -> None:
    rows = rows_of([[(1.0, 0.0), (0.0, 1.0)], [(1.0, 1.0), (0.0, 0.0)], [(1.0, 0.4), (0.0, 0.9)]], text="<b>{x}</b>")
    result = evaluated(written(tmp_path, rows), worst=5)
    assert [round(case.weight, 3) for case in result.worst] == [1.0, 0.5]
    assert [one.value for one in result.worst[0].responses] == [1.0, 0.0]
    assert result.worst[0].responses[0].text == "<b>{x}</b>"
    assert result.worst[0].prompt == "p0"
    assert evaluated(written(tmp_path, rows), worst=0).worst == ()


HOSTILE: list[tuple[dict[str, Any], list[Any], str]] = [
    ({}, [], "holds no rows"),
    ({"proxy": "column:nope"}, rows_of(PROMPTS), "no such column"),
    ({"gold": "column:prox"}, rows_of(PROMPTS), "Did you mean 'proxy'"),
    ({"gold": "no_such_scorer"}, rows_of(PROMPTS), "--gold"),
    ({"gold": "missing.jsonl"}, rows_of(PROMPTS), "no file or folder"),
    ({"proxy": "column:proxy,gold"}, rows_of(PROMPTS), "names 2 columns for 1"),
    ({}, [{"response": "a", "proxy": 1, "gold": 1}], "no group and no prompt"),
    ({}, [{"prompt": "p", "response": "a", "proxy": 1, "gold": None}], "has a gold"),
    ({}, [{"prompt": "p", "response": "a", "proxy": "NaN", "gold": 1}], "has a proxy"),
    ({}, [{"prompt": "p", "response": {"a": 1}, "proxy": 1, "gold": 1}], "holds a response"),
    ({"gold": "exact"}, [{"prompt": "p", "response": "a", "proxy": 1}], "--gold"),
]


@pytest.mark.parametrize(("options", "rows", "why"), HOSTILE)
def test_what_cannot_be_measured_is_refused_with_the_reason(
    tmp_path: Path, options: dict[str, Any], rows: list[Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        evaluated(written(tmp_path, rows), **options)


@pytest.mark.parametrize(
    "options",
    [{"proxy": ""}, {"gold": ""}, {"aggregate": "mode"}, {"most": -1}, {"bins": 1}, {"kl_column": "kl"}, {"level": 2}],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"input": "x", "proxy": "a", "gold": "b"} | options
    with pytest.raises(ValueError, match=next(iter(options)).replace("_", "[-_]")):
        BestOfNConfig(**given)


def test_broken_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    good = "".join(f"{json.dumps(row)}\n" for row in rows_of(PROMPTS))
    path.write_text(good + '{"prompt": "p9", "resp\n[1, 2]\n{"prompt": "p0", "response": null, "proxy": 1}\n', "utf-8")
    result = evaluated(str(path))
    assert result.counts.unreadable == 3
    assert result.counts.samples == 13


def test_numbers_beyond_all_measure_stay_finite(tmp_path: Path) -> None:
    rows = rows_of([[(1e99, 1e90), (-1e99, -1e90), (0.0, 0.0)], [(1e-200, 1.0), (2e-200, 0.0), (1e101, 1.0)]])
    result = evaluated(written(tmp_path, rows), resamples=50)
    assert result.counts.failed == 1
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_column_that_says_what_is_true_is_not_taken_for_the_reference(tmp_path: Path) -> None:
    rows = rows_of(PROMPTS)
    plain = evaluated(written(tmp_path, rows))
    assert any("reference: no such column" in note for note in plain.notes)
    assert {case.gold for case in plain.worst} == {""}
    named = evaluated(written(tmp_path, [{**row, "answer": "7"} for row in rows]))
    assert any("reference: column 'answer'" in note for note in named.notes)


def test_a_choice_that_loses_nothing_but_rounding_is_not_shown(tmp_path: Path) -> None:
    same: list[tuple[float | None, float | None]] = [(1.0, 0.1)] * 6
    assert evaluated(written(tmp_path, rows_of([same]))).worst == ()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"id": "0", "value": "much"}, "row 0 of .* is not a score: `value` is 'much'"),
        ({"id": "0", "value": 1.0, "status": "failed"}, "`status` is 'failed' with the value 1.0"),
        ({"id": "0", "value": 1.0, "evidence": "{"}, "is not a score"),
    ],
)
def test_a_file_of_scores_that_holds_something_else_is_refused(tmp_path: Path, row: dict[str, Any], why: str) -> None:
    scores = written(tmp_path, [row], "scores.jsonl")
    with pytest.raises(ValueError, match=why):
        evaluated(written(tmp_path, rows_of(PROMPTS)), proxy=scores)
