"""What a sample's reference says: accepted queries, and databases on which they are compared, as engines kept open.

A worker process keeps open databases and the results of references from sample to sample, since a group of responses to
one question shares both.  Each process has its own: after a fork a new one is made, and what was inherited is never
touched, because a connection has one user.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.sql.comparator import Comparator, comparator
from adjudge.verifiers.sql.databases.schema_shape import SchemaError, schema_of_file
from adjudge.verifiers.sql.duckdb_engine import DuckdbEngine
from adjudge.verifiers.sql.engine import Engine, EngineOptions
from adjudge.verifiers.sql.postgres_engine import PostgresEngine
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.variation import LikeFile, aimed_engines, synthesise, varied_engines

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


def read_reference(reference: Any, folder: str = "") -> SqlReference:
    """Return what a reference says.

    Args:
        reference: `{"sql": .., "database": ..}` and, if wanted, `ordered` and `comparator`.
        folder: where relative paths of databases start.

    Raises:
        BadReferenceError: it is something else, or names a file that is not there.
    """
    if not isinstance(reference, Mapping):
        raise ReferenceFormError(
            f"the reference is {reference!r:.80}; give {{'sql': the accepted query, 'database': a file, a list of "
            "files, a DSN, or a schema}"
        )
    unknown = sorted(str(key) for key in set(reference) - set(KEYS))
    if unknown:
        raise ReferenceFormError(f"the reference has a key {unknown[0]!r}; its keys are {', '.join(KEYS)}")
    queries = _texts(reference.get("sql"), "sql", MAX_QUERIES)
    ordered = reference.get("ordered")
    if ordered is not None and not isinstance(ordered, bool):
        raise ReferenceFormError(f"the reference's 'ordered' is {ordered!r:.40}; it must be true or false")
    chosen = None
    if reference.get("comparator") is not None:
        try:
            chosen = comparator(reference["comparator"])
        except (ValueError, TypeError) as error:
            raise ReferenceFormError(f"the reference's comparator: {error}") from error
    return SqlReference(
        queries=queries,
        databases=_databases(reference.get("database"), folder),
        ordered=ordered,
        comparator=chosen,
    )


def _texts(value: Any, key: str, most: int) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or len(texts) > most:
        raise ReferenceFormError(
            f"the reference's {key!r} is {value!r:.60}; give a text, or a list of 1 to {most} texts"
        )
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise ReferenceFormError(f"the reference's {key!r} holds {text!r:.60}; give a text")
    return tuple(texts)


def _databases(value: Any, folder: str) -> tuple[Database, ...]:
    listed = list(value) if isinstance(value, list | tuple) else [value]
    if not listed or len(listed) > MAX_DATABASES:
        raise ReferenceFormError(f"the reference names {len(listed)} databases; give from 1 to {MAX_DATABASES}")
    databases = tuple([_database(item, folder) for item in listed])
    kinds = {"sqlite" if item.kind == "synthetic" else item.kind for item in databases}
    if len(kinds) > 1:
        raise ReferenceFormError(
            f"the reference's databases are of the kinds {', '.join(sorted(kinds))}; one query has one dialect"
        )
    return databases


def _database(value: Any, folder: str) -> Database:
    if isinstance(value, Mapping):
        if "like" in value:
            like = _database(value["like"], folder)
            if set(value) != {"like"} or like.kind != "sqlite":
                raise ReferenceFormError("the reference's 'like' must name a SQLite file, and nothing beside it")
            return Database(kind="synthetic", where=json.dumps({"like": like.where, "changed": _changed(like.where)}))
        if "schema" not in value:
            raise ReferenceFormError(
                f"the reference's 'database' is {value!r:.60}; a mapping needs the key 'schema' or 'like'"
            )
        try:
            return Database(kind="synthetic", where=json.dumps(dict(value), sort_keys=True))
        except TypeError as error:
            raise ReferenceFormError(f"the reference's schema is not plain data: {error}") from error
    if not isinstance(value, str) or not value:
        raise ReferenceFormError(
            f"the reference's 'database' is {value!r:.60}; give a file, a list of files, a DSN "
            "(postgresql://...), {'schema': .., 'values': ..}, or {'like': a SQLite file}"
        )
    if value.startswith(("postgresql://", "postgres://")):
        return Database(kind="postgres", where=value)
    path = str(Path(folder, value))
    try:
        kind = _file_kind(path, *_changed(path))
    except (OSError, ValueError) as error:
        raise BadReferenceError(f"the database {value!r:.200} cannot be read: {error}") from error
    if kind is None:
        raise BadReferenceError(f"the file {value!r:.200} is neither a SQLite nor a DuckDB database")
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


MAX_OPEN: Final = 160  # 16 references with their files and what was made of them
MAX_BYTES: Final = 64 << 20
_LONG: Final = 200
_REASONS: Final = 1000

Value = TypeVar("Value")


class Shelf(Generic[Value]):
    """A bounded store; what was used longest ago goes first."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._items: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key, or None."""
        kept = self._items.get(key)
        if kept is None:
            return None
        self._items.move_to_end(key)
        return kept[0]

    def put(self, key: Hashable, value: Value, size: int) -> list[Value]:
        """Keep a value unless it alone is too large; return the values that had to go."""
        gone = []
        if key in self._items:
            gone.append(self.pop(key))
        if size <= self._most:
            self._items[key] = (value, size)
            self._held += size
        while self._held > self._most:
            oldest = next(iter(self._items))
            gone.append(self.pop(oldest))
        return [value for value in gone if value is not None]

    def pop(self, key: Hashable) -> Value | None:
        """Take a value out."""
        value, size = self._items.pop(key, (None, 0))
        self._held -= size
        return value


