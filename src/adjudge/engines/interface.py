"""What an engine offers: text from a language model, and log-probabilities and logits of one.

Three implementations (`transformers`, `vllm`, `openai`) answer the same calls with the same records.  A call takes many
prompts and returns one result for each, in order; what went wrong with a prompt is a `Fault` in its place, so that a
dead server costs nobody else's answer.  The result for a prompt depends on nothing but the prompt, the call's
parameters and the engine's fingerprint: not on the batch, the order, or what was asked before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeAlias, TypeGuard, runtime_checkable

from adjudge.options import Range, check_options
from adjudge.protocol import NO_COST, Cost, Message

Prompt: TypeAlias = str | Sequence[Message]
"""Text, used as it is and tokenized without special tokens; or chat turns, rendered with the model's own template.
`classify` reads a text with the special tokens that the model's tokenizer puts around one, as it was trained.
Chat turns that end with an assistant's turn are continued; otherwise the template's generation prompt is added.
Classifiers (`classify`, `classify_tokens`) read a chat as finished: as the template renders it, with nothing added."""

TokenIds: TypeAlias = tuple[int, ...]

Row: TypeAlias = Prompt | TokenIds
"""A prompt, or its tokens, used as they are: for calls about single tokens, whose places the caller must know."""

Labels: TypeAlias = Mapping[str, Sequence[str]]
"""Label to the texts that stand for it: `{"yes": ("Yes", " Yes", "yes"), "no": ("No", " No", "no")}`."""


def is_tokens(row: Row) -> TypeGuard[TokenIds]:
    """Return whether a row is given as tokens."""
    return isinstance(row, tuple) and bool(row) and all(isinstance(token, int) for token in row)


def check_pairs(prompts: Sequence[Row], texts: Sequence[str]) -> None:
    """Raise `ValueError` unless there is a text for each prompt."""
    if len(prompts) != len(texts):
        raise ValueError(
            f"reference_logprobs was given {len(prompts)} prompts and {len(texts)} texts; give one for each"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How text is generated.

    Attributes:
        n: completions for each prompt.
        max_tokens: most tokens of one completion.
        temperature: 0 takes the likeliest token each time.
        top_p: share of probability that is sampled from, in (0, 1].
        top_k: how many of the likeliest tokens are sampled from; 0 for all.
        stop: texts before which a completion ends; they are not part of it.
        choice: two or more texts; the completion is one of them, and how likely the model was to say any of them is its
            `Completion.mass`.  Engines that can do this have `chooses`.  A server that cannot continue an assistant's
            turn is asked without the one that a chat ends with, so the turns before must say what is wanted.
        seed: with a temperature, the same prompt gets the same completions for the same seed, whatever the batch.
            A server may not promise that; then the engine's fingerprint is all there is.
    """

    n: Annotated[int, Range(ge=1)] = 1
    max_tokens: Annotated[int, Range(ge=1)] = 1024
    temperature: Annotated[float, Range(ge=0)] = 0.0
    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Range(ge=0)] = 0
    stop: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        check_options(self, "sampling option")
        if self.choice and (len(set(self.choice)) < max(len(self.choice), 2) or not all(self.choice)):
            raise ValueError(f"sampling option choice={self.choice!r}; it must be two or more different texts")
        if self.choice and (self.stop or self.top_p < 1 or self.top_k):
            raise ValueError("sampling option choice goes with neither stop, top_p nor top_k; leave these out")
        if isinstance(self.stop, str) or not all(isinstance(text, str) and text for text in self.stop):
            raise ValueError(f"sampling option stop={self.stop!r}; it must be a tuple of texts, none of them empty")
        if self.n > 1 and self.temperature == 0:
            raise ValueError(f"sampling option n={self.n} with temperature=0; all would be the same: set a temperature")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why there is no result for a prompt.

    Attributes:
        reason: `engine_unavailable`, `engine_timeout`, `engine_overloaded` or `engine_error` of `adjudge.reasons`.
        detail: what was seen, for a person; never a secret, never more than 500 characters.
        too_long: the prompt does not fit into the model's window.  Where a response made it so, that is the response's
            doing, and must not save it from a zero.
        cost: what was paid before it came to that.
    """

    reason: str
    detail: str
    too_long: bool = False
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One generated text.

    Attributes:
        text: what the model wrote, without special tokens, and without its reasoning where the engine separates that.
        finish_reason: "stop", "length", or what the server says.
        reasoning: the separated reasoning, else "".
        tokens: how many tokens were generated.
        mass: with `Sampling.choice`, how likely the model was to say one of the texts, in [0, 1], had it been free;
            None where the engine cannot tell, and without a choice.
    """

    text: str
    finish_reason: str
    reasoning: str = ""
    tokens: int = 0
    mass: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What was generated for one prompt: `Sampling.n` completions, in order, and what they cost together."""

    completions: tuple[Completion, ...]
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLogprobs:
    """How likely each label is as the continuation of a prompt.

    Attributes:
        logprobs: label to the log of the summed probability of its texts; minus infinity becomes -1e9.
        mass: the probability of all labels together, in [0, 1]; where it is small, the model was about to say something
            else, and the labels' shares mean little.
        cost: what it took.
    """

    logprobs: Mapping[str, float]
    mass: float
    cost: Cost = NO_COST

    def shares(self) -> dict[str, float]:
        """Return the labels' probabilities given that one of them comes: they sum to 1."""
        top = max(self.logprobs.values())
        weights = {label: math.exp(value - top) for label, value in self.logprobs.items()}
        total = sum(weights.values())
        return {label: weight / total for label, weight in weights.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLogprobs:
    """How likely a given text is, token by token, as the continuation of a prompt.

    Attributes:
        tokens: the text's tokens as strings.
        logprobs: natural log-probability of each, given the prompt and the tokens before it.
        cost: what it took.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Logits:
    """A classifier's raw outputs for one prompt: one number per class, no activation applied."""

    values: tuple[float, ...]
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogits:
    """A token classifier's raw outputs for one prompt.

    Attributes:
        token_ids: the tokens of the prompt.
        values: for each of them, one number per class.
        cost: what it took.
    """

    token_ids: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    cost: Cost = NO_COST


@runtime_checkable
class Engine(Protocol):
    """A language model that answers.

    Every call returns one result per prompt, in order.  A call that the engine cannot do at all (a server without
    prompt log-probabilities, a model without a classification head) raises `ValueError` naming the remedy; whatever
    befalls single prompts is a `Fault`.  Calls may overlap; an engine may be used from any thread and any event loop.
    """

    @property
    def name(self) -> str:
        """The implementation: "transformers", "vllm" or "openai"."""
        ...

    @property
    def model(self) -> str:
        """The model's name or folder, as it was given."""
        ...

    @property
    def fingerprint(self) -> str:
        """Text that changes whenever the same prompt could get another result."""
        ...

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions of prompts."""
        ...

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        """Return how likely each label comes next; texts of several tokens are scored by teacher forcing."""
        ...

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        """Return how likely each text is as the continuation of the prompt beside it."""
        ...

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Return a sequence classifier's raw outputs."""
        ...

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Return a token classifier's raw outputs."""
        ...

    async def close(self) -> None:
        """Give back what the engine holds; a second call does nothing."""
        ...
