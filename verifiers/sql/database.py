"""From a reference's databases to engines that run queries.

What a worker process keeps from sample to sample: open databases and the results of references.

A group of responses to one question shares both.  Each process has its own: after a fork a new one is made, and what
was inherited is never touched, because a connection has one user.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.sql.databases.schema_shape import SchemaError, schema_of_file
from adjudge.verifiers.sql.duckdb_engine import DuckdbEngine
from adjudge.verifiers.sql.engine import Engine, EngineOptions
from adjudge.verifiers.sql.postgres_engine import PostgresEngine
from adjudge.verifiers.sql.reference import Database, SqlReference
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.synthesis import synthesise
from adjudge.verifiers.sql.variation import LikeFile, aimed_engines, varied_engines

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


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine and the key under which its results may be kept."""

    engine: Engine
    key: Hashable


def open_databases(reference: SqlReference, options: EngineOptions) -> list[Opened]:
    """Return the engines of a reference's databases, kept open from sample to sample.

    Raises:
        EngineUnavailableError: one cannot be opened or reached.
        BadReferenceError: a schema cannot be used.
    """
    opened: list[Opened] = []
    for database in reference.databases:
        stamp = _stamp(database.where) if database.kind in ("sqlite", "duckdb") else ()
        key: Hashable = (database.kind, short(database.where), options, stamp)
        if database.kind == "synthetic":
            key = (key, *map(short, reference.queries))
        opened += _opened(key, partial(_made, database, reference, options))
    return opened


def _opened(key: Hashable, make: Callable[[], tuple[Engine, ...]]) -> list[Opened]:
    return [Opened(engine, (key, number)) for number, engine in enumerate(session().engines(key, make))]


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
        return synthesise(given, queries, options).engines
    except SchemaError as error:
        raise BadReferenceError(str(error), mistake=error.mistake) from error


def varied_databases(reference: SqlReference, options: EngineOptions) -> tuple[list[Opened], str]:
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

    opened = _opened(("varied", key), make)
    unmade = reasons.get(key) or "on no database made like the file has the reference a clear answer"
    return opened, "" if opened else unmade


def aimed_databases(reference: SqlReference, options: EngineOptions, candidate: str) -> list[Opened]:
    """Return databases made like the reference's first file and aimed at what one candidate looks at beyond it.

    Candidates that look at the same share them.
    """
    if options.variations == 0 or {database.kind for database in reference.databases} != {"sqlite"}:
        return []
    like, key = _like(reference, options)
    try:
        aim = like.aim_at(candidate)
        if aim is None:
            return []
        return _opened(("aimed", key, short(repr(aim))), partial(aimed_engines, like, aim))
    except SchemaError:  # the same that kept any from being made
        return []


def _like(reference: SqlReference, options: EngineOptions) -> tuple[LikeFile, Hashable]:
    """Return what databases are made like, and what stands for it in keys."""
    path = reference.databases[0].where
    like = LikeFile(path, _stamp(path), reference.queries, options)
    return like, (short(path), like.stamp, options, *map(short, like.queries))


def _stamp(path: str) -> tuple[int, ...]:
    """Return what changes when a file does."""
    try:
        seen = os.stat(path)
    except OSError:
        return ()
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)
