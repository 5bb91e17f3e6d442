"""One of several texts and nothing else: how `Sampling.choice` is done where an engine tells how likely labels are.

Each text is as likely as the model finds it, with a blank before it or not and in any usual case, so that longer texts
and those that begin like others are not favoured, as they are where tokens are masked one by one.  What the model
would rather have said instead stays known: `Completion.mass`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from adjudge.engines.interface import Completion, Engine, Fault, Generation, LabelLogprobs, Prompt, Sampling
from adjudge.engines.label_tokens import label_texts


async def chosen(engine: Engine, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
    """Return completions of prompts, each one of `sampling.choice`; at temperature 0 the likeliest.

    With a temperature, the same prompt gets the same choices for the same seed, whatever the batch.
    """
    found = await engine.label_logprobs(prompts, label_texts(sampling.choice))
    return [
        one if isinstance(one, Fault) else of_labels(one, sampling, prompt)
        for one, prompt in zip(found, prompts, strict=True)
    ]


def of_labels(found: LabelLogprobs, sampling: Sampling, prompt: Prompt) -> Generation:
    """Return the completions of a prompt of which it is known how likely each choice is."""
    texts = [_drawn(found, sampling, f"{sampling.seed} {index} {prompt!r}") for index in range(sampling.n)]
    made = tuple(Completion(text=text, finish_reason="stop", mass=found.mass) for text in texts)
    return Generation(completions=made, cost=found.cost)


def _drawn(found: LabelLogprobs, sampling: Sampling, luck: str) -> str:
    top = max(found.logprobs.values())
    if sampling.temperature == 0:
        return next(text for text, value in found.logprobs.items() if value == top)
    weights = [math.exp((value - top) / sampling.temperature) for value in found.logprobs.values()]
    return random.Random(luck).choices(list(found.logprobs), weights)[0]
