"""Responses are kept by how much their rewards can be trusted: PF-PPO on data that is labelled already.

The column `weight` says how often a response is drawn where as many are drawn for a prompt as it has known rewards; its
mean over a prompt is 1.  Under "auto", the weights are those of the policy with the largest R² between rewards and true
scores over the whole input; responses without a true score have no vote there.

Not covered: several true scores; a R² by prompt.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.prompt_scores import Numbers, PromptKeys, Wholes, prompt_keys
from adjudge.data_pipelines.hygiene.row_scores import RowScores, row_scores
from adjudge.data_pipelines.hygiene.sieve import Sieve, Verdict
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.response_weights import KEEPING, Keeping, explained, response_weights


class ResponseFilter(Sieve):
    """Keeps responses by the weights of a PF-PPO policy.

    Args:
        config: the options.
    """

    name = "filter pf_ppo"
    learns = True
    added: Mapping[str, Kind] = {"weight": "number", "policy": "text"}
    why: Mapping[str, Kind] = {"policy": "text"}

    def __init__(self, config: FilterConfig) -> None:
        self._config = config
        self._keys = PromptKeys()
        self._scores = self._truth = RowScores(Column(config.score_column))
        self._numbers = array("q")
        self._weights: Numbers = np.zeros(0)
        self._policy: Keeping = "best"
        self._explained: dict[Keeping, float] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        config = self._config
        return {
            "score_column": config.score_column,
            "group_column": config.group_column,
            "true_column": config.true_column,
            "policy": config.policy,
            "exponent": config.exponent,
        }

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        config = self._config
        self._scores, about_scores = row_scores(config.score_column, columns, first)
        self._keys, about_keys = prompt_keys(config.group_column, columns, first)
        for name in (self._scores.column.name, config.true_column):
            if name and any(isinstance(Column(name).of(row), list) for row in first):
                raise ValueError(f"the column {name!r} holds lists; --rule pf_ppo needs one response in each row")
        if config.true_column:
            self._truth, _ = row_scores(config.true_column, columns, first, "--true-column")
        return about_scores + about_keys

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """Find the policy, and the weight of each response with a known reward."""
        self._numbers, rewards, truth, groups = array("q"), array("d"), array("d"), array("q")
        places: dict[int, int] = {}
        for number, row in rows:
            key, reward = self._keys.of(row), self._scores.one(row)
            if key is None or reward is None:
                continue
            self._numbers.append(number)
            rewards.append(reward)
            groups.append(places.setdefault(key, len(places)))
            true = self._truth.one(row) if self._config.true_column else None
            truth.append(np.nan if true is None else true)
        self._weigh(np.array(rewards), np.array(groups, dtype=np.int64), np.array(truth))

    def _weigh(self, rewards: Numbers, groups: Wholes, truth: Numbers) -> None:
        sizes = np.bincount(groups)[groups] if len(groups) else groups
        weights: dict[Keeping, Numbers] = {
            policy: sizes * response_weights(rewards, groups, policy, exponent=self._config.exponent)
            for policy in KEEPING
            if self._config.policy in ("auto", policy) or self._config.true_column
        }
        known, told = ~np.isnan(truth), dict[Keeping, float]()
        for policy, each in weights.items():
            share = explained(rewards[known], truth[known], each[known])
            if share is not None:
                told[policy] = share
        self._explained = told
        if self._config.policy != "auto":
            self._policy = self._config.policy
        elif self._explained:
            self._policy = max(self._explained, key=lambda policy: self._explained[policy])
        elif len(rewards):
            raise ValueError(
                f"under no policy do the scores and {self._config.true_column!r} both differ, so nothing says which is "
                "best; choose one with --policy"
            )
        self._weights = weights.get(self._policy, np.zeros(0))

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return the weight of a response."""
        place = bisect_left(self._numbers, number)
        if place == len(self._numbers) or self._numbers[place] != number:
            return Verdict(reason="unknown_score", columns={"policy": self._policy})
        weight = float(self._weights[place])
        return Verdict(reason="" if weight > 0 else "no_weight", columns={"weight": weight, "policy": self._policy})

    def summary(self) -> Mapping[str, float]:
        """Return R² under each policy that has one."""
        return {f"r2_{policy}": share for policy, share in self._explained.items()}
