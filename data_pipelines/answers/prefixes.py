"""Beginnings of good answers as further prompts: the data of ReST-GRPO (ReST-RL; THUDM/ReST-RL at e03a987).

Of a prompt whose rewards have a standard deviation of 0.05 or more (n below), the prompt stays.  Where the best reward
is 0.9 or more, half as many beginnings of that answer as it has lines join it, drawn with replacement with the weights
0.95^i, the whole answer among them.  That is the code's `process_gen_data.py`: of equally good answers, the first.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.answers.config import PrefixesConfig
from adjudge.data_pipelines.hygiene.rows import PromptKeys, RowScores, prompt_keys, row_scores
from adjudge.io.columns import Column, labelled_row
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import fingerprint_of


def make_prefixes(config: PrefixesConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Make prompts of the beginnings of good answers, or go on with a job that was interrupted."""
    return run_job(config, _Prefixes(config), progress=progress)


def beginnings(text: str) -> list[str]:
    """Return an answer's first lines, one, two, and so on up to all of them, each with its line break."""
    lines = text.rstrip().split("\n")
    return ["".join(f"{line}\n" for line in lines[: at + 1]) for at in range(len(lines))]


@dataclass(slots=True)
class _Prompt:
    scores: list[float] = field(default_factory=list)
    best: int = -1  # number of the row


class _Prefixes:
    """See `adjudge.io.jobs.maker.Maker`, `Prepares` and `KeepsColumns`."""

    name = "prefixes"
    grouped = False
    keeps_columns = True
    fields: Mapping[str, Kind] = {"begun": "text"}

    def __init__(self, config: PrefixesConfig) -> None:
        self._config = config
        self._keys, self._scores = PromptKeys(), RowScores(Column("score"))
        self._prompts: dict[int, _Prompt] = {}

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.name, self._config.own_options())

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns; raise `ValueError` where no row has a text for an answer."""
        self._scores, about_scores = row_scores(self._config.score_column, columns, first)
        self._keys, about_keys = prompt_keys(self._config.group_column, columns, first)
        if first and not any(isinstance(Column(self._config.response_column).of(row), str) for row in first):
            raise ValueError(
                f"no row has a text in {self._config.response_column!r}; name the answer with --response-column, and "
                "label lists of answers with --keep-columns first, which makes a row of each"
            )
        return about_scores + about_keys

    def prepare(self, units: Iterable[Unit]) -> None:
        """Learn the scores of each prompt, and which answer is its best."""
        self._prompts = {}
        for unit in units:
            (row,) = unit.rows
            key, score = self._keys.of(row), self._scores.one(row)
            if key is None or score is None:
                continue
            prompt = self._prompts.setdefault(key, _Prompt())
            if not prompt.scores or score > max(prompt.scores):
                prompt.best = unit.first
            prompt.scores.append(score)

    async def make(self, unit: Unit) -> Made:
        """Return a prompt, and beginnings of its best answer, in the place of that answer."""
        (row,), config = unit.rows, self._config
        key, text = self._keys.of(row), Column(config.response_column).of(row)
        prompt = self._prompts.get(key) if key is not None else None
        if prompt is None or self._scores.one(row) is None:
            return Made(dropped={"unknown_score": 1})
        if prompt.best != unit.first:
            return Made(dropped={"not_best": 1})
        if statistics.pstdev(prompt.scores) < config.min_spread or len(set(prompt.scores)) == 1:
            return Made(dropped={"little_spread": 1})
        begun = [""]
        if isinstance(text, str) and text.strip() and max(prompt.scores) >= config.pass_score:
            every = beginnings(text)
            draw = random.Random(f"{config.seed}/{key}")
            weights = [config.alpha**at for at in range(len(every))]
            begun += draw.choices(every, weights, k=math.ceil(len(every) * config.share))
        kept = dict(labelled_row(row) or row)
        for name in (config.response_column, "finish_reason"):
            kept.pop(name, None)
        return Made(rows=tuple({**kept, "begun": one} for one in begun), counts={"prefixes": len(begun) - 1})
