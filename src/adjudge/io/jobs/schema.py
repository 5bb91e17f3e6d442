"""The columns of Parquet and datasets outputs, from the fields of a maker and what its rows held."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from adjudge import wire
from adjudge.extras import need
from adjudge.io.jobs.formats import json_text, without_surrogates
from adjudge.io.jobs.kinds import ANY, NO_ITEMS, TURNS, UNKNOWN

_ONE: Final = {"text": "string", "number": "float64", "whole": "int64", "flag": "bool_"}


class Columns:
    """Columns and their kinds.

    Args:
        fields: those of the maker.
        kinds: what its chat fields, and the columns it kept, held.
    """

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
