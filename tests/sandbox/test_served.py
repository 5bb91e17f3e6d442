"""What the tests' process does for a candidate: what is listed, and nothing else."""

from __future__ import annotations

import functools
import io
import logging
import operator
import os
import pathlib
import pickle
import queue
import random
import re
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from adjudge.sandbox import served

SOURCE = """
import contextlib, enum, functools, io, pathlib, subprocess
class Node:
    KIND = 1
    def __init__(self, value=1): self.value, self.judge, self._own = value, len, 2
    def step(self): return self.value
    @property
    def twice(self): return 2 * self.value
    def __add__(self, other): return self
    @classmethod
    def make(cls): return cls()
class Slots:
    __slots__ = ("inner",)
class Hook:
    def __getattr__(self, name): return name
class Where(type(pathlib.Path())): pass
class Colour(enum.Enum):
    RED = 1
def plain(x): return x
def generate(): yield 1
@contextlib.contextmanager
def managed(): yield
@functools.lru_cache
def cached(x): return x
"""


@pytest.fixture
def made() -> Iterator[dict[str, Any]]:
    """Names that tests define."""
    module = types.ModuleType(served.TESTS)
    sys.modules[served.TESTS] = module
    exec(SOURCE, module.__dict__)
    yield module.__dict__
    del sys.modules[served.TESTS]


def serves(operation: str, thing: Any, *arguments: Any) -> bool:
    return served.Served("/nowhere")(operation, thing, arguments)


def test_what_tests_define_can_be_called(made: dict[str, Any]) -> None:
    node = made["Node"]()
    for name in ("plain", "managed", "cached", "Node", "Colour"):
        assert serves("call", made[name]), name
    for thing in (node.step, made["Node"].make, functools.partial(made["plain"], 1), functools.partial(int, base=2)):
        assert serves("call", thing)
    listed: Any
    for listed in ([].append, "{}".format, operator.itemgetter(0), mock.Mock()):
        assert serves("call", listed)


@pytest.mark.parametrize(
    "thing",
    [
        open, eval, os.system, pickle.loads, getattr, type, str.format, subprocess.run, pathlib.Path("x").write_text,
        functools.partial(open, "x"), functools.partial(subprocess.run, []), object(),
        logging.getLogger("x").addHandler, io.StringIO, os, 5, "text",
    ],
)  # fmt: skip
def test_what_they_only_have_cannot(thing: Any) -> None:
    assert not serves("call", thing)


def test_attributes_of_what_tests_define(made: dict[str, Any]) -> None:
    node = made["Node"]()
    for name in ("value", "step", "twice", "KIND", "judge"):
        assert serves("getattr", node, name), name
    for other in ("_own", "__class__", "__dict__", "__init__", "", "missing", 5, None):
        assert not serves("getattr", node, other), other
    assert serves("getattr", made["Hook"](), "anything")
    assert serves("getattr", made["Slots"](), "inner")
    assert serves("getattr", made["Colour"].RED, "name")
    assert serves("getattr", made["Node"], "make")
    assert serves("getattr", types.SimpleNamespace(a=1), "a")


@pytest.mark.parametrize("name", ["gi_frame", "write_text", "parent", "func", "root", "manager", "f_globals", "open"])
def test_attributes_of_anything_else(made: dict[str, Any], name: str) -> None:
    things = (
        made["generate"](), made["Where"]("x"), pathlib.Path("x"), functools.partial(made["plain"]), made["plain"],
        logging.getLogger("x"), sys._getframe(), os, made["Node"]().step, io.StringIO(), random.Random(0),
        re.compile("a"),
    )  # fmt: skip
    assert not any(serves("getattr", thing, name) for thing in things)


def test_what_may_be_replaced(made: dict[str, Any]) -> None:
    node = made["Node"]()
    assert serves("setattr", node, "value", 3)
    assert serves("setattr", node, "fresh", 3)
    for name in ("step", "judge", "__class__", "_own"):
        assert not serves("setattr", node, name, 3), name
    assert not serves("setattr", made["Node"], "KIND", 3)
    assert not serves("setattr", made["plain"], "anything", 3)
    assert not serves("setattr", random.Random(0), "random", 3)


def test_mocks_cannot_be_asked_or_configured() -> None:
    double: Any = mock.Mock()
    assert serves("getattr", double, "fetch")
    assert serves("setattr", double, "status", 200)
    for name in (
        "assert_called_once_with",
        "return_value",
        "side_effect",
        "called",
        "mock_calls",
        "method_calls",
        "reset_mock",
    ):
        assert not serves("getattr", double, name), name
        assert not serves("setattr", double, name, 1), name
    from adjudge.sandbox.codec import Handle

    assert not serves("setattr", double, "fetch", Handle(-1, "Fake"))
    for operation in ("method", "rgetattr", "rgetitem", "instance", "call_method"):
        assert not serves(operation, double, "__class__")


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (io.StringIO(), "write"), (random.Random(0), "randint"), (queue.Queue(), "put"), (threading.Event(), "set"),
        (logging.getLogger("x"), "info"), (re.compile("a"), "findall"), (ValueError(1), "args"),
    ],
)  # fmt: skip
def test_the_methods_that_are_listed(thing: Any, name: str) -> None:
    assert serves("getattr", thing, name)
    value = getattr(thing, name)
    assert not callable(value) or serves("call", value)


def test_operators_are_those_that_tests_define(made: dict[str, Any]) -> None:
    assert serves("add", made["Node"](), 1)
    for operation in ("sub", "getitem", "rmod", "method", "setitem", "enter"):
        assert not serves(operation, made["Node"](), "x", 1), operation
    assert serves("enter", threading.Lock())
    assert not serves("truediv", pathlib.Path("x"), "y")


def test_what_both_ends_have_travels_by_name(made: dict[str, Any]) -> None:
    own = served.Served("/nowhere").own
    for thing in (open, os, str.upper, operator.add, ValueError, functools.reduce):
        text = served.global_name(thing, own)
        assert text
        assert served.global_value(text) is thing
    for value in (made["plain"], made["Node"], made["Node"]().step, 5, "os", [].append, object(), lambda: 0):
        assert served.global_name(value, own) == ""
    assert served.global_value("no_such_module:thing") is None
