"""The vllm engine on tiny random models: starting, sharing a batch, dying, and starting again.

That the numbers are those of the other engines is for tests/engines/test_parity.py.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.vllm_server import WINDOW, Task, engine_processes, starting, unheard, vllm_engines

from adjudge.engines.interface import Engine, Fault, Prompt, Sampling
from adjudge.engines.vllm_config import VllmConfig
from adjudge.engines.vllm_engine import VllmEngine

__all__ = ["vllm_engines"]  # a fixture

# What vLLM imports warns of what it uses itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

CHAT: Prompt = [{"role": "user", "content": "Is the answer right?"}]
LONG = "a b " * WINDOW
LABELS = {"yes": ("Yes", " Yes", "Yes, it is"), "odd": ("<|turn|>", "zqzq")}


@pytest.fixture(scope="module")
def engine(vllm_engines: Callable[[Task], VllmEngine]) -> VllmEngine:
    return vllm_engines("generate")


def test_it_is_an_engine(engine: VllmEngine) -> None:
    assert isinstance(engine, Engine)


def test_labels_of_several_tokens_are_what_forcing_them_gives(engine: VllmEngine) -> None:
    async def main() -> tuple[Any, dict[str, Any]]:
        (found,) = await engine.label_logprobs([CHAT], LABELS)
        texts = [text for some in LABELS.values() for text in some]
        forced = await engine.reference_logprobs([CHAT] * len(texts), texts)
        return found, dict(zip(texts, forced, strict=True))

    found, forced = asyncio.run(main())
    chance = {text: math.exp(sum(one.logprobs)) for text, one in forced.items()}
    whole = {"yes": chance["Yes"] + chance[" Yes"], "odd": chance["<|turn|>"] + chance["zqzq"]}
    assert found.logprobs == pytest.approx({label: math.log(p) for label, p in whole.items()}, abs=1e-4)
    assert found.mass == pytest.approx(sum(whole.values()), abs=1e-6)
    assert len(forced["zqzq"].tokens) > 1


def test_calls_from_many_threads_and_loops_get_what_they_get_alone(engine: VllmEngine) -> None:
    sampling = Sampling(n=2, max_tokens=8, temperature=1.0, top_p=0.9, top_k=40, seed=3)

    def texts(prompts: list[Prompt]) -> list[list[str]]:
        found = asyncio.run(engine.generate(prompts, sampling))
        return [[part.text for part in one.completions] if not isinstance(one, Fault) else [] for one in found]

    prompts: list[Prompt] = [CHAT, "The response says ", "Is it? ", "Score: "]
    alone = [texts([prompt])[0] for prompt in prompts]
    assert len({tuple(one) for one in alone}) == len(prompts)
    found: dict[int, list[list[str]]] = {}
    threads = [
        threading.Thread(target=lambda at=at: found.setdefault(at, texts(prompts[at:] + prompts[:at])))
        for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {at: alone[at:] + alone[:at] for at in range(4)}


def test_prompts_that_fill_several_batches_are_drawn_from_with_seeds(engine: VllmEngine) -> None:
    prompts: list[Prompt] = [f"{number} " + "is it? " * 20 for number in range(80)]
    found = asyncio.run(engine.generate(prompts, Sampling(max_tokens=2, temperature=1.0, seed=3)))
    assert not [one for one in found if isinstance(one, Fault)]


def test_how_a_completion_ends_is_said(engine: VllmEngine) -> None:
    async def main() -> list[Any]:
        (whole,) = await engine.generate(["The "], Sampling(max_tokens=20))
        stop = whole.completions[0].text[6:8] if not isinstance(whole, Fault) else ""
        return [whole, stop, *await engine.generate(["The "], Sampling(max_tokens=20, stop=(stop,)))]

    whole, stop, ended = asyncio.run(main())
    text = whole.completions[0].text
    assert (whole.completions[0].finish_reason, whole.completions[0].tokens) == ("length", 20)
    assert (ended.completions[0].finish_reason, ended.completions[0].text) == ("stop", text[: text.index(stop)])


def test_a_prompt_that_cannot_be_asked_is_a_fault_of_its_own(engine: VllmEngine) -> None:
    prompts: list[Prompt] = ["fine", LONG, "", "fine"]

    async def main() -> list[list[Any]]:
        return [
            await engine.generate(prompts, Sampling(max_tokens=2)),
            await engine.label_logprobs(prompts, {"yes": ("Yes",)}),
            await engine.reference_logprobs(prompts, ["Yes"] * len(prompts)),
        ]

    for found in asyncio.run(main()):
        assert [isinstance(one, Fault) for one in found] == [False, True, True, False]
        assert {one.reason for one in found[1:3]} == {"engine_error"}
        assert [one.too_long for one in found[1:3]] == [True, False]


def test_an_empty_reference_is_certain(engine: VllmEngine) -> None:
    (empty,) = asyncio.run(engine.reference_logprobs(["a"], [""]))
    assert not isinstance(empty, Fault)
    assert (empty.tokens, empty.logprobs) == ((), ())


def test_special_tokens_are_those_of_the_tokenizer(engine: VllmEngine) -> None:
    assert set(engine.special_tokens) >= {"<|turn|>", "<|end|>", "<|pad|>"}


def test_mistakes_are_named(engine: VllmEngine) -> None:
    with pytest.raises(ValueError, match="runner='classify'"):
        asyncio.run(engine.classify(["a"]))
    with pytest.raises(ValueError, match="2 prompts and 1 texts"):
        asyncio.run(engine.reference_logprobs(["a", "b"], ["c"]))
    with pytest.raises(ValueError, match="share the text"):
        asyncio.run(engine.label_logprobs(["a"], {"a": ("A",), "b": ("A",)}))


def test_classifiers_give_raw_outputs(vllm_engines: Callable[[Task], VllmEngine]) -> None:
    """With vLLM's default activation, two outputs would be shares that add up to 1."""
    prompts: list[Prompt] = ["Is it?", CHAT, LONG]
    found: list[Any] = asyncio.run(vllm_engines("classify").classify(prompts))
    assert [len(one.values) for one in found[:2]] == [2, 2]
    assert any(abs(sum(one.values) - 1) > 0.1 for one in found[:2])
    assert isinstance(found[2], Fault)
    rows: list[Any] = asyncio.run(vllm_engines("classify_tokens").classify_tokens(prompts))
    assert all(len(one.values) == len(one.token_ids) > 1 for one in rows[:2])
    assert {len(values) for one in rows[:2] for values in one.values} == {3}
    assert isinstance(rows[2], Fault)


