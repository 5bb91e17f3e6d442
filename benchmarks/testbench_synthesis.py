"""Test benches made of reference designs, beside the benches and labels that people made.

VerilogEval: benches recorded from its references judge mutants of the references (of another seed than those that the
benches were chosen by), beside VerilogEval's own benches.  RTLLM: recorded benches judge the labelled candidates of
models.  Where the verdicts differ, a longer comparison with the reference design says whether the designs behave
differently on any row.

Run it as `ADJUDGE_DATA=... python benchmarks/testbench_synthesis.py`; `--help` lists the flags.
Not covered: benches that a model writes; what those are worth depends on the model.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from adjudge.data_pipelines.tasks.bench_designs import design_mutants, read_design
from adjudge.data_pipelines.tasks.config import TestbenchesConfig
from adjudge.data_pipelines.tasks.testbenches import as_response, make_testbenches
from adjudge.io.jobs.maker import DroppedError
from adjudge.protocol import Sample, Score
from adjudge.scoring import registry
from adjudge.scoring.api import score_batch


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure.

    Attributes:
        effort: clock cycles of the first bench.
        rounds: most rounds.
        coverage: share of lines to reach; 0 leaves the measurement out, which takes 5 to 10 s a round.
        mutants: mutants of each VerilogEval reference that both benches judge.
        limit: only so many designs of each set; 0 for all.
    """

    effort: int = 300
    rounds: int = 3
    coverage: float = 0.0
    mutants: int = 8
    limit: int = 0


def rows(name: str, limit: int = 0) -> list[dict[str, Any]]:
    data = os.environ.get("ADJUDGE_DATA")
    if not data:
        sys.exit("ADJUDGE_DATA is not set: point it to the folder of corpora that holds verilog")
    with gzip.open(Path(data) / "verilog" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file][: limit or None]


def made(designs: Iterable[dict[str, Any]], options: Options, console: Console, called: str) -> dict[str, Any]:
    """Return the made rows by id, and print what the job said."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "designs.jsonl"), Path(folder, "benches.jsonl")
        source.write_text("".join(json.dumps(row) + "\n" for row in designs), encoding="utf-8")
        began = time.monotonic()
        config = TestbenchesConfig(
            input=str(source),
            output=str(output),
            effort=options.effort,
            rounds=options.rounds,
            coverage=options.coverage,
            in_flight=2,
        )
        report = make_testbenches(config)
        found = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    killed, mutants = (sum(row[key] for row in found) for key in ("killed", "mutants"))
    reached = [row["coverage"] for row in found if row["coverage"] is not None]
    table = Table(title=f"{called}: made in {time.monotonic() - began:.0f} s")
    for column in ("designs", "benches", "dropped", "mutants killed", "line coverage"):
        table.add_column(column)
    dropped = ", ".join(f"{name} {count}" for name, count in report.dropped.items())
    shown = f"{sum(reached) / len(reached):.1%} of {len(reached)}" if reached else "not measured"
    table.add_row(str(report.rows), str(report.made), dropped, f"{killed} of {mutants}", shown)
    console.print(table)
    return {row["id"]: row for row in found}


def verdicts(reference: dict[str, Any], responses: Sequence[str], **options: Any) -> list[Score]:
    scorer = registry.load({"verilog": {"reasoning": "keep", **options}})
    return score_batch([Sample(prompt="", response=text, reference=reference) for text in responses], scorer)


def said(score: Score) -> str:
    if score.value is None:
        return "no verdict"
    return "pass" if score.value == 1.0 else "fail"


def verilog_eval(options: Options, console: Console) -> None:
    problems = rows("verilog_eval_v2", options.limit)
    designs = [{"id": row["problem"], "reference": row["reference"], "top": "TopModule"} for row in problems]
    benches = made(designs, options, console, "VerilogEval")
    pairs: Counter[tuple[str, str]] = Counter()
    behave: Counter[tuple[str, str, str]] = Counter()
    for row in problems:
        bench = benches.get(row["problem"])
        if bench is None:
            continue
        design = read_design(row["reference"], "TopModule")
        mutants = [design.under_top(text) for text in design_mutants(row["reference"], options.mutants, "benchmark")]
        answers = [as_response(text) for text in mutants]
        given = {**design.reference(row["testbench"])}
        both = list(zip(verdicts(given, answers), verdicts(bench["reference"], answers), answers, strict=True))
        for theirs, ours, answer in both:
            pair = (said(theirs), said(ours))
            pairs[pair] += 1
            if len(set(pair)) > 1:
                (score,) = verdicts(design.reference(), [answer], check="differential", effort=20_000)
                behave[(*pair, "same" if score.value == 1.0 else score.reason)] += 1
    show(console, "VerilogEval: mutants", "own bench", pairs, behave)


def rtllm(options: Options, console: Console) -> None:
    designs = {row["design"]: row for row in rows("rtllm_designs", options.limit)}
    candidates = [row for row in rows("rtllm_candidates") if row["design"] in designs and row["status"] != "compile"]
    asked = [
        {"id": name, "reference": row["reference"], "top": name, "files": row["files"]} for name, row in designs.items()
    ]
    benches = made([{**row, "files": as_files(row["files"])} for row in asked], options, console, "RTLLM")
    pairs: Counter[tuple[str, str]] = Counter()
    behave: Counter[tuple[str, str, str]] = Counter()
    for row in candidates:
        bench = benches.get(row["design"])
        label = "pass" if row["status"] == "pass" else "fail"
        if bench is None:
            pairs[label, "no bench"] += 1
            continue
        (ours,) = verdicts(bench["reference"], [row["source"]])
        pair = (label, said(ours))
        pairs[pair] += 1
        if len(set(pair)) > 1:
            try:
                design = read_design(designs[row["design"]]["reference"], row["design"])
                (score,) = verdicts(design.reference(), [row["source"]], check="differential", effort=20_000)
                behave[(*pair, "same" if score.value == 1.0 else score.reason)] += 1
            except DroppedError as error:
                behave[(*pair, error.reason)] += 1
            console.print(f"  {row['design']}: labelled {label}, our bench says {said(ours)} {ours.evidence}")
    show(console, "RTLLM: candidates that compile", "label", pairs, behave)


def as_files(value: Any) -> dict[str, str]:
    return dict(json.loads(value) if isinstance(value, str) else value)


def show(
    console: Console, title: str, peer: str, pairs: Counter[tuple[str, str]], behave: Counter[tuple[str, str, str]]
) -> None:
    table = Table(title=title)
    for column in (peer, "made bench", "designs", "beside the reference, 20,000 rows"):
        table.add_column(column)
    for (theirs, ours), count in sorted(pairs.items()):
        longer = ", ".join(f"{name} {number}" for (*pair, name), number in behave.items() if pair == [theirs, ours])
        table.add_row(theirs, ours, str(count), longer)
    console.print(table)
    judged = [(pair, count) for pair, count in pairs.items() if set(pair) <= {"pass", "fail"}]
    agreed = sum(count for pair, count in judged if len(set(pair)) == 1)
    console.print(f"{title}: the verdicts agree on {agreed} of {sum(count for _, count in judged)}")


def main(options: Options) -> None:
    console = Console(width=130)
    verilog_eval(options, console)
    rtllm(options, console)


if __name__ == "__main__":
    main(tyro.cli(Options))
