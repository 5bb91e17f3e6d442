"""Rows of tokens that vLLM goes on with, in the process that trains.

vLLM holds a copy of the weights, which is renewed with each version of the policy.  Its kernels round otherwise than
the policy's own forward pass, so `exact` is false: learning corrects for the difference, and reports it.  Each piece
has a seed of its own, so it is the same whatever else is written beside it, but for rounding.

Not covered: a server of vLLM's, a model over several GPUs, and a GPU's kernel that never returns.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import torch

from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig, VllmOptions
from adjudge.rl_integration.trainer.rollouts.vllm_in_process import VllmFailed, VllmInProcess, check_installed
from adjudge.rl_integration.trainer.rollouts.writer import OnPiece, Piece

_COLDEST = 0.01  # vLLM draws at this temperature when it is given a lower one above 0
_PATIENCE = 4  # times the steps that it takes if every step brings one token and none is computed twice
_SPARE_STEPS = 100
_SEED_BYTES = 7  # vLLM's seeds have 63 bits


class VllmGenerator:
    """Writes with a copy of the policy that vLLM runs; the first call starts it.

    Raises:
        ValueError: vLLM is not installed, or the temperature is one that it changes.
    """

    exact = False

    def __init__(self, policy: Policy, options: VllmOptions, sampling: SamplingConfig) -> None:
        check_installed()
        _check_temperature(sampling)
        self._policy = policy
        self._options = options
        self._max_num_seqs = sampling.max_num_seqs
        self._vllm: VllmInProcess | None = None
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
            ValueError: a prompt leaves no room in the model's window, or the temperature is one that vLLM changes.
            VllmFailed: vLLM stopped, or what it wrote cannot be learnt from; the next call starts it anew.
        """
        _check_temperature(sampling)
        vllm = self._vllm or self._refreshed()
        vllm.wake()
        max_tokens = [sampling.max_new_tokens] * len(prompts)
        if limits is not None:
            max_tokens = [min(own, limit) for own, limit in zip(max_tokens, limits, strict=True)]
        _check_room(prompts, max_tokens, vllm.window)
        self._calls += 1
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        def params(limit: int, own_seed: int) -> Any:
            return SamplingParams(
                temperature=sampling.temperature,
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
            self._write(vllm, asked, sampling.max_num_seqs, on_piece)
        vllm.sleep()

    def close(self) -> None:
        """End vLLM; a later call starts it again."""
        vllm, self._vllm = self._vllm, None
        if vllm is not None:
            vllm.close()

    def _refreshed(self) -> VllmInProcess:
        # Tensors count their changes: weights that were put back under the same version are noticed, too.
        wanted = (self._version, *(value._version for value in self._policy.model.state_dict().values()))
        vllm = self._vllm
        if vllm is not None and wanted == self._held:
            return vllm
        vllm = self._vllm = vllm or VllmInProcess(self._policy, self._options, max_num_seqs=self._max_num_seqs)
        try:
            vllm.load(self._policy)
        except BaseException:  # it may have some of the new weights and some of the old
            self.close()
            raise
        self._held = wanted
        return vllm

    def _write(
        self, vllm: VllmInProcess, asked: Sequence[tuple[list[int], Any]], max_num_seqs: int, on_piece: OnPiece
    ) -> None:
        """Write pieces, at most so many at a time, in the order they are asked for."""
        waiting, going = deque(enumerate(asked)), dict[str, int]()
        steps = _SPARE_STEPS + _PATIENCE * sum(len(prompt) + params.max_tokens for prompt, params in asked)
        try:
            while waiting or going:
                while waiting and len(going) < max_num_seqs:
                    place, (prompt, params) = waiting.popleft()
                    name = f"{self._calls}.{place}"
                    vllm.add(name, prompt, params)
                    going[name] = place
                if not steps:
                    raise VllmFailed(f"vLLM makes no progress; {len(going)} answers have not ended (see its log)")
                steps -= 1
                for name, output in vllm.step():
                    on_piece(going.pop(name), _piece(output, self._policy.ends))
        except VllmFailed:
            self.close()
            raise
        except BaseException:
            vllm.abort(going)
            raise


def _piece(output: Any, ends: Collection[int]) -> Piece:
    """What vLLM wrote; `VllmFailed` unless it ended as answers end, with the log-probabilities of its tokens."""
    ids, found = tuple(output.token_ids), output.logprobs
    if output.finish_reason not in ("stop", "length") or not ids:
        raise VllmFailed(f"vLLM ended an answer of {len(ids)} tokens with {output.finish_reason!r}")
    if tuple(found.token_ids) != ids:
        raise VllmFailed(f"vLLM gave log-probabilities of {len(found.token_ids)} other tokens than the {len(ids)}")
    if not all(map(math.isfinite, found.logprobs)):
        raise VllmFailed(
            "vLLM's log-probabilities are not finite; lower learning.learning_rate, or try rollouts.vllm.dtype: float32"
        )
    return Piece(ids=ids, logprobs=tuple(found.logprobs), finish_reason=output.finish_reason, ended=ids[-1] in ends)


def _seeds(prompts: Sequence[Sequence[int]], copies: int, seed: int) -> Iterator[int]:
    """A seed for each piece, made from the call's seed, its prompt and its number among that prompt's pieces."""
    seen: Counter[tuple[int, ...]] = Counter()
    for prompt in prompts:
        ids = tuple(map(int, prompt))
        begin = hashlib.sha256(f"{seed}:{ids}".encode())
        for copy in range(copies):
            own = begin.copy()
            own.update(f":{seen[ids] + copy}".encode())
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


def _check_temperature(sampling: SamplingConfig) -> None:
    if 0 < sampling.temperature < _COLDEST:
        raise ValueError(
            f"sampling.temperature is {sampling.temperature!r}, and vLLM would draw at {_COLDEST}; give 0, or "
            f"{_COLDEST} or more"
        )
