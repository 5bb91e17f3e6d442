"""The parts of the HTTP engine that need no server: pauses, the circuit, options, and labels among likely tokens."""

from __future__ import annotations

import dataclasses
import math
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from adjudge.engines.http_client import Circuit, Retry, retry_after
from adjudge.engines.label_tokens import MAX_TOKENS, chained, portions, reads_for
from adjudge.engines.openai_answers import BadAnswer, TopTokens, labels_among
from adjudge.engines.openai_config import OpenAIConfig
from adjudge.engines.openai_engine import OpenAIEngine

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = "sk-very-secret-0123456789"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("3", 3.0),
        (" 0.5 ", 0.5),
        ("-1", None),
        ("1e9", None),
        ("soon", None),
        ("9" * 400, None),
        ("٣", None),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 01 Jan 99999 12:00:30 GMT", None),
    ],
)
def test_what_retry_after_asks_for(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_pauses_double_are_jittered_and_are_bounded() -> None:
    plan = Retry(attempts=9, first_pause=1.0, longest_pause=10.0)
    source = random.Random(0)
    for attempt, bound in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (5000, 10.0)):
        pauses = [plan.pause(attempt, None, source) for _ in range(200)]
        assert 0 <= min(pauses) < 0.1 * bound < 0.9 * bound < max(pauses) <= bound
    asked = [plan.pause(1, 3.0, source) for _ in range(200)]
    assert 3.0 <= min(asked) < 3.1 < 3.9 < max(asked) <= 4.0
    assert plan.pause(1, 1e6, source) == 10.0


