"""Prompts are left out that are solved without reasoning: their answers can be guessed, so they teach no reasoning.

The tries are rows of a second file, scored by `adjudge label` or otherwise.  A prompt that nobody tried stays and is
counted.

Not covered: asking a model for the tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.prompt_scores import PromptKeys, PromptScores, prompt_keys
from adjudge.data_pipelines.hygiene.row_scores import row_scores
from adjudge.data_pipelines.hygiene.side_file import SideFile
from adjudge.data_pipelines.hygiene.sieve import Sieve, Verdict
from adjudge.io.jobs.maker import Kind


class GuessedFilter(Sieve):
    """Leaves out what can be guessed.

    Args:
        config: the options.

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
        config = self._config
        return {
            "score_column": config.score_column,
            "group_column": config.group_column,
            "guesses": self._tries.identity(),
            "pass_score": config.pass_score,
            "guessed_times": config.guessed_times,
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
