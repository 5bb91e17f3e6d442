"""The embedded engine: a model of `transformers` in this process, on the CPU or a GPU.

Calls from any thread or event loop become token-budget batches on one worker thread.  The model is loaded by the first
call that needs it.  Results do not depend on the batch beyond rounding: docs/engines.md says by how much.

Not covered: several GPUs, encoder-decoder models, reasoning separated from the text (`Completion.reasoning` is "").
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from adjudge import wire
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
    check_pairs,
)
from adjudge.engines.label_tokens import LabelTokens, chosen, continuation_tokens
from adjudge.engines.model_digest import folder_digest, is_folder
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.shared_prefixes import Tokens, grouped
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_jobs import Done, Job, Jobs
from adjudge.engines.transformers_network import Network
from adjudge.engines.transformers_weights import Task, configuration, may_be_lowered, needed, notes_of, tokenizer
from adjudge.protocol import NO_COST
from adjudge.runtime.batcher import Batcher, BatcherClosed, Work
from adjudge.runtime.fork_lock import anew_in_child

T = TypeVar("T")

_VERSION = "3"  # goes up whenever the same model could answer otherwise
_CPU_BUDGET = 4_096
_GPU_BUDGET = 32_768
# How much of a family's longest row must be its prefix: mixed lengths cost padding, and packed rows have none.
_LEVELS_SHARE = 0.5
_PACKED_SHARE = 0.05
_NO_ROOM = Fault(reason="engine_error", detail="the prompt alone does not fit into memory; give a smaller max_length")


class TransformersEngine:
    """A model in this process; see `adjudge.engines.interface.Engine` for the calls.

    An engine that was closed, pickled or forked loads its model again with the next call; on a GPU, a forked process
    cannot, and its calls raise `ValueError`.

    Args:
        config: which model, and how it is run.
    """

    chooses: Final = True
    """Whether `Sampling.choice` is done."""

    def __init__(self, config: TransformersConfig):
        self.config = config
        self._gpu = _current_gpu()
        self.begin_anew()
        anew_in_child(self)

    def begin_anew(self) -> None:
        """Forget the model and all work, as a forked child must."""
        self._lock = threading.RLock()
        self._reader: PromptTokens | None = None
        self._jobs: Jobs | None = None
        self._fingerprint = ""
        # The worker thread must not hold the engine: one that nobody uses any more goes, and its memory with it.
        held = weakref.ref(self)

        def run(job: Any, rows: Sequence[Any]) -> list[Done | Fault]:
            engine = held()
            if engine is None:
                raise RuntimeError("the engine is gone")
            return engine._run(job, rows)

        budget = self.config.token_budget or _CPU_BUDGET
        self._batcher: Batcher[Done | Fault] = Batcher(run, budget=budget, name="transformers engine")

    def __reduce__(self) -> tuple[type[TransformersEngine], tuple[TransformersConfig]]:
        return type(self), (self.config,)

    @property
    def name(self) -> str:
        """Return "transformers"."""
        return "transformers"

    @property
    def model(self) -> str:
        """The model's name or folder, as it was given."""
        return self.config.model

    @property
    def fingerprint(self) -> str:
        """Text that changes whenever the same prompt could get another result; the weights count, not their place.

        Raises:
            ValueError: there is no such model.
        """
        with self._lock:
            if not self._fingerprint:
                self._fingerprint = _fingerprint(self.config)
            return self._fingerprint

    @property
    def paths(self) -> dict[Task, str]:
        """How the models that are loaded read rows, by what each was loaded for; docs/engines.md lists the ways."""
        with self._lock:
            return self._jobs.paths if self._jobs is not None else {}

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """What the tokenizer takes for a token of its own wherever it stands, such as `<|im_end|>`."""
        return self._prepared().special_tokens

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions; one that reaches the end of the model's window ends there with "length"."""
        if sampling.choice:
            return await chosen(self, prompts, sampling)
        job = Job(call="generate", sampling=sampling)

        def prepare(reader: PromptTokens) -> list[Work | Generation | Fault]:
            rows = reader.read(prompts)
            return [_work(reader, job, row, more=1, room=sampling.max_tokens, n=sampling.n) for row in rows]

        def result(_: Work, done: Done) -> Generation:
            written = sum(completion.tokens for completion in done.value)
            return Generation(completions=done.value, cost=replace(done.cost, completion_tokens=written))

        return await self._asked(prepare, result)

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        """Return how likely each label comes next; `adjudge.engines.label_tokens` says how texts become tokens."""
        known: list[LabelTokens] = []

        def prepare(reader: PromptTokens) -> list[Work | LabelLogprobs | Fault]:
            known.append(LabelTokens.of(labels, reader.text))
            job, longest = Job(call="labels", sequences=tuple(sorted(known[0].owners))), known[0].longest
            return [_work(reader, job, row, more=longest) for row in reader.read(prompts)]

        return await self._asked(prepare, lambda _, done: known[0].answer(done.value, done.cost))

    async def inner_label_logprobs(
        self, prompts: Sequence[Row], labels: Labels, at: Sequence[Sequence[int]]
    ) -> list[tuple[LabelLogprobs, ...] | Fault]:
        """Return how likely each label comes after inner tokens of each prompt, in one pass over it.

        Args:
            prompts: what is read, to its end; chats as they stand.
            labels: as for `label_logprobs`, but their texts have one token each.
            at: for each prompt, the tokens (from 0, ascending, at least one) behind which it is asked.

        Raises:
            ValueError: a label's text has several tokens, or there are not as many lists of places as prompts.
        """
        if len(prompts) != len(at):
            raise ValueError(f"inner_label_logprobs was given {len(prompts)} prompts, {len(at)} lists; give as many")
        known: list[LabelTokens] = []

        def prepare(reader: PromptTokens) -> list[Work | tuple[LabelLogprobs, ...] | Fault]:
            known.append(LabelTokens.of(labels, reader.text))
            if known[0].longest > 1:
                raise ValueError(f"the labels {dict(labels)!r} have texts of several tokens; give texts of one token")
            job = Job(call="inner", sequences=tuple(sorted(known[0].owners)))
            works: list[Work | tuple[LabelLogprobs, ...] | Fault] = []
            for row, places in zip(reader.read(prompts, finished=True), at, strict=True):
                if isinstance(row, Fault):
                    works.append(row)
                elif not places or not 0 <= min(places) <= max(places) < len(row):
                    detail = f"places {list(places)[:8]} are not inside the {len(row)} tokens of the prompt"
                    works.append(Fault(reason="engine_error", detail=detail))
                else:
                    fault = reader.overflow(len(row))
                    works.append(fault or Work(kind=job, key=(row, tuple(places)), size=len(row)))
            return works

        def result(work: Work, done: Done) -> tuple[LabelLogprobs, ...]:
            sequences = cast("Job", work.kind).sequences
            answers = [known[0].answer(dict(zip(sequences, values, strict=True))) for values in done.value]
            return (replace(answers[0], cost=done.cost), *answers[1:])

        return await self._asked(prepare, result)

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        """Return how likely each text is after its prompt; texts are tokenized as labels are."""
        check_pairs(prompts, texts)

        def prepare(reader: PromptTokens) -> list[Work | TextLogprobs | Fault]:
            tails = [continuation_tokens(reader.text, text) for text in texts]
            return [
                _work(reader, Job(call="reference"), row, tail=tail)
                if tail or isinstance(row, Fault)
                else TextLogprobs(tokens=(), logprobs=())
                for row, tail in zip(reader.read(prompts), tails, strict=True)
            ]

        def result(work: Work, done: Done) -> TextLogprobs:
            tokens, start = cast("tuple[Tokens, int]", work.key)
            pieces = self._prepared().pieces(tokens[start:])
            return TextLogprobs(tokens=pieces, logprobs=tuple(done.value), cost=done.cost)

        return await self._asked(prepare, result)

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Return a sequence classifier's raw outputs; a decoder is read at the last token of a prompt.

        A reward model that we trained is read as its notes say (`adjudge.engines.checkpoint_notes`).

        Raises:
            ValueError: the model is no such classifier, or reads the end of the prompt as well and is given texts.
        """

        def prepare(reader: PromptTokens) -> list[Work | Logits | Fault]:
            rows = reader.read(prompts, finished=True, special=True)
            notes = notes_of(self.config)
            if notes is None or notes.head.kind != "gating":
                return [_work(reader, Job(call="classify"), row) for row in rows]
            works: list[Work | Logits | Fault] = []
            lengths = reader.prompt_lengths(prompts, rows, back=notes.head.gate_back)
            for row, length in zip(rows, lengths, strict=True):
                work = length if isinstance(length, Fault) else _work(reader, Job(call="gated"), row)
                works.append(replace(work, key=(row, length)) if isinstance(work, Work) else work)
            return works

        return await self._asked(prepare, lambda _, done: Logits(values=tuple(done.value), cost=done.cost))

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Return a token classifier's raw outputs for every token of a prompt."""

        def prepare(reader: PromptTokens) -> list[Work | TokenLogits | Fault]:
            return [_work(reader, Job(call="classify_tokens"), row) for row in reader.read(prompts, finished=True)]

        def result(work: Work, done: Done) -> TokenLogits:
            values = tuple(map(tuple, done.value))
            return TokenLogits(token_ids=cast("Tokens", work.key), values=values, cost=done.cost)

        return await self._asked(prepare, result)

    def opened(self, task: Task) -> tuple[PromptTokens, Network]:
        """Return the tokenizer and the model itself, for what no call does, such as a gradient.

        Not while calls run: a model is not to be called from two threads at once.
        """
        return self._prepared(), self._loaded().network(task)

    async def close(self) -> None:
        """Finish the batch that runs, fail what waits, and free the model."""
        await asyncio.to_thread(self._batcher.close)
        with self._lock:
            self._jobs = None

    async def _asked(
        self,
        prepare: Callable[[PromptTokens], list[Work | T | Fault]],
        result: Callable[[Work, Done], T],
    ) -> list[T | Fault]:
        """Prepare work in a thread, run it, and put results where the work stood."""

        def prepared() -> list[Work | T | Fault]:
            self._loaded()  # settles the budget of batches; the weights come with the first of them
            return self._with_families(prepare(self._prepared()))

        self._gpu = self._gpu or _current_gpu()
        prepared_rows = await asyncio.to_thread(prepared)
        works = [one for one in prepared_rows if isinstance(one, Work)]
        try:
            results = await asyncio.wrap_future(self._batcher.submit(works))
        except BatcherClosed as error:
            gone = Fault(reason="engine_unavailable", detail=str(error))
            return [gone if isinstance(one, Work) else one for one in prepared_rows]
        outcomes = iter(results)
        answers: list[T | Fault] = []
        for one in prepared_rows:
            if not isinstance(one, Work):
                answers.append(one)
                continue
            outcome = next(outcomes)
            if outcome.value is None:
                answers.append(_NO_ROOM)
            elif isinstance(outcome.value, Fault):
                answers.append(outcome.value)
            else:
                answers.append(result(one, replace(outcome.value, cost=NO_COST) if outcome.shared else outcome.value))
        return answers

    def _with_families(self, works: list[Work | T | Fault]) -> list[Work | T | Fault]:
        """Mark what should share a batch, as enough of it is one prefix to be worth a batch of mixed lengths."""
        places = [at for at, one in enumerate(works) if isinstance(one, Work)]
        if not self.config.share_prefixes or len(places) < 2:
            return works
        rows = [cast("Job", work.kind).tokens(work.key) for at in places if isinstance(work := works[at], Work)]
        job = cast("Job", cast("Work", works[places[0]]).kind)
        least = _LEVELS_SHARE if job.task == "generate" else _PACKED_SHARE
        for group in grouped(rows, [len(row) - 1 for row in rows]):
            if len(group.rows) > 1 and group.prefix >= least * max(len(rows[row]) for row in group.rows):
                family = rows[group.rows[0]][: group.prefix]
                for row in group.rows:
                    works[places[row]] = replace(cast("Work", works[places[row]]), family=family)
        return works

    def _prepared(self) -> PromptTokens:
        with self._lock:
            if self._reader is None:
                own = configuration(self.config).get_text_config()
                read = tokenizer(self.config)
                limits = [self.config.max_length, getattr(own, "max_position_embeddings", None), read.model_max_length]
                self._reader = PromptTokens(
                    read,
                    model=self.config.model,
                    window=min(limit for limit in limits if limit is not None),
                    options=self.config.chat_template_kwargs,
                )
            return self._reader

    def _loaded(self) -> Jobs:
        with self._lock:
            if self._jobs is None:
                device, model = self._placed()
                self._jobs = Jobs(self.config, device, self._prepared(), model)
                if self.config.token_budget is None and device != "cpu":
                    self._batcher.budget = _GPU_BUDGET
            return self._jobs

    def _placed(self) -> tuple[str, Any]:
        """Where the model computes, and the model, if it need not be loaded."""
        return _device(self.config, self._gpu), None

    def _run(self, job: Hashable, rows: Sequence[Hashable]) -> list[Done | Fault]:
        """What the batcher's thread does."""
        return self._loaded().run(job, rows)


