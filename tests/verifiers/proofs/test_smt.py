"""The SMT verifier, with Z3 and cvc5; models and terms are also judged by plain Python over small ranges."""

from __future__ import annotations

import contextlib
import itertools
import operator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, cases_in
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.proofs import smt as smt_module
from adjudge.verifiers.proofs.smt import Reply, SmtVerifier
from adjudge.verifiers.proofs.smt_terms import (
    AnswerError,
    Expression,
    TermError,
    printed,
    read_claim,
    read_expressions,
    read_formula,
    read_term,
    strange_atom,
)

ATTACKS = Path(__file__).parents[3] / "verifiers" / "proofs" / "attacks.json"
CASES = list(cases_in(ATTACKS, "smt"))
XY = "(declare-const x Int) (declare-const y Int)"
PIECES = [
    "(",
    ")",
    "x",
    "sat",
    "define-fun",
    "|",
    '"',
    ";",
    "\n",
    " ",
    "0",
    "1.5",
    "#b1",
    "- ",
    ":named",
    "é",
    "\\",
    "_",
]


def score(response: str, reference: Any, **options: Any) -> Score:
    return SmtVerifier(**options).verify(Sample(prompt="q", response=response, reference=reference))


@pytest.mark.usefixtures("z3")
@pytest.mark.parametrize("case", [case for case in CASES if not case.honest], ids=lambda case: case.id)
def test_attacks_score_nothing(case: AttackCase) -> None:
    found = SmtVerifier(**case.options).verify(case.sample)
    assert found.value == 0.0, found.evidence
    assert case.reason in ("", found.reason), found.evidence


@pytest.mark.usefixtures("solvers")
@pytest.mark.parametrize("case", [case for case in CASES if case.honest], ids=lambda case: case.id)
def test_their_honest_neighbours_pass_by_both_solvers(case: AttackCase) -> None:
    found = SmtVerifier(solvers=("z3", "cvc5")).verify(case.sample)
    assert found.value == 1.0, found.evidence
    assert set(found.evidence.get("solvers", {}).values()) <= {"sat", "unsat"}, "each had a verdict of its own"


COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">": operator.gt}


@pytest.mark.usefixtures("z3")
@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(COMPARE)), st.integers(-3, 3), st.integers(-3, 3), st.integers(-6, 6)),
        min_size=1,
        max_size=3,
    ),
    st.integers(-4, 4),
    st.integers(-4, 4),
)
def test_a_model_is_right_exactly_when_every_assertion_holds(
    rows: list[tuple[str, int, int, int]], x: int, y: int
) -> None:
    def number(value: int) -> str:
        return str(value) if value >= 0 else f"(- {-value})"

    asserted = [f"(assert ({sign} (+ (* {number(a)} x) (* {number(b)} y)) {number(c)}))" for sign, a, b, c in rows]
    holds = all(COMPARE[sign](a * x + b * y, c) for sign, a, b, c in rows)
    answer = f"sat ((define-fun x () Int {number(x)}) (define-fun y () Int {number(y)}))"
    found = score(answer, {"formula": f"{XY} {' '.join(asserted)}"})
    assert found.value == float(holds)


BOOLEANS = st.recursive(
    st.sampled_from(["p", "q", "r", "true", "false"]),
    lambda inner: st.one_of(
        inner.map(lambda one: ("not", one)),
        st.tuples(st.sampled_from(["and", "or", "=>", "xor"]), inner, inner),
    ),
    max_leaves=6,
)


def truth(term: Any, values: dict[str, bool]) -> bool:
    if isinstance(term, str):
        return values[term]
    arguments = [truth(part, values) for part in term[1:]]
    match term[0]:
        case "not":
            return not arguments[0]
        case "and":
            return all(arguments)
        case "or":
            return any(arguments)
        case "xor":
            return arguments[0] != arguments[1]
        case _:
            return not arguments[0] or arguments[1]


