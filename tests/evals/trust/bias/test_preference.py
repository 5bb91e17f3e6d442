from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
from rich.console import Console

from adjudge.evals.trust.bias import (
    FORMS,
    Judgement,
    bias_report,
    inconsistency,
    length_effect,
    preference,
)
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.logistic import sigmoid


def seen(pair: str, share: float | None, first: str = "a", second: str = "b", **more: Any) -> Judgement:
    return Judgement(pair=pair, first=first, second=second, share=share, **more)


def both(pair: str, one: float | None, other: float | None, first: str = "a", second: str = "b") -> list[Judgement]:
    """A pair in both orders, with the share of whatever is shown first."""
    return [seen(pair, one, first, second), seen(pair, other, second, first)]


def holds(interval: Interval, value: float) -> bool:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low <= value <= interval.high


SURE = Draws(rounds=300, level=0.999)
"""Bounds wide enough that twenty tests do not miss by chance."""


def judged(pairs: int, seed: int, *, position: float = 0.0, length: float = 0.0) -> list[Judgement]:
    """Pairs in both orders, by a judge that sees the gold and is biased in log-odds by position and by length."""
    draw = random.Random(seed)
    found = []
    for pair in range(pairs):
        gold = float(draw.random() < 0.5)
        texts = ["x" * draw.randint(50, 400), "y" * draw.randint(50, 400)]
        for turned in (False, True):
            first, second = texts[::-1] if turned else texts
            better = 1 - gold if turned else gold
            longer = 1 if len(first) > len(second) else -1
            odds = 2 * (2 * better - 1) + position + length * longer
            share = float(draw.random() < sigmoid(odds))
            found.append(seen(str(pair), share, first, second, gold=better))
    return found


def test_inconsistency_by_hand() -> None:
    judgements = [
        *both("kept", 1, 0),
        *both("kept, less sure", 0.9, 0.4),
        *both("always the first", 1, 1),
        *both("a tie, then a win", 0.5, 1),
        *both("two ties", 0.5, 0.5),
        *both("no verdict", None, 1),
        seen("one order", 1),
    ]
    found = inconsistency(judgements)
    assert (found.value, found.n) == (2 / 5, 5)


def test_first_preference_by_hand() -> None:
    judgements = [*both("1", 1, 1), *both("2", 1, 0), *both("3", 0.5, 1)]
    assert preference(judgements, "first").judge.value == pytest.approx(4.5 / 6)


@pytest.mark.parametrize("position", [-1.0, 0.0, 1.0])
def test_a_planted_position_bias_is_found_and_no_other(position: float) -> None:
    judgements = judged(600, seed=1, position=position)
    found = preference(judgements, "first", SURE)
    assert holds(found.judge, 0.5) == (position == 0)
    assert holds(found.excess, 0.0) == (position == 0)
    assert found.gold.value == 0.5
    assert holds(length_effect(judgements, SURE), 0.0)


@pytest.mark.parametrize("length", [-0.8, 0.0, 0.8])
def test_a_planted_length_bias_is_found_and_no_other(length: float) -> None:
    judgements = judged(600, seed=2, length=length)
    assert holds(length_effect(judgements, SURE), 0.0) == (length == 0)
    found = preference(judgements, "longer")
    assert found.excess.value is not None
    assert (found.excess.value > 0.05) == (length > 0)
    assert (found.excess.value < -0.05) == (length < 0)
    assert holds(preference(judgements, "first", SURE).judge, 0.5)


def test_a_judge_is_not_blamed_for_longer_answers_that_are_better() -> None:
    """Gold prefers the longer answer nine times of ten, and the judge says what gold says."""
    draw = random.Random(3)
    judgements = []
    for pair in range(300):
        better = float(draw.random() < 0.9)
        long, short = "x" * draw.randint(200, 400), "y" * draw.randint(10, 100)
        share = better if draw.random() < 0.85 else 1 - better
        judgements.append(seen(str(pair), share, long, short, gold=better))
        judgements.append(seen(str(pair), 1 - share, short, long, gold=1 - better))
    found = preference(judgements, "longer")
    assert found.judge.value is not None
    assert found.judge.value > 0.75
    assert found.excess.value is not None
    assert found.excess.value < 0
    assert holds(length_effect(judgements, SURE), 0.0)


