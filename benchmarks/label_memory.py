"""Resident memory of `adjudge label` while it labels a million generated rows.

    python benchmarks/label_memory.py [--rows 1000000] [--scorer exact] [--format jsonl|csv|parquet] [--workers N]
        [--engine local|ray] [--ray-workers N]

Prints the resident memory of the job's process, of its workers, and of Ray itself where that is the engine, when
shares of the rows are done.  Exit code 1 if job and workers grew by more than a tenth from 10 % to 100 %.  Linux
only: it reads /proc.

Not covered: memory that is not resident, the page cache, and pages that processes share, among them Ray's object
store, whose size is bounded by what is under way: they would count once for each process.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from adjudge.data_pipelines.label import LabelConfig, Snapshot, run_label

SHARES = (0.01, 0.1, 0.3, 0.5, 0.75, 1.0)
COLUMNS = ["id", "prompt", "response", "answer"]
MIB = 1 << 20


def rows(count: int) -> Iterator[dict[str, str]]:
    """Yield rows whose responses are 50 to 1,500 characters long."""
    chance = random.Random(0)
    for index in range(count):
        thought = "so we add and get " * chance.randint(2, 80)
        yield {
            "id": f"row-{index}",
            "prompt": f"What is {index} + {index % 7}?",
            "response": f"{thought}{index + index % 7 + (index % 3 == 0)}" if index % 5 else f"{index + index % 7}",
            "answer": f"{index + index % 7}",
        }


def write(file: Path, count: int) -> None:
    """Write the rows in the format of the suffix."""
    if file.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, pa.string()) for name in COLUMNS])
        with pq.ParquetWriter(file, schema) as writer:
            block = []
            for row in rows(count):
                block.append(row)
                if len(block) == 50_000:
                    writer.write_table(pa.Table.from_pylist(block, schema=schema))
                    block = []
            writer.write_table(pa.Table.from_pylist(block, schema=schema))
        return
    with file.open("w", newline="") as out:
        if file.suffix == ".csv":
            table = csv.DictWriter(out, COLUMNS)
            table.writeheader()
            table.writerows(rows(count))
        else:
            out.writelines(json.dumps(row) + "\n" for row in rows(count))


def private(process: int) -> int:
    """Return the resident bytes of a process that it does not share, 0 if it is gone."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def title(process: int) -> str:
    """Return what a process calls itself, "" if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(process: int) -> list[int]:
    """Return all processes that a process started, directly or not."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, open_ends = [], [process]
    while open_ends:
        children = parents.get(open_ends.pop(), [])
        found += children
        open_ends += children
    return found


class Meter:
    """Prints the memory whenever another share of the rows is done.

    Args:
        engine: who has the workers.
    """

    def __init__(self, engine: str) -> None:
        self.left = list(SHARES)
        self.total: dict[float, int] = {}
        self._engine = engine

    def note(self, text: str) -> None:
        """Print a sentence of the job."""
        print(f"  {text}")

    def update(self, snapshot: Snapshot) -> None:
        """Measure if a share is reached."""
        while self.left and (snapshot.fraction or 0.0) >= self.left[0]:
            share = self.left.pop(0)
            below = descendants(os.getpid())
            workers = set(below) if self._engine == "local" else ray_workers(below)
            sizes = {
                "job": private(os.getpid()),
                f"{len(workers)} workers": sum(map(private, workers)),
                "Ray": sum(map(private, set(below) - workers)),
            }
            self.total[share] = sizes["job"] + sizes[f"{len(workers)} workers"]
            told = "  ".join(f"{name} {size / MIB:6.1f} MiB" for name, size in sizes.items() if size)
            print(
                f"{share:6.0%}  {snapshot.rows:9,d} rows  {snapshot.rows_per_second:8,.0f} rows/s  {told}", flush=True
            )


def ray_workers(processes: list[int]) -> set[int]:
    """Return those that are workers of the job on Ray, or children of such."""
    actors = [process for process in processes if title(process).startswith("ray::Worker")]
    return {child for actor in actors for child in [actor, *descendants(actor)]}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--scorer", default="exact")
    parser.add_argument("--format", default="jsonl", choices=("jsonl", "csv", "parquet"))
    parser.add_argument("--output-format", default="jsonl", choices=("jsonl", "parquet"))
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--engine", default="local", choices=("local", "ray"))
    parser.add_argument("--ray-workers", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"in.{asked.format}"
        write(source, asked.rows)
        print(f"{asked.rows:,d} rows, {source.stat().st_size / MIB:,.0f} MiB of {asked.format}, scorer {asked.scorer}")
        meter = Meter(asked.engine)
        config = LabelConfig(
            input=str(source),
            output=str(Path(folder) / f"out.{asked.output_format}"),
            scorer=asked.scorer,
            workers=asked.workers,
            engine=asked.engine,
            ray_workers=asked.ray_workers if asked.engine == "ray" else "",
        )
        report = run_label(config, progress=meter)
        print(f"{report.samples:,d} scores in {report.seconds:.1f} s; counts {dict(report.counts)}")
        print(f"resident at the very end, output converted: {private(os.getpid()) / MIB:.1f} MiB")
    growth = meter.total[1.0] / meter.total[0.1] - 1.0
    print(f"growth from 10 % to 100 %: {growth:+.1%}")
    return int(growth > 0.1)


if __name__ == "__main__":
    sys.exit(main())
