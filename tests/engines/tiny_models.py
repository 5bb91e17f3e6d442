"""Random models of a few thousand weights, made in a second and without network: what the engines' tests ask.

The weights are far from zero on purpose: with the usual tiny ones every token is about equally likely, and a test that
compares probabilities could not fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.head_config import HeadConfig

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Family = Literal["llama", "qwen2", "mistral"]

CORPUS = (
    "Is the answer right? Yes, it is. No, it is not. yes no Yes No A B C D maybe",
    "The reference says 42. The response says 41. Final Decision: No. Score: 1 2 3 4 5 6 7 8 9 10",
    "You are a careful judge. Read the question and the answer, then say whether the answer is correct.",
    "user assistant system prompt response question answer verdict good bad correct wrong unsupported supported",
)
SPECIAL = ("<|pad|>", "<|end|>", "<|start|>", "<|turn|>")
CHAT = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
WINDOW = 512


def tiny_tokenizer(
    *, pad: str = "<|pad|>", bos: str | None = None, end: str = "", chat: str | None = CHAT
) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer of about 500 tokens; any text can be written with it.

    Args:
        pad: the padding token; "<|end|>" makes it the end token as well, as many published models do.
        bos: a token that is put before a text when special tokens are asked for.
        end: a token that is put behind a text then, beside `bos`, as BERT has one.
        chat: the chat template.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A {end}".rstrip(),
            special_tokens=[(one, tokenizer.token_to_id(one)) for one in (bos, end) if one],
        )
    kind: Any = PreTrainedTokenizerFast
    made: PreTrainedTokenizerFast = kind(
        tokenizer_object=tokenizer,
        pad_token=pad,
        eos_token="<|end|>",
        bos_token=bos,
        additional_special_tokens=["<|turn|>"],
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = chat
    return made


def tiny_config(family: Family, tokenizer: PreTrainedTokenizerFast, **more: Any) -> Any:
    """Return the configuration of a model with two layers, 64 wide."""
    from transformers import LlamaConfig, MistralConfig, Qwen2Config

    kinds: dict[Family, Any] = {"llama": LlamaConfig, "qwen2": Qwen2Config, "mistral": MistralConfig}
    fields: dict[str, Any] = {
        "vocab_size": 512,  # a little more than the tokenizer has, as in many published models
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,  # the smallest that vLLM takes on a CPU
        "max_position_embeddings": WINDOW,
        "initializer_range": 0.2,
        "bos_token_id": tokenizer.convert_tokens_to_ids("<|start|>"),
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
    }
    return kinds[family](**{**fields, **more})


def write_model(
    folder: Path,
    *,
    task: Literal["generate", "classify", "classify_tokens"] = "generate",
    family: Family = "qwen2",
    labels: int = 1,
    seed: int = 0,
    tokenizer: PreTrainedTokenizerFast | None = None,
    **config: Any,
) -> Path:
    """Write a random model with its tokenizer into a folder, and return the folder.

    Args:
        folder: where to; it is made.
        task: with a language model's head, a sequence classifier's, or a token classifier's.
        family: the architecture.
        labels: how many outputs a classifier has.
        seed: of the weights.
        tokenizer: in place of `tiny_tokenizer()`.
        config: further fields of the model's configuration, such as `sliding_window`.
    """
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
    )

    kinds: dict[str, Any] = {
        "generate": AutoModelForCausalLM,
        "classify": AutoModelForSequenceClassification,
        "classify_tokens": AutoModelForTokenClassification,
    }
    made = tokenizer or tiny_tokenizer()
    if task != "generate":
        config["num_labels"] = labels
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kinds[task].from_config(tiny_config(family, made, **config), dtype=torch.float32)
        if task != "generate":
            torch.nn.init.normal_(model.score.weight, std=0.5)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def write_reward_model(
    folder: Path,
    head: HeadConfig,
    *,
    family: Family = "qwen2",
    seed: int = 0,
    tokenizer: PreTrainedTokenizerFast | None = None,
    **config: Any,
) -> Path:
    """Write a random reward model with a head of ours into a folder, and return the folder.

    Args:
        folder: where to; it is made.
        head: its head, which is random too.
        family: the architecture of the body.
        seed: of the weights.
        tokenizer: in place of `tiny_tokenizer(pad="<|end|>")`.
        config: further fields of the body's configuration.
    """
    import torch
    from transformers import AutoModel

    from adjudge.engines.reward_network import RewardNetwork

    made = tokenizer or tiny_tokenizer(pad="<|end|>")
    kind: Any = AutoModel
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = RewardNetwork.on(kind.from_config(tiny_config(family, made, **config)), head)
    network.save(folder, made, CheckpointNotes(what="process" if head.pooling == "tokens" else "scalar", head=head))
    return folder
