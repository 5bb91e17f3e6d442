"""Prompts are kept whose scores differ enough: an advantage over the group is 0 where all scores are equal.

The rules for batches during training are `adjudge.rl_integration.trainer.rollouts.curricula.filters`; here the whole
input is known, so its mean deviation takes the place of RLPR's moving average.  A prompt with fewer than two known
scores has no deviation and is left out.

Not covered: scores on different scales in one input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.prompt_scores import PromptKeys, PromptScores, prompt_keys
from adjudge.data_pipelines.hygiene.row_scores import RowScores, row_scores
from adjudge.data_pipelines.hygiene.sieve import Sieve, Verdict
from adjudge.data_pipelines.jobs.maker import Kind
from adjudge.io.columns import Column

_ROUNDED = 1 - 1e-9  # a mean of equal deviations may come out a last bit above them


class SpreadFilter(Sieve):
    """Keeps prompts by the standard deviation of their scores, with n - 1 below.

    Args:
        config: the options; `rule` says which bar they must reach.
    """

    learns = True
    added: Mapping[str, Kind] = {"score_spread": "number"}
    why = added

    def __init__(self, config: FilterConfig) -> None:
        self.name = f"filter {config.rule}"
        self._config = config
        self._keys = PromptKeys()
        self._scores = RowScores(Column(config.score_column))
        self._places: dict[int, int] = {}
        self._spreads = np.zeros(0)
        self._bar = 0.0
        self._unknown = 0

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        config = self._config
        bar = {
            "spread": {"least_spread": config.least_spread},
            "relative_spread": {"beta": config.beta},
            "spread_quantile": {"quantile": config.quantile},
        }[config.rule]
        return {"score_column": config.score_column, "group_column": config.group_column, **bar}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        self._scores, about_scores = row_scores(self._config.score_column, columns, first)
        self._keys, about_keys = prompt_keys(self._config.group_column, columns, first)
        return about_scores + about_keys

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """Measure the deviations and set the bar."""
        found = PromptScores.of((number, self._keys.of(row), self._scores.of(row)) for number, row in rows)
        self._places, self._unknown = found.places, found.unknown
        self._spreads = found.deviations()
        known = self._spreads[~np.isnan(self._spreads)]
        match self._config.rule:
            case "relative_spread":
                self._bar = self._config.beta * float(known.mean()) if len(known) else 0.0
            case "spread_quantile":
                self._bar = float(np.quantile(known, self._config.quantile)) if len(known) else 0.0
            case _:
                self._bar = self._config.least_spread

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether the scores of the row's prompt differ enough."""
        key = self._keys.of(row)
        spread = float(self._spreads[self._places[key]]) if key is not None else np.nan
        if np.isnan(spread):
            return Verdict(reason="too_few_scores", columns={"score_spread": None})
        reason = "equal_scores" if spread == 0 else "little_spread" if spread < self._bar * _ROUNDED else ""
        return Verdict(reason=reason, columns={"score_spread": spread})

    def summary(self) -> Mapping[str, float]:
        """Return how many prompts there are, and the bar."""
        found = {"prompts": len(self._places), "least_spread": self._bar, "unknown_scores": self._unknown}
        return {name: value for name, value in found.items() if value}
