"""Scores by sample id in a file: the output of `adjudge label`, or any rows with `id` and `value`.

The file is read along with the cases.  Where it has their order, as a label job writes it, little is in memory; where
it has another one, what was read and not yet asked for is.

Not covered: scores without ids; a benchmark whose rows hold the scores stores them itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from adjudge.evals.benchmarks.counting import sample_ids
from adjudge.evals.benchmarks.given import Given, finite, is_cut
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.protocol import NO_COST, STATUSES, Cost

_ROW_BYTES: Final = 256 << 20


class ScoreFile:
    """The scores of a file.

    Args:
        path: the file.
        name: whose scores, where a line holds several by name; "" where it holds one.

    Raises:
        ValueError: there is no such file.
    """

    def __init__(self, path: str, name: str = "") -> None:
        self.path = path
        self._name = name
        self._rows = self._read(open_source(path, limit=_ROW_BYTES).rows(Cursor()))
        self._ahead: dict[str, Given] = {}
        self._who: Mapping[str, Any] = {}

    def facts(self) -> Mapping[str, Any]:
        """Return who gave the scores, as far as the file says, and its name."""
        name, fingerprint = self._who.get("scorer"), self._who.get("fingerprint")
        return {"name": name or self.path, "fingerprint": fingerprint or "", "scores": self.path}

    def take(self, sample: str) -> Given:
        """Return the score of a sample, once.

        Raises:
            ValueError: the file has none, has two, or cannot be read.
        """
        while sample not in self._ahead:
            found = next(self._rows, None)
            if found is None:
                raise ValueError(
                    f"{self.path} holds no score for the sample {sample!r} (or was asked for it twice); label the "
                    "samples that --samples writes, all of them, and keep their ids"
                )
            name, given = found
            if name in self._ahead:
                raise ValueError(f"{self.path} holds two scores for the sample {name!r}; remove one")
            self._ahead[name] = given
        return self._ahead.pop(sample)

    def left(self) -> list[str]:
        """Return the ids of the scores that nobody asked for."""
        return [*self._ahead, *(name for name, _ in self._rows)]

    def check_left(self, outcomes: Sequence[Outcome], *, partly: bool) -> list[str]:
        """Return a sentence about the scores that nobody asked for, if there are any.

        Args:
            outcomes: of all cases that were read.
            partly: whether the benchmark was read in part, so that scores of the rest are no mistake.

        Raises:
            ValueError: the file holds two scores of a sample, or scores of samples that the benchmark does not have.
        """
        left = self.left()
        if not left:
            return []
        known = {name for outcome in outcomes for name in sample_ids(outcome)}
        twice = next((name for name in left if name in known), None)
        if twice is not None:
            raise ValueError(f"{self.path} holds two scores for the sample {twice!r}; remove one")
        if not partly:
            raise ValueError(
                f"{self.path} holds {len(left)} scores of samples that the benchmark does not have, the first one of "
                f"{left[0]!r}; give the scores of this input, under the ids that --samples writes"
            )
        return [f"{len(left)} scores of {self.path} belong to no case that was read, the first one to {left[0]!r}"]

    def _read(self, rows: Iterator[Any]) -> Iterator[tuple[str, Given]]:
        for row in rows:
            if row.data is None:
                raise ValueError(f"row {row.index} of {self.path} cannot be read: {row.error}")
            try:
                name, score = self._entry(row.data)
                given = given_in(score)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(f"row {row.index} of {self.path} is no score: {error}") from error
            if not self._who and isinstance(score.get("provenance"), Mapping):
                self._who = score["provenance"]
            yield name, given

    def _entry(self, data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        if "id" not in data:
            raise ValueError(f"it has no `id`; its fields are {', '.join(map(str, list(data)[:12]))}")
        name = str(data["id"])
        named = data.get("scores")
        if not isinstance(named, Mapping):
            if self._name:
                raise ValueError(f"it holds one score, and not several by name; drop --scores-of {self._name}")
            return name, data
        if self._name not in named:
            raise ValueError(f"it holds the scores of {', '.join(named)}; say which with --scores-of")
        score = named[self._name]
        if score is None:
            raise ValueError(f"the scorer {self._name!r} was not asked about the sample {name!r}")
        return name, score


def given_in(score: Mapping[str, Any]) -> Given:
    """Return a score that was written as JSON.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: it is no score.
    """
    if "value" not in score:
        raise ValueError(f"it has no `value`; its fields are {', '.join(map(str, list(score)[:12]))}")
    value = score["value"]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"`value` is {value!r}; it must be a number, or null where there is none")
    number = None if value is None else finite(value)
    if number is None and value is not None:
        raise ValueError(f"`value` is {value!r:.40}; it must be finite, or null where there is no number")
    status = score.get("status") or ("scored" if value is not None else "failed")
    if status not in STATUSES or (status == "scored") != (value is not None):
        raise ValueError(f"`status` is {status!r} with the value {value!r}; a score is a number exactly when scored")
    reason = str(score.get("reason") or "")
    evidence = evidence_in(score)
    cost = score.get("cost")
    return Given(
        value=number,
        status=status,
        reason=reason,
        steps=tuple(step["value"] for step in score.get("steps") or ()),
        cut_off=is_cut(reason, evidence),
        cost=_cost(cost) if isinstance(cost, Mapping) else NO_COST,
        error=str(evidence.get("error") or ""),
        places=tuple((step.get("start") or 0, step.get("end") or 0) for step in score.get("steps") or ()),
    )


def evidence_in(score: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the evidence of a score that was written as JSON."""
    evidence = score.get("evidence") or {}
    if isinstance(evidence, str):  # text in Parquet, whose columns have one shape
        evidence = json.loads(evidence)
    return evidence if isinstance(evidence, Mapping) else {}


def _cost(cost: Mapping[str, Any]) -> Cost:
    return Cost(
        seconds=float(cost.get("seconds") or 0.0),
        prompt_tokens=int(cost.get("prompt_tokens") or 0),
        completion_tokens=int(cost.get("completion_tokens") or 0),
    )
