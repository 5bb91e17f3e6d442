"""A policy made from nothing learns to call a tool, because only those who look things up are right.

Each prompt is a key of two letters, and the answer a number that stands in a file and follows from nothing.  The policy
is first shown answers of two kinds: most of them guess, some search for the key and copy what they find.  Then GRPO
rewards the right ones.  Held-out keys are never learnt from, so knowing numbers by heart is worth nothing there.

    python examples/training/tools_lookup.py

It takes about half a minute of one core, and prints a line every ten steps: the share of answers that are right, and
the share that call the tool.
"""

from __future__ import annotations

import itertools
import json
import random
import string
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.opening import open_writer
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.rl_integration.trainer.rollouts.tool import ToolChoice, ToolUse
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator

CHARACTERS = string.ascii_lowercase + string.digits + "?[]() :{}."
TAGS = ("<search>", "</search>", "<result>", "</result>", "\\boxed{")
SHARE = 1 / 3
"""Of the answers it is shown, those that search."""

_TRIED = 50  # tasks that say whether it has been shown enough

Shown = tuple[tuple[int, ...], list[int], list[bool]]
"""A prompt, an answer to it, and which of the answer's tokens the policy is to write."""


def lookups(folder: Path, *, seed: int) -> tuple[list[Task], list[Task], ToolUse]:
    """Return tasks to learn from, tasks to measure on, and the index in which the numbers are."""
    draw = random.Random(seed)
    pairs = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
    draw.shuffle(pairs)
    tasks = [Task(id=key, prompt=f"{key}?", reference=f"{draw.randrange(100):02d}") for key in pairs]
    documents = folder / "numbers.jsonl"
    documents.write_text("".join(json.dumps({"title": task.id, "text": task.reference}) + "\n" for task in tasks))
    search = ToolChoice(kind="search", options={"documents": str(documents), "count": 1})
    return tasks[:550], tasks[550:], ToolUse(offered=(search,), style="tags", max_turns=2)


def shown(policy: Policy, task: Task, draw: random.Random) -> Shown:
    """Return an answer to learn from: one that searches, or one that guesses."""
    searches = draw.random() < SHARE
    number = task.reference if searches else f"{draw.randrange(100):02d}"
    parts = [(f"\\boxed{{{number}}}", True)]
    if searches:
        call, result = f"<search>{task.id}</search>", f"<result>[{task.id}] {number}</result>"
        parts = [(call, True), (result, False), *parts]
    ids = [(token, own) for text, own in parts for token in policy.tokens.text(text)]
    ids.append((min(policy.ends), True))
    return policy.encode(task), [token for token, _ in ids], [own for _, own in ids]


def warm_up(
    policy: Policy,
    tasks: Sequence[Task],
    config: RunConfig,
    *,
    enough: float,
    most: int,
    show: Callable[[Policy, Task, random.Random], Shown] = shown,
) -> int:
    """Learn from shown answers until its own have this mean score; return the steps it took."""
    draw = random.Random(config.seed)
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=3e-3)
    writer = open_writer(policy, TransformersGenerator(policy), config.rollouts.tools)
    with Rewards(config.reward) as rewards:
        for step in range(most):
            if step % 10 == 0:
                scoring = Scoring(rewards, tasks[:_TRIED], 1)
                writer.roll_out(
                    tasks[:_TRIED], 1, config.rollouts.sampling, seed=0, version=0, name="shown", on_rollout=scoring.add
                )
                if sum(score.value or 0.0 for score in scoring.wait()[0]) >= _TRIED * enough:
                    return step
            batch = [show(policy, draw.choice(tasks), draw) for _ in range(64)]
            longest = max(len(prompt) + len(answer) for prompt, answer, _ in batch)
            ids = torch.full((len(batch), longest), policy.pad)
            labels = torch.full((len(batch), longest), -100)
            for row, (prompt, answer, own) in enumerate(batch):
                end = len(prompt) + len(answer)
                ids[row, :end] = torch.tensor([*prompt, *answer])
                labels[row, len(prompt) : end] = torch.where(torch.tensor(own), torch.tensor(answer), -100)
            # Padding stands behind, so nothing looks at it.
            loss = policy.model(input_ids=ids.to(policy.device), labels=labels.to(policy.device)).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    return most


def learn_lookups(
    folder: Path, *, seed: int = 0, steps: int = 60, tell: Callable[[str], None] = print
) -> tuple[float, float]:
    """Train a new policy; return the share of held-out keys it has right before and after.

    Args:
        folder: for the index and the run.
        seed: of everything random.
        steps: of reinforcement learning.
        tell: told a line now and then.
    """
    tasks, held_out, tools = lookups(folder, seed=seed)
    policy = tiny_policy(CHARACTERS, words=TAGS, seed=seed)
    config = RunConfig(
        reward=RewardConfig(scorer="math"),
        rollouts=RolloutsConfig(tasks=24, num_generations=8, tools=tools, sampling=SamplingConfig(max_new_tokens=24)),
        learning=LearningConfig(learning_rate=1e-3, warmup_steps=5, decay="linear"),
        steps=steps,
        seed=seed,
        save_steps=steps,
    )
    run = Run(policy, tasks, config, folder / "run", held_out=held_out)
    shown_for = warm_up(policy, tasks, config, enough=0.1, most=600)
    with Rewards(config.reward) as rewards:
        before = run.evaluate(held_out, rewards)["held_out"]
    tell(f"after {shown_for} steps of being shown answers, {before:.0%} of the held-out keys are right")

    def on_step(numbers: Mapping[str, float], rollouts: Sequence[Rollout], scores: Any) -> None:
        if numbers["step"] % 10 == 0:
            calling = sum(not rollout.own.all() for rollout in rollouts) / len(rollouts)
            tell(f"step {numbers['step']:>3}   {numbers['reward']:>5.1%} right   {calling:>5.1%} call the tool")

    after = run.train(on_step=on_step).history[-1]["held_out"]
    tell(f"{after:.0%} of the held-out keys are right")
    return before, after


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        learn_lookups(Path(scratch))
