"""Public benchmarks: their own solutions pass, and labelled completions get their labels."""

from __future__ import annotations

import ast
import asyncio
import gzip
import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.corpus_parts import in_parts, part

from adjudge.protocol import Sample, Score
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.code.verifier import CodeVerifier

DATA = Path(os.environ.get("ADJUDGE_DATA", "")) / "code"
pytestmark = pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")

LIBRARIES = ("numpy", "pandas", "sklearn", "scipy", "matplotlib", "torch", "tensorflow")
"""The labels come from a run without any of these, so a program that imports one was labelled a failure."""


def rows(name: str) -> Iterator[dict[str, Any]]:
    opened = gzip.open if name.endswith(".gz") else open
    with opened(DATA / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def humaneval(row: dict[str, Any], program: str, name: str) -> Sample:
    reference = {"tests": row["test"], "style": "humaneval", "entry_point": row["entry_point"]}
    return Sample(prompt=row["prompt"], response=f"```python\n{program}\n```", reference=reference, id=name)


def mbpp(row: dict[str, Any]) -> Sample:
    """The statements of the test function are the tests; the docstring's indentation does not fit the solutions'."""
    head = row["prompt"].partition("    '''")[0]
    body = textwrap.dedent(row["test"].partition("\n")[2])
    reference: dict[str, Any] = {"tests": body, "style": "asserts"}
    called = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    if row["entry_point"] in called:
        reference["entry_point"] = row["entry_point"]
    program = head + row["canonical_solution"]
    return Sample(prompt="", response=f"```python\n{program}\n```", reference=reference, id=row["task_id"])


def scores(samples: list[Sample]) -> list[Score]:
    with Pool(workers=2) as pool:
        return asyncio.run(VerifierScorer(CodeVerifier(seconds=10.0), pool).score(samples))


@in_parts(4)
def test_humaneval_solutions_pass(every: int) -> None:
    samples = [
        humaneval(row, row["prompt"] + row["canonical_solution"], row["task_id"])
        for row in part(rows("HumanEval.jsonl.gz"), every)
    ]  # fmt: skip
    found = scores(samples)
    assert len(found) == 164 / every
    assert [(sample.id, score) for sample, score in zip(samples, found, strict=True) if score.value != 1.0] == []


@in_parts(4)
def test_humaneval_rows_as_they_are_published_pass(every: int) -> None:
    samples = [
        Sample(
            prompt=row["prompt"],
            response=row["canonical_solution"],
            reference={"test": row["test"], "entry_point": row["entry_point"]},
            id=row["task_id"],
        )
        for row in part(rows("HumanEval.jsonl.gz"), every)
    ]
    assert [sample.id for sample, score in zip(samples, scores(samples), strict=True) if score.value != 1.0] == []


@in_parts(4)
def test_mbpp_solutions_pass(every: int) -> None:
    samples = part(map(mbpp, rows("mbpp_sanitized.jsonl")), every, lambda sample: "entry_point" in sample.reference)
    found = scores(samples)
    assert len(found) == (427 if every == 1 else 107)
    assert [(sample.id, score) for sample, score in zip(samples, found, strict=True) if score.value != 1.0] == []


@in_parts(20)
def test_labelled_completions_get_their_labels(every: int) -> None:
    problems = {row["task_id"]: row for row in rows("HumanEval.jsonl.gz")}
    decided = [row for row in rows("humaneval_candidates.jsonl.gz") if row["label"] != "timeout"]
    labelled = part(decided, every, lambda row: row["label"])
    samples = [
        humaneval(problems[row["task_id"]], row["program"], f"{row['task_id']}#{row['sample']}") for row in labelled
    ]
    differing = {
        sample.id: row["program"]
        for sample, row, score in zip(samples, labelled, scores(samples), strict=True)
        if (score.value == 1.0) != (row["label"] == "pass")
    }
    assert len(samples) >= 160
    assert len(differing) <= 0.002 * len(samples) + 1, differing
    for name, program in differing.items():
        assert any(f"import {library}" in program for library in LIBRARIES), name


def test_fixture_solutions_pass() -> None:
    samples = [
        Sample(
            prompt="",
            response=f"```python\n{row['canonical_solution']}\n```",
            reference={"tests": row["test_list"]},
            id=row["id"],
        )
        for row in rows("fixtures/mbpp.jsonl")
    ]
    samples += [
        Sample(
            prompt="",
            response=f"```python\n{row['code']}\n```",
            reference={"tests": [f"assert f({row['input']}) == {row['output']}"], "entry_point": "f"},
            id=row["id"],
        )
        for row in rows("fixtures/cruxeval.jsonl")
    ]
    found = scores(samples)
    assert len(found) == 40
    assert [(sample.id, score) for sample, score in zip(samples, found, strict=True) if score.value != 1.0] == []
