"""Values that cross between processes: all of them arrive equal and of the same type, and nothing else arrives."""

from __future__ import annotations

import collections
import contextlib
import datetime
import enum
import json
import math
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.sandbox import codec

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
    | st.decimals() | st.fractions() | st.datetimes() | st.dates() | st.timedeltas(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner)
    | st.dictionaries(st.integers() | st.tuples(st.integers(), st.text()), inner),
)  # fmt: skip


def alike(one: Any, other: Any) -> bool:
    """Equal and of the same types all the way down, NaN like NaN."""
    return type(one) is type(other) and repr(one) == repr(other)


@given(PLAIN)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    assert alike(codec.loads(codec.dumps(value)), value)


@pytest.mark.parametrize(
    "value",
    [
        2**70, -(10**5000), math.inf, -math.inf, math.nan, -0.0, "\ud800", "\0", b"\xff", bytearray(b"x"), {1, 2},
        frozenset({(1, "a")}), collections.deque([1, 2], 3), collections.OrderedDict(b=1, a=2),
        collections.Counter("abca"), range(3, 9, 2), slice(1, None), ..., int, type(None), Decimal("1.10"),
        Fraction(1, 3), datetime.time(1, 2, 3), datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), {"t": [1]},
        {1: {2: {3}}},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_unusual_values_come_back_as_they_were(value: Any) -> None:
    got = codec.loads(codec.dumps(value))
    assert type(got) is type(value)
    assert got == value or got != got


def test_subclasses_become_what_they_extend() -> None:
    class Liar(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    class Colour(enum.IntEnum):
        RED = 3

    kind: Any = collections.namedtuple("kind", "x y")
    point = kind(1, 2)
    assert alike(codec.loads(codec.dumps([Liar(4), Colour.RED])), [4, 3])
    got = codec.loads(codec.dumps(point))
    assert (got.x, got.y, got) == (1, 2, (1, 2))
    default = codec.loads(codec.dumps(collections.defaultdict(list, a=[1])))
    assert default["b"] == []


@pytest.mark.parametrize(
    ("uses", "plain"),
    [
        ((), True),
        (("__getitem__", "keys", "&__eq__"), True),
        (("put",), False),
        (("get",), False),
        (("__len__",), False),
        (("&__or__",), False),
    ],
)
def test_a_subclass_stays_an_object_where_its_own_methods_are_used(uses: tuple[str, ...], plain: bool) -> None:
    class Own(dict[str, int]):
        def get(self, key: str, default: Any = None) -> Any:
            return default

        def put(self) -> None: ...

        def __len__(self) -> int:
            return 7

        def __or__(self, other: Any) -> Any:
            return self

    for member in (Own, Own.get, Own.put, Own.__len__, Own.__or__):
        member.__module__ = "solution"
    text = codec.dumps(Own(a=1), lambda value: codec.Handle(1, "Own"))
    for data, kind in ((text, dict), (text.replace(b"__len__", b"x"), dict), (text.replace(b'["', b'[["'), None)):
        with contextlib.nullcontext() if kind else pytest.raises(codec.CodecError):
            value = codec.loads(data, uses={"Own": frozenset(uses)})
            assert value == {"a": 1} if plain else data is not text or value == codec.Handle(1, "Own", plain=True)


def test_arrays_keep_shape_and_type() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6, dtype="int16").reshape(2, 3)
    got = codec.loads(codec.dumps([array, numpy.float32(1.5)]))
    assert got[0].dtype == array.dtype
    assert (got[0] == array).all()
    assert type(got[1]) is numpy.float32
    with pytest.raises(codec.CodecError):
        codec.dumps(numpy.array([object()]))


@pytest.mark.parametrize("value", [object(), lambda: 0, open, json, iter("a")], ids=lambda value: type(value).__name__)
def test_what_is_no_data_is_refused_or_kept(value: Any) -> None:
    with pytest.raises(codec.CodecError):
        codec.dumps(value)
    handle = codec.Handle(7, "thing")
    assert codec.loads(codec.dumps([value], lambda _: handle)) == [handle]


def test_nesting_is_bounded() -> None:
    deep: list[Any] = []
    for _ in range(codec.DEPTH + 1):
        deep = [deep]
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    for value in (deep, cyclic):
        with pytest.raises(codec.CodecError):
            codec.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"\xff", b"{}", b'{"x":1}', b'{"t":1}', b'{"i":5}', b'{"i":"zz"}', b'{"d":[[1]]}', b'{"d":[[[],1]]}',
        b'{"s":[[]]}', b'{"t":[],"d":[]}', b'{"k":["import os",["a"],[1]]}', b'{"k":["x",["a","a"],[1,2]]}',
        b'{"k":["x",["def"],[1]]}', b'{"y":"open"}', b'{"y":"object2"}', b'{"h":["1","x"]}', b'{"h":[1]}',
        b'{"D":"x"}', b'{"F":["1","0"]}', b'{"T":["now","x"]}', b'{"n":["O",[1],""]}', b'{"n":["<i8",[9],"AAAA"]}',
        b'{"m":["open",[]]}x', b'{"r":[1,2,0]}', b"[" * 100_000, b'{"t":[' * 5000,
    ],
    ids=lambda text: text[:24].decode("latin-1") or "empty",
)  # fmt: skip
def test_texts_that_stand_for_nothing_are_refused(text: bytes) -> None:
    with pytest.raises(codec.CodecError):
        codec.loads(text)


