"""Series, indexes and data frames of pandas as plain data, and back.

The file uses the standard library alone, and pandas where a value is one of its own.  Not covered: dtypes other than
numpy's, texts, categories and the nullable numbers; time zones, periods, intervals; frames' `attrs`.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

_DTYPE = re.compile(r"object|str|string|boolean|U?Int(8|16|32|64)|Float(32|64)")


class RareError(ValueError):
    """A table that is not covered."""


def parts_of(value: Any) -> list[Any] | None:
    """Return what a table is made of, as lists, arrays and plain values; None for what is no table, or a rare one."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.DataFrame | pandas.Series | pandas.Index):
        return None
    try:
        return _parts(pandas, value)
    except RareError:
        return None


def _parts(pandas: Any, value: Any) -> list[Any]:
    if isinstance(value, pandas.DataFrame):
        columns = [_column(value.iloc[:, at].array) for at in range(value.shape[1])]
        return ["frame", columns, _parts(pandas, value.index), _parts(pandas, value.columns)]
    if isinstance(value, pandas.Series):
        return ["series", _column(value.array), _parts(pandas, value.index), value.name]
    if isinstance(value, pandas.RangeIndex):
        return ["range", value.start, value.stop, value.step, value.name]
    if isinstance(value, pandas.MultiIndex):
        return ["multi", value.tolist(), list(value.names)]
    return ["index", _column(value.array), value.name]


def _column(values: Any) -> list[Any]:
    """Return an array of pandas' as ["numpy", array], ["category", categories, codes, ordered] or [dtype, list]."""
    kind = str(values.dtype)
    if kind == "category":
        return [kind, _column(values.categories.array), values.codes, bool(values.ordered)]
    if _DTYPE.fullmatch(kind):
        missing = values.isna()
        return [kind, [None if lacks else item for item, lacks in zip(values.tolist(), missing, strict=True)]]
    array = values.to_numpy()
    if array.dtype.kind not in "biufcmM" or str(array.dtype) != kind:
        raise RareError(f"a column of the dtype {kind}")
    return ["numpy", array]


def table(parts: Any) -> Any:
    """Return the table that `parts_of` took apart.

    Raises:
        ImportError: there is no pandas.
        TypeError, ValueError, LookupError: the parts make none.
    """
    pandas: Any = importlib.import_module("pandas")
    kind, *rest = parts
    if kind == "range":
        start, stop, step, name = rest
        return pandas.RangeIndex(start, stop, step, name=name)
    if kind == "multi":
        return pandas.MultiIndex.from_tuples(rest[0], names=rest[1])
    if kind == "index":
        return pandas.Index(_array(pandas, rest[0]), name=rest[1])
    if kind == "series":
        column, index, name = rest
        return pandas.Series(_array(pandas, column), index=table(index), name=name)
    if kind != "frame":
        raise ValueError(f"{kind!r:.20} is no kind of table")
    columns, index, labels = rest
    frame = pandas.DataFrame({at: _array(pandas, column) for at, column in enumerate(columns)}, index=table(index))
    frame.columns = table(labels)
    return frame


def _array(pandas: Any, column: Any) -> Any:
    kind, *rest = column
    if kind == "numpy":
        (array,) = rest
        if type(array).__name__ != "ndarray" or array.ndim != 1:
            raise ValueError("a column that is none")
        return array
    if kind == "category":
        categories, codes, ordered = rest
        return pandas.Categorical.from_codes(codes, _array(pandas, categories), ordered=bool(ordered))
    (items,) = rest
    if not _DTYPE.fullmatch(kind):
        raise ValueError(f"a column of the dtype {kind!r:.40}")
    return pandas.Series(items, dtype=kind).array
