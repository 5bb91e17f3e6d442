"""PandaLM: its published numbers, and its rates against scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.preferences.conftest import outcome_of

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.people import PandaLm
from adjudge.pages.figures import Grid
from adjudge.statistics.intervals import NO_DRAWS


@pytest.mark.parametrize(
    ("judge", "options", "published"),
    [
        ("pandalm-7b", {}, (0.6677, 0.5738, 0.5750, 0.5743)),
        ("pandalm-7b", {"missing": "tie"}, (0.6677, 0.5738, 0.5750, 0.5743)),
        ("gpt-3.5-turbo", {"missing": "tie"}, (0.7107, 0.5879, 0.5736, 0.5755)),
        ("gpt-3.5-turbo", {}, (0.6927,)),
        ("gpt-3.5-turbo", {"tie_words": "tie"}, (0.6977,)),
    ],
)
def test_published_numbers(corpora: Any, judge: str, options: dict[str, Any], published: tuple[float, ...]) -> None:
    """The last one is not a published number: the judge's word for a tie is read, and its garbage is wrong."""
    folder = corpora.root / "pandalm"
    benchmark = PandaLm(answers=str(folder / f"{judge}-testset-v1.json"), **options)
    result = run(benchmark, folder / "testset-v1.json")
    found = numbers(result.measures)
    for name, value in zip(("agreement", "precision", "recall", "F1"), published, strict=False):
        assert round(found[name, ""] or 0, 4) == value
    people = [found[f"kappa of annotators {one} and {other}", ""] for one, other in ((1, 2), (1, 3), (2, 3))]
    assert people == pytest.approx([0.852, 0.879, 0.862], abs=5e-4)
    assert (result.counts.cases, result.counts.unreadable) == (999, 0)
    unread = 0 if judge == "pandalm-7b" else 25 if "tie_words" in options else 63
    assert result.counts.failed == 2 * unread
    assert found["no verdict", ""] == pytest.approx(0 if "missing" in options else unread / 999)


LABEL = st.sampled_from([0, 1, 2])
VALUES = {0: (0.5, 0.5), 1: (2.0, -1.0), 2: (0.0, 0.25), None: (None, 0.5)}


def row(people: tuple[int, int, int], number: int) -> dict[str, Any]:
    texts = {"instruction": "Do.", "input": f"{number}", "response1": "a", "response2": "b"}
    return {"idx": number, **texts, **{f"annotator{at}": label for at, label in enumerate(people, start=1)}}


@settings(max_examples=40)
@given(st.lists(st.tuples(st.tuples(LABEL, LABEL, LABEL), st.sampled_from([0, 1, 2, None])), min_size=1, max_size=30))
def test_rates_equal_scikit_learn(rows: list[tuple[tuple[int, int, int], int | None]]) -> None:
    made = cases(PandaLm(), [row(people, at) for at, (people, _) in enumerate(rows)])
    outcomes = [outcome_of(case, VALUES[said]) for case, (_, said) in zip(made, rows, strict=True)]
    most = [people[1] if people[1] == people[2] else people[0] for people, _ in rows]
    for missing, word in (("wrong", 3), ("tie", 0)):
        benchmark = PandaLm(missing=missing)  # type: ignore[arg-type]
        found = numbers(benchmark.measures(outcomes, NO_DRAWS))
        said = [word if verdict is None else verdict for _, verdict in rows]
        right = sum(a == b for a, b in zip(most, said, strict=True)) / len(rows)
        assert found["agreement", ""] == pytest.approx(right)
        support: Any = precision_recall_fscore_support
        rates = support(most, said, labels=[0, 1, 2], average="macro", zero_division=0.0)[:3]
        assert [found[name, ""] for name in ("precision", "recall", "F1")] == pytest.approx(list(rates))
        expected = None if len({*most, *said}) == 1 else cohen_kappa_score(most, said)
        assert found["kappa", ""] == (expected if expected is None else pytest.approx(expected))
        credits = [benchmark.credit(one) for one in outcomes]
        assert sum(one or 0 for one in credits) / len(rows) == pytest.approx(right)
        assert (None in credits) == (missing == "wrong" and None in [verdict for _, verdict in rows])
    (grid,) = PandaLm().figures(outcomes, [])
    assert isinstance(grid, Grid)
    assert sum(value or 0 for line in grid.values for value in line) == len(rows)


def test_most_people_are_the_first_where_all_differ() -> None:
    """As PandaLM's script takes the first of equally frequent answers."""
    (case,) = cases(PandaLm(), [row((2, 0, 1), 0)])
    assert case.gold["most"] == 2


def test_answers_are_joined_by_number(tmp_path: Path) -> None:
    rows = [row((1, 1, 1), 7), row((0, 0, 2), 3), row((2, 2, 2), 5)]
    rows[0]["response1"] = True  # a text that the file's writer took for truth
    answers = written(tmp_path / "a.json", [{"idx": 3, "verdict": " Tie"}, {"idx": "7", "verdict": "1"}])
    result = run(PandaLm(answers=answers, answer="verdict", tie_words="draw, tie"), written(tmp_path / "t.json", rows))
    assert numbers(result.measures)["agreement", ""] == pytest.approx(2 / 3)
    assert result.counts.reasons == {"no answer": 2}
    assert result.measures[0].baselines["always_tie"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([{"idx": 0, "result": 1}, {"idx": 0, "result": 2}], "second one for 0"),
        ([{"id": 0}], "the column 'idx' is missing"),
        ([{"idx": 0, "said": 1}], "name theirs with --answer"),
    ],
)
def test_bad_answers_are_named(tmp_path: Path, answers: list[dict[str, Any]], message: str) -> None:
    path = written(tmp_path / "a.json", answers)
    with pytest.raises(ValueError, match=message):
        list(PandaLm(answers=path).cases(row((1, 1, 1), 0), RowPlace(number=0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotator2": 3}, "'annotator2' holds 3"),
        ({"response2": None}, "the column 'response2' is missing"),
        ({"response2": {}}, "must be text"),
        ({"idx": "x"}, "must be a whole number"),
        ({"idx": float("nan")}, "must be a whole number"),
    ],
)
def test_rows_that_are_none_say_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PandaLm().cases({**row((1, 1, 1), 0), **change}, RowPlace(number=0))
    with pytest.raises(ValueError, match="missing='no'"):
        PandaLm(missing="no")  # type: ignore[arg-type]


def test_what_people_said_is_said_in_words() -> None:
    people = {"annotator1": 0, "annotator2": 2, "annotator3": 2}
    row = {"idx": 1, "instruction": "i", "input": "", "response1": "a", "response2": "b", **people}
    (case,) = cases(PandaLm(), [row])
    gold, _ = PandaLm().words(outcome_of(case, [1.0, 0.0]))
    second = "the second response wins"
    assert gold == f"{second} (people said: nobody wins; {second}; {second})"
