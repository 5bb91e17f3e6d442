"""Labels as tokens: which token sequences stand for a label, how their probabilities are read, and how they add up.

A text is tokenized by itself, as it would be after a line break, and its tokens are appended to the prompt's.  So
"Yes" and " Yes" are different texts with every tokenizer (some put a space before a text that stands alone), and the
label's tokens do not depend on the prompt.  How a tokenizer would have joined the end of the prompt with the label is
not asked: a prompt should end where a token ends, as chat templates do.

One text may begin another ("1" and "10"): then "1" stands for every continuation that begins with it, but for those
that begin with "10".  Nothing is counted twice, whichever labels the two belong to.

An engine that returns log-probabilities of chosen tokens at the place of the next one, and reuses the computation for
a prompt that it has seen (vLLM's `logprob_token_ids`), needs one short read for each token of a label (`reads_for`),
not a pass over the whole prompt for each label.

With `Sampling.choice` an engine gives one of several texts and nothing else (`chosen`).  Each is as likely as the model
finds it, with a blank before it or not and in any usual case, so that longer texts and those that begin like others are
not favoured, as they are where tokens are masked one by one.

Not covered: other ways to write a text in tokens ("Ye" + "s"), which models hardly ever choose; their probability is
part of what `mass` lacks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from adjudge.engines.interface import (
    Completion,
    Engine,
    Fault,
    Generation,
    LabelLogprobs,
    Labels,
    Prompt,
    Sampling,
)
from adjudge.protocol import NO_COST, Cost

K = TypeVar("K")

Tokens: TypeAlias = tuple[int, ...]
Tokenize: TypeAlias = Callable[[str], Sequence[int]]
"""Text to token ids, without special tokens."""

NEVER = -1e9  # in place of minus infinity, which JSON does not know


def label_texts(labels: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return, for each label, the texts that count as it: as written and with a blank before it, in any usual case.

    Labels of one letter keep their case, because "a" is a word; so do all labels if two would share a text.
    """
    loose = {label: _variants(_cases(label)) for label in labels}
    every = [text for texts in loose.values() for text in texts]
    if len(set(every)) == len(every):
        return loose
    return {label: _variants([label]) for label in labels}


def _cases(label: str) -> list[str]:
    if len(label) == 1 or not label.isalpha():
        return [label]
    return [label, label.lower(), label.capitalize(), label.upper()]


def _variants(cases: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for case in cases for text in (case, f" {case}")))


def continuation_tokens(tokenize: Tokenize, text: str) -> Tokens:
    """Return the tokens of a text that continues another."""
    anchor, joined = tuple(tokenize("\n")), tuple(tokenize("\n" + text))
    if joined[: len(anchor)] == anchor:
        return joined[len(anchor) :]
    return tuple(tokenize(text))  # the text begins with something that merges with a line break


def owners_of(labels: Labels, key: Callable[[str], K]) -> dict[K, str]:
    """Return the label that each text stands for, by a key of the texts; texts of one label with equal keys are one.

    Raises:
        ValueError: there is no label, a label has no text, a text has no token, or two labels share a text.
    """
    if not labels:
        raise ValueError("label_logprobs was given no labels; give at least one, such as {'yes': ('Yes', ' Yes')}")
    owners: dict[K, str] = {}
    for label, texts in labels.items():
        if isinstance(texts, str) or not texts:
            raise ValueError(f"the label {label!r} has the texts {texts!r}; give a list of texts that stand for it")
        for text in texts:
            if not (one := key(text)):
                raise ValueError(f"the label {label!r} has the text {text!r}, which has no token; give another")
            if owners.setdefault(one, label) != label:
                raise ValueError(
                    f"the labels {owners[one]!r} and {label!r} share the text {text!r}; a text stands for one label"
                )
    return owners


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTokens:
    """The token sequences of all labels.

    Attributes:
        owners: each sequence with the label it stands for; no two are equal, and none is empty.
        labels: the labels, in the order given.
    """

    owners: Mapping[Tokens, str]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, labels: Labels, tokenize: Tokenize) -> LabelTokens:
        """Return the sequences of labels; texts of one label with equal tokens become one.

        Raises:
            ValueError: there is no label, a label has no text, a text has no token, or two labels share a sequence.
        """
        owners = owners_of(labels, lambda text: continuation_tokens(tokenize, text))
        return cls(owners=owners, labels=tuple(labels))

    @property
    def longest(self) -> int:
        """How many tokens the longest sequence has."""
        return max(map(len, self.owners))

    def answer(self, logprobs: Mapping[Tokens, float], cost: Cost = NO_COST) -> LabelLogprobs:
        """Return how likely the labels are, of what `summed` takes."""
        by_label, mass = self.summed(logprobs)
        return LabelLogprobs(logprobs=by_label, mass=mass, cost=cost)

    def summed(self, logprobs: Mapping[Tokens, float]) -> tuple[dict[str, float], float]:
        """Return the log-probability of each label and the mass of all.

        Args:
            logprobs: for each sequence of `owners`, the natural log-probability that the continuation begins with it.
        """
        terms: dict[str, list[float]] = {label: [] for label in self.labels}
        roots: list[float] = []
        for tokens, label in self.owners.items():
            longer = [other for other in self.owners if _begins(other, tokens)]
            # Of those that begin with this one, only the next ones are taken away: the others are part of them.
            nearest = [one for one in longer if not any(_begins(one, other) for other in longer)]
            terms[label].append(_without(logprobs[tokens], [logprobs[other] for other in nearest]))
            if not any(_begins(tokens, other) for other in self.owners):
                roots.append(logprobs[tokens])
        summed = {label: max(_log_sum(values), NEVER) for label, values in terms.items()}
        return summed, min(math.exp(_log_sum(roots)), 1.0)


def _begins(longer: Tokens, shorter: Tokens) -> bool:
    return len(longer) > len(shorter) and longer[: len(shorter)] == shorter


def _without(whole: float, parts: Sequence[float]) -> float:
    """The log of a probability less that of some of its parts."""
    if whole == -math.inf:
        return whole
    rest = 1.0 - math.fsum(math.exp(part - whole) for part in parts)
    return whole + math.log(rest) if rest > 0 else -math.inf


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(value - top) for value in values))


MAX_TOKENS = 128
"""How many tokens vLLM returns for one read (its MAX_LOGPROB_TOKEN_IDS)."""


def reads_for(sequences: Iterable[Tokens]) -> dict[Tokens, tuple[int, ...]]:
    """Return what has to be read: after which tokens, the log-probabilities of which next ones.

    The first entry is the read after the prompt itself: `()`.
    """
    wanted: dict[Tokens, dict[int, None]] = {(): {}}
    for sequence in sequences:
        for at, token in enumerate(sequence):
            wanted.setdefault(sequence[:at], {})[token] = None
    return {prefix: tuple(tokens) for prefix, tokens in wanted.items()}


def portions(tokens: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return tokens in portions that vLLM takes."""
    return [tokens[at : at + MAX_TOKENS] for at in range(0, len(tokens), MAX_TOKENS)]


def chained(sequences: Iterable[Tokens], read: Mapping[Tokens, float]) -> dict[Tokens, float]:
    """Return the log-probability of each sequence.

    Args:
        sequences: those that `reads_for` was given.
        read: for each of them and each of their beginnings, the log-probability of the last token after those before.
    """
    return {one: math.fsum(read[one[: at + 1]] for at in range(len(one))) for one in sequences}


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
