"""What a maker returns is checked field by field before it is written."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.io.errors import JobError
from adjudge.io.jobs.lines import LineWriter, Unfit, fitted, joined, json_line, kind_of, known_kinds, place_of
from adjudge.io.jobs.maker import Made, Unit
from adjudge.protocol import Cost

UNIT = Unit(rows=({"q": 1},), first=7)
TURN = {"role": "user", "content": "hi"}
DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]

FITS = [
    ("text", "a\ud800", "a\ud800"),
    ("number", 1, 1),
    ("number", np.float64(0.5), 0.5),
    ("whole", -(2**63), -(2**63)),
    ("flag", False, False),
    ("texts", ("a", None), ["a", None]),
    ("numbers", [1, 0.5, None], [1, 0.5, None]),
    ("wholes", [], []),
    ("flags", [True, None], [True, None]),
    ("chat", "text", "text"),
    ("chat", (TURN,), [TURN]),
    ("chat", [TURN | {"tool_calls": [{}], "content": None}], [TURN | {"tool_calls": [{}], "content": None}]),
    ("any", MappingProxyType({"a": (1, {"b": None})}), {"a": [1, {"b": None}]}),
    ("any", 2**2000, 2**2000),
]

UNFIT = [
    ("text", 1, "a int (1)"),
    ("text", b"a", "a bytes"),
    ("number", "1", "a str ('1')"),
    ("number", True, "a bool (True)"),
    ("number", math.nan, "the number nan, which is not finite"),
    ("number", 2**64, "more than 64 bits"),
    ("number", np.int64(1), "a int64"),
    ("whole", 1.0, "a float (1.0)"),
    ("whole", 2**63, "more than 64 bits"),
    ("whole", True, "a bool"),
    ("flag", 0, "a int (0)"),
    ("texts", "abc", "a str ('abc')"),
    ("texts", ["a", 2], "a list whose item 1 is a int (2)"),
    ("numbers", [1, math.inf], "item 1 is the number inf"),
    ("chat", 3, "a int (3)"),
    ("chat", {"role": "user"}, "a dict"),
    ("chat", ["hi"], "not a chat turn with a role"),
    ("chat", [{"role": "user", "content": 3}], "neither text nor parts"),
    ("any", {1: 2}, "an object with the key 1, which is not text"),
    ("any", {"a": [math.nan]}, "which is not finite"),
    ("any", {"a": {1, 2}}, "a builtins.set"),
    ("any", Decimal(1), "a decimal.Decimal"),
    ("any", DEEP, "nested deeper than 100 levels"),
    ("any", 2**5000, "more than 4096 bits"),
]


@pytest.mark.parametrize(("kind", "value", "written"), FITS)
def test_what_fits_a_field(kind: str, value: Any, written: Any) -> None:
    lines = LineWriter("m", {"f": kind}, keeps_columns=False, tells_kinds=False).lines(
        UNIT, Made(rows=({"f": value}, {"f": None}))
    )
    assert [json.loads(line) for line in lines.text.splitlines()] == [{"f": written}, {"f": None}]
    assert lines.rows == 2


@pytest.mark.parametrize(("kind", "value", "said"), UNFIT)
def test_what_does_not_fit_names_the_maker_the_field_and_the_row(kind: str, value: Any, said: str) -> None:
    writer = LineWriter("maker", {"f": kind}, keeps_columns=False, tells_kinds=False)
    with pytest.raises(JobError) as raised:
        writer.lines(UNIT, Made(rows=({"f": value},)))
    assert str(raised.value).startswith("maker made a row whose field 'f' is ")
    assert said in str(raised.value)
    assert "(row 7)" in str(raised.value)


ODD: Any = {"f": "x", "g": 1}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "returned a NoneType; it must return a Made"),
        ({"f": "x"}, "returned a dict; it must return a Made"),
        (Made(rows=({},)), "made a row without the field 'f'; None stands for no value"),
        (Made(rows=(ODD,)), "made a row with the field 'g', which is none of its fields"),
        (Made(rows=("f",)), "made a str ('f'); a row must be a mapping"),  # type: ignore[arg-type]
        (Made(dropped={"a": -1}), "dropped 'a' -1 times"),
        (Made(dropped={"a": 0.5}), "dropped 'a' 0.5 times"),  # type: ignore[dict-item]
        (Made(counts={"a": math.nan}), "counted 'a' as nan"),
        (Made(counts={1: 1}), "counted 1 as 1"),  # type: ignore[dict-item]
        (Made(cost=Cost(seconds=math.inf)), "gave the cost"),
        (Made(cost=1.0), "gave the cost 1.0"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_as_promised(made: Any, said: str) -> None:
    with pytest.raises(JobError, match="this is a fault of that maker") as raised:
        LineWriter("maker", {"f": "text"}, keeps_columns=False, tells_kinds=False).lines(UNIT, made)
    assert said in str(raised.value)


def test_an_unknown_kind_of_field_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="maker says that its field 'f' is a 'string'; use one of text, number"):
        LineWriter("maker", {"f": "string"}, keeps_columns=False, tells_kinds=False)


def test_columns_that_are_kept_are_written_as_they_were_read_and_in_their_order() -> None:
    writer = LineWriter("maker", {"f": "whole"}, keeps_columns=True, tells_kinds=True)
    row = {"a": Decimal("1.5"), "f": 1, "b": [1, 2.5], "c": {"x": math.inf}}
    lines = writer.lines(UNIT, Made(rows=(row,)))
    assert lines.text == (
        b'{"a":{"$adjudge":"decimal","value":"1.5"},"f":1,"b":[1,2.5],"c":{"x":{"$adjudge":"float","value":"inf"}}}\n'
    )
    assert dict(lines.kinds) == {"a": "any", "b": "numbers", "c": "any"}
    assert writer.lines(UNIT, Made(rows=(json.loads(lines.text),))).text == lines.text  # by the next job
    with pytest.raises(JobError, match="kept the column 'o', which JSON cannot hold"):
        writer.lines(UNIT, Made(rows=({"f": 1, "o": object()},)))


def test_a_lone_surrogate_survives_as_an_escape() -> None:
    line = json_line({"a": "é\ud83d", "b": "\udc00"})
    assert line == '{"a":"é\\ud83d","b":"\\udc00"}\n'.encode()
    assert json.loads(line) == {"a": "é\ud83d", "b": "\udc00"}


def test_places() -> None:
    assert place_of(UNIT) == "row 7"
    assert place_of(Unit(rows=({}, {}), first=3, group="g" * 100)) == f"rows 3 to 4, group '{'g' * 80}'"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KINDS = [*known_kinds(), "", "list", "turns"]


@given(value=JSON)
def test_a_value_fits_the_kind_it_is_of(value: Any) -> None:
    kind = kind_of(value)
    if kind in known_kinds():
        assert fitted(value, kind) == value
    elif kind == "turns":
        assert fitted(value, "chat") == value
    else:
        assert value in (None, []) or all(item is None for item in value)


@given(one=JSON, other=JSON)
def test_a_joined_kind_holds_both(one: Any, other: Any) -> None:
    kind = joined(kind_of(one), kind_of(other))
    if kind in known_kinds():
        assert fitted(one, kind) == one
        assert fitted(other, kind) == other


@given(a=st.sampled_from(KINDS), b=st.sampled_from(KINDS), c=st.sampled_from(KINDS))
def test_joining_kinds_knows_no_order(a: str, b: str, c: str) -> None:
    assert joined(a, b) == joined(b, a)
    assert joined(a, joined(b, c)) == joined(joined(a, b), c)
    assert joined(a, a) == a


def test_narrowest_kinds() -> None:
    for value, kind in (
        (None, ""),
        ([], "list"),
        ([None], "list"),
        (True, "flag"),
        (2**63, "any"),
        ([1, None, 2.5], "numbers"),
        ([1, True], "any"),
        ([TURN, TURN | {"content": None}], "turns"),
        ([TURN | {"name": "x"}], "any"),
        ([[1]], "any"),
        ({}, "any"),
    ):
        assert kind_of(value) == kind
    with pytest.raises(Unfit):
        fitted(1, "text")
