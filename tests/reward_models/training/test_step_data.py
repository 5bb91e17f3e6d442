"""Every format becomes the same thing; labels are what options say, and a bad row is counted and named."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.training.data_files import parse_steps, read_steps
from adjudge.training.step_data import (
    AfterError,
    Label,
    StepExample,
    StepOptions,
    after_first_error,
    consensus,
    error_labels,
    first_error,
    hardened,
    opinions_of,
)

DATA = os.environ.get("ADJUDGE_DATA", "")
needs_data = pytest.mark.skipif(not DATA, reason="set ADJUDGE_DATA to the folder of corpora")


def example(*labels: Label, prompt: str = "p") -> StepExample:
    return StepExample(prompt=prompt, steps=tuple(f"s{at}" for at in range(len(labels))), labels=labels)


def completion(text: str, rating: int | None) -> dict[str, Any]:
    return {"text": text, "rating": rating, "flagged": False}


PRM800K: dict[str, Any] = {
    "question": {"problem": "2 + 2?"},
    "label": {
        "steps": [
            {"completions": [completion("a", 1)], "human_completion": None, "chosen_completion": 0},
            {
                "completions": [completion("b-", -1), completion("b0", 0)],
                "human_completion": {"text": "written", "rating": None},
                "chosen_completion": None,
            },
            {"completions": [completion("c1", 1), completion("c0", 0)], "chosen_completion": 1},
            {"completions": [completion("d", -1), completion("e", 1)], "chosen_completion": None},
        ],
        "finish_reason": "found_error",
    },
}

SHEPHERD: dict[str, Any] = {
    "input": "Two? Step 1: 1+1. ки\nStep 2: The answer is: 2 ки",
    "label": "Two? Step 1: 1+1. +\nStep 2: The answer is: 2 -",
    "task": "GSM8K",
}

FLAT: dict[str, Any] = {
    "question": "q",
    "reasoning_steps": [
        {"solution_prefix": "q", "mc_value": 0.5},
        {"solution_prefix": "q a", "mc_value": 0.25},
        {"solution_prefix": "q a b", "mc_value": 0.0},
        {"solution_prefix": "q a c", "mc_value": 1.0},
        {"solution_prefix": "q a c", "mc_value": 0.5},
    ],
}

TREE: dict[str, Any] = {
    "question": "q",
    "reasoning_steps": {
        "text": "q",
        "mc_value": 0.5,
        "children": [
            {
                "text": "a",
                "mc_value": 0.25,
                "children": [
                    {"text": "b", "mc_value": 0.0, "children": []},
                    {"text": "c", "mc_value": 0.75, "children": []},
                ],
            }
        ],
    },
}

CONVERSATION: dict[str, Any] = {
    "conversations": [
        {"role": "user", "content": "Two? Step 1: 1+1."},
        {"role": "assistant", "content": "+"},
        {"role": "user", "content": "Step 2: 3"},
        {"role": "assistant", "content": "-"},
    ]
}

ROWS: dict[str, tuple[str, dict[str, Any], list[tuple[tuple[str, ...], tuple[Label, ...], Label]]]] = {
    "plain": (
        "plain",
        {"prompt": "p", "steps": ["a", "b"], "labels": [True, None], "outcome": 0.5},
        [(("a", "b"), (1.0, None), 0.5)],
    ),
    "trl": (
        "trl",
        {"prompt": "p", "completions": ["a", "b"], "labels": [True, False]},
        [(("a", "b"), (1.0, 0.0), None)],
    ),
    "prm800k": (
        "prm800k",
        PRM800K,
        [
            (("a", "written", "c0", "d"), (1.0, None, 1.0, 0.0), None),
            (("a", "b-"), (None, 0.0), None),
            (("a", "b0"), (None, 1.0), None),
            (("a", "written", "c1"), (None, None, 1.0), None),
            (("a", "written", "c0", "e"), (None, None, None, 1.0), None),
        ],
    ),
    "math_shepherd": (
        "math_shepherd",
        SHEPHERD,
        [(("Step 1: 1+1.", "Step 2: The answer is: 2"), (1.0, 0.0), 0.0)],
    ),
    "omega_flat": ("omega_flat", FLAT, [(("a", "b"), (0.25, 0.0), None), (("a", "c"), (None, 0.75), None)]),
    "omega_tree": ("omega_tree", TREE, [(("a", "b"), (0.25, 0.0), None), (("a", "c"), (None, 0.75), None)]),
    "rlhflow": ("rlhflow", CONVERSATION, [(("Step 1: 1+1.", "Step 2: 3"), (1.0, 0.0), None)]),
    "rlhflow, told by a field": (
        "rlhflow",
        {
            "problem": "Two?",
            "messages": [{"role": "user", "content": "Two? one"}, {"role": "assistant", "content": "+"}],
        },
        [(("one",), (1.0,), None)],
    ),
    "processbench": (
        "processbench",
        {"id": "x-1", "problem": "p", "steps": ["a", "b", "c"], "label": 1, "final_answer_correct": False},
        [(("a", "b", "c"), (1.0, 0.0, None), 0.0)],
    ),
    "processbench without error": (
        "processbench",
        {"problem": "p", "steps": ["a", "b"], "label": -1, "final_answer_correct": True},
        [(("a", "b"), (1.0, 1.0), 1.0)],
    ),
    "prmbench": (
        "prmbench",
        {
            "original_question": "o",
            "modified_question": "m",
            "modified_process": ["1. a", "2. b", "3. c"],
            "error_steps": [1, 3],
        },
        [(("1. a", "2. b", "3. c"), (0.0, 1.0, 0.0), None)],
    ),
}


@pytest.mark.parametrize(("name", "row", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_becomes_solutions(
    name: str, row: dict[str, Any], expected: list[tuple[tuple[str, ...], tuple[Label, ...], Label]]
) -> None:
    found = parse_steps([row])
    assert found.format == name
    assert not found.bad
    assert [(item.steps, item.labels, item.outcome) for item in found.examples] == expected


BAD: dict[str, tuple[str, Any, str]] = {
    "no object": ("trl", [1], "it must be a JSON object"),
    "more labels than steps": ("trl", {"prompt": "p", "completions": ["a"], "labels": [True, True]}, "1 steps and 2"),
    "a label that is text": ("trl", {"prompt": "p", "completions": ["a"], "labels": ["+"]}, "label 0 is '+'"),
    "a label above 1": ("plain", {"prompt": "p", "steps": ["a"], "labels": [1.5]}, "label 0 is 1.5"),
    "a label that is not a number": ("plain", {"prompt": "p", "steps": ["a"], "labels": [float("nan")]}, "label 0"),
    "a label that no float holds": ("plain", {"prompt": "p", "steps": ["a"], "labels": [10**400]}, "label 0"),
    "a blank step": ("plain", {"prompt": "p", "steps": ["a", " \n"], "labels": [1, 1]}, "step 1 holds no text"),
    "no steps": ("plain", {"prompt": "p", "steps": [], "labels": []}, "has no steps"),
    "a prompt of several turns": (
        "trl",
        {"prompt": [{"role": "user", "content": "a"}] * 2, "completions": ["a"], "labels": [True]},
        "only one of a single user's turn",
    ),
    "a rating of 2": (
        "prm800k",
        {"question": {"problem": "p"}, "label": {"steps": [{"completions": [completion("a", 2)]}]}},
        "is rated 2",
    ),
    "a choice that is not there": (
        "prm800k",
        {
            "question": {"problem": "p"},
            "label": {"steps": [{"completions": [completion("a", 1)], "chosen_completion": 1}]},
        },
        "chose completion 1 of 1",
    ),
    "a bad problem": (
        "prm800k",
        {"question": {"problem": "p"}, "label": {"steps": [], "finish_reason": "bad_problem"}},
        "marked the problem as bad",
    ),
    "other text in the label": (
        "math_shepherd",
        {**SHEPHERD, "label": SHEPHERD["label"].replace("1+1", "1+2")},
        "differs",
    ),
    "no sign at a tag": ("math_shepherd", {**SHEPHERD, "label": SHEPHERD["label"].replace(" -", " ки")}, "'+' or '-'"),
    "a tag in the problem": (
        "math_shepherd",
        {"input": f"ки {SHEPHERD['input']}", "label": f"+ {SHEPHERD['label']}"},
        "'Step 1:'",
    ),
    "no first step": ("math_shepherd", {"input": "Two? 1+1. ки", "label": "Two? 1+1. +"}, "'Step 1:'"),
    "text behind the last tag": (
        "math_shepherd",
        {"input": f"{SHEPHERD['input']} so", "label": f"{SHEPHERD['label']} so"},
        "behind the last step's tag",
    ),
    "a prefix of another problem": (
        "omega_flat",
        {"question": "q", "reasoning_steps": [{"solution_prefix": "z a", "mc_value": 1}]},
        "does not begin with the problem",
    ),
    "a share above 1": (
        "omega_tree",
        {"question": "q", "reasoning_steps": {**TREE["reasoning_steps"], "mc_value": 16}},
        "16",
    ),
    "no share": ("omega_flat", {"question": "q", "reasoning_steps": [{"solution_prefix": "q a"}]}, "'mc_value'"),
    "two steps without a sign": (
        "rlhflow",
        {"conversations": [CONVERSATION["conversations"][0], *CONVERSATION["conversations"]]},
        "by turns",
    ),
    "a sign that is none": (
        "rlhflow",
        {"conversations": [CONVERSATION["conversations"][0], {"role": "assistant", "content": "good"}]},
        "'+' or '-'",
    ),
    "an error behind the last step": ("processbench", {"problem": "p", "steps": ["a"], "label": 1}, "at step 1"),
    "an error that is not a place": ("processbench", {"problem": "p", "steps": ["a"], "label": True}, "whole number"),
    "an error step 0": (
        "prmbench",
        {"original_question": "o", "modified_question": "m", "modified_process": ["a"], "error_steps": [0]},
        "counted from 1",
    ),
}


@pytest.mark.parametrize(("name", "row", "problem"), BAD.values(), ids=BAD)
def test_a_bad_row_is_counted_and_named(name: str, row: Any, problem: str) -> None:
    found = parse_steps([row, row], format=name)
    assert (found.examples, found.rows, sum(found.bad.values())) == ((), 2, 2)
    assert len(found.bad) == 1
    assert problem in found.first_bad[0]
    assert found.first_bad[1].startswith("row 2: ")


JUNK: tuple[Any, ...] = (None, 3, True, float("nan"), "x", "", [], {}, [1], [None], [{}], {"text": 1}, [[]])


def spoiled(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced by junk, one at a time."""
    yield from JUNK
    if isinstance(value, dict):
        for key, part in value.items():
            for worse in spoiled(part):
                yield {**value, key: worse}
    elif isinstance(value, list):
        for at, part in enumerate(value):
            for worse in spoiled(part):
                yield [*value[:at], worse, *value[at + 1 :]]


