"""What holds for every rule and every group, on drawn ones."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.layout import layout_of
from adjudge.data_pipelines.pairs.maker import PairMaker
from adjudge.data_pipelines.pairs.rule import rule_of, side_of
from adjudge.io.jobs.maker import Made, Unit

RULES = {
    "best_worst": "score",
    "best_random": "score",
    "{all_ordered: {over: 0.25}}": "score",
    "{pass_fail: {passing: 1, failing: 0.5}}": "score",
    "execution_order": "outcome",
    "{heron: {factors: [score, other]}}": "factors",
    "{agreement: {first: score, second: other}}": "both",
    "{gap_split: {of: all_ordered}}": "score",
    "{gap_split: {of: {heron: {factors: [score, other]}}, by: other}}": "factors",
}
# Few texts and few scores, so that equal ones meet; some differ in white space alone.
ANSWERS = st.lists(
    st.fixed_dictionaries(
        {
            "response": st.sampled_from(["a", "b", "b ", "c", "d  e", "d e", "f", "g", "", " ", "lang " * 50]),
            "score": st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.0]),
            "other": st.sampled_from([0.0, 1.0, 2.0, None]),
            "reason": st.sampled_from(["", "wrong", "candidate_error", "no_answer"]),
        }
    ),
    max_size=12,
)


def pairs_of(rows: Sequence[Mapping[str, Any]], rule: str, **options: Any) -> Made:
    full = [{"id": f"{row['response']}|{row['score']}", "prompt": "Which?", **row} for row in rows]
    config = PairsConfig(input="in.jsonl", output="out.jsonl", rule=rule, **options)
    chosen = rule_of(rule)
    shown = full or [{"id": "", "prompt": "Which?", "response": "", "score": 0, "other": 0}]
    maker = PairMaker(chosen, layout_of(config, chosen, list(shown[0]), shown), config)
    unit = Unit(rows=tuple(full), first=0, group="Which?")
    maker.prepare([unit])
    return asyncio.run(maker.make(unit))


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=30)
@given(rows=ANSWERS, shuffle=st.integers(0, 1000))
def test_pairs_do_not_depend_on_the_order_of_rows(rule: str, rows: list[dict[str, Any]], shuffle: int) -> None:
    mixed = list(rows)
    random.Random(shuffle).shuffle(mixed)
    one, other = ([{**row, "chosen_first": None} for row in pairs_of(r, rule).rows] for r in (rows, mixed))
    assert one == other
    assert pairs_of(rows, rule).rows == pairs_of(rows, rule).rows


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=30)
@given(rows=ANSWERS)
def test_no_pair_of_one_label_one_text_or_both_ways(rule: str, rows: list[dict[str, Any]]) -> None:
    seen = set()
    for pair in pairs_of(rows, rule).rows:
        sides = (" ".join(pair["chosen"].split()), " ".join(pair["rejected"].split()))
        assert sides[0] != sides[1]
        assert sides not in seen
        assert sides[::-1] not in seen
        seen.add(sides)
        if RULES[rule] in ("score", "both"):
            assert pair["chosen_score"] > pair["rejected_score"]
            assert pair["margin"] > 0
        if RULES[rule] == "score":
            assert pair["margin"] == pytest.approx(pair["chosen_score"] - pair["rejected_score"])
    if len({row["score"] for row in rows}) < 2 and RULES[rule] == "score":
        assert not seen


@settings(max_examples=30)
@given(rows=ANSWERS)
def test_margins_are_ordered_as_the_gaps_of_the_scores(rows: list[dict[str, Any]]) -> None:
    pairs = pairs_of(rows, "all_ordered").rows
    assert [pair["margin"] for pair in pairs] == sorted((pair["margin"] for pair in pairs), reverse=True)
    gaps = sorted(pairs, key=lambda pair: pair["chosen_score"] - pair["rejected_score"])
    assert [pair["margin"] for pair in gaps] == sorted(pair["margin"] for pair in pairs)


@settings(max_examples=30)
@given(rows=ANSWERS, most=st.integers(1, 5))
def test_the_limit_is_kept_with_pairs_that_are_there_without_it(rows: list[dict[str, Any]], most: int) -> None:
    everyone, some = pairs_of(rows, "all_ordered"), pairs_of(rows, "all_ordered", max_pairs=most, weights="prompt")
    assert len(some.rows) == min(most, len(everyone.rows))
    keys = {(pair["chosen"], pair["rejected"]) for pair in everyone.rows}
    assert all((pair["chosen"], pair["rejected"]) in keys for pair in some.rows)
    assert sum(pair["weight"] for pair in some.rows) == pytest.approx(1.0 if some.rows else 0.0)
    assert some.dropped["over_max_pairs"] == len(everyone.rows) - len(some.rows) if most < len(everyone.rows) else True


@settings(max_examples=100)
@given(prompt=st.text(max_size=30), share=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_a_prompt_has_one_side_whatever_its_dress(prompt: str, share: float, seed: int) -> None:
    side = side_of(prompt, share=share, seed=seed)
    assert side == side_of(f"  {prompt}\n", share=share, seed=seed)
    assert side == side_of([{"role": "user", "content": prompt}, {"role": "assistant"}], share=share, seed=seed)


def test_the_sides_have_their_shares() -> None:
    sides = [side_of(f"question {number}", share=0.2, seed=1) for number in range(5000)]
    assert 0.18 < sides.count("test") / 5000 < 0.22
    assert side_of("What is 2 + 2?", share=0.5, seed=0) == side_of("what is 2+2", share=0.5, seed=0)
