"""From a task with reference solutions to its tests.

1. Inputs: known ones, those of a model's program, and changes of both.
2. Every solution runs on every input in the sandbox; a test is kept where enough of them agree.  A task whose tests
   all expect the same is dropped: a program that looks at nothing passes them.
3. Tests that tell apart most wrong programs come first.
4. The reference is made, and `code` itself says which solutions pass it and which wrong programs fail it.

Two returned values agree as `code` compares them: type by type, but a list equals a tuple, 2 equals 2.0, and floats
may differ in the tenth digit.  Two printed texts agree line by line, without blanks at the ends.

Not covered: tests that check more than the output, and tasks with several right outputs: solutions then disagree.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Final

from adjudge.data_pipelines.tasks.config import UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_test_inputs import call_inputs, stdin_inputs
from adjudge.data_pipelines.tasks.unit_test_problems import Call, Problem, read_problem
from adjudge.data_pipelines.tasks.unit_test_runs import InputWriter, Output, ProgramRunner, stop_if_sandbox_gone
from adjudge.engines.interface import Engine
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of
from adjudge.protocol import Sample
from adjudge.runtime.contract import score_checked, validate_sample
from adjudge.scoring import registry

_DIGITS = 9
_MAX_LITERAL = 100_000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """A test that enough solutions agree on.

    Attributes:
        given: a `Call`, or standard input.
        output: the literal, or the text, that most of those who agree gave.
    """

    given: Call | str
    output: str
    agreeing: int


def agreed(given: Call | str, outputs: Sequence[Output], least: int) -> Agreed | None:
    """Return the test of an input, or None if fewer than `least` solutions give the same.

    `outputs` are those of each solution, of which `least` must be more than half, so that their order decides nothing.
    """
    keys = [None if output.value is None else output_key(output.value, isinstance(given, str)) for output in outputs]
    counted = Counter(key for key in keys if key is not None)
    if not counted:
        return None
    key, count = counted.most_common(1)[0]
    if count < least:
        return None
    texts = Counter(output.value for output, mine in zip(outputs, keys, strict=True) if mine == key)
    most = max(texts.values())
    output = min(str(text) for text, number in texts.items() if number == most)
    return Agreed(given=given, output=output, agreeing=count)


def reference_of(tests: Sequence[Agreed], entry_point: str, language: str) -> dict[str, Any] | None:
    """Return the reference of `code` for tests, or None if one of them has no such form.

    Standard input becomes `{"stdin", "stdout"}`.  Calls become `{"args", "kwargs", "expected"}` where JSON can hold all
    arguments, else asserts; what was returned may be a tuple either way, because `code` takes a list for one.
    """
    if not entry_point:
        cases = [{"stdin": str(test.given), "stdout": test.output} for test in tests]
        return {"tests": cases, **({} if language == "python" else {"language": language})}
    calls = [(test.given, ast.literal_eval(test.output)) for test in tests if isinstance(test.given, Call)]
    if all(_fits_json(call, value) for call, value in calls):
        return {"tests": [_case(call, value) for call, value in calls], "entry_point": entry_point}
    if "." in entry_point:
        return None
    return {"tests": [_claim(entry_point, call, value) for call, value in calls], "entry_point": entry_point}


def has_form(test: Agreed, entry_point: str) -> bool:
    """Return whether a test can stand among asserts, which compare floats exactly unless one is all there is."""
    if not isinstance(test.given, Call):
        return True
    value = ast.literal_eval(test.output)
    if _fits_json(test.given, value):
        return True
    return "." not in entry_point and (isinstance(value, float) or not _has_float(value))


def output_key(text: str, printed: bool) -> str | None:
    """Return a text that two outputs share exactly where they agree; None for what is not a literal."""
    if printed:
        return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    if len(text) > _MAX_LITERAL:
        return None
    try:
        return repr(_rounded(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _rounded(value: Any) -> Any:
    """Return a value that is equal exactly where the original counts as equal."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        short = float(f"{value:.{_DIGITS}g}")
        return int(short) if short.is_integer() else short
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, set):
        return ("set", sorted(map(repr, map(_rounded, value))))
    if isinstance(value, dict):
        return ("dict", sorted((repr(_rounded(key)), repr(_rounded(item))) for key, item in value.items()))
    return value


def _fits_json(call: Call, value: Any) -> bool:
    return _is_json(list(call.args)) and _is_json(call.kwargs) and _is_json(value, tuples=True)


def _is_json(value: Any, tuples: bool = False) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return True
    if isinstance(value, str):
        return _is_unicode(value)
    if isinstance(value, list) or (tuples and isinstance(value, tuple)):
        return all(_is_json(item, tuples) for item in value)
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_unicode(key) and _is_json(item, tuples) for key, item in value.items())
    return False


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _case(call: Call, value: Any) -> dict[str, Any]:
    kwargs = {"kwargs": dict(call.kwargs)} if call.kwargs else {}
    plain: dict[str, Any] = json.loads(json.dumps({"args": list(call.args), **kwargs, "expected": value}))
    return plain


def _claim(entry_point: str, call: Call, value: Any) -> str:
    words = [f"{name}={item!r}" for name, item in call.kwargs.items()]
    asked = f"{entry_point}({', '.join([*map(repr, call.args), *words])})"
    if isinstance(value, float):
        return f"assert abs({asked} - {value!r}) <= {max(1e-9, abs(value) * 1e-6)!r}"
    return f"assert {asked} == {value!r}"


def _has_float(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_float, (*value.keys(), *value.values())))
    return isinstance(value, float) or (isinstance(value, list | tuple | set) and any(map(_has_float, value)))


