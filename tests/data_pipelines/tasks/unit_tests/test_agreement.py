"""Votes on outputs, and the references that come of them."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.tasks.calls_guest import NoData, literal
from adjudge.data_pipelines.tasks.unit_test_problems import Call
from adjudge.data_pipelines.tasks.unit_test_runs import Output
from adjudge.data_pipelines.tasks.unit_tests import Agreed, agreed, has_form, output_key, reference_of
from adjudge.scoring import api

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3)
    | st.sets(st.integers() | st.text(), max_size=3),
    max_leaves=8,
)  # fmt: skip


def votes(*values: str | None) -> list[Output]:
    return [Output(value=value) if value is not None else Output(fault="ValueError") for value in values]


@given(DATA)
def test_literals_stand_for_their_values(value: Any) -> None:
    assert ast.literal_eval(literal(value)) == value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object(), frozenset({1}), [lambda: 0], [1 << 20_000]], ids=type
)
def test_what_is_no_plain_data_has_no_literal(value: Any) -> None:
    with pytest.raises(NoData):
        literal(value)


def test_nesting_has_an_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NoData, match="nested"):
        literal(loop)


def test_the_rule_is_seven_of_ten() -> None:
    call = Call((1,))
    assert agreed(call, votes(*["3"] * 7, "4", "5", None), 7) == Agreed(given=call, output="3", agreeing=7)
    assert agreed(call, votes(*["3"] * 6, "4", "5", None, None), 7) is None
    assert agreed(call, votes(*[None] * 10), 7) is None


@given(st.permutations(["3", "3.0", "3", "4", None]))
def test_the_order_of_solutions_decides_nothing(order: list[str | None]) -> None:
    assert agreed(Call((1,)), votes(*order), 3) == Agreed(given=Call((1,)), output="3", agreeing=3)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0.30000000000000004", "0.3", True), ("0.31", "0.3", False), ("[1, 2]", "(1, 2)", True), ("2", "2.0", True),
        ("True", "1", True), ("'1'", "1", False), ("{1, 2}", "{2, 1}", True),
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", True),
        ("{1}", "[1]", False), ("None", "0", False), ("[1]", "[1, 1]", False), ("b'a'", "'a'", False), ("'", "'", True),
    ],
)  # fmt: skip
def test_outputs_are_equal_as_the_code_scorer_takes_them(one: str, other: str, same: bool) -> None:
    assert (output_key(one, printed=False) == output_key(other, printed=False)) is same


def test_printed_text_is_compared_without_blanks_at_the_ends() -> None:
    assert output_key("a  \nb\n\n", printed=True) == output_key("a\nb", printed=True)
    assert output_key(" a", printed=True) != output_key("a", printed=True)


def test_what_is_no_literal_does_not_vote() -> None:
    assert agreed(Call((1,)), votes("__import__('os')", "f(1)", "f(1)"), 2) is None


def program(values: dict[str, Any]) -> str:
    return f"def f(*args, **kwargs):\n    return {values!r}[repr((args, kwargs))]\n"


@pytest.mark.parametrize(
    ("calls", "form"),
    [
        ([(Call((1, "a")), [1, (2, 3)]), (Call(([1.5],), {"k": None}), {"x": [True]})], dict),
        ([(Call(((1, 2),)), {3, 4}), (Call((3,)), {(1, 2): "x"}), (Call((2,)), 0.1)], str),
        ([(Call(({1},)), "it's")], str),
    ],
)
def test_references_accept_what_was_agreed_and_nothing_else(calls: list[tuple[Call, Any]], form: type) -> None:
    tests = [Agreed(given=call, output=literal(value), agreeing=3) for call, value in calls]
    assert all(has_form(test, "f") for test in tests)
    reference = reference_of(tests, "f", "python")
    assert reference is not None
    assert {type(test) for test in reference["tests"]} == {form}
    reference = json.loads(json.dumps(reference))
    right = {repr((call.args, dict(call.kwargs))): value for call, value in calls}
    programs = [program(right), *(program({**right, key: "wrong"}) for key in right)]
    samples = [{"prompt": "", "response": one, "reference": reference} for one in programs]
    assert [score.value for score in api.score_batch(samples, "code")] == [1.0, *[0.0] * len(calls)]


def test_floats_inside_values_need_the_form_that_knows_a_tolerance() -> None:
    assert has_form(Agreed(given=Call(([1],)), output="[0.1]", agreeing=3), "f")
    assert not has_form(Agreed(given=Call(((1,),)), output="[0.1]", agreeing=3), "f")
    assert not has_form(Agreed(given=Call(((1,),)), output="1", agreeing=3), "S().f")


def test_programs_that_print_have_texts() -> None:
    tests = [Agreed(given="1 2", output="3\n", agreeing=3)]
    assert reference_of(tests, "", "python") == {"tests": [{"stdin": "1 2", "stdout": "3\n"}]}
    assert reference_of(tests, "", "c++") == {"tests": [{"stdin": "1 2", "stdout": "3\n"}], "language": "c++"}
