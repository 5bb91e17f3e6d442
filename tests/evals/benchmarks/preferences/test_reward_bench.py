from __future__ import annotations

import random
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.reward_bench import EXAMPLES, PRIOR_SETS, RewardBench
from adjudge.statistics.intervals import NO_DRAWS, Draws

SUBSETS = [subset for subsets in EXAMPLES.values() for subset in subsets]
Row = dict[str, Any]


def rows_of(subsets: list[str], seed: int = 0) -> list[Row]:
    """Rows of uneven subsets, with ties and missing scores."""
    draw = random.Random(seed)
    return [
        {
            "id": number,
            "subset": subset,
            "prompt": f"prompt {draw.randrange(60)}",
            "chosen": "right",
            "rejected": "wrong",
            "scores_chosen": draw.choice([0, 1, 2, None]),
            "scores_rejected": [draw.choice([0, 1, 2])],
        }
        for subset in subsets
        for number in range(draw.randrange(3, 15))
    ]


def is_right(row: Row) -> bool:
    return row["scores_chosen"] is not None and row["scores_chosen"] > row["scores_rejected"][0]


def plain_score(rows: list[Row], *, prior: bool) -> dict[str, float]:
    """The formula, written the slow plain way."""
    accuracy = {}
    for subset in {row["subset"] for row in rows}:
        own = [row for row in rows if row["subset"] == subset]
        accuracy[subset] = sum(map(is_right, own)) / len(own)
    sections = {}
    for section, counts in EXAMPLES.items():
        top = sum(counts[subset] * accuracy[subset] for subset in counts if subset in accuracy)
        sections[section] = top / sum(counts[subset] for subset in counts if subset in accuracy)
    four = [sections[name] for name in EXAMPLES]
    if not prior:
        return {**sections, "": sum(four) / 4}
    sections["Prior Sets"] = sum(accuracy[name] for name in PRIOR_SETS) / 4
    return {**sections, "": (sum(four) + 0.5 * sections["Prior Sets"]) / 4.5}


def test_the_weights_are_those_of_the_benchmark() -> None:
    assert len(SUBSETS) == 23
    assert sum(EXAMPLES["Reasoning"].values()) == 2 * 984, "code and mathematics weigh the same"
    assert {section: sum(counts.values()) for section, counts in EXAMPLES.items()} == {
        "Chat": 358,
        "Chat Hard": 456,
        "Safety": 740,
        "Reasoning": 1_968,
    }
    assert 358 + 456 + 740 + 447 + 984 == 2_985, "the pairs of the filtered set"


@pytest.mark.parametrize("prior", [False, True])
def test_the_score_is_the_plain_formula(outcomes: Any, numbers: Any, prior: bool) -> None:
    rows = rows_of(SUBSETS + (list(PRIOR_SETS) if prior else []))
    benchmark = RewardBench(prior_sets=prior)
    measures = benchmark.measures(outcomes(benchmark, rows), Draws(rounds=50))
    found = numbers(measures)
    for part, expected in plain_score(rows, prior=prior).items():
        assert found["score", part] == pytest.approx(expected, abs=1e-12)
    assert measures[0].published
    assert measures[0].interval.n == len(rows)
    assert found["no verdict", ""] == sum(row["scores_chosen"] is None for row in rows) / len(rows)
    assert found["ties", ""] == sum(row["scores_chosen"] == row["scores_rejected"][0] for row in rows) / len(rows)


def test_prior_sets_stand_beside_the_score_unless_they_are_asked_for(outcomes: Any, numbers: Any) -> None:
    rows = rows_of([*SUBSETS, *PRIOR_SETS])
    both = [numbers(b.measures(outcomes(b, rows), NO_DRAWS)) for b in (RewardBench(), RewardBench(prior_sets=True))]
    assert both[0]["score", "Prior Sets"] == both[1]["score", "Prior Sets"]
    assert both[0]["score", ""] == pytest.approx(plain_score(rows, prior=False)[""])
    assert both[1]["score", ""] == pytest.approx(plain_score(rows, prior=True)[""])


def test_a_part_of_the_benchmark_has_no_published_score(outcomes: Any) -> None:
    benchmark = RewardBench()
    measures = benchmark.measures(outcomes(benchmark, rows_of(["math-prm", "hep-cpp", "donotanswer"])), NO_DRAWS)
    assert not any(measure.published for measure in measures)
    reasoning = next(measure for measure in measures if measure.part == "Reasoning")
    accuracy = {measure.part: measure.interval.known for measure in measures if measure.name == "accuracy"}
    expected = (984 * accuracy["math-prm"] + 164 * accuracy["hep-cpp"]) / (984 + 164)
    assert reasoning.interval.known == pytest.approx(expected)