@pytest.mark.parametrize(("name", "row", "expected"), ROWS.values(), ids=ROWS)
def test_no_row_stops_a_file(name: str, row: dict[str, Any], expected: list[Any]) -> None:
    rows = [*spoiled(row), row]
    found = parse_steps(rows, format=name)
    assert found.rows == len(rows)
    assert sum(found.bad.values()) > 0
    assert parse_steps(rows).rows == len(rows)
    assert [(item.steps, item.labels) for item in found.examples[-len(expected) :]] == [
        (steps, labels) for steps, labels, _ in expected
    ]


def test_a_deep_tree_is_a_bad_row_and_no_crash() -> None:
    node: dict[str, Any] = {"text": "leaf", "mc_value": 1, "children": []}
    for _ in range(600):
        node = {"text": "s", "mc_value": 1, "children": [node]}
    found = parse_steps([{"question": "q", "reasoning_steps": node}])
    assert found.bad == {"the tree is deeper than * steps": 1}


NEUTRAL: dict[str, tuple[Any, Label]] = {"good": ("good", 1.0), "masked": ("masked", None), "bad": ("bad", 0.0)}


@pytest.mark.parametrize(("neutral", "label"), NEUTRAL.values(), ids=NEUTRAL)
def test_a_neutral_rating_is_what_the_option_says(neutral: Any, label: Label) -> None:
    options = StepOptions(neutral=neutral, alternatives=False)
    (found,) = parse_steps([PRM800K], options=options).examples
    assert found.labels == (1.0, None, label, 0.0)


