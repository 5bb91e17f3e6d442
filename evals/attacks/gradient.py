"""An attacker that reads the gradient of a model in this process: greedy coordinate gradient (GCG, arXiv 2307.15043).

The suffix's positions take turns.  The reward, or log p(yes) - log p(no), is differentiated by the embedding of the
word that stands there, some of the words towards which it rises most are asked about, and the best stays.  A gradient
is not a question, as is usual for those who have the weights.

A word counts by its first token, as a spelling of yes or no does, and a slope is true nearby alone: that is why
candidates are asked about.

Not covered: ensembles, heads with several outputs, judges that write before they judge.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from adjudge.engines.interface import Fault, LabelLogprobs, Labels, Logits, Prompt
from adjudge.engines.label_tokens import LabelTokens
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.evals.attacks.attacker import JointAttacker, Over, Queries
from adjudge.evals.attacks.attackers import LENGTH, moved, suffix
from adjudge.protocol import Sample

if TYPE_CHECKING:
    import torch

_STEEPEST: Final = 64  # words, of which candidates are drawn
_CANDIDATES: Final = 24


class GradientTokens(JointAttacker):
    """Improve a suffix of eight words on each row, one row after the other: a model answers one thread at a time."""

    name: ClassVar[str] = "gradient"

    async def search(self, queries: Sequence[Queries], rng: random.Random) -> None:
        """Climb until each row is over.

        Raises:
            ValueError: the scorer has no model in this process, or none that gives a reward, yes or no.
        """
        for each in queries:
            try:
                await _climb(each, rng)
            except Over:
                continue


async def _climb(queries: Queries, rng: random.Random) -> None:
    """Begin anew with random words wherever a pass over all positions asks nothing new."""
    before = queries.used
    while True:
        if queries.used == before:
            current = rng.choices(queries.words, k=LENGTH)
            (best,) = await queries.ask([suffix(current)])
        before = queries.used
        for place in rng.sample(range(LENGTH), LENGTH):
            scorer, sample = queries.white_box(suffix(current))
            rises = await slopes(scorer, sample, current, place, queries.words)
            steepest = sorted(zip(rises, queries.words, strict=True), reverse=True)[:_STEEPEST]
            tried = rng.sample([word for _, word in steepest], k=min(_CANDIDATES, len(steepest)))
            current, best = await moved(queries, current, place, tried, best, rng)


async def slopes(scorer: Any, sample: Sample, current: Sequence[str], place: int, words: Sequence[str]) -> list[float]:
    """Return how fast a score rises towards each of some words at a place of a suffix, to first order.

    The response of the sample ends with the suffix, whose words are the current ones.
    """
    engine = scorer.resolved() if hasattr(scorer, "resolved") else None
    if not isinstance(engine, TransformersEngine):
        raise ValueError(
            f"the scorer {scorer.name!r} has no model in this process; give one with a transformers engine"
        )
    noting = _Noting(engine)
    await dataclasses.replace(scorer, engine=noting, **({"model": ""} if hasattr(scorer, "model") else {})).score(
        [sample]
    )
    whole = "".join(f" {word}" for word in current)
    start = len("".join(f" {word}" for word in current[:place]))
    rises = [_slopes(engine, prompt, labels, whole, start, words) for prompt, labels in noting.asked]
    found = [row for row in rises if row]
    if not found:
        raise ValueError(
            f"the scorer {scorer.name!r} asks its model nothing that holds the suffix; a gradient says nothing"
        )
    return [sum(column) for column in zip(*found, strict=True)]


class _Noting(TransformersEngine):
    """The same engine, with the same model, that notes what is asked of it."""

    def __init__(self, engine: TransformersEngine) -> None:
        self.__dict__.update(engine.__dict__)
        self.asked: list[tuple[Prompt, Labels]] = []

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        self.asked += [(one, {}) for one in prompts]
        return await super().classify(prompts)

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        self.asked += [(one, labels) for one in prompts]
        return await super().label_logprobs(prompts, labels)


def _slopes(
    engine: TransformersEngine, prompt: Prompt, labels: Labels, whole: str, start: int, words: Sequence[str]
) -> list[float]:
    """The slopes for one prompt; none where the suffix does not stand in it."""
    import torch

    reader, network = engine.opened("generate" if labels else "classify")
    text = prompt if isinstance(prompt, str) else reader.rendered(prompt, finished=not labels)
    if isinstance(text, Fault) or whole not in text:
        return []
    body, before = tuple(reader.text(text)), tuple(reader.text(text[: text.rindex(whole) + start]))
    if body[: len(before)] != before:  # a token reaches over the place
        return []
    (row,) = reader.read([prompt], finished=not labels, special=not labels)
    if isinstance(row, Fault):
        return []
    front = next(at for at in range(len(row)) if row[at : at + len(body)] == body)  # special tokens stand around it
    entered: list[torch.Tensor] = []

    def enters(_: Any, __: Any, output: torch.Tensor) -> torch.Tensor:
        entered.append(output.detach().requires_grad_())
        return entered[-1]

    handle = network.embeddings.register_forward_hook(enters)
    try:
        outputs = network.read([row], [[len(row) - 1]])[0] if labels else network.pooled([row])[0]
    finally:
        handle.remove()
    (gradient,) = torch.autograd.grad(_objective(outputs, labels, reader), entered[0])
    first = [reader.text(f" {word}")[0] for word in words]
    rises: list[float] = (network.embeddings.weight[first] @ gradient.flatten(0, -2)[front + len(before)]).tolist()
    return rises


def _objective(outputs: torch.Tensor, labels: Labels, reader: PromptTokens) -> torch.Tensor:
    """The reward, or how much likelier yes is than all other labels."""
    if not labels:
        if len(outputs) != 1:
            raise ValueError(f"the model has {len(outputs)} outputs; a gradient is taken of one reward")
        return outputs[0]
    good = next((label for label in labels if label.lower() == "yes"), None)
    if good is None:
        raise ValueError(f"the labels are {', '.join(labels)}; a gradient is taken of a judge that says yes or no")
    owners = LabelTokens.of(labels, reader.text).owners
    yes = [tokens[0] for tokens, label in owners.items() if label == good]
    no = [tokens[0] for tokens, label in owners.items() if label != good]
    return outputs[yes].logsumexp(0) - outputs[no].logsumexp(0)
