"""`adjudge train policy` for runs by rewards: progress on the terminal, Ctrl-C between steps, and what came of it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from adjudge.cli import exits
from adjudge.cli.console import Shown, print_json, print_table
from adjudge.score_view import plain, visible

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.loop.config import RunFile
    from adjudge.rl_integration.trainer.loop.report import RunReport

_GO_ON: Final = "the same command with --resume goes on"


def train_by_rewards(path: str, settings: Sequence[str], *, resume: bool, as_json: bool) -> int:
    """Train, print the report, and return the exit code.

    Raises:
        ValueError: the call is wrong, or too many answers could not be judged.
        KeyboardInterrupt: it was stopped; the message says how it goes on.
    """
    from adjudge.rl_integration.trainer.loop.config import RunFile
    from adjudge.training.config_file import load_config

    config = load_config(RunFile, path, settings)  # before what takes seconds to import

    from adjudge.rl_integration.adapters.failures import TooManyFailures
    from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
    from adjudge.rl_integration.trainer.loop.processes import OtherProcessFailed
    from adjudge.training.backbones import libraries

    libraries().utils.logging.disable_progress_bar()  # theirs would run through ours
    leads = os.environ.get("RANK", "0") == "0"  # one of several processes of `accelerate launch` tells
    try:
        with _Stop(told=leads) as stop, _Progress(config, shown=leads) as progress:

            def tell(numbers: Mapping[str, float]) -> bool:
                progress.update(numbers)
                stop.armed = True
                return stop.asked

            report = train_policy_run(config, resume=resume, note=progress.note, tell=tell)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; {_GO_ON} from the newest checkpoint, if there is one") from None
    except OtherProcessFailed as error:  # which says itself what happened
        raise ValueError(str(error)) from error
    except TooManyFailures as error:
        raise ValueError(f"{error}; when that is repaired, {_GO_ON} with the same answers") from error
    if report.goes_on:
        raise KeyboardInterrupt(f"stopped behind step {report.steps}; {_GO_ON} from there")
    if leads and as_json:
        print_json(report.to_dict())
    elif leads:
        print_report(report)
    return exits.FOUND if report.stopped and leads else exits.FINE


class _Stop:
    """Ctrl-C while a run trains: the first one stops it behind the step, with a checkpoint; the second one at once.

    Before the first step has ended there is nothing to keep, and it stops at once.
    """

    def __init__(self, *, told: bool) -> None:
        self.asked = self.armed = False
        self._told = told
        self._before: Any = None

    def __enter__(self) -> _Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked or not self.armed:
            raise KeyboardInterrupt
        self.asked = True
        if self._told:
            print("adjudge: stopping behind this step; Ctrl-C again stops at once", file=sys.stderr)


class _Progress(Shown):
    """The numbers of a run on standard error: a bar on a terminal, else lines."""

    def __init__(self, config: RunFile, *, shown: bool) -> None:
        self._steps = config.steps
        super().__init__("numbers")
        self._shown &= shown
        self._bar.disable |= not shown
        self._task = self._bar.add_task("prepare", total=None, numbers="")
        self._began = 0.0
        self._first = 0
        self._held_out = ""
        self._alarms = 0.0

    def update(self, numbers: Mapping[str, float]) -> None:
        """Show the numbers of a step."""
        step = int(numbers["step"])
        if not self._first:
            self._first, self._began = step, time.monotonic() - numbers.get("seconds", 0.0)
        if "held_out" in numbers:
            self._held_out = f"  held-out {numbers['held_out']:.3f}"
        rate = (step - self._first + 1) / max(1e-9, time.monotonic() - self._began)
        shown = f"step {step}/{self._steps}  {rate:.2g} steps/s"
        if "reward" in numbers:
            shown += f"  reward {numbers['reward']:.3f}"
        shown += self._held_out
        shown += "".join(f"  {name} {numbers[name]:.1%}" for name in ("failed", "abstained") if numbers.get(name))
        self._alarms = numbers.get("alarms", self._alarms)
        shown += f"  alarms {self._alarms:.0f}" if self._alarms else ""
        self._bar.update(self._task, description="train", completed=step, total=self._steps, numbers=shown)
        self.line(shown, now=step == self._steps or "held_out" in numbers)


def print_report(report: RunReport) -> None:
    """Print what a run reached."""
    rows = [(f"held-out, {when} training", value) for when, value in report.held_out.items()]
    rows += [
        (name.replace("_", " "), report.last[name])
        for name in ("reward", "failed", "abstained", "clipped_ratio")
        if name in report.last
    ]
    if rows:
        print_table(("at the end", "mean"), rows)
        print()
    for alarm in report.alarms:
        print(f"alarm: {visible(alarm)}")
    if report.idle:
        print(f"{visible(report.idle)}.")
    if report.stopped:
        print(f"It ended early: {visible(report.stopped)}.")
    if report.rolled_back is not None:
        print(f"The policy is that of step {report.rolled_back}.")
    resumed = f", resumed at {report.resumed}" if report.resumed else ""
    prompts = plain(report.data.get("trained_on"))
    print(
        f"{report.steps} steps on {prompts} prompts in {report.seconds:.1f} s{resumed}; the policy is in "
        f"{visible(str(report.policy))}, curves and answers in {visible(report.output)}/report.html"
    )
