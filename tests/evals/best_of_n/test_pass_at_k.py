"""pass@k, pass^k and maj@k over prompts, and the numbers of public data."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjudge.evals.best_of_n.attempts import run_pass_at_k, run_voting
from adjudge.evals.best_of_n.config import BestOfNConfig, PassAtKConfig, VotingConfig
from adjudge.evals.best_of_n.evaluating import run_best_of_n
from adjudge.evals.reports.result import Result
from adjudge.statistics.intervals import wilson


def written(folder: Path, rows: Sequence[Any]) -> str:
    path = folder / "in.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def rates(result: Result) -> dict[tuple[str, str], Any]:
    return {(one.name, one.part): one.interval for one in result.measures}


def evaluated(path: str, **options: Any) -> Result:
    given: dict[str, Any] = {"gold": "column:gold", "resamples": 0} | options
    return run_pass_at_k(PassAtKConfig(input=path, **given))


def majority(answers: Sequence[str], right: Sequence[int], k: int) -> float:
    """The expected right of the commonest answer of k, equal ones sharing, none for "", subset by subset."""
    worth = []
    for subset in itertools.combinations(range(len(answers)), k):
        counts: dict[str, list[int]] = {}
        for at in subset:
            if answers[at]:
                counts.setdefault(answers[at], []).append(right[at])
        most = max((len(each) for each in counts.values()), default=0)
        tops = [sum(each) / len(each) for each in counts.values() if len(each) == most]
        worth.append(sum(tops) / len(tops) if tops else 0.0)
    return sum(worth) / len(worth)


PROMPTS = [
    (["a", "a", "b", "c", "b"], [1, 1, 0, 0, 0]),
    (["x", "y", "", "", "x"], [0, 1, 0, 0, 0]),
    (["", "", "", "", ""], [0, 0, 0, 0, 1]),
]


def test_rates_are_those_of_counting(tmp_path: Path) -> None:
    rows = [{"prompt": str(at), "response": ["r"] * 5, "said": a, "gold": g} for at, (a, g) in enumerate(PROMPTS)]
    found = rates(evaluated(written(tmp_path, rows), answers="said", k=(1, 2, 3, 5)))
    for k in (1, 2, 3, 5):
        subsets = [[list(one) for one in itertools.combinations(gold, k)] for _, gold in PROMPTS]
        assert found["pass@k", f"k={k}"].value == pytest.approx(
            np.mean([np.mean([max(s) for s in one]) for one in subsets])
        )
        assert found["pass^k", f"k={k}"].value == pytest.approx(
            np.mean([np.mean([min(s) for s in one]) for one in subsets])
        )
        assert found["maj@k", f"k={k}"].value == pytest.approx(np.mean([majority(a, g, k) for a, g in PROMPTS]))


@pytest.mark.parametrize("ids", [[0, 1, 0, 1], [1, None, 2, 3], [0, 0, 0, 0], [None, None, 0, 1]])
def test_prompts_that_share_an_id_are_not_one(tmp_path: Path, ids: list[int | None]) -> None:
    rows = [{"id": i, "prompt": f"p{at}", "response": ["a", "b"], "gold": [at % 2] * 2} for at, i in enumerate(ids)]
    result = evaluated(written(tmp_path, [*rows, {**rows[-1], "id": ids[-1]}]), k=(2,))
    joined = ids[-1] is not None  # two rows of one id and one prompt
    assert rates(result)["pass@k", "k=2"].n == (4 if joined else 5)


def test_a_group_of_several_prompts_is_refused_where_its_column_was_guessed(tmp_path: Path) -> None:
    rows = [{"group": "g", "prompt": str(at), "response": "r", "gold": at % 2} for at in range(4)]
    with pytest.raises(ValueError, match=r"'g' holds several prompts \(row 1 .*'group' was guessed; .*--group-column"):
        evaluated(written(tmp_path, rows))
    result = evaluated(written(tmp_path, rows), group_column="group", k=(1,))
    assert rates(result)["pass@k", "k=1"].n == 1
    assert any("holds several prompts" in note for note in result.notes)


def test_drawn_majorities_lie_within_their_error(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    answers = [str(one) for one in draw.choice(4, size=14, p=[0.4, 0.3, 0.2, 0.1])]
    rows = [{"prompt": "p", "response": ["r"] * 14, "said": answers, "gold": [int(a == "0") for a in answers]}]
    path = written(tmp_path, rows)
    exact = rates(evaluated(path, answers="said", k=(5,), subsets=5_000))["maj@k", "k=5"].value
    result = evaluated(path, answers="said", k=(5,), subsets=500)
    drawn = rates(result)["maj@k", "k=5"].value
    (note,) = [one for one in result.notes if "standard error" in one]
    assert 0 < abs(drawn - exact) < 4 * float(note.split("error of ")[1].split()[0])
    assert rates(evaluated(path, answers="said", k=(5,), subsets=500))["maj@k", "k=5"].value == drawn
    assert exact == pytest.approx(majority(answers, rows[0]["gold"], 5))  # type: ignore[arg-type]


def test_what_is_not_judged_is_not_right_and_is_counted(tmp_path: Path) -> None:
    rows = [
        {"prompt": "p", "response": ["a", "b"], "gold": [1, None]},
        {"prompt": "q", "response": ["a"], "gold": [0.9]},
    ]
    result = evaluated(written(tmp_path, rows))
    found = rates(result)
    assert found["pass@k", "k=1"].value == 0.25
    assert (found["pass@k", "k=2"].value, found["pass@k", "k=2"].n) == (1.0, 1)
    assert result.counts.failed == 1
    assert any("k=2: 1" in note for note in result.notes)
    assert any("could not be judged" in note for note in result.notes)
    assert [(case.id, case.verdict) for case in result.worst] == [("1", "unsolved"), ("0", "rarely solved")]


def test_none_of_a_few_prompts_is_no_proof_of_none(tmp_path: Path) -> None:
    """Resamples of zeros are zeros; the bounds are Wilson's."""
    rows = [{"prompt": f"p{at}", "response": ["a", "b"], "gold": [0, 0]} for at in range(5)]
    found = rates(evaluated(written(tmp_path, rows), resamples=50))
    assert found["pass@k", "k=2"] == wilson(0, 5)
    assert found["pass@k", "k=2"].high > 0.4
    assert rates(evaluated(written(tmp_path, rows), resamples=0))["pass@k", "k=2"].high is None


