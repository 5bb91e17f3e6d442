"""BFCL's references are read, and the faults of its released checker are not: each has a test that names it.

Seen in `gorilla/berkeley-function-call-leaderboard`: `ast_checker.py` @ 0f6fbeb, `multi_turn_checker.py` @ 0a9133c,
`multi_turn_utils.py` @ 2e06852, and the `resolve_ast_by_type` that decodes calls.
"""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.agents.tools.call_verifier import ToolCallVerifier
from adjudge.verifiers.agents.tools.execution_verifier import ToolExecutionVerifier
from adjudge.verifiers.agents.tools.reference import bfcl_reference

AREA = {
    "name": "area",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "integer"},
            "height": {"type": "float"},
            "unit": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "at": {"type": "dict", "properties": {"x": {"type": "integer"}, "label": {"type": "string"}}},
            "free": {"type": "any"},
        },
        "required": ["base", "height"],
    },
}
USUAL = bfcl_reference([AREA], [{"area": {"base": [10], "height": [5.0], "unit": ["units", ""]}}])


def judged(text: str, reference: Any = USUAL, **options: Any) -> Score:
    return ToolCallVerifier(**options).verify(Sample(prompt="p", response=text, reference=reference))


def right(text: str, reference: Any = USUAL, **options: Any) -> bool:
    return judged(text, reference, **options).value == 1.0


def test_a_row_becomes_a_reference() -> None:
    arguments = {"base": [10], "height": [5.0], "unit": ["units", ""], "at": [{"x": [1], "label": ["p", ""]}]}
    made = bfcl_reference([AREA], [{"area": arguments}])
    assert made["calls"] == [
        {
            "name": "area",
            "arguments": {
                "base": {"any_of": [10], "optional": False},
                "height": {"any_of": [5.0], "optional": False},
                "unit": {"any_of": ["units"], "optional": True},
                "at": {
                    "any_of": [
                        {"x": {"any_of": [1], "optional": False}, "label": {"any_of": ["p"], "optional": True}},
                    ],
                    "optional": False,
                },
            },
        }
    ]
    assert right("[area(base=10, height=5.0, at={'x': 1})]", made)
    assert not right("[area(base=10, height=5.0, at={'label': 'p'})]", made)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("[area(base=10, height=5.0)]", True),
        ("[area(base=10, height=5)]", True),
        ('[area(base=10, height=5, unit="units")]', True),
        ('[area(base=10, height=5, unit="cm")]', False),
        ("[area(base=10)]", False),
        ("[area(base=10.0, height=5)]", False),
        ("[area(base=10, height=5), area(base=10, height=5)]", False),
    ],
)
def test_what_bfcl_gets_right_is_right_here(text: str, verdict: bool) -> None:
    assert right(text) is verdict


def test_an_expression_is_not_evaluated_as_the_released_decoder_does() -> None:
    assert judged("[area(base=5 + 5, height=5)]").reason == "unparsable_answer"


def test_positional_arguments_are_not_dropped_silently() -> None:
    assert judged("[area(99, base=10, height=5)]").reason == "unparsable_answer"


def test_a_plus_sign_and_a_not_are_no_minus() -> None:
    negative = bfcl_reference([AREA], [{"area": {"base": [-10], "height": [5.0]}}])
    assert right("[area(base=-10, height=5)]", negative)
    for wrong in ("+10", "not 10", "~10"):
        assert not right(f"[area(base={wrong}, height=5)]", negative)


def test_a_bare_word_is_no_text() -> None:
    named = bfcl_reference([AREA], [{"area": {"base": [10], "height": [5.0], "unit": ["cm"]}}])
    assert right('[area(base=10, height=5, unit="cm")]', named)
    assert judged("[area(base=10, height=5, unit=cm)]", named).reason == "unparsable_answer"


@pytest.mark.parametrize("strings", ["exact", "normal"])
def test_points_and_signs_in_texts_are_not_thrown_away(strings: str) -> None:
    version = bfcl_reference([AREA], [{"area": {"base": [10], "height": [5.0], "unit": ["3.14"]}}])
    assert right('[area(base=10, height=5, unit="3.14")]', version, strings=strings)
    assert not right('[area(base=10, height=5, unit="314")]', version, strings=strings)


