"""The options of a job that makes databases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adjudge.io.jobs.config import JobConfig

EDGES: Final = ("nulls", "duplicates", "ties", "empty", "dates", "zeros")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass(frozen=True, kw_only=True)
class DatabasesConfig(JobConfig):
    """Make SQLite databases from schemas and sample values, and keep those that tell an accepted query from wrong ones.

    A row names a schema, and, where there is one, a query. Wrong queries are mutants of that query and the row's own
    candidates. Rows without a query get databases all the same.

    Raises:
        ValueError: an option is out of its range.
    """

    schema_column: str = "schema"
    """Column of the schema: CREATE TABLE statements, {table: {column: type}},
    or the form of BIRD's schema files."""

    values_column: str = "values"
    """Column of sample values: {table: {column: [value, ...]}}."""

    database_column: str = "database"
    """Column of a SQLite file, whose schema and values are taken where the row has
    no schema, and beside which the made databases are measured."""

    database_folder: str = ""
    """Folder of those files; a name stands for NAME, NAME.sqlite or
    NAME/NAME.sqlite in it."""

    schemas: str = ""
    """JSON file of schemas by name, such as BIRD's."""

    name_column: str = "db_id"
    """Column of the name in that file."""

    sql_column: str = "sql"
    """Column of the accepted query, or of a list of them."""

    candidates_column: str = ""
    """Column of further queries to tell from the accepted ones."""

    prompt_column: str = "prompt"
    """Column of the question; it is handed on."""

    id_column: str = "id"
    """Column of the id; without one, the number of the row, from 0."""

    folder: str = ""
    """Folder for the databases; without one, OUT's name with _databases behind
    it, beside OUT. The rows name the files as they lie under it."""

    count: int = 4
    """Most databases for each row."""

    distill: bool = False
    """Keep no database that tells nothing apart beyond those before it."""

    tries: int = 3
    """Databases tried for each one wanted."""

    edges: tuple[str, ...] = EDGES
    """Edge cases that every other database holds; give it several times. One of
    nulls, duplicates, ties, empty, dates, zeros; none leaves all out."""

    min_told: float = 0.0
    """Share of the mutants that the databases must tell apart for a row to be kept."""

    moment: str = "2025-01-01 00:00:00"
    """What SQLite's clock shows; the sql scorer's own default."""

    seconds: float = 5.0
    """Seconds that the accepted query, or another, may take."""

    seed: int = 0
    """Decides every row of every database."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        for name, most in (("count", 32), ("tries", 20)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"--{name} is {getattr(self, name)}; it must be from 1 to {most}")
        if unknown := [name for name in self.edges if name not in (*EDGES, "none")]:
            raise ValueError(f"--edges is {unknown[0]!r}; it must be one of {', '.join(EDGES)}, none")
        if not 0 <= self.min_told <= 1:
            raise ValueError(f"--min-told is {self.min_told}; it must be a share from 0 to 1")
        if not 0.05 <= self.seconds <= 600:
            raise ValueError(f"--seconds is {self.seconds}; it must be from 0.05 to 600")
        if not _MOMENT.fullmatch(self.moment):
            raise ValueError(f"--moment is {self.moment!r}; write it like 2025-01-01 00:00:00")

    @property
    def made_folder(self) -> Path:
        """Where the databases lie."""
        output = Path(self.output)
        stem = output.name.removesuffix(".gz")
        return Path(self.folder) if self.folder else output.with_name(f"{stem.rpartition('.')[0] or stem}_databases")

    @property
    def wanted_edges(self) -> frozenset[str]:
        """The edge cases, without "none"."""
        return frozenset(self.edges) - {"none"}
