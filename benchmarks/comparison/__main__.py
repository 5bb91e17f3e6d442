"""The verifiers that people use today and ours on the same labelled sets: who is wrong, who breaks, how long it takes.

    PIP_IGNORE_REQUIRES_PYTHON=1 pip install --no-deps -t build/peers -r benchmarks/comparison/requirements.txt
    ADJUDGE_DATA=... python -m benchmarks.comparison

Each verifier judges in a process of its own, one row after another, two verifiers at a time; a call that takes longer
than the limit is ended with its process, and counted.  The tables go into docs/comparison.md and the rows on which
verifiers differ into docs/comparison/differences.jsonl.  A verifier that is not installed is named as such.

Not covered: verifiers that ask a model or a service.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import tyro
from benchmarks.comparison import page
from benchmarks.comparison.page import Judged, Result
from benchmarks.comparison.rows import LabelledRow, LabelledSet
from benchmarks.comparison.sets import all_sets
from benchmarks.comparison.worker import ROOT, Asked, MissingError, Outcome
from benchmarks.verifier_peers import Peer

MOST_HANGS = 5
"""Calls of a verifier on a set that may end with its process; after that it is not asked any more."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to compare.

    Attributes:
        rows: rows of a set, at most; 0 takes what each set has by itself.
        sets: sets whose names begin so; all when empty.
        verifiers: names of those to ask; all when empty.
        peers: folders with packages that are not installed here, where there are any.
        limit: wall seconds of a call.
        seconds: wall seconds that a verifier has for a set; rows that it does not reach are not counted.
        jobs: verifiers at a time.
        seed: of the draw of rows.
        page: the page that gets the tables; "" prints them.
    """

    rows: int = 0
    sets: tuple[str, ...] = ()
    verifiers: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("build/peers",)
    limit: float = 30.0
    seconds: float = 40.0
    jobs: int = 2
    seed: int = 7
    page: str = str(ROOT / "docs" / "comparison.md")


def drawn(of: LabelledSet, rows: Sequence[LabelledRow], options: Options) -> list[LabelledRow]:
    """Return the rows that are judged, in an order of their own: the first is not timed."""
    most = min(len(rows), options.rows or of.most or len(rows))
    return random.Random(options.seed).sample(rows, most)


def judged(
    asked: Asked, peer: Peer, sets: Mapping[str, Sequence[LabelledRow]], seconds: float = float("inf")
) -> dict[str, Judged]:
    """Return what a verifier says of each set, for the rows that it can be asked about and reaches within its time.

    Args:
        asked: the verifier, not started yet.
        peer: what it needs.
        sets: rows by the name of their set.
        seconds: for a set.
    """
    found: dict[str, Judged] = {}
    try:
        with asked:
            for name, rows in sets.items():
                outcomes: dict[str, Outcome] = {}
                until, lost = time.monotonic() + seconds, 0
                for row in rows:
                    if peer.needs and row.sample.extra.get(peer.needs) is None:
                        continue
                    if lost == MOST_HANGS or time.monotonic() > until:
                        break
                    outcome = outcomes[row.sample.id] = asked.ask(row.sample)
                    lost += outcome.lost
                found[name] = Judged(title=asked.title, outcomes=outcomes)
    except MissingError as error:
        return {name: Judged(title=asked.title, outcomes={}, missing=str(error)) for name in sets}
    return found


def compared(options: Options, folder: Path, peers_module: str) -> list[Result]:
    """Return what the verifiers say of the sets, in their order.

    Args:
        options: what to compare.
        folder: an empty folder for databases.
        peers_module: the module with `PEERS`.
    """
    peers: Mapping[str, Mapping[str, Peer]] = import_module(peers_module).PEERS
    chosen = [one for one in all_sets(folder) if not options.sets or one.name.startswith(options.sets)]
    if not chosen:
        sys.exit(f"no set begins with {options.sets[0]!r}; they are {', '.join(one.name for one in all_sets(folder))}")
    folders = [str(Path(place).resolve()) for place in options.peers if Path(place).is_dir()]
    whole = {of.name: of.make() for of in chosen}
    taken = {of.name: drawn(of, whole[of.name], options) for of in chosen}

    def work(task: str, name: str) -> dict[str, Judged]:
        asked = Asked(peers_module, task, name, folders=folders, visible=[str(folder)], limit=options.limit)
        sets = {of.name: taken[of.name] for of in chosen if of.task == task}
        found = judged(asked, peers[task][name], sets, options.seconds)
        print(f"{asked.title}: {len(sets)} sets", file=sys.stderr, flush=True)
        return found

    asked = [(task, name) for task in dict.fromkeys(of.task for of in chosen) for name in peers[task]]
    if options.verifiers:
        asked = [one for one in asked if one[1] in options.verifiers]
    with ThreadPoolExecutor(options.jobs) as threads:
        said = dict(zip(asked, threads.map(work, *zip(*asked, strict=True)), strict=True))
    return [
        Result(
            of=of, rows=taken[of.name], total=len(whole[of.name]),
            judged={name: found[of.name] for (task, name), found in said.items() if task == of.task},
        )
        for of in chosen
    ]  # fmt: skip


def main(options: Options, peers_module: str = "benchmarks.comparison.peers") -> None:
    """Judge, and write the page."""
    started, load, date = time.monotonic(), os.getloadavg()[0], datetime.datetime.now().astimezone().date()
    with tempfile.TemporaryDirectory() as folder:
        results = compared(options, Path(folder), peers_module)
    module = import_module(peers_module)
    tables = page.tables(results, module.PEERS, module.NOT_RUN)
    minutes = (time.monotonic() - started) / 60
    about = (
        f"Made on {date} in {minutes:.0f} minutes by `python -m "
        f"benchmarks.comparison`: seed {options.seed}, {options.jobs} verifiers at a time on {os.cpu_count()} cores "
        f"with a load of {load:.1f} at the start, {options.limit:g} s for a call and "
        f"{options.seconds:g} s for a verifier on a set."
    )
    if options.page:
        page.write(Path(options.page), results, tables, about)
    else:
        print(f"{about}\n\n{tables}")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
