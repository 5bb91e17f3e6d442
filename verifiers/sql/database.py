"""From a reference's databases to engines that run queries.

Not covered: what the engines allow; each says so itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

from adjudge.bad_reference import BadReferenceError
from adjudge.databases.schema_shape import SchemaError, schema_of_file
from adjudge.verifiers.sql.duckdb_engine import DuckdbEngine
from adjudge.verifiers.sql.engine import Engine
from adjudge.verifiers.sql.postgres_engine import PostgresEngine
from adjudge.verifiers.sql.reference import Database, SqlReference
from adjudge.verifiers.sql.session import session, short
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.synthesis import synthesise
from adjudge.verifiers.sql.variation import aim_at, aimed_engines, varied_engines


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
