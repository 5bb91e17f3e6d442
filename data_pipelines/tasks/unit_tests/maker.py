"""From a task with reference solutions to its tests.

1. Inputs: known ones, those of a model's program, and changes of both.
2. Every solution runs on every input in the sandbox; a test is kept where enough of them agree.  A task whose tests
   all expect the same is dropped: a program that looks at nothing passes them.
3. Tests that tell apart most wrong programs come first.
4. The reference is made, and `code` itself says which solutions pass it and which wrong programs fail it.

Not covered: tests that check more than the output, and tasks with several right outputs: solutions then disagree, and
the task is dropped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from adjudge import registry, wire
from adjudge.data_pipelines.tasks.unit_tests.agreement import Agreed, agreed, has_form, output_key, reference_of
from adjudge.data_pipelines.tasks.unit_tests.config import UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_tests.execution import Output, ProgramRunner, stop_if_gone
from adjudge.data_pipelines.tasks.unit_tests.generator import InputWriter
from adjudge.data_pipelines.tasks.unit_tests.inputs import call_inputs, stdin_inputs
from adjudge.data_pipelines.tasks.unit_tests.known_inputs import Call
from adjudge.data_pipelines.tasks.unit_tests.problem import Problem, UnusableRow, read_problem
from adjudge.engines.interface import Engine
from adjudge.io.columns import Choice
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.protocol import Cost, Sample
from adjudge.runtime.contract import score_checked, validate_sample

_VERSION = "1"
_MOST_PROGRAM: Final = 100_000  # characters
_CONSTANT: Final = -1  # stands for a program that always gives the commonest output


class UnitTestMaker:
    """Makes one row of a task and its solutions."""

    name = "unit_tests"
    fields: Mapping[str, Kind] = {
        "prompt": "text",
        "reference": "any",
        "scorer": "text",
        "entry_point": "text",
        "tests": "whole",
        "agreement": "wholes",
        "kills": "wholes",
        "idle_tests": "whole",
        "solutions": "whole",
        "passing": "whole",
        "wrong": "whole",
        "killed": "whole",
        "inputs": "whole",
    }

    def __init__(self, config: UnitTestsConfig, *, engine: Engine | None = None) -> None:
        """Load the scorers, and the engine if one is named and none is given.

        Raises:
            ValueError: the engine's spec is malformed, or nobody can run the language.
        """
        if engine is None and config.engine:
            engine = engine_named(config.engine)
        self.config = config
        self.grouped = bool(config.group_column)
        self._run = registry.load({"run": {"seconds": max(30.0, config.seconds), "memory_mb": 1024}})
        self._code = registry.load({"code": {"credit": "fraction", "seconds": config.seconds, "bare": True}})
        shape = {"tests": [{"stdin": "", "stdout": ""}], "language": config.language}
        try:
            validate_sample(self._code, Sample(prompt="", response="", reference=shape))
        except ValueError as error:
            raise ValueError(f"--language is {config.language!r}: {error}") from error
        self._writer = InputWriter(config, engine) if engine is not None else None

    @property
    def fingerprint(self) -> str:
        """Options, scorers and the model."""
        config = self.config
        options = [
            config.solutions, config.agree, config.passing, config.inputs, config.tests, config.least_tests,
            config.domain, config.seconds, config.memory_mb, config.seed, config.language,
            config.prompt_column, config.entry_point_column, config.solutions_column, config.wrong_column,
            config.label_column, config.tests_column,
        ]  # fmt: skip
        asked = self._writer.fingerprint if self._writer else ""
        text = wire.dumps([_VERSION, options, self._run.fingerprint, self._code.fingerprint, asked])
        return f"{self.name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """See that the columns that are named are there.

        Raises:
            ValueError: one is not.
        """
        config, choice = self.config, Choice(columns, first)
        needed = ["prompt", "solutions", "wrong", "label", "group"]
        needed += [role for role in ("entry_point", "tests") if _named(config, role) != _named(UnitTestsConfig, role)]
        choice.check({role: _named(config, role) for role in needed})
        kind = "functions" if config.entry_point_column in choice.known else "programs that read input"
        return (f"{kind}; a test is kept where {config.agree} of {config.solutions} solutions agree",)

    async def make(self, unit: Unit) -> Made:
        """Return the row of a task, or why there is none."""
        config = self.config
        try:
            problem = read_problem(unit, config)
        except UnusableRow as error:
            return Made(dropped={str(error): 1})
        copies = {"copies": float(problem.copies)} if problem.copies else {}
        solutions = [one for one in problem.solutions if len(one) <= _MOST_PROGRAM][: config.solutions]
        if len(solutions) < config.solutions:
            return Made(dropped={"few_solutions": 1}, counts=copies)
        runner = ProgramRunner(self._run, seconds=config.seconds, memory_mb=config.memory_mb)
        inputs, counts, cost = await self._inputs(problem, runner)
        counts = {**copies, **counts, "inputs": float(len(inputs))}
        if not inputs:
            return Made(dropped={"no_inputs": 1}, counts=counts, cost=cost + runner.taken())
        tests = await self._agreed(problem, solutions, inputs, runner)
        counts["agreed"] = float(len(tests))
        if len(tests) > 1 and len(set(map(_expected, tests))) == 1:
            return Made(dropped={"one_output": 1}, counts=counts, cost=cost + runner.taken())
        tests = await self._chosen(problem, tests, runner)
        made = await self._row(problem, solutions, tests, len(inputs))
        return Made(rows=made.rows, dropped=made.dropped, counts=counts, cost=made.cost + cost + runner.taken())

    async def _inputs(self, problem: Problem, runner: ProgramRunner) -> tuple[list[Call | str], dict[str, float], Cost]:
        config = self.config
        written = await self._writer.write(problem, runner) if self._writer else None
        more = list(written.inputs) if written else []
        counts = dict(written.counts) if written else {}
        cost = written.cost if written else Cost()
        text = f"{config.seed} {problem.entry_point} {problem.prompt}"
        random = Random(text.encode("utf-8", "surrogatepass"))
        if problem.entry_point:
            calls = [one for one in more if isinstance(one, Call)]
            return [*call_inputs(problem, calls, config.inputs, config.domain, random)], counts, cost
        texts = [one for one in more if isinstance(one, str)]
        return [*stdin_inputs(problem, texts, config.inputs, random)], counts, cost

    async def _outputs(
        self, problem: Problem, programs: Sequence[str], inputs: Sequence[Call | str], runner: ProgramRunner
    ) -> list[list[Output]]:
        if problem.entry_point:
            calls = [one.text for one in inputs if isinstance(one, Call)]
            return await runner.calls(programs, problem.entry_point, calls)
        return await runner.prints(programs, [str(one) for one in inputs], self.config.language)

    async def _agreed(
        self, problem: Problem, solutions: Sequence[str], inputs: Sequence[Call | str], runner: ProgramRunner
    ) -> list[Agreed]:
        outputs = await self._outputs(problem, solutions, inputs, runner)
        found = [agreed(given, [mine[at] for mine in outputs], self.config.agree) for at, given in enumerate(inputs)]
        return [test for test in found if test is not None and has_form(test, problem.entry_point)]

    async def _chosen(self, problem: Problem, tests: list[Agreed], runner: ProgramRunner) -> list[Agreed]:
        """Return the tests to keep: each time the one that most wrong programs fail which no test before it told.

        A program that always gives the commonest output counts as one of them.
        """
        if len(tests) <= self.config.tests:
            return tests
        left = set(range(len(problem.wrong)))
        outputs = await self._outputs(problem, problem.wrong, [test.given for test in tests], runner)
        kills = [{at for at in left if _differs(test, outputs[at][number])} for number, test in enumerate(tests)]
        usual = Counter(map(_expected, tests)).most_common(1)[0][0]
        for test, killed in zip(tests, kills, strict=True):
            if _expected(test) != usual:
                killed.add(_CONSTANT)
        left.add(_CONSTANT)
        open_tests = list(range(len(tests)))
        chosen: list[int] = []
        while len(chosen) < self.config.tests:
            best = max(open_tests, key=lambda number: (len(kills[number] & left), -number))
            chosen.append(best)
            open_tests.remove(best)
            left -= kills[best]
        return [tests[number] for number in sorted(chosen)]

    async def _row(self, problem: Problem, solutions: Sequence[str], tests: list[Agreed], inputs: int) -> Made:
        config = self.config
        if len(tests) < config.least_tests:
            return Made(dropped={"few_agree": 1})
        reference = reference_of(tests, problem.entry_point, config.language)
        if reference is None:
            return Made(dropped={"no_form": 1})
        passed, cost = await self._passed(problem, [*solutions, *problem.wrong], reference, len(tests))
        if passed is None:
            return Made(dropped={"unjudged": 1}, cost=cost)
        passing = sum(all(mine) for mine in passed[: len(solutions)])
        if passing < config.passing:
            return Made(dropped={"few_pass": 1}, cost=cost)
        failures = Counter(at for mine in passed[len(solutions) :] for at, passes in enumerate(mine) if not passes)
        kills = [failures[at] for at in range(len(tests))] if problem.wrong else None
        row = {
            "prompt": problem.prompt,
            "reference": reference,
            "scorer": "code",
            "entry_point": problem.entry_point or None,
            "tests": len(tests),
            "agreement": [test.agreeing for test in tests],
            "kills": kills,
            "idle_tests": None if kills is None else kills.count(0),
            "solutions": len(solutions),
            "passing": passing,
            "wrong": len(problem.wrong),
            "killed": sum(not all(mine) for mine in passed[len(solutions) :]),
            "inputs": inputs,
        }
        return Made(rows=(row,), cost=cost)

    async def _passed(
        self, problem: Problem, programs: Sequence[str], reference: Mapping[str, Any], count: int
    ) -> tuple[list[list[bool]] | None, Cost]:
        """Return for each program which tests it passes, by the scorer `code`; None where that has no verdict on one.

        A program that does not load passes none.
        """
        samples = [Sample(prompt=problem.prompt, response=one, reference=reference) for one in programs]
        scores = await score_checked(self._code, samples)
        passed = []
        cost = Cost()
        for score in scores:
            stop_if_gone(score)
            cost += score.cost
            told = [bool(one) for one in score.evidence.get("tests", ())]
            passed.append((told + [False] * count)[:count])
        return (None if any(score.value is None for score in scores) else passed), cost


def _named(config: UnitTestsConfig | type[UnitTestsConfig], role: str) -> str:
    return str(getattr(config, f"{role}_column"))


def _differs(test: Agreed, output: Output) -> bool:
    return output.value is None or output_key(output.value, isinstance(test.given, str)) != _expected(test)


def _expected(test: Agreed) -> str | None:
    return output_key(test.output, isinstance(test.given, str))


def make_unit_tests(
    config: UnitTestsConfig, *, progress: JobProgress | None = None, engine: Engine | None = None
) -> JobReport:
    """Make unit tests for the tasks of a file.

    Args:
        config: input, output and options.
        progress: who is told how far the job is.
        engine: a model in place of `config.engine`; it stays open.

    Raises:
        ValueError: a mistake in the options or the columns; nothing was written.
        JobError: the sandbox or the model is gone; the same call goes on.
    """
    maker = UnitTestMaker(config, engine=engine)
    return run_job(config, maker, group_column=config.group_column, progress=progress)
