"""eval-protocol's remote evaluator: `POST /evaluate`.

It sends a conversation and takes an `EvaluateResult`, which can say that a score is not valid.  So nothing has to be
an error: where there is no score, `is_score_valid` is false and `score` is only there because the field must be.

Not covered: its batch mode, and metrics outside 0 to 1, which its own model refuses; such parts are left out.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from adjudge.io.values import reference_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.json_bodies import aside_if_large
from adjudge.rl_integration.server.dialects.exchange import Fallback, ScorerName, Taken, divided, score_summary


class Evaluate(Taken):
    """What eval-protocol sends."""

    messages: list[dict[str, Any]] = Field(fail_fast=True)
    ground_truth: Any = None
    kwargs: dict[str, Any] | None = Field(None, description="Becomes the sample's further columns.")


class MetricResult(BaseModel):
    """One part of a score."""

    is_score_valid: bool
    score: float = Field(ge=0, le=1)
    reason: str


class StepOutput(BaseModel):
    """The value of one step."""

    step_index: int
    base_reward: float
    reason: str | None = None


class EvaluateResult(BaseModel):
    """What eval-protocol takes."""

    score: float
    is_score_valid: bool
    reason: str
    metrics: dict[str, MetricResult] = Field(default_factory=dict)
    step_outputs: list[StepOutput] | None = None
    error: str | None = None


def eval_protocol(host: Host, router: APIRouter) -> None:
    """Add the route."""

    @router.post("/evaluate", summary="Score for eval-protocol")
    async def evaluate(
        request: Request, asked: Evaluate, scorer: ScorerName = None, fallback: Fallback = None
    ) -> EvaluateResult:
        sample = await aside_if_large(request, lambda: _sample(asked))
        (score,) = await host.score(request, host.only_scorer(scorer), [sample])
        return _result(score, fallback)


def _sample(asked: Evaluate) -> Sample:
    prompt, response = divided(asked.messages)
    reference = reference_of(asked.ground_truth)
    return Sample(prompt=prompt, response=response, reference=reference, extra=asked.kwargs or {})


def _result(score: Score, fallback: float | None) -> EvaluateResult:
    words = score_summary(score)
    return EvaluateResult(
        score=score.value if score.value is not None else fallback or 0.0,
        is_score_valid=score.value is not None,
        reason=words,
        metrics={name: metric for name, part in score.parts.items() if (metric := _metric(part)) is not None},
        step_outputs=[
            StepOutput(step_index=index, base_reward=step.value, reason=step.label or None)
            for index, step in enumerate(score.steps)
            if step.value is not None
        ]
        or None,
        error=words if score.status == "failed" else None,
    )


def _metric(part: Score) -> MetricResult | None:
    value = 0.0 if part.value is None else part.value
    if not 0 <= value <= 1:
        return None
    return MetricResult(is_score_valid=part.value is not None, score=value, reason=score_summary(part))
