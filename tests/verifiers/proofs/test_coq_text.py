"""Coq source as text: comments, strings, sentences, and the words that are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.proofs.coq import Place, accepted, error_place, unknown_axioms
from adjudge.verifiers.proofs.coq_source import Theorem, answer_of, forbidden, read_theorem, sentences, without_comments
from adjudge.verifiers.proofs.toolbox import MAX_CHARACTERS

PIECES = ["(*", "*)", '"', '""', ".", "..", "...", " ", "\n", "{", "}", "-", "+", "*", "Qed", "admit", "(", "é", "1:{"]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("Lemma a : 1 = 1. Proof. reflexivity. Qed.", ["Lemma a : 1 = 1.", "Proof.", "reflexivity.", "Qed."]),
        ("apply Nat.add_comm. auto", ["apply Nat.add_comm.", "auto"]),
        ("- auto. + { lia. } * 2:{ auto. }", ["-", "auto.", "+", "{", "lia.", "}", "*", "2:{", "auto.", "}"]),
        ("auto... lia.", ["auto...", "lia."]),
        ('Notation "[ x ; .. ; y ]" := (x, .. (y, 0) ..). Qed.', None),
        ("(* one. (* two. *) *) exact I. (* three.", ["exact I."]),
        ('idtac "a. b". auto.', ['idtac "a. b".', "auto."]),
        ('(* "*)" *) auto.', ["auto."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_coq_ends_them(source: str, texts: list[str] | None) -> None:
    found = [one.text for one in sentences(source)]
    assert found == texts if texts is not None else len(found) == 2


def test_a_sentence_knows_its_place() -> None:
    source = "  intros n. (* é. *)\n  - lia."
    assert [source[one.start : one.end] for one in sentences(source)] == ["intros n.", "-", "lia."]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_reading_never_fails_and_loses_no_place(source: str) -> None:
    for strings in (True, False):
        bare = without_comments(source, strings)
        assert len(bare) == len(source)
        assert all(one in (other, " ") for one, other in zip(bare, source, strict=True))
    at = 0
    for one in sentences(source):
        assert at <= one.start < one.end <= len(source)
        assert one.text
        at = one.end
    forbidden(source)


@pytest.mark.parametrize("piece", ["(*", '"', ". ", "{", "- ", "Guard ", '(* " *)', "#[", "1:", "[ a"])
def test_the_longest_response_of_one_thing_is_read(piece: str) -> None:
    source = piece * (MAX_CHARACTERS // len(piece))
    assert len(without_comments(source)) == len(source)
    sentences(source)
    forbidden(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Proof. admit. Qed.", ("admit", "wrong")),
        ("Proof. (* admit. *) auto. Qed.", ("", "")),
        ('Proof. idtac "Admitted". auto. Qed.', ("", "")),
        ('(* "*)" Admitted. *) auto.', ("", "")),
        ('(* " *) " *) Admitted.', ("Admitted", "wrong")),
        ("Unset  Guard\nChecking.", ("Guard Checking", "tampering")),
        ("Lemma admitted_once : True.", ("", "")),
        ("Lemma admit' : True.", ("", "")),
        ("Section S. Hypothesis h : True. End S.", ("", "")),
        ("Set Primitive Projections.", ("", "")),
        ("Primitive int := #int63_type.", ("Primitive", "tampering")),
        ('Time Redirect "x" Print nat.', ("Redirect", "tampering")),
    ],
)
def test_words_are_refused_where_coq_would_read_them(source: str, expected: tuple[str, str]) -> None:
    assert forbidden(source) == expected


def test_names_of_the_reference_are_no_commands() -> None:
    proof = "destruct o as [Load | Timeout]."
    assert forbidden(proof, "Inductive order := Load | Timeout.") == ("", "")
    assert forbidden(proof, "(* Load *) Inductive order := Timeout.") == ("Load", "tampering")


@pytest.mark.parametrize(
    "reference",
    [
        7,
        None,
        {"statement": 7},
        {"statement": "Theorem t : True.", "proof": "x"},
        {"statement": "Theorem t : True.", "axioms": ["classic"]},
        {"statement": "Theorem t : True.", "axioms": "Coq.Logic.Classical_Prop.classic"},
        {"header": ["a"], "statement": "Theorem t : True."},
    ],
)
def test_a_reference_of_another_form_is_a_mistake(reference: object) -> None:
    with pytest.raises(BadReferenceError) as caught:
        read_theorem(reference)
    assert caught.value.mistake


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "t : True",
        "Theorem t : True",
        "Theorem t : True. Proof. exact I. Qed.",
        "Check nat.",
        "(* Theorem t : True. *)",
    ],
)
def test_a_statement_is_one_sentence(statement: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        read_theorem({"statement": statement})
    assert not caught.value.mistake


def test_a_reference_may_be_json_in_text() -> None:
    mapping = {"header": "Definition a := 1.", "statement": "Theorem t : a = 1."}
    assert read_theorem(json.dumps(mapping)) == read_theorem(mapping)
    with pytest.raises(BadReferenceError, match="begins as JSON") as caught:
        read_theorem("{" * 100_000)
    assert caught.value.mistake


HEADER = "Require Import Arith. Open Scope nat_scope.\nInductive color := red | green."


def test_the_header_is_repeated_for_what_modules_do_not_pass_on() -> None:
    theorem = read_theorem({"header": HEADER, "statement": "Theorem t : red = red."})
    assert theorem.context.splitlines() == [
        f"Require Import Adjudge.{theorem.given}.",
        "Require Import Arith.",
        "Open Scope nat_scope.",
    ]


def test_a_definition_that_the_response_repeats_is_left_out_and_places_stay() -> None:
    theorem = read_theorem({"header": HEADER, "statement": "Theorem t : red = red."})
    body = HEADER + "\nTheorem t : red = red. Proof. reflexivity. Qed."
    answer = answer_of(theorem, body)
    assert "Inductive" not in answer.source
    assert answer.source.count("Theorem t") == 1
    assert [body[one.start : one.end] for one in answer.sentences][-3:] == ["Proof.", "reflexivity.", "Qed."]
    own = answer.source.split("\n")[answer.lines :]
    assert own[0] == "Require Import Arith. Open Scope nat_scope."


def test_a_proof_of_the_header_takes_nothing_out_of_the_response() -> None:
    lemma = "Lemma helps : True. Proof. exact I. Qed."
    theorem = read_theorem({"header": f"{lemma} Inductive color := red.", "statement": "Theorem t : True."})
    whole = answer_of(
        theorem, f"{lemma} Require Import Lia. Inductive color := red. Theorem t : True. Proof. exact I. Qed."
    )
    assert whole.own.split() == "Require Import Lia. Theorem t : True. Proof. exact I. Qed.".split()
    assert [one.text for one in whole.sentences] == [
        "Require Import Lia.",
        "Theorem t : True.",
        "Proof.",
        "exact I.",
        "Qed.",
    ]
    for proof in ("Proof. exact I. Qed.", "exact I. idtac.", "Inductive color := red. exact I."):
        assert answer_of(theorem, proof).own == proof


def test_a_bare_proof_gets_its_statement_and_its_ends() -> None:
    theorem = read_theorem("Theorem t : True.")
    assert answer_of(theorem, "exact I.").source.splitlines()[1:] == ["Theorem t : True.", "Proof.", "exact I.", "Qed."]
    assert answer_of(theorem, "Proof. exact I. Defined.").source.splitlines()[1:] == [
        "Theorem t : True.",
        "Proof. exact I. Defined.",
    ]


def test_the_place_of_an_error_is_the_first_that_coq_tells() -> None:
    told = 'File "./Answer.v", line 5, characters 11-73:\nError: Tactic failure: x\n'
    forged = 'File "./Answer.v", line 99, characters 1-2:\nError: y\n'
    assert error_place(told + forged) == Place(5, 11)
    assert error_place("Error: There are pending proofs in file ./Answer.v: t.") is None


def test_bytes_of_a_line_become_characters() -> None:
    answer = answer_of(read_theorem("Theorem t : True."), "Proof.\n(* éé *) foo.\nQed.")
    assert answer.lines == 2
    assert accepted(answer, Place(2, 0)) == 0
    assert accepted(answer, Place(4, 11)) == len("Proof.\n(* éé *) ")
    assert accepted(answer, Place(99, 0)) == len(answer.body)


@pytest.mark.parametrize(
    ("printed", "unknown"),
    [
        ("Closed under the global context\n", []),
        ("Axioms:\nAnswer.cheat : False\n", ["Answer.cheat"]),
        ("Axioms:\nAnswer.f is assumed to be guarded.\n", ["Answer.f is assumed to be guarded."]),
        ("Axioms:\nGIVEN.assumed\n  : forall n : nat,\n    n = n\n", []),
        ("Axioms:\nAnswer.GIVEN.assumed : False\n", ["Answer.GIVEN.assumed"]),
        ("something else\n", ["something else"]),
        ("", ["the list of assumptions cannot be read"]),
    ],
)
def test_what_a_proof_rests_on_is_read_strictly(printed: str, unknown: list[str]) -> None:
    theorem = read_theorem("Theorem t : True.")
    named = [one.replace("GIVEN", theorem.given) for one in unknown]
    assert unknown_axioms(printed.replace("GIVEN", theorem.given), theorem) == named


def test_a_permitted_axiom_is_known_by_the_name_that_coq_prints() -> None:
    theorem: Theorem = read_theorem("Theorem t : True.", ["Lib.Logic.classic"])
    own = "Axioms:\nLogic.classic : forall P : Prop, P\n"
    assert unknown_axioms(own + own, theorem) == []
    assert unknown_axioms("Axioms:\nAnswer.Logic.classic : False\n" + own, theorem) == ["Answer.Logic.classic"]
    assert unknown_axioms(own, theorem) == ["the list of assumptions cannot be read"]
