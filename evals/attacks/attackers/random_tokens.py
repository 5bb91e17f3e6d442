"""Random tokens behind the bad response: what every search that learns must beat.

The greedy search begins with an empty suffix, so it may find a short one.  It is the coordinate search of GCG (arXiv
2307.15043) without the gradient: candidates are drawn evenly, and one position at a time the best of some stays.

Not covered: learning from any answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from adjudge.evals.attacks.attacker import Attacker
from adjudge.evals.attacks.queries import Queries
from adjudge.evals.attacks.wrap import Wrap

LENGTH = 8  # most tokens of a suffix
_BATCH = 32


class RandomTokens(Attacker):
    """Suffixes of one to eight tokens, drawn evenly."""

    name: ClassVar[str] = "random"

    async def search(self, queries: Queries, rng: random.Random) -> None:
        """Ask about one batch of random suffixes after the other."""
        while True:
            drawn = [rng.choices(queries.words, k=rng.randint(1, LENGTH)) for _ in range(_BATCH)]
            await queries.ask([suffix(tokens) for tokens in drawn])


def suffix(tokens: Sequence[str]) -> Wrap:
    """Return tokens as a text behind the bad response, with a space before each; empty ones are left out."""
    return Wrap(after="".join(f" {token}" for token in tokens if token))


_CANDIDATES = 24  # for a position


class GreedyTokens(Attacker):
    """Improve a suffix of eight positions, each of which may stay empty."""

    name: ClassVar[str] = "greedy"

    async def search(self, queries: Queries, rng: random.Random) -> None:
        """Go through the positions in a new random order each time; equal values move too, to leave plateaus."""
        current = [""] * LENGTH
        (best,) = await queries.ask([suffix(current)])
        words = ("", *queries.words)
        while True:
            for place in rng.sample(range(LENGTH), LENGTH):
                tried = rng.sample(words, k=min(_CANDIDATES, len(words)))
                options = [[*current[:place], token, *current[place + 1 :]] for token in tried]
                values = await queries.ask([suffix(tokens) for tokens in options])
                top = max(values)
                if top >= best:
                    best = top
                    current = options[rng.choice([at for at, value in enumerate(values) if value == top])]
