"""What `adjudge data` shows: how far a job is, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.cli.console import plain, print_table, visible
from adjudge.cli.shown import JobBar
from adjudge.io.jobs.report import JobSnapshot


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
