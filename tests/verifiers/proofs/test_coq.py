"""The Coq verifier, with Coq."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, cases_in
from adjudge.verifiers.proofs import coq as coq_module
from adjudge.verifiers.proofs.coq import CoqVerifier

pytestmark = pytest.mark.usefixtures("coq")

ATTACKS = Path(__file__).parents[3] / "verifiers" / "proofs" / "attacks.json"
CASES = list(cases_in(ATTACKS, "coq"))
PLUS = {"statement": "Theorem t : forall n : nat, n + 0 = n."}
GOOD = "intros n. induction n as [| m IH].\n- reflexivity.\n- simpl. rewrite IH. reflexivity."


def score(response: str, reference: Any, **options: Any) -> Score:
    return CoqVerifier(**options).verify(Sample(prompt="Prove it.", response=response, reference=reference))


@pytest.mark.parametrize("case", [case for case in CASES if not case.honest], ids=lambda case: case.id)
def test_an_attack_scores_nothing(case: AttackCase) -> None:
    found = CoqVerifier(**case.options).verify(case.sample)
    assert found.value == 0.0, found.evidence
    assert case.reason in ("", found.reason), found.evidence


@pytest.mark.parametrize("case", [case for case in CASES if case.honest], ids=lambda case: case.id)
def test_an_honest_neighbour_passes(case: AttackCase) -> None:
    found = CoqVerifier(**case.options).verify(case.sample)
    assert found.value == 1.0, found.evidence


BEYOND_WORDS = ["axiom", "admitted", "guard", "guard-attribute", "positivity", "declare-module"]


@pytest.mark.parametrize("name", BEYOND_WORDS)
def test_the_check_holds_without_the_list_of_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict rests on what Coq says of the pinned statement; the list of words is a second wall."""
    monkeypatch.setattr(coq_module, "forbidden", lambda *texts: ("", ""))
    (case,) = [case for case in CASES if case.id == name]
    found = CoqVerifier(**case.options).verify(case.sample)
    assert found.value == 0.0
    assert found.evidence["stage"] in ("axioms", "statement")


def test_steps_are_the_sentences_up_to_the_first_error() -> None:
    body = "intros n. (* é *)\ninduction n.\n- reflexivity.\n- apply wrong_name. reflexivity."
    response = f"<think>hm</think>So:\n```coq\n{body}\n```\n"
    found = score(response, PLUS)
    assert found.value == 0.0
    assert found.reason == "candidate_error"
    spans = [(response[step.start : step.end], step.value) for step in found.steps]
    assert spans == [
        ("intros n.", 1.0),
        ("induction n.", 1.0),
        ("-", 1.0),
        ("reflexivity.", 1.0),
        ("-", 1.0),
        ("apply wrong_name.", 0.0),
    ]
    assert found.evidence["accepted"] == 5


def test_all_steps_of_a_proof_are_accepted() -> None:
    found = score(GOOD, PLUS)
    assert found.value == 1.0
    assert [step.value for step in found.steps] == [1.0] * 8
    assert found.evidence == {"stage": "proved", "accepted": 8}


@pytest.mark.parametrize(
    "reference",
    [
        {"statement": "Theorem t : no_such_thing."},
        {"header": "Require Import NoSuchLibrary.", "statement": "Theorem t : True."},
        {"header": "Definition f := .", "statement": "Theorem t : True."},
        {"header": "Section S.", "statement": "Theorem t : True."},
        {"statement": "Theorem t : True.", "axioms": ["Coq.Logic.NoSuchFile.classic"]},
        {"statement": "Theorem t : True.", "axioms": ["Coq.Logic.Classical_Prop.no_such_axiom"]},
    ],
    ids=["statement", "library", "syntax", "section", "axiom-library", "axiom"],
)
def test_a_reference_that_coq_refuses_is_no_verdict(reference: Any) -> None:
    for response in ("exact I.", ""):
        found = score(response, reference)
        assert (found.value, found.reason) == (None, "gold_unparsable")


def test_a_statement_that_rests_on_what_is_not_permitted_is_no_verdict() -> None:
    """As with real numbers, which rest on axioms of the library: every proof would be worth nothing."""
    reference = {"header": "Require Import Classical.", "statement": "Theorem t : classic = classic."}
    found = score("reflexivity.", reference)
    assert (found.value, found.reason) == (None, "gold_unparsable")
    assert "rests on Classical_Prop.classic, which no proof may use" in found.evidence["error"]
    assert score("reflexivity.", reference, axioms=("Coq.Logic.Classical_Prop.classic",)).value == 1.0


def test_a_reference_that_takes_too_long_is_ours() -> None:
    header = (
        "Fixpoint f (n : nat) := match n with 0 => 0 | S m => f m + f m end.\nDefinition x := Eval vm_compute in f 60."
    )
    found = score("exact I.", {"header": header, "statement": "Theorem t : True."}, seconds=0.6)
    assert (found.value, found.reason) == (None, "gold_timeout")


def test_axioms_of_the_header_may_be_used() -> None:
    reference = {"header": "Axiom p : Prop. Axiom holds : p.", "statement": "Theorem t : p."}
    assert score("Axiom p : Prop. Axiom holds : p.\nTheorem t : p. Proof. exact holds. Qed.", reference).value == 1.0
    assert score("Axiom p : True. Axiom holds : p.\nTheorem t : p. Proof. exact holds. Qed.", reference).value == 0.0


def test_the_second_kernel_agrees() -> None:
    assert score(GOOD, PLUS, recheck=True).value == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"block": "all"},
        {"seconds": 0},
        {"seconds": True},
        {"memory_mb": 1},
        {"axioms": ("classic",)},
        {"isolation": "chroot"},
        {"reasoning": "x"},
        {"truncated": "x"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="coq"):
        CoqVerifier(**options)


def test_a_reference_of_another_form_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="coq, sample 'a': the reference has 'proof'"):
        CoqVerifier().validate(Sample(prompt="", response="", reference={"proof": ""}, id="a"))


def test_a_truncated_response_scores_zero_unless_it_is_graded() -> None:
    sample = Sample(prompt="", response=GOOD, reference=PLUS, finish_reason="length")
    assert CoqVerifier().verify(sample).reason == "truncated"
    assert CoqVerifier(truncated="grade").verify(replace(sample)).value == 1.0


def test_it_conforms() -> None:
    reference = "Theorem t : True."
    samples = [Sample(prompt="p", response=one, reference=reference) for one in ("exact I.", "Admitted.")]
    check_scorer(CoqVerifier(seconds=10.0), samples).raise_for_failures()
