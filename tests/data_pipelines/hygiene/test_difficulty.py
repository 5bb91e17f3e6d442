"""Pass rates by prompt, from labelled rows and plain ones."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_pipelines.hygiene.row_files import read, write

from adjudge import wire
from adjudge.data_pipelines.hygiene.config import DifficultyConfig
from adjudge.data_pipelines.hygiene.difficulty import band, run_difficulty
from adjudge.data_pipelines.hygiene.rows import PromptScores
from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.io.jobs.report import JobReport
from adjudge.io.values import number_of


def labelled(prompt: str, value: float | None, status: str = "scored") -> dict[str, Any]:
    return {"group": "", "value": value, "status": status, "input": {"question": prompt}}


ROWS = [
    *(labelled("half", value) for value in (1.0, 0.0, 1.0, 0.0)),
    *(labelled("always", 1.0) for _ in range(4)),
    labelled("few", 1.0),
    *(labelled("never", 0.0) for _ in range(4)),
    *(labelled("few", None, status) for status in ("failed", "abstained", "failed")),
    labelled("HALF ", 1.0),
]
PAIRS = ((1.0, "scored"), (0.0, "failed"))


def run(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> tuple[list[dict[str, Any]], JobReport]:
    given = write(tmp_path / "in.jsonl", rows)
    config = DifficultyConfig(input=given, output=str(tmp_path / "out.jsonl"), overwrite=True, **options)
    report = run_difficulty(config)
    return read(tmp_path / "out.jsonl"), report


def test_every_row_of_a_prompt_gets_its_pass_rate_with_wilsons_interval(tmp_path: Path) -> None:
    rows, report = run(tmp_path, ROWS)
    assert len(rows) == len(ROWS)
    half = rows[0]
    assert (half["pass_rate"], half["pass_n"], half["difficulty"]) == (0.6, 5, "medium")
    assert half["pass_low"] == pytest.approx(0.2307, abs=1e-4)  # 3 of 5, from a table of Wilson's interval
    assert half["pass_high"] == pytest.approx(0.8824, abs=1e-4)
    assert rows[-1]["pass_rate"] == 0.6
    assert [(row["pass_rate"], row["difficulty"]) for row in rows[4:13:4]] == [
        (1.0, "solved"),
        (None, "unknown"),
        (0.0, "unsolved"),
    ]
    assert rows[8]["pass_n"] == 1
    assert report.counts == {
        "prompts_medium": 1,
        "prompts_solved": 1,
        "prompts_unknown": 1,
        "prompts_unsolved": 1,
        "unknown_scores": 3,
    }


def test_a_range_leaves_out_what_lies_outside_and_what_nobody_knows(tmp_path: Path) -> None:
    rows, report = run(tmp_path, ROWS, lowest=0.1, highest=0.9)
    assert {row["input"]["question"].strip().lower() for row in rows} == {"half"}
    assert report.dropped == {"too_easy": 4, "too_few_scores": 4, "too_hard": 4}


def test_one_row_for_each_prompt(tmp_path: Path) -> None:
    rows, _ = run(tmp_path, ROWS, one_per_prompt=True)
    assert [row["input"]["question"] for row in rows] == ["half", "always", "few", "never"]


def test_lists_of_scores_plain_columns_and_thresholds(tmp_path: Path) -> None:
    rows, _ = run(
        tmp_path,
        [{"prompt": "a", "rewards": [0.9, 0.2, None, 0.7]}, {"prompt": "b", "rewards": []}],
        pass_score=0.7,
        min_scores=3,
    )
    assert [(row["pass_rate"], row["pass_n"]) for row in rows] == [(pytest.approx(2 / 3), 3), (None, 0)]


def test_a_score_that_json_has_no_word_for_is_one_unknown_score_after_each_job(tmp_path: Path) -> None:
    scores = [math.nan, 1.0, math.inf, 0.0, Decimal("1.0")]
    given: list[Any] = [wire.encode({"prompt": "a", "score": score}) for score in scores]
    given.append({"prompt": "a", "score": wire.encode([math.nan, 1.0])})
    for _ in range(2):
        given, report = run(tmp_path, given, min_scores=1)
        assert [(row["pass_rate"], row["pass_n"]) for row in given] == [(0.75, 4)] * 6
        assert report.counts["unknown_scores"] == 3
    with pytest.raises(ValueError, match="holds objects"):
        run(tmp_path, [{"prompt": "a", "score": {"$adjudge": "x"}}], score_column="score")


def test_a_number_beside_a_status_other_than_scored_has_no_vote(tmp_path: Path) -> None:
    rows, _ = run(tmp_path, [labelled("a", 1.0), labelled("a", 0.0, "failed")], min_scores=1)
    assert [(row["pass_rate"], row["pass_n"]) for row in rows] == [(1.0, 1)] * 2
    several = [{"prompt": "a", "scores": {"math": {"value": value, "status": status}}} for value, status in PAIRS]
    rows, _ = run(tmp_path, several, min_scores=1, score_column="scores.math.value")
    assert [row["pass_n"] for row in rows] == [1, 1]


def test_a_status_of_another_kind_is_none_of_a_score(tmp_path: Path) -> None:
    given = [{"prompt": "a", "value": 1.0, "status": status} for status in ("open", None, ["x"])]
    rows, _ = run(tmp_path, given, min_scores=1)
    assert [row["pass_n"] for row in rows] == [3, 3, 3]


def test_rows_without_a_prompt_are_not_one_prompt(tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [{"prompt": prompt, "score": 1} for prompt in (None, "", " ", "\n")]
    rows, _ = run(tmp_path, given, min_scores=1)
    assert [row["pass_n"] for row in rows] == [0, 0, 0, 0]


def test_groups_are_names_and_not_texts(tmp_path: Path) -> None:
    given = [{"group": group, "prompt": "x", "score": 1} for group in ("aB3", "Ab3", "aB3")]
    rows, _ = run(tmp_path, given, min_scores=1)
    assert [row["pass_n"] for row in rows] == [2, 1, 2]
    rows, _ = run(tmp_path, [{"task": row["group"], "score": 1} for row in given], min_scores=1, group_column="task")
    assert [row["pass_n"] for row in rows] == [2, 1, 2]


def turns(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": text, **more} for role, text in zip(("user", "assistant"), texts, strict=False)]


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        ([{"instruction": "Add.", "input": text} for text in ("1+1", "1+2", "1+1 ")], [2, 1, 2]),
        ([{"prompt": json.dumps(turns(text))} for text in ("x  y", "z", "X y")], [2, 1, 2]),
        ([{"prompt": "x y"}, {"prompt": turns("X  y")}, {"prompt": turns("x y", name=None)}], [3, 3, 3]),
        ([{"prompt": [{"role": "system", "content": text}, *turns("x")]} for text in ("a", "b", "a")], [2, 1, 2]),
        ([{"messages": turns(asked, said)} for asked, said in (("x", "1"), ("y", "2"), ("x", "3"))], [2, 1, 2]),
        ([{"prompt": turns(asked, said)} for asked, said in (("x", "1"), ("x", "2"), ("x", "1"))], [2, 1, 2]),
        ([{"question": "x"}, {"problem": "x"}, {"problem": "y"}], [2, 2, 1]),
        ([{"group": "algebra", "prompt": text} for text in ("x", "y", "x")], [2, 1, 2]),
        ([{"group": group, "prompt": "x"} for group in ("g", "h", "g")], [2, 1, 2]),
        ([{"group": "g", "prompt_hash": text} for text in ("x", "y", "x")], [2, 1, 2]),
    ],
)
def test_rows_of_one_prompt_are_known_in_each_layout(
    rows: list[dict[str, Any]], numbers: list[int], tmp_path: Path
) -> None:
    found, _ = run(tmp_path, [{**row, "score": 1} for row in rows], min_scores=1)
    assert [row["pass_n"] for row in found] == numbers


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("ids", [{}, {"id": 7}])
def test_groups_of_one_name_in_several_inputs_and_outputs_are_several_prompts(
    keep: bool, ids: dict[str, Any], tmp_path: Path
) -> None:
    files = [
        write(tmp_path / f"{name}.jsonl", [{**ids, "prompt": prompt, "answer": "1", "responses": ["1", said] * 2}])
        for name, prompt, said in (("a", "one", "1"), ("b", "two", "2"))
    ]
    outputs: list[str] = []
    for rows in (*files, ",".join(files)):
        outputs.append(str(tmp_path / f"labels{len(outputs)}.jsonl"))
        run_label(LabelConfig(input=rows, output=outputs[-1], scorer="exact", keep_columns=keep, workers=1))
    for labels in (",".join(outputs[:2]), outputs[2]):
        config = DifficultyConfig(input=labels, output=str(tmp_path / "out.jsonl"), overwrite=True)
        run_difficulty(config)
        assert [(row["pass_rate"], row["pass_n"]) for row in read(config.output)] == [(1.0, 4)] * 4 + [(0.5, 4)] * 4


def test_the_output_of_a_label_job_needs_no_conversion(tmp_path: Path) -> None:
    tasks = [{"question": f"1+{n % 3}", "response": str(1 + n % 4), "answer": str(1 + n % 3)} for n in range(24)]
    given = write(tmp_path / "tasks.jsonl", tasks)
    labels = str(tmp_path / "labels.jsonl")
    run_label(LabelConfig(input=given, output=labels, scorer="exact", keep_columns=True, workers=1))
    config = DifficultyConfig(input=labels, output=str(tmp_path / "out.jsonl"))
    run_difficulty(config)
    rows = read(config.output)
    assert {row["pass_rate"] for row in rows} == {0.25}
    assert {row["pass_n"] for row in rows} == {8}


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.none() | st.sampled_from([0.0, 0.5, 1.0]), max_size=3)), max_size=20
    ),
    st.randoms(use_true_random=False),
)
def test_statistics_do_not_depend_on_the_order_of_rows(
    rows: list[tuple[int, list[float | None]]], draw: random.Random
) -> None:
    found = PromptScores.of((at, key, scores) for at, (key, scores) in enumerate(rows))
    shuffled = draw.sample(rows, len(rows))
    again = PromptScores.of((at, key, scores) for at, (key, scores) in enumerate(shuffled))
    for key, place in found.places.items():
        values = [score for each, scores in rows if each == key for score in scores if score is not None]
        assert found.counts()[place] == again.counts()[again.places[key]] == len(values)
        spread = found.deviations()[place]
        assert spread == pytest.approx(again.deviations()[again.places[key]], nan_ok=True)
        if len(values) < 2:
            assert spread != spread  # unknown
        else:
            mean = sum(values) / len(values)
            assert spread == pytest.approx((sum((x - mean) ** 2 for x in values) / (len(values) - 1)) ** 0.5)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((1, 1.0), (True, 1.0), ("0.5", 0.5), ("False", 0.0), ("nan", None), (float("inf"), None), (10**400, None)),
        *((1e300, 1e300), (-1e301, None), (Decimal("1.0"), 1.0), (Decimal("sNaN"), None), (Decimal("Infinity"), None)),
        *(({"value": 0.5}, 0.5), ({"value": 0.5, "status": "scored"}, 0.5), ({"value": 0.5, "status": "failed"}, None)),
        *(("", None), ("yes", None), (None, None), ([], None), ({}, None)),
    ],
)
def test_what_is_no_finite_number_is_unknown(value: object, number: float | None) -> None:
    assert number_of(value) == number


def test_bands() -> None:
    assert [band(rate) for rate in (0.0, 0.2, 1 / 3, 0.5, 2 / 3, 0.9, 1.0, None)] == [
        *("unsolved", "hard", "medium", "medium", "medium", "easy", "solved", "unknown"),
    ]


def test_mistakes_name_the_option_and_the_remedy(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", [{"prompt": "x", "scores": {"math": {"value": 1.0}}}])
    out = str(tmp_path / "out.jsonl")
    with pytest.raises(ValueError, match=r"no column looks like a score.*--score-column"):
        run_difficulty(DifficultyConfig(input=given, output=out))
    with pytest.raises(ValueError, match=r"holds objects.*scores.math.value"):
        run_difficulty(DifficultyConfig(input=given, output=out, score_column="scores.math"))
    plain = write(tmp_path / "plain.jsonl", [{"x": "x", "score": 1}])
    with pytest.raises(ValueError, match="--group-column"):
        run_difficulty(DifficultyConfig(input=plain, output=out))


@pytest.mark.parametrize(
    ("options", "said"), [({"lowest": 0.9, "highest": 0.1}, "--highest"), ({"min_scores": 0}, "--min-scores")]
)
def test_options_out_of_range_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DifficultyConfig(input="x", output="y", **options)
