"""A small policy learns from verdicts alone, in minutes on a laptop; and the picture of its runs.

One that is made from nothing is first shown answers until it is right now and then, so that there is something to
reward; from there on it is told nothing but its rewards.  `subjects` has what it may learn.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from adjudge.extras import install_hint
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice, ObjectiveChoice
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
from adjudge.rl_integration.trainer.loop.config import LearningConfig, PolicyChoice, RunConfig
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.policy_run import open_policy
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.report import write_report
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.loop.run_logger import STEPS, read_journal
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig

_COLOURS = ("#2f7ed8", "#d9730d", "#2a9d5c", "#b04fc4", "#c0392b", "#0f9aa8")
_LOOKS: Any = {"svg.hashsalt": "adjudge", "svg.fonttype": "none", "font.size": 9}  # the same numbers give the same file


def draw(runs: Mapping[str, Path], before: Mapping[str, float], path: Path, *, title: str) -> None:
    """Draw the runs by name over their steps, beginning with the shares right before them, into an .svg file.

    Raises:
        ValueError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(f"the picture needs matplotlib ({error}); {install_hint('train')}") from error
    with mpl.rc_context(_LOOKS):
        figure = Figure(figsize=(8.0, 3.0), layout="constrained")
        right, paid = figure.subplots(1, 2)
        for colour, (name, folder) in zip(_COLOURS, runs.items(), strict=False):
            lines = read_journal(folder, STEPS)
            shares = [(0, before[name]), *_points(lines, "held_out")]
            right.plot(*zip(*shares, strict=True), color=colour, marker=".", label=name)
            paid.plot(*zip(*_points(lines, "reward", mean_of=5), strict=True), color=colour, label=name)
        right.set(title="held-out tasks that are right", xlabel="step", ylim=(-0.02, 1.02))
        paid.set(title="mean reward of five batches", xlabel="step")
        for axes in (right, paid):
            axes.grid(alpha=0.3)
        right.legend(fontsize=8)
        figure.suptitle(title, fontsize=10)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    path.write_text(drawn.getvalue(), encoding="utf-8")


def _points(lines: Sequence[Mapping[str, Any]], name: str, mean_of: int = 1) -> list[tuple[float, float]]:
    """The numbers of a name by step, each as the mean of so many of the last ones."""
    known = [(line["step"], line[name]) for line in lines if name in line]
    ends = [(step, known[max(0, at - mean_of) : at]) for at, (step, _) in enumerate(known, start=1)]
    return [(step, sum(value for _, value in last) / len(last)) for step, last in ends]


Method: TypeAlias = Literal["grpo", "ppo"]

_OBJECTIVES: Mapping[Method, ObjectiveChoice] = {
    "grpo": ObjectiveChoice(name="grpo"),
    # The tiny policy has nothing that would be worth staying near, so no divergence is taken off the reward.  An answer
    # has a handful of tokens and its reward at the end: lambda 1 takes that, and not the critic's word for it.
    "ppo": ObjectiveChoice(name="ppo", set={"reward_beta": 0.0, "critic.gae.lam": 1.0, "critic.loss.clip": None}),
}
LEARNING = LearningConfig(learning_rate=1e-3, critic_learning_rate=2e-3, decay="linear", warmup_steps=10, minibatches=2)
"""What suits a policy of this size; 2e-3 spoils it within 25 steps."""