@pytest.mark.usefixtures("z3")
@settings(max_examples=5, deadline=None)
@given(BOOLEANS, BOOLEANS)
def test_terms_compare_as_their_truth_tables_do(gold: Expression, given_term: Expression) -> None:
    rows: list[dict[str, bool]] = [
        dict(zip(("p", "q", "r", "true", "false"), (*row, True, False), strict=True))
        for row in itertools.product((False, True), repeat=3)
    ]
    pairs = [(truth(gold, row), truth(given_term, row)) for row in rows]
    declared = " ".join(f"(declare-const {name} Bool)" for name in "pqr")
    expected = {
        "equivalent": all(a == b for a, b in pairs),
        "entails": all(a or not b for a, b in pairs) and any(b for _, b in pairs),
        "entailed_by": all(b or not a for a, b in pairs) and not all(b for _, b in pairs),
    }
    for question, right in expected.items():
        found = score(printed(given_term), {"declarations": declared, question: printed(gold)})
        assert found.value == float(right), question


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_reading_answers_never_fails_otherwise(text: str) -> None:
    formula = read_formula({"formula": f"{XY} (assert (> x y))"})
    for read in (read_term, lambda one: read_claim(one, formula)):
        with contextlib.suppress(AnswerError):
            read(text)


@settings(max_examples=40)
@given(
    st.recursive(st.sampled_from(["x", "12", "#xFf", '"a ""b"""', "|a b|", ":k"]), lambda one: st.lists(one).map(tuple))
)
def test_what_is_printed_is_read_again(term: Any) -> None:
    assert read_expressions(printed(term)) == [term]