def _work(
    reader: PromptTokens, job: Job, row: Tokens | Fault, *, tail: Tokens = (), more: int = 0, room: int = 0, n: int = 1
) -> Work | Fault:
    """A piece of work for a row, or the fault that it is, or that it does not fit into the model's window.

    Tokens that may come count a quarter: they are computed one by one, and most completions end early.

    Args:
        reader: knows the window.
        job: what to do.
        row: the prompt's tokens.
        tail: tokens that follow the prompt.
        more: how many more tokens have to fit.
        room: how many more may come, as far as the window lasts.
        n: how often.
    """
    if isinstance(row, Fault):
        return row
    fault = reader.overflow(len(row), len(tail) + more)
    if fault is not None:
        return fault
    size = (len(row) + len(tail) + min(max(more, room), reader.window - len(row) - len(tail)) // 4) * n
    return Work(kind=job, key=(row + tail, len(row)) if tail else row, size=size)


def _current_gpu() -> int:
    """The GPU that is current in this thread; 0 also where this process uses none yet.

    Other threads cannot be asked, and the batcher's own always has 0.
    """
    if sys.modules.get("torch") is None:
        return 0
    from torch import cuda

    return cuda.current_device() if cuda.is_initialized() else 0  # type: ignore[no-untyped-call]


def _device(config: TransformersConfig, gpu: int = 0) -> str:
    """Where the model is kept: "cpu", or "cuda:1"; each process of a launcher has a GPU of its own."""
    needed()
    import torch

    if config.device == "cpu" or (config.device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise ValueError(f"engine option device={config.device!r}; PyTorch sees no GPU here: give cpu, or auto")
    if config.device not in ("auto", "cuda"):
        return config.device
    return f"cuda:{gpu or int(os.environ.get('LOCAL_RANK', 0)) % torch.cuda.device_count()}"


def _fingerprint(config: TransformersConfig) -> str:
    device = _device(config).partition(":")[0]
    # Asking a GPU whether it computes in bfloat16 would begin CUDA here, and a forked child could use it no more.
    halved = device == "cuda" and may_be_lowered(config, configuration(config))
    if is_folder(config.model):
        weights = folder_digest(Path(config.model).expanduser())
    else:
        weights = f"{config.model}@{getattr(configuration(config), '_commit_hash', None) or config.revision}"
    adapter = config.adapter
    if adapter and is_folder(adapter):
        adapter = folder_digest(Path(adapter).expanduser())
    facts = {
        "version": _VERSION,
        "weights": weights,
        "adapter": adapter,
        "device": device,
        "options": [
            "body bfloat16" if halved else config.dtype,
            config.attn,
            config.max_length,
            dict(config.chat_template_kwargs),
            *(["compile"] if config.compile else ()),
        ],
        "versions": [metadata.version(package) for package in ("torch", "transformers", "tokenizers")],
    }
    return f"transformers:{hashlib.sha256(wire.dumps(facts).encode()).hexdigest()[:16]}"
