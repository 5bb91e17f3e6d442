"""A schema as plain data: tables, columns, keys, and samples of their values.

Read from CREATE TABLE statements, which SQLite itself parses, or from mappings: `{"table": {"column": "TYPE"}}`, or the
form of BIRD's schema files, `{"tables": {name: {"columns": [{"name", "type", "primary_key", "foreign_keys",
"value_samples"}]}}}`.

Not covered: constraints other than keys and NOT NULL when rows are made; rows that break one are left out.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from adjudge.verifiers.sql.databases.statement import Statement, Token

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
MAX_TABLES: Final = 200
MAX_COLUMNS: Final = 400
_MAX_STEPS: Final = 50_000  # thousands of instructions of SQLite's machine; about a second
MAX_BYTES: Final = 64 << 20  # of a database that is made of a schema; those of BIRD's take less than one
_PAGE: Final = 4096


class SchemaError(ValueError):
    """A schema that cannot be read.

    Attributes:
        mistake: True when its shape is wrong; False when a statement or file of the right shape cannot be used.
    """

    def __init__(self, message: str, *, mistake: bool) -> None:
        super().__init__(message)
        self.mistake = mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShape:
    """One column.

    Attributes:
        kind: "integer", "real", "boolean", "text", "date", "moment" or "blob", by its declared type.
        key: whether it is the primary key, or a part of it.
        optional: whether it may be NULL.
        parent: the table and column it points to, None when it is not a foreign key.
        samples: values it has in the real database.
    """

    name: str
    kind: str
    key: bool = False
    optional: bool = True
    parent: tuple[str, str] | None = None
    samples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """One table: its name and columns."""

    name: str
    columns: tuple[ColumnShape, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables of a schema, and the statements that make them."""

    tables: tuple[TableShape, ...]
    statements: tuple[str, ...]


def read_schema(given: Mapping[str, Any]) -> Schema:
    """Return the schema of `{"schema": .., "values": {table: {column: [..]}}}`.

    Raises:
        SchemaError: it cannot be read.
    """
    unknown = sorted(set(given) - {"schema", "values"})
    if unknown:
        raise SchemaError(f"the database has a key {unknown[0]!r}; its keys are schema and values", mistake=True)
    samples = _samples(given.get("values") or {})
    schema = given["schema"]
    if isinstance(schema, str):
        return _from_statements(_statements(schema), samples)
    if not isinstance(schema, Mapping) or not schema:
        raise SchemaError("the schema is neither CREATE TABLE statements nor a mapping of tables", mistake=True)
    tables = schema["tables"] if isinstance(schema.get("tables"), Mapping) else schema
    statements, more = [], {}
    for name, table in tables.items():
        if str(name).lower().startswith("sqlite_"):
            continue  # SQLite's own, which schema files often list
        columns = _listed(name, table)
        try:
            more.update({(name.lower(), str(c["name"]).lower()): tuple(c.get("value_samples") or ()) for c in columns})
            statements.append(_create(str(name), columns))
        except (AttributeError, KeyError, TypeError) as error:
            raise SchemaError(
                f"the schema's table {name!r:.60} must give value_samples as a list, and each of foreign_keys as "
                "target_table and target_column",
                mistake=True,
            ) from error
    return _from_statements(tuple(statements), more | samples)


def schema_of_file(path: str) -> dict[str, Any]:
    """Return the schema of a SQLite file and samples of its values, as `read_schema` takes them.

    Raises:
        SchemaError: SQLite cannot read the file.
    """
    connection = sqlite3.connect(unchanging(path), uri=True, isolation_level=None)
    try:
        made = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL"
        ).fetchall()
        tables = [
            (name, sql) for name, sql in made if not name.startswith("sqlite_") and "VIRTUAL" not in sql[:20].upper()
        ]
        values: dict[str, dict[str, list[Any]]] = {}
        for name, _ in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")]
            values[name] = {column: _sampled(connection, name, column) for column in columns}
    except sqlite3.Error as error:
        raise SchemaError(f"SQLite cannot read the schema of {path}: {error}", mistake=False) from error
    finally:
        connection.close()
    return {"schema": ";\n".join(sql for _, sql in tables), "values": values}


def _sampled(connection: sqlite3.Connection, table: str, column: str) -> list[Any]:
    """Return up to 12 different short values from the first 1,000 rows, in their order."""
    first = f"SELECT {quoted(column)} AS c FROM {quoted(table)} LIMIT 1000"
    rows = connection.execute(f"SELECT DISTINCT c FROM ({first}) WHERE length(c) <= 200 LIMIT 12").fetchall()
    return [value for (value,) in rows if not isinstance(value, bytes)]


def unchanging(path: str) -> str:
    """Return the address at which SQLite opens a file for reading alone, which nobody changes meanwhile."""
    return f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1"


def quoted(name: str) -> str:
    """Return a name as SQLite quotes it."""
    return '"' + name.replace('"', '""') + '"'


def _samples(values: Any) -> dict[tuple[str, str], tuple[Any, ...]]:
    samples: dict[tuple[str, str], tuple[Any, ...]] = {}
    try:
        for table, columns in values.items():
            for column, listed in columns.items():
                samples[str(table).lower(), str(column).lower()] = tuple(listed)
    except (AttributeError, TypeError) as error:
        raise SchemaError("the values must be {table: {column: [value, ..]}}", mistake=True) from error
    return samples


