"""Preferences made up for these tests: polite answers beat rude ones, and length says nothing."""

from __future__ import annotations

import random

from adjudge.training.examples import Pair

KIND = ("gladly", "thanks", "please", "welcome", "happy")
RUDE = ("whatever", "nonsense", "stupid", "boring", "never")
PLAIN = tuple(
    "the a on it is here so that with we can look at this table and find a good place for each of them".split()
)


def sentence(chooser: random.Random, mood: tuple[str, ...], words: int) -> str:
    """A sentence in which one word in five shows the mood."""
    said = [chooser.choice(mood) if place % 5 == 2 else chooser.choice(PLAIN) for place in range(words)]
    return " ".join(said).capitalize() + "."


def polite_pairs(count: int, *, seed: int) -> list[Pair]:
    """Pairs of which the polite side is preferred; four to a prompt."""
    chooser = random.Random(seed)
    return [
        Pair(
            prompt=f"Question {place // 4}: where is it?",
            chosen=sentence(chooser, KIND, chooser.randint(5, 40)),
            rejected=sentence(chooser, RUDE, chooser.randint(5, 40)),
        )
        for place in range(count)
    ]
