"""Scored answers to one prompt as rules see them, the pairs they make of them, and the split of prompts by a hash.

A prompt falls on the same side in every job with the same seed and share, and prompts that differ in case, punctuation
or white space fall on the same side.  Near-duplicates do not: `adjudge data dedup` comes before, and `adjudge data
leaks` looks afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from adjudge.data_pipelines.hygiene.minhash import tokens
from adjudge.io.columns import MISSING, Column
from adjudge.io.values import number_of
from adjudge.protocol import Message, content_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes:
        id: its id in the input; without one, its place in the group.
        score: a finite number; None where the rule asks for none and there is none.
        place: its number among the answers of the group, from 0, in the order of the input.
        row: the row it was read from, for rules that read further columns.
        judged: what holds the score's reason and evidence: the score, where it is an object, or else the row.
        at: its place in the row's lists; None where the row holds one answer.
    """

    id: str
    text: str
    score: float | None = None
    place: int = 0
    row: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, Any] = field(default_factory=dict)
    at: int | None = None

    def value(self, column: str) -> Any:
        """Return what a column says of this answer, its own item where it is a list for all of them; else None."""
        value = Column(column).of(self.row)
        if self.at is not None and isinstance(value, list):
            value = value[self.at] if self.at < len(value) else None
        return None if value is MISSING else value

    def said(self, path: str) -> Any:
        """Return what the scorer said beside the score ("reason", "evidence.stage"); None if nothing."""
        value = Column(path).of(self.judged)
        return None if value is MISSING else value

    def number(self, column: str) -> float | None:
        """Return the number in a column, or None; of a whole score that of one that is `scored`."""
        return number_of(self.value(column))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """Answers to one prompt."""

    name: str
    prompt: str | Sequence[Message]
    answers: tuple[Answer, ...]
    seed: int = 0
    rows: tuple[Mapping[str, Any], ...] = ()

    def ranked(self) -> list[tuple[Answer, float]]:
        """Return the answers that have a score, with it, best first; equal ones in an order that their texts draw."""
        known = [(answer, answer.score) for answer in self.answers if answer.score is not None]
        return sorted(known, key=lambda one: (-one[1], self.draw(one[0].text)))

    def draw(self, *texts: str) -> bytes:
        """Return 8 bytes that seed, group and texts decide, and no order of rows: to sort by is to draw."""
        return digest_of(str(self.seed), self.name or repr(self.prompt), *texts)


def digest_of(*texts: str) -> bytes:
    """Return 8 bytes that several texts decide, and where one ends and the next begins."""
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()


def squeezed(text: str) -> str:
    """Return a text with every run of white space as one blank: what two texts share that differ in nothing else."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two texts of which the first is better.

    Attributes:
        margin: by how much, 0 or more, in the units of what decided; None where nothing says.
        chosen_text: what to write for the answer that won; "" for its own text; likewise `rejected_text`.
        prompt: what both answer, where it is not the group's prompt.
        more: a value for each of the rule's own columns.
    """

    chosen: Answer
    rejected: Answer
    margin: float | None
    chosen_text: str = ""
    rejected_text: str = ""
    prompt: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, chosen: Answer, rejected: Answer, **more: Any) -> Self:
        """Return the pair of two scored answers; the margin is the difference of their scores."""
        known = chosen.score is not None and rejected.score is not None
        margin = chosen.score - rejected.score if known else None  # type: ignore[operator]
        return cls(chosen=chosen, rejected=rejected, margin=margin, more=more)

    @property
    def texts(self) -> tuple[str, str]:
        """The text of the better one and that of the worse one, as they are written."""
        return self.chosen_text or self.chosen.text, self.rejected_text or self.rejected.text


def side_of(prompt: str | Sequence[Message], *, share: float, seed: int) -> Literal["train", "test"]:
    """Return the side of a prompt; another seed puts others on the test side, which has this share of them.

    A chat is split by the first turn that a user wrote.
    """
    text = " ".join(tokens(opening_of(prompt), symbols=False))
    digest = hashlib.blake2b(f"{seed}\n{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return "test" if int.from_bytes(digest) < share * 2**64 else "train"


def opening_of(prompt: str | Sequence[Message]) -> str:
    """Return what all prompts of one conversation share: the text, or its first turn that a user wrote."""
    if isinstance(prompt, str):
        return prompt
    texts = [_text(turn) for turn in prompt if turn.get("role") == "user"]
    return texts[0] if texts else "\n".join(_text(turn) for turn in prompt)


def _text(turn: Message) -> str:
    content = turn.get("content")
    try:
        return content_text(content)
    except (ValueError, AttributeError):  # content of a kind that no chat has
        return repr(content)
