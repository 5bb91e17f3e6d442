"""How likely a response is, whether it surprises as much as it should, and the systems that are made of it."""

from __future__ import annotations

import asyncio
import json
import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from examples.training import agreed_example
from tests.engines.scripted import ScriptedEngine, fault, field_of, key_of, text_of
from tests.evals.best_of_n.decoding.tree_engine import TreeEngine, letters_of
from tests.reward_models.generative.forced_engine import ForcedEngine

from adjudge.cli.main import main
from adjudge.cli.recipes import recipes
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.engines import loading
from adjudge.engines.interface import Fault, Prompt
from adjudge.protocol import Sample, Score
from adjudge.reward_models.generative.likelihood import Likelihood
from adjudge.scoring import registry

CHANCES = {"plain": (0.8, 0.9), "odd": (0.2, 0.05), "noise": (1e-4, 1e-3, 1e-2)}


def chances(prompt: Prompt, text: str) -> Sequence[float]:
    return CHANCES.get(text, (0.5,))


def score(
    response: Any, engine: Callable[[Prompt, str], Sequence[float] | Fault] = chances, **options: Any
) -> tuple[Score, ForcedEngine]:
    made = ForcedEngine(engine)
    sample = Sample(prompt="Once", response=response)
    return asyncio.run(Likelihood(engine=made, **options).score([sample]))[0], made


@pytest.mark.parametrize("text", CHANCES)
def test_it_is_the_geometric_mean_of_the_tokens_or_a_bell_around_a_surprisal(text: str) -> None:
    product, surprisal = 1.0, 0.0
    for chance in CHANCES[text]:
        product *= chance
        surprisal -= math.log(chance) / len(CHANCES[text])
    assert score(text)[0].value == pytest.approx(product ** (1 / len(CHANCES[text])))
    distance = (surprisal - 2.0) / 0.7
    assert score(text, center=2.0, width=0.7)[0].value == pytest.approx(math.exp(-distance * distance))
    assert score(text, pooling="min")[0].value == pytest.approx(min(CHANCES[text]))


def test_the_response_is_forced_behind_its_prompt_alone() -> None:
    _, engine = score([{"role": "assistant", "content": "a <|end|> b"}])
    ((prompt, text),) = engine.forced
    assert text_of(prompt) == "Once"
    assert text == "a <|end|> b"
    special = ForcedEngine(chances, special_tokens=("<|end|>",))
    asyncio.run(Likelihood(engine=special).score([Sample(prompt="Once", response="a <|end|> b")]))
    assert "<|end|>" not in special.forced[0][1]


def test_what_is_empty_or_refused_for_its_own_sake_scores_0() -> None:
    assert [(one.value, one.reason) for one in (score(" ")[0], score("a" * 9, max_characters=8)[0])] == [
        (0.0, "no_answer"),
        (0.0, "too_complex"),
    ]

    def refuses(prompt: Prompt, text: str) -> Sequence[float] | Fault:
        return (0.5,) if text == "-" else fault("engine_error")

    refused, _ = score("bad", refuses, center=1.0)
    assert (refused.value, refused.reason) == (0.0, "bad_format")
    down, _ = score("bad", lambda prompt, text: fault("engine_error"))
    assert (down.value, down.status) == (None, "failed")


def test_a_width_without_a_center_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no center beside it"):
        Likelihood(engine=ForcedEngine(chances), width=2.0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: Sequence[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def letter_by_letter(prompt: Prompt, text: str) -> Sequence[float]:
    """The letter a has a surprisal of 2, and b next to none."""
    return [math.exp(-2.0) if letter == "a" else 0.99 for letter in letters_of(text)]


def worth(letters: str) -> float:
    """COS(M+O)S's value of a story of letters that holds together perfectly."""
    surprisal = sum(2.0 if letter == "a" else -math.log(0.99) for letter in letters) / len(letters)
    return 0.5 * math.exp(-((surprisal - 2.0) ** 2)) + 0.5


def test_stories_that_surprise_and_hold_together_are_preferred(tmp_path: Path) -> None:
    judge = ScriptedEngine(lambda prompt, index: f"Verdict {key_of(prompt)}: 10")
    options = {"engine": ForcedEngine(letter_by_letter), "judge": judge, "center": 2.0, "width": 1.0}
    value = registry.load({"cos_mos": options})
    story = Sample(prompt="Once", response="a\n\nb\n\na ####")
    assert asyncio.run(value.score([story]))[0].value == pytest.approx(worth("aba"))
    premises, found, pairs = (tmp_path / name for name in ("premises.jsonl", "steps.jsonl", "pairs.jsonl"))
    write(premises, [{"prompt": f"premise {at}"} for at in range(3)])
    config = StepsConfig(input=str(premises), output=str(found), method="mcts", engine="x:y", pass_at=0.7)
    label_steps(config, engine=TreeEngine(3, "ab"), scorer=value, critic=value)
    build_pairs(PairsConfig(input=str(found), output=str(pairs), rule="{step_apo: {steps: steps}}"))
    stories = [(row["prompt"], letters_of(row["response"])) for row in lines(found)]
    made = lines(pairs)
    assert made
    for pair in made:
        shares = []
        for text in (pair["chosen"], pair["rejected"]):
            begun = letters_of(text)
            below = [worth(one) >= 0.7 for prompt, one in stories if prompt == pair["prompt"] and one.startswith(begun)]
            shares.append(sum(below) / len(below))
        assert pair["margin"] == pytest.approx(shares[0] - shares[1])
        assert shares[0] > shares[1]


def test_what_judge_and_policy_rank_alike_trains_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    likely = {"is one": 0.9, "is two": 0.3, "is three": 0.5, "is four": 0.1}  # the judge: in this order

    def ranked(prompt: Prompt, index: int) -> str:
        shown = [field_of(prompt, f"response_{place}").strip() for place in range(1, 5)]
        return f"Ranking {key_of(prompt)}: {' > '.join(str(shown.index(text) + 1) for text in likely)}"

    both = ForcedEngine(lambda prompt, text: (likely[text],), answers=ranked)
    monkeypatch.setattr(loading._shelf, "engine", lambda kind, config: both)
    answers, scores, pairs = (tmp_path / name for name in ("answers.jsonl", "ranked.jsonl", "pairs.jsonl"))
    write(answers, [{"prompt": "Count", "response": text, "group": "g", "id": text} for text in likely])
    steps = recipes()["cycle_align"]["steps"]
    _, label, pair, *_ = (shlex.split(step.replace("MODEL", "vllm:b"), comments=True) for step in steps)
    monkeypatch.chdir(tmp_path)
    Path("judge.yaml").write_text("{listwise_judge: {engine: 'openai:a'}}")
    assert main([*label[1:], "--workers", "1"]) == 0
    assert main(pair[1:]) == 0
    made = {(pair["chosen"], pair["rejected"]) for pair in lines(pairs)}
    agreed = ("is one", "is two", "is four"), ("is one", "is three", "is four")
    assert made in [{(a, b), (a, c), (b, c)} for a, b, c in agreed]
    assert [row["scores"]["policy"]["value"] for row in lines(scores)] == pytest.approx(list(likely.values()))
    agreed_example.main("pairs.jsonl", "judge.yaml", "openai:a")
    assert main([*label[1:], "--workers", "1", "--overwrite"]) == 0
    (best,) = {a for a, b in made} - {b for a, b in made}
    shown = [text_of(one) for one in both.asked if "An example: asked" in text_of(one)]
    assert shown
    assert all(
        f"asked\nCount\nthese answers stand in the right order, the best first:\n1. {best}\n2. " in one for one in shown
    )
