from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adjudge.cli import exits

Adjudge = Callable[..., Any]

ROWS = [
    {"id": "a", "response": "Paris", "reference": "Paris"},
    {"id": "b", "response": "It is Oslo", "reference": "Oslo"},
    {"id": "c", "response": "Rome", "reference": "Bern"},
    {"id": "d", "response": "\x1b[31mBern or Oslo", "reference": "Bern"},
]


@pytest.fixture
def rows(tmp_path: Path) -> str:
    return write(tmp_path / "rows.jsonl", ROWS)


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_flips_are_listed_with_both_evidences(adjudge: Adjudge, toys: str, rows: str) -> None:
    ran = adjudge("compare", f"{toys}:Toy", f"{toys}:Lenient", rows, "--json")
    assert ran.code == exits.FOUND
    data = ran.json
    assert (data["pairs"], data["agree"], data["flipped"]) == (4, 2, 2)
    assert [flip["id"] for flip in data["flips"]] == ["b", "d"]
    first = data["flips"][0]
    assert (first["a"]["value"], first["b"]["value"]) == (0.0, 1.0)
    assert first["a"]["evidence"] == first["b"]["evidence"] == {"length": 10}
    assert first["sample"]["response"] == "It is Oslo"
    assert {"a": "0", "b": "1", "flip": True, "count": 2} in data["verdicts"]


def test_the_table_shows_what_each_saw(adjudge: Adjudge, toys: str, rows: str) -> None:
    ran = adjudge("compare", f"{toys}:Toy", f"{toys}:Lenient", rows)
    assert ran.code == exits.FOUND
    assert "agree on 2 of 4 samples (50.00%); 2 flip." in ran.out
    assert "0 [length 10]" in ran.out
    assert "1 [length 10]" in ran.out
    assert "\x1b" not in ran.out


def test_scorers_that_agree(adjudge: Adjudge, toys: str, rows: str) -> None:
    ran = adjudge("compare", f"{toys}:Toy", f"{toys}:Toy", rows)
    assert ran.code == exits.FINE
    assert "agree on 4 of 4" in ran.out


def test_show_counts_what_it_hides(adjudge: Adjudge, toys: str, rows: str) -> None:
    ran = adjudge("compare", f"{toys}:Toy", f"{toys}:Lenient", rows, "--show", "1")
    assert "and 1 more" in ran.out


def test_rows_without_a_sample_stop_nothing(adjudge: Adjudge, toys: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*ROWS, {"id": "e", "response": None, "reference": "x"}])
    ran = adjudge("compare", f"{toys}:Toy", f"{toys}:Toy", path, "--json")
    assert ran.code == exits.FINE
    assert ran.json["pairs"] == 4
    assert [row["id"] for row in ran.json["unusable"]] == ["e"]
    assert "1 rows hold nothing to score" in adjudge("compare", f"{toys}:Toy", f"{toys}:Toy", path).out


def test_more_rows_than_one_chunk(adjudge: Adjudge, toys: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [{"response": str(i % 3), "reference": "0"} for i in range(1300)])
    ran = adjudge("compare", f"{toys}:Toy", f"{toys}:Forgetful", path, "--json")
    assert ran.json["pairs"] == 1300
    assert ran.json["flipped"] == len(ran.json["flips"]) == 434


@pytest.fixture
def outputs(adjudge: Adjudge, toys: str, rows: str, tmp_path: Path) -> tuple[str, str]:
    names = []
    for scorer, suffix in (("Toy", ".jsonl"), ("Lenient", ".jsonl.gz")):
        out = str(tmp_path / f"{scorer}{suffix}")
        assert adjudge("label", rows, out, "--scorer", f"{toys}:{scorer}").code == exits.FINE
        names.append(out)
    return names[0], names[1]


def test_two_label_outputs(adjudge: Adjudge, outputs: tuple[str, str]) -> None:
    ran = adjudge("compare", *outputs, "--json")
    assert ran.code == exits.FOUND
    assert [flip["id"] for flip in ran.json["flips"]] == ["b", "d"]
    assert adjudge("compare", outputs[0], outputs[0]).code == exits.FINE


def test_a_parquet_output_reads_the_same(adjudge: Adjudge, toys: str, rows: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    names = [str(tmp_path / name) for name in ("one.parquet", "two.jsonl")]
    for name in names:
        assert adjudge("label", rows, name, "--scorer", f"{toys}:Lenient").code == exits.FINE
    ran = adjudge("compare", *names, "--json")
    assert (ran.code, ran.json["agree"]) == (exits.FINE, 4)


def test_outputs_of_other_inputs_are_a_mistake(
    adjudge: Adjudge, toys: str, outputs: tuple[str, str], tmp_path: Path
) -> None:
    path = write(tmp_path / "other.jsonl", ROWS[:3])
    short = str(tmp_path / "short.jsonl")
    assert adjudge("label", path, short, "--scorer", f"{toys}:Toy").code == exits.FINE
    ran = adjudge("compare", outputs[0], short)
    assert ran.code == exits.USER
    assert "ends after 3 scores" in ran.err
    path = write(tmp_path / "renamed.jsonl", [row | {"id": row["id"] * 2} for row in ROWS])
    renamed = str(tmp_path / "renamed_scores.jsonl")
    assert adjudge("label", path, renamed, "--scorer", f"{toys}:Toy").code == exits.FINE
    ran = adjudge("compare", outputs[0], renamed)
    assert ran.code == exits.USER
    assert "'a'" in ran.err
    assert "'aa'" in ran.err
    path = write(tmp_path / "said.jsonl", [*ROWS[:3], ROWS[3] | {"response": "Bern"}])
    said = str(tmp_path / "said_scores.jsonl")
    assert adjudge("label", path, said, "--scorer", f"{toys}:Toy").code == exits.FINE
    ran = adjudge("compare", outputs[0], said)
    assert ran.code == exits.USER
    assert "score 3, of sample 'd', is of another prompt or response" in ran.err


def test_what_is_no_label_output_is_told(adjudge: Adjudge, rows: str, outputs: tuple[str, str]) -> None:
    ran = adjudge("compare", "math", "exact")
    assert ran.code == exits.USER
    assert "adjudge compare A B FILE" in ran.err
    ran = adjudge("compare", outputs[0], "missing.jsonl")
    assert (ran.code, ran.err) == (exits.USER, "adjudge: there is no file or folder missing.jsonl; check the path\n")
    ran = adjudge("compare", outputs[0], rows)
    assert ran.code == exits.USER
    assert "not a score that `adjudge label` wrote" in ran.err


def test_tolerance(adjudge: Adjudge, toys: str, rows: str) -> None:
    assert adjudge("compare", f"{toys}:Toy", f"{toys}:Lenient", rows, "--tolerance", "1").code == exits.FINE
    assert adjudge("compare", f"{toys}:Toy", f"{toys}:Toy", rows, "--tolerance", "-1").code == exits.USER
