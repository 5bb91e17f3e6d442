"""Finished chats as token ids, exactly as the scorer reads them (`adjudge.reward_models.scalar.chat`).

Chats go through the model's own template, with nothing added for the model to go on, and are tokenized without further
special tokens: no second begin token, and an end token where the template has one.  A template that leaves it out is
refused, and a row that is too long is reported, never cut.

Not covered: inputs that are no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.template_lint import lint
from adjudge.protocol import Message
from adjudge.reward_models.scalar.chat import ChatForm, Reasoning

# A reward model never reads a generation prompt, so a template without one is no fault here.
_HARMLESS = frozenset({"no_generation_prompt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRow:
    """A prompt with a response.

    Attributes:
        tokens: of the finished chat.
        start: the first token of the response.
    """

    tokens: tuple[int, ...]
    start: int


class FinishedChats:
    """Turns prompts with responses into rows of tokens.

    Args:
        tokenizer: of `transformers`, with a chat template.
        model: its name, for messages.
        max_length: most tokens of a row.
        reasoning: whether the reasoning of answers is left out ("strip") or read ("keep").

    Attributes:
        warnings: what is odd about the template, one sentence each.

    Raises:
        ValueError: there is no chat template, or it makes chats that cannot be scored.
    """

    def __init__(self, tokenizer: Any, *, model: str, max_length: int, reasoning: Reasoning = "strip"):
        if not tokenizer.chat_template:
            raise ValueError(
                f"the model {model!r} has no chat template; set model.chat_template to a file with one, or to plain"
            )
        findings = [item for item in lint(tokenizer) if item.code not in _HARMLESS]
        if errors := [f"{item.code}: {item.text}" for item in findings if item.severity == "error"]:
            raise ValueError(f"the chat template of {model!r} cannot be used to train on: {'; '.join(errors)}")
        self.warnings = tuple(f"{item.code}: {item.text}" for item in findings if item.severity == "warning")
        self.max_length = max_length
        self._reader = PromptTokens(tokenizer, model=model, window=max_length)
        self._form = ChatForm(special=self._reader.special_tokens, reasoning=reasoning)

    def rows(self, prompt: str | Sequence[Message], responses: Sequence[str]) -> list[ChatRow] | str:
        """Return a row for each response; or, in a few words, why there are none.

        Args:
            prompt: text, which is a user's turn, or turns.
            responses: an assistant's answers.
        """
        try:
            turns = self._form.prompt(prompt)
            answers = [self._form.answer(response) for response in responses]
        except ValueError as error:
            return str(error)
        if any(answer.unfinished for answer in answers):
            return "a response ends inside its reasoning"
        chats: list[list[Message]] = [[*turns, *answer.turns] for answer in answers]
        begun, *found = [*self._reader.read([turns]), *self._reader.read(chats, finished=True)]
        rows = []
        for tokens in found:
            if isinstance(tokens, Fault):
                return tokens.detail
            if len(tokens) > self.max_length:
                return "longer than max_length"
            rows.append(ChatRow(tokens=tokens, start=0 if isinstance(begun, Fault) else _shared(begun, tokens)))
        return rows


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two rows begin with in common; at least one token of the second stays."""
    count = 0
    for first, second in zip(one, other[:-1], strict=False):
        if first != second:
            break
        count += 1
    return count