def test_the_mark_of_an_optional_argument_is_no_accepted_value() -> None:
    assert not right('[area(base=10, height=5, unit="")]')
    meant = {"name": "f", "parameters": {"properties": {"s": {"type": "string"}}, "required": ["s"]}}
    assert right('[f(s="")]', bfcl_reference([meant], [{"f": {"s": ["", "x"]}}]))


def test_a_value_of_the_gold_value_s_type_does_not_get_around_the_schema() -> None:
    variable = bfcl_reference([AREA], [{"area": {"base": ["n", 10], "height": [5.0]}}])
    assert right("[area(base=10, height=5)]", variable)
    assert judged('[area(base="n", height=5)]', variable).reason == "wrong"
    nothing_else = bfcl_reference([AREA], [{"area": {"base": ["n"], "height": [5.0]}}])
    assert judged('[area(base="n", height=5)]', nothing_else).reason == "gold_unparsable"


def test_true_is_not_one_inside_lists_and_mappings() -> None:
    inside = bfcl_reference([AREA], [{"area": {"base": [10], "height": [5.0], "free": [[1, {"k": [0]}]]}}])
    assert right("[area(base=10, height=5, free=[1, {'k': 0}])]", inside)
    assert not right("[area(base=10, height=5, free=[True, {'k': 0}])]", inside)
    assert not right("[area(base=10, height=5, free=[1, {'k': False}])]", inside)


def test_any_is_not_only_text() -> None:
    for value in ("7", '"seven"', "[7]", "{'k': None}"):
        reference = bfcl_reference([AREA], [{"area": {"base": [10], "height": [5.0], "free": ["", "seven"]}}])
        assert right(f"[area(base=10, height=5, free={value})]", reference) is (value == '"seven"')
        assert right(f"[area(base=10, height=5, free={value})]", {"tools": [AREA]})


def test_parallel_calls_are_not_matched_with_the_first_that_fits() -> None:
    wide, narrow = {"area": {"base": [1, 2], "height": [5.0]}}, {"area": {"base": [1], "height": [5.0]}}
    assert right("[area(base=1, height=5), area(base=2, height=5)]", bfcl_reference([AREA], [wide, narrow]))


def test_a_call_that_cannot_be_decoded_is_not_taken_for_no_call() -> None:
    irrelevant = bfcl_reference([AREA], [])
    assert right("None of the functions can answer this.", irrelevant)
    assert judged("[area(base=10, height=", irrelevant).reason == "unparsable_answer"
    assert judged("[area(base=10, height=5)]", irrelevant).reason == "wrong"


TOOLS = """
class Shop:
    def __init__(self): self._sold = 0
shop = Shop()
def look(): return "open"
def sell(): shop._sold += 1
"""


def test_calls_that_change_no_state_can_cost() -> None:
    reference = {"tools_source": TOOLS, "state": "shop._sold", "calls": [{"name": "sell"}]}
    sample = Sample(prompt="p", response="[look(), look(), sell()]", reference=reference)
    assert ToolExecutionVerifier().verify(sample).value == 0.0
    assert ToolExecutionVerifier(extra="ignore").verify(sample).value == 1.0


def test_private_state_counts_and_no_text_of_a_call_is_evaluated() -> None:
    reference = {"tools_source": TOOLS, "state": "shop._sold", "final": 1}
    for text, value in (
        ("[sell()]", 1.0),
        ("[sell(), sell()]", 0.0),
        ("[shop.__init__(), sell()]", 1.0),
        ("[exit()]", 0.0),
    ):
        assert ToolExecutionVerifier().verify(Sample(prompt="p", response=text, reference=reference)).value == value


@pytest.mark.parametrize(
    "truth", [[{"other": {}}], [{"area": {}, "more": {}}], [{"area": 3}], [{"area": {"base": []}}], [3]]
)
def test_a_row_that_is_malformed_is_refused(truth: Any) -> None:
    with pytest.raises(BadReferenceError):
        bfcl_reference([AREA], truth)
