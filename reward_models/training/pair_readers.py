"""From rows of data files to preferences, lists and ratings.

| format | fields of a row |
|---|---|
| `preference` | the layouts of `adjudge.io.preferences` |
| `rating` | `prompt`, `response` (or `completion`), and a number or true/false for each attribute |

A row that cannot be used raises `ValueError` that says why in a few words; `preference_data` counts those.

Not covered: answers of several turns; the last turn alone may differ.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from adjudge.io.preferences import PreferenceColumns, is_preference, read_preference
from adjudge.io.values import Text, exchange, plain, prompt_of, text_or_chat
from adjudge.protocol import Message, content_text
from adjudge.reward_models.training.pairs import Pair, opening
from adjudge.reward_models.training.rankings import Ranking
from adjudge.reward_models.training.ratings import Rating

Example = Pair | Ranking | Rating
Format = Literal["auto", "preference", "rating"]

_RATED = ("label", "score", "rating")
_COLUMNS = frozenset(item.name for item in fields(PreferenceColumns) if item.type == "str")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How rows are read.

    Attributes:
        columns: our name of a field to the column that holds it.
        attributes: columns of ratings, in the order of the head's outputs; () for the first of label, score, rating.
    """

    columns: Mapping[str, str]
    attributes: tuple[str, ...] = ()

    def field(self, row: Mapping[str, Any], name: str) -> Any:
        """Return what the row has under our name of a field; None if there is nothing."""
        return row.get(self.columns.get(name, name))

    def preference(self) -> PreferenceColumns:
        """Return the columns that say which response is better."""
        named: dict[str, Any] = {name: column for name, column in self.columns.items() if name in _COLUMNS}
        return PreferenceColumns(**named)


def format_of(row: Mapping[str, Any], reading: Reading) -> Format:
    """Return the format that a row looks like.

    Raises:
        ValueError: it looks like none.
    """
    if is_preference(row, reading.preference()):
        return "preference"
    if reading.field(row, "response") is not None or reading.field(row, "completion") is not None:
        return "rating"
    raise ValueError(
        f"the columns {', '.join(map(str, row)) or '(none)'} fit no format; name the columns or the format"
    )


def preference(row: Mapping[str, Any], reading: Reading) -> Pair | Ranking:
    """Return the pair, or the list, of a row."""
    found = read_preference({**row, "tie": reading.field(row, "tie")}, reading.preference())
    responses = [_answer(response) for response in found.responses]
    prompt = _plain_prompt(found.prompt)
    weight, source = _number(row, reading, "weight", 1.0), _text(row, reading, "source")
    group = _group(row, reading, prompt)
    if found.layout == "listed":
        return Ranking(
            prompt=prompt, responses=tuple(responses), ranks=found.ranks, weight=weight, group=group, source=source
        )
    first, second = responses if found.ranks[0] <= found.ranks[1] else reversed(responses)
    return Pair(
        prompt=prompt,
        chosen=first,
        rejected=second,
        margin=_number(row, reading, "margin", found.margin),
        probability=_number(row, reading, "probability", None),
        tie=found.ranks[0] == found.ranks[1],
        weight=weight,
        group=group,
        source=source,
        paraphrase=_text(row, reading, "paraphrase"),
    )


def rating(row: Mapping[str, Any], reading: Reading) -> Rating:
    """Return the rated response of a row."""
    response = reading.field(row, "response")
    if response is None:
        response = reading.field(row, "completion")
    if response is None:
        raise ValueError("the response is missing")
    values = tuple(_rated(reading.field(row, name), name) for name in reading.attributes or rated_columns(row, reading))
    given = reading.field(row, "prompt")
    if given is None:
        raise ValueError("the prompt is missing")
    said, answer = exchange(prompt_of(given), text_or_chat(plain(response), "response"))
    prompt = _plain_prompt(said)
    return Rating(
        prompt=prompt,
        response=_answer(answer),
        values=values,
        weight=_number(row, reading, "weight", 1.0),
        group=_group(row, reading, prompt),
        source=_text(row, reading, "source"),
    )


def rated_columns(row: Mapping[str, Any], reading: Reading) -> tuple[str, ...]:
    """Return the column of a row that holds its rating, where nobody has named one: of label, score, rating."""
    return tuple(itertools.islice((name for name in _RATED if reading.field(row, name) is not None), 1))


READERS: Mapping[str, Callable[[Mapping[str, Any], Reading], Example]] = {"preference": preference, "rating": rating}


def _answer(response: Text) -> str:
    """The text of a response: text, or one turn of an assistant."""
    if isinstance(response, str):
        return response
    if len(response) != 1:
        raise ValueError("a response has several turns, or none; only the last turn may differ")
    (turn,) = response
    if turn.get("role") != "assistant" or turn.get("content") is None:
        raise ValueError("a response is not an assistant's turn with content")
    return content_text(turn["content"])


def _plain_prompt(prompt: Text) -> str | list[Message]:
    return prompt if isinstance(prompt, str) else list(prompt)


def _group(row: Mapping[str, Any], reading: Reading, prompt: str | Sequence[Message]) -> str:
    given = reading.field(row, "group")
    return opening(prompt) if given is None else str(given)


def _number(row: Mapping[str, Any], reading: Reading, name: str, default: Any) -> Any:
    value = reading.field(row, name)
    if value is None:
        return default
    if not _is_number(value):
        raise ValueError(f"{name} is no finite number")
    return float(value)


def _rated(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or _is_number(value):
        return float(value)
    raise ValueError(f"{name} is neither a finite number nor true or false")


def _text(row: Mapping[str, Any], reading: Reading, name: str) -> str:
    value = reading.field(row, name)
    return value if isinstance(value, str) else ""


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold: JSON spells NaN, Infinity, and integers of any length."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
