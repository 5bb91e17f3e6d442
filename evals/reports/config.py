"""The options that every evaluation has, and what names its input again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from adjudge import wire
from adjudge.io.source import Source, open_source
from adjudge.options import Options, Range
from adjudge.statistics.intervals import LEVEL, Draws

ROW_BYTES: Final = 256 << 20
"""A row of a text file takes no more."""


@dataclass(frozen=True, kw_only=True)
class EvalConfig(Options):
    """Options of an evaluation; an evaluation extends them with its own.

    Attributes:
        needs_input: whether an empty input is a mistake; a benchmark that knows its place on the hub needs none.
    """

    needs_input: ClassVar[bool] = True

    input: str
    """A .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, a folder of them or of a saved dataset, a pattern,
    an address such as s3://..., or a dataset of the Hugging Face hub; several with commas."""

    output: str = ""
    """Folder for result.json and report.html; without it, the table is all."""

    split: str = ""
    """Which split of a dataset; several with + between them."""

    subset: str = ""
    """Which configuration of a dataset on the hub."""

    revision: str = ""
    """Which commit of a dataset on the hub."""

    limit: Annotated[int, Range(ge=0)] = 0
    """Use only the first rows, so many; 0 uses all."""

    resamples: Annotated[int, Range(ge=0)] = 2_000
    """Resamples that bounds are drawn from; 0 draws none."""

    level: Annotated[float, Range(gt=0, lt=1)] = LEVEL
    """Coverage of the bounds, between 0 and 1."""

    seed: int = 0
    """Of everything that is drawn."""

    worst: Annotated[int, Range(ge=0)] = 50
    """How many cases the report holds to read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.needs_input and not self.input:
            raise ValueError("there is no input; give a file, a folder, or the name of a dataset on the hub")
        if self.resamples == 1:
            raise ValueError("option resamples=1; give 0 for no bounds, or 2 or more")

    def opened(self, name: str = "") -> Source:
        """Open the input, or another file."""
        if name:
            return open_source(name, limit=ROW_BYTES)
        return open_source(self.input, limit=ROW_BYTES, split=self.split, subset=self.subset, revision=self.revision)

    @property
    def draws(self) -> Draws:
        """How bounds are drawn."""
        return Draws(rounds=self.resamples, level=self.level, seed=self.seed)


def input_facts(source: Source, rows: int) -> dict[str, Any]:
    """Return the facts of `Result.source`.

    The digest is of each file's size and first MiB, and of what else names the input; a copy has the same one.
    """
    identity = source.identity()
    files = {name: [file["bytes"], file["head"]] for name, file in identity.pop("files", {}).items()}
    named = {key: value for key, value in identity.items() if value and key != "name"}
    digest = hashlib.sha256(wire.dumps([files, named]).encode()).hexdigest()[:16]
    return {"name": source.name, "rows": rows, "digest": digest, **named}
