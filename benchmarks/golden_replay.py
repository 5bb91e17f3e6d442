"""Did any verdict change?  Score the corpora, the attack suites and the rows of every scorer, and compare two records.

    ADJUDGE_DATA=... python -m benchmarks.golden_replay record before.jsonl.gz
    ADJUDGE_DATA=... python -m benchmarks.golden_replay record after.jsonl.gz
    python -m benchmarks.golden_replay compare before.jsonl.gz after.jsonl.gz

A record holds status, value, reason, parts and steps of each score, and enough of the sample to find it again;
evidence, seconds and fingerprints may differ without a verdict changing.  `compare` prints each difference and, by
source, how many rows went from which value to which; its exit status is 1 when there is any.  `--only` takes the
beginning of names of sources.

Not covered: scorers whose model is a real one, and the trainer.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from benchmarks.golden_rows import Source, sources

from adjudge import wire
from adjudge.protocol import Sample, Score, Verifier
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer

_SHOWN = 160  # characters of a response in a record


@dataclass(frozen=True, kw_only=True)
class Record:
    """Score the rows and write what came.

    Attributes:
        to: file of gzipped JSON lines.
        only: sources whose names begin so; all when empty.
        workers: processes that judge.
    """

    to: Annotated[Path, tyro.conf.Positional]
    only: tuple[str, ...] = ()
    workers: int = 2


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare two records.

    Attributes:
        before: one.
        after: another.
        most: differences that are printed of one source.
    """

    before: Annotated[Path, tyro.conf.Positional]
    after: Annotated[Path, tyro.conf.Positional]
    most: int = 20


def plain(score: Score) -> dict[str, Any]:
    """Return what a verdict says, without how long it took and who gave it."""
    found: dict[str, Any] = {"status": score.status, "value": score.value, "reason": score.reason}
    if score.parts:
        found["parts"] = {name: plain(part) for name, part in score.parts.items()}
    if score.steps:
        found["steps"] = [step.value for step in score.steps]
    return found


def digest(sample: Sample) -> str:
    """Return what tells a sample from others, whatever place the temporary files have that it names."""
    said = json.dumps([wire.encode(sample.to_dict(), "sample")], sort_keys=True, default=repr)
    return hashlib.sha256(said.replace(tempfile.gettempdir(), "").encode()).hexdigest()[:16]


async def scores_of(source: Source, samples: Sequence[Sample], pool: Pool) -> list[Score]:
    judge = source.judge()
    scorer = VerifierScorer(judge, pool) if isinstance(judge, Verifier) else judge
    return list(await scorer.score(samples))


def record(options: Record) -> int:
    """Write one line for each row."""
    total = 0
    with tempfile.TemporaryDirectory() as folder, gzip.open(options.to, "wt", encoding="utf-8") as out:
        tempfile.tempdir = folder
        for source in sources(Path(folder)):
            if options.only and not source.name.startswith(options.only):
                continue
            begin = time.monotonic()
            samples = source.samples()
            with Pool(options.workers) as pool:
                scores = asyncio.run(scores_of(source, samples, pool))
            seen: Counter[str] = Counter()
            for sample, score in zip(samples, scores, strict=True):
                name = digest(sample)
                seen[name] += 1
                row = {"source": source.name, "row": f"{name}-{seen[name]}", **plain(score)}
                out.write(json.dumps({**row, "response": str(sample.response)[:_SHOWN]}, sort_keys=True) + "\n")
            total += len(samples)
            print(f"{source.name}: {len(samples)} rows, {time.monotonic() - begin:.1f} s", flush=True)
        tempfile.tempdir = None
    print(f"{total} rows")
    return 0


def _read(path: Path) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield (row["source"], row["row"]), row


def _worth(row: dict[str, Any]) -> str:
    return row["status"] if row["value"] is None else f"{row['value']:g}"


def compare(options: Compare) -> int:
    """Print what differs; rows that only one record has are counted and no difference."""
    before, after = dict(_read(options.before)), dict(_read(options.after))
    told: Counter[str] = Counter()
    changes: Counter[tuple[str, str, str]] = Counter()
    for key in before.keys() & after.keys():
        old, new = before[key], after[key]
        if old == new:
            continue
        changes[key[0], _worth(old), _worth(new)] += 1
        told[key[0]] += 1
        if told[key[0]] <= options.most:
            print(f"{key[0]}: {_worth(old)} {old['reason']} -> {_worth(new)} {new['reason']}: {old['response']!r}")
    print(f"\n{len(before)} rows before, {len(after)} after, {len(before.keys() & after.keys())} in both")
    for (source, was, became), count in sorted(changes.items()):
        print(f"{source}: {count} from {was} to {became}")
    print(f"{sum(changes.values())} differences")
    return int(bool(changes))


def main(options: Record | Compare) -> int:
    """Record or compare."""
    return record(options) if isinstance(options, Record) else compare(options)


Commands = Annotated[Record, tyro.conf.subcommand("record")] | Annotated[Compare, tyro.conf.subcommand("compare")]

if __name__ == "__main__":
    sys.exit(main(tyro.cli(Commands, description=__doc__)))
