"""The policy that learns as an engine: a frozen copy's numbers, in the words it read, and nothing of it is changed."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy

from adjudge.cli.main import main
from adjudge.engines.interface import Prompt, Sampling
from adjudge.engines.loading import engine_of, lent
from adjudge.engines.policy_engine import PolicyEngine, PolicyPrompts
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.protocol import Message
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.scoring.api import load

ASKED: list[list[Message]] = [
    [{"role": "user", "content": f"What is {n} and {n}?"}, {"role": "assistant", "content": "<think>hm" * n}]
    for n in range(1, 6)
]
TEXTS = ["2", "4", "six", "8", "ten"]


def engine_for(policy: Policy) -> PolicyEngine:
    return PolicyEngine(policy, PolicyPrompts(policy.tokens))


def said(engine: Any) -> list[list[float]]:
    """What an engine's policy thinks of the texts, of labels, and what it would write."""
    prompts: list[Prompt] = [*ASKED]
    texts = asyncio.run(engine.reference_logprobs(prompts, TEXTS))
    labels = asyncio.run(engine.label_logprobs(prompts, {"yes": ("Yes", "y"), "no": ("No",)}))
    drawn = asyncio.run(engine.generate(prompts, Sampling(max_tokens=4, temperature=1.0, n=2)))
    return [
        *(list(one.logprobs) for one in texts),
        *([*one.logprobs.values(), one.mass] for one in labels),
        *([float(ord(letter)) for each in one.completions for letter in each.text] for one in drawn),
    ]


def flat(rows: Sequence[Sequence[float]]) -> torch.Tensor:
    return torch.tensor([value for row in rows for value in row])


def test_it_gives_a_frozen_copys_numbers_until_the_policy_has_learnt(tmp_path: Path) -> None:
    policy = chat_policy()
    policy.model.save_pretrained(tmp_path)
    policy.tokenizer.save_pretrained(tmp_path)
    frozen = TransformersEngine(TransformersConfig(model=str(tmp_path), device="cpu"))
    live = engine_for(policy)
    before, name = said(live), live.fingerprint
    torch.testing.assert_close(flat(before), flat(said(frozen)), rtol=0, atol=1e-5)
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=1e-2)
    policy.model(torch.arange(20)[None]).logits.logsumexp(-1).mean().backward()
    optimizer.step()
    assert live.fingerprint != name
    assert (flat(said(live)[:5]) - flat(before[:5])).abs().min() > 1e-4


def test_nothing_of_the_policy_is_changed() -> None:
    policy = chat_policy()
    for layer in policy.model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    policy.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    policy.model.train()
    live, state = engine_for(policy), torch.get_rng_state()
    hooks = [len(part._forward_pre_hooks) for part in policy.model.modules()]
    first = said(live)
    assert first == said(live), "dropout is off"
    assert policy.model.training
    assert policy.model.is_gradient_checkpointing
    assert torch.equal(torch.get_rng_state(), state)
    assert hooks == [len(part._forward_pre_hooks) for part in policy.model.modules()]
    assert all(value.requires_grad and value.grad is None for value in policy.model.parameters())
    policy.model(torch.arange(9)[None]).logits.sum().backward()  # no tensor of inference mode stayed behind


def test_low_rank_factors_are_part_of_it() -> None:
    from adjudge.training.backbones import Lora

    policy = chat_policy()
    plain = said(engine_for(policy))
    policy.adapt(Lora(rank=2), seed=0)
    with torch.no_grad():
        for name, value in policy.model.named_parameters():
            if "lora_B" in name:
                value += 1.0
    adapted = said(engine_for(policy))
    assert not torch.allclose(flat(plain[:5]), flat(adapted[:5]), atol=1e-3)
    with policy.without_adapters():
        torch.testing.assert_close(flat(said(engine_for(policy))), flat(plain))


def test_it_waits_for_an_update_to_end() -> None:
    policy = chat_policy()
    live = engine_for(policy)
    whole = said(live)
    head = policy.model.get_output_embeddings().weight
    kept, found = head.detach().clone(), []
    asking = threading.Thread(target=lambda: found.append(said(live)))
    with policy.lock, torch.no_grad():
        head.zero_()  # half an update
        asking.start()
        asking.join(0.2)
        head.copy_(kept)
    asking.join(60)
    assert found == [whole]


