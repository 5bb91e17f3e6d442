from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adjudge import check_scorer
from adjudge.judges.dawid_skene import DawidSkene
from adjudge.judges.panel import Panel, Stacking
from adjudge.protocol import Sample, Score, response_text
from adjudge.scoring.compose import Part
from adjudge.scoring.registry import load


@dataclass(frozen=True)
class Reads:
    """Scores what the response says under its name; null is a judge that gave no verdict; other text scores 0."""

    name: str
    fingerprint: str = "reads:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self.one(sample) for sample in samples]

    def one(self, sample: Sample) -> Score:
        try:
            value = json.loads(response_text(sample))[self.name]
        except (ValueError, TypeError, KeyError, RecursionError):
            return Score.scored(0.0, "no_answer")
        return Score.failed("judge_unparsable") if value is None else Score.scored(float(value))


def panel(members: int = 3, **options: Any) -> Panel:
    return Panel(parts=tuple(Part(Reads(name)) for name in "abcde"[:members]), **options)


def said(*values: float | None) -> Sample:
    return Sample(prompt="p", response=json.dumps(dict(zip("abcde", values, strict=False))))


def one(judges: Panel, *values: float | None) -> Score:
    (score,) = asyncio.run(judges.score([said(*values)]))
    return score


RATERS = DawidSkene(
    classes=("0", "1"),
    shares=(0.5, 0.5),
    confusion={"a": ((0.9, 0.1), (0.1, 0.9)), "b": ((0.6, 0.4), (0.4, 0.6)), "c": ((0.6, 0.4), (0.4, 0.6))},
)
STACKED = Stacking(weights={"a": 2.0, "b": 1.0, "c": -1.0}, intercept=-1.0)


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({}, (0.9, 0.6, 0.3), 0.6),
        ({"vote": "majority"}, (0.9, 0.6, 0.3), 1.0),
        ({"vote": "majority"}, (1.0, 0.4, 0.4), 0.0),
        ({"vote": "majority"}, (0.5, 0.5, 0.6), 1.0),
        ({"vote": "majority", "threshold": 3.0}, (4.0, 2.0, 1.0), 0.0),
        ({"weights": RATERS}, (1.0, 0.0, 0.0), 0.9 * 0.16 / (0.9 * 0.16 + 0.1 * 0.36)),
        ({"weights": RATERS}, (1.0, 0.5, 0.5), 0.9),
        ({"weights": STACKED}, (1.0, 0.5, 0.5), 1 / (1 + math.exp(-1.0))),
    ],
    ids=[
        "mean",
        "more yes",
        "more no",
        "the threshold is not a vote",
        "another scale",
        "worth more than two",
        "one vote",
        "stacked",
    ],
)
def test_verdicts(options: dict[str, Any], values: tuple[float, ...], expected: float) -> None:
    assert one(panel(**options), *values).value == pytest.approx(expected)


def test_the_spread_of_the_mean_is_its_uncertainty() -> None:
    assert one(panel(), 0.9, 0.6, 0.3).uncertainty == pytest.approx(math.sqrt(0.06))


@pytest.mark.parametrize("options", [{"vote": "majority"}, {"weights": RATERS}], ids=["majority", "learnt"])
def test_nobody_decides_a_tie(options: dict[str, Any]) -> None:
    score = one(panel(**options), 0.5, 0.5, 0.5)
    assert (score.status, score.reason) == ("abstained", "low_confidence")


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({}, (None, 1.0, 1.0), None),
        ({"quorum": 2}, (None, 1.0, 0.5), 0.75),
        ({"quorum": 2}, (None, None, 1.0), None),
        ({"quorum": 1}, (None, None, None), None),
        ({"quorum": 2, "vote": "majority"}, (None, 1.0, 1.0), 1.0),
        ({"quorum": 2, "weights": RATERS}, (None, 1.0, 1.0), 0.36 / (0.36 + 0.16)),
        ({"weights": STACKED}, (None, 1.0, 1.0), None),
    ],
    ids=[
        "all by default",
        "quorum met",
        "not met",
        "nobody",
        "majority of who is there",
        "learnt",
        "stacked needs all",
    ],
)
def test_a_member_without_a_number_is_never_a_zero(
    options: dict[str, Any], values: tuple[float | None, ...], expected: float | None
) -> None:
    score = one(panel(**options), *values)
    if expected is None:
        assert (score.status, score.reason) == ("failed", "part_failed")
    else:
        assert score.value == pytest.approx(expected)
    absent = {name for name, value in zip("abc", values, strict=True) if value is None}
    assert set(score.evidence["missing"]) == absent


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vote": "mode"}, "vote='mode'"),
        ({"quorum": 4}, "quorum=4"),
        ({"quorum": 2, "weights": STACKED}, "every member"),
        ({"vote": "majority", "weights": RATERS}, "decide by themselves"),
        ({"members": 4, "weights": RATERS}, "'d' has no learnt confusion"),
        ({"members": 2, "weights": STACKED}, "its weights are for a, b, c"),
        ({"weights": {"a": 1.0}}, 'give "equal"'),
        ({"threshold": math.nan}, "threshold=nan"),
    ],
    ids=str,
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        panel(**options)


