"""A verifier's own attack suite is an attacker that asks one question each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.evals.attacks.weak_scorers import write_tasks

from adjudge.evals.attacks.attacking import run_attack
from adjudge.evals.attacks.config import AttackConfig
from adjudge.protocol import Sample, Score, Verifier, response_text
from adjudge.scoring.attacks import AttackCase


@dataclass(frozen=True, kw_only=True)
class Shouting(Verifier):
    """Right if it is all upper case; `strict` also wants the reference in it."""

    name: ClassVar[str] = "shouting"

    strict: bool = False

    def verify(self, sample: Sample) -> Score:
        text = response_text(sample)
        if text == "unjudgeable":
            return Score.failed("gold_unparsable")
        return Score.scored(float(text.isupper() and (not self.strict or str(sample.reference) in text)))

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        assert folder.is_dir()
        for name, response, strict in (("upper", "YES", False), ("held", "YES", True), ("odd", "unjudgeable", False)):
            sample = Sample(prompt="?", response=response, reference="A")
            yield AttackCase(id=name, tries=f"tries {name}", sample=sample, options={"strict": strict})
        yield AttackCase(id="fine", sample=Sample(prompt="?", response="A", reference="A"), honest=True)


def test_every_attack_of_the_suite_is_one_attempt_with_its_own_options(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "x.jsonl", [{"prompt": "?", "bad": "no", "answer": "A"}])
    result = run_attack(AttackConfig(input=path, scorer=f"{__name__}:Shouting", attack=("shipped",)))
    (success,) = [measure for measure in result.measures if measure.part == "shipped"]
    assert success.interval.value == 1 / 2  # the odd one was not judged
    (check,) = result.checks
    assert check.passed is False
    assert check.detail == (
        "1 of 2 rows broken in 3 questions, 1 of them without a number; of 1 rows no question got a number"
    )
    assert [case.id for case in result.worst] == ["shipped/upper/succeeded"]
    assert result.counts.failed == 1
    assert "shipped attacks are on tasks of their own, and are not in the first number" in result.notes


def test_a_built_in_suite_holds(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "x.jsonl", [{"prompt": "?", "bad": "no", "answer": "A"}])
    result = run_attack(AttackConfig(input=path, scorer="verdict", attack=("shipped",)))
    (check,) = result.checks
    assert check.passed is True, check.detail
    assert check.detail.startswith("0 of ")


def test_a_scorer_without_a_suite_is_told(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "x.jsonl", [{"prompt": "?", "bad": "no", "answer": "A"}])
    (check,) = run_attack(AttackConfig(input=path, scorer="exact", attack=("shipped",))).checks
    assert check.passed is None
    assert check.detail == "the scorer ships no attacks"
