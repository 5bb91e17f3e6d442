"""Rows from Parquet files, from folders written by `datasets.save_to_disk`, and from the Hugging Face hub.

All three hand out Arrow batches or plain dictionaries; only the columns asked for are read.  Dates and times
become ISO text, and JSON (Arrow's type of that name) becomes the values that it stands for.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from adjudge.extras import need
from adjudge.io.errors import JobError
from adjudge.io.row import Part, Place, Row
from adjudge.io.text_rows import TOO_DEEP, nested_too_deeply, not_utf8

_BATCH = 256  # rows decoded at once; a batch of long solutions (8 kB each) is about 2 MB


class ParquetFile(Part):
    """One Parquet file, read row group by row group.

    Raises:
        ValueError: pyarrow is missing, or the file is not Parquet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parquet = need("pyarrow.parquet", "reading Parquet")
        arrow = need("pyarrow", "reading Parquet")
        try:
            with self._open() as file:
                self.names = list(file.schema_arrow.names)
                groups = range(file.metadata.num_row_groups)
                self._group_rows: list[int] = [file.metadata.row_group(index).num_rows for index in groups]
        except (arrow.ArrowException, OSError) as error:
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        self._arrow_error = arrow.ArrowException
        self._columns: list[str] | None = None

    def _open(self) -> Any:
        # Without these two, pyarrow fetches whole column chunks ahead and memory follows the row-group size.
        return self._parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20)

    def count(self) -> int | None:
        """Return the number of rows."""
        return sum(self._group_rows)

    def select(self, columns: list[str] | None) -> None:
        """Read only these top-level columns; None reads all."""
        self._columns = columns

    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the rows behind a place.

        Raises:
            JobError: a page cannot be decoded.
        """
        first, before = 0, 0
        while first < len(self._group_rows) and before + self._group_rows[first] <= start.record:
            before += self._group_rows[first]
            first += 1
        skip, record = start.record - before, start.record
        try:
            with self._open() as file:
                groups = range(first, len(self._group_rows))
                for batch in file.iter_batches(batch_size=_BATCH, row_groups=groups, columns=self._columns):
                    if skip >= batch.num_rows:
                        skip -= batch.num_rows
                        continue
                    rest = batch.slice(skip)
                    skip = 0
                    yield from _batch_rows(rest, record)
                    record += rest.num_rows
        except (self._arrow_error, OSError) as error:
            raise JobError(_damaged(self.path, record, error)) from error


class SavedDataset(Part):
    """A folder written by `datasets.Dataset.save_to_disk`, memory-mapped.

    Args:
        path: the folder.
        split: which split of a `DatasetDict`; "" takes the only one.
        usual_split: which one of several to take where none is named.

    Raises:
        ValueError: datasets is missing, the folder cannot be read, or the split must be named.
    """

    def __init__(self, path: Path, split: str, usual_split: str = "") -> None:
        self.path = path
        datasets = need("datasets", "reading a datasets folder")
        self._arrow_error = need("pyarrow", "reading a datasets folder").ArrowException
        try:
            loaded = datasets.load_from_disk(str(path))
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{path} is not a readable datasets folder: {error}") from error
        if isinstance(loaded, Mapping):
            loaded = _one_split(loaded, split, str(path), usual_split)
        elif split:
            raise ValueError(f"{path} holds one dataset without splits; drop --split {split}")
        self._data = loaded.with_format("arrow")
        self.names = list(loaded.column_names)

    def count(self) -> int | None:
        """Return the number of rows."""
        return int(self._data.num_rows)

    def select(self, columns: list[str] | None) -> None:
        """Read only these top-level columns; None reads all."""
        if columns is not None:
            self._data = self._data.select_columns(columns)

    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the rows behind a place."""
        for record in range(start.record, self._data.num_rows, _BATCH):
            try:
                batch = self._data[record : record + _BATCH]
            except (self._arrow_error, OSError) as error:
                raise JobError(_damaged(self.path, record, error)) from error
            yield from _batch_rows(batch, record)


