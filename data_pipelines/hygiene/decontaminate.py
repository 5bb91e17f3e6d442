"""Rows without questions of benchmarks; docs/data.md has the options of published conventions.

Each turn of a chat and each column is searched on its own, an instruction and its input together too.  The system's
turns of a benchmark are not questions.  Words are compared without case, width and punctuation.  A question with fewer
words than an n-gram is found only where a text is equal to it, and one with fewer than three not at all, as in
DeepSeekMath: "continue" is a turn of many chats.  The hash of an n-gram leads to questions; the n-grams themselves
decide.  Memory: the questions, and 12 bytes for each of their n-grams.

Not covered: texts that hold less of a question than an n-gram; a question in other words (see `adjudge data dedup` for
near ones, or a judge).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from adjudge.data_pipelines.hygiene.config import DecontaminateConfig
from adjudge.data_pipelines.hygiene.minhash import gram_hashes, grams, tokens
from adjudge.data_pipelines.hygiene.rows import SideFile, text_columns
from adjudge.data_pipelines.hygiene.sieve import KEPT, TextSieve, Verdict, run_sieve
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport

FEWEST_WORDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A question, as words with a space between, and the first row of each file or dataset that asks it, from 0."""

    words: str
    places: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """A question that a text holds: the share of its n-grams that is there, and the first of those in the text."""

    benchmark: str
    row: int
    share: float
    gram: str


class BenchmarkIndex:
    """Finds questions in texts.

    Args:
        questions: the benchmark, the number of the row and the text of each.
        ngram: words that text and question must share in a row.
        frame: an n-gram of more questions than these is ignored; 0 ignores none.

    Attributes:
        size: how many different questions there are.
        without_gram: how many of them have nothing to be found by: too few words, or only frame.
    """

    def __init__(self, questions: Iterable[tuple[str, int, str]], *, ngram: int, frame: int = 0) -> None:
        self._ngram = ngram
        self._questions: list[_Question] = []
        self._short: dict[str, int] = {}
        hashes, owners = self._read(questions)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._owners = hashes[order], owners[order]
        if frame:
            _, places, counts = np.unique(self._hashes, return_inverse=True, return_counts=True)
            kept = counts[places] <= frame
            self._hashes, self._owners = self._hashes[kept], self._owners[kept]
        findable = np.zeros(len(self._questions), dtype=np.bool_)
        findable[self._owners] = True
        findable[list(self._short.values())] = True
        self.size, self.without_gram = len(findable), int((~findable).sum())

    def _read(self, questions: Iterable[tuple[str, int, str]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct n-grams of each question as hashes, and whose they are."""
        known: dict[str, _Question] = {}
        hashes, owners = array("Q"), array("i")
        for benchmark, row, text in questions:
            cut = tokens(text, symbols=False)
            words = " ".join(cut)
            if not words:
                continue
            if words in known:
                known[words].places.setdefault(benchmark, row)
                continue
            number = len(self._questions)
            known[words] = _Question(words=words, places={benchmark: row})
            self._questions.append(known[words])
            if len(cut) < self._ngram:
                if len(cut) >= FEWEST_WORDS:
                    self._short[words] = number
                continue
            fresh = np.unique(gram_hashes(cut, self._ngram))
            hashes.frombytes(fresh.tobytes())
            owners.extend([number] * len(fresh))
        return np.array(hashes, dtype=np.uint64), np.array(owners, dtype=np.int32)

    def search(self, text: str, *, share: float = 0.0) -> list[_Hit]:
        """Return the questions in a text, the largest share first.

        `share` is that of a question's n-grams which must be in the text; 0 is satisfied with one.
        """
        cut = tokens(text, symbols=False)
        if len(cut) < self._ngram:
            words = " ".join(cut)
            return _hits(self._questions[self._short[words]], 1.0, words) if words in self._short else []
        hashes = np.unique(gram_hashes(cut, self._ngram))
        low = np.searchsorted(self._hashes, hashes, side="left")
        high = np.searchsorted(self._hashes, hashes, side="right")
        met = {
            owner
            for start, end in zip(low[low < high].tolist(), high[low < high].tolist(), strict=True)
            for owner in self._owners[start:end].tolist()
        }
        if not met:
            return []
        in_text = grams(cut, self._ngram)
        hits = [hit for number in met for hit in self._held(self._questions[number], in_text) if hit.share >= share]
        return sorted(hits, key=_rank)

    def _held(self, question: _Question, in_text: list[str]) -> list[_Hit]:
        wanted = frozenset(grams(question.words.split(" "), self._ngram))
        common = wanted.intersection(in_text)
        if not common:
            return []
        return _hits(question, len(common) / len(wanted), next(gram for gram in in_text if gram in common))


def _hits(question: _Question, share: float, gram: str) -> list[_Hit]:
    return [_Hit(benchmark=name, row=row, share=share, gram=gram) for name, row in question.places.items()]


def _rank(hit: _Hit) -> tuple[float, str, int]:
    return -hit.share, hit.benchmark, hit.row


_SHOWN_HITS = 5


def run_decontaminate(config: DecontaminateConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that hold no question of the benchmarks; `hits_NAME` in the report counts those that do."""
    return run_sieve(config, _Decontaminate(config), progress=progress)


class _Decontaminate(TextSieve[DecontaminateConfig]):
    """Leaves out what a benchmark asks; see the module.

    Raises:
        ValueError: a benchmark cannot be read.
    """

    name = "decontaminate"
    uses = ("text_column", "benchmark_column", "ngram", "share", "frame")
    why: Mapping[str, Kind] = {
        "benchmark": "text", "benchmark_row": "whole", "share": "number", "ngram": "text", "hits": "any",
    }  # fmt: skip

    def __init__(self, config: DecontaminateConfig) -> None:
        super().__init__(config)
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

    def _questions(self) -> Iterator[tuple[str, int, str]]:
        for file in self._files:
            columns = self.config.benchmark_column
            text, notes = text_columns(columns, file.columns, file.first, "--benchmark-column")
            self._notes += [f"{file.name}: {note}" for note in notes]
            empty = 0
            for number, row in file.rows():
                found = text.texts(row, system=False)
                empty += not found
                for each in found:
                    yield file.name, number, each
            if empty:
                self._notes.append(f"{file.name}: {empty} rows hold no text to look for (--benchmark-column names it)")

    @property
    def options(self) -> Mapping[str, Any]:
        return {**super().options, "benchmarks": [file.identity() for file in self._files]}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        return (*super().check(columns, first), *self._notes)

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        best: dict[tuple[str, int], _Hit] = {}
        texts = self.text.texts(row)
        if not texts:
            return Verdict(counts={"without_text": 1})
        for text in (*texts, *self.text.parts(row)):
            for hit in self._index.search(text, share=self.config.share):
                key = (hit.benchmark, hit.row)
                if key not in best or hit.share > best[key].share:
                    best[key] = hit
        if not best:
            return KEPT
        hits = sorted(best.values(), key=_rank)
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
        short = {path: "/".join(each[-count:]) for path, each in parts.items()}
        if len(set(short.values())) == len(short):
            return short
    return {path: path for path in paths}
