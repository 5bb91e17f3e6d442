"""README's own sequence: label, then pairs of the scores and their rows; and every way to get the rows wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.io.errors import JobError


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def rows_of(count: int = 6, **more: Any) -> list[dict[str, Any]]:
    return [
        {"question": f"{n} + 1?", "answers": [f"\\boxed{{{n + 1}}}", f"\\boxed{{{n + 2}}}"], "gold": str(n + 1), **more}
        for n in range(count)
    ]


def labelled(folder: Path, rows: str, suffix: str = "jsonl", name: str = "scores", **options: Any) -> str:
    output = str(folder / f"{name}.{suffix}")
    columns: dict[str, Any] = {"response_column": ("answers",), "reference_column": "gold", **options}
    run_label(LabelConfig(input=rows, output=output, scorer="math", **columns))
    return output


def paired(folder: Path, scores: str, rows: str = "", **options: Any) -> list[dict[str, Any]]:
    output = folder / "pairs.jsonl"
    config = {"response_column": "answers", **options}
    build_pairs(PairsConfig(input=scores, output=str(output), rows=rows, overwrite=True, **config))
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_scores_and_their_rows_make_the_pairs_that_kept_columns_make(tmp_path: Path, suffix: str) -> None:
    rows = write(tmp_path / "rows.jsonl", rows_of())
    bare, kept = labelled(tmp_path, rows, suffix), labelled(tmp_path, rows, suffix, "kept", keep_columns=True)
    pairs = paired(tmp_path, bare, rows)
    assert len(pairs) == 6
    assert (pairs[0]["prompt"], pairs[0]["chosen"], pairs[0]["rejected"]) == ("0 + 1?", "\\boxed{1}", "\\boxed{2}")
    assert pairs == paired(tmp_path, kept)


def test_outputs_of_shards_one_behind_the_other(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.jsonl", rows_of())
    shards = [Path(labelled(tmp_path, rows, name=f"s{i}", shard=f"{i}/2")).read_text() for i in range(2)]
    (tmp_path / "all.jsonl").write_text("".join(shards))
    whole = labelled(tmp_path, rows)
    by_prompt = [sorted(paired(tmp_path, scores, rows), key=str) for scores in (str(tmp_path / "all.jsonl"), whole)]
    assert by_prompt[0] == by_prompt[1]


def test_completions_of_a_server(tmp_path: Path) -> None:
    def choice(text: str) -> dict[str, Any]:
        return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}

    turns = [{"role": "user", "content": "1 + 1?"}]
    row = {"messages": turns, "choices": [choice("\\boxed{2}"), choice("\\boxed{3}")], "gold": "2"}
    rows = write(tmp_path / "rows.jsonl", [row])
    for column in ((), ("choices.*.message.content",)):
        scores = labelled(tmp_path, rows, response_column=column, overwrite=True)
        (pair,) = paired(tmp_path, scores, rows, response_column=column[0] if column else "")
        assert (pair["prompt"], pair["chosen"], pair["rejected"]) == (turns, "\\boxed{2}", "\\boxed{3}")


def wrong_rows() -> dict[str, tuple[list[dict[str, Any]], str]]:
    named = [{**row, "id": f"q{n}"} for n, row in enumerate(rows_of())]
    edited = [{**row, "question": "EDITED"} for row in named]
    again = [{**row, "answers": row["answers"][::-1]} for row in named]
    return {
        "another order": (named[::-1], "the id there is 'q5/0'"),
        "another order without ids": (rows_of()[::-1], "another prompt or response is there"),
        "fewer rows": (named[:3], "it has 3 rows"),
        "other ids": ([{**row, "id": f"p{n}"} for n, row in enumerate(named)], "the id there is 'p0/0'"),
        "no ids": (rows_of(), "the id there is '0/0'"),
        "other answers of the same ids": (again, "another prompt or response is there"),
        "other questions of the same ids": (edited, "another prompt or response is there"),
        "fewer answers": ([{**row, "answers": row["answers"][:1]} for row in named], "the id there is 'q0/0'"),
    }


@pytest.mark.parametrize("wrong", wrong_rows())
def test_rows_that_were_not_labelled_are_one_error_and_no_pair(tmp_path: Path, wrong: str) -> None:
    there, says = wrong_rows()[wrong]
    right = rows_of() if "without ids" in wrong else [{**row, "id": f"q{n}"} for n, row in enumerate(rows_of())]
    scores = labelled(tmp_path, write(tmp_path / "rows.jsonl", right))
    rows = write(tmp_path / "other.jsonl", there)
    with pytest.raises(JobError, match=r"other.jsonl does not hold what was scored in .*Name the file") as error:
        paired(tmp_path, scores, rows)
    assert says in str(error.value)
    assert not (tmp_path / "pairs.jsonl").exists()


def test_another_response_column_than_the_labelled_one(tmp_path: Path) -> None:
    row = {"prompt": "1 + 1?", "response": "\\boxed{9}", "answers": ["\\boxed{2}", "\\boxed{3}"], "gold": "2"}
    rows = write(tmp_path / "rows.jsonl", [row])
    scores = labelled(tmp_path, rows)
    with pytest.raises(JobError, match=r"\(response: column 'response'\)"):
        paired(tmp_path, scores, rows, response_column="")
