"""The attack suites of tool calls: `attacks.json`, by the verifier's name.

A case names one of the references of its suite, and may repeat a part of its response.

Not covered: calls that are wrong by a little; the tests plant those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from adjudge.attacks import AttackCase
from adjudge.protocol import Sample


def attack_cases(name: str) -> tuple[AttackCase, ...]:
    """Return the suite of one verifier: attacks, and honest responses near them."""
    suite = _data()[name]
    references = suite["references"]
    return tuple(
        _case(f"{name}-{case['id']}", case, references[case.get("reference", "usual")], suite["options"], kind)
        for kind in ("attacks", "honest")
        for case in suite[kind]
    )


def _case(name: str, case: Mapping[str, Any], reference: Any, options: Mapping[str, Any], kind: str) -> AttackCase:
    sample = Sample(
        prompt="Book it.",
        response=_response(case),
        reference=reference,
        id=name,
        finish_reason=case.get("finish_reason"),
    )
    return AttackCase(
        id=name,
        tries=case.get("tries", ""),
        sample=sample,
        honest=kind == "honest",
        reason=case.get("reason", ""),
        options={**options, **case.get("options", {})},
    )


def _response(case: Mapping[str, Any]) -> Any:
    if "repeat" in case:
        before, part, times, after = case["repeat"]
        return str(before + part * times + after)
    return case["response"]


@cache
def _data() -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8")))
