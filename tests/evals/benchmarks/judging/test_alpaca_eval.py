"""AlpacaEval: the leaderboard's raw win rates, and the same numbers counted plainly on made annotations."""

from __future__ import annotations

import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evals.benchmarks.judging.made import numbers, outcomes, run, written

from adjudge.evals.benchmarks.alpaca_eval import AlpacaEval, annotations_of, fit_length_control
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.statistics.intervals import NO_DRAWS


@pytest.mark.parametrize(("model", "printed"), [("alpaca-7b", 0.025915), ("text_davinci_003", 0.019621)])
def test_raw_win_rates_are_those_of_the_leaderboard(corpora: Any, model: str, printed: float) -> None:
    path = corpora.root / "alpaca_eval" / f"weighted_annotations_{model}.jsonl.gz"
    result = run(AlpacaEval(), path, resamples=200)
    found = numbers(result.measures)
    assert found["win rate", ""] == pytest.approx(printed, abs=5e-7)
    row = corpora.table("alpaca_eval/leaderboard_weighted.csv").get(model)
    if row is not None:
        assert found["win rate", ""] == pytest.approx(float(row["win_rate"]) / 100, abs=1e-11)
        assert found["standard error", ""] == pytest.approx(float(row["standard_error"]) / 100, abs=1e-11)
        assert found["discrete win rate", ""] == pytest.approx(float(row["discrete_win_rate"]) / 100, abs=1e-11)
        for name, column in (("wins", "n_wins"), ("losses", "n_wins_base"), ("draws", "n_draws")):
            assert round(805 * (found[name, ""] or 0)) == int(float(row[column]))
    assert (result.counts.cases, result.counts.failed) == (805, 0)
    bounds = result.measures[0].interval
    assert bounds.low is not None
    assert bounds.high is not None
    assert bounds.high - bounds.low == pytest.approx(2 * 1.96 * (found["standard error", ""] or 0), rel=0.25)


def annotation(preference: float | None, number: int, **more: Any) -> dict[str, Any]:
    return {"instruction": f"{number}", "output_1": "a", "output_2": "bb", "preference": preference, **more}


PREFERENCES = st.lists(
    st.one_of(st.none(), st.just(0.0), st.just(1.5), st.floats(1, 2)), min_size=2, max_size=40
).filter(lambda found: sum(one is not None for one in found) > 1)


@given(PREFERENCES)
def test_numbers_equal_plain_counting(preferences: list[float | None]) -> None:
    made = outcomes(AlpacaEval(), [annotation(one, at) for at, one in enumerate(preferences)])
    found = numbers(AlpacaEval().measures(made, NO_DRAWS))
    shares = [0.5 if one == 0 else one - 1 for one in preferences if one is not None]
    n = len(shares)
    assert found["win rate", ""] == pytest.approx(statistics.fmean(shares), abs=1e-12)
    assert found["standard error", ""] == pytest.approx(statistics.stdev(shares) / n**0.5, abs=1e-7)
    assert found["discrete win rate", ""] == pytest.approx(
        sum(1 if one > 0.5 else 0.5 if one == 0.5 else 0 for one in shares) / n, abs=1e-9
    )
    assert found["no preference", ""] == pytest.approx(1 - n / len(preferences))
    credits = [AlpacaEval().credit(one) for one in made]
    assert [one for one in credits if one is not None] == pytest.approx(shares)


def test_outputs_meet_the_baseline_in_both_orders(tmp_path: Path) -> None:
    outputs = [{"instruction": "i", "output": "LOUD", "generator": "m"}, {"instruction": "j", "output": "soft"}]
    theirs = [{"instruction": "j", "output": "quiet"}, {"instruction": "i", "output": "quiet"}]
    benchmark = AlpacaEval(baseline=written(tmp_path / "b.json", theirs))
    result = run(benchmark, written(tmp_path / "o.json", outputs), "tests.evals.benchmarks.judging.made:Louder")
    found = numbers(result.measures)
    # "soft" gets 0.75 from the first place and 0.25 from the second, so 0.5; the loud output wins twice
    assert (found["win rate", ""], found["draws", ""]) == (0.75, 0.5)
    assert set(result.measures[0].baselines) == {"longer", "shorter", "more_steps", "fewer_steps", "random"}
    assert not any("trivial scorers do better" in note for note in result.notes), "no end is good for the scorer"
    shouts = "tests.evals.benchmarks.judging.made:Shouts"
    lone = run(AlpacaEval(baseline=benchmark.baseline), str(tmp_path / "o.json"), shouts)
    assert numbers(lone.measures)["win rate", ""] == 0.75


