"""LLMBar: the official statistics out of the stored verdicts, and its rates against plain counting."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from tests.evals.benchmarks.judging.made import cases, numbers, outcomes, run, written

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.two_orders import ADVERSARIAL, SUBSETS, LlmBar, subset_of
from adjudge.statistics.intervals import NO_DRAWS, Draws, wilson

OFFICIAL = {
    "accuracy": "correct_average",
    "accuracy, order 1": "correct_False",
    "accuracy, order 2": "correct_True",
    "right in both orders": "correct_both",
    "orders agree (published)": "equal",
    "kappa, order 1 (published)": "kappa_False",
    "kappa, order 2 (published)": "kappa_True",
    "mean kappa (published)": "kappa_average",
    "kappa of orders (published)": "kappa_agreement",
}
ABSENT = {
    "Metrics": 30,
    "Reference": 30,
    "Vanilla_1shot": 25,
    "Vanilla_2shot": 25,
    "Rating_NoRules": 10,
    "Rating_Metrics": 5,
    "Rating_Metrics_Reference": 5,
    "Rating_Reference": 5,
}
"""Strategies of which the corpus has the statistics, and no completion of any judge."""
LONGER = {
    "Adversarial-Neighbor": 0.119,
    "Adversarial-GPTInst": 0.130,
    "Adversarial-Manual": 0.174,
    "Adversarial-GPTOut": 0.447,
    "Natural": 0.56,
}
_ORDERS = ("swap = False", "swap = True")


def number_of(statistic: Any) -> float:
    """A share out of "33 / 92 = 35.87%", or a kappa."""
    return statistic if isinstance(statistic, float) else float(statistic.rstrip("%").rpartition("= ")[2]) / 100


def test_every_official_statistic_with_completions_comes_out(corpora: Any) -> None:
    result = run(LlmBar(), corpora.root / "llmbar" / "judge_raw_outputs.jsonl.gz")
    found = numbers(result.measures)
    parts = {part for _, part in found}
    compared = 0
    absent: Counter[str] = Counter()
    for row in corpora.whole("llmbar/judge_statistics_official.json"):
        part = f"{row['subset']} {row['llm']} {row['strategy']}"
        if part not in parts:
            absent[row["strategy"]] += 1
            continue
        for name, column in OFFICIAL.items():
            assert found[name, part] == pytest.approx(number_of(row[column]), abs=1e-9), (part, name)
            compared += 1
    assert compared == 190 * 9
    assert absent == ABSENT
    assert sum(ABSENT.values()) == 135
    assert (result.counts.cases, result.counts.failed) == (15_922, 93)


def test_one_judge_has_the_means_of_the_paper(corpora: Any) -> None:
    path = corpora.root / "llmbar" / "judge_raw_outputs.jsonl.gz"
    result = run(LlmBar(judge="GPT-4", strategy="CoT"), path, resamples=50)
    official = {
        row["subset"]: number_of(row["correct_average"])
        for row in corpora.whole("llmbar/judge_statistics_official.json")
        if (row["llm"], row["strategy"]) == ("GPT-4", "CoT")
    }
    found = numbers(result.measures)
    assert found["mean of 5 subsets", ""] == pytest.approx(sum(official[name] for name in SUBSETS) / 5)
    assert found["mean of 4 adversarial", ""] == pytest.approx(sum(official[name] for name in ADVERSARIAL) / 4)
    assert found["accuracy", "Natural"] == pytest.approx(0.945)
    assert found["right in both orders", "Natural"] == pytest.approx(0.90)
    proper, published = found["label kappa, order 1", "Natural"], found["kappa, order 1 (published)", "Natural"]
    assert proper is not None
    assert published is not None
    assert proper > 0.8 > 0.5 > published, "the published codes make an excellent judge look poor"
    first = result.measures[0].interval
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.known < first.high


def test_the_longer_output_loses(corpora: Any) -> None:
    for subset, share in LONGER.items():
        file = f"LLMBar__{subset.replace('-', '__')}.json"
        benchmark = LlmBar()
        rows = corpora.whole(f"llmbar/{file}")
        made = cases(benchmark, rows, file)
        assert {case.part for case in made} == {subset}
        result = run(benchmark, corpora.root / "llmbar" / file, "tests.evals.benchmarks.judging.made:Shouts", worst=0)
        assert round(result.measures[0].baselines["longer"] or 0, 2 if subset == "Natural" else 3) == share


def row(label: int, one: str | None, other: str | None, **more: Any) -> dict[str, Any]:
    winners = dict(zip(_ORDERS, ({"winner": one}, {"winner": other}), strict=True))
    return {
        "input": "q",
        "output_1": "a",
        "output_2": "b",
        "label": label,
        "results": [["text", "stop"], winners],
        **more,
    }


VERDICTS = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.sampled_from(["1", "2", None]), st.sampled_from(["1", "2", None])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=40)
@given(VERDICTS)
def test_rates_equal_plain_counting(verdicts: list[tuple[int, str | None, str | None]]) -> None:
    benchmark = LlmBar()
    found = numbers(benchmark.measures(outcomes(benchmark, [row(*one) for one in verdicts], "x.json"), NO_DRAWS))
    n = len(verdicts)
    straight = [str(label) == one for label, one, _ in verdicts]
    swapped = [str(label) == other for label, _, other in verdicts]
    assert found["accuracy, order 1", ""] == pytest.approx(sum(straight) / n)
    assert found["accuracy, order 2", ""] == pytest.approx(sum(swapped) / n)
    assert found["accuracy", ""] == pytest.approx((sum(straight) + sum(swapped)) / (2 * n))
    assert found["right in both orders", ""] == pytest.approx(sum(map(min, straight, swapped)) / n)
    assert found["orders agree", ""] == pytest.approx(sum(a == b is not None for _, a, b in verdicts) / n)
    assert found["orders agree (published)", ""] == pytest.approx(sum(a == b for _, a, b in verdicts) / n)
    assert found["no verdict", ""] == pytest.approx(sum((a is None) + (b is None) for _, a, b in verdicts) / (2 * n))
    both = [(a, b) for _, a, b in verdicts if a and b]
    against = [(str(label), a) for label, a, _ in verdicts if a]
    coded = [(label, int(a == "1")) for label, a, _ in verdicts]
    for name, pairs in (
        ("kappa of orders", both),
        ("label kappa, order 1", against),
        ("kappa, order 1 (published)", coded),
    ):
        assert same(found[name, ""], pairs), name
    credits = [benchmark.credit(one) for one in outcomes(benchmark, [row(*one) for one in verdicts], "x.json")]
    assert sum(one for one in credits if one is not None) / n == pytest.approx(found["accuracy", ""])
    assert [one is None for one in credits] == [a is b is None for _, a, b in verdicts]


def same(found: float | None, pairs: list[tuple[Any, Any]]) -> bool:
    """Whether a kappa is scikit-learn's, or unknown where there is none."""
    if not pairs or len({label for pair in pairs for label in pair}) == 1:
        return found is None
    expected: float = cohen_kappa_score(*zip(*pairs, strict=True))
    return found is not None and abs(found - expected) < 1e-9


