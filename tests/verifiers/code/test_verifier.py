"""The code verifier on every style of tests and every language, and what it says about each way to fail."""

from __future__ import annotations

import platform
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.code.languages import missing
from adjudge.verifiers.code.sandboxed import environment
from adjudge.verifiers.code.verifier import CodeVerifier

CALLS = {"tests": [{"args": [n], "expected": n * n} for n in (2, 3, 4)], "entry_point": "square"}
ASSERTS = {"tests": ["assert square(2) == 4", "assert square(3) == 9", "assert square(4) == 16"]}
RUN = {"tests": [f"n = {n}\nassert square(n) == {n * n}" for n in (2, 3, 4)]}  # not read as claims
CHECK = {
    "tests": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n",
    "style": "humaneval",
    "entry_point": "square",
}
PYTEST = {
    "tests": "import pytest\nfrom solution import square\n\n@pytest.mark.parametrize('n', [2, 3, 4])\n"
    "def test_square(n):\n    assert square(n) == n * n\n\ndef test_error():\n    with pytest.raises(TypeError):\n"
    "        square('a')\n",
    "style": "pytest",
}
STDIO = {"tests": [{"stdin": f"{n}\n", "stdout": f"{n * n}\n"} for n in (2, 3, 4)]}
RIGHT = "def square(n):\n    return n * n"
PARTLY = "def square(n):\n    return n * n if n < 4 else 0"


def judge(source: str, reference: Any, **options: Any) -> Score:
    return CodeVerifier(**options).verify(Sample(prompt="", response=f"```python\n{source}\n```", reference=reference))


STYLES = {"calls": CALLS, "asserts": ASSERTS, "run": RUN}


@pytest.mark.parametrize("reference", [*STYLES.values(), CHECK, PYTEST], ids=[*STYLES, "check", "pytest"])
def test_styles(reference: Any) -> None:
    assert judge(RIGHT, reference).value == 1.0
    wrong = judge("def square(n):\n    return 4", reference)
    assert (wrong.value, wrong.reason) == (0.0, "wrong")
    assert wrong.evidence["first_failure"]["test"] == (0 if reference is CHECK else 1)


@pytest.mark.parametrize(
    "use", ["f(2) + 1 == 5", "f + 1 == 5", "1 / f == 5", "-f == 5", "f[0] == 5", "f.g() == 5", "f < 5"]
)
@pytest.mark.parametrize("style", ["assert", "pytest"])
def test_an_exception_in_place_of_a_function_does_not_make_the_tests_unreadable(style: str, use: str) -> None:
    test = f"assert {use}" if style == "assert" else f"from solution import f\n\ndef test_f():\n    assert {use}\n"
    reference = {"tests": test, "style": "pytest"} if style == "pytest" else {"tests": [f"n = 1\n{test}"]}
    score = judge("class f(Exception): pass", reference)
    assert (score.value, score.reason) == (0.0, "wrong")


@pytest.mark.parametrize("use", ["f + 1 == 5", "1 + f == 5", "1 / f == 5", "f < 5", "5 > f", "2 ** f == 8"])
def test_a_function_in_place_of_a_number_does_not_make_the_tests_unreadable(use: str) -> None:
    score = judge(
        "def f(): pass", {"tests": f"from solution import f\n\ndef test_f():\n    assert {use}\n", "style": "pytest"}
    )
    assert (score.value, score.reason) == (0.0, "wrong")


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit(0)"])
def test_who_ends_pytest_while_it_reads_the_tests_has_failed_them(error: str) -> None:
    tests = "from solution import f\n\nFIRST = f()\n\ndef test_f():\n    assert FIRST\n"
    score = judge(f"def f(): raise {error}", {"tests": tests, "style": "pytest"})
    assert (score.status, score.value, score.reason) == ("scored", 0.0, "wrong")