def test_an_output_without_a_baseline_is_no_case(tmp_path: Path) -> None:
    path = written(tmp_path / "b.json", [{"instruction": "i", "output": "x"}])
    with pytest.raises(ValueError, match="no output for the instruction 'k'"):
        list(AlpacaEval(baseline=path).cases({"instruction": "k", "output": "y"}, RowPlace(number=0)))
    with pytest.raises(ValueError, match="--baseline"):
        list(AlpacaEval().cases({"instruction": "k", "output": "y"}, RowPlace(number=0)))


@pytest.mark.parametrize(
    ("preference", "message"),
    [(2.5, "from 1"), ("2", "must be a number"), (True, "must be a number"), (-1, "from 1"), (float("inf"), "from 1")],
)
def test_what_is_no_preference_is_refused(preference: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(AlpacaEval().cases(annotation(preference, 0), RowPlace(number=0)))
    assert outcomes(AlpacaEval(), [annotation(float("nan"), 0)])[0].values == (None, None)


def test_length_control_is_that_of_the_win_rates(tmp_path: Path) -> None:
    rng = random.Random(0)
    rows = []
    for at in range(120):
        longer = rng.randint(1, 80)
        chance = 1.2 + 0.006 * longer + 0.2 * rng.random()
        rows.append(annotation(chance, at, output_1="x" * 40, output_2="y" * longer))
    levels = [{"instruction": row["instruction"], "instruction_difficulty": f"{rng.gauss(0, 1):.3f}"} for row in rows]
    gamed = [annotation(1.4 + 0.2 * (at % 2), at, output_1="x" * 40, output_2="y" * (at % 50)) for at in range(60)]
    full = AlpacaEval(
        length_control=True,
        difficulties=written(tmp_path / "d.json", levels),
        gamed=written(tmp_path / "g.json", gamed),
    )
    made = outcomes(full, rows)
    found = full.measures(made, NO_DRAWS)[-1]
    shares = [row["preference"] - 1 for row in rows]
    difficulty = [float(level["instruction_difficulty"]) for level in levels]
    own = annotations_of(shares, [len(row["output_2"]) for row in rows], [40] * 120, difficulty)
    theirs = annotations_of(
        [row["preference"] - 1 for row in gamed], [len(row["output_2"]) for row in gamed], [40] * 60, difficulty[:60]
    )
    from dataclasses import replace

    fitted = fit_length_control(own, [replace(one, gamed=True) for one in theirs])
    assert (found.name, found.published) == ("LC win rate", True)
    assert found.interval.value == pytest.approx(fitted.win_rate(difficulty) / 100)
    alone = AlpacaEval(length_control=True).measures(outcomes(AlpacaEval(), rows), NO_DRAWS)[-1]
    assert (alone.name, alone.published) == ("LC win rate, these annotations alone", False)
    short = AlpacaEval(length_control=True).measures(made[:5], NO_DRAWS)[-1]
    assert short.interval.value is None
    with pytest.raises(ValueError, match="no difficulty"):
        list(full.cases(annotation(1.0, 999), RowPlace(number=0)))


def test_nothing_is_right_and_the_words_say_so() -> None:
    row = {"instruction": "i", "output_1": "a", "output_2": "b", "preference": 1.0, "generator": "some-model"}
    (made,) = outcomes(AlpacaEval(), [row])
    gold, notes = AlpacaEval().words(made)
    assert gold == "neither is right or wrong; wrong here means that some-model loses"
    assert list(notes) == ["baseline", "some-model"]
