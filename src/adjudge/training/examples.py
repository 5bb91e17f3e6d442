"""Preferences, rankings and ratings as plain data, and how rows of data files become them.

| format | fields of a row |
|---|---|
| `preference` | the layouts of `adjudge.io.preferences` |
| `rating` | `prompt`, `response` (or `completion`), and a number or true/false for each attribute |

A row that cannot be used raises `ValueError` that says why in a few words; `data_files` counts those.

Not covered: answers of several turns; the last turn alone may differ.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from adjudge.io.preferences import PreferenceColumns, is_preference, read_preference
from adjudge.io.values import Text, exchange, plain, prompt_of, text_or_chat
from adjudge.protocol import Message, content_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two responses to one prompt, and what is known of which is better.

    Attributes:
        prompt: text, or the chat turns that were answered.
        chosen: the better response, text; of a tie, the first one.
        rejected: the worse response, text.
        margin: by how much it is better, or how strongly that is felt, in the units of the data; None if not told.
        probability: chance that `chosen` is preferred, in [0, 1] (a soft label); None for a plain label.
        tie: neither is better.
        weight: how much the pair counts, at least 0.
        group: pairs of one group are all trained on or all held out; "" for the prompt's own group.
        source: where the pair comes from, for reports.
        paraphrase: what `chosen` says in other words; "" for none.
    """

    prompt: str | Sequence[Message]
    chosen: str
    rejected: str
    margin: float | None = None
    probability: float | None = None
    tie: bool = False
    weight: float = 1.0
    group: str = ""
    source: str = ""
    paraphrase: str = ""

    def __post_init__(self) -> None:
        _check(self.prompt, self.weight)
        for side in ("chosen", "rejected"):
            if not isinstance(getattr(self, side), str):
                raise ValueError(f"{side} is not text")
        if not self.chosen.strip() and not self.rejected.strip():
            raise ValueError("both responses are empty")
        if self.chosen == self.rejected:
            raise ValueError("both responses are the same text")
        if self.margin is not None and not math.isfinite(self.margin):
            raise ValueError(f"the margin is {self.margin!r}; it must be finite")
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise ValueError(f"the probability is {self.probability!r}; it must be in [0, 1]")
        if self.tie and self.probability not in (None, 0.5):
            raise ValueError(f"the pair is a tie with probability {self.probability!r}; give one of the two")


def _check(prompt: object, weight: float) -> None:
    """Raise `ValueError` unless the prompt is text or a list of chat turns with roles, and the weight can count."""
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight is {weight!r}; it must be finite, and 0 or more")
    if isinstance(prompt, str):
        return
    if not isinstance(prompt, Sequence) or not prompt:
        raise ValueError("the prompt is neither text nor a list of chat turns")
    for turn in prompt:
        if not isinstance(turn, Mapping) or not isinstance(turn.get("role"), str):
            raise ValueError("a turn of the prompt has no role")
        if not ("content" in turn or "tool_calls" in turn):
            raise ValueError("a turn of the prompt has no content")


