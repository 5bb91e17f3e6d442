"""What an input may be is the same for every command: files of every kind, patterns, folders, several with commas."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Ran

ROWS: list[dict[str, Any]] = [
    {
        "id": f"r{n}",
        "prompt": f"What is {n} + {n}? Think about the number {n}.",
        "response": f"It is {2 * n}." if n % 3 else "It is 1000.",
        "reference": f"{2 * n}",
        "label": int(n % 3 != 0),
        "chosen": f"The sum is {2 * n}.",
        "rejected": f"It must be {2 * n + 1}.",
        "score_chosen": n % 5,
        "score_rejected": n % 4,
    }
    for n in range(1, 13)
]
ROWS.append({**ROWS[0], "id": "copy"})

FORMS = {
    "pattern": "jsonl/*.jsonl",
    "list": "jsonl/a.jsonl,jsonl/b.jsonl",
    "folder": "jsonl",
    "gz": "gz/a.jsonl.gz, gz/b.jsonl.gz",
    "mixed": "mixed/a.csv,mixed/b.parquet",
}
COMMANDS = {
    "eval pairs": ("eval", "pairs", "IN", "--scorer", "stored", "--resamples", "0", "--json"),
    "eval labels": ("eval", "labels", "IN", "--scorer", "math", "--resamples", "0", "--json"),
    "eval ratings": ("eval", "ratings", "IN", "--scorer", "stored", "--rating-column", "label", "--score-column",
                     "score_chosen", "--low", "0", "--high", "1", "--resamples", "0", "--json"),
    "eval probes": ("eval", "probes", "IN", "--scorer", "exact", "--resamples", "0", "--json"),
    "eval calibration": ("eval", "calibration", "IN", "--score-column", "label", "--gold-column", "label",
                         "--resamples", "0", "--json"),
    "data dedup": ("data", "dedup", "IN", "out.jsonl", "--json"),
    "data filter": ("data", "filter", "IN", "out.jsonl", "--rule", "length", "--max-words", "8", "--json"),
    "data leaks": ("data", "leaks", "IN", "all.jsonl", "--json"),
}  # fmt: skip
FACTS = ("source", "title", "seconds", "options", "train", "cost", "fingerprint")
"""What names the input, and how long it took."""


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    import pyarrow.parquet

    monkeypatch.chdir(tmp_path)
    for folder in ("jsonl", "gz", "mixed"):
        Path(folder).mkdir()
    for name, rows in (("a", ROWS[:6]), ("b", ROWS[6:])):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        Path(f"jsonl/{name}.jsonl").write_text(lines, encoding="utf-8")
        Path(f"gz/{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    with Path("mixed/a.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(ROWS[0]))
        table.writeheader()
        table.writerows(ROWS[:6])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS[6:]), "mixed/b.parquet")
    Path("all.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_form_of_an_input_gives_what_one_file_gives(adjudge: Callable[..., Ran], command: str) -> None:
    def found(given: str) -> dict[str, Any]:
        Path("out.jsonl").unlink(missing_ok=True)
        ran = adjudge(*(given if word == "IN" else word for word in COMMANDS[command]))
        assert ran.code in (0, 1), ran.err
        written = Path("out.jsonl").read_text(encoding="utf-8") if Path("out.jsonl").exists() else ""
        kept = [json.loads(line)["id"] for line in written.splitlines()]
        return {name: said for name, said in ran.json.items() if name not in FACTS} | {"kept": kept}

    whole = found("all.jsonl")
    for form in FORMS.values():
        assert found(form) == whole, form


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_that_is_not_there_is_one_sentence(adjudge: Callable[..., Ran], command: str) -> None:
    for given, says in (("none/*.jsonl", "no file fits the pattern"), ("jsonl/a.jsonl,gone.jsonl", "gone.jsonl")):
        ran = adjudge(*(given if word == "IN" else word for word in COMMANDS[command]))
        assert (ran.code, says in ran.err) == (2, True), ran.err
