"""PandaLM's three annotators as a panel whose members' accuracies are learnt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from adjudge.judges.dawid_skene import fit_dawid_skene


@pytest.fixture(scope="module")
def pandalm(corpora: Any) -> list[list[str]]:
    """Three annotators' labels of each item: "1" or "2" wins, "0" is a tie."""
    rows = corpora.whole("pandalm/testset-v1.json")
    return [[str(row[f"annotator{number}"]) for number in (1, 2, 3)] for row in rows]


def test_a_learnt_panel_of_annotators_is_their_majority_almost_everywhere(pandalm: list[list[str]]) -> None:
    """Three good annotators: what EM learns about them changes few verdicts, and none of the unanimous ones."""
    fit = fit_dawid_skene([dict(zip("abc", labels, strict=True)) for labels in pandalm])
    assert fit.converged
    changed = 0
    for labels, belief in zip(pandalm, fit.posteriors, strict=True):
        learnt = max(belief, key=lambda label: belief[label])
        label, votes = Counter(labels).most_common(1)[0]
        changed += learnt != label
        assert votes < 3 or learnt == label
    assert changed <= 10
    assert all(0.85 < fit.model.accuracy(rater) < 0.99 for rater in "abc")