def test_learnt_weights_are_part_of_the_fingerprint() -> None:
    other = Stacking(weights={"a": 2.0, "b": 1.0, "c": -1.0}, intercept=-1.5)
    prints = {
        judges.fingerprint
        for judges in (
            panel(),
            panel(vote="majority"),
            panel(weights=STACKED),
            panel(weights=other),
            panel(weights=RATERS),
        )
    }
    assert len(prints) == 5


def test_specs_with_learnt_weights(tmp_path: Path) -> None:
    raters = DawidSkene(classes=("0", "1"), shares=(0.5, 0.5), confusion={"exact": ((0.9, 0.1), (0.2, 0.8))})
    raters.save(tmp_path / "raters.json")
    name = "adjudge.judges.panel:Panel"
    by_file = tmp_path / "panel.yaml"
    by_file.write_text(f"'{name}': {{parts: [exact], weights: {{dawid_skene: raters.json}}}}\n", encoding="utf-8")
    scorer = load(str(by_file))
    (score,) = asyncio.run(scorer.score([Sample(prompt="p", response="a", reference="a")]))
    assert score.value == pytest.approx(0.8 / (0.8 + 0.1))
    inside = load({name: {"parts": ["exact"], "weights": {"stacked": {"weights": {"exact": 2.0}, "intercept": -1.0}}}})
    (score,) = asyncio.run(inside.score([Sample(prompt="p", response="a", reference="a")]))
    assert score.value == pytest.approx(1 / (1 + math.exp(-1)))
    with pytest.raises(ValueError, match="a panel has the weights"):
        load({name: {"parts": ["exact"], "weights": {"learnt": "raters.json"}}})


@pytest.mark.parametrize(
    "options",
    [{}, {"vote": "majority"}, {"weights": RATERS}, {"weights": STACKED}],
    ids=["mean", "majority", "learnt", "stacked"],
)
def test_a_panel_conforms(options: dict[str, Any]) -> None:
    check_scorer(panel(**options), [said(1, 1, 0), said(0, 0.2, 0), said(1, 0.6, 1)]).raise_for_failures()


def test_stacking_finds_who_knows_and_who_lies() -> None:
    draw = random.Random(3)
    labels = [index % 2 for index in range(400)]
    rows = [
        {"knows": label + draw.gauss(0, 0.5), "noise": draw.random(), "lies": 1 - label + draw.gauss(0, 1)}
        for label in labels
    ]
    fitted = Stacking.fit(rows, labels)
    assert fitted.weights["knows"] > 2 > -0.3 > fitted.weights["lies"]
    assert abs(fitted.weights["noise"]) < 0.8
    right = sum((fitted(row) > 0.5) == bool(label) for row, label in zip(rows, labels, strict=True))
    assert right / 400 > max(
        sum((row["knows"] > 0.5) == bool(label) for row, label in zip(rows, labels, strict=True)) / 400 - 0.01, 0.8
    )


def test_stacking_does_not_depend_on_the_scale_of_a_member() -> None:
    rows = [{"a": float(i % 7), "b": float(i % 3)} for i in range(60)]
    labels = [int(i % 7 + i % 2 > 3) for i in range(60)]
    plain = Stacking.fit(rows, labels)
    scaled = Stacking.fit([{"a": 1000 * row["a"] - 5, "b": row["b"]} for row in rows], labels)
    assert scaled.weights["a"] * 1000 == pytest.approx(plain.weights["a"], rel=1e-4)
    assert scaled({"a": 2995.0, "b": 1.0}) == pytest.approx(plain({"a": 3.0, "b": 1.0}), rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        ([{"a": 1.0}, {"a": 2.0}], [1, 1], "both 1 and 0"),
        ([{"a": 1.0}, {"b": 2.0}], [0, 1], "row 1"),
        ([{"a": 1.0}, {"a": math.nan}], [0, 1], "row 1"),
        ([{"a": 1.0}, {"a": 1.0}], [0, 1], "same value everywhere"),
        ([], [], "0 rows"),
    ],
    ids=["one class", "other members", "not finite", "constant", "nothing"],
)
def test_stacking_needs_data_that_say_something(rows: list[dict[str, float]], labels: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Stacking.fit(rows, labels)
