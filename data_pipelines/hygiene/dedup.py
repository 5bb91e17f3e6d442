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
from adjudge.data_pipelines.hygiene.rows import existing
from adjudge.data_pipelines.hygiene.sieve import KEPT, TextSieve, Verdict, run_sieve
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.values import number_of


def run_dedup(config: DedupConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write one row of each cluster of copies, in the order of the input."""
    return run_sieve(config, _Dedup(config), progress=progress)


class _Dedup(TextSieve[DedupConfig]):
    name = "dedup"
    learns = True
    uses = ("text_column", "threshold", "ngram", "kind", "permutations", "seed", "keep", "score_column")
    why: Mapping[str, Kind] = {"copy_of": "whole", "similarity": "number"}

    def __init__(self, config: DedupConfig) -> None:
        super().__init__(config)
        self._score: Column | None = None
        self._numbers = array("q")
        self._finder: CopyFinder | None = None
        self._copies: Copies | None = None

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        if self.config.score_column:
            self._score = existing(self.config.score_column, columns, first, "--score-column")
        return super().check(columns, first)

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        self.close()
        self._numbers = array("q")
        folder = Path(self.config.output).absolute().parent
        finder = self._finder = CopyFinder(self.config.minhash(), self.config.threshold, folder)
        for number, row in rows:
            text = self.text.text(row)
            self._numbers.append(number)
            finder.add(text, self._rank(text, row))
        self._copies = finder.find()

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        assert self._finder is not None, "judge before learn"
        assert self._copies is not None, "judge before learn"
        place = bisect_left(self._numbers, number)
        kept = int(self._copies.kept[place])
        if kept == place:
            return KEPT
        reason = "exact_copy" if self._finder.same(place, kept) else "near_copy"
        if not self.config.dropped:
            return Verdict(reason=reason)
        similarity = self._finder.similarity(place, kept)
        return Verdict(reason=reason, columns={"copy_of": self._numbers[kept], "similarity": similarity})

    def summary(self) -> Mapping[str, float]:
        assert self._copies is not None, "summary before learn"
        numbers = {"without_text": self._copies.without_text, "pairs_not_compared": self._copies.pairs_not_compared}
        return {name: number for name, number in numbers.items() if number}

    def close(self) -> None:
        if self._finder is not None:
            self._finder.close()

    def _rank(self, text: str, row: Mapping[str, Any]) -> float:
        """How much a row deserves to be the one that stays; of equals, the first does."""
        match self.config.keep:
            case "longest":
                return float(len(text))
            case "best":
                score = number_of(self._score.of(row)) if self._score is not None else None
                return -math.inf if score is None else score
        return 0.0
