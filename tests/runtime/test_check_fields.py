"""What is not a sample is refused by name before a scorer sees it, by every way in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import adjudge
from adjudge.protocol import Sample
from adjudge.scoring.api import load, score_rows

SAID = [{"role": "assistant", "content": "5"}]
BAD = [
    ({"response": [{"content": "5"}]}, "no turn of the response has the role \"assistant\".*the roles are 'None'"),
    ({"response": [{"role": "model", "content": "5"}, {"role": "user"}]}, ".*the roles are 'model', 'user'"),
    ({"response": [{"from": "gpt", "value": "5"}]}, ".*the roles are 'None'"),
    ({"response": ["5"]}, "the response is \\['5'\\]; it must be text or a list of messages"),
    ({"prompt": None}, "the prompt is None; it must be text or a list of messages"),
    ({"finish_reason": 3}, "the finish_reason is 3; it must be text"),
    ({"finish_reason": "abort"}, "the finish_reason is 'abort': a server or its caller ended the response"),
    ({"finish_reason": "FinishReason.CANCELLED"}, "the finish_reason is 'FinishReason.CANCELLED': a server"),
    ({"id": None}, "the id is None; it must be text"),
    ({"extra": [1]}, "extra is \\[1\\]; it must be a mapping"),
    ({"extra": None}, "extra is None; it must be a mapping"),
]


@pytest.mark.parametrize(("fields", "told"), BAD, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("scorer", ["exact", "repetition", lambda prompt, response, reference: 1.0])
def test_a_field_of_another_kind_is_refused(fields: dict[str, Any], told: str, scorer: Any) -> None:
    sample = Sample(**{"prompt": "p", "response": "5", "reference": "5", **fields})
    good = Sample(prompt="p", response=SAID, reference="5")
    with pytest.raises(ValueError, match=f"sample 1: {told}"):
        adjudge.score_batch([good, sample], scorer)
    first, second = asyncio.run(score_rows(load(scorer), [good, sample]))
    assert first.status == "scored"
    assert (second.status, second.reason) == ("failed", "bad_sample")


@pytest.mark.parametrize("ended", ["", "stop", "eos", "content_filter", "tool_calls", "STOP", "end_turn", "anything"])
def test_other_ends_are_graded(ended: str) -> None:
    assert adjudge.score("p", "5", "5", scorer="exact", finish_reason=ended).value == 1.0


def test_a_response_without_turns_is_an_empty_answer() -> None:
    score = adjudge.score("p", [], "5", scorer="exact")
    assert (score.value, score.reason) == (0.0, "no_answer")