def test_a_tie_of_single_outputs_is_wrong_or_follows_the_place(tmp_path: Path) -> None:
    rows = [{"input": "q", "output_1": "AA", "output_2": "BB", "label": 1}]
    path = written(tmp_path / "Natural.json", rows)
    scorer = "tests.evals.benchmarks.judging.made:Shouts"
    strict = numbers(run(LlmBar(), path, scorer).measures)
    assert (strict["accuracy", ""], strict["ties", ""]) == (0.0, 1.0)
    placed = numbers(run(LlmBar(ties="by_place"), path, scorer).measures)
    assert (placed["accuracy", ""], placed["right in both orders", ""], placed["ties", ""]) == (0.5, 0.0, 0.0)
    with pytest.raises(ValueError, match="ties='half'"):
        LlmBar(ties="half")  # type: ignore[arg-type]


def test_a_scorer_of_pairs_is_asked_in_both_orders(tmp_path: Path) -> None:
    rows = [
        {"input": "q", "output_1": "YES", "output_2": "no", "label": 1},
        {"input": "r", "output_1": "fail", "output_2": "no", "label": 2},
        {"input": "s", "output_1": "yes", "output_2": "no", "label": 1},
    ]
    louder = "tests.evals.benchmarks.judging.made:Louder"
    result = run(LlmBar(), written(tmp_path / "LLMBar__Natural.json", rows), louder)
    found = numbers(result.measures)
    assert (found["accuracy, order 1", ""], found["accuracy, order 2", ""]) == pytest.approx((2 / 3, 2 / 3))
    assert found["no verdict", ""] == pytest.approx(1 / 6)
    assert (result.counts.failed, result.counts.tied) == (1, 1)
    assert result.found


