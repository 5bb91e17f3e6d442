"""The lines a label job writes: one JSON object for each sample.

The same job writes the same bytes.  So seconds are left out unless asked for, because they differ from run to
run, and the keys of nested fields are sorted, because a score that comes back from the cache has them sorted.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from adjudge import wire
from adjudge.data_pipelines.label.samples import Item, hash_of
from adjudge.data_pipelines.label.verdicts import Verdict, Written, cause_of
from adjudge.io.jobs.lines import utf8_line
from adjudge.protocol import Provenance, Score

_AS_GIVEN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode
_SHOWN = 300  # characters of an error
_HEAD = ("value", "status", "reason")
_TAIL = ("cost", "evidence", "parts", "provenance", "steps", "uncertainty")


class ScoreWriter:
    """Turns the scores of one scorer into the text the output holds.

    Args:
        scorer: who is named where a score names nobody, and for samples that never reached the scorer.
        timings: whether `cost.seconds` is written.
    """

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
    """Turns items and what was written about them into lines.

    Args:
        columns: whether the response column is written; it is where there are several.
    """

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
        told = f'"not_asked":{not_asked},"settled_by":{_AS_GIVEN(settled_by)}'
        return self._line(item, f'"scores":{{{",".join(texts)}}},{told}')

    def _line(self, item: Item, scores: str) -> bytes:
        record: dict[str, Any] = {"row": item.row, "id": item.id, "group": item.group}
        record["sample_hash"] = hash_of(item.sample)
        if self._columns:
            record["column"] = item.column
        text = f"{_AS_GIVEN(record)[:-1]},{scores}}}"
        if item.input is not None:
            text = f"{text[:-1]},{_AS_GIVEN({'input': wire.encode(item.input, 'input')})[1:]}"
        return utf8_line(text)


def _drop_seconds(score: dict[str, Any]) -> None:
    del score["cost"]["seconds"]
    for part in score["parts"].values():
        _drop_seconds(part)
