"""Grids, tables, orders, graphs, puzzles and predictions: hand-computed verdicts, bad references, hostile text."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer
from adjudge.protocol import Sample, Score, Verifier
from adjudge.scoring.attacks import shipped_cases
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.code.outcome import Outcome, Verdict
from adjudge.verifiers.logic import code_prediction
from adjudge.verifiers.logic.code_prediction import CodePredictionVerifier
from adjudge.verifiers.logic.expression import exact_value, require_formula
from adjudge.verifiers.logic.graph_answer import GraphAnswerVerifier
from adjudge.verifiers.logic.grid import GridVerifier
from adjudge.verifiers.logic.gym import ReasoningGymVerifier
from adjudge.verifiers.logic.literal import LiteralError, read_arguments, read_claim, read_literal
from adjudge.verifiers.logic.ordering import OrderingVerifier
from adjudge.verifiers.logic.puzzle import PuzzleVerifier
from adjudge.verifiers.logic.puzzle_table import PuzzleTableVerifier
from adjudge.verifiers.logic.table_answer import TableAnswerVerifier
from adjudge.verifiers.math.verifier import MathVerifier

TRIANGLE = {"edges": [["a", "b"], ["b", "c"], ["a", "c"], ["c", "d"]]}
STEEP = {"edges": [["a", "b", 1], ["b", "c", 1], ["a", "c", 2.5]], "directed": True}
BOTH = {"attributes": {"name": ["Eric", "Bob", "Carl"], "pet": ["cat", "dog", "owl"]}}
RIGHT = {"1": {"name": "Eric", "pet": "dog"}, "2": {"name": "Bob", "pet": "cat"}, "3": {"name": "Carl", "pet": "owl"}}


def score(verifier: Verifier, answer: str, reference: Any) -> Score:
    return verifier.verify(Sample(prompt="", response=f"<answer>{answer}</answer>", reference=reference))


def value(verifier: Verifier, answer: str, reference: Any) -> float | None:
    return score(verifier, answer, reference).value


@pytest.mark.parametrize(
    ("answer", "share"),
    [("[[1,2],[3,4]]", 1.0), ("[[1,2],[3,0]]", 0.75), ("0 2\n0 0", 0.25), ("[[1,2,3,4]]", 0.0), ("12\n34", 1.0),
     ("1|2\n3|4", 1.0), ("[[1,2],[3]]", 0.0), ("[1,2]\n[3,4]", 1.0), ("no grid", 0.0)],
)  # fmt: skip
def test_the_share_of_equal_cells(answer: str, share: float) -> None:
    assert value(GridVerifier(credit="fraction"), answer, [[1, 2], [3, 4]]) == share
    assert value(GridVerifier(), answer, "1 2\n3 4") == float(share == 1.0)


def test_the_share_of_cells_of_a_table() -> None:
    gold = {"header": ["House", "name", "pet"], "rows": [[number, *cells.values()] for number, cells in RIGHT.items()]}
    swapped = {**RIGHT, "1": RIGHT["2"], "2": RIGHT["1"]}
    half = {**RIGHT, "1": {"name": "Eric", "pet": "cat"}, "2": {"name": "Bob", "pet": "dog"}}
    for given_table, right in ((RIGHT, 6), (swapped, 2), (half, 4), ({"1": RIGHT["1"]}, 2)):
        assert value(PuzzleTableVerifier(), json.dumps(given_table), gold) == pytest.approx(right / 6)
        assert value(PuzzleTableVerifier(credit="all"), json.dumps(given_table), gold) == float(right == 6)


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [("3 > 2 > 1", [3, 2, 1], 1.0), ("1 > 2 > 3", [3, 2, 1], 0.0), ("- Ann\n- Bob", ["ann", "bob"], 1.0),
     ("[b, a]", {"orders": [["a", "b"], ["b", "a"]]}, 1.0), ("'New York'; Rome", ["new york", "Rome"], 1.0),
     ("1, 2", [1.0, 2.0], 1.0), ("1.0 | 2.0", [1, 2], 1.0), ("1.5, 2", [1, 2], 0.0),
     ("Amy, Bob, and Cara", ["Amy", "Bob", "Cara"], 1.0), ("Amy, then Bob, then Cara", ["Amy", "Bob", "Cara"], 1.0),
     ("Bob and Amy", ["Amy", "Bob"], 0.0), ("salt and pepper, sugar", ["salt and pepper", "sugar"], 1.0)],
)  # fmt: skip
def test_orders(answer: str, reference: Any, right: float) -> None:
    assert value(OrderingVerifier(), answer, reference) == right


@pytest.mark.parametrize(
    ("graph", "question", "right", "wrong"),
    [
        (STEEP, {"kind": "shortest_path", "source": "a", "target": "c"}, "a, b, c", "a, c"),
        (STEEP, {"kind": "path", "source": "a", "target": "c"}, "a -> c", "c -> a"),
        (STEEP, {"kind": "path", "source": "a", "target": "c"}, "a -> b -> c (distance 2)", "a -> b -> c (distance 3)"),
        (STEEP, {"kind": "path", "source": "a", "target": "c"}, "A-B-C", "A-C-B"),
        (STEEP, {"kind": "shortest_path", "source": "a", "target": "c"}, "**a–b–c**", "a-c"),
        (TRIANGLE, {"kind": "cycle"}, "a-b-c-a", "a-b-d-a"),
        (TRIANGLE, {"kind": "independent_set", "size": 2}, "b, d", "b-d"),
        (STEEP, {"kind": "path", "source": "c", "target": "a"}, "none", "c, a"),
        (STEEP, {"kind": "distance", "source": "a", "target": "c"}, "2.0", "2.5"),
        (STEEP, {"kind": "connected", "source": "c", "target": "a"}, "No.", "yes"),
        (STEEP, {"kind": "topological_order"}, "a, b, c", "b, a, c"),
        (STEEP, {"kind": "cycle"}, "no cycle", "a, b, c"),
        (TRIANGLE, {"kind": "cycle"}, "b, c, a, b", "a, b, c, d"),
        (TRIANGLE, {"kind": "topological_order", "possible": False}, "impossible", "a, b, c, d"),
        (TRIANGLE, {"kind": "hamiltonian_path"}, "a, b, c, d", "a, c, d, b"),
        (TRIANGLE, {"kind": "component", "source": "a"}, "{d, c, b, a}", "a, b, c"),
        (TRIANGLE, {"kind": "components"}, "[['a', 'b', 'c', 'd']]", "[['a', 'b', 'c'], ['d']]"),
        (TRIANGLE, {"kind": "component_count"}, "1", "2"),
        (TRIANGLE, {"kind": "coloring", "size": 3},
         '{"a": 1, "b": 2, "c": 3, "d": 1}', '{"a": 1, "b": 2, "c": 1, "d": 2}'),
        (TRIANGLE, {"kind": "independent_set", "size": 2}, "b, d", "c, d"),
        (TRIANGLE, {"kind": "clique", "size": 3}, "c, a, b", "b, c, d"),
        (TRIANGLE, {"kind": "vertex_cover", "size": 2}, "a, c", "a, b"),
        (TRIANGLE, {"kind": "matching", "size": 2}, "[['a', 'b'], ['c', 'd']]", "[['a', 'c'], ['c', 'd']]"),
        (TRIANGLE, {"kind": "spanning_tree"}, "[['a','b'], ['c','b'], ['d','c']]", "[['a','b'], ['b','c'], ['a','c']]"),
        ({"edges": [["a", "b", 1], ["b", "c", 1], ["a", "c", 3]]}, {"kind": "spanning_tree"},
         "[['b','a'], ['b','c']]", "[['a','b'], ['a','c']]"),
        (TRIANGLE, {"kind": "matching", "size": 2}, "[(a, b), (c, d)]", "[(a, b), (c, b)]"),
        (STEEP, {"kind": "distance", "source": "c", "target": "a"}, "infinity", "3"),
    ],
)  # fmt: skip
def test_graphs(graph: dict[str, Any], question: dict[str, Any], right: str, wrong: str) -> None:
    reference = {"graph": graph, **question}
    assert value(GraphAnswerVerifier(), right, reference) == 1.0
    assert value(GraphAnswerVerifier(), wrong, reference) == 0.0


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [("1,250", 1250, 1.0), ("1250.0", "1,250", 1.0), ("50 %", 0.5, 1.0), ("5 kg", "5 cm", 0.0), ("5 cm", "5", 1.0),
     ("[100,200]", [200, 100], 1.0), ("Oslo and Bergen", ["Oslo", "Bergen"], 1.0), ("oslo", "Oslo", 1.0),
     ("2, 1", {"answer": [1, 2], "ordered": True}, 0.0), ("1; 1", [1, 1], 1.0), ("1; 2", [1, 1], 0.0),
     ("$5", "€5", 0.0), ("1", "one", 0.0), ("b | a", "a|b", 1.0), ("a", "a|b", 0.0),
     ("5; 5 cm", ["5 cm", "5 kg"], 1.0), ("Oslo or Bergen", ["Oslo", "Bergen"], 0.0),
     ("salt and pepper", "salt and pepper", 1.0), ("sugar, salt and pepper", "salt and pepper|sugar", 1.0),
     ("a, b, and c", "a|b|c", 1.0), ("Oslo and Bergen", "Oslo", 0.0)],
)  # fmt: skip
def test_values_of_tables(answer: str, reference: Any, right: float) -> None:
    assert value(TableAnswerVerifier(), answer, reference) == right


PATH = {"graph": {"edges": [[0, 1], [1, 2]]}, "kind": "path", "source": 0, "target": 2}
MAZE = {"kind": "maze", "grid": ["S.#", "#.G"]}
ECHO = {"code": "def f(x):\n    return x", "predict": "output"}
FAR = {"graph": {"edges": [[0, 1], [2, 3]]}, "kind": "distance", "source": 0, "target": 2}


@pytest.mark.parametrize(
    ("verifier", "answer", "reference", "right"),
    [
        (GraphAnswerVerifier(), r"\boxed{0 \to 1 \to 2}", PATH, 1.0),
        (GraphAnswerVerifier(), "**0 → 1 → 2**", PATH, 1.0),
        (GraphAnswerVerifier(), r"\boxed{\{0,\ 1,\ 2\}}", PATH, 1.0),
        (GraphAnswerVerifier(), r"\boxed{0 \to 1 \to 2 \text{ or } 0 \to 2}", PATH, 0.0),
        (GraphAnswerVerifier(), "0 → 1 → 2.", PATH, 1.0),
        (GraphAnswerVerifier(), r"\boxed{\text{0} \to \text{1} \to 2} The answer is 0 → 1 → 2.", PATH, 1.0),
        (GraphAnswerVerifier(), r"\boxed{\text{0} \to \text{1} \to 2} The answer is 0 → 2.", PATH, 0.0),
        (GraphAnswerVerifier(), r"\boxed{\infty}", FAR, 1.0),
        (OrderingVerifier(), r"\boxed{\text{a, b, c}}", ["a", "b", "c"], 1.0),
        (OrderingVerifier(), r"\boxed{\text{a} \rightarrow \textbf{b} \succ \mathrm{c}}", ["a", "b", "c"], 1.0),
        (OrderingVerifier(), r"\boxed{\left\{\text{a},\, \text{b}\right\}}", ["a", "b"], 1.0),
        (OrderingVerifier(), r"\boxed{\text{O'Neil} \to \text{the boys' van}}", ["O'Neil", "the boys' van"], 1.0),
        (OrderingVerifier(), "**a > b > c**", ["a", "b", "c"], 1.0),
        (OrderingVerifier(), "**a** => **b** ⇒ **c**", ["a", "b", "c"], 1.0),
        (OrderingVerifier(), r"\alpha, \beta", [r"\alpha", r"\beta"], 1.0),
        (OrderingVerifier(), "Spider - Man, Part 1. Two", ["Spider - Man", "Part 1. Two"], 1.0),
        (OrderingVerifier(), "a, b, c.", ["a", "b", "c"], 1.0),
        (OrderingVerifier(), "Acme Inc., b", ["Acme Inc.", "b"], 1.0),
        (OrderingVerifier(), "a, b, ...", ["a", "b", "c"], 0.0),
        (OrderingVerifier(), "Ba - ck, x", ["Back", "x"], 0.0),
        (TableAnswerVerifier(), r"\boxed{\text{Paris, Rome}}", ["Rome", "Paris"], 1.0),
        (TableAnswerVerifier(), r"\boxed{\{\text{Paris}, \text{new\_town}\}}", ["Paris", "new_town"], 1.0),
        (TableAnswerVerifier(), r"\text{Paris}\text{Rome}", ["Paris", "Rome"], 0.0),
        (TableAnswerVerifier(), r"x \to y", r"x \to y", 1.0),
        (TableAnswerVerifier(), r"\boxed{\{100, 200\}}", [200, 100], 1.0),
        (PuzzleVerifier(), r"\boxed{\text{RDR}}", MAZE, 1.0),
        (PuzzleVerifier(), "**RDR**", MAZE, 1.0),
        (PuzzleVerifier(), r"\boxed{\rightarrow\downarrow\rightarrow}", MAZE, 1.0),
        (PuzzleVerifier(), r"\boxed{\text{R} \rightarrow \text{D} \rightarrow \text{R}}", MAZE, 1.0),
        (PuzzleVerifier(), "Right, Down, Right.", MAZE, 1.0),
        (PuzzleVerifier(), "**DRR**", MAZE, 0.0),
        (GridVerifier(), "`[[1,0],[0,1]]`", [[1, 0], [0, 1]], 1.0),
        (GridVerifier(), "```\n10\n01```", [[1, 0], [0, 1]], 1.0),
        (GridVerifier(), r"\[\begin{pmatrix}1&0\\0&1\end{pmatrix}\]", [[1, 0], [0, 1]], 1.0),
        (GridVerifier(), "* .\n. *", [["*", "."], [".", "*"]], 1.0),
        (GridVerifier(), "*.\n.*", "*.\n.*", 1.0),
        (GridVerifier(), "**1 0\n0 1**", [[1, 0], [0, 1]], 1.0),
        (GridVerifier(), "```\n\n```", [[1, 0], [0, 1]], 0.0),
        (CodePredictionVerifier(), "**'a b'**", {**ECHO, "output": "'a b'"}, 1.0),
        (CodePredictionVerifier(), "``'a b'``", {**ECHO, "output": "'a b'"}, 1.0),
        (CodePredictionVerifier(), "**a b**", {**ECHO, "output": "'a b'"}, 0.0),
        (CodePredictionVerifier(), "'**a**'", {**ECHO, "output": "'a'"}, 0.0),
        (CodePredictionVerifier(), r"\boxed{\{'a': '\to b'\}}", {**ECHO, "output": r"{'a': '\to b'}"}, 1.0),
        (CodePredictionVerifier(), r"'\text{a}'", {**ECHO, "output": "'a'"}, 0.0),
    ],
)  # fmt: skip
def test_marks_of_markdown_and_tex(verifier: Verifier, answer: str, reference: Any, right: float) -> None:
    assert value(verifier, answer, reference) == right


LINE = {"graph": {"edges": [["A", "B", 1], ["B", "C", 1], ["A", "C", 3]]}, "kind": "spanning_tree"}
HYPHENS = {"graph": {"edges": [["n-1", "n-2"], ["n-2", "n-3"]]}, "kind": "matching", "size": 1}
AMBIGUOUS = {"graph": {"edges": [["a", "b-c"], ["a-b", "c"]]}, "kind": "matching", "size": 1}
PAIR = {"graph": {"edges": [["A", "B"]]}, "kind": "coloring", "size": 2}
STATES = {"graph": {"edges": [["Western Australia", "Queensland"]]}, "kind": "coloring", "size": 2}
PARTS = {"graph": {"edges": [["a", "b"]], "nodes": ["c"]}, "kind": "components"}


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [
        ("A-B, B-C", LINE, 1.0), ("[A - B; C–B]", LINE, 1.0), ("1. **A--B**\n2. B → C", LINE, 1.0),
        ('[("A", "B", 1), ("B", "C", 1.0)]', LINE, 1.0), ('[("A", "B", 2), ("B", "C", 1)]', LINE, 0.0),
        ("A-B (1), B-C: 1", LINE, 1.0), ("A-B (weight: 1), B-C (weight 1)", LINE, 1.0), ("A-B (2), B-C (1)", LINE, 0.0),
        (r"\boxed{\{\{A, B\}, \{B, C\}\}}", LINE, 1.0), (r"\boxed{\{(A, B), (B, C)\}}", LINE, 1.0),
        ("A-B, A-C", LINE, 0.0), ("A-B-C", LINE, 0.0), ("A-B, B-C, A-C", LINE, 0.0), ("A-B, A-B", LINE, 0.0),
        ("A-B, B-C or A-C", LINE, 0.0), ("A-B, B<-C", LINE, 0.0),
        ("n-1-n-2", HYPHENS, 1.0), ("n-1-n-3", HYPHENS, 0.0), ("a-b-c", AMBIGUOUS, 0.0), ("a - b-c", AMBIGUOUS, 1.0),
        (r"\boxed{\{A: 1, B: 2\}}", PAIR, 1.0), ("A: 1, B: 2", PAIR, 1.0), ("A = 1; B = 2.", PAIR, 1.0),
        ("- **A:** red\n- **B:** blue", PAIR, 1.0), ("1. A: red,\n2. B: blue", PAIR, 1.0),
        ("Western Australia: red, Queensland: light blue", STATES, 1.0),
        ("{Western Australia: red, Queensland: red}", STATES, 0.0),
        ("A: 1, B: 1", PAIR, 0.0), ("A: 1", PAIR, 0.0), ("A: 1, B: 2, A: 2", PAIR, 0.0), ("A: 1, B: 2 or 1", PAIR, 0.0),
        ("A: 1/2, B: 2/1", PAIR, 0.0), ("A: 1, B: 2 or A: 2, B: 1", PAIR, 0.0),
        (r"\boxed{\{\{a, b\}, \{c\}\}}", PARTS, 1.0), ("{a, b}, {c}", PARTS, 1.0), ("{a}, {b}, {c}", PARTS, 0.0),
    ],
)  # fmt: skip
def test_edges_and_colours_as_people_write_them(answer: str, reference: Any, right: float) -> None:
    assert value(GraphAnswerVerifier(), answer, reference) == right


def test_a_tolerance_is_a_share_of_the_gold() -> None:
    assert value(TableAnswerVerifier(tolerance=0.01), "101", 100) == 1.0
    assert value(TableAnswerVerifier(tolerance=0.01), "101.1", 100) == 0.0


@pytest.mark.parametrize("answer", ["99.5, 100.5", "100.5, 99.5"])
def test_the_order_of_an_answer_does_not_decide_which_value_takes_which_place(answer: str) -> None:
    for gold in ([100, 101], [101, 100]):
        assert value(TableAnswerVerifier(tolerance=0.01), answer, gold) == 1.0


def test_a_row_is_found_by_its_number_or_its_name_in_every_form() -> None:
    whole = {"header": ["name", "pet"], "rows": [["agent 7", "cat"], ["eric", "dog"]]}
    marked = "| name | pet |\n|---|---|\n| agent 7 | cat |\n| eric | dog |"
    forms = (json.dumps(whole), repr(whole), marked, '{"Agent 7": {"pet": "cat"}, "7": {"pet": "cat"}}')
    mapped = {"agent 7": {"pet": "cat"}, "eric": {"pet": "dog"}}
    for gold in (whole, mapped):
        assert [value(PuzzleTableVerifier(), form, gold) for form in forms] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("clue", "holds"),
    [(["at", ["name", "Bob"], 2], True), (["not_at", ["name", "Bob"], 2], False), (["at", ["name", "Bob"], 3], False),
     (["same", ["name", "Bob"], ["pet", "cat"]], True), (["different", ["name", "Bob"], ["pet", "cat"]], False),
     (["left_of", ["name", "Eric"], ["pet", "owl"]], True),
     (["directly_left", ["name", "Eric"], ["pet", "owl"]], False),
     (["next_to", ["pet", "owl"], ["pet", "cat"]], True), (["apart", ["pet", "owl"], ["pet", "dog"], 2], True)],
)  # fmt: skip
def test_clues(clue: list[Any], holds: bool) -> None:
    reference = {"kind": "zebra", **BOTH, "clues": [clue]}
    assert value(PuzzleVerifier(), json.dumps(RIGHT), reference) == float(holds)


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [("8/(3-8/3)", {"numbers": [3, 3, 8, 8], "target": 24}, 1.0), ("8*3", {"numbers": [3, 3, 8, 8], "target": 24}, 0.0),
     ("8*3", {"numbers": [3, 3, 8, 8], "target": 24, "all": False}, 1.0),
     ("8/(3-8/3) = 25", {"numbers": [3, 3, 8, 8], "target": 24}, 0.0),
     ("24.9", {"numbers": [24], "target": 24}, 0.0), ("- 3 + 27", {"numbers": [3, 27], "target": 24}, 1.0)],
)  # fmt: skip
def test_countdown(answer: str, reference: dict[str, Any], right: float) -> None:
    assert value(PuzzleVerifier(), answer, {"kind": "countdown", **reference}) == right


def test_every_arrangement_of_queens_is_checked_against_all_solutions() -> None:
    """Of the 24 permutations of 4 columns, exactly 2 are solutions."""
    right = [
        p for p in permutations((1, 2, 3, 4)) if value(PuzzleVerifier(), str(list(p)), {"kind": "queens", "size": 4})
    ]
    assert right == [(2, 4, 1, 3), (3, 1, 4, 2)]
    assert value(PuzzleVerifier(), "[2, 4, 1, 3]", {"kind": "queens", "size": 4, "given": [3, 0, 0, 0]}) == 0.0


CODE = "def f(a, b=0):\n    return {'sum': a + b, 'pair': (a, b)}"


@pytest.mark.parametrize(
    ("answer", "reference", "right"),
    [("{'sum': 3, 'pair': (1, 2)}", {"predict": "output", "input": "1, 2"}, 1.0),
     ("{'sum': 3, 'pair': [1, 2]}", {"predict": "output", "input": "1, 2"}, 0.0),
     ("f(1, 2) == {'pair': (1, 2), 'sum': 3.0}", {"predict": "output", "input": "1, 2"}, 1.0),
     ("b=2, a=1", {"predict": "input", "input": "1, 2"}, 1.0),
     ("2, 1", {"predict": "input", "input": "1, 2"}, 0.0),
     ('{"b": 2, "a": 1}', {"predict": "input", "input": {"a": 1, "b": 2}}, 1.0),
     ('{"a": 1}', {"predict": "input", "keywords": True}, 0.0)],
)  # fmt: skip
def test_predictions(answer: str, reference: dict[str, Any], right: float) -> None:
    given_output = {"output": "{'sum': 3, 'pair': (1, 2)}"}
    assert value(CodePredictionVerifier(), answer, {"code": CODE, **given_output, **reference}) == right


def test_a_value_from_json_may_be_a_tuple() -> None:
    reference = {"code": CODE, "predict": "output", "input": {"a": 1, "b": 2}, "returns": {"sum": 3, "pair": [1, 2]}}
    assert value(CodePredictionVerifier(), '{"sum": 3, "pair": [1, 2]}', reference) == 1.0
    assert value(CodePredictionVerifier(), '{"sum": true, "pair": [1, 2]}', reference) == 0.0


@pytest.mark.parametrize(("output", "answer"), [("{1: 'a'}", "{True: 'a'}"), ("{1, 2}", "{True, 2}")])
def test_the_keys_of_mappings_and_the_members_of_sets_are_compared_type_by_type(output: str, answer: str) -> None:
    reference = {"code": CODE, "predict": "output", "output": output}
    assert value(CodePredictionVerifier(), answer, reference) == 0.0
    assert value(CodePredictionVerifier(), output.replace("1", "1.0"), reference) == 1.0


def test_a_gold_input_that_ran_out_of_time_once_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Verdict(total=1, stage="test", reason="candidate_timeout")
    right = Verdict(total=1, stage="test", outcomes=[Outcome(passed=True)])
    given_verdicts = [late, right]
    monkeypatch.setattr(code_prediction, "_kept", {})
    monkeypatch.setattr(CodePredictionVerifier, "_call", lambda *_: given_verdicts.pop(0))
    verifier = CodePredictionVerifier(isolation="none")
    reference = {"code": CODE, "predict": "input", "input": "1, 2", "output": "3"}
    with pytest.raises(BadReferenceError, match="does not give the output"):
        verifier.read_reference(reference)
    assert [verifier.read_reference(reference).expected for _ in range(2)] == [3, 3]
    assert not given_verdicts


def test_a_gold_input_that_gives_another_output_is_our_fault() -> None:
    reference = {"code": CODE, "predict": "input", "input": "1, 1", "output": "{'sum': 3, 'pair': (1, 2)}"}
    for answer in ("", "1, 2"):
        found = score(CodePredictionVerifier(), answer, reference)
        assert (found.status, found.reason) == ("failed", "gold_unparsable")


def test_the_branch_that_a_misspelled_keyword_kept_from_running_runs() -> None:
    """Guru's released code calls its comparison with pi written out as `tiemout=`, so that it always fails."""
    verifier = MathVerifier()
    for gold, right in ((r"2\pi", 1.0), (r"2 \cdot \pi", 1.0), (r"3\pi", 0.0)):
        assert verifier.verify(Sample(prompt="", response=r"\boxed{2\pi}", reference=gold)).value == right


