"""Adapters in the embedded engine, against the model as PEFT itself runs it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

from adjudge.engines.interface import Fault
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.reward_models.scalar.scorer import RewardModelScorer

PROMPTS = [f"The response says {number}. " for number in range(9)]


def engine(model: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(model), **options))


def adapter_of(folder: Path, base: Path, *, kind: str = "SEQ_CLS", labels: int = 1, head: bool = True) -> Any:
    """Write an adapter of a classifier over a base, with a head of its own if `head`, and return PEFT's model."""
    import peft

    cls: Any = AutoModelForSequenceClassification if kind == "SEQ_CLS" else AutoModelForTokenClassification
    torch.manual_seed(3)
    model = cls.from_pretrained(base, num_labels=labels)
    settings = peft.LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj"], init_lora_weights=False)
    settings.modules_to_save = ["score"] if head else None
    settings.task_type = kind if head else None
    adapted: Any = peft.get_peft_model(model, settings).eval()
    if head:
        torch.nn.init.normal_(adapted.base_model.model.score.modules_to_save["default"].weight, std=0.5)
    adapted.save_pretrained(str(folder))
    return adapted


@pytest.mark.parametrize(("base", "labels"), [("classifier", 3), ("causal_model", 1), ("causal_model", 3)])
def test_adapters_are_merged(base: str, labels: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Also those of reward models over a language model, whose whole head is in the adapter."""
    model: Path = request.getfixturevalue(base)
    adapted = adapter_of(tmp_path, model, labels=labels)
    found = asyncio.run(engine(model, adapter=str(tmp_path)).classify(PROMPTS))
    tokenizer = AutoTokenizer.from_pretrained(model)
    for prompt, got in zip(PROMPTS, found, strict=True):
        assert not isinstance(got, Fault)
        with torch.inference_mode():
            wanted = adapted(**tokenizer(prompt, return_tensors="pt")).logits[0]
        assert list(got.values) == pytest.approx(wanted.tolist(), abs=1e-4)
    spec = {"transformers": {"model": str(model), "adapter": str(tmp_path)}}
    scorer = RewardModelScorer(engine=spec, weights=[1.0] * labels)
    assert scorer.readout.head.outputs == labels


def test_an_adapter_of_a_token_classifier(causal_model: Path, tmp_path: Path) -> None:
    adapted = adapter_of(tmp_path, causal_model, kind="TOKEN_CLS", labels=2)
    (got,) = asyncio.run(engine(causal_model, adapter=str(tmp_path)).classify_tokens(PROMPTS[:1]))
    assert not isinstance(got, Fault)
    with torch.inference_mode():
        wanted = adapted(**AutoTokenizer.from_pretrained(causal_model)(PROMPTS[0], return_tensors="pt")).logits[0]
    assert torch.tensor(got.values) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(
    ("adapter", "call", "words"),
    [
        ({"head": False}, "classify", "lacks a sequence classifier's head"),
        ({}, "classify_tokens", "lacks a token classifier's head"),
        ({"kind": "TOKEN_CLS"}, "classify", "lacks a sequence classifier's head"),
        (None, "classify", "cannot be used with"),
    ],
)
def test_no_head_is_made_up_beside_an_adapter(
    adapter: dict[str, Any] | None, call: str, words: str, causal_model: Path, tmp_path: Path
) -> None:
    if adapter is not None:
        adapter_of(tmp_path, causal_model, **adapter)
    with pytest.raises(ValueError, match=words):
        asyncio.run(getattr(engine(causal_model, adapter=str(tmp_path)), call)(PROMPTS))
