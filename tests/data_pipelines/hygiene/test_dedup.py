"""`adjudge data dedup` end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data_pipelines.hygiene.row_files import read, write

from adjudge.data_pipelines.hygiene.config import DedupConfig
from adjudge.data_pipelines.hygiene.dedup import run_dedup
from adjudge.io.errors import JobStopped
from adjudge.io.row import Cursor
from adjudge.io.source import open_source

LONG = " ".join(f"word{number}" for number in range(60))
ROWS: list[dict[str, Any]] = [
    {"prompt": LONG, "score": 0.2, "n": 1},
    {"prompt": "another question", "score": None},
    {"prompt": LONG.upper() + "  ", "score": 0.9, "n": 2},
    {"prompt": f"{LONG} too", "score": 0.9, "n": None},
    {"prompt": "", "n": 4},
    {"prompt": None, "n": 5},
]


def run(tmp_path: Path, rows: list[dict[str, Any]] | str, **options: Any) -> list[dict[str, Any]]:
    given = rows if isinstance(rows, str) else write(tmp_path / "in.jsonl", rows)
    run_dedup(DedupConfig(input=given, output=str(tmp_path / "out.jsonl"), overwrite=True, **options))
    return read(tmp_path / "out.jsonl")


def test_the_first_of_each_cluster_stays_as_it_was_read(tmp_path: Path) -> None:
    assert run(tmp_path, ROWS) == [ROWS[0], ROWS[1], ROWS[4], ROWS[5]]


def test_the_longest_or_the_best_may_stay_in_its_place(tmp_path: Path) -> None:
    assert run(tmp_path, ROWS, keep="longest") == [ROWS[1], *ROWS[3:]]
    assert run(tmp_path, ROWS, keep="best", score_column="score") == [ROWS[1], ROWS[2], ROWS[4], ROWS[5]]


def test_exact_copies_alone(tmp_path: Path) -> None:
    assert run(tmp_path, ROWS, threshold=1.0) == [ROWS[0], ROWS[1], *ROWS[3:]]


def test_the_report_counts_and_the_second_file_says_why(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", ROWS)
    config = DedupConfig(input=given, output=str(tmp_path / "out.jsonl"), dropped=True)
    report = run_dedup(config)
    assert (report.rows, report.made, report.dropped) == (6, 4, {"exact_copy": 1, "near_copy": 1})
    assert report.counts == {"without_text": 2}
    left_out = read(config.dropped_output)
    assert [row["prompt"] for row in left_out] == [ROWS[2]["prompt"], ROWS[3]["prompt"]]
    assert [(row["dropped_reason"], row["dropped_copy_of"]) for row in left_out] == [
        ("exact_copy", 0),
        ("near_copy", 0),
    ]
    assert left_out[1]["dropped_similarity"] == pytest.approx(56 / 57)  # 56 5-grams, and one more


def test_several_columns_and_chat_turns_are_compared_as_one_text(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "a question"}]
    rows: list[dict[str, Any]] = [
        {"messages": chat, "response": "one"},
        {"messages": chat, "response": "two"},
        {"messages": chat, "response": "ONE"},
    ]
    assert run(tmp_path, rows, text_column=("messages", "response")) == rows[:2]
    assert run(tmp_path, rows) == rows[:1]  # the prompt is guessed


@pytest.mark.parametrize(
    "rows",
    [
        [{"instruction": "Say it in French.", "input": text} for text in ("a dog", "a cat", " A  DOG")],
        [{"prompt": json.dumps([{"role": "user", "content": text}])} for text in ("a dog", "a cat", "a\ndog")],
        [{"question": "a dog"}, {"problem": "a cat"}, {"problem": "a dog"}],
    ],
)
def test_a_prompt_is_compared_as_it_is_read_everywhere(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    assert run(tmp_path, rows) == rows[:2]


def test_rows_that_cannot_be_read_are_counted_and_shift_nothing(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"prompt": "a b"}\nno json\n{"prompt": "c d"}\n[1]\n{"prompt": "A B"}\n{"prompt": "e"}\n')
    report = run_dedup(DedupConfig(input=str(path), output=str(tmp_path / "out.jsonl")))
    assert report.dropped == {"exact_copy": 1, "unreadable": 2}
    assert [row["prompt"] for row in read(tmp_path / "out.jsonl")] == ["a b", "c d", "e"]


def test_a_row_that_is_nested_without_end_stops_nothing(tmp_path: Path) -> None:
    rows = ["a", "[" * 101 + '"x"' + "]" * 101, "b", "[" * 900 + "]" * 900]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"prompt": {row if row[0] == "[" else json.dumps(row)}}}\n' for row in rows))
    report = run_dedup(DedupConfig(input=str(path), output=str(tmp_path / "out.jsonl")))
    assert (report.made, report.dropped) == (2, {"unreadable": 2})


def test_an_empty_input_gives_an_empty_output(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("")
    assert run(tmp_path, str(tmp_path / "in.jsonl")) == []


def test_parquet_keeps_its_columns(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", ROWS)
    run_dedup(DedupConfig(input=given, output=str(tmp_path / "out.parquet")))
    rows = [row.data for row in open_source(str(tmp_path / "out.parquet"), limit=1 << 20).rows(Cursor())]
    assert [row and row["n"] for row in rows] == [1, None, 4, 5]


@settings(max_examples=6)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=12))
def test_doing_it_twice_is_doing_it_once(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("twice")
    once = run(folder, [{"prompt": text} for text in texts], ngram=2)
    assert run(folder, [dict(row) for row in once], ngram=2) == once


class _Stop:
    """Presses Ctrl-C when the job is under way."""

    def note(self, text: str) -> None:
        """Take a sentence."""

    def update(self, snapshot: object) -> None:
        raise KeyboardInterrupt


def test_a_job_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    rows = [{"prompt": f"{LONG} {number % 700}" if number % 3 else f"q {number % 500}"} for number in range(1500)]
    given = write(tmp_path / "in.jsonl", rows)
    whole = DedupConfig(input=given, output=str(tmp_path / "whole.jsonl"), in_flight=4)
    run_dedup(whole)
    stopped = DedupConfig(input=given, output=str(tmp_path / "stopped.jsonl"), in_flight=4)
    with pytest.raises(JobStopped):
        run_dedup(stopped, progress=_Stop())
    report = run_dedup(stopped)
    assert report.resumed_rows > 0
    assert Path(stopped.output).read_bytes() == Path(whole.output).read_bytes()


def test_an_output_that_exists_is_refused_before_the_second_file_is_touched(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", ROWS)
    (tmp_path / "out.jsonl").write_text("mine\n")
    config = DedupConfig(input=given, output=str(tmp_path / "out.jsonl"), dropped=True)
    with pytest.raises(ValueError, match="overwrite"):
        run_dedup(config)
    assert not Path(config.dropped_output).exists()


def test_mistakes_name_the_column_and_the_remedy(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", [{"promt": "x"}])
    with pytest.raises(ValueError, match=r"--text-column 'promtp'.*Did you mean 'promt'"):
        run_dedup(DedupConfig(input=given, output=str(tmp_path / "out.jsonl"), text_column=("promtp",)))
    with pytest.raises(ValueError, match="no column looks like a prompt"):
        run_dedup(DedupConfig(input=given, output=str(tmp_path / "out.jsonl")))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threshold": 0.0}, "--threshold"),
        ({"keep": "last"}, "--keep"),
        ({"keep": "best"}, "--score-column"),
        ({"score_column": "s"}, "--keep best"),
        ({"ngram": 0}, "--ngram is 0"),
        ({"threshold": 0.05, "permutations": 8}, "permutations"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DedupConfig(input="x", output="y", **options)
