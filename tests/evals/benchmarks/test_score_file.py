"""Scores that were made elsewhere come back by their ids, and whatever does not fit is said."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.evals.benchmarks.toys import HOME, numbers_of, rows, run, write

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.evals.benchmarks.reading import ScoreFile


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "pairs.jsonl", rows())


def lines() -> list[dict[str, Any]]:
    return [
        {"id": f"{index}/{place}", "value": value}
        for index, row in enumerate(rows())
        for place, value in enumerate(row["stored"])
    ]


def test_an_id_and_a_value_are_enough_in_any_order(source: str, tmp_path: Path) -> None:
    whole = numbers_of(run(source, scorer="stored"))
    shuffled = lines()
    random.Random(0).shuffle(shuffled)
    for name, some in (("plain", lines()), ("reversed", lines()[::-1]), ("shuffled", shuffled)):
        result = run(source, scores=write(tmp_path / f"{name}.jsonl", some), batch_size=7)
        assert numbers_of(result) == whole
        assert result.scorer["name"] == str(tmp_path / f"{name}.jsonl")


def test_csv_and_numbers_as_ids(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    write(file, [{"id": 7, "value": 1}, {"id": "8", "value": None, "reason": "no idea"}])
    scores = ScoreFile(str(file))
    assert scores.take("7").value == 1.0
    missing = scores.take("8")
    assert (missing.value, missing.status, missing.reason) == (None, "failed", "no idea")


def test_a_second_score_is_found_before_the_first_one_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    write(file, [{"id": "b", "value": 1}, {"id": "b", "value": 2}, {"id": "a", "value": 3}])
    with pytest.raises(ValueError, match="holds two scores for the sample 'b'; remove one"):
        ScoreFile(str(file)).take("a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda some: some[:-1], r"holds no score for the sample '39/1'"),
        (
            lambda some: [{**one, "id": f"l{one['id']}"} for one in some],
            r"no score for the sample '0/0' .*holds 'l0/0', 'l0/1'; .* or name the input's own ids with --id-column",
        ),
        (lambda some: [*some, some[3]], r"holds two scores for the sample '1/1'"),
        (lambda some: [some[5], *some], r"holds (two scores|no score) for the sample"),
        (
            lambda some: [*some, {"id": "who", "value": 1}],
            r"holds 1 scores of samples that the benchmark does not have",
        ),
        (lambda some: [{"value": 1}], r"row 0 of .* is not a score: it has no `id`; its fields are value"),
        (lambda some: [{"id": "0/0"}], r"it has no `value`"),
        (lambda some: [{"id": "0/0", "value": "high"}], r"`value` is 'high'; it must be a number"),
        (lambda some: [{"id": "0/0", "value": True}], r"`value` is True"),
        (lambda some: ['{"id": "0/0", "value": NaN}'], r"`value` is nan; it must be finite"),
        (lambda some: ['{"id": "0/0", "value": 1e999}'], r"`value` is inf"),
        (lambda some: [{"id": "0/0", "value": 9**400}], r"`value` is \d{40}; it must be finite"),
        (lambda some: [{"id": "0/0", "value": 1, "status": "failed"}], r"`status` is 'failed' with the value 1"),
        (lambda some: [{"id": "0/0", "value": None, "status": "great"}], r"`status` is 'great'"),
        (lambda some: ["{"], r"row 0 of .* cannot be read: malformed JSON"),
        (lambda some: [{"id": "0/0", "scores": {"a": {"value": 1}}}], r"it holds the scores of a; say which"),
    ],
)
def test_what_does_not_fit(source: str, tmp_path: Path, change: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(source, scores=write(tmp_path / "scores.jsonl", change(lines())))


def test_scores_of_rows_that_were_not_read_are_said(source: str, tmp_path: Path) -> None:
    scores = write(tmp_path / "scores.jsonl", lines())
    result = run(source, scores=scores, limit=10)
    assert any("60 scores of" in note and "the first one to '10/0'" in note for note in result.notes)
    broken = write(tmp_path / "broken.jsonl", [*rows()[:-1], "{"])
    assert any("2 scores of" in note for note in run(broken, scores=scores).notes)


def test_scores_by_name(source: str, tmp_path: Path) -> None:
    samples, output = tmp_path / "samples.jsonl", tmp_path / "scores.jsonl"
    run(source, samples=str(samples))
    scorers = (f"good={HOME}:Reader", f"bad={HOME}:Opposite")
    run_label(LabelConfig(input=str(samples), output=str(output), scorer=scorers))
    good, bad = (numbers_of(run(source, scores=str(output), scores_of=name)) for name in ("good", "bad"))
    assert good == numbers_of(run(source, scorer=f"{HOME}:Reader"))
    assert bad == numbers_of(run(source, scorer=f"{HOME}:Opposite"))
    with pytest.raises(ValueError, match="it holds the scores of good, bad; say which with --scores-of"):
        run(source, scores=str(output))
    with pytest.raises(ValueError, match="drop --scores-of good"):
        run(source, scores=write(tmp_path / "one.jsonl", lines()), scores_of="good")


def test_steps_cuts_and_costs_come_back(tmp_path: Path) -> None:
    write(
        tmp_path / "in.jsonl",
        [{"id": "a", "prompt": "p", "response": "steps"}, {"id": "b", "prompt": "p", "response": "cut"}],
    )
    for ending in ("jsonl", "parquet"):
        output = tmp_path / f"out.{ending}"
        run_label(LabelConfig(input=str(tmp_path / "in.jsonl"), output=str(output), scorer=f"{HOME}:Reader"))
        scores = ScoreFile(str(output))
        assert scores.take("a").steps == (0.5, None)
        assert scores.take("b").cut_off
        assert scores.check_left([], partly=True) == []


def test_samples_are_written_once_and_whole(source: str, tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    run(source, samples=str(path))
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["id"] for one in written[:4]] == ["0/0", "0/1", "1/0", "1/1"]
    assert written[0] == {
        "id": "0/0",
        "prompt": "which of pair 0?",
        "response": rows()[0]["responses"][0],
        "group": "0",
    }
    for other, said in (
        (path, "is there already"),
        (tmp_path / "samples.csv", "does not end in .jsonl"),
        (tmp_path / "no" / "samples.jsonl", "there is no folder"),
    ):
        with pytest.raises(ValueError, match=said):
            run(source, samples=str(other))


def test_samples_carry_turns_references_and_extra_columns(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "hi \u2028 \ud800"}]
    line = {
        "prompt": turns, "responses": ["one\n\ntwo", ""], "better": 0, "reference": {"answer": 1},
        "finish": ["length", None], "extra": {"steps": ["one", "two"]},
    }  # fmt: skip
    path = tmp_path / "samples.jsonl"
    run(write(tmp_path / "in.jsonl", [line]), samples=str(path))
    first, second = (json.loads(one) for one in path.read_text().splitlines())
    assert first["prompt"] == turns
    assert (first["reference"], first["finish_reason"], first["steps"]) == ({"answer": 1}, "length", ["one", "two"])
    assert second["response"] == ""
    assert "finish_reason" not in second
    clash = write(tmp_path / "clash.jsonl", [{**line, "extra": {"prompt": 1}}])
    with pytest.raises(ValueError, match="extra column 'prompt', which is the name of a field"):
        run(clash, samples=str(tmp_path / "clash_samples.jsonl"))
    assert not list(tmp_path.glob("clash_samples*"))