BAD: list[tuple[Verifier, Any, bool]] = [
    (GridVerifier(), [], False), (GridVerifier(), [[1], [1, 2]], False), (GridVerifier(), 7, True),
    (PuzzleTableVerifier(), {}, False), (PuzzleTableVerifier(), "x", True),
    (OrderingVerifier(), [], False), (OrderingVerifier(), "a, b", True), (OrderingVerifier(), [None], True),
    (TableAnswerVerifier(), [], False), (TableAnswerVerifier(), {"answers": 3}, True),
    (TableAnswerVerifier(), None, True),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "path"}, True),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "path", "source": "a", "target": "z"}, False),
    (GraphAnswerVerifier(), {"graph": {"edges": [["a", "a"]]}, "kind": "cycle"}, False),
    (GraphAnswerVerifier(), {"graph": {"edges": [["a", "b", -1]]}, "kind": "cycle"}, False),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "flow"}, True),
    (PuzzleVerifier(), {"kind": "chess"}, True), (PuzzleVerifier(), {"kind": "sudoku"}, True),
    (PuzzleVerifier(), {"kind": "sudoku", "grid": [[1, 1], [0, 0]]}, True),
    (PuzzleVerifier(), {"kind": "sudoku", "grid": [[1, 1, 0, 0], [0] * 4, [0] * 4, [0] * 4]}, False),
    (PuzzleVerifier(), {"kind": "maze", "grid": ["S#G"]}, False),
    (PuzzleVerifier(), {"kind": "maze", "grid": ["SS"]}, False),
    (PuzzleVerifier(), {"kind": "countdown", "numbers": [], "target": 1}, True),
    (PuzzleVerifier(), {"kind": "countdown", "numbers": [1, 1], "target": 24}, False),
    (PuzzleVerifier(), {"kind": "countdown", "numbers": [3, 3, 8, 7], "target": 241, "all": False}, False),
    (PuzzleVerifier(), {"kind": "sudoku", "grid": [[1]]}, True),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "coloring", "size": 2}, False),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "coloring", "size": 3, "possible": False}, False),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "clique", "size": 4}, False),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "vertex_cover", "size": 1}, False),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "matching", "size": 3}, False),
    (GraphAnswerVerifier(), {"graph": {"edges": [["a", "b"]], "nodes": ["c"]}, "kind": "hamiltonian_path"}, False),
    (CodePredictionVerifier(), {"code": "", "predict": "output", "output": "1"}, True),
    (PuzzleVerifier(), {"kind": "queens", "size": 0}, True), (PuzzleVerifier(), {"kind": "queens", "size": 3}, False),
    (PuzzleVerifier(), {"kind": "queens", "size": 4, "given": [0] * 5}, False),
    (PuzzleVerifier(), {"kind": "queens", "size": 4, "given": [1, 2]}, False),
    (PuzzleVerifier(), {"kind": "zebra", **BOTH, "clues": [["at", ["name", "Bob"], 4]]}, False),
    (PuzzleVerifier(), {"kind": "zebra", **BOTH, "clues": [[["at"], ["name", "Bob"], 1]]}, True),
    (PuzzleVerifier(), {"kind": "zebra", "attributes": {"a": ["x"], "A": ["y"]}, "clues": []}, False),
    (OrderingVerifier(), ["a", "A"], False), (OrderingVerifier(), [float("nan")], True),
    (TableAnswerVerifier(), float("nan"), True), (PuzzleTableVerifier(), {"1": {"a": float("nan")}}, False),
    (GraphAnswerVerifier(), {"graph": {"edges": [["a", "b"], ["A", "c"]]}, "kind": "cycle"}, False),
    (GraphAnswerVerifier(), {"graph": {"edges": [["a", "b", "1e999999999"]]}, "kind": "cycle"}, True),
    (GraphAnswerVerifier(), {"graph": TRIANGLE, "kind": "cycle", "possible": False}, False),
    (CodePredictionVerifier(), {"code": CODE, "predict": "output", "returns": [float("nan")]}, False),
    (PuzzleVerifier(), {"kind": "zebra", **BOTH, "clues": [["at", ["name", "Zoe"], 1]]}, False),
    (PuzzleVerifier(), {"kind": "zebra", **BOTH, "clues": [["beside", 1, 2]]}, True),
    (CodePredictionVerifier(), {"code": CODE, "predict": "output", "output": "set()"}, False),
    (CodePredictionVerifier(), {"code": CODE, "predict": "both", "output": "1"}, True),
    (CodePredictionVerifier(), {"code": CODE, "predict": "output"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("verifier", "reference", "mistake"), BAD)
def test_a_bad_reference_is_our_fault_whatever_the_answer(verifier: Verifier, reference: Any, mistake: bool) -> None:
    for response in ("", "<answer>1</answer>"):
        found = verifier.verify(Sample(prompt="", response=response, reference=reference))
        assert (found.status, found.reason) == ("failed", "gold_unparsable"), found
    if mistake:
        with pytest.raises(ValueError, match=verifier.name):
            verifier.validate(Sample(prompt="", response="", reference=reference))


SAMPLES: list[Verifier] = [
    GridVerifier(), PuzzleTableVerifier(), OrderingVerifier(), GraphAnswerVerifier(), TableAnswerVerifier(),
    PuzzleVerifier(), CodePredictionVerifier(), ReasoningGymVerifier(),
]  # fmt: skip


@pytest.mark.parametrize("verifier", SAMPLES, ids=lambda verifier: verifier.name)
def test_the_rules_of_the_protocol_hold(verifier: Verifier) -> None:
    cases = [
        case
        for case in shipped_cases(verifier)
        if len(case.sample.response) < 5000 and not case.options.get("min_characters")
    ]
    chosen = [case.sample for case in cases if case.honest][:2] + [case.sample for case in cases if not case.honest][:2]
    check_scorer(verifier, [dataclasses.replace(sample, extra={}) for sample in chosen]).raise_for_failures()


@pytest.mark.parametrize("verifier", SAMPLES, ids=lambda verifier: verifier.name)
def test_a_megabyte_of_anything_takes_little_time(verifier: Verifier) -> None:
    reference = next(case.sample.reference for case in shipped_cases(verifier))
    started = time.process_time()
    parts = ("[", "(", "1", "1,", "-", "a", " ", "\n", "|", "{", "\\", "->", "\0", "1 2\n", "9**", "```\n", "\ud800")
    for part in parts:
        found = score(verifier, part * (90_000 // len(part)), reference)
        assert (found.status, found.value) == ("scored", 0.0), part
    whole = "".join(part * (60_000 // len(part)) for part in parts)
    assert score(verifier, whole, reference).value == 0.0
    assert time.process_time() - started < 20  # one answer that takes quadratic time takes minutes


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from("01ab[](){},.:|-+*/='\" \n<>→QSG#x"), max_size=40) | st.text(max_size=40))
def test_no_text_makes_a_verifier_fail(text: str) -> None:
    for verifier in SAMPLES[:6]:
        for reference in [case.sample.reference for case in shipped_cases(verifier)][-8:]:
            assert score(verifier, text, reference).status == "scored"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(VALUES)
def test_literals_are_read_back(found: Any) -> None:
    assert read_literal(repr(found)) == found
    assert read_arguments(f"{found!r}, key={found!r}", "f") == ((found,), {"key": found})
    assert read_claim(f"assert f(1) == {found!r}", "f") == found


@settings(deadline=None)
@given(st.text(max_size=60))
def test_reading_never_fails_but_as_it_says(text: str) -> None:
    for read in (read_literal, exact_value, lambda given: require_formula(given, frozenset("x"))):
        with contextlib.suppress(LiteralError):
            read(text)


@pytest.mark.parametrize("text", ["1]) + f([2", "*[1, 2]", "**{'a': 1}", "x", "a=1, a=2", "1 if 2 else 3", "f'{1}'"])
def test_what_is_no_argument_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        read_arguments(text, "f")


def test_predictions_about_real_programs(cruxeval: list[Mapping[str, str]]) -> None:
    assert len(cruxeval) > 15
    for row in cruxeval:
        common = {"code": row["code"], "input": row["input"], "output": row["output"]}
        plans = (("output", row["output"], "'no such value'"), ("input", row["input"], "1, 2, 3, 4, 5, 6, 7, 8, 9"))
        for predict, gold, planted in plans:
            reference = {**common, "predict": predict}
            assert value(CodePredictionVerifier(), gold, reference) == 1.0, row
            assert value(CodePredictionVerifier(), planted, reference) == 0.0, row
