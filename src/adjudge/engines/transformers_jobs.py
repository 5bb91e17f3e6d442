"""What the transformers engine's worker thread does: one batch of one kind of job at a time.

Each job is a record that says what is asked; a batch holds the token rows it is asked of.  A row whose numbers are not
finite, or that fits into no memory, is a fault; so is every row of a batch during which PyTorch failed.

Writing text token by token: every row with its own chance, stop texts, and rows that are done make room.

A row's random numbers come from the seed, its prompt and its index alone, one for each token, and the token is the one
whose share of the probability they fall into.  So a completion does not depend on the batch it was made in, up to
rounding: a number within about 1e-6 of the border between two tokens may fall on either side.
"""

from __future__ import annotations

import hashlib
import logging
import math
import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from adjudge.engines.checkpoint_notes import template_digest
from adjudge.engines.interface import Completion, Fault, Sampling
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.shared_prefixes import Tokens
from adjudge.engines.template_lint import lint
from adjudge.engines.transformers_network import Level, Network
from adjudge.engines.transformers_weights import Task, notes_of, weights
from adjudge.protocol import Cost
from adjudge.runtime.batcher import OutOfRoom

if TYPE_CHECKING:
    import torch

    from adjudge.engines.transformers_config import TransformersConfig

# Rows that are done are dropped once they are a quarter of the batch: dropping copies the keys and values of the rest.
_KEPT = 0.75

_BROKEN = "not a number"

# What PyTorch's allocators and NVIDIA's libraries say; an "illegal memory access" is none of it.
_NO_MEMORY = ("OutOfMemoryError", "out of memory", "not enough memory", "allocate memory", "STATUS_ALLOC_FAILED")


@dataclass(eq=False)
class _Row:
    chance: random.Random
    room: int
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    finish: str = ""


class Decoder:
    """Writes completions with a network.

    Args:
        network: a language model.
        detokenize: tokens to text, without special tokens.
        window: most tokens of a prompt and its completion.
        ends: tokens that end a completion.
    """

    def __init__(
        self, network: Network, *, detokenize: Callable[[Sequence[int]], str], window: int, ends: frozenset[int]
    ):
        self._network = network
        self._text = detokenize
        self._window = window
        self._ends = ends

    def write(self, prompts: Sequence[Tokens], sampling: Sampling) -> list[tuple[Completion, ...] | None]:
        """Return `sampling.n` completions of each prompt; None where the model's numbers became meaningless.

        A prompt is read once, whatever n.
        """
        logits, level = self._network.begin(prompts)
        rows = [
            _Row(
                chance=_chance(sampling.seed, prompt, index), room=min(sampling.max_tokens, self._window - len(prompt))
            )
            for prompt in prompts
            for index in range(sampling.n)
        ]
        parents = [number for number in range(len(prompts)) for _ in range(sampling.n)]
        self._write_on(rows, logits[parents], level.branched(parents), sampling)
        made: list[tuple[Completion, ...] | None] = []
        for start in range(0, len(rows), sampling.n):
            mine = rows[start : start + sampling.n]
            texts = [Completion(text=row.text, finish_reason=row.finish, tokens=len(row.tokens)) for row in mine]
            made.append(None if any(row.finish == _BROKEN for row in mine) else tuple(texts))
        return made

    def _write_on(self, rows: Sequence[_Row], logits: torch.Tensor, level: Level, sampling: Sampling) -> None:
        live = list(range(len(rows)))  # rows of the level, in its order; some of them may be done
        while True:
            chosen = _chosen(logits, [rows[number] for number in live], sampling)
            broken = logits.isnan().any(-1).tolist()
            for number, token, nothing in zip(live, chosen, broken, strict=True):
                if nothing:
                    rows[number].finish = _BROKEN
                elif not rows[number].finish:
                    self._extend(rows[number], token, sampling)
            going = [at for at, number in enumerate(live) if not rows[number].finish]
            if not going:
                return
            if len(going) <= _KEPT * len(live):
                level = level.branched(going)
                live = [live[at] for at in going]
                chosen = [chosen[at] for at in going]
            logits, level = self._network.read_level(
                level, range(len(live)), [(token,) for token in chosen], [(0,)] * len(live)
            )

    def _extend(self, row: _Row, token: int, sampling: Sampling) -> None:
        row.tokens.append(token)
        if token in self._ends:
            row.text, row.finish = self._text(row.tokens[:-1]), "stop"
            return
        # The end of a row's text, long enough to hold any stop text: a character has at most four tokens.
        tail = self._text(row.tokens[-4 * max(map(len, sampling.stop)) - 4 :]) if sampling.stop else ""
        if any(stop in tail for stop in sampling.stop):
            text = self._text(row.tokens)
            cuts = [at for at in (text.find(stop) for stop in sampling.stop) if at >= 0]
            if cuts:
                row.text, row.finish = text[: min(cuts)], "stop"
                return
        if len(row.tokens) >= row.room:
            row.text, row.finish = self._text(row.tokens), "length"


