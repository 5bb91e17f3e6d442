"""The filters by name, each a sieve; docs/data.md has the rules and their sources.

The rules for batches during training are `adjudge.rl_integration.trainer.rollouts.curricula.filters`; here the whole
input is known, so its mean deviation takes the place of RLPR's moving average.  A prompt with fewer than two known
scores has no deviation and is left out.

The column `weight` of `pf_ppo` says how often a response is drawn where as many are drawn for a prompt as it has known
rewards; its mean over a prompt is 1.  Under "auto", the weights are those of the policy with the largest R² between
rewards and true scores over the whole input; responses without a true score have no vote there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.minhash import grams, tokens
from adjudge.data_pipelines.hygiene.rows import (
    Numbers,
    PromptKeys,
    PromptScores,
    SideFile,
    Wholes,
    existing,
    prompt_keys,
    row_scores,
)
from adjudge.data_pipelines.hygiene.sieve import KEPT, PromptSieve, Sieve, TextSieve, Verdict, run_sieve
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.values import number_of
from adjudge.response_weights import KEEPING, Keeping, explained, response_weights

_ROUNDED = 1 - 1e-9  # a mean of equal deviations may come out a last bit above them


def _check_single(names: Sequence[str], first: Sequence[Mapping[str, Any]], rule: str) -> None:
    for name in names:
        if name and any(isinstance(Column(name).of(row), list) for row in first):
            raise ValueError(f"the column {name!r} holds lists; --rule {rule} needs one response in each row")


class _SpreadFilter(PromptSieve[FilterConfig]):
    """Keeps prompts by the standard deviation of their scores, with n - 1 below."""

    added: Mapping[str, Kind] = {"score_spread": "number"}
    why = added

    def __init__(self, config: FilterConfig) -> None:
        super().__init__(config)
        self.name = f"filter {config.rule}"
        bars = {"spread": "min_spread", "relative_spread": "beta", "spread_quantile": "quantile"}
        self.uses = ("score_column", "group_column", bars[config.rule])
        self._places: dict[int, int] = {}
        self._spreads = np.zeros(0)
        self._bar = 0.0
        self._unknown = 0

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        prompts = self.scores_in(rows)
        self._places, self._unknown, self._spreads = prompts.places, prompts.unknown, prompts.deviations()
        known = self._spreads[~np.isnan(self._spreads)]
        match self.config.rule:
            case "relative_spread":
                self._bar = self.config.beta * float(known.mean()) if len(known) else 0.0
            case "spread_quantile":
                self._bar = float(np.quantile(known, self.config.quantile)) if len(known) else 0.0
            case _:
                self._bar = self.config.min_spread

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        key = self.keys.of(row)
        spread = float(self._spreads[self._places[key]]) if key is not None else np.nan
        if np.isnan(spread):
            return Verdict(reason="too_few_scores", columns={"score_spread": None})
        reason = "equal_scores" if spread == 0 else "little_spread" if spread < self._bar * _ROUNDED else ""
        return Verdict(reason=reason, columns={"score_spread": spread})

    def summary(self) -> Mapping[str, float]:
        numbers = {"prompts": len(self._places), "min_spread": self._bar, "unknown_scores": self._unknown}
        return {name: value for name, value in numbers.items() if value}


class _PersistentFilter(PromptSieve[FilterConfig]):
    """Keeps prompts at which a policy goes on failing, by their pass rate p_k in each round k of training.

    A prompt stays where max p_k < 1/2 and the least-squares slope of p_k over k is at most 0 (SwS, arXiv 2506.08989;
    from memory, and ours for the slope of exactly 0, which prompts have that were never solved).
    """

    name = "filter persistent"
    uses = ("score_column", "group_column", "pass_score", "round_column")
    added: Mapping[str, Kind] = {"best_rate": "number", "rate_slope": "number"}
    why = added

    def __init__(self, config: FilterConfig) -> None:
        super().__init__(config)
        self._round = Column(config.round_column)
        self._passes: dict[int, dict[float, list[bool]]] = {}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        self._round = existing(self.config.round_column, columns, first, "--round-column")
        return super().check(columns, first)

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        self._passes = {}
        for _, row in rows:
            key, number = self.keys.of(row), number_of(self._round.of(row))
            if key is not None and number is not None:
                known = [score >= self.config.pass_score for score in self.scores.of(row) if score is not None]
                self._passes.setdefault(key, {}).setdefault(number, []).extend(known)

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        key = self.keys.of(row)
        rounds = {at: passes for at, passes in self._passes.get(key, {}).items() if passes} if key is not None else {}
        if len(rounds) < 2:
            return Verdict(reason="too_few_rounds", columns={"best_rate": None, "rate_slope": None})
        when, rates = np.array([*rounds]), np.array([sum(one) / len(one) for one in rounds.values()])
        away = when - when.mean()
        best, slope = float(rates.max()), float((away * rates).sum() / (away**2).sum())
        reason = "was_solved" if best >= 0.5 else "improves" if slope > 0 else ""
        return Verdict(reason=reason, columns={"best_rate": best, "rate_slope": slope})


class _ResponseFilter(PromptSieve[FilterConfig]):
    """Keeps responses by the weights of a PF-PPO policy."""

    name = "filter pf_ppo"
    uses = ("score_column", "group_column", "true_column", "policy", "exponent")
    added: Mapping[str, Kind] = {"weight": "number", "policy": "text"}
    why: Mapping[str, Kind] = {"policy": "text"}

    def __init__(self, config: FilterConfig) -> None:
        super().__init__(config)
        self._truth = self.scores
        self._numbers = array("q")
        self._weights: Numbers = np.zeros(0)
        self._policy: Keeping = "best"
        self._explained: dict[Keeping, float] = {}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        notes, true_column = super().check(columns, first), self.config.true_column
        _check_single((self.scores.column.name, true_column), first, "pf_ppo")
        if true_column:
            self._truth, _ = row_scores(true_column, columns, first, "--true-column")
        return notes

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        self._numbers, rewards, truth, groups = array("q"), array("d"), array("d"), array("q")
        places: dict[int, int] = {}
        for number, row in rows:
            key, reward = self.keys.of(row), self.scores.one(row)
            if key is None or reward is None:
                continue
            self._numbers.append(number)
            rewards.append(reward)
            groups.append(places.setdefault(key, len(places)))
            true = self._truth.one(row) if self.config.true_column else None
            truth.append(np.nan if true is None else true)
        self._weigh(np.array(rewards), np.array(groups, dtype=np.int64), np.array(truth))

    def _weigh(self, rewards: Numbers, groups: Wholes, truth: Numbers) -> None:
        sizes = np.bincount(groups)[groups] if len(groups) else groups
        weights: dict[Keeping, Numbers] = {
            policy: sizes * response_weights(rewards, groups, policy, exponent=self.config.exponent)
            for policy in KEEPING
            if self.config.policy in ("auto", policy) or self.config.true_column
        }
        known = ~np.isnan(truth)
        self._explained = {}
        for policy, each in weights.items():
            share = explained(rewards[known], truth[known], each[known])
            if share is not None:
                self._explained[policy] = share
        if self.config.policy != "auto":
            self._policy = self.config.policy
        elif self._explained:
            self._policy = max(self._explained, key=lambda policy: self._explained[policy])
        elif len(rewards):
            raise ValueError(
                f"under no policy do the scores and {self.config.true_column!r} both differ, so nothing says which is "
                "best; choose one with --policy"
            )
        self._weights = weights.get(self._policy, np.zeros(0))

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        place = bisect_left(self._numbers, number)
        if place == len(self._numbers) or self._numbers[place] != number:
            return Verdict(reason="unknown_score", columns={"policy": self._policy})
        weight = float(self._weights[place])
        return Verdict(reason="" if weight > 0 else "no_weight", columns={"weight": weight, "policy": self._policy})

    def summary(self) -> Mapping[str, float]:
        return {f"r2_{policy}": share for policy, share in self._explained.items()}


class _PassedFilter(Sieve[FilterConfig]):
    """Keeps responses by their own scores."""

    name = "filter passed"
    uses = ("score_column", "pass_score", "max_score")
    why: Mapping[str, Kind] = {"score": "number"}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        self._scores, notes = row_scores(self.config.score_column, columns, first)
        _check_single((self._scores.column.name,), first, "passed")
        return notes

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        score = self._scores.one(row)
        if score is None:
            return Verdict(reason="unknown_score")
        most = self.config.max_score
        if most is not None and score > most:
            return Verdict(reason="too_high", columns={"score": score})
        return KEPT if score >= self.config.pass_score else Verdict(reason="not_passed", columns={"score": score})


class _GuessedFilter(Sieve[FilterConfig]):
    """Leaves out what can be guessed.

    Raises:
        ValueError: the file of tries cannot be read.
    """

    name = "filter guessed"
    learns = True
    uses = ("score_column", "group_column", "pass_score", "guessed_times")
    added: Mapping[str, Kind] = {"guess_tries": "whole"}
    why: Mapping[str, Kind] = {"guess_tries": "whole", "guess_passes": "whole"}

    def __init__(self, config: FilterConfig) -> None:
        super().__init__(config)
        self._tries = SideFile(config.guesses, limit=config.max_row_mb << 20)
        self.keys = PromptKeys()
        self._counted: dict[int, tuple[int, int]] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        return {**super().options, "guesses": self._tries.identity()}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        config, tries = self.config, self._tries
        self.keys, notes = prompt_keys(config.group_column, columns, first, groups=False)
        scores, about_scores = row_scores(config.score_column, tries.columns, tries.first)
        keys, about_keys = prompt_keys(config.group_column, tries.columns, tries.first, groups=False)
        tried = PromptScores.of((number, keys.of(row), scores.of(row)) for number, row in tries.rows())
        passes, known = tried.counts(tried.values >= config.pass_score), tried.counts()
        self._counted = {key: (int(passes[place]), int(known[place])) for key, place in tried.places.items()}
        notes += tuple(f"{config.guesses}: {note}" for note in about_scores + about_keys)
        return (*notes, f"{config.guesses} holds {len(tried.values)} tries at {len(self._counted)} prompts")

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        empty = True
        for _, row in rows:
            empty = False
            if self.keys.of(row) in self._counted:
                return
        if not empty:
            raise ValueError(
                f"no prompt of {self.config.input} was tried in {self.config.guesses}; name the column that both "
                "share with --group-column"
            )

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        key = self.keys.of(row)
        passes, tries = self._counted.get(key, (0, 0)) if key is not None else (0, 0)
        reason = "guessed" if passes >= self.config.guessed_times else ""
        columns = {"guess_tries": tries, "guess_passes": passes}
        return Verdict(reason=reason, columns=columns, counts={} if tries else {"rows_not_tried": 1})


class _LengthFilter(TextSieve[FilterConfig]):
    """Keeps texts of so many words."""

    name = "filter length"
    uses = ("text_column", "min_words", "max_words")
    why: Mapping[str, Kind] = {"words": "whole"}

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        words = len(tokens(self.text.text(row), symbols=False))
        if words < self.config.min_words:
            return Verdict(reason="too_short", columns={"words": words})
        return Verdict(reason="too_long", columns={"words": words}) if words > self.config.max_words else KEPT


class _RepetitionFilter(TextSieve[FilterConfig]):
    """Keeps texts in which no run of words occurs too often."""

    name = "filter repetition"
    uses = ("text_column", "repeat_ngram", "repeat_times")
    why: Mapping[str, Kind] = {"repeated": "text", "times": "whole"}

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        words = tokens(self.text.text(row))
        if len(words) < self.config.repeat_ngram + self.config.repeat_times - 1:
            return KEPT
        gram, times = Counter(grams(words, self.config.repeat_ngram)).most_common(1)[0]
        if times < self.config.repeat_times:
            return KEPT
        return Verdict(reason="repetition", columns={"repeated": gram, "times": times})


def run_filter(config: FilterConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that a filter lets through."""
    return run_sieve(config, sieve_of(config), progress=progress)


_SIEVES: Final[Mapping[str, type[Sieve[FilterConfig]]]] = {
    "spread": _SpreadFilter,
    "relative_spread": _SpreadFilter,
    "spread_quantile": _SpreadFilter,
    "persistent": _PersistentFilter,
    "pf_ppo": _ResponseFilter,
    "passed": _PassedFilter,
    "guessed": _GuessedFilter,
    "length": _LengthFilter,
    "repetition": _RepetitionFilter,
}


def sieve_of(config: FilterConfig) -> Sieve[FilterConfig]:
    """Return the sieve of a rule."""
    return _SIEVES[config.rule](config)
