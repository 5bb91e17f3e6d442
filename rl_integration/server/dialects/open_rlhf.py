"""OpenRLHF's remote reward: `--reward.remote_url http://HOST:PORT/get_reward`.

It sends whole texts (prompt and response in one) with the prompts and labels beside them, one sample or none in a
request, and takes numbers.  Requests without a sample are answered without one, since it waits for them.

The texts are decoded with the tokenizer's special tokens, so a response ends in `<|im_end|>` or `</s>`, and a text may
begin with `<s>` where its prompt does not.  Which marks those are is not guessed, because a response may spell any of
them: say `?strip_end=` and `?strip_start=`, as often as there are marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from unicodedata import normalize

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from adjudge.io.values import reference_of
from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.row import row_name, without_ends
from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.errors import bad_request
from adjudge.rl_integration.server.base.json_bodies import aside_if_large, within_limit
from adjudge.rl_integration.server.dialects.exchange import Fallback, ScorerName, Taken, numbers


class GetReward(Taken):
    """What OpenRLHF sends."""

    query: list[str] = Field(fail_fast=True)
    prompts: list[str] = Field(default_factory=list, fail_fast=True)
    labels: list[Any] = Field(default_factory=list)


class Rewards(BaseModel):
    """What OpenRLHF takes."""

    rewards: list[float]
    scores: list[float]
    extra_logs: dict[str, list[float]]


Starts = Annotated[
    list[str], Query(default_factory=list, description="What a text may have before its prompt, such as <s>.")
]
Ends = Annotated[
    list[str], Query(default_factory=list, description="What a response may end in, such as <|im_end|>; several times.")
]
CutOff = Annotated[bool, Query(description="Whether a response that ends in nothing of strip_end was cut off.")]


def open_rlhf(host: Host, router: APIRouter) -> None:
    """Add the route."""

    @router.post("/get_reward", summary="Score for OpenRLHF")
    async def get_reward(
        request: Request,
        asked: GetReward,
        strip_start: Starts,
        strip_end: Ends,
        cut_off: CutOff = False,
        scorer: ScorerName = None,
        fallback: Fallback = None,
    ) -> Rewards:
        name = host.only_scorer(scorer)
        if cut_off and not any(strip_end):
            raise bad_request("cut_off=true, and no strip_end says what an answer ends in: all would be cut off")

        def samples_asked() -> list[Sample]:
            rows = within_limit(_rows(asked), host.config.max_samples)
            return [_sample(row, strip_start, strip_end, cut_off) for row in rows]

        samples = await aside_if_large(request, samples_asked)
        scores = await host.score(request, name, samples)
        rewards = numbers(scores, fallback)
        valid = [float(score.value is not None) for score in scores]
        return Rewards(rewards=rewards, scores=rewards, extra_logs={"reward_valid": valid})


def _rows(asked: GetReward) -> list[tuple[str, str, Any]]:
    count = len(asked.query)
    prompts = asked.prompts or [""] * count
    labels = asked.labels or [None] * count
    if not len(prompts) == len(labels) == count:
        raise bad_request(
            f"query has {count} texts, prompts {len(prompts)} and labels {len(labels)}; send as many of each"
        )
    return list(zip(asked.query, prompts, labels, strict=True))


def _sample(row: tuple[str, str, Any], strip_start: list[str], strip_end: list[str], cut_off: bool) -> Sample:
    query, prompt, label = row
    response, ended = without_ends(_response(query, prompt, strip_start), strip_end)
    reason = "stop" if ended else "length" if cut_off else None
    # OpenRLHF says of no answer whose siblings it has; prompt and label do, and a `cohort` gathers them by these.
    group = row_name(prompt, label) if prompt else ""
    return Sample(prompt=prompt, response=response, reference=reference_of(label), group=group, finish_reason=reason)


def _response(query: str, prompt: str, starts: Sequence[str]) -> str:
    for start in ("", *starts):
        for asked in (prompt, normalize("NFC", prompt), normalize("NFKC", prompt)):  # as tokenizers do
            # a tokenizer may put a space between the mark and the text
            for head in (f"{start}{asked}", f"{start} {asked}" if start else ""):
                if head and query.startswith(head):
                    return query[len(head) :]
    if not prompt:
        return query
    raise bad_request(
        "a query does not begin with its prompt, so its response cannot be told; send query = prompt + response, and "
        "name what stands before the prompt (?strip_start=<s>)"
    )
