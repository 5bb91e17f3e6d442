"""From raw candidates to reward models: label, pair, train, and measure on problems that were not trained on.

Each source goes through the calls of `adjudge label` and `adjudge data pairs`: solutions of GSM8K by four models
labelled by `math`, HumanEval programs labelled by `code`, RTLLM designs labelled by `verilog`.  The problems are dealt
to five folds, and each fold's pairs are decided by models fitted to the others; beside them stand the rules that need
no training.  Intervals are of 95 %, from resamples of the problems.  "clear" means that an interval lies above 1/2 and
above those of all rules.

    ADJUDGE_DATA=... python -m benchmarks.data_to_models

`--transformer` trains a small transformer from nothing too, on 70 % of the problems: minutes for each source.

Not covered: process models (`benchmarks.step_models`).
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from benchmarks.preference_baselines import beats
from benchmarks.preference_sets import GSM8K_MODELS, rows
from rich.console import Console
from rich.table import Table

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.pairs.config import LeaksConfig, PairsConfig
from adjudge.data_pipelines.pairs.leaks import find_leaks
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.reward_models.baselines.baseline_table import BaselineRow, baseline_table
from adjudge.reward_models.baselines.features import FeatureOptions
from adjudge.reward_models.training.report import TrainingReport
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.config_file import config_of
from adjudge.training.data_files import read_preferences
from adjudge.training.examples import Pair

MODELS: Mapping[str, FeatureOptions] = {
    "n-gram model": FeatureOptions(),
    "the same, length removed": FeatureOptions(length="removed"),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure.

    Attributes:
        sets: names of the sources; all when empty.
        folds: how many parts the problems are dealt to.
        workers: processes that label.
        transformer: also train a small transformer on each source.
        epochs: of that training.
        seed: of folds, splits, draws and intervals.
    """

    sets: tuple[str, ...] = ()
    folds: int = 5
    workers: int = 1
    transformer: bool = False
    epochs: int = 3
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Source:
    """Candidates, and how they become pairs.

    Attributes:
        rows: what `adjudge label` reads: prompt, response, reference, group, and a known solution if there is one.
        scorer: which labels them.
        rule: which makes the pairs.
    """

    rows: Callable[[], Iterable[Mapping[str, Any]]]
    scorer: str
    rule: str


def gsm8k() -> Iterable[Mapping[str, Any]]:
    """Return four solutions of each of 660 problems."""
    for number, row in enumerate(rows("gsm8k/model_solutions.jsonl")):
        for model in GSM8K_MODELS:
            yield {
                "id": f"{number}/{model}",
                "group": f"gsm8k/{number}",
                "prompt": row["question"],
                "response": row[model]["solution"],
                "reference": row["ground_truth"],
            }


def code() -> Iterable[Mapping[str, Any]]:
    """Return twenty programs of one model for each problem of HumanEval."""
    problems = {row["task_id"]: row for row in rows("code/HumanEval.jsonl.gz")}
    for row in sorted(rows("code/humaneval_candidates.jsonl.gz"), key=lambda row: row["task_id"]):
        problem = problems[row["task_id"]]
        yield {
            "id": f"{row['task_id']}/{row['sample']}",
            "group": row["task_id"],
            "prompt": problem["prompt"],
            "response": row["program"],
            "reference": {"tests": problem["test"], "style": "humaneval", "entry_point": problem["entry_point"]},
        }


def verilog() -> Iterable[Mapping[str, Any]]:
    """Return five designs of one model for each problem of RTLLM that it was asked."""
    designs = {row["design"]: row for row in rows("verilog/rtllm_designs.jsonl.gz")}
    for row in sorted(rows("verilog/rtllm_candidates.jsonl.gz"), key=lambda row: row["design"]):
        design = designs[row["design"]]
        yield {
            "id": f"{row['design']}/{row['trial']}",
            "group": row["design"],
            "prompt": design["description"],
            "response": row["source"],
            "reference": {name: design[name] for name in ("reference", "testbench", "files")},
            "solution": design["reference"],
        }


