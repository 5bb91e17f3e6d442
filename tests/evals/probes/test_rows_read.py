"""Rows of many shapes, and clear errors for the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.evals.probes.catalogue import ProbesConfig
from adjudge.evals.probes.probe import ProbeRow, with_others
from adjudge.evals.probes.probing import read_probe_rows
from adjudge.evals.probes.row_file import ReadRows, shipped_names


def read(tmp_path: Path, *rows: Any, **options: Any) -> ReadRows[ProbeRow]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_probe_rows(ProbesConfig(input=str(path), **options))


def test_chosen_and_rejected_as_chats(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello."}]
    other = [turns[0], {"role": "assistant", "content": "No."}]
    (row,) = read(tmp_path, {"chosen": turns, "rejected": other}).rows
    assert (row.good, row.bad, row.asked, row.planted) == ("Hello.", "No.", "Hi?", False)
    assert row.prompt == [turns[0]]


def test_whole_chats_transcripts_and_numbers_are_read_as_everywhere(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Hi?"}
    whole = [asked, {"role": "assistant", "content": "Hello."}]
    trace = [{"role": "assistant", "content": "Let me see."}, {"role": "tool", "content": "5"}, whole[1]]
    rows = read(
        tmp_path,
        {"prompt": "Hi?", "chosen": whole, "rejected": [asked, {"role": "assistant", "content": "No."}]},
        {"chosen": "\n\nHuman: Hi?\n\nAssistant: Hello.", "rejected": "\n\nHuman: Hi?\n\nAssistant: No."},
        {"prompt": json.dumps([asked]), "chosen": "Hello.", "rejected": 7},
        {"prompt": "Hi?", "chosen": trace, "rejected": ["No.", "Never."]},
    ).rows
    assert [row.good for row in rows] == ["Hello."] * 4
    assert [row.bad for row in rows] == ["No.", "No.", "7", "No."]
    assert [row.prompt for row in rows] == ["Hi?", [asked], [asked], [asked, *trace[:2]]]


def test_references_alone_give_good_and_planted_bad_responses(tmp_path: Path) -> None:
    first, second = read(tmp_path, {"question": "a", "answer": 4}, {"question": "b", "answer": "5"}).rows
    assert (first.good, first.bad, first.planted, first.other) == ("4", "5", True, "5")
    assert (second.good, second.bad, second.reference) == ("5", "4", "5")


def test_answers_that_are_the_same_are_no_bad_ones(tmp_path: Path) -> None:
    one, two = read(tmp_path, {"answer": "1/2"}, {"answer": "0.5"}).rows
    assert (one.bad, two.bad, one.other) == (None, None, "")


def test_nothing_is_planted_without_a_reference(tmp_path: Path) -> None:
    rows = read(tmp_path, {"prompt": "a", "good": "x"}, {"prompt": "b", "good": "y"}).rows
    assert [(row.bad, row.other) for row in rows] == [(None, "y"), (None, "x")]


def test_domains_are_told_or_seen(tmp_path: Path) -> None:
    rows = read(
        tmp_path,
        {"good": "```python\nx\n```"},
        {"good": "x", "reference": {"tests": ["assert x"]}},
        {"good": "[[A]]", "domain": "verdict"},
        {"good": "x"},
    ).rows
    assert [row.domain for row in rows] == ["code", "code", "verdict", "text"]


def test_given_columns_and_extras_are_kept(tmp_path: Path) -> None:
    (row,) = read(
        tmp_path,
        {"ask": "q", "yes": "g", "no": "b", "key": "k", "paraphrase": "p", "own_model": 3, "deep": {"n": 7}},
        prompt_column="ask",
        good_column="yes",
        bad_column="no",
        id_column="key",
        extra_column=("deep.n",),
    ).rows
    assert (row.id, row.prompt, row.good, row.bad) == ("k", "q", "g", "b")
    assert row.equals == {"paraphrase": "p"}
    assert row.extra == {"deep.n": 7}


def test_bad_rows_are_counted_and_named(tmp_path: Path) -> None:
    found = read(tmp_path, {"good": "fine"}, "{broken", {"good": {"n": 7}}, {"good": "  "}, {"good": None}, ["a list"])
    assert len(found.rows) == 1
    assert found.unreadable == 5
    (note,) = [note for note in found.notes if "cannot be read" in note]
    assert "row 2: the response in 'good' is an object with the fields n; it must be text" in note
    assert "row 3: the row '3' has an empty good response" in note
    assert found.source["rows"] == 6


def test_a_limit_counts_rows(tmp_path: Path) -> None:
    found = read(tmp_path, {"good": "a"}, {"good": "b"}, {"good": "c"}, limit=2)
    assert [row.good for row in found.rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        ([{"x": 1}], {}, "no column looks like a good response"),
        ([{"good": "a"}], {"bad_column": "worse"}, "--bad-column"),
        ([{"good": ""}], {}, "holds no row that can be used: row 0"),
        ([{"good": "a", "id": "k"}, {"good": "b", "id": "k"}], {}, "two rows have the id 'k', the second is row 1"),
        ([{"answer": {"tests": ["assert f(1)"]}}], {}, "its reference holds no answer as text"),
        (["{broken"], {}, "holds no row that can be used: row 0"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, rows: list[Any], options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read(tmp_path, *rows, **options)


def test_an_empty_file_and_unknown_shipped_rows_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is empty"):
        read(tmp_path)
    with pytest.raises(ValueError, match="there are no shipped rows 'rows:maths'; there are rows:choice"):
        read_probe_rows(ProbesConfig(input="rows:maths"))


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_rows_are_whole(name: str) -> None:
    found = read_probe_rows(ProbesConfig(input=f"rows:{name}"))
    assert found.unreadable == 0
    assert len(found.rows) >= 4
    for row in found.rows:
        assert row.bad is not None
        assert row.bad != row.good
        assert not row.planted
        assert row.other


def test_rows_that_are_all_alike_are_quick() -> None:
    rows = [ProbeRow(id=str(n), prompt="p", good="g", reference="g") for n in range(20_000)]
    assert {row.other for row in with_others(rows)} == {""}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"per_row": -1}, "per_row=-1"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"epsilon": -0.1}, "epsilon=-0.1"),
        ({"epsilon_share": 1.0}, "epsilon_share=1.0"),
        ({"tolerated": -0.5}, "tolerated=-0.5"),
        ({"compare": "maybe"}, "compare='maybe'"),
        ({"only": ("digits",)}, "did you mean 'digit'"),
    ],
)
def test_options_out_of_range_are_told(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ProbesConfig(input="x", **options)
