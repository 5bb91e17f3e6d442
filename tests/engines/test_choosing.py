"""`Sampling.choice`: one of several texts."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from adjudge.engines.interface import Generation, LabelLogprobs, Sampling
from adjudge.engines.label_tokens import label_texts
from adjudge.engines.loading import engine_of


def test_a_choice_is_made_as_often_as_it_is_likely_and_says_how_likely_all_were(causal_model: Path) -> None:
    asked = engine_of({"transformers": {"model": str(causal_model), "dtype": "float32"}})
    texts = ("yes", "no", "not supported")
    labels = label_texts(texts)
    for prompt in ("Is the answer right? ", [{"role": "user", "content": "Is 41 right?"}]):
        (found,) = asyncio.run(asked.label_logprobs([prompt], labels))
        assert isinstance(found, LabelLogprobs)
        (cold,) = asyncio.run(asked.generate([prompt], Sampling(choice=texts)))
        assert isinstance(cold, Generation)
        assert cold.completions[0].text == max(texts, key=found.logprobs.__getitem__)
        assert cold.completions[0].mass == found.mass
        sampling = Sampling(choice=texts, n=400, temperature=1.0)
        (hot,) = asyncio.run(asked.generate([prompt], sampling))
        assert isinstance(hot, Generation)
        again = asyncio.run(asked.generate(["other", prompt], sampling))[1]
        assert isinstance(again, Generation)
        assert [one.text for one in again.completions] == [one.text for one in hot.completions]
        counts = {text: sum(one.text == text for one in hot.completions) for text in texts}
        for text, share in found.shares().items():
            assert abs(counts[text] / 400 - share) < 5 * math.sqrt(share * (1 - share) / 400) + 1e-9


@pytest.mark.parametrize(
    "options", [{"choice": ("a",)}, {"choice": ("a", "a")}, {"choice": ("a", "")}, {"choice": ("a", "b"), "top_p": 0.5}]
)
def test_a_choice_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="sampling option choice"):
        Sampling(**options)
