"""References that judge nobody, tests that need the program's process or run in it, and those that call it often."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.verifiers.code.verifier import CodeVerifier

PYTEST = {
    "tests": "import pytest\nfrom solution import square\n\n@pytest.mark.parametrize('n', [2, 3, 4])\n"
    "def test_square(n):\n    assert square(n) == n * n\n\ndef test_error():\n    with pytest.raises(TypeError):\n"
    "        square('a')\n",
    "style": "pytest",
}
RIGHT = "def square(n):\n    return n * n"
PARTLY = "def square(n):\n    return n * n if n < 4 else 0"


def judge(source: str, reference: Any, **options: Any) -> Score:
    response = f"```python\n{source}\n```"
    return CodeVerifier(**options).verify(Sample(prompt="", response=response, reference=reference))


@pytest.mark.parametrize(
    "reference",
    [
        {"tests": [{"args": [1], "expected": None}, {"args": [2], "expected": None}], "entry_point": "f"},
        {"tests": [{"args": [1], "expected_any": [None, 1]}], "entry_point": "f"},
        {"tests": ["assert f(1) is None", "assert f(2) == None"]},
        {"tests": "def check(candidate):\n    assert candidate(1) is None\n", "style": "humaneval", "entry_point": "f"},
        {"tests": [{"stdin": "1\n", "stdout": "\n"}]},
    ],
)
def test_a_reference_that_a_program_of_nothing_passes_judges_nobody(reference: Any) -> None:
    for source in ("def f(x): pass", "def f(x): return x"):
        score = judge(source, reference)
        assert (score.status, score.reason) == ("failed", "gold_unparsable")
        assert "expects nothing" in score.evidence["error"]


def test_tests_that_their_own_solution_does_not_pass_judge_nobody() -> None:
    reference = {**PYTEST, "solution": "def square(n):\n    return n * n if n < 4 else 0"}
    assert judge("def square(n):\n    return 4", reference).status == "failed"
    assert judge("def square(n):\n    return 4", reference).status == "failed"  # this is remembered
    assert judge(RIGHT, reference).value == 1.0
    assert judge("def square(n):\n    return 4", {**PYTEST, "solution": RIGHT}).value == 0.0


PATCHED = {
    "tests": "import time\nfrom unittest.mock import patch\nfrom solution import now\n\n"
    "@patch('time.time', return_value=7.0)\ndef test_now(clock):\n    assert now() == 7\n"
    "    clock.assert_called_once_with()\n",
    "style": "pytest",
}
NOW = "import time\n\ndef now():\n    return int(time.time())"


@pytest.mark.parametrize(
    "reference",
    [
        PATCHED,
        {**PATCHED, "solution": NOW},
        {"tests": "def test_h(capsys):\n    now()\n    assert capsys.readouterr().out == 'hi\\n'", "style": "pytest"},
        {"tests": "import asyncio\ndef test_h():\n    assert asyncio.run(now()) == 'hi'", "style": "pytest"},
    ],
    ids=["patch", "with its solution", "capsys", "async"],
)
def test_what_reaches_into_the_candidates_process_is_no_zero(reference: Any) -> None:
    other = "async def now(): return 'hi'" if "asyncio" in str(reference) else "def now(): print('hi')"
    score = judge(NOW if "patch" in str(reference) else other, reference)
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert judge("def now(:", reference).status == ("failed" if "solution" in reference else "scored")


def test_tests_that_share_a_process_with_a_trusted_program_may_patch_it() -> None:
    score = judge(NOW, PATCHED, shared=True)
    assert (score.value, score.evidence["shared"]) == (1.0, True)
    assert judge("def now(): return 7", PATCHED, shared=True).value == 0.0
    assert judge(RIGHT, PYTEST, shared=True).value == 1.0
    partly = judge(PARTLY, PYTEST, shared=True, credit="fraction")
    assert (partly.value, partly.reason) == (0.75, "wrong")
    assert judge("while True: pass", PATCHED, shared=True, total_seconds=1.0).reason == "candidate_timeout"
    for early in (
        "import os; os._exit(3)",
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "raise KeyboardInterrupt",
    ):
        assert judge(early, PATCHED, shared=True).value == 0.0, early
    interrupted = "def square(n):\n    if n > 3: raise KeyboardInterrupt\n    return n * n"
    assert judge(interrupted, PYTEST, shared=True).value == 0.0
    late = "import atexit\natexit.register(print, 'late')\ndef now(): return 7"
    assert (judge(late, PATCHED, shared=True).status, judge("def now(): return 8", PATCHED, shared=True).value) == (
        "scored",
        0,
    )
    skipped = {**PATCHED, "tests": "import pytest\n@pytest.mark.skip\ndef test_now(): pass"}
    assert judge(NOW, skipped, shared=True).status == "failed"
    assert judge("def now(:", PATCHED, shared=True).value == 0.0
    test = "def test_a(self):\n        self.assertEqual(plus(np.ones(2)), 2)"
    rows = f"import unittest\nclass T(unittest.TestCase):\n    {test}"
    source = "import numpy as np\ndef plus(x): return int(np.sum(x))"
    assert judge(source, {"test": rows, "entry_point": "plus"}, shared=True).value == 1.0


def test_modules_that_the_task_imports_are_there_for_its_tests() -> None:
    tests = "class TestIt:\n    def test_a(self):\n        assert plus(st.mean([1, 3]), 1) == 3"
    row = {"test": tests, "entry_point": "plus", "code_prompt": "import statistics as st\ndef plus(a, b):\n"}
    assert judge("def plus(a, b): return a + b", {**row, "canonical_solution": "    return a + b\n"}).value == 1.0


MANY = "for n in range(10_000):\n    assert square([n, n + 1])[0] == n"


@pytest.mark.parametrize(
    ("body", "value"), [("return a", 1.0), ("import time; time.sleep(0.1); return a", 0.0)], ids=["right", "slow"]
)
def test_getting_across_to_the_program_is_not_its_time(body: str, value: float) -> None:
    score = judge(f"def square(a):\n    {body}", {"tests": [MANY], "timeout": 1.0})
    assert (score.value, score.reason) == (value, "" if value else "candidate_timeout")
