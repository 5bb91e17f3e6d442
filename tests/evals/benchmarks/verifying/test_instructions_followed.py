"""IFEval and IFBench: prompt and instruction level, labels, prompts in a second file, and the scorer's references."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.evals.benchmarks.judging.made import cases, numbers, run, written
from tests.evals.benchmarks.verifying.made import stored_outcomes

from adjudge.evals.benchmarks.answers import IfBench, IfEval
from adjudge.statistics.intervals import NO_DRAWS

KINDS = ["punctuation:no_comma", "length_constraints:number_words", "startend:quotation"]
PROMPT: dict[str, Any] = {
    "key": 1, "prompt": "Write.", "instruction_id_list": [f"en:{KINDS[0]}", f"en:{KINDS[1]}"],
    "kwargs": [{}, {"num_words": 5.0, "relation": "at least", "keyword": None}],
}  # fmt: skip


def response_rows(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for at in range(80):
        kinds = draw.sample(KINDS, draw.randint(1, 3))
        strict = [draw.random() < 0.6 for _ in kinds]
        rows.append({
            "model": draw.choice("mn"), "key": at // 2, "prompt": f"p{at // 2}", "response": "r",
            "instruction_id_list": kinds, "strict": strict, "loose": [one or draw.random() < 0.3 for one in strict],
        })  # fmt: skip
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_both_levels_and_both_sides_are_those_of_a_plain_count(seed: int) -> None:
    rows, benchmark = response_rows(seed), IfEval(verdict_column="loose")
    found = numbers(benchmark.measures(stored_outcomes(benchmark, rows), NO_DRAWS))
    for by, column in (("", "loose"), (" by labels", "strict")):
        for model in ("", "m", "n"):
            own = [row[column] for row in rows if model in ("", row["model"])]
            flat = [one for each in own for one in each]
            assert found[f"prompt-level accuracy{by}", model] == pytest.approx(sum(map(all, own)) / len(own))
            assert found[f"instruction-level accuracy{by}", model] == pytest.approx(sum(flat) / len(flat))
    pairs = [pair for row in rows for pair in zip(row["instruction_id_list"], row["strict"], row["loose"], strict=True)]
    assert found["accuracy", ""] == pytest.approx(sum(one == other for _, one, other in pairs) / len(pairs))
    of_kind = [(one, other) for kind, one, other in pairs if kind == KINDS[0]]
    assert found["accuracy", KINDS[0]] == pytest.approx(sum(one == other for one, other in of_kind) / len(of_kind))
    loose = IfEval(loose=True)
    again = numbers(loose.measures(stored_outcomes(loose, rows), NO_DRAWS))
    assert again["accuracy", ""] == 1.0
    assert again["prompt-level accuracy by labels", ""] == found["prompt-level accuracy", ""]


def test_a_missing_verdict_follows_nothing() -> None:
    row = {
        "prompt": "p",
        "response": "r",
        "instruction_id_list": KINDS[:2],
        "strict": [True, True],
        "said": [True, None],
    }
    benchmark = IfEval(verdict_column="said")
    found = numbers(benchmark.measures(stored_outcomes(benchmark, [row]), NO_DRAWS))
    assert (found["prompt-level accuracy", ""], found["instruction-level accuracy", ""]) == (0.0, 0.5)
    assert (found["accuracy", ""], found["failed", ""]) == (0.5, 0.5)


@pytest.mark.parametrize("benchmark_class", [IfEval, IfBench])
def test_each_instruction_is_a_sample_with_its_own_constraint(benchmark_class: Any, tmp_path: Path) -> None:
    pytest.importorskip("adjudge.verifiers.instructions.rows")
    prompts = written(tmp_path / "prompts.json", [PROMPT, {**PROMPT, "key": 2, "prompt": "Other."}])
    benchmark = benchmark_class(prompts=prompts)
    by_key = {"key": "1", "response": "a", "instruction_id_list": KINDS[:2], "strict": [True, False]}
    by_prompt = {"prompt": " Other. ", "response": None, "follow_instruction_list": [False, False]}
    first, second, third, _ = cases(benchmark, [by_key, by_prompt])
    assert [case.samples[0].reference for case in (first, second)] == [
        {"constraints": [{"kind": KINDS[0], "args": {}}]},
        {"constraints": [{"kind": KINDS[1], "args": {"num_words": 5, "relation": "at least"}}]},
    ]
    assert [first.id, second.id, first.part] == ["0:1:0", "0:1:1", KINDS[0]]
    assert (first.samples[0].prompt, third.samples[0].prompt, third.samples[0].response) == ("Write.", "Other.", "")
    assert first.cluster == second.cluster != third.cluster
    with pytest.raises(ValueError, match="other ones than those of its prompt"):
        cases(benchmark, [{**by_key, "instruction_id_list": KINDS[1:]}])
    unknown = {**by_key, "key": 9}
    assert [case.samples[0].reference for case in cases(benchmark, [unknown])] == [None, None]


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    row = {"prompt": "p", "response": "r", "instruction_id_list": KINDS[:2], "strict": [True, True]}
    for changed, said in (
        ({"strict": [True]}, "holds 1 verdicts for 2 instructions"),
        ({"instruction_id_list": [1, 2]}, "an instruction is called 1"),
        ({"instruction_id_list": []}, "must be a list with something in it"),
        ({"strict": [True, "perhaps"]}, "the label 'perhaps' is none of"),
    ):
        with pytest.raises(ValueError, match=said):
            cases(IfEval(), [{**row, **changed}])
    with pytest.raises(ValueError, match="the column 'response' is missing"):
        cases(IfEval(), [{"prompt": "p", "instruction_id_list": KINDS}])
    unlabelled = [{"prompt": "p", "response": "r", "instruction_id_list": KINDS, "said": [1, 0, 1]}]
    result = run(IfEval(verdict_column="said"), written(tmp_path / "in.json", unlabelled))
    assert result.measures[0].name == "prompt-level accuracy"
    assert numbers(result.measures)["instruction-level accuracy", ""] == pytest.approx(2 / 3)
