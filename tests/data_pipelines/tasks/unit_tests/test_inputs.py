"""Where inputs come from: known tests, examples, types, changes, and a model's program."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.tasks.unit_test_inputs import (
    call_inputs,
    calls_of_types,
    mutated_calls,
    stdin_inputs,
    written_inputs,
)
from adjudge.data_pipelines.tasks.unit_test_problems import Call, Problem, distinct_programs, known_calls, known_stdin

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 99) | st.floats(0, 9) | st.text("abc ", max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text("ab"), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "tests",
    [
        "def check(candidate):\n    assert candidate([1, 2], k=3) == 4\n    assert candidate((1,)) == [5]\n",
        ["assert f([1, 2], k=3) == 4", "assert f((1,)) == [5]"],
        [{"tests": ["assert f([1, 2], k=3) == 4"]}, {"tests": ["assert set(f((1,))) == {5}"]}],
        "assert f([1, 2], k=3) == 4\nthis is not Python\nassert f((1,)) == 5",
    ],
)
def test_calls_are_read_from_every_form_of_tests(tests: Any) -> None:
    assert known_calls(tests, "", "f") == [Call(([1, 2],), {"k": 3}), Call(((1,),))]


def test_calls_are_read_from_data_and_from_examples() -> None:
    tests = {"tests": [{"args": [1, "a"], "expected": 2}, {"stdin": "3", "stdout": "4"}, {"args": "no list"}]}
    prompt = "Do it.\n    >>> f(7, 'b')\n    8\n    >>> g(1)\n    >>> f(len('x'))\n"
    assert known_calls(tests, prompt, "f") == [Call((1, "a")), Call((7, "b"))]
    assert known_calls([], "    >>> Solution().f(7)\n", "Solution().f") == [Call((7,))]
    prose = "def f(x): as in f([')', 1]) ➞ 2, or f(3) == 4 and half(5), but not f(x) or f(6"
    assert known_calls([], prose, "f") == [Call(([")", 1],)), Call((3,))]
    assert known_stdin([tests]) == ["3"]


@pytest.mark.parametrize("tests", [None, 3, "", [], [None, 3], {"tests": None}, {"x": 1}, "(" * 500, [["assert f("]]])
def test_what_holds_no_calls_gives_none(tests: Any) -> None:
    assert known_calls(tests, "no example", "f") == []
    assert known_stdin(tests) == []


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=4), st.integers(0, 9))
def test_changed_calls_are_new_and_of_the_same_types(known: list[list[Any]], seed: int) -> None:
    calls = [Call(tuple(args)) for args in known]
    found = mutated_calls(calls, 20, "seen", Random(seed))
    assert len({call.text for call in (*calls, *found)}) == len({call.text for call in calls}) + len(found) <= 24
    shapes = {tuple(type(value) for value in call.args) for call in calls}
    at = [{shape[place] for shape in shapes if place < len(shape)} for place in range(3)]
    for call in found:
        assert all(type(value) in at[place] for place, value in enumerate(call.args))
    assert mutated_calls(calls, 20, "seen", Random(seed)) == found


def numbers(value: Any) -> list[float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value]
    return [one for item in value for one in numbers(item)] if isinstance(value, list | tuple) else []


def test_seen_inputs_stay_where_known_ones_are_and_wide_ones_do_not() -> None:
    known = [Call(([3, 5, 8], "abba")), Call(([7, 2], "bab"))]
    seen = mutated_calls(known, 200, "seen", Random(0))
    assert len(seen) == 200
    assert min(numbers([list(call.args) for call in seen])) == 2
    assert all(call.args[0] and call.args[1] and set(call.args[1]) <= set("ab") for call in seen)
    by_argument = mutated_calls([Call(("", "ab", 0, 7))], 200, "seen", Random(0))
    assert all(call.args[1] and call.args[3] >= 7 for call in by_argument)
    assert {call.args[2] for call in by_argument} > {0, 5, 20}
    wide = mutated_calls(known, 200, "wide", Random(0))
    assert min(numbers([list(call.args) for call in wide])) < 0
    assert any(not call.args[0] or not call.args[1] for call in wide)


def test_calls_are_made_from_types_where_nothing_else_is_known() -> None:
    source = "from typing import *\ndef f(a: List[int], b: Optional[str], c: Tuple[float, ...] | None, d: int = 3): ..."
    found = calls_of_types(["no python here (", source], "f", Random(1))
    assert len(found) > 5
    for call in found:
        first, second, third = call.args
        assert isinstance(first, list)
        assert all(type(item) is int for item in first)
        assert second is None or isinstance(second, str)
        assert third is None or isinstance(third, tuple)
    assert calls_of_types(["def f(a, b: int): ..."], "f", Random(1)) == []
    assert calls_of_types(["def f(a: Frob[int]): ..."], "f", Random(1)) == []
    assert calls_of_types(["class S:\n    def f(self, a: bool): ..."], "S().f", Random(1))


def test_known_inputs_come_first_then_a_models_then_changed_ones() -> None:
    problem = Problem(prompt="", entry_point="f", known=(["assert f(1) == 1"],))
    found = call_inputs(problem, [Call((50,)), Call((1,))], 5, "seen", Random(0))
    assert found[:2] == [Call((1,)), Call((50,))]
    assert len(found) == 5 == len({call.text for call in found})


def test_counts_of_what_follows_are_left_alone_in_standard_input() -> None:
    problem = Problem(prompt="", known=([{"stdin": "3\n10 20 30\n", "stdout": "60"}],))
    found = stdin_inputs(problem, ["2\n7 9\n"], 20, Random(0))
    assert len(found) == 20
    for text in found:
        count, items = text.splitlines()
        assert int(count) == len(items.split())


def test_lines_of_a_models_program_are_read_strictly() -> None:
    printed = '[1, [2]]\nnot json\n{"a": 1}\n\n"text"\n[]\n'
    assert written_inputs(printed, calls=True) == ([Call((1, [2])), Call(())], 3)
    assert written_inputs(printed, calls=False) == (["text"], 4)


def test_programs_that_differ_in_layout_alone_are_one() -> None:
    one = 'def f(x):\n    """Say."""\n    return x + 1  # more\n'
    same = "def f(x):\n\n    return (x+1)\n"
    assert distinct_programs([one, same, "def f(x): return 1 + x", "int main() {}  \n", "int main() {}"]) == (
        one,
        "def f(x): return 1 + x",
        "int main() {}  \n",
    )


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_arguments_that_no_row_can_hold_are_left_out() -> None:
    odd = [nested(60), nested(3_000), 1 << 5_000, [float("inf")], {"a": float("nan")}]
    assert known_calls([*({"args": [one]} for one in odd), {"args": [nested(40)]}], "", "f") == [Call((nested(40),))]
    printed = f"[{'[' * 60}{']' * 60}]\n[Infinity]\n[1]\n"
    assert written_inputs(printed, calls=True) == ([Call((1,))], 2)


@pytest.mark.parametrize("domain", ["seen", "wide"])
def test_large_numbers_can_be_changed(domain: Any) -> None:
    calls = [Call(([0.5, 1 << 4_095],)), Call(([1e308, 3],))]
    found = mutated_calls(calls, 60, domain, Random(0))
    assert len(found) > 30
    assert all(call.usable and call.text for call in found)
    text = f"{'7' * 5_000} 12\n"
    texts = stdin_inputs(Problem(prompt="", known=([{"stdin": text, "stdout": ""}],)), [], 5, Random(0))
    assert len(texts) == 5
    assert all(one.startswith("7" * 5_000) for one in texts)


def test_a_prompt_of_many_beginnings_of_calls_is_not_searched_for_all_their_ends() -> None:
    assert known_calls([], f"{'f(x ' * 199}f(1)", "f") == [Call((1,))]
    assert known_calls([], f"{'f(x ' * 200}f(1)", "f") == []


@pytest.mark.parametrize(
    "kind", [" | ".join(["int"] * 2_000), f"{'list[' * 40}int{']' * 40}", f"list{'[int]' * 2_000}"], ids=len
)
def test_no_values_are_made_of_types_in_types_without_end(kind: str) -> None:
    assert calls_of_types([f"def f(a: {kind}): ..."], "f", Random(0)) == []


def test_programs_of_any_depth_are_told_apart() -> None:
    deep = f"x = {'+'.join(['1'] * 1_500)}\n"
    assert distinct_programs([deep, f"{deep}\n", f"{deep}y = 1\n"]) == (deep, f"{deep}y = 1\n")
