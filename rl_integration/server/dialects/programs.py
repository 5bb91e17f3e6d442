"""Code servers: open-instruct's `POST /test_program` and `POST /test_program_stdio`, SandboxFusion's `POST /run_code`.

open-instruct sends a program and its tests, asserts or inputs with outputs, and takes a 0 or a 1 and the seconds for
each test.  The scorer is one that judges programs (`code`).  A scorer that stops at the first test that fails is asked
again for the tests behind it, until each has its answer; with `credit: fraction` once is enough.

Not covered: tests in its compressed form, which is pickled: unpickling runs what the sender likes.

SandboxFusion's runner is for programs that the caller judges itself, as verl does.  They run in the sandbox of the
scorer `run`, which must be served, and queues, limits and refusals are those of any scorer.  "Failed" is only what the
program did; where the sandbox could not do its work the status is "SandboxError", with 503 where another try can help
and 422 where it cannot.  verl tries again on 504 alone and counts anything else as a failed test: ask it to send
`?again=504`.

Not covered: Jupyter, files beside the program, and languages that `run` does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from adjudge.protocol import Sample, Score
from adjudge.reasons import TRANSIENT
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.errors import HttpError, JsonAnswer, bad_request
from adjudge.rl_integration.server.base.json_bodies import aside_if_large, read_json, within_limit
from adjudge.rl_integration.server.dialects.exchange import ScorerName, Taken, numbers, score_summary
from adjudge.verifiers.code.extraction import fenced

_NOT_RUN = -1.0  # open-instruct's seconds of a test that did not end by itself


class TestProgram(Taken):
    """What open-instruct sends."""

    __test__ = False
    program: str
    tests: list[Any] | str = Field(description="A list, or one as JSON.")
    max_execution_time: float = Field(1.0, gt=0, le=3600, description="Seconds for one test.")


class Results(BaseModel):
    """Whether each test passed, and how long it took; -1 where that is not known."""

    results: list[int]
    runtimes: list[float]


Instead = Annotated[
    int | None, Query(ge=-1, le=1, description="The result of a test that could not be judged; without it, an error.")
]


def open_instruct(host: Host, router: APIRouter) -> None:
    """Add the routes."""

    async def results(
        request: Request, asked: TestProgram, scorer: str | None, fallback: int | None, *, stdio: bool
    ) -> Results:
        tests = within_limit(await aside_if_large(request, lambda: _listed(asked.tests)), host.config.max_samples)
        if stdio:
            tests = [_case(index, test) for index, test in enumerate(tests)]
        name = host.only_scorer(scorer)
        response = fenced(asked.program, "python")
        outcomes: list[tuple[int, float]] = []
        while rest := tests[len(outcomes) :]:
            if outcomes and await request.is_disconnected():
                raise HttpError(400, "gone", "the client went away, and the rest of its tests was not run")
            reference = {"tests": rest, "timeout": asked.max_execution_time}
            (score,) = await host.score(request, name, [Sample(prompt="", response=response, reference=reference)])
            if score.value is None:
                (number,) = numbers([score], fallback)
                outcomes += [(int(number), _NOT_RUN)] * len(rest)
            else:
                outcomes += _answers(score, len(rest))
        return Results(results=[passed for passed, _ in outcomes], runtimes=[seconds for _, seconds in outcomes])

    @router.post("/test_program", summary="Run asserts for open-instruct")
    async def test_program(
        request: Request, asked: TestProgram, scorer: ScorerName = None, fallback: Instead = None
    ) -> Results:
        return await results(request, asked, scorer, fallback, stdio=False)

    @router.post("/test_program_stdio", summary="Run inputs and outputs for open-instruct")
    async def test_program_stdio(
        request: Request, asked: TestProgram, scorer: ScorerName = None, fallback: Instead = None
    ) -> Results:
        return await results(request, asked, scorer, fallback, stdio=True)


def _answers(score: Score, count: int) -> list[tuple[int, float]]:
    """Return what a score says of the first of so many tests, of one at least."""
    evidence = score.evidence
    stage, shown = evidence.get("stage"), list(evidence.get("tests", ()))
    if stage is not None and score.value == 1.0:
        passed = [True] * count
    elif stage not in (None, "test"):  # it did not come as far as the tests
        passed = [False] * count
    elif stage == "test" and count == 1:  # one text may hold several asserts
        passed = [False]
    elif shown and evidence.get("total") == count:
        passed = shown
    else:
        raise HttpError(
            422,
            "cannot_be_scored",
            f"the scorer {score.provenance.scorer!r} does not say which of {count} tests passed "
            f"({score_summary(score)}); ask the scorer `code`, and give each test an assert of its own",
        )
    seconds = list(evidence.get("seconds", ()))[: len(passed)]
    seconds += [_NOT_RUN] * (len(passed) - len(seconds))
    return [(int(one), float(taken)) for one, taken in zip(passed, seconds, strict=True)]


def _listed(tests: list[Any] | str) -> list[Any]:
    if isinstance(tests, list):
        return tests
    if not tests:
        return []
    try:
        listed = read_json(tests.encode("utf-8", "surrogatepass"))
    except HttpError as error:
        raise bad_request(
            "tests is text that is not JSON; open-instruct's compressed tests are pickled and are not read here, "
            "because unpickling runs what the sender likes. Send a list, or a list as JSON"
        ) from error
    if not isinstance(listed, list):
        raise bad_request(f"tests is a {type(listed).__name__} as JSON; send a list")
    return listed


def _case(index: int, test: Any) -> dict[str, str]:
    if isinstance(test, dict) and isinstance(test.get("input"), str) and isinstance(test.get("output"), str):
        return {"stdin": test["input"], "stdout": test["output"]}
    raise bad_request(f'tests.{index} must be {{"input": text, "output": text}}')


_LANGUAGES = {"nodejs": "javascript"}
_KILLED = -9
_NOTES = {
    "memory": "the program passed its limit of memory",
    "output": "the program printed more than it may",
    "disk": "the program wrote more than it may",
}


class RunCode(Taken):
    """What SandboxFusion takes."""

    code: str
    language: str
    stdin: str | None = None
    compile_timeout: float = Field(10.0, gt=0, le=3600, description="Seconds.")
    run_timeout: float = Field(10.0, gt=0, le=3600, description="Seconds.")
    memory_limit_MB: int = Field(-1, ge=-1, le=1 << 20, description="MiB; -1 or 0 for the scorer's own limit.")
    files: dict[str, Any] = Field(default_factory=dict, description="Must be empty.")
    fetch_files: list[Any] = Field(default_factory=list, description="Must be empty.")


class CommandRun(BaseModel):
    """What came of compiling, or of running."""

    status: Literal["Finished", "TimeLimitExceeded"]
    execution_time: float | None = Field(description="Seconds.")
    return_code: int | None = Field(description="Negative: the signal that ended it. None: it ran out of time.")
    stdout: str
    stderr: str


class RunCodeAnswer(BaseModel):
    """What SandboxFusion answers."""

    status: Literal["Success", "Failed", "SandboxError"]
    message: str = ""
    compile_result: CommandRun | None = None
    run_result: CommandRun | None = None
    executor_pod_name: str | None = None
    files: dict[str, str] = Field(default_factory=dict)


Again = Annotated[
    Literal["503", "504"], Query(description="The HTTP status where another try can help; verl looks for 504.")
]
_UNABLE: dict[int | str, dict[str, Any]] = {
    "503": {"model": RunCodeAnswer, "description": "The sandbox cannot run it now."},
    "504": {"model": RunCodeAnswer, "description": "The same, where the caller asked for this status."},
}


def sandbox_fusion(host: Host, router: APIRouter) -> None:
    """Add the route."""

    @router.post(
        "/run_code", summary="Run a program, as SandboxFusion does", response_model=RunCodeAnswer, responses=_UNABLE
    )
    async def run_code(
        request: Request, asked: RunCode, scorer: ScorerName = None, again: Again = "503"
    ) -> RunCodeAnswer | JsonAnswer:
        if asked.files or asked.fetch_files:
            raise bad_request("files and fetch_files must be empty: programs run without files here")
        name = host.only_scorer(scorer if scorer is not None or "run" not in host.service.names else "run")
        try:
            (score,) = await host.score(request, name, [_sample(asked)])
        except HttpError as refusal:
            if refusal.status != 503:
                raise
            return _unable(int(again), f"{refusal.code}: {refusal.message}", refusal.retry_after)
        if score.value is None and score.reason in TRANSIENT:
            return _unable(int(again), score_summary(score), 1.0)
        if score.value is None or not score.evidence.keys() & {"compile", "run"}:
            raise HttpError(
                422, "cannot_be_run", f"nothing was run: {score_summary(score)}; /run_code needs the scorer `run`"
            )
        compiled, ran = (_command(score.evidence.get(part)) for part in ("compile", "run"))
        return RunCodeAnswer(
            status="Success" if score.value == 1.0 else "Failed",
            message="" if compiled or ran else score_summary(score),
            compile_result=compiled,
            run_result=ran,
        )


def _sample(asked: RunCode) -> Sample:
    language = _LANGUAGES.get(asked.language, asked.language)
    reference = {
        "language": language,
        "stdin": asked.stdin or "",
        "compile_seconds": asked.compile_timeout,
        "seconds": asked.run_timeout,
        "memory_mb": asked.memory_limit_MB if asked.memory_limit_MB > 0 else None,
        "measured": True,
    }
    return Sample(prompt="", response=fenced(asked.code, language), reference=reference)


def _command(evidence: Any) -> CommandRun | None:
    if not isinstance(evidence, Mapping) or not evidence.keys() >= {"ending", "code", "stdout", "stderr"}:
        return None
    ending, code, errors = evidence["ending"], evidence["code"], evidence["stderr"]
    if ending in _NOTES:
        code, errors = _KILLED, "\n".join(filter(None, (errors, _NOTES[ending])))
    return CommandRun(
        status="TimeLimitExceeded" if ending == "timeout" else "Finished",
        execution_time=evidence.get("seconds"),
        return_code=-code if ending == "signalled" else code,
        stdout=evidence["stdout"],
        stderr=errors,
    )


def _unable(status: int, message: str, retry_after: float | None) -> JsonAnswer:
    headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
    return JsonAnswer(RunCodeAnswer(status="SandboxError", message=message).model_dump(), status, headers=headers)
