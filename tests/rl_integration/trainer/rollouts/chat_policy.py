"""A policy of a few thousand weights that reads bytes and takes chats with tools, as ChatML models do."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.processors import ByteLevel

from adjudge.rl_integration.trainer.rollouts.policy import Policy

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}"
    "{% if loop.previtem is not defined or loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}"
    "{{ '\n<tool_response>\n' + message.content + '\n</tool_response>' }}"
    "{% if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% else %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Written after what ChatML models with Hermes calls do: answers of tools share a user's turn."""


def chat_policy(template: str = TEMPLATE) -> Policy:
    """A new policy with a chat template."""
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE({character: at for at, character in enumerate(alphabet)}, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.post_processor = ByteLevel(trim_offsets=False)
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>")
    tokenizer.add_tokens(["<|im_start|>"], special_tokens=True)
    tokenizer.add_tokens(["<tool_call>", "</tool_call>"])  # no special ones, as in Qwen's tokenizers
    tokenizer.chat_template = template
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    causal: Any = AutoModelForCausalLM
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = causal.from_config(config)
    return Policy(model, tokenizer, name="a chat policy")
