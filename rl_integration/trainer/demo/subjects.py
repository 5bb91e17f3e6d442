"""What the small policy may learn, and from which rewards; `docs/lessons.md` tells of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from adjudge.engines import smollm2
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice
from adjudge.rl_integration.trainer.demo import arithmetic, instructed, last_digits, small_programs
from adjudge.rl_integration.trainer.demo.lesson import LEARNING, Lesson
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.training.backbones import Lora

_MATH = RewardConfig(scorer="math")
_TERMS = 20  # below it
_EACH_LINE = CreditChoice(name="delta", part="main.implicit_reward", set={"rule.scale": True})
"""A line's tokens are credited with the line's own value, beside the group's lines at the same place; half of the
advantage stays the answer's, or an answer without the form, which has no lines, would be as good as the mean."""


def _rollouts(tasks: int, max_new_tokens: int, max_num_seqs: int = 256) -> RolloutsConfig:
    own = SamplingConfig(max_new_tokens=max_new_tokens, max_num_seqs=max_num_seqs)
    return RolloutsConfig(tasks=tasks, num_generations=8, sampling=own)


def sums(seed: int) -> Lesson:
    """Sums of two numbers, from the math scorer's verdicts."""
    tasks, held_out = arithmetic.sums(_TERMS, held_out=0.15, seed=seed)
    return Lesson(
        subject="to add",
        characters=arithmetic.CHARACTERS,
        words=arithmetic.WORDS,
        tasks=tasks,
        answers=[[answer] for answer in arithmetic.answers(tasks)],
        held_out=held_out,
        reward=_MATH,
        truth=_MATH,
        rollouts=_rollouts(64, 6, max_num_seqs=512),
        steps=400,
    )


def steps(seed: int, scorer: Any) -> Lesson:
    """The last digit of a sum, line by line, from a process model's word on each line.

    The warm-up shows all solutions of the right form whose lines are right, or off by one or two.  One line in three is
    right, and which one the policy cannot know from there.
    """
    tasks, held_out = last_digits.last_digits(held_out=last_digits.HELD_OUT, seed=seed)
    return Lesson(
        subject="to add step by step",
        characters=last_digits.CHARACTERS,
        words=last_digits.WORDS,
        tasks=tasks,
        answers=[last_digits.guesses(task) for task in tasks],
        held_out=held_out,
        reward=RewardConfig(scorer=scorer),
        truth=_MATH,
        rollouts=_rollouts(64, 24, max_num_seqs=512),
        steps=100,
        eval_steps=10,
        enough=1.0,  # as in `code`
        bonus=0.02,
        credit=_EACH_LINE,
    )


def code(seed: int, folder: Path) -> Lesson:
    """Programs from examples, from the code scorer's tests.

    The warm-up shows programs with the right number whose form is drawn by lot, until the policy writes such, and is
    right in a quarter or so.  Shown right ones it would go from nothing to three quarters within a few batches.
    """
    tasks, held_out = small_programs.small_programs(held_out=0.2, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    reward = RewardConfig(scorer="code", cache=str(folder / "scores.sqlite"))
    return Lesson(
        subject="to write programs",
        characters=small_programs.CHARACTERS,
        words=small_programs.WORDS,
        tasks=tasks,
        answers=[[guess] for guess in small_programs.guesses(tasks, seed=seed)],
        held_out=held_out,
        reward=reward,
        truth=reward,
        rollouts=_rollouts(32, 8),
        steps=100,
        eval_steps=10,
        enough=1.0,  # out of reach by guessing: all steps of the warm-up are taken
        rate=1e-3,
        bonus=0.01,
    )


def hacked(seed: int, scorer: Any, *, guarded: bool) -> Lesson:
    """Sums again, from a reward model that likes long answers."""
    return replace(
        sums(seed),
        subject="to please a reward model that likes length",
        reward=RewardConfig(scorer=scorer),
        rollouts=_rollouts(16, 24),
        steps=80,
        eval_steps=5,
        enough=0.6,
        learning=replace(LEARNING, learning_rate=3e-4),  # slow enough for the eye: at 1e-3 it is over in ten steps
        guard=GuardConfig(gold=_MATH, every=1, samples=128) if guarded else None,
    )


def instructions(seed: int) -> Lesson:
    """Sums in a box and sentences with constraints, by SmolLM2-135M-Instruct, from verifiers."""
    tasks, held_out = instructed.instructed(held_out=0.15, seed=seed)
    return Lesson(
        subject="to do as it is told",
        model=smollm2.NAME,
        tasks=tasks,
        held_out=held_out,
        reward=RewardConfig(scorer=instructed.REWARD),
        truth=RewardConfig(scorer=instructed.TRUTH),
        rollouts=_rollouts(6, 24),
        steps=40,
        eval_steps=20,
        # 1,024 tokens at once take 2 GB, where all of a batch takes 9.
        learning=LearningConfig(learning_rate=3e-4, lora=Lora(rank=16), micro_tokens=1024, use_prefix_grouper=True),
    )
