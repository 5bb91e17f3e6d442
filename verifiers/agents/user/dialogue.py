"""A dialogue with a simulated user: who the user is, how they feel, and what they hear.

    start 40; after each turn: feeling + change, the change clipped to [-10, 10], the feeling to [0, 100]
    100: ends happy    from 70: A    from 40: B    from 10: C    below 10: ends angry
    reward: last feeling / 100

Numbers and bands are those of RLVER and SAGE (`Tencent/digitalhuman` at 6dcfa78).

The user hears what the assistant says aloud: no reasoning, no tool calls, no system turns.  What the assistant says
before the user speaks again is one turn, in however many messages it comes, so that nobody is moved ten times by ten
messages.

Not covered: who says what a change is (a model does, see `scorer`), and who wrote the user's turns of a finished
dialogue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from adjudge.prompts.scorer import guard
from adjudge.protocol import Message, Sample, content_text, split_reasoning
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import MAX_CHARACTERS, number_of, reject_unknown, shown

Band: TypeAlias = Literal["happy", "A", "B", "C", "angry"]

START: Final = 40.0
MAX_CHANGE: Final = 10
TOP: Final = 100.0
LEAST: Final = 10.0
"""Below this the conversation is over."""

MANNERS: Final[dict[Band, str]] = {
    "happy": "at peace; nothing is left to say",
    "A": "moved and open; the person shares more, and thanks for what helped",
    "B": "neither won nor lost; the person answers and waits what comes",
    "C": "hurt or annoyed; the person is short, doubts, or complains",
    "angry": "done with this conversation",
}


@dataclass(frozen=True, slots=True)
class Emotion:
    """A feeling, from 0 to 100."""

    value: float = START

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and 0 <= self.value <= TOP):
            raise ValueError(f"a feeling is {self.value!r}; it must be a number from 0 to 100")

    @property
    def band(self) -> Band:
        """Return where it lies."""
        if self.value >= TOP:
            return "happy"
        if self.value >= 70:
            return "A"
        if self.value >= 40:
            return "B"
        return "C" if self.value >= LEAST else "angry"

    @property
    def over(self) -> bool:
        """Return whether the conversation has ended with it."""
        return self.band in ("happy", "angry")

    @property
    def reward(self) -> float:
        """What a conversation is worth that ends with it, in [0, 1]."""
        return self.value / TOP

    def after(self, change: float, most: float = MAX_CHANGE) -> Emotion:
        """Return the feeling after a change, clipped to `most` to either side; `ValueError` once it is over."""
        if not math.isfinite(change):
            raise ValueError(f"a change of feeling is {change!r}; it must be a finite number")
        if self.over:
            raise ValueError(f"the conversation ended {self.band}; nothing changes the feeling any more")
        return Emotion(min(TOP, max(0.0, self.value + min(most, max(-most, change)))))


_FIELDS = ("persona", "background", "goal", "start")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who somebody is, what happened to them, what they hope for, and their feeling at first, None for the scorer's."""

    persona: str
    background: str | None = None
    goal: str | None = None
    start: float | None = None

    def texts(self) -> dict[str, str | None]:
        """Return the fields of a prompt."""
        return {"persona": self.persona, "background": self.background, "goal": self.goal}


def read_person(reference: Any) -> Person:
    """Return the person of a reference: a text, or `{"persona": .., "background": .., "goal": .., "start": ..}`."""
    given = {"persona": reference} if isinstance(reference, str) else reference
    where = "the simulated user's reference"
    if not isinstance(given, Mapping):
        raise BadReferenceError(f'{where} is {shown(reference)}; give a text, or {{"persona": .., "goal": ..}}')
    reject_unknown(given, _FIELDS, where=where)
    texts = {name: _text(given, name, where) for name in ("persona", "background", "goal")}
    if texts["persona"] is None:
        raise BadReferenceError(f"{where} has no persona; say in a few words who the person is")
    start = given.get("start")
    if start is not None:
        start = number_of(start, where=where, what="start")
        if not LEAST <= start < TOP:
            raise BadReferenceError(f"{where} has the start {start:g}; it must be from 10 to below 100")
    return Person(persona=texts["persona"], background=texts["background"], goal=texts["goal"], start=start)


def _text(given: Mapping[str, Any], name: str, where: str) -> str | None:
    text = given.get(name)
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_CHARACTERS:
        raise BadReferenceError(
            f"{where} has the {name} {shown(text)}; give a text of at most {MAX_CHARACTERS} characters"
        )
    return text


_LONGEST = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is heard of what the assistant says at one time, and where in `response_text` that stands.

    `history` is the same object for all turns of a dialogue, and `place` where this turn is in it.
    """

    history: Sequence[Message]
    place: int
    text: str
    start: int
    end: int

    @property
    def silent(self) -> bool:
        """Whether there is nothing in it to hear: no word, or an opening without anything behind it."""
        return bool(guard(self.text, min_words=1, max_characters=_LONGEST))

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """All turns until and with this one."""
        return tuple(self.history[: self.place + 1])


def turns_of(sample: Sample, reasoning: Literal["strip", "keep"]) -> list[Turn]:
    """Return the assistant's turns in a response, in order; those in the prompt are only heard.

    With "strip" nobody hears what stands before an end-of-thinking tag, nor a turn that never stops thinking.  Raises
    `ValueError` if a message is none, or its content is neither text nor a list of parts.
    """
    heard: list[Message] = list(_opening(sample.prompt, reasoning))
    if isinstance(sample.response, str):
        response: Sequence[Message] = [{"role": "assistant", "content": sample.response}]
    else:
        response = sample.response
    turns: list[Turn] = []
    said: list[str] = []
    start = at = 0

    def close() -> None:
        text = "\n".join(text for text in said if text)
        turns.append(Turn(history=heard, place=len(heard), text=text, start=start, end=at - 1))
        heard.append({"role": "assistant", "content": text})
        said.clear()

    for message in response:
        role, whole = _read(message)
        if role == "assistant":
            start = start if said else at
            said.append(audible(whole, reasoning))
            at += len(whole) + 1
        elif role == "user":
            if said:
                close()
            heard.append({"role": "user", "content": whole})
    if said:
        close()
    return turns


def _opening(prompt: str | Sequence[Message], reasoning: Literal["strip", "keep"]) -> Iterator[Message]:
    if isinstance(prompt, str):
        yield {"role": "user", "content": prompt}
        return
    for message in prompt:
        role, text = _read(message)
        if role == "user":
            yield {"role": "user", "content": text}
        elif role == "assistant":
            yield {"role": "assistant", "content": audible(text, reasoning)}


def _read(message: Any) -> tuple[Any, str]:
    content = message.get("content") if isinstance(message, Mapping) else 0
    parts = content if isinstance(content, Sequence) else ()
    if not isinstance(message, Mapping) or not all(isinstance(part, str | Mapping) for part in parts):
        raise ValueError(f"a message is {repr(message)[:80]}; it must have a role, and text or a list of parts")
    return message.get("role"), content_text(content)


def audible(text: str, reasoning: Literal["strip", "keep"]) -> str:
    """Return what is heard of a text."""
    if reasoning == "keep":
        return text.strip()
    _, aloud, unfinished = split_reasoning(text)
    return "" if unfinished else aloud.strip()
