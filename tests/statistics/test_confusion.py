from __future__ import annotations

import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from adjudge.pages.figures import confusion_grid
from adjudge.statistics import confusion
from adjudge.statistics.arrays import Floats
from adjudge.statistics.confusion import cells, confusion_intervals
from adjudge.statistics.intervals import NO_DRAWS, Draws

CLASSES = ("a", "b", "c", "d")
CASES = st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=25)


def table_of(gold: list[str], said: list[str | None]) -> Floats:
    return np.bincount(cells(gold, said, CLASSES), minlength=20).reshape(4, 5).astype(float)


@given(CASES)
@settings(max_examples=80, deadline=None)
def test_all_measures_are_those_of_scikit_learn(cases: list[tuple[str, str]]) -> None:
    gold, said = [case[0] for case in cases], [case[1] for case in cases]
    table = table_of(gold, list(said))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so where there is nothing to divide by
        recalls = metrics.recall_score(gold, said, labels=list(CLASSES), average=None, zero_division=np.nan)
        balanced = metrics.balanced_accuracy_score(gold, said)
        macro = metrics.f1_score(gold, said, average="macro", zero_division=0)
        matthews = metrics.matthews_corrcoef(gold, said)
        kappa = metrics.cohen_kappa_score(gold, said)
    np.testing.assert_allclose(confusion.recalls(table), recalls)
    assert float(confusion.balanced_accuracy(table)) == pytest.approx(balanced)
    assert float(confusion.macro_f1(table)) == pytest.approx(macro)
    if len(set(gold)) > 1 and len(set(said)) > 1:
        assert float(confusion.matthews(table)) == pytest.approx(matthews)
    else:
        assert math.isnan(confusion.matthews(table))
    assert float(confusion.kappa(table)) == pytest.approx(kappa, nan_ok=True)


def test_a_case_without_a_verdict_is_a_miss_and_in_nobodys_precision() -> None:
    gold, said = ["a", "a", "a", "b", "b"], ["a", None, "b", "b", None]
    table = table_of(gold, list(said))
    assert confusion.recalls(table)[:2].tolist() == pytest.approx([1 / 3, 1 / 2])
    assert float(confusion.macro_f1(table)) == pytest.approx((2 / 4 + 2 / 4) / 2)
    as_class = ["a", "?", "b", "b", "?"]
    assert float(confusion.kappa(table)) == pytest.approx(metrics.cohen_kappa_score(gold, as_class))
    assert float(confusion.matthews(table)) == pytest.approx(metrics.matthews_corrcoef(gold, as_class))


def test_bounds_are_those_of_tables_of_resamples_and_shares_keep_theirs() -> None:
    draw = np.random.default_rng(1)
    gold = [CLASSES[at] for at in draw.integers(3, size=300)]
    said = [label if draw.random() < 0.8 else "a" for label in gold]
    found = confusion_intervals(gold, said, [str(at) for at in range(300)], CLASSES, Draws(), positive="b")
    again = []
    for seed in range(400):
        rows = np.random.default_rng(seed).integers(300, size=300)
        again.append(metrics.cohen_kappa_score([gold[row] for row in rows], [said[row] for row in rows]))
    kappa = found["kappa"]
    assert [kappa.low, kappa.high] == pytest.approx(list(np.quantile(again, [0.025, 0.975])), abs=0.012)
    assert found["precision"].value == 1.0
    assert found["precision"].low is not None
    assert 0.9 < found["precision"].low < 1
    assert found["F1"].value == pytest.approx(metrics.f1_score(gold, said, labels=["b"], average="macro"))
    values = confusion_intervals(gold, said, ["x"] * 300, CLASSES, NO_DRAWS)
    assert "F1" not in values
    assert all(one.low is None for one in values.values())


def test_the_grid_shows_every_case_once() -> None:
    grid = confusion_grid(["a", "b", "b"], ["a", None, "a"], ("a", "b"))
    assert grid.values == ((1, 0, 0), (1, 0, 1))
    assert grid.columns == ("a", "b", "no verdict")


def test_the_grid_of_many_classes_needs_no_column_for_each_cell() -> None:
    classes = [str(at) for at in range(50)]
    gold = classes * 200
    tracemalloc.start()
    grid = confusion_grid(gold, gold, classes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [row[at] for at, row in enumerate(grid.values)] == [200] * 50
    assert peak < 4 << 20  # a column for each of 2,550 cells would be 204 MB


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="'x' is none of the classes"):
        cells(["a"], ["x"], CLASSES)
    with pytest.raises(ValueError, match="1 gold labels, 2 verdicts"):
        cells(["a"], ["a", "b"], CLASSES)
    with pytest.raises(ValueError, match="positive class 'x'"):
        confusion_intervals(["a"], ["a"], ["1"], CLASSES, Draws(), positive="x")
    with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
        confusion.recalls(np.zeros((3, 2)))