SHORT = """
class Short(Exception):
    def __init__(self, need, have=0):
        super().__init__(f"need {need}, have {have}")
        self.need = need
class Other(Exception):
    def __new__(cls, *values): return Short(*values)
"""


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ("assert Short(1, have=2).need == 1", 1.0),
        ("assert str(Short(1, 2)) == 'need 1, have 2'", 1.0),
        ("assert Short(1, 2).args == ('need 1, have 2',)", 1.0),
        ("try:\n    raise Short(1)\nexcept Short as error:\n    assert error.need == 1", 1.0),
        ("assert Short(1, 2).need == 2", 0.0),
        ("assert Short()", 0.0),
        ("assert Other(1).need == 1", 0.0),
    ],
)
@pytest.mark.parametrize("style", ["asserts", "pytest"])
def test_an_exception_that_the_tests_make_is_as_its_class_makes_it(test: str, value: float, style: str) -> None:
    if style == "pytest":
        body = test.replace("\n", "\n    ")
        test = f"from solution import Short, Other\n\ndef test_a():\n    {body}\n"
    tests: object = test if style == "pytest" else [test]
    assert judge(SHORT, {"tests": tests, "style": style}).value == value


def test_an_exception_can_be_expected_by_a_class_above_it() -> None:
    source = "class Base(ValueError): pass\nclass Sub(Base): pass\ndef f(): raise Sub('no')\ndef g(): raise ValueError"
    for name, function, value in (("Base", "f", 1.0), ("Sub", "f", 1.0), ("ValueError", "f", 1.0), ("Base", "g", 0.0)):
        test = f"import pytest\nfrom solution import *\n\ndef test():\n    with pytest.raises({name}):\n"
        assert judge(source, {"tests": f"{test}        {function}()\n", "style": "pytest"}).value == value, (
            name,
            function,
        )


@pytest.mark.parametrize(
    ("source", "stage", "reason"),
    [
        ("def square(n:", "parse", "candidate_error"),
        ("import no_such_module", "run", "candidate_error"),
        ("x = 1", "run", "no_answer"),
        ("raise SystemExit(0)", "run", "candidate_error"),
        ("def square(n):\n    return 1 / 0", "test", "candidate_error"),
        ("def square(n):\n    while True: pass", "test", "candidate_timeout"),
        ("def square(n):\n    return bytearray(1 << 40)", "test", "candidate_memory"),
        ("def square(n):\n    return n", "test", "wrong"),
    ],
)
@pytest.mark.parametrize("reference", STYLES.values(), ids=STYLES)
def test_stages_and_reasons(source: str, stage: str, reason: str, reference: Any) -> None:
    score = judge(source, reference, seconds=0.6)
    assert (score.value, score.evidence["stage"], score.reason) == (0.0, stage, reason), score


@pytest.mark.parametrize(
    ("credit", "values"),
    [("all", [1, 0, 0, 0]), ("fraction", [1, 2 / 3, 0, 0]), ("staged", [1, 2 / 3 * 0.7 + 0.2, 0.1, 0])],
)
@pytest.mark.parametrize("reference", STYLES.values(), ids=STYLES)
def test_partial_credit(credit: Any, values: list[float], reference: Any) -> None:
    sources = [RIGHT, PARTLY, "import no_such_module", "def square(n:"]
    assert [judge(source, reference, credit=credit).value for source in sources] == pytest.approx(values)


def test_a_lost_process_costs_one_test() -> None:
    source = "import os\ndef square(n):\n    if n == 3: os._exit(0)\n    return n * n"
    for reference in STYLES.values():
        score = judge(source, reference, credit="fraction")
        assert score.value == pytest.approx(2 / 3)
        assert score.evidence["tests"] == [True, False, True]
    score = judge(source, PYTEST, credit="fraction")
    assert (score.value, score.evidence["tests"]) == (3 / 4, [True, False, True, True])
    score = judge(source, PYTEST)
    assert (score.value, score.evidence["passed"], score.evidence["total"]) == (0.0, 1, 4)


