"""`adjudge data card` on the outputs of label jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.hygiene.row_files import write

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.io.cards.card_command import CardConfig, run_card


def labels(tmp_path: Path, name: str = "labels.jsonl") -> Path:
    rows: list[dict[str, Any]] = [{"response": str(n % 3), "reference": "1"} for n in range(9)]
    rows[4]["reference"] = None
    path = tmp_path / name
    run_label(LabelConfig(input=write(tmp_path / "tasks.jsonl", rows), output=str(path), scorer="exact", workers=1))
    return path


def test_counts_means_and_pass_rates_are_those_of_the_file(tmp_path: Path) -> None:
    path = labels(tmp_path)
    report = run_card(CardConfig(files=(str(path),), license="mit", source=(str(tmp_path / "tasks.jsonl"),)))
    (card,) = report.to_dict()["cards"]
    counted = {(row["status"], row["reason"]): row["count"] for row in card["counts"]}
    expected: dict[tuple[str, str], int] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        expected[row["status"], row["reason"]] = expected.get((row["status"], row["reason"]), 0) + 1
    assert counted == expected
    assert sum(counted.values()) == 9
    (scorer,) = card["scorers"]
    assert (scorer["scorer"], scorer["mean"], scorer["pass_rate"]["n"]) == ("exact", 2 / 8, 8)
    text = (tmp_path / "labels.jsonl.card.md").read_text()
    assert "license: mit" in text
    assert "| tasks.jsonl | unknown |" in text
    assert r"| 8 | 0.2500 | 0.250 \[0.071, 0.591\] |" in text
    assert not report.found


def test_parquet_and_several_scores_in_a_row_and_unreadable_rows(tmp_path: Path) -> None:
    parquet = labels(tmp_path, "labels.parquet")
    score = {"status": "scored", "value": 1, "reason": "", "provenance": {"scorer": "a", "fingerprint": "a:1"}}
    several = tmp_path / "several.jsonl"
    lines = [json.dumps({"scores": {"a": score, "b": {**score, "value": None, "status": "failed"}, "c": None}}), "no"]
    several.write_text("\n".join(lines) + "\n")
    report = run_card(CardConfig(files=(str(parquet), str(several))))
    one, other = report.cards
    assert sum(one.counts.values()) == 9
    assert other.counts == {("a", "a:1", "failed", ""): 1, ("a", "a:1", "scored", ""): 1}
    assert (other.rows, other.unreadable, other.means) == (1, 1, {("a", "a:1"): 1.0})
    assert report.found
    assert [line.split(":")[0] for line in report.lines()] == [str(parquet), str(several)]


def test_a_file_without_scores_gets_a_card_that_claims_none(tmp_path: Path) -> None:
    path = write(tmp_path / "plain.jsonl", [{"value": 1.0, "status": "scored"}])
    (card,) = run_card(CardConfig(files=(path,))).cards
    assert (card.rows, dict(card.counts)) == (1, {})
    assert "without scores" in (tmp_path / "plain.jsonl.card.md").read_text()


def test_a_card_is_not_replaced_unless_it_is_asked_for_and_no_card_is_written_then(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.jsonl", [{}]), write(tmp_path / "b.jsonl", [{}])
    (tmp_path / "b.jsonl.card.md").write_text("mine")
    with pytest.raises(ValueError, match="--overwrite"):
        run_card(CardConfig(files=(first, second)))
    assert not (tmp_path / "a.jsonl.card.md").exists()
    run_card(CardConfig(files=(first, second), overwrite=True))
    assert (tmp_path / "b.jsonl.card.md").read_text() != "mine"


def test_a_card_that_is_replaced_leaves_its_licence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{}])
    card = tmp_path / "a.jsonl.card.md"
    run_card(CardConfig(files=(path,), license="mit"))
    run_card(CardConfig(files=(path,), overwrite=True))
    assert "license: mit" in card.read_text()
    run_card(CardConfig(files=(path,), overwrite=True, license="cc0-1.0"))
    assert "license: cc0-1.0" in card.read_text()


def test_a_number_beside_another_status_than_scored_is_none(tmp_path: Path) -> None:
    told = [("scored", 1.0), ("failed", 0.0), ("abstained", 0.5), ("scored", 10**400)]
    maker = {"scorer": "a", "fingerprint": "a:1"}
    rows = [{"status": status, "value": value, "provenance": maker} for status, value in told]
    (card,) = run_card(CardConfig(files=(write(tmp_path / "a.jsonl", rows),))).cards
    assert (card.means, card.passes["a", "a:1"].n) == ({("a", "a:1"): 1.0}, 1)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no file is named"):
        CardConfig(files=())
    with pytest.raises(ValueError, match="no file or folder"):
        run_card(CardConfig(files=(str(tmp_path / "nowhere.jsonl"),)))
    with pytest.raises(ValueError, match="--max-row-mb"):
        CardConfig(files=("x",), max_row_mb=0)
