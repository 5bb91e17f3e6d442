"""From a row of the input to the samples it holds: one response, a list of them, or several response columns.

A row gives one item for each response; whatever is wrong with one of them stays with that item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.data_pipelines.jobs.groups import group_key
from adjudge.io.columns import MISSING, Column, ColumnMap
from adjudge.io.row import Row
from adjudge.protocol import Message, Sample


@dataclass(slots=True)
class Item:
    """One line of the output to be: a sample to score, or the reason why there is none.

    Attributes:
        row: number of the input row, from 0.
        id: the row's id, with "/k" if the row holds several responses.
        group: its group, or "".
        column: the response column.
        sample: what is scored, or None.
        error: why there is no sample, else "".
        line: number of the row's first text line, from 1; 0 where there are no lines.
        input: the columns of the row that are written out too, or None.
    """

    row: int
    id: str
    group: str
    column: str
    sample: Sample | None
    error: str
    line: int
    input: Mapping[str, Any] | None = None


class _Bad(Exception):
    """The value of one field cannot be used; the text says why."""


def _any_will_do(sample: Sample) -> None:
    """Take any sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Makes items of rows.

    Attributes:
        columns: which column is what.
        keep: whether items carry the row's columns.
        validate: raises `ValueError` for a sample that will not do.
    """

    columns: ColumnMap
    keep: bool = False
    validate: Callable[[Sample], None] = _any_will_do

    def group_of(self, row: Row) -> str:
        """Return the group of a row's samples: the one it names, or its id if it holds several responses, or ""."""
        if row.data is None:
            return ""
        named = group_key(self.columns.group.of(row.data)) if self.columns.group is not None else ""
        return named or ("" if self._single(row.data) else self._name(row))

    def items(self, row: Row, group: str) -> list[Item]:
        """Return the items of a row of this group, at least one."""
        data = row.data
        if data is None:
            return [Item(row.index, str(row.index), "", "", None, row.error, row.line)]
        name, single = self._name(row), self._single(data)
        responses = self._responses(data)
        found: list[Item] = []
        for index, response in enumerate(responses):
            item_id = name if single else f"{name}/{index}"
            item = Item(row.index, item_id, group, response.column, None, "", row.line, data if self.keep else None)
            try:
                item.sample = self._sample(data, response, item_id, group)
                self.validate(item.sample)
            except (_Bad, ValueError) as error:
                item.sample, item.error = None, str(error)
            found.append(item)
        return found

    def _name(self, row: Row) -> str:
        return _text_or_empty(self.columns.id, row.data or {}) or str(row.index)

    def _single(self, data: Mapping[str, Any]) -> bool:
        columns = self.columns.responses
        if len(columns) != 1:
            return False
        value = columns[0].of(data)
        return not isinstance(value, list) or not value or _is_chat(value)

    def _responses(self, data: Mapping[str, Any]) -> list[_Response]:
        found: list[_Response] = []
        for column in self.columns.responses:
            value = column.of(data)
            if not isinstance(value, list) or _is_chat(value):
                found.append(_Response(column.name, value, 0, 0))
            elif not value:
                found.append(_Response(column.name, _EMPTY_LIST, 0, 0))
            else:
                found += [_Response(column.name, each, index, len(value)) for index, each in enumerate(value)]
        return found

    def _sample(self, data: Mapping[str, Any], response: _Response, item_id: str, group: str) -> Sample:
        prompt: str | Sequence[Message] = ""
        if self.columns.prompt is not None:
            prompt = _text_or_chat(self.columns.prompt.of(data), "prompt", self.columns.prompt.name)
        reference = self.columns.reference.of(data) if self.columns.reference is not None else None
        extra = {column.name: column.of(data) for column in self.columns.extra}
        return Sample(
            prompt=prompt,
            response=_text_or_chat(response.value, "response", response.column),
            reference=None if reference is MISSING or reference == "" else reference,
            id=item_id,
            group=group,
            finish_reason=self._finish_reason(data, response),
            extra={name: value for name, value in extra.items() if value is not MISSING},
        )

    def _finish_reason(self, data: Mapping[str, Any], response: _Response) -> str | None:
        column = self.columns.finish_reason
        value = column.of(data) if column is not None else None
        if isinstance(value, list) and column is not None:
            if len(value) != response.listed:
                raise _Bad(f"{column.name!r} lists {len(value)} finish reasons for {response.listed or 1} responses")
            value = value[response.index]
        if value is None or value is MISSING or value == "":
            return None
        if not isinstance(value, str):
            raise _Bad(f"the finish reason is {_kind(value)}; it must be text")
        return value


_EMPTY_LIST = object()


@dataclass(slots=True)
class _Response:
    """One response of a row: its column, its value, and its place in a list of `listed` (0: not in a list)."""

    column: str
    value: Any
    index: int
    listed: int


def _text_or_empty(column: Column | None, data: Mapping[str, Any]) -> str:
    value = column.of(data) if column is not None else None
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _is_chat(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(turn, Mapping) and "role" in turn for turn in value)


def _text_or_chat(value: Any, what: str, column: str) -> str | Sequence[Message]:
    if isinstance(value, str):
        return value
    if value is MISSING:
        raise _Bad(f"the row has no {what}: no field {column!r}")
    if value is _EMPTY_LIST:
        raise _Bad(f"the list of responses in {column!r} is empty")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping) and "role" in value:
        value = [value]
    if isinstance(value, list) and _is_chat(value):
        for turn in value:
            if not isinstance(turn.get("content"), str | list | None):
                raise _Bad(f"a turn of {column!r} has the content {_kind(turn['content'])}; it must be text or parts")
        return value
    raise _Bad(f"the {what} in {column!r} is {_kind(value)}; it must be text or chat turns with a role")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return f"an object with the fields {', '.join(map(str, list(value)[:8]))}" if value else "an empty object"
    return {list: "a list", bool: "true or false", str: "text"}.get(type(value), f"a {type(value).__name__}")
