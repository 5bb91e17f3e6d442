"""What the rewards for frameworks that hand over rows share: their options, samples out of rows, and a dry run.

A dry run scores an empty answer to each of the first rows, before anything is generated.  Whether right answers score
well `adjudge check` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from adjudge import wire
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import kind_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import NotScored, is_out_of_scope, number
from adjudge.rl_integration.adapters.one_by_one import GATHER, OneByOne
from adjudge.rl_integration.adapters.row import Place, answer_in, checked_place, extra_in, name_in, reference_in, words
from adjudge.rl_integration.client.client import ClientConfig
from adjudge.runtime.loop import run_blocking

_ROW_BYTES = 16 << 20
_ALONE = frozenset({"group_too_small", "cohort_incomplete"})  # what a scorer of groups says of one answer
_HEAD = ("row", "scorer", "reference", "status")


@dataclass(frozen=True)
class DryRun:
    """The first rows with their scores; as text, a table of them.

    Attributes:
        samples: the rows as the scorer sees them, with an empty response.
        scores: one for each.
    """

    samples: tuple[Sample, ...]
    scores: tuple[Score, ...]

    def __str__(self) -> str:
        lines: list[Sequence[str]] = [_HEAD]
        for place, (sample, score) in enumerate(zip(self.samples, self.scores, strict=True)):
            said = f"{score.status} {'' if score.value is None else f'{score.value:g}'}".strip()
            said = f"{said} {score.reason}".strip()
            lines.append((str(place), ", ".join(_scorers(score)), _shown(sample.reference), said))
        widths = [max(len(line[place]) for line in lines) for place in range(len(_HEAD))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def check(self, framework: str, fallback: float | None, *, numbers_only: bool) -> None:
        """Make sure that a run would have a reward for such rows.

        Args:
            framework: its name, for messages.
            fallback: the number that stands for a row without a score; None if there is none.
            numbers_only: whether the framework wants a number for every row.

        Raises:
            ValueError: a row cannot be judged, or the scorer is for none of them.
        """
        if all(map(is_out_of_scope, self.scores)):
            raise ValueError(
                f"the reward is for none of the first {len(self.scores)} rows; row 0: "
                f"{self.scores[0].evidence.get('error', 'out of scope')}. Name the column with the reference or "
                f"another scorer, or look at more rows with n=NUMBER:\n{self}"
            )
        for place, score in enumerate(self.scores):
            if score.reason in _ALONE:
                continue
            if score.status == "failed":
                raise ValueError(
                    f"row {place} cannot be judged ({score.reason}): {_why(score)}. Correct the row or leave it out, "
                    f"or name another scorer:\n{self}"
                )
            if numbers_only:
                try:
                    number(score, fallback, framework)
                except NotScored as error:
                    raise ValueError(f"row {place}: {error}:\n{self}") from error


def first_rows(rows: Any, count: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a data set.

    Raises:
        ValueError: there is none, or one cannot be read.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"n={count!r}; it is the number of rows to look at, 1 or more")
    if isinstance(rows, str | Path):
        read = islice(open_source(str(rows), limit=_ROW_BYTES).rows(Cursor()), count)
        first: list[Any] = [row.error if row.data is None else row.cells() for row in read]
    elif isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        held = f" of {', '.join(map(str, rows))}" if isinstance(rows, Mapping) else ""
        raise ValueError(f"a {type(rows).__name__}{held} holds no rows; give one split, a list of rows, or a path")
    else:
        first = list(islice(rows, count))
    if not first:
        raise ValueError("the data set has no rows")
    for place, row in enumerate(first):
        if not isinstance(row, Mapping):
            raise ValueError(f"row {place} is {kind_of(row)} ({str(row)[:200]}); it must be a mapping of columns")
    return first


def _scorers(score: Score) -> list[str]:
    """The names of the scorers at the ends of a composite."""
    names = [name for part in score.parts.values() for name in _scorers(part)]
    return names or [score.provenance.scorer or "-"]


def _shown(reference: Any) -> str:
    if reference is None:
        return "none"
    if isinstance(reference, Mapping):
        return kind_of(reference)
    return f"{kind_of(reference)}: {' '.join(wire.dumps(reference).split())[:40]}"


def _why(score: Score) -> str:
    parts = [part for part in score.parts.values() if part.status == "failed"]
    return _why(parts[0]) if parts else str(score.evidence.get("error") or dict(score.evidence))[:300]


@dataclass(eq=False, kw_only=True)
class RowReward:
    """Scores what a framework generated for its rows.

    Attributes:
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there.
        reference: where the reference is among the row's columns; "" for scorers that need none.
        group: where the name is that the answers to one prompt share, for a server that gathers groups; "" for none.
        scorers: a scorer of its own for each of some data sources; `scorer` is for the others.
        data_source: where a row says where it is from, if there are `scorers`.
        server: a reward server's address, or a `ClientConfig`; None to score in the framework's process.
        fallback: the number that stands for a sample without a score; None to raise.
        max_failed: the share of the latest 64 samples that may fail; 1 for any.
    """

    framework: ClassVar[str]
    """Its name, for messages."""
    remedy: ClassVar[str] = GATHER
    """What to do with a scorer that compares the answers to a prompt; "" where the framework gives whole groups."""
    numbers_only: ClassVar[bool] = True
    """Whether the framework wants a number for every row, so that one without ends the run."""

    scorer: Any = field(default=None, kw_only=False)
    reference: Place = ""
    group: Place = ""
    scorers: Mapping[str, Any] | None = None
    data_source: Place = "data_source"
    server: str | ClientConfig | None = None
    fallback: float | None = None
    max_failed: float = 0.5

    def __post_init__(self) -> None:
        for option in ("reference", "group", "data_source"):
            checked_place(option, getattr(self, option))
        self._asked = OneByOne(
            self.framework,
            scorer=self.scorer,
            scorers=self.scorers,
            server=self.server,
            fallback=self.fallback,
            max_failed=self.max_failed,
        )
        if self.remedy:
            self._asked.check_alone(self.remedy)
        if self.reference == "":
            self._asked.check_without_reference()

    def made_sample(
        self, row: Mapping[str, Any], prompt: Any, response: Any, *, group: str = "", finish_reason: str | None = None
    ) -> Sample:
        """Return a sample of a row.

        Args:
            row: the columns, which become `extra` as far as they are plain data, the reference excepted.
            prompt: text or messages.
            response: text or messages; the sample of one that is None fails.
            group: the group of a row that names none.
            finish_reason: how the response ended, if the framework says so.

        Raises:
            ValueError: the prompt or the response is neither, or the row lacks a column.
        """
        return Sample(
            prompt=words(prompt, f"prompt of {self.framework}"),
            response=answer_in(response, f"response of {self.framework}"),
            reference=reference_in(row, self.reference, self.framework),
            group=name_in(row, self.group, "group", self.framework) or group,
            finish_reason=finish_reason,
            extra=extra_in(row, self.reference),
        )

    def dry_run(self, rows: Any, *, n: int = 8, prompt: str = "prompt") -> DryRun:
        """Score the first rows with an empty answer, before anything is generated; print what is returned to see them.

        Args:
            rows: a data set, any mappings, or a path.
            n: how many rows to look at.
            prompt: the column with the prompt; rows without it have none.

        Raises:
            ValueError: a row lacks a column or cannot be judged, or the scorer is for none of the rows.
        """
        first = first_rows(rows, n)
        samples = [self.made_sample(row, row.get(prompt), "", group=str(place)) for place, row in enumerate(first)]
        scores = run_blocking(self._asked.scores(samples, self._names(first), counted=False))
        seen = DryRun(tuple(samples), tuple(scores))
        seen.check(self.framework, self.fallback, numbers_only=self.numbers_only)
        return seen

    async def scores(self, rows: Sequence[Mapping[str, Any]], samples: Sequence[Sample]) -> list[Score]:
        """Return the scores of samples, each by the scorer of its row's data source.

        Raises:
            TooManyFailures: too many of the latest samples failed.
            ValueError: a data source has no scorer, or a row does not say where it is from.
        """
        return await self._asked.scores(samples, self._names(rows))

    def scores_blocking(self, rows: Sequence[Mapping[str, Any]], samples: Sequence[Sample]) -> list[Score]:
        """Return the same from any thread, also inside a running event loop."""
        return self._asked.scores_blocking(samples, self._names(rows))

    def number(self, score: Score) -> float:
        """Return the value of a score, or the fallback.

        Raises:
            NotScored: there is neither.
        """
        return self._asked.number(score)

    def _names(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        if not self.scorers:
            return []
        return [name_in(row, self.data_source, "data_source", self.framework) for row in rows]


def metric_name(scorer: Any, name: str) -> str:
    """Return what a reward is called in a framework's metrics: the given name, the scorer's, or the function's."""
    called = scorer.rpartition(":")[2] if isinstance(scorer, str) else getattr(scorer, "__name__", "")
    if isinstance(scorer, Mapping) and len(scorer) == 1:
        called = str(next(iter(scorer)))
    return name or (called if called.isidentifier() else "adjudge")
