"""Rows with the pass rate of their prompt.

| column | what |
|---|---|
| `pass_rate` | share of the known scores that are passes, 0 to 1; none where too few are known |
| `pass_low`, `pass_high` | Wilson's 95 % interval of it |
| `pass_n` | known scores |
| `difficulty` | `unsolved` (no pass), `hard` (below 1/3), `medium`, `easy` (above 2/3), `solved`, `unknown` |

A prompt of which too little is known is left out where a range is asked for, since nobody knows whether it lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.data_pipelines.hygiene.config import DifficultyConfig
from adjudge.data_pipelines.hygiene.prompt_scores import PromptKeys, PromptScores, prompt_keys
from adjudge.data_pipelines.hygiene.rows import RowScores, row_scores
from adjudge.data_pipelines.hygiene.sieve import Sieve, Verdict, run_sieve
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.statistics.intervals import UNKNOWN, Interval, wilson


def run_difficulty(config: DifficultyConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows with the pass rates of their prompts."""
    return run_sieve(config, Difficulty(config), progress=progress)


def band(rate: float | None) -> str:
    """Return the name of a pass rate; None is one that is not known."""
    if rate is None:
        return "unknown"
    if rate in (0.0, 1.0):
        return "solved" if rate else "unsolved"
    return "hard" if rate < 1 / 3 else "easy" if rate > 2 / 3 else "medium"


class Difficulty(Sieve):
    """Adds pass rates; see the module."""

    name = "difficulty"
    learns = True
    added: Mapping[str, Kind] = {
        "pass_rate": "number",
        "pass_low": "number",
        "pass_high": "number",
        "pass_n": "whole",
        "difficulty": "text",
    }
    why = added

    def __init__(self, config: DifficultyConfig) -> None:
        self._config = config
        self._keys = PromptKeys()
        self._scores = RowScores(Column(config.score_column))
        self._places: dict[int, int] = {}
        self._passes = self._known = self._firsts = np.zeros(0, dtype=np.int64)
        self._unknown = 0

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        return self._config.given(
            "score_column", "group_column", "pass_score", "min_scores", "lowest", "highest", "one_per_prompt"
        )

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        self._scores, about_scores = row_scores(self._config.score_column, columns, first)
        self._keys, about_keys = prompt_keys(self._config.group_column, columns, first)
        return about_scores + about_keys

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """Count the passes of each prompt."""
        found = PromptScores.of((number, self._keys.of(row), self._scores.of(row)) for number, row in rows)
        self._passes, self._known = found.counts(found.values >= self._config.pass_score), found.counts()
        self._places, self._firsts, self._unknown = found.places, found.firsts, found.unknown

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return the pass rate of the row's prompt, and whether it lies in the range."""
        key = self._keys.of(row)
        place = self._places[key] if key is not None else None
        n = int(self._known[place]) if place is not None else 0
        rate = wilson(int(self._passes[place]), n) if n >= self._config.min_scores else UNKNOWN
        columns = {
            "pass_rate": rate.value,
            "pass_low": rate.low,
            "pass_high": rate.high,
            "pass_n": n,
            "difficulty": band(rate.value),
        }
        reason = self._reason(rate)
        if not reason and place is not None and self._config.one_per_prompt and self._firsts[place] != number:
            reason = "same_prompt"
        return Verdict(reason=reason, columns=columns)

    def _reason(self, rate: Interval) -> str:
        config = self._config
        if rate.value is None:
            return "too_few_scores" if config.lowest > 0 or config.highest < 1 else ""
        if rate.value < config.lowest:
            return "too_hard"
        return "too_easy" if rate.value > config.highest else ""

    def summary(self) -> Mapping[str, float]:
        """Return how many prompts are in each band, and how many scores were unknown."""
        least = self._config.min_scores
        counted = zip(self._passes.tolist(), self._known.tolist(), strict=True)
        bands = [band(passes / n if n >= least else None) for passes, n in counted]
        found: dict[str, float] = {f"prompts_{name}": bands.count(name) for name in sorted(set(bands))}
        return found | ({"unknown_scores": self._unknown} if self._unknown else {})
