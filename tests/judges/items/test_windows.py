"""A response that fills the judge's window is worth 0, in whatever shape it reaches the prompt; and a model that writes
noise gives nobody a number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engines.tiny_models import write_model

from adjudge.engines.interface import Fault
from adjudge.judges.items.citations import CitationScorer
from adjudge.judges.items.critic import CriticScorer
from adjudge.judges.items.nuggets import NuggetScorer
from adjudge.judges.items.principles import PrincipleScorer
from adjudge.judges.items.rubric import RubricScorer
from adjudge.protocol import Sample

WINDOW = 6_000
LONG = "All of it is so.\n\n" * 500
CITING = "Ada [1](https://a.org) lives.\n\n## Exact Answer\nAda"


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLongFault(Fault):
    """What an engine says of a prompt that does not fit."""

    too_long: bool = True


CASES: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "rubric": (RubricScorer, ["is so"], LONG),
    "rubric, sampled": (lambda **more: RubricScorer(samples=2, temperature=1.0, **more), ["is so"], LONG),
    "rubric, implicit": (lambda **more: RubricScorer(combine="implicit", **more), ["is so"], LONG),
    "nuggets": (NuggetScorer, ["it is so"], LONG),
    "principles": (PrincipleScorer, ["Is so."], LONG),
    "critic": (CriticScorer, None, LONG),
    "critic, sampled": (lambda **more: CriticScorer(critiques=2, temperature=1.0, **more), None, LONG),
    "citations": (CitationScorer, {"rubric": ["<E0> lives"], "answer": "Ada"}, LONG),
    "citations by pages": (CitationScorer, {"rubric": ["<E0> lives"], "answer": "Ada"}, CITING),
}


@pytest.mark.parametrize(("make", "reference", "response"), CASES.values(), ids=CASES.keys())
def test_a_response_that_fills_the_window_is_worth_nothing(
    scripted: Any, page_reader: Any, make: Callable[..., Any], reference: Any, response: str
) -> None:
    reader = page_reader({"E0": ["Ada"]}, {"lives": ["(never)"]})

    def judge(prompt: Any, index: int) -> Any:
        if len(scripted.text_of(prompt)) > WINDOW:
            return TooLongFault(reason="engine_error", detail="too long")
        return reader(prompt, index) if isinstance(reference, dict) else "hm"

    sample = Sample(
        prompt="p", response=response, reference=reference, extra={"pages": {"https://a.org": "x " * 9_000}}
    )
    (score,) = asyncio.run(make(engine=scripted.ScriptedEngine(judge)).score([sample]))
    assert (score.value, score.reason) == (0.0, "too_complex"), score


@pytest.mark.parametrize("name", ["rubric", "nuggets", "principles", "critic", "citations"])
def test_noise_is_no_verdict(name: str, model: str) -> None:
    make, reference, response = CASES[name]
    sample = Sample(prompt="p", response=response[:40], reference=reference)
    scorer = make(engine=f"transformers:{model}", max_tokens=8, attempts=1)
    (score,) = asyncio.run(scorer.score([sample]))
    assert score.value is None
    assert score.reason in ("judge_truncated", "judge_unparsable"), score.evidence
    assert score.cost.completion_tokens > 0
    assert score.provenance.engine == "transformers"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random model with a window for our prompts."""
    path: Path = write_model(tmp_path_factory.mktemp("models") / "noise", max_position_embeddings=4_096)
    return str(path)
