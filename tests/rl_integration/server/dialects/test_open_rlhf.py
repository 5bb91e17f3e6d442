"""OpenRLHF: texts with special tokens around them, which the caller names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.rl_integration.server.dialects.conftest import Bench


def asked(query: str, prompt: str = "1+1=", label: Any = "2") -> dict[str, Any]:
    return {"query": [query], "prompts": [prompt], "labels": [label]}


def test_nothing_is_stripped_that_was_not_named(bench: Bench) -> None:
    bench.good("/get_reward", asked("1+1=2<|im_end|>\n"))
    assert (bench.last.response, bench.last.finish_reason) == ("2<|im_end|>\n", None)


@pytest.mark.parametrize(
    ("query", "response", "reason"),
    [
        ("1+1=2<|im_end|>", "2", "stop"),
        ("1+1=2<|im_end|>\n", "2", "stop"),
        ("1+1=2 <|im_end|>\n<|pad|><|pad|>", "2 ", "stop"),
        ("1+1=<|im_end|>", "", "stop"),
        ("1+1=2<|im_end|> or not", "2<|im_end|> or not", None),
        ("1+1=2 \n", "2 \n", None),
    ],
)
def test_marks_at_the_end_are_stripped(bench: Bench, query: str, response: str, reason: str | None) -> None:
    marks = ["<|im_end|>", "<|pad|>", ""]
    bench.good("/get_reward", asked(query), strip_end=marks)
    assert (bench.last.response, bench.last.finish_reason) == (response, reason)
    bench.good("/get_reward", asked(query), strip_end=marks, cut_off=True)
    assert bench.last.finish_reason == ("stop" if reason else "length")


def test_an_answer_without_its_end_is_cut_off_and_worth_nothing(bench: Bench) -> None:
    query = {"strip_end": "</s>", "cut_off": True, "scorer": "math"}
    assert bench.good("/get_reward", asked("1+1=\\boxed{2}</s>"), **query)["rewards"] == [1.0]
    assert bench.good("/get_reward", asked("1+1=\\boxed{2}"), **query)["rewards"] == [0.0]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"cut_of": "true"}, "no query parameter 'cut_of'; the route takes .*cut_off.* (did you mean 'cut_off'?)"),
        ({"strip_ends": "</s>"}, "no query parameter 'strip_ends'"),
        ({"cut_off": "true"}, "no strip_end says what an answer ends in"),
        ({"cut_off": "true", "strip_end": ""}, "no strip_end says what an answer ends in"),
        ({"traffic": "eval"}, "no query parameter 'traffic'"),
    ],
)
def test_a_misspelt_parameter_of_the_query_is_an_error(bench: Bench, query: dict[str, str], told: str) -> None:
    status, code, message = bench.told("/get_reward", asked("1+1=2"), **query)
    assert (status, code) == (422, "bad_request")
    assert re.search(told.replace("(", "\\(").replace("?)", "\\?\\)"), message), message


def test_answers_to_one_prompt_are_one_group(bench: Bench) -> None:
    groups = []
    for query, prompt in (("1+1=2", "1+1="), ("1+1=3", "1+1="), ("2+2=2", "2+2="), ("2", "")):
        bench.good("/get_reward", asked(query, prompt))
        groups.append(bench.last.group)
    assert groups[0] == groups[1] != groups[2]
    assert groups[3] == "", "no prompt, no siblings that are known"
    bench.good("/get_reward", asked("1+1=2", "1+1=", label="3"))
    assert bench.last.group != groups[0], "another label is another row"


def test_a_tokenizer_may_compose_what_the_prompt_has_apart(bench: Bench) -> None:
    bench.good("/get_reward", asked("caf\u00e9 2", "cafe\u0301"))
    assert bench.last.response == " 2"


@pytest.mark.parametrize("query", ["<s>1+1=2", "<s> 1+1=2", "1+1=2"])
def test_marks_before_the_prompt_are_stripped(bench: Bench, query: str) -> None:
    bench.good("/get_reward", asked(query), strip_start="<s>")
    assert (bench.last.prompt, bench.last.response) == ("1+1=", "2")


@pytest.mark.parametrize("query", ["<s>1+1=2", "1 + 1=2", ""])
def test_a_text_that_does_not_hold_its_prompt_is_told(bench: Bench, query: str) -> None:
    status, _, text = bench.told("/get_reward", asked(query), strip_start=["", "<bos>"])
    assert (status, "?strip_start=<s>" in text) == (422, True)


@pytest.mark.parametrize(("response", "status"), [("down", 503), ("not mine", 422)])
def test_what_has_no_score_is_an_error_or_the_fallback(bench: Bench, response: str, status: int) -> None:
    assert bench.told("/get_reward", asked(f"1+1={response}"))[0] == status
    got = bench.good("/get_reward", asked(f"1+1={response}"), fallback=-1)
    assert (got["rewards"], got["extra_logs"]) == ([-1.0], {"reward_valid": [0.0]})


@pytest.mark.parametrize(
    "body",
    [
        {"query": "abc"},
        {"query": [1]},
        {"query": ["a"], "labels": {"a": 1}},
        {"query": ["a"] * 101},
        {"query": ["a"], "prompts": ["a", "b"]},
        {"query": [None]},
    ],
    ids=ascii,
)
def test_what_is_no_request_is_told_so(bench: Bench, body: dict[str, Any]) -> None:
    assert bench.told("/get_reward", body)[0] in (413, 422)
