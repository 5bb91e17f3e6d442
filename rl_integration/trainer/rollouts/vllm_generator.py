"""Rows of tokens that vLLM goes on with, in the process that trains.

vLLM holds a copy of the weights, which is renewed with each version of the policy.  Its kernels round otherwise than
the policy's own forward pass, so `exact` is false: learning corrects for the difference, and reports it.

Each piece has a seed of its own, made from the call's seed, its prompt and its number among that prompt's pieces: so it
is the same whatever else is written beside it, but for tokens that are as likely as each other up to rounding.

Not covered: a server of vLLM's (its weights would have to travel), a model over several GPUs, and a GPU's kernel that
never returns: nothing in the same process can end it.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
        params = _Params(sampling.temperature, tuple(stops), tuple(sorted(self._policy.ends)))
        asked = list(_asked(prompts, copies, max_tokens, seed))
        with torch.random.fork_rng(devices=[]):  # vLLM draws from the process's random state and throws it away
            self._write(vllm, asked, params, sampling.max_num_seqs, on_piece)
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
        self, vllm: VllmInProcess, asked: Sequence[_Asked], params: _Params, max_num_seqs: int, on_piece: OnPiece
    ) -> None:
        """Write pieces, at most so many at a time, in the order they are asked for."""
        waiting, going = deque(asked), dict[str, int]()
        steps = _SPARE_STEPS + _PATIENCE * sum(len(one.prompt) + one.max_tokens for one in asked)
        try:
            while waiting or going:
                while waiting and len(going) < max_num_seqs:
                    one = waiting.popleft()
                    name = f"{self._calls}.{one.place}"
                    vllm.add(name, one.prompt, params.of(one))
                    going[name] = one.place
                if not steps:
                    raise VllmFailed(f"vLLM makes no progress; {len(going)} answers have not ended (see its log)")
                steps -= 1
                for name, output in vllm.step():
                    on_piece(going.pop(name), params.piece(output))
        except VllmFailed:
            self.close()
            raise
        except BaseException:
            vllm.abort(going)
            raise


@dataclass(frozen=True, slots=True)
class _Asked:
    """A piece that is to be written."""

    place: int
    prompt: list[int]
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Params:
    """What is the same for all pieces of a call."""

    temperature: float
    stops: tuple[str, ...]
    ends: tuple[int, ...]

    def of(self, asked: _Asked) -> Any:
        """Return a piece's SamplingParams."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        return SamplingParams(
            temperature=self.temperature,
            seed=asked.seed,
            max_tokens=asked.max_tokens,
            stop=list(self.stops),
            include_stop_str_in_output=True,
            detokenize=bool(self.stops),
            stop_token_ids=list(self.ends),
            ignore_eos=True,  # `ends` has all that end an answer
            logprobs=0,  # of the token that was drawn, and no other
            flat_logprobs=True,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def piece(self, output: Any) -> Piece:
        """Return what vLLM wrote.

        Raises:
            VllmFailed: it did not end as answers end, or its log-probabilities are not those of its tokens.
        """
        ids, found = tuple(output.token_ids), output.logprobs
        if output.finish_reason not in ("stop", "length") or not ids:
            raise VllmFailed(f"vLLM ended an answer of {len(ids)} tokens with {output.finish_reason!r}")
        if tuple(found.token_ids) != ids:
            raise VllmFailed(f"vLLM gave log-probabilities of {len(found.token_ids)} other tokens than the {len(ids)}")
        if not all(map(math.isfinite, found.logprobs)):
            raise VllmFailed(
                "vLLM's log-probabilities are not finite; lower learning.learning_rate, or try rollouts.vllm.dtype: "
                "float32"
            )
        return Piece(
            ids=ids,
            logprobs=tuple(found.logprobs),
            finish_reason=output.finish_reason,
            ended=ids[-1] in self.ends,
        )


def _asked(prompts: Sequence[Sequence[int]], copies: int, max_tokens: Sequence[int], seed: int) -> Iterator[_Asked]:
    """Yield the pieces of a call, those after one prompt side by side: they share its keys and values."""
    seen: Counter[tuple[int, ...]] = Counter()
    for at, prompt in enumerate(prompts):
        ids = tuple(map(int, prompt))
        begin = hashlib.sha256(f"{seed}:{ids}".encode())
        for copy in range(copies):
            own = begin.copy()
            own.update(f":{seen[ids] + copy}".encode())
            drawn = int.from_bytes(own.digest()[:_SEED_BYTES])
            yield _Asked(at * copies + copy, list(ids), max_tokens[at], drawn)
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
