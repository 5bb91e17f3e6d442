"""Tests in the layouts of public data sets: the right program passes, a wrong one does not, and nothing is guessed.

Rows have the columns and the shape of the data sets they name; rows of the sets themselves are in
`test_fixtures_code.py` and below, where `ADJUDGE_DATA` has them.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import zlib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjudge
from adjudge.protocol import Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.code import layouts
from adjudge.verifiers.code.performance.task import read_task
from adjudge.verifiers.code.suite import read_suite
from adjudge.verifiers.code.verifier import CodeVerifier

DATA = Path(os.environ.get("ADJUDGE_DATA", "")) / "code"

ADD = "def add(a, b):\n    return a + b\n"
ADDS = "class Solution:\n    def add(self, a: int, b: Optional[int] = None) -> List[int]:\n        return a + b\n"
SUM = "print(sum(map(int, open(0).read().split())))"
PAIRS = [{"input": "1 2\n", "output": "3\n"}, {"input": "4\n5\n", "output": "9\n"}]
STDIN = {"inputs": ["1 2\n", "4\n5\n"], "outputs": ["3\n", "9\n"]}
CALLED = {"fn_name": "add", "inputs": [[1, 2], [4, 5]], "outputs": [3, 9]}
LINES = {"fn_name": "add", "inputs": ["1\n2", "4\n5"], "outputs": ["3", "9"]}
FUNCTIONAL = [{"input": "1\n2", "output": "3", "testtype": "functional"}]
ASSERTS = ["assert add(1, 2) == 3", "assert add(4, 5) == 9"]
CHECK = "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(4, 5) == 9\n"
APPS = {
    "problem_id": 7,
    "question": "Add.",
    "solutions": "[]",
    "difficulty": "interview",
    "url": "",
    "starter_code": "",
}
LIVE = {
    "question_title": "Add",
    "question_content": "Add.",
    "platform": "leetcode",
    "contest_date": "2024-05-04T00:00:00",
    "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:\n        ",
    "difficulty": "easy",
}
CONTESTS = {
    "name": "1_A. Add",
    "description": "Add.",
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": [], "output": []},
    "generated_tests": {"input": ["4 5\n"], "output": ["9\n"]},
    "time_limit": {"seconds": 2, "nanos": 0},
    "input_file": "",
    "output_file": "",
    "solutions": {"language": [3], "solution": [SUM]},
}

LAYOUTS: dict[str, tuple[Any, str]] = {
    "verl": (STDIN, SUM),
    "verl, JSON text": (json.dumps(STDIN), SUM),
    "verl, one line a text": ({"inputs": [["1", "2"], ["4 5"]], "outputs": [["3"], ["9"]]}, SUM),
    "verl, a function": (LINES, ADD),
    "verl, a method": (json.dumps(LINES), ADDS),
    "verl, asserts": ({"inputs": ["", ""], "outputs": [None, None], "assert_case": ASSERTS}, ADD),
    "APPS": ({**APPS, "input_output": json.dumps(STDIN)}, SUM),
    "APPS, a function": ({**APPS, "input_output": json.dumps(CALLED)}, ADD),
    "APPS, a method": ({**APPS, "input_output": json.dumps(CALLED)}, ADDS),
    "APPS, outputs in lists": ({"input_output": json.dumps({**CALLED, "outputs": [[3], [9]]})}, ADD),
    "APPS, a struct": ({"input_output": {**STDIN, "fn_name": None}}, SUM),
    "TACO": ({"input_output": json.dumps(STDIN), "name": None, "time_limit": "2.0 seconds", "tags": "['sums']"}, SUM),
    "LiveCodeBench": (
        {**LIVE, "public_test_cases": json.dumps([{**test, "testtype": "stdin"} for test in PAIRS]),
         "private_test_cases": "[]", "metadata": "{}"},
        SUM,
    ),
    "LiveCodeBench, a method": (
        {**LIVE, "public_test_cases": json.dumps(FUNCTIONAL), "private_test_cases": json.dumps(FUNCTIONAL),
         "metadata": '{"func_name": "add"}'},
        ADDS,
    ),
    "code_contests": (CONTESTS, SUM),
    "open-r1": ({"language": "python", "test_cases": [{**test, "type": "stdin_stdout"} for test in PAIRS]}, SUM),
    "open-r1, another language": (
        {"language": "bash", "test_cases": [{"input": "1 2", "output": "3", "type": "stdin_stdout"}]},
        "read a b; echo $((a + b))",
    ),
    "SYNTHETIC-1": (
        {"verification_info": json.dumps({"language": "python", "test_cases": [
            {"fn_name": "add", "input": [1, 2], "output": [3], "type": "function_call"},
            {"fn_name": "add", "input": [4, 5], "output": [9], "type": "function_call"}]})},
        ADD,
    ),
    "SYNTHETIC-1, as Python writes it": (
        {"verification_info": repr({"language": "python", "test_cases": [{**PAIRS[0], "type": "stdin_stdout"}]})}, SUM
    ),
    "SYNTHETIC-2": (
        {"verification_info": json.dumps({"language": "python", "test_cases": json.dumps(LINES)}), "metadata": "{}"},
        ADD,
    ),
    "NeMo Gym": ({"unit_tests": json.dumps(STDIN)}, SUM),
    "DeepCoder": (json.dumps([{**FUNCTIONAL[0], "metadata": {"func_name": "add"}}]), ADDS),
    "test objects": (PAIRS, SUM),
    "SandboxFusion": ({"test": json.dumps([{"input": {"stdin": "1 2"}, "output": {"stdout": "3"}}])}, SUM),
    "MBPP": (
        {"task_id": 2, "text": "Add.", "code": ADD, "test_list": ["assert add(ONE, 2) == 3"],
         "test_setup_code": "ONE = 1", "challenge_test_list": ["assert add(1, 1) == 5"]},
        ADD,
    ),
    "MBPP, sanitized": (
        {"prompt": "Add.", "test_list": ["assert add(1, 2) == math.floor(3.5)"], "test_imports": ["import math"]}, ADD
    ),
    "HumanEval": (
        {"task_id": "HumanEval/0", "prompt": "def add(a, b):\n", "canonical_solution": "    return a + b\n",
         "test": CHECK, "entry_point": "add"},
        ADD,
    ),
    "KodCode": (
        {"style": "instruct", "solution": ADD,
         "test": "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
         "test_info": [{"function_name": "add"}]},
        ADD,
    ),
    "KodCode's tests alone": ("from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n", ADD),
    "BigCodeBench": (
        {"entry_point": "add", "test": "import unittest\nclass TestCases(unittest.TestCase):\n"
         "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"},
        ADD,
    ),
    "AceCode": ({"test_cases": ASSERTS}, ADD),
    "asserts as JSON text": (json.dumps(ASSERTS), ADD),
    "ours as JSON text": (json.dumps({"tests": [{"args": [1, 2], "expected": 3}], "entry_point": "add"}), ADD),
    "tests as JSON text": ({"tests": json.dumps([{"args": [1, 2], "expected": 3}]), "entry_point": "add"}, ADD),
    "tests as a struct": ({"tests": STDIN, "timeout": 3}, SUM),
    "filled by Arrow": (
        {"answer": None, "tests": [{"args": [1, 2], "kwargs": None, "expected": 3, "stdin": None, "stdout": None}],
         "entry_point": "add", "checker": None},
        ADD,
    ),
    "filled by Arrow, programs": (
        {"tests": [{"args": None, "expected": None, "stdin": "1 2", "stdout": "3"}], "entry_point": None}, SUM
    ),
}  # fmt: skip


def judged(program: str, reference: Any, **options: Any) -> Score:
    verifier = CodeVerifier(**{"seconds": 20.0, **options})
    return verifier.verify(Sample(prompt="", response=f"```\n{program}\n```", reference=reference))


@pytest.mark.parametrize(("reference", "program"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_right_program_passes_and_a_wrong_one_does_not(reference: Any, program: str) -> None:
    right = judged(program, reference)
    assert right.value == 1.0, right
    for old, new in (("a + b", "a - b"), ("sum(", "max(")):
        program = program.replace(old, new)
    wrong = judged(program, reference)
    assert (wrong.value, wrong.reason) == (0.0, "wrong"), wrong


@pytest.mark.parametrize("name", ["APPS", "LiveCodeBench", "code_contests", "MBPP", "filled by Arrow"])
def test_rows_that_have_been_through_arrow_mean_the_same(name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    reference, program = LAYOUTS[name]
    others = [{"answer": "4"}, {"tests": [{"stdin": "", "stdout": "x"}]}]
    column = pyarrow.array([reference, *others]).to_pylist()
    assert column[0].keys() > {key for key, value in reference.items() if value is not None}
    assert judged(program, column[0]).value == 1.0
    assert judged("print('x')", column[2]).value == 1.0


def test_json_text_is_a_reference_wherever_a_mapping_is() -> None:
    for response, value in ((ADD, 1.0), (ADD.replace("+", "-"), 0.0)):
        text = json.dumps({"tests": ASSERTS})
        assert adjudge.score(prompt="", response=response, reference=text, scorer="code").value == value


def test_none_is_a_value_beside_arguments_and_nothing_else() -> None:
    absent = {"kwargs": None, "stdin": None}
    tests = [{"args": [1], "expected": None, **absent}, {"args": [2], "expected": 2, **absent}]
    columns = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [None, 2]}
    objects = [{"type": "function_call", "fn_name": "f", "input": [n], "output": n if n > 1 else None} for n in (1, 2)]
    for reference in ({"tests": tests, "entry_point": "f"}, columns, {"test_cases": objects}):
        assert judged("def f(x): return x if x > 1 else None", reference).value == 1.0
        assert judged("def f(x): return x", reference).value == 0.0
    nothing = judged("def f(): pass", {"tests": [{"args": None, "expected": None}], "entry_point": "f"})
    assert nothing.status == "failed", nothing


def test_every_test_counts() -> None:
    """A program that passes the first tests alone fails in all layouts that hold several."""
    first = {"add": "def add(a, b):\n    return 3", "": "print(3)"}
    for name in ("verl", "verl, a function", "APPS", "code_contests", "open-r1", "SYNTHETIC-1", "AceCode", "HumanEval"):
        reference, program = LAYOUTS[name]
        score = judged(first["add" if program == ADD else ""], reference)
        assert (score.value, score.reason) == (0.0, "wrong"), name


def test_functions_and_methods_are_found_as_the_checkers_find_them() -> None:
    loose = "class Other: pass\ndef add(a, b): return a + b"
    assert judged(loose, CALLED).value == 1.0
    hidden = "class Solution: pass\ndef add(a, b): return a + b"  # the checkers look in the class alone
    assert judged(hidden, CALLED).reason == "candidate_error"
    for program in ("x = 1", "class Solution: pass"):
        assert judged(program, CALLED).value == 0.0
    missing = judged("x = 1", CALLED)
    assert (missing.reason, "'Solution' or 'add'" in missing.evidence["error"]) == ("no_answer", True), missing
    named = {"tests": CALLED, "entry_point": "Adder().add"}
    assert judged("class Adder:\n    def add(self, a, b): return a + b", named).value == 1.0


def test_an_output_in_a_list_of_one_is_right_either_way_as_for_apps() -> None:
    listed = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [2]]}
    for program, value in (("x", 1.0), ("[x]", 1.0), ("[[x]]", 0.0), ("x + 1", 0.0)):
        assert judged(f"def f(x): return {program}", listed).value == value, program
    mixed = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [2, 2]]}  # no wrapper: one has two items
    for program, value in (("[x] * x", 1.0), ("x if x == 1 else [2, 2]", 0.0), ("[1] if x == 1 else 2", 0.0)):
        assert judged(f"def f(x): return {program}", mixed).value == value, program
    live = [{"input": "1", "output": "[1]", "testtype": "functional"}]  # compared as it is
    for program, value in (("[x]", 1.0), ("x", 0.0)):
        assert judged(f"def f(x): return {program}", {"tests": live, "fn_name": "f"}).value == value, program


def test_whole_numbers_that_json_made_text_are_keys_again_where_the_checker_says_so() -> None:
    reference = {"fn_name": "f", "inputs": [[{"1": 2}]], "outputs": [{"1": 3}]}
    assert judged("def f(d): return {1: d[1] + 1}", json.dumps(reference)).value == 1.0
    words = {"fn_name": "f", "inputs": [[{"a": 2}]], "outputs": [{"a": 3}]}
    assert judged("def f(d): return {'a': d['a'] + 1}", words).value == 1.0


def test_modules_are_there_where_the_data_sets_checker_imports_them() -> None:
    bare = "n = int(input())\nprint(math.gcd(n, Counter('aab')['a']))"
    assert judged(bare, {"inputs": ["4"], "outputs": ["2"]}).value == 1.0
    assert judged(bare, [{"input": "4", "output": "2", "testtype": "stdin"}]).value == 1.0
    for plain in ({"input": "4", "output": "2", "type": "stdin_stdout"}, {"stdin": "4", "stdout": "2"}):
        assert judged(bare, {"tests": [plain]}).reason == "candidate_error"
    assert judged(bare, {"tests": [{"stdin": "4", "stdout": "2"}], "imports": ["math", "collections"]}).value == 1.0
    own = "from __future__ import annotations\ndef gcd(*x): return 7\ndef f(n: List[int]): return gcd(n[0], 4)"
    for outputs, value in (([7], 1.0), ([2], 0.0)):  # the program's own names win, and it stays in its order
        assert judged(own, {"fn_name": "f", "inputs": [[[2]]], "outputs": outputs}).value == value
    kept = "def pow(a, b): return 5\ndef f(n: List[int]): return max(n) + pow(1, 1)"
    assert judged(kept, {"fn_name": "f", "inputs": [[[2, 1]]], "outputs": [7]}).value == 1.0


PACKED = base64.b64encode(zlib.compress(b"\x80\x04cos\nsystem\n")).decode()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"inputs": [], "outputs": []}, "holds no test"),
        ({"inputs": ["1"], "outputs": []}, "1 inputs and 0 outputs"),
        ({"inputs": ["1", "2"], "outputs": ["1"]}, "2 inputs and 1 outputs"),
        ({"inputs": "1", "outputs": "1"}, "a list of inputs"),
        ({"outputs": ["1"]}, "a list of inputs"),
        ({"inputs": ["1"], "outputs": ["1"], "fn_nmae": "f"}, "'fn_nmae'"),
        ({"inputs": [1], "outputs": ["1"]}, "the input of test 0 is 1;"),
        ({"inputs": ["1"], "outputs": [None]}, '"stdout"'),
        ({"inputs": ["x"], "outputs": ["1"], "fn_name": "f"}, "the input of test 0, one argument a line, is not JSON"),
        ({"inputs": ["1"], "outputs": ["x"], "fn_name": "f"}, "the output of test 0 is not JSON"),
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": 5}, "name is 5;"),
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": "f", "entry_point": "g"}, "'f', and the entry point is 'g'"),
        ({"inputs": ["1"], "outputs": ["1"], "assert_case": ["assert f(1)"]}, "beside inputs"),
        ({"input_output": ""}, '"input_output" of the code reference is empty'),
        ({"input_output": '{"inputs": ["1'}, '"input_output" of the code reference is not JSON'),
        ({"input_output": "{}"}, "it has nothing"),
        ('{"tests": [', "is not JSON"),
        ('{"inputs": ["1"], "inputs": ["2"], "outputs": ["1"]}', "a key twice"),
        ("[" * 100_000, "is not JSON"),
        ("3", "must be a mapping"),
        ({"tests": '["assert f(1'}, "neither JSON nor Python"),
        ({"tests": {"tests": {"tests": {"tests": {"tests": [1]}}}}}, "tests in tests"),
        ({"tests": ["assert f(1)"], "test_list": ["assert f(1)"]}, "'tests' and in 'test_list'"),
        ({"tests": [{"args": [1], "expected": 1}, {"stdin": "1", "stdout": "1"}], "entry_point": "f"}, "of one kind"),
        ({"tests": [{"stdin": "1", "stdout": "1"}, {"args": [1], "expected": 1}]}, "of one kind"),
        ([{**PAIRS[0], "testtype": "stdin"}, {**FUNCTIONAL[0], "fn_name": "f"}], "of one kind"),
        ([*PAIRS, *FUNCTIONAL], "of one kind"),
        (FUNCTIONAL, "nothing names it"),
        ([{**FUNCTIONAL[0], "testtype": "interactive"}], "'interactive'; known are function_call, functional"),
        ([{**PAIRS[0], "testtype": "stdin", "fn_name": "f"}], "names the function 'f'"),
        ([{**PAIRS[0], "expected_output": "3"}], "'expected_output'"),
        ([{"input": "1"}], '"stdout"'),
        ([{**FUNCTIONAL[0], "fn_name": name} for name in "fg"], "functions 'f' and 'g'"),
        ({"language": "python", "test_cases": []}, "holds no test"),
        ({"langauge": "c", "test_cases": PAIRS}, "'langauge'"),
        ({"langauge": "c", "test_cases": json.dumps(PAIRS)}, "'langauge'"),
        ({"verification_info": {"test_cases": {"type": "stdin", "input": ["1"], "output": ["1"]}}}, "it has input, "),
        ({"verification_info": "{'test_cases': [f(1)]}"}, "is not JSON"),
        ({"public_tests": {"input": ["1"], "output": ["1"], "fn_name": "f"}}, "'fn_name', which has no meaning"),
        ({**CONTESTS, "public_tests": None, "generated_tests": {"input": [], "output": []}}, "holds no test"),
        ({**CONTESTS, "public_tests": {"input": ["1"], "output": []}}, "public_tests has 1 inputs and 0 outputs"),
        ({**CONTESTS, "input_file": "input.txt"}, "'input.txt'"),
        ({**LIVE, "public_test_cases": json.dumps(FUNCTIONAL), "metadata": "{}"}, "nothing names it"),
        ({**LIVE, "public_test_cases": "[]", "private_test_cases": PACKED}, "a pickle, which adjudge does not open"),
        ({"test_list": []}, "holds no test"),
        ({"test": "", "entry_point": "f"}, "a source or a list"),
        ({"tests": False}, "a source or a list"),
        ({"tests": ASSERTS, "timeout": 10**5000}, "timeout"),
        ({"tests": ASSERTS, "style": 10**5000}, "the style is"),
        ({"tests": [{"args": [1], "expected": 1}], "entry_point": 10**5000}, "entry_point"),
        ({"tests": "1 2", "style": "stdio"}, "must be a list"),
        ({"tests": [{"args": [1], "expected_any": []}], "entry_point": "f"}, '"expected"'),
        ({"tests": [{"args": [1], "expected": 1}], "entry_point": []}, '"entry_point"'),
        ({"tests": ["assert f(1) == 1"], "entry_point": ["f", "g"]}, "must be a text"),
        ({"tests": ["assert f(1) == 1"], "imports": ["requests"]}, "standard library"),
        ({"tests": ["assert f(1) == 1"], "imports": "math"}, "standard library"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_reason(reference: Any, message: str) -> None:
    score = judged(ADD, reference)
    assert (score.status, score.reason) == ("failed", "gold_unparsable"), score
    assert message in score.evidence["error"], score
    assert len(score.evidence["error"]) < 600


def test_what_several_right_values_mean() -> None:
    reference = {"tests": [{"args": [4], "expected_any": [2, -2]}], "entry_point": ["root", "Solution().root"]}
    for program, value in (("2", 1.0), ("-2", 1.0), ("3", 0.0), ("[2, -2]", 0.0)):
        assert judged(f"def root(x): return {program}", reference).value == value


def test_keys_of_every_layout_are_known() -> None:
    for reference, _ in LAYOUTS.values():
        if isinstance(reference, dict) and "verification_info" not in reference:
            assert set(layouts.CODE_KEYS) & reference.keys(), reference


def test_tests_of_a_performance_task_may_have_a_layout_too() -> None:
    task = {"entry_point": "add", "baseline": ADD, "inputs": [[1, 2]], "tests": json.dumps(CALLED)}
    assert read_task(task).tests == {"tests": task["tests"], "entry_point": "add"}
    with pytest.raises(BadReferenceError, match="1 inputs and 0"):
        read_task({**task, "tests": {"inputs": ["1"], "outputs": []}})


def values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    words = "inputs input output fn_name metadata testtype type entry_point args expected stdin stdout x"
    keys = st.sampled_from([*layouts.CODE_KEYS, *words.split()])
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5))


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["functional", "stdin", "f", "1\n2", "[]", "{}", "assert f(1) == 2", json.dumps(STDIN)])
)  # fmt: skip


@given(values(LEAVES))
def test_anything_is_read_or_refused(value: Any) -> None:
    for reference in (value, json.dumps(value)):
        with contextlib.suppress(BadReferenceError):  # no other error
            assert layouts.tests_of(reference)["tests"], reference
            assert read_suite(reference).count > 0, reference


ODD: tuple[Any, ...] = (
    None,
    1,
    "",
    [],
    {},
    "x",
    [1],
    {"a": 1},
    True,
    1.5,
    "[",
    "{'a': 1}",
    b"x",
    float("nan"),
    10**5000,
    {1: 2},
)


def with_one_change(value: Any, random: Random) -> Any:
    """A copy in which one value, at any depth and inside JSON text too, is something else."""
    if isinstance(value, str) and value[:1] in ("{", "[") and random.random() < 0.7:
        with contextlib.suppress(ValueError):  # Python's own writing, and a number too long for JSON
            return json.dumps(with_one_change(json.loads(value), random), default=str)
    if isinstance(value, dict | list) and value and random.random() < 0.8:
        copy: Any = value.copy()
        at = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
        copy[at] = with_one_change(value[at], random)
        return copy
    return random.choice(ODD)


def test_rows_with_one_odd_value_are_read_or_refused() -> None:
    random, read, rows = Random(1), 0, [reference for reference, _ in LAYOUTS.values()]
    for _ in range(5_000):
        with contextlib.suppress(BadReferenceError):  # no other error
            read += read_suite(with_one_change(random.choice(rows), random)).count > 0
    assert 1_000 < read < 3_000


@given(st.sampled_from([reference for reference, _ in LAYOUTS.values()]), st.integers(0, 2000))
def test_a_text_that_ends_early_is_refused(reference: Any, end: int) -> None:
    text = reference if isinstance(reference, str) else json.dumps(reference)
    if end < len(text):
        with pytest.raises(BadReferenceError, match="not JSON"):
            layouts.tests_of(text[:end])


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=30))
def test_inputs_and_outputs_stay_together(pairs: list[tuple[str, str]]) -> None:
    inputs, outputs = (list(side) for side in zip(*pairs, strict=True))
    expected = [{"stdin": one, "stdout": other} for one, other in pairs]
    objects = [{"input": one, "output": other} for one, other in pairs]
    group = {"input": inputs, "output": outputs}
    for reference in (
        {"inputs": inputs, "outputs": outputs},
        json.dumps({"inputs": inputs, "outputs": outputs}),
        {"input_output": json.dumps({"inputs": inputs, "outputs": outputs})},
        {"test_cases": objects},
        {"public_test_cases": json.dumps(objects), "private_test_cases": None},
        {"public_tests": group, "private_tests": {"input": [], "output": []}},
        objects,
    ):
        assert layouts.tests_of(reference)["tests"] == expected


def test_huge_and_deep_references_are_read_or_refused() -> None:
    many = {"inputs": ["1 2"] * 20_000, "outputs": ["3"] * 20_000}
    assert read_suite(json.dumps(many)).count == 20_000
    deep: Any = [1]
    for _ in range(5_000):
        deep = [deep]
    for reference in (
        {"fn_name": "f", "inputs": [[deep]], "outputs": [1]},
        {"fn_name": "f", "inputs": ["[" * 50_000], "outputs": ["1"]},
        {"tests": deep},
        deep,
    ):
        assert judged(ADD, reference).reason == "gold_unparsable"


@pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")
def test_rows_of_humaneval_are_references_as_they_are() -> None:
    """The helpers that three tasks' tests call are in the row, though the prompt of a chat is not Python."""
    with gzip.open(DATA / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == 164
    for row in rows:
        suite = read_suite(row, f"Complete this function.\n{row['prompt']}")
        assert (suite.style, suite.entry_point) == ("humaneval", row["entry_point"])
    helped = [row for row in rows if row["task_id"] in ("HumanEval/32", "HumanEval/38", "HumanEval/50")]
    for row in [*helped, *rows[:10]]:
        score = judged(row["prompt"] + row["canonical_solution"], row)
        assert score.value == 1.0, (row["task_id"], score)
        assert judged(f"{row['prompt']}    return None\n", row).value == 0.0
