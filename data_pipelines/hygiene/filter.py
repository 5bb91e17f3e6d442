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

Not covered: the language of a text; toxicity; anything that needs a model.
"""

from __future__ import annotations

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.guessed_filter import GuessedFilter
from adjudge.data_pipelines.hygiene.response_filter import ResponseFilter
from adjudge.data_pipelines.hygiene.sieve import Sieve, run_sieve
from adjudge.data_pipelines.hygiene.spread_filter import SpreadFilter
from adjudge.data_pipelines.hygiene.text_filter import LengthFilter, RepetitionFilter
from adjudge.io.jobs.report import JobProgress, JobReport


def run_filter(config: FilterConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that a filter lets through.

    Raises:
        ValueError: a mistake in the call, before any work.
        JobError: the job could not go on; the message says how it can.
    """
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
