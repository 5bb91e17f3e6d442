"""Values of libraries cross as themselves, by a closed table."""

from __future__ import annotations

import array
import datetime
import ipaddress
import pathlib
import uuid
import zoneinfo
from typing import Any

import pytest

from adjudge.sandbox import codec, library_values


@pytest.mark.parametrize(
    "value",
    [
        uuid.UUID(int=5), ipaddress.ip_address("10.0.0.1"), ipaddress.ip_network("fe80::/10"), array.array("d", [1.5]),
        datetime.timezone(datetime.timedelta(hours=-3)), pathlib.PurePosixPath("a/b"),
    ],
)  # fmt: skip
def test_a_value_arrives_as_it_was(value: Any) -> None:
    found = codec.loads(codec.dumps(value))
    assert type(found) is type(value)
    assert found == value


def test_a_moment_keeps_its_zone() -> None:
    if not any(pathlib.Path(root, "Europe/Berlin").is_file() for root in zoneinfo.TZPATH):
        pytest.skip("this system has no time zones")
    moment = datetime.datetime(2020, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    found = codec.loads(codec.dumps(moment))
    assert found == moment
    assert found.tzinfo is moment.tzinfo


@pytest.mark.parametrize(
    "text",
    [
        b'{"v":["UUID","x"]}', b'{"v":["os","system"]}', b'{"v":["array","q",["a"]]}', b'{"v":["IPv4Address",7.5]}',
        b'{"T":["datetime","2020-01-01T00:00:00 ../../etc/passwd",0]}', b'{"v":["timezone",1e999,0,0]}', b'{"v":[]}',
        b'{"T":["datetime","2020-01-01T00:00:00 No/Where",0]}', b'{"a":[[2],[1]]}', b'{"x":[1,[],2]}',
    ],
)  # fmt: skip
def test_other_parts_make_nothing(text: bytes) -> None:
    with pytest.raises(codec.CodecError):
        codec.loads(text)


def test_a_file_s_path_stays_where_it_is() -> None:
    with pytest.raises(codec.CodecError):
        codec.dumps(pathlib.Path("x"))
    assert type(library_values.as_plain(pathlib.Path("a//b"))) is pathlib.PurePosixPath


def test_an_instance_of_an_own_class_is_data_unless_more_is_used_of_it() -> None:
    kind = type("Bag", (dict,), {"__module__": "solution"})
    text = codec.dumps(kind(a=1), lambda value: codec.Handle(7, "Bag"))
    assert codec.loads(text) == {"a": 1}
    assert codec.loads(text, uses={"Bag": frozenset({"get", "__eq__"})}) == {"a": 1}
    assert codec.loads(text, uses={"Bag": frozenset({"add"})}) == codec.Handle(7, "Bag", plain=True)
