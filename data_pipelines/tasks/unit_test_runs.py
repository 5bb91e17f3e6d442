"""What programs give for inputs, found by the `run` scorer.

A solution gets all calls in one run.  What it printed before its time was up is known, so only the call that got
nowhere is charged, and another run goes on behind it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from adjudge.data_pipelines.tasks.config import UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_test_inputs import written_inputs
from adjudge.data_pipelines.tasks.unit_test_problems import Problem
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE, stop_if_gone
from adjudge.io.jobs.row_maker import Account
from adjudge.prompts.template import load_template
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import score_checked

_MAX_RUNS: Final = 8  # of one solution; what has no result then has none
_MAX_RESULT: Final = 5_000  # characters of one result
_STOPPED = (*GONE, "closed", "worker_died")


@dataclass(frozen=True, slots=True)
class Output:
    """What a program gave for one input.

    Attributes:
        value: a literal, or what was printed; None if there is nothing to compare.
        fault: why there is nothing: the class of an error, "timeout", "no_data", ...
    """

    value: str | None = None
    fault: str = ""


@dataclass(slots=True)
class _Caller:
    """A solution and how far its calls are."""

    source: str
    mark: str
    outputs: list[Output] = field(default_factory=list)
    runs: int = 0


class ProgramRunner:
    """Runs programs, on an account."""

    def __init__(self, scorer: Scorer, account: Account, *, seconds: float, memory_mb: int) -> None:
        self.scorer = scorer
        self.account = account
        self.limits = {"seconds": seconds, "memory_mb": memory_mb}

    async def calls(self, programs: Sequence[str], entry_point: str, calls: Sequence[str]) -> list[list[Output]]:
        """Return what each program returns for each call."""
        callers = [_Caller(program, _mark(program)) for program in programs]
        while waiting := [one for one in callers if len(one.outputs) < len(calls) and one.runs < _MAX_RUNS]:
            order = {"entry": entry_point, "calls": list(calls), "most": _MAX_RESULT}
            runs = []
            for one in waiting:
                mine = {"source": one.source, "start": len(one.outputs), "mark": one.mark}
                runs.append((_guest(), json.dumps(order | mine)))
            for one, score in zip(waiting, await self._run(runs, "python"), strict=True):
                one.runs += 1
                _take(one, score, len(calls))
        return [one.outputs + [Output(fault="timeout")] * (len(calls) - len(one.outputs)) for one in callers]

    async def prints(self, programs: Sequence[str], inputs: Sequence[str], language: str) -> list[list[Output]]:
        """Return what each program prints for each input; a fault where it does not exit with status 0."""
        runs = [(program, given) for program in programs for given in inputs]
        outputs = [_printed(score) for score in await self._run(runs, language)]
        return [outputs[at * len(inputs) : (at + 1) * len(inputs)] for at in range(len(programs))]

    async def response(self, text: str) -> str | None:
        """Return what the program in a model's response prints, or None if it does not end well."""
        (score,) = await self._run([(text, "")], "python")
        return str(score.evidence["run"]["stdout"]) if score.value == 1.0 else None

    async def _run(self, runs: Sequence[tuple[str, str]], language: str) -> list[Score]:
        samples = [
            Sample(prompt="", response=program, reference={"stdin": given, "language": language, **self.limits})
            for program, given in runs
        ]
        scores = await score_checked(self.scorer, samples)
        for score in scores:
            self.account.cost += score.cost
            stop_if_sandbox_gone(score)
        return scores


def stop_if_sandbox_gone(score: Score) -> None:
    """Raise `JobError` if a score says that nothing can be run."""
    if score.status == "failed" and score.reason in _STOPPED:
        raise JobError(
            f"programs cannot be run ({score.reason}: {score.evidence.get('error', '')}); "
            "repair that, and the same call goes on"
        )


def _take(one: _Caller, score: Score, count: int) -> None:
    """Add what a run gave to what is known of a solution."""
    run = score.evidence.get("run") or {}
    lines = [line[len(one.mark) :] for line in str(run.get("stdout", "")).splitlines() if line.startswith(one.mark)]
    events = [event for event in map(_event, lines) if event is not None]
    before = len(one.outputs)
    for event in events:
        if event.get("call") == len(one.outputs) and len(one.outputs) < count:
            one.outputs.append(_output(event))
    if len(one.outputs) == count:
        return
    ending = str(run.get("ending", "")) or score.reason
    if not lines:  # it does not even load
        fault = "not_loaded" if ending == "exited" or not run else ending
        one.outputs.extend([Output(fault=fault)] * (count - len(one.outputs)))
    elif len(one.outputs) == before or ending != "timeout":
        one.outputs.append(Output(fault=ending or "no_result"))


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _output(event: Mapping[str, Any]) -> Output:
    if isinstance(event.get("value"), str):
        return Output(value=event["value"])
    return Output(fault=str(event.get("error") or "no_data"))


def _printed(score: Score) -> Output:
    run = score.evidence.get("run") or {}
    if score.value != 1.0:
        return Output(fault=str(run.get("ending") or score.reason or "no_result"))
    text = str(run["stdout"])
    return Output(value=text) if len(text) <= _MAX_RESULT else Output(fault="no_data")


def _mark(program: str) -> str:
    """Return what begins our lines: a digest, which a program would have to hold of itself."""
    return f"#{hashlib.sha256(program.encode('utf-8', 'surrogatepass')).hexdigest()[:16]} "


@cache
def _guest() -> str:
    return (Path(__file__).parent / "calls_guest.py").read_text(encoding="utf-8")


class InputWriter:
    """Asks a model for programs that print inputs."""

    def __init__(self, config: UnitTestsConfig, engine: Engine) -> None:
        self.engine = engine
        self.count = config.inputs
        self.sampling = Sampling(max_tokens=config.max_tokens)
        self.template = load_template("data_pipelines/tasks/generator")

    @property
    def fingerprint(self) -> str:
        """The model and the prompt."""
        return f"{self.engine.fingerprint} {self.template.digest} {self.sampling.max_tokens}"

    async def write(self, problem: Problem, runner: ProgramRunner, account: Account) -> list[Any]:
        """Return the inputs for a task; none, with the reason counted, where the model or its program fails."""
        rendered = self.template.render(
            {
                "question": problem.prompt,
                "solution": problem.solutions[0],
                "entry": problem.entry_point or None,
                "count": str(self.count),
            },
            special=tuple(getattr(self.engine, "special_tokens", ())),
        )
        (answer,) = await self.engine.generate([rendered.prompt], self.sampling)
        stop_if_gone(self.engine, answer)
        if isinstance(answer, Fault):
            account.counts["generator_faults"] += 1.0
            return []
        account.cost += answer.cost
        completion = answer.completions[0]
        if completion.finish_reason == "length":
            account.counts["generator_cut_off"] += 1.0
            return []
        printed = await runner.response(completion.text)
        if printed is None:
            account.counts["generator_errors"] += 1.0
            return []
        inputs, unread = written_inputs(printed, bool(problem.entry_point))
        account.counts["generated_inputs"] += float(len(inputs))
        if unread:
            account.counts["generated_unread"] += float(unread)
        return inputs