_VERSION = "1"
_MAX_PROGRAM: Final = 100_000  # characters
_CONSTANT: Final = -1  # stands for a program that always gives the commonest output


class _UnitTestMaker(RowMaker[UnitTestsConfig]):
    """Makes one row of a task and its solutions.

    Raises:
        ValueError: the engine's spec is malformed, or nobody can run the language.
    """

    name = "unit_tests"
    reads = ("prompt", "solutions", "wrong", "label", "group", "entry_point", "tests")
    fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "text", "reference": "any", "scorer": "text", "entry_point": "text", "tests": "whole",
        "agreement": "wholes", "kills": "wholes", "idle_tests": "whole", "solutions": "whole", "passing": "whole",
        "wrong": "whole", "killed": "whole", "inputs": "whole",
    }  # fmt: skip

    def __init__(self, config: UnitTestsConfig, *, engine: Engine | None = None) -> None:
        super().__init__(config)
        if engine is None and config.engine:
            engine = engine_named(config.engine)
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
        config = self.config
        options = [
            config.solutions, config.agree, config.passing, config.inputs, config.tests, config.min_tests,
            config.domain, config.seconds, config.memory_mb, config.seed, config.language,
            config.prompt_column, config.entry_point_column, config.solutions_column, config.wrong_column,
            config.label_column, config.tests_column,
        ]  # fmt: skip
        asked = self._writer.fingerprint if self._writer else ""
        return fingerprint_of(self.name, _VERSION, options, self._run.fingerprint, self._code.fingerprint, asked)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        config, choice = self.config, self.check_columns(columns, first, optional=("entry_point", "tests"))
        kind = "functions" if config.entry_point_column in choice.known else "programs that read input"
        return (f"{kind}; a test is kept where {config.agree} of {config.solutions} solutions agree",)

    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
        config = self.config
        problem = read_problem(unit, self.cell, labelled=bool(config.label_column))
        if problem.copies:
            account.counts["copies"] += float(problem.copies)
        solutions = [one for one in problem.solutions if len(one) <= _MAX_PROGRAM][: config.solutions]
        if len(solutions) < config.solutions:
            raise DroppedError("few_solutions")
        runner = ProgramRunner(self._run, account, seconds=config.seconds, memory_mb=config.memory_mb)
        inputs = await self._inputs(problem, runner, account)
        account.counts["inputs"] += float(len(inputs))
        if not inputs:
            raise DroppedError("no_inputs")
        tests = await self._agreed(problem, solutions, inputs, runner)
        account.counts["agreed"] += float(len(tests))
        if len(tests) > 1 and len(set(map(_expected, tests))) == 1:
            raise DroppedError("one_output")
        tests = await self._chosen(problem, tests, runner)
        return [await self._row(problem, solutions, tests, len(inputs), account)]

    async def _inputs(self, problem: Problem, runner: ProgramRunner, account: Account) -> list[Call | str]:
        config = self.config
        more = await self._writer.write(problem, runner, account) if self._writer else []
        text = f"{config.seed} {problem.entry_point} {problem.prompt}"
        random = Random(text.encode("utf-8", "surrogatepass"))
        if problem.entry_point:
            calls = [one for one in more if isinstance(one, Call)]
            return [*call_inputs(problem, calls, config.inputs, config.domain, random)]
        texts = [one for one in more if isinstance(one, str)]
        return [*stdin_inputs(problem, texts, config.inputs, random)]

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
        tests = [agreed(given, [mine[at] for mine in outputs], self.config.agree) for at, given in enumerate(inputs)]
        return [test for test in tests if test is not None and has_form(test, problem.entry_point)]

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

    async def _row(
        self, problem: Problem, solutions: Sequence[str], tests: list[Agreed], inputs: int, account: Account
    ) -> dict[str, Any]:
        config = self.config
        if len(tests) < config.min_tests:
            raise DroppedError("few_agree")
        reference = reference_of(tests, problem.entry_point, config.language)
        if reference is None:
            raise DroppedError("no_form")
        passed = await self._passed(problem, [*solutions, *problem.wrong], reference, len(tests), account)
        passing = sum(all(mine) for mine in passed[: len(solutions)])
        if passing < config.passing:
            raise DroppedError("few_pass")
        failures = Counter(at for mine in passed[len(solutions) :] for at, passes in enumerate(mine) if not passes)
        kills = [failures[at] for at in range(len(tests))] if problem.wrong else None
        return {
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

    async def _passed(
        self, problem: Problem, programs: Sequence[str], reference: Mapping[str, Any], count: int, account: Account
    ) -> list[list[bool]]:
        """Return for each program which tests it passes, by the scorer `code`; one that does not load passes none."""
        samples = [Sample(prompt=problem.prompt, response=one, reference=reference) for one in programs]
        scores = await score_checked(self._code, samples)
        passed = []
        for score in scores:
            stop_if_sandbox_gone(score)
            account.cost += score.cost
            mine = [bool(one) for one in score.evidence.get("tests", ())]
            passed.append((mine + [False] * count)[:count])
        if any(score.value is None for score in scores):
            raise DroppedError("unjudged")
        return passed


def _differs(test: Agreed, output: Output) -> bool:
    return output.value is None or output_key(output.value, isinstance(test.given, str)) != _expected(test)


def _expected(test: Agreed) -> str | None:
    return output_key(test.output, isinstance(test.given, str))


def make_unit_tests(
    config: UnitTestsConfig, *, progress: JobProgress | None = None, engine: Engine | None = None
) -> JobReport:
    """Make unit tests for the tasks of a file."""
    maker = _UnitTestMaker(config, engine=engine)
    return run_job(config, maker, group_column=config.group_column, progress=progress)
