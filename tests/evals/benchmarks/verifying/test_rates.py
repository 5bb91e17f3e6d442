"""The rates of verdicts on labelled responses, against scikit-learn and plain counts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from tests.evals.benchmarks.judging.made import numbers

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.labels import INVALID, RIGHT, WRONG, LabelledVerdict, Labels, rate_measures, truth_of
from adjudge.protocol import Status
from adjudge.statistics.intervals import NO_DRAWS, Draws

TWO = (RIGHT, WRONG)
THREE = (RIGHT, WRONG, INVALID)


def made(seed: int, classes: tuple[str, ...], count: int = 200) -> list[LabelledVerdict]:
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        gold = draw.choice(classes)
        value = None if draw.random() < 0.1 else draw.choice([0.1, 0.2, 0.4, 0.6, 0.9]) * (1.2 if gold == RIGHT else 1)
        said = None if value is None else RIGHT if value >= 0.5 else draw.choice(classes[1:])
        status: Any = "scored" if value is not None else draw.choice(["failed", "abstained"])
        rows.append(LabelledVerdict(gold, said, value, status, draw.choice(["x", "y"]), f"c{draw.randrange(40)}"))
    return rows


@pytest.mark.parametrize("classes", [TWO, THREE])
@pytest.mark.parametrize("seed", range(3))
def test_rates_are_those_of_scikit_learn_with_no_verdict_as_a_class_of_its_own(
    seed: int, classes: tuple[str, ...]
) -> None:
    rows = made(seed, classes)
    found = numbers(rate_measures(rows, classes, NO_DRAWS))
    gold, said = [row.gold for row in rows], [row.said or "nothing" for row in rows]
    assert found["accuracy", ""] == pytest.approx(metrics.accuracy_score(gold, said))
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(gold, said, labels=[RIGHT], zero_division=0)
    assert found["precision", ""] == pytest.approx(precision[0])
    assert found["recall", ""] == pytest.approx(recall[0])
    assert found["F1", ""] == pytest.approx(f1[0])
    if classes == THREE:
        macro = metrics.f1_score(gold, said, labels=list(THREE), average="macro", zero_division=0)
        assert found["macro-F1", ""] == pytest.approx(macro)
    judged = [(one, other) for one, other in zip(gold, said, strict=True) if other != "nothing"]
    assert found["accuracy where judged", ""] == pytest.approx(metrics.accuracy_score(*zip(*judged, strict=True)))
    known = [row for row in rows if row.value is not None]
    area = metrics.roc_auc_score([row.gold == RIGHT for row in known], [row.value for row in known])
    assert found["AUROC", ""] == pytest.approx(area)


def test_mistakes_and_missing_verdicts_are_counted_apart() -> None:
    said = {RIGHT: [RIGHT, RIGHT, WRONG, None], WRONG: [RIGHT, WRONG, None, None, None]}
    unjudged: list[Status] = ["failed", "failed", "failed", "failed", "abstained"]
    rows = [
        LabelledVerdict(gold, one, None if one is None else 1.0, "scored" if one else status, "", str(at))
        for gold, verdicts in said.items()
        for at, (one, status) in enumerate(zip(verdicts, unjudged, strict=False))
    ]
    found = numbers(rate_measures(rows, TWO, NO_DRAWS))
    assert found["accuracy", ""] == pytest.approx(3 / 9)
    assert found["false accepts", ""] == pytest.approx(1 / 5)
    assert found["false rejects", ""] == pytest.approx(1 / 4), "no verdict is not a reject"
    assert found["recall", ""] == pytest.approx(2 / 4)
    assert (found["failed", ""], found["abstained", ""]) == pytest.approx((3 / 9, 1 / 9))
    assert found["accuracy where judged", ""] == pytest.approx(3 / 5)
    assert (found["called right", ""], found["labelled right", ""]) == pytest.approx((3 / 9, 4 / 9))
    assert ("AUROC", "") not in found, "one value says nothing about order"


def test_responses_without_a_label_are_in_no_rate_of_labels() -> None:
    rows = [*made(1, TWO), *(row._replace(gold=None, said=WRONG) for row in made(2, TWO))]
    found, labelled = (numbers(rate_measures(some, TWO, NO_DRAWS)) for some in (rows, rows[:200]))
    for name in ("accuracy", "precision", "recall", "MCC", "false accepts", "AUROC", "labelled right"):
        assert found[name, ""] == labelled[name, ""]
    assert found["not labelled", ""] == 0.5
    assert found["called right", ""] == pytest.approx((labelled["called right", ""] or 0) / 2)
    bare = numbers(rate_measures(rows[200:], TWO, NO_DRAWS))
    assert {name for name, part in bare} == {"called right", "abstained", "failed"}


def test_parts_hold_their_own_rows_and_bounds_hold_the_numbers() -> None:
    rows = made(3, TWO)
    measures = rate_measures(rows, TWO, Draws(rounds=200))
    found = numbers(measures)
    own = [row for row in rows if row.part == "x"]
    assert found["accuracy", "x"] == pytest.approx(sum(row.said == row.gold for row in own) / len(own))
    bounded = [one.interval for one in measures if one.interval.low is not None and one.interval.high is not None]
    assert len(bounded) > 10
    for interval in bounded:
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low - 1e-9 <= interval.known <= interval.high + 1e-9
    assert {one.name for one in measures if one.better == "low"} == {
        "false accepts", "false rejects", "abstained", "failed"
    }  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(TWO), st.sampled_from([*TWO, None])), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_table_has_rates_in_their_range_or_none(pairs: list[tuple[str, str | None]]) -> None:
    rows = [
        LabelledVerdict(
            gold, said, None if said is None else float(said == RIGHT), "scored" if said else "failed", "", str(at)
        )
        for at, (gold, said) in enumerate(pairs)
    ]
    for one in rate_measures(rows, TWO, NO_DRAWS):
        low = -1.0 if one.name == "MCC" else 0.0
        assert one.interval.value is None or low <= one.interval.value <= 1.0


@pytest.mark.parametrize(
    ("label", "meaning"),
    [(True, RIGHT), (1, RIGHT), (1.0, RIGHT), (" Correct", RIGHT), ("pass", RIGHT), (False, WRONG), ("0", WRONG),
     ("FAIL", WRONG), ("invalid", INVALID)],
)  # fmt: skip
def test_usual_words(label: Any, meaning: str) -> None:
    assert truth_of(label) == meaning


def test_own_words_replace_the_usual_ones() -> None:
    labels = Labels(right_label=("good", "fine"), wrong_label=("1",))

    def told(label: Any) -> str | None:
        (case,) = labels.cases({"prompt": "p", "response": "r", "label": label}, RowPlace(number=0))
        meaning: str | None = case.gold["label"]
        return meaning

    assert [told("Fine"), told(1)] == [RIGHT, WRONG]
    with pytest.raises(ValueError, match=r"the label 'true' is none of good, fine, 1; say what labels mean"):
        told("true")
    for hostile in (None, 2, 0.5, float("nan"), "\ud800", ["1"], 10**400):
        with pytest.raises(ValueError, match=r"is none of"):
            truth_of(hostile)
