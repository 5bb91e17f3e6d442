"""A row that says which of several responses to a prompt is better, in the layouts that people have.

| layout | columns |
|---|---|
| TRL, explicit prompt | `prompt`, `chosen`, `rejected`: texts or turns |
| TRL, implicit prompt; Skywork | `chosen`, `rejected`: whole chats, or texts with a common beginning |
| UltraFeedback, binarized | `prompt`, and `chosen` and `rejected` as whole chats that repeat it |
| Anthropic HH | `chosen`, `rejected`: transcripts, or `prompt` as a transcript that ends with `Assistant:` |
| HelpSteer2 and 3, preferences | two responses, and a strength from -3 (the first) to 3 (the second) |
| PKU-SafeRLHF, SHP, arenas | two responses, and a label that says which |
| Nectar, UltraFeedback | `answers` or `completions`: objects with a text and a rank or score |
| lists | `responses` with `ranks` (0 or 1: best) or `scores` (most: best); or lists `chosen` and `rejected` |

Training, evaluation and data commands all read such rows here, so a model is measured on what it was trained on.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from adjudge.io.columns import GUESSES, Column
from adjudge.io.values import (
    Text,
    exchange,
    is_chat,
    kind_of,
    number_of,
    plain,
    prompt_of,
    same_turns,
    text_or_chat,
    turns_of,
)
from adjudge.protocol import Message, content_text

PROMPTS: Final = (*GUESSES["prompt"], "conversation_input", "context", "history")
CHOSEN: Final = ("chosen", "preferred", "winner_response")
REJECTED: Final = ("rejected", "reject", "dispreferred", "loser_response")
SIDES: Final = (
    ("response_a", "response_b"), ("response_A", "response_B"), ("response_1", "response_2"),
    ("response1", "response2"), ("response_0", "response_1"), ("output_1", "output_2"),
    ("completion_a", "completion_b"), ("conversation_a", "conversation_b"),
    ("human_ref_A", "human_ref_B"), ("response 1", "response 2"),
)  # fmt: skip
LABELS: Final = ("label", "winner", "preference", *(STRENGTHS := ("overall_preference", "preference_strength")),
                 "better_response_id", "labels")  # fmt: skip
RESPONSES: Final = ("responses", "answers", "completions", "candidates")
RANKS: Final = ("ranks", "rank")
SCORES: Final = ("scores", "score", "overall_score", "rating")
_TEXTS: Final = ("answer", "response", "text", "content", "output", "completion")
_FIRST: Final = ("a", "a>b", "a>>b", "model_a", "response_a", "response_1", "first")
_SECOND: Final = ("b", "b>a", "b>>a", "model_b", "response_b", "response_2", "second")
_TIE: Final = ("tie", "a=b", "c", "both", "tie (bothbad)", "both_bad", "bothbad", "same")

_TRANSCRIPT: Final = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_SPEAKERS: Final = {"Human": "user", "Assistant": "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceColumns:
    """The columns that a user named; "" tries the usual names."""

    prompt: str = ""
    chosen: str = ""
    rejected: str = ""
    first: str = ""
    second: str = ""
    label: str = ""
    responses: str = ""
    ranks: str = ""
    scores: str = ""
    first_label: tuple[str, ...] = ()
    second_label: tuple[str, ...] = ()
    tie_label: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PreferenceOptions:
    """The options of whoever reads preferences: which column is what, and what labels mean."""

    prompt_column: str = ""
    """Column of the prompt; "" tries the usual names. Two chats or transcripts
    without one are cut where they part."""

    chosen_column: str = ""
    """Column of the better response."""

    rejected_column: str = ""
    """Column of the worse response."""

    first_column: str = ""
    """Column of one response, where a label says which one is better."""

    second_column: str = ""
    """Column of the other response."""

    label_column: str = ""
    """Column that says which response is better."""

    first_label: tuple[str, ...] = ()
    """What the label says where the first response is better. Give it several
    times for several words; without the three, the usual words are known."""

    second_label: tuple[str, ...] = ()
    """What it says where the second response is better."""

    tie_label: tuple[str, ...] = ()
    """What it says where neither is."""

    def preference_columns(self) -> PreferenceColumns:
        """Return the columns that were named."""
        named = {item.name.removesuffix("_column"): getattr(self, item.name) for item in fields(PreferenceOptions)}
        return PreferenceColumns(**named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Responses to one prompt, ranked.

    Attributes:
        prompt: text, or chat turns.
        responses: two or more, in the order of the row: each text, or turns where it has several.
        ranks: one for each, 0 for the best; equal ranks are ties.
        margin: by how much the better of two is better, where the row says so, else None.
        layout: what says which is better: the order of two columns, a label, or numbers of a list.
    """

    prompt: Text
    responses: tuple[Text, ...]
    ranks: tuple[int, ...]
    margin: float | None = None
    layout: Literal["ordered", "labelled", "listed"] = "ordered"