def _statements(text: str) -> tuple[str, ...]:
    statements, parts = [], Statement(text, "sqlite").parts
    for part in parts:
        words = [token.upper for token in part[:4]]
        if words[:1] != ["CREATE"] or not {"TABLE", "VIEW", "INDEX"} & set(words):
            raise SchemaError(f"the schema has a statement that makes no table: {part[0].text!r:.40}", mistake=True)
        if words[1] in ("TEMP", "TEMPORARY") or _selects(part):
            said = "the schema has a temporary table or a CREATE TABLE .. AS; declare its tables with their columns"
            raise SchemaError(said, mistake=False)
        statements.append(text[part[0].start : part[-1].end])
    if not statements:
        raise SchemaError("the schema has no CREATE TABLE statement", mistake=True)
    return tuple(statements)


def _selects(part: Sequence[Token]) -> bool:
    """Return whether a statement is CREATE TABLE .. AS, whose query could fill the disk with temporary files."""
    if next((token.upper for token in part[1:4] if token.upper in ("TABLE", "VIEW", "INDEX")), "") != "TABLE":
        return False
    opening = next((at for at, token in enumerate(part) if token.text == "("), len(part))
    return any(token.upper == "AS" for token in part[:opening])


def _listed(name: str, table: Any) -> list[Mapping[str, Any]]:
    columns: Any = table.get("columns") if isinstance(table, Mapping) and "columns" in table else table
    if isinstance(columns, Mapping):
        columns = [{"name": column, "type": kind} for column, kind in columns.items()]
    if not isinstance(columns, list) or not columns or not all(isinstance(c, Mapping) and "name" in c for c in columns):
        raise SchemaError(f"the schema's table {name!r:.60} must list columns with name and type", mistake=True)
    return list(columns)


def _create(name: str, columns: list[Mapping[str, Any]]) -> str:
    lines = [f"{quoted(str(column['name']))} {_type(column.get('type'))}" for column in columns]
    keys = [quoted(str(column["name"])) for column in columns if column.get("primary_key")]
    if keys:
        lines.append(f"PRIMARY KEY ({', '.join(keys)})")
    for column in columns:
        for foreign in column.get("foreign_keys") or ():
            target, key = str(foreign["target_table"]), str(foreign["target_column"])
            lines.append(f"FOREIGN KEY ({quoted(str(column['name']))}) REFERENCES {quoted(target)} ({quoted(key)})")
    return f"CREATE TABLE {quoted(name)} ({', '.join(lines)})"


def _type(declared: Any) -> str:
    words = "".join(char if char.isalnum() or char == " " else " " for char in str(declared or "TEXT")).split()
    return words[0] if words else "TEXT"


def _from_statements(statements: tuple[str, ...], samples: Mapping[tuple[str, str], tuple[Any, ...]]) -> Schema:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    bound_work(connection)
    try:
        for statement in statements:
            connection.execute(statement)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = tuple([_table(connection, name, samples) for name in names if not name.startswith("sqlite_")])
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: a NUL or a lone surrogate
        raise SchemaError(f"SQLite cannot read the schema: {error}", mistake=False) from error
    finally:
        connection.close()
    if not tables or len(tables) > MAX_TABLES or max(len(table.columns) for table in tables) > MAX_COLUMNS:
        raise SchemaError(
            f"the schema has {len(tables)} tables; give from 1 to {MAX_TABLES}, of at most {MAX_COLUMNS} columns",
            mistake=False,
        )
    return Schema(tables=tables, statements=statements)


def bound_work(connection: sqlite3.Connection) -> None:
    """Have SQLite give up (`sqlite3.OperationalError`) after work, or at a size, that no honest schema asks for.

    CHECK and computed columns run whatever they say.
    """
    left = _MAX_STEPS

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left <= 0

    connection.set_progress_handler(stop, 1000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 << 20)
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    connection.execute(f"PRAGMA max_page_count = {MAX_BYTES // _PAGE}")


def _table(connection: sqlite3.Connection, name: str, samples: Mapping[tuple[str, str], tuple[Any, ...]]) -> TableShape:
    parents = {
        row[3].lower(): (row[2], row[4] or row[3])
        for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})")
    }
    columns = [
        ColumnShape(
            name=column,
            kind=_kind(declared, samples.get((name.lower(), column.lower()), ())),
            key=bool(key),
            optional=not (required or key),
            parent=parents.get(column.lower()),
            samples=samples.get((name.lower(), column.lower()), ()),
        )
        for _, column, declared, required, _, key in connection.execute(f"PRAGMA table_info({quoted(name)})")
    ]
    return TableShape(name=name, columns=tuple(columns))


def _kind(declared: str, samples: tuple[Any, ...]) -> str:
    text = declared.upper()
    if samples and all(isinstance(value, str) and _DATE.match(value) for value in samples):
        return "moment" if len(samples[0]) > len("2020-01-01") else "date"
    for words, kind in (
        (("TIMESTAMP", "DATETIME"), "moment"),
        (("DATE",), "date"),
        (("BOOL",), "boolean"),
        (("INT",), "integer"),
        (("CHAR", "TEXT", "CLOB", "STRING", "UUID", "TIME"), "text"),
        (("REAL", "FLOA", "DOUB", "NUM", "DEC", "MONEY"), "real"),
        (("BLOB", "BYTEA"), "blob"),
    ):
        if any(word in text for word in words):
            return kind
    return "integer" if samples and all(isinstance(value, int) for value in samples) else "text"
