"""`adjudge demo train`: a policy made from nothing learns from rewards, and its curve on the terminal.

Not covered: training anything else (`adjudge train policy`).
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adjudge.cli import exits
from adjudge.cli.console import print_json, visible
from adjudge.extras import install_hint

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.demo.lesson import Learnt, Lesson

Subject = Literal["sums", "steps", "code", "hacked", "guarded"]

PICTURE = "curves.svg"

_WIDTH = 50  # of a bar

_INTRODUCTIONS: Mapping[Subject, str] = {
    "sums": "is shown some sums, then learns to add from the math scorer's verdicts on its answers.",
    "steps": "is shown some sums, then learns to add line by line from a process model's word on each line.",
    "code": "is shown some programs, then learns to write them from the tests that its programs pass.",
    "hacked": "is shown some sums, then learns from a reward model that likes length, and nobody watches.",
    "guarded": "is shown some sums, then learns from a reward model that likes length, and is watched.",
}


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """What is shown.

    Attributes:
        subject: what is learnt.
        method: how.
        steps: of reinforcement learning; 0 for the lesson's own number.
        seed: of everything random.
        seeds: how many runs, with this seed and those after it.
        output: a folder for the runs; "" for one that is deleted.
        as_json: print the result alone, as JSON.
    """

    subject: Subject
    method: Literal["grpo", "ppo"]
    steps: int
    seed: int
    seeds: int
    output: str
    as_json: bool

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        if self.steps < 0:
            raise ValueError(f"--steps is {self.steps}; give 1 or more, or 0 for the lesson's own number")
        if self.seeds < 1:
            raise ValueError(f"--seeds is {self.seeds}; give 1 or more runs")
        taken = Path(self.output)
        if self.output and (taken.is_file() or (taken.is_dir() and any(taken.iterdir()))):
            raise ValueError(f"{self.output} is there already and no empty folder; give --output another name")


def train(shown: Demonstration) -> int:
    """Train, tell how it goes, and return the exit code.

    Raises:
        ValueError: packages are missing.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # theirs would run through our lines
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # a head that is replaced is not worth a table
    try:
        from adjudge.rl_integration.trainer.demo.lesson import draw, one_thread
    except ImportError as error:
        raise ValueError(f"training needs more packages ({error}); {install_hint('train')}") from error
    found: dict[str, Learnt] = {}
    with ExitStack() as stack:
        stack.enter_context(one_thread())
        folder = Path(shown.output) if shown.output else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for seed in range(shown.seed, shown.seed + shown.seeds):
            found[f"seed {seed}"] = _one(shown, folder / f"seed-{seed}", seed)
        if shown.output:
            draw(
                {name: folder / name.replace(" ", "-") / "run" for name in found},
                {name: learnt.before for name, learnt in found.items()},
                folder / PICTURE,
                title=f"adjudge demo train --lesson {shown.subject} --method {shown.method}",
            )
    if shown.as_json:
        print_json({"runs": [{"name": name, **_plain(learnt, shown)} for name, learnt in found.items()]})
    elif shown.output:
        print(f"Curves: {visible(str(folder / PICTURE))}")
    return exits.FINE


def _one(shown: Demonstration, folder: Path, seed: int) -> Learnt:
    """One run, told on the terminal."""
    from adjudge.rl_integration.trainer.demo.lesson import teach

    def tell(numbers: Mapping[str, float]) -> None:
        if "held_out" in numbers and not shown.as_json:
            right = numbers["held_out"]
            print(f"step {numbers['step']:4.0f}  {right:6.1%} right  {'#' * round(_WIDTH * right)}", flush=True)

    if not shown.as_json:
        print(f"A new policy of 85,000 weights (seed {seed}) {_INTRODUCTIONS[shown.subject]}", flush=True)
    lesson = _lesson(shown.subject, folder, seed)
    learnt = teach(lesson, folder / "run", method=shown.method, seed=seed, steps=shown.steps or None, tell=tell)
    if not shown.as_json:
        _print(learnt, shown)
    return learnt


def _lesson(subject: Subject, folder: Path, seed: int) -> Lesson:
    """The lesson, with the model that it needs trained first."""
    from adjudge.cli import demo_rewards
    from adjudge.rl_integration.trainer.demo import subjects

    match subject:
        case "sums":
            return subjects.sums(seed)
        case "code":
            return subjects.code(seed, folder)
        case "steps":
            return subjects.steps(seed, demo_rewards.process_model(folder, seed=seed))
        case "hacked" | "guarded":
            model = demo_rewards.length_model(folder, seed=seed)
            return subjects.hacked(seed, model, guarded=subject == "guarded")


def _print(learnt: Learnt, shown: Demonstration) -> None:
    if learnt.stopped:
        print(f"Stopped: {learnt.stopped}.")
    if learnt.rolled_back is not None:
        print(f"The policy of step {learnt.rolled_back} was put back.")
    print(
        f"Tasks it had never seen: {learnt.before:.0%} right before, {learnt.after:.0%} after {learnt.steps} steps by "
        f"{shown.method.upper()}, in {learnt.seconds:.0f} s ({learnt.cpu_seconds:.0f} s of one core)."
    )
    if shown.output:
        print(f"Curves and answers: {visible(str(learnt.report))}")
    print()


def _plain(learnt: Learnt, shown: Demonstration) -> dict[str, Any]:
    return dataclasses.asdict(learnt) | {"report": str(learnt.report) if shown.output else None}
