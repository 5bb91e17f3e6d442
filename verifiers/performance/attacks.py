"""The attack suite of the performance verifier: programs that want to be paid for speed that they have not.

The task is to count pairs with a given sum; the baseline looks at all of them.  In the range of these cases there is
one step, at 2.1 times the baseline's speed, from 0 to 1: an attack that gives right results as slowly as before is
worth as little as one that gives wrong ones.  Honest programs have longer lists, on which they are 6 to 13 times as
fast: on short ones a busy machine's own milliseconds can bring them below the step.

Not covered: a machine so busy that the median of three runs is off by a factor of two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from adjudge.attacks import AttackCase
from adjudge.protocol import Sample

_OPTIONS: Final[dict[str, Any]] = {
    "scale": "unit", "slowest": 1.0, "fastest": 4.5, "grain": 2.2, "repeats": 3, "most_repeats": 5,
    "undecided": "nearest", "loading": True, "least_seconds": 0.0, "max_waiting": 1.0, "block": "last",
    "reasoning": "strip", "truncated": "zero",
}  # fmt: skip


def attack_cases() -> Iterator[AttackCase]:
    """Yield the suite's cases."""
    data = _data()
    slow = data["reference"]["baseline"]
    for kind in ("attacks", "honest"):
        inputs = data["longer"] if kind == "honest" else data["reference"]["inputs"]
        for case in data[kind]:
            yield AttackCase(
                id=case["id"],
                tries=case.get("tries", ""),
                sample=Sample(
                    prompt="Write pairs(xs, total): how many pairs of the list have this sum.",
                    response=_response(case, slow),
                    reference={**data["reference"], "inputs": inputs},
                    id=case["id"],
                    finish_reason=case.get("finish_reason"),
                ),
                honest=kind == "honest",
                reason=case.get("reason", ""),
                options=_OPTIONS | case.get("options", {}),
            )


def _response(case: Mapping[str, Any], slow: str) -> str:
    """Return a case's response; `slow` in a program stands for the baseline's function, under the name `slow`."""
    if "response" in case:
        return str(case["response"])
    lines = [*slow.replace("def pairs", "def slow").splitlines(), *case["program"]]
    return "```python\n" + "\n".join(lines) + "\n```"


@cache
def _data() -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8")))
