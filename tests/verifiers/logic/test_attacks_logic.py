"""The attacks of `verifiers/logic/attacks.json` score 0 for the reason they should, and honest answers keep their 1."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from adjudge.protocol import Verifier
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.logic.code_prediction import CodePredictionVerifier
from adjudge.verifiers.logic.graph_answer import GraphAnswerVerifier
from adjudge.verifiers.logic.grid import GridVerifier
from adjudge.verifiers.logic.gym import ReasoningGymVerifier
from adjudge.verifiers.logic.ordering import OrderingVerifier
from adjudge.verifiers.logic.puzzle import PuzzleVerifier
from adjudge.verifiers.logic.puzzle_table import PuzzleTableVerifier
from adjudge.verifiers.logic.table_answer import TableAnswerVerifier

VERIFIERS = (
    CodePredictionVerifier(),
    GraphAnswerVerifier(),
    GridVerifier(),
    OrderingVerifier(),
    PuzzleTableVerifier(),
    PuzzleVerifier(),
    ReasoningGymVerifier(),
    TableAnswerVerifier(),
)
CASES = [(verifier, case) for verifier in VERIFIERS for case in shipped_cases(verifier, Path())]


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
def test_an_honest_answer_near_an_attack_is_right(verifier: Verifier, case: AttackCase) -> None:
    score = with_options(verifier, case).verify(case.sample)
    assert (score.status, score.value, score.reason) == ("scored", 1.0, ""), score


def test_every_suite_has_names_of_its_own_and_both_kinds_of_cases() -> None:
    assert len({case.id for _, case in CASES}) == len(CASES)
    for verifier in VERIFIERS:
        kinds = [case.honest for owner, case in CASES if owner is verifier]
        assert kinds.count(False) >= 15
        assert kinds.count(True) >= 5
