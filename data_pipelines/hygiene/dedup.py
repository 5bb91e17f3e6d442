"""Rows without copies: of each cluster of `copies`, one row stays."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.hygiene.config import DedupConfig
from adjudge.data_pipelines.hygiene.copies import Copies, CopyFinder
from adjudge.data_pipelines.hygiene.rows import RowText, existing, text_columns
from adjudge.data_pipelines.hygiene.sieve import KEPT, Sieve, Verdict, run_sieve
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.values import number_of


def run_dedup(config: DedupConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write one row of each cluster of copies, in the order of the input."""
    return run_sieve(config, Dedup(config), progress=progress)


class Dedup(Sieve):
    """Leaves out copies; see the module."""

    name = "dedup"
    learns = True
    why: Mapping[str, Kind] = {"copy_of": "whole", "similarity": "number"}

    def __init__(self, config: DedupConfig) -> None:
        self._config = config
        self._text = RowText(())
        self._score: Column | None = None
        self._numbers = array("q")
        self._finder: CopyFinder | None = None
        self._copies: Copies | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        return self._config.given(
            "text_column", "threshold", "ngram", "kind", "permutations", "seed", "keep", "score_column"
        )

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        config = self._config
        self._text, notes = text_columns(config.text_column, columns, first, "--text-column")
        if config.score_column:
            self._score = existing(config.score_column, columns, first, "--score-column")
        return notes

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """Find the copies."""
        self.close()
        self._numbers = array("q")
        folder = Path(self._config.output).absolute().parent
        finder = self._finder = CopyFinder(self._config.minhash(), self._config.threshold, folder)
        for number, row in rows:
            text = self._text.text(row)
            self._numbers.append(number)
            finder.add(text, self._rank(text, row))
        self._copies = finder.find()

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether a row is the one of its cluster that stays."""
        assert self._finder is not None, "judge before learn"
        assert self._copies is not None, "judge before learn"
        place = bisect_left(self._numbers, number)
        kept = int(self._copies.kept[place])
        if kept == place:
            return KEPT
        reason = "exact_copy" if self._finder.same(place, kept) else "near_copy"
        if not self._config.dropped:
            return Verdict(reason=reason)
        similarity = self._finder.similarity(place, kept)
        return Verdict(reason=reason, columns={"copy_of": self._numbers[kept], "similarity": similarity})

    def summary(self) -> Mapping[str, float]:
        """Return how many rows had no text, and how many pairs were left to chance."""
        assert self._copies is not None, "summary before learn"
        found = {"without_text": self._copies.without_text, "pairs_not_compared": self._copies.pairs_not_compared}
        return {name: number for name, number in found.items() if number}

    def close(self) -> None:
        """Remove the file of texts."""
        if self._finder is not None:
            self._finder.close()

    def _rank(self, text: str, row: Mapping[str, Any]) -> float:
        """How much a row deserves to be the one that stays; of equals, the first does."""
        match self._config.keep:
            case "longest":
                return float(len(text))
            case "best":
                score = number_of(self._score.of(row)) if self._score is not None else None
                return -math.inf if score is None else score
        return 0.0
