"""Reward models on disk: plain Hugging Face folders where the head allows it, and `adjudge.json` beside the weights.

A head that is one linear layer, read at the last token (without a bias) or at every token, becomes an ordinary
`...ForSequenceClassification` or `...ForTokenClassification` checkpoint, which transformers and vLLM load.  Any other
head goes into `adjudge_head.safetensors`, beside the body's own checkpoint.  Heads are written, and read back here, in
32 bits, whatever type the body has.  Folders of others are read with the heads that `published_heads` knows.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import FILE, CheckpointNotes
from adjudge.engines.checkpoint_notes import HEAD_FILE as HEAD_FILE
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.head_networks import HeadNetwork
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


def width(backbone: Any) -> int:
    """Return the width of a body's hidden states."""
    size: int = backbone.config.get_text_config().hidden_size
    return size


def load(folder: str | os.PathLike[str], **options: Any) -> tuple[Any, HeadNetwork]:
    """Return the body and the head of a folder, both on the body's device; as `RewardNetwork.load` says."""
    import transformers

    home = Path(folder).expanduser()
    notes = CheckpointNotes.read(home)
    published = None
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
    size = width(backbone)
    if published:
        head = _filled(home, published.config, size, published.weights)
    else:
        assert notes is not None
        head = head_of(home, notes, size)
    return backbone, head.to(backbone.device)


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


def save(
    backbone: Any,
    head: HeadNetwork,
    folder: str | os.PathLike[str],
    tokenizer: Any,
    notes: CheckpointNotes,
    *,
    language_model: Any = None,
) -> None:
    """Write a reward model into a folder as `RewardNetwork.save` says; the notes last, so that one with notes is whole.

    The tokenizer stays as it is, and the copy that is saved has a padding token of its own.
    """
    from safetensors.torch import save_file
    from transformers import PreTrainedModel

    if notes.head != head.config:
        raise ValueError(f"the notes describe another head than the one to save: {notes.head} and {head.config}")
    if not isinstance(backbone, PreTrainedModel):
        raise ValueError(
            f"the body to save is a {type(backbone).__name__}, no plain model of transformers; merge adapters and take "
            "wrappers off first"
        )
    home = Path(folder).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    for old in (FILE, HEAD_FILE):
        (home / old).unlink(missing_ok=True)
    shell = None if language_model is not None else _shell(backbone, head)
    if shell is None:
        (language_model or backbone).save_pretrained(home)
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in head.state_dict().items()}, home / HEAD_FILE
        )
        tokenizer.save_pretrained(home)
    else:
        _save_plain(shell, home, tokenizer)
    notes.write(home)


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