@pytest.mark.parametrize(("neutral", "label"), NEUTRAL.values(), ids=NEUTRAL)
def test_a_finished_solution_without_a_wrong_step_is_right(neutral: Any, label: Label) -> None:
    steps = [
        {"completions": [completion(text, rating)], "chosen_completion": 0} for text, rating in (("a", 0), ("b", 1))
    ]
    row = {"question": {"problem": "p"}, "label": {"steps": steps, "finish_reason": "solution"}}
    (found,) = parse_steps([row], options=StepOptions(neutral=neutral)).examples
    assert (found.labels, found.outcome) == ((label, 1.0), 1.0)


def test_a_neutral_rating_that_is_masked_makes_no_example_of_its_own() -> None:
    found = parse_steps([PRM800K], options=StepOptions(neutral="masked"))
    assert ("a", "b0") not in [item.steps for item in found.examples]


def test_shared_steps_count_in_each_solution_if_asked() -> None:
    found = parse_steps([TREE], options=StepOptions(shared="each"))
    assert [item.labels for item in found.examples] == [(0.25, 0.0), (0.25, 0.75)]


def test_what_follows_a_shared_error_is_masked_although_the_error_was_counted_before() -> None:
    def leaf(text: str, value: float) -> dict[str, Any]:
        return {"text": text, "mc_value": value, "children": []}

    wrong = {"text": "a", "mc_value": 0.0, "children": [leaf("b", 0.5), leaf("c", 0.5)]}
    row = {"question": "q", "reasoning_steps": {"text": "q", "mc_value": 1.0, "children": [wrong]}}
    found = parse_steps([row], options=StepOptions(after_error="masked"))
    assert [item.labels for item in found.examples] == [(0.0, None), (None, None)]


