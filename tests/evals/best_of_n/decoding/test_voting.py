"""`voting` end to end: rules with planted values, process values, missing ones, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjudge.evals.best_of_n.attempts import run_voting
from adjudge.evals.best_of_n.config import VotingConfig
from adjudge.evals.reports.result import Result


def written(folder: Path, rows: Sequence[Any]) -> str:
    path = folder / "in.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def evaluated(path: str, **options: Any) -> Result:
    given: dict[str, Any] = {"gold": "column:gold", "answers": "said", "resamples": 0} | options
    return run_voting(VotingConfig(input=path, **given))


def rates(result: Result) -> dict[tuple[str, str], float]:
    return {(one.name, one.part): one.interval.known for one in result.measures}


ANSWERS = ["a", "a", "b", "b", "b", "c"]
GOLD = [1, 1, 0, 0, 0, 0]
STEPS = [[0.9, 0.8], [0.7, 0.9], [0.6, 0.2], [0.3, 0.9], [0.5, 0.5], [0.1, 1.0]]
ROW = {"prompt": "p", "response": ["r"] * 6, "said": ANSWERS, "gold": GOLD, "steps": STEPS}


def vote(weigh: Callable[[list[float]], float], k: int) -> float:
    worth = []
    for subset in itertools.combinations(range(6), k):
        sums: dict[str, float] = {}
        for at in subset:
            sums[ANSWERS[at]] = sums.get(ANSWERS[at], 0.0) + weigh(STEPS[at])
        tops = [answer for answer, total in sums.items() if total >= max(sums.values()) - 1e-9]
        worth.append(sum(answer == "a" for answer in tops) / len(tops))
    return sum(worth) / len(worth)


def best(weigh: Callable[[list[float]], float], k: int) -> float:
    worth = []
    for subset in itertools.combinations(range(6), k):
        values = [weigh(STEPS[at]) for at in subset]
        tops = [GOLD[at] for at, value in zip(subset, values, strict=True) if value == max(values)]
        worth.append(sum(tops) / len(tops))
    return sum(worth) / len(worth)


FORMULAS: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "product": lambda steps: float(np.prod(steps)),
    "last": lambda steps: steps[-1],
    "mean": lambda steps: float(np.mean(steps)),
}


def test_every_rule_is_that_of_counting(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path, [ROW]), scorer="column:steps", k=(1, 3, 6))
    found = rates(result)
    assert result.counts.scored == 6
    for k in (1, 3, 6):
        assert found["majority", f"k={k}"] == pytest.approx(vote(lambda steps: 1.0, k))
        for name, formula in FORMULAS.items():
            assert found[f"{name}, vote", f"k={k}"] == pytest.approx(vote(formula, k)), name
            assert found[f"{name}, best", f"k={k}"] == pytest.approx(best(formula, k)), name
    assert ("value, vote", "k=6") not in found  # a list of steps has no value of its own


def test_values_weigh_as_sums_and_as_softmax(tmp_path: Path) -> None:
    """b has more votes, a has the better ones: the sum of 0.4 loses against 2 x 0.7, and T says how much 0.3 counts."""
    values = [0.7, 0.7, 0.4, 0.4, 0.4, 0.1]
    path = written(tmp_path, [ROW | {"v": values}])
    cold = rates(evaluated(path, scorer="column:v", k=(6,), temperature=0.1))
    warm = rates(evaluated(path, scorer="column:v", k=(6,), temperature=100.0))
    assert cold["majority", "k=6"] == 0
    assert cold["value, vote", "k=6"] == 1
    assert (cold["softmax, vote", "k=6"], warm["softmax, vote", "k=6"]) == (1, 0)
    assert cold["value, best", "k=6"] == 1
    huge = written(tmp_path, [ROW | {"v": [9e4, 9e4, 0, 0, 0, -9e4]}])
    assert rates(evaluated(huge, scorer="column:v", k=(6,)))["softmax, vote", "k=6"] == 1


def test_what_has_no_value_weighs_nothing_and_is_counted(tmp_path: Path) -> None:
    values = [0.1, None, None, None, None, -0.3]
    result = evaluated(written(tmp_path, [ROW | {"v": values}]), scorer="column:v", k=(6,))
    found = rates(result)
    assert found["value, vote", "k=6"] == 1
    assert found["value, best", "k=6"] == 1
    assert result.counts.reasons == {"scorer: no score": 4}
    assert any("below 0" in note for note in result.notes)


def test_without_a_scorer_there_is_the_majority_alone(tmp_path: Path) -> None:
    result = evaluated(written(tmp_path, [ROW]))
    assert {name for name, _ in rates(result)} == {"majority", "one of k is right"}
    assert rates(result)["one of k is right", "k=2"] == pytest.approx(1 - 6 / 15)
    assert result.comparisons == ()
    assert result.measures[0].part == "k=6"
    assert result.measures[0].baselines == {"random": pytest.approx(1 / 3)}


def test_rules_are_tested_against_the_majority(tmp_path: Path) -> None:
    rows = [ROW | {"prompt": str(at), "v": [1, 1, 0, 0, 0, 0]} for at in range(12)]
    result = evaluated(written(tmp_path, rows), scorer="column:v", resamples=200)
    (weighted,) = [one for one in result.comparisons if one.name == "value, vote"]
    assert (weighted.first, weighted.second, weighted.part) == (1.0, 0.0, "k=6")
    assert weighted.p == pytest.approx(2 / 2**12)
    assert weighted.p_adjusted is not None
    assert weighted.p_adjusted >= (weighted.p or 0.0)
    json.dumps(result.to_dict(), allow_nan=False)


def test_answers_come_from_the_gold_scorer_and_are_compared_by_one(tmp_path: Path) -> None:
    responses = ["so \\boxed{1/2}", "so \\boxed{0.5}", "so \\boxed{2}", "so \\boxed{2}", "\\boxed{\\frac12}"]
    path = written(tmp_path, [{"prompt": "p", "response": responses, "answer": "0.5"}])
    by_text = evaluated(path, gold="math", answers="", k=(5,))
    by_math = evaluated(path, gold="math", answers="", equality="math", k=(5,))
    assert rates(by_text)["majority", "k=5"] == 0
    assert rates(by_math)["majority", "k=5"] == 1
    assert any("compared by math" in note for note in by_math.notes)


def test_unreadable_answers_vote_for_nothing(tmp_path: Path) -> None:
    row: Any = {"prompt": "p", "response": ["r"] * 4, "said": [None, {}, "", "a"], "gold": [0, 0, 0, 1]}
    result = evaluated(written(tmp_path, [row]), k=(1, 4))
    assert rates(result)["majority", "k=4"] == 1.0
    assert rates(result)["majority", "k=1"] == 0.25
    assert any("3 responses have no answer" in note for note in result.notes)


@pytest.mark.parametrize(
    ("options", "row", "why"),
    [
        ({"equality": "no_such"}, ROW, "no_such"),
        ({"temperature": 0.0}, ROW, "temperature"),
        ({"aggregate": ("mode",)}, ROW, "aggregate"),
        ({"k": (7,)}, ROW, "as many responses"),
        ({"answers": ""}, ROW, "an answer that could be voted for"),
        ({"scorer": "column:none"}, ROW | {"none": [None] * 6}, "a number"),
        ({"equality": ""}, ROW, "equality"),
        ({"pass_at": math.inf}, ROW, "pass_at=inf"),
        ({"equal_at": math.nan}, ROW, "equal_at=nan"),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path: Path, options: dict[str, Any], row: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        evaluated(written(tmp_path, [row]), **options)
