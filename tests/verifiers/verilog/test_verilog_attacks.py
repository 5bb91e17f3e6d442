"""The attacks that the Verilog verifier ships score 0, and the honest designs near them 1, in each setting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Score
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.verilog.attacks import DESIGN, cases_of, settings
from adjudge.verifiers.verilog.verifier import VerilogVerifier

CASES = [case for setting in settings() for case in cases_of(setting)]
ATTACKS = [case for case in CASES if not case.honest]
HONEST = [case for case in CASES if case.honest]
BRIEF = {"effort": 300, "seconds": 4.0}
"""Seconds of the processor; what no proof settles would use all of the 20 it has by default."""
UNSETTLED = "masked-write"
"""A memory beyond the solver, told from `bomb-after-reset` and `enum-next`, which no proof settles either."""

pytestmark = pytest.mark.usefixtures("icarus")


def score(case: AttackCase, **options: Any) -> Score:
    return VerilogVerifier(**{**case.options, **options}).verify(case.sample)


def tried(case: AttackCase) -> Any:
    """Return a case as a parameter: what uses all of its time does so alike in both benches, and at other widths."""
    again = case.options.get("seconds") == 1.0 and case.id.endswith(f"-{settings()[-1]}")
    again = again or case.id == "wider-counter"  # as counter-in-an-integer
    return pytest.param(case, id=case.id, marks=[pytest.mark.full] if again else [])


@pytest.mark.parametrize("case", [tried(case) for case in ATTACKS])
def test_an_attack_scores_nothing(case: AttackCase) -> None:
    found = score(case, **({} if case.options else BRIEF))
    assert found.value == 0.0, found.evidence
    assert case.reason in ("", found.reason), found.evidence


@pytest.mark.parametrize("case", [tried(case) for case in HONEST])
def test_an_honest_neighbour_passes(case: AttackCase) -> None:
    found = score(case, **BRIEF, formal="off" if case.id == UNSETTLED else "auto")
    assert found.value == 1.0, found.evidence


def test_no_attack_that_tampers_earns_credit_for_its_stage() -> None:
    tampering = [case for case in cases_of(DESIGN) if case.reason == "tampering"]
    assert len(tampering) > 20
    for case in tampering:
        assert score(case, credit="staged").value == 0.0, case.id


def test_the_suite_is_large_and_names_each_case_once() -> None:
    assert len(ATTACKS) >= 25 * len(settings())
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, settings()),
        ({"check": "differential"}, (DESIGN,)),
        ({"check": "bench"}, settings()[1:]),
        ({"check": "both"}, settings()[1:]),
    ],
    ids=lambda value: str(value),
)
def test_the_verifier_ships_the_cases_that_its_check_can_judge(
    options: dict[str, Any], expected: tuple[str, ...], tmp_path: Path
) -> None:
    verifier = VerilogVerifier(**options)
    shipped = shipped_cases(verifier, tmp_path)
    assert {case.id for case in shipped} == {case.id for setting in expected for case in cases_of(setting)}
    for case in shipped:
        replace(verifier, **case.options).validate(case.sample)
