"""How good are tests that `adjudge data unit_tests` makes?  Measured on HumanEval and 3,280 labelled candidates.

For each task with enough different right candidates, tests are made of the examples in its prompt alone; HumanEval's
own tests are not used.  Half of the wrong candidates choose tests, the other half, the right candidates that took no
part, and the canonical solution are judged by them.

    ADJUDGE_DATA=... python benchmarks/unit_test_synthesis.py [--tasks 20] [--solutions 4] [--domain seen]

Not covered: tasks with fewer right candidates, and inputs by a model.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import adjudge
from adjudge.data_pipelines.tasks.config import Domain, UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_test_problems import distinct_programs
from adjudge.data_pipelines.tasks.unit_tests import make_unit_tests

DOMAINS: tuple[Domain, ...] = ("seen", "wide")


def tasks_of(folder: Path, solutions: int, most: int) -> dict[str, dict[str, Any]]:
    """Tasks by prompt, each with candidates that take part and others that are held out."""
    with gzip.open(folder / "code" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        tasks = {row["task_id"]: row for row in map(json.loads, file)}
    programs: dict[str, dict[bool, list[str]]] = defaultdict(lambda: {True: [], False: []})
    with gzip.open(folder / "code" / "humaneval_candidates.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            programs[row["task_id"]][row["label"] == "pass"].append(row["program"])
    found: dict[str, dict[str, Any]] = {}
    for name, mine in programs.items():
        right, wrong = distinct_programs(mine[True]), distinct_programs(mine[False])
        if len(right) < solutions or len(found) == most:
            continue
        task = tasks[name]
        found[task["prompt"]] = {
            "row": {
                "prompt": task["prompt"],
                "entry_point": task["entry_point"],
                "solutions": right[:solutions],
                "wrong": wrong[::2],
            },
            "held_out": {
                "canonical": [task["prompt"] + task["canonical_solution"]],
                "right": right[solutions:],
                "wrong": wrong[1::2],
            },
        }
    return found


def measured(tasks: dict[str, dict[str, Any]], domain: Domain, solutions: int, folder: Path) -> dict[str, Any]:
    """What became of the tasks, and how many held-out programs fail the tests."""
    given, output = folder / "in.jsonl", folder / f"{domain}.jsonl"
    given.write_text("".join(f"{json.dumps(task['row'])}\n" for task in tasks.values()), encoding="utf-8")
    began = time.perf_counter()
    report = make_unit_tests(
        UnitTestsConfig(
            input=str(given), output=str(output), wrong_column="wrong", domain=domain,
            solutions=solutions, agree=solutions - 1, passing=solutions - 1, in_flight=2,
        )
    )  # fmt: skip
    seconds = time.perf_counter() - began
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        for kind, programs in tasks[row["prompt"]]["held_out"].items():
            samples = [{"prompt": "", "response": one, "reference": row["reference"]} for one in programs]
            scores = adjudge.score_batch(samples, "code")
            counts[kind] += len(scores)
            counts[f"{kind} failing"] += sum(score.value == 0.0 for score in scores)
            if kind == "canonical" and scores[0].value != 1.0:
                print(f"  the canonical {row['entry_point']} fails: {scores[0].evidence.get('first_failure')}")
    return {
        "tasks": len(tasks),
        "kept": len(rows),
        "dropped": dict(report.dropped),
        "tests": sum(row["tests"] for row in rows),
        "seconds": round(seconds, 1),
        **{kind: f"{counts[f'{kind} failing']} of {counts[kind]} fail" for kind in ("canonical", "right", "wrong")},
    }


def main() -> None:
    """Print one line for each domain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--solutions", type=int, default=4)
    parser.add_argument("--domain", choices=DOMAINS)
    options = parser.parse_args()
    if "ADJUDGE_DATA" not in os.environ:
        parser.error("set ADJUDGE_DATA to the folder of corpora")
    tasks = tasks_of(Path(os.environ["ADJUDGE_DATA"]), options.solutions, options.tasks)
    with tempfile.TemporaryDirectory() as folder:
        for domain in [options.domain] if options.domain else DOMAINS:
            print(json.dumps({"domain": domain, **measured(tasks, domain, options.solutions, Path(folder))}))


if __name__ == "__main__":
    main()
