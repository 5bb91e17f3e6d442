"""The columns of a label job's output, in the formats that have columns.

Fields whose shape varies from row to row (evidence, parts, the input) have Arrow's JSON type there.
Not covered: the formats themselves (`jobs.formats`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adjudge.extras import need
from adjudge.io.jobs.formats import convert, format_of, json_text, needs_schema, without_surrogates

_VARYING = ("evidence", "parts")


def converter(
    output: Path | str, *, timings: bool, columns: bool, keep: bool, names: Sequence[str] = ()
) -> Callable[[Path, Path], None] | None:
    """Return what turns the lines (source) into the output's format (target), or None if the lines are the format.

    Args:
        output: the file or folder to be.
        timings: whether the lines hold `cost.seconds`.
        columns: whether they hold `column`.
        keep: whether they hold `input`.
        names: of the scorers, where the lines hold `scores` by name and `not_asked`; () where they hold one score.

    Raises:
        ValueError: no such format, or its package is not installed.
    """
    written = format_of(os.fspath(output))
    if written == "jsonl":
        return None
    schema = _schema(timings=timings, columns=columns, keep=keep, names=names) if needs_schema(written) else None
    return lambda source, target: convert(source, target, written, lambda: schema, _flat)


def _schema(*, timings: bool, columns: bool, keep: bool, names: Sequence[str]) -> Any:
    arrow = need("pyarrow", "writing Parquet")
    text, whole = arrow.string(), arrow.int64()
    score = _score_fields(arrow, timings=timings)
    several = [
        ("scores", arrow.struct([(name, arrow.struct(score)) for name in names])),
        ("not_asked", arrow.list_(text)),
        ("settled_by", text),
    ]
    return arrow.schema(
        [
            ("row", whole),
            ("id", text),
            ("group", text),
            ("sample_hash", text),
            *([("column", text)] if columns else []),
            *(several if names else score),
            *([("input", arrow.json_(text))] if keep else []),
        ]
    )


def _score_fields(arrow: Any, *, timings: bool) -> list[tuple[str, Any]]:
    text, number, whole = arrow.string(), arrow.float64(), arrow.int64()
    cost = [("prompt_tokens", whole), ("completion_tokens", whole)]
    provenance = [(name, text) for name in ("scorer", "fingerprint", "engine", "revision")]
    step = [("value", number), ("label", text), ("start", whole), ("end", whole)]
    return [
        ("value", number),
        ("status", text),
        ("reason", text),
        ("cost", arrow.struct([("seconds", number), *cost] if timings else cost)),
        ("evidence", arrow.json_(text)),
        ("parts", arrow.json_(text)),
        ("provenance", arrow.struct(provenance)),
        ("steps", arrow.list_(arrow.struct(step))),
        ("uncertainty", number),
    ]


def _flat(line: bytes) -> dict[str, Any]:
    """Return a line's record with the fields whose shape varies as JSON text."""
    record: dict[str, Any] = json.loads(line)
    for score in record["scores"].values() if "scores" in record else (record,):
        if score is not None:
            for name in _VARYING:
                score[name] = json_text(score[name])
    if "input" in record:
        record["input"] = json_text(record["input"])
    return dict(without_surrogates(record)) if b"\\ud" in line else record
