"""A small language model made from nothing: a tokenizer trained on given texts, and random weights.

For reward models that are trained offline in minutes: no download, no network.  The folder is an ordinary one of
Hugging Face (tokenizer, chat template, configuration, safetensors): whatever loads a published model loads this one.

The traps that published models hold are not in it: the padding token is a token of its own, no special token is added
behind the caller's back, and each turn of the chat template ends in the end token, the assistant's last one too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from adjudge.engines.model_digest import model_lock
from adjudge.extras import install_hint

Size = Literal["tiny", "small"]

PAD, BEGIN, END = "<|pad|>", "<|begin|>", "<|end|>"
ROLES: Mapping[str, str] = {
    "system": "<|system|>",
    "user": "<|user|>",
    "assistant": "<|assistant|>",
    "tool": "<|tool|>",
}

CHAT_TEMPLATE = (
    f"{BEGIN}"
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}"
    "{{ raise_exception('unknown role; use system, user, assistant or tool') }}"
    "{% endif %}"
    "<|{{ message['role'] }}|>{{ message['content'] }}"
    f"{END}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{ROLES['assistant']}{{% endif %}}"
)


class _Shape(NamedTuple):
    """The numbers behind a size; "tiny" has 0.8 million weights, "small" 5 million."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int


_SHAPES: Mapping[str, _Shape] = {
    "tiny": _Shape(vocabulary=4096, width=128, layers=2, heads=4, inner=344),
    "small": _Shape(vocabulary=8192, width=256, layers=4, heads=8, inner=688),
}
_WINDOW = 4096  # tokens; RoPE needs no weights for them
_LONGEST = 100_000  # characters of one text that the tokenizer learns from


def new_backbone(texts: Iterable[str], folder: str | Path, *, size: Size = "tiny", seed: int = 0) -> Path:
    """Make a small decoder with random weights and a tokenizer trained on texts, and save both as a model folder.

    The same texts in any order, size and seed give the same files on one version of the libraries.

    Returns:
        The folder.

    Raises:
        ValueError: the size is unknown, all texts are empty, the folder holds something, or the extra is missing.
    """
    if size not in _SHAPES:
        raise ValueError(f"the size of a new backbone is {size!r}; it must be one of {', '.join(_SHAPES)}")
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"a new backbone was to be written to {str(target)!r}, which holds something; give another")
    shape = _SHAPES[size]
    tokenizer = _tokenizer(sorted({text[:_LONGEST] for text in texts if text.strip()}), shape.vocabulary)
    model = _decoder(shape, tokenizer, seed)
    target.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


def _tokenizer(texts: list[str], vocabulary: int) -> Any:
    """A byte-level BPE tokenizer: any text can be written with it, and none is lost."""
    if not texts:
        raise ValueError("a tokenizer cannot be trained on no text; give prompts and responses")
    try:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise ValueError(f"a new backbone needs transformers; {install_hint('train')}") from error
    special = [PAD, BEGIN, END, *ROLES.values()]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    # UTF-8 cannot hold lone surrogates, which become question marks.
    core.train_from_iterator((text.encode("utf-8", "replace").decode("utf-8") for text in texts), trainer)
    kind: Any = PreTrainedTokenizerFast
    made = kind(
        tokenizer_object=core,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        additional_special_tokens=list(ROLES.values()),
        model_max_length=_WINDOW,
        padding_side="right",
        truncation_side="left",
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = CHAT_TEMPLATE
    return made


def _decoder(shape: _Shape, tokenizer: Any, seed: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    kind: Any = LlamaForCausalLM
    fields: dict[str, Any] = {
        "vocab_size": -(-len(tokenizer) // 64) * 64,  # whole tiles for kernels; few texts make few tokens
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads // 2,
        "head_dim": shape.width // shape.heads,
        "max_position_embeddings": _WINDOW,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    with model_lock(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(LlamaConfig(**fields)).eval()