@pytest.mark.parametrize("piece", ["(", ")", "x ", '"', '""', "|", ";", "(x", "(not "])
def test_a_megabyte_of_one_thing_is_read_or_refused(piece: str) -> None:
    try:
        found = read_expressions(piece * (1_000_000 // len(piece)))
        assert len(found) <= 500_000
    except TermError:
        pass


def test_only_declared_bound_and_theory_symbols_are_let_in() -> None:
    (term,) = read_expressions("(and (> x 0) (forall ((k Int)) (= k (bvadd k z))))")
    assert strange_atom(term, {"x"}) == "z"
    assert strange_atom(term, {"x", "z"}) == ""


@pytest.mark.parametrize(
    "reference",
    [
        7,
        {},
        {"formula": "(assert true)", "equivalent": "true"},
        {"formula": 3},
        {"formula": "(assert true)", "expected": "yes"},
        {"declarations": XY, "equivalent": "x", "expected": "sat"},
        {"formula": "(assert true)", "model": ""},
    ],
)
def test_a_reference_of_another_form_is_a_mistake(reference: Any) -> None:
    with pytest.raises(BadReferenceError) as caught:
        read_formula(reference)
    assert caught.value.mistake


@pytest.mark.usefixtures("z3")
@pytest.mark.parametrize(
    "reference",
    [
        {"formula": "(assert"},
        {"formula": ""},
        {"formula": "(push 1) (assert true)"},
        {"formula": "(assert (> x 1))"},
        {"formula": "(declare-const x Int) (assert (> x 1))", "expected": "unsat"},
        {"declarations": XY, "equivalent": "x y"},
        {"declarations": XY, "equivalent": "(> x z)"},
        {"declarations": f"{XY} (assert (distinct x x))", "equivalent": "(> x y)"},
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_reference_that_says_nothing_is_no_verdict(reference: Any) -> None:
    found = score("", reference)
    assert (found.value, found.reason) == (None, "gold_unparsable")


@pytest.mark.usefixtures("z3")
def test_a_model_that_nobody_could_write_is_not_asked_for() -> None:
    reference = {"formula": "(declare-sort S 0) (declare-const a S) (declare-const b S) (assert (distinct a b))"}
    for response in ("sat ((a S!0) (b S!1))", "unsat"):
        found = score(response, reference)
        assert (found.value, found.reason) == (None, "gold_unparsable")
        assert "set model to optional" in found.evidence["error"]
    assert score("sat", reference, model="optional").value == 1.0


def test_a_number_that_would_keep_a_solver_busy_is_not_asked_about() -> None:
    with pytest.raises(AnswerError, match="longer than 4000") as caught:
        read_term(f"(> x {'9' * 5_000})")
    assert caught.value.reason == "too_complex"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("3", "3.0"),
        ("-3", "(- 3.0)"),
        ("(/ (- 93) 40)", "(/ (- 93.0) 40.0)"),
        ("(- (/ 1 3))", "(- (/ 1.0 3.0))"),
        ("(+ 1 (* 2 0.5))", "(+ 1.0 (* 2.0 0.5))"),
    ],
)
def test_whole_numbers_of_a_real_get_a_dot(value: str, written: str) -> None:
    formula = read_formula({"formula": "(declare-const x Real) (assert (> x 0.0))"})
    values = read_claim(f"sat ((x {value}))", formula).values
    assert values is not None
    assert printed(values["x"]) == f"(define-fun x () Real {written})"


@pytest.mark.parametrize("value", ["(/ 1 0)", "(/ 1 0.00)", "(/ 1 (- 1 1))", "(/ 1 #b1)", "(/ 1 2 3)", "(/ x 2)"])
def test_a_division_that_a_solver_might_choose_is_no_value(value: str) -> None:
    formula = read_formula({"formula": "(declare-const x Real) (assert (> x 0.0))"})
    with pytest.raises(AnswerError):
        read_claim(f"sat ((x {value}))", formula)


@pytest.mark.usefixtures("z3")
@pytest.mark.parametrize(
    ("value", "right"), [("-3", 1.0), ("(- 3)", 1.0), ("3", 0.0), ("-x", 0.0), ("(+ 1 (- 4))", 1.0), ("1e3", 0.0)]
)
def test_numbers_are_taken_as_people_write_them(value: str, right: float) -> None:
    reference = {"formula": "(declare-const x Int) (assert (< x 0))"}
    assert score(f"sat ((x {value}))", reference).value == right


@pytest.mark.usefixtures("z3")
def test_a_model_is_optional_where_the_option_says_so() -> None:
    reference = {"formula": "(declare-const x Int) (assert (> x 1))"}
    assert score("sat", reference).reason == "no_answer"
    assert score("sat", reference, model="optional").value == 1.0


CUBES = "(= (+ (* x x x) (* y y y) (* z z z)) 114)"
XYZ = f"{XY} (declare-const z Int)"


@pytest.mark.usefixtures("z3")
def test_what_nobody_decides_follows_the_policy() -> None:
    reference = {"declarations": XYZ, "equivalent": "false"}
    assert score(CUBES, reference, seconds=0.3).reason == "undecided"
    assert score(CUBES, reference, seconds=0.3).value == 0.0
    assert score(CUBES, reference, seconds=0.3, undecided="failed").value is None


@pytest.mark.usefixtures("z3")
def test_a_gold_that_nobody_decides_is_ours_unless_it_says_what_it_is() -> None:
    formula = f"{XYZ} (assert {CUBES})"
    assert score("unsat", {"formula": formula}, seconds=0.3).reason == "gold_timeout"
    assert score("unsat", {"formula": formula, "expected": "unsat"}, seconds=0.3).value == 1.0


@pytest.mark.usefixtures("z3")
def test_solvers_that_disagree_give_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = {"declarations": XY, "equivalent": "(> x y)"}
    assert score("(< y x)", reference).value == 1.0
    words = {"z3": "sat", "cvc5": "unsat"}
    monkeypatch.setattr(smt_module, "ask", lambda *given: Reply("disagreement", words))
    found = score("(< y x)", reference)
    assert (found.value, found.reason) == (None, "undecided")
    assert found.evidence["disagreement"] == words


@pytest.mark.parametrize(
    "options",
    [
        {"solvers": ()},
        {"solvers": ("z3", "z3")},
        {"solvers": ("yices",)},
        {"model": "maybe"},
        {"undecided": "one"},
        {"seconds": 0},
        {"isolation": "x"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="smt"):
        SmtVerifier(**options)


@pytest.mark.usefixtures("z3")
def test_it_conforms() -> None:
    reference = {"declarations": "(declare-const x Int)", "equivalent": "(> x 3)"}
    samples = [Sample(prompt="p", response=one, reference=reference) for one in ("(< 3 x)", "(> x 4)")]
    check_scorer(SmtVerifier(), samples).raise_for_failures()
