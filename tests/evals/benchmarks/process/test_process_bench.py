"""ProcessBench as a benchmark: against the plain metric, with real rows, and with scorers that cut elsewhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evals.benchmarks.judging.made import cases, numbers, outcomes, run, written
from tests.evals.benchmarks.preferences.conftest import outcome_of

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import MISMATCH
from adjudge.evals.benchmarks.process_bench import (
    ProcessBench,
    best_threshold,
    first_errors,
    prediction_of,
    processbench_f1,
)
from adjudge.protocol import Sample, Score, StepScore, response_text
from adjudge.responses.steps import given_steps, split_steps
from adjudge.statistics.intervals import NO_DRAWS


class Steps:
    """Values every step by the digit in it; cuts as it is told, and says where if it is told to."""

    fingerprint = "steps:1"

    def __init__(self, cut: str = "given", places: bool = True) -> None:
        self.cut = cut
        self.places = places
        self.name = f"steps_{cut}"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the least digit, in tenths, and those of the steps."""
        return [self._score(sample) for sample in samples]

    def _score(self, sample: Sample) -> Score:
        text = response_text(sample)
        own = given_steps(text, sample.extra["steps"]) if self.cut == "given" else split_steps(text, "line")
        assert own is not None
        values = [int(next(filter(str.isdigit, step.text), "9")) / 10 for step in own]
        found = [
            StepScore(value=value, start=step.start * self.places, end=step.end * self.places)
            for value, step in zip(values, own, strict=True)
        ]
        return Score(value=min(values), steps=tuple(found))


def by_line() -> Steps:
    """One that does not look at the given steps."""
    return Steps("line")


def placeless() -> Steps:
    """One that does not say where its steps are."""
    return Steps(places=False)


def row(name: str, label: int, steps: Sequence[str] = ("9", "9", "9"), **more: Any) -> dict[str, Any]:
    return {"id": name, "problem": f"of {name}", "steps": list(steps), "label": label, **more}


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["gsm8k", "math"]),
        st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=1, max_size=4),
        st.integers(-1, 3),
        st.booleans(),
    ).map(lambda one: (one[0], one[1], min(one[2], len(one[1]) - 1), one[3])),
    min_size=1,
    max_size=25,
)


@given(ROWS)
def test_numbers_equal_the_plain_metric(rows: list[tuple[str, list[float], int, bool]]) -> None:
    benchmark = ProcessBench(values="v")
    made = outcomes(
        benchmark,
        [
            row(f"{part}-{at}", label, ["x"] * len(values), v=values if judged else None)
            for at, (part, values, label, judged) in enumerate(rows)
        ],
    )
    found = numbers(benchmark.measures(made, NO_DRAWS))
    scores = []
    for part in dict.fromkeys(one[0] for one in rows):
        own = [one for one in rows if one[0] == part]
        guesses = first_errors([values if judged else None for _, values, _, judged in own], 0.5)
        plain = processbench_f1(guesses, [label for _, _, label, _ in own])
        scores.append(plain.f1)
        for name, value in (("F1", plain.f1), ("error accuracy", plain.error_accuracy)):
            assert found[name, part] == (None if value is None else pytest.approx(value))
        assert found["correct accuracy", part] == plain.correct_accuracy
    known = [score for score in scores if score is not None]
    expected = sum(known) / len(known) if len(known) == len(scores) else None
    assert found["mean F1", ""] == (None if expected is None else pytest.approx(expected))
    assert found["no step values", ""] == pytest.approx(sum(not one[3] for one in rows) / len(rows))
    credits = [benchmark.credit(one) for one in made]
    assert [one is None for one in credits] == [not judged for *_, judged in rows]


@pytest.mark.parametrize(("part", "rows", "clean"), [("gsm8k", 400, 193), ("math", 1000, 406)])
def test_real_rows(corpora: Any, part: str, rows: int, clean: int) -> None:
    found = corpora.whole(f"processbench/{part}.json")
    made = cases(ProcessBench(), found, f"{part}.json")
    assert (len(made), sum(case.gold["label"] == -1 for case in made)) == (rows, clean)
    assert {case.part for case in made} == {part}
    perfect = outcomes(ProcessBench(prediction="label"), found)
    table = numbers(ProcessBench().measures(perfect, NO_DRAWS))
    assert (table["mean F1", ""], table["F1", part]) == (1.0, 1.0)
    silent = ProcessBench().baselines(perfect)
    got = {name: numbers(ProcessBench().measures(some, NO_DRAWS)) for name, some in silent.items()}
    assert got["no_error"]["correct accuracy", part] == 1.0
    first = sum(one["label"] == 0 for one in found) / (rows - clean)
    assert got["first_step"]["error accuracy", part] == pytest.approx(first)
    last = sum(one["label"] == len(one["steps"]) - 1 for one in found) / (rows - clean)
    assert got["last_step"]["error accuracy", part] == pytest.approx(last)
    assert 0 < (got["random_step"]["error accuracy", part] or 0) < 0.5
    assert all(numbers["F1", part] == 0.0 for numbers in got.values())


def test_a_threshold_is_chosen_on_one_part_and_used_on_all(corpora: Any) -> None:
    rng = random.Random(0)
    rows = [one for part in ("gsm8k", "math") for one in corpora.whole(f"processbench/{part}.json")]
    rows = [{**one, "v": [1 - 0.05 * at - 0.1 * rng.random() for at in range(len(one["steps"]))]} for one in rows]
    chosen = ProcessBench(choose_on="gsm8k", values="v")
    found = numbers(chosen.measures(outcomes(chosen, rows), NO_DRAWS))
    own = [one for one in rows if one["id"].startswith("gsm8k")]
    threshold, best = best_threshold([one["v"] for one in own], [one["label"] for one in own])
    assert found["threshold chosen here", "gsm8k"] == threshold
    assert found["F1", "gsm8k"] == pytest.approx(best.f1)
    other = [one for one in rows if one["id"].startswith("math")]
    plain = processbench_f1(first_errors([one["v"] for one in other], threshold), [one["label"] for one in other])
    assert found["F1", "math"] == pytest.approx(plain.f1)
    lacking = ProcessBench(choose_on="omnimath", values="v")
    unknown = numbers(lacking.measures(outcomes(lacking, rows), NO_DRAWS))
    assert unknown["mean F1", ""] is None
    assert unknown["threshold chosen here", "omnimath"] is None