class HubDataset(Part):
    """A dataset of the Hugging Face hub, streamed: nothing is downloaded ahead.

    Args:
        name: `user/dataset`, `dataset`, or a local folder of data files.
        subset: name of the configuration; "" takes the only one.
        split: name of the split; "" takes the only one.
        revision: commit, tag or branch; "" takes the newest.
        usual_split: which one of several splits to take where none is named.

    Attributes:
        version: the commit on the hub, or a hash of the files of a local folder.

    Raises:
        ValueError: datasets is missing, there is no such dataset, or the split must be named.
    """

    def __init__(
        self, name: str, *, subset: str = "", split: str = "", revision: str = "", usual_split: str = ""
    ) -> None:
        self.path = name
        datasets = need("datasets", f"{name} is not a file or folder here, and reading it from the hub")
        try:
            builder = datasets.load_dataset_builder(name, subset or None, revision=revision or None)
            loaded = builder.as_streaming_dataset(split=split or None)
        except (OSError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{name} is neither a file or folder here nor a dataset that the hub gives out: {error}"
            ) from error
        if isinstance(loaded, Mapping):
            loaded = _one_split(loaded, split, name, usual_split)
        self.version = str(builder.hash or "")
        self._data = loaded
        self.names = loaded.column_names

    def select(self, columns: list[str] | None) -> None:
        """Hand out only these top-level columns; None hands out all."""
        if columns is not None:
            self._data = self._data.select_columns(columns)

    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the rows behind a place; those before it are streamed and dropped where files cannot be skipped.

        Raises:
            JobError: the stream breaks off.
        """
        record = start.record
        try:
            for data in self._data.skip(record) if record else self._data:
                record += 1
                if nested_too_deeply(data):
                    yield Row(None, TOO_DEEP, Place(record), 0)
                else:
                    row = _plain(dict(data))
                    yield Row(row, "", Place(record), _size(row), filled=True)
        except Exception as error:  # the boundary to the network, whose packages each have errors of their own
            raise JobError(
                f"{self.path} broke off behind row {record} ({type(error).__name__}: {error}); "
                "when the hub answers again, make the same call to go on"
            ) from error


def _one_split(splits: Mapping[str, Any], split: str, name: str, usual: str) -> Any:
    if (split or usual) in splits:
        return splits[split or usual]
    if not split and len(splits) == 1:
        return next(iter(splits.values()))
    said = f"has no split {split!r}" if split else "has several splits"
    raise ValueError(f"{name} {said}; choose one with --split: {', '.join(splits)}")


def _damaged(path: Path, record: int, error: Exception) -> str:
    return f"{path} is damaged behind row {record}: {error}; repair it and start again with --restart"


def _batch_rows(batch: Any, record: int) -> Iterator[Row]:
    size = batch.nbytes // max(1, batch.num_rows)
    read = {field.name: reader for field in batch.schema if (reader := _json_reader(field.type)) is not None}
    for index, data in enumerate(_records(batch), record):
        problem = data if isinstance(data, str) else _read_json(data, read)
        yield Row(None if problem else _plain(data), problem, Place(index + 1), size, filled=not read)


def _records(batch: Any) -> list[dict[str, Any] | str]:
    """Return the rows, or why one cannot be read: Arrow's text may be no UTF-8, and its dates beyond the year 9999."""
    try:
        return list(batch.to_pylist())
    except (ValueError, OverflowError) as error:
        if batch.num_rows == 1:
            return [not_utf8(error) if isinstance(error, UnicodeDecodeError) else f"a value out of range: {error}"]
    half = batch.num_rows // 2
    return _records(batch.slice(0, half)) + _records(batch.slice(half))


def _read_json(data: dict[str, Any], read: Mapping[str, Callable[[Any], Any]]) -> str:
    """Put values in the place of JSON texts, and return what is wrong with one of them, or ""."""
    for name, reader in read.items():
        try:
            data[name] = reader(data[name])
        except RecursionError:
            return f"the column {name!r} is {TOO_DEEP}"
        except ValueError as error:
            return f"the column {name!r} is not JSON: {error}"
        if nested_too_deeply(data[name]):
            return f"the column {name!r} is {TOO_DEEP}"
    return ""


def _json_reader(kind: Any) -> Callable[[Any], Any] | None:
    """Return what puts values in the place of the JSON texts in a column of this Arrow type, or None without any."""
    if getattr(kind, "extension_name", "") == "arrow.json":
        return lambda text: None if text is None else json.loads(text)
    types = need("pyarrow", "reading Parquet").types
    if types.is_list(kind) or types.is_large_list(kind):
        item = _json_reader(kind.value_type)
        return item and (lambda values: None if values is None else [item(value) for value in values])
    if types.is_struct(kind):
        parts = {field.name: reader for field in kind if (reader := _json_reader(field.type)) is not None}
        if parts:
            return lambda value: (
                None if value is None else value | {name: read(value[name]) for name, read in parts.items()}
            )
    return None


def _plain(value: Any) -> Any:
    """Return Arrow's Python values as plain data: dates, times and durations become text."""
    if type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    if type(value) is list:
        return [_plain(item) for item in value]
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta | uuid.UUID):
        return str(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if value is None or isinstance(value, str | int | float | bytes | Decimal):
        return value
    return f"<{type(value).__name__}>"  # an image, say: its repr would hold an address and so change from run to run


def _size(value: Any) -> int:
    """Return the bytes that plain data holds, roughly."""
    if isinstance(value, dict):
        return sum(len(key) + _size(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str | bytes) else 8
