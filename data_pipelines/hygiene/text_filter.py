"""Rows are kept by the shape of their text: its length, and how often it repeats itself.

Not covered: what the text says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.data_pipelines.hygiene.config import FilterConfig
from adjudge.data_pipelines.hygiene.row_text import RowText, text_columns
from adjudge.data_pipelines.hygiene.shingles import grams, tokens
from adjudge.data_pipelines.hygiene.sieve import KEPT, Sieve, Verdict
from adjudge.io.jobs.maker import Kind


class _TextFilter(Sieve):
    """Looks at the texts of rows.

    Args:
        config: the options.
    """

    def __init__(self, config: FilterConfig) -> None:
        self._config = config
        self._text = RowText(())

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        self._text, notes = text_columns(self._config.text_column, columns, first, "--text-column")
        return notes


class LengthFilter(_TextFilter):
    """Keeps texts of so many words.

    Args:
        config: the options.
    """

    name = "filter length"
    why: Mapping[str, Kind] = {"words": "whole"}

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        config = self._config
        return {
            "text_column": list(config.text_column),
            "least_words": config.least_words,
            "most_words": config.most_words,
        }

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether the text is neither too short nor too long."""
        words = len(tokens(self._text.text(row), symbols=False))
        if words < self._config.least_words:
            return Verdict(reason="too_short", columns={"words": words})
        return Verdict(reason="too_long", columns={"words": words}) if words > self._config.most_words else KEPT


class RepetitionFilter(_TextFilter):
    """Keeps texts in which no run of words occurs too often.

    Args:
        config: the options.
    """

    name = "filter repetition"
    why: Mapping[str, Kind] = {"repeated": "text", "times": "whole"}

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        config = self._config
        return {
            "text_column": list(config.text_column),
            "repeat_ngram": config.repeat_ngram,
            "repeat_times": config.repeat_times,
        }

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether the text repeats itself."""
        found = tokens(self._text.text(row))
        if len(found) < self._config.repeat_ngram + self._config.repeat_times - 1:
            return KEPT
        gram, times = Counter(grams(found, self._config.repeat_ngram)).most_common(1)[0]
        if times < self._config.repeat_times:
            return KEPT
        return Verdict(reason="repetition", columns={"repeated": gram, "times": times})
