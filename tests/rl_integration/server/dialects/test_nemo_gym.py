"""NeMo Gym's resources server: what it sends, what it takes, and what becomes of scores that are not numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rl_integration.server.dialects.conftest import Bench

PARTS = [{"type": "input_text", "text": "2+"}, {"type": "input_text", "text": "2"}]


def message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "message_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def request(*output: Any, **fields: Any) -> dict[str, Any]:
    """A request as `resources_servers/math_with_judge/client.py` sends it."""
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "What is 2 + 2?"}]},
        "response": {
            "id": "response_1",
            "created_at": 1.0,
            "model": "m",
            "object": "response",
            "output": list(output),
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
        },
        **fields,
    }


@pytest.mark.parametrize(("answer", "reward"), [("\\boxed{4}", 1.0), ("\\boxed{5}", 0.0)])
def test_the_answer_is_the_whole_request_and_the_reward(bench: Bench, answer: str, reward: float) -> None:
    sent = request(
        message(answer), question="What is 2 + 2?", expected_answer="4", _ng_rollout_index=3, more={"a": [1.5]}
    )
    got = bench.good("/verify", sent, scorer="math")
    assert got == {**sent, "reward": reward, "mask_sample": False}
    assert isinstance(got["response"]["created_at"], float)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("down", "provider_unavailable"), ("broken gold", "verifier_error"), ("no verdict", "judge_unparseable")],
)
def test_a_failed_score_is_masked_and_put_aside(bench: Bench, answer: str, kind: str) -> None:
    got = bench.good("/verify", request(message(answer)))
    assert (got["reward"], got["mask_sample"]) == (0.0, True)
    assert got["_ng_failure_class"] == got["failure_kind"] == kind
    assert got["instance_config"] == {"mask_sample": True}, "where NeMo RL reads it"
    assert got["failure_reason"].startswith("failed (")
    assert bench.good("/verify", request(message(answer)), fallback=-1)["reward"] == -1.0


def test_an_abstained_score_is_masked_and_complete(bench: Bench) -> None:
    got = bench.good("/verify", request(message("not mine")))
    assert (got["reward"], got["mask_sample"], got["failure_kind"]) == (0.0, True, None)
    assert "_ng_failure_class" not in got


def test_an_older_verdict_in_the_request_does_not_come_back(bench: Bench) -> None:
    old = {"reward": 9.0, "mask_sample": True, "_ng_failure_class": "judge_failed", "reward_components": {"x": 9.0}}
    got = bench.good("/verify", request(message("abc"), **old))
    assert got == {**request(message("abc")), "reward": 3.0, "mask_sample": False}


def test_components_are_sent_only_where_they_add_up(bench: Bench) -> None:
    got = bench.good("/verify", request(message("sum")))
    assert (got["reward"], got["reward_components"]) == (1.5, {"a": 1.0, "b": 0.5})
    for name in ("mean", "large part"):
        assert "reward_components" not in bench.good("/verify", request(message(name)))


def test_one_message_is_a_text_and_a_trajectory_is_turns(bench: Bench) -> None:
    bench.good("/verify", request(message("abc")))
    assert (bench.last.prompt, bench.last.response) == ([{"role": "user", "content": "What is 2 + 2?"}], "abc")
    bench.good(
        "/verify",
        request(
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 2}'},
            {"type": "function_call_output", "call_id": "c", "output": "not graded"},
            {"type": "web_search_call", "id": "w"},
            message("abcd"),
        ),
    )
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
    assert list(bench.last.response) == [
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c", "content": "not graded"},
        {"role": "tool", "content": '{"type": "web_search_call", "id": "w"}'},
        {"role": "assistant", "content": "abcd"},
    ]


def test_reasoning_without_an_answer_is_an_empty_answer(bench: Bench) -> None:
    thought = {
        "type": "reasoning",
        "id": "r",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "\\boxed{4}"}],
    }
    assert bench.good("/verify", request(thought, expected_answer="4"), scorer="math")["reward"] == 0.0
    assert bench.good("/verify", request(expected_answer="4"), scorer="math")["reward"] == 0.0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, None),
        ({"status": "completed"}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": None}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": None, "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}}, "stop"),
    ],
)
def test_a_response_that_was_cut_off_is_seen_as_one(bench: Bench, fields: dict[str, Any], reason: str | None) -> None:
    sent = request(message("abc"))
    sent["response"] |= fields
    bench.good("/verify", sent)
    assert bench.last.finish_reason == reason


@pytest.mark.parametrize(
    ("params", "prompt"),
    [
        ({"input": "2+2?"}, "2+2?"),
        ({"input": "2+2?", "instructions": "Be brief."}, [("system", "Be brief."), ("user", "2+2?")]),
        ({"input": [{"role": "user", "content": PARTS}]}, [("user", "2+2")]),
    ],
)
def test_prompts_are_texts_or_messages(bench: Bench, params: dict[str, Any], prompt: Any) -> None:
    bench.good("/verify", {**request(message("abc")), "responses_create_params": params})
    got = bench.last.prompt
    assert (got if isinstance(got, str) else [(turn["role"], turn["content"]) for turn in got]) == prompt


def test_the_reference_is_a_field_of_the_row(bench: Bench) -> None:
    row = {
        "verifier_metadata": {"tests": ["assert f() == 1"], "x": {"y": "z"}},
        "ground_truth": "4",
        "note": "n",
        "_ng_x": 1,
    }
    bench.good("/verify", request(message("abc"), **row))
    assert bench.last.reference == "4"
    assert set(bench.last.extra) == {"verifier_metadata", "ground_truth", "note"}
    bench.good("/verify", request(message("abc"), **row), reference_field="verifier_metadata.x.y")
    assert bench.last.reference == "z"
    bench.good("/verify", request(message("abc"), **row), reference_field=["nothing", "verifier_metadata"])
    assert bench.last.reference == row["verifier_metadata"]
    for empty in ("", "nan", None):  # an empty cell hides no other
        bench.good("/verify", request(message("abc"), expected_answer=empty, **row))
        assert bench.last.reference == "4"
        named = ["expected_answer", "ground_truth"]
        bench.good("/verify", request(message("abc"), expected_answer=empty, **row), reference_field=named)
        assert bench.last.reference == "4"
    bench.good("/verify", request(message("abc"), expected_answer=""), reference_field="expected_answer")
    assert [bench.last.reference] == [None]
    bench.good("/verify", request(message("abc"), expected_answer='{"tests": []}', task=5), group_field="task")
    assert (bench.last.reference, bench.last.group) == ({"tests": []}, "5")
    status, _, text = bench.told("/verify", request(message("abc"), **row), reference_field="expected")
    assert (status, "no 'expected'; it has ground_truth" in text) == (422, True)


@pytest.mark.parametrize(
    "change",
    [
        {"response": None},
        {"response": {}},
        {"response": {"output": "abc"}},
        {"response": {"output": [1]}},
        {"response": {"output": [[]]}},
        {"responses_create_params": {}},
        {"responses_create_params": {"input": 5}},
        {"responses_create_params": [1]},
    ],
    ids=str,
)
def test_what_is_no_rollout_is_told_so(bench: Bench, change: dict[str, Any]) -> None:
    status, code, text = bench.told("/verify", request(message("abc")) | change)
    assert (status, code) == (422, "bad_request")
    assert "response" in text or "input" in text


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"type": "message"},
        {"type": "message", "role": None, "content": 5},
        {"type": "message", "content": [1, None, {"type": "output_text"}, {"text": 5}]},
        {"type": "function_call", "arguments": {"a": 1}, "name": None},
        {"type": "function_call_output", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "summary": "text", "content": 7},
        {"type": 5},
        {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]},
        {"type": "message", "content": "half a pair \ud800"},
    ],
    ids=str,
)
def test_odd_items_are_passed_on_and_break_nothing(bench: Bench, item: dict[str, Any]) -> None:
    got = bench.good("/verify", request(item))
    assert got["response"]["output"] == [item]


def test_sessions_are_confirmed_and_nothing_is_kept(bench: Bench) -> None:
    for path in ("/seed_session", "/close_session"):
        assert bench.client.post(path).json() == {}
        assert bench.good(path, request(message("abc"))) == {}
        assert bench.good(path, {"resources_session_id": "s", "episode_id": "e"}) == {"resources_session_id": "s"}
    assert bench.client.get("/reverify_mode").json() == "stateless"
