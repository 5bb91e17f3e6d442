"""`tool_execution`: what calls give and leave behind, and whose fault it is when they give nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adjudge import Sample, Score, check_scorer
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.verifiers.agents.tools import execution_verifier
from adjudge.verifiers.agents.tools.execution_verifier import ToolExecutionVerifier
from adjudge.verifiers.agents.tools.tool_session import play

BANK = """
import itertools
accounts = {"a": 10, "b": 0}
numbers = itertools.count(1)

def pay(source, target, amount):
    if amount > accounts[source]:
        raise ValueError("not enough")
    accounts[source] -= amount
    accounts[target] += amount
    return {"id": next(numbers), "paid": amount}

def balance(of):
    return accounts[of]

def statement():
    return numbers

ledger, opened = object(), []

def open_ledger():
    opened.append(ledger)

def long():
    return "x" * 20_000

def hog():
    return bytearray(1 << 31)

def leave():
    import os
    os._exit(0)

_secret = pay
"""
PAID = {"state": "accounts", "final": {"a": 7, "b": 3}}
PAY = '{"name": "pay", "arguments": {"source": "a", "target": "b", "amount": 3}}'
BALANCE = '{"name": "balance", "arguments": {"of": "b"}}'


def judged(response: Any, reference: Any, **options: Any) -> Score:
    whole = {"tools_source": BANK, **reference} if isinstance(reference, dict) else reference
    options = {"seconds": 2.0, "total_seconds": 4.0} | options
    return ToolExecutionVerifier(**options).verify(Sample(prompt="p", response=response, reference=whole))


def paying(*amounts: int) -> str:
    return "[" + ", ".join(f'pay(source="a", target="b", amount={amount})' for amount in amounts) + "]"


@pytest.mark.parametrize(
    ("response", "reference", "share"),
    [
        (paying(3), PAID, 1.0),
        (paying(1, 2), PAID, 1.0),
        (paying(3, 99), PAID, 1.0),
        (paying(2), PAID, 0.0),
        (paying(3, 3), PAID, 0.0),
        ('[balance(of="a"), balance(of="b")]', {"expected": [10, 0]}, 1.0),
        ('[balance(of="b"), balance(of="a")]', {"expected": [10, 0]}, 1.0),
        ('[balance(of="b"), balance(of="a")]', {"expected": [10, 0], "order": "given"}, 1 / 2),
        ('[balance(of="a"), balance(of="a")]', {"expected": [10, 0]}, 1 / 2),
        ('[balance(of="a"), balance(of="b"), balance(of="b")]', {"expected": [10, 0]}, 2 / 3),
        (paying(3), {"expected": [{"id": 1, "paid": 3}], **PAID}, 1.0),
        (paying(2), {"expected": [{"id": 1, "paid": 2}], **PAID}, 0.0),
        (paying(99), {"expected": ["not enough"]}, 0.0),
        ("[statement()]", {"expected": [None]}, 0.0),
        ('[balance(of="a")]', {"expected": []}, 0.0),
        ("Nothing to do.", {"expected": []}, 1.0),
        ('[_secret(source="a", target="b", amount=3)]', PAID, 0.0),
    ],
)
def test_results_and_state_are_what_counts(response: str, reference: dict[str, Any], share: float) -> None:
    score = judged(response, reference, credit="fraction")
    assert score.value == pytest.approx(share), score
    assert judged(response, reference).value == float(share == 1.0)


@pytest.mark.parametrize(
    ("parameter", "number", "truth"),
    [
        ("x", 75001, True),
        ("x: str", "75001", "True"),
        ("x: str | None", "75001", "True"),
        ("x: 'str' = ''", "75001", "True"),
        ("x: typing.Optional[str]", "75001", "True"),
        ("x: typing.Union[int, str]", 75001, "True"),
        ('x: typing.Literal["75001", "True"]', "75001", "True"),
        ("*, x='a'", "75001", "True"),
        ("x: float", 75001, True),
        ("x: bool = False", 75001, True),
        ("x: list[str]", 75001, True),
    ],
)
def test_a_value_between_tags_is_what_the_tool_s_source_says(parameter: str, number: Any, truth: Any) -> None:
    source = f"import typing\ndef echo({parameter}):\n    return x, type(x).__name__"
    for text, given in (("75001", number), ("True", truth)):
        response = f"<function=echo><parameter=x>{text}</parameter></function>"
        expected = [[given, type(given).__name__]]
        assert judged(response, {"tools_source": source, "expected": expected}).value == 1.0
    untold = {"tools_source": "def echo(x):\n    return type(x).__name__"}
    response = "<function=echo><parameter=x>75001</parameter></function>"
    for gold in ("75001", 75001):
        assert judged(response, {**untold, "calls": [{"name": "echo", "arguments": {"x": gold}}]}).value == 1.0


def test_the_state_lasts_from_turn_to_turn() -> None:
    first, second = (f"<tool_call>{call}</tool_call>" for call in (PAY, BALANCE))
    turns = [
        {"role": "assistant", "content": first},
        {"role": "tool", "content": '{"id": 77}'},
        {"role": "assistant", "content": second},
    ]
    assert judged(turns, {"expected": [[{"id": 1, "paid": 3}], [3]], "order": "turns"}).value == 1.0
    assert judged(first + second, {"expected": [[{"id": 1, "paid": 3}], [3]], "order": "turns"}).value == 0.0
    score = judged(turns, PAID)
    assert [(step.value, step.label) for step in score.steps] == [(None, "returned"), (None, "returned")]


def test_the_function_that_reads_the_state_is_no_tool() -> None:
    before = {"a": 10, "b": 0}
    reference = {"state": "accounts", "final": before, "expected": [before]}
    assert judged("[adjudge_final_state()]", reference, credit="fraction").value == 0.0


def test_gold_calls_stand_for_what_they_give() -> None:
    gold = {"calls": [{"name": "pay", "arguments": {"source": "a", "target": "b", "amount": 3}}], "state": "accounts"}
    assert judged(paying(3), gold).value == 1.0
    assert judged(paying(3).replace("]", ', balance(of="a")]'), gold).value == 0.0
    assert judged(paying(3).replace("]", ', balance(of="a")]'), gold, extra="ignore").value == 1.0
    assert judged(paying(1, 2), gold, extra="ignore").value == 0.0
    assert judged(paying(1, 2), {**gold, "expected": [], "order": "any"}, extra="ignore").value == 1.0


@pytest.mark.parametrize(
    ("response", "reason"), [("[hog()]", "wrong"), ("[leave()]", "candidate_error"), (paying(2), "wrong")]
)
def test_a_call_that_loses_the_session_is_the_response_s_own_zero(response: str, reason: str) -> None:
    score = judged(response, PAID, memory_mb=256, credit="fraction")
    assert (score.value, score.reason) == (0.0, reason), score


@pytest.mark.parametrize(
    "reference",
    [
        {"expected": [1], "setup": "1 / 0"},
        {"state": "nothing", "final": 1},
        {"state": "accounts", "calls": [{"name": "pay", "arguments": {"source": "a", "target": "b", "amount": 99}}]},
        {"expected": [1], "setup": "pay = 3"},
        {"expected": [1], "setup": "import os; os._exit(0)"},
    ],
)
def test_tools_that_do_not_work_are_the_reference_s_fault_whatever_the_response(reference: dict[str, Any]) -> None:
    for response in ("", paying(3), f"<think>{paying(3)}"):
        assert judged(response, reference).reason == "gold_unparsable"


@pytest.mark.parametrize(
    "reference",
    [
        None, 1, {"expected": [1], "tools_source": ""}, {}, {"expected": 1}, {"expected": [1], "odd": 1}, {"final": 1},
        {"state": "accounts"}, {"expected": [1], "state": "accounts"}, {"state": "x = 1", "final": 1},
        {"state": "1) + (1", "final": 2}, {"expected": [1], "tools_source": "def _f(): pass"},
        {"expected": [1], "tools_source": "def f(:"}, {"calls": [{"name": "_secret"}]}, {"expected": [object()]},
        {"expected": [1], "tools_source": "def adjudge_final_state(): pass"}, {"calls": [{"name": "other"}]},
    ],
)  # fmt: skip
def test_a_reference_that_cannot_be_meant_is_refused_before_and_failed_after(reference: Any) -> None:
    whole = {"tools_source": BANK, **reference} if isinstance(reference, dict) else reference
    with pytest.raises(ValueError, match=r"tool_execution|reference"):
        ToolExecutionVerifier().validate(Sample(prompt="p", response="", reference=whole))
    assert judged("", reference).reason == "gold_unparsable"


def test_without_a_sandbox_nothing_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise SandboxUnavailableError("no namespaces")

    monkeypatch.setattr(execution_verifier, "play", refuse)
    assert judged(paying(8), PAID).reason == "engine_unavailable"


def test_the_same_calls_are_run_once_unless_the_session_was_lost_or_gave_much(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def counted(toolbox: Any, calls: Sequence[Any], limits: Any) -> Any:
        runs.append([call.arguments for call in calls])
        return play(toolbox, calls, limits)

    monkeypatch.setattr(execution_verifier, "play", counted)
    monkeypatch.setattr(execution_verifier, "_kept", {})
    first, again, longer = (judged(text, PAID) for text in (paying(3), f"\n{paying(3)}", paying(3, 3)))
    assert (first.value, again.value, longer.value) == (1.0, 1.0, 0.0)
    assert judged("No.", {"expected": []}).value == judged("I shall not.", {"expected": []}).value == 1.0
    assert len(runs) == 3
    assert judged("[leave()]", PAID).reason == judged("[leave()]", PAID).reason == "candidate_error"
    assert judged("[long()]", PAID).value == judged("[long()]", PAID).value == 0.0
    assert len(runs) == 7


@pytest.mark.parametrize(
    "reference",
    [
        {"state": "ledger", "calls": [{"name": "statement"}], "expected": []},
        {"state": "{'all': [ledger]}", "final": 1},
        {"calls": [{"name": "statement"}]},
        {"state": "opened", "calls": [{"name": "open_ledger"}], "expected": []},
    ],
)
def test_objects_are_not_compared_by_their_numbers(reference: dict[str, Any]) -> None:
    # two sessions number their objects alike, so a wrong response's object looked like the gold's
    for response in ("[statement()]", paying(3)):
        score = judged(response, reference)
        assert score.reason == "gold_unparsable", score
        assert "plain data" in score.evidence["error"]
    assert judged("[statement()]", {"state": "accounts", "final": {"a": 10, "b": 0}}).value == 1.0


@pytest.mark.parametrize(
    "options",
    [{"seconds": 0}, {"seconds": True}, {"memory_mb": 1}, {"extra": "x"}, {"isolation": "x"}, {"total_seconds": "1"}],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ToolExecutionVerifier(**options)


def test_it_keeps_the_rules_of_scorers() -> None:
    references = [{"tools_source": BANK, **PAID}, {"tools_source": BANK, "expected": [10]}]
    samples = [Sample(prompt="p", response=paying(3), reference=reference) for reference in references]
    check_scorer(ToolExecutionVerifier(seconds=2.0, total_seconds=4.0), samples).raise_for_failures()
