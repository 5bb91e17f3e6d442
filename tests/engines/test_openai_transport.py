"""What a server can do to a client: be slow, full, broken, lying, dead, and back again."""

from __future__ import annotations

import asyncio
import gc
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.engines.stub_server import Asked, Reply, StubServer

from adjudge.engines.interface import Fault, Generation, Sampling
from adjudge.engines.openai_config import OpenAIConfig
from adjudge.engines.openai_engine import OpenAIEngine
from adjudge.runtime.deadline import set_deadline

KEY = "sk-very-secret-0123456789"
DEEP = b"[" * 100_000


def said(text: str = "fine", **more: Any) -> dict[str, Any]:
    """A good answer of /completions."""
    choice = {"index": 0, "text": text, "finish_reason": "stop", **more}
    return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def engine(server: StubServer, **options: Any) -> OpenAIEngine:
    quick = {"dialect": "openai", "first_pause": 0.01, "longest_pause": 0.02, "attempts": 3, "timeout": 20.0}
    return OpenAIEngine(OpenAIConfig(model="m", base_url=server.url, **{**quick, **options}))


def ask(server: StubServer, prompts: int = 1, sampling: Sampling | None = None, **options: Any) -> list[Any]:
    """Ask an engine of its own, and close it."""

    async def main() -> list[Any]:
        asked = engine(server, **options)
        try:
            return await asked.generate([f"prompt {at}" for at in range(prompts)], sampling or Sampling())
        finally:
            await asked.close()

    return asyncio.run(main())


def texts(results: list[Any]) -> list[str]:
    return [one.completions[0].text if isinstance(one, Generation) else one.reason for one in results]


STATUSES = [
    (429, "engine_overloaded", 3),
    (503, "engine_overloaded", 3),
    (529, "engine_overloaded", 3),
    (500, "engine_error", 3),
    (502, "engine_unavailable", 3),
    (504, "engine_timeout", 3),
    (302, "engine_error", 1),
    (400, "engine_error", 1),
    (403, "engine_error", 1),
    (413, "engine_error", 1),
]


@pytest.mark.parametrize(("status", "reason", "attempts"), STATUSES, ids=[str(row[0]) for row in STATUSES])
def test_a_status_to_the_end(status: int, reason: str, attempts: int) -> None:
    body = {"error": {"message": "no room,\x1b[31m\ntry later"}}
    headers = {"Location": "http://127.0.0.1:1/", "Retry-After": "0"}
    with StubServer(lambda _: Reply(status=status, body=body, headers=headers)) as server:
        (fault,) = ask(server)
        assert len(server.asked) == attempts
    assert fault == Fault(reason=reason, detail=f"status {status}: no room, [31m try later")