def test_bounds_of_a_share_of_none_are_no_point() -> None:
    rows = [{**row(1, "2", "2"), "input": f"{at // 2}"} for at in range(20)]
    found = {one.name: one.interval for one in LlmBar().measures(outcomes(LlmBar(), rows), Draws(rounds=50))}
    bounds = wilson(0, 10)  # as many rows as there are prompts
    assert (found["accuracy"].value, found["accuracy"].high) == (0.0, bounds.high)
    assert found["accuracy"].low == pytest.approx(0.0)
    assert (found["orders agree"].value, found["orders agree"].high) == (1.0, 1.0)
    assert found["orders agree"].low == pytest.approx(1 - (bounds.high or 0))


def test_bounds_hold_pairs_of_many_judges_together(corpora: Any) -> None:
    """The rows of one pair are one cluster, so a whole file has not the bounds of 15,922 independent rows."""
    benchmark = LlmBar()
    rows = corpora.rows("llmbar/judge_raw_outputs.jsonl.gz")
    natural = [one for one in rows if one["subset"] == "Natural"]
    made = outcomes(benchmark, natural)
    assert len({one.cluster for one in made}) == 100
    (found,) = (one for one in benchmark.measures(made, Draws(rounds=200)) if (one.name, one.part) == ("accuracy", ""))
    assert found.interval.low is not None
    assert found.interval.known - found.interval.low > 0.02


@pytest.mark.parametrize(
    ("file", "subset"),
    [
        ("LLMBar__Adversarial__Manual.json", "Adversarial-Manual"),
        ("Processed__LLMEval^2.json", "Processed-LLMEval^2"),
        ("CaseStudy__Base_9.jsonl.gz", "CaseStudy-Base_9"),
        ("", ""),
    ],
)
def test_the_file_says_the_subset(file: str, subset: str) -> None:
    assert subset_of(file) == subset


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 3}, "'label' holds 3"),
        ({"label": True}, "must be a whole number"),
        ({"output_2": None}, "the column 'output_2' is missing"),
        ({"input": ["q"]}, "must be text"),
        ({"results": []}, "'results' holds"),
        ({"results": [["x"]]}, "its last item"),
        (
            {"results": [dict(zip(_ORDERS, ({"winner": "3"}, {}), strict=True))]},
            "winner in the column 'results' is '3'",
        ),
        ({"results": "\x1b[2J"}, r"'\\x1b\[2J'"),
    ],
)
def test_rows_that_are_none_say_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LlmBar().cases({**row(1, "1", "2"), **change}, RowPlace(number=0))


def test_what_is_right_is_said_in_words() -> None:
    (made,) = outcomes(LlmBar(), [row(2, "1", "2")])
    assert LlmBar().words(made) == ("output 2 is better", ["rejected", "chosen"])
