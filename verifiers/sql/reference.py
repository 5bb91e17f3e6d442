"""What a sample's reference says: accepted queries, and the databases on which they are compared."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.sql.comparator import Comparator, comparator

KEYS: Final = ("sql", "database", "ordered", "comparator")
MAX_DATABASES: Final = 32
MAX_QUERIES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One database of a reference.

    Attributes:
        kind: "sqlite", "duckdb", "postgres", or "synthetic": made from a schema.
        where: the file, the connection string, or the schema as JSON.
    """

    kind: Literal["sqlite", "duckdb", "postgres", "synthetic"]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlReference:
    """A reference, read.

    Attributes:
        queries: the accepted ones.
        databases: where they are compared.
        ordered: whether the order of rows counts; None leaves it to the comparator.
        comparator: how results are compared; None leaves it to the verifier.
    """

    queries: tuple[str, ...]
    databases: tuple[Database, ...]
    ordered: bool | None = None
    comparator: Comparator | None = None


def _mistake(message: str) -> BadReferenceError:
    return BadReferenceError(message, mistake=True)


def read_reference(reference: Any, folder: str = "") -> SqlReference:
    """Return what a reference says.

    Args:
        reference: `{"sql": .., "database": ..}` and, if wanted, `ordered` and `comparator`.
        folder: where relative paths of databases start.

    Raises:
        BadReferenceError: it is something else, or names a file that is not there.
    """
    if not isinstance(reference, Mapping):
        raise _mistake(
            f"the reference is {reference!r:.80}; give {{'sql': the accepted query, 'database': a file, a list of "
            "files, a DSN, or a schema}"
        )
    unknown = sorted(str(key) for key in set(reference) - set(KEYS))
    if unknown:
        raise _mistake(f"the reference has a key {unknown[0]!r}; its keys are {', '.join(KEYS)}")
    queries = _texts(reference.get("sql"), "sql", MAX_QUERIES)
    ordered = reference.get("ordered")
    if ordered is not None and not isinstance(ordered, bool):
        raise _mistake(f"the reference's 'ordered' is {ordered!r:.40}; it must be true or false")
    chosen = None
    if reference.get("comparator") is not None:
        try:
            chosen = comparator(reference["comparator"])
        except (ValueError, TypeError) as error:
            raise _mistake(f"the reference's comparator: {error}") from error
    return SqlReference(
        queries=queries,
        databases=_databases(reference.get("database"), folder),
        ordered=ordered,
        comparator=chosen,
    )


def _texts(value: Any, key: str, most: int) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or len(texts) > most:
        raise _mistake(f"the reference's {key!r} is {value!r:.60}; give a text, or a list of 1 to {most} texts")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise _mistake(f"the reference's {key!r} holds {text!r:.60}; give a text")
    return tuple(texts)


def _databases(value: Any, folder: str) -> tuple[Database, ...]:
    listed = list(value) if isinstance(value, list | tuple) else [value]
    if not listed or len(listed) > MAX_DATABASES:
        raise _mistake(f"the reference names {len(listed)} databases; give from 1 to {MAX_DATABASES}")
    databases = tuple([_database(item, folder) for item in listed])
    kinds = {"sqlite" if item.kind == "synthetic" else item.kind for item in databases}
    if len(kinds) > 1:
        raise _mistake(
            f"the reference's databases are of the kinds {', '.join(sorted(kinds))}; one query has one dialect"
        )
    return databases


def _database(value: Any, folder: str) -> Database:
    if isinstance(value, Mapping):
        if "like" in value:
            like = _database(value["like"], folder)
            if set(value) != {"like"} or like.kind != "sqlite":
                raise _mistake("the reference's 'like' must name a SQLite file, and nothing beside it")
            return Database(kind="synthetic", where=json.dumps({"like": like.where, "changed": _changed(like.where)}))
        if "schema" not in value:
            raise _mistake(f"the reference's 'database' is {value!r:.60}; a mapping needs the key 'schema' or 'like'")
        try:
            return Database(kind="synthetic", where=json.dumps(dict(value), sort_keys=True))
        except TypeError as error:
            raise _mistake(f"the reference's schema is not plain data: {error}") from error
    if not isinstance(value, str) or not value:
        raise _mistake(
            f"the reference's 'database' is {value!r:.60}; give a file, a list of files, a DSN "
            "(postgresql://...), {'schema': .., 'values': ..}, or {'like': a SQLite file}"
        )
    if value.startswith(("postgresql://", "postgres://")):
        return Database(kind="postgres", where=value)
    path = str(Path(folder, value))
    try:
        kind = _file_kind(path, *_changed(path))
    except (OSError, ValueError) as error:
        raise BadReferenceError(f"the database {value!r:.200} cannot be read: {error}", mistake=False) from error
    if kind is None:
        raise BadReferenceError(f"the file {value!r:.200} is neither a SQLite nor a DuckDB database", mistake=False)
    return Database(kind=kind, where=path)


def _changed(path: str) -> list[int]:
    now = os.stat(path)
    return [now.st_mtime_ns, now.st_size]


@lru_cache(maxsize=256)
def _file_kind(path: str, changed: int, size: int) -> Literal["sqlite", "duckdb"] | None:
    """Return what a file is by its first bytes; the other arguments make a changed file another one."""
    with open(path, "rb") as file:
        head = file.read(16)
    if head[8:12] == b"DUCK":
        return "duckdb"
    return "sqlite" if head == b"SQLite format 3\0" else None
