"""From a row of the input to the samples it holds: one response, a list of them, or several response columns.

A row gives one item for each response; whatever is wrong with one of them stays with that item.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.io.columns import MISSING, Column, ColumnMap
from adjudge.io.jobs.groups import group_key
from adjudge.io.row import Row
from adjudge.io.values import (
    Text,
    exchange,
    is_chat,
    is_empty,
    kind_of,
    name_of,
    prompt_of,
    reference_of,
    response_of,
    said_in_choice,
    unanswered,
)
from adjudge.protocol import Sample


@dataclass(slots=True)
class Item:
    """One line of the output to be: a sample to score, or the reason why there is none.

    Attributes:
        row: number of the input row, from 0.
        id: the row's id, with "/k" if the row holds several responses.
        group: its group, or "".
        column: the response column.
        error: why there is no sample, else "".
        line: number of the row's first text line, from 1; 0 where there are no lines.
        input: the row, to be written out too, with the item's own response in the place of all that it lists; or None.
    """

    row: int
    id: str
    group: str
    column: str
    sample: Sample | None
    error: str
    line: int
    input: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Makes items of rows."""

    columns: ColumnMap
    keep: bool = False
    validate: Callable[[Sample], None] = lambda _: None

    def group_of(self, row: Row) -> str:
        """Return the group of a row's samples: the one it names, or its id if it holds several responses, or ""."""
        if row.data is None:
            return ""
        named = group_key(self.columns.group.of(row.data)) if self.columns.group is not None else ""
        return named or ("" if self._single(row.data) else row_id(row, self.columns.id))

    def items(self, row: Row, group: str) -> list[Item]:
        """Return the items of a row of this group, at least one."""
        data = row.cells()
        if data is None:
            return [Item(row.index, row_id(row, self.columns.id), "", "", None, row.error, row.line)]
        name, single = row_id(row, self.columns.id), self._single(data)
        items: list[Item] = []
        for index, response in enumerate(self._responses(data)):
            item_id = name if single else f"{name}/{index}"
            kept = self._kept(data, response) if self.keep else None
            item = Item(row.index, item_id, group, response.column, None, "", row.line, kept)
            try:
                item.sample = self._sample(data, response, item_id, group)
                self.validate(item.sample)
            except ValueError as error:
                item.sample, item.error = None, str(error)
            items.append(item)
        return items

    def _single(self, data: Mapping[str, Any]) -> bool:
        columns = self.columns.responses
        if len(columns) != 1:
            return not columns
        value = columns[0].of(data)
        return not isinstance(value, list) or not value or is_chat(value)

    def _responses(self, data: Mapping[str, Any]) -> list[_Response]:
        if not self.columns.responses:  # prompts that nobody has answered yet
            return [_response("", "")]
        responses: list[_Response] = []
        for column in self.columns.responses:
            value = column.of(data)
            if column.listed and isinstance(value, str):
                responses.append(_response(column.name, _NO_LIST if value.strip() else _EMPTY_LIST))
            elif not isinstance(value, list) or is_chat(value):
                responses.append(_response(column.name, value))
            elif not value:
                responses.append(_response(column.name, _EMPTY_LIST))
            else:
                responses += [_response(column.name, each, index, len(value)) for index, each in enumerate(value)]
        return responses

    def _kept(self, data: Mapping[str, Any], response: _Response) -> Mapping[str, Any]:
        """Return a row with one response, and its finish reason, in the place of those that the row lists."""
        for column in self.columns.responses:
            value = column.of(data)
            if isinstance(value, list) and value and not is_chat(value):
                data = column.with_item(data, response.index if column.name == response.column else None)
        finish = self.columns.finish_reason
        reasons = finish.of(data) if finish is not None else None
        if finish is not None and isinstance(reasons, list) and len(reasons) == response.listed:
            data = finish.with_item(data, response.index)
        return data

    def _sample(self, data: Mapping[str, Any], response: _Response, item_id: str, group: str) -> Sample:
        prompt: Text = ""
        if self.columns.prompt is not None:
            prompt = prompt_of(self.columns.prompt.of(data), self.columns.prompt.name)
            prompt = unanswered(prompt) if self.columns.answered else prompt
        if response.value is _EMPTY_LIST:
            raise ValueError(f"the list of responses in {response.column!r} is empty")
        if response.value is _NO_LIST:
            raise ValueError(f"{response.column!r} holds lists as JSON text, and this one is no JSON")
        prompt, said = exchange(prompt, response_of(response.value, response.column))
        extra = {column.name: column.of(data) for column in self.columns.extra}
        return Sample(
            prompt=prompt,
            response=said,
            reference=reference_of(self.columns.reference.of(data)) if self.columns.reference is not None else None,
            id=item_id,
            group=group,
            finish_reason=self._finish_reason(data, response),
            extra={name: value for name, value in extra.items() if value is not MISSING},
        )

    def _finish_reason(self, data: Mapping[str, Any], response: _Response) -> str | None:
        column = self.columns.finish_reason
        value = column.of(data) if column is not None else response.finish_reason
        if isinstance(value, list) and column is not None:
            if len(value) != response.listed:
                raise ValueError(
                    f"{column.name!r} lists {len(value)} finish reasons for {response.listed or 1} responses"
                )
            value = value[response.index]
        if is_empty(value):
            return None
        if not isinstance(value, str):
            raise ValueError(f"the finish reason is {kind_of(value)}; it must be text")
        return value


def row_id(row: Row, column: Column | None) -> str:
    """Return the id of a row: the one it names, its number where there is no column of ids, or "row 7" if it has none.

    A bare number in a column of ids may be another row's.
    """
    if column is None:
        return str(row.index)
    return name_of(column.of(row.data or {})) or f"row {row.index}"


def hash_of(sample: Sample | None) -> str | None:
    """Return 16 hexadecimal digits of the SHA-256 of a sample's prompt and response, which join scores and rows."""
    if sample is None:
        return None
    said = json.dumps([sample.prompt, sample.response], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def prompt_hash_of(sample: Sample | None) -> str | None:
    """Return the hash of a sample's prompt alone, by which answers to one prompt are known; None for no prompt."""
    return hash_of(replace(sample, response="")) if sample is not None and sample.prompt else None


_EMPTY_LIST = object()
_NO_LIST = object()


@dataclass(slots=True)
class _Response:
    """One response of a row: its column, its value, and its place in a list of `listed` (0: not in a list)."""

    column: str
    value: Any
    index: int
    listed: int
    finish_reason: Any = None


def _response(column: str, value: Any, index: int = 0, listed: int = 0) -> _Response:
    reason = value.get("finish_reason") if isinstance(value, Mapping) else None
    return _Response(column, said_in_choice(value), index, listed, reason)
