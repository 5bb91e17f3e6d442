"""Every attack that the SQL verifier ships scores 0 and changes nothing; its honest neighbours score 1."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge.protocol import Sample
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.sql.attacks import cases_of
from adjudge.verifiers.sql.verifier import SqlVerifier

SQLITE, POSTGRES = list(cases_of("")), list(cases_of("", "postgres"))


def attacks(cases: list[AttackCase]) -> list[AttackCase]:
    return [case for case in cases if not case.honest]


def honest(cases: list[AttackCase]) -> list[AttackCase]:
    return [case for case in cases if case.honest]


def on(database: str, case: AttackCase) -> Sample:
    return replace(case.sample, reference={**case.sample.reference, "database": database})


@pytest.mark.parametrize("case", attacks(SQLITE), ids=lambda case: case.id)
def test_an_attack_scores_nothing_and_changes_nothing(case: AttackCase, ask: Callable[..., Sample], shop: str) -> None:
    before = hashlib.sha256(Path(shop).read_bytes()).hexdigest()
    score = SqlVerifier(**case.options).verify(on(shop, case))
    assert (score.status, score.value, score.reason) == ("scored", 0.0, case.reason), score.evidence
    assert hashlib.sha256(Path(shop).read_bytes()).hexdigest() == before
    assert [path.name for path in Path(shop).parent.iterdir()] == [Path(shop).name]
    assert SqlVerifier().verify(ask("```sql\nSELECT name FROM customer WHERE country = 'France'\n```")).value == 1.0


@pytest.mark.parametrize("case", honest(SQLITE), ids=lambda case: case.id)
def test_an_honest_neighbour_keeps_its_verdict(case: AttackCase, shop: str) -> None:
    score = SqlVerifier(**case.options).verify(on(shop, case))
    assert score.value == 1.0, score


@pytest.mark.parametrize("case", POSTGRES, ids=lambda case: case.id)
def test_a_query_takes_no_more_of_postgresql_than_it_may(case: AttackCase, postgres: Callable[[str], str]) -> None:
    score = SqlVerifier(**case.options).verify(on(postgres("reader"), case))
    assert score.value == (1.0 if case.honest else 0.0), score.evidence
    assert score.reason in ((case.reason,) if case.honest else (case.reason, "candidate_timeout")), (
        "a server may be busy"
    )


@pytest.mark.parametrize("reward", ["soft_f1", "soft_f1_aligned", "qatch", "staged", "arctic", "r_ves"])
def test_no_reward_pays_for_tampering(reward: str, shop: str) -> None:
    verifier = SqlVerifier(reward=reward)
    for case in attacks(SQLITE):
        if case.reason == "tampering":
            score = verifier.verify(on(shop, case))
            assert score.value == 0.0, (case.id, score)


def test_the_suite_is_large_and_names_each_case_once() -> None:
    assert len(attacks(SQLITE)) >= 50
    assert len({case.id for case in SQLITE + POSTGRES}) == len(SQLITE + POSTGRES)


def test_the_verifier_ships_the_same_cases_each_time() -> None:
    with tempfile.TemporaryDirectory() as folder:
        shipped = [case.id for case in shipped_cases(SqlVerifier(), Path(folder))]
    assert shipped == [case.id for case in SQLITE]
