"""What the HTTP engine asks for, to the letter, and how strictly it reads what comes back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.engines.stub_server import Asked, Reply, StubServer

from adjudge.engines.interface import Completion, Fault, Generation, Prompt, Sampling
from adjudge.engines.openai_config import OpenAIConfig
from adjudge.engines.openai_engine import OpenAIEngine

CHAT: list[dict[str, str]] = [{"role": "user", "content": "Is it?"}]
BEGUN = [*CHAT, {"role": "assistant", "content": "It"}]
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def call(
    script: Callable[[Asked], Reply], work: Callable[[OpenAIEngine], Awaitable[Any]], **options: Any
) -> tuple[Any, list[Asked]]:
    """Return what an engine returned, and what its server was asked."""
    with StubServer(script) as server:
        chosen = {"dialect": "openai", "attempts": 1, "api_key_env": "", **options}
        engine = OpenAIEngine(OpenAIConfig(model="m", base_url=server.url, **chosen))

        async def main() -> Any:
            try:
                return await work(engine)
            finally:
                await engine.close()

        return asyncio.run(main()), server.asked


def generate(
    body: Any, prompt: Prompt = CHAT, sampling: Sampling | None = None, **options: Any
) -> tuple[Any, list[Asked]]:
    async def work(engine: OpenAIEngine) -> Any:
        (one,) = await engine.generate([prompt], sampling or Sampling())
        return one

    return call(lambda _: Reply(body=body), work, **options)


def message(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"content": "hi", **fields}, "finish_reason": "stop"}], "usage": USAGE}


MANY = {"n": 2, "max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "stop": ("a", "b")}


@pytest.mark.parametrize(
    ("prompt", "options", "sampling", "path", "body"),
    [
        pytest.param(
            "text", {}, {}, "/v1/completions", {"prompt": "text", "max_tokens": 1024, "temperature": 0.0}, id="text"
        ),
        pytest.param(
            CHAT,
            {"max_tokens_field": "max_completion_tokens", "chat_template_kwargs": {"think": False}},
            MANY,
            "/v1/chat/completions",
            {
                "messages": CHAT,
                "chat_template_kwargs": {"think": False},
                "max_completion_tokens": 7,
                "temperature": 0.5,
                "top_p": 0.9,
                "n": 2,
                "stop": ["a", "b"],
            },
            id="chat",
        ),
        pytest.param(
            CHAT,
            {"send_temperature": False},
            {"temperature": 0.5},
            "/v1/chat/completions",
            {"messages": CHAT, "max_tokens": 1024},
            id="no-temperature",
        ),
        pytest.param(
            BEGUN,
            {"dialect": "vllm"},
            {**MANY, "top_k": 5},
            "/v1/chat/completions",
            {
                "messages": BEGUN,
                "continue_final_message": True,
                "add_generation_prompt": False,
                "max_tokens": 7,
                "temperature": 0.5,
                "top_p": 0.9,
                "top_k": 5,
                "min_p": 0.0,
                "repetition_penalty": 1.0,
                "presence_penalty": 0.0,
                "frequency_penalty": 0.0,
                "return_token_ids": True,
                "n": 2,
                "stop": ["a", "b"],
            },
            id="vllm",
        ),
    ],
)
def test_what_is_asked(
    prompt: Prompt, options: dict[str, Any], sampling: dict[str, Any], path: str, body: dict[str, Any]
) -> None:
    _, (asked,) = generate({}, prompt, Sampling(**sampling), **options)
    seed = asked.body.pop("seed", None)
    assert (asked.path, asked.body) == (path, {"model": "m", **body})
    assert (seed is not None) == (Sampling(**sampling).temperature > 0)
    assert seed is None or 0 <= seed < 2**31


def test_each_prompt_has_a_seed_of_its_own_that_repeats() -> None:
    async def work(engine: OpenAIEngine) -> None:
        for seed in (0, 0, 1):
            await engine.generate(["a", "b"], Sampling(temperature=1.0, seed=seed))

    _, asked = call(lambda _: Reply(body={}), work)
    seeds = [sorted((one.body["prompt"], one.body["seed"]) for one in asked[at : at + 2]) for at in (0, 2, 4)]
    assert seeds[0] == seeds[1]
    assert len({seed for pairs in seeds for _, seed in pairs}) == 4


def test_half_a_surrogate_pair_is_replaced_and_whole_ones_stay() -> None:
    found, (asked,) = generate(message(), [{"role": "user", "content": "\ud800 😀 \udfff"}])
    assert asked.body["messages"][0]["content"] == "\ufffd 😀 \ufffd"
    assert isinstance(found, Generation)


@pytest.mark.parametrize(
    ("fields", "completion"),
    [
        ({}, Completion(text="hi", finish_reason="stop", tokens=2)),
        ({"reasoning": "hm"}, Completion(text="hi", finish_reason="stop", reasoning="hm", tokens=2)),
        ({"reasoning_content": "hm"}, Completion(text="hi", finish_reason="stop", reasoning="hm", tokens=2)),
        ({"content": None, "reasoning": "hm"}, Completion(text="", finish_reason="stop", reasoning="hm", tokens=2)),
        ({"content": None, "refusal": "no"}, Completion(text="no", finish_reason="refusal", tokens=2)),
        ({"content": None, "tool_calls": []}, Completion(text="", finish_reason="stop", tokens=2)),
    ],
    ids=["plain", "reasoning", "reasoning-content", "reasoning-alone", "refusal", "nothing-said"],
)
def test_what_a_message_says(fields: dict[str, Any], completion: Completion) -> None:
    found, _ = generate(message(**fields))
    assert found.completions == (completion,)
    assert (found.cost.prompt_tokens, found.cost.completion_tokens) == (3, 2)
    assert found.cost.seconds > 0


def choice(index: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"index": index, "message": {"content": "hi"}, "finish_reason": "length", **fields}


def test_choices_are_put_in_order_and_tokens_counted_where_shown() -> None:
    cut = choice(1, token_ids=[5, 6, 7], finish_reason="max_tokens")  # as a proxy before another API may say
    body = {"choices": [cut, choice(0, message={"content": "a"})], "usage": USAGE}
    found, _ = generate(body, sampling=Sampling(n=2, temperature=1.0))
    assert found.completions == (
        Completion(text="a", finish_reason="length", tokens=0),
        Completion(text="hi", finish_reason="length", tokens=3),
    )


@pytest.mark.parametrize(
    ("body", "n"),
    [
        pytest.param({}, 1, id="nothing"),
        pytest.param({"choices": None}, 1, id="no-list"),
        pytest.param({"choices": []}, 1, id="no-choice"),
        pytest.param({"choices": [choice()]}, 2, id="one-of-two"),
        pytest.param({"choices": [choice(), choice(1)]}, 1, id="two-of-one"),
        pytest.param({"choices": [choice(), choice()]}, 2, id="the-same-twice"),
        pytest.param({"choices": [choice(True)]}, 1, id="index-is-true"),
        pytest.param({"choices": ["hi"]}, 1, id="choice-is-text"),
        pytest.param({"choices": [{"index": 0, "finish_reason": "stop"}]}, 1, id="no-message"),
        pytest.param({"choices": [choice(message={})]}, 1, id="no-content"),
        pytest.param({"choices": [choice(message={"content": ["hi"]})]}, 1, id="content-is-a-list"),
        pytest.param({"choices": [choice(message={"content": "hi", "reasoning": 3})]}, 1, id="reasoning-is-a-number"),
        pytest.param({"choices": [choice(finish_reason=None)]}, 1, id="unfinished"),
        pytest.param({"choices": [choice(finish_reason="abort")]}, 1, id="given-up"),
        pytest.param({"choices": [choice()], "usage": 3}, 1, id="usage-is-a-number"),
        pytest.param({"choices": [choice()], "usage": {"prompt_tokens": -1}}, 1, id="negative-usage"),
        pytest.param({"choices": [choice()], "usage": {"prompt_tokens": "7"}}, 1, id="usage-is-text"),
        pytest.param({"choices": [choice()], "usage": {"prompt_tokens": 7.5}}, 1, id="half-a-token"),
        pytest.param({"choices": [choice()], "usage": {"prompt_tokens": True}}, 1, id="usage-is-true"),
    ],
)
def test_an_answer_that_lacks_something_is_an_error(body: Any, n: int) -> None:
    found, _ = generate(body, sampling=Sampling(n=n, temperature=1.0))
    assert isinstance(found, Fault)
    assert found.reason == "engine_error"


@pytest.mark.parametrize(
    ("usage", "prompt", "completion"),
    [
        ({}, 0, 0),
        ({"usage": None}, 0, 0),
        ({"usage": {}}, 0, 0),
        ({"usage": {"prompt_tokens": None, "completion_tokens": 3}}, 0, 3),
        ({"usage": {"prompt_tokens": 12.0, "completion_tokens": 3.0}}, 12, 3),
        ({"usage": {"prompt_tokens": 12, "completion_tokens": None}}, 12, 0),
    ],
)
def test_a_verdict_is_not_lost_with_a_count_of_tokens(usage: dict[str, Any], prompt: int, completion: int) -> None:
    found, _ = generate({"choices": [choice()], "error": None, **usage})
    cost, (written,) = found.cost, found.completions
    assert (cost.prompt_tokens, cost.completion_tokens, written.tokens) == (prompt, completion, completion)


@pytest.mark.parametrize(
    ("error", "reason", "asked"),
    [
        ({"message": "rate limited", "code": 429}, "engine_overloaded", 2),
        ({"message": "upstream died", "code": 502}, "engine_unavailable", 2),
        ({"message": "refused by the provider", "code": 403}, "engine_error", 1),
        ({"message": "no code", "code": "rate_limit"}, "engine_error", 1),
        ("plain text", "engine_error", 1),
    ],
)
def test_an_error_that_comes_as_an_answer(error: Any, reason: str, asked: int) -> None:
    """As gateways answer, which have sent their status before they knew."""
    found, requests = generate({"error": error, "user_id": "u"}, attempts=2, first_pause=0.0)
    assert (found.reason, len(requests)) == (reason, asked)
    assert (error if isinstance(error, str) else error["message"]) in found.detail


def test_an_error_of_one_choice_is_told() -> None:
    found, _ = generate({"choices": [choice(finish_reason="error", error={"message": "upstream died"})]})
    assert "upstream died" in found.detail


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("Unsupported value: 'temperature' does not support 0.0 with this model.", "send_temperature: false"),
        ("Unsupported parameter: 'temperature' is not supported with this model.", "send_temperature: false"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_completion_tokens"),
    ],
)
def test_a_field_that_a_model_does_not_take_names_the_option(message: str, remedy: str) -> None:
    refusal = Reply(status=400, body={"error": {"message": message}})

    async def twice(engine: OpenAIEngine) -> Any:
        return [(await engine.generate([prompt], Sampling()))[0] for prompt in ("a", "b")]

    with pytest.raises(ValueError, match=remedy):
        call(lambda _: refusal, twice)
    fine = {"choices": [{"index": 0, "text": "hi", "finish_reason": "stop"}]}
    (_, later), _ = call(lambda asked: Reply(body=fine) if asked.number == 1 else refusal, twice)
    assert isinstance(later, Fault)
    assert remedy in later.detail


def shown(*tokens: tuple[str, Any], chosen: str | None = None) -> dict[str, Any]:
    """An answer of /chat/completions with the likeliest tokens."""
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in tokens]
    first = {"token": tokens[0][0] if chosen is None else chosen, "top_logprobs": top}
    return {"choices": [choice(logprobs={"content": [first]})], "usage": USAGE}


def labels(body: Any, prompt: Prompt = CHAT, **options: Any) -> tuple[Any, list[Asked]]:
    async def work(engine: OpenAIEngine) -> Any:
        (one,) = await engine.label_logprobs([prompt], {"yes": ("Yes",), "no": ("No",)})
        return one

    return call(lambda _: Reply(body=body), work, **options)


LIKELY = (("Yes", math.log(0.7)), ("No", math.log(0.2)), ("Eh", math.log(0.01)))


def test_labels_are_read_from_the_likeliest_tokens_of_a_chat() -> None:
    found, (asked,) = labels(shown(*LIKELY), top_logprobs=7)
    assert asked.body["logprobs"] is True
    assert (asked.body["top_logprobs"], asked.body["max_tokens"], asked.body["temperature"]) == (7, 1, 0.0)
    assert found.logprobs == pytest.approx({"yes": math.log(0.7), "no": math.log(0.2)})
    assert found.mass == pytest.approx(0.9)
    assert found.cost.prompt_tokens == 3


def test_labels_are_read_from_the_likeliest_tokens_of_a_text() -> None:
    logprobs = {"tokens": ["Yes"], "top_logprobs": [dict(LIKELY)]}
    body = {"choices": [{"index": 0, "text": "Yes", "finish_reason": "length", "logprobs": logprobs}], "usage": USAGE}
    found, (asked,) = labels(body, "Is it?", top_logprobs=5)
    assert (asked.path, asked.body["logprobs"], asked.body["max_tokens"]) == ("/v1/completions", 5, 1)
    assert found.logprobs == pytest.approx({"yes": math.log(0.7), "no": math.log(0.2)})


def test_a_generated_token_that_is_not_among_the_likeliest_bounds_nothing() -> None:
    """Servers append it to the list; taken for the least likely token shown, it would make "No" look impossible."""
    body = shown(("Yes", math.log(0.5)), ("Eh", math.log(0.2)), ("zzz", math.log(1e-9)), chosen="zzz")
    found, _ = labels(body)
    assert isinstance(found, Fault)
    assert "'no' is not fully known" in found.detail


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(message(), id="no-log-probabilities"),
        pytest.param({"choices": [choice(logprobs={"content": []})]}, id="empty"),
        pytest.param(
            {"choices": [choice(logprobs={"content": [{"token": "a", "top_logprobs": []}]})]}, id="none-shown"
        ),
        pytest.param(shown(("Yes", "-0.1"), ("No", -3.0)), id="text-for-a-number"),
        pytest.param(shown(("Yes", 0.5), ("No", -3.0)), id="above-0"),
        pytest.param(shown(("Yes", None), ("No", -3.0)), id="null"),
        pytest.param(shown(("Yes", -0.1), ("No", -0.2)), id="more-than-everything"),
    ],
)
def test_log_probabilities_that_cannot_be_are_an_error(body: Any) -> None:
    found, _ = labels(body)
    assert isinstance(found, Fault)
    assert found.reason == "engine_error"


def echo(tokens: list[str], values: list[Any]) -> dict[str, Any]:
    logprobs = {"tokens": tokens, "token_logprobs": values}
    return {"choices": [{"index": 0, "text": "", "finish_reason": "length", "logprobs": logprobs}], "usage": USAGE}


@pytest.mark.parametrize(
    ("body", "tokens", "logprobs"),
    [
        (echo(["Is", " it?", " Y", "es", "!"], [None, -1, -2, -3, -9]), (" Y", "es"), (-2.0, -3.0)),
        (echo(["Is", " it?", " Yes"], [None, -1, -9999.0]), (" Yes",), (-1e9,)),
        (echo(["Is", " it? Y", "es"], [None, -1, -2]), None, None),
        (echo(["Is", " it?", " No"], [None, -1, -2]), None, None),
        (echo(["Is", " it?"], [None, -1]), None, None),
        (echo(["Is", " it?", " Yes"], [None, -1]), None, None),
        (echo(["Was", "it?", " Yes"], [None, -1, -2]), None, None),
    ],
    ids=["two-tokens", "impossible", "across-the-border", "other-text", "no-text", "missing-number", "other-prompt"],
)
def test_an_echo_is_read_only_where_it_spells_the_text(
    body: Any, tokens: tuple[str, ...] | None, logprobs: tuple[float, ...] | None
) -> None:
    async def work(engine: OpenAIEngine) -> Any:
        (one,) = await engine.reference_logprobs(["Is it?"], [" Yes"])
        return one

    found, (asked,) = call(lambda _: Reply(body=body), work, echo=True)
    assert (asked.body["prompt"], asked.body["echo"]) == ("Is it? Yes", True)
    if tokens is None:
        assert found.reason == "engine_error"
    else:
        assert (found.tokens, found.logprobs) == (tokens, logprobs)


REFUSED: list[tuple[str, Callable[[OpenAIEngine], Awaitable[Any]], str]] = [
    ("top-k", lambda engine: engine.generate(["a"], Sampling(top_k=3)), "top_k=3"),
    ("continuation", lambda engine: engine.generate([BEGUN], Sampling()), "ends with an assistant's turn"),
    ("labels-of-one", lambda engine: engine.label_logprobs([BEGUN], {"a": ("A",)}), "ends with an assistant's turn"),
    ("shared-text", lambda engine: engine.label_logprobs(["a"], {"a": ("A",), "b": ("A",)}), "share the text 'A'"),
    ("no-labels", lambda engine: engine.label_logprobs(["a"], {}), "no labels"),
    ("text-for-texts", lambda engine: engine.label_logprobs(["a"], {"yes": "Yes"}), "give a list of texts"),
    ("empty-text", lambda engine: engine.label_logprobs(["a"], {"yes": ("",)}), "no token"),
    ("reference", lambda engine: engine.reference_logprobs(["a"], ["b"]), "echo=true"),
    ("uneven", lambda engine: engine.reference_logprobs(["a"], []), "1 prompts and 0 texts"),
    ("classify", lambda engine: engine.classify(["a"]), "--runner pooling"),
    ("classify-tokens", lambda engine: engine.classify_tokens(["a"]), "--runner pooling"),
]


@pytest.mark.parametrize(("work", "remedy"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_the_protocol_cannot_do_names_the_remedy(
    work: Callable[[OpenAIEngine], Awaitable[Any]], remedy: str
) -> None:
    with pytest.raises(ValueError, match=remedy):
        call(lambda _: Reply(body=message()), work)


def test_no_prompts_ask_nothing() -> None:
    async def work(engine: OpenAIEngine) -> list[Any]:
        return [
            await engine.generate([], Sampling()),
            await engine.label_logprobs([], {"a": ("A",)}),
            await engine.reference_logprobs([], []),
            await engine.classify([]),
            await engine.classify_tokens([]),
        ]

    assert call(lambda _: Reply(body={}), work, dialect="auto") == ([[]] * 5, [])


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": [{"probs": []}]},
        {"data": [{"probs": [1.0, "2"]}]},
        {"data": [{"probs": [True]}]},
        {"data": [{"probs": [1.0]}, {"probs": [1.0]}]},
        {"data": ["1.0"]},
    ],
    ids=["none", "empty", "text", "true", "two", "no-record"],
)
def test_a_classifiers_answer_is_read_strictly(body: Any) -> None:
    async def work(engine: OpenAIEngine) -> Any:
        (one,) = await engine.classify(["a"])
        return one

    found, _ = call(lambda _: Reply(body=body), work, dialect="vllm")
    assert isinstance(found, Fault)
    assert found.reason == "engine_error"


def test_raw_outputs_are_asked_for_by_each_name_that_vllm_has_had() -> None:
    """Versions before 0.11.1 ignore `use_activation`, and would answer with a sigmoid or a softmax of the outputs."""

    async def work(engine: OpenAIEngine) -> None:
        await engine.classify(["a", CHAT])
        await engine.classify_tokens([(1, 2)])

    _, asked = call(lambda _: Reply(body={}), work, dialect="vllm")
    assert sorted(one.path for one in asked) == ["/classify", "/classify", "/pooling"]
    for one in asked:
        assert [one.body[name] for name in ("use_activation", "activation", "softmax")] == [False] * 3
        assert one.body.get("add_special_tokens") == (True if one.body.get("input") == "a" else None)


CHOICE = Sampling(choice=("A", "tie"), max_tokens=9)


def test_a_choice_is_asked_for_by_a_schema_and_without_the_begun_turn() -> None:
    found, (asked,) = generate(message(content='{"answer": "tie"}'), BEGUN, CHOICE)
    assert isinstance(found, Generation)
    (completion,) = found.completions
    assert (completion.text, completion.mass) == ("tie", None)
    assert asked.body["messages"] == CHAT
    given = asked.body["response_format"]
    assert (given["type"], given["json_schema"]["strict"]) == ("json_schema", True)
    assert given["json_schema"]["schema"]["properties"] == {"answer": {"type": "string", "enum": ["A", "tie"]}}


@pytest.mark.parametrize("content", ["tie", "{", '{"answer": "B"}', '{"verdict": "A"}', '["A"]'])
def test_a_server_without_structured_outputs_makes_no_choice(content: str) -> None:
    found, _ = generate(message(content=content), CHAT, CHOICE)
    assert isinstance(found, Fault)
    assert "response_format" in found.detail


def test_a_text_has_no_response_format() -> None:
    with pytest.raises(ValueError, match=r"sampling option choice: .* ask with chat turns"):
        generate({}, "text", CHOICE)
