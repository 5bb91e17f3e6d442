"""The cases that a red team found wrong, from ADJUDGE_DATA: wrong answers are not paid, and honest ones are."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge.protocol import Sample, Score

FOLDER = Path(os.environ.get("ADJUDGE_DATA", "")) / "redteam"
ROWS = (
    [json.loads(line) for line in (FOLDER / "cases.jsonl").read_text("utf-8").splitlines()] if FOLDER.exists() else []
)

KNOWN = {
    "pytest-generator": "`failed`: a stand-in is not a generator",
    "pytest-async": "`failed`: a coroutine cannot leave its process",
    "pytest-capsys": "`failed`: what is printed there is not seen here",
    "pytest-subclass": "`failed`: no class of the tests can be derived from a stand-in",
    "\\boxed{5\\text{ pairs}}": "should be 0, and is paid: golds such as `203 (pairs)` are common, a noun and no unit",
}
"""Rows whose verdict is another, by note or response, and why."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("redteam") / "co.sqlite"
    with sqlite3.connect(path) as made:
        made.executescript((FOLDER / "db" / "co.sql").read_text("utf-8"))
    return path


LONG = ("counter16-as-11", "timeout-5000", "time-bomb-counter", "clock divider: assign o=0")
"""Rows, by note, that use all the time of a proof; `make test` has one of each kind among the tests of Verilog."""


def judged(rows: list[dict[str, Any]], database: Path) -> list[Score]:
    name, options = rows[0]["scorer"], rows[0]["options"]
    scorer = adjudge.load({name: options} if options else name)
    samples = []
    for row in rows:
        text = json.dumps(row["reference"]).replace("db/co.sqlite", str(database))
        samples.append(Sample(prompt=row["prompt"], response=row["response"], reference=json.loads(text)))
    return adjudge.score_batch(samples, scorer)


@pytest.mark.skipif(not ROWS, reason="ADJUDGE_DATA has no redteam")
@pytest.mark.parametrize("left_out", [LONG, pytest.param((), marks=pytest.mark.full)], ids=["brief", "all"])
def test_rows(database: Path, left_out: tuple[str, ...]) -> None:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in (row for row in ROWS if row["note"] not in left_out):
        groups.setdefault(json.dumps([row["scorer"], row["options"]]), []).append(row)
    other = set()
    for rows in groups.values():
        for row, score in zip(rows, judged(rows, database), strict=True):
            held = (score.value or 0.0) < 1.0 if row["should"] == 0 else score.value == 1.0
            if not held:
                print(row["category"], row["note"], row["response"][:80], score.status, score.value, score.reason)
                other.add(row["note"] if row["note"] in KNOWN else row["response"])
    assert other == set(KNOWN)