MARKED = """import pytest
from solution import square

@pytest.mark.skip
def test_never(): assert False

@pytest.mark.skipif("True")
def test_not_here(): assert False

@pytest.mark.xfail
def test_known(): assert square(2) == 5

def test_it(): assert square(2) == 4
"""


@pytest.mark.parametrize(
    ("tests", "source", "value", "passed", "total"),
    [
        (MARKED, RIGHT, 1.0, 1, 1),
        (MARKED, "def square(n):\n    return n", 0.0, 0, 1),
        ("import pytest, solution\n@pytest.mark.skipif(solution.square(1) != 1)\n"
         "def test_it(): assert solution.square(2) == 4", "def square(n):\n    return 0", 0.0, 0, 1),
        ("import pytest, solution\ndef test_it():\n    if solution.square(1) != 1: pytest.skip()\n"
         "    assert solution.square(2) == 4", "def square(n):\n    return 0", 0.0, 0, 1),
    ],
    ids=["marks count neither way", "wrong beside marks", "a mark the candidate decides", "a skip it decides"],
)  # fmt: skip
def test_skipped_tests(tests: str, source: str, value: float, passed: int, total: int) -> None:
    score = judge(source, {"tests": tests, "style": "pytest"})
    assert (score.status, score.value) == ("scored", value), score
    assert (score.evidence["passed"], score.evidence["total"]) == (passed, total)


def test_a_file_whose_tests_are_all_skipped_proves_nothing() -> None:
    tests = "import pytest\n@pytest.mark.skip\ndef test_never(): pass"
    score = judge(RIGHT, {"tests": tests, "style": "pytest"})
    assert (score.status, score.reason) == ("failed", "gold_unparsable")


PROGRAMS = {
    "python": "print(int(input()) ** 2)",
    "c": '#include <stdio.h>\nint main(void) { long n; scanf("%ld", &n); printf("%ld\\n", n * n); return 0; }',
    "cpp": "#include <iostream>\nint main() { long n; std::cin >> n; std::cout << n * n; }",
    "rust": "use std::io;\nfn main() { let mut s = String::new(); io::stdin().read_line(&mut s).unwrap();\n"
    'let n: i64 = s.trim().parse().unwrap(); println!("{}", n * n); }',
    "go": 'package main\nimport "fmt"\nfunc main() { var n int; fmt.Scan(&n); fmt.Println(n * n) }',
    "java": "package a.b;\nimport java.util.*;\nclass Other {}\n"
    "public final class Square { public static void main(String[] a) {\n"
    "long n = new Scanner(System.in).nextLong(); System.out.println(n * n); } }",
    "javascript": "const n = parseInt(require('fs').readFileSync('/dev/stdin', 'utf8'));\nconsole.log(n * n);",
    "bash": "read n\necho $((n * n))",
}


@pytest.mark.parametrize(
    "source",
    [
        "public class M { static int f() { return 3; } public static void main(String... a) { System.out.print(f());}}",
        "class Lone { public static void main(String... a) { System.out.println(3); } }",
        "class A { } class B { public static void main(String[] a) { System.out.println(3); } } public interface C { }",
        '/* package p; public class Z */ package q; // class Y\npublic class X { static String s = "class W {"; '
        "static class V { } public static void main(String[] a) { System.out.println(3); } }",
        "public enum E { ONE; public static void main(String[] a) { System.out.println(3); } }",
    ],
)
def test_names_of_java_classes(source: str) -> None:
    if lack := missing("java"):
        pytest.skip(lack)
    reference = {"tests": [{"stdin": "", "stdout": "3\n"}], "language": "java"}
    score = CodeVerifier(seconds=20.0).verify(
        Sample(prompt="", response=f"```java\n{source}\n```", reference=reference)
    )
    assert score.value == 1.0, score


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_contest_defines_online_judge(language: str) -> None:
    if lack := missing(language):
        pytest.skip(lack)
    read = '#ifndef ONLINE_JUDGE\nfreopen("input.txt", "r", stdin);\n#endif\n'
    source = f'#include <stdio.h>\nint main(void) {{\n{read}int n; scanf("%d", &n); printf("%d", n); return 0; }}'
    assert judge(source, {"tests": [{"stdin": "3\n", "stdout": "3\n"}], "language": language}).value == 1.0


