"""Pairs and rated answers as the checks see them.

Not covered: pairs without a prompt, unless both sides are chats with a common beginning.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.data_pipelines.pairs.answers import number_of
from adjudge.data_pipelines.pairs.leak_config import LeaksConfig
from adjudge.data_pipelines.pairs.split import opening_of
from adjudge.io.columns import MISSING, Column
from adjudge.protocol import content_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A pair, or a rated answer.

    Attributes:
        prompt: its text; of a chat, the first turn that a user wrote.
        chosen: the better response, or a good answer; None if there is none.
        rejected: the worse response, or a bad answer; None if there is none.
        first: whether the better one came first; None where nothing says.
    """

    prompt: str
    chosen: str | None
    rejected: str | None
    first: bool | None = None

    @property
    def is_pair(self) -> bool:
        """Whether it compares two responses."""
        return self.chosen is not None and self.rejected is not None


def told_of(row: Mapping[str, Any], columns: LeaksConfig) -> Told:
    """Return what a row says.

    Raises:
        ValueError: it is neither a pair nor a rated answer; the text says why in a word.
    """
    prompt, chosen, rejected, response = (
        _value(row, name)
        for name in (columns.prompt_column, columns.chosen_column, columns.rejected_column, columns.response_column)
    )
    if prompt is None and _is_chat(chosen) and _is_chat(rejected):
        prompt = _common(chosen, rejected)
    if prompt is None or not (isinstance(prompt, str) or _is_chat(prompt)):
        raise ValueError("no_prompt")
    text = opening_of(prompt)
    if chosen is not None or rejected is not None:
        first = _value(row, columns.first_column) if columns.first_column else None
        return Told(
            prompt=text,
            chosen=_answer(chosen),
            rejected=_answer(rejected),
            first=first if isinstance(first, bool) else _FLAGS.get(str(first).lower()),
        )
    label = number_of(_value(row, columns.label_column))
    if response is None or label is None:
        raise ValueError("neither_pair_nor_rated")
    answer = _answer(response)
    return Told(prompt=text, chosen=answer if label > 0.5 else None, rejected=None if label > 0.5 else answer)


_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def _value(row: Mapping[str, Any], name: str) -> Any:
    found = Column(name).of(row)
    return None if found is MISSING else found


def _answer(value: Any) -> str:
    """The text of a response: text, or the last turn of a chat."""
    if isinstance(value, str):
        return value
    turns = [value] if isinstance(value, Mapping) else value
    if not _is_chat(turns):
        raise ValueError("no_response")
    try:
        return content_text(turns[-1].get("content"))
    except (ValueError, AttributeError):  # content of a kind that no chat has
        raise ValueError("no_response") from None


def _is_chat(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and bool(value)
        and all(isinstance(turn, Mapping) and "role" in turn for turn in value)
    )


def _common(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [a for a, b in itertools.takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False))]
