"""Rows become tasks: columns are found or asked for, chats are read, and what is not a task is counted and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.evals.attacks.attacking import read_words
from adjudge.evals.attacks.config import AttackConfig
from adjudge.evals.attacks.target import Read, read_tasks


def read(tmp_path: Path, rows: list[Any], **options: Any) -> Read:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_tasks(AttackConfig(input=str(path), scorer="math", **options))


def test_usual_names_are_guessed_and_told(tmp_path: Path) -> None:
    found = read(tmp_path, [{"question": "?", "rejected": "no", "chosen": "yes", "answer": "4", "id": 7}])
    (row,) = found.rows
    assert (row.id, row.prompt, row.base, row.good, row.reference) == ("7", "?", "no", "yes", "4")
    assert "bad: column 'rejected' (guessed)" in found.notes


def test_named_columns_reach_into_objects(tmp_path: Path) -> None:
    data = {"q": "?", "model": {"solution": "no"}, "gold": {"value": [1, 2]}, "kind": "k"}
    found = read(
        tmp_path,
        [data],
        prompt_column="q",
        bad_column="model.solution",
        reference_column="gold.value",
        extra_column=("kind",),
    )
    (row,) = found.rows
    assert (row.base, row.reference, dict(row.extra), row.good) == ("no", [1, 2], {"kind": "k"}, None)
    assert row.sample("x").extra == {"kind": "k"}


def test_without_a_bad_column_attacks_build_on_an_empty_response(tmp_path: Path) -> None:
    found = read(tmp_path, [{"prompt": "?", "answer": "4"}])
    assert found.rows[0].base == ""
    assert any("empty response" in note for note in found.notes)


def test_chats_give_their_last_turn_and_the_turns_before_are_the_prompt(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "Say yes."}]
    chat = {
        "rejected": [*asked, {"role": "assistant", "content": "no"}],
        "chosen": [*asked, {"role": "assistant", "content": "yes"}],
    }
    parts = [{"role": "user", "content": [{"type": "text", "text": "Say yes."}]}]
    assert read(tmp_path, [{"prompt": parts}]).rows[0].question() == "user: Say yes."
    (row,) = read(tmp_path, [chat]).rows
    assert (row.prompt, row.base, row.good) == (asked, "no", "yes")
    assert row.question() == "user: Say yes."


def test_what_is_no_task_is_counted_and_told(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"prompt": "?", "bad": "no"},
        "{broken",
        {"prompt": "?", "bad": {"n": 5}},
        {"prompt": [5], "bad": "no"},
        {"prompt": "?", "bad": [{"role": "user", "content": "?"}]},
        {"prompt": "?", "bad": None},
        "[]",
    ]
    found = read(tmp_path, rows)
    assert len(found.rows) == 1
    assert found.unreadable == 6
    (told,) = [note for note in found.notes if "cannot be read" in note]
    assert told.startswith("6 rows cannot be read: row 1: malformed JSON")
    assert told.endswith("and 1 more")


@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        ([{"prompt": "?", "bad": {"n": 5}}], {}, r"used: row 0: the response in 'bad' is an object with the fields n"),
        ([{"prompt": "?"}], {"good_column": "best"}, r"--good-column 'best': the input has no such column"),
        ([{"prompt": "?"}], {"extra_column": ("best",)}, r"--extra-column 'best'"),
    ],
)
def test_inputs_that_cannot_be_meant_are_refused(
    rows: list[Any], options: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=problem):
        read(tmp_path, rows, **options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"scorer": ""}, "no scorer"),
        ({"attack": ()}, "there is no attack"),
        ({"budget": 0}, "budget=0"),
        ({"restarts": 1000}, "restarts=1000"),
        ({"restarts": -1}, "restarts=-1"),
        ({"goal": "best"}, "goal='best'"),
        ({"feedback": "all"}, "feedback='all'"),
        ({"right": float("nan")}, "right=nan"),
        ({"right": float("inf")}, "right=inf"),
        ({"quantile": 1.5}, "quantile=1.5"),
        ({"held_out": -0.1}, "held_out=-0.1"),
        ({"held_out": 1.0}, "held_out=1.0"),
        ({"held_out": float("nan")}, "held_out=nan"),
    ],
)
def test_options_out_of_range_name_the_value(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        AttackConfig(**{"input": "x", "scorer": "math", **options})


def test_a_vocabulary_is_one_token_on_each_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("one\n\ntwo words\n\\n\none\n", encoding="utf-8")
    assert read_words(str(path)) == ("one", "two words", "\n")
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds no tokens"):
        read_words(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot be read"):
        read_words(str(path))
    with pytest.raises(ValueError, match="cannot be read"):
        read_words(str(tmp_path / "none.txt"))
