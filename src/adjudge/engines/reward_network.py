"""A reward model as a PyTorch module: a body without its language head, a pooling rule, and a head in 32 bits.

Pooling looks at the attention mask and never at token ids: a test for the padding token passes over a real end token
where the two are one, and so reads another place than the one that was trained.  Padding may stand on either side.

Heads turn hidden states into raw numbers, in 32 bits whatever the body computes in: in bfloat16 a score has three
digits, and so ties where there are none.  Heads cost nothing beside a body, so they stay in 32 bits through `.to`,
`.half`, autocast and saving.

On disk a reward model is a plain Hugging Face folder where the head allows it, with `adjudge.json` beside the weights.
A head that is one linear layer, read at the last token (without a bias) or at every token, becomes an ordinary
`...ForSequenceClassification` or `...ForTokenClassification` checkpoint, which transformers and vLLM load.  Any other
head goes into `adjudge_head.safetensors`, beside the body's own checkpoint.  Folders of others are read with the heads
that `published_heads` knows.

This module imports PyTorch; import it where a model is at hand.
"""

from __future__ import annotations

import copy
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import FILE, HEAD_FILE, CheckpointNotes
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.model_digest import model_lock
from adjudge.engines.published_heads import published_family

_PAD = "<|adjudge_pad|>"
_WEIGHTS = "model.safetensors"
_KINDS: Mapping[str, str] = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
}
_ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "selu": nn.SELU,
}


