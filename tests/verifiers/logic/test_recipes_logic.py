"""The presets of Guru and InternBootcamp pay what their papers' code pays."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import load
from adjudge.protocol import Sample
from adjudge.runtime.verifying import VerifierScorer

LONG = "<think>" + "It must be so. " * 10 + "</think>"
CHAIN = {"family": "chain_sum", "entry": {"question": "20 + 22", "answer": "42", "metadata": {}}}
TABLE = {"header": ["House", "Name", "Pet"], "rows": [["1", "Eric", "cat"], ["2", "Bob", "dog"]]}


def values(recipe: str, rows: list[tuple[str, str, Any]]) -> list[float | None]:
    """What each kind's verifier gives; that a spec chooses by its kind is tested with the composition."""
    kinds: Any = load(recipe)
    found = []
    for kind, response, reference in rows:
        scorer = kinds.scorers[kind]
        assert isinstance(scorer, VerifierScorer)
        found.append(scorer.verifier.verify(Sample(prompt="", response=response, reference=reference)).value)
    return found


def test_a_bare_or_thoughtless_response_is_worth_nothing_in_internbootcamp() -> None:
    bare = "<answer>42</answer>"
    rows = [
        ("reasoning_gym", LONG + bare, CHAIN),
        ("reasoning_gym", bare, CHAIN),
        ("reasoning_gym", "x" * 200 + bare, CHAIN),
        ("reasoning_gym", "<think>hm</think>" + bare, CHAIN),
        ("reasoning_gym", LONG, CHAIN),
        ("grid", LONG + "<answer>[[1]]</answer>", [[1]]),
        ("reasoning_gym", LONG + "<answer>41</answer>", CHAIN),  # the package gives 0.01 to a number
    ]
    assert values("internbootcamp", rows) == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def test_each_domain_of_guru_has_its_verifier() -> None:
    half = '{"1": {"Name": "Eric", "Pet": "dog"}, "2": {"Name": "Bob", "Pet": "cat"}}'
    graph = {"graph": {"edges": [[1, 2], [2, 3]]}, "kind": "distance", "source": 1, "target": 3}
    program = {"code": "def f(x):\n    return x + 1", "predict": "output", "input": "1", "output": "2"}
    rows = [
        ("math", r"\boxed{\frac{1}{2}}", "0.5"),
        ("arcagi", "<answer>[[1, 2]]</answer>", [[1, 2]]),
        ("arcagi", "<answer>[[1, 3]]</answer>", [[1, 2]]),
        ("zebra_puzzle", f"<answer>{half}</answer>", TABLE),
        ("ordering_puzzle", "<answer>b, a</answer>", ["b", "a"]),
        ("graph", "<answer>2</answer>", graph),
        ("graph_logical", "<answer>q</answer>", "Q"),
        ("table", "<answer>1,250</answer>", 1250),
        ("table", "<answer>b | a</answer>", "a|b"),
        ("cruxeval", "<answer>2</answer>", program),
        ("codeio", "<answer>3</answer>", program),
        ("stem_choice", r"\boxed{B}", "B"),
    ]
    expected = [1.0, 1.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0]
    assert values("guru", rows) == pytest.approx(expected)
