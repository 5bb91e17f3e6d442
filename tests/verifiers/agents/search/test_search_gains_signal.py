"""New evidence is paid once, and what came before is a share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.agents.search.signals import evidence_gains, repeats


def test_search_turns_are_paid_for_new_evidence() -> None:
    found = evidence_gains([[0.5, 0.0], [0.2, 0.8], [0.9, 0.8]])
    assert found == pytest.approx([0.25, 0.4, 0.2])
    assert evidence_gains([]) == []


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.data())
def test_gains_equal_the_formula_over_arrays(golds: int, data: st.DataObject) -> None:
    row = st.lists(st.floats(0, 1), min_size=golds, max_size=golds)
    rows = data.draw(st.lists(row, max_size=6))
    best = np.array(rows).reshape(-1, golds)
    before = np.vstack([np.zeros((1, golds)), np.maximum.accumulate(best, axis=0)])[: len(best)]
    np.testing.assert_allclose(evidence_gains(rows), np.maximum(best - before, 0).mean(axis=1))
    assert sum(evidence_gains(rows)) <= 1 + 1e-9


def test_a_document_repeats_an_earlier_turn_or_its_own() -> None:
    assert repeats([["a", "b"], ["a", "c"], [], ["d", "d"], ["a"]]) == [0.0, 0.5, 0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("rows", "word"),
    [([[]], "row 0 has 0"), ([[0.5], [0.5, 0.1]], "row 1 has 2"), ([[2.0]], "2.0"), ([[float("nan")]], "nan")],
)
def test_mistakes_name_the_value(rows: list[list[float]], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        evidence_gains(rows)
