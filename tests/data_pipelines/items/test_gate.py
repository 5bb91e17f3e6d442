from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.items.gate import Agrees, Gate, Labelled, Separates, Trial, difference
from adjudge.io.errors import JobError
from adjudge.io.jobs.row_maker import Account
from adjudge.protocol import Sample, Score
from adjudge.scoring import registry
from adjudge.statistics.intervals import wilson
from adjudge.verifiers.text.persona.admission import admission

RULE = Separates(least=0.2, bound=0.0)


class WordScorer:
    """1 where the word that the reference names is in the response; other things on request."""

    name = "word"
    fingerprint = "word:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self._score(sample) for sample in samples]

    def _score(self, sample: Sample) -> Score:
        if sample.reference == "gone":
            return Score.failed("engine_unavailable", fault="connection refused")
        if sample.reference == "silent":
            return Score.failed("judge_unparsable")
        if sample.reference == "huge":
            return Score.scored(7.0)
        return Score.scored(float(sample.reference in str(sample.response)))


def tried(
    references: Sequence[Any], good: Sequence[str], bad: Sequence[str], rule: Any = RULE
) -> list[tuple[Trial, str]]:
    gate = Gate(scorer=WordScorer(), rule=rule)
    return asyncio.run(gate.tried(references, "?", Labelled(good=tuple(good), bad=tuple(bad)), Account()))


def test_the_difference_has_newcombes_interval() -> None:
    found = difference(wilson(56, 70), wilson(48, 80))  # the first example of Newcombe 1998, method 10
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=5e-5)
    assert found.high == pytest.approx(0.3339, abs=5e-5)


def test_an_item_that_separates_is_kept_and_the_planted_useless_ones_are_not() -> None:
    good, bad = [f"shows its work {n}" for n in range(6)], [f"only a number {n}" for n in range(6)]
    found = tried(["work", "o", "number", "nowhere"], good, bad)
    assert [why for _, why in found] == ["", "separates_too_little", "separates_backwards", "separates_too_little"]
    kept = found[0][0]
    assert (kept.good.value, kept.bad.value, kept.difference.value) == (1.0, 0.0, 1.0)
    assert kept.to_dict()["difference"]["n"] == 12


def test_one_good_and_one_bad_response_prove_nothing() -> None:
    ((trial, why),) = tried(["work"], ["work"], ["none"])
    assert (trial.difference.value, why) == (1.0, "separates_unsurely")
    ((_, why),) = tried(["work"], ["work"], ["none"], Separates(least=0.2, bound=-1.0))
    assert why == ""


def test_without_verdicts_nobody_knows() -> None:
    account = Account()
    gate = Gate(scorer=WordScorer(), rule=RULE)
    ((trial, why),) = asyncio.run(gate.tried(["silent"], "?", Labelled(good=("a",), bad=("b",)), account))
    assert (why, trial.verdicts, trial.difference.value) == ("unjudged", (None, None), None)
    assert account.counts == {"verdicts": 0, "verdicts_missing": 2}
    assert tried(["a"], ["a"], [])[0][1] == "unjudged"
    assert tried([], ["a"], ["b"]) == []


@pytest.mark.parametrize(
    ("reference", "message"), [("gone", "lost its engine.*connection refused"), ("huge", r"7\.0.*\[0, 1\]")]
)
def test_a_judge_that_is_gone_or_no_judge_stops_the_job(reference: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        tried([reference], ["a"], ["b"])


def test_a_judge_that_breaks_is_named() -> None:
    class Broken(WordScorer):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            return []

    gate = Gate(scorer=Broken(), rule=RULE)
    with pytest.raises(JobError, match="the scorer of the quality gate"):
        asyncio.run(gate.tried(["a"], "?", Labelled(good=("a",), bad=("b",)), Account()))


def test_an_item_that_the_scorer_cannot_read_is_left_out_and_costs_nobody_else() -> None:
    gate = Gate(scorer=registry.load("persona"), rule=Separates(least=0.2, bound=-1.0))
    found = asyncio.run(gate.tried([[""], "Ron"], "?", Labelled(good=("Ron.",), bad=("Tom.",)), Account()))
    assert [why for _, why in found] == ["unreadable_item", ""]


@given(st.lists(st.tuples(st.sampled_from([True, False, None]), st.booleans()), min_size=1, max_size=20), st.booleans())
def test_agreement_decides_as_the_published_admission_where_all_verdicts_are_there(
    pairs: list[tuple[bool | None, bool]], balanced: bool
) -> None:
    pairs = [(verdict, truth) for verdict, truth in pairs if verdict is not None]
    good = [float(verdict or 0) for verdict, truth in pairs if truth]
    bad = [float(verdict or 0) for verdict, truth in pairs if not truth]
    if not good or not bad:
        return
    trial = Trial(good=wilson(sum(good), len(good)), bad=wilson(sum(bad), len(bad)), verdicts=(*good, *bad))
    published = admission([verdict for verdict, _ in pairs], [truth for _, truth in pairs], balanced=balanced)
    why = Agrees(least=0.7, balanced=balanced).why_not(trial)
    assert (why == "") is published.admitted
    assert trial.agreement.value == pytest.approx(published.agreement)


def test_useless_items_seldom_pass() -> None:
    draw = random.Random(0)
    passed = 0
    for _ in range(1000):
        verdicts = [float(draw.random() < 0.5) for _ in range(16)]
        trial = Trial(good=wilson(sum(verdicts[:8]), 8), bad=wilson(sum(verdicts[8:]), 8), verdicts=tuple(verdicts))
        passed += RULE.why_not(trial) == ""
    assert passed <= 50  # 2.5 % are expected of an interval of 95 %, and it is not an exact one


@given(
    st.lists(st.text(max_size=8), max_size=8), st.integers(0, 3), st.floats(0.1, 0.9), st.randoms(use_true_random=False)
)
def test_what_is_held_back_was_never_shown_and_the_order_does_not_matter(
    texts: list[str], seed: int, share: float, draw: random.Random
) -> None:
    texts = [f"{text}{at}" for at, text in enumerate(texts)] + ["x", "y"]
    mixed = draw.sample(texts, len(texts))
    shown, held = Labelled(good=tuple(texts), bad=("p", "q")).split(share, seed)
    assert set(shown.good) | set(held.good) == set(texts)
    assert not set(shown.good) & set(held.good)
    assert min(len(shown.good), len(held.good), len(shown.bad), len(held.bad)) >= 1
    assert Labelled(good=tuple(mixed), bad=("q", "p")).split(share, seed) == (shown, held)
