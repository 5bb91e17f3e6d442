"""The turns of a dialogue as the simulated user hears them.

The user hears what the assistant says aloud: no reasoning, no tool calls, no system turns.  What the assistant says
before the user speaks again is one turn, in however many messages it comes, so that nobody is moved ten times by ten
messages.

Not covered: who wrote the user's turns of a finished dialogue; they are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.prompts.scorer import guard
from adjudge.protocol import Message, Sample, content_text, split_reasoning

_LONGEST = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the assistant says at one time.

    Attributes:
        history: all turns of the user and the assistant, the same object for all turns of a dialogue.
        place: where in it this turn is.
        text: what is heard of it.
        start: first character of it in `response_text` of the sample.
        end: one past the last.
    """

    history: Sequence[Message]
    place: int
    text: str
    start: int
    end: int

    @property
    def silent(self) -> bool:
        """Whether there is nothing in it to hear: no word, or an opening without anything behind it."""
        return bool(guard(self.text, shortest=1, longest=_LONGEST))

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """All turns until and with this one."""
        return tuple(self.history[: self.place + 1])


def turns_of(sample: Sample, reasoning: Literal["strip", "keep"]) -> list[Turn]:
    """Return the assistant's turns in a response, in order; those in the prompt are only heard.

    Args:
        sample: its prompt opens the dialogue.
        reasoning: "strip" leaves out what stands before an end-of-thinking tag, and all of a turn that never stops
            thinking.

    Raises:
        ValueError: a message is none, or its content is neither text nor a list of parts.
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
    """Return the role and the text of a message.

    Raises:
        ValueError: it is no message.
    """
    content = message.get("content") if isinstance(message, Mapping) else 0
    parts = content if isinstance(content, Sequence) else ()
    if not isinstance(message, Mapping) or not all(isinstance(part, str | Mapping) for part in parts):
        raise ValueError(f"a message is {repr(message)[:80]}; it must have a role, and text or a list of parts")
    return message.get("role"), content_text(content)


def audible(text: str, reasoning: Literal["strip", "keep"]) -> str:
    """Return what is heard of a message."""
    if reasoning == "keep":
        return text.strip()
    _, aloud, unfinished = split_reasoning(text)
    return "" if unfinished else aloud.strip()
