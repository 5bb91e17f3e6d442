"""What a watch measures, against SciPy, counting by hand, and values that floats can hardly hold."""

from __future__ import annotations

import math
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.watch.hacking import (
    Seen,
    _log_median,
    fingerprint,
    groups,
    rank_correlation,
    repeats,
    seen,
    texts_of,
)
from adjudge.rl_integration.watch.report import apart, histogram

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def kept(response: str, value: float | None = 1.0, *, prompt: str = "q", group: str = "") -> Seen:
    score = Score.scored(value) if value is not None else Score.failed("engine_timeout")
    return seen(Sample(prompt=prompt, response=response, group=group), score, (prompt,), (response,))


@given(st.lists(FINITE, max_size=80) | st.lists(st.sampled_from([0.0, 1.0, -1e308, 1e308, 5e-324]), max_size=40))
def test_bars_hold_every_value_and_rise(values: list[float]) -> None:
    bars = histogram(values)
    assert sum(bar.count for bar in bars) == len(values)
    edges = [edge for bar in bars for edge in (bar.low, bar.high)]
    assert edges == sorted(edges)
    assert all(math.isfinite(edge) for edge in edges)
    assert len(bars) <= 43
    if values:
        assert bars[0].low <= min(values)
        assert bars[-1].high >= max(values)


def test_few_values_get_a_bar_each() -> None:
    assert [(bar.low, bar.high, bar.count) for bar in histogram([1.0, 0.0, 1.0])] == [(0, 0, 1), (1, 1, 2)]


def test_bars_of_many_values_have_round_edges_and_one_giant_does_not_hide_the_others() -> None:
    values = [place / 100 for place in range(1000)] + [1e9]
    bars = histogram(values)
    assert [bar.low for bar in bars[:3]] == [0.0, 0.5, 1.0]
    assert bars[1].count == 50
    assert bars[-1].high == 1e9
    assert len(bars) == 20


def test_rank_correlation_is_spearmans() -> None:
    rng = random.Random(0)
    first = [rng.choice([0.0, 0.5, 1.0]) for _ in range(300)]
    second = [value + rng.gauss(0, 1) for value in first]
    expected, _ = spearmanr(first, second)
    assert rank_correlation(first, second) == pytest.approx(expected, abs=1e-12)
    assert rank_correlation([1.0, 1.0], [1.0, 2.0]) is None
    assert rank_correlation([1.0, 2.0, 3.0], [1.0, 10.0, sys.float_info.max]) == pytest.approx(1.0)


def errors(then: list[int], now: list[int]) -> float:
    found = apart(then, now, 64, _log_median)
    assert found is not None
    return found


def test_lengths_are_compared_by_blocks() -> None:
    rng = random.Random(1)
    then = [rng.randrange(80, 120) for _ in range(640)]
    now = [3 * rng.randrange(80, 120) for _ in range(640)]
    assert errors(then, now) > 20
    assert apart(then, now[:127], 64, _log_median) is None, "one block and a bit has no spread"
    assert errors(now, then) == pytest.approx(-errors(then, now))


def test_members_of_a_group_do_not_count_as_many_witnesses() -> None:
    """Eight prompts of 64 answers each, all alike within a prompt: the difference is that of 16 prompts, not 1,024."""
    then = [length for length in (90, 400, 100, 900, 95, 500, 110, 1000) for _ in range(64)]
    now = [length for length in (800, 100, 900, 420, 1000, 95, 450, 300) for _ in range(64)]
    assert abs(errors(then, now)) < 2


def test_a_giant_moves_no_median() -> None:
    lengths = [100 + place % 7 for place in range(640)]
    assert abs(errors(lengths, [*lengths[:-1], 10**9])) < 2


def test_groups_are_counted_by_name_and_by_prompt() -> None:
    window = [
        *(kept(f"{n}", 1.0, prompt="a", group="g") for n in range(4)),
        *(kept(f"{n}", float(n), prompt="b", group="g") for n in range(2)),
        *(kept(f"{n}", 0.0, prompt="c") for n in range(2)),
        kept("alone", prompt="d"),
        *(kept(f"{n}", None, prompt="e") for n in range(3)),
    ]
    assert groups(window) == (3, 2)


def test_repeats_are_between_prompts_and_not_within_one() -> None:
    long = "The answer to this is surely 42."
    window = [
        *(kept(long, prompt=prompt) for prompt in "abc"),
        *(kept("I repeat myself for this one prompt", prompt="d") for _ in range(5)),
        *(kept("B", prompt=prompt) for prompt in "ef"),
    ]
    assert repeats(window, 24) == pytest.approx((6, 3 / 10, 3 / 10))
    assert repeats([], 24) == (0, 0, 0)


def test_equal_texts_share_a_fingerprint_and_others_do_not() -> None:
    base = "x" * 5000
    assert fingerprint((base,)) == fingerprint(("x" * 5000,))
    variants = [base, base + "x", "y" + base[1:], base[:-1] + "y", base[:2000], ""]
    assert len({fingerprint((text,)) for text in variants}) == len(variants)
    assert fingerprint(("ab", "c")) != fingerprint(("a", "bc"))
    assert fingerprint(["turn"] * 100) != fingerprint(["turn"] * 101)


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("text", ["text"]),
        ("", [""]),
        ([{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}], ["a"]),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, "b", 3, {"image": 1}]}], ["a", "b"]),
        ([{"role": "assistant", "content": None}, {"role": "assistant"}, {}, 7, "loose"], []),
        (None, []),
        (3.5, []),
        ("\ud800 half a pair", ["\ud800 half a pair"]),
    ],
)
def test_texts_are_found_and_nothing_raises(given: object, texts: list[str]) -> None:
    found = texts_of(given, assistant=True)
    assert list(found) == texts
    fingerprint(found)
