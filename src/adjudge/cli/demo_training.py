"""`adjudge demo train`: a small policy learns from rewards, and its curve on the terminal."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adjudge.cli import exits
from adjudge.cli.console import print_json
from adjudge.extras import install_hint
from adjudge.score_view import visible

if TYPE_CHECKING:
    from adjudge.cli.demo import DemoCommand
    from adjudge.rl_integration.trainer.demo.lesson import Learnt, Lesson

Subject = Literal["sums", "steps", "code", "hacked", "guarded", "smollm2"]

PICTURE = "curves.svg"

_WIDTH = 50  # of a bar

_INTRODUCTIONS: Mapping[Subject, str] = {
    "sums": "is shown some sums, then learns to add from the math scorer's verdicts on its answers.",
    "steps": "is shown some sums, then learns to add line by line from a process model's word on each line.",
    "code": "is shown some programs, then learns to write them from the tests that its programs pass.",
    "hacked": "is shown some sums, then learns from a reward model that likes length, and nobody watches.",
    "guarded": "is shown some sums, then learns from a reward model that likes length, and is watched.",
    "smollm2": "learns from verifiers to put sums into boxes and to keep to constraints.",
}


def train(shown: DemoCommand) -> int:
    """Train, tell how it goes, and return the exit code.

    Raises:
        ValueError: an option cannot be meant, or packages are missing.
    """
    if shown.steps < 0:
        raise ValueError(f"--steps is {shown.steps}; give 1 or more, or 0 for the lesson's own number")
    if shown.seeds < 1:
        raise ValueError(f"--seeds is {shown.seeds}; give 1 or more runs")
    taken = Path(shown.output)
    if shown.output and (taken.is_file() or (taken.is_dir() and any(taken.iterdir()))):
        raise ValueError(f"{shown.output} is there already and no empty folder; give --output another name")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # theirs would run through our lines
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # a head that is replaced is not worth a table
    try:
        from adjudge.rl_integration.trainer.demo.lesson import draw, one_thread
    except ImportError as error:
        raise ValueError(f"training needs more packages ({error}); {install_hint('train')}") from error
    runs: dict[str, Learnt] = {}
    with ExitStack() as stack:
        stack.enter_context(nullcontext() if shown.lesson == "smollm2" else one_thread())
        folder = Path(shown.output) if shown.output else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for seed in range(shown.seed, shown.seed + shown.seeds):
            runs[f"seed {seed}"] = _one(shown, folder / f"seed-{seed}", seed)
        if shown.output:
            draw(
                {name: folder / name.replace(" ", "-") / "run" for name in runs},
                {name: learnt.before for name, learnt in runs.items()},
                folder / PICTURE,
                title=f"adjudge demo train --lesson {shown.lesson} --method {shown.method}",
            )
    if shown.as_json:
        print_json({"runs": [{"name": name, **_plain(learnt, shown)} for name, learnt in runs.items()]})
    elif shown.output:
        print(f"Curves: {visible(str(folder / PICTURE))}")
    return exits.FINE


def _one(shown: DemoCommand, folder: Path, seed: int) -> Learnt:
    """One run, told on the terminal."""
    from adjudge.rl_integration.trainer.demo.lesson import teach

    def tell(numbers: Mapping[str, float]) -> None:
        if "held_out" in numbers and not shown.as_json:
            right = numbers["held_out"]
            print(f"step {numbers['step']:4.0f}  {right:6.1%} right  {'#' * round(_WIDTH * right)}", flush=True)

    if not shown.as_json:
        policy = "SmolLM2 (135 million weights)" if shown.lesson == "smollm2" else "A new policy of 85,000 weights"
        print(f"{policy} (seed {seed}) {_INTRODUCTIONS[shown.lesson]}", flush=True)
    lesson = _lesson(shown.lesson, folder, seed)
    learnt = teach(lesson, folder / "run", method=shown.method, seed=seed, steps=shown.steps or None, tell=tell)
    if not shown.as_json:
        _print(learnt, shown)
    return learnt


def _lesson(subject: Subject, folder: Path, seed: int) -> Lesson:
    """The lesson, with the model that it needs trained first."""
    from adjudge.rl_integration.trainer.demo import subjects

    match subject:
        case "sums":
            return subjects.sums(seed)
        case "code":
            return subjects.code(seed, folder)
        case "smollm2":
            return subjects.instructions(seed)
        case "steps":
            return subjects.steps(seed, process_model(folder, seed=seed))
        case "hacked" | "guarded":
            model = length_model(folder, seed=seed)
            return subjects.hacked(seed, model, guarded=subject == "guarded")


def _print(learnt: Learnt, shown: DemoCommand) -> None:
    if learnt.stopped:
        print(f"Stopped: {learnt.stopped}.")
    if learnt.rolled_back is not None:
        print(f"The policy of step {learnt.rolled_back} was put back.")
    from adjudge.statistics.intervals import wilson

    before, after = (wilson(share * learnt.held_out, learnt.held_out) for share in (learnt.before, learnt.after))
    print(
        f"{learnt.held_out} tasks it had never seen: {before} of them right before, {after} after {learnt.steps} steps "
        f"by {shown.method.upper()}, in {learnt.seconds:.0f} s ({learnt.cpu_seconds:.0f} s of one core)."
    )
    if shown.output:
        print(f"Curves and answers: {visible(str(learnt.report))}")
    print()


def _plain(learnt: Learnt, shown: DemoCommand) -> dict[str, Any]:
    return dataclasses.asdict(learnt) | {"report": str(learnt.report) if shown.output else None}


_SHOWN = 200  # batches of right solutions
_SOLUTIONS = 40_000
_BETA = 0.5
_FLOOR = -20.0
_LOWEST = -10.0  # what is worse counts as this, and so does another form; half of the wrong answers are below -8
_FORM = r"(\d\+\d=\d\n){2}\\boxed\{\d\}"
"""Both lines, and an answer at the end.  Without it the policy stops after a line's first sign within 25 steps: nothing
that it wrote is wrong then, and a process model has no word on what is missing.  Where fewer lines pass, and each is
compared with the group's lines at its place, it learns to skip lines within 40."""