@pytest.mark.parametrize("language", sorted(PROGRAMS))
def test_languages(language: str) -> None:
    if language != "python" and (lack := missing(language)):
        pytest.skip(lack)
    reference = {**STDIO, "language": language}
    verifier = CodeVerifier(seconds=20.0, credit="staged")
    right = PROGRAMS[language]
    wrong = right.replace("n * n", "n + n").replace("**", "*")
    samples = [Sample(prompt="", response=text, reference=reference) for text in (right, wrong)]
    scores = [verifier.verify(sample) for sample in samples]
    assert scores[0].value == 1.0, scores[0]
    assert scores[1].value == pytest.approx(0.2 + 0.7 / 3), scores[1]
    assert scores[1].reason == "wrong"
    broken = verifier.verify(Sample(prompt="", response=f"{right}\n)(", reference=reference))
    assert broken.value is not None
    assert broken.value < 0.2 or language in ("bash", "javascript")


def test_tests_that_never_end_are_the_candidates_fault_only_if_they_asked_it() -> None:
    right = "assert square(2) == 4"
    endless = judge(RIGHT, {"tests": ["while True: pass", right]}, seconds=0.6)
    assert (endless.status, endless.reason) == ("failed", "gold_unparsable")
    asked = judge(RIGHT, {"tests": ["while square(2) == 4: pass", right]}, seconds=0.6, total_seconds=3.0)
    assert (asked.value, asked.reason) == (0.0, "candidate_timeout")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (None, "tests"),
        ("f(1) is 1", "tests"),
        ({"tests": []}, "not empty"),
        ({"tests": [{"args": [1]}], "entry_point": "f"}, "expected"),
        ({"tests": [{"args": [1], "expected": 1}]}, "entry_point"),
        ({"tests": [{"args": [1], "expected": 1}], "entry_point": "Solution(3).f"}, "Solution(3).f"),
        ({"tests": [{"args": [1], "expected": 1}], "entry_point": "a.b.c"}, "a.b.c"),
        ({"tests": ["assert f(1) == 1"], "entry_point": "Solution().f"}, "take a function"),
        ({"tests": [{"stdin": "1"}]}, "stdout"),
        ({"tests": ["assert f(1) =="]}, "not Python"),
        ({"tests": ["assert 1 == 1"]}, "entry_point"),
        ({"tests": "def check(c): pass", "style": "humaneval"}, "entry_point"),
        ({"tests": "def chek(c): pass", "style": "humaneval", "entry_point": "f"}, "no function `check`"),
        ({"tests": ["assert f(1) == g(1)"], "entry_point": "f"}, "'g'"),
        ({"tests": [{"args": [object()], "expected": 1}], "entry_point": "f"}, "cannot be sent"),
        (
            {"tests": [{"args": [1], "expected": object()}], "entry_point": "f"},
            "expected value of test 0 cannot be sent",
        ),
        ({"tests": [{"args": [1], "expected_any": []}], "entry_point": "f"}, "[] for 'expected_any'"),
        ({"tests": [{"args": 2, "expected": 1}], "entry_point": "f"}, "2 for 'args'"),
        ({"tests": [{"stdin": "1", "stdout": 6}]}, '6 for "stdout"'),
        ({"tests": [{"stdin": "\ud800", "stdout": "6"}]}, "lone surrogate"),
        ({"tests": ["assert f(2) == LIMIT"]}, "'LIMIT'"),
        ({"tests": ["assert f()"], "language": "cobol"}, "cobol"),
        ({"tests": ["assert f()"], "language": "c"}, "for Python"),
        ({"tests": ["assert f()"], "timeout": -1}, "timeout"),
        ({"tests": ["assert f()"], "tset": 1}, "tset"),
        ({"tests": ["assert f()"], "style": "nose"}, "nose"),
    ],
)
def test_bad_references_fail_whatever_the_response(reference: Any, message: str) -> None:
    for response in ("", RIGHT):
        score = CodeVerifier().verify(Sample(prompt="", response=response, reference=reference))
        assert (score.status, score.reason) == ("failed", "gold_unparsable")
        assert message in score.evidence["error"]


