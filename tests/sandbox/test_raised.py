"""Exceptions of the other end: the nearest class that is known here, and nothing that its names could reach."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from adjudge.sandbox.raised import SAID, Exceptions, Raised, home_of, parts_of


def made(error: BaseException) -> BaseException:
    """Return what an exception becomes at the other end."""
    names, text, values, more = parts_of(error, whole=True)
    return Exceptions(lambda module: False).make(Raised(tuple(names), text, values, more=more), lambda value: value)


def test_a_library_s_exception_keeps_class_text_and_attributes() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    error: Any = made(caught.value)
    assert type(error) is json.JSONDecodeError
    assert error.pos == 1
    assert str(error) == str(caught.value)


def test_an_own_exception_is_what_it_extends_with_its_text_and_cause() -> None:
    class Broke(KeyError):
        def __init__(self, balance: int) -> None:
            super().__init__("no")
            self.balance = balance

    error: Any = Broke(5)
    error.__cause__ = ZeroDivisionError("x")
    found = made(error)
    assert type(found) is KeyError
    assert (vars(found)["balance"], vars(found)[SAID], type(found.__cause__)) == (5, "'no'", ZeroDivisionError)


def test_built_in_attributes_notes_and_context_arrive_and_nothing_of_another_type_in_their_place() -> None:
    error = FileNotFoundError(2, "no", "file")
    error.add_note("look there")
    error.__context__ = KeyError("x")
    found: Any = made(error)
    assert (found.errno, found.filename, found.__notes__, str(found)) == (2, "file", ["look there"], str(error))
    assert type(found.__context__) is KeyError
    assert found.__cause__ is None
    assert not found.__suppress_context__
    more = {"attributes": {"errno": [1]}, "notes": [1], "context": 5, "cause": [["A"], "t"], "alone": 1, "home": "1"}
    found = Exceptions(None).make(Raised(("OSError",), "t", (3, "t"), more=more), lambda value: value)
    assert (found.errno, found.__context__, found.__cause__, found.__suppress_context__) == (3, None, None, False)
    assert not hasattr(found, "__notes__")
    assert home_of(found) is None


def test_a_class_extends_all_that_it_extends_there_but_what_ends_a_run() -> None:
    known = Exceptions(lambda module: False)
    places = ["solution:E", "builtins:ValueError", "builtins:KeyError", "builtins:LookupError", "builtins:Exception"]
    names = [place.partition(":")[2] for place in places]
    assert known.bases_of(names, places) == (ValueError, KeyError)
    for end in (
        "builtins:SystemExit",
        "builtins:KeyboardInterrupt",
        "unittest.case:SkipTest",
        "_pytest.outcomes:Skipped",
    ):
        assert known.bases_of(["E", "ValueError", end.partition(":")[2]], [*places[:2], end]) == (ValueError,)


@pytest.mark.parametrize(
    "place",
    [
        "builtins:SystemExit", "_pytest.outcomes:Exit", "unittest.case:SkipTest", "os:system", "os:path.join", "x:y",
        "json:decoder.JSONDecodeError", "solution:ValueError", "sys:modules", ":", "", 5, "subprocess:Popen",
    ],
)  # fmt: skip
def test_no_other_name_is_looked_up(place: Any) -> None:
    assert Exceptions(lambda module: False).bases_of(["Unknown"], [place]) == (Exception,)
    assert Exceptions(lambda module: False).bases_of(["ValueError"], ["solution:ValueError"]) == (Exception,)


def test_the_tests_own_and_modules_that_are_not_loaded_are_not_taken() -> None:
    assert Exceptions(lambda module: True).bases_of(["A"], ["json.decoder:JSONDecodeError"]) == (Exception,)
    assert "nntplib" not in sys.modules
    assert Exceptions(lambda module: False).bases_of(["A"], ["nntplib:NNTPError"]) == (Exception,)
    assert "nntplib" not in sys.modules


def test_attributes_cannot_replace_what_exceptions_have() -> None:
    more = {"attributes": {"with_traceback": 1, "__class__": 2, "_x": 3, "a b": 4, "ok": 5}}
    found = Exceptions(None).make(Raised(("ValueError",), "t", ("t",), more=more), lambda value: value)
    assert vars(found) == {"ok": 5, SAID: "t"}
