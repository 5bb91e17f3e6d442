"""What commands with several kinds of work have in common: a table of kinds, of which nothing is imported until asked.

Not covered: the kinds themselves (`data`, `eval`), and their flags (`config_flags`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from adjudge.cli.console import plain, print_table, visible
from adjudge.cli.shown import JobBar
from adjudge.data_pipelines.jobs.report import JobSnapshot
from adjudge.extras import install_hint


class DataBar(JobBar):
    """The progress of a job on standard error; notes are printed there as they come.

    Args:
        name: what the bar calls the job.
        made: what it calls that which is made.
    """

    def __init__(self, name: str, made: str = "made") -> None:
        super().__init__(name)
        self._made = made

    def update(self, snapshot: JobSnapshot) -> None:
        """Show the state of the job."""
        counts = f"{snapshot.rows} rows  {snapshot.rows_per_second:.0f} rows/s  {snapshot.made} {self._made}"
        dropped = sum(snapshot.dropped.values())
        counts = f"{counts}  {dropped} dropped" if dropped else counts
        self.show(counts, snapshot.fraction, snapshot.eta_seconds)


def print_report(report: Any, data: Mapping[str, Any]) -> None:
    """Print what a finished job did: its own lines if it has some, else the counts of a `JobReport`."""
    if hasattr(report, "lines"):
        for line in report.lines():
            print(visible(line))
        return
    if data["dropped"]:
        print_table(("dropped", "times"), sorted(data["dropped"].items(), key=lambda entry: (-entry[1], entry[0])))
    if data["counts"]:
        print_table(("counted", "sum"), data["counts"].items())
    tokens = data["cost"]["prompt_tokens"] + data["cost"]["completion_tokens"]
    spent = f", {plain(tokens)} tokens" if tokens else ""
    print(
        f"{data['made']} rows of {data['rows']} in {data['seconds']:.1f} s{spent}; written to {visible(data['output'])}"
    )


K = TypeVar("K")


def imported(path: str, extra: str) -> Any:
    """Return what "module:name" names.

    Args:
        path: where it is.
        extra: of the package, which brings what it needs.

    Raises:
        ValueError: a package that it needs is not installed.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"this kind needs {error.name!r}, which is not here; install what it needs with: {install_hint(extra)}"
        ) from error