def is_preference(row: Mapping[str, Any], columns: PreferenceColumns = PreferenceColumns()) -> bool:
    """Return whether a row looks like one that `read_preference` takes."""
    given = (columns.chosen, columns.first, columns.responses)
    return any(given) or any(_found(row, "", names) for names in (CHOSEN, RESPONSES)) or _sides(row) is not None


def read_preference(row: Mapping[str, Any], columns: PreferenceColumns = PreferenceColumns()) -> Preference:
    """Return what a row says.

    Args:
        row: its columns, as plain data.
        columns: those that the user named.

    Raises:
        ValueError: it is no such row; the message says in a few words why.
    """
    labelled = columns.first or columns.second or columns.label
    chosen = "" if labelled or columns.responses else _found(row, columns.chosen, CHOSEN)
    if chosen:
        return _ordered(row, columns, chosen)
    listed = "" if labelled else _found(row, columns.responses, RESPONSES)
    if listed:
        return _listed(row, columns, listed)
    return _labelled(row, columns)


def turns_of_transcript(text: str) -> list[Message]:
    """Return the turns of a transcript with `Human:` and `Assistant:`, as Anthropic's HH data have them.

    Raises:
        ValueError: it does not begin with a turn.
    """
    marks = list(_TRANSCRIPT.finditer(text))
    if not marks or text[: marks[0].start()].strip():
        raise ValueError("the conversation does not begin with Human: or Assistant:")
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [
        {"role": _SPEAKERS[mark[1]], "content": text[mark.end() : end].strip()}
        for mark, end in zip(marks, ends, strict=True)
    ]


def _ordered(row: Mapping[str, Any], columns: PreferenceColumns, chosen: str) -> Preference:
    rejected = _found(row, columns.rejected, REJECTED)
    if not rejected:
        raise ValueError(_missing(row, "rejected", REJECTED))
    one, other = plain(Column(chosen).of(row)), plain(Column(rejected).of(row))
    if _are_texts(one) and _are_texts(other):
        return Preference(
            prompt=_prompt(row, columns) or "",
            responses=(*one, *other),
            ranks=(0,) * len(one) + (1,) * len(other),
            layout="listed",
        )
    prompt, responses = _pair(_prompt(row, columns), one, other)
    tie = row.get("tie")
    if tie is not None and not isinstance(tie, bool):
        raise ValueError("tie is neither true nor false")
    return Preference(prompt=prompt, responses=responses, ranks=(0, 0 if tie else 1))


def _listed(row: Mapping[str, Any], columns: PreferenceColumns, listed: str) -> Preference:
    items = plain(Column(listed).of(row))
    if not isinstance(items, list) or len(items) < 2:
        raise ValueError(f"{listed!r} is {kind_of(items)}; it must be a list of two responses or more")
    ranks = _numbers(row, columns.ranks, RANKS, items)
    if ranks is None:
        scores = _numbers(row, columns.scores, SCORES, items)
        if scores is None:
            raise ValueError("there are neither ranks nor scores, one finite number for each response")
        ranks = [-score for score in scores]
    elif any(rank % 1 or rank < 0 for rank in ranks):
        raise ValueError(f"the ranks are {ranks}; a rank is a whole number, the smallest for the best")
    order = sorted(set(ranks))
    prompt = _prompt(row, columns)
    if prompt is None:
        raise ValueError("the prompt is missing")
    return Preference(
        prompt=prompt,
        responses=tuple(_said(exchange(prompt, text_or_chat(_text_in(item), "response"))[1]) for item in items),
        ranks=tuple(order.index(rank) for rank in ranks),
        layout="listed",
    )