def test_shares_of_prompts_are_drawn(tmp_path: Path) -> None:
    golds = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]
    rows = [{"prompt": str(at), "response": ["r"] * 4, "gold": gold} for at, gold in enumerate(golds)]
    bars = {bar["name"]: bar["value"] for bar in evaluated(written(tmp_path, rows)).figures[1].to_dict()["bars"]}
    assert {name: value for name, value in bars.items() if value} == {
        "none": 1.0,
        "20 % to 30 %": 1.0,
        "50 % to 60 %": 1.0,
        "all": 1.0,
    }


def test_ten_thousand_responses_are_one_prompt_like_any_other(tmp_path: Path) -> None:
    gold = [0] * 9_990 + [1] * 10
    result = evaluated(written(tmp_path, [{"prompt": "p", "response": ["r"] * 10_000, "gold": gold}]), worst=0)
    found = rates(result)
    assert found["pass@k", "k=1"].value == pytest.approx(0.001, rel=1e-9)
    assert found["pass@k", "k=1024"].value == pytest.approx(
        1 - np.prod([(9_990 - i) / (10_000 - i) for i in range(1024)])
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"k": (3,)}, "no prompt"),
        ({"k": (0,)}, "--k"),
        ({"subsets": 1}, "subsets"),
        ({"pass_at": math.nan}, "pass_at=nan"),
    ],
)
def test_numbers_of_attempts_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    path = written(tmp_path, [{"prompt": "p", "response": ["a", "b"], "gold": [1, 0]}])
    with pytest.raises(ValueError, match=why):
        evaluated(path, **options)


@pytest.fixture(scope="module")
def data() -> Path:
    root = os.environ.get("ADJUDGE_DATA")
    if not root:
        pytest.skip("ADJUDGE_DATA is not set")
    return Path(root)


def test_eight_answers_to_fifty_problems(data: Path) -> None:
    """The numbers of PURE's format (pred, score, pred_score) on its public half; counted by hand in a plain loop."""
    common: dict[str, Any] = {
        "input": str(data / "math_responses" / "math_cot.jsonl"),
        "prompt_column": "question",
        "response_column": ("code",),
        "gold": "column:score",
        "resamples": 0,
        "worst": 0,
    }
    passed = rates(run_pass_at_k(PassAtKConfig(answers="pred", **common)))
    assert passed["pass@k", "k=1"].value == pytest.approx(0.8775)
    assert passed["pass@k", "k=8"].value == pytest.approx(0.96)
    assert passed["maj@k", "k=8"].value == pytest.approx(0.90)
    best = run_best_of_n(BestOfNConfig(proxy="column:pred_score", answers="pred", **common)).measures[0]
    assert best.part == "n=8"
    assert best.interval.value == pytest.approx(0.92)
    assert best.baselines["majority"] == pytest.approx(0.90)
    votes = rates(run_voting(VotingConfig(scorer="column:pred_score", answers="pred", **common)))
    assert votes["majority", "k=8"].value == pytest.approx(0.90)
    assert votes["value, best", "k=8"].value == pytest.approx(0.92)
    rows = [json.loads(line) for line in Path(common["input"]).read_text(encoding="utf-8").splitlines()]
    for k in (2, 4):
        plain = np.mean([majority([one.strip() for one in row["pred"]], row["score"], k) for row in rows])
        assert passed["maj@k", f"k={k}"].value == pytest.approx(plain)


def test_four_models_on_grade_school_problems(data: Path) -> None:
    path = data / "gsm8k" / "model_solutions.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for name in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
        config = PassAtKConfig(
            input=str(path),
            prompt_column="question",
            response_column=(f"{name}.solution",),
            gold=f"column:{name}.is_correct",
            resamples=0,
        )
        share = np.mean([row[name]["is_correct"] for row in rows])
        assert rates(run_pass_at_k(config))["pass@k", "k=1"].value == pytest.approx(share)


def test_columns_of_finish_reasons_and_of_extra_fields_are_read(tmp_path: Path) -> None:
    rows = [
        {"prompt": "1+1", "responses": [r"\boxed{2}"], "reference": "2", "why": why, "pattern": "2"}
        for why in ("stop", "length", "stop", "length")
    ]
    path = written(tmp_path, rows)
    common: dict[str, Any] = {"gold": "math", "response_column": ("responses",), "reference_column": "reference"}
    assert rates(evaluated(path, **common))["pass@k", "k=1"].value == 1.0
    assert rates(evaluated(path, finish_reason_column="why", **common))["pass@k", "k=1"].value == 0.5
    assert rates(evaluated(path, extra_column=("pattern",), **common))["pass@k", "k=1"].value == 1.0
    with pytest.raises(ValueError, match="patern"):
        evaluated(path, extra_column=("patern",), **common)
