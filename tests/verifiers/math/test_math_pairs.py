"""The bank of labelled pairs: no false accept at all, and every false reject named with its reason."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.math.verifier import MathVerifier

BANK: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "attacks" / "math_pairs.json").read_text(encoding="utf-8")
)["pairs"]
LABELS = (1, 0, "undecided-or-0", "either")

KNOWN_REJECTS: dict[str, str] = {
    "inequalities_and_intervals-027": "x != -1,4 reads as two statements in one; not worth a rule",
    "sets_tuples_lists-013": "set builders over the integers are not listed out",
    "complex_numbers-007": "an overline over a sum is not read as conjugation",
}
"""Pairs that should be accepted and are not: id -> reason.  An entry that is accepted again must be removed."""


STATEMENTS = ("golds_with_words", "words_with_formulas", "unreadable_tails")
UNREAD_GOLDS = (r"{}^5C_2", "(1)(3)(4)", r"\overline{3+4i}", r"(f\circ g)(x)=x+1", r"C.\ 1-i")
"""Golds that are not read, so that another answer than the same text cannot be judged; with those of `STATEMENTS`."""


def sample_of(pair: dict[str, Any], *, exchanged: bool = False) -> Sample:
    if exchanged:
        gold, response = pair["answer"], f"\\boxed{{{pair['gold']}}}"
    else:
        gold, response = pair["gold"], pair["response"]
    return Sample(
        id=pair["id"],
        prompt=pair.get("prompt", "What is the answer?"),
        response=response,
        reference=gold,
        finish_reason=pair.get("finish_reason"),
    )


def score_all(samples: Sequence[Sample]) -> list[Score]:
    return asyncio.run(VerifierScorer(MathVerifier()).score(samples))


@pytest.fixture(scope="module")
def scores() -> list[Score]:
    return score_all([sample_of(pair) for pair in BANK])


def told(pair: dict[str, Any], score: Score) -> str:
    response = json.dumps(pair["response"], ensure_ascii=False)
    return f"{pair['id']}: gold {pair['gold']!r}, response {response}: {pair['why']} [{dict(score.evidence)}]"


def test_the_bank_is_well_formed() -> None:
    assert len(BANK) >= 600
    assert len({pair["id"] for pair in BANK}) == len(BANK)
    assert all(pair["expected"] in LABELS and pair["why"] for pair in BANK)
    counts = Counter(pair["expected"] for pair in BANK)
    assert counts[0] >= 300
    assert counts[1] >= 300


def test_labels_agree_with_a_computation_at_random_points() -> None:
    spec = importlib.util.spec_from_file_location("math_oracle", Path(__file__).with_name("oracle.py"))
    assert spec is not None
    assert spec.loader is not None
    oracle = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = oracle
    spec.loader.exec_module(oracle)
    computed = [(pair, oracle.equal(pair["gold"], pair["answer"])) for pair in BANK if "answer" in pair]
    wrong = [
        pair["id"]
        for pair, verdict in computed
        if (verdict is False and pair["expected"] == 1) or (verdict and pair["expected"] in (0, "undecided-or-0"))
    ]
    assert not wrong
    assert sum(verdict is not None for _, verdict in computed) >= 600


def test_no_false_accept(scores: list[Score]) -> None:
    accepted = [
        told(pair, score)
        for pair, score in zip(BANK, scores, strict=True)
        if pair["expected"] in (0, "undecided-or-0") and score.value == 1.0
    ]
    assert not accepted, "\n".join(accepted)


def test_false_rejects_are_the_known_ones(scores: list[Score]) -> None:
    rejected = {
        pair["id"]: told(pair, score)
        for pair, score in zip(BANK, scores, strict=True)
        if pair["expected"] == 1 and score.value != 1.0
    }
    assert rejected.keys() == KNOWN_REJECTS.keys(), "\n".join(
        [text for name, text in rejected.items() if name not in KNOWN_REJECTS]
        + [f"{name} is accepted now" for name in KNOWN_REJECTS.keys() - rejected.keys()]
    )


def test_few_false_rejects_are_known() -> None:
    positives = sum(pair["expected"] == 1 for pair in BANK)
    assert len(KNOWN_REJECTS) <= 0.03 * positives


def test_only_golds_that_are_statements_stay_unread(scores: list[Score]) -> None:
    unscored = [(pair, score) for pair, score in zip(BANK, scores, strict=True) if score.status != "scored"]
    strange = [
        told(pair, score)
        for pair, score in unscored
        if score.reason != "gold_unparsable" or (pair["kind"] not in STATEMENTS and pair["gold"] not in UNREAD_GOLDS)
    ]
    assert not strange, "\n".join(strange)


def test_no_false_accept_with_the_sides_exchanged() -> None:
    pairs = [pair for pair in BANK if "answer" in pair and pair["expected"] in (0, "undecided-or-0")]
    accepted = [
        told(pair, score)
        for pair, score in zip(pairs, score_all([sample_of(pair, exchanged=True) for pair in pairs]), strict=True)
        if score.value == 1.0
    ]
    assert not accepted, "\n".join(accepted)


def test_every_single_gold_accepts_itself() -> None:
    texts = {pair["gold"] for pair in BANK if isinstance(pair["gold"], str)}
    golds = sorted(gold for gold in texts if "boxed" not in gold and "####" not in gold)
    samples = [Sample(prompt="", response=f"\\boxed{{{gold.strip()}}}", reference=gold) for gold in golds]
    refused = [gold for gold, score in zip(golds, score_all(samples), strict=True) if score.value != 1.0]
    assert not refused, "\n".join(refused)
