"""The filters by name; each is a sieve of its own.

| rule | leaves out | source |
|---|---|---|
| `spread` | prompts whose scores are equal, or differ less than a deviation | DAPO; ReST-GRPO with 0.05 |
| `relative_spread` | prompts below a share of the mean deviation | RLPR, on the whole input in place of batches |
| `spread_quantile` | prompts below a quantile of the deviations | |
| `pf_ppo` | responses of weight 0, and adds the weight of the others | PF-PPO, arXiv 2409.06957 |
| `guessed` | prompts that are solved without reasoning | Kimi k1.5, arXiv 2501.12599 |
| `length` | texts that are too short or too long | |
| `repetition` | texts that say the same again and again | RLPR, 10-grams that occur six times |

An advantage over the group is 0 where all scores are equal.  The rules for batches during training are
`adjudge.rl_integration.trainer.rollouts.curricula.filters`; here the whole input is known, so its mean deviation takes
the place of RLPR's moving average.  A prompt with fewer than two known scores has no deviation and is left out.

The column `weight` of `pf_ppo` says how often a response is drawn where as many are drawn for a prompt as it has known
rewards; its mean over a prompt is 1.  Under "auto", the weights are those of the policy with the largest R² between
rewards and true scores over the whole input; responses without a true score have no vote there.

The tries of `guessed` are rows of a second file, scored by `adjudge label` or otherwise.  A prompt that nobody tried
stays and is counted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.minhash import grams, tokens
from adjudge.data_pipelines.hygiene.prompt_scores import Numbers, PromptKeys, PromptScores, Wholes, prompt_keys
from adjudge.data_pipelines.hygiene.rows import RowScores, RowText, SideFile, row_scores, text_columns
from adjudge.data_pipelines.hygiene.sieve import KEPT, Sieve, Verdict, run_sieve
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.response_weights import KEEPING, Keeping, explained, response_weights

_ROUNDED = 1 - 1e-9  # a mean of equal deviations may come out a last bit above them


class SpreadFilter(Sieve):
    """Keeps prompts by the standard deviation of their scores, with n - 1 below."""

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
        bars = {"spread": "min_spread", "relative_spread": "beta", "spread_quantile": "quantile"}
        return self._config.given("score_column", "group_column", bars[self._config.rule])

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
                self._bar = self._config.min_spread

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
        found = {"prompts": len(self._places), "min_spread": self._bar, "unknown_scores": self._unknown}
        return {name: value for name, value in found.items() if value}


class ResponseFilter(Sieve):
    """Keeps responses by the weights of a PF-PPO policy."""

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
        return self._config.given("score_column", "group_column", "true_column", "policy", "exponent")

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


class GuessedFilter(Sieve):
    """Leaves out what can be guessed.

    Raises:
        ValueError: the file of tries cannot be read.
    """

    name = "filter guessed"
    learns = True
    added: Mapping[str, Kind] = {"guess_tries": "whole"}
    why: Mapping[str, Kind] = {"guess_tries": "whole", "guess_passes": "whole"}

    def __init__(self, config: FilterConfig) -> None:
        self._config = config
        self._tries = SideFile(config.guesses, limit=config.max_row_mb << 20)
        self._keys = PromptKeys()
        self._counted: dict[int, tuple[int, int]] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        return self._config.given("score_column", "group_column", "pass_score", "guessed_times") | {
            "guesses": self._tries.identity()
        }

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns in both files, and count the tries."""
        config, tries = self._config, self._tries
        self._keys, notes = prompt_keys(config.group_column, columns, first)
        scores, about_scores = row_scores(config.score_column, tries.columns, tries.first)
        keys, about_keys = prompt_keys(config.group_column, tries.columns, tries.first)
        found = PromptScores.of((number, keys.of(row), scores.of(row)) for number, row in tries.rows())
        passes, known = found.counts(found.values >= config.pass_score), found.counts()
        self._counted = {key: (int(passes[place]), int(known[place])) for key, place in found.places.items()}
        notes += tuple(f"{config.guesses}: {note}" for note in about_scores + about_keys)
        return (*notes, f"{config.guesses} holds {len(found.values)} tries at {len(self._counted)} prompts")

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """See that the two files speak of the same prompts."""
        empty = True
        for _, row in rows:
            empty = False
            if self._keys.of(row) in self._counted:
                return
        if not empty:
            raise ValueError(
                f"no prompt of {self._config.input} was tried in {self._config.guesses}; name the column that both "
                "share with --group-column"
            )

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether the row's prompt was guessed."""
        key = self._keys.of(row)
        passes, tries = self._counted.get(key, (0, 0)) if key is not None else (0, 0)
        reason = "guessed" if passes >= self._config.guessed_times else ""
        columns = {"guess_tries": tries, "guess_passes": passes}
        return Verdict(reason=reason, columns=columns, counts={} if tries else {"rows_not_tried": 1})


class _TextFilter(Sieve):
    """Looks at the texts of rows."""

    def __init__(self, config: FilterConfig) -> None:
        self._config = config
        self._text = RowText(())

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        self._text, notes = text_columns(self._config.text_column, columns, first, "--text-column")
        return notes


class LengthFilter(_TextFilter):
    """Keeps texts of so many words."""

    name = "filter length"
    why: Mapping[str, Kind] = {"words": "whole"}

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        return self._config.given("text_column", "min_words", "max_words")

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether the text is neither too short nor too long."""
        words = len(tokens(self._text.text(row), symbols=False))
        if words < self._config.min_words:
            return Verdict(reason="too_short", columns={"words": words})
        return Verdict(reason="too_long", columns={"words": words}) if words > self._config.max_words else KEPT


class RepetitionFilter(_TextFilter):
    """Keeps texts in which no run of words occurs too often."""

    name = "filter repetition"
    why: Mapping[str, Kind] = {"repeated": "text", "times": "whole"}

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        return self._config.given("text_column", "repeat_ngram", "repeat_times")

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether the text repeats itself."""
        found = tokens(self._text.text(row))
        if len(found) < self._config.repeat_ngram + self._config.repeat_times - 1:
            return KEPT
        gram, times = Counter(grams(found, self._config.repeat_ngram)).most_common(1)[0]
        if times < self._config.repeat_times:
            return KEPT
        return Verdict(reason="repetition", columns={"repeated": gram, "times": times})


def run_filter(config: FilterConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that a filter lets through."""
    return run_sieve(config, sieve_of(config), progress=progress)


def sieve_of(config: FilterConfig) -> Sieve:
    """Return the sieve of a rule."""
    match config.rule:
        case "spread" | "relative_spread" | "spread_quantile":
            return SpreadFilter(config)
        case "pf_ppo":
            return ResponseFilter(config)
        case "guessed":
            return GuessedFilter(config)
        case "length":
            return LengthFilter(config)
        case "repetition":
            return RepetitionFilter(config)