def test_a_circuit_opens_after_failures_and_time_and_closes_at_a_sign_of_life() -> None:
    now = [100.0]
    circuit = Circuit(failures=3, seconds=10.0, pause=4.0, clock=lambda: now[0])
    for _ in range(50):
        circuit.failed()
    assert circuit.wait() == 0  # many at once are one moment's trouble
    now[0] += 10.0
    circuit.failed()
    assert (circuit.wait(), circuit.failed_in_a_row) == (4.0, 51)
    now[0] += 4.0
    assert circuit.wait() == 0  # somebody may look
    circuit.failed()
    assert circuit.wait() == 4.0  # still dead: closed again at once
    circuit.answered()
    assert (circuit.wait(), circuit.failed_in_a_row) == (0, 0)
    now[0] += 100.0
    circuit.failed()
    circuit.failed()
    assert circuit.wait() == 0  # what counts is in a row


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "model=''"),
        ({"api_key": KEY}, "environment only"),
        ({"api_key_env": KEY}, "not a name of an environment variable"),
        ({"base_url": "localhost:8000"}, "must begin with http"),
        ({"base_url": "ftp://host/v1"}, "must begin with http"),
        ({"base_url": "http://host:port/v1"}, "is not an address"),
        ({"base_url": f"https://user:{KEY}@host/v1"}, "holds a user"),
        ({"base_url": f"https://host/v1?key={KEY}"}, "holds a user, a query"),
        ({"dialect": "sglang"}, "dialect='sglang'"),
        ({"max_tokens_field": "limit"}, "max_tokens_field='limit'"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"top_logprobs": 0}, "top_logprobs=0"),
        ({"timeout": 0.0}, "timeout=0.0"),
        ({"deadline": math.inf}, "deadline=inf"),
        ({"unseen": 1.0}, "unseen=1.0"),
        ({"attempts": 0}, "attempts=0"),
        ({"first_pause": 5.0, "longest_pause": 1.0}, "longest_pause=1.0"),
        ({"dead_failures": 0}, "failures=0"),
        ({"dead_pause": math.nan}, "pause=nan"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_options_that_cannot_work_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as mistake:
        OpenAIConfig(**{"model": "m", **options})
    assert KEY not in str(mistake.value)


@pytest.mark.parametrize(
    ("base_url", "sent"),
    [
        ("https://api.example.com/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://api.example.com/v1", False),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://localhost.example.com/v1", False),
    ],
)
def test_the_key_goes_over_https_or_nowhere_far(base_url: str, sent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert OpenAIConfig(model="m", base_url=base_url).key() == (KEY if sent else "")


def test_a_key_that_no_header_can_carry_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\r\nX-Evil: 1")
    with pytest.raises(ValueError, match="OPENAI_API_KEY holds no usable key") as mistake:
        OpenAIConfig(model="m").key()
    assert KEY not in str(mistake.value)


def test_a_variable_that_is_named_and_not_set_is_a_mistake_when_the_engine_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="api_key_env='JUDGE_KEY': that environment variable is not set"):
        OpenAIEngine(OpenAIConfig(model="m", api_key_env="JUDGE_KEY"))
    monkeypatch.setenv("JUDGE_KEY", KEY)
    assert OpenAIEngine(OpenAIConfig(model="m", api_key_env="JUDGE_KEY")).config.key() == KEY
    for usual in (OpenAIConfig(model="m"), OpenAIConfig(model="m", api_key_env="")):
        assert OpenAIEngine(usual).config.key() == ""


def test_the_fingerprint_follows_what_is_answered_and_not_how_it_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", KEY)
    changed: dict[str, Any] = {
        "model": "n",
        "base_url": "https://other.example.com/v1",
        "revision": "2",
        "dialect": "vllm",
        "chat_template_kwargs": {"enable_thinking": False},
        "echo": True,
        "top_logprobs": 5,
        "unseen": 0.0,
        "max_tokens_field": "max_completion_tokens",
        "send_temperature": False,
    }
    plain = OpenAIConfig(model="m")
    for item in dataclasses.fields(plain):
        value = getattr(plain, item.name)
        other: Any = changed[item.name] if item.name in changed else "X" if isinstance(value, str) else value + 1
        differs = OpenAIEngine(dataclasses.replace(plain, **{item.name: other})).fingerprint
        assert (differs != OpenAIEngine(plain).fingerprint) == (item.name in changed), item.name


def top(*tokens: tuple[str, float]) -> TopTokens:
    return TopTokens(
        logprobs=tuple((token, math.log(p)) for token, p in tokens), floor=math.log(min(p for _, p in tokens))
    )


YES_NO = {"yes": ("Yes", " Yes"), "no": ("No", " No")}
SURE = top(("Yes", 0.9), (" Yes", 0.06), ("No", 0.03), (" No", 0.009), ("Maybe", 1e-6))


def test_labels_that_are_shown_are_summed() -> None:
    logprobs, mass = labels_among(YES_NO, SURE, 1e-3)
    assert logprobs == pytest.approx({"yes": math.log(0.96), "no": math.log(0.039)})
    assert mass == pytest.approx(0.999)


def test_a_label_that_can_only_be_negligible_gets_its_bound_and_no_mass() -> None:
    logprobs, mass = labels_among({"yes": ("Yes",), "never": ("Never", " never")}, SURE, 1e-3)
    assert logprobs == pytest.approx({"yes": math.log(0.9), "never": math.log(2e-6)})
    assert mass == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("labels", "tokens", "unseen", "worst"),
    [
        pytest.param({"a": ("A",), "b": ("B",)}, top(("A", 0.5), ("x", 0.1)), 1e-3, "'b'", id="not-shown"),
        pytest.param({"a": ("A", " A")}, top(("A", 0.5), ("x", 0.1)), 1e-3, "'a'", id="another-way-to-write-it"),
        pytest.param({"a": ("A",), "b": ("B",)}, SURE, 0.9, "'a'", id="nothing-shown"),
        pytest.param({"yes": ("Yes",), "other": ("Maybe not",)}, SURE, 1e-7, "'other'", id="begins-with-a-token-shown"),
        pytest.param({"yes": ("Yes",), "yet": ("Yesterday",)}, SURE, 1e-3, "'yet'", id="begins-with-the-other-label"),
        pytest.param(
            {"yes": ("Yes",), **{str(at): (f"L{at}",) for at in range(600)}}, SURE, 1e-4, "'0'", id="many-small-ones"
        ),
        pytest.param({"yes": ("Yes",), "no": ("Never",)}, SURE, 0.0, "'no'", id="none-allowed"),
    ],
)
def test_a_label_that_may_be_likely_is_no_guess(
    labels: dict[str, tuple[str, ...]], tokens: TopTokens, unseen: float, worst: str
) -> None:
    with pytest.raises(BadAnswer, match=f"the label {worst} is not fully known"):
        labels_among(labels, tokens, unseen)


def test_what_is_unseen_cannot_be_more_than_what_is_left() -> None:
    everything = top(("A", 0.6), ("B", 0.4))
    logprobs, mass = labels_among({"a": ("A",), "c": ("C",)}, everything, 1e-9)
    assert logprobs["c"] == -1e9
    assert mass == pytest.approx(0.6)


def test_reads_cover_each_labels_tokens_once() -> None:
    sequences = [(1,), (2, 3), (2, 4), (2, 3, 5)]
    wanted = reads_for(sequences)
    assert wanted == {(): (1, 2), (2,): (3, 4), (2, 3): (5,)}
    assert next(iter(wanted)) == ()
    read = {(1,): -1.0, (2,): -2.0, (2, 3): -0.25, (2, 4): -0.5, (2, 3, 5): -8.0}
    assert chained(sequences, read) == {(1,): -1.0, (2, 3): -2.25, (2, 4): -2.5, (2, 3, 5): -10.25}
    assert [len(some) for some in portions(tuple(range(300)))] == [MAX_TOKENS, MAX_TOKENS, 300 - 2 * MAX_TOKENS]
