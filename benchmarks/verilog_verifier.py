"""Speed of the Verilog verifier: milliseconds for one sample, and samples per second in the pool.

The designs are the references of VerilogEval v2, answered with themselves, and the labelled candidates of RTLLM v2.
Beside them stands the plain way: one `iverilog` and one `vvp` of the design in its bench, as the published harnesses
run it, in a temporary folder and without isolation.  References are kept ready, as in a training run, so each is used
once before the clock starts.

Run it as `ADJUDGE_DATA=... python -m benchmarks.verilog_verifier`; `--help` lists the flags.
Not covered: accuracy (tests/verifiers/verilog), and designs whose own bench takes seconds (they are left out by name).
"""

from __future__ import annotations

import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from benchmarks.corpora import rows
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Sample
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.verilog.verifier import VerilogVerifier

# Their benches run for seconds; the last one does not compile under Icarus 11.
SLOW = set(
    "Prob144_conwaylife Prob082_lfsr32 Prob124_rule110 Prob108_rule90 Prob068_countbcd "
    "Prob156_review2015_fancytimer".split()
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to time.

    Attributes:
        designs: designs of VerilogEval, at most; a worker keeps 64 references, and more than that in turn would each be
            compiled anew.
        rounds: timed rounds over them.
        workers: worker processes of the pool.
        proofs: also time proofs by SAT.
    """

    designs: int = 60
    rounds: int = 3
    workers: int = 2
    proofs: bool = True


def verilog_eval(limit: int, bench: bool) -> list[Sample]:
    found = []
    for row in rows("verilog", "verilog_eval_v2.jsonl.gz"):
        if row["problem"] not in SLOW:
            reference = {"reference": row["reference"], "top": "TopModule"}
            if bench:
                reference["testbench"] = row["testbench"]
            response = row["reference"].replace("RefModule", "TopModule")
            found.append(Sample(prompt="", response=response, reference=reference, id=row["problem"]))
    return found[:limit]


def timed(work: Callable[[Sample], object], samples: Sequence[Sample], rounds: int) -> list[float]:
    for sample in samples:
        work(sample)
    times = []
    for _ in range(rounds):
        for sample in samples:
            started = time.perf_counter()
            work(sample)
            times.append(time.perf_counter() - started)
    return times


def plain(sample: Sample) -> bool:
    """Compile and run a design in its bench, and read what was printed, as the published harness does."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (
            ("cand.sv", str(sample.response)),
            ("test.sv", sample.reference["testbench"]),
            ("ref.sv", sample.reference["reference"]),
        ):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        compiler = ["iverilog", "-Wall", "-Winfloop", "-Wno-timescale", "-g2012", "-s", "tb", "-o", "a"]
        if subprocess.run([*compiler, "cand.sv", "test.sv", "ref.sv"], cwd=folder, capture_output=True).returncode:
            return False
        try:
            done = subprocess.run(["vvp", "-n", "a"], cwd=folder, capture_output=True, timeout=30)
        except subprocess.TimeoutExpired:
            return False
    return re.search(rb"^Mismatches: 0 in \d+ samples$", done.stdout, re.MULTILINE) is not None


async def rate(verifier: VerilogVerifier, samples: Sequence[Sample], workers: int) -> float:
    with Pool(workers=workers) as pool:
        scorer = VerifierScorer(verifier, pool)
        await scorer.score(samples)
        started = time.perf_counter()
        scores = await scorer.score([*samples] * 3)
        seconds = time.perf_counter() - started
    wrong = [score for score in scores if score.value != 1.0]
    if wrong:
        sys.exit(f"{len(wrong)} references did not pass: {wrong[0]}")
    return len(scores) / seconds


def main(options: Options) -> None:
    console = Console(width=110)
    table = Table(title="one sample in this process, milliseconds; samples per second in the pool")
    for column in ("what", "least", "p50", "p99", f"{options.workers} workers, 1/s"):
        table.add_column(column, justify="left" if column == "what" else "right")
    in_bench, apart = verilog_eval(options.designs, True), verilog_eval(options.designs, False)
    cases: list[tuple[str, VerilogVerifier | None, list[Sample]]] = [
        ("plain iverilog and vvp, not isolated", None, in_bench),
        ("bench, two runs", VerilogVerifier(), in_bench),
        ("design beside the reference", VerilogVerifier(check="differential"), apart),
    ]
    if options.proofs:
        cases.append(("the same and a proof", VerilogVerifier(formal="refute", seconds=5.0), apart))
    for what, verifier, samples in cases:
        times = sorted(timed(plain if verifier is None else verifier.verify, samples, options.rounds))
        per_second = "" if verifier is None else f"{asyncio.run(rate(verifier, samples, options.workers)):.1f}"
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        shown = [f"{seconds * 1e3:.0f}" for seconds in (times[0], statistics.median(times), p99)]
        table.add_row(what, *shown, per_second)
    console.print(table)
    console.print(
        f"{len(in_bench)} designs of VerilogEval v2, {options.rounds} rounds; slow ones left out: {len(SLOW)}"
    )


if __name__ == "__main__":
    main(tyro.cli(Options))
