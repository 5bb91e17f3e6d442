"""The formats a job writes, by the name of its output, and the columns of those that have columns.

The journal holds JSON lines; for another format they are converted at the end, in one pass with bounded memory.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias

from adjudge import wire
from adjudge.extras import need
from adjudge.io.errors import JobError
from adjudge.io.jobs.lines import ANY, NO_ITEMS, TURNS, UNKNOWN

_ONE: Final = {"text": "string", "number": "float64", "whole": "int64", "flag": "bool_"}


class Columns:
    """Columns and their kinds."""

    def __init__(self, fields: Mapping[str, str], kinds: Mapping[str, str]) -> None:
        kept = {name: kind for name, kind in kinds.items() if name not in fields}
        told = {name: kinds.get(name, UNKNOWN) if kind == "chat" else kind for name, kind in fields.items()}
        self._kinds = kept | told
        self._as_json = [name for name, kind in self._kinds.items() if kind == ANY]
        self._floats = [name for name, kind in self._kinds.items() if kind == "number"]
        self._float_lists = [name for name, kind in self._kinds.items() if kind == "numbers"]

    def schema(self) -> Any:
        """Return the `pyarrow.Schema`."""
        arrow = need("pyarrow", "writing Parquet")
        return arrow.schema([(without_surrogates(name), _type(arrow, kind)) for name, kind in self._kinds.items()])

    def flat(self, line: bytes) -> dict[str, Any]:
        """Return the record of a line as the schema has it."""
        record: dict[str, Any] = json.loads(line)
        for name in self._as_json:
            if record.get(name) is not None:
                record[name] = json_text(record[name])
        for name in self._floats:  # Arrow takes no whole number for a float where it would lose digits
            if record.get(name) is not None:
                record[name] = _float(record[name])
        for name in self._float_lists:
            if record.get(name) is not None:
                record[name] = [None if item is None else _float(item) for item in record[name]]
        return dict(without_surrogates(record)) if b"\\ud" in line else record


def _float(value: Any) -> float:
    return float(wire.decode(value))


def _type(arrow: Any, kind: str) -> Any:
    if kind == TURNS:
        return arrow.list_(arrow.struct([("role", arrow.string()), ("content", arrow.string())]))
    if kind == NO_ITEMS:
        return arrow.list_(arrow.string())
    if kind in _ONE:
        return getattr(arrow, _ONE[kind])()
    if kind.removesuffix("s") in _ONE:
        return arrow.list_(getattr(arrow, _ONE[kind.removesuffix("s")])())
    return arrow.json_(arrow.string()) if kind == ANY else arrow.string()


Format: TypeAlias = Literal["jsonl", "jsonl.gz", "parquet", "folder"]
Flat: TypeAlias = Callable[[bytes], dict[str, Any]]

_ROW_GROUP: Final = 16_384  # rows; at 1 kB each about 16 MB in memory
_BATCH: Final = 1_000  # rows of a record batch in a datasets folder, as that library writes them
_BATCH_BYTES: Final = 32 << 20  # of lines: long rows close a group early, so that memory does not follow their length


def format_of(output: str) -> Format:
    """Return the format that an output's name says.

    Args:
        output: .jsonl, .ndjson, .jsonlines, each of the first two also with .gz, or .parquet; or a name without a
            dot, or one that ends in a slash, which is a folder for `datasets.load_from_disk`.

    Raises:
        ValueError: the name says no format.
    """
    name = Path(output).name.lower()
    if output.endswith("/") or (name and "." not in name):
        return "folder"
    if name.endswith((".jsonl", ".ndjson", ".jsonlines")):
        return "jsonl"
    if name.endswith((".jsonl.gz", ".ndjson.gz")):
        return "jsonl.gz"
    if name.endswith(".parquet"):
        return "parquet"
    raise ValueError(
        f"the output {output} must end in .jsonl, .ndjson, .jsonl.gz or .parquet, or in a slash: "
        "a folder for datasets.load_from_disk"
    )


def needs_schema(written: Format) -> bool:
    """Return whether the format has one kind for all values of a column; import what writes it.

    Raises:
        ValueError: its package is not installed.
    """
    if written == "folder":
        need("datasets", "writing a datasets folder")
    if written in ("folder", "parquet"):
        need("pyarrow.parquet", "writing Parquet" if written == "parquet" else "writing a datasets folder")
    return written in ("folder", "parquet")


def convert(source: Path, target: Path, written: Format, schema: Callable[[], Any], flat: Flat) -> None:
    """Write the lines of a file in another format.

    Args:
        source: JSON lines.
        target: what to write; it is not there yet.
        written: any format but "jsonl".
        schema: returns the `pyarrow.Schema` where there is one.
        flat: makes of a line a record that fits the schema.

    Raises:
        JobError: a record does not fit the schema after all.
    """
    if written == "jsonl.gz":
        _compress(source, target)
    elif written == "parquet":
        _write_parquet(source, target, schema(), flat)
    else:
        _write_folder(source, target, schema(), flat)


def without_surrogates(value: Any) -> Any:
    """Return the value with lone surrogates, which no UTF-8 can hold, written as escapes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def json_text(value: Any) -> str:
    """Return plain data as the JSON text that stands for it in a column of mixed shapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _compress(source: Path, target: Path) -> None:
    # No name and no time in the header, so that the same lines give the same bytes.
    with (
        source.open("rb") as lines,
        target.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed,
    ):
        shutil.copyfileobj(lines, packed, 1 << 20)


def _write_parquet(source: Path, target: Path, schema: Any, flat: Flat) -> None:
    parquet = need("pyarrow.parquet", "writing Parquet")
    with source.open("rb") as lines, parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for table in _tables(lines, schema, flat, _ROW_GROUP):
            writer.write_table(table, row_group_size=_ROW_GROUP)


def _write_folder(source: Path, target: Path, schema: Any, flat: Flat) -> None:
    """Write what `Dataset.save_to_disk` writes, in one Arrow file, with the same bytes for the same lines.

    That call itself puts the time of its input file into the fingerprint, so its output differs from run to run.
    """
    arrow, datasets = need("pyarrow", "writing a datasets folder"), need("datasets", "writing a datasets folder")
    features = datasets.Features.from_arrow_schema(schema)
    target.mkdir()
    data = target / "data-00000-of-00001.arrow"
    with (
        source.open("rb") as lines,
        data.open("wb") as out,
        arrow.ipc.new_stream(out, features.arrow_schema) as writer,
    ):
        for table in _tables(lines, schema, flat, _BATCH):
            writer.write_table(table.cast(features.arrow_schema), max_chunksize=_BATCH)
    with data.open("rb") as file:
        fingerprint = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    state: Mapping[str, Any] = {
        "_data_files": [{"filename": data.name}],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    (target / "state.json").write_text(json.dumps(state, indent=2, sort_keys=True), encoding="utf-8")
    datasets.DatasetInfo(features=features).write_to_directory(str(target), pretty_print=True)


def _tables(lines: IO[bytes], schema: Any, flat: Flat, rows: int) -> Iterator[Any]:
    arrow = need("pyarrow", "writing Parquet")
    # Arrow makes no nested JSON of Python values, but it does of text.
    as_text = arrow.schema([arrow.field(field.name, _with_text(arrow, field.type)) for field in schema])
    done = 0
    for some in _blocks(lines, rows):
        try:
            yield arrow.Table.from_pylist([flat(line) for line in some], schema=as_text).cast(schema)
        except (arrow.ArrowException, TypeError, OverflowError) as error:
            raise JobError(
                f"the rows {done} to {done + len(some) - 1} that were made do not fit their columns: {error}; "
                "write .jsonl, which holds any row"
            ) from error
        done += len(some)


def _with_text(arrow: Any, kind: Any) -> Any:
    """Return an Arrow type with text in the place of JSON."""
    if getattr(kind, "extension_name", "") == "arrow.json":
        return arrow.string()
    if arrow.types.is_list(kind):
        return arrow.list_(_with_text(arrow, kind.value_type))
    if arrow.types.is_struct(kind):
        return arrow.struct([(field.name, _with_text(arrow, field.type)) for field in kind])
    return kind


def _blocks(lines: IO[bytes], rows: int) -> Iterator[list[bytes]]:
    some: list[bytes] = []
    held = 0
    for line in lines:
        some.append(line)
        held += len(line)
        if len(some) >= rows or held >= _BATCH_BYTES:
            yield some
            some, held = [], 0
    if some:
        yield some


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is one that `save_to_disk` wrote, and so may be replaced as a whole."""
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
