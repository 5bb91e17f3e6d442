"""Rows without questions of benchmarks.

| convention | options |
|---|---|
| GPT-3 (arXiv 2005.14165): any common 13-gram | the defaults |
| DeepSeekMath (arXiv 2402.03300): any common 10-gram, short questions by equality | `ngram` 10 |
| Tulu 3 (arXiv 2411.15124): half of a question in common 8-grams | `ngram` 8, `share` 0.5 |

Tulu 3 counts the words that lie in common 8-grams; here the 8-grams are counted, whose share is smaller: 14 words in a
row of 22 are 64 % of the words and 47 % of the 8-grams.

Each turn of a chat and each column is searched on its own.  The system's turns of a benchmark are no questions.

Words are compared without case, width and punctuation.  A question with fewer words than an n-gram is found only where
a text is equal to it, and one with fewer than three not at all, as in DeepSeekMath: "continue" is a turn of many chats.
The hash of an n-gram leads to questions; the n-grams themselves decide.  Memory: the questions, and 12 bytes for each
of their n-grams.

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
from adjudge.data_pipelines.hygiene.rows import RowText, SideFile, text_columns
from adjudge.data_pipelines.hygiene.sieve import KEPT, Sieve, Verdict, run_sieve
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport

FEWEST_WORDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of one benchmark, or of several that share it.

    Attributes:
        words: its text as words, with a space between.
        places: each file or dataset with the number of its first row there, from 0.
    """

    words: str
    places: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A question that a text holds.

    Attributes:
        benchmark: the file or dataset that asks it.
        row: number of its row there, from 0.
        share: of its n-grams that the text holds, above 0 and at most 1.
        gram: the first of those in the text.
    """

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
        self._questions: list[Question] = []
        self._short: dict[str, int] = {}
        hashes, owners = self._read(questions)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._owners = hashes[order], owners[order]
        if frame:
            self._ignore(frame)
        findable = np.zeros(len(self._questions), dtype=np.bool_)
        findable[self._owners] = True
        findable[list(self._short.values())] = True
        self.size, self.without_gram = len(findable), int((~findable).sum())

    def _read(self, questions: Iterable[tuple[str, int, str]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct n-grams of each question as hashes, and whose they are."""
        known: dict[str, Question] = {}
        hashes, owners = array("Q"), array("i")
        for benchmark, row, text in questions:
            found = tokens(text, symbols=False)
            words = " ".join(found)
            if not words:
                continue
            if words in known:
                known[words].places.setdefault(benchmark, row)
                continue
            number = len(self._questions)
            known[words] = Question(words=words, places={benchmark: row})
            self._questions.append(known[words])
            if len(found) < self._ngram:
                if len(found) >= FEWEST_WORDS:
                    self._short[words] = number
                continue
            fresh = np.unique(gram_hashes(found, self._ngram))
            hashes.frombytes(fresh.tobytes())
            owners.extend([number] * len(fresh))
        return np.array(hashes, dtype=np.uint64), np.array(owners, dtype=np.int32)

    def _ignore(self, frame: int) -> None:
        _, places, counts = np.unique(self._hashes, return_inverse=True, return_counts=True)
        kept = counts[places] <= frame
        self._hashes, self._owners = self._hashes[kept], self._owners[kept]

    def search(self, text: str, *, share: float = 0.0) -> list[Hit]:
        """Return the questions in a text, the largest share first.

        Args:
            text: any text.
            share: of a question's n-grams that must be in the text; 0 is satisfied with one.
        """
        found = tokens(text, symbols=False)
        if len(found) < self._ngram:
            number = self._short.get(" ".join(found))
            if number is None:
                return []
            question = self._questions[number]
            return _hits(question, 1.0, question.words)
        hashes = np.unique(gram_hashes(found, self._ngram))
        low = np.searchsorted(self._hashes, hashes, side="left")
        high = np.searchsorted(self._hashes, hashes, side="right")
        met = {
            owner
            for start, end in zip(low[low < high].tolist(), high[low < high].tolist(), strict=True)
            for owner in self._owners[start:end].tolist()
        }
        if not met:
            return []
        in_text = grams(found, self._ngram)
        hits = [hit for number in met for hit in self._found(self._questions[number], in_text) if hit.share >= share]
        return sorted(hits, key=lambda hit: (-hit.share, hit.benchmark, hit.row))

    def _found(self, question: Question, in_text: list[str]) -> list[Hit]:
        wanted = frozenset(grams(question.words.split(" "), self._ngram))
        common = wanted.intersection(in_text)
        if not common:
            return []
        return _hits(question, len(common) / len(wanted), next(gram for gram in in_text if gram in common))


def _hits(question: Question, share: float, gram: str) -> list[Hit]:
    return [Hit(benchmark=name, row=row, share=share, gram=gram) for name, row in question.places.items()]


_SHOWN_HITS = 5


def run_decontaminate(config: DecontaminateConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that hold no question of the benchmarks; `hits_NAME` in the report counts those that do."""
    return run_sieve(config, Decontaminate(config), progress=progress)


class Decontaminate(Sieve):
    """Leaves out what a benchmark asks; see the module.

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
        return self._config.given("text_column", "benchmark_column", "ngram", "share", "frame") | {
            "benchmarks": [file.identity() for file in self._files]
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
