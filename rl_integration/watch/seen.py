"""What a watch keeps of a sample: a few numbers, whatever the sample's size.

Texts become 64-bit fingerprints of their two ends and their length, which costs the same for a giant as for a page.
Two texts that differ in the middle alone, and are equally long, are taken for one.

Not covered: tokens; lengths are in characters, which cost nothing to count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from adjudge.protocol import Sample, Score, Status
from adjudge.rl_integration.watch.report import form_of

_END = 500
"""Characters of each end of a text that its fingerprint is made of."""

_TURNS = 16
"""Texts at each end of a conversation that its fingerprint is made of."""


class Seen(NamedTuple):
    """One sample and its score.

    Attributes:
        length: of what the assistant wrote, in characters.
        response: fingerprint of the response; `prompt`, of the prompt, and `group`, of it and the group's name.
        cut_off: whether the response reached the token limit; None if nobody said.
        form: the marks of the response's form, a bit each.
    """

    value: float | None
    status: Status
    reason: str
    length: int
    response: int
    prompt: int
    group: int
    cut_off: bool | None
    form: int


def seen(sample: Sample, score: Score, prompt: Sequence[str], response: Sequence[str]) -> Seen:
    """Return what is kept of a sample, given its `texts_of`."""
    prompt_mark = fingerprint(prompt)
    return Seen(
        score.value,
        score.status,
        score.reason,
        sum(map(len, response)),
        fingerprint(response),
        prompt_mark,
        _joined([fingerprint(texts_of(sample.group)), prompt_mark]),
        None if sample.finish_reason is None else sample.finish_reason == "length",
        form_of(response),
    )


def texts_of(given: object, *, assistant: bool = False) -> Sequence[str]:
    """Return the texts of a prompt or a response, or only the assistant's; what is not text is passed over."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple):
        return ()
    texts: list[str] = []
    for turn in given:
        if not isinstance(turn, Mapping) or (assistant and turn.get("role") != "assistant"):
            continue
        content = turn.get("content")
        if isinstance(content, str):
            texts.append(content)
        elif isinstance(content, list | tuple):
            parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
            texts.extend(part for part in parts if isinstance(part, str))
    return texts


def fingerprint(texts: Sequence[str]) -> int:
    """Return a number that equal texts share, in every process."""
    if len(texts) > 2 * _TURNS:
        ends = (*texts[:_TURNS], *texts[-_TURNS:])
        return _joined([len(texts), *map(_mark, ends)])
    return _joined(list(map(_mark, texts)))


def _mark(text: str) -> int:
    if len(text) > 2 * _END:
        text = f"{len(text)}:{text[:_END]}{text[-_END:]}"
    return _digest(text.encode("utf-8", "surrogatepass"))


def _joined(numbers: Sequence[int]) -> int:
    return numbers[0] if len(numbers) == 1 else _digest(repr(numbers).encode())


def _digest(data: bytes) -> int:
    # Not `hash`, which differs from process to process: a run that is resumed goes on with the numbers it had.
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")
