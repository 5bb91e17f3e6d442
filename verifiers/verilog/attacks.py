"""The attack suite of the Verilog verifier, most of it against a counter from 0 to 9 with a synchronous reset.

Some cases have references of their own: designs that differ where no simulation looks at first, and honest ones in
SystemVerilog that Icarus lacks.  They are tried beside the design only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from adjudge.scoring.attacks import AttackCase, attack_case, suites_in

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
            limits = _ENDLESS if case.get("reason") in ("candidate_timeout", "*") else _LIMITS
            suite = {"prompt": "Count.", "options": limits if kind == "attacks" else {}}
            yield attack_case(f"{case['id']}-{setting}", case, suite, reference, honest=kind == "honest")

    for case in data["elsewhere"] if setting == DESIGN else ():
        source = {"reference": case["reference"], "top": "TopModule"}
        yield attack_case(case["id"], case, {"prompt": "Do the same."}, source, honest=case.get("honest", False))