AFTER: dict[str, tuple[AfterError, float, tuple[Label, ...]]] = {
    "kept": ("kept", 0.0, (1.0, 0.3, 0.0, 1.0, None)),
    "masked": ("masked", 0.0, (1.0, 0.3, 0.0, None, None)),
    "bad": ("bad", 0.0, (1.0, 0.3, 0.0, 0.0, 0.0)),
    "masked at a threshold": ("masked", 0.5, (1.0, 0.3, None, None, None)),
}


@pytest.mark.parametrize(("how", "threshold", "expected"), AFTER.values(), ids=AFTER)
def test_labels_after_the_first_error(how: AfterError, threshold: float, expected: tuple[Label, ...]) -> None:
    assert after_first_error((1.0, 0.3, 0.0, 1.0, None), how, threshold=threshold) == expected


FIRST: dict[str, tuple[tuple[Label, ...], int | None]] = {
    "none": ((1.0, 0.5), -1),
    "the second": ((1.0, 0.0, 0.0), 1),
    "unknown before it": ((None, 0.0), None),
    "unknown behind it": ((0.0, None), 0),
    "unknown whether there is one": ((1.0, None), None),
}


@pytest.mark.parametrize(("labels", "place"), FIRST.values(), ids=FIRST)
def test_the_first_error_is_known_or_not(labels: tuple[Label, ...], place: int | None) -> None:
    assert first_error(labels) == place


def test_hard_labels_keep_what_is_unknown() -> None:
    assert hardened((0.0, 0.1, None, 1.0)) == (0.0, 1.0, None, 1.0)
    assert hardened((0.5, 0.6), threshold=0.5) == (0.0, 1.0)


