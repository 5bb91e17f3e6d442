"""Rows without copies: which texts of a dataset are copies of each other, and of each cluster the one row that stays.

Exact copies have the same hash of their normalised text.  Of those, one each goes on to the bands of MinHash, and what
meets there is compared n-gram by n-gram: no pair is taken on the word of a hash.  A cluster is a set of texts linked by
pairs of at least the threshold, so two of its texts may be less alike.  A text without a token is not a copy of
another.

A text takes 48 bytes of memory and, at a threshold of 0.8 and 128 permutations, 144 for the keys of its bands; the
texts lie on the disk, in a file without a name that vanishes with the process.

Not covered: pairs that meet in no band (`Bands.chance` says how many), and texts that are alike in meaning alone.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import zlib
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.hygiene.config import DedupConfig
from adjudge.data_pipelines.hygiene.minhash import Bands, Keys, MinHash, jaccard, normalised
from adjudge.data_pipelines.hygiene.rows import existing
from adjudge.data_pipelines.hygiene.sieve import KEPT, TextSieve, Verdict, run_sieve
from adjudge.io.columns import Column
from adjudge.io.errors import JobError
from adjudge.io.jobs.maker import Kind
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.values import number_of

REACH = 64  # comparisons of one text in one band; more are needed only where thousands share a frame but are not copies
_HELD_SHINGLES = 1 << 19  # about 50 MB of sets are kept between comparisons


class Clusters:
    """Disjoint sets of the numbers from 0 on; eight bytes for each."""

    def __init__(self, count: int) -> None:
        self._parents = array("q", range(count))

    def __len__(self) -> int:
        return len(self._parents)

    def root(self, number: int) -> int:
        """Return the smallest number of a set."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def join(self, one: int, other: int) -> int:
        """Make one set of two, and return its smallest number."""
        low, high = sorted((self.root(one), self.root(other)))
        self._parents[high] = low
        return low

    def roots(self) -> npt.NDArray[np.int64]:
        """Return the smallest number of the set of each number."""
        return np.fromiter(map(self.root, range(len(self))), dtype=np.int64, count=len(self))


class Similarity:
    """Jaccard similarity of numbered texts, with the sets of those that were looked at last."""

    def __init__(self, shingles: Callable[[int], frozenset[str]]) -> None:
        self._shingles = shingles
        self._sets: OrderedDict[int, frozenset[str]] = OrderedDict()
        self._held = 0

    def of(self, one: int, other: int) -> float:
        """Return the similarity of two texts, 0 to 1."""
        return jaccard(self._set(one), self._set(other))

    def _set(self, number: int) -> frozenset[str]:
        if number not in self._sets:
            self._sets[number] = self._shingles(number)
            self._held += len(self._sets[number])
        self._sets.move_to_end(number)
        while self._held > _HELD_SHINGLES and len(self._sets) > 2:
            self._held -= len(self._sets.popitem(last=False)[1])
        return self._sets[number]


def buckets(keys: Keys) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the places of equal keys, in order, where there are at least two."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], len(ordered))
    shared = ends - starts > 1
    for start, end in zip(starts[shared].tolist(), ends[shared].tolist(), strict=True):
        yield order[start:end]


def join_alike(
    clusters: Clusters, members: Sequence[int], alike: Callable[[int, int], bool], *, reach: int = REACH
) -> int:
    """Join the members of one bucket that are alike; return how many pairs were not compared.

    A member has `reach` comparisons.
    """
    met: dict[int, list[int]] = {}
    skipped = 0
    for before, member in enumerate(members):
        own, left, apart = clusters.root(member), reach, 0
        for other in list(islice(met, reach + 1)):  # each takes a comparison, but for the member's own cluster
            if other == own or other not in met:  # the latter: its own, before it was joined
                continue
            for tried, each in enumerate(met[other][:left], 1):
                if alike(member, each):
                    together = met.pop(other)
                    together += met.pop(own, ())
                    own = clusters.join(own, other)
                    met[own] = together
                    left -= tried
                    break
            else:
                tried = min(left, len(met[other]))
                left, apart = left - tried, apart + tried
        skipped += before - len(met.get(own, ())) - apart
        met.setdefault(own, []).append(member)
    return skipped


