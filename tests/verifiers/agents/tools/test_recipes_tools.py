"""The presets of PORTool, Tool-Star and BFCL pay what their formulas say."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import score_batch
from adjudge.verifiers.agents.tools.reference import bfcl_reference


def scores(recipe: Any, samples: list[dict[str, Any]]) -> Any:
    return score_batch([{"prompt": "p", **sample} for sample in samples], recipe)


def test_portool_pays_turns_by_what_became_of_them() -> None:
    look = [{"role": "assistant", "content": '<tool_call>{"name": "f"}</tool_call>'}, {"role": "tool", "content": "x"}]
    answers = [[*look, {"role": "assistant", "content": text}] for text in ("Paris", "Rome")]
    rows = [{"response": answer, "reference": "Paris", "group": "g"} for answer in answers]
    first, second = scores("portool", rows)
    assert (first.value, second.value) == (pytest.approx(first.parts["outcome"].value), second.parts["outcome"].value)
    assert first.value > second.value
    # the call is shared, so it has no siblings, and the last turns have one: z = 0.70711 each, and for the trajectories
    assert [step.value for step in first.steps] == pytest.approx([0.70711, 1.41421], abs=1e-4)
    assert [step.value for step in second.steps] == pytest.approx([-0.70711, -1.41421], abs=1e-4)
    assert first.evidence["values"][0] == pytest.approx(0.9 * (first.value + second.value) / 2 + 0.2)


@pytest.mark.parametrize(
    "call", ["<search>Dune</search>", '<tool_call>{"name": "search", "arguments": {"query": "Dune"}}</tool_call>']
)
def test_portool_tells_a_call_that_the_tool_refused_from_one_that_it_carried_out(call: str) -> None:
    def searched(ok: bool) -> dict[str, Any]:
        told = {"role": "tool", "name": "search", "content": "Herbert" if ok else "error: no words", "ok": ok}
        turns = [
            {"role": "assistant", "content": call},
            told,
            {"role": "assistant", "content": "<answer>Paris</answer>"},
        ]
        return {"response": turns, "reference": "Paris", "group": "g"}

    good, bad = scores("portool", [searched(True), searched(False)])
    assert [one.evidence["values"][0] for one in (good, bad)] == pytest.approx([0.9 + 0.2, 0.9])
    assert good.steps[0].value > 0 > bad.steps[0].value
    half = searched(True)
    half["response"].insert(2, searched(False)["response"][1])
    assert scores("portool", [searched(True), half])[1].evidence["values"][0] == pytest.approx(0.9 + 0.1)


def test_tool_star_pays_cooperating_tools_beside_a_right_answer_alone() -> None:
    found, computed = "<result>France</result>", "<result>4</result>"
    search, python = "<search>capital</search>", "<python>2 + 2</python>"
    rows, think = [], "<think>Let me see.</think>"
    for parts in (
        [think, search, found, python, computed, "<answer>Paris</answer>"],
        [think, search, found, python, computed, "<answer>Paris, France</answer>"],
        [think, search, found, python, computed, r"<answer>The final answer is \[ \boxed{Paris} \]</answer>"],
        [think, search, found, "<answer>Paris</answer>"],
        [think, search, found, "<answer>Paris, France</answer>"],
        [think, search, python, computed, "<answer>Rome</answer>"],
        [think, search, found, "Paris"],
        [search, found, "<answer>Paris</answer>"],
    ):
        text, spans = "", []
        for part in parts:
            if part in (found, computed):
                spans.append([len(text), len(text) + len(part)])
            text += part
        rows.append({"response": text, "reference": "Paris", "extra": {"tool_spans": spans}})
    assert [score.value for score in scores("tool_star", rows)] == pytest.approx(
        [1.1, 2 / 3 + 0.1, 1.1, 1.0, 2 / 3, 0.0, -1.0, -1.0]
    )


def test_tool_star_grades_math_problems_by_mathematics() -> None:
    texts = [f"<think>Let me see.</think><answer>{answer}</answer>" for answer in (r"\boxed{\frac12}", "0.5", "2", "")]
    rows = [{"response": text, "reference": "1/2", "extra": {"tool_spans": []}} for text in texts]
    assert [score.value for score in scores({"tool_star": {"metric": "math"}}, rows)] == [1.0, 1.0, 0.0, -1.0]
    (unread,) = scores({"tool_star": {"metric": "math"}}, [{**rows[2], "reference": "x + + )"}])
    assert (unread.status, unread.reason) == ("failed", "gold_unparsable")


def test_bfcl_rows_are_judged_without_regard_to_case_and_blanks() -> None:
    weather = {
        "name": "weather",
        "parameters": {"type": "dict", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    }
    truth = [{"weather": {"city": ["New York, NY"], "days": [3, ""]}}]
    reference = bfcl_reference([weather], truth)
    texts = [
        '[weather(city="new york,NY", days=3)]',
        '[weather(city="Newark")]',
        '{"name": "weather", "arguments": {}}',
    ]
    rows = [{"response": text, "reference": reference} for text in texts]
    assert [score.value for score in scores("bfcl", rows)] == [1.0, 0.0, 0.0]
