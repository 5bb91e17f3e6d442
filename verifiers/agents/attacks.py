"""The attack suites of scorers of agents, by their names; those of tool calls are the data of `tools/attacks.json`.

A case of that file names one of the references of its suite, and may repeat a part of its response.

Not covered: calls that are wrong by a little; the tests plant those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from adjudge.attacks import AttackCase
from adjudge.protocol import Sample
from adjudge.verifiers.agents.abstention.attacks import abstention_cases
from adjudge.verifiers.agents.search.attacks import SUITES


def attack_cases(name: str) -> Iterable[AttackCase]:
    """Return the suite of a scorer: attacks, and honest responses near them."""
    if name == "abstention":
        return abstention_cases()
    return SUITES[name]() if name in SUITES else _tool_cases(name)


def _tool_cases(name: str) -> Iterator[AttackCase]:
    suite = json.loads(Path(__file__).with_name("tools").joinpath("attacks.json").read_text(encoding="utf-8"))[name]
    for kind in ("attacks", "honest"):
        for case in suite[kind]:
            response = case.get("response")
            if "repeat" in case:
                before, part, times, after = case["repeat"]
                response = before + part * times + after
            yield AttackCase(
                id=f"{name}-{case['id']}",
                tries=case.get("tries", ""),
                sample=Sample(
                    prompt="Book it.",
                    response=response,
                    reference=suite["references"][case.get("reference", "usual")],
                    id=f"{name}-{case['id']}",
                    finish_reason=case.get("finish_reason"),
                ),
                honest=kind == "honest",
                reason=case.get("reason", ""),
                options={**suite["options"], **case.get("options", {})},
            )
