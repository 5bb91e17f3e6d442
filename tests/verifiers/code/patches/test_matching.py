"""`LinearMatcher` finds difflib's blocks, whichever way it takes, and stops where the texts make too much work."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.code.patches import similarity
from adjudge.verifiers.code.patches.similarity import LinearMatcher, TooMuchWorkError, diff_similarity, unified_hunks

TEXTS = st.one_of(st.text("ab", max_size=60), st.text("abcdef\n", max_size=60))
LINES = st.lists(st.sampled_from([f"line {number}" for number in range(7)]), max_size=40)
WAYS = {"difflib": (512, 10**9), "search": (512, -1), "automaton": (-1, -1), "cheapest": (4, 2)}


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    short, few = request.param
    monkeypatch.setattr(similarity, "_SHORT", short)
    monkeypatch.setattr(similarity, "_FEW_PAIRS", few if few > 0 else 1e-9)


@pytest.mark.usefixtures("way")
def test_blocks_and_ratios_are_difflibs() -> None:
    @settings(max_examples=40)
    @given(TEXTS, TEXTS)
    def check(a: str, b: str) -> None:
        ours, theirs = LinearMatcher(a, b, autojunk=False), difflib.SequenceMatcher(None, a, b, autojunk=False)
        assert ours.get_matching_blocks() == theirs.get_matching_blocks()
        assert ours.ratio() == theirs.ratio()

    check()


@pytest.mark.usefixtures("way")
def test_blocks_are_difflibs_where_elements_are_popular() -> None:
    @settings(max_examples=15)
    @given(LINES, LINES)
    def check(a: list[str], b: list[str]) -> None:
        rare = [f"rare {number}" for number in range(180)]  # 200 lines and more: some are popular
        one, other = a + rare[:90] + b + rare[90:] + a, b + rare[:120] + a + b + rare[120:] + b
        ours, theirs = LinearMatcher(one, other, autojunk=True), difflib.SequenceMatcher(None, one, other)
        assert ours.get_matching_blocks() == theirs.get_matching_blocks()

    check()


@pytest.mark.usefixtures("way")
def test_a_block_grows_over_popular_elements_at_both_ends() -> None:
    rare = [f"rare {number}" for number in range(200)]
    one, other = ["x", "p", "p", *rare, "p", "y"], ["z", "p", "p", *rare, "p", "q", *["p"] * 9]
    ours, theirs = LinearMatcher(one, other, autojunk=True), difflib.SequenceMatcher(None, one, other)
    assert theirs.find_longest_match() == (1, 1, 203)
    assert ours.get_matching_blocks() == theirs.get_matching_blocks()


@settings(max_examples=50)
@given(LINES, LINES, st.sampled_from(["\n", "\r\n", "\f"]))
def test_hunks_are_those_of_unified_diff(a: list[str], b: list[str], end: str) -> None:
    before, after = end.join(a), end.join(b)
    expected = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "old", "new", lineterm="", n=3))[2:]
    assert unified_hunks(before, after) == "\n".join(expected)


def test_two_empty_diffs_are_alike_and_one_is_like_nothing() -> None:
    assert (diff_similarity("", ""), diff_similarity("x", ""), diff_similarity("", "x")) == (1.0, 0.0, 0.0)


def test_the_side_of_the_gold_matters_as_it_does_to_difflib() -> None:
    one, other = "tide", "diet"  # the documentation's own example of a ratio that is not symmetric
    assert (diff_similarity(one, other), diff_similarity(other, one)) == (0.25, 0.5)


def test_work_is_bounded() -> None:
    a, b = "".join(f"a{n}" for n in range(400)), "".join(f"b{n}" for n in range(400))
    assert LinearMatcher(a, b, autojunk=False).ratio() > 0
    with pytest.raises(TooMuchWorkError, match="different blocks"):
        LinearMatcher(a, b, autojunk=False, work=1000).ratio()
    with pytest.raises(TooMuchWorkError, match="200000"):
        LinearMatcher("a" * 200_001, "b", autojunk=False)


def test_a_long_text_with_few_equal_elements_is_work_too() -> None:
    """Each of the blocks takes another pass over the whole of it: 27 s for 1,000 blocks and 190,000 characters."""
    rare = [chr(0x5000 + number) for number in range(100)]
    a, b = "".join(f"{one}x" for one in rare) + "y" * 20_000, "".join(f"{one}q" for one in rare)
    assert LinearMatcher(a, b, autojunk=False).ratio() > 0
    with pytest.raises(TooMuchWorkError, match="different blocks"):
        LinearMatcher(a, b, autojunk=False, work=100_000).ratio()
