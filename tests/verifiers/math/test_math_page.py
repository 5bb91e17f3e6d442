"""Every example in the tables of docs/math.md is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.verifiers.math.extraction import extract
from adjudge.verifiers.math.verifier import MathVerifier

PAGE = (Path(__file__).parents[3] / "docs" / "math.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table that starts with a header line; code spans lose their backticks."""
    lines = PAGE.partition(f"\n{header}\n")[2].splitlines()
    table = lines[1 : next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
    return [[cell.replace(r"\|", "|") for cell in row] for row in cells]


def bare(cell: str) -> str:
    return cell.strip("`")


def value_of(cell: str) -> float | None:
    return None if cell == "none" else float(cell)


def judge(gold: str, response: str, options: dict[str, Any] | None = None) -> Score:
    return MathVerifier(**(options or {})).verify(Sample(prompt="?", response=response, reference=gold))


MARKERS = rows("| response | answer | marker |")
EQUAL = rows("| reference | accepted | refused |")
OPTIONS = rows("| reference | answer | by default | with the option | then |")
VERDICTS = rows("| reference | response | value | reason | why |")
NOT_ACCEPTED = rows("| reference | not accepted | why |")


def test_the_tables_are_found() -> None:
    tables = (MARKERS, EQUAL, OPTIONS, VERDICTS, NOT_ACCEPTED)
    assert [len(table) >= least for table, least in zip(tables, (12, 20, 10, 8, 8), strict=True)] == [True] * 5


@pytest.mark.parametrize("row", MARKERS, ids=lambda row: row[0])
def test_markers(row: list[str]) -> None:
    found = extract(bare(row[0]))
    assert (("", "") if found is None else (found.text, found.marker)) == (bare(row[1]), bare(row[2]))


@pytest.mark.parametrize("row", EQUAL, ids=lambda row: row[0])
def test_equal(row: list[str]) -> None:
    gold, accepted, refused = (re.findall(r"`([^`]+)`", cell) for cell in row)
    assert accepted
    assert refused
    for answer in accepted:
        assert judge(gold[0], rf"\boxed{{{answer}}}").value == 1.0, answer
    for answer in refused:
        assert judge(gold[0], rf"\boxed{{{answer}}}").value == 0.0, answer


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: f"{row[1]} {row[3]}")
def test_options(row: list[str]) -> None:
    name, _, value = bare(row[3]).partition("=")
    response = rf"\boxed{{{bare(row[1])}}}"
    assert judge(bare(row[0]), response).value == value_of(row[2])
    assert judge(bare(row[0]), response, {name: ast.literal_eval(value)}).value == value_of(row[4])


@pytest.mark.parametrize("row", VERDICTS, ids=lambda row: f"{row[0]} {row[1]}")
def test_verdicts(row: list[str]) -> None:
    score = judge(bare(row[0]), bare(row[1]))
    assert score.value == value_of(row[2])
    assert score.reason == bare(row[3]) or not row[3]


@pytest.mark.parametrize("row", NOT_ACCEPTED, ids=lambda row: row[0])
def test_not_accepted(row: list[str]) -> None:
    answers = re.findall(r"`([^`]+)`", row[1])
    assert answers
    assert [judge(bare(row[0]), rf"\boxed{{{answer}}}").value for answer in answers] == [0.0] * len(answers)