class Session:
    """Open databases and kept results of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.results: Shelf[object] = Shelf(MAX_BYTES)
        self.reasons: Shelf[str] = Shelf(_REASONS)  # why nothing was made of a file
        self._engines: Shelf[tuple[Engine, ...]] = Shelf(MAX_OPEN)

    def engines(self, key: Hashable, make: Callable[[], tuple[Engine, ...]]) -> tuple[Engine, ...]:
        """Return the open databases under a key, opened now if they are not, or no longer, open."""
        kept = self._engines.get(key)
        if kept is not None and all(engine.alive for engine in kept):
            return kept
        made = make()
        for number, engine in enumerate(made):
            engine.key = (key, number)
        for group in self._engines.put(key, made, max(1, len(made))):
            for engine in group:
                engine.close()
        return made


def short(text: str) -> str | bytes:
    """Return what stands for a text in a key: a schema may have 100,000 characters, and each key would hold them."""
    return text if len(text) <= _LONG else hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


_sessions: list[Session] = []


def session() -> Session:
    """Return this process's session."""
    if not _sessions or _sessions[-1].pid != os.getpid():
        _sessions.append(Session())  # an inherited one stays in the list, so that nothing closes its connections
    return _sessions[-1]


def open_databases(reference: SqlReference, options: EngineOptions) -> list[Engine]:
    """Return the engines of a reference's databases, kept open from sample to sample.

    Raises:
        EngineUnavailableError: one cannot be opened or reached.
        BadReferenceError: a schema cannot be used.
    """
    opened: list[Engine] = []
    for database in reference.databases:
        stamp = _stamp(database.where) if database.kind in ("sqlite", "duckdb") else ()
        key: Hashable = (database.kind, short(database.where), options, stamp)
        if database.kind == "synthetic":
            key = (key, *map(short, reference.queries))
        opened += session().engines(key, partial(_made, database, reference, options))
    return opened


def _made(database: Database, reference: SqlReference, options: EngineOptions) -> tuple[Engine, ...]:
    match database.kind:
        case "sqlite":
            return (SqliteEngine.of_file(database.where, options),)
        case "duckdb":
            return (DuckdbEngine(database.where, memory_mb=options.memory_mb),)
        case "postgres":
            return (PostgresEngine(database.where, memory_mb=options.memory_mb),)
        case "synthetic":
            return _synthetic(json.loads(database.where), reference.queries, options)


def _synthetic(given: dict[str, Any], queries: tuple[str, ...], options: EngineOptions) -> tuple[Engine, ...]:
    try:
        if "like" in given:
            count = options.variations or options.synthetic
            options = replace(options, synthetic=count, variations=count)
            path = given["like"]
            if varied := varied_engines(LikeFile(path, _stamp(path), queries, options)):
                return varied
            given = schema_of_file(path)  # too little stands in the file for the reference to find anything like it
        return synthesise(given, queries, options)
    except SchemaError as error:
        raise BadReferenceError(str(error), mistake=error.mistake) from error


def varied_databases(reference: SqlReference, options: EngineOptions) -> tuple[Sequence[Engine], str]:
    """Return databases made like the reference's first file, kept open from sample to sample, or why there are none."""
    kinds = {database.kind for database in reference.databases}
    if options.variations == 0 or "synthetic" in kinds:
        return [], ""
    if kinds != {"sqlite"}:
        return [], f"databases are made from SQLite files alone, and this is {kinds.pop()}"
    like, key = _like(reference, options)
    reasons = session().reasons

    def make() -> tuple[Engine, ...]:
        try:
            return varied_engines(like)
        except SchemaError as error:
            reasons.put(key, f"no database can be made like the file: {error}", 1)
            return ()

    opened = session().engines(("varied", key), make)
    unmade = reasons.get(key) or "on no database made like the file has the reference a clear answer"
    return opened, "" if opened else unmade


def aimed_databases(reference: SqlReference, options: EngineOptions, candidate: str) -> Sequence[Engine]:
    """Return databases made like the reference's first file, if it is one, and aimed at what one candidate looks at.

    Candidates that look at the same share them.
    """
    if options.variations == 0 or not _file(reference.databases[0]):
        return []
    like, key = _like(reference, options)
    try:
        aim = like.aim_at(candidate)
        if aim is None:
            return []
        return session().engines(("aimed", key, short(repr(aim))), partial(aimed_engines, like, aim))
    except SchemaError:  # the same that kept any from being made
        return []


def _like(reference: SqlReference, options: EngineOptions) -> tuple[LikeFile, Hashable]:
    """Return what databases are made like, and what stands for it in keys."""
    path = _file(reference.databases[0])
    like = LikeFile(path, _stamp(path), reference.queries, options)
    return like, (short(path), like.stamp, options, *map(short, like.queries))


def _file(database: Database) -> str:
    """Return the SQLite file that a database is, or is made like, or ""."""
    if database.kind == "synthetic":
        return str(json.loads(database.where).get("like", ""))
    return database.where if database.kind == "sqlite" else ""


def _stamp(path: str) -> tuple[int, ...]:
    """Return what changes when a file does."""
    try:
        seen = os.stat(path)
    except OSError:
        return ()
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)
