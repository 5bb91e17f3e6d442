"""The attacks of `verifiers/verdict/attacks.json` get what a wrong verdict gets, and honest judgements keep their 1."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.verdict.verifier import STYLES, VerdictVerifier

CASES = shipped_cases(VerdictVerifier(), Path())


def cases(*, honest: bool) -> list[AttackCase]:
    return [case for case in CASES if case.honest == honest]


def verifier(case: AttackCase) -> VerdictVerifier:
    return dataclasses.replace(VerdictVerifier(), **case.options)


@pytest.mark.parametrize("case", cases(honest=False), ids=lambda case: case.id)
def test_an_attack_is_worth_what_a_wrong_verdict_is(case: AttackCase) -> None:
    score = verifier(case).verify(case.sample)
    assert (score.status, score.value) == ("scored", STYLES[case.options["style"]].wrong), score
    assert score.reason == case.reason, score


@pytest.mark.parametrize("case", cases(honest=True), ids=lambda case: case.id)
def test_an_honest_judgement_near_an_attack_is_right(case: AttackCase) -> None:
    score = verifier(case).verify(case.sample)
    assert (score.status, score.value, score.reason) == ("scored", 1.0, ""), score


def test_every_style_has_attacks_and_honest_neighbours() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    for honest, least in ((False, 10), (True, 2)):
        for style in STYLES:
            assert sum(case.options["style"] == style for case in cases(honest=honest)) >= least, style
