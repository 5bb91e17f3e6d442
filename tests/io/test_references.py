"""One row of a task in every form that people have is one sample for every command and adapter."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rl_integration.adapters.scripted_scorer import Scripted
from tests.rl_integration.adapters.test_roll import DataProto, Letters, tokens
from tests.rl_integration.adapters.test_verifiers import plain as message
from tests.rl_integration.adapters.test_verifiers import trace

import adjudge
from adjudge.areal import ArealReward
from adjudge.data_pipelines.label.samples import Sampler
from adjudge.io.columns import Wanted, map_columns
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import without_absent
from adjudge.open_instruct import OpenInstructReward
from adjudge.openrlhf import OpenRlhfReward
from adjudge.prime_rl import RubricReward, VerifiersReward
from adjudge.protocol import Sample, response_text
from adjudge.rl_integration.adapters.verl_scores import VerlOptions
from adjudge.rl_integration.trainer.rollouts.rollouts_config import TaskFiles
from adjudge.rl_integration.trainer.rollouts.task_reader import read_tasks
from adjudge.rllm import RllmEvaluator
from adjudge.roll import RollReward
from adjudge.skyrl import SkyRLReward
from adjudge.slime import SlimeReward
from adjudge.trl import Reward as TrlReward
from adjudge.verl import _sample as verl_sample

Row = dict[str, Any]

TESTS = {"tests": [{"args": [1], "expected": None}, {"stdin": "1\n", "stdout": "2\n"}]}
FILLED = {  # as Arrow holds the same beside rows of other kinds
    "answer": None,
    "tests": [
        {"args": [1], "kwargs": None, "expected": None, "stdin": None, "stdout": None},
        {"args": None, "kwargs": None, "expected": None, "stdin": "1\n", "stdout": "2\n"},
    ],
}
LISTED = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}]
VERL = {"inputs": ["1\n"], "outputs": ["2\n"]}

REFERENCES: dict[str, tuple[Any, Any]] = {
    "an answer": ("42", "42"),
    "an answer that looks like a list": ("[1, 2]", "[1, 2]"),
    "an answer that looks like an object": ("{1, 2}", "{1, 2}"),
    "a number": (42, 42),
    "accepted answers": (["1/2", "0.5"], ["1/2", "0.5"]),
    "a number of 32 bits": (0.10000000149011612, 0.1),
    "numbers of 32 bits": ([3.140000104904175, 1234.56005859375], [3.14, 1234.56]),
    "a number of 64 bits": (1 / 3, 1 / 3),
    "whole numbers that pandas made floats": ([2.0**52, 3 * 2.0**55], [2.0**52, 3 * 2.0**55]),
    "a fraction of few bits": (3 / 2**30, 3 / 2**30),
    "a large number of 32 bits": (999999986991104.0, 1e15),
    "an object": ({"answer": "42"}, {"answer": "42"}),
    "accepted answers of Search-R1": ({"target": ["Paris", "City of Paris"]}, ["Paris", "City of Paris"]),
    "an object with empty fields": ({"answer": "42", "tests": None}, {"answer": "42"}),
    "tests as JSON text": (json.dumps(TESTS), TESTS),
    "tests of LiveCodeBench": (json.dumps(LISTED), LISTED),
    "tests of verl": (json.dumps(VERL), VERL),
    "JSON that says a key twice": ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    "JSON that is cut off": ('{"tests": [', '{"tests": ['),
    "options as JSON text": ({"choices": '["x", "y"]', "answer": "1"}, {"choices": ["x", "y"], "answer": 1}),
    "options and a letter": ({"choices": '["x", "y"]', "answer": "B"}, {"choices": ["x", "y"], "answer": "B"}),
    "options and the text of one": ({"choices": '["1", "9"]', "answer": "9"}, {"choices": ["1", "9"], "answer": "9"}),
    "options and a digit that is a text and another's position": (
        {"choices": '["1", "2"]', "answer": "1"},
        {"choices": '["1", "2"]', "answer": "1"},
    ),
    "options by letter as JSON text": (
        {"options": '{"A": "x", "B": "y"}', "answer_idx": "B"},
        {"options": {"A": "x", "B": "y"}, "answer_idx": "B"},
    ),
    "constraints of RLVR": (
        "[{'instruction_id': ['x:y'], 'kwargs': [None]}]",
        [{"instruction_id": ["x:y"], "kwargs": [None]}],
    ),
    "nothing": (None, None),
    "an empty text": ("", None),
    "an object of nothing": ({"answer": None, "tests": None}, None),
    "that there is no answer": ({"answer": None}, {"answer": None}),
    "what pandas writes for nothing": ("nan", None),
}


def columns_of(path: Path) -> Sampler:
    source = open_source(str(path), limit=1 << 20)
    rows = [row.data for row in source.rows(Cursor()) if row.data is not None]
    columns, _ = map_columns(Wanted(reference="ref", extra=("level",)), list(rows[0]), rows, closed=True)
    return Sampler(columns=columns)


def by_label(path: Path) -> list[Sample]:
    sampler = columns_of(path)
    items = [item for row in open_source(str(path), limit=1 << 20).rows(Cursor()) for item in sampler.items(row, "")]
    return [item.sample for item in items if item.sample is not None]


def by_trainer(path: Path) -> list[Sample]:
    files = TaskFiles(path=(str(path),), reference="ref", held_out=0.0, extra=("level",))
    tasks = read_tasks(files, accept=lambda sample: None).train
    return [task.sample("4", id="", finish_reason=None) for task in tasks]


def rows_of(path: Path) -> list[Row]:
    return [dict(row.data) for row in open_source(str(path), limit=1 << 20).rows(Cursor()) if row.data is not None]


def by_trl(path: Path) -> list[Sample]:
    reward = TrlReward("format", reference="ref")
    return [reward.made_sample(row, row.pop("prompt"), row.pop("response")) for row in rows_of(path)]


def by_verl(path: Path) -> list[Sample]:
    options = VerlOptions(scorer="format")
    return [
        verl_sample("x", row["response"], row["ref"], {"level": row["level"], "q": row["prompt"]}, options, "q", "")
        for row in rows_of(path)
    ]


def by_openrlhf(path: Path) -> list[Sample]:
    reward = OpenRlhfReward("format")
    return [reward._sample(row["prompt"] + row["response"], row["prompt"], row["ref"]) for row in rows_of(path)]


def by_slime(path: Path) -> list[Sample]:
    scorer = Scripted()
    reward = SlimeReward(scorer=scorer)
    for row in rows_of(path):
        kept = SimpleNamespace(
            prompt=row["prompt"],
            response=row["response"],
            label=row["ref"],
            metadata={"level": row["level"]},
            status="completed",
            group_index=0,
        )
        asyncio.run(reward(None, kept))
    return scorer.seen


def by_areal(path: Path) -> list[Sample]:
    scorer = Scripted()
    reward = ArealReward(scorer=scorer, reference="ref")
    for row in rows_of(path):
        reward(row.pop("prompt"), row.pop("response"), [1], [2], **row)
    return scorer.seen


def by_skyrl(path: Path) -> list[Sample]:
    scorer = Scripted()
    reward = SkyRLReward(scorer=scorer)
    for row in rows_of(path):
        spec = {"reward_spec": {"method": "rule", "ground_truth": row["ref"]}, "level": row["level"]}
        reward.last_step(row["prompt"], row["response"], spec)
    return scorer.seen


def by_open_instruct(path: Path) -> list[Sample]:
    reward = OpenInstructReward(scorer="format")
    return [reward.sample(row["response"], row["ref"], row["prompt"]) for row in rows_of(path)]


def by_roll(path: Path) -> list[Sample]:
    scorer = Scripted()
    reward = RollReward(scorer=scorer)
    for row in rows_of(path):
        columns = {"ground_truth": np.array([row["ref"], None], dtype=object)[:-1], "level": np.array([row["level"]])}
        data = DataProto({"prompts": tokens([row["prompt"]]), "responses": tokens([row["response"]])}, columns)
        reward.rewards(data, Letters())
    return scorer.seen


def by_rllm(path: Path) -> list[Sample]:
    scorer = Scripted()
    evaluator = RllmEvaluator(scorer=scorer, reference="ref")
    kinds = ModuleType("rllm.eval.types")
    kinds.__dict__.update(EvalOutput=SimpleNamespace, Signal=SimpleNamespace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rllm.eval.types", kinds)
        for row in rows_of(path):
            task = SimpleNamespace(instruction=row["prompt"], metadata={"ref": row["ref"], "level": row["level"]})
            evaluator.evaluate(task, SimpleNamespace(artifacts={"answer": row["response"]}, trajectories=[]))
    return scorer.seen


def by_rubric(path: Path) -> list[Sample]:
    scorer = Scripted()
    reward = RubricReward(scorer)
    for row in rows_of(path):
        asyncio.run(reward(row["prompt"], row["response"], row["ref"], {"level": row["level"]}, {"error": None}))
    return scorer.seen


def by_verifiers(path: Path) -> list[Sample]:
    """A task of version 1; its trace holds messages, whose texts are compared."""
    scorer = Scripted()
    reward = VerifiersReward(scorer, reference="ref")
    for row in rows_of(path):
        asyncio.run(reward(message(**row, prompt_text=row["prompt"]), trace(row["response"])))
    return [replace(sample, prompt="What is 2 + 2?", response=response_text(sample)) for sample in scorer.seen]


READERS: dict[str, Callable[[Path], list[Sample]]] = {
    "label": by_label,
    "train policy": by_trainer,
    "TRL": by_trl,
    "verl": by_verl,
    "OpenRLHF": by_openrlhf,
    "slime": by_slime,
    "AReaL": by_areal,
    "SkyRL": by_skyrl,
    "open-instruct": by_open_instruct,
    "ROLL": by_roll,
    "rLLM": by_rllm,
    "Rubric": by_rubric,
    "verifiers": by_verifiers,
}
"""NeMo Gym's is tried in its own environment, tests/frameworks/nemo_gym."""
NO_OTHER_COLUMNS = ("OpenRLHF", "open-instruct")
"""The reward is given prompt, response and label alone."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", REFERENCES)
def test_a_reference_is_the_same_for_every_reader(form: str, reader: str, tmp_path: Path) -> None:
    cell, expected = REFERENCES[form]
    row = {"prompt": "What is 2 + 2?", "response": "4", "ref": cell, "level": 3}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    for name in ("rows.jsonl", "rows.parquet"):
        (sample,) = READERS[reader](tmp_path / name)
        assert sample.reference == expected, name
        assert (sample.prompt, sample.response) == ("What is 2 + 2?", "4"), name
        assert reader in NO_OTHER_COLUMNS or sample.extra["level"] == 3, name


@pytest.mark.parametrize("reader", READERS)
def test_fields_that_arrow_filled_are_absent(reader: str, tmp_path: Path) -> None:
    rows = [
        {"prompt": "one", "response": "4", "ref": {"answer": "42"}, "level": 1},
        {"prompt": "two", "response": "4", "ref": TESTS, "level": 2},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (stored, _) = (row.data for row in open_source(str(tmp_path / "rows.parquet"), limit=1).rows(Cursor()))
    assert stored is not None
    assert stored["ref"] == {"answer": "42", "tests": None}, "Arrow fills"
    assert [sample.reference for sample in READERS[reader](tmp_path / "rows.parquet")] == [{"answer": "42"}, TESTS]


@pytest.mark.parametrize(
    ("test", "place"),
    [
        ({"args": [{"a": 1, "b": None}], "expected": 1}, "args[0].b"),
        ({"args": [1], "expected": [{"a": {"b": None, "c": 1}, "d": 1}]}, "expected[0].a.b"),
        ({"kwargs": {"x": 1, "y": None}, "expected": 1}, "kwargs.y"),
        ({"args": [{"x": None}], "expected": 1}, "args[0].x"),  # or {}, where all of the file's have no field but x
        ({"args": [], "kwargs": {"x": None}, "expected": 1}, "kwargs.x"),
        ({"args": [1], "expected": None, "expected_any": [{"a": None, "b": 1}]}, "expected_any[0].a"),
    ],
)
def test_a_null_that_columns_may_have_filled_in_is_refused_by_name(test: Row, place: str) -> None:
    reference = {"tests": [test], "entry_point": "f"}
    score = adjudge.score("q", "```python\ndef f(*a, **k): pass\n```", without_absent(reference), scorer="code")
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert score.evidence["error"].startswith(f"{place} of test 0 is null")


def test_nulls_of_calls_that_nobody_filled_stay() -> None:
    test = {"args": [None, [None], {"x": 1}], "kwargs": {"y": 2}, "expected": None}
    assert without_absent(test) == test
    several = {**test, "expected_any": [None, 1]}
    assert without_absent(several) == {name: several[name] for name in ("args", "kwargs", "expected_any")}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"answer": None}, {"answer": None}),
        ({"model": {"answer": None}}, {"model": {"answer": None}}),
        ({"kind": "f", "args": {"x": None}}, {"kind": "f", "args": {}}),
        ([{"args": {"x": None}}, {"args": {"x": 1}}], [{"args": {}}, {"args": {"x": 1}}]),
    ],
)
def test_an_object_of_one_field_may_be_an_empty_one_that_was_filled(written: Any, read: Any) -> None:
    assert without_absent(written) == read


def test_null_is_a_value_where_json_says_it(tmp_path: Path) -> None:
    calls = {"calls": [{"name": "f", "arguments": {"x": None}}]}
    row = {"prompt": "q", "response": "4", "ref": calls, "level": 1}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert by_label(tmp_path / "rows.jsonl")[0].reference == calls
    row["ref"] = json.dumps(calls)
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    assert by_label(tmp_path / "rows.parquet")[0].reference == calls


USER, ASSISTANT = {"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}


@pytest.mark.parametrize(
    ("row", "prompt", "response"),
    [
        ({"prompt": "2 + 2?", "response": "4"}, "2 + 2?", "4"),
        ({"prompt": [USER], "response": "4"}, [USER], "4"),
        ({"prompt": [USER], "response": [ASSISTANT]}, [USER], [ASSISTANT]),
        ({"prompt": "2 + 2?", "response": [USER, ASSISTANT]}, "2 + 2?", [ASSISTANT]),
        ({"messages": [USER, ASSISTANT]}, [USER], [ASSISTANT]),
        ({"conversations": [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]}, [USER], [ASSISTANT]),
        ({"messages": [USER], "response": "4"}, [USER], "4"),
        ({"messages": [USER, ASSISTANT], "response": "5"}, [USER], "5"),
        ({"messages": json.dumps([USER, ASSISTANT, USER, ASSISTANT]), "response": "5"}, [USER, ASSISTANT, USER], "5"),
        ({"messages": [USER, ASSISTANT, USER], "response": "5"}, [USER, ASSISTANT, USER], "5"),
        ({"instruction": "Add.", "input": "2 2", "output": "4"}, "Add.\n\n2 2", "4"),
        ({"instruction": "Add 2 and 2.", "input": "", "output": "4"}, "Add 2 and 2.", "4"),
        ({"prompt": json.dumps([USER]), "response": "4"}, [USER], "4"),
        ({"prompt": "2 + 2?", "response": json.dumps([USER, ASSISTANT])}, "2 + 2?", json.dumps([USER, ASSISTANT])),
        ({"question": "2 + 2?", "choices": [{"index": 0, "message": ASSISTANT}]}, "2 + 2?", [ASSISTANT]),
        (
            {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": [{"message": ASSISTANT}]}}},
            "",
            [ASSISTANT],
        ),
        (
            {"request": {"messages": [USER]}, "response": {"choices": [{"message": ASSISTANT}]}},
            [USER],
            [ASSISTANT],
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_prompts_and_responses_in_the_forms_that_people_have(row: Row, prompt: Any, response: Any) -> None:
    columns, _ = map_columns(Wanted(), list(row), [row], closed=True)
    from adjudge.io.row import Place
    from adjudge.io.row import Row as FileRow

    (item,) = Sampler(columns=columns).items(FileRow(row, "", Place(), 0, index=0), "")
    assert item.sample is not None, item.error
    assert (item.sample.prompt, item.sample.response) == (prompt, response)


def test_options_of_a_question_are_no_responses() -> None:
    row = {"question": "Which?", "choices": ["a", "b"], "answer": "B", "said": "It is B."}
    with pytest.raises(ValueError, match="no column looks like a response"):
        map_columns(Wanted(), list(row), [row], closed=True)


@pytest.mark.parametrize(
    ("row", "reference"),
    [
        ({"answer": "4", "tests": None}, "4"),
        ({"answer": None, "tests": ["assert f() == 1"]}, ["assert f() == 1"]),
        ({"input_output": json.dumps(VERL)}, json.dumps(VERL)),
        ({"test_list": ["assert f() == 1"], "test_setup_code": ""}, {"test_list": ["assert f() == 1"]}),
        ({"answer": None, "tests": ["t"], "entry_point": "f"}, {"tests": ["t"], "entry_point": "f"}),
        ({"answer": "4", "tests": None, "entry_point": None}, "4"),
        ({"reference": None, "answer": "4"}, "4"),
        (
            {"public_test_cases": "[1]", "private_test_cases": "[2]"},
            {"public_test_cases": "[1]", "private_test_cases": "[2]"},
        ),
        ({"test": "def check(f): ...", "entry_point": "f"}, {"test": "def check(f): ...", "entry_point": "f"}),
        ({"reward_model": {"ground_truth": "4", "style": "rule"}}, "4"),
    ],
)
def test_references_in_columns_of_published_data_sets(row: Row, reference: Any) -> None:
    whole = {"prompt": "q", "response": "r", **row}
    columns, _ = map_columns(Wanted(), list(whole), [whole], closed=True)
    assert columns.reference is not None
    found = columns.reference.of(whole)
    assert (
        {key: value for key, value in found.items() if value} == reference
        if isinstance(found, dict)
        else found == reference
    )
