"""docs/protocol.md against the code: options that scorers share have one name and one set of values."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

import pytest

from adjudge.options import declared
from adjudge.scoring import registry
from adjudge.scoring.builtin import BUILTIN

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
PAGE = PROTOCOL.read_text(encoding="utf-8").partition("## Names of options")[2]
LEFT = re.compile(r"^(most|least)(_|$)|^(longest|shortest|no_verdict|normalise|partial)$")


def rows() -> dict[str, set[str]]:
    """Each option of the table, with its values."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| `")]
    return {
        word: set(re.findall(r"`(\w+)`", values))
        for names, _, values in lines
        for word in re.findall(r"`(\w+)`", names)
    }


def options() -> dict[str, dict[str, tuple[Any, ...]]]:
    """Each option, with the scorers that have it and the choices that it leaves them."""
    found: dict[str, dict[str, tuple[Any, ...]]] = defaultdict(dict)
    for name in BUILTIN:
        kind: Any = registry.resolve(name)
        if dataclasses.is_dataclass(kind):
            known = declared(cast("Any", kind))
            for field in dataclasses.fields(kind):
                if field.init:
                    found[field.name][name] = known[field.name].choices if field.name in known else ()
    return found


OPTIONS = options()


def test_no_option_has_a_word_that_left() -> None:
    assert not [name for name in OPTIONS if LEFT.match(name)]


def test_options_of_many_scorers_have_a_row() -> None:
    assert {name for name, scorers in OPTIONS.items() if len(scorers) >= 9} <= set(rows())


@pytest.mark.parametrize("name", rows())
def test_an_option_has_the_same_values_everywhere(name: str) -> None:
    used = {str(choice) for choices in OPTIONS[name].values() for choice in choices}
    assert OPTIONS[name], f"no scorer has an option {name!r}"
    listed = rows()[name]
    if "the scorer's page" in next(line for line in PAGE.splitlines() if f"`{name}`" in line[: line.find("|", 1)]):
        return  # one word for what differs by nature
    assert used <= listed, f"{name}: {sorted(used - listed)}"