@pytest.mark.parametrize(
    ("stored", "predicted", "reason"),
    [
        (1, 1, ""),
        (-1, -1, ""),
        ("2", 2, ""),
        (0.0, 0, ""),
        (None, None, "no prediction"),
        (3, None, "predicted 3 of 3 steps"),
        (-2, None, "predicted -2 of 3 steps"),
        ("none", None, "predicted 'none' of 3 steps"),
        (True, None, "predicted True of 3 steps"),
    ],
)
def test_stored_predictions(stored: Any, predicted: int | None, reason: str) -> None:
    (case,) = cases(ProcessBench(), [row("a-1", 1, prediction=stored)])
    assert case.stored[0].reason == reason
    assert prediction_of(outcome_of(case), 0.5) == predicted


@pytest.mark.parametrize(
    ("values", "predicted"),
    [
        ([0.9, 0.2, None], 1),
        ([0.9, None, 0.2], None),
        ([0.9, 0.9, None], None),
        ([0.9, 0.9, 0.5], -1),
        ([0.9, 0.2], None),
        ([float("nan"), 0.2, 0.9], None),
        ([None, None, None], None),
        ([], None),
    ],
)
def test_a_step_that_was_not_judged_hides_what_follows(values: list[float | None], predicted: int | None) -> None:
    (case,) = cases(ProcessBench(values="v"), [row("a-1", 1, v=values)])
    assert prediction_of(outcome_of(case), 0.5) == predicted


def test_a_scorer_of_the_given_steps_is_believed(tmp_path: Path) -> None:
    rows = [row("p-1", 1, ["9 a", "1 b\n\nstill b", "9 c"]), row("p-2", -1, ["9", "8"]), row("p-3", 0, ["7", "6"])]
    path = written(tmp_path / "p.json", rows)
    for scorer in ("Steps", "placeless"):
        result = run(ProcessBench(), path, f"tests.evals.benchmarks.process.test_process_bench:{scorer}")
        found = numbers(result.measures)
        assert (found["error accuracy", "p"], found["correct accuracy", "p"]) == (0.5, 1.0)
        assert (found["other steps", ""], result.counts.failed) == (0.0, 0)


def test_a_scorer_that_cuts_elsewhere_fails_and_shifts_nothing(tmp_path: Path) -> None:
    """The first row has as many lines as steps, but other ones: counting alone would not see it."""
    rows = [
        row("p-1", 1, ["9 a\n9 b", "1 c", "9 d"]),
        row("p-2", 2, ["9 a\n1 b", "", "9 c"]),
        row("p-3", -1, ["9", "8"]),
    ]
    rows[1]["steps"][1] = "\u200b"  # nothing to see: no scorer of texts can value it
    by_lines = "tests.evals.benchmarks.process.test_process_bench:by_line"
    result = run(ProcessBench(), written(tmp_path / "p.json", rows), by_lines)
    assert result.counts.reasons == {MISMATCH: 2}
    found = numbers(result.measures)
    assert found["other steps", ""] == pytest.approx(2 / 3)
    assert (found["error accuracy", "p"], found["correct accuracy", "p"]) == (0.0, 1.0)
    assert {case.verdict for case in result.worst} == {"failed"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 3}, "'label' holds 3 for 3 steps"),
        ({"label": -2}, "'label' holds -2"),
        ({"label": None}, "the column 'label' is missing"),
        ({"steps": None}, "the column 'steps' is missing"),
        ({"steps": "1. one"}, "must be a list"),
        ({"steps": ["a", 2]}, "has the item 2"),
        ({"steps": []}, "must be a list"),
        ({"problem": 3}, "must be text"),
        ({"v": "0.5"}, "list of numbers"),
        ({"v": [0.5, "a", 1]}, "has the item 'a'"),
    ],
)
def test_rows_that_are_none_say_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProcessBench(values="v").cases({**row("a-1", 1), **change}, RowPlace(number=0))


def test_a_part_is_named_by_the_id_or_the_file() -> None:
    parts = [case.part for case in cases(ProcessBench(), [row("gsm8k-1", 0), row("free", 0)], "omnimath.jsonl.gz")]
    assert parts == ["gsm8k", "omnimath"]
    perfect = outcomes(ProcessBench(), [row("a", 0, prediction=0)])
    whole = [replace(one, part=part) for part in ("gsm8k", "math") for one in perfect]
    assert not ProcessBench().measures(whole, NO_DRAWS)[0].published


@pytest.mark.parametrize(
    ("label", "predicted", "gold", "note"),
    [
        (-1, 2, "no step is wrong, of 3 steps, counted from 0", "predicted: the first wrong step is 2"),
        (0, -1, "the first wrong step is 0, of 3 steps, counted from 0", "predicted: no step is wrong"),
        (1, None, "the first wrong step is 1, of 3 steps, counted from 0", "no prediction"),
    ],
)
def test_what_is_right_is_said_in_words(label: int, predicted: int | None, gold: str, note: str) -> None:
    (made,) = outcomes(ProcessBench(), [row("gsm8k-1", label, prediction=predicted)])
    assert ProcessBench().words(made) == (gold, (note,))
