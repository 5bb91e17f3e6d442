"""A policy learns from a file to ask its user, who knows what nothing in the prompt tells."""

from __future__ import annotations

import itertools
import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
import torch

from adjudge.protocol import Sample, content_text
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.user import Reply
from adjudge.training.config_file import config_of

WORDS = ("<u>", "<a>", "<ask>", "\\boxed{")
CHAT = (
    "{% for turn in messages %}{{ ('<u>' if turn.role == 'user' else '<a>') + turn.content }}"
    "{% if turn.role == 'assistant' %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
)


class Knowing:
    """Says the digit to whoever asks, and leaves otherwise."""

    def check(self, sample: Sample) -> None:
        """Take every task."""

    async def hear(self, sample: Sample, *, last: bool) -> Reply:
        """Say it."""
        newest = sample.response[-1]
        assert not isinstance(newest, str)
        return Reply(text=sample.reference if "<ask>" in content_text(newest["content"]) else "")


KNOWING = Knowing()


def shown(policy: Policy, key: str, digit: str, draw: random.Random) -> tuple[list[int], list[int]]:
    """A dialogue and its labels: a third asks and repeats what it hears, the others guess."""
    prompt, end = f"<u>{key}?<a>", min(policy.ends)
    parts: list[tuple[list[int], bool]] = [(policy.tokens.text(prompt), False)]
    if draw.random() < 1 / 3:
        parts += [([*policy.tokens.text("<ask>"), end], True), (policy.tokens.text(f"<u>{digit}<a>"), False)]
    else:
        digit = str(draw.randrange(10))
    parts.append(([*policy.tokens.text(f"\\boxed{{{digit}}}"), end], True))
    ids = [token for tokens, _ in parts for token in tokens]
    return ids, [token if own else -100 for tokens, own in parts for token in tokens]


def asking_run(folder: Path, *, taught: int, steps: int) -> dict[str, float]:
    """The mean of held-out rewards before and after."""
    draw = random.Random(0)
    keys = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
    draw.shuffle(keys)
    digits = {key: str(draw.randrange(10)) for key in keys}
    policy = tiny_policy(string.ascii_lowercase + string.digits + "?}", seed=0, words=WORDS)
    policy.tokenizer.chat_template = CHAT
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=3e-3)
    for _ in range(taught):
        rows = [shown(policy, key, digits[key], draw) for key in draw.sample(keys[:550], 64)]
        longest = max(len(ids) for ids, _ in rows)
        ids = torch.tensor([row + [policy.pad] * (longest - len(row)) for row, _ in rows])
        labels = torch.tensor([row + [-100] * (longest - len(row)) for _, row in rows])
        optimizer.zero_grad()
        policy.model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    policy.save(folder / "taught")
    for name, side in (("train", keys[:550]), ("held_out", keys[550:])):
        lines = [json.dumps({"prompt": f"{key}?", "reference": digits[key]}) for key in side]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    user = {"kind": f"{__name__}:KNOWING", "max_turns": 2}
    run: dict[str, Any] = {
        "model": str(folder / "taught"),
        "data": {"path": str(folder / "train.jsonl"), "held_out_path": [str(folder / "held_out.jsonl")], "chat": True},
        "output": str(folder / "run"),
        "reward": "math",
        "rollouts": {"tasks": 24, "num_generations": 8, "user": user, "sampling": {"max_new_tokens": 12}},
        "learning": {"learning_rate": 1e-3, "warmup_steps": 5, "decay": "linear"},
        "steps": steps,
        "watch": None,
    }
    report = train_policy_run(config_of(RunFile, run, "run.yaml"))
    return {**report.held_out, "user_turns": report.last["user_turns"]}


def test_a_step_of_a_run_with_a_user(tmp_path: Path) -> None:
    assert {"before", "after"} <= set(asking_run(tmp_path, taught=5, steps=1))


@pytest.mark.full
def test_a_policy_learns_to_ask_its_user(tmp_path: Path) -> None:
    found = asking_run(tmp_path, taught=200, steps=40)
    assert found["after"] > found["before"] + 0.5, found
    assert found["user_turns"] > 0.9, found