class TextSpool:
    """Numbered texts, compressed, in a file in a folder: about half the size of the texts.

    Raises:
        JobError: the disk refuses; so do its methods.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._writing():
            # Closed by `close`; a name would have to be cleaned up after a kill.
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._ends = array("Q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, text: str) -> None:
        """Write the next text."""
        packed = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        with self._writing():
            self._file.write(packed)
        self._ends.append(self._ends[-1] + len(packed))

    def __getitem__(self, number: int) -> str:
        start, end = self._ends[number], self._ends[number + 1]
        with self._writing():
            self._file.flush()
            packed = os.pread(self._file.fileno(), end - start, start)
        return zlib.decompress(packed).decode("utf-8", "surrogatepass")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JobError(
                f"the disk refuses ({error.strerror}) while texts are kept in {self._folder} to be compared; "
                "make room there and make the same call again"
            ) from error

    def close(self) -> None:
        """Give the disk back."""
        with suppress(OSError):  # it flushes what a full disk refused, which is said already and wanted no more
            self._file.close()


_SIGNED_AT_ONCE: Final = 256
_HELD_CHARACTERS: Final = 4 << 20  # of texts that wait to be signed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copies:
    """What was found.

    Attributes:
        kept: (texts,) number of the text that stands for each; its own for most.
        without_text: how many texts were empty.
        pairs_not_compared: pairs that met in a band so full that not all were compared.
    """

    kept: npt.NDArray[np.int64]
    without_text: int
    pairs_not_compared: int


class CopyFinder:
    """Takes texts one by one, then finds the copies.

    Args:
        minhash: how texts are compared.
        threshold: similarity from which on two texts are copies; 1 finds exact copies alone.
        folder: where the file of texts lies.
    """

    def __init__(self, minhash: MinHash, threshold: float, folder: Path) -> None:
        self._minhash = minhash
        self._threshold = threshold
        self._bands = Bands.of(threshold, minhash.permutations) if threshold < 1 else None
        self._spool = TextSpool(folder)
        self._similarity = Similarity(lambda number: minhash.shingles(self._spool[number]))
        self._hashes, self._ranks = array("Q"), array("d")
        self._keys: list[Keys] = []
        self._waiting: list[str] = []
        self._held = 0

    def add(self, text: str, rank: float = 0.0) -> None:
        """Take the next text."""
        self._hashes.extend(_hash(text))
        self._ranks.append(rank)
        self._spool.append(text)
        if self._bands is not None:
            self._waiting.append(text)
            self._held += len(text)
            if len(self._waiting) >= _SIGNED_AT_ONCE or self._held >= _HELD_CHARACTERS:
                self._sign(self._bands)

    def _sign(self, bands: Bands) -> None:
        self._keys.append(bands.keys(self._minhash.signatures(self._waiting)))
        self._waiting, self._held = [], 0

    def find(self) -> Copies:
        """Return what is a copy of what.  The band keys are given back; nothing can be added any more."""
        hashes = np.frombuffer(self._hashes, dtype=np.uint64).reshape(-1, 2)
        full = np.asarray(hashes.any(axis=1), dtype=np.bool_)
        clusters = Clusters(len(hashes))
        _join_equal(clusters, hashes, full)
        skipped = 0
        if self._bands is not None and len(hashes):
            self._sign(self._bands)
            chosen = np.flatnonzero(full & (clusters.roots() == np.arange(len(hashes))))
            for band in range(self._bands.count):
                keys = np.concatenate([chunk[:, band] for chunk in self._keys])[chosen]
                for bucket in buckets(keys):
                    skipped += join_alike(clusters, chosen[bucket].tolist(), self._alike)
            self._keys = []
        kept = _highest(clusters.roots(), np.frombuffer(self._ranks, dtype=np.float64))
        return Copies(kept=kept, without_text=int((~full).sum()), pairs_not_compared=skipped)

    def _alike(self, one: int, other: int) -> bool:
        return self._similarity.of(one, other) >= self._threshold

    def same(self, one: int, other: int) -> bool:
        """Return whether two texts are exact copies."""
        return self._hashes[2 * one : 2 * one + 2] == self._hashes[2 * other : 2 * other + 2]

    def similarity(self, one: int, other: int) -> float:
        """Return the Jaccard similarity of two texts."""
        return self._similarity.of(one, other)

    def close(self) -> None:
        """Give the disk back."""
        self._spool.close()


def _hash(text: str) -> tuple[int, int]:
    """Return 128 bits of the normalised text; zeros for an empty one."""
    plain = normalised(text)
    if not plain:
        return 0, 0
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _join_equal(clusters: Clusters, hashes: npt.NDArray[np.uint64], full: npt.NDArray[np.bool_]) -> None:
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    before, after = order[:-1], order[1:]
    equal = (hashes[before] == hashes[after]).all(axis=1) & full[after]
    for one, other in zip(before[equal].tolist(), after[equal].tolist(), strict=True):
        clusters.join(one, other)


def _highest(roots: npt.NDArray[np.int64], ranks: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return, for each text, the first of the highest rank in its cluster."""
    order = np.lexsort((-ranks, roots))  # stable: of equals, the first in the input comes first
    firsts = np.flatnonzero(np.concatenate(([True], roots[order][1:] != roots[order][:-1])))[: len(order)]
    best = np.empty(len(roots), dtype=np.int64)
    best[roots[order][firsts]] = order[firsts]
    kept: npt.NDArray[np.int64] = best[roots]
    return kept