_WARM_UP = 600  # steps at most
_EXAM = 100  # tasks that are not shown in the warm-up, and say how far it got


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What is to be learnt, from which reward; the rest is as in `RunConfig`.

    Attributes:
        subject: as it follows "learning", such as "to add".
        model: a folder or name of a model that was trained already, and is shown nothing; "" for a new tiny one.
        characters: that tasks and answers of a new one are written with; each of `words` is a token, too.
        answers: to each task, shown in the warm-up: a right one, or guesses in the right form.
        truth: says whether an answer is right.  Where it is not the reward, the policy never learns what it says.
        enough: share of unseen tasks that the policy has right when the warm-up ends.
        rate: of learning in the warm-up; lower where a few batches go from nothing to nearly all.
        bonus: weight of the answers' entropy, for lessons that have an easy half to settle for.
    """

    subject: str
    model: str = ""
    characters: str = ""
    words: Sequence[str] = ()
    tasks: Sequence[Task]
    answers: Sequence[Sequence[str]] = ()
    held_out: Sequence[Task]
    reward: RewardConfig
    truth: RewardConfig
    rollouts: RolloutsConfig
    steps: int
    eval_steps: int = 25
    enough: float = 0.3
    rate: float = 2e-3
    learning: LearningConfig = LEARNING
    bonus: float = 0.0
    credit: CreditChoice | None = None
    guard: GuardConfig | None = None


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """What came of it; `stopped` and `rolled_back` as in the run's result.

    Attributes:
        before: share of held-out tasks that the policy had right after the warm-up, or as it came.
        after: share that it has right at the end.
        held_out: how many tasks these are shares of.
    """

    before: float
    after: float
    held_out: int
    steps: int
    stopped: str
    rolled_back: int | None
    seconds: float
    cpu_seconds: float
    report: Path


def teach(
    lesson: Lesson,
    folder: Path,
    *,
    method: Method = "grpo",
    seed: int = 0,
    steps: int | None = None,
    tell: Callable[[Mapping[str, float]], None] | None = None,
) -> Learnt:
    """Make or open a policy, and train it in an empty folder, for the lesson's own steps where none are given.

    `tell` takes the numbers of each step.
    """
    began, cpu = time.perf_counter(), time.process_time()
    policy = (
        _opened(lesson, folder, seed) if lesson.model else tiny_policy(lesson.characters, words=lesson.words, seed=seed)
    )
    published = _OBJECTIVES[method]
    config = RunConfig(
        reward=lesson.reward,
        measured_by=lesson.truth,
        objective=replace(published, set={**published.set, "policy.entropy_coef": lesson.bonus}),
        rollouts=_rollouts(lesson, method),
        learning=lesson.learning,
        steps=lesson.steps if steps is None else steps,
        seed=seed,
        eval_steps=lesson.eval_steps,
        save_steps=100,
        credit=lesson.credit,
        guard=lesson.guard,
    )
    with Rewards(lesson.truth) as truth:
        if not lesson.model:
            _shown(lesson, policy, Run(policy, lesson.tasks, config, folder), truth, seed=seed)
        # A new one, since the critic begins as a copy of the policy.
        run = Run(policy, lesson.tasks, config, folder, held_out=lesson.held_out)
        before = _right(run, lesson.held_out, truth)
        result = run.train(on_step=lambda numbers, *_: tell(numbers) if tell is not None else None)
        after = _right(run, lesson.held_out, truth)
    facts: dict[str, Any] = {"policy": policy.name, "method": method, "seed": seed, "steps": config.steps}
    title = f"Learning {lesson.subject} by {method.upper()}"
    return Learnt(
        before=before,
        after=after,
        held_out=len(lesson.held_out),
        steps=result.steps,
        stopped=result.stopped,
        rolled_back=result.rolled_back,
        seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu,
        report=write_report(folder, title=title, facts=facts, stopped=result.stopped),
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch with one thread: for matrices of this size a second one costs more than it brings."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _rollouts(lesson: Lesson, method: Method) -> RolloutsConfig:
    """What a step reads: a critic compares prompts, and a group its answers, so a critic gets more of the former."""
    if method == "grpo":
        return lesson.rollouts
    return replace(
        lesson.rollouts, tasks=2 * lesson.rollouts.tasks, num_generations=max(1, lesson.rollouts.num_generations // 2)
    )


def _opened(lesson: Lesson, folder: Path, seed: int) -> Policy:
    return open_policy(
        PolicyChoice(name=lesson.model),
        texts=(),
        folder=folder,
        seed=seed,
        learning=lesson.learning,
        processes=Processes(),
    )


def _shown(lesson: Lesson, policy: Policy, run: Run, truth: Rewards, *, seed: int) -> None:
    """Show the policy answers until it has enough of the tasks right that it was not shown any to."""
    shown = [
        (task, answer)
        for task, answers in zip(lesson.tasks[_EXAM:], lesson.answers[_EXAM:], strict=True)
        for answer in answers
    ]
    warm_up(
        policy,
        [task for task, _ in shown],
        [answer for _, answer in shown],
        steps=_WARM_UP,
        batch=64,
        rate=lesson.rate,
        seed=seed,
        enough=lambda: _right(run, lesson.tasks[:_EXAM], truth) >= lesson.enough,
    )


def _right(run: Run, tasks: Sequence[Task], truth: Rewards) -> float:
    """The share of tasks that the policy's likeliest answers have right.

    Raises:
        RuntimeError: none of them could be judged.
    """
    shares = run.evaluate(tasks, truth)
    if "held_out" not in shares:
        raise RuntimeError(f"none of {len(tasks)} answers could be judged, so nothing can be said of the policy")
    return shares["held_out"]
