"""Fingerprints stay when code moves or grows an option, and change whenever a score could."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import cloudpickle
import pytest

from adjudge.fingerprints import fingerprint_of, plain
from adjudge.prompts.template import load_template
from adjudge.protocol import Score, Verifier


def made(module: str, **options: Any) -> Any:
    """A verifier of one name as it would be in that module, with those options and their defaults."""
    fields = [(name, type(default), field(default=default)) for name, default in options.items()]
    body = {"name": "shouting", "verify": lambda self, sample: Score.scored(1.0)}
    kind = dataclasses.make_dataclass("Shouting", fields, bases=(Verifier,), namespace=body, frozen=True, kw_only=True)
    kind.__module__ = module
    return kind


def test_a_class_that_moves_and_gets_an_option_keeps_its_fingerprint() -> None:
    here, there = made("here", share=1.0), made("elsewhere.deep", share=1.0, strict=False)
    assert here.__module__ != there.__module__
    assert here().fingerprint == there().fingerprint
    assert here(share=0.5).fingerprint == there(share=0.5).fingerprint != here().fingerprint
    assert there(strict=True).fingerprint != there().fingerprint


def test_a_class_that_takes_its_name_from_another_is_not_it() -> None:
    base = made("here")
    other: Any = type("Louder", (base,), {})
    assert other().name == base().name
    assert other().fingerprint != base().fingerprint


@dataclass(frozen=True, kw_only=True)
class Inner:
    fingerprint: str = "inner:1"


@dataclass(frozen=True, kw_only=True)
class Rule:
    power: int = 1


@dataclass(frozen=True, kw_only=True)
class Strict:
    power: int = 1


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: ClassVar[str] = "outer"
    version: ClassVar[str] = "1"

    inner: Any = field(default_factory=Inner)
    rule: Rule | Strict = field(default_factory=Rule)
    table: dict[str, Any] = field(default_factory=dict)
    needed: int


@dataclass(frozen=True, kw_only=True)
class Stricter(Outer):
    power: int = 1


def test_a_scorer_that_is_a_default_is_told() -> None:
    """Its own version may rise."""
    assert plain(Outer(needed=1)) == ["Outer", {"inner": "inner:1", "needed": 1}]


@pytest.mark.parametrize(
    "change",
    [
        {"needed": 2},
        {"needed": True},
        {"inner": Inner(fingerprint="inner:2")},
        {"rule": Rule(power=2)},
        {"rule": Strict()},
        {"table": {"a": Inner()}},
        {"table": {"a": Inner(fingerprint="inner:2")}},
        {"inner": load_template("judges/answer")},
    ],
)
def test_what_could_change_a_score_changes_it(change: dict[str, Any]) -> None:
    base = Outer(needed=1)
    changed = dataclasses.replace(base, **change)
    assert fingerprint_of(changed) != fingerprint_of(base)
    assert fingerprint_of(changed, without=tuple(change)) == fingerprint_of(base, without=tuple(change))


def test_a_class_that_was_pickled_by_value_keeps_its_fingerprint() -> None:
    scorer = made("__main__", share=1.0)()
    reads = "import pickle, sys; print(pickle.load(sys.stdin.buffer).fingerprint)"
    done = subprocess.run(
        [sys.executable, "-c", reads], input=cloudpickle.dumps(scorer), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == scorer.fingerprint


def test_what_is_behind_it_is_told() -> None:
    assert fingerprint_of(Outer(needed=1), Inner()) != fingerprint_of(Outer(needed=1), Inner(fingerprint="inner:2"))
    assert fingerprint_of(Stricter(needed=1, power=2), of=Outer) == fingerprint_of(Stricter(needed=1), of=Outer)
