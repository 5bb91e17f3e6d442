"""The schema that a row names: its own text, an entry of a file of schemas, or a SQLite file.

Not covered: schemas of servers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from adjudge.databases.schema_shape import SchemaError, schema_of_file


@dataclass(frozen=True, kw_only=True)
class GivenSchema:
    """A schema as `adjudge.databases.schema_shape.read_schema` takes it, and the SQLite file that it belongs to."""

    schema: Mapping[str, Any]
    file: str = ""


class NoSchemaError(ValueError):
    """A row without a usable schema.

    Attributes:
        reason: why, in snake_case.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def read_schemas(path: str) -> Mapping[str, Any]:
    """Return the schemas of a JSON file, by name.

    Raises:
        ValueError: there is no such file, or it maps no names to schemas.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"--schemas {path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise ValueError(f"--schemas {path} holds no mapping of names to schemas")
    return found


def given_schema(
    schema: Any, values: Any, named: Any, file: Any, *, schemas: Mapping[str, Any], folder: str
) -> GivenSchema:
    """Return the schema of a row; the row's own comes first, then the named one, then the file's.

    Args:
        schema: the row's schema, or None.
        values: the row's sample values, or None.
        named: the name of an entry of `schemas`, or None.
        file: the name of a SQLite file, or None.
        schemas: schemas by name.
        folder: where files lie.

    Raises:
        NoSchemaError: there is none.
    """
    path = find_file(file, folder)
    if schema is None and isinstance(named, str) and named in schemas:
        schema = schemas[named]
    if schema is not None:
        if not isinstance(schema, str | Mapping):
            raise NoSchemaError("bad_schema", f"the schema is a {type(schema).__name__}")
        return GivenSchema(schema={"schema": schema, **({"values": values} if values else {})}, file=path)
    if not path:
        raise NoSchemaError("no_schema", "the row names no schema and no file that is there")
    try:
        stat = Path(path).stat()
        return GivenSchema(schema=_of_file(path, stat.st_mtime_ns, stat.st_size), file=path)
    except (SchemaError, OSError) as error:
        raise NoSchemaError("bad_database", str(error)) from error


def find_file(name: Any, folder: str) -> str:
    """Return the SQLite file that a name stands for; "" if there is none."""
    if not isinstance(name, str) or not name:
        return ""
    paths = (Path(folder, name), Path(folder, f"{name}.sqlite"), Path(folder, name, f"{name}.sqlite"))
    # `Path.is_file` raises where a name is too long, such as a schema's text.
    return next((str(path) for path in paths if os.path.isfile(path)), "")


@lru_cache(maxsize=256)
def _of_file(path: str, changed: int, size: int) -> Mapping[str, Any]:
    """Return a file's schema; `changed` and `size` make a file that was replaced another one."""
    del changed, size
    return schema_of_file(path)
