"""Did the trainer change in any bit?  Train the small policies of `golden_runs` for 20 steps, and compare two records.

    OMP_NUM_THREADS=1 python -m benchmarks.golden_training record before.json
    OMP_NUM_THREADS=1 python -m benchmarks.golden_training record after.json
    python -m benchmarks.golden_training compare before.json after.json --rename flat_groups=frac_reward_zero_std

A record holds what a run reports of each step, its times left out; the advantages that its losses read, as a digest and
the first of some answers; and digests of all weights at the end.  `compare` prints the first difference of each run;
its exit status is 1 when there is any.  Numbers of other machines, and of other versions of PyTorch, may differ.

Not covered: what `golden_runs` leaves out.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import torch
import tyro
from benchmarks.golden_runs import RUNS, run_file
from safetensors.torch import load_file
from transformers.utils import logging

from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.training.config_file import config_of

Row = dict[str, Any]
"""What there is of a step: numbers by the names of metrics; the last row of a run has digests by files."""

_TIMES = "seconds"  # how the names of times begin
_SHOWN = 8  # advantages in a record


@dataclass(frozen=True, kw_only=True)
class Record:
    """Train, and write what came.

    Attributes:
        to: file of JSON.
        only: names of runs; all when empty.
        steps: of each run.
    """

    to: Annotated[Path, tyro.conf.Positional]
    only: tuple[str, ...] = ()
    steps: int = 20


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare two records.

    Attributes:
        before: one.
        after: another.
        rename: metrics that have other names in the second one, as OLD=NEW, where an empty NEW leaves OLD out; or
            JSON files of an object {OLD: NEW}.
    """

    before: Annotated[Path, tyro.conf.Positional]
    after: Annotated[Path, tyro.conf.Positional]
    rename: tuple[str, ...] = ()


@contextmanager
def advantages_kept(into: list[torch.Tensor]) -> Iterator[None]:
    """Inside, the (n, t) advantages that losses read are kept; 0 where the policy did not write."""
    plain = Objective.loss

    def loss(self: Objective, tokens: Any) -> Any:
        into.append((tokens.advantages * tokens.mask).detach().clone())
        return plain(self, tokens)

    with patch.object(Objective, "loss", loss):
        yield


def trained(name: str, folder: Path, *, steps: int) -> list[Row]:
    """Return the rows of a run in this process; of several processes those after the first have none but the last."""
    rows: list[Row] = []
    read: list[torch.Tensor] = []

    def tell(numbers: Mapping[str, float]) -> None:
        digest = hashlib.sha256(b"".join(part.numpy().tobytes() for part in read)).hexdigest()
        first = [float(value) for part in read[:1] for value in part[:_SHOWN, 0]]
        kept = {metric: value for metric, value in numbers.items() if not metric.startswith(_TIMES)}
        rows.append({**kept, "advantages": [digest, *first]})
        read.clear()

    config, _ = run_file(name, folder, steps=steps)
    with advantages_kept(read):
        train_policy_run(config_of(RunFile, config), tell=tell)
    if os.environ.get("RANK", "0") != "0":  # the first process may still be writing
        return rows
    home = Path(config["output"])
    files = [
        file for file in sorted(home.rglob("*.safetensors")) if not file.relative_to(home).parts[0].startswith("start-")
    ]
    return [*rows, {str(file.relative_to(home)): weights_digest(file) for file in files}]


def weights_digest(file: Path) -> str:
    """Return what files of the same tensors have in common, whatever the tensors are called."""
    digests = [
        hashlib.sha256(f"{value.dtype} {tuple(value.shape)} ".encode() + value.view(torch.uint8).numpy().tobytes())
        for value in load_file(file).values()
    ]
    return hashlib.sha256("".join(sorted(one.hexdigest() for one in digests)).encode()).hexdigest()


def _child(name: str, folder: Path, steps: int, environment: Mapping[str, str]) -> None:
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    os.environ.update(environment)
    rows = trained(name, folder, steps=steps)
    if environment["RANK"] == "0":
        (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")


def forked(name: str, folder: Path, *, steps: int) -> list[Row]:
    """Return the rows of a run in processes of its own, which are forks of this one.

    Raises:
        RuntimeError: one of them failed; it has said why.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    count = RUNS[name].get("processes", 1)
    told = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    fork = multiprocessing.get_context("fork")
    children = [
        fork.Process(target=_child, args=(name, folder, steps, {**told, "RANK": str(rank), "LOCAL_RANK": str(rank)}))
        for rank in range(count)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    if any(child.exitcode for child in children):
        raise RuntimeError(f"the run {name!r} failed")
    rows: list[Row] = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    return rows


def record(options: Record) -> int:
    """Write the rows of each run."""
    found = {}
    for name in options.only or RUNS:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found[name] = forked(name, Path(folder), steps=options.steps)
        print(f"{name}: {len(found[name]) - 1} steps, {time.monotonic() - begin:.1f} s", flush=True)
    options.to.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def renames(given: Sequence[str]) -> dict[str, str]:
    """Return the new names of metrics."""
    found: dict[str, str] = {}
    for text in given:
        old, equals, new = text.partition("=")
        found |= {old: new} if equals else json.loads(Path(text).read_text(encoding="utf-8"))
    return found


def renamed(row: Row, names: Mapping[str, str]) -> Row:
    """Return a row with other names.

    Raises:
        ValueError: two metrics would have one name.
    """
    kept = [(names.get(metric, metric), value) for metric, value in row.items()]
    found = {metric: value for metric, value in kept if metric}
    if len(found) < len([metric for metric, _ in kept if metric]):
        raise ValueError(f"two metrics would have one name by --rename, of {', '.join(row)}")
    return found


def first_difference(before: Sequence[Row], after: Sequence[Row]) -> str:
    """Return the first difference of two runs; "" if there is none."""
    nothing: Row = {}
    for old, new in zip_longest(before, after, fillvalue=nothing):
        for metric in dict.fromkeys([*old, *new]):
            values = [json.dumps(row[metric]) if metric in row else "nothing" for row in (old, new)]
            if values[0] != values[1]:
                return f"step {old.get('step', new.get('step', 'end'))}, {metric}: {values[0]} -> {values[1]}"
    return ""


def compare(options: Compare) -> int:
    """Print the first difference of each run."""
    before, after = (json.loads(file.read_text(encoding="utf-8")) for file in (options.before, options.after))
    names = renames(options.rename)
    left_out = {old: "" for old, new in names.items() if not new}
    different = 0
    for run in dict.fromkeys([*before, *after]):
        old = [renamed(row, names) for row in before.get(run, ())]
        new = [renamed(row, left_out) for row in after.get(run, ())]
        difference = first_difference(old, new)
        different += bool(difference)
        print(f"{run}: {difference or 'the same'}")
    print(f"{different} runs differ")
    return int(different > 0)


def main(options: Record | Compare) -> int:
    """Record or compare."""
    return record(options) if isinstance(options, Record) else compare(options)


Commands = Annotated[Record, tyro.conf.subcommand("record")] | Annotated[Compare, tyro.conf.subcommand("compare")]

if __name__ == "__main__":
    sys.exit(main(tyro.cli(Commands, description=__doc__)))
