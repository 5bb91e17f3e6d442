"""The whole job: from files to files that the trainers read as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.io.jobs.report import JobReport
from adjudge.training.data_files import parse_preferences, read_preferences
from adjudge.training.examples import Pair, Reading


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def built(folder: Path, rows: Sequence[Mapping[str, Any]], **options: Any) -> tuple[JobReport, list[dict[str, Any]]]:
    output = folder / "pairs.jsonl"
    report = build_pairs(PairsConfig(input=write(folder / "in.jsonl", rows), output=str(output), **options))
    return report, lines(output)


def sums(prompts: int, answers: int = 4) -> list[dict[str, Any]]:
    return [
        {"prompt": f"What is {n} + {n}?", "response": f"It is {2 * n + k}.", "score": float(k == 0), "id": f"{n}/{k}"}
        for n in range(prompts)
        for k in range(answers)
    ]


def test_plain_rows_become_pairs(tmp_path: Path) -> None:
    report, pairs = built(tmp_path, sums(3), rule="pass_fail", weights="prompt")
    assert (report.rows, report.made, len(pairs)) == (12, 9, 9)
    assert pairs[0] == {
        "prompt": "What is 0 + 0?",
        "chosen": "It is 0.",
        "rejected": pairs[0]["rejected"],
        "margin": 1.0,
        "weight": pytest.approx(1 / 3),
        "group": None,
        "rule": "pass_fail",
        "chosen_id": "0/0",
        "rejected_id": pairs[0]["rejected_id"],
        "chosen_score": 1.0,
        "rejected_score": 0.0,
        "chosen_first": True,
    }
    assert dict(report.counts) == {"answers": 12.0, "prompts": 3.0, "prompts_with_pairs": 3.0}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_labels_become_pairs_without_conversion_and_the_trainers_read_them(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"question": f"{n}+{n}?", "solutions": [f"\\boxed{{{2 * n}}}", f"\\boxed{{{2 * n + 1}}}"], "gold": str(2 * n)}
        for n in range(1, 5)
    ]
    labelled, output = str(tmp_path / f"labelled{suffix}"), str(tmp_path / f"pairs{suffix}")
    given = write(tmp_path / "in.jsonl", rows)
    run_label(
        LabelConfig(input=given, output=labelled, scorer="math", reference_column="gold", keep_columns=True, workers=1)
    )
    report = build_pairs(PairsConfig(input=labelled, output=output))
    assert report.made == 4
    data = read_preferences([output])
    assert not data.bad
    first = data.examples[0]
    assert isinstance(first, Pair)
    assert (first.prompt, first.chosen, first.rejected) == ("1+1?", "\\boxed{2}", "\\boxed{3}")
    assert (first.margin, first.weight, first.group) == (1.0, 1.0, "0")


def test_pairs_of_steps_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [
        {"prompt": "p", "steps": ["one", "bad"], "labels": [1.0, 0.0], "outcome": 0.0},
        {"prompt": "p", "steps": ["one", "good", "end"], "labels": [1.0, 1.0, 1.0], "outcome": 1.0},
    ]
    rows = [{**row, "values": row["labels"], "first_error": 1} for row in rows]  # as `adjudge data steps` writes them
    _, (pair,) = built(tmp_path, rows, rule="first_bad_step")
    assert (pair["prefix"], pair["step"], pair["margin"]) == ("one\n\n", 1, 1.0)
    assert pair["chosen"].startswith(pair["prefix"])
    assert pair["rejected"].startswith(pair["prefix"])
    (read,) = parse_preferences([pair], reading=Reading(columns={})).examples
    assert isinstance(read, Pair)
    assert read.margin == 1.0


def test_what_goes_on_from_a_step_that_was_left_out_is_in_no_pair(tmp_path: Path) -> None:
    failed = {"value": None, "status": "failed"}
    tree = (
        (None, "root", "", None),  # no step
        ("A", "a", "root", 0.5), ("B", "b", "root", 0.1),
        ("A1", "a1", "a", failed), ("A2", "a2", "a", 0.4), ("A3", "a3", "a", 0.3),
        ("A11", "a11", "a1", 0.9), ("A12", "a12", "a1", 0.2),  # without A1 nothing says what they go on from
    )  # fmt: skip
    rows = [dict(zip(("response", "node", "parent", "score"), row, strict=True), prompt="p") for row in tree]
    report, pairs = built(tmp_path, rows, rule="step_apo")
    assert {(pair["chosen"], pair["rejected"]) for pair in pairs} == {("A", "B"), ("A\n\nA2", "A\n\nA3")}
    assert dict(report.dropped) == {"failed": 1, "no_score": 1}


def test_scores_that_failed_in_all_first_rows_stop_nothing(tmp_path: Path) -> None:
    failed = {"value": None, "status": "failed"}
    rows = [{"prompt": "broken", "response": str(n), "score": failed} for n in range(120)]
    report, pairs = built(tmp_path, [*rows, *sums(1, answers=2)])
    assert (len(pairs), report.dropped["failed"]) == (1, 120)


def test_chats_stay_chats(tmp_path: Path) -> None:
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
    rows = [
        {"messages": prompt, "response": [{"role": "assistant", "content": text}], "score": score}
        for text, score in (("4", 1), ("5", 0))
    ]
    _, (pair,) = built(tmp_path, rows)
    assert (pair["prompt"], pair["chosen"], pair["rejected"]) == (prompt, "4", "5")


def test_train_and_test_share_no_prompt_and_are_everything(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", sums(60))
    found = {}
    for part in ("all", "train", "test"):
        output = tmp_path / f"{part}.jsonl"
        build_pairs(PairsConfig(input=given, output=str(output), part=part, test_share=0.3))
        found[part] = lines(output)
    prompts = {part: {pair["prompt"] for pair in pairs} for part, pairs in found.items()}
    assert not prompts["train"] & prompts["test"]
    assert 5 < len(prompts["test"]) < 35
    assert sorted(map(json.dumps, [*found["train"], *found["test"]])) == sorted(map(json.dumps, found["all"]))


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": "all right", "response": "a", "score": 1},
        {"prompt": "all right", "response": "b", "score": 1},
        {"prompt": "alone", "response": "a", "score": 1},
        {"prompt": "copied", "response": "a", "score": 1},
        {"prompt": "copied", "response": "a", "score": 1},
        {"prompt": "fine", "response": "a", "score": 1},
        {"prompt": "fine", "response": "b", "score": 0.9},
        {"prompt": "fine", "response": "c", "score": 0},
        {"prompt": "fine", "response": "d", "score": None},
    ]
    report, pairs = built(tmp_path, rows, rule="all_ordered", min_margin=0.5)
    assert [(pair["chosen"], pair["rejected"]) for pair in pairs] == [("a", "c"), ("b", "c")]
    assert dict(report.dropped) == {"equal_answers": 1, "no_pair": 1, "no_score": 1, "one_answer": 2, "small_margin": 1}


def test_pairs_of_both_directions_and_of_equal_texts_are_left_out(tmp_path: Path) -> None:
    agreed = {"games": 2, "pairs": 1, "consistent": 1}
    games = (("a", "b", 1), ("b", "a", 1), ("c", "d", 1), ("c", "d", 1), ("e", "e ", 1))
    rows = [
        {"prompt": "p", "response": one, "other": two, "score": score, "evidence": agreed} for one, two, score in games
    ]
    report, pairs = built(tmp_path, rows, rule="both_orders")
    assert [(pair["chosen"], pair["rejected"]) for pair in pairs] == [("c", "d")]
    assert dict(report.dropped) == {"contradictory": 2, "equal_texts": 1, "repeated": 1}


def test_the_same_call_makes_the_same_bytes_whatever_is_in_flight(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", sums(40))
    outputs = []
    for in_flight in (1, 16):
        output = tmp_path / f"{in_flight}.jsonl"
        config = PairsConfig(
            input=given, output=str(output), rule="{gap_split: {of: all_ordered}}", in_flight=in_flight, max_pairs=2
        )
        build_pairs(config)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]


def test_rows_of_one_prompt_must_stand_together(tmp_path: Path) -> None:
    rows = [sums(2)[0], sums(2)[4], sums(2)[1]]
    with pytest.raises(ValueError, match="sort the input"):
        built(tmp_path, rows)


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        ([], {}, "holds no rows"),
        ([{"prompt": "p", "response": "a", "label": "pass"}], {}, "--score-word says what the words in 'label'"),
        ([{"prompt": "p", "response": ["a", "b"], "scores": [1]}], {}, "uneven_lists: 2"),
        ([{"prompt": "p", "response": "a", "score": 1}], {"prompt_column": "promt"}, "Did you mean 'prompt'"),
    ],
)
def test_an_input_that_cannot_be_paired_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], options: dict[str, str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        built(tmp_path, rows, **options)
    assert not (tmp_path / "pairs.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rule": "best"}, "unknown rule 'best'"),
        ({"max_pairs": 0}, "--max-pairs is 0"),
        ({"max_answers": 1}, "--max-answers is 1"),
        ({"min_margin": -1.0}, "--min-margin is -1.0"),
        ({"min_margin": float("nan")}, "--min-margin is nan"),
        ({"weights": "some"}, "--weights is 'some'"),
        ({"part": "dev"}, "--part is 'dev'"),
        ({"test_share": 1.0}, "--test-share is 1.0"),
        ({"score_word": ("pass",)}, "--score-word is 'pass'"),
        ({"score_word": ("pass=high",)}, "--score-word is 'pass=high'"),
        ({"score_word": ("pass=1", "pass=0")}, "'pass' two numbers"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PairsConfig(input="in.jsonl", output="out.jsonl", **options)


def test_the_fingerprint_changes_with_whatever_changes_pairs(tmp_path: Path) -> None:
    prints = set()
    options: list[dict[str, Any]] = [
        {},
        {"rule": "all_ordered"},
        {"rule": "{all_ordered: {over: 0.1}}"},
        {"max_pairs": 1},
        {"seed": 1},
        {"weights": "prompt"},
        {"part": "train"},
        {"part": "train", "test_share": 0.2},
        {"min_margin": 0.1},
    ]
    for number, given in enumerate(options):
        folder = tmp_path / str(number)
        folder.mkdir()
        prints.add(built(folder, sums(20), **given)[0].fingerprint)
    assert len(prints) == len(options)
