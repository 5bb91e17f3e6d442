"""The attack suite of the Verilog verifier, most of it against a counter from 0 to 9 with a synchronous reset.

Some cases have references of their own: designs that differ where no simulation looks at first, and honest ones in
SystemVerilog that Icarus lacks.  They are tried beside the design only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from adjudge.protocol import Sample
from adjudge.scoring.attacks import AttackCase, suites_in, whole_text

_DATA: Final = Path(__file__).with_name("attacks.json")
DESIGN: Final = "differential"
"""The setting without a bench; the others are named after theirs."""

_LIMITS: Final[dict[str, Any]] = {"seconds": 10.0, "memory_mb": 512, "effort": 300}
_ENDLESS: Final[dict[str, Any]] = {**_LIMITS, "seconds": 1.0}  # these use all the time they get


def settings() -> tuple[str, ...]:
    """Return the settings in which each case can be tried: beside the design, and in each bench."""
    return (DESIGN, *suites_in(_DATA)["benches"])


def attack_suite(scorer: Any, folder: Path) -> Iterator[AttackCase]:
    """Yield the cases in the settings that the verifier's `check` leaves."""
    del folder  # the cases need no files
    for setting in settings() if scorer.name == "verilog" else ():
        if scorer.check == "auto" or (scorer.check == "differential") == (setting == DESIGN):
            yield from cases_of(setting)


def cases_of(setting: str) -> Iterator[AttackCase]:
    """Yield the cases in one setting."""
    data = suites_in(_DATA)
    reference: dict[str, Any] = {"reference": data["reference"], "top": "TopModule"}
    if setting != DESIGN:
        reference |= {"testbench": data["benches"][setting], "files": data["files"]}
    for kind in ("attacks", "honest"):
        for case in data[kind]:
            name = f"{case['id']}-{setting}"
            reason = case.get("reason", "")
            limits = _ENDLESS if reason in ("candidate_timeout", "*") else _LIMITS
            yield AttackCase(
                id=name,
                tries=case.get("tries", ""),
                sample=Sample(prompt="Count.", response=whole_text(case["response"]), reference=reference, id=name),
                honest=kind == "honest",
                reason="" if reason == "*" else reason,
                options=limits if kind == "attacks" else {},
            )

    for case in data["elsewhere"] if setting == DESIGN else ():
        source = {"reference": case["reference"], "top": "TopModule"}
        yield AttackCase(
            id=case["id"],
            tries=case.get("tries", ""),
            sample=Sample(prompt="Do the same.", response=case["response"], reference=source, id=case["id"]),
            honest=case.get("honest", False),
            reason=case.get("reason", ""),
        )