def text_of(prompts: PolicyPrompts, *turns: tuple[str, str]) -> str:
    return str(prompts.rendered([{"role": role, "content": text} for role, text in turns], finished=False))


def test_it_reads_what_the_policy_read() -> None:
    policy = chat_policy()
    turns = (("user", "q"), ("assistant", "<search>w</search>"), ("tool", "r"), ("assistant", "<answer>"))
    head = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    assert text_of(PolicyPrompts(policy.tokens), turns[0], turns[1]) == f"{head}<search>w</search>"
    assert text_of(PolicyPrompts(policy.tokens), *turns) == (
        f"{head}<search>w</search><|im_end|>\n<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n<answer>"
    )
    tags = PolicyPrompts(policy.tokens, around=("<result>", "</result>"))
    assert text_of(tags, *turns) == f"{head}<search>w</search><result>r</result><answer>"
    texts = PolicyPrompts(policy.tokens, texts=True, around=("[", "]"))
    assert text_of(texts, *turns) == "q<search>w</search>[r]<answer>"


def test_thoughts_that_a_template_drops_are_read() -> None:
    dropping = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n"
        "{{ message.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    read = text_of(PolicyPrompts(chat_policy(dropping).tokens), ("user", "q"), ("assistant", "<think>t</think>a"))
    assert read.endswith("<|im_start|>assistant\n<think>t</think>a")


def test_a_text_begins_as_the_tokenizer_begins_texts() -> None:
    from tokenizers.processors import TemplateProcessing

    policy = chat_policy()
    assert PolicyPrompts(policy.tokens, texts=True).read(["a"]) == policy.tokens.read(["a"])
    policy.tokenizer.bos_token = "<|im_start|>"
    begin = policy.tokenizer.bos_token_id
    policy.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", begin)]
    )
    chat: list[Message] = [{"role": "user", "content": "a"}]
    assert PolicyPrompts(policy.tokens, texts=True).read([chat]) == [tuple(policy.tokenizer("a")["input_ids"])]
    (row,) = PolicyPrompts(policy.tokens).read([chat])
    assert isinstance(row, tuple)
    assert row[:2] != (begin, begin), "a template writes its own"


def test_what_it_cannot_do_is_said() -> None:
    policy = chat_policy()
    live = engine_for(policy)
    for call in (live.classify, live.classify_tokens):
        with pytest.raises(ValueError, match="no classifier's head; name a reward model"):
            asyncio.run(call(["a"]))
    with pytest.raises(TypeError, match="in this process alone"):
        pickle.dumps(live)
    with pytest.raises(ValueError, match="before the run has opened its policy"):
        asyncio.run(PolicyEngine().reference_logprobs(["a"], ["b"]))
    sharded: Any = object()
    policy.shards = sharded
    with pytest.raises(ValueError, match=r"set learning\.sharding to none, or ask a frozen copy"):
        asyncio.run(live.reference_logprobs(["a"], ["b"]))


OUTSIDE = "there only for the reward, measured_by, guard.gold and the improver's critic of a run"


@pytest.mark.parametrize(
    "spec",
    [
        {"rlpr": {"engine": "policy"}},
        {"igpo": {"engine": "policy"}},
        {"promed": {"engine": "policy"}},
        {"judge": {"engine": "policy"}},
        {"reward_model": {"engine": "policy"}},
        {"process_reward": {"engine": "policy", "format": "qwen_math_prm"}},
        {"implicit_reward": {"engine": "policy", "reference_engine": "transformers:m", "floor": -9.0}},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_scorers_keep_the_policy_of_their_run_and_have_none_outside(spec: Any) -> None:
    with pytest.raises(ValueError, match=OUTSIDE):
        load(spec)
    live = PolicyEngine()
    with lent(live) as loan:
        assert not loan.taken
        scorer = load({"weighted": [{"scorer": spec, "weight": 1.0}]})
        assert loan.taken
    assert "PolicyEngine" in repr(scorer)
    with pytest.raises(ValueError, match=OUTSIDE):
        engine_of("policy")


def test_adjudge_score_says_where_it_works(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--prompt", "p", "--response", "r", "--reference", "1"]
    assert main(["score", *given, "--scorer", '{"rlpr": {"engine": "policy"}}']) == 2
    assert "name a model elsewhere" in capsys.readouterr().err
