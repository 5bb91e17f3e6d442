"""The gradient attack on tiny models: its slopes against differences of the outputs, and what it finds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engines.scripted import ScriptedEngine
from tests.engines.tiny_models import CORPUS, write_model
from tests.evals.attacks.weak_scorers import PlainScorer

from adjudge.evals.attacks.attacker import Limits, attack
from adjudge.evals.attacks.attackers import RandomTokens, suffix
from adjudge.evals.attacks.gradient import GradientTokens, slopes
from adjudge.evals.attacks.target import AttackRow, Goals, Target, standings
from adjudge.protocol import Sample
from adjudge.scoring import registry

WORDS = ("good", "bad", "correct", "verdict", "answer", "maybe", "unsupported", "41")


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("models")
    reward, judge = write_model(folder / "reward", task="classify"), write_model(folder / "judge")
    plain = {"dtype": "float32", "device": "cpu"}
    return {
        "reward": {"reward_model": {"engine": {"transformers": {"model": str(reward), **plain}}}},
        "judge": {
            "yes_no": {
                "engine": {"transformers": {"model": str(judge), **plain}},
                "questions": ["Is it right?"],
                "min_mass": 0,
            }
        },
    }


def outputs(scorer: Any, sample: Sample) -> tuple[Any, Callable[[], float]]:
    """The layer of the words, and what gives the reward, or how much likelier yes is than no by their first tokens."""
    if scorer.name == "reward_model":
        return scorer.resolved().opened("classify")[1].embeddings, lambda: asyncio.run(scorer.score([sample]))[0].value
    asked = ScriptedEngine(labels=lambda prompt: {"Yes": 0.5, "No": 0.5})
    asyncio.run(replace(scorer, engine=asked).score([sample]))
    reader, network = scorer.resolved().opened("generate")
    (row,) = reader.read(asked.asked)

    def likelier() -> float:
        with torch.inference_mode():
            logits = network.read([row], [[len(row) - 1]])[0].double()
        sums = [0.0, 0.0]
        for place, words in enumerate((("Yes", "yes", "YES"), ("No", "no", "NO"))):
            for token in {reader.text(space + word)[0] for word in words for space in ("", " ")}:
                sums[place] += math.exp(float(logits[token]))
        return math.log(sums[0] / sums[1])

    return network.embeddings, likelier


@pytest.mark.parametrize("kind", ["reward", "judge"])
def test_slopes_are_those_of_the_models_outputs(specs: dict[str, Any], kind: str) -> None:
    """A hundredth of each word's embedding is added to what stands at the place, and taken away."""
    scorer: Any = registry.load(specs[kind])
    current, place, step = ["good", "bad", "maybe"], 1, 1e-2
    sample = Sample(prompt="Is 2+2 four?", response=suffix(current).around("No."))
    rises = asyncio.run(slopes(scorer, sample, current, place, WORDS))
    layer, output = outputs(scorer, sample)
    token_of = scorer.resolved().opened("classify" if kind == "reward" else "generate")[0].text
    (token,) = token_of(" bad")
    steepest = max(map(abs, rises))
    assert steepest > 0.01
    for word, rise in zip(WORDS, rises, strict=True):
        found = []
        for by in (step, -step):
            more = by * layer.weight[token_of(f" {word}")[0]].detach()
            handle = layer.register_forward_hook(
                lambda _, given, entered, more=more: entered + more * (given[0] == token).unsqueeze(-1)
            )
            found.append(output())
            handle.remove()
        assert rise == pytest.approx((found[0] - found[1]) / (2 * step), rel=0.02, abs=0.02 * steepest)


def test_it_climbs_higher_than_random_tokens_at_the_same_budget(specs: dict[str, Any]) -> None:
    words = tuple(sorted(set(" ".join(CORPUS).replace(".", "").replace(",", "").split())))

    async def best(attacker: Any) -> list[float]:
        target = Target(specs["reward"])
        rows = [AttackRow(id=str(at), prompt=f"Is 2+{at} four?", base="No.", words=words) for at in range(2)]
        found = await standings(target, rows, Goals(goal="right", right=1e9))
        attempts = await attack(attacker, target, found, Limits(budget=150), lambda what, done, of: None)
        assert all(one.queries == 150 for one in attempts)
        return [one.best.value for one in attempts if one.best]

    climbed, drawn = asyncio.run(best(GradientTokens())), asyncio.run(best(RandomTokens()))
    assert all(one > other for one, other in zip(climbed, drawn, strict=True))


def test_who_has_no_model_here_is_told(specs: dict[str, Any]) -> None:
    sample = Sample(prompt="p", response="No. good")
    with pytest.raises(ValueError, match="has no model in this process"):
        asyncio.run(slopes(PlainScorer(), sample, ["good"], 0, WORDS))
    with pytest.raises(ValueError, match="nothing that holds the suffix"):
        asyncio.run(slopes(registry.load(specs["reward"]), sample, ["bad"], 0, WORDS))
