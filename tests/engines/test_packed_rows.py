"""Rows end to end as one row: which bodies can, why others cannot, and one kernel call beside piece by piece."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.engines.tiny_models import tiny_config, tiny_tokenizer, write_model
from transformers import AutoModel, AutoModelForSequenceClassification

from adjudge.engines import transformers_packed
from adjudge.engines.shared_prefixes import Group
from adjudge.engines.transformers_network import Network
from adjudge.engines.transformers_packed import Packed


@pytest.mark.parametrize(
    ("family", "config"),
    [
        pytest.param("qwen2", {}, id="qwen2"),
        pytest.param("llama", {}, id="llama"),
        pytest.param("mistral", {"sliding_window": 24}, id="sliding-window"),
    ],
)
def test_what_can_be_packed_is_packed(models: Path, family: Any, config: dict[str, Any]) -> None:
    folder = write_model(models / f"packs-{family}", task="classify", family=family, **config)
    kind: Any = AutoModelForSequenceClassification
    network = Network(kind.from_pretrained(folder).eval(), "classify")
    assert (network.path, network.unpacked) == ("packed pieces", "")


def test_a_body_that_looks_ahead_is_not_packed(models: Path) -> None:
    """The comparison finds it out: its configuration says nothing."""
    torch.manual_seed(0)
    kind: Any = AutoModel
    body = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    assert transformers_packed.usable(body)[0]
    body.set_attn_implementation("sdpa")
    for layer in body.layers:
        layer.self_attn.is_causal = False
    calls, why = transformers_packed.usable(body)
    assert (calls, body.config._attn_implementation) == (0, "sdpa")
    assert "more than causal" in why


def test_why_rows_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")

    kind: Any = AutoModel
    body = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    monkeypatch.setattr(transformers_packed, "_piecewise", refuse)
    assert transformers_packed.usable(body) == (0, "RuntimeError: FlashAttention only supports Ampere GPUs or newer.")
    assert body.config._attn_implementation == "sdpa"
    monkeypatch.setattr(transformers_packed, "_piecewise", lambda plan, query, *_: query.transpose(1, 2))
    assert re.fullmatch(
        r"packed, a hidden state is off by [0-9.]+ of its size, and at most 0.0001 is allowed",
        transformers_packed.usable(body)[1],
    )
    on_gpu = SimpleNamespace(config=body.config, dtype=torch.float32, device=torch.device("cuda", 1))
    assert transformers_packed.usable(on_gpu) == (
        0,
        "there is no kernel for torch.float32 on cuda; give dtype bfloat16",
    )


def test_a_window_that_attention_is_not_told_of_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some models keep their windows to their masks, and the rows that are compared are too short to show one."""
    kind: Any = AutoModel
    body = kind.from_config(tiny_config("mistral", tiny_tokenizer(), sliding_window=200)).eval()
    assert transformers_packed.usable(body)[0]
    body.set_attn_implementation("sdpa")
    body.config.sliding_window, windows = None, transformers_packed.windows_of
    monkeypatch.setattr(transformers_packed, "windows_of", lambda config: windows(config) or 2)
    assert transformers_packed.usable(body) == (0, "its attention is told of 0 sliding windows, and it has 2")


