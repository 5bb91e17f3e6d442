"""A policy of a hundred thousand weights that reads characters, and its first supervised lessons."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from adjudge.engines.model_digest import model_lock
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.policy import Policy

_PAD, _END = "<|pad|>", "<|end|>"


def tiny_policy(
    characters: str, *, seed: int, words: Sequence[str] = (), width: int = 64, layers: int = 2, window: int = 64
) -> Policy:
    """Return a new policy.

    It reads and writes these characters, a token each, and so is each of the words, which saves it the letters between;
    `window` is the most tokens that it reads.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    vocabulary = {text: at for at, text in enumerate([_PAD, _END, *sorted(set(characters)), *words])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token=_PAD))
    # The dot of a regular expression stands for no line break, which would then cling to its neighbour.
    raw.pre_tokenizer = pre_tokenizers.Split(Regex("|".join([*map(re.escape, words), r"[\s\S]"])), "isolated")
    raw.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    causal: Any = AutoModelForCausalLM
    tokenizer = make(tokenizer_object=raw, pad_token=_PAD, eos_token=_END, clean_up_tokenization_spaces=False)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=window,
        pad_token_id=vocabulary[_PAD],
        bos_token_id=None,
        eos_token_id=vocabulary[_END],
        tie_word_embeddings=False,
    )
    with model_lock(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = causal.from_config(config)
    return Policy(model, tokenizer, name="a tiny new policy")


def warm_up(
    policy: Policy,
    tasks: Sequence[Task],
    answers: Sequence[str],
    *,
    steps: int,
    batch: int,
    rate: float,
    seed: int,
    enough: Callable[[], bool],
) -> int:
    """Teach a policy answers, one for each task, so that it writes in the right form; return how many steps it took.

    They are batches in the order of a seed, `steps` at most; every ten steps `enough` says whether it has seen enough.
    """
    order = random.Random(seed)
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=rate)
    rows = [
        (policy.encode(task), (*policy.tokens.text(answer), min(policy.ends)))
        for task, answer in zip(tasks, answers, strict=True)
    ]
    policy.model.train()
    for step in range(steps):
        if step % 10 == 0 and enough():
            return step
        chosen = [rows[order.randrange(len(rows))] for _ in range(batch)]
        longest = max(len(prompt) + len(answer) for prompt, answer in chosen)
        ids = torch.full((batch, longest), policy.pad)
        labels = torch.full((batch, longest), -100)
        mask = torch.zeros((batch, longest), dtype=torch.int64)
        for row, (prompt, answer) in enumerate(chosen):
            end = len(prompt) + len(answer)
            ids[row, :end] = torch.tensor([*prompt, *answer])
            labels[row, len(prompt) : end] = torch.tensor(answer)
            mask[row, :end] = 1
        given = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        loss = policy.model(**{name: value.to(policy.device) for name, value in given.items()}).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return steps
