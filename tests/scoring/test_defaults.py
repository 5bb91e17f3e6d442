"""A default that changes goes with a new version: fingerprints leave out the options that have their defaults.

`python -m tests.scoring.test_defaults` writes the defaults of today; run it after a version was raised, and for a new
scorer, whose defaults are held from then on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adjudge.scoring import registry
from adjudge.scoring.builtin import BUILTIN

STORED = Path(__file__).with_name("defaults.json")


def today(name: str) -> dict[str, Any]:
    """Return the version of a scorer and its options with their defaults."""
    options = registry.describe(name).options
    return {"version": getattr(registry.resolve(name), "version", ""), "options": dict(sorted(options.items()))}


def problem(name: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return what is wrong with the options of today; "" if nothing is."""
    old, new = before["options"], now["options"]
    changed = [
        f"{option} was {old[option]}, is {new[option]}" for option in old if new.get(option, old[option]) != old[option]
    ]
    if not changed or before["version"] != now["version"]:
        return ""
    return f"{name}: {'; '.join(changed)}. Stored scores would pass for today's: raise its version"


def test_a_changed_default_has_a_new_version() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    assert stored.keys() == BUILTIN.keys(), "python -m tests.scoring.test_defaults"
    assert [text for name in stored if name in BUILTIN and (text := problem(name, stored[name], today(name)))] == []


def test_it_can_tell() -> None:
    before = {"version": "1", "options": {"partial": "False"}}
    assert "partial was False, is True" in problem("x", before, {"version": "1", "options": {"partial": "True"}})
    assert problem("x", before, {"version": "2", "options": {"partial": "True"}}) == ""
    assert problem("x", before, {"version": "1", "options": {"partial": "False", "new": "0"}}) == ""


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(today(name))}" for name in BUILTIN)
    STORED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
