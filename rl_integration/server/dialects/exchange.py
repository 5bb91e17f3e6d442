"""What the dialects share: scorers named in the query, conversations, and answers that are a single number.

Where there is no number, a framework that knows numbers alone is told an error: 503 where another try can help, 422
where it cannot.  `?fallback=-1` asks for a number of the caller's own choice instead, and the answer says which are.

What is judged of a conversation is its end: all turns of the model and its tools behind the last turn of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import Query
from pydantic import BaseModel, ConfigDict

from adjudge.protocol import Score
from adjudge.reasons import TRANSIENT
from adjudge.rl_integration.server.base.errors import HttpError, bad_request
from adjudge.wire import dumps

_MODEL = frozenset({"assistant", "tool", "function"})

Turns = list[Mapping[str, Any]]


def divided(messages: Sequence[Mapping[str, Any]]) -> tuple[Turns, Turns]:
    """Return the turns of the prompt and those of the response.

    Raises:
        HttpError: 422, a message has no role, or the model says nothing at the end.
    """
    for index, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise bad_request(f"message {index} has no role; give user, assistant, tool, ...")
    start = len(messages)
    while start and messages[start - 1]["role"] in _MODEL:
        start -= 1
    response = list(messages[start:])
    if not any(message["role"] == "assistant" for message in response):
        raise bad_request("the conversation does not end with the assistant, so nothing can be judged")
    return list(messages[:start]), response


class Taken(BaseModel):
    """What a framework sends; what else it sends is passed over."""

    model_config = ConfigDict(extra="ignore")


ScorerName: TypeAlias = Annotated[str | None, Query(description="Which scorer; may be left out where there is one.")]
Fallback: TypeAlias = Annotated[
    float | None, Query(allow_inf_nan=False, description="The number where there is none; without it that is an error.")
]

_SHOWN = 500  # characters of the evidence


def score_summary(score: Score) -> str:
    """Return a score's status, its reason, and the beginning of its evidence, in ASCII."""
    reason = f" ({score.reason})" if score.reason else ""
    return f"{score.status}{reason}: {dumps(dict(score.evidence))[:_SHOWN]}"


def numbers(scores: Sequence[Score], fallback: float | None) -> list[float]:
    """Return one number for each score.

    Raises:
        HttpError: a score has none, and no fallback was given.
    """
    for index, score in enumerate(scores):
        if score.value is None and fallback is None:
            status, code = (503, "not_scored") if score.reason in TRANSIENT else (422, "cannot_be_scored")
            raise HttpError(
                status,
                code,
                f"sample {index} is {score_summary(score)}; the framework cannot be told so. Ask with "
                "?fallback=NUMBER to get a number of your choice instead",
                retry_after=1.0 if status == 503 else None,
            )
    return [score.value if score.value is not None else float(fallback or 0.0) for score in scores]
