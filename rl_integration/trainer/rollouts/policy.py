"""The policy: a causal language model with its tokenizer, as rollouts and learning see it.

With low-rank factors the model stays the plain one of `transformers`, in whose layers the factors are; the policy that
it was is one `without_adapters` away, and `merged_weights` has what a plain model would, one weight at a time.

Not covered: quantised weights, and adapters other than LoRA.
"""

from __future__ import annotations

import copy
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.training.backbones import Lora, with_lora
from adjudge.training.sharding import Shards, is_sharded, whole, whole_state
from adjudge.training.token_logprobs import base_model, plain_head, token_logprobs


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRows:
    """A batch of n rollouts, prompts padded on the left to P tokens and answers on the right to R.

    Attributes:
        input_ids: (n, P + R) int64.
        attention_mask: (n, P + R) 1 at tokens, 0 at padding.
        position_ids: (n, P + R) the first token of a row has 0.
        answer_ids: (n, R) int64.
        own: (n, R) bool: tokens that the policy wrote; neither a tool's nor padding.
        places: (m,) int64 row * R + column of each token in `own`: a GPU need not be waited for to know how many.
        behaviour: (n, R) float32 log-probabilities when they were written; 0 where there is no token.
    """

    input_ids: Tensor
    attention_mask: Tensor
    position_ids: Tensor
    answer_ids: Tensor
    own: Tensor
    places: Tensor
    behaviour: Tensor

    def to(self, device: Any) -> TokenRows:
        """Return them on another device."""
        return TokenRows(**{name: getattr(self, name).to(device) for name in self.__slots__})


def token_rows(rollouts: Sequence[Rollout], *, pad: int) -> TokenRows:
    """Return rollouts as tensors on the CPU."""
    before = max(len(rollout.prompt_ids) for rollout in rollouts)
    after = max(len(rollout.ids) for rollout in rollouts)
    input_ids = torch.full((len(rollouts), before + after), pad, dtype=torch.int64)
    mask = torch.zeros_like(input_ids)
    own = torch.zeros((len(rollouts), after), dtype=torch.bool)
    behaviour = torch.zeros((len(rollouts), after), dtype=torch.float32)
    for row, rollout in enumerate(rollouts):
        length, ids = len(rollout.ids), (*rollout.prompt_ids, *rollout.ids)
        begin = before - len(rollout.prompt_ids)
        input_ids[row, begin : begin + len(ids)] = torch.tensor(ids)
        mask[row, begin : begin + len(ids)] = 1
        own[row, :length] = torch.from_numpy(rollout.own)
        behaviour[row, :length] = torch.from_numpy(rollout.logprobs)
    return TokenRows(
        input_ids=input_ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        answer_ids=input_ids[:, before:],
        own=own,
        places=own.flatten().nonzero()[:, 0],
        behaviour=behaviour,
    )


