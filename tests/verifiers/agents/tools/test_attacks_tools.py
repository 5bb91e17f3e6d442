"""The attacks of `tools/attacks.json` score 0 for the reason they should, and honest calls keep their 1."""

from __future__ import annotations

import dataclasses

import pytest

from adjudge.protocol import Verifier
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.agents.tools.call_verifier import ToolCallVerifier
from adjudge.verifiers.agents.tools.execution_verifier import ToolExecutionVerifier

VERIFIERS = (ToolCallVerifier(), ToolExecutionVerifier())
CASES = [(verifier, case) for verifier in VERIFIERS for case in shipped_cases(verifier)]


def named(value: object) -> str:
    return value.id if isinstance(value, AttackCase) else ""


def with_options(verifier: Verifier, case: AttackCase) -> Verifier:
    return dataclasses.replace(verifier, **case.options)  # type: ignore[type-var]


@pytest.mark.parametrize(("verifier", "case"), [pair for pair in CASES if not pair[1].honest], ids=named)
def test_an_attack_is_worth_nothing(verifier: Verifier, case: AttackCase) -> None:
    score = with_options(verifier, case).verify(case.sample)
    assert (score.status, score.value) == ("scored", 0.0), score
    assert not case.reason or score.reason == case.reason, score


@pytest.mark.parametrize(("verifier", "case"), [pair for pair in CASES if pair[1].honest], ids=named)
def test_an_honest_response_near_an_attack_is_right(verifier: Verifier, case: AttackCase) -> None:
    score = with_options(verifier, case).verify(case.sample)
    assert (score.status, score.value, score.reason) == ("scored", 1.0, ""), score


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({(verifier.name, case.id) for verifier, case in CASES}) == len(CASES)