@pytest.mark.parametrize(
    ("form", "text", "count"),
    [
        ("lists", "1. one\n2) two\n - three\n* four\n• five", 5),
        ("lists", "2024 was a year\n-no blank\n3.14 is pi\nwell - no", 0),
        ("bold", "**this** and __that__ and **these words**", 3),
        ("bold", "2 ** 3 ** 4 is\n** not\nbold **", 1),
        ("headings", "# One\n\n### Three\n####### seven\n#hashtag", 2),
    ],
)
def test_what_counts_as_a_form(form: str, text: str, count: int) -> None:
    assert len(FORMS[form].findall(text)) == count


@pytest.mark.parametrize(("form", "text"), [("lists", "- a\n- b"), ("bold", "**a** b"), ("headings", "# a\nb")])
def test_a_planted_preference_for_a_form_is_found(form: str, text: str) -> None:
    judgements = [*both("1", 1, 0, text, "a b"), *both("2", 1, 0, text, "c d"), *both("3", 0, 0, "e", "f")]
    assert preference(judgements, f"more {form}").judge.value == 1.0
    for other in set(FORMS) - {form}:
        assert preference(judgements, f"more {other}").judge.value is None
    with pytest.raises(ValueError, match="the preference is 'more tables'"):
        preference(judgements, "more tables")


def test_self_preference_is_what_exceeds_the_gold() -> None:
    """The judge's own answers are the better ones in 6 of 10 pairs, and it prefers 8 of them."""
    judgements = []
    for pair in range(100):
        own_better, own_preferred = float(pair % 10 < 6), float(pair % 10 < 8)
        names = {"judge": "m", "first_model": "m", "second_model": "other"}
        judgements.append(seen(str(pair), own_preferred, gold=own_better, **names))
        judgements.append(seen(f"others {pair}", 1.0, judge="m", first_model="x", second_model="y"))
        judgements.append(seen(f"own {pair}", 1.0, judge="m", first_model="m", second_model="m"))
        judgements.append(seen(f"unknown {pair}", 1.0))
    found = preference(judgements, "own")
    assert (found.judge.value, found.gold.value, found.judge.n) == (0.8, 0.6, 100)
    assert found.excess.value == pytest.approx(0.2)
    assert not holds(found.excess, 0.0)
    assert preference([one.swapped() for one in judgements], "own") == found


def test_the_report_is_data_and_a_table() -> None:
    judgements = [*judged(30, seed=4, position=1.0), seen("silent", None)]
    report = bias_report(judgements, Draws(rounds=50))
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (data["judgements"], data["unjudged"]) == (61, 1)
    assert data["preferences"]["first"]["judge"]["value"] == preference(judgements, "first").judge.value
    assert data["preferences"]["own"]["judge"] == {"value": None, "low": None, "high": None, "n": 0}
    out = io.StringIO()
    Console(file=out, width=140).print(report.table())
    lines = out.getvalue().splitlines()
    assert any("winner changes with order" in line and "30" in line for line in lines)
    assert any(line.split()[1:4] == ["own", "│", "-"] for line in lines)


def test_a_model_name_is_not_markup() -> None:
    """Table cells hold numbers alone, so nothing a model is called can style the terminal."""
    judgements = [
        one
        if index % 2
        else Judgement(pair=one.pair, first="[bold]" + one.first, second=one.second, share=one.share, judge="[red]")
        for index, one in enumerate(judged(10, seed=5))
    ]
    out = io.StringIO()
    Console(file=out, width=140).print(bias_report(judgements, Draws(rounds=20)).table())
    assert "red" not in out.getvalue()


@pytest.mark.parametrize("field", ["share", "gold"])
def test_shares_are_shares(field: str) -> None:
    with pytest.raises(ValueError, match=rf"Judgement\.{field} is 2"):
        Judgement(**{"pair": "p", "first": "a", "second": "b", "share": 1.0, field: 2})  # type: ignore[arg-type]


def test_bounds_need_resamples() -> None:
    with pytest.raises(ValueError, match="rounds is 1"):
        Draws(rounds=1)
    with pytest.raises(ValueError, match="level=1"):
        Draws(level=1.0)
