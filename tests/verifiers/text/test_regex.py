from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.regex import RegexVerifier


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{99999999999}", "*", "(?P<x>a)(?P<x>b)", "\\", "(" * 500])
def test_a_broken_pattern_is_reported_before_any_work(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a valid regular expression"):
        RegexVerifier(pattern=pattern)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a pattern"),
        ({"pattern": ""}, "needs a pattern"),
        ({"pattern": 5}, "pattern=5; it must be text"),
        ({"pattern": "a", "mode": "match"}, "mode='match'"),
        ({"pattern": "a", "expect": "none"}, "expect='none'"),
        ({"pattern": "a", "reasoning": "drop"}, "reasoning='drop'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RegexVerifier(**options)


@given(st.text(max_size=80), st.booleans())
def test_expecting_no_match_is_the_opposite(response: str, full: bool) -> None:
    sample = Sample(prompt="", response=response)
    mode: Any = "fullmatch" if full else "search"
    wanted = RegexVerifier(pattern="[a-m]+", mode=mode, reasoning="keep").verify(sample)
    forbidden = RegexVerifier(pattern="[a-m]+", mode=mode, reasoning="keep", expect="no_match").verify(sample)
    assert {wanted.value, forbidden.value} == ({0.0} if forbidden.reason == "no_answer" else {0.0, 1.0})


def test_flags_change_the_match_and_the_fingerprint() -> None:
    plain = RegexVerifier(pattern="a.b")
    sample = Sample(prompt="", response="A\nB")
    assert plain.verify(sample).value == 0.0
    ignoring = RegexVerifier(pattern="a.b", ignore_case=True)
    assert ignoring.verify(sample).value == 1.0
    assert RegexVerifier(pattern="a.b", ignore_case=True, dot_all=False).verify(sample).value == 0.0
    assert plain.fingerprint != ignoring.fingerprint
    assert RegexVerifier(pattern="^b$", mode="search").verify(Sample(prompt="", response="a\nb")).value == 0.0
    assert RegexVerifier(pattern="^b$", mode="search", multi_line=True).verify(Sample(prompt="", response="a\nb")).value


def test_the_evidence_says_what_matched_and_where() -> None:
    score = RegexVerifier(pattern="[0-9]+", mode="search").verify(Sample(prompt="", response=" ab 123 "))
    assert dict(score.evidence) == {"match": "123", "span": [3, 6]}


def test_it_travels_to_a_worker() -> None:
    verifier = RegexVerifier(pattern="a+")
    assert pickle.loads(pickle.dumps(verifier)) == verifier
