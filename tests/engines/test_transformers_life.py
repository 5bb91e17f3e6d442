"""The embedded engine as an object: loading, mistakes, memory, threads, forks, and what its fingerprint stands for."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import shutil
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engines.tiny_models import tiny_tokenizer, write_model
from transformers import AutoTokenizer, PretrainedConfig

from adjudge import wire
from adjudge.engines import transformers_jobs, transformers_packed, transformers_weights
from adjudge.engines.interface import Fault, LabelLogprobs, Sampling
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.engines.transformers_jobs import Jobs
from adjudge.engines.transformers_network import Network

LABELS = {"yes": ("Yes", " Yes"), "no": ("No",)}
PROMPTS = [f"The response says {number}. " for number in range(9)]


def engine(model: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(model), **options))


def ask(asked: TransformersEngine, prompts: Sequence[str] = PROMPTS) -> list[Any]:
    return asyncio.run(asked.label_logprobs(prompts, LABELS))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"model": ""}, "model=''", id="no-model"),
        pytest.param({"model": "./no/such/folder"}, "no such folder", id="no-folder"),
        pytest.param({"dtype": "int8"}, "dtype='int8'", id="dtype"),
        pytest.param({"attn": "fast"}, "attn='fast'", id="attn"),
        pytest.param({"device": "tpu"}, "device='tpu'", id="device"),
        pytest.param({"token_budget": 0}, "token_budget=0", id="budget"),
        pytest.param({"max_length": 0}, "max_length=0", id="max-length"),
        pytest.param({"trust_remote_code": "false"}, "trust_remote_code='false'", id="text-for-a-switch"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TransformersConfig(**{"model": "some/model", **options})


@pytest.mark.parametrize(
    ("model", "call", "words"),
    [
        pytest.param(
            "classifier",
            "label_logprobs",
            "lacks a language model's head.*readout: classes",
            id="labels-of-a-classifier",
        ),
        pytest.param(
            "classifier",
            "classify_tokens",
            "lacks a token classifier's head.*give a process model",
            id="tokens-of-a-classifier",
        ),
        pytest.param(
            "causal_model", "classify", "lacks a sequence classifier's head.*readout: text", id="classes-of-a-generator"
        ),
    ],
)
def test_a_head_that_is_not_there_is_never_made_up(
    model: str, call: str, words: str, request: pytest.FixtureRequest
) -> None:
    asked = engine(request.getfixturevalue(model))
    more = (LABELS,) if call == "label_logprobs" else ()
    for _ in range(2):  # the second call must not find what the first left behind
        with pytest.raises(ValueError, match=words):
            asyncio.run(getattr(asked, call)(PROMPTS, *more))


def test_weights_that_are_missing_are_named(classifier: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(classifier, tmp_path / "headless")
    kept = load_file(folder / "model.safetensors")
    del kept["score.weight"]
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"no weights for score\.weight"):
        asyncio.run(engine(folder).classify(PROMPTS))


def test_code_that_comes_with_a_model_is_not_run(causal_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(causal_model, tmp_path / "remote")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "surprise",
        "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ValueError, match="trust_remote_code"):
        ask(engine(folder))
    assert not (tmp_path / "ran").exists()


def test_a_model_without_a_chat_template_is_not_asked_with_chats(models: Path) -> None:
    asked = engine(write_model(models / "base", tokenizer=tiny_tokenizer(chat=None)))
    with pytest.raises(ValueError, match="no chat template"):
        asyncio.run(asked.generate([[{"role": "user", "content": "x"}]], Sampling(max_tokens=1)))
    assert all(isinstance(one, LabelLogprobs) for one in ask(asked))


def test_options_reach_the_chat_template(models: Path) -> None:
    chat = "{% if shout %}!{% endif %}{{ messages[0]['content'] }}"
    folder = write_model(models / "shout", tokenizer=tiny_tokenizer(chat=chat))
    turns = [[{"role": "user", "content": "Is it?"}]]

    async def of(asked: TransformersEngine, prompts: Any) -> list[Any]:
        found: list[Any] = list(await asked.label_logprobs(prompts, LABELS))
        return [one.logprobs for one in found]

    quiet, loud = engine(folder), engine(folder, chat_template_kwargs={"shout": True})
    assert asyncio.run(of(quiet, turns)) == asyncio.run(of(quiet, ["Is it?"]))
    assert asyncio.run(of(loud, turns)) == asyncio.run(of(quiet, ["!Is it?"]))
    assert loud.fingerprint != quiet.fingerprint


def test_special_tokens_are_listed(causal_model: Path) -> None:
    assert {"<|end|>", "<|pad|>", "<|turn|>"} <= set(engine(causal_model).special_tokens)


def test_numbers_that_are_none_are_faults(models: Path) -> None:
    """A weight that is not a number, for one token: only prompts that hold it are spoilt."""
    folder = write_model(models / "broken")
    (token,) = AutoTokenizer.from_pretrained(folder)("Z")["input_ids"]
    kept = load_file(folder / "model.safetensors")
    kept["model.embed_tokens.weight"][token] = torch.nan
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    asked, prompts = engine(folder), ["a good one", "a Z in it", "another good one"]

    async def calls() -> list[list[Any]]:
        return [
            await asked.label_logprobs(prompts, LABELS),
            await asked.label_logprobs(prompts, {"yes": (" Yes it is",), "no": ("No",)}),
            await asked.reference_logprobs(prompts, ["Yes"] * 3),
            await asked.generate(prompts, Sampling(max_tokens=4)),
            await asked.generate(prompts, Sampling(max_tokens=4, temperature=1.0, n=2)),
        ]

    for first, second, third in asyncio.run(calls()):
        assert isinstance(second, Fault)
        assert second.reason == "engine_error"
        assert "not finite" in second.detail
        assert not isinstance(first, Fault)
        assert not isinstance(third, Fault)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(torch.OutOfMemoryError("CUDA out of memory"), id="gpu"),
        pytest.param(RuntimeError("CUDA error: out of memory"), id="gpu-outside-the-allocator"),
        pytest.param(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling ..."), id="cublas"),
        pytest.param(RuntimeError("DefaultCPUAllocator: can't allocate memory"), id="cpu"),
    ],
)
def test_where_memory_ends_batches_become_smaller(
    causal_model: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    alone = [one.logprobs for one in ask(engine(causal_model))]
    real, sizes = Jobs._values, []

    def small(self: Jobs, job: Any, network: Any, rows: Sequence[Any]) -> Any:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise error
        return real(self, job, network, rows)

    monkeypatch.setattr(Jobs, "_values", small)
    found = ask(engine(causal_model))
    assert sizes[0] == len(PROMPTS)
    for one, wanted in zip(found, alone, strict=True):
        assert dict(one.logprobs) == pytest.approx(dict(wanted), abs=1e-5)


def test_a_batch_that_did_not_fit_is_let_go_before_a_smaller_one_is_tried(
    causal_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, held, freed = Jobs._values, weakref.WeakSet[torch.Tensor](), []

    def small(self: Jobs, job: Any, network: Any, rows: Sequence[Any]) -> Any:
        freed.append(not held)
        states = torch.zeros(8)
        held.add(states)
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, job, network, rows)

    monkeypatch.setattr(Jobs, "_values", small)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: freed.append(not held))
    ask(engine(causal_model))
    assert len(freed) > 3
    assert all(freed)


@pytest.mark.parametrize("problem", ["no kernel image is available", "an illegal memory access was encountered"])
def test_what_torch_refuses_is_a_fault(causal_model: Path, monkeypatch: pytest.MonkeyPatch, problem: str) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError(problem)

    monkeypatch.setattr(Jobs, "_values", refuse)
    found = ask(engine(causal_model))
    assert {(one.reason, one.detail) for one in found} == {("engine_error", f"RuntimeError: {problem}")}


@pytest.mark.parametrize(
    ("options", "path", "why"),
    [
        pytest.param({}, "packed pieces", "", id="packed"),
        pytest.param({"attn": "sdpa"}, "shared prefixes", "; rows are not packed: attn is given", id="shared"),
        pytest.param(
            {"attn": "sdpa", "share_prefixes": False}, "padded", "; rows are not packed: attn is given", id="padded"
        ),
    ],
)
def test_which_way_rows_are_read_is_told(
    classifier: Path, caplog: pytest.LogCaptureFixture, options: dict[str, Any], path: str, why: str
) -> None:
    asked = engine(classifier, **options)
    assert asked.paths == {}
    with caplog.at_level("INFO", logger="adjudge"):
        asyncio.run(asked.classify(PROMPTS))
    assert asked.paths == {"classify": path}
    assert [one.getMessage() for one in caplog.records if one.levelname == "INFO"] == [
        f"{classifier}: classify on cpu: {path}{why}"
    ]


def test_a_gpu_without_packing_is_warned_of(
    classifier: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "device", torch.device("cuda:1"))
    monkeypatch.setattr(transformers_packed, "usable", lambda _: (0, "RuntimeError: no kernel image"))
    config = TransformersConfig(model=str(classifier))
    Jobs(config, "cpu", engine(classifier)._prepared()).network("classify")
    assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"][-1] == (
        f"{classifier}: classify on cuda:1: shared prefixes; rows are not packed: RuntimeError: no kernel image"
    )


def test_equal_prompts_are_paid_once(causal_model: Path) -> None:
    found = ask(engine(causal_model), [PROMPTS[0], PROMPTS[1], PROMPTS[0]])
    assert found[0].logprobs == found[2].logprobs
    assert [one.cost.prompt_tokens > 0 for one in found] == [True, True, False]


def test_any_thread_and_loop_may_ask(causal_model: Path) -> None:
    asked = engine(causal_model)
    wanted = [dict(one.logprobs) for one in ask(asked)]
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: ask(asked), range(12)):
            for one, other in zip(found, wanted, strict=True):
                assert dict(one.logprobs) == pytest.approx(other, abs=1e-5)


def test_a_call_that_is_given_up_leaves_the_engine_usable(causal_model: Path) -> None:
    asked = engine(causal_model)

    async def give_up() -> None:
        task = asyncio.ensure_future(asked.generate(PROMPTS, Sampling(max_tokens=200)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert all(isinstance(one, LabelLogprobs) for one in ask(asked))


def test_a_closed_or_pickled_engine_loads_again(causal_model: Path) -> None:
    asked = engine(causal_model)
    before = ask(asked)
    for _ in range(2):
        asyncio.run(asked.close())
    copy = pickle.loads(pickle.dumps(asked))
    assert copy.fingerprint == asked.fingerprint
    for found in (ask(asked), ask(copy)):
        assert [one.logprobs for one in found] == [one.logprobs for one in before]


def test_closing_finishes_what_was_begun_and_tells_the_rest(
    causal_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, gate, real = threading.Event(), threading.Event(), Jobs._values

    def held(self: Jobs, *given: Any) -> Any:
        entered.set()
        assert gate.wait(30)
        return real(self, *given)

    monkeypatch.setattr(Jobs, "_values", held)
    asked = engine(causal_model)
    with ThreadPoolExecutor(3) as pool:
        begun = pool.submit(ask, asked, PROMPTS[:1])
        assert entered.wait(30)
        submitted, submit = threading.Event(), asked._batcher.submit

        def noted(works: Sequence[Any]) -> Any:
            future = submit(works)
            submitted.set()
            return future

        monkeypatch.setattr(asked._batcher, "submit", noted)

        async def close_while_another_waits() -> list[Any]:
            waiting = asyncio.ensure_future(asked.label_logprobs(PROMPTS[1:3], LABELS))
            assert await asyncio.to_thread(submitted.wait, 30)
            closing = asyncio.ensure_future(asked.close())
            found = await waiting
            gate.set()
            await closing
            return list(found)

        found = asyncio.run(close_while_another_waits())
        assert [(type(one), one.reason) for one in found] == [(Fault, "engine_unavailable")] * 2
        assert isinstance(begun.result(30)[0], LabelLogprobs)


def test_an_engine_that_nobody_holds_is_freed(causal_model: Path) -> None:
    asked = engine(causal_model)
    ask(asked)
    gone = weakref.ref(asked)
    del asked
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # forks are what is tested
def test_a_forked_child_may_ask(causal_model: Path) -> None:
    asked = engine(causal_model)
    wanted = [dict(one.logprobs) for one in ask(asked)]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found = [dict(one.logprobs) for one in ask(asked)]
            code = 0 if found == [pytest.approx(other, abs=1e-5) for other in wanted] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_fingerprint_stands_for_what_decides_results(causal_model: Path, tmp_path: Path) -> None:
    first = engine(causal_model).fingerprint
    moved = shutil.copytree(causal_model, tmp_path / "moved")
    (moved / "README.md").write_text("a note")
    assert engine(moved).fingerprint == first
    assert engine(moved, token_budget=99, share_prefixes=False).fingerprint == first
    for options in ({"dtype": "bfloat16"}, {"attn": "eager"}, {"max_length": 100}):
        assert engine(moved, **options).fingerprint != first
    kept = load_file(moved / "model.safetensors")
    kept["lm_head.weight"][0, 0] += 1e-3
    save_file(kept, moved / "model.safetensors", metadata={"format": "pt"})
    trained = engine(moved).fingerprint
    assert trained != first
    (moved / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert engine(moved).fingerprint not in (first, trained)


@pytest.mark.parametrize(
    ("made", "called", "rank", "device", "expected"),
    [
        pytest.param(2, 2, None, "auto", "cuda:2", id="current-where-it-is-made"),
        pytest.param(None, 1, None, "auto", "cuda:1", id="current-where-it-is-called"),
        pytest.param(0, 1, None, "auto", "cuda:1", id="set-in-between"),
        pytest.param(None, None, None, "auto", "cuda:0", id="nothing-is-set"),
        pytest.param(None, 0, "3", "auto", "cuda:3", id="rank"),
        pytest.param(None, None, "1", "cuda", "cuda:1", id="rank-and-cuda"),
        pytest.param(None, None, "5", "auto", "cuda:1", id="rank-beyond-the-gpus-that-are-seen"),
        pytest.param(2, 2, "3", "auto", "cuda:2", id="current-and-rank"),
        pytest.param(2, 2, "3", "cuda:0", "cuda:0", id="given"),
    ],
)
def test_each_process_has_its_own_gpu(
    classifier: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: int | None,
    called: int | None,
    rank: str | None,
    device: str,
    expected: str,
) -> None:
    main, devices, real = threading.get_ident(), [], transformers_weights.weights
    current = made

    def load(config: Any, task: Any, where: str) -> Any:
        devices.append(where)
        return real(config, task, "cpu")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: current is not None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current if threading.get_ident() == main else 0)
    monkeypatch.setattr(transformers_jobs, "weights", load)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    asked = engine(classifier, device=device)
    other = engine(classifier, device="cuda:3")
    current = called
    asyncio.run(asked.classify(PROMPTS))
    assert devices == [expected]
    assert asked.fingerprint == other.fingerprint


def test_the_fingerprint_tells_what_a_gpu_makes_of_32_bits(
    causal_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    written = json.dumps(json.loads((causal_model / "config.json").read_text()) | {"dtype": "bfloat16"})
    half = shutil.copytree(causal_model, tmp_path / "half")
    (half / "config.json").write_text(written)
    facts: list[Any] = []

    def seen(given: Any) -> str:
        facts.append(given["options"][0])
        return ""

    monkeypatch.setattr(wire, "dumps", seen)
    for model, options in (
        (causal_model, {}),
        (causal_model, {"dtype": "float32"}),
        (half, {}),
        (causal_model, {"device": "cpu"}),
    ):
        assert engine(model, **options).fingerprint
    assert facts == ["body bfloat16", "float32", "auto", "auto"]


@pytest.mark.parametrize(
    ("asked", "stored", "device", "capability", "expected"),
    [
        pytest.param("auto", torch.float32, "cuda:1", (9, 0), True, id="float32"),
        pytest.param("auto", None, "cuda", (8, 0), True, id="an-old-checkpoint"),
        pytest.param("auto", torch.bfloat16, "cuda", (9, 0), False, id="bfloat16"),
        pytest.param("auto", torch.float16, "cuda", (9, 0), False, id="float16"),
        pytest.param("float32", torch.float32, "cuda", (9, 0), False, id="float32-is-asked-for"),
        pytest.param("auto", torch.float32, "cuda", (7, 5), False, id="an-old-gpu"),
        pytest.param("auto", torch.float32, "cpu", (9, 0), False, id="cpu"),
    ],
)
def test_what_auto_means_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, asked: Any, stored: Any, device: str, capability: tuple[int, int], expected: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    config = TransformersConfig(model="hub/name", dtype=asked)
    assert transformers_weights.lowered(config, PretrainedConfig(dtype=stored), device) is expected


def test_a_gpu_that_cannot_be_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> Any:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    monkeypatch.setattr(torch.cuda, "get_device_capability", refuse)
    config = TransformersConfig(model="hub/name")
    with pytest.raises(ValueError, match=r"cannot be put on 'cuda:1': Cannot re-initialize CUDA .* by spawn"):
        transformers_weights.lowered(config, PretrainedConfig(dtype="float32"), "cuda:1")
