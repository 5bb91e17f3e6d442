"""NeMo Gym's resources server: `POST /verify`, and the routes its agents call around it.

A request holds a row and a Responses object.  The answer is the whole request and the reward.  The reward must be a
number there; one that is none is sent as 0 with `mask_sample`, at the top level and in `instance_config`, where NeMo RL
looks for it and leaves the rollout out of the loss, and a failed one has `_ng_failure_class` too, with which Gym puts
the row aside and tries it again later.

Nothing is kept between requests, so stored rollouts can be verified again (`/reverify_mode`).

Not covered: `/aggregate_metrics`, whose metrics differ from version to version, tools over MCP, and checkpoints.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from adjudge.io.values import reference_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.errors import JsonAnswer, bad_request
from adjudge.rl_integration.server.base.json_bodies import aside_if_large
from adjudge.rl_integration.server.dialects.exchange import Fallback, ScorerName, score_summary
from adjudge.rl_integration.server.dialects.responses_object import (
    VERDICT,
    finish_reason_of,
    masked,
    prompt_of,
    response_of,
)

_REFERENCES = ("expected_answer", "ground_truth", "reference", "verifier_metadata")
_KINDS = {
    "judge_truncated": "judge_unparseable",
    "judge_unparsable": "judge_unparseable",
    "cohort_incomplete": "cohort_incomplete",
    "engine_unavailable": "provider_unavailable",
    "engine_overloaded": "provider_quota_exhausted",
}  # Gym's words for our reasons; any other is its "verifier_error"


class Verify(BaseModel):
    """What NeMo Gym sends: a row of any fields, and what the model answered."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: dict[str, Any]
    response: dict[str, Any]


class Verified(Verify):
    """The request and the reward."""

    reward: float
    mask_sample: bool = Field(description="True where the reward measures nothing.")
    failure_kind: str | None = None
    failure_reason: str | None = None
    reward_components: dict[str, float] | None = Field(None, description="Only where they add up to the reward.")


class Session(BaseModel):
    """Confirms a session of which nothing is kept."""

    model_config = ConfigDict(extra="allow")

    resources_session_id: str | None = None


ReferenceField = Annotated[
    list[str],
    Query(
        default_factory=list,
        description="The row's field that holds the reference, b in a as a.b; of several, the first that is there. By "
        f"default {', '.join(_REFERENCES)}.",
    ),
]
GroupField = Annotated[str | None, Query(description="The row's field that the rollouts of a prompt share.")]


def nemo_gym(host: Host, router: APIRouter) -> None:
    """Add the routes."""

    @router.post("/verify", summary="Score for NeMo Gym", response_model=Verified)
    async def verify(
        request: Request,
        asked: Verify,
        reference_field: ReferenceField,
        group_field: GroupField = None,
        scorer: ScorerName = None,
        fallback: Fallback = None,
    ) -> JsonAnswer:
        row, sample = await aside_if_large(request, lambda: _row_and_sample(asked, reference_field, group_field))
        (score,) = await host.score(request, host.only_scorer(scorer), [sample])
        asked_for = {"responses_create_params": asked.responses_create_params, "response": asked.response}
        masking = masked(asked.model_extra or {}, score.value is not None)
        return await aside_if_large(request, lambda: JsonAnswer(asked_for | row | masking | _verdict(score, fallback)))

    @router.post("/seed_session", summary="Begin a rollout of NeMo Gym; nothing is kept")
    @router.post("/close_session", summary="End a rollout of NeMo Gym; nothing was kept")
    async def session(asked: Annotated[Session | None, Body()] = None) -> dict[str, str]:
        known = asked.resources_session_id if asked is not None else None
        return {} if known is None else {"resources_session_id": known}

    @router.get("/reverify_mode", summary="Whether NeMo Gym may verify stored rollouts again")
    async def reverify_mode() -> Literal["stateless"]:
        return "stateless"


def _row_and_sample(
    asked: Verify, reference_field: list[str], group_field: str | None
) -> tuple[dict[str, Any], Sample]:
    row = {name: value for name, value in (asked.model_extra or {}).items() if name not in VERDICT}
    sample = Sample(
        prompt=prompt_of(asked.responses_create_params),
        response=response_of(asked.response),
        reference=_reference(row, reference_field),
        group="" if group_field is None else json.dumps(_field(row, group_field)),
        finish_reason=finish_reason_of(asked.response),
        extra={name: value for name, value in row.items() if not name.startswith("_")},
    )
    return row, sample


def _reference(row: Mapping[str, Any], names: list[str]) -> Any:
    fields = [_found(row, name) for name in names or _REFERENCES]
    if names and all(field is None for field in fields):
        _field(row, *names)  # raises
    return next((found for field in fields if (found := reference_of(field)) is not None), None)


def _found(row: Mapping[str, Any], name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _field(row: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if (value := _found(row, name)) is not None:
            return value
    shown = ", ".join(sorted(name for name in row if not name.startswith("_")))[:200] or "no fields"
    raise bad_request(f"the row has no {' and no '.join(names)!r}; it has {shown}")


def _verdict(score: Score, fallback: float | None) -> dict[str, Any]:
    if score.value is not None:
        parts = {name: part.value for name, part in score.parts.items()}
        verdict: dict[str, Any] = {"reward": score.value}
        values = [value for value in parts.values() if value is not None]
        if values and len(values) == len(parts) and abs(math.fsum(values) - score.value) <= 1e-9:
            verdict["reward_components"] = parts
        return verdict
    kind = _KINDS.get(score.reason, "verifier_error") if score.status == "failed" else None
    verdict = {"reward": fallback or 0.0, "failure_kind": kind, "failure_reason": score_summary(score)}
    return verdict if kind is None else {**verdict, "_ng_failure_class": kind}
