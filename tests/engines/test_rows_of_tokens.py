"""Rows given as tokens, and labels asked at inner places, against plain calls of the same models."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engines.tiny_models import WINDOW, write_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from adjudge.engines.interface import Fault
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine

TEXTS = ["Is the answer right? Yes, it is.", "The response says 41.", "No", "Is the answer right? No, it is not. " * 4]
LABELS = {"yes": ("Y", "y"), "no": ("N",)}
CLOSE = 1e-5


def engine(model: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(model), device="cpu", **options))


def rows_of(model: Path) -> list[tuple[int, ...]]:
    tokenizer = AutoTokenizer.from_pretrained(model)
    return [tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS]


def test_tokens_are_used_as_they_are(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", task="classify_tokens", labels=2)
    rows = rows_of(model)
    as_text = asyncio.run(engine(model).classify_tokens(TEXTS))
    as_tokens = asyncio.run(engine(model).classify_tokens(rows))
    assert [one.token_ids for one in as_tokens if not isinstance(one, Fault)] == rows
    for one, other in zip(as_text, as_tokens, strict=True):
        assert not isinstance(one, Fault)
        assert not isinstance(other, Fault)
        assert torch.tensor(one.values) == pytest.approx(torch.tensor(other.values), abs=CLOSE)
    (long,) = asyncio.run(engine(model).classify_tokens([(5,) * (WINDOW + 1)]))
    assert isinstance(long, Fault)
    assert long.too_long


@pytest.mark.parametrize("family", ["qwen2", "llama"])
def test_labels_at_inner_places(family: Any, tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", family=family)
    rows = rows_of(model)
    places = [tuple(range(0, len(row), 2)) for row in rows]
    found = asyncio.run(engine(model).inner_label_logprobs(rows, LABELS, places))
    tokenizer = AutoTokenizer.from_pretrained(model)
    texts = {label: [tokenizer(text)["input_ids"][0] for text in given] for label, given in LABELS.items()}
    plain: Any = AutoModelForCausalLM.from_pretrained(model)
    plain.eval()
    for row, asked, answers in zip(rows, places, found, strict=True):
        assert not isinstance(answers, Fault)
        with torch.no_grad():
            logprobs = plain(input_ids=torch.tensor([row])).logits[0].double().log_softmax(-1)
        assert len(answers) == len(asked)
        for place, answer in zip(asked, answers, strict=True):
            for label, tokens in texts.items():
                expected = float(logprobs[place, tokens].logsumexp(-1))
                assert answer.logprobs[label] == pytest.approx(expected, rel=2e-6, abs=CLOSE)
        assert sum(answer.cost.prompt_tokens for answer in answers) == len(row)
    pairs = list(zip(rows, places, strict=True))
    alone = [asyncio.run(engine(model).inner_label_logprobs([row], LABELS, [at]))[0] for row, at in pairs]
    for one, other in zip(alone, found, strict=True):
        assert not isinstance(one, Fault)
        assert not isinstance(other, Fault)
        for single, batched in zip(one, other, strict=True):
            assert dict(single.logprobs) == pytest.approx(dict(batched.logprobs), abs=CLOSE)


def test_places_outside_and_labels_of_several_tokens(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    used = engine(model)
    found = asyncio.run(used.inner_label_logprobs(["No", "No", "No"], LABELS, [(99,), (), (0,)]))
    assert [isinstance(one, Fault) for one in found] == [True, True, False]
    with pytest.raises(ValueError, match="several tokens"):
        asyncio.run(used.inner_label_logprobs(["No"], {"yes": ("unsupported verdict",), "no": ("N",)}, [(0,)]))
    with pytest.raises(ValueError, match="give as many"):
        asyncio.run(used.inner_label_logprobs(["No"], LABELS, []))


@pytest.mark.parametrize("token", [512, -1, 2**70])
@pytest.mark.parametrize("task", ["classify", "classify_tokens", "generate"])
def test_a_token_that_the_model_does_not_know_never_reaches_it(tmp_path: Path, task: Any, token: int) -> None:
    """On a GPU the whole process would be lost."""
    asked, rows = engine(write_model(tmp_path / "model", task=task)), [(1, token)]
    calls = {"classify": asked.classify, "classify_tokens": asked.classify_tokens}
    call: Any = calls.get(task, lambda rows: asked.inner_label_logprobs(rows, LABELS, [[1]]))
    (found,) = asyncio.run(call(rows))
    assert isinstance(found, Fault)
    assert found.detail.startswith("IndexError: the model knows the tokens 0 to 511, and was given ")