def opening(prompt: str | Sequence[Message]) -> str:
    """Return what two prompts of one conversation share: the text, or its first turn that a user wrote."""
    if isinstance(prompt, str):
        return " ".join(prompt.split())
    for turn in prompt:
        if turn.get("role") == "user":
            return " ".join(str(turn.get("content")).split())
    return repr([dict(turn) for turn in prompt])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Responses to one prompt with their ranks.

    Attributes:
        prompt: text, or the chat turns that were answered.
        responses: at least two texts.
        ranks: one whole number for each, 0 for the best; equal ranks say nothing about each other.
        weight: as in `Pair`; so `group` and `source`.
    """

    prompt: str | Sequence[Message]
    responses: tuple[str, ...]
    ranks: tuple[int, ...]
    weight: float = 1.0
    group: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        _check(self.prompt, self.weight)
        if len(self.responses) < 2 or len(self.responses) != len(self.ranks):
            raise ValueError(f"{len(self.responses)} responses and {len(self.ranks)} ranks; give two or more, as many")
        if not all(isinstance(text, str) for text in self.responses):
            raise ValueError("a response is not text")
        if not all(isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 for rank in self.ranks):
            raise ValueError(f"the ranks are {self.ranks!r}; they must be whole numbers, 0 for the best")
        if len(set(self.ranks)) < 2:
            raise ValueError("all responses have one rank")
        for text in {text for text in self.responses if self.responses.count(text) > 1}:
            if len({rank for rank, other in zip(self.ranks, self.responses, strict=True) if other == text}) > 1:
                raise ValueError("one text has two ranks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A response and its ratings, one for each attribute of the data set.

    Attributes:
        prompt: text, or the chat turns that were answered.
        response: text.
        values: one number for each attribute; None where there is no label.
        weight: as in `Pair`; so `group` and `source`.
    """

    prompt: str | Sequence[Message]
    response: str
    values: tuple[float | None, ...]
    weight: float = 1.0
    group: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        _check(self.prompt, self.weight)
        if not isinstance(self.response, str):
            raise ValueError("the response is not text")
        if all(value is None for value in self.values):
            raise ValueError("the response has no rating")
        if not all(value is None or math.isfinite(value) for value in self.values):
            raise ValueError(f"the ratings are {self.values!r}; they must be finite")


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
    """Return the format that a row looks like, or raise `ValueError`."""
    if is_preference(row, reading.preference()):
        return "preference"
    if reading.field(row, "response") is not None or reading.field(row, "completion") is not None:
        return "rating"
    raise ValueError(
        f"the columns {', '.join(map(str, row)) or '(none)'} fit no format; name the columns or the format"
    )


def preference(row: Mapping[str, Any], reading: Reading) -> Pair | Ranking:
    """Return the pair, or the list, of a row."""
    read = read_preference({**row, "tie": reading.field(row, "tie")}, reading.preference())
    responses = [_answer(response) for response in read.responses]
    common = _common(row, reading, read.prompt)
    if read.layout == "listed":
        return Ranking(responses=tuple(responses), ranks=read.ranks, **common)
    first, second = responses if read.ranks[0] <= read.ranks[1] else reversed(responses)
    paraphrase = reading.field(row, "paraphrase")
    return Pair(
        chosen=first,
        rejected=second,
        margin=_number(row, reading, "margin", read.margin),
        probability=_number(row, reading, "probability", None),
        tie=read.ranks[0] == read.ranks[1],
        paraphrase=paraphrase if isinstance(paraphrase, str) else "",
        **common,
    )


def rating(row: Mapping[str, Any], reading: Reading) -> Rating:
    """Return the rated response of a row."""
    response = reading.field(row, "response")
    if response is None:
        response = reading.field(row, "completion")
    if response is None:
        raise ValueError("the response is missing")
    values = tuple(_rated(reading.field(row, name), name) for name in reading.attributes or rated_columns(row, reading))
    asked = reading.field(row, "prompt")
    if asked is None:
        raise ValueError("the prompt is missing")
    prompt, answer = exchange(prompt_of(asked), text_or_chat(plain(response), "response"))
    return Rating(response=_answer(answer), values=values, **_common(row, reading, prompt))


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


def _common(row: Mapping[str, Any], reading: Reading, prompt: Text) -> dict[str, Any]:
    """The fields that every example has."""
    asked = prompt if isinstance(prompt, str) else list(prompt)
    group, source = reading.field(row, "group"), reading.field(row, "source")
    return {
        "prompt": asked,
        "weight": _number(row, reading, "weight", 1.0),
        "group": opening(asked) if group is None else str(group),
        "source": source if isinstance(source, str) else "",
    }


def _number(row: Mapping[str, Any], reading: Reading, name: str, default: Any) -> Any:
    value = reading.field(row, name)
    if value is None:
        return default
    if not _is_number(value):
        raise ValueError(f"{name} is not a finite number")
    return float(value)


def _rated(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or _is_number(value):
        return float(value)
    raise ValueError(f"{name} is neither a finite number nor true or false")


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold: JSON spells NaN, Infinity, and integers of any length."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
