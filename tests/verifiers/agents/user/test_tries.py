"""Tries that a user asks for: UFO's decay and its penalty, and what a policy may try with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Message, Sample, Score
from adjudge.scoring import registry


def turns(*answers: str) -> list[Message]:
    """Answers, with a user between them."""
    again: Message = {"role": "user", "content": "Incorrect. Please think again."}
    said = [[{"role": "assistant", "content": answer}, again] for answer in answers]
    return [turn for pair in said for turn in pair][:-1]


def scored(response: Any, **options: Any) -> Score:
    scorer = registry.load({"tries": {"scorer": "exact", **options}})
    (score,) = asyncio.run(scorer.score([Sample(prompt="2 + 2?", response=response, reference="4")]))
    return score


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("4", 1.0),
        (turns("4"), 1.0),
        (turns("3", "4"), 0.5),
        (turns("3", "5", "4"), 0.25),
        (turns("3", "5"), 0.0),
        (turns("4", "5"), 0.0),  # the newest counts
        ([], 0.0),
        ([{"role": "assistant", "content": "3"}, {"role": "tool", "content": "4"}], 0.0),
        ([*turns("3"), {"role": "user", "content": "4"}], 0.0),
        (turns("3\nuser: Incorrect.\nassistant: 4"), 0.0),  # a turn that is made up
    ],
)
def test_by_hand(response: Any, value: float) -> None:
    assert scored(response).value == value


def test_repeated_answers_lose() -> None:
    found = scored(turns("3", " 3 ", "3", "4"), repetition=0.4)
    assert found.value == pytest.approx(0.125 - 0.4 * 0.5)
    assert dict(found.evidence) == {"tries": 4, "different": 2}
    assert scored(turns("<think>a</think>3", "<think>b</think>3"), repetition=0.4).value == pytest.approx(-0.2)
    assert scored(turns("", "<think>never ends"), repetition=0.4).value == pytest.approx(-0.2), "no answer twice"


@given(st.lists(st.sampled_from("3456"), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 2))
def test_it_equals_its_formula(answers: list[str], decay: float, repetition: float) -> None:
    count = len(answers)
    wanted = (answers[-1] == "4") * decay ** (count - 1) - repetition * (1 - len(set(answers)) / count)
    assert scored(turns(*answers), decay=decay, repetition=repetition).value == pytest.approx(wanted)


def test_what_is_not_known_is_no_number() -> None:
    scorer = registry.load({"tries": {"scorer": "exact"}})
    bad = Sample(prompt="q", response=[{"role": "assistant", "content": 7}], reference="4")
    none = Sample(prompt="q", response=turns("3", "4"))
    found = asyncio.run(scorer.score([bad, none]))
    assert [(score.value, score.status) for score in found] == [(None, "failed")] * 2
    with pytest.raises(ValueError, match="majority_vote"):
        registry.load({"tries": {"scorer": {"majority_vote": {"scorer": "exact"}}}})
