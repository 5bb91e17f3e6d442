"""Scorers, stored scores and files of scores on one benchmark: the same numbers, the same counts, and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.evals.benchmarks import toys
from tests.evals.benchmarks.toys import CALLS, HOME, Numbers, numbers_of, rows, run, write

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.evals.benchmarks.benchmark import BenchmarkConfig
from adjudge.evals.benchmarks.run import run_benchmark
from adjudge.evals.reports.result import Result
from adjudge.io.errors import JobError, JobStopped
from adjudge.protocol import Cost
from adjudge.runtime.contract import BrokenScorer

READER = f"{HOME}:Reader"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    CALLS.clear()
    toys.Dying.judged = 0
    yield
    CALLS.clear()


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "pairs.jsonl", rows())


def credits(made: list[dict[str, Any]]) -> list[float]:
    """What the larger number earns, the slow plain way."""
    found = []
    for row in made:
        first, second = row["stored"]
        found.append(0.5 if first == second else float((first > second) == (row["better"] == 0)))
    return found


def without_voice(result: Result) -> dict[str, Any]:
    data = result.to_dict()
    for name in ("scorer", "seconds", "cost", "worst"):
        del data[name]
    return data


def test_a_scorer_on_a_benchmark(source: str) -> None:
    result = run(source, scorer=READER)
    expected = credits(rows())
    found = numbers_of(result)
    assert found["accuracy", ""] == pytest.approx(sum(expected) / 40)
    for place, part in enumerate(("low", "high", "even")):
        some = expected[place::3]
        assert found["accuracy", part] == pytest.approx(sum(some) / len(some))
    assert (result.kind, result.title, result.scorer["name"]) == ("numbers", "Numbers", "reader")
    assert result.scorer["fingerprint"] == "reader:1"
    assert (result.counts.cases, result.counts.samples, result.counts.scored) == (40, 80, 80)
    assert result.source["rows"] == 40
    assert result.source["name"] == source
    assert result.options["seed"] == 0
    assert result.cost == Cost(seconds=40.0, prompt_tokens=240, completion_tokens=80)
    assert not result.found


def test_stored_scores_label_output_and_the_scorer_itself_say_the_same(source: str, tmp_path: Path) -> None:
    scored = run(source, scorer=READER)
    stored = run(source, scorer="stored")
    samples = tmp_path / "samples.jsonl"
    written = run(source, samples=str(samples))
    assert (written.counts.cases, written.counts.samples) == (40, 80)
    whole = without_voice(scored)
    assert without_voice(stored) == whole
    for ending in ("jsonl", "jsonl.gz", "parquet"):
        output = tmp_path / f"scores.{ending}"
        run_label(LabelConfig(input=str(samples), output=str(output), scorer=READER))
        labelled = run(source, scores=str(output))
        assert without_voice(labelled) == whole
        assert labelled.scorer["name"] == "reader"
        assert labelled.scorer["fingerprint"] == "reader:1"


def test_no_number_depends_on_batches(source: str) -> None:
    whole = without_voice(run(source, scorer=READER))
    for size, at_once in ((1, 1), (7, 3), (1000, 9)):
        assert without_voice(run(source, scorer=READER, batch_size=size, in_flight=at_once)) == whole


def test_a_group_scorer_sees_whole_cases_in_every_batch_size(source: str) -> None:
    whole = numbers_of(run(source, scorer=READER))
    for size in (1, 3, 64):
        assert numbers_of(run(source, scorer=f"{HOME}:Ranks", batch_size=size)) == whole


def test_what_is_no_number_is_counted_and_never_right(tmp_path: Path) -> None:
    lines = [
        {"prompt": "p", "responses": ["2", "1"], "better": 0},
        {"prompt": "p", "responses": ["fail", "1"], "better": 1},
        {"prompt": "p", "responses": ["3", "abstain"], "better": 0},
        {"prompt": "p", "responses": ["1", "1"], "better": 0},
        {"prompt": "p", "responses": ["cut", "0"], "better": 0},
        {"prompt": "p", "responses": ["5", "6"], "better": 1, "finish": ["length", "stop"]},
    ]
    result = run(write(tmp_path / "in.jsonl", lines), scorer=READER)
    counts = result.counts
    assert numbers_of(result)["accuracy", ""] == pytest.approx(3.5 / 6)
    assert (counts.scored, counts.abstained, counts.failed) == (10, 1, 1)
    assert (counts.cut_off, counts.tied) == (2, 1)
    assert counts.reasons == {"engine_error": 1, "low_confidence": 1}
    assert result.found, "a sample that could not be judged is in the exit code"
    assert result.to_dict()["found"]
    assert [(case.verdict, case.id) for case in result.worst] == [
        ("tied", "3"),
        ("failed", "1"),
        ("abstained", "2"),
    ]


def test_rows_that_are_no_cases_are_counted_and_named(tmp_path: Path) -> None:
    lines: list[Any] = [
        {"prompt": "p", "responses": ["2", "1"], "better": 0},
        "{ broken",
        {"prompt": "p", "responses": ["2", "1"], "better": "first"},
        {"responses": ["2", "1"]},
        {"prompt": "p", "responses": 7, "better": 0},
        {"skip": True},
        "[1]",
        {"prompt": "p", "responses": ["1", "2"], "better": 0},
    ]
    result = run(write(tmp_path / "in.jsonl", lines), scorer=READER)
    assert (result.counts.cases, result.counts.unreadable, result.source["rows"]) == (2, 5, 8)
    skipped, unreadable = result.notes[:2]
    assert skipped == "1 rows are not part of the benchmark"
    for said in ("row 1 (line 2)", "row 2 (line 3): better is 'first'", "row 3 (line 4): KeyError", "row 4", "row 6"):
        assert said in unreadable


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=8), some, max_size=3),
    max_leaves=6,
)
FIELDS = ("prompt", "responses", "better", "part", "cluster", "stored", "finish", "extra", "skip", "reference")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hostile=st.lists(st.dictionaries(st.sampled_from(FIELDS), ANY_JSON, max_size=2), max_size=4))
def test_rows_of_any_shape_stop_nothing_and_none_is_lost(tmp_path: Path, hostile: list[dict[str, Any]]) -> None:
    good = rows(1)[0]
    made = [{"id": "good", **good}, *({**good, "id": f"row {place}", **some} for place, some in enumerate(hostile))]
    result = run(write(tmp_path / "in.jsonl", made), scorer="stored", resamples=0)
    skipped = sum(int(note.split()[0]) for note in result.notes if note.endswith("not part of the benchmark"))
    assert result.counts.cases + result.counts.unreadable + skipped == len(made)
    assert result.counts.cases >= 1


def test_many_unreadable_rows_are_not_all_named(tmp_path: Path) -> None:
    lines = [*rows(2), *["{"] * 50]
    (note,) = [one for one in run(write(tmp_path / "in.jsonl", lines), scorer=READER).notes if "cannot be read" in one]
    assert note.startswith("50 rows cannot be read: row 2 (line 3)")
    assert note.endswith("; and 30 more")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "holds no cases of numbers in 0 rows; its rows hold prompt, responses"),
        ([{"skip": 1}], "holds no cases of numbers in 1 rows"),
        (["{", {"prompt": 1}], "none of the 2 rows of"),
        (
            [{"id": "x", "prompt": "p", "responses": ["2", "1"], "better": 0}] * 2,
            "two cases have the id 'x', the second one in row 1",
        ),
    ],
)
def test_inputs_that_cannot_be_evaluated(tmp_path: Path, lines: list[Any], said: str) -> None:
    source = write(tmp_path / "in.jsonl", lines)
    with pytest.raises(ValueError, match=said):
        run(source, scorer=READER)
    with pytest.raises(ValueError, match=said):
        run(source, samples=str(tmp_path / "samples.jsonl"))


def test_an_input_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file or folder"):
        run(str(tmp_path / "none.jsonl"), scorer=READER)
    with pytest.raises(ValueError, match="Numbers has no place on the hub that is known; give a file or a folder"):
        run("", scorer=READER)


def test_only_the_first_rows(source: str) -> None:
    result = run(source, scorer=READER, limit=7)
    assert (result.counts.cases, result.source["rows"], result.options["limit"]) == (7, 7, 7)
    assert sum(map(len, CALLS)) == 14


def test_a_folder_names_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("b", "a"):
        made = [{**row, "id": f"{name}{place}", "by_file": True} for place, row in enumerate(rows(4))]
        for row in made:
            del row["part"]
        write(folder / f"{name}.jsonl", made)
    result = run(str(folder), scorer=READER)
    assert [one.part for one in result.measures] == ["", "a", "b"]


def test_the_digest_tells_inputs_apart_and_not_their_places(tmp_path: Path) -> None:
    first = run(write(tmp_path / "in.jsonl", rows(4)), scorer="stored").source["digest"]
    other = tmp_path / "other"
    other.mkdir()
    assert run(write(other / "in.jsonl", rows(4)), scorer="stored").source["digest"] == first
    assert run(write(other / "in.jsonl", rows(5)), scorer="stored").source["digest"] != first


def test_a_scorer_that_judges_nothing_is_stopped_with_its_words(tmp_path: Path) -> None:
    lines = [{"prompt": "p", "responses": ["fail", "fail"], "better": 0}] * 1
    with pytest.raises(
        ValueError, match=r"'reader' could judge none of the first 2 samples: engine_error \(the engine"
    ):
        run(write(tmp_path / "in.jsonl", lines), scorer=READER)
    with pytest.raises(
        ValueError, match=r"could judge none of the first 2 samples: out_of_scope .*compares with a ref"
    ):
        run(write(tmp_path / "in.jsonl", rows(1)), scorer="exact")


def test_a_scorer_that_stops_judging_is_stopped(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows(1000))
    with pytest.raises(
        JobError, match=r"'dying' could judge none of the last \d+ samples: engine_unavailable \(gone\)"
    ):
        run(source, scorer=f"{HOME}:Dying", batch_size=100)
    assert toys.Dying.judged < 2000
    toys.Dying.judged = 0
    with pytest.raises(JobError, match="the same call goes on behind what was scored"):
        run(source, scorer=f"{HOME}:Dying", batch_size=100, output=str(tmp_path / "out"))


def test_a_scorer_that_breaks_the_protocol(source: str) -> None:
    with pytest.raises(BrokenScorer, match="'broken' returned 0 scores"):
        run(source, scorer=f"{HOME}:Broken")


def test_a_benchmark_of_steps_wants_steps(tmp_path: Path) -> None:
    class Steps(Numbers):
        name = "steps"
        wants = "steps"

    plain = write(tmp_path / "plain.jsonl", [{"prompt": "p", "responses": ["1", "2"], "better": 0}])
    with pytest.raises(ValueError, match="judges steps, and the scorer 'reader' gave none"):
        run(plain, Steps(), scorer=READER)
    stepped = write(tmp_path / "steps.jsonl", [{"prompt": "p", "responses": ["steps", "2"], "better": 0}])
    assert run(stepped, Steps(), scorer=READER).counts.cases == 1


def test_stored_scores_where_there_are_none(tmp_path: Path) -> None:
    lines = [{key: value for key, value in row.items() if key != "stored"} for row in rows(3)]
    source = write(tmp_path / "in.jsonl", lines)
    with pytest.raises(ValueError, match="the input stores no score, and numbers was asked for stored ones"):
        run(source, scorer="stored")
    some = write(tmp_path / "some.jsonl", [*rows(1), *lines[1:]])
    result = run(some, scorer="stored")
    assert (result.counts.failed, result.counts.reasons) == (4, {"no_verdict": 4})
    assert not result.found, "what a file lacks is a fact about the file; nobody was asked"


def test_a_file_of_scores_without_any(source: str, tmp_path: Path) -> None:
    names = [f"{index}/{place}" for index in range(40) for place in range(2)]
    lines: list[dict[str, Any]] = [{"id": name, "value": None} for name in names]
    with pytest.raises(ValueError, match=r"scores\.jsonl holds no score that is a number"):
        run(source, scores=write(tmp_path / "scores.jsonl", lines))
    lines[0]["value"] = 1.0
    result = run(source, scores=write(tmp_path / "some.jsonl", lines))
    assert (result.counts.scored, result.counts.failed, result.found) == (1, 79, False)


def test_stored_numbers_that_are_none(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"prompt":"p","responses":["1","2"],"better":0,"stored":[NaN,1]}\n'
        '{"prompt":"p","responses":["1","2"],"better":0,"stored":[1e999,null]}\n'
        '{"prompt":"p","responses":["1","2"],"better":0,"stored":[2,1]}\n'
        f'{{"prompt":"p","responses":["1","2"],"better":0,"stored":[{"9" * 400},1]}}\n'
    )
    result = run(str(source), scorer="stored")
    assert result.counts.reasons == {"not_finite": 3, "no_verdict": 1}
    assert numbers_of(result)["accuracy", ""] == pytest.approx(1 / 4)


def test_it_works_inside_a_running_loop(source: str) -> None:
    import asyncio

    async def inside() -> Result:
        return run(source, scorer=READER)

    assert asyncio.run(inside()).counts.cases == 40


def test_progress_is_told(source: str) -> None:
    seen = []

    class Watcher:
        def note(self, text: str) -> None:
            raise AssertionError(text)

        def update(self, snapshot: Any) -> None:
            seen.append((snapshot.rows, snapshot.made, snapshot.fraction))

    run_benchmark(BenchmarkConfig(input=source, scorer=READER, batch_size=10), Numbers(), progress=Watcher())
    assert seen[-1] == (40, 80, 1.0)
    assert seen == sorted(seen)


def test_ctrl_c_says_what_is_kept(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(toys.Reader, "one", stop)
    with pytest.raises(JobStopped, match="make the same call again to go on"):
        run(source, scorer=READER, output=str(tmp_path / "out"))
    with pytest.raises(JobStopped, match="nothing was kept"):
        run(source, scorer=READER)


PROGRAM = """
import json, sys
from tests.evals.benchmarks.toys import CALLS, Numbers, numbers_of, run
result = run(sys.argv[1], scorer=sys.argv[2], output=sys.argv[3], batch_size=10, in_flight=1)
print(json.dumps([list(numbers_of(result).values()), sum(map(len, CALLS))]))
"""


@pytest.mark.parametrize("calls", [0, 1, 5])
def test_a_run_that_was_killed_goes_on(source: str, tmp_path: Path, root: Path, calls: int) -> None:
    words = [sys.executable, "-c", PROGRAM, source, f"{HOME}:Deadly", str(tmp_path / "out")]
    killed = subprocess.run(words, cwd=root, capture_output=True, check=False, env=_environment(TOY_CALLS=str(calls)))
    assert killed.returncode == -9
    again = subprocess.run(words, cwd=root, capture_output=True, check=True, env=_environment())
    values, asked = json.loads(again.stdout)
    whole = run(source, scorer=READER)
    assert values == list(numbers_of(whole).values())
    assert asked == 80 - 10 * calls, "what was scored before is not asked about again"


def test_scores_of_groups_are_kept_too(source: str, tmp_path: Path) -> None:
    first = run(source, scorer=f"{HOME}:Ranks", output=str(tmp_path / "out"))
    assert sum(map(len, CALLS)) == 80
    again = run(source, scorer=f"{HOME}:Ranks", output=str(tmp_path / "out"), batch_size=3)
    assert sum(map(len, CALLS)) == 80
    assert without_voice(again) == without_voice(first)


def _environment(**more: str) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join((".", "src")), **more}
