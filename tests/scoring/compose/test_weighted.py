from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from adjudge.protocol import Sample, Score
from adjudge.scoring.compose import Part, Weighted
from adjudge.scoring.compose.mixtures import Missing


@dataclass(frozen=True)
class Reads:
    """Scores what the response says under its name; None fails."""

    name: str
    fingerprint: str = "reads:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        values = [json.loads(str(sample.response)).get(self.name) for sample in samples]
        return [Score.failed("engine_unavailable") if value is None else Score.scored(value) for value in values]


def mix(missing: Missing = "fail", **weights: float) -> Weighted:
    return Weighted(parts=tuple(Part(Reads(name), weight=weight) for name, weight in weights.items()), missing=missing)


def one(scorer: Weighted, **values: float) -> Score:
    (score,) = asyncio.run(scorer.score([Sample(prompt="p", response=json.dumps(values))]))
    return score


def test_the_value_is_the_weighted_sum() -> None:
    score = one(mix(correct=1.0, form=0.1, length=-0.01), correct=1.0, form=0.5, length=20.0)
    assert score.value == pytest.approx(1.0 + 0.05 - 0.2, abs=1e-15)
    assert {name: part.value for name, part in score.parts.items()} == {"correct": 1.0, "form": 0.5, "length": 20.0}
    assert score.evidence == {}


@pytest.mark.parametrize(
    ("weights", "values", "blamed"),
    [
        ({"a": 1.0, "b": 100.0}, {"a": 1.0, "b": 1e307}, "'b' has the value 1e.307.*with the weight 100"),
        ({"a": 1.0, "b": 1.0}, {"a": 1.5e308, "b": 1e308}, "'a' has the value 1.5e.308"),
        ({"a": 1e10, "b": -1e10}, {"a": 1e305, "b": 1e306}, "'b' has the value 1e.306"),
    ],
)
def test_a_sum_beyond_all_numbers_names_the_part(
    weights: dict[str, float], values: dict[str, float], blamed: str
) -> None:
    with pytest.raises(ValueError, match=f"the part {blamed}"):
        one(mix("fail", **weights), **values)
    assert one(mix(a=1.0, b=-1.0), a=1.5e308, b=1.5e308).value == 0.0


def test_a_part_without_a_number_fails_the_whole_by_default() -> None:
    score = one(mix(a=1.0, b=1.0), a=1.0)
    assert (score.status, score.reason) == ("failed", "engine_unavailable")
    assert score.parts["a"].value == 1.0
    assert score.evidence == {"missing": {"b": "failed: engine_unavailable"}}


def test_skip_counts_the_missing_part_as_nothing() -> None:
    score = one(mix("skip", a=0.7, b=0.3), a=1.0)
    assert score.value == 0.7
    assert score.evidence == {"missing": {"b": "failed: engine_unavailable"}}


def test_renormalise_shares_the_missing_weight_out() -> None:
    scorer = mix("renormalize", a=0.5, b=0.25, c=0.25)
    assert one(scorer, a=1.0, b=0.0).value == pytest.approx(0.5 / 0.75, abs=1e-15)
    assert one(scorer, a=1.0, b=0.0, c=1.0).value == 0.75
    assert one(mix("renormalize", a=0.35, b=0.35, c=0.2, d=0.1), a=1.0, b=1.0, d=1.0).value == 1.0


@pytest.mark.parametrize("missing", ["fail", "skip", "renormalize"])
def test_with_no_part_left_there_is_no_number(missing: Missing) -> None:
    assert one(mix(missing, a=1.0, b=1.0)).reason == "engine_unavailable"


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="no parts"):
        mix()
    with pytest.raises(ValueError, match="two parts named 'a'"):
        Weighted(parts=(Part(Reads("a")), Part(Reads("a"), weight=2.0)))
    with pytest.raises(ValueError, match=r"Weighted option missing='ignore'"):
        mix("ignore", a=1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"renormalize.*positive weights, and 'b' has -1\.0"):
        mix("renormalize", a=2.0, b=-1.0)