_TAKEN = "{pass_fail: {solution: solution}}"
SETS: Mapping[str, Source] = {
    "gsm8k": Source(rows=gsm8k, scorer="math", rule="pass_fail"),
    "code": Source(rows=code, scorer="code", rule="pass_fail"),
    "verilog": Source(rows=verilog, scorer="{verilog: {seconds: 5}}", rule="execution_order"),
    "verilog with solutions": Source(rows=verilog, scorer="{verilog: {seconds: 5}}", rule=_TAKEN),
}


def built(name: str, folder: Path, options: Options) -> Mapping[str, Path]:
    """Label a source and make its pairs; return the files of all pairs, and of the two sides of the split."""
    source, home = SETS[name], folder / name.replace(" ", "_")
    home.mkdir()
    raw, labelled = home / "rows.jsonl", home / "labelled.jsonl"
    raw.write_text("".join(f"{json.dumps(row)}\n" for row in source.rows()), encoding="utf-8")
    run_label(
        LabelConfig(
            input=str(raw), output=str(labelled), scorer=source.scorer, workers=options.workers, keep_columns=True
        )
    )
    files = {part: home / f"{part}.jsonl" for part in ("all", "train", "test")}
    for part, file in files.items():
        config: Any = {"part": part, "test_share": 0.3, "max_pairs": 16, "seed": options.seed}
        build_pairs(PairsConfig(input=str(labelled), output=str(file), rule=source.rule, **config))
    return files


def trained(files: Mapping[str, Path], options: Options) -> TrainingReport:
    """Train a small transformer from nothing on one side of the split, and measure it on the other."""
    config = {
        "model": {"from_scratch": "tiny"},
        "data": {"path": str(files["train"]), "held_out_path": str(files["test"])},
        "output": str(files["train"].with_name("model")),
        "max_length": 512,
        "seed": options.seed,
        "schedule": {"epochs": options.epochs, "learning_rate": 1e-3, "batch_size": 16, "warmup": 0.1},
    }
    return train_scalar(config_of(ScalarTraining, config))


def pairs_in(file: Path) -> list[Pair]:
    """Return the pairs of a file."""
    return [example for example in read_preferences([str(file)]).examples if isinstance(example, Pair)]


def shown(name: str, found: Sequence[BaselineRow], seconds: float) -> Table:
    """Return the table of one source."""
    first = found[0].won
    table = Table(title=f"{name}: {first.contests:,} pairs of {first.groups:,} problems, {seconds:.0f} s")
    for column in ("", "won [95 %]", "above longer wins", "clear"):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    rules = [row for row in found if row.name not in MODELS]
    table.add_row("chance", "50.0", "", "")
    for row in found:
        clear = ("yes" if beats(row, rules) else "no") if row.name in MODELS else ""
        table.add_row(row.name, str(row.won), str(row.above), clear)
    return table


def main(options: Options) -> None:
    unknown = set(options.sets) - set(SETS)
    if unknown:
        sys.exit(f"no source is called {sorted(unknown)[0]!r}; the sources are {', '.join(SETS)}")
    logging.disable(logging.WARNING)
    console = Console(width=120)
    everything: list[Pair] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets or SETS:
            begun = time.perf_counter()
            files = built(name, Path(folder), options)
            leaks = find_leaks(LeaksConfig(train=str(files["train"]), test=str(files["test"])))
            pairs = pairs_in(files["all"])
            everything += pairs if name in ("gsm8k", "code", "verilog") else []
            found = baseline_table(pairs, models=MODELS, folds=options.folds, seed=options.seed)
            console.print(shown(name, found, time.perf_counter() - begun))
            console.print("\n".join(leaks.lines()), highlight=False)
            if options.transformer:
                report = trained(files, options)
                held = f"{report.data['held_out']} held-out pairs"
                console.print(f"transformer from nothing, {report.seconds:.0f} s: {report.metrics['accuracy']}, {held}")
                console.print(f"  on the same pairs: {', '.join(f'{k} {v}' for k, v in report.baselines.items())}")
        if not options.sets:
            begun = time.perf_counter()
            found = baseline_table(everything, models=MODELS, folds=options.folds, seed=options.seed)
            console.print(shown("gsm8k, code and verilog together", found, time.perf_counter() - begun))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
