from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.cli import demo_training, exits
from adjudge.cli.demo import demo_rows

Adjudge = Callable[..., Any]

# What each row of the demo must come to: value and reason.
VERDICTS: dict[str, tuple[float | None, str]] = {
    "fraction": (1.0, ""),
    "radical": (1.0, ""),
    "symbols": (1.0, ""),
    "wrong": (0.0, "wrong"),
    "close": (0.0, "wrong"),
    "hedge": (0.0, "wrong"),
    "cut-off": (0.0, "truncated"),
    "thinking": (0.0, "unfinished_reasoning"),
    "hostile": (0.0, "undecided"),
    "bad-gold": (None, "gold_unparsable"),
}


def test_the_verdicts(adjudge: Adjudge) -> None:
    ran = adjudge("demo", "--json")
    assert ran.code == exits.FINE
    found = {row["id"]: (row["score"]["value"], row["score"]["reason"]) for row in ran.json["rows"]}
    assert found == VERDICTS


def test_the_table_and_what_to_do_next(adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # where a terminal is narrower, reasons are broken over two lines
    ran = adjudge("demo")
    assert ran.code == exits.FINE
    for row in demo_rows():
        assert row["shows"].split()[0] in ran.out
    assert "unfinished_reasoning" in ran.out
    assert "adjudge label demo.jsonl" in ran.out


def test_the_rows_can_be_saved_and_nothing_is_replaced(adjudge: Adjudge, tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    assert adjudge("demo", "--save", str(path)).code == exits.FINE
    assert [json.loads(line) for line in path.read_text().splitlines()] == demo_rows()
    path.write_text("mine")
    ran = adjudge("demo", "--save", str(path))
    assert ran.code == exits.USER
    assert path.read_text() == "mine"


@pytest.fixture
def short_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy is shown less before it learns, a step has fewer answers, and a reward model is trained on less."""
    from adjudge.rl_integration.trainer.demo import subjects

    def short(lesson: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **options: Any) -> Any:
            whole = lesson(*given, **options)
            return replace(whole, enough=0.1, rollouts=replace(whole.rollouts, tasks=4))

        return made

    for name in ("sums", "hacked"):
        monkeypatch.setattr(subjects, name, short(getattr(subjects, name)))
    monkeypatch.setattr(demo_training, "_PREFERENCES", 100)


@pytest.mark.usefixtures("short_lessons")
def test_policies_can_be_watched_learning(adjudge: Adjudge, tmp_path: Path) -> None:
    output = tmp_path / "runs"
    common = ("demo", "train", "--method", "ppo", "--steps", "1", "--seeds", "2", "--output", str(output))
    ran = adjudge(*common, "--json")
    assert ran.code == exits.FINE
    assert [run["name"] for run in ran.json["runs"]] == ["seed 0", "seed 1"]
    for run in ran.json["runs"]:
        assert 0 < run["before"] < 0.5, "there is something to learn"
        assert run["steps"] == 1
        assert Path(run["report"]).is_file()
    assert (output / "curves.svg").is_file()
    again = adjudge(*common)
    assert again.code == exits.USER
    assert "is there already" in again.err


@pytest.mark.parametrize(("option", "value"), [("--steps", "-1"), ("--seeds", "0")])
def test_a_lesson_without_sense_is_refused(adjudge: Adjudge, option: str, value: str) -> None:
    ran = adjudge("demo", "train", option, value)
    assert ran.code == exits.USER
    assert option in ran.err


@pytest.mark.usefixtures("short_lessons")
def test_a_lesson_from_a_model_trains_it_first(adjudge: Adjudge) -> None:
    ran = adjudge("demo", "train", "--lesson", "guarded", "--steps", "1", "--json")
    assert ran.code == exits.FINE
    (run,) = ran.json["runs"]
    assert run["report"] is None
    assert run["before"] > 0
