"""Options are checked against their annotations, and messages name the option, the value and the remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from adjudge.options import Options, Range, named, options_of, suggestion


@dataclass(frozen=True, kw_only=True)
class Run(Options, what="run option"):
    seconds: Annotated[float, Range(gt=0, le=60, unit="seconds")] = 10.0
    tries: Annotated[int, Range(ge=1)] = 1
    share: Annotated[float, Range(ge=0, lt=1)] | None = None
    credit: Literal["all", "fraction"] = "all"
    level: Literal[0, 1] = 0
    quiet: bool = False
    title: str = ""
    free: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    worth: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] | None = None


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"seconds": 60},
        {"seconds": 1e-9},
        {"tries": 1},
        {"share": 0},
        {"share": None},
        {"credit": "fraction"},
        {"level": 1},
        {"quiet": True},
        {"title": "x"},
        {"free": "anything"},
        {"words": ("a", "b")},
        {"worth": {"a": 1, "b": 0.5}},
        {"extra": None},
        {"extra": {"a": [1]}},
    ],
)
def test_what_is_declared_is_taken(given: dict[str, Any]) -> None:
    assert all(getattr(Run(**given), name) == value for name, value in given.items())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seconds": 0}, "run option seconds=0; it must be a finite number of seconds above 0 and at most 60"),
        ({"seconds": 60.5}, "run option seconds=60.5; it must be a finite number of seconds above 0 and at most 60"),
        ({"seconds": math.nan}, "run option seconds=nan; it must be a finite number of seconds above 0 and at most 60"),
        ({"seconds": math.inf}, "run option seconds=inf; it must be a finite number of seconds above 0 and at most 60"),
        ({"seconds": True}, "run option seconds=True; it must be a finite number of seconds above 0 and at most 60"),
        (
            {"seconds": "1e-3"},
            "run option seconds='1e-3'; it must be a finite number of seconds above 0 and at most 60 "
            "(YAML reads 1e-3 as text: write 0.001 or 1.0e-3)",
        ),
        ({"words": 5}, "run option words=5; it must be a text or a list of texts"),
        ({"words": {"a": 1}}, "run option words={'a': 1}; it must be a text or a list of texts"),
        ({"worth": ["a"]}, "run option worth=['a']; it must be a mapping, {NAME: a finite number, ...}"),
        ({"worth": {"a": "x"}}, "run option worth={'a': 'x'}; it must be a mapping, {NAME: a finite number, ...}"),
        ({"extra": "a"}, "run option extra='a'; it must be a mapping, {NAME: VALUE, ...}, or None"),
        ({"seconds": None}, "run option seconds=None; it must be a finite number of seconds above 0 and at most 60"),
        ({"tries": 0}, "run option tries=0; it must be a whole number, at least 1"),
        ({"tries": 1.0}, "run option tries=1.0; it must be a whole number, at least 1"),
        ({"tries": True}, "run option tries=True; it must be a whole number, at least 1"),
        ({"share": 1}, "run option share=1; it must be a finite number, at least 0 and below 1, or None"),
        ({"credit": "some"}, "run option credit='some'; it must be one of all, fraction"),
        ({"credit": ["all"]}, "run option credit=['all']; it must be one of all, fraction"),
        ({"level": True}, "run option level=True; it must be one of 0, 1"),
        ({"quiet": 1}, "run option quiet=1; it must be true or false"),
        ({"title": 1}, "run option title=1; it must be text"),
    ],
)
def test_anything_else_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        Run(**given)


@pytest.mark.parametrize(("given", "words"), [("honest", ("honest",)), (["a", "b"], ("a", "b")), ("", ("",))])
def test_a_text_stands_for_a_tuple_of_one_and_a_list_for_a_tuple(given: Any, words: tuple[str, ...]) -> None:
    assert Run(words=given).words == words


def test_a_subclass_keeps_the_checks_and_adds_its_own() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Slow(Run, what="slow option"):
        pause: Annotated[float, Range(ge=0)] = 0.0

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.pause > self.seconds:
                raise ValueError("too long a pause")

    wrong: dict[str, dict[str, Any]] = {
        "slow option pause=-1": {"pause": -1},
        "slow option tries": {"tries": 0},
        "too long": {"pause": 11},
    }
    for said, given in wrong.items():
        with pytest.raises(ValueError, match=said):
            Slow(**given)


def test_names_that_are_near_are_suggested() -> None:
    assert suggestion("most_words", ["max_items", "max_words", "post_words"]) == " (did you mean 'max_words'?)"
    assert suggestion("least-mass", ["min_mass"]) == " (did you mean 'min_mass'?)"
    assert suggestion("learning-rat", ["seed", "learning_rate"]) == " (did you mean 'learning_rate'?)"
    assert suggestion("qqq", ["seed"]) == ""
    assert named({"a": 1, "b": 2}, "b", "letter") == 2
    with pytest.raises(ValueError, match=r"unknown letter 'bb' \(did you mean 'b'\?\); there are a, b"):
        named({"a": 1, "b": 2}, "bb", "letter")
    with pytest.raises(ValueError, match=r"unknown letter \[\]; there are a"):
        named({"a": 1}, [], "letter")


def test_a_mapping_of_options_is_checked() -> None:
    assert options_of({"a": 1}, ["a", "b"], inside="it") == {"a": 1}
    for body, said in (
        ({"c": 1}, "it has no option 'c'; its options are: a, b"),
        (3, r"it takes a mapping of options \(a, b\)"),
    ):
        with pytest.raises(ValueError, match=said):
            options_of(body, ["a", "b"], inside="it")
    with pytest.raises(ValueError, match="it needs the option 'b'"):
        options_of({"a": 1}, ["a", "b"], inside="it", required=["b"])
