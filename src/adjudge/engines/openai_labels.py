"""Labels among the likeliest tokens: what a server without token ids lets one know, and what it leaves open.

Such a server shows the texts and log-probabilities of the K likeliest next tokens.  A label's text that is one of them
is known.  Any other text is not, but bounded: its first token is either outside the list, and then no likelier than the
least likely token shown (nor than all that the list leaves over), or it is a shown token that begins the text.

Reading labels' probabilities from vLLM: which next tokens to ask for, and after which of the labels' first tokens.

vLLM returns exact log-probabilities of chosen tokens at the place of the next token (`logprob_token_ids`), and reuses
the computation for a prompt that it has seen.  So a label of several tokens costs one short read for each of its
tokens, not a pass over the whole prompt for each label, as scoring the labels as part of the prompt would.

Not covered: texts of several tokens beyond that bound; score them with a vLLM server or an embedded engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from adjudge.engines.interface import Labels
from adjudge.engines.label_tokens import NEVER, Tokens
from adjudge.engines.openai_answers import BadAnswer, TopTokens

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


def labels_among(labels: Labels, top: TopTokens, unseen: float) -> tuple[dict[str, float], float]:
    """Return each label's log-probability, and the mass of what was seen.

    A label of which nothing was seen gets its upper bound, provided that all that was not seen has at most the share
    `unseen` of the labels' probability; so each label's share is within `unseen` of the truth.

    Raises:
        BadAnswer: what was not seen may be more than that.
    """
    seen: dict[str, float] = {}
    bounds: dict[str, float] = {}
    for label, texts in labels.items():
        wanted = set(texts)
        seen[label] = math.fsum(math.exp(value) for token, value in top.logprobs if token in wanted)
        bounds[label] = _bound(sorted(wanted - {token for token, _ in top.logprobs}), top)
    mass = math.fsum(seen.values())
    bound = math.fsum(bounds.values())
    if bound > unseen * (mass + bound):
        worst = max(bounds, key=lambda label: bounds[label])
        raise BadAnswer(
            f"the label {worst!r} is not fully known: {len(top.logprobs)} of the likeliest tokens were shown, and its "
            f"texts that are not among them may have a probability of up to {bounds[worst]:.2g}, beside {mass:.2g} for "
            "all that was seen; ask for more `top_logprobs`, allow a larger share `unseen`, or use a vLLM server"
        )
    known = {label: seen[label] or bounds[label] for label in labels}
    return {label: max(math.log(p), NEVER) if p > 0 else NEVER for label, p in known.items()}, min(mass, 1.0)


def _bound(texts: Sequence[str], top: TopTokens) -> float:
    """Return the largest probability that texts can have together, none of which is a token shown."""
    if not texts:
        return 0.0
    left = max(0.0, 1.0 - math.fsum(math.exp(value) for _, value in top.logprobs))
    beginning = [value for token, value in top.logprobs if any(token and text.startswith(token) for text in texts)]
    return min(left, len(texts) * math.exp(top.floor)) + math.fsum(math.exp(value) for value in beginning)
