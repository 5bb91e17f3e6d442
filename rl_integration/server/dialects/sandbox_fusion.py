"""SandboxFusion's runner: `POST /run_code`, for programs that the caller judges itself, as verl does.

The program runs in the sandbox of the scorer `run`, which must be served, and queues, limits and refusals are those of
any scorer.  "Failed" is only what the program did; where the sandbox could not do its work the status is
"SandboxError", with 503 where another try can help and 422 where it cannot.  verl tries again on 504 alone and counts
anything else as a failed test: ask it to send `?again=504`.

Not covered: Jupyter, files beside the program, and languages that `run` does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from adjudge.protocol import Sample
from adjudge.reasons import TRANSIENT
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.errors import HttpError, JsonAnswer, bad_request
from adjudge.rl_integration.server.base.json_bodies import JsonRoute
from adjudge.rl_integration.server.dialects.exchange import ScorerName, Taken, score_summary
from adjudge.verifiers.code.extraction import fenced

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


def sandbox_fusion(host: Host) -> APIRouter:
    """Return the route."""
    router = APIRouter(route_class=JsonRoute)

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

    return router


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
