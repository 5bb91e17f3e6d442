"""Scoring by reward models: tokens a second, how much of the card that is, and padded batches beside it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu import models
from benchmarks.gpu.report import Part
from benchmarks.reward_model_scoring import BATCH, PEAKS, by_engine

from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine

ROUNDS = 2


def timed(way: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the median seconds of some rounds, after one that is not counted."""
    taken = []
    for _ in range(rounds + 1):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        began = time.perf_counter()
        way()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def padded(model: Any, reader: Any, texts: Sequence[str]) -> Callable[[], list[float]]:
    """Batches in the order given, each padded to its longest row."""

    def way() -> list[float]:
        found: list[float] = []
        for start in range(0, len(texts), BATCH):
            some = list(texts[start : start + BATCH])
            inputs = reader(some, padding=True, add_special_tokens=False, return_tensors="pt").to(model.device)
            inputs.pop("token_type_ids", None)
            with torch.inference_mode():
                found += model(**inputs).logits[:, 0].float().tolist()
        return found

    return way


def profile(part: Part, way: Callable[[], Any]) -> None:
    """Say which kernels the time goes to."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    with profiled(activities=[ProfilerActivity.CUDA]) as kernels:
        began = time.perf_counter()
        way()
        torch.cuda.synchronize()
        whole = time.perf_counter() - began
    rows = sorted(kernels.key_averages(), key=lambda row: -row.device_time_total)
    busy = sum(row.device_time_total for row in rows) / 1e6
    part.note(f"the card computed {busy:.3f} of {whole:.3f} s, profiled")
    for row in rows[:12]:
        part.note(f"{row.device_time_total / 1e4 / busy:.1f} % in {row.count} x {row.key[:110]}")


def matrix_product() -> float:
    """Return the operations a second of a large matrix product in bfloat16."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / timed(lambda: left @ right, 10)


WAYS = (("", True, False), (", nothing shared", False, False), (", nothing shared, compiled", False, True))
"""What is measured of the engine: its name, whether prefixes are shared, whether layers are compiled."""


def of(part: Part, name: str, device: str, *, prompts: int) -> None:
    """Measure one size."""
    shape, reader = models.SHAPES[name], models.tokenizer()
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = models.reward_model(shape, reader, device, dtype)
    product = matrix_product() if device == "cuda" else 1.0
    peak = next(
        (flops for card, flops in PEAKS.items() if device == "cuda" and card in torch.cuda.get_device_name()), 0.0
    )
    with tempfile.TemporaryDirectory() as home, models.standing_in(model):
        folder = str(models.reward_folder(Path(home), shape, reader))
        for mix, answers in (("pairs", 2), ("groups of 8", 8)):
            chats = models.chats(prompts // answers, answers)
            texts = [reader.apply_chat_template(one, tokenize=False) for one in chats]
            lengths = list(map(len, reader(texts, add_special_tokens=False)["input_ids"]))
            peer = timed(padded(model, reader, texts), rounds=1 if name == "7B" else ROUNDS)
            part.add(f"{name}, {mix}: padded batches of {BATCH}", sum(lengths) / peer, "tokens/s")
            for way, share, compiled in WAYS:
                config = TransformersConfig(model=folder, device=device, share_prefixes=share, compile=compiled)
                engine = TransformersEngine(config)
                score = by_engine(engine, chats)
                seconds = timed(score)
                part.note(f"{name}, {mix}{way}: rows are read as {engine.paths['classify']}")
                part.add(f"{name}, {mix}{way}", sum(lengths) / seconds, "tokens/s")
                faster = 3.0 if name == "7B" and answers == 8 and share else None
                part.add(f"{name}, {mix}{way}: beside padded", peer / seconds, "x", at_least=faster)
                if not share and peak:
                    used = shape.flops(lengths) / seconds
                    least = 0.6 if name == "7B" and compiled else None
                    part.add(f"{name}, {mix}{way}: share of the dense peak", used / peak, at_least=least)
                    part.add(f"{name}, {mix}{way}: beside a bare matrix product", used / product)
                    if answers == 2:
                        profile(part, score)
            # The next mix's padded batches must not go through what the engines have made of the model.
            model.model.set_attn_implementation("sdpa")
            for layer in model.model.layers:
                layer._compiled_call_impl = None


def main(part: Part, device: str) -> None:
    """Measure the sizes that a machine can take."""
    if device == "cpu":
        of(part, "tiny", device, prompts=16)
        return
    of(part, "7B", device, prompts=96)
    of(part, "0.5B", device, prompts=256)
