"""Reward models as vLLM and SGLang serve them: `POST /classify`, `POST /score` and `POST /v1/embeddings`.

verl asks the first of a vLLM server and the last of an SGLang server, and reads the last number of the last entry.
The numbers are the scorer's own values, not probabilities: nothing squashes them.

A text of `input` is judged as the response to an empty prompt, and a conversation (`messages`) as the response at its
end; `/score` takes prompts and responses apart, so it is the better question where the caller can choose.

Not covered: texts as token ids, images, and the parameters of tokenizing; scorers do that themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.errors import bad_request
from adjudge.rl_integration.server.base.json_bodies import aside_if_large, within_limit
from adjudge.rl_integration.server.dialects.exchange import Fallback, ScorerName, Taken, divided, numbers

Texts = str | Annotated[list[str], Field(fail_fast=True)]
_PAIRS = (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))


class Asked(Taken):
    """What all three requests share."""

    model: str | None = Field(None, description="Chooses the scorer if one is called so; else it is sent back.")
    use_activation: bool | None = Field(None, description="True is refused: values are sent as they are.")


class Inputs(Asked):
    """Texts, or a conversation."""

    input: Texts | None = None
    messages: Annotated[list[dict[str, Any]], Field(fail_fast=True)] | None = None


class Pairs(Asked):
    """Prompts and responses, under any of vLLM's names; one prompt may stand for all."""

    text_1: Texts | None = None
    text_2: Texts | None = None
    queries: Texts | None = None
    documents: Texts | None = None
    items: Texts | None = None
    data_1: Texts | None = None
    data_2: Texts | None = None


class Usage(BaseModel):
    """Tokens of the models that were called."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int


class Listed(BaseModel):
    """What all three answers share."""

    id: str
    object: Literal["list"] = "list"
    created: int
    model: str
    usage: Usage


class Class(BaseModel):
    """One text's value, in the place of a probability."""

    index: int
    label: str | None
    probs: list[float]
    num_classes: int = 1


class Classes(Listed):
    """The answer of `/classify`."""

    data: list[Class]


class PairScore(BaseModel):
    """One pair's value."""

    index: int
    object: Literal["score"] = "score"
    score: float


class PairScores(Listed):
    """The answer of `/score`."""

    data: list[PairScore]


class Embedding(BaseModel):
    """One text's value, in the place of a vector."""

    index: int
    object: Literal["embedding"] = "embedding"
    embedding: list[float]


class Embeddings(Listed):
    """The answer of `/v1/embeddings`."""

    data: list[Embedding]


def pooling(host: Host, router: APIRouter) -> None:
    """Add the routes."""

    async def values(
        request: Request, asked: Inputs | Pairs, scorer: str | None, fallback: float | None
    ) -> tuple[Iterator[tuple[int, float]], dict[str, Any]]:
        samples = await aside_if_large(request, lambda: _samples(asked))
        if asked.use_activation:
            raise bad_request("use_activation=true: values are sent as they are; leave it out")
        model = asked.model if asked.model in host.service.names else None
        name = host.only_scorer(scorer if scorer is not None else model)
        scores = await host.score(request, name, within_limit(samples, host.config.max_samples))
        head = {"id": request.state.request_id, "created": int(time.time()), "model": asked.model or name}
        return enumerate(numbers(scores, fallback)), {**head, "usage": _usage(scores)}

    @router.post("/classify", summary="Score as vLLM classifies")
    async def classify(
        request: Request, asked: Inputs, scorer: ScorerName = None, fallback: Fallback = None
    ) -> Classes:
        rewards, head = await values(request, asked, scorer, fallback)
        return Classes(data=[Class(index=at, label=None, probs=[one]) for at, one in rewards], **head)

    @router.post("/score", summary="Score as vLLM scores pairs")
    async def score(request: Request, asked: Pairs, scorer: ScorerName = None, fallback: Fallback = None) -> PairScores:
        rewards, head = await values(request, asked, scorer, fallback)
        return PairScores(data=[PairScore(index=at, score=one) for at, one in rewards], **head)

    @router.post("/v1/embeddings", summary="Score as SGLang embeds with a reward model")
    async def embeddings(
        request: Request, asked: Inputs, scorer: ScorerName = None, fallback: Fallback = None
    ) -> Embeddings:
        rewards, head = await values(request, asked, scorer, fallback)
        return Embeddings(data=[Embedding(index=at, embedding=[one]) for at, one in rewards], **head)


def _samples(asked: Inputs | Pairs) -> list[Sample]:
    if isinstance(asked, Pairs):
        return _pairs(asked)
    if (asked.input is None) == (asked.messages is None):
        raise bad_request("give either input (a text or texts) or messages (a conversation)")
    if asked.messages is not None:
        prompt, response = divided(asked.messages)
        return [Sample(prompt=prompt, response=response)]
    return [Sample(prompt="", response=text) for text in _list(asked.input)]


def _pairs(asked: Pairs) -> list[Sample]:
    given: Mapping[str, Texts] = asked.model_dump(exclude_none=True, exclude={"model", "use_activation"})
    names = next((pair for pair in _PAIRS if set(pair) == set(given)), None)
    if names is None:
        known = ", ".join(" with ".join(pair) for pair in _PAIRS)
        raise bad_request(f"there are {', '.join(given) or 'no texts'}; give {known}")
    prompts, responses = (_list(given[name]) for name in names)
    if len(prompts) == 1:
        prompts *= len(responses)
    if len(prompts) != len(responses):
        raise bad_request(
            f"{names[0]} has {len(prompts)} texts and {names[1]} {len(responses)}; give one prompt, or one for each"
        )
    return [Sample(prompt=prompt, response=text) for prompt, text in zip(prompts, responses, strict=True)]


def _list(texts: Texts | None) -> list[str]:
    return [texts] if isinstance(texts, str) else texts or []


def _usage(scores: list[Score]) -> Usage:
    asked = sum(score.cost.prompt_tokens for score in scores)
    written = sum(score.cost.completion_tokens for score in scores)
    return Usage(prompt_tokens=asked, total_tokens=asked + written, completion_tokens=written)
