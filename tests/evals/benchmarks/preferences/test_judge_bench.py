from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.two_orders import JudgeBench, part_of
from adjudge.statistics.intervals import NO_DRAWS

Row = dict[str, Any]


def plain(rows: list[Row]) -> float:
    """The published rule: +1 for a decision that is the label, -1 for its opposite; the second one is turned first."""
    turned = {"A>B": "B>A", "B>A": "A>B"}
    right = 0
    for row in rows:
        first, second = (None if one is None else one["decision"] for one in row["judgments"])
        counter = 0
        for decision in (first, turned.get(str(second), second)):
            counter += (decision == row["label"]) - (decision == turned[row["label"]])
        right += counter > 0
    return right / len(rows)


def every_row() -> list[Row]:
    """Every two judgments that there can be: decisions, ties, other words, no decision, no judgment."""
    judgments = [
        *({"decision": word, "judgment": {"response": "..."}} for word in ("A>B", "B>A", "A=B", "A>>B", None)),
        None,
    ]
    return [
        {"pair_id": f"{number}", "source": "mmlu-pro-law", "label": label, "judgments": [first, second]}
        for number, (label, first, second) in enumerate(product(("A>B", "B>A"), judgments, judgments))
    ]


def test_every_combination_of_decisions_counts_as_published(outcomes: Any, numbers: Any) -> None:
    benchmark = JudgeBench()
    for row in every_row():
        made = outcomes(benchmark, [row])
        assert numbers(benchmark.measures(made, NO_DRAWS))["accuracy", ""] == plain([row]), row
    rows = every_row()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), NO_DRAWS))
    assert found["accuracy", ""] == pytest.approx(plain(rows))
    silent = [all(one is None or one["decision"] in (None, "A>>B") for one in row["judgments"]) for row in rows]
    assert found["no verdict", ""] == pytest.approx(sum(silent) / len(rows))


def test_rates_of_the_two_orders(outcomes: Any, numbers: Any) -> None:
    rows = [
        {"pair_id": str(at), "source": "livecodebench", "label": label, "judgments": [{"decision": d} for d in said]}
        for at, (label, said) in enumerate([
            ("A>B", ("A>B", "B>A")),  # right twice
            ("A>B", ("A>B", "A>B")),  # whoever is shown first
            ("B>A", ("A>B", "A>B")),  # the same, with the other label
            ("B>A", ("A>B", "B>A")),  # wrong twice
        ])
    ]  # fmt: skip
    benchmark = JudgeBench()
    found = numbers(benchmark.measures(outcomes(benchmark, rows), NO_DRAWS))
    assert found["accuracy", ""] == 0.25
    assert found["accuracy, ties as half", ""] == 0.5
    assert found["accuracy, as the file orders them", ""] == 0.5
    assert found["accuracy, swapped", ""] == 0.5
    assert found["right in both orders", ""] == 0.25
    assert found["same winner in both orders", ""] == 0.5


def test_one_judgment_is_one_order(outcomes: Any, numbers: Any) -> None:
    rows = [{"pair_id": "1", "source": "livebench-math", "label": "B>A", "judgments": [{"decision": "B>A"}]}]
    benchmark = JudgeBench()
    assert numbers(benchmark.measures(outcomes(benchmark, rows), NO_DRAWS))["accuracy", ""] == 1.0


def test_texts_are_read_in_the_files_order() -> None:
    row = {"pair_id": "p", "source": "livebench-reasoning", "question": "q", "response_A": "x", "response_B": "y"}
    (case,) = JudgeBench().cases({**row, "label": "B>A"}, RowPlace(number=0))
    assert [sample.response for sample in case.samples] == ["x", "y"]
    assert (case.gold, case.part, case.stored, case.texts) == ({"better": 1}, "reasoning", (), True)
    (other,) = JudgeBench().cases({**row, "pair_id": "z", "label": "A>B"}, RowPlace(number=1))
    assert case.cluster == other.cluster, "one question"


def test_parts_are_named_by_the_source() -> None:
    sources = ("mmlu-pro-computer science", "livebench-reasoning", "livebench-math", "livecodebench", "other")
    assert [part_of(source) for source in sources] == ["knowledge", "reasoning", "math", "coding", "other"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "A=B"}, "the label is 'A=B'"),
        ({"label": None}, "'label' is missing"),
        ({"judgments": "A>B"}, "must be a list"),
        ({"judgments": ["A>B", "B>A"]}, "must be an object with a decision"),
        ({"judgments": [{"decision": 1}]}, "a decision is 1"),
        ({"judgments": [{}, {}, {}]}, "holds 3 judgments"),
        ({"pair_id": None}, "'pair_id' is missing"),
        ({"judgments": None}, "'question' is missing"),
    ],
)
def test_a_row_that_does_not_fit_says_why(change: Row, message: str) -> None:
    row = {"pair_id": "p", "source": "s", "label": "A>B", "judgments": [{"decision": "A>B"}]}
    with pytest.raises(ValueError, match=message):
        list(JudgeBench().cases({**row, **change}, RowPlace(number=0)))