TOO_LONG = [
    ("vllm", "This model's maximum context length is 256 tokens. However, your prompt has 900.", True),
    ("openai", {"message": "Reduce the messages.", "code": "context_length_exceeded"}, True),
    ("sglang", "The input (90 tokens) is longer than the model's context length (64 tokens).", True),
    ("llama-cpp", {"message": "too big", "type": "exceed_context_size_error"}, True),
    ("sglang-total", "Requested token count exceeds the model's maximum context length of 4096 tokens.", True),
    ("sglang-input", "Input length (90 tokens) exceeds the maximum allowed length (64 tokens).", True),
    ("anthropic", {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, True),
    ("anthropic-total", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", True),
    ("gemini", "The input token count (40000) exceeds the maximum number of tokens allowed (32768).", True),
    ("tgi", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000", True),
    ("tgi-input", "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", True),
    ("openai-responses", "Your input exceeds the context window of this model.", True),
    ("xai", "This model's maximum prompt length is 131072 but the request contains 200000 tokens.", True),
    ("mistral", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", True),
    ("bedrock", "Input is too long for requested model.", True),
    ("llama-cpp-python", "Requested tokens (5000) exceed context window of 2048", True),
    ("another-mistake", "temperature is too long a word", False),
    ("another-limit", "max_new_tokens must be positive; the maximum number of choices is 8", False),
    ("another-input", "`inputs` must be a text; the model name is too long", False),
]


@pytest.mark.parametrize(("error", "too_long"), [row[1:] for row in TOO_LONG], ids=[row[0] for row in TOO_LONG])
@pytest.mark.parametrize("status", [400, 422])
def test_a_prompt_that_does_not_fit_is_marked(error: Any, too_long: bool, status: int) -> None:
    with StubServer(lambda _: Reply(status=status, body={"error": error})) as server:
        (fault,) = ask(server)
    assert (fault.reason, fault.too_long) == ("engine_error", too_long)
    with StubServer(lambda _: Reply(status=500, body={"error": error})) as server:
        assert not ask(server)[0].too_long  # the server's trouble, whatever it says


BROKEN = [
    pytest.param(Reply(body=b'{"choices": [', length=None), "not JSON", 1, id="malformed"),
    pytest.param(Reply(body=b""), "not JSON", 1, id="empty"),
    pytest.param(Reply(body=[said()]), "not a JSON object", 1, id="a-list"),
    pytest.param(Reply(body=b'{"choices": NaN}'), "NaN is not JSON", 1, id="nan"),
    pytest.param(Reply(body=DEEP), "not JSON", 1, id="nested-without-end"),
    pytest.param(Reply(body=b'"\xff\xfe"'), "not JSON", 1, id="no-utf8"),
    pytest.param(Reply(body=b"<html>", headers={"Content-Type": "text/html"}), "text/html", 1, id="html"),
    pytest.param(Reply(body=b"x" * 300_000), "larger than 200000 bytes", 1, id="huge"),
    pytest.param(
        Reply(body=b"x" * 300_000, length=-1, cut=300_000), "larger than 200000 bytes", 1, id="huge-without-length"
    ),
    pytest.param(
        Reply(body=b"not gzip", headers={"Content-Encoding": "gzip"}), "encoding is broken", 1, id="broken-encoding"
    ),
    pytest.param(Reply(body=said(), cut=10), "broke off", 3, id="cut-off"),
    pytest.param(Reply(body=said(), cut=10, reset=True), "broke off", 3, id="reset-in-the-middle"),
]


@pytest.mark.parametrize(("reply", "detail", "attempts"), BROKEN)
def test_a_broken_answer_is_an_error(reply: Reply, detail: str, attempts: int) -> None:
    with StubServer(lambda _: reply) as server:
        (fault,) = ask(server, max_bytes=200_000)
        assert (fault.reason, len(server.asked)) == ("engine_error", attempts)
    assert detail in fault.detail
    assert len(fault.detail) <= 500


@pytest.mark.parametrize(
    "reply", [pytest.param(Reply(hang=True), id="hang"), pytest.param(Reply(body=said(), drip=0.05), id="slow-drip")]
)
def test_a_slow_answer_is_a_timeout(reply: Reply) -> None:
    with StubServer(lambda _: reply) as server:
        start = time.monotonic()
        (fault,) = ask(server, timeout=0.2)
        assert time.monotonic() - start < 300
        assert (fault.reason, len(server.asked)) == ("engine_timeout", 3)


def test_a_connection_without_an_answer_is_tried_again() -> None:
    with StubServer(lambda asked: Reply(reset=True) if asked.number < 3 else Reply(body=said())) as server:
        assert texts(ask(server)) == ["fine"]
    with StubServer(lambda _: Reply(reset=True)) as server:
        assert texts(ask(server)) == ["engine_unavailable"]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(Reply(status=429, headers={"Retry-After": "9999"}), id="429-with-a-long-pause"),
        pytest.param(Reply(status=500), id="500"),
        pytest.param(Reply(body=said(), cut=5), id="cut-off"),
        pytest.param(Reply(hang=True), id="hang"),
    ],
)
def test_a_second_try_that_works_is_a_result(bad: Reply) -> None:
    with StubServer(lambda asked: bad if asked.number == 1 else Reply(body=said())) as server:
        assert texts(ask(server, timeout=0.5)) == ["fine"]


def test_a_pause_that_ends_after_the_deadline_is_not_begun() -> None:
    with StubServer(lambda _: Reply(status=503, headers={"Retry-After": "500"})) as server:
        start = time.monotonic()
        assert texts(ask(server, longest_pause=600.0, deadline=400.0)) == ["engine_overloaded"]
        assert time.monotonic() - start < 300
        assert len(server.asked) == 1


def test_the_deadline_ends_an_attempt() -> None:
    with StubServer(lambda _: Reply(hang=True)) as server:
        start = time.monotonic()
        assert texts(ask(server, deadline=0.3)) == ["engine_timeout"]
        assert time.monotonic() - start < 300


def test_the_callers_deadline_ends_what_it_asked_for_and_nothing_else() -> None:
    async def hurried(server: StubServer) -> list[Any]:
        asked = engine(server, timeout=400.0, deadline=400.0, concurrency=1)
        try:
            set_deadline(0.3)
            return await asked.generate(["first", "has to wait for it"], Sampling())
        finally:
            await asked.close()

    with StubServer(lambda _: Reply(hang=True)) as server:
        assert texts(asyncio.run(hurried(server))) == ["engine_timeout"] * 2
    with StubServer(lambda _: Reply(body=said())) as server:
        assert texts(ask(server)) == ["fine"]


def test_one_prompts_fault_is_nobody_elses() -> None:
    def script(asked: Asked) -> Reply:
        at = int(asked.body["prompt"].split()[1])
        return Reply(status=400, body={"message": "too long"}) if at % 3 == 1 else Reply(body=said(str(at)))

    with StubServer(script) as server:
        found = texts(ask(server, prompts=50))
    assert found == ["engine_error" if at % 3 == 1 else str(at) for at in range(50)]


def test_no_more_requests_are_under_way_than_allowed() -> None:
    with StubServer(lambda _: Reply(body=said(), drip=0.0005)) as server:
        assert texts(ask(server, prompts=40, concurrency=5)) == ["fine"] * 40
        assert server.max_at_once == 5


def test_a_dead_server_fails_fast_and_is_found_again() -> None:
    async def main(server: StubServer) -> None:
        asked = engine(server, attempts=2, concurrency=4, dead_failures=4, dead_seconds=0.0, dead_pause=1.0)
        assert texts(await asked.generate(["a"], Sampling())) == ["fine"]
        server.down()
        found = await asked.generate(["a"] * 2000, Sampling())
        assert set(texts(found)) == {"engine_unavailable"}
        untried = [one for one in found if isinstance(one, Fault) and one.detail.startswith("not tried")]
        assert len(untried) > 1900
        server.up()
        end = time.monotonic() + 300
        while texts(await asked.generate(["a"], Sampling())) != ["fine"]:
            assert time.monotonic() < end
        await asked.close()

    with StubServer(lambda _: Reply(body=said())) as server:
        asyncio.run(main(server))


def test_work_under_way_survives_a_restart_of_the_server() -> None:
    held = threading.Event()
    held.set()

    def script(asked: Asked) -> Reply:
        return Reply(hang=True) if held.is_set() else Reply(body=said(asked.body["prompt"]))

    with StubServer(script) as server:
        found: list[Any] = []
        options: dict[str, Any] = {
            "attempts": 50,
            "longest_pause": 0.3,
            "dead_failures": 3,
            "dead_seconds": 0.0,
            "dead_pause": 0.05,
        }
        thread = threading.Thread(target=lambda: found.extend(ask(server, prompts=8, **options)))
        thread.start()
        assert server.until(8)
        server.down()
        held.clear()
        server.up()
        thread.join(30)
    assert texts(found) == [f"prompt {at}" for at in range(8)]


def test_from_many_threads_and_loops_one_engine() -> None:
    with StubServer(lambda asked: Reply(body=said(asked.body["prompt"]))) as server:
        shared = engine(server, concurrency=3)
        found: dict[int, list[str]] = {}

        def run(at: int) -> None:
            for again in range(2):  # a loop of its own each time, as `asyncio.run` makes one
                prompts = [f"{at}.{again}.{row}" for row in range(20)]
                found[10 * at + again] = texts(asyncio.run(shared.generate(prompts, Sampling())))

        threads = [threading.Thread(target=run, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        asyncio.run(shared.close())
        asyncio.run(shared.close())
        assert server.max_at_once <= 3
    assert found == {
        10 * at + again: [f"{at}.{again}.{row}" for row in range(20)] for at in range(4) for again in range(2)
    }


def test_a_forked_child_asks_over_connections_of_its_own() -> None:
    program = (
        "import asyncio, os, sys, warnings\n"
        "from adjudge.engines.interface import Sampling\n"
        "from adjudge.engines.openai_config import OpenAIConfig\n"
        "from adjudge.engines.openai_engine import OpenAIEngine\n"
        "warnings.simplefilter('ignore', DeprecationWarning)  # forking with threads is what is tested\n"
        "engine = OpenAIEngine(OpenAIConfig(model='m', base_url=sys.argv[1], dialect='openai'))\n"
        "def ask(prompt):\n"
        "    (one,) = asyncio.run(engine.generate([prompt], Sampling()))\n"
        "    return one.completions[0].text\n"
        "assert ask('parent') == 'parent'\n"
        "if not (child := os.fork()):\n"
        "    os._exit(0 if ask('child') == 'child' else 1)\n"
        "assert ask('parent') == 'parent'\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    with StubServer(lambda asked: Reply(body=said(asked.body["prompt"]))) as server:
        command = [sys.executable, "-c", program, server.url]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 0, done.stderr
        assert len(server.asked) == 3


def test_a_cancelled_call_hangs_up_and_leaves_the_engine_usable() -> None:
    async def main(server: StubServer) -> None:
        asked = engine(server)
        task = asyncio.create_task(asked.generate(["hang"] * 3, Sampling()))
        assert await asyncio.to_thread(server.until, 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.closed.wait, 10)
        assert texts(await asked.generate(["go"], Sampling())) == ["fine"]
        await asked.close()

    with StubServer(lambda asked: Reply(hang=True) if asked.body["prompt"] == "hang" else Reply(body=said())) as server:
        asyncio.run(main(server))


def test_closing_an_engine_ends_what_is_under_way() -> None:
    async def main(server: StubServer) -> list[str]:
        asked = engine(server)
        task = asyncio.create_task(asked.generate(["hang"] * 3, Sampling()))
        assert await asyncio.to_thread(server.until, 3)
        await asked.close()
        return texts(await task) + texts(await asked.generate(["go"], Sampling()))

    with StubServer(lambda asked: Reply(hang=True) if asked.body["prompt"] == "hang" else Reply(body=said())) as server:
        assert asyncio.run(main(server)) == ["engine_unavailable"] * 3 + ["fine"]
        gc.collect()


def test_a_chat_that_json_cannot_hold_is_a_fault_of_its_own() -> None:
    async def main(server: StubServer) -> list[str]:
        asked = engine(server)
        chats: list[Any] = [[{"role": "user", "content": content}] for content in ("a", b"a", float("nan"), {1, 2})]
        found = texts(await asked.generate(chats, Sampling(temperature=1.0)))
        await asked.close()
        return found

    body = {"choices": [{"index": 0, "message": {"content": "fine"}, "finish_reason": "stop"}]}
    with StubServer(lambda _: Reply(body=body)) as server:
        assert asyncio.run(main(server)) == ["fine", "engine_error", "engine_error", "engine_error"]


def test_an_engine_that_nobody_holds_hangs_up() -> None:
    """Left open, the connection would be reported as a leak, which the settings of pytest make an error."""
    with StubServer(lambda _: Reply(body=said())) as server:
        assert texts(asyncio.run(engine(server).generate(["a"], Sampling()))) == ["fine"]
        gc.collect()
        assert texts(ask(server)) == ["fine"]  # on the same loop, after the hanging up


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    refusal = Reply(status=400, body={"error": {"message": f"bad key {KEY}"}})
    with StubServer(lambda asked: refusal if asked.number == 1 else Reply(body=said(finish_reason=[KEY]))) as server:
        asked = engine(server, api_key_env="JUDGE_KEY")

        async def main() -> list[Any]:
            found = [await asked.generate(["a"], Sampling()), await asked.generate(["a"], Sampling())]
            await asked.close()
            return found

        found = asyncio.run(main())
        assert [one.headers["authorization"] for one in server.asked] == [f"Bearer {KEY}"] * 2
    assert "bad key ***" in str(found[0])
    for shown in (repr(asked), repr(asked.config), asked.fingerprint, str(found), str(pickle.dumps(asked))):
        assert KEY not in shown


@pytest.mark.parametrize(
    ("status", "remedy"), [(401, "set the environment variable JUDGE_KEY"), (404, "check base_url")], ids=["401", "404"]
)
def test_what_never_worked_is_a_mistake_and_what_did_is_a_fault(
    status: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    refusal = Reply(status=status, body={"error": {"message": f"not with {KEY}"}})
    with StubServer(lambda _: refusal) as server, pytest.raises(ValueError, match=remedy) as mistake:
        ask(server, prompts=20, api_key_env="JUDGE_KEY")
    assert KEY not in str(mistake.value)

    async def main(server: StubServer) -> list[str]:
        asked = engine(server)
        found = texts(await asked.generate(["a"], Sampling())) + texts(await asked.generate(["a"], Sampling()))
        await asked.close()
        return found

    with StubServer(lambda asked: Reply(body=said()) if asked.number == 1 else refusal) as server:
        assert asyncio.run(main(server)) == ["fine", "engine_error"]


def models_of(**owners: str) -> Reply:
    return Reply(body={"data": [{"id": model, "owned_by": owner} for model, owner in owners.items()]})


MODELS: list[tuple[str, Callable[[Asked], Reply], str]] = [
    ("vllm", lambda _: Reply(body={"data": [{"id": "m", "owned_by": "vllm"}]}), "vllm"),
    ("another-server", lambda _: Reply(body={"data": [{"id": "m", "owned_by": "system"}]}), "openai"),
    ("no-list-of-models", lambda _: Reply(status=404), "openai"),
    ("nonsense", lambda _: Reply(body={"data": 3}), "openai"),
    ("a-list", lambda _: Reply(body=[{"id": "m", "object": "model"}]), "openai"),
    ("a-page", lambda _: Reply(body=b"<html>", headers={"Content-Type": "text/html"}), "openai"),
    ("an-error", lambda _: Reply(body={"error": {"message": "no list"}}), "openai"),
    ("gateway-of-others", lambda _: models_of(m="openai", other="vllm"), "openai"),
    ("gateway-to-vllm", lambda _: models_of(m="vllm", other="openai"), "vllm"),
    ("by-another-name", lambda _: models_of(other="vllm"), "vllm"),
    ("by-a-name-of-a-gateway", lambda _: models_of(other="vllm", more="openai"), "openai"),
]


@pytest.mark.parametrize(("models", "dialect"), [row[1:] for row in MODELS], ids=[row[0] for row in MODELS])
def test_the_server_is_asked_once_what_it_is(models: Callable[[Asked], Reply], dialect: str) -> None:
    with StubServer(lambda asked: models(asked) if asked.path == "/v1/models" else Reply(body=said())) as server:
        assert texts(ask(server, prompts=10, dialect="auto")) == ["fine"] * 10
        assert server.paths().count("/v1/models") == 1
        assert ("add_special_tokens" in server.asked[-1].body) == (dialect == "vllm")


def test_a_server_that_cannot_say_what_it_is_costs_only_this_call() -> None:
    with StubServer(lambda asked: Reply(status=500) if len(server.asked) < 4 else Reply(body=said())) as server:

        async def main() -> list[list[str]]:
            asked = engine(server, dialect="auto")
            found = [texts(await asked.generate(["a", "b"], Sampling())) for _ in range(2)]
            await asked.close()
            return found

        assert asyncio.run(main()) == [["engine_error"] * 2, ["fine"] * 2]