def within_budget(rollouts: Sequence[Rollout], units: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Yield places in batches of at most so many tokens, padding included; a unit that is longer goes alone.

    Args:
        rollouts: all of them.
        units: places that must stay together.
        tokens: the budget.
    """
    batch: list[int] = []
    before = after = 0
    for unit in sorted(units, key=lambda unit: (sum(_widths(rollouts, unit)), unit[0])):
        prompt, answer = _widths(rollouts, unit)
        wider, longer = max(before, prompt), max(after, answer)
        if batch and (len(batch) + len(unit)) * (wider + longer) > tokens:
            yield batch
            batch, wider, longer = [], prompt, answer
        batch += unit
        before, after = wider, longer
    if batch:
        yield batch


def padded_tokens(rollouts: Sequence[Rollout], places: Sequence[int]) -> int:
    """Return the tokens of a pass over some of the rollouts, padding included."""
    return len(places) * sum(_widths(rollouts, places))


def _widths(rollouts: Sequence[Rollout], places: Sequence[int]) -> tuple[int, int]:
    prompt = max(len(rollouts[place].prompt_ids) for place in places)
    return prompt, max(len(rollouts[place].ids) for place in places)


ADAPTER = "adapter"  # folder of factors beside the model that they are merged into, as peft reads them

_LOG = logging.getLogger(__name__)

_MOST_LOST = 0.01  # of the norm of what was learnt
_WRAPPED = "base_model.model."  # what peft puts before the names of the model that it wraps
_BENEATH = ".base_layer"  # and behind the name of a layer that has factors beside it
_WRITTEN = "the trainer says where a chat goes on; take it out"
_SET_HERE = {
    "add_generation_prompt": _WRITTEN,
    "continue_final_message": _WRITTEN,
    "tokenize": _WRITTEN,
    "chat_template": "give model.chat_template",
    "tools": "give rollouts.tools",
}
_UNKNOWN = (".modules_to_save.", ".lora_magnitude_vector.")  # parts of names of weights that stand in for others


@torch.no_grad()
def merged_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors as they are in the model without factors; tied ones once.

    Weights with factors come in 32 bits: rounding is left to whoever takes them.  Of a model in shards weights are
    gathered one by one, so all processes go through them together.

    Raises:
        ValueError: the model has adapters of a kind that this does not know how to merge.
    """
    factors = {name: layer for name, layer in model.named_modules() if hasattr(layer, "get_delta_weight")}
    tied = {name: id(value) for name, value in model.named_parameters(remove_duplicate=False)}
    seen: set[tuple[int, int]] = set()
    for name, value in model.state_dict().items():
        if any(part in name for part in _UNKNOWN):
            raise ValueError(f"{name!r} cannot be merged into the weights it stands in for; use plain LoRA")
        # Processes must agree: one of them may have no part of a weight, and so no address.
        here = (tied[name] if is_sharded(value) else value.data_ptr()), value.numel()
        if ".lora_" in name or here in seen:
            continue
        if all(here):  # what is empty is tied to nothing
            seen.add(here)
        layer, _, leaf = name.rpartition(".")
        beside = factors.get(layer.removesuffix(_BENEATH)) if layer.endswith(_BENEATH) and leaf == "weight" else None
        yield (
            name.replace(_WRAPPED, "").replace(_BENEATH, ""),
            whole(value if beside is None else _merged(value, beside)),
        )


def checkpoint_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors as they are in a checkpoint of the model; some models join or rename them in memory.

    Raises:
        ValueError: the model has adapters of a kind that cannot be merged.
    """
    from transformers.core_model_loading import revert_weight_conversion

    base = base_model(model)
    nothing: dict[str, Tensor] = {}
    if not getattr(base, "_weight_conversions", True) or revert_weight_conversion(base, nothing) is nothing:
        yield from merged_weights(model)
    else:  # some tensors are made of several, so all must be there
        yield from revert_weight_conversion(base, dict(merged_weights(model))).items()


def _merged(weight: Tensor, layer: Any) -> Tensor:
    if layer.merged or layer.disable_adapters:
        return weight
    merged = weight.float()
    for name in layer.active_adapters:
        if name in layer.lora_A:
            merged = merged + layer.get_delta_weight(name).float()
    return merged


class Policy:
    """A model that writes and learns.

    Args:
        model: a causal language model of `transformers`.
        tokenizer: its tokenizer.
        name: for messages.
        chat_template_kwargs: for the chat template, wherever a prompt is written: `{"enable_thinking": False}`.

    Raises:
        ValueError: the chat template does not read one of those, or it is not theirs to say.

    Attributes:
        chat_template_kwargs: as given.
        bf16: whether the model computes in bfloat16, whatever its weights are; log-probabilities stay in 32 bits.
        use_prefix_grouper: whether `logprobs` reads a prompt once for all answers to it that are read together.
        lora: the low-rank factors that are trained in the place of the weights; None for none.
        shards: of the model; None where this process has all of it.
        lock: held while answers are written, while an update is made, and while scorers ask the model.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str, chat_template_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.bf16 = False
        self.use_prefix_grouper = False
        self.lora: Lora | None = None
        self.shards: Shards | None = None
        self.lock = threading.RLock()
        self._adapted: Any = None
        window = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 2**31
        self.chat_template_kwargs = dict(chat_template_kwargs or {})
        for key in self.chat_template_kwargs:
            if key in _SET_HERE:
                raise ValueError(f"chat_template_kwargs sets {key!r}; {_SET_HERE[key]}")
            if key not in str(tokenizer.chat_template):
                raise ValueError(
                    f"chat_template_kwargs sets {key!r}, which the chat template of {name!r} does not read; take it "
                    "out, or give another template (model.chat_template)"
                )
        self.tokens = PromptTokens(tokenizer, model=name, window=int(window), options=self.chat_template_kwargs)

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        device: torch.device = self.model.device if self.shards is None else self.shards.device
        return device

    @property
    def exact(self) -> bool:
        """Whether two passes over the same tokens give the same log-probabilities, but for rounding in 32 bits.

        In bfloat16 they differ by several hundredths: a token written on its own and one read among others go through
        sums of different shapes.  What was written must then be corrected for (`Learner.learn`).
        """
        return not self.bf16 and all(value.dtype.itemsize >= 4 for value in self.model.parameters())

    def adapt(self, lora: Lora, *, seed: int) -> None:
        """Freeze the weights and put factors beside them, which change nothing until they are trained.

        Raises:
            ValueError: it has other factors, or the targets name no layer.
        """
        if self.lora is not None:
            if self.lora != lora:
                raise ValueError(f"learning.lora is {lora}, but {self.name} already has {self.lora}; open it anew")
            return
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(seed)
            self._adapted = with_lora(self.model, lora)
        self.lora = lora

    def shard(self, device: torch.device, *, cpu_offload: bool) -> None:
        """Keep this process's part of the weights alone; all processes have the same ones, and call it.

        Raises:
            ValueError: the process was started alone.
        """
        plain_head(self.model)  # found out by a call of the model, which is remembered
        layers = self.model._no_split_modules or ()
        self.shards = Shards(self.model, device=device, bf16=self.bf16, cpu_offload=cpu_offload, layers=layers)

    def gathered(self) -> AbstractContextManager[None]:
        """Inside, the model may be called in one process alone; where there are shards, all processes enter it."""
        return nullcontext() if self.shards is None else self.shards.gathered()

    @contextmanager
    def without_adapters(self) -> Iterator[None]:
        """Inside, the policy is the one that it was before its factors were trained.

        Raises:
            ValueError: it has none.
        """
        if self._adapted is None:
            raise ValueError(f"{self.name} has no factors to leave out")
        with self._adapted.disable_adapter():
            yield

    def arithmetic(self) -> torch.autocast:
        """Return the context in which the model computes, wherever it is called."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, the model is in evaluation mode and computes as it learns, and nobody else calls or changes it."""
        with self.lock, self.arithmetic():
            training = self.model.training
            self.model.eval()
            try:
                yield
            finally:
                self.model.train(training)

    @property
    def pad(self) -> int:
        """A token to fill up with; it is masked wherever it stands."""
        return int(self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else min(self.ends))

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer; `ValueError` where there are none."""
        own = getattr(self.model.generation_config, "eos_token_id", None)
        ends = self.tokens.end_tokens() | frozenset([own] if isinstance(own, int) else own or ())
        if not ends:
            raise ValueError(
                f"the model {self.name!r} has no end token, so no answer would end; give its tokenizer one"
            )
        return ends

    def encode(self, task: Task) -> tuple[int, ...]:
        """Return a task's prompt as tokens: a chat through the template, a text as the tokenizer begins texts.

        Raises:
            ValueError: the prompt is empty, or the template refuses it.
        """
        opening = task.opening
        if isinstance(opening, str):
            ids: tuple[int, ...] = tuple(self.tokenizer(opening, verbose=False)["input_ids"])
        else:
            (read,) = self.tokens.read([opening])
            if isinstance(read, Fault):
                raise ValueError(f"the prompt of task {task.id!r} cannot be written: {read.detail}")
            ids = read
        if not ids:
            raise ValueError(f"the prompt of task {task.id!r} is empty; the model needs at least one token")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of an answer's tokens."""
        return self.tokens.decode(ids)

    def logprobs(self, rows: TokenRows, *, temperature: float, steer: bool = False) -> tuple[Tensor, Tensor]:
        """Return what the policy thinks of answers now.

        Args:
            rows: on the model's device.
            temperature: what logits are divided by; that of the rollouts.
            steer: whether entropies have gradients, too.

        Returns:
            (n, R) log-probabilities of the answers' tokens, in nats, with gradients where they are on; and (n, R)
            entropies of the distributions they were drawn from; 0 where the policy did not write.
        """
        length, width = rows.input_ids.shape[1], rows.answer_ids.shape[1]
        read: Callable[..., tuple[Tensor, Tensor]] = token_logprobs
        if self.shards is not None and plain_head(self.model) is not None:
            read = partial(self.shards.inside, token_logprobs)
        with self.arithmetic():
            found = read(
                self.model,
                {name: getattr(rows, name) for name in ("input_ids", "attention_mask", "position_ids")},
                rows.places + (rows.places // width + 1) * (length - width),
                columns=width,
                temperature=temperature or 1.0,
                steer=steer,
                shared=self.use_prefix_grouper,
            )
        logprobs, entropies = (
            one.new_zeros(rows.own.numel()).index_copy(0, rows.places, one).view_as(rows.own) for one in found
        )
        return logprobs, entropies

    def save(self, folder: Path | None) -> None:
        """Write the model and its tokenizer as `transformers` reads them.

        All processes that have shards of the model call it; those that give no folder write nothing.

        Low-rank factors are merged into a copy, and also written on their own, to `ADAPTER` below the folder.  The copy
        is in 32 bits where the type of the weights would lose more than 1 % of what was learnt.
        """
        if folder is None and self.shards is None:
            return
        state, factors, keep = None, None, folder is not None
        if self.lora is not None:
            state = self._merged_copy(keep=keep)
            factors = whole_state(self._adapted, keep=keep, only=".lora_")
        elif self.shards is not None:
            state = whole_state(self.model, keep=keep)
        if folder is None:
            return
        config = copy.deepcopy(self.model.config)
        if state is not None:
            kinds = {value.dtype for value in state.values() if value.is_floating_point()}
            config.dtype = max(kinds, key=lambda kind: kind.itemsize)
        self.model.save_pretrained(folder, state_dict=state)  # which takes what it writes out of `state`
        if state is not None:
            config.architectures = self.model.config.architectures
            config.save_pretrained(folder)  # it has the type of the model in memory
        if factors is not None:
            self._adapted.save_pretrained(folder / ADAPTER, state_dict=factors, save_embedding_layers=False)
        self.tokenizer.save_pretrained(folder)

    @torch.no_grad()
    def _merged_copy(self, *, keep: bool) -> dict[str, Tensor]:
        start = {name.replace(_BENEATH, ""): value for name, value in self.model.named_parameters()}
        copied: dict[str, Tensor] = {}
        lost, learnt, kind = 0.0, 0.0, torch.float32
        for name, value in merged_weights(self.model):
            if name in start and value.dtype != start[name].dtype:
                kind = start[name].dtype
                rounded = value.to(kind)
                lost += float((rounded.float() - value).square().sum())
                learnt += float((value - whole(start[name])).square().sum())
            if keep:
                copied[name] = value.detach().cpu()
        share = math.sqrt(lost / learnt) if learnt else 0.0
        if share > _MOST_LOST:
            _LOG.warning(
                "%s is saved in float32: %.1f %% of what it learnt would be lost in %s", self.name, 100 * share, kind
            )
            return {name: value.float() if value.is_floating_point() else value for name, value in copied.items()}
        return {name: value.to(start[name].dtype) if name in start else value for name, value in copied.items()}
