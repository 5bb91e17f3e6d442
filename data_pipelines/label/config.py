"""The options of a label job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from adjudge.data_pipelines.label.asked import Asked, asked_scorers
from adjudge.data_pipelines.label.shares import Shares
from adjudge.io.columns import ColumnOptions
from adjudge.io.jobs.config import Files
from adjudge.io.jobs.patience import MOST_IN_A_ROW


@dataclass(frozen=True, kw_only=True)
class LabelConfig(Files, ColumnOptions):
    """Score every row of a dataset and write the scores to a file.

    A job that was interrupted, in whatever way, goes on where it was when the same call is made again.

    Raises:
        ValueError: an option is out of its range.
    """

    scorer: str | tuple[str, ...] = "auto"
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "auto" chooses by the reference of each row. Give it several times for several
    scorers, with NAME=SPEC where one needs a name; scores are then written by name."""

    unless: tuple[str, ...] = ()
    """NAME=EARLIER: ask the scorer NAME only about what EARLIER did not settle.
    A scorer settles a sample with a number. EARLIER may be several, with commas."""

    doubt: tuple[str, ...] = ()
    """A reason with which a number settles nothing, such as undecided; give it
    several times for several."""

    keep_columns: bool = False
    """Write the row too, as the field `input` of each score: with the one response
    that was scored in the place of all that the row lists."""

    timings: bool = False
    """Write the seconds each score took; the output then differs from run to run."""

    shard: str = ""
    """i/n: only every n-th row, beginning with row i, counted from 0; rows of one group stay together."""

    limit: int | None = None
    """Only the first rows, so many, of all shards together."""

    workers: int | None = None
    """Worker processes for verifiers; without it, one per CPU core.
    With --engine ray, in each Ray worker, 1 without it."""

    batch_size: int = 256
    """Samples handed to the scorer in one call; no score depends on it."""

    in_flight: int = 4
    """Batches that are scored at the same time; with --engine ray, by each worker."""

    cache: str = ""
    """A file that keeps scores, so that nothing is judged twice; it is made if it is not there."""

    engine: Literal["local", "ray"] = "local"
    """Where scorers work: in this process and its children, or in Ray workers.
    It may change when an interrupted job goes on."""

    ray_address: str = ""
    """The Ray to join, "auto" or HOST:PORT; without it, one starts and ends here."""

    ray_workers: int | str = ""
    """Ray workers for each scorer, as a number or as NAME=N,NAME=N.
    Without it, as many as there are CPUs and GPUs for."""

    ray_gpus: float | str = ""
    """GPUs that each worker reserves, as a number or as NAME=N,NAME=N.
    Fractions share one. Give it for scorers that run a model."""

    fail_on: int = MOST_IN_A_ROW
    """Stop when so many newest scores of a scorer all failed for a reason on our side,
    such as a server that is gone or a judge without verdicts, and sooner if it never
    judged any. What was judged before is kept. 0 never stops."""

    retry_failed: bool = False
    """Judge again what failed in an output that is there, and keep the rest as it is."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        if self.engine not in ("local", "ray"):
            raise ValueError(f"--engine is {self.engine!r}; it must be local or ray")
        for name in ("batch_size", "in_flight"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be 1 or more")
        if self.fail_on < 0:
            raise ValueError(f"--fail-on is {self.fail_on}; it must be 1 or more, or 0 to go through in any case")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers is {self.workers}; it must be 1 or more, or left out for one per CPU core")
        self.shard_of()
        self.asked()
        self._check_ray()

    def _check_ray(self) -> None:
        names = [each.name for each in self.asked()[0]]
        for flag, given, whole in (("ray_workers", self.ray_workers, True), ("ray_gpus", self.ray_gpus, False)):
            Shares.read(f"--{flag.replace('_', '-')}", given, names, whole=whole)
        for name in ("ray_address", "ray_workers", "ray_gpus"):
            if self.engine != "ray" and getattr(self, name) != "":
                raise ValueError(f"--{name.replace('_', '-')} is for --engine ray, and the engine is {self.engine}")

    def asked(self) -> tuple[tuple[Asked, ...], bool]:
        """Return the scorers that were named, and whether their scores are written by name."""
        specs = (self.scorer,) if isinstance(self.scorer, str) else self.scorer
        return asked_scorers(specs, self.unless, self.doubt)

    def shard_of(self) -> tuple[int, int]:
        """Return this job's shard, from 0, and how many there are."""
        if not self.shard:
            return 0, 1
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", self.shard)
        if found is None or int(found[1]) >= int(found[2]):
            raise ValueError(
                f"--shard is {self.shard!r}; it must be i/n with i from 0 to n-1, such as 0/4, 1/4, 2/4 and 3/4"
            )
        return int(found[1]), int(found[2])
