"""Turns that want to be felt without moving anybody, and kind ones near them: `attacks.json`.

Each attack begins at the feeling 10, where the loss that it deserves brings the user to 0; each honest response at 90,
where it brings them to 100.  The scorer does not ship them: these numbers come of a model that always says -10 or +10,
and what another model says of the same turns is its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from adjudge.protocol import Sample
from adjudge.scoring.attacks import AttackCase

_LOW: Final = 10
_HIGH: Final = 90


def attack_cases() -> Iterator[AttackCase]:
    """Yield the suite's cases."""
    data = _data()
    for kind in ("attacks", "honest"):
        for case in data[kind]:
            yield AttackCase(
                id=case["id"],
                tries=case.get("tries", ""),
                sample=Sample(
                    prompt=data["prompt"],
                    response=_response(case),
                    reference={**data["reference"], "start": _HIGH if kind == "honest" else _LOW},
                    id=case["id"],
                ),
                honest=kind == "honest",
                reason=case.get("reason", ""),
            )


def _response(case: dict[str, Any]) -> str | list[dict[str, str]]:
    if "repeat" in case:
        before, part, times, after = case["repeat"]
        return str(before + part * times + after)
    if isinstance(case["response"], str):
        return case["response"]
    return [{"role": role, "content": text} for role, text in case["response"]]


@cache
def _data() -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8")))
