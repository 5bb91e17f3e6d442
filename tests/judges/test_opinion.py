from __future__ import annotations

import pytest

from adjudge.engines.label_tokens import label_texts
from adjudge.judges.language_judge import Combine, Opinion
from adjudge.prompts.asking import Answer

WORTH = {"1": 1.0, "2": 2.0, "5": 5.0}


def votes(*labels: str) -> Opinion:
    answers = [Answer(value=label, text=f"so {label}") for label in labels]
    return Opinion.of_votes(answers, missing=1, cost=answers[0].cost)


@pytest.mark.parametrize(
    ("labels", "combine", "value"),
    [
        ("1 2 2 5", "mean", 2.5),
        ("1 2 2 5", "median", 2.0),
        ("1 2", "median", 1.5),
        ("1 1 5 5", "median", 3.0),
        ("1 2 5", "median", 2.0),
        ("1 2 2 5", "majority", 2.0),
        ("1 1 5 5 2", "majority", 3.0),
        ("5", "median", 5.0),
    ],
)
def test_votes_combined(labels: str, combine: Combine, value: float) -> None:
    assert votes(*labels.split()).value(WORTH, combine) == pytest.approx(value, abs=1e-12)


def test_the_spread_is_the_standard_error_of_votes_and_the_deviation_of_probabilities() -> None:
    assert votes("1", "2", "2", "5").spread(WORTH) == pytest.approx((9 / 3) ** 0.5 / 2, abs=1e-12)
    assert votes("2").spread(WORTH) is None
    assert Opinion(shares={"1": 0.5, "5": 0.5}, mass=0.9).spread(WORTH) == pytest.approx(2.0, abs=1e-12)


def test_evidence() -> None:
    assert votes("1", "2").evidence() == {"votes": ["1", "2"], "missing": 1, "rationale": "so 2"}
    assert Opinion(shares={"1": 1.0}, mass=0.7).evidence() == {"probabilities": {"1": 1.0}, "mass": 0.7}


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (("Yes", "No"), ("Yes", " Yes", "yes", " yes", "YES", " YES")),
        (("A", "B"), ("A", " A")),
        (("m", "M"), ("m", " m")),
        (("10", "1"), ("10", " 10")),
        (("ok", "OK"), ("ok", " ok")),
        (("A>B", "B>A"), ("A>B", " A>B")),
    ],
)
def test_texts_of_a_label(labels: tuple[str, ...], texts: tuple[str, ...]) -> None:
    found = label_texts(labels)
    assert found[labels[0]] == texts
    every = [text for several in found.values() for text in several]
    assert len(set(every)) == len(every)