@pytest.mark.parametrize(
    "reference",
    [
        {**CHECK, "tests": "import no_such_module\ndef check(c):\n    assert c(2) == 4\n"},
        {**CHECK, "tests": "import os\ndef check(c):\n    os._exit(0)\n"},
        {"tests": "def helper():\n    pass\n", "style": "pytest"},
        {"tests": "import no_such_module\nfrom solution import square\ndef test(): assert square(2) == 4",
         "style": "pytest"},
        {**CALLS, "solution": "def square(n):\n    return 5"},
    ],
    ids=["import", "exit", "no-test", "import-in-pytest", "wrong-solution"],
)  # fmt: skip
def test_tests_that_fail_by_themselves_are_our_fault(reference: Any) -> None:
    score = judge(f"LIMIT = 3\n{RIGHT}", reference, slowdown=5.0)
    assert (score.status, score.reason) == ("failed", "gold_unparsable"), score


def test_helpers_of_the_tests_come_from_the_task_and_not_from_the_candidate() -> None:
    tests = "def check(candidate):\n    assert twice(candidate(3)) == 18\n"
    reference = {"tests": tests, "style": "humaneval", "entry_point": "square"}
    cheat = "def twice(x):\n    return 18\ndef square(n):\n    return 0"
    prompt = "def twice(x):\n    return 2 * x\n\ndef square(n):\n    '''Square n.'''\n"
    for source, value in ((cheat, 0.0), (RIGHT, 1.0)):
        sample = Sample(prompt=prompt, response=f"```python\n{source}\n```", reference=reference)
        assert CodeVerifier().verify(sample).value == value


def test_limits_scale_with_the_reference_solution() -> None:
    reference = {**CALLS, "solution": RIGHT}
    slow = "import time\ndef square(n):\n    time.sleep(0.5)\n    return n * n"
    assert judge(slow, reference).value == 1.0
    score = judge(slow, reference, slowdown=2.0, min_seconds=0.1)
    assert (score.value, score.reason) == (0.0, "candidate_timeout")


@pytest.mark.parametrize("reference", [*STYLES.values(), STDIO], ids=[*STYLES, "stdio"])
def test_all_tests_share_a_budget(reference: Any) -> None:
    slow = "import time\ndef square(n):\n    time.sleep(0.4)\n    return n * n\n"
    if reference is STDIO:
        slow += "print(square(int(input())))"
    score = judge(slow, reference, total_seconds=0.6, credit="fraction")
    assert score.reason == "candidate_timeout"
    assert score.value == pytest.approx(1 / 3 if reference is not STDIO else 2 / 3)


def test_a_candidate_that_changes_its_arguments_changes_no_reference() -> None:
    reference = {"tests": [{"args": [[3, 1, 2]], "expected": [1, 2, 3]}], "entry_point": "f"}
    for _ in range(2):
        assert judge("def f(items):\n    items.sort()\n    return items", reference).value == 1.0
        assert judge("def f(items):\n    items[:] = [1, 2, 3]", reference).reason == "wrong"
        assert judge("def f(items):\n    return items", reference).reason == "wrong"
    assert reference["tests"] == [{"args": [[3, 1, 2]], "expected": [1, 2, 3]}]


