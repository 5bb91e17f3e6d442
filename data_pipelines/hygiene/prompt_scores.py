"""The scores of each prompt of a dataset, in whatever order its rows stand, and what rows of one prompt share.

Memory: about 110 bytes for each prompt, and 16 for each score.
"""

from __future__ import annotations

import contextlib
import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.hygiene.config import DifficultyConfig, FilterConfig
from adjudge.data_pipelines.hygiene.minhash import normalised
from adjudge.data_pipelines.hygiene.rows import PROMPTS, RowScores, existing, guessed_prompt, row_scores, said_in
from adjudge.data_pipelines.hygiene.sieve import Sieve
from adjudge.io.columns import Choice, Column
from adjudge.io.jobs.groups import group_key
from adjudge.io.values import exchange, is_chat, turns_of


@dataclass(frozen=True, slots=True)
class PromptKeys:
    """Names the prompts of rows.

    Attributes:
        group: what the rows of a prompt share, or None.
        prompt: the prompt, or None.  With a group, both must be the same: of two files, each may begin its groups at 0.
        answered: whether the prompt is that of a chat which may hold the answer as well.
    """

    group: Column | None = None
    prompt: Column | None = None
    answered: bool = False

    def of(self, row: Mapping[str, Any]) -> int | None:
        """Return 64 bits that rows of the same prompt share; None for a row that names none.

        Prompts are compared without case, width and white space, groups as they are: "aB3" is another one than "Ab3".
        """
        names = [group_key(self.group.of(row)) if self.group else "", self._asked(row)]
        text = "\0".join(name for name in names if name.strip())
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") if text else None

    def _asked(self, row: Mapping[str, Any]) -> str:
        """Return the prompt as one text, "" where there is none."""
        said = said_in(row, self.prompt) if self.prompt is not None else ""
        if isinstance(said, str):
            return normalised(said)
        if not is_chat(said):
            return group_key(said)
        with contextlib.suppress(ValueError):  # nothing is answered yet
            said = (exchange("", said)[0] if self.answered else "") or said
        match turns := [_squeezed(turn) for turn in turns_of(said)]:
            case [{"role": "user", "content": str(text), **more}] if not more:
                return text  # no other prompt than the same as text
        return group_key(turns)


def _squeezed(turn: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: item for name, item in turn.items() if item is not None}
    return kept | ({"content": normalised(kept["content"])} if isinstance(kept.get("content"), str) else {})


def prompt_keys(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], *, groups: bool = True
) -> tuple[PromptKeys, tuple[str, ...]]:
    """Decide what names the prompts; return the reader, and sentences if columns were guessed.

    `groups` says whether a group may be guessed: it may be the number of a row, which means nothing in another file.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    if named:
        column = existing(named, columns, first, "--group-column")
        asked = PromptKeys(prompt=column, answered=named.endswith("messages"))
        return asked if named in PROMPTS else PromptKeys(column), ()
    group = Choice(columns, first).pick("group") if groups else None
    prompt, name = guessed_prompt(columns, first, more=("prompt_hash",))  # in the output of a label job
    guessed = ([group.name] if group is not None else []) + ([name] if prompt is not None else [])
    if not guessed and (columns or first):
        raise ValueError(
            "nothing says which rows answer the same prompt; name a column that they share with --group-column. "
            f"The columns are: {', '.join(list(columns)[:40])}"
        )
    said = " and ".join(f"column {one!r}" for one in guessed)
    notes = [f"rows of one prompt share: {said} (guessed; --group-column chooses another)"] if guessed else []
    if prompt is None and "sample_hash" in columns:
        notes.append(
            "the scores are without their prompts; groups that several label jobs number alike are taken as one"
        )
    return PromptKeys(group, prompt, answered=name.endswith("messages")), tuple(notes)


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