def _labelled(row: Mapping[str, Any], columns: PreferenceColumns) -> Preference:
    if bool(columns.first) != bool(columns.second):
        raise ValueError(f"one of two columns is named, {columns.first or columns.second!r}; name the other one too")
    first, second = _sides(row) or ("", "")
    if columns.first:
        first, second = _found(row, columns.first, ()), _found(row, columns.second, ())
    label = _found(row, columns.label, LABELS)
    if not (first and second):
        raise ValueError(
            f"{_missing(row, 'chosen', CHOSEN)}. Lists are read from {', '.join(RESPONSES)}; two responses with a "
            f"label from {', '.join(map(' and '.join, SIDES))}, or by --first-column, --second-column, --label-column"
        )
    if not label:
        raise ValueError(_missing(row, "label", LABELS))
    said = plain(Column(label).of(row))
    better = better_of(said, label, columns)
    one, other = (plain(Column(name).of(row)) for name in (first, second))
    prompt, responses = _pair(_prompt(row, columns), one, other)
    return Preference(
        prompt=prompt,
        responses=responses,
        ranks=(0, 0) if better is None else (better, 1 - better),
        margin=abs(float(said)) if label in STRENGTHS else None,
        layout="labelled",
    )


def better_of(label: Any, name: str = "", columns: PreferenceColumns = PreferenceColumns()) -> int | None:
    """Return which of two responses a label means, 0 or 1; None for a tie.

    Raises:
        ValueError: the label is none of the words.
    """
    own = ((columns.first_label, 0), (columns.second_label, 1), (columns.tie_label, None))
    if not any(words for words, _ in own):
        label = _number_in(label) if name in (*STRENGTHS, "better_response_id", "labels") else label
        if name in STRENGTHS:
            if isinstance(label, bool) or not isinstance(label, int | float) or not math.isfinite(label):
                raise ValueError(
                    f"{name} is {label!r}; it must be a number, below 0 where the first response is better"
                )
            return None if label == 0 else int(label > 0)
        if name in ("better_response_id", "labels") and label in (0, 1):  # of PKU-SafeRLHF; of SHP, where 1 is A
            return int(label) if name == "better_response_id" else 1 - int(label)
        own = ((_FIRST, 0), (_SECOND, 1), (_TIE, None))
    for words, meaning in own:
        if _word(label) in map(_word, words):
            return meaning
    raise ValueError(
        f"the label {label!r:.60} is none of {', '.join(word for words, _ in own for word in words)}; say what labels "
        "mean with --first-label, --second-label and --tie-label"
    )


def _number_in(label: Any) -> Any:
    """A number that a CSV file holds as text."""
    try:
        return float(label) if isinstance(label, str) else label
    except ValueError:
        return label


def _word(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label).strip().casefold()


def _pair(prompt: Text | None, one: Any, other: Any) -> tuple[Text, tuple[Text, ...]]:
    """The prompt and the two responses, from sides that may repeat it, or alone say what it is."""
    if prompt is None and all(isinstance(side, str) and _TRANSCRIPT.match(side) for side in (one, other)):
        one, other = turns_of_transcript(one), turns_of_transcript(other)
    sides = [text_or_chat(side, "response") for side in (one, other)]
    if prompt is None and all(isinstance(side, str) for side in sides):
        return _split_texts(str(sides[0]), str(sides[1]))
    if prompt is None:
        chats = [side for side in sides if not isinstance(side, str)]
        if len(chats) < 2:
            raise ValueError("one response is text, the other is turns, and there is no prompt")
        same = _common(chats[0], chats[1])
        if same < 1:
            raise ValueError("the two conversations have no common beginning, and there is no prompt")
        return list(chats[0][:same]), (_said(chats[0][same:]), _said(chats[1][same:]))
    begun = [exchange(prompt, side) for side in sides]
    prompt = max((each for each, _ in begun), key=lambda each: 0 if isinstance(each, str) else len(each))
    rests = [rest for _, rest in begun]
    first, second = rests
    if not isinstance(first, str) and not isinstance(second, str) and (same := _common(first, second)):
        prompt = [*turns_of(prompt), *first[:same]]  # a dialogue that the prompt alone does not tell
        rests = [first[same:], second[same:]]
    return prompt, (_said(rests[0]), _said(rests[1]))


