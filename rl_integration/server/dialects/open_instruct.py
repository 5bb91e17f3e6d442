"""open-instruct's code server: `POST /test_program` and `POST /test_program_stdio`.

It sends a program and its tests, asserts or inputs with outputs, and takes a 0 or a 1 and the seconds for each test.
The scorer is one that judges programs (`code`).  A scorer that stops at the first test that fails is asked again for
the tests behind it, until each has its answer; with `credit: fraction` once is enough.

Not covered: tests in its compressed form, which is pickled: unpickling runs what the sender likes.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.errors import HttpError, bad_request
from adjudge.rl_integration.server.base.json_bodies import JsonRoute, aside_if_large, read_json, within_limit
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


def open_instruct(host: Host) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=JsonRoute)

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

    return router


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
