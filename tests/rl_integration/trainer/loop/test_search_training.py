"""A search agent learns from StepSearch's reward, out of a file: to search twice, and to say what it found."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from examples.training.tools_lookup import Shown, warm_up

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.training.config_file import config_of


def names(first: str, second: str, count: int) -> list[str]:
    """So many names of two characters."""
    every = [one + other for one in first for other in second]
    random.Random(first).shuffle(every)
    return every[:count]


PEOPLE, TOWNS, RIVERS = (
    names("abcdefghij", "abcdefghij", 60),
    names("uvwxyz", "uvwxyz", 20),
    names("01234", "56789", 20),
)
TAGS = ("<search>", "</search>", "<result>", "</result>", "<answer>", "</answer>", "lives", "lies")
_TRAINED_ON = 48


def written(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


def search_run(folder: Path, *, steps: int, seed: int = 0, shown: int = 600) -> tuple[RunFile, int]:
    """The file of a run whose policy has seen answers: most guess, a few search; and for how many steps it saw them.

    Who lives where and which river a town lies on stands in 80 passages.  A question names a person, and its answer is
    the river; twelve of the 60 people are never trained on, and never shown.
    """
    draw = random.Random(seed)
    home, river = {one: draw.choice(TOWNS) for one in PEOPLE}, {one: draw.choice(RIVERS) for one in TOWNS}
    passages = [(one, f"{one} lives {home[one]}") for one in PEOPLE] + [
        (one, f"{one} lies {river[one]}") for one in TOWNS
    ]
    index = written(folder / "passages.jsonl", [{"title": title, "text": text} for title, text in passages])
    texts = {title: f"[{title}] {text}" for title, text in passages}
    rows = [
        {
            "prompt": f"{one}?",
            "reference": {
                "answer": river[home[one]],
                "documents": [texts[one], texts[home[one]]],
                "keywords": [[one], [home[one]]],
            },
        }
        for one in PEOPLE
    ]

    def show(policy: Policy, task: Task, dice: random.Random) -> Shown:
        person = str(task.prompt)[:-1]
        hops = [person, home[person]][: dice.choice((0, 0, 0, 1, 2))]
        parts = [
            part
            for hop in hops
            for part in ((f"<search>{hop}</search>", True), (f"<result>{texts[hop]}</result>", False))
        ]
        said = river[home[person]] if len(hops) == 2 else dice.choice(RIVERS)
        parts.append((f"<answer>{said}</answer>", True))
        ids = [(token, own) for text, own in parts for token in policy.tokens.text(text)]
        ids.append((min(policy.ends), True))
        return policy.encode(task), [token for token, _ in ids], [own for _, own in ids]

    policy = tiny_policy("abcdefghijuvwxyz0123456789? []", words=TAGS, seed=seed, window=96)
    config = config_of(
        RunFile,
        {
            "model": str(folder / "model"),
            "data": {
                "path": written(folder / "rows.jsonl", rows[:_TRAINED_ON]),
                "held_out_path": written(folder / "held_out.jsonl", rows[_TRAINED_ON:]),
            },
            "reward": "stepsearch",
            "rollouts": {
                "tasks": 16,
                "num_generations": 8,
                "sampling": {"max_new_tokens": 56},
                "tools": {
                    "offered": [{"kind": "search", "options": {"documents": index, "count": 1}}],
                    "style": "tags",
                    "max_turns": 4,
                },
            },
            "learning": {"learning_rate": 1e-3, "warmup_steps": 5, "decay": "linear"},
            "steps": steps,
            "seed": seed,
            "save_steps": steps,
            "output": str(folder / "run"),
        },
        "the run",
    )
    tasks = [
        Task(id=one, prompt=f"{one}?", reference=row["reference"])
        for one, row in zip(PEOPLE[:_TRAINED_ON], rows, strict=False)
    ]
    seen = warm_up(policy, tasks, config, enough=0.6, most=shown, show=show)
    policy.save(folder / "model")
    return config, seen


def test_one_step(tmp_path: Path) -> None:
    config, shown_for = search_run(tmp_path, steps=1, shown=0)
    report = train_policy_run(config)
    assert (shown_for, report.steps, report.last["failed"]) == (0, 1, 0.0)
    assert (report.data["trained_on"], report.data["held_out"]) == (48, 12)


@pytest.mark.full
def test_the_held_out_reward_rises(tmp_path: Path) -> None:
    """From 0.00 to 1.78; with the seeds 1 and 2 to 1.45 and 2.28.  The most is about 2.6."""
    config, shown_for = search_run(tmp_path, steps=50)
    assert shown_for < 300, "what it was shown is no more than a beginning"
    report = train_policy_run(config)
    assert report.held_out["before"] < 0.5
    assert report.held_out["after"] > 1.0
    assert report.last["tool_calls"] > 1.8, "it asks for the town, then for the river"
