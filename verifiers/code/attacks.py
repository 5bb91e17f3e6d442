"""The attack suite of the code verifier: small tasks in each style of tests.

Not covered: attempts to leave the sandbox, which have a suite of their own in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.scoring.attacks import AttackCase, attack_case, suites_in

_DATA = Path(__file__).with_name("attacks.json")
_MEMORY_MB = 256  # hostile programs use all they get


def attack_suite(scorer: Any, folder: Path) -> Iterator[AttackCase]:
    """Yield each case on each of its tasks."""
    del folder  # the cases need no files
    data = suites_in(_DATA)
    for kind in ("attacks", "honest") if scorer.name == "code" else ():
        for case in data[kind]:
            response = case["source"] if case.get("raw") else f"```python\n{case['source']}\n```"
            for task in case["tasks"]:
                options = {"seconds": case.get("seconds", 5.0), "memory_mb": _MEMORY_MB}
                told = {**case, "response": response, "options": options}
                yield attack_case(f"{case['id']}-{task}", told, {}, data["tasks"][task], honest=kind == "honest")
