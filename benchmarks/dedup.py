"""Near-duplicate removal: memory of a million rows, and speed and recall beside `datasketch`.

    python benchmarks/dedup.py memory [--rows 1000000] [--words 40]
    python benchmarks/dedup.py peer [--rows 5000] [--words 100]

`memory` feeds generated texts, a tenth of them copies with another first or last word, to the finder that `adjudge data
dedup` uses.  It prints the resident memory and the CPU seconds up to 10 %, 50 % and 100 % of the rows, the peak with
the search for copies, and how many of the planted copies were found.  Linux only: it reads /proc.

`peer` makes 128-permutation signatures of 5-word shingles, and finds copies at a similarity of 0.8, with both; the
copies have one to three other words inside, which at 100 words are similarities of 0.90, 0.81 and 0.73.  The peer is
`datasketch` (pip install datasketch), used as its documentation does: `update_batch`, `MinHashLSH.insert`, `query`.
It confirms nothing; what it reports is checked against the exact similarity here.

Not covered: reading and writing files, which `adjudge data dedup` does besides.
"""

from __future__ import annotations

import argparse
import importlib
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.hygiene.dedup import CopyFinder
from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash, jaccard

MIB = 1 << 20
THRESHOLD = 0.8


def texts(count: int, words: int, *, inside: bool = False) -> Iterator[tuple[str, int]]:
    """Yield texts with the number of the text each is a near copy of, or its own."""
    draw = random.Random(0)
    kept: list[tuple[int, list[str]]] = []
    for number in range(count):
        if number % 10 == 9:
            source, found = draw.choice(kept)
            copy = list(found)
            ends = [draw.choice((0, words - 1))]  # one 5-gram differs
            for place in draw.sample(range(5, words - 5), draw.randint(1, 3)) if inside else ends:
                copy[place] = f"x{draw.getrandbits(20)}"
            yield " ".join(copy), source
            continue
        found = [f"w{min(int(draw.paretovariate(0.6)), 50_000)}" for _ in range(words)]
        kept.append((number, found))
        kept = kept[-1_000:]
        yield " ".join(found), number


def resident() -> int:
    """Return the resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def memory(rows: int, words: int) -> None:
    """Print what a large input takes."""
    marks = {rows // 10, rows // 2, rows}
    sources: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        finder = CopyFinder(MinHash(), THRESHOLD, Path(folder))
        empty, began = resident(), time.process_time()
        for number, (text, source) in enumerate(texts(rows, words), 1):
            finder.add(text)
            if source != number - 1:
                sources.append(number - 1)
            if number in marks:
                grown = resident() - empty
                print(
                    f"{number:>9} rows  {grown / MIB:8.1f} MiB more  {grown / number:6.0f} bytes a row  "
                    f"{time.process_time() - began:7.1f} CPU s"
                )
        found = finder.find()
        finder.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - empty
    missed = sum(int(found.kept[number]) == number for number in sources)
    print(f"with the search: {peak / MIB:8.1f} MiB more at the peak  {peak / rows:6.0f} bytes a row")
    print(
        f"all: {time.process_time() - began:.1f} CPU s; {len(sources) - missed} of {len(sources)} planted copies found"
    )
    print(f"others called copies: {int((found.kept != range(rows)).sum()) - (len(sources) - missed)}")


def timed(what: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes."""
    began = time.process_time()
    what()
    return time.process_time() - began


def peer(rows: int, words: int) -> int:
    """Print both side by side."""
    try:
        datasketch: Any = importlib.import_module("datasketch")  # it has no type hints
    except ModuleNotFoundError:
        print("the peer is not installed: pip install datasketch", file=sys.stderr)
        return 2
    given = [text for text, _ in texts(rows, words, inside=True)]
    minhash = MinHash()
    sets = [minhash.shingles(text) for text in given]

    def sketch(text: str) -> object:
        found = text.lower().split()
        sketched = datasketch.MinHash(num_perm=128)
        sketched.update_batch([" ".join(found[at : at + 5]).encode() for at in range(len(found) - 4)])
        return sketched

    ours, theirs = timed(lambda: minhash.signatures(given)), timed(lambda: [sketch(text) for text in given])
    print(f"signatures: {rows / ours:8.0f} texts/s, datasketch {rows / theirs:8.0f}: {theirs / ours:.1f} times as fast")

    found: set[int] = set()

    def find() -> None:
        with tempfile.TemporaryDirectory() as folder:
            finder = CopyFinder(minhash, THRESHOLD, Path(folder))
            for text in given:
                finder.add(text)
            found.update(at for at, kept in enumerate(finder.find().kept.tolist()) if kept != at)
            finder.close()

    told: dict[int, list[int]] = {}

    def ask() -> None:
        index = datasketch.MinHashLSH(threshold=THRESHOLD, num_perm=128)
        for at, text in enumerate(given):
            sketched = sketch(text)
            told[at] = index.query(sketched)
            index.insert(at, sketched)

    ours, theirs = timed(find), timed(ask)
    print(f"copies:     {rows / ours:8.0f} texts/s, datasketch {rows / theirs:8.0f}: {theirs / ours:.1f} times as fast")
    true = with_earlier(sets)
    peers = {at for at, others in told.items() if others}
    bands = Bands.of(THRESHOLD)
    print(f"texts with an earlier one of similarity {THRESHOLD} or more: {len(true)}")
    for name, told_by, how in (
        ("adjudge", found, f"{bands.count} bands of {bands.width}, confirmed"),
        ("datasketch", peers, "its own bands, as they come"),
    ):
        print(f"  {name:<10} found {len(told_by & true):5d}, and wrongly {len(told_by - true):5d}  ({how})")
    return 0


def with_earlier(sets: list[frozenset[str]]) -> set[int]:
    """Return the texts that are similar to an earlier one, by comparing all that share a shingle."""
    owners: dict[str, list[int]] = {}
    found: set[int] = set()
    for number, shingles in enumerate(sets):
        near = {other for shingle in shingles for other in owners.get(shingle, ())}
        if any(jaccard(shingles, sets[other]) >= THRESHOLD for other in near):
            found.add(number)
        for shingle in shingles:
            owners.setdefault(shingle, []).append(number)
    return found


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("memory", "peer"))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--words", type=int)
    args = parser.parse_args()
    if args.what == "memory":
        memory(args.rows or 1_000_000, args.words or 40)
        return 0
    return peer(args.rows or 5_000, args.words or 100)


if __name__ == "__main__":
    sys.exit(main())
