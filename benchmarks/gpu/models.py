"""Random models in the shapes of published ones, made where they are used: nothing is read from a disk or the network.

Shapes are those of Qwen2.5; `tiny` is for machines without a GPU.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from benchmarks.reward_model_scoring import Chat, chat, tokenizer_for

from adjudge.engines import transformers_jobs
from adjudge.engines.transformers_weights import _in_32_bits


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A model's sizes, as its configuration names them."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int = 151_936
    tie_word_embeddings: bool = True

    @property
    def body(self) -> int:
        """Weights that every token is multiplied with, the head left out."""
        heads = self.hidden_size // self.num_attention_heads * self.num_key_value_heads
        layer = 2 * self.hidden_size**2 + 2 * self.hidden_size * heads + 3 * self.hidden_size * self.intermediate_size
        return self.num_hidden_layers * layer

    def flops(self, lengths: Sequence[int]) -> float:
        """Floating-point operations of a forward pass over rows of these lengths, causal attention halved."""
        attention = 2 * self.num_hidden_layers * self.hidden_size * sum(length**2 for length in lengths)
        return 2.0 * self.body * sum(lengths) + attention


SHAPES: Mapping[str, Shape] = {
    "tiny": Shape(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=8192,
    ),
    "0.5B": Shape(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2
    ),
    "1.5B": Shape(
        hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2
    ),
    "7B": Shape(
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        vocab_size=152_064,
        tie_word_embeddings=False,
    ),
}


def configuration(shape: Shape, tokenizer: Any, **more: Any) -> Any:
    """Return a `Qwen2Config`."""
    from transformers import Qwen2Config

    return Qwen2Config(
        **vars(shape),
        max_position_embeddings=8192,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **more,
    )


def made(kind: Any, config: Any, device: str, dtype: torch.dtype) -> Any:
    """Return a model of random weights, drawn where it stays."""
    torch.manual_seed(0)
    with torch.device(device):
        return kind.from_config(config, dtype=dtype).eval()


WORDS = 2000


def texts(count: int, tokens: float, chance: random.Random) -> list[str]:
    """Return texts of about so many tokens, in the mean, whose lengths are spread as those of answers are."""
    letters = "abcdefghijklmnoprstuvwy"
    words = ["".join(random.Random(at).choices(letters, k=2 + at % 6)) for at in range(WORDS)]
    lengths = [max(4, int(tokens * chance.lognormvariate(-0.28, 0.75))) for _ in range(count)]
    return [" ".join(chance.choices(words, k=length)) for length in lengths]


def chats(prompts: int, answers: int, *, prompt_tokens: float = 150, answer_tokens: float = 350) -> list[Chat]:
    """Return chats to score: so many prompts, so many answers to each."""
    chance = random.Random(0)
    asked = texts(prompts, prompt_tokens, chance)
    return [
        chat([{"role": "user", "content": prompt}], answer)
        for prompt in asked
        for answer in texts(answers, answer_tokens, chance)
    ]


def tokenizer() -> Any:
    """Return a tokenizer of about a token for a word."""
    return tokenizer_for(texts(2000, 40, random.Random(1)))


def reward_folder(folder: Path, shape: Shape, reader: Any) -> Path:
    """Write all of a reward model but its weights, which `standing_in` gives."""
    from safetensors.torch import save_file

    config = configuration(shape, reader, num_labels=1, architectures=["Qwen2ForSequenceClassification"])
    config.save_pretrained(folder)
    reader.save_pretrained(folder)
    save_file({"score.weight": torch.zeros(1, shape.hidden_size)}, folder / "model.safetensors")
    return folder


def reward_model(shape: Shape, reader: Any, device: str, dtype: torch.dtype) -> Any:
    """Return a random reward model with its head in 32 bits."""
    from transformers import AutoModelForSequenceClassification

    model = made(AutoModelForSequenceClassification, configuration(shape, reader, num_labels=1), device, dtype)
    _in_32_bits(model.score)
    return model.requires_grad_(False)


@contextmanager
def standing_in(model: Any) -> Iterator[None]:
    """Inside, whatever an engine loads is this model: 15 GB need not be written and read to measure one."""
    with patch.object(transformers_jobs, "weights", lambda *_: model):
        yield
