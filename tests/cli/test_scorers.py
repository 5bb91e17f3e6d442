from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adjudge.cli import exits
from adjudge.scoring import registry
from adjudge.scoring.builtin import BUILTIN, preset_names

Adjudge = Callable[..., Any]


def test_every_name_is_listed_with_what_it_does(adjudge: Adjudge) -> None:
    ran = adjudge("scorers", "--json")
    assert ran.code == exits.FINE
    listings = {listing["name"]: listing for listing in ran.json["scorers"]}
    assert list(listings) == registry.names()
    for listing in listings.values():
        assert listing["problem"] == ""
        assert listing["summary"]
        assert listing["reference"] not in ("", "needed"), f"{listing['name']}: its docstring lacks 'The reference is'"


def test_the_list_is_one_screen_and_holds_every_name(adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = adjudge("scorers")
    assert ran.code == exits.FINE
    lines = ran.out.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    assert set(registry.names()) <= set(ran.out.replace(",", " ").split())


def test_the_long_table_holds_every_name(adjudge: Adjudge) -> None:
    ran = adjudge("scorers", "--all")
    assert ran.code == exits.FINE
    first_words = {line.split()[0] for line in ran.out.splitlines() if line[:1].isalpha()}
    assert set(registry.names()) <= first_words


def test_a_word_finds_scorers(adjudge: Adjudge) -> None:
    ran = adjudge("scorers", "Proof", "--json")
    assert {"coq", "lean", "smt"} <= {one["name"] for one in ran.json["scorers"]}
    assert "math" not in {one["name"] for one in ran.json["scorers"]}
    assert all(one["family"] for one in ran.json["scorers"])
    assert "theorem_group" in adjudge("scorers", "proof").out


@pytest.mark.parametrize("name", [*BUILTIN, *preset_names()])
def test_one_scorer_is_described_with_its_options(adjudge: Adjudge, name: str) -> None:
    ran = adjudge("scorers", name)
    assert ran.code == exits.FINE
    assert ran.out.startswith(f"{name}  (adjudge.")
    assert ("\nsource: " in ran.out) == (name in preset_names())
    assert "Attributes:" not in ran.out
    shown = adjudge("scorers", name, "--json").json
    for option, default in registry.describe(name).options.items():
        assert option in ran.out
        assert shown["options"][option] == default
        assert shown["help"][option], f"the docstring of {name} says nothing of {option}"


def test_an_object_can_be_described(adjudge: Adjudge, toys: str) -> None:
    ran = adjudge("scorers", f"{toys}:Toy")
    assert ran.code == exits.FINE
    assert "Is the response the reference, letter for letter?" in ran.out
    assert "reference: a text\n" in ran.out
    assert "reference: a text\n" in adjudge("scorers", f"{toys}:Lenient").out, "the class it derives from says so"


def test_an_unknown_name(adjudge: Adjudge) -> None:
    ran = adjudge("scorers", "maht")
    assert ran.code == exits.USER
    assert ran.err == "adjudge: unknown scorer 'maht'; `adjudge scorers` lists the names (did you mean 'math'?)\n"
