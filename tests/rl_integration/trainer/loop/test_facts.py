"""What a run tells its scorers: by name, of the batch's own number, and the same after a resumption."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_run

from adjudge.protocol import Message, Sample, Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import _tasks
from adjudge.rl_integration.trainer.rollouts.facts import TRIAL, Facts
from adjudge.training.config_file import config_of

NAMES = tuple(TRIAL)
EVEN = ("0", "2", "4", "6", "8")


class Listening(Digits):
    """Abstains are answers that begin with an even digit."""

    def __init__(self) -> None:
        self.heard: list[Sample] = []
        self.rates: list[float] = []  # of each step's answers

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.heard += samples
        scores = await super().score(samples)
        abstains = [str(sample.response)[:1] in EVEN for sample in samples]
        return [replace(score, evidence={"abstains": one}) for score, one in zip(scores, abstains, strict=True)]

    def by_batch(self) -> dict[str, list[Sample]]:
        """What was heard of training batches, by their numbers."""
        found: dict[str, list[Sample]] = {}
        for sample in self.heard:
            found.setdefault(sample.id.partition(".")[0], []).append(sample)
        return {number: samples for number, samples in found.items() if number.isdigit()}


def facts_of(folder: Path, staleness: int, steps: int, scorer: Listening, **options: Any) -> None:
    config = small_config(
        scorer=scorer, staleness=staleness, steps=4, eval_steps=1, rollouts={"facts": NAMES, **options}, save_steps=1
    )
    run = small_run(folder, config, tasks=TASKS[:8], held_out=TASKS[8:])

    def ends(numbers: Mapping[str, float], rollouts: Sequence[Rollout], scores: Sequence[Score]) -> bool:
        scorer.rates.append(sum(rollout.text[:1] in EVEN for rollout in rollouts) / len(rollouts))
        return numbers["step"] >= steps

    run.train(resume=True, on_step=ends)


@pytest.mark.parametrize("staleness", [pytest.param(0, marks=pytest.mark.full), 1])
def test_facts_are_those_of_the_batch_also_after_a_resumption(tmp_path: Path, staleness: int) -> None:
    whole, parts = Listening(), Listening()
    facts_of(tmp_path / "whole", staleness, 4, whole)
    for until in (1, 3, 4):
        facts_of(tmp_path / "parts", staleness, until, parts)
    batches, again = whole.by_batch(), parts.by_batch()
    assert whole.rates == parts.rates
    for number in range(4):
        samples = batches[str(number)]
        step = max(0, number - staleness)
        told = {name: samples[0].extra[name] for name in ("step", "progress", "abstention_rate", "stale_evals")}
        assert (told["step"], told["progress"]) == (step, step / 4)
        assert all(sample.extra.items() >= told.items() for sample in samples)
        before = number - staleness - 1  # the latest batch with scores
        assert told["abstention_rate"] == (whole.rates[before] if before >= 0 else 0.0)
        first = {sample.id: sample.extra for sample in samples}
        assert all(first[sample.id] == sample.extra for sample in again[str(number)])


def test_the_answers_facts(tmp_path: Path) -> None:
    heard = Listening()
    facts_of(tmp_path, 0, 1, heard)
    samples = heard.by_batch()["0"]
    assert all(0 < sample.extra["confidence"] < 1 for sample in samples)
    assert len({sample.extra["confidence"] for sample in samples}) > 1
    direct = {
        sample.prompt: {other.extra["direct"] for other in samples if other.prompt == sample.prompt}
        for sample in samples
    }
    assert all(len(texts) == 1 for texts in direct.values()), "one answer for each task"
    likeliest = {sample.prompt: sample.response for sample in heard.heard if sample.id.startswith("held-out")}
    assert likeliest, "held-out answers are scored with facts, too"
    assert all("progress" in sample.extra for sample in heard.heard)


def test_nothing_is_told_unasked(tmp_path: Path) -> None:
    heard = Listening()
    small_run(tmp_path, small_config(scorer=heard, steps=1)).train()
    assert {name for sample in heard.heard for name in sample.extra} == {"completion_tokens"}


def test_the_longest_row_of_measurements_without_a_better_one_counts() -> None:
    facts = Facts(("stale_evals",), 10, lambda tasks: [])
    seen = []
    for value in (0.1, 0.2, 0.2, 0.1, 0.3, 0.2):
        facts.measured(value)
        other = Facts(("stale_evals",), 10, lambda tasks: [])
        other.restore(facts.state())
        seen.append(other.told(TASKS[:1], 0)[0].extra["stale_evals"])
    assert seen == [0, 0, 1, 2, 2, 2]
    assert not math.isnan(facts.state()["best"])


def test_a_column_of_the_same_name_is_refused_and_what_is_missing_says_where_it_comes_from(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "Who?", "reference": {"answer": "A"}, "confidence": 0.5}\n', encoding="utf-8")
    run: dict[str, Any] = {"model": {"from_scratch": "tiny"}, "reward": "salu", "output": str(tmp_path / "run")}

    def tasks(extra: Sequence[str], facts: Sequence[str]) -> None:
        data = {"path": str(rows), "extra": list(extra), "held_out": 0.0}
        _tasks(config_of(RunFile, {**run, "data": data, "rollouts": {"facts": list(facts)}}, "run.yaml"))

    tasks([], ["confidence"])
    tasks(["confidence"], [])
    with pytest.raises(ValueError, match=r"data.extra has confidence, which rollouts.facts"):
        tasks(["confidence"], ["confidence"])
    with pytest.raises(ValueError, match=r"a run says it where rollouts.facts has confidence"):
        tasks([], [])
    with pytest.raises(ValueError, match="progres"):
        tasks([], ["progres"])


def test_the_answer_without_tools_is_asked_for_without_a_word_of_them() -> None:
    """A system text that offers a search, or asks whether one is wanted, would be obeyed: no knowledge is measured."""
    asked: list[Task] = []

    def direct(tasks: Sequence[Task]) -> list[str]:
        asked.extend(tasks)
        return ["<answer>Goethe</answer>"] * len(tasks)

    turns: list[Message] = [
        {"role": "system", "content": "Search with <search></search>."},
        {"role": "user", "content": "Who wrote Faust?"},
    ]
    given = [Task(id="chat", prompt=turns), Task(id="text", prompt="Who wrote Faust?")]
    told = Facts(("direct",), 10, direct).told(given, 0)
    assert [task.prompt for task in told] == [task.prompt for task in given]
    assert [task.extra["direct"] for task in told] == ["<answer>Goethe</answer>"] * 2
    chat, text = (task.prompt for task in asked)
    assert text == given[1].prompt
    assert isinstance(chat, list)
    assert chat[1:] == turns[1:]
    assert "search" not in str(chat[0]).lower()
    assert "<answer>" in str(chat[0])