def test_a_method_is_named_with_or_without_the_instance() -> None:
    tests = [{"args": [[3, 1]], "kwargs": {"most": 1}, "expected": [1]}]
    source = "class Solution:\n    def least(self, items, most):\n        items.sort()\n        return items[:most]"
    for entry in ("Solution().least", "Solution.least"):
        assert judge(source, {"tests": tests, "entry_point": entry}).value == 1.0
    for name, reason in (("Solution().most", "candidate_error"), ("Answer().least", "no_answer")):
        score = judge(source, {"tests": tests, "entry_point": name})
        assert (score.value, score.reason) == (0.0, reason), score


def test_a_failed_claim_says_where_and_what_came() -> None:
    tests = "def check(candidate):\n    assert candidate(2) == 4, 'two'\n    assert candidate(3) == 9\n"
    failure = judge("def square(n):\n    return 4", {**CHECK, "tests": tests}).evidence["first_failure"]
    assert (failure["error"], failure["actual"], failure["source"]) == ("line 3: AssertionError", "4", tests)


def test_what_tests_may_do_with_the_candidate() -> None:
    source = (
        "class Cart:\n    def __init__(self): self.items = {}\n    def put(self, name, n=1): self.items[name] = n\n"
        "    def __len__(self): return len(self.items)\n    def __eq__(self, o): return self.items == o.items\n"
        "    def __enter__(self): return self\n    def __exit__(self, *e): return False\n"
        "class Empty(ValueError): pass\n"
        "def sort(items):\n    items.sort()\n    return items\n"
        "def apply(f, items):\n    return [f(x) for x in items]\n"
        "def count():\n    yield from range(3)\n"
        "def fail():\n    raise Empty('none left')\n"
        "def walk(node):\n    return node.value + (walk(node.next) if node.next else 0)\n"
    )
    tests = [
        "c = Cart(); c.put('a', n=2)\nassert c.items == {'a': 2} and len(c) == 1",
        "d = Cart(); d.put('a', 2)\nassert c == d and not c != d",
        "with Cart() as e:\n    assert len(e) == 0",
        "x = [3, 1, 2]\nassert sort(x) is x and x == [1, 2, 3]",
        "assert apply(lambda v: v + 1, [1, 2]) == [2, 3]",
        "assert list(count()) == [0, 1, 2]",
        "try:\n    fail()\n    assert False\nexcept Empty as error:\n"
        "    assert isinstance(error, ValueError) and str(error) == 'none left'",
        "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next\n"
        "assert walk(Node(1, Node(2))) == 3",
    ]  # fmt: skip
    score = judge(source, {"tests": tests}, credit="fraction")
    assert score.value == 1.0, score


def test_a_checker_judges_outputs_of_which_several_are_right() -> None:
    checker = "def check(stdin, expected, printed):\n    return sum(map(int, printed.split())) == int(stdin)\n"
    reference = {"tests": [{"stdin": "7\n"}], "checker": checker}
    assert judge("print(3, 4)", reference).value == 1.0
    assert judge("print(3, 5)", reference).value == 0.0
    assert judge("print('x')", reference).value == 0.0
    broken = {"tests": [{"stdin": "7\n"}], "checker": "def check(*a): return None"}
    assert judge("print(3, 4)", broken).status == "failed"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("credit", "some"), ("block", "second"), ("seconds", 0), ("seconds", float("nan")), ("memory_mb", 1),
        ("processes", 0), ("tolerance", -1), ("isolation", "docker"), ("output", "words"), ("slowdown", True),
    ],
)  # fmt: skip
def test_options_are_checked(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=option):
        CodeVerifier(**{option: value})


def test_measurements_are_told_on_request() -> None:
    evidence = judge(RIGHT, CALLS, measured=True).evidence
    assert len(evidence["seconds"]) == 3
    assert evidence["memory_mb"] > 1
    assert "seconds" not in judge(RIGHT, CALLS).evidence


