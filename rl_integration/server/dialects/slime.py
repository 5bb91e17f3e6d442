"""slime's remote reward model: `--rm-type remote_rm --rm-url http://HOST:PORT/rm`.

It sends one sample and takes a number, or an object with `--reward-key`, which `?detail=true` asks for.  Its metadata
is not sent, so the label must hold all that the scorer needs; text that is a JSON object is read as one.

Not covered: `sample.remove_sample`, which only its Python interface can set.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from adjudge.io.values import reference_of
from adjudge.protocol import Sample
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.json_bodies import aside_if_large, samples_of
from adjudge.rl_integration.server.dialects.exchange import Fallback, ScorerName, Taken, numbers


class RemoteRm(Taken):
    """What slime sends."""

    prompt: Any
    response: str
    label: Any = None


class Detailed(BaseModel):
    """A number and what it is."""

    reward: float
    status: Literal["scored", "abstained", "failed"]
    reason: str


def _samples(asked: RemoteRm) -> list[Sample]:
    return samples_of([{"prompt": asked.prompt, "response": asked.response, "reference": reference_of(asked.label)}], 1)


def slime(host: Host, router: APIRouter) -> None:
    """Add the route."""

    @router.post("/rm", summary="Score for slime")
    async def remote_rm(
        request: Request,
        asked: RemoteRm,
        detail: Annotated[bool, Query(description="Answer with an object; its number is under `reward`.")] = False,
        scorer: ScorerName = None,
        fallback: Fallback = None,
    ) -> float | Detailed:
        samples = await aside_if_large(request, lambda: _samples(asked))
        scores = await host.score(request, host.only_scorer(scorer), samples)
        (number,) = numbers(scores, fallback)
        if not detail:
            return number
        return Detailed(reward=number, status=scores[0].status, reason=scores[0].reason)
