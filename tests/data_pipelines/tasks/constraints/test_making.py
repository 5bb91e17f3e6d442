"""From prompts to prompts with constraints."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adjudge.data_pipelines.tasks.config import LEVELS, PATTERNS, ConstraintsConfig
from adjudge.data_pipelines.tasks.constraints import drawn, make_constraints, phrase_of
from adjudge.io.jobs.report import JobReport
from adjudge.verifiers.instructions.composed import COMPOSED
from adjudge.verifiers.instructions.conflicts import conflicts
from adjudge.verifiers.instructions.constraint import Constraint, all_met

PROMPTS = [
    {"prompt": f"Explain how {thing} keep warm in winter."} for thing in ("penguins", "houses", "engines", "bees")
]


def made(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> tuple[JobReport, list[dict[str, Any]]]:
    given, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    report = make_constraints(ConstraintsConfig(input=str(given), output=str(output), overwrite=True, **options))
    return report, [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_levels_patterns_and_witnesses(tmp_path: Path) -> None:
    report, rows = made(tmp_path, PROMPTS, per_prompt=24)
    assert len(rows) + sum(report.dropped.values()) == 96
    assert len(rows) > 90
    combinations = Counter((row["level"], row["pattern"]) for row in rows)
    assert set(combinations) == {(level, pattern) for level in LEVELS for pattern in PATTERNS}
    for row in rows:
        constraints = [Constraint.read(item) for item in row["reference"]["constraints"]]
        least, most = LEVELS[row["level"]]
        assert least <= len(constraints) <= most
        assert len(row["classes"]) == row["level"] == len({one.group for one in constraints})
        assert len({one.kind for one in constraints}) == len(constraints)
        assert conflicts(constraints) == []
        assert row["verdict"] == "satisfiable"
        assert all_met(tuple(constraints), row["witness"])
        assert row["source_prompt"] in row["prompt"]
        assert row["scorer"] == "instructions"


def test_every_argument_is_stated(tmp_path: Path) -> None:
    _, rows = made(tmp_path, PROMPTS, per_prompt=30)
    for row in rows:
        for item in row["reference"]["constraints"]:
            for name, value in item["args"].items():
                if name in ("language", "mark"):
                    continue
                for one in value if isinstance(value, list) else [value]:
                    assert re.search(rf"(?<!\w){re.escape(str(one))}(?!\w)", row["prompt"]), (item, row["prompt"])
        if row["pattern"] == "listing":
            assert f"\n{len(row['kinds'])}. " in row["prompt"]
        if row["pattern"] == "example":
            assert row["witness"] in row["prompt"]


def test_wordings_are_clean() -> None:
    random = Random(3)
    for number in range(400):
        for one in drawn(number % 4 + 1, "What do whales eat?", random) or ():
            text = phrase_of(one, random)
            assert "{" not in text.replace("{}", "")
            assert "None" not in text
            assert not re.search(r"\b1 (?:words|sentences|paragraphs|rows|times)\b", text)


def test_every_kind_is_drawn() -> None:
    random = Random(0)
    found = {one.kind for _ in range(600) for one in drawn(4, "What do whales eat?", random) or ()}
    assert found == set(COMPOSED)


def test_the_same_on_every_run_and_other_with_another_seed(tmp_path: Path) -> None:
    _, one = made(tmp_path, PROMPTS, in_flight=1)
    _, two = made(tmp_path, PROMPTS, in_flight=9)
    _, other = made(tmp_path, PROMPTS, seed=1)
    assert one == two
    assert [row["reference"] for row in one] != [row["reference"] for row in other]


def test_known_constraints_are_looked_at(tmp_path: Path) -> None:
    fine: list[Any] = [{"kind": "words", "args": {"max": 50}}, {"kind": "upper_case"}]
    rows: list[dict[str, Any]] = [
        {"prompt": "a", "c": fine},
        {"prompt": "b", "c": {"constraints": fine}},
        {"prompt": "c", "c": [{"kind": "words", "args": {"max": 2}}, {"kind": "sentences", "args": {"min": 3}}]},
        {"prompt": "d", "c": [{"kind": "poem"}]},
        {"prompt": "e", "c": []},
        {"prompt": "e", "c": fine * 51},
        {"prompt": "f", "c": "text"},
        {"prompt": "f", "c": [{"kind": "forbidden", "args": {"phrases": [f"word{n}" for n in range(3_000)]}}]},
        {
            "prompt": "g",
            "c": [
                {"kind": "forbidden", "args": {"phrases": ["cat"]}},
                {"kind": "starts_with", "args": {"text": "cat"}},
            ],
        },
    ]
    report, found = made(tmp_path, rows, constraints_column="c")
    assert [row["prompt"] for row in found] == ["a", "b"]
    assert found[0]["kinds"] == ["words", "upper_case"]
    assert report.dropped == {"conflict": 1, "bad_constraints": 5, "no_witness": 1}
    _, kept = made(tmp_path, rows, constraints_column="c", witness="optional")
    assert [(row["prompt"], row["verdict"]) for row in kept] == [
        ("a", "satisfiable"),
        ("b", "satisfiable"),
        ("g", "open"),
    ]


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": ""},
        {"prompt": None},
        {"prompt": 3},
        {"prompt": "x" * 60_000},
        {"prompt": "\ud800"},
    ]
    report, found = made(tmp_path, rows)
    assert len(found) == 1
    assert report.dropped == {"no_prompt": 3, "prompt_too_long": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": ("list",)}, "--pattern is 'list'"),
        ({"pattern": ()}, "--pattern"),
        ({"level": (5,)}, "--level is '5'"),
        ({"per_prompt": 0}, "--per-prompt is 0"),
        ({"witness": "no"}, "--witness is 'no'"),
        ({"prompt_column": "promt"}, "Did you mean 'prompt'"),
        ({"constraints_column": "c"}, "--constraints-column 'c'"),
    ],
)
def test_mistakes_are_named_before_any_work(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        made(tmp_path, PROMPTS, **options)
    assert not (tmp_path / "out.jsonl").exists()
