"""The attacks of `verifiers/code/patches/attacks.json` earn nothing, for the right reason, and honest ones pass."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.code.patches.tests_verifier import PatchTestsVerifier
from adjudge.verifiers.code.patches.verifier import PatchVerifier

VERIFIERS: tuple[PatchVerifier | PatchTestsVerifier, ...] = (PatchVerifier(), PatchTestsVerifier())
CASES = [(verifier, case) for verifier in VERIFIERS for case in shipped_cases(verifier, Path())]


def named(value: object) -> str:
    return value.id if isinstance(value, AttackCase) else ""


@pytest.mark.parametrize(("verifier", "case"), [pair for pair in CASES if not pair[1].honest], ids=named)
def test_an_attack_is_worth_nothing(verifier: PatchVerifier, case: AttackCase) -> None:
    score = dataclasses.replace(verifier, **case.options).verify(case.sample)
    assert score.status == "scored", score
    assert score.value is not None, score
    assert score.value <= 0.0, score
    assert not case.reason or score.reason == case.reason, score


@pytest.mark.parametrize(("verifier", "case"), [pair for pair in CASES if pair[1].honest], ids=named)
def test_an_honest_patch_near_an_attack_is_right(verifier: PatchVerifier, case: AttackCase) -> None:
    score = dataclasses.replace(verifier, **case.options).verify(case.sample)
    assert (score.status, score.value, score.reason) == ("scored", 1.0, ""), score


def test_every_suite_has_names_of_its_own_and_both_kinds_of_cases() -> None:
    assert len({case.id for _, case in CASES}) == len(CASES)
    for verifier in VERIFIERS:
        kinds = [case.honest for owner, case in CASES if owner is verifier]
        assert kinds.count(False) >= 20
        assert kinds.count(True) >= 5
