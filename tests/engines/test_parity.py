"""One model, four ways: transformers one by one and batched, vLLM in this process, and vLLM behind HTTP.

Each test prints the largest difference to transformers asked one prompt at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.engines.vllm_server import Served, Task, vllm_engine, vllm_servers

from adjudge.engines.interface import Engine, Fault, Prompt, Sampling
from adjudge.engines.loading import engine_of

__all__ = ["vllm_servers"]

# What vLLM imports warns of what it uses itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

CLOSE = 1e-4
RUBRIC = "You are a careful judge. Read the question and the answer, then say whether the answer is correct. "
PROMPTS: list[Prompt] = [
    "Is the answer right? ",
    *(RUBRIC + f"The response says {number}. " + "Score: " * (number % 5) for number in range(8)),
    [{"role": "user", "content": "Is 41 right?"}],
    [{"role": "system", "content": RUBRIC}, {"role": "user", "content": "Is 42 right?"}],
    [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": "Final Decision:"}],
]
LABELS = {
    "yes": ("Yes", " Yes", "yes"),
    "no": ("No", " No"),
    "unsure": (" maybe not", "not supported"),
    "1": ("1",),
    "10": ("10",),
}
TEXTS = [" Yes, it is.", "No", "Final Decision: No\n", "\n\nScore: 10"] * 3


def ways(task: Task, servers: Mapping[Task, Served]) -> dict[str, Engine]:
    """Return the engines of one model."""
    served = servers[task]
    return {
        "transformers": engine_of({"transformers": {"model": served.model, "dtype": "float32"}}),
        "vllm": vllm_engine(task),
        "http": engine_of({"openai": {"model": served.model, "base_url": served.url}}),
    }


@pytest.fixture(scope="module")
def engines(vllm_servers: Mapping[Task, Served]) -> Mapping[str, Engine]:
    """Engines of the language model that the servers have."""
    return ways("generate", vllm_servers)


async def one_by_one(engine: Engine, call: str, *rows: Sequence[Any], more: tuple[Any, ...] = ()) -> list[Any]:
    """Call with one prompt at a time."""
    return [(await getattr(engine, call)(*([one] for one in row), *more))[0] for row in zip(*rows, strict=True)]


def compared(name: str, wanted: Sequence[Sequence[float]], found: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Print the largest difference of each way, and hold it to the limit."""
    for way, rows in found.items():
        pairs = [pair for row in zip(wanted, rows, strict=True) for pair in zip(*row, strict=True)]
        largest = max(abs(one - other) for one, other in pairs)
        print(f"{name}: {way} differs from transformers one by one by {largest:.1e} at most, {len(pairs)} numbers")
        assert largest <= CLOSE, way


def sound(results: Sequence[Any]) -> list[Any]:
    assert not [result for result in results if isinstance(result, Fault)]
    return list(results)


def test_labels(engines: Mapping[str, Engine]) -> None:
    async def ask() -> tuple[list[Any], dict[str, list[Any]]]:
        alone = await one_by_one(engines["transformers"], "label_logprobs", PROMPTS, more=(LABELS,))
        return alone, {way: sound(await engine.label_logprobs(PROMPTS, LABELS)) for way, engine in engines.items()}

    alone, found = asyncio.run(ask())

    def numbers(results: Sequence[Any]) -> list[list[float]]:
        return [[*(one.logprobs[label] for label in LABELS), one.mass] for one in results]

    compared("labels", numbers(sound(alone)), {way: numbers(results) for way, results in found.items()})


def test_texts(engines: Mapping[str, Engine]) -> None:
    texts = TEXTS[: len(PROMPTS)]

    async def ask() -> tuple[list[Any], dict[str, list[Any]]]:
        alone = await one_by_one(engines["transformers"], "reference_logprobs", PROMPTS, texts)
        return alone, {way: sound(await engine.reference_logprobs(PROMPTS, texts)) for way, engine in engines.items()}

    alone, found = asyncio.run(ask())
    for results in found.values():
        assert [one.tokens for one in results] == [one.tokens for one in alone]
    compared(
        "texts",
        [one.logprobs for one in sound(alone)],
        {way: [one.logprobs for one in results] for way, results in found.items()},
    )


def test_greedy_text(engines: Mapping[str, Engine]) -> None:
    sampling = Sampling(max_tokens=12)

    async def ask() -> tuple[list[Any], dict[str, list[Any]]]:
        alone = await one_by_one(engines["transformers"], "generate", PROMPTS, more=(sampling,))
        return alone, {way: sound(await engine.generate(PROMPTS, sampling)) for way, engine in engines.items()}

    alone, found = asyncio.run(ask())

    def texts(results: Sequence[Any]) -> list[tuple[str, str, int]]:
        # vLLM leaves out the bytes of a character that is not finished when the completion ends.
        written = [text for one in results for text in one.completions]
        return [(text.text.rstrip("\ufffd"), text.finish_reason, text.tokens) for text in written]

    for way, results in found.items():
        assert texts(results) == texts(alone), way


def test_choices(engines: Mapping[str, Engine]) -> None:
    sampling = Sampling(choice=("yes", "no", "not supported"), n=8, temperature=2.0)

    async def ask() -> dict[str, list[Any]]:
        return {way: sound(await engine.generate(PROMPTS, sampling)) for way, engine in engines.items()}

    found = asyncio.run(ask())
    wanted = found["transformers"]
    for way, results in found.items():
        chosen = [[(one.text, one.finish_reason) for one in result.completions] for result in results]
        assert chosen == [[(one.text, one.finish_reason) for one in result.completions] for result in wanted], way

    def masses(results: Sequence[Any]) -> list[list[float]]:
        return [[result.completions[0].mass] for result in results]

    compared("choices", masses(wanted), {way: masses(results) for way, results in found.items()})


@pytest.mark.parametrize("call", ["classify", "classify_tokens"])
def test_classifiers(vllm_servers: Mapping[Task, Served], call: Task) -> None:
    engines, prompts = ways(call, vllm_servers), PROMPTS[:-1]

    async def ask() -> tuple[list[Any], dict[str, list[Any]]]:
        alone = await one_by_one(engines["transformers"], call, prompts)
        return alone, {way: sound(await getattr(engine, call)(prompts)) for way, engine in engines.items()}

    def numbers(results: Sequence[Any]) -> list[list[float]]:
        rows = [one.values for one in results]
        return [list(row) if call == "classify" else [value for token in row for value in token] for row in rows]

    alone, found = asyncio.run(ask())
    if call == "classify_tokens":
        for results in found.values():
            assert [one.token_ids for one in results] == [one.token_ids for one in alone]
    compared(call, numbers(sound(alone)), {way: numbers(results) for way, results in found.items()})