def _common(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many turns two sides begin with; each keeps its last."""
    most = min(len(one), len(other)) - 1
    return next((at for at in range(most) if not same_turns(one[at : at + 1], other[at : at + 1])), max(most, 0))


def _split_texts(one: str, other: str) -> tuple[str, tuple[str, str]]:
    """The text that both sides begin with, up to white space, and what each adds."""
    same = sum(1 for _ in itertools.takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False)))
    while same and not one[same - 1].isspace():
        same -= 1
    if not one[:same].strip():
        raise ValueError("the two texts have no common beginning, and there is no prompt")
    return one[:same].rstrip(), (one[same:], other[same:])


def _said(response: Text) -> Text:
    """A response as text where it is one turn of an assistant that only says something."""
    if isinstance(response, str) or len(response) != 1:
        return response
    (turn,) = response
    return content_text(turn.get("content")) if turn["role"] == "assistant" and not turn.get("tool_calls") else response


def _prompt(row: Mapping[str, Any], columns: PreferenceColumns) -> Text | None:
    name = _found(row, columns.prompt, PROMPTS)
    if not name:
        return None
    prompt = prompt_of(Column(name).of(row), name)
    if isinstance(prompt, str) and _TRANSCRIPT.match(prompt) and prompt.rstrip().endswith("\n\nAssistant:"):
        return turns_of_transcript(prompt)[:-1]
    return prompt


def _found(row: Mapping[str, Any], named: str, usual: Sequence[str]) -> str:
    """The column that was named, or the first of the usual ones, if there is something in it; else ""."""
    if named and Column(named).cell(row) is None:
        raise ValueError(f"the column {named!r} is missing; {_has(row)}")
    return named or next((name for name in usual if Column(name).cell(row) is not None), "")


def _missing(row: Mapping[str, Any], role: str, usual: Sequence[str]) -> str:
    return f"none of the columns {', '.join(usual)} is there; name it with --{role}-column; {_has(row)}"


def _has(row: Mapping[str, Any]) -> str:
    return f"the row has {', '.join(map(repr, list(row)[:20])) or 'no columns'}"


def _sides(row: Mapping[str, Any]) -> tuple[str, str] | None:
    return next((pair for pair in SIDES if all(row.get(name) is not None for name in pair)), None)


def _text_in(item: Any) -> Any:
    """The response of an item of a list: the item, or the text that an object holds."""
    if isinstance(item, Mapping) and not is_chat([item]):
        return next((item[name] for name in _TEXTS if name in item), item)
    return item


def _numbers(row: Mapping[str, Any], named: str, usual: Sequence[str], items: Sequence[Any]) -> list[float] | None:
    """One finite number for each response, from a column or from the responses' own fields; None if there are none."""
    name = _found(row, named, usual)
    values = plain(Column(name).of(row)) if name else None
    if not isinstance(values, list):
        own = next((name for name in usual if all(isinstance(item, Mapping) and name in item for item in items)), None)
        values = [item[own] for item in items] if own else None
    if not isinstance(values, list):
        return None
    numbers = [number for value in values if (number := _number(value)) is not None]
    if not len(values) == len(items) == len(numbers):
        raise ValueError(
            f"{name or 'a field of the responses'!s} is not one finite number for each of {len(items)} responses"
        )
    return numbers


def _number(value: Any) -> float | None:
    return None if isinstance(value, bool) else number_of(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