class HeadNetwork(nn.Module):
    """A head of a reward model.

    The names of its weights are part of the checkpoint format: `score` is the layer that gives the numbers, `inner`
    holds the hidden layers before it, and `gate` the network that weighs them.

    Args:
        config: the head's shape.
        width: of the hidden states.
    """

    def __init__(self, config: HeadConfig, width: int):
        super().__init__()
        self.config = config
        self.width = width
        attributes = config.outputs if config.has_gate else config.columns
        self.inner: nn.Module = nn.Identity()
        last = width
        if config.kind == "mlp":
            last = config.hidden or width
            self.inner = _layers(config, width)
        self.score = nn.Linear(last, attributes, bias=config.bias)
        self.gate: nn.Module | None = None
        if config.has_gate:
            self.gate = nn.Sequential(
                *_layers(config, width), nn.Linear(config.hidden or width, attributes, bias=config.bias)
            )
        for module in self.modules():
            if isinstance(module, nn.Linear):
                # Rewards of about 1 for hidden states of about 1 (arXiv 2009.01325, appendix B).
                nn.init.normal_(module.weight, std=(module.in_features + 1) ** -0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        self.float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return raw numbers, (..., columns), for hidden states, (..., width)."""
        with torch.autocast(hidden.device.type, enabled=False):
            given = hidden.float()
            numbers: torch.Tensor = self.score(self.inner(given))
            return numbers if self.gate is None else torch.cat([numbers, self.gate(given)], dim=-1)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        """Follow the body to its device, and not to its type."""

        def kept(given: torch.Tensor) -> torch.Tensor:
            moved = fn(given)
            if not given.is_floating_point() or moved.dtype == given.dtype:
                return moved
            return moved.float() if given.is_meta else given.to(moved.device, torch.float32)

        return super()._apply(kept, recurse)  # type: ignore[no-untyped-call]


def _layers(config: HeadConfig, width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number in range(config.depth):
        given = width if number == 0 else config.hidden or width
        layers += [nn.Linear(given, config.hidden or width), _ACTIVATIONS[config.activation]()]
    return nn.Sequential(*layers)


class RewardNetwork(nn.Module):
    """A body with a head.

    Args:
        backbone: a model of `transformers` whose output has `last_hidden_state` (what `AutoModel` loads).
        head: what reads its hidden states.
    """

    def __init__(self, backbone: nn.Module, head: HeadNetwork):
        super().__init__()
        self.backbone: Any = backbone
        self.head = head
        inner: Any = getattr(backbone, "get_base_model", lambda: backbone)()  # an adapter's own signature tells nothing
        self._takes_positions = "position_ids" in inspect.signature(inner.forward).parameters

    @classmethod
    def on(cls, backbone: Any, config: HeadConfig) -> RewardNetwork:
        """Return a network with a fresh head on a body, drawn with PyTorch's generator of the CPU, which you seed.

        Raises:
            ValueError: the model has a language head; its body is wanted.
        """
        if getattr(backbone, "get_output_embeddings", lambda: None)() is not None:
            raise ValueError(f"{type(backbone).__name__} has a head of its own; give its body, `model.base_model`")
        head = HeadNetwork(config, _width(backbone))
        return cls(backbone, head.to(next(backbone.parameters()).device))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], **options: Any) -> RewardNetwork:
        """Return the network that `save` wrote, or one with a published head, in evaluation mode.

        Args:
            folder: with `adjudge.json`, or of a family in `adjudge.engines.published_heads`.
            options: for `from_pretrained` of the body, such as `dtype` and `attn_implementation`.

        Raises:
            ValueError: the folder has no notes and no head that is known, or lacks weights.
        """
        import transformers

        home = Path(folder).expanduser()
        notes, published = CheckpointNotes.read(home), None
        if notes is None:
            files = CheckpointFiles.of(str(home))
            family = published_family(files)
            if family is None or family.head is None:
                raise ValueError(f"{str(home)!r} has no {FILE}; it is not a reward model that adjudge has saved")
            published = family.head(files)
            options["trust_remote_code"] = False
        try:
            kind = "AutoModel" if published else _kind(transformers.AutoConfig.from_pretrained(home))
            with model_lock():
                model, info = getattr(transformers, kind).from_pretrained(home, output_loading_info=True, **options)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ValueError(f"the body of {str(home)!r} cannot be loaded: {str(error)[:300]}") from error
        backbone = model if kind == "AutoModel" else getattr(model, model.base_model_prefix)
        lacking = sorted(map(str, [*info["missing_keys"], *info.get("mismatched_keys", ())]))
        if lacking:
            raise ValueError(f"the checkpoint {str(home)!r} has no weights for {', '.join(lacking[:5])}")
        size = _width(backbone)
        if published:
            head = _filled(home, published.config, size, published.weights)
        else:
            assert notes is not None
            head = head_of(home, notes, size)
        return cls(backbone, head.to(backbone.device)).eval()

    def save(
        self,
        folder: str | os.PathLike[str],
        tokenizer: Any,
        notes: CheckpointNotes,
        *,
        language_model: Any = None,
    ) -> None:
        """Write body, head, tokenizer and notes into a folder; the notes last, so that one with notes is whole.

        Args:
            folder: where to; it is made.
            tokenizer: the model's, which stays as it is; what is saved has a padding token that is not its end token.
            notes: what the folder should say of itself; `notes.head` must be this network's.
            language_model: a causal language model around the same body, for models that also write (critiques); then
                it is what is saved, with the head beside it.

        Raises:
            ValueError: the notes are of another head, or the body is wrapped (merge adapters first).
        """
        from safetensors.torch import save_file
        from transformers import PreTrainedModel

        backbone, head = self.backbone, self.head
        if notes.head != head.config:
            raise ValueError(f"the notes describe another head than the one to save: {notes.head} and {head.config}")
        if not isinstance(backbone, PreTrainedModel):
            raise ValueError(
                f"the body to save is a {type(backbone).__name__}, no plain model of transformers; merge adapters and "
                "take wrappers off first"
            )
        home = Path(folder).expanduser()
        home.mkdir(parents=True, exist_ok=True)
        for old in (FILE, HEAD_FILE):
            (home / old).unlink(missing_ok=True)
        shell = None if language_model is not None else _shell(backbone, head)
        if shell is None:
            (language_model or backbone).save_pretrained(home)
            weights = {name: value.detach().cpu().contiguous() for name, value in head.state_dict().items()}
            save_file(weights, home / HEAD_FILE)
            tokenizer.save_pretrained(home)
        else:
            _save_plain(shell, home, tokenizer)
        notes.write(home)

    @property
    def config(self) -> Any:
        """The body's configuration, which trainers look at."""
        return self.backbone.config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def pooling(self) -> str:
        """Where the head reads: see `HeadConfig.pooling`."""
        return self.head.config.pooling

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        prompt_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return raw numbers: (rows, columns), or (rows, length, columns) where the pooling is "tokens".

        Args:
            input_ids: (rows, length).
            attention_mask: (rows, length), 1 where a token is; rows may be padded on either side.
            position_ids: (rows, length); None counts the tokens of each row from 0.
            prompt_lengths: (rows,) tokens of each prompt; a gate reads the last of them.  Only for "gating".

        Raises:
            ValueError: a gate is not told where prompts end.
        """
        if position_ids is None and self._takes_positions and not bool(attention_mask[:, 0].all()):
            position_ids = (attention_mask.long().cumsum(1) - 1).clamp_min(0)
        more = {} if position_ids is None else {"position_ids": position_ids}
        hidden = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state
        numbers: torch.Tensor
        if self.pooling == "tokens":
            numbers = self.head(hidden)
            return numbers
        numbers = self.head(pooled(hidden, attention_mask, self.pooling))
        if self.head.config.kind != "gating":
            return numbers
        if prompt_lengths is None:
            raise ValueError("a gating head reads the prompt's end as well; give prompt_lengths")
        ends = edges(attention_mask)[0] + prompt_lengths.to(attention_mask.device) - 1
        attributes = self.head.config.outputs
        gates = self.head(hidden[torch.arange(len(hidden), device=hidden.device), ends])
        return torch.cat([numbers[:, :attributes], gates[:, attributes:]], dim=-1)

    def gradient_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        """Hand the call on to the body, as trainers expect."""
        self.backbone.gradient_checkpointing_enable(*args, **kwargs)

    def gradient_checkpointing_disable(self) -> None:
        """Hand the call on to the body."""
        self.backbone.gradient_checkpointing_disable()


def edges(attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the places of each row's first and last token: (rows,) each."""
    length = attention_mask.shape[1]
    places = torch.arange(length, device=attention_mask.device).expand(attention_mask.shape)
    empty = attention_mask == 0
    return places.masked_fill(empty, length).amin(1), places.masked_fill(empty, -1).amax(1)


def pooled(hidden: torch.Tensor, attention_mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one hidden state for each row, (rows, width), of (rows, length, width); "mean" in 32 bits."""
    if pooling == "mean":
        weights = attention_mask.to(hidden.device, torch.float32).unsqueeze(-1)
        return (hidden.float() * weights).sum(1) / weights.sum(1)
    first, last = edges(attention_mask)
    return hidden[torch.arange(len(hidden), device=hidden.device), first if pooling == "first" else last]


def _width(backbone: Any) -> int:
    """The width of a body's hidden states."""
    size: int = backbone.config.get_text_config().hidden_size
    return size


def head_of(folder: Path, notes: CheckpointNotes, size: int) -> HeadNetwork:
    """Return the head of a folder in 32 bits, on the CPU.

    Args:
        folder: with the weights.
        notes: the folder's.
        size: the width of the body's hidden states.

    Raises:
        ValueError: the weights are not there, or are of another shape.
    """
    if (folder / HEAD_FILE).is_file():
        tensors = _tensors(folder / HEAD_FILE, None)
    else:
        tensors = {}
        for name, file in _files_of(folder, sorted(_empty(notes.head, size).state_dict())).items():
            tensors |= _tensors(folder / file, [name])
    return _filled(folder, notes.head, size, tensors)


def _empty(config: HeadConfig, size: int) -> HeadNetwork:
    with torch.device("meta"):  # draws no random numbers
        return HeadNetwork(config, size)


def _filled(folder: Path, config: HeadConfig, size: int, tensors: Mapping[str, torch.Tensor]) -> HeadNetwork:
    head = _empty(config, size)
    try:
        head.load_state_dict({name: value.float() for name, value in tensors.items()}, assign=True)
    except RuntimeError as error:
        raise ValueError(f"the head of {str(folder)!r} does not fit its {FILE}: {str(error)[:300]}") from error
    return head.requires_grad_(True)


def _kind(config: Any) -> str:
    """What loads a checkpoint without a word about weights that are left over."""
    name = (config.architectures or ("",))[0]
    for ending, kind in _KINDS.items():
        if name.endswith(ending):
            return kind
    return "AutoModel"


def _shell(backbone: Any, head: HeadNetwork) -> Any:
    """The body and head as a classifier of transformers; None where that has no place for them."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    tokens = head.config.pooling == "tokens"
    if not head.config.is_one_layer or not (tokens or (head.config.pooling == "last" and not head.config.bias)):
        return None
    kind: Any = AutoModelForTokenClassification if tokens else AutoModelForSequenceClassification
    config = copy.deepcopy(backbone.config)
    config.num_labels = head.config.columns
    try:
        with model_lock(), torch.device("meta"):
            shell = kind.from_config(config)
    except ValueError:  # there is no such class
        return None
    prefix = shell.base_model_prefix
    place = getattr(shell, "score", None)
    if not isinstance(place, nn.Linear) or type(getattr(shell, prefix, None)) is not type(backbone):
        return None
    if (place.bias is not None) < head.config.bias or place.in_features != head.width:
        return None
    score = nn.Linear(head.width, head.config.columns, bias=place.bias is not None, device=head.score.weight.device)
    with torch.no_grad():
        score.weight.copy_(head.score.weight)
        if score.bias is not None:
            score.bias.copy_(head.score.bias if head.config.bias else torch.zeros_like(score.bias))
    setattr(shell, prefix, backbone)
    shell.score = score
    return shell


def _save_plain(shell: Any, folder: Path, tokenizer: Any) -> None:
    """Save a classifier so that programs that pool by the padding token's id find the right place too."""
    config, text = shell.config, shell.config.get_text_config()
    tokenizer = copy.deepcopy(tokenizer)
    state = shell.state_dict()
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        tokenizer.add_special_tokens({"pad_token": _PAD})
    name = next(name for name, value in shell.named_parameters() if value is shell.get_input_embeddings().weight)
    pad: Any = tokenizer.pad_token_id
    lacking = pad + 1 - state[name].shape[0]
    if lacking > 0:  # no free row in the embedding: nobody looks at the new one
        rows = state[name]
        state[name] = torch.cat([rows, rows.new_zeros(lacking, rows.shape[1])])
        text.vocab_size = state[name].shape[0]
    text.pad_token_id = config.pad_token_id = tokenizer.pad_token_id
    shell.save_pretrained(folder, state_dict={name: value.detach() for name, value in state.items()})
    tokenizer.save_pretrained(folder)


def _files_of(folder: Path, names: Sequence[str]) -> Mapping[str, str]:
    index = folder / f"{_WEIGHTS}.index.json"
    if not index.is_file():
        return dict.fromkeys(names, _WEIGHTS)
    table = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    return {name: table[name] for name in names if name in table}


def _tensors(file: Path, names: Sequence[str] | None) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as held:
            return {name: held.get_tensor(name) for name in (names or held.keys()) if name in held.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ValueError(f"the weights in {str(file)!r} cannot be read: {error}") from error
