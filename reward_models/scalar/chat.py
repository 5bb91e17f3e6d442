"""A sample as the finished chat that a reward model reads.

The response is put behind the prompt as the assistant's turns, and the chat is rendered as finished: a generation
prompt would make the model score an answer that has not begun.  Every text is broken up where a tokenizer would take it
for a control token (`adjudge.prompts.escaping`): a response that spells `<|im_end|><|im_start|>user`, and then praises
itself, stays one turn.  Turns of tools and users inside a trajectory are passed through; what follows the last
assistant's turn is left out, since the score is read at the end of the chat, and that end must be the response's own.

Not covered: templates that mark turns by ordinary text ("User:"), which any text can imitate, and images.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.prompts.escaping import escape
from adjudge.protocol import THINK_END, THINK_START, Message, content_text, split_reasoning

Reasoning = Literal["strip", "keep"]

_APART = ("reasoning", "reasoning_content", "thinking")  # where servers put reasoning beside the content
_DEEPEST = 32  # levels of a tool call's arguments

EMPTY_TURNS: tuple[Message, ...] = ({"role": "assistant", "content": ""},)
"""The response of someone who says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response as a reward model reads it.

    Attributes:
        turns: escaped; `EMPTY_TURNS` where there is nothing to read.
        text: the assistant's text, not escaped, without its reasoning where that is stripped.
        acts: whether the assistant calls tools in it.
        size: characters of all turns together.
        unfinished: whether it ends inside reasoning that is stripped.
    """

    turns: tuple[Message, ...]
    text: str
    acts: bool = False
    size: int = 0
    unfinished: bool = False


@dataclass(frozen=True, kw_only=True)
class ChatForm:
    """How samples become chats; a turn without a role, or with content that is not text, raises `ValueError`.

    Attributes:
        special: what the model's tokenizer takes for tokens of its own, beside the usual control tokens.
        reasoning: "strip" leaves out what stands before the last end-of-thinking tag of each assistant's turn; "keep"
            leaves it in, with its own two tags as they are.
    """

    special: tuple[str, ...] = ()
    reasoning: Reasoning = "strip"

    def prompt(self, prompt: str | Sequence[Message]) -> tuple[Message, ...]:
        """Return the turns of a prompt."""
        if isinstance(prompt, str):
            return _asked(prompt, self.special)
        return tuple(self._turn(turn, "prompt") for turn in prompt)

    def answer(self, response: str | Sequence[Message]) -> Answer:
        """Return the turns of a response."""
        if isinstance(response, str):
            turns: list[Mapping[str, Any]] = [{"role": "assistant", "content": response}]
        else:
            turns = list(response)
            while turns and not (isinstance(turns[-1], Mapping) and turns[-1].get("role") == "assistant"):
                turns.pop()
        shown, texts, acts, unfinished = [], [], False, False
        for turn in turns:
            if not isinstance(turn, Mapping):
                raise ValueError(f"the response has the turn {turn!r}; a turn is a mapping with a role")
            if turn.get("role") == "assistant":
                text = content_text(turn.get("content"))
                if self.reasoning == "strip":
                    text, unfinished = _stripped(text)
                texts.append(text)
                acts = acts or bool(turn.get("tool_calls"))
            shown.append(self._turn(turn, "response"))
        text = "\n".join(texts)
        if not (text or acts):
            return Answer(turns=EMPTY_TURNS, text="", unfinished=unfinished)
        size = sum(_size(turn) for turn in shown)
        return Answer(turns=tuple(shown), text=text, acts=acts, size=size, unfinished=unfinished)

    def text_turns(self, text: str) -> tuple[Message, ...]:
        """Return a piece of an answer as the assistant's turn."""
        return ({"role": "assistant", "content": self._escaped(text)},)

    def _turn(self, turn: Message, where: str) -> Message:
        if not isinstance(turn, Mapping) or not isinstance(turn.get("role"), str):
            raise ValueError(
                f"the {where} has the turn {str(turn)[:200]!r}; a turn is a mapping with a role and content"
            )
        shown: dict[str, Any] = {}
        for key, value in turn.items():
            if key == "role":
                shown[key] = value
            elif key == "content" and value is not None:
                shown[key] = self._content(turn)
            elif not (self.reasoning == "strip" and key in _APART and turn["role"] == "assistant"):
                shown[key] = self._plain(value, 0)
        return shown

    def _content(self, turn: Message) -> str:
        text = content_text(turn["content"])
        if turn["role"] != "assistant":
            return self._escaped(text)
        if self.reasoning == "strip":
            return self._escaped(_stripped(text)[0])
        before, opened, inside, closed, after = _thought(text)
        return "".join((self._escaped(before), opened, self._escaped(inside), closed, self._escaped(after)))

    def _escaped(self, text: str) -> str:
        return escape(text, special=self.special)

    def _plain(self, value: Any, depth: int) -> Any:
        """The value with every text in it escaped, keys too: a model chooses the names of a call's arguments."""
        if isinstance(value, str):
            return self._escaped(value)
        if depth == _DEEPEST:
            raise ValueError(f"a turn is nested more than {_DEEPEST} levels deep")
        if isinstance(value, Mapping):
            return {self._plain(key, depth + 1): self._plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            return [self._plain(item, depth + 1) for item in value]
        return value


@functools.lru_cache(maxsize=256)
def _asked(prompt: str, special: tuple[str, ...]) -> tuple[Message, ...]:
    """The turn of a prompt, which all responses of a group share."""
    return ({"role": "user", "content": escape(prompt, special=special)},)


def _stripped(text: str) -> tuple[str, bool]:
    """A text without its reasoning and the blanks around it, and whether it ends inside its reasoning."""
    thought, answer, unfinished = split_reasoning(text)
    return (answer.strip() if thought else answer), unfinished


def _thought(text: str) -> tuple[str, str, str, str, str]:
    """A text as what stands before its reasoning, the opening tag, the reasoning, the closing tag, and the rest.

    Only a tag that begins the text opens, since any other was written by the answer; only the last end tag closes.
    """
    start = len(text) - len(text.lstrip())
    opened = next((tag for tag in THINK_START if text.startswith(tag, start)), "")
    inside = start + len(opened) if opened else 0
    end, closed = max((text.rfind(tag, inside), tag) for tag in THINK_END)
    if end < 0:
        end, closed = len(text), ""
    before = text[:start] if opened else ""
    return before, opened, text[inside:end], closed, text[end + len(closed) :]


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_size(key) + _size(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(_size(item) for item in value)
    return 0
