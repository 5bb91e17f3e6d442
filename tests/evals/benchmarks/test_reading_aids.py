"""What helps a reader of the numbers: baselines beside them, notes, and the worst cases with their texts."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.evals.benchmarks.toys import HOME, Numbers, rows, run, write

from adjudge.evals.benchmarks.benchmark import BenchmarkConfig
from adjudge.evals.benchmarks.case import Case, Given, Outcome, OutcomeMaker
from adjudge.evals.benchmarks.run import Worst, baseline_notes
from adjudge.evals.benchmarks.table import BENCHMARKS
from adjudge.evals.reports.result import Measure, cut
from adjudge.protocol import Sample
from adjudge.statistics.intervals import Draws, Interval


def test_baselines_are_beside_every_number(tmp_path: Path) -> None:
    made = rows()
    result = run(write(tmp_path / "in.jsonl", made), scorer="stored")
    for part in ("", "low", "high", "even"):
        (measure,) = [one for one in result.measures if one.part == part]
        some = [row for row in made if part in ("", row["part"])]
        right = 0.0
        for row in some:
            first, second = map(len, row["responses"])
            right += 0.5 if first == second else float((first > second) == (row["better"] == 0))
        assert measure.baselines["longer"] == pytest.approx(right / len(some))
        firsts = sum(row["better"] == 0 for row in some) / len(some)
        assert measure.baselines["first"] == pytest.approx(firsts)
        assert measure.baselines["last"] == pytest.approx(1 - firsts)
        assert set(measure.baselines) == {"longer", "shorter", "more_steps", "fewer_steps", "first", "last", "random"}


def test_numbers_that_are_neither_good_nor_bad_have_no_baselines(tmp_path: Path) -> None:
    class Sizes(Numbers):
        def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
            (first, *_) = super().measures(outcomes, draws)
            return [first, replace(first, name="ties", better="none")]

    good, neither = run(write(tmp_path / "in.jsonl", rows()), Sizes(), scorer="stored").measures
    assert (bool(good.baselines), neither.baselines) == (True, {})


def measure(value: float | None, low: float | None, high: float | None, better: str = "high", **of: float) -> Measure:
    return Measure(name="m", interval=Interval(value=value, low=low, high=high, n=9), better=better, baselines=of)


@pytest.mark.parametrize(
    ("one", "named"),
    [
        (measure(0.6, 0.5, 0.7, longer=0.55, first=0.45), ["longer 0.550"]),
        (measure(0.6, 0.5, 0.7, longer=0.9), ["longer 0.900"]),
        (measure(0.6, None, None, longer=0.6, first=0.59), ["longer 0.600"]),
        (measure(0.3, 0.2, 0.4, "low", longer=0.39, first=0.41), ["longer 0.390"]),
        (measure(None, None, None, longer=0.5), ["longer 0.500"]),
        (measure(0.6, 0.5, 0.7, longer=0.4), []),
        (measure(0.6, 0.5, 0.7, "none", longer=0.9), []),
    ],
)
def test_a_trivial_scorer_that_does_as_well_is_named(one: Measure, named: list[str]) -> None:
    notes = baseline_notes([one])
    assert len(notes) == len(named)
    assert all(note.endswith(f": {name}") for note, name in zip(notes, named, strict=True))


def test_many_parts_are_not_all_named() -> None:
    notes = baseline_notes([measure(0.5, 0.4, 0.6, longer=0.9)] * 11)
    assert len(notes) == 9
    assert notes[-1] == "and so it is in 3 further parts"
    assert baseline_notes([]) == []


def pair(first: str, second: str, better: int = 0, **more: Any) -> dict[str, Any]:
    return {"prompt": "p", "responses": [first, second], "better": better, **more}


def test_the_worst_cases_come_first_and_stay_few(tmp_path: Path) -> None:
    made = [pair(str(100 - gap), "100", part="x") for gap in range(1, 60)]
    made += [pair("9", "8"), pair("fail", "1"), pair("1", "abstain")]
    result = run(write(tmp_path / "in.jsonl", made), scorer=f"{HOME}:Reader", worst=8)
    assert [case.id for case in result.worst] == ["58", "57", "56", "55", "54", "53", "60", "61"]
    worst = result.worst[0]
    assert (worst.verdict, worst.part, worst.gold, worst.weight) == ("wrong", "x", "number 0", 60.0)
    assert [(one.text, one.said, one.value, one.note) for one in worst.responses] == [
        ("41", "41", 41.0, "better"),
        ("100", "100", 100.0, ""),
    ]
    assert result.worst[-2].responses[0].said == "failed (engine_error)"
    assert run(str(tmp_path / "in.jsonl"), scorer=f"{HOME}:Reader", worst=0).worst == ()


def test_unjudged_cases_fill_the_places_that_are_left(tmp_path: Path) -> None:
    made = [pair("1", "2"), *[pair("fail", "1")] * 9]
    result = run(write(tmp_path / "in.jsonl", made), scorer=f"{HOME}:Reader", worst=4)
    assert [case.verdict for case in result.worst] == ["wrong", "failed", "failed", "failed"]


def test_long_texts_are_cut_in_the_middle(tmp_path: Path) -> None:
    long = "1 " + "x" * 100_000 + " end"
    turns = [{"role": "user", "content": "hello"}, {"role": "user", "content": [{"text": "there"}]}]
    made = [{**pair(long, "2"), "prompt": turns}]
    (case,) = run(write(tmp_path / "in.jsonl", made), scorer=f"{HOME}:Reader").worst
    assert case.prompt == "user: hello\n\nuser: there"
    shown = case.responses[0].text
    assert len(shown) < 4_100
    assert shown.startswith("1 xxx")
    assert shown.endswith("x end")
    assert f"[... {len(long) - 2666 - 1333} characters ...]" in shown
    assert cut("short") == "short"


def test_no_more_texts_are_kept_than_are_shown(tmp_path: Path) -> None:
    keeper, maker = Worst(Numbers(), 3), OutcomeMaker()
    for index in range(500):
        case = Case(id=str(index), samples=(Sample(prompt="p", response="a"), Sample(prompt="p", response="b")), gold=0)
        given = [Given(0.0, "scored"), Given(float(index), "scored")]
        keeper.look(case, maker.outcome(case, given, [(1, 1), (1, 1)], False), given)
    assert len(keeper._wrong) == 3
    assert [case.id for case in keeper.cases()] == ["499", "498", "497"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "neither is given; give --scorer SPEC"),
        ({"scorer": "a", "scores": "b"}, "both are given"),
        ({"scorer": "a", "scores_of": "x"}, "there is no file of scores"),
        (
            {"samples": "s.jsonl", "scorer": "a", "against_input": "b"},
            "nothing is scored; drop --scorer, --against-input",
        ),
        ({"scorer": "a", "batch_size": 0}, "batch_size=0; it must be a whole number, at least 1"),
        ({"scorer": "a", "in_flight": 0}, "in_flight=0"),
        ({"scorer": "a", "compare": "maybe"}, "compare='maybe'; it must be one of auto, yes, no"),
        ({"scorer": "a", "limit": -1}, "limit=-1"),
        ({"scorer": "a", "resamples": 1}, "resamples=1; give 0 for no bounds"),
        ({"scorer": "a", "level": 1.5}, r"level=1\.5"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BenchmarkConfig(**options)


def test_the_table_names_benchmarks_by_their_names(root: Path) -> None:
    for name, entry in BENCHMARKS.items():
        module = entry.home.partition(":")[0].removeprefix("adjudge.").replace(".", "/")
        if not (root / f"{module}.py").is_file():
            continue  # a benchmark that is not here yet
        benchmark = pkgutil.resolve_name(entry.home)
        assert benchmark.name == name
        assert benchmark.title
        assert benchmark.columns


def test_equal_parts_of_outcomes_are_one_object() -> None:
    maker = OutcomeMaker()
    samples = (Sample(prompt="p", response="a"), Sample(prompt="p", response="b"))
    golds: list[Any] = [{"better": 0}, {"better": 0}, {"better": 1}, [True], [1], "x" * 300, ["x" * 300], ["x" * 300]]
    made = [
        maker.outcome(
            Case(id=str(place), samples=samples, gold=gold),
            [Given(1.0, "scored"), Given(0.0, "scored")],
            [(1, 1), (1, 1)],
            False,
        )
        for place, gold in enumerate(golds)
    ]
    assert [one.gold for one in made] == golds
    assert made[3].gold[0] is True
    assert made[0].gold is made[1].gold
    assert made[0].statuses is made[5].statuses
    assert made[6].gold is not made[7].gold
