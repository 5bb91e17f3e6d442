"""Pairs and rated answers as the checks see them.

Not covered: how rows of preferences are read (`adjudge.io.preferences`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adjudge.data_pipelines.pairs.answers import number_of
from adjudge.data_pipelines.pairs.leak_config import LeaksConfig
from adjudge.data_pipelines.pairs.split import opening_of
from adjudge.io.columns import Column
from adjudge.io.preferences import PROMPTS, PreferenceColumns, is_preference, read_preference
from adjudge.io.values import MISSING, Text, exchange, plain, prompt_of, text_or_chat
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


def told_of(row: Mapping[str, Any], config: LeaksConfig) -> Iterator[Told]:
    """Yield what a row says: a pair, each pair of a list, or a rated answer.

    Raises:
        ValueError: it is neither a pair nor a rated answer; the text says why, with `*` for what it quotes of the row.
    """
    names = PreferenceColumns(prompt=config.prompt_column, chosen=config.chosen_column, rejected=config.rejected_column)
    try:
        if is_preference(row, names):
            yield from _pairs(row, names, config.first_column)
            return
        prompt, answer = _rated_text(row, config)
    except ValueError as error:
        raise ValueError(_QUOTED.sub("*", str(error))) from None
    label = number_of(_value(row, config.label_column))
    if label is None:
        raise ValueError("neither a pair nor a rated answer")
    yield Told(prompt=prompt, chosen=answer if label > 0.5 else None, rejected=None if label > 0.5 else answer)


_QUOTED: Final = re.compile(r"'[^']*'")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def _pairs(row: Mapping[str, Any], names: PreferenceColumns, first_column: str) -> Iterator[Told]:
    found = read_preference(row, names)
    texts = [_text(response) for response in found.responses]
    flag = _value(row, first_column) if first_column else None
    first = flag if isinstance(flag, bool) else _FLAGS.get(str(flag).lower())
    for better, worse in itertools.permutations(range(len(texts)), 2):
        if found.ranks[better] < found.ranks[worse]:
            if found.layout == "labelled" and not first_column:
                first = better < worse
            yield Told(prompt=opening_of(found.prompt), chosen=texts[better], rejected=texts[worse], first=first)


def _rated_text(row: Mapping[str, Any], config: LeaksConfig) -> tuple[str, str]:
    usual = (config.prompt_column,) if config.prompt_column else PROMPTS
    prompt = next((value for name in usual if (value := _value(row, name)) is not None), MISSING)
    asked, said = exchange(prompt_of(prompt), text_or_chat(plain(_value(row, config.response_column)), "response"))
    return opening_of(asked), _text(said)


def _value(row: Mapping[str, Any], name: str) -> Any:
    found = Column(name).of(row)
    return None if found is MISSING else found


def _text(response: Text) -> str:
    """The text of a response; of several turns, what the last one says."""
    return response if isinstance(response, str) else content_text(response[-1].get("content"))
