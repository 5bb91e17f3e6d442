"""`adjudge label`: the batch job of `adjudge.data_pipelines.label`, with its progress on the terminal."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JobBar, JsonFlag, duration, print_json, print_table
from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.report import LabelReport, Snapshot
from adjudge.score_view import plain, visible


@dataclass(frozen=True, kw_only=True)
class LabelCommand(LabelConfig):
    """Score every row of a dataset and write the scores to a file.

    adjudge label solutions.jsonl scores.jsonl --scorer math

    A job that was interrupted goes on when the same command is given again.

    Exit code: 0 every row was judged, or the input has none,
    1 some rows could not be judged, or of those there are not one was scored,
    2 the call is wrong, the job could not go on or a scorer judged nothing any
    more, 130 Ctrl-C.
    """

    input: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """A .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, or a folder of them.
    Or a folder written by datasets.save_to_disk, or the name of a dataset on the Hugging Face hub."""

    output: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """Where the scores go: a .jsonl, .jsonl.gz or .parquet file.
    Or a folder (a name without a dot) for datasets.load_from_disk. It appears when it is complete."""

    scorer: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME=]SPEC")] = ()
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    Without it, or with "auto", the reference of each row chooses.
    Give it several times for several scorers, with NAME=SPEC where one needs a name.
    Scores are then written by name."""

    unless: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=EARLIER")] = ()
    """Ask the scorer NAME only about what EARLIER did not settle.
    A scorer settles a sample with a number. EARLIER may be several, with commas."""

    doubt: Annotated[tuple[str, ...], tyro.conf.arg(metavar="REASON")] = ()
    """A reason with which a number settles nothing, such as undecided; give it several times for several."""

    ray_workers: Annotated[str, tyro.conf.arg(metavar="N", help_behavior_hint="(default: as many as fit)")] = ""
    """Ray workers for each scorer, as a number or as NAME=N,NAME=N."""

    ray_gpus: Annotated[str, tyro.conf.arg(metavar="N", help_behavior_hint="(default: 0)")] = ""
    """GPUs that each Ray worker reserves, as a number or as NAME=N,NAME=N.
    Fractions share one. Give it for scorers that run a model."""

    limit: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: all)")] = None
    """Only the first rows, so many, of all shards together."""

    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: one per CPU core)")] = (
        None
    )
    """Worker processes for verifiers; with --engine ray, in each Ray worker, 1 without it."""

    as_json: JsonFlag = False

    def __post_init__(self) -> None:
        """Leave the checks to the `LabelConfig` that `run` makes: tyro would report them in a form of its own."""

    def run(self) -> int:
        """Run the job, print the counts, and return the exit code."""
        from adjudge.data_pipelines.label import run_label

        names = [item.name for item in dataclasses.fields(LabelConfig)]
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        given["scorer"] = self.scorer or "auto"
        config = LabelConfig(**given)
        with _Bar("label") as bar:
            report = run_label(config, progress=bar)
        if self.as_json:
            print_json(report.to_dict())
        else:
            print_report(report)
        return exits.FOUND if report.failed or report.samples > report.scored == 0 else exits.FINE


class _Bar(JobBar):
    def update(self, snapshot: Snapshot) -> None:
        """Show the state of the job."""
        counts = (
            f"{snapshot.rows} rows  {snapshot.rows_per_second:.0f} rows/s  mean {plain(snapshot.mean)}  "
            f"failed {snapshot.failed}  abstained {snapshot.abstained}"
        )
        self.show(counts, snapshot.fraction, snapshot.eta_seconds)


def print_report(report: LabelReport) -> None:
    """Print what a finished job did."""
    counted = report.to_dict()["counts"]
    columns = ["scorer", "status", "reason", "count"] + ["error"] * bool(report.errors)
    if counted:
        print_table(columns, [[row.get(name, "") for name in columns] for row in counted])
    print(
        f"{report.samples} scores of {report.rows} rows in {report.seconds:.1f} s "
        f"({report.rows_per_second:.0f} rows/s), mean {plain(report.mean)}; written to {visible(report.output)}"
    )
    for name, scorer in report.by_scorer.items():
        print(
            f"{visible(name)}: mean {plain(scorer.mean)}, scored {scorer.scored}, abstained {scorer.abstained}, "
            f"failed {scorer.failed}, not asked {scorer.not_asked}"
        )
    costs = {name: scorer.cost for name, scorer in report.by_scorer.items()} or {report.scorer: report.cost}
    if report.cost.prompt_tokens or report.cost.completion_tokens:
        told = ("scorer", "seconds", "prompt tokens", "completion tokens")
        print_table(told, [[visible(name), *dataclasses.astuple(cost)] for name, cost in costs.items()])
    if report.whole_rows is not None:
        print(
            f"All {'' if report.whole_counted else 'of about '}{report.whole_rows:,} rows would take "
            f"{'at most ' if report.whole_bound else ''}about {duration(report.whole_seconds)}, "
            f"{report.whole_cost.prompt_tokens:,} prompt and {report.whole_cost.completion_tokens:,} completion tokens."
        )
    if report.out_of_scope:
        print(f"{report.out_of_scope} samples are of a kind that the scorer does not judge; they are not failures.")
    if report.samples and not report.scored:
        print(
            "Not one row was scored. What the references in the first rows are: "
            f"{visible('; '.join(report.references))}; name another --scorer or another --reference-column."
        )
    if report.failed:
        print("A failed row has no number; its `reason` and `evidence` in the output say why.")
        if report.groupwise:
            print("The scorer compares groups: the same command with --overwrite judges all rows again.")
        else:
            print("The same command with --retry-failed judges those again, and keeps the rest.")
