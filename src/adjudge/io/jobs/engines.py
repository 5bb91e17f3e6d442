"""The language models and scorers that makers ask: how a call names one, and when it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from adjudge.engines.interface import Engine, Fault
from adjudge.engines.loading import engine_of
from adjudge.io.errors import JobError
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import BrokenScorer, score_checked

GONE: Final = ("engine_unavailable", "engine_timeout", "engine_overloaded")
"""Reasons that are nobody's doing but the engine's: the job stops, and goes on when the engine is back."""


def stop_if_gone(engine: Engine, answer: object) -> None:
    """Look whether an engine's answer says that it is gone.

    Raises:
        JobError: it does.
    """
    if isinstance(answer, Fault) and answer.reason in GONE:
        raise JobError(
            f"the engine {engine.name!r} with the model {engine.model!r} is gone ({answer.reason}: {answer.detail}); "
            "make the same call again when it is back"
        )


async def scores_of(scorer: Scorer, samples: Sequence[Sample], called: str = "the scorer") -> list[Score]:
    """Return a scorer's scores.

    Raises:
        JobError: it is broken, or its engine is gone; the message says what `called` it is.
    """
    try:
        scores = await score_checked(scorer, samples, called=called)
    except BrokenScorer as error:
        raise JobError(f"{error}; repair it, and make the same call again") from error
    for score in scores:
        if score.status == "failed" and score.reason in GONE:
            raise JobError(
                f"{called}, {scorer.name!r}, has lost its engine ({score.reason}: {dict(score.evidence)}); "
                "make the same call again when it is back"
            )
    return scores


def engine_named(text: str, flag: str = "--engine") -> Engine:
    """Return the engine that an option names: KIND:MODEL, or a mapping as YAML text.

    Raises:
        ValueError: it names none.
    """
    if not text.strip():
        raise ValueError(f"{flag} is empty; name a model, such as transformers:MODEL or openai:MODEL")
    spec: Any = text.strip()
    if spec.startswith("{") or "\n" in spec:
        import yaml

        try:
            spec = yaml.safe_load(spec)
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(f"{flag} is not YAML: {error}") from error
    try:
        return engine_of(spec)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from error
