"""Rows with the pass rate of their prompt; docs/data.md has the columns.

A prompt of which too little is known is left out where a range is asked for, since nobody knows whether it lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adjudge.data_pipelines.hygiene.config import DifficultyConfig
from adjudge.data_pipelines.hygiene.rows import PromptScores
from adjudge.data_pipelines.hygiene.sieve import PromptSieve, Verdict, run_sieve
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.statistics.intervals import UNKNOWN, Interval, wilson


def run_difficulty(config: DifficultyConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows with the pass rates of their prompts."""
    return run_sieve(config, _Difficulty(config), progress=progress)


def band(rate: float | None) -> str:
    """Return the name of a pass rate; None is one that is not known."""
    if rate is None:
        return "unknown"
    if rate in (0.0, 1.0):
        return "solved" if rate else "unsolved"
    return "hard" if rate < 1 / 3 else "easy" if rate > 2 / 3 else "medium"


class _Difficulty(PromptSieve[DifficultyConfig]):
    name = "difficulty"
    uses = ("score_column", "group_column", "pass_score", "min_scores", "lowest", "highest", "one_per_prompt")
    added: Mapping[str, Kind] = {
        "pass_rate": "number", "pass_low": "number", "pass_high": "number", "pass_n": "whole", "difficulty": "text",
    }  # fmt: skip
    why = added

    def __init__(self, config: DifficultyConfig) -> None:
        super().__init__(config)
        self._prompts = PromptScores.of(())
        self._passes = self._known = self._prompts.counts()

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        self._prompts = prompts = self.scores_in(rows)
        self._passes, self._known = prompts.counts(prompts.values >= self.config.pass_score), prompts.counts()

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        key = self.keys.of(row)
        place = self._prompts.places[key] if key is not None else None
        n = int(self._known[place]) if place is not None else 0
        rate = wilson(int(self._passes[place]), n) if n >= self.config.min_scores else UNKNOWN
        columns = {
            "pass_rate": rate.value,
            "pass_low": rate.low,
            "pass_high": rate.high,
            "pass_n": n,
            "difficulty": band(rate.value),
        }
        reason = self._reason(rate)
        if not reason and place is not None and self.config.one_per_prompt and self._prompts.firsts[place] != number:
            reason = "same_prompt"
        return Verdict(reason=reason, columns=columns)

    def _reason(self, rate: Interval) -> str:
        config = self.config
        if rate.value is None:
            return "too_few_scores" if config.lowest > 0 or config.highest < 1 else ""
        if rate.value < config.lowest:
            return "too_hard"
        return "too_easy" if rate.value > config.highest else ""

    def summary(self) -> Mapping[str, float]:
        least = self.config.min_scores
        counted = zip(self._passes.tolist(), self._known.tolist(), strict=True)
        bands = [band(passes / n if n >= least else None) for passes, n in counted]
        counts: dict[str, float] = {f"prompts_{name}": bands.count(name) for name in sorted(set(bands))}
        return counts | ({"unknown_scores": self._prompts.unknown} if self._prompts.unknown else {})