def test_a_stand_in_may_end_an_iteration_of_its_own() -> None:
    tests = ["g = count()\nassert next(g) == 0", "try:\n    next(g)\n    assert False\nexcept StopIteration:\n    pass"]
    assert judge("def count():\n    yield 0", {"tests": tests}).value == 1.0


def test_the_fingerprint_knows_what_programs_may_import(monkeypatch: pytest.MonkeyPatch) -> None:
    before = CodeVerifier().fingerprint
    assert before == CodeVerifier().fingerprint != CodeVerifier(credit="fraction").fingerprint
    found = environment()
    assert f"python {platform.python_implementation()} {platform.python_version()}" in found
    assert f"pytest {pytest.__version__}" in found
    monkeypatch.setattr("adjudge.verifiers.code.sandboxed.environment", lambda: f"{found}; numpy 99")
    assert CodeVerifier().fingerprint != before


def test_it_conforms() -> None:
    responses = [RIGHT, PARTLY, f"```python\n{RIGHT}\n```", "", "def square(n:", "<think>never finished"]
    samples = [Sample(prompt="", response=text, reference=CALLS, id=str(at)) for at, text in enumerate(responses)]
    check_scorer(CodeVerifier(seconds=1.0, total_seconds=10.0), samples).raise_for_failures()


HUMANEVAL = {
    "test": "\n\nMETADATA = {\n    'author': 'jt'\n}\n\n\ndef check(candidate):\n    assert candidate([3, 1]) == 1\n"
    "    assert candidate([2]) == 2\n",
    "entry_point": "least",
}
BIGCODEBENCH = {
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test_it(self):\n"
    "        self.assertEqual(least([3, 1]), 1)\n",
    "entry_point": "least",
}
LEAST = (
    'from typing import List\n\n\ndef least(numbers: List[int]) -> int:\n    """ The least of the numbers.\n    """\n'
)
INSTRUCT = f"Find the least number. Start with:\n```\n{LEAST}```"


@pytest.mark.parametrize(
    "prompt", [LEAST, INSTRUCT, [{"role": "user", "content": INSTRUCT}]], ids=["", "fence", "chat"]
)
@pytest.mark.parametrize("form", ["{}", "```python\n{}```", "The body is:\n\n```python\n{}```\nThat is all."])
@pytest.mark.parametrize("reference", [HUMANEVAL, BIGCODEBENCH], ids=["HumanEval", "BigCodeBench"])
def test_a_body_completes_the_function_of_the_prompt(reference: Any, form: str, prompt: Any) -> None:
    bodies = {
        "    return min(numbers)\n": (1.0, ""),
        "    return max(numbers)\n": (0.0, "wrong"),
        "    pass\n": (0.0, "wrong"),
        "    pass\n\nleast = max\n": (0.0, "wrong"),
        "    pass\n\ndef check(candidate):\n    pass\n": (0.0, "wrong"),
        "def least(numbers):\n    return min(numbers)\n": (1.0, ""),
        "def least(numbers: List[int]):\n    return min(numbers)\n": (1.0, ""),
        "def least(numbers: Set[int]):\n    return min(numbers)\n": (0.0, "candidate_error"),
        "def most(numbers):\n    return max(numbers)\n": (0.0, "no_answer"),
    }
    for body, verdict in bodies.items():
        sample = Sample(prompt=prompt, response=form.format(body), reference=reference)
        score = CodeVerifier().verify(sample)
        assert (score.value, score.reason) == verdict, (body, score)


def test_a_body_pays_nothing_where_the_prompt_has_one() -> None:
    prompt = f"Make this faster:\n\n```python\n{LEAST}    return min(numbers)\n```"
    score = CodeVerifier().verify(Sample(prompt=prompt, response="    pass\n", reference=HUMANEVAL))
    assert (score.value, score.reason) == (0.0, "candidate_error")
