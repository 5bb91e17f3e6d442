"""Every row of the data is trained on, measured on, or left out and counted; no prompt is on both sides."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.rollouts_config import TaskFiles
from adjudge.rl_integration.trainer.rollouts.task_reader import RunTasks, read_tasks

ROWS = [{"question": f"{n} + 1 = ?", "answer": str(n + 1), "level": n % 3} for n in range(40)]


def anything(sample: Sample) -> None:
    """A reward that can judge whatever comes."""


def with_reference(sample: Sample) -> None:
    """A reward that needs a text to compare with."""
    if not isinstance(sample.reference, str):
        raise ValueError(f"the reference is {sample.reference!r}; give a text")


def write(path: Path, rows: Iterable[Any]) -> str:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def read(path: str, accept: Any = anything, **options: Any) -> RunTasks:
    return read_tasks(TaskFiles(path=(path,), **options), accept=accept)


def prompts(tasks: Iterable[Task]) -> list[Any]:
    return [task.prompt for task in tasks]


def test_jsonl_csv_and_parquet_give_the_same_tasks(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{**row, "level": str(row["level"])} for row in ROWS]
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    expected = read(write(tmp_path / "rows.jsonl", rows), extra=("level",))
    assert (len(expected.train), len(expected.held_out)) == (36, 4)
    assert expected.train[0].extra == {"level": "0"}
    for name in ("rows.csv", "rows.parquet"):
        assert read(str(tmp_path / name), extra=("level",)) == expected


def test_what_cannot_be_used_is_counted_by_reason(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    bad = [
        "{not json",
        {"question": "  \n"},
        {"answer": "1"},
        {"question": None},
        {"question": "\ud800"},
        {"question": turns},
        {"question": ["a", "b"]},
        ROWS[0],
    ]
    path = write(tmp_path / "rows.jsonl", [*ROWS, *bad])
    found = read(path)
    assert found.rows == 48
    assert found.left_out.counts == {
        "the row cannot be read": 1,
        "the prompt is empty": 1,
        "the row has no prompt": 3,
        "the prompt is not a valid Unicode text": 1,
        "the prompt ends with a turn of the assistant, which is the policy's to write": 1,
        "the prompt and reference of an earlier row": 1,
    }
    assert "line 41" in found.left_out.firsts["the row cannot be read"]
    assert len(found.train) + len(found.held_out) == 40


@given(st.lists(st.tuples(st.sampled_from(["a", "b", " a ", "", "c d", "c  d", "e"]), st.integers(0, 2)), min_size=1))
@settings(max_examples=60, deadline=None)
def test_rows_are_trained_on_held_out_or_left_out(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]]
) -> None:
    path = write(
        tmp_path_factory.mktemp("rows") / "rows.jsonl", [{"prompt": text, "gold": gold} for text, gold in rows]
    )
    different = {" ".join(text.split()) for text, _ in rows} - {""}
    if len(different) < 2:
        with pytest.raises(ValueError, match=r"can be trained on|leaves nothing"):
            read(path, held_out=0.5)
        return
    found = read(path, held_out=0.5)
    assert len(found.train) + len(found.held_out) + found.left_out.counts.total() == found.rows == len(rows)
    train, held = ({" ".join(str(text).split()) for text in prompts(side)} for side in (found.train, found.held_out))
    assert train
    assert held
    assert not train & held
    assert train | held == different


def test_who_is_held_out_depends_on_the_prompts_alone(tmp_path: Path) -> None:
    one = read(write(tmp_path / "one.jsonl", ROWS), held_out=0.2)
    other = [{"question": row["question"], "answer": "?", "level": 0} for row in reversed(ROWS)]
    two = read(write(tmp_path / "two.jsonl", other), held_out=0.2)
    assert set(prompts(one.held_out)) == set(prompts(two.held_out))
    assert len(one.held_out) == 8
    assert len(read(write(tmp_path / "one.jsonl", ROWS), held_out=0.2, max_held_out=3).held_out) == 3
    assert read(write(tmp_path / "one.jsonl", ROWS), held_out=0.0).held_out == ()
    assert len(read(write(tmp_path / "few.jsonl", ROWS[:3]), held_out=0.01).held_out) == 1


def test_prompts_of_held_out_files_are_not_trained_on(tmp_path: Path) -> None:
    held = write(tmp_path / "held.jsonl", [{"question": "1  + 1 = ?"}, {"question": "new"}])
    found = read(write(tmp_path / "rows.jsonl", ROWS), held_out_path=(held,))
    assert prompts(found.held_out) == ["1  + 1 = ?", "new"]
    assert [task.id for task in found.held_out] == ["held-out:0", "held-out:1"]
    assert len(found.train) == 39
    assert found.left_out.counts == {"the prompt is held out": 1}


def test_a_reward_without_its_reference_is_told_before_any_work(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [{"question": "1 + 1"}, {"question": "2 + 2"}])
    with pytest.raises(ValueError, match=r"give a text. no column looks like a reference .*data\.reference"):
        read(path, with_reference)
    path = write(tmp_path / "some.jsonl", [*ROWS, {"question": "who?"}, {"question": "when?", "answer": ["a"]}])
    found = read(path, with_reference)
    assert found.left_out.counts == {"the reward cannot judge it": 2}
    assert "the reference is None" in found.left_out.firsts["the reward cannot judge it"]
    with pytest.raises(ValueError, match=r"none of the 2 prompts .* 2 x the reward cannot judge it \(.*line 1"):
        read(
            write(tmp_path / "none.jsonl", [{"question": "a", "answer": 1}, {"question": "b", "answer": 2}]),
            with_reference,
        )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"path": ("",)}, r"data\.path is empty"),
        ({"path": ()}, r"data\.path is empty"),
        ({"held_out": 1.0}, r"data option held_out=1\.0"),
        ({"held_out": float("nan")}, r"data option held_out=nan"),
        ({"limit": 0}, r"data option limit=0"),
        ({"max_held_out": 0}, r"data option max_held_out=0"),
        ({"template": "Q: {question}"}, r"data\.template .* must hold \{prompt\} once"),
    ],
)
def test_options_out_of_range_are_named(options: Mapping[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        TaskFiles(**{"path": ("rows.jsonl",), **options})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"prompt": "qestion"}, r"data\.prompt 'qestion'.*Did you mean 'question'"),
        ({"reference": "gold"}, r"data\.reference 'gold'.*The columns are: question, answer, level"),
        ({"extra": ("difficulty",)}, r"data\.extra 'difficulty'"),
        ({"id": "uid"}, r"data\.id 'uid'"),
        ({"id": "level"}, r"two rows have the id '0', the second is .*line 4.*data\.id"),
        ({"path": ("nowhere.jsonl",)}, r"data\.path: there is no file or folder nowhere.jsonl"),
        ({"held_out_path": ("nowhere.jsonl",)}, r"data\.held_out_path: there is no file or folder nowhere.jsonl"),
    ],
)
def test_columns_and_files_that_are_not_there_are_named(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    with pytest.raises(ValueError, match=why):
        read_tasks(TaskFiles(**{"path": (path,), **options}), accept=anything)


def test_files_without_prompts_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no column looks like a prompt .*data\.prompt\. The columns are: a, b"):
        read(write(tmp_path / "rows.jsonl", [{"a": 1, "b": 2}]))
    with pytest.raises(ValueError, match="holds no rows that can be read"):
        read(write(tmp_path / "empty.jsonl", []))
    with pytest.raises(ValueError, match="none of the 2 prompts"):
        read(write(tmp_path / "blank.jsonl", [{"prompt": " "}, {"prompt": ""}]))


def test_prompts_are_written_as_the_policy_wants_them(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "{prompt}?"}]
    path = write(tmp_path / "rows.jsonl", [{"prompt": "{prompt} {0}"}, {"prompt": chat}])
    found = read(path, held_out=0.0, template="Q: {prompt}\nA:", chat=True, system="Yours.")
    assert found.train[0].prompt == [
        {"role": "system", "content": "Yours."},
        {"role": "user", "content": "Q: {prompt} {0}\nA:"},
    ]
    assert found.train[1].prompt == chat
    assert read(path, held_out=0.0, template="Q: {prompt}").train[0].prompt == "Q: {prompt} {0}"
    with pytest.raises(ValueError, match=r"data\.system is given, and prompts are texts; give data\.chat"):
        read(path, system="Yours.")


def test_several_files_nested_columns_ids_and_a_limit(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", [{"in": {"text": "a"}, "name": "x"}, {"in": {"text": "b"}, "name": "y"}])
    two = write(tmp_path / "two.jsonl", [{"in": {"text": "c"}, "name": "z"}, {"in": {"text": "d"}, "name": "w"}])
    files = TaskFiles(path=(one, two), prompt="in.text", id="name", limit=3, held_out=0.0)
    found = read_tasks(files, accept=anything)
    assert [(task.id, task.prompt) for task in found.train] == [("x", "a"), ("y", "b"), ("z", "c")]
    assert [
        task.id
        for task in read_tasks(TaskFiles(path=(one, two), prompt="in.text", held_out=0.0), accept=anything).train
    ] == ["0", "1", "2", "3"]


def test_prompts_that_do_not_fit_are_left_out_and_counted(tmp_path: Path) -> None:
    found = read(write(tmp_path / "rows.jsonl", [{"prompt": "x" * n} for n in range(1, 21)]), held_out=0.3)

    def encode(task: Task) -> list[int]:
        if len(task.prompt) == 7:
            raise ValueError("the template refuses it")
        return [0] * len(task.prompt)

    fitting = found.fitting(encode, 12)
    assert fitting.left_out.counts == {"longer than 12 tokens": 8, "the prompt cannot be written as tokens": 1}
    assert len(fitting.train) + len(fitting.held_out) == 11
    with pytest.raises(ValueError, match="longer than 0 tokens"):
        found.fitting(encode, 0)


def test_a_prompt_that_does_not_fit_leaves_its_namesake_on_the_other_side_alone(tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", [{"prompt": "short", "id": "1"}, {"prompt": "brief", "id": "2"}])
    held = write(tmp_path / "held.jsonl", [{"prompt": "far too long", "id": "1"}, {"prompt": "terse", "id": "2"}])
    found = read(train, id="id", held_out_path=(held,)).fitting(lambda task: [0] * len(task.prompt), 5)
    assert prompts(found.train) == ["short", "brief"]
    assert prompts(found.held_out) == ["terse"]


def test_rows_without_a_cohort_are_by_themselves(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "pair": None}, {"prompt": "b"}, {"prompt": "c", "pair": ""}, {"prompt": "d", "pair": 7}]
    found = read(write(tmp_path / "rows.jsonl", rows), cohort="pair", held_out=0.0)
    assert [task.cohort for task in found.train] == ["", "", "", "7"]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"prompt": " ", "answer": "1", "pair": "y"}, "the prompt is empty"),
        ({"prompt": "c", "answer": None, "pair": "y"}, "the reward cannot judge it"),
        ({"prompt": "a", "answer": "1", "pair": "y"}, "the prompt and reference of an earlier row"),
    ],
)
def test_a_cohort_with_a_row_that_cannot_be_used_is_left_out_whole(
    tmp_path: Path, odd: dict[str, Any], reason: str
) -> None:
    whole = [{"prompt": "a", "answer": "1", "pair": "x"}, {"prompt": "b", "answer": "1", "pair": "x"}]
    rows = [*whole, {"prompt": "d", "answer": "1", "pair": "y"}, odd, whole[1]]
    found = read(write(tmp_path / "rows.jsonl", rows), with_reference, cohort="pair", held_out=0.0)
    assert prompts(found.train) == ["a", "b"], "and one that is there twice is not parted by that"
    assert found.left_out.counts[reason] >= 1
    assert found.left_out.counts["another of its cohort is left out"] == 1


def test_a_cohort_with_a_prompt_that_is_held_out_is_not_trained_on(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "pair": "x"}, {"prompt": "b", "pair": "x"}, {"prompt": "c", "pair": "y"}]
    held = write(tmp_path / "held.jsonl", [{"prompt": "b", "pair": "z"}])
    found = read(write(tmp_path / "rows.jsonl", rows), cohort="pair", held_out_path=(held,))
    assert prompts(found.train) == ["c"]
    assert found.left_out.counts == {"the prompt is held out": 1, "another of its cohort is left out": 1}
