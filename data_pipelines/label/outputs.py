"""The lines a label job writes: one JSON object for each sample.

The same job writes the same bytes.  So seconds are left out unless asked for, because they differ from run to
run, and the keys of nested fields are sorted, because a score that comes back from the cache has them sorted.

In formats with columns, fields whose shape varies from row to row (evidence, parts, the input) have Arrow's JSON type.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.label.bench import Verdict, Written, cause_of
from adjudge.data_pipelines.label.samples import Item, hash_of, prompt_hash_of
from adjudge.extras import need
from adjudge.io.jobs.formats import convert, format_of, json_text, needs_schema, without_surrogates
from adjudge.io.jobs.lines import kept, utf8_line
from adjudge.protocol import Provenance, Score

_AS_GIVEN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode
_SHOWN = 300  # characters of an error
_HEAD = ("value", "status", "reason")
_TAIL = ("cost", "evidence", "parts", "provenance", "steps", "uncertainty")


class ScoreWriter:
    """Turns the scores of one scorer into the text the output holds."""

    def __init__(self, scorer: Provenance, *, timings: bool) -> None:
        self._scorer = scorer
        self._timings = timings

    def settle(self, item: Item, verdict: Verdict | None) -> Written:
        """Return what is written about an item; None becomes a failed score that names the place."""
        if isinstance(verdict, Written):
            return verdict
        if isinstance(verdict, Score):
            return self.write(verdict)
        place = {"row": item.row, "line": item.line} if item.line else {"row": item.row}
        return self.write(Score.failed("bad_sample", error=item.error, **place))

    def write(self, score: Score) -> Written:
        """Return the text of a score, or of a failed one if the given one cannot be written."""
        if not score.provenance.scorer:
            score = dataclasses.replace(score, provenance=self._scorer)
        try:
            text = self._text(score)
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"the score cannot be written as JSON: {error}"
            score = dataclasses.replace(
                Score.failed("verifier_error", error=problem), provenance=score.provenance, cost=score.cost
            )
            text = self._text(score)
        said, of_the_row = cause_of(score) if score.status == "failed" else ("", False)
        who = score.provenance.scorer
        return Written(text, score.value, score.status, score.reason, who, score.cost, said[:_SHOWN], of_the_row)

    def _text(self, score: Score) -> str:
        data = score.to_dict()
        if not self._timings:
            _drop_seconds(data)
        head = _AS_GIVEN({key: data[key] for key in _HEAD})
        tail = _SORTED({key: data[key] for key in _TAIL})
        return f"{head[1:-1]},{tail[1:-1]}"


class LineWriter:
    """Turns items and what was written about them into lines."""

    def __init__(self, *, columns: bool) -> None:
        self._columns = columns

    def line(self, item: Item, score: Written) -> bytes:
        """Return the line of an item with one score."""
        return self._line(item, score.text)

    def named_line(self, item: Item, scores: Mapping[str, Written | None], settled_by: str | None) -> bytes:
        """Return the line of an item with scores by name; None marks a scorer that was not asked."""
        texts = [
            f"{_AS_GIVEN(name)}:{'null' if score is None else f'{{{score.text}}}'}" for name, score in scores.items()
        ]
        not_asked = _AS_GIVEN([name for name, score in scores.items() if score is None])
        settled = f'"not_asked":{not_asked},"settled_by":{_AS_GIVEN(settled_by)}'
        return self._line(item, f'"scores":{{{",".join(texts)}}},{settled}')

    def _line(self, item: Item, scores: str) -> bytes:
        record: dict[str, Any] = {"row": item.row, "id": item.id, "group": item.group}
        record |= {"sample_hash": hash_of(item.sample), "prompt_hash": prompt_hash_of(item.sample)}
        if self._columns:
            record["column"] = item.column
        text = f"{_AS_GIVEN(record)[:-1]},{scores}}}"
        if item.input is not None:
            text = f"{text[:-1]},{_AS_GIVEN({'input': kept(item.input, 'input')})[1:]}"
        return utf8_line(text)


def _drop_seconds(score: dict[str, Any]) -> None:
    del score["cost"]["seconds"]
    for part in score["parts"].values():
        _drop_seconds(part)


_VARYING = ("evidence", "parts")


def converter(
    output: Path | str, *, timings: bool, columns: bool, keep: bool, names: Sequence[str] = ()
) -> Callable[[Path, Path], None] | None:
    """Return what turns the lines (source) into the output's format (target), or None if the lines are the format.

    `timings`, `columns` and `keep` say whether the lines hold `cost.seconds`, `column` and `input`; `names` are those
    of the scorers where they hold `scores` by name, () where they hold one score.

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
            ("prompt_hash", text),
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
