"""Claims: which tests are read as data, and that each says of an answer what its assert says."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings
from collections import Counter, OrderedDict
from typing import Any

import pytest

from adjudge.verifiers.code.claims import Target, read_claims

ASSERTS = (
    "assert f() == 4",
    "assert 4 == f(), 'four'",
    "assert f() != 4",
    "assert f() == [1, (2, {'a': None}), {3}]",
    "assert f() == (1, 2)",
    "assert f() == -0.5",
    "assert f() == 10**9 + 7",
    "assert f() == 1 + 2j",
    "assert f() is None",
    "assert f() is not None",
    "assert f() is True",
    "assert f()",
    "assert not f()",
    "assert abs(f() - 4) < 1e-6",
    "assert abs(4.5 - f()) <= 0.5",
)
ANSWERS: tuple[Any, ...] = (
    4, 4.0, 4.5, 5, 4 + 5e-7, True, False, None, 0, -0.5, 10**9 + 7, 1 + 2j, math.nan, math.inf, 10**400, "4", "", b"4",
    [], [1, (2, {"a": None}), {3}], [1, [2, {"a": None}], {3}], (1, 2), [1, 2], {1, 2}, {}, OrderedDict(a=1),
    Counter("aab"), decimal.Decimal(4), decimal.Decimal("sNaN"), datetime.date(2024, 2, 29), range(3), ...,
)  # fmt: skip


def passes(source: str, answer: Any) -> bool:
    try:
        exec(compile(source, "assert", "exec"), {"f": lambda: answer})
    except (AssertionError, TypeError, ValueError, ArithmeticError):
        return False
    return True


@pytest.mark.parametrize("source", ASSERTS)
def test_a_claim_holds_exactly_when_its_assert_passes(source: str) -> None:
    ((claim,),) = read_claims([source], ["f"])
    assert [claim.holds(answer) for answer in ANSWERS] == [passes(source, answer) for answer in ANSWERS]
    assert len({claim.holds(answer) for answer in ANSWERS}) == 2  # it tells answers apart


def test_arrays_are_compared_as_in_an_assert() -> None:
    numpy = pytest.importorskip("numpy")
    answers = [
        numpy.float64(4),
        numpy.int64(4),
        numpy.bool_(True),
        numpy.array([4]),
        numpy.array([4, 4]),
        numpy.array([]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the truth of an empty array
        for source in ASSERTS:
            ((claim,),) = read_claims([source], ["f"])
            assert [claim.holds(answer) for answer in answers] == [passes(source, answer) for answer in answers], source
    ((claim,),) = read_claims(["assert not f()"], ["f"])
    assert not claim.holds(answers[-1])  # no exception, either, where warnings are errors, as they are here


def test_what_is_asked() -> None:
    tests = [
        '"""About f."""\nassert f(1, [-2], most={"a": (3,)}) == 4, "four"\nassert True\nassert not g()',
        "assert Solution().go(x=1) is None",
    ]
    first, second = read_claims(tests, ["f", "g", "Solution"])
    assert [(claim.target, claim.args, claim.kwargs, claim.line, claim.message) for claim in (*first, *second)] == [
        (Target("f"), (1, [-2]), {"most": {"a": (3,)}}, 2, "four"),
        (Target("g"), (), {}, 4, ""),
        (Target("Solution", "go"), (), {"x": 1}, 1, ""),
    ]
    check = "METADATA = {'author': 'x'}\n\ndef check(candidate):\n    '''Says.'''\n    assert candidate(2) == f(3)\n"
    assert read_claims([check], ["f"], "f") == ()
    ((claim,),) = read_claims([check.replace("f(3)", "3")], ["f"], "f")
    assert (claim.target, claim.args, claim.value) == (Target("f"), (2,), 3)


@pytest.mark.parametrize(
    "source",
    [
        "x = 2\nassert f(x) == 4",
        "f = 2\nassert f(1) == 4",
        "abs = 3\nassert abs(f(1) - 2) < 3",
        "assert f(g(1)) == 4",
        "assert g(1) == 4",
        "assert f(*[1]) == 4",
        "assert f(**{'a': 1}) == 4",
        "assert f(1) == f(2)",
        "assert 1 < f(1) < 4",
        "assert f(1) is 4",
        "assert f(1) is (1, 2)",
        "assert f(1) < 4",
        "assert f(1) in [4]",
        "assert f(1) == 4 and f(2) == 5",
        "assert (x := f(1)) == 4",
        "assert f(1)[0] == 4",
        "assert f(1).g() == 4",
        "assert Solution(3).go() == 4",
        "assert f(1) == 9**9**9",
        "assert f(1) == 2**-1",
        "assert f(1) == 10**99999",
        "assert f(1) == 1 / 2",
        "assert f(1) == {[1]}",
        "assert f(...) == 4",
        "assert f(1) == [4] * 3",
        "assert f(1) == f'{4}'",
        "assert abs(f(1) - 'a') < 4",
        "assert abs(f(1)) < 4",
        "assert math.isclose(f(1), 4)",
        "for n in [1]:\n    assert f(n) == 4",
        "import math\nassert f(1) == 4",
        "f(1)\nassert f(1) == 4",
        "assert True",
        "pass",
    ],
)
def test_what_is_no_claim_is_left_to_be_executed(source: str) -> None:
    assert read_claims([source], ["f", "Solution"]) == ()
    assert read_claims(["assert f(1) == 4", source], ["f", "Solution"]) == ()


@pytest.mark.parametrize(
    "head",
    [
        "def check(candidate, more=1):",
        "def check(*candidate):",
        "@trace\ndef check(candidate):",
        "def helper():\n    pass\ndef check(candidate):",
        "x = print()\ndef check(candidate):",
        "async def check(candidate):",
    ],
)
def test_a_check_function_with_more_to_it_is_executed(head: str) -> None:
    assert read_claims([f"{head}\n    assert candidate(1) == 4"], ["f"], "f") == ()
    assert read_claims(["def check(candidate):\n    assert candidate(1) == 4"], ["f"], "f") != ()
