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
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.sql.databases.schema_shape import SchemaError, schema_of_file
from adjudge.verifiers.sql.duckdb_engine import DuckdbEngine
from adjudge.verifiers.sql.engine import Engine
from adjudge.verifiers.sql.postgres_engine import PostgresEngine
from adjudge.verifiers.sql.reference import Database, SqlReference
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.synthesis import synthesise
from adjudge.verifiers.sql.variation import aim_at, aimed_engines, varied_engines

MAX_OPEN: Final = 160  # 16 references with their files and what was made of them
MAX_BYTES: Final = 64 << 20
_LONG: Final = 200
_REASONS: Final = 1000

Value = TypeVar("Value")


class Shelf(Generic[Value]):
    """A bounded store; what was used longest ago goes first.

    Args:
        most: the total size it may hold.
    """

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._items: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key, or None."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

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
        found = self._engines.get(key)
        if found is not None and all(engine.alive for engine in found):
            return found
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How databases are opened.

    Attributes:
        moment: what SQLite's clock shows.
        memory_mb: MiB for the engine, where it can be told.
        synthetic: how many databases are made from a schema.
        variations: how many databases are made like the reference's first file; for `{"like": file}` not 0.
    """

    moment: str
    memory_mb: int
    synthetic: int
    variations: int


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
        engines = session().engines(key, partial(_made, database, reference, options))
        opened.extend(Opened(engine, (key, number)) for number, engine in enumerate(engines))
    return opened


def _made(database: Database, reference: SqlReference, options: EngineOptions) -> tuple[Engine, ...]:
    match database.kind:
        case "sqlite":
            return (SqliteEngine.of_file(database.where, moment=options.moment, memory_mb=options.memory_mb),)
        case "duckdb":
            return (DuckdbEngine(database.where, memory_mb=options.memory_mb),)
        case "postgres":
            return (PostgresEngine(database.where, memory_mb=options.memory_mb),)
        case "synthetic":
            return _synthetic(database, reference, options)


def _synthetic(database: Database, reference: SqlReference, options: EngineOptions) -> tuple[Engine, ...]:
    given = json.loads(database.where)
    count, moment, memory_mb = options.synthetic, options.moment, options.memory_mb
    try:
        if "like" in given:
            file = given["like"]
            count = options.variations or count
            varied = varied_engines(
                file, _stamp(file), reference.queries, count=count, moment=moment, memory_mb=memory_mb
            )
            if varied:
                return varied
            given = schema_of_file(file)  # too little stands in the file for the reference to find anything like it
        return synthesise(given, reference.queries, count=count, moment=moment, memory_mb=memory_mb).engines
    except SchemaError as error:
        raise BadReferenceError(str(error), mistake=error.mistake) from error


def varied_databases(reference: SqlReference, options: EngineOptions) -> tuple[list[Opened], str]:
    """Return databases made like the reference's first file, kept open from sample to sample, or why there are none."""
    kinds = {database.kind for database in reference.databases}
    if options.variations == 0 or "synthetic" in kinds:
        return [], ""
    if kinds != {"sqlite"}:
        return [], f"databases are made from SQLite files alone, and this is {kinds.pop()}"
    path = reference.databases[0].where
    key: Hashable = ("varied", short(path), options, _stamp(path), *map(short, reference.queries))
    reasons = session().reasons

    def make() -> tuple[Engine, ...]:
        try:
            return varied_engines(
                path,
                _stamp(path),
                reference.queries,
                count=options.variations,
                moment=options.moment,
                memory_mb=options.memory_mb,
            )
        except SchemaError as error:
            reasons.put(key, f"no database can be made like the file: {error}", 1)
            return ()

    engines = session().engines(key, make)
    unmade = "" if engines else reasons.get(key) or "on no database made like the file has the reference a clear answer"
    return [Opened(engine, (key, number)) for number, engine in enumerate(engines)], unmade


def aimed_databases(reference: SqlReference, options: EngineOptions, candidate: str) -> list[Opened]:
    """Return databases made like the reference's first file and aimed at what one candidate looks at beyond it.

    Candidates that look at the same share them.
    """
    if options.variations == 0 or {database.kind for database in reference.databases} != {"sqlite"}:
        return []
    path, moment, memory_mb = reference.databases[0].where, options.moment, options.memory_mb
    stamp, queries = _stamp(path), reference.queries
    try:
        aim = aim_at(path, stamp, queries, candidate, moment)
        if aim is None:
            return []
        key: Hashable = ("aimed", short(path), options, stamp, *map(short, queries), short(repr(aim)))
        engines = session().engines(
            key, lambda: aimed_engines(path, stamp, queries, aim, moment=moment, memory_mb=memory_mb)
        )
    except SchemaError:  # the same that kept any from being made
        return []
    return [Opened(engine, (key, number)) for number, engine in enumerate(engines)]


def _stamp(path: str) -> tuple[int, ...]:
    """Return what changes when a file does."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)
