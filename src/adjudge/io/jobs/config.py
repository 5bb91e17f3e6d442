"""The options that every job over rows has."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from adjudge.io.source import DatasetChoice, Source
from adjudge.options import Options, Range


@dataclass(frozen=True, kw_only=True)
class Files(DatasetChoice, Options, what="--"):
    """What a job reads and what it writes."""

    input: str
    """A .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, or a folder of them.
    Or a folder written by datasets.save_to_disk, or the name of a dataset on the Hugging Face hub."""

    output: str
    """A .jsonl, .jsonl.gz or .parquet file, or a folder (a name without a dot) for datasets.load_from_disk.
    It appears when it is complete, with a card beside it."""

    limit: Annotated[int | None, Range(ge=1)] = None
    """Only the first rows, so many."""

    max_row_mb: Annotated[int, Range(ge=1, le=1024, unit="MiB")] = 16
    """Largest row of a text file, in MiB; a larger one counts as unreadable."""

    restart: bool = False
    """Throw away what an interrupted job left, and begin anew."""

    overwrite: bool = False
    """Replace the output if it exists."""

    def open(self) -> Source:
        """Open the input.

        Raises:
            ValueError: there is no such input, or it cannot be read.
        """
        return self.opened(self.input, limit=self.max_row_mb << 20)


@dataclass(frozen=True, kw_only=True)
class JobConfig(Files):
    """Read rows, make others of them, and write those to a file.

    A job that was interrupted, in whatever way, goes on where it was when the same call is made again.
    """

    needed: ClassVar[tuple[str, ...]] = ()
    """Options that have a default, which may not be taken away."""

    in_flight: Annotated[int, Range(ge=1)] = 16
    """Rows, or groups, that are worked on at the same time."""

    license: str = ""
    """Licence of the input, for the card;
    without it, what the input's own card says, or unknown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.needed:
            if not getattr(self, name):
                raise ValueError(f"--{name.replace('_', '-')} is empty; name it")

    def own_options(self) -> dict[str, Any]:
        """Return the options of this kind of job, without those that every job has: what its rows depend on."""
        common = {item.name for item in fields(JobConfig)}
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in common}
