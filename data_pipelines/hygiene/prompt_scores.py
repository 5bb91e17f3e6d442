"""The scores of each prompt of a dataset, in whatever order its rows stand, and what rows of one prompt share.

Memory: about 110 bytes for each prompt, and 16 for each score.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.hygiene.config import DifficultyConfig, FilterConfig
from adjudge.data_pipelines.hygiene.minhash import normalised
from adjudge.data_pipelines.hygiene.rows import PROMPTS, RowScores, existing, holds_objects, row_scores
from adjudge.data_pipelines.hygiene.sieve import Sieve
from adjudge.io.columns import GUESSES, MISSING, Column, nested_names


@dataclass(frozen=True, slots=True)
class PromptKeys:
    """Names the prompts of rows."""

    columns: tuple[Column, ...] = ()

    def of(self, row: Mapping[str, Any]) -> int | None:
        """Return 64 bits that rows of the same prompt share; None for a row that names none.

        Prompts are compared without case, width and white space, groups as they are: "aB3" is another one than "Ab3".
        """
        for column in self.columns:
            value = column.of(row)
            if value is MISSING or value is None or value == [] or (isinstance(value, str) and not value.strip()):
                continue
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
            if isinstance(value, str) and column.name in PROMPTS:
                text = normalised(value)
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            return int.from_bytes(digest, "little")
        return None


def prompt_keys(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]]
) -> tuple[PromptKeys, tuple[str, ...]]:
    """Decide what names the prompts; return the reader, and a sentence if columns were guessed.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    if named:
        return PromptKeys((existing(named, columns, first, "--group-column"),)), ()
    known = {*columns, *nested_names(first)}
    groups = [name for name in GUESSES["group"] if name in known][:1]
    prompts = [name for name in PROMPTS if name in known and not holds_objects(name, first)][:1]
    guessed = (*groups, *prompts)
    if not guessed and (columns or first):
        raise ValueError(
            "nothing says which rows answer the same prompt; name a column that they share with --group-column. "
            f"The columns are: {', '.join(list(columns)[:40])}"
        )
    said = " or else ".join(map(repr, guessed))
    note = (f"rows of one prompt share: column {said} (guessed; --group-column chooses another)",) if guessed else ()
    return PromptKeys(tuple(Column(name) for name in guessed)), note


Numbers = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromptScores:
    """The known scores of all prompts; prompts are numbered in the order in which they appeared.

    Attributes:
        places: number of each prompt.
        firsts: (prompts,) number of the first row of each.
        prompts: (scores,) the prompt of each score.
        values: (scores,) the scores.
        unknown: how many scores were unknown.
    """

    places: dict[int, int]
    firsts: Wholes
    prompts: Wholes
    values: Numbers
    unknown: int

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int | None, list[float | None]]]) -> PromptScores:
        """Return the scores of rows: number, key of the prompt, None for a row that names none, and scores."""
        places: dict[int, int] = {}
        firsts, prompts, values = array("q"), array("q"), array("d")
        unknown = 0
        for number, key, scores in rows:
            if key is None:
                continue
            place = places.setdefault(key, len(places))
            if place == len(firsts):
                firsts.append(number)
            for score in scores:
                if score is None:
                    unknown += 1
                else:
                    prompts.append(place)
                    values.append(score)
        return cls(
            places=places,
            firsts=np.array(firsts, dtype=np.int64),
            prompts=np.array(prompts, dtype=np.int64),
            values=np.array(values, dtype=np.float64),
            unknown=unknown,
        )

    def counts(self, which: npt.NDArray[np.bool_] | None = None) -> Wholes:
        """Return (prompts,) how many known scores each has, or how many of those that are meant."""
        prompts = self.prompts if which is None else self.prompts[which]
        return np.bincount(prompts, minlength=len(self.places)).astype(np.int64)

    def deviations(self) -> Numbers:
        """Return (prompts,) the standard deviation, with n - 1 below; NaN for fewer than two scores.

        Equal scores have exactly 0, not what rounding leaves.
        """
        size, counts = len(self.places), self.counts()
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, self.prompts, self.values)
        np.maximum.at(high, self.prompts, self.values)
        scales = np.where(low < high, np.maximum(np.abs(low), np.abs(high)), 1.0)  # the square of 1e200 is none
        values = self.values / scales[self.prompts]
        means = np.bincount(self.prompts, values, minlength=size) / np.maximum(counts, 1)
        squares = np.bincount(self.prompts, (values - means[self.prompts]) ** 2, minlength=size)
        deviations = np.where(low == high, 0.0, scales * np.sqrt(squares / np.maximum(counts - 1, 1)))
        return np.where(counts >= 2, deviations, np.nan)


C = TypeVar("C", bound=DifficultyConfig | FilterConfig)


class PromptSieve(Sieve[C]):
    """A sieve that looks at the scores of all answers to a prompt."""

    learns = True

    def __init__(self, config: C) -> None:
        super().__init__(config)
        self.keys = PromptKeys()
        self.scores = RowScores(Column(config.score_column))

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns of scores and prompts."""
        self.scores, about_scores = row_scores(self.config.score_column, columns, first)
        self.keys, about_keys = prompt_keys(self.config.group_column, columns, first)
        return about_scores + about_keys

    def scores_in(self, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> PromptScores:
        """Return the scores of numbered rows."""
        return PromptScores.of((number, self.keys.of(row), self.scores.of(row)) for number, row in rows)
