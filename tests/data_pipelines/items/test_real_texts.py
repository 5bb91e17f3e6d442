"""The checks on texts that models and people wrote: how often do they let the wrong thing through?"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge.data_pipelines.items.gate import Gate, Labelled, Separates
from adjudge.data_pipelines.items.likeness import best_place
from adjudge.io.jobs.row_maker import Account
from adjudge.scoring import registry

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
pytestmark = pytest.mark.skipif(not os.environ.get("ADJUDGE_DATA"), reason="ADJUDGE_DATA is not set")

BRIEF = "def check(prompt, response):\n    return len(response.splitlines()) <= 3"
USELESS = "def check(prompt, response):\n    return 'A:' in response"


def feedback() -> list[list[str]]:
    """Three feedbacks of GPT-4 on each of 320 responses."""
    path = DATA / "prometheus" / "mt_bench_eval.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    return [row["gpt4_feedback"] for row in rows]


def solutions(right: bool, count: int) -> Iterator[str]:
    """One small model's solutions of different problems."""
    for line in (DATA / "gsm8k" / "model_solutions.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)["6b_finetuning"]
        if found["is_correct"] is right and count > 0:
            count -= 1
            yield found["solution"]


def test_a_sentence_stands_in_its_own_feedback_and_hardly_ever_in_another() -> None:
    texts = feedback()
    draw = random.Random(0)
    shares = []
    for _ in range(500):
        one, two = draw.sample(range(len(texts)), 2)
        sentence = draw.choice([s for s in re.split(r"(?<=[.!?])\s+", texts[one][0]) if len(s) >= 20])
        own, other = best_place(sentence, texts[one][0]), best_place(sentence, texts[two][0])
        assert own is not None
        assert other is not None
        assert own.share == 1.0
        shares.append(other.share)
    assert sum(share > 0.6 for share in shares) <= 5
    assert max(shares) < 0.9


def test_the_gate_tells_what_goes_with_right_solutions_from_what_all_solutions_have() -> None:
    responses = Labelled(good=tuple(solutions(True, 60)), bad=tuple(solutions(False, 60)))
    gate = Gate(scorer=registry.load("program"), rule=Separates(least=0.2, bound=0.0))
    (brief, kept), (useless, why) = asyncio.run(gate.tried([BRIEF, USELESS], "Solve it.", responses, Account()))
    assert (len(responses.good), len(responses.bad), kept) == (60, 60, "")
    counted = [sum(len(text.splitlines()) <= 3 for text in side) / 60 for side in (responses.good, responses.bad)]
    assert brief.difference.known == pytest.approx(counted[0] - counted[1])
    assert (useless.good.value, useless.bad.value, why) == (1.0, 1.0, "separates_too_little")
