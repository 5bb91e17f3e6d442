from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.scoring.compose import Gate, Part


@dataclass(frozen=True)
class Reads:
    """Scores what the response says under its name, None fails; remembers what it was asked."""

    name: str
    fingerprint: str = "reads:1"
    asked: list[str] = field(default_factory=list)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.asked.extend(sample.id for sample in samples)
        values = [json.loads(str(sample.response)).get(self.name) for sample in samples]
        return [
            Score.failed("engine_unavailable") if value is None else Score.scored(value, "wrong" if not value else "")
            for value in values
        ]


def build(**options: Any) -> tuple[Gate, dict[str, Reads]]:
    readers = {name: Reads(name) for name in ("form", "right", "short", "polite")}
    bonuses = (Part(readers["short"], weight=0.1), Part(readers["polite"], weight=-0.2))
    return Gate(gate=readers["form"], main=readers["right"], bonuses=bonuses, **options), readers


def run(gate: Gate, *responses: dict[str, float | None]) -> list[Score]:
    samples = [Sample(prompt="p", response=json.dumps(r), id=str(i)) for i, r in enumerate(responses)]
    return asyncio.run(gate.score(samples))


def test_each_stage_sees_only_who_earned_it() -> None:
    gate, readers = build(otherwise=-1.0)
    full = {"short": 1.0, "polite": 1.0}
    scores = run(
        gate,
        {"form": 1.0, "right": 1.0, **full},
        {"form": 0.0, "right": 1.0, **full},
        {"form": 1.0, "right": 0.0, **full},
        {"form": 1.0, "right": 0.5, "short": 1.0, "polite": 0.0},
    )
    assert [score.value for score in scores] == pytest.approx([0.9, -1.0, 0.0, 0.6], abs=1e-15)
    assert [score.reason for score in scores] == ["", "gated", "wrong", ""]
    assert {name: reader.asked for name, reader in readers.items()} == {
        "form": ["0", "1", "2", "3"],
        "right": ["0", "2", "3"],
        "short": ["0", "3"],
        "polite": ["0", "3"],
    }
    assert [sorted(score.parts) for score in scores] == [
        ["gate", "main", "polite", "short"],
        ["gate"],
        ["gate", "main"],
        ["gate", "main", "polite", "short"],
    ]


def test_no_number_anywhere_is_no_number_at_the_end() -> None:
    gate, readers = build()
    scores = run(
        gate,
        {"right": 1.0},
        {"form": 1.0, "short": 1.0, "polite": 1.0},
        {"form": 1.0, "right": 1.0, "polite": 1.0},
    )
    assert [score.reason for score in scores] == ["engine_unavailable"] * 3
    assert [list(score.evidence["missing"]) for score in scores] == [["gate"], ["main"], ["short"]]
    assert readers["right"].asked == ["1", "2"]


def test_a_bonus_does_not_matter_where_it_is_not_due() -> None:
    gate, _ = build()
    assert [score.value for score in run(gate, {"form": 1.0, "right": 0.0}, {"form": 0.0})] == [0.0, 0.0]


def test_a_negative_main_score_stands_and_earns_nothing() -> None:
    gate, _ = build()
    assert [score.value for score in run(gate, {"form": 1.0, "right": -2.0, "short": 5.0, "polite": 5.0})] == [-2.0]


@pytest.mark.parametrize(("form", "value"), [(0.49, -3.0), (0.5, 1.0), (0.51, 1.0)])
def test_the_threshold_itself_passes(form: float, value: float) -> None:
    gate = Gate(gate=Reads("form"), main=Reads("right"), threshold=0.5, otherwise=-3.0)
    assert [score.value for score in run(gate, {"form": form, "right": 1.0})] == [value]


def test_mistakes_are_refused() -> None:
    a, b = Reads("a"), Reads("b")
    with pytest.raises(ValueError, match=r"Gate option otherwise=nan"):
        Gate(gate=a, main=b, otherwise=float("nan"))
    with pytest.raises(ValueError, match=r"Gate option threshold='1'"):
        Gate(gate=a, main=b, threshold="1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two parts named 'main'"):
        Gate(gate=a, main=b, bonuses=(Part(a, name="main"),))
    with pytest.raises(ValueError, match="two parts named 'a'"):
        Gate(gate=a, main=b, bonuses=(Part(a), Part(a)))
    with pytest.raises(ValueError, match="must be a Scorer"):
        Gate(gate=None, main=b)  # type: ignore[arg-type]