def _chance(seed: int, prompt: Tokens, index: int) -> random.Random:
    text = f"{seed} {index} " + ",".join(map(str, prompt))
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))


def _chosen(logits: torch.Tensor, rows: Sequence[_Row], sampling: Sampling) -> list[int]:
    import torch

    if sampling.temperature == 0:
        likeliest: list[int] = logits.argmax(-1).tolist()
        return likeliest
    scaled = logits / sampling.temperature
    if 0 < sampling.top_k < scaled.shape[-1]:
        least = scaled.topk(sampling.top_k).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -torch.inf)
    probabilities = scaled.softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True, stable=True)
        before = ranked.cumsum(-1) - ranked
        outside = torch.zeros_like(ranked, dtype=torch.bool).scatter(-1, order, before >= sampling.top_p)
        probabilities = probabilities.masked_fill(outside, 0.0)
    # 64 bits: over 150,000 tokens, sums in 32 bits would move borders by 1e-3.
    sums = probabilities.double().cumsum(-1)
    drawn = torch.tensor([[row.chance.random()] for row in rows], dtype=torch.float64, device=sums.device)
    places = torch.searchsorted(sums, drawn * sums[:, -1:], right=True)
    # A draw beside the very end must not land on a token that was ruled out.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).int().argmax(-1, keepdim=True)
    tokens: list[int] = torch.minimum(places, last)[:, 0].tolist()
    return tokens


_LOG = logging.getLogger(__name__)

# Logits of a whole text take a float for each token and each word of the vocabulary; at most 1 GiB at once.
_LOGITS = 2**28


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is asked of a model; rows of equal jobs share batches.

    Attributes:
        call: "generate" writes completions; "labels" says how likely each of some sequences comes next; "reference" how
            likely a text's tokens are; "inner" how likely each of some tokens comes after inner places; "classify" and
            "classify_tokens" give a classifier's outputs, "gated" those of a head that reads two places.
        sampling: how completions are written.
        sequences: what "labels" and "inner" ask about.

    A row is a prompt's tokens.  Where the job is `placed` it is all tokens, and where the text begins ("reference"),
    the places ("inner"), or how many of them are the prompt ("gated").
    """

    call: Literal["generate", "labels", "reference", "inner", "classify", "gated", "classify_tokens"]
    sampling: Sampling = field(default_factory=Sampling)
    sequences: tuple[Tokens, ...] = ()

    @property
    def task(self) -> Task:
        """What the model is loaded for."""
        if self.call == "classify_tokens":
            return "classify_tokens"
        return "classify" if self.call in ("classify", "gated") else "generate"

    @property
    def placed(self) -> bool:
        """Whether a row has places beside its tokens."""
        return self.call in ("reference", "inner", "gated")

    def tokens(self, row: Any) -> Tokens:
        """Return the tokens of a row."""
        tokens: Tokens = row[0] if self.placed else row
        return tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a row got, and what it cost."""

    value: Any
    cost: Cost