def kernel_of(version: str) -> Any:
    """PyTorch's variable-length kernel by its definition, with the signature that its wrapper has in a version."""

    def attend(at: Sequence[Any], scale: float | None, window_size: tuple[int, int]) -> torch.Tensor:
        query, key, value, query_ends, key_ends, max_queries, max_keys = at
        found, times = torch.empty_like(query), query.shape[1] // key.shape[1]
        for piece in range(len(query_ends) - 1):
            own, all_ = slice(*query_ends[piece : piece + 2].tolist()), slice(*key_ends[piece : piece + 2].tolist())
            queries, keys = query[own], key[all_].repeat_interleave(times, 1)
            assert len(queries) <= max_queries
            assert len(keys) <= max_keys
            scores = torch.einsum("qhd,khd->hqk", queries, keys) * (scale or query.shape[-1] ** -0.5)
            before, (left, right) = len(keys) - len(queries), window_size
            seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(before + right)
            seen = seen if left < 0 else seen.triu(before - left)
            weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
            found[own] = torch.einsum("hqk,khd->qhd", weights, value[all_].repeat_interleave(times, 1))
        return found

    def of_2_10(q: Any, k: Any, v: Any, qs: Any, ks: Any, mq: int, mk: int, is_causal: bool = False) -> torch.Tensor:
        assert is_causal
        return attend((q, k, v, qs, ks, mq, mk), None, (-1, 0))

    def of_2_11(
        q: Any,
        k: Any,
        v: Any,
        qs: Any,
        ks: Any,
        mq: int,
        mk: int,
        *,
        scale: float | None = None,
        window_size: tuple[int, int] = (-1, -1),
    ) -> torch.Tensor:
        return attend((q, k, v, qs, ks, mq, mk), scale, window_size)

    def of_2_12(
        q: Any,
        k: Any,
        v: Any,
        qs: Any,
        ks: Any,
        mq: int,
        mk: int,
        *,
        scale: float | None = None,
        window_size: tuple[int, int] = (-1, -1),
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        assert enable_gqa == (q.shape[1] != k.shape[1])
        return attend((q, k, v, qs, ks, mq, mk), scale, window_size)

    return {"2.10": of_2_10, "2.11": of_2_11, "2.12": of_2_12}[version]


@pytest.mark.parametrize("key_heads", [2, 4])
@pytest.mark.parametrize(
    ("version", "window"),
    [("2.10", None), *((version, window) for version in ("2.11", "2.12") for window in (None, 1, 10, 22, 1000))],
)
def test_one_call_for_all_pieces_is_the_same_as_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, version: str, window: int | None, key_heads: int
) -> None:
    """No GPU here: the kernel is played by its definition, and what it is called with is what is tested."""
    from torch.nn.attention import varlen

    monkeypatch.setattr(varlen, "varlen_attn", kernel_of(version))
    rows = [tuple(range(100, 130)), (*range(100, 120), 7, 8), (*range(100, 120), 9), (5, 6, 7)]
    packed = Packed.of(rows, [Group(prefix=20, rows=(1, 0, 2)), Group(prefix=0, rows=(3,))])
    assert len(packed.tokens) == 20 + 10 + 2 + 1 + 3
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, heads, len(packed.tokens), 16) for heads in (4, key_heads, key_heads))
    ends = packed.places([[len(row) - 1] for row in rows])
    whole: torch.Tensor | None = None
    for asked in (packed.pieces, packed.asked(ends)):
        plan = transformers_packed._Plan(asked, torch.device("cpu"))
        once = transformers_packed._at_once(plan, query, key, value, 0.25, window)
        pieces = transformers_packed._piecewise(plan, query, key, value, 0.25, window)
        whole = pieces if whole is None else whole
        assert once.shape == pieces.shape == (1, len(packed.tokens), 4, 16)
        torch.testing.assert_close(once, pieces, rtol=0, atol=1e-5)
        torch.testing.assert_close(pieces[:, ends], whole[:, ends], rtol=0, atol=1e-5)
    assert int(pieces.any(-1).any(-1).sum()) == len(rows)  # the others were not computed


@pytest.mark.parametrize(("scale", "window"), [(0.25, 8), (0.5, None)])
def test_a_kernel_that_cannot_be_told_of_a_window_or_scale_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, scale: float, window: int | None
) -> None:
    from torch.nn.attention import varlen

    monkeypatch.setattr(varlen, "varlen_attn", kernel_of("2.10"))
    plan = transformers_packed._Plan(Packed.of([(1, 2, 3)], [Group(prefix=0, rows=(0,))]).pieces, torch.device("cpu"))
    states = torch.randn(1, 2, 3, 16)
    with pytest.raises(NotImplementedError, match=f"window {window}, scale {scale}: this PyTorch's kernel has no such"):
        transformers_packed._at_once(plan, states, states, states, scale, window)


def test_a_model_that_attends_more_often_than_it_did_is_not_read() -> None:
    """Which call is the last was seen when the model was loaded; if that is not so any more, nothing is made up."""
    torch.manual_seed(0)
    kind: Any = AutoModel
    body = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    calls, _ = transformers_packed.usable(body)
    assert calls == len(body.layers)
    packed = Packed.of([(1, 2, 3)], [Group(prefix=0, rows=(0,))])
    with torch.inference_mode():
        ends, every = (
            transformers_packed.read(body, packed, body.device, places=np.array([0, 2]), calls=known)
            for known in (calls, 0)
        )
        torch.testing.assert_close(ends, every, rtol=0, atol=1e-5)
        with pytest.raises(RuntimeError, match=f"called its attention {calls} times, and {calls - 1} when it was"):
            transformers_packed.read(body, packed, body.device, places=np.array([2]), calls=calls - 1)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:`torch.jit")  # PyTorch's own, at the first import of its compiler
def test_compiled_layers_give_the_same_numbers(models: Path) -> None:
    folder = write_model(models / "compiled", task="classify", family="qwen2")
    kind: Any = AutoModelForSequenceClassification
    rows = [[tuple(range(5, 5 + length)) for length in lengths] for lengths in ((30, 7), (64, 3, 50), (12,))]
    plain, compiled = (Network(kind.from_pretrained(folder).eval(), "classify", compiling=way) for way in (False, True))
    with torch.inference_mode():
        for some in rows:
            torch.testing.assert_close(compiled.pooled(some), plain.pooled(some), rtol=0, atol=1e-5)
