"""The systems that are made of how likely a language model finds a response."""

from __future__ import annotations

import asyncio
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from examples.training import agreed_example
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of
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
from adjudge.protocol import Sample
from adjudge.reward_models.process import likelihood
from adjudge.reward_models.process.likelihood import Case
from adjudge.reward_models.process.step_scorer import Solution
from adjudge.scoring import registry


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text has as many tokens as the script of the engine says, all of one step."""

    def case(tokens: ForcedEngine, solution: Solution, *, chat: bool) -> Case:
        found = tokens.chances(solution.sample.prompt, solution.text)
        assert not isinstance(found, Fault)
        owners = (0,) * len(found)
        return Case(prompt=solution.sample.prompt, text=solution.text, owners=owners, steps=1, changed=())

    monkeypatch.setattr(likelihood, "tokens_of", lambda engine, name: engine)
    monkeypatch.setattr(likelihood, "case_of", case)


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
    assert [row["scores"]["policy"]["value"] for row in lines(scores)] == pytest.approx(
        list(map(math.log, likely.values()))
    )
    agreed_example.main("pairs.jsonl", "judge.yaml", "openai:a")
    assert main([*label[1:], "--workers", "1", "--overwrite"]) == 0
    (best,) = {a for a, b in made} - {b for a, b in made}
    shown = [text_of(one) for one in both.asked if "An example: asked" in text_of(one)]
    assert shown
    assert all(
        f"asked\nCount\nthese answers stand in the right order, the best first:\n1. {best}\n2. " in one for one in shown
    )
