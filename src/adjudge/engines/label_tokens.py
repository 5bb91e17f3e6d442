"""Labels as tokens: which token sequences stand for a label, and how their probabilities add up.

A text is tokenized by itself, as it would be after a line break, and its tokens are appended to the prompt's.  So
"Yes" and " Yes" are different texts with every tokenizer (some put a space before a text that stands alone), and the
label's tokens do not depend on the prompt.  How a tokenizer would have joined the end of the prompt with the label is
not asked: a prompt should end where a token ends, as chat templates do.

One text may begin another ("1" and "10"): then "1" stands for every continuation that begins with it, but for those
that begin with "10".  Nothing is counted twice, whichever labels the two belong to.

Not covered: other ways to write a text in tokens ("Ye" + "s"), which models hardly ever choose; their probability is
part of what `mass` lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from adjudge.engines.interface import Labels

K = TypeVar("K")

Tokens: TypeAlias = tuple[int, ...]
Tokenize: TypeAlias = Callable[[str], Sequence[int]]
"""Text to token ids, without special tokens."""

NEVER = -1e9  # in place of minus infinity, which JSON does not know


def label_texts(labels: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return, for each label, the texts that count as it: as written and with a blank before it, in any usual case.

    Labels of one letter keep their case, because "a" is a word; so do all labels if two would share a text.
    """
    loose = {label: _variants(label, _cases(label)) for label in labels}
    every = [text for texts in loose.values() for text in texts]
    if len(set(every)) == len(every):
        return loose
    return {label: _variants(label, [label]) for label in labels}


def _cases(label: str) -> list[str]:
    if len(label) == 1 or not label.isalpha():
        return [label]
    return [label, label.lower(), label.capitalize(), label.upper()]


def _variants(label: str, cases: Sequence[str]) -> tuple[str, ...]:
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