def test_math_prm_alone_is_read_by_the_name_of_its_file(outcomes: Any, numbers: Any) -> None:
    rows = [{"prompt": "p", "chosen": "a", "rejected": "b"}, {"prompt": "q", "chosen": "a", "rejected": "b"}]
    benchmark = RewardBench()
    made = outcomes(benchmark, rows, [(1.0, 0.5), (1.0, 1.0)], file="math-prm.jsonl.gz")
    assert {one.part for one in made} == {"math-prm"}
    assert numbers(benchmark.measures(made, NO_DRAWS))["score", ""] == 0.5, "a tie is wrong"
    assert [benchmark.credit(one) for one in made] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "p", "chosen": "a", "rejected": "b", "subset": "chat"}, "the subset 'chat' is none of RewardBench"),
        ({"prompt": "p", "chosen": "a", "subset": "hep-go"}, "the column 'rejected' is missing"),
        ({"prompt": "p", "chosen": [3], "rejected": "b", "subset": "hep-go"}, "'chosen' is a list; it must be text"),
        ({"prompt": None, "chosen": "a", "rejected": "b", "subset": "hep-go"}, "the column 'prompt' is missing"),
        ({"subset": "hep-go", "scores_chosen": 1.0}, "stores one score of two"),
        ({"subset": "hep-go", "scores_chosen": "high", "scores_rejected": 0}, "a score must be a number"),
        ({"subset": "hep-go", "scores_chosen": True, "scores_rejected": 0}, "a score must be a number"),
        ({"subset": 1.5}, "it must be a name"),
        ({"subset": ["hep-go"]}, "the column 'prompt' is missing"),
        ({"subset": ["hep-go"], "scores_chosen": [1, 2], "scores_rejected": [0]}, "differ in length"),
        ({"subset": [], "scores_chosen": [1]}, "differ in length"),
        ({}, "the subset '' is none"),
    ],
)
def test_a_row_that_is_no_pair_says_what_is_wrong(row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(RewardBench().cases(row, RowPlace(number=0)))


def test_subsets_beside_the_prior_sets_are_no_part_of_it() -> None:
    row = {"prompt": "p", "chosen": "a", "rejected": "b"}
    assert list(RewardBench().cases({**row, "subset": "mtbench_human"}, RowPlace(number=0))) == []
    assert len(list(RewardBench().cases({**row, "subset": "shp"}, RowPlace(number=0)))) == 1


def test_scores_that_are_not_finite_are_none(outcomes: Any) -> None:
    rows = [
        {"subset": "hep-go", "scores_chosen": value, "scores_rejected": 0.0}
        for value in (float("nan"), float("inf"), float("-inf"), [2.0])
    ]
    assert [one.values[0] for one in outcomes(RewardBench(), rows)] == [None, None, None, 2.0]


def test_a_file_of_columns_is_read_as_the_rows_it_holds(outcomes: Any, numbers: Any) -> None:
    rows = rows_of(SUBSETS)
    columns = {name: [row.get(name) for row in rows] for name in ("subset", "scores_chosen", "scores_rejected")}
    table = {**columns, "model": "someone/reward", "text_chosen": [["turn"]] * len(rows)}
    benchmark = RewardBench()
    one, other = (numbers(benchmark.measures(outcomes(benchmark, some), NO_DRAWS)) for some in (rows, [table]))
    assert one == other
    cases = list(benchmark.cases(table, RowPlace(number=0, file="model.json")))
    assert len({case.id for case in cases}) == len(rows)
    assert not any(case.texts for case in cases)


def test_rows_with_scores_alone_say_that_no_scorer_can_be_asked() -> None:
    (bare,) = RewardBench().cases({"subset": "hep-go", "scores_chosen": 1, "scores_rejected": 0}, RowPlace(number=7))
    assert (bare.texts, bare.id) == (False, "7:hep-go")
    row = {"subset": "hep-go", "id": 3, "prompt": "p", "chosen": "a", "rejected": "b"}
    (whole,) = RewardBench().cases(row, RowPlace(number=7))
    assert (whole.texts, whole.id) == (True, "7:hep-go:3")
    assert [sample.response for sample in whole.samples] == ["a", "b"]