def test_names_in_the_text_are_never_looked_up() -> None:
    assert codec.loads(b'{"m":["eval",[]]}').default_factory is None
    assert codec.loads(b'{"h":[1,"__import__"]}') == codec.Handle(1, "__import__")


@pytest.mark.parametrize("tag", ["s", "z", "d", "O", "C"])
def test_keys_that_were_chosen_to_collide_are_refused(tag: str) -> None:
    def text(keys: list[int]) -> bytes:
        items = [{"i": hex(key)} for key in keys]
        return json.dumps({tag: items if tag in "sz" else [[item, 1] for item in items]}).encode()

    modulus = 2**61 - 1  # of the hash of integers
    with pytest.raises(codec.CodecError, match="hashes"):
        codec.loads(text([modulus * number for number in range(1, 2000)]))
    assert len(codec.loads(text([modulus * number for number in range(1, 500)]))) == 499
    assert len(codec.loads(text([modulus * number + number for number in range(1, 2000)]))) == 1999


def text_of(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * (1 << 20) + b"0]",
        b"[" + b"0," * (1 << 22) + b",0]",
        text_of([{"k": [f"p{number}", ["a", "b"], [1, 2]]} for number in range(20_000)]),
        text_of({"k": ["p", [f"a{number}" for number in range(50_000)], [0] * 50_000]}),
        text_of({"F": [hex(3**631_000), hex(5**430_000)]}),
        text_of([{"F": [hex(3**12_600 + 2 * number), hex(5**8_600)]} for number in range(1000)]),
        b'{"i":"0x' + b"7" * (1 << 22) + b'"}',
        b'{"D":"' + b"1" * 1_000_000 + b'"}',
        b'{"D":"1E+999999"}',
        b'{"D":"1E-999999"}',
        b'{"f":"' + b"1" * 100 + b'"}',
        b'{"c":["' + b"1" * 100 + b'","0"]}',
        text_of({"s": [{"t": [1] * 2000 + [-1 - (number >> at & 1) for at in range(9)]} for number in range(512)]}),
        '{"k":["p",["\ufb01","fi"],[1,2]]}'.encode(),
        b'{"n":["i4,i4",[0],""]}',
        b'{"n":["(1000000000,)i4",[0],""]}',
        b'{"n":["|b1",[1],"Ag=="]}',
        b'{"n":["<U1",[1],"/////w=="]}',
        b'{"N":["|u1",[2],"AQI="]}',
    ],
    ids=lambda text: text[:24].decode("latin-1"),
)
def test_texts_that_cost_too_much_or_make_what_cannot_be_are_refused(text: bytes) -> None:
    started = time.thread_time()
    with pytest.raises(codec.CodecError):
        codec.loads(text)
    assert time.thread_time() - started < 5


def test_who_is_trusted_may_send_as_much_as_it_likes() -> None:
    text = b"[" + b"[]," * (1 << 20) + b"0]"
    assert len(codec.loads(text, trusted=True)) == (1 << 20) + 1


@pytest.mark.parametrize(
    "value",
    [
        [Fraction(number, 7**300) for number in range(1, 500)], 3**1_000_000, Decimal(1).scaleb(1000),
        Decimal("0E-400"),
        {(x, y, z) for x in (-1, -2, 1) for y in (-1, -2, 1) for z in (-1, -2, 1)}, list(range(300_000)),
        [(number, str(number)) for number in range(50_000)],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_large_honest_values_come_back(value: Any) -> None:
    assert codec.loads(codec.dumps(value)) == value


def test_many_named_tuples_of_one_kind_are_cheap() -> None:
    point: Any = collections.namedtuple("point", "x y")
    value = [point(number, 1) for number in range(20_000)]
    got = codec.loads(codec.dumps(value))
    assert got == value
    assert got[7].x == 7


def test_tables_come_back_as_they_were() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"a": [1, 2], "b": ["x", None], "c": [0.5, math.nan], "d": pandas.to_datetime(["2024-01-02", None])},
        index=pandas.Index(["p", "q"], name="key"),
    )
    frame["e"] = pandas.Categorical(["u", "v"])
    frame["f"] = pandas.array([1, None], dtype="Int64")
    grouped = frame.set_index(["a", "b"])
    for value in (frame, grouped, frame.iloc[:0], pandas.DataFrame()):
        pandas.testing.assert_frame_equal(codec.loads(codec.dumps(value)), value)
    for series in (frame["a"], frame["b"], frame["e"], frame["f"], pandas.Series([1, "x", [2]], name=3)):
        pandas.testing.assert_series_equal(codec.loads(codec.dumps(series)), series)
    handle = codec.Handle(5, "Series")
    assert codec.loads(codec.dumps(pandas.Series(pandas.period_range("2024", periods=2)), lambda _: handle)) == handle