_PREFERENCES = 1_000


def process_model(folder: Path, *, seed: int) -> dict[str, Any]:
    """Train an implicit process model on solutions to sums, and return the scorer that it is.

    It begins as a small language model that was shown a few right solutions, and learns which solutions are right as a
    whole; how much likelier it finds a line than its beginning did is the line's value, and the worst line counts.
    What is above 0 counts as 0: likelier than right is no better than right.
    """
    from adjudge.reward_models.training.process_config import ProcessTraining
    from adjudge.reward_models.training.process_training import train_process
    from adjudge.rl_integration.trainer.demo import last_digits
    from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
    from adjudge.training.config_file import config_of

    tasks, _ = last_digits.last_digits(held_out=last_digits.HELD_OUT, seed=seed)
    begun = tiny_policy(last_digits.CHARACTERS, words=last_digits.WORDS, seed=seed + 1)
    warm_up(
        begun,
        [dataclasses.replace(task, prompt=f"{task.prompt}\n") for task in tasks],  # as the scorer shows it
        ["\n".join(last_digits.solution(task)) for task in tasks],
        steps=_SHOWN,
        batch=64,
        rate=3e-3,
        seed=seed,
        enough=lambda: False,
    )
    start, end = str(folder / "process_model_start"), str(folder / "process_model")
    begun.save(Path(start))
    solutions = last_digits.labelled_solutions(tasks, _SOLUTIONS, seed=seed)
    described = {
        "model": start,
        "objective": "implicit",
        "beta": _BETA,
        "layout": {"marker": "", "separator": "\n", "chat": False},
        "data": {"path": _written(folder / "solutions.jsonl", solutions), "held_out": 0.05},
        "output": end,
        "schedule": {"learning_rate": 1e-3, "batch_size": 32},
        "seed": seed,
    }
    train_process(config_of(ProcessTraining, described))
    model = {
        "engine": f"transformers:{end}",
        "reference_engine": f"transformers:{start}",
        "beta": _BETA,
        "chat": False,
        "split": "line",
        "refine": "clip",
        "eta": 0.0,
        "aggregate": "min",
        "floor": _FLOOR,
    }
    form = {"regex": {"pattern": _FORM}}
    bounded = {"transform": {"scorer": {"implicit_reward": model}, "steps": [{"clip": {"low": _LOWEST, "high": 0.0}}]}}
    return {"gate": {"gate": form, "main": bounded, "otherwise": _LOWEST}}


def length_model(folder: Path, *, seed: int) -> dict[str, Any]:
    """Train a reward model on preferences for long answers, and return the scorer that it is."""
    from adjudge.reward_models.training.scalar_config import ScalarTraining
    from adjudge.reward_models.training.scalar_training import train_scalar
    from adjudge.rl_integration.trainer.demo.arithmetic import preferences, sums
    from adjudge.training.config_file import config_of

    tasks, _ = sums(20, held_out=0.15, seed=seed)
    data = _written(folder / "preferences.jsonl", preferences(tasks, _PREFERENCES, seed=seed))
    described = {"model": "ngrams", "data": data, "output": str(folder / "reward_model"), "seed": seed}
    train_scalar(config_of(ScalarTraining, described))
    return {"preference_model": {"model": described["output"]}}


def _written(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)
