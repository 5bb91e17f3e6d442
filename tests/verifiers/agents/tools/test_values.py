"""When an argument is the one that was asked for, and which values are data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.agents.tools.arguments import (
    MAX_ALLOWED,
    Equality,
    NotDataError,
    allowed,
    check_choices,
    data,
    normal,
    normal_text,
)

STRICT = Equality()
TYPED = Equality(typed=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab ,.", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("expected", "offered", "strict", "typed"),
    [
        (1, 1, True, True),
        (1, True, False, False),
        (True, 1, False, False),
        (0, False, False, False),
        (None, False, False, False),
        (1, 1.0, False, True),
        (1.0, 1, True, True),
        (1, "1", False, False),
        (1.5, 1.5000001, False, False),
        ([1, 2], [1, 2], True, True),
        ([1, 2], [2, 1], False, False),
        ([[True]], [[1]], False, False),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}, True, True),
        ({"a": {"b": [1]}}, {"a": {"b": [True]}}, False, False),
        ({"a": 1}, {}, False, False),
        ({"a": 1}, {"a": 1, "b": 2}, False, False),
        ({"any_of": [1, "one"]}, "one", True, True),
        ({"any_of": [1, "one"]}, 2, False, False),
        ({"a": {"any_of": [1], "optional": True}, "b": 2}, {"b": 2}, True, True),
        ({"a": {"any_of": [1], "optional": True}, "b": 2}, {"a": 3, "b": 2}, False, False),
        ([{"any_of": [{"x": {"any_of": [1, 2]}}]}], [{"x": 2}], True, True),
        ("3.14", "314", False, False),
        ("Paris", "paris", False, False),
    ],
)
def test_values_are_compared_type_by_type_at_every_depth(
    expected: Any, offered: Any, strict: bool, typed: bool
) -> None:
    assert (STRICT.same(expected, offered), TYPED.same(expected, offered)) == (strict, typed)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("April 1, 2024", "april 1,2024", True),
        ("New  York", "new york", True),
        ("it's", "it’s", True),
        ("3.14", "314", False),
        ("1-2", "12", False),
        ("new york", "newyork", False),
        ("a_b", "ab", False),
        ("-5", "5", False),
    ],
)
def test_normal_texts_lose_case_quotes_and_blanks_and_no_signs(one: str, other: str, same: bool) -> None:
    assert STRICT.same(normal({"k": [one]}), normal({"k": [other]})) is same


def test_a_tolerance_is_for_floats_alone() -> None:
    near = Equality(tolerance=1e-3, typed=True)
    assert near.same(1.5, 1.501)
    assert not near.same(1.5, 1.51)
    assert not near.same(1000, 1001)
    assert near.same(1000, 1000.5)


@settings(max_examples=100)
@given(value=JSON, other=JSON)
def test_a_value_is_the_same_as_itself_and_equality_goes_both_ways_where_types_are_judged(
    value: Any, other: Any
) -> None:
    assert STRICT.same(value, value)
    assert data(value) == value
    assert TYPED.same(value, other) == TYPED.same(other, value)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("inf")], 10**300, {"a": -(10**301)}, {1: 2}, {"a": b"x"}, [{1}], 1j, nested(65), object()],
)
def test_what_no_json_can_hold_is_no_data(value: Any) -> None:
    with pytest.raises(NotDataError):
        data(value)


def test_tuples_become_lists_and_64_levels_are_read() -> None:
    assert data({"a": (1, (2,))}) == {"a": [1, [2]]}
    assert data(nested(64)) == nested(64)


def test_what_is_allowed_is_every_way_through_the_choices() -> None:
    expected = {"a": {"any_of": [1, [{"any_of": [2, 3]}]]}, "b": {"any_of": [4], "optional": True}}
    assert sorted(map(str, allowed(expected))) == [
        "{'a': 1, 'b': 4}", "{'a': 1}", "{'a': [2], 'b': 4}", "{'a': [2]}", "{'a': [3], 'b': 4}", "{'a': [3]}",
    ]  # fmt: skip
    assert all(TYPED.same(expected, way) for way in allowed(expected))
    assert len(allowed([{"any_of": list(range(10))}] * 60)) == MAX_ALLOWED + 1


@pytest.mark.parametrize("choice", [{"any_of": []}, {"any_of": 1}, [{"any_of": [1], "optional": 1}]])
def test_a_choice_must_offer_something(choice: Any) -> None:
    with pytest.raises(NotDataError):
        check_choices(choice)


@settings(max_examples=100)
@given(text=st.text(max_size=30))
def test_normal_texts_stay_as_they_are_when_they_are_normal(text: str) -> None:
    assert normal_text(normal_text(text)) == normal_text(text)