class Jobs:
    """Runs batches on a model, which is loaded by the first batch that needs it.

    Args:
        config: the engine's.
        device: where the model is kept.
        reader: its tokenizer.
        model: a language model that is there already, and is not loaded.
    """

    def __init__(self, config: TransformersConfig, device: str, reader: PromptTokens, model: Any = None):
        self._config = config
        self._device = device
        self._reader = reader
        self._networks: dict[Task, Network] = {}
        if model is not None:
            self._networks["generate"] = Network(model, "generate", sharing=config.share_prefixes)

    def run(self, job: Hashable, rows: Sequence[Hashable]) -> list[Done | Fault]:
        """Return what each row of a batch got.

        Raises:
            OutOfRoom: the batch does not fit into memory.
            ValueError: the model cannot do such a job, or cannot be loaded.
        """
        import torch

        if not isinstance(job, Job):
            raise TypeError(f"{job!r} is not a job")
        network = self.network(job.task)
        given: Any = rows
        start = time.perf_counter()
        values: list[Any] | None
        try:
            _check_known([*map(job.tokens, given), *job.sequences], network.vocabulary)
            with torch.inference_mode():
                values = self._values(job, network, given)
        except (RuntimeError, IndexError) as error:
            values, problem = None, f"{type(error).__name__}: {error}"
        if values is None:
            # Not inside `except`: there, the error's traceback still holds the tensors of the batch.
            if any(words in problem for words in _NO_MEMORY):
                torch.cuda.empty_cache()
                raise OutOfRoom(problem)
            return [Fault(reason="engine_error", detail=problem[:500]) for _ in rows]
        lengths = [len(job.tokens(row)) for row in given]
        share = (time.perf_counter() - start) / sum(lengths)
        return [
            _NOT_FINITE if value is None else Done(value=value, cost=Cost(seconds=share * length, prompt_tokens=length))
            for value, length in zip(values, lengths, strict=True)
        ]

    def network(self, task: Task) -> Network:
        """Return the model for a task."""
        if task not in self._networks:
            model = weights(self._config, task, self._device)
            if task != "generate":
                self._tell_of_the_template()
            options = {
                "sharing": self._config.share_prefixes,
                "packing": self._config.attn == "auto",
                "compiling": self._config.compile,
            }
            self._networks[task] = Network(model, task, **options)
            self._tell_of_the_path(task)
        return self._networks[task]

    @property
    def paths(self) -> dict[Task, str]:
        """`Network.path` of each model that is loaded."""
        return {task: network.path for task, network in self._networks.copy().items()}

    def _tell_of_the_path(self, task: Task) -> None:
        network = self._networks[task]
        slow = network.unpacked and network.device.type == "cuda" and task != "generate" and self._config.attn == "auto"
        why = f"; rows are not packed: {network.unpacked}" if network.unpacked else ""
        level = logging.WARNING if slow else logging.INFO
        _LOG.log(level, "%s: %s on %s: %s%s", self._config.model, task, network.device, network.path, why)

    def _tell_of_the_template(self) -> None:
        """Log what is known to give a reward model other scores than its training did."""
        tokenizer, notes = self._reader.tokenizer, notes_of(self._config)
        if not tokenizer.chat_template:
            return
        if notes is not None and notes.template == template_digest(tokenizer.chat_template):
            return  # whatever it does, it did so in training
        for finding in lint(tokenizer, self._config.chat_template_kwargs):
            if finding.severity != "note" or finding.code == "text_after_end":
                _LOG.warning("%s: %s: %s", self._config.model, finding.code, finding.text)

    def _values(self, job: Job, network: Network, rows: Any) -> list[Any]:
        match job.call:
            case "generate":
                ends = network.end_tokens() | self._reader.end_tokens()
                decoder = Decoder(network, detokenize=self._reader.decode, window=self._reader.window, ends=ends)
                return list(decoder.write(rows, job.sampling))
            case "labels":
                return _sequence_logprobs(network, rows, job.sequences)
            case "reference":
                parts = _parts(rows, _LOGITS // network.vocabulary)
                return [logprobs for part in parts for logprobs in _text(network, part)]
            case "inner":
                return _inner(network, rows, [token for (token,) in job.sequences])
            case "classify":
                return _finite(network.pooled(rows).tolist())
            case "gated":
                return _finite(network.gated(rows).tolist())
            case "classify_tokens":
                return [_whole(values.tolist()) for values in network.read_all(rows)]


def _check_known(rows: Sequence[Tokens], vocabulary: int) -> None:
    """Refuse a token that the model does not know: it would fail on a GPU as well, and with it all that comes later."""
    for row in rows:
        if min(row) < 0 or max(row) >= vocabulary:
            raise IndexError(
                f"the model knows the tokens 0 to {vocabulary - 1}, and was given {min(row)} to {max(row)}"
            )


_NOT_FINITE = Fault(reason="engine_error", detail="the model gave numbers that are not finite; try dtype float32")


def _sequence_logprobs(
    network: Network, rows: Sequence[Tokens], sequences: Sequence[Tokens]
) -> list[dict[Tokens, float] | None]:
    inner = {sequence[:length] for sequence in sequences for length in range(1, len(sequence))}
    tails = sorted(tail for tail in inner if not any(tail == other[: len(tail)] for other in inner - {tail}))
    following: dict[Tokens, Callable[[int], list[float]]] = {}  # after these tokens, the logprob of a token in each row
    if not tails:
        following[()] = _of_token(network.read(rows, [[len(row) - 1] for row in rows]))
    elif network.shares:
        logits, level = network.begin(rows)
        following[()] = _of_token(logits)
        for tail in tails:
            outputs, _ = network.read_level(level, range(len(rows)), [tail] * len(rows), [range(len(tail))] * len(rows))
            _add(following, tail, outputs.view(len(rows), len(tail), -1), start=1)
    else:
        for tail in tails:
            places = [range(len(row) - 1, len(row) + len(tail)) for row in rows]
            outputs = network.read([row + tail for row in rows], places)
            _add(following, tail, outputs.view(len(rows), len(tail) + 1, -1), start=0)
    # One look-up for each token that follows, for all rows at once.
    steps = {(sequence[:at], sequence[at]) for sequence in sequences for at in range(len(sequence))}
    logprobs = {(before, token): following[before](token) for before, token in steps}
    results: list[dict[Tokens, float] | None] = []
    for row in range(len(rows)):
        sums = {
            sequence: math.fsum(logprobs[sequence[:at], sequence[at]][row] for at in range(len(sequence)))
            for sequence in sequences
        }
        results.append(None if any(math.isnan(value) for value in sums.values()) else sums)
    return results


def _add(
    following: dict[Tokens, Callable[[int], list[float]]], tail: Tokens, outputs: torch.Tensor, start: int
) -> None:
    """Note the logits after each beginning of a tail: outputs is (rows, places, vocabulary)."""
    for place in range(outputs.shape[1]):
        following.setdefault(tail[: place + start], _of_token(outputs[:, place]))


def _of_token(logits: torch.Tensor) -> Callable[[int], list[float]]:
    totals = logits.logsumexp(-1)

    def of(token: int) -> list[float]:
        values: list[float] = (logits[:, token] - totals).tolist()
        return values

    return of


def _parts(rows: Sequence[tuple[Tokens, int]], most: int) -> Iterator[list[tuple[Tokens, int]]]:
    """Rows in parts of which at most so many tokens are asked about, but of one row at least."""
    part: list[tuple[Tokens, int]] = []
    asked = 0
    for tokens, start in rows:
        if part and asked + len(tokens) - start > most:
            yield part
            part, asked = [], 0
        part.append((tokens, start))
        asked += len(tokens) - start
    if part:
        yield part


def _text(network: Network, rows: Sequence[tuple[Tokens, int]]) -> list[list[float] | None]:
    import torch

    places = [range(start - 1, len(tokens) - 1) for tokens, start in rows]
    logits = network.read([tokens for tokens, _ in rows], places)
    targets = torch.tensor([token for tokens, start in rows for token in tokens[start:]], device=logits.device)
    values = (logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(-1)).tolist()
    results, at = [], 0
    for asked in places:
        results.append(values[at : at + len(asked)])
        at += len(asked)
    return [None if any(map(math.isnan, row)) else row for row in results]


def _inner(
    network: Network, rows: Sequence[tuple[Tokens, Tokens]], tokens: Sequence[int]
) -> list[list[list[float]] | None]:
    logits = network.read([row for row, _ in rows], [places for _, places in rows])
    chosen = (logits[:, list(tokens)] - logits.logsumexp(-1, keepdim=True)).tolist()
    results, at = [], 0
    for _, places in rows:
        results.append(_whole(chosen[at : at + len(places)]))
        at += len(places)
    return results


def _finite(rows: list[list[float]]) -> list[list[float] | None]:
    return [row if all(map(math.isfinite, row)) else None for row in rows]


def _whole(rows: list[list[float]]) -> list[list[float]] | None:
    return rows if all(math.isfinite(value) for row in rows for value in row) else None