def test_a_model_that_is_none_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no_such_kind"}')
    with pytest.raises(ValueError, match="vLLM does not start"):
        asyncio.run(VllmEngine(VllmConfig(model=str(tmp_path))).generate(["a"], Sampling()))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # vLLM leaves a ZeroMQ context open
def test_a_killed_process_costs_one_call_and_is_replaced(engine: VllmEngine) -> None:
    sampling = Sampling(max_tokens=4)
    before = asyncio.run(engine.generate([CHAT], sampling))
    (process,) = engine_processes()

    async def main() -> list[Any]:
        long = asyncio.ensure_future(engine.generate(["The "] * 64, Sampling(max_tokens=200)))
        await asyncio.sleep(0.3)  # into the work; if that is done by then, its results stand
        os.kill(process, signal.SIGKILL)
        return await long

    with unheard():
        lost = asyncio.run(main())
    assert {one.reason for one in lost if isinstance(one, Fault)} <= {"engine_unavailable"}
    with starting(processes=False):
        after = asyncio.run(engine.generate([CHAT], sampling))
        if isinstance(after[0], Fault):  # the death was noticed by this call only
            after = asyncio.run(engine.generate([CHAT], sampling))
    assert [one.completions for one in after if not isinstance(one, Fault)] == [
        one.completions for one in before if not isinstance(one, Fault)
    ]
    assert process not in engine_processes()
    gc.collect()  # what the dead one left open is told here, and not in somebody else's test