def test_consensus_keeps_agreement_alone() -> None:
    mine = [
        example(0.5, 0.0, 0.5, prompt="both see the second"),
        example(0.5, 0.0, prompt="the judge sees the first"),
        example(0.5, 0.25, prompt="both see none"),
        example(None, 0.0, prompt="open"),
        example(1.0, prompt="nobody else looked"),
    ]
    judge = [
        example(1.0, 0.0, 1.0, prompt="both see the second "),
        example(0.0, 1.0, prompt="the judge sees the first"),
        example(1.0, 1.0, prompt="both see none"),
        example(1.0, 0.0, prompt="open"),
    ]
    found = consensus(mine, opinions_of(judge))
    assert [item.labels for item in found.examples] == [(1.0, 0.0, None), (1.0, 1.0)]
    assert (found.agreed, found.disagreed, found.unknown, found.unjudged) == (2, 1, 1, 1)


def test_two_opinions_on_one_solution_are_refused() -> None:
    with pytest.raises(ValueError, match="two opinions"):
        opinions_of([example(1.0, 0.0), example(0.0, 0.0)])


def test_an_error_place_that_is_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="at step 2, and there are 2"):
        error_labels(2, 2)


def test_files_of_every_kind_hold_the_same(tmp_path: Path) -> None:
    rows = [ROWS["trl"][1], {"prompt": "\u2028"}, ROWS["trl"][1]]
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    files = {
        "a.jsonl": lines.encode(),
        "b.json": json.dumps(rows).encode(),
        "c.jsonl.gz": gzip.compress(lines.encode()),
    }
    readings = []
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        readings.append(read_steps(tmp_path / name))
    assert {(len(found.examples), found.rows, sum(found.bad.values()), found.digest) for found in readings} == {
        (2, 3, 1, readings[0].digest)
    }


def test_the_digest_sees_labels_and_order() -> None:
    rows = [{"prompt": "p", "steps": ["a"], "labels": [label]} for label in (0, 1)]
    digests = {parse_steps(given).digest for given in (rows, rows[::-1], rows[:1])}
    assert len(digests) == 3


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown format": ({"format": "prm"}, "give auto or one of"),
    "another format's rows": ({"format": "prmbench"}, "no row of"),
}


@pytest.mark.parametrize(("options", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_users_mistake_is_named(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(ROWS["trl"][1]))
    with pytest.raises(ValueError, match=problem):
        read_steps(path, **options)


@pytest.mark.parametrize("option", ["kind", "neutral", "after_error", "shared", "threshold", "alternatives"])
def test_an_option_out_of_range_is_named(option: str) -> None:
    with pytest.raises(ValueError, match=f"step option {option}="):
        StepOptions(**{option: 7})  # type: ignore[arg-type]


PUBLISHED: dict[str, tuple[str, str, int, int, int]] = {
    # The rows of PRMBench that cannot be used name error steps behind the last step (50), or hold an empty one (2).
    "prmbench": ("prmbench/prmbench.jsonl.gz", "prmbench", 3108, 3056, 52),
    "processbench gsm8k": ("processbench/gsm8k.json", "processbench", 400, 400, 0),
    "processbench math": ("processbench/math.json", "processbench", 1000, 1000, 0),
    "prm800k": ("step_formats/samples_prm800k.jsonl", "prm800k", 6, 36, 0),
    "math_shepherd": ("step_formats/samples_math-shepherd.jsonl", "math_shepherd", 7, 7, 0),
    "omega_flat": ("step_formats/samples_math-aps.jsonl", "omega_flat", 3, 124, 0),
    "omega_tree": ("step_formats/samples_math-aps-tree.jsonl", "omega_tree", 3, 242, 0),
}


@needs_data
@pytest.mark.parametrize(("file", "name", "rows", "examples", "bad"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_files_are_read(file: str, name: str, rows: int, examples: int, bad: int) -> None:
    found = read_steps(Path(DATA) / file)
    assert (found.format, found.rows, len(found.examples), sum(found.bad.values())) == (name, rows, examples, bad)


@needs_data
def test_processbench_errors_are_where_the_file_says() -> None:
    path = Path(DATA) / "processbench/gsm8k.json"
    labels = [row["label"] for row in json.loads(path.read_text())]
    assert [first_error(item.labels) for item in read_steps(path).examples] == labels
