from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.scripted import fault
from tests.engines.tiny_models import write_model
from tests.reward_models.scalar.scripted_classifier import ScriptedClassifier, response_of

from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample, Score
from adjudge.reward_models.scalar.ensemble import RewardEnsemble
from adjudge.reward_models.scalar.scorer import RewardModelScorer
from adjudge.scoring.conformance import check_scorer

TABLE = {"one": (0.0, 10.0), "two": (4.0, 6.0), "": (2.0, 2.0)}


def member(place: int, window: int = 1000, **options: Any) -> RewardModelScorer:
    def logits(prompt: Prompt) -> Any:
        return [TABLE.get(response_of(prompt), (1.0, 1.0))[place]]

    engine = ScriptedClassifier(logits, window=window, special_tokens=(f"<{place}>",))
    engine.fingerprint = f"scripted:{place}"
    return RewardModelScorer(engine=engine, **options)


def ensemble(**options: Any) -> RewardEnsemble:
    return RewardEnsemble(**{"members": (member(0), member(1)), **options})


def sample(response: str = "one", **fields: Any) -> Sample:
    return Sample(prompt="2+2?", response=response, **fields)


def score(one: Sample, **options: Any) -> Score:
    return asyncio.run(ensemble(**options).score([one]))[0]


@pytest.mark.parametrize(
    ("combine", "value"),
    [
        ("mean", 5.0),
        ("min", 0.0),
        ({"rule": "lower_bound", "k": 0.5}, 2.5),
        ({"rule": "variance_bound", "k": 0.1}, 2.5),
        ({"rule": "soft_min", "beta": 2.0}, -2.0 * math.log((1 + math.exp(-5.0)) / 2)),
        ({"rule": "nominal_min", "share": 0.5}, 2.5),
    ],
)
def test_rules(combine: Any, value: float) -> None:
    one = score(sample(), combine=combine)
    assert one.value == pytest.approx(value)
    assert one.uncertainty == 5.0
    assert one.evidence["members"] == [0.0, 10.0]
    assert one.evidence["raw"] == [[0.0], [10.0]]


def test_nobody_buys_agreement_by_being_cut_off() -> None:
    """Members disagree on the response, and agree on silence: floors that are combined one by one would be a way out.

    With k = 1, m - k * v is 5 - 25 = -20 for the response; the smaller of each member's two rewards would be (0, 2),
    which comes to 1 - 1 = 0.
    """
    combine = {"rule": "variance_bound", "k": 1.0}
    whole = score(sample(), combine=combine)
    cut = score(sample(finish_reason="length"), combine=combine)
    assert whole.value == cut.value == -20.0
    assert score(sample("two", finish_reason="length"), combine=combine).value == 2.0


def test_a_response_that_one_member_cannot_read_is_read_by_none() -> None:
    long = sample("one " + "x" * 100)
    members = (member(0, window=50), member(1))
    one = score(long, members=members, quorum=1)
    assert (one.value, one.reason) == (1.0, "too_complex")


def down(prompt: Prompt) -> Any:
    return fault("engine_unavailable")


def test_a_member_that_fails_fails_the_score_without_a_quorum() -> None:
    members = (member(0), RewardModelScorer(engine=ScriptedClassifier(down)))
    assert score(sample("two"), members=members).reason == "engine_unavailable"
    one = score(sample("two"), members=members, quorum=1)
    assert one.value == 4.0
    assert one.evidence["missing"] == {"1": "engine_unavailable"}
    assert score(sample("two"), members=(members[1], members[1]), quorum=1).status == "failed"


def test_a_quorum_does_not_drop_a_member_that_the_response_breaks() -> None:
    def breaks(prompt: Prompt) -> Any:
        return fault("engine_error") if response_of(prompt) == "one" else [2.0]

    members = (member(0), RewardModelScorer(engine=ScriptedClassifier(breaks)))
    one = score(sample(), members=members, quorum=1)
    assert (one.value, one.reason) == (2.0, "unparsable_answer")


def test_members_are_brought_to_one_scale() -> None:
    members = tuple(
        RewardModelScorer(engine=member(place).engine, normalizer=stored, normalize="zscore")
        for place, stored in enumerate([(0.0, 2.0), (10.0, 5.0)])
    )
    one = score(sample(), members=members, normalize="zscore", combine="mean")
    assert one.value == pytest.approx((0.0 + 0.0) / 2)
    assert score(sample("two"), members=members, normalize="zscore").value == pytest.approx((2.0 - 0.8) / 2)


def test_each_members_own_doubt_counts() -> None:
    def sure(prompt: Prompt) -> list[float]:
        return [2.0, math.log(3.0)]

    def unsure(prompt: Prompt) -> list[float]:
        return [6.0, math.log(4.0)]

    members = tuple(
        RewardModelScorer(engine=ScriptedClassifier(logits), head={"kind": "gaussian"}) for logits in (sure, unsure)
    )
    one = score(sample(), members=members, combine={"rule": "nominal_min", "nominal": "surest", "share": 0.75})
    assert one.value == 2.0
    assert one.uncertainty == pytest.approx(math.sqrt(4.0 + (9 + 16) / 2))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"members": (member(0),)}, "at least two"),
        ({"combine": "mode"}, "reward_ensemble: combine: option rule='mode'"),
        ({"combine": 3}, "combine takes a mapping"),
        ({"quorum": 3}, "quorum=3"),
        ({"members": ({"model": "x", "output": "sigmoid"}, "y")}, "'output'"),
        ({"members": (member(0, normalize="zscore"), member(1))}, "say it once"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ensemble(**options)


def test_the_surest_member_must_be_known() -> None:
    with pytest.raises(ValueError, match="surest"):
        ensemble(combine={"rule": "nominal_min", "nominal": "surest"}).validate(sample())


def test_the_fingerprint_knows_members_and_rule() -> None:
    prints = [
        ensemble().fingerprint,
        ensemble(combine="min").fingerprint,
        ensemble(quorum=1).fingerprint,
        ensemble(members=(member(1), member(1))).fingerprint,
        ensemble(floor=0.0).fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert ensemble().fingerprint == prints[0]


def test_every_members_special_tokens_are_broken_up() -> None:
    made = ensemble()
    asyncio.run(made.score([sample("<0> and <1>")]))
    assert response_of(made.scorers[0].engine.asked[0]) == "<·0> and <·1>"


def test_members_by_folder_score_as_each_alone(tmp_path: Path) -> None:
    folders = [str(write_model(tmp_path / str(seed), task="classify", seed=seed)) for seed in range(2)]
    samples = [sample("four"), sample("five"), sample("")]
    alone = [asyncio.run(RewardModelScorer(model=folder).score(samples)) for folder in folders]
    together = asyncio.run(
        RewardEnsemble(members=(folders[0], f"transformers:{folders[1]}"), combine="min").score(samples)
    )
    for place, one in enumerate(together):
        values = [scores[place].value for scores in alone]
        assert one.value == pytest.approx(min(value for value in values if value is not None), abs=1e-5)
        assert one.uncertainty == pytest.approx(float(np.std([value or 0.0 for value in values])), abs=1e-5)


def test_it_conforms() -> None:
    check_scorer(ensemble(), [sample(), sample("two"), sample("three")]).raise_for_failures()