def run_dedup(config: DedupConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write one row of each cluster of copies, in the order of the input."""
    return run_sieve(config, _Dedup(config), progress=progress)


class _Dedup(TextSieve[DedupConfig]):
    name = "dedup"
    learns = True
    uses = ("text_column", "threshold", "ngram", "kind", "permutations", "seed", "keep", "score_column")
    why: Mapping[str, Kind] = {"copy_of": "whole", "similarity": "number"}

    def __init__(self, config: DedupConfig) -> None:
        super().__init__(config)
        self._score: Column | None = None
        self._numbers = array("q")
        self._finder: CopyFinder | None = None
        self._copies: Copies | None = None

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        if self.config.score_column:
            self._score = existing(self.config.score_column, columns, first, "--score-column")
        return super().check(columns, first)

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        self.close()
        self._numbers = array("q")
        folder = Path(self.config.output).absolute().parent
        finder = self._finder = CopyFinder(self.config.minhash(), self.config.threshold, folder)
        for number, row in rows:
            text = self.text.text(row)
            self._numbers.append(number)
            finder.add(text, self._rank(text, row))
        self._copies = finder.find()

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        assert self._finder is not None, "judge before learn"
        assert self._copies is not None, "judge before learn"
        place = bisect_left(self._numbers, number)
        kept = int(self._copies.kept[place])
        if kept == place:
            return KEPT
        reason = "exact_copy" if self._finder.same(place, kept) else "near_copy"
        if not self.config.dropped:
            return Verdict(reason=reason)
        similarity = self._finder.similarity(place, kept)
        return Verdict(reason=reason, columns={"copy_of": self._numbers[kept], "similarity": similarity})

    def summary(self) -> Mapping[str, float]:
        assert self._copies is not None, "summary before learn"
        numbers = {"without_text": self._copies.without_text, "pairs_not_compared": self._copies.pairs_not_compared}
        return {name: number for name, number in numbers.items() if number}

    def close(self) -> None:
        if self._finder is not None:
            self._finder.close()

    def _rank(self, text: str, row: Mapping[str, Any]) -> float:
        """How much a row deserves to be the one that stays; of equals, the first does."""
        match self.config.keep:
            case "longest":
                return float(len(text))
            case "best":
                score = number_of(self._score.of(row)) if self._score is not None else None
                return -math.inf if score is None else score
        return 0.0
