"""No value of a published name changes unseen: the table has each, and each name of a rule has its source."""

from __future__ import annotations

import pytest
from tests.presets.published_defaults import found, table

FOUND, TABLE = found(), table()


@pytest.mark.parametrize("kind", FOUND)
def test_values_are_those_of_the_table(kind: str) -> None:
    told = TABLE["values"][kind]
    assert FOUND[kind].keys() == told.keys(), "python -m tests.presets.published_defaults, and read what changed"
    for name, values in FOUND[kind].items():
        assert values == told[name], f"{kind} {name}: is the published value another one?"


@pytest.mark.parametrize("kind", ["objectives", "credits", "curricula", "improvers"])
def test_each_rule_says_where_its_numbers_are_from(kind: str) -> None:
    sources = TABLE["sources"][kind]
    assert sources.keys() == FOUND[kind].keys()
    assert all(any(word in source for word in ("paper", "code", "memory", "ours")) for source in sources.values())
