"""Rows without questions of benchmarks.

| convention | options |
|---|---|
| GPT-3 (arXiv 2005.14165): any common 13-gram | the defaults |
| DeepSeekMath (arXiv 2402.03300): any common 10-gram, short questions by equality | `ngram` 10 |
| Tulu 3 (arXiv 2411.15124): half of a question in common 8-grams | `ngram` 8, `share` 0.5 |

Tulu 3 counts the words that lie in common 8-grams; here the 8-grams are counted, whose share is smaller: 14 words in a
row of 22 are 64 % of the words and 47 % of the 8-grams.

Each turn of a chat and each column is searched on its own.  The system's turns of a benchmark are no questions.

Not covered: a question in other words (see `adjudge data dedup` for near ones, or a judge).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.hygiene.benchmark_index import FEWEST_WORDS, BenchmarkIndex, Hit
from adjudge.data_pipelines.hygiene.config import DecontaminateConfig
from adjudge.data_pipelines.hygiene.row_text import RowText, text_columns
from adjudge.data_pipelines.hygiene.side_file import SideFile
from adjudge.data_pipelines.hygiene.sieve import KEPT, Sieve, Verdict, run_sieve
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport

_SHOWN_HITS = 5


def run_decontaminate(config: DecontaminateConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that hold no question of the benchmarks; `hits_NAME` in the report counts those that do.

    Raises:
        ValueError: a mistake in the call, before any work.
        JobError: the job could not go on; the message says how it can.
    """
    return run_sieve(config, Decontaminate(config), progress=progress)


class Decontaminate(Sieve):
    """Leaves out what a benchmark asks; see the module.

    Args:
        config: the options.

    Raises:
        ValueError: a benchmark cannot be read.
    """

    name = "decontaminate"
    why: Mapping[str, Kind] = {
        "benchmark": "text",
        "benchmark_row": "whole",
        "share": "number",
        "ngram": "text",
        "hits": "any",
    }

    def __init__(self, config: DecontaminateConfig) -> None:
        self._config = config
        self._files = [SideFile(name, limit=config.max_row_mb << 20) for name in dict.fromkeys(config.benchmark)]
        self._short_names = short_names([file.name for file in self._files])
        self._notes: list[str] = []
        self._index = BenchmarkIndex(self._questions(), ngram=config.ngram, frame=config.frame)
        if not self._index.size:
            raise ValueError(
                f"the benchmarks {', '.join(config.benchmark)} hold no text; name their --benchmark-column"
            )
        if self._index.without_gram:
            self._notes.append(
                f"{self._index.without_gram} of {self._index.size} questions cannot be found: they have fewer than "
                f"{FEWEST_WORDS} words, or more than {config.frame} questions share each of their n-grams (--frame)"
            )
        self._text = RowText(())

    def _questions(self) -> Iterator[tuple[str, int, str]]:
        for file in self._files:
            columns = self._config.benchmark_column
            text, notes = text_columns(columns, file.columns, file.first, "--benchmark-column")
            self._notes += [f"{file.name}: {note}" for note in notes]
            for number, row in file.rows():
                for each in text.texts(row, system=False):
                    yield file.name, number, each

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input."""
        config = self._config
        return {
            "benchmarks": [file.identity() for file in self._files],
            "text_column": list(config.text_column),
            "benchmark_column": list(config.benchmark_column),
            "ngram": config.ngram,
            "share": config.share,
            "frame": config.frame,
        }

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        self._text, notes = text_columns(self._config.text_column, columns, first, "--text-column")
        return (*notes, *self._notes)

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return whether a row holds a question."""
        best: dict[tuple[str, int], Hit] = {}
        for text in self._text.texts(row):
            for hit in self._index.search(text, share=self._config.share):
                key = (hit.benchmark, hit.row)
                if key not in best or hit.share > best[key].share:
                    best[key] = hit
        if not best:
            return KEPT
        hits = sorted(best.values(), key=lambda hit: (-hit.share, hit.benchmark, hit.row))
        columns = {
            "benchmark": hits[0].benchmark,
            "benchmark_row": hits[0].row,
            "share": hits[0].share,
            "ngram": hits[0].gram,
            "hits": [[hit.benchmark, hit.row, hit.share] for hit in hits[:_SHOWN_HITS]],
        }
        counts = {f"hits_{self._short_names[name]}": 1.0 for name in dict.fromkeys(hit.benchmark for hit in hits)}
        return Verdict(reason="in_benchmark", columns=columns, counts=counts)


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return each of some different paths with as few of its last parts as tell it from the others."""
    parts = {path: Path(path).parts for path in paths}
    for count in range(1, max(map(len, parts.values()), default=0) + 1):
        found = {path: "/".join(each[-count:]) for path, each in parts.items()}
        if len(set(found.values())) == len(found):
            return found
    return {path: path for path in paths}
