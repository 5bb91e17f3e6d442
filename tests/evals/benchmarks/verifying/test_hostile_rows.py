"""Whatever stands in a row: it becomes cases, or a `ValueError` says what is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evals.benchmarks.verifying.made import stored_outcomes

from adjudge.evals.benchmarks.answers import Gsm8k, IfEval, Math, VerifierBench, VerifyBench
from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.help_steer import ATTRIBUTES, HelpSteer
from adjudge.evals.benchmarks.labels import Labels
from adjudge.evals.benchmarks.programs import Bird, HumanEval, VerilogEval
from adjudge.evals.benchmarks.ratings import Ratings
from adjudge.statistics.intervals import NO_DRAWS

BENCHMARKS: list[tuple[Benchmark, list[str]]] = [
    (Labels(), ["prompt", "response", "label", "value", "reference"]),
    (Gsm8k(), ["question", "ground_truth", "response", "is_correct", "model"]),
    (Math(), ["problem", "gt", "code", "score", "pred_score", "level"]),
    (HumanEval(), ["task_id", "prompt", "test", "entry_point", "completion", "passed", "model"]),
    (VerilogEval(), ["problem", "prompt", "reference", "testbench", "files", "source", "status"]),
    (Bird(score_column="score"), ["question", "db_id", "SQL", "pred_sql", "label", "score", "question_id"]),
    (IfEval(), ["prompt", "key", "response", "instruction_id_list", "strict", "model"]),
    (VerifierBench(), ["question", "gold_answer", "llm_response", "gold_judgment", "judgment", "domain"]),
    (VerifyBench(), ["question", "answer", "completion", "gold_correct", "judgement", "answer_type"]),
    (Ratings(score_column="said"), ["prompt", "response", "rating", "said", "rubric", "instruction", "category"]),
    (HelpSteer(), ["prompt", "response", *ATTRIBUTES, "predicted_helpfulness"]),
]

WORDS = st.sampled_from([
    "#### 4", "right", "A", "C", "pass", "1", "\ud800", "{0}%s<b>", "x" * 300, "", "keywords:existence",
    "###The instruction to evaluate:\nx\n###Response to evaluate:\ny\n###Score Rubrics:\nz", "module RefModule;",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.just(10**400)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "solution", "is_correct", "criteria"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(("benchmark", "columns"), BENCHMARKS, ids=[one.name for one, _ in BENCHMARKS])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_row_becomes_cases_or_an_error_in_words(
    benchmark: Benchmark, columns: list[str], data: st.DataObject
) -> None:
    likely = {"question": "q", "prompt": "p", "problem": "p", "response": "r", "task_id": "t", "is_correct": True}
    row = {name: data.draw(VALUES | st.just(likely.get(name, "1"))) for name in columns}
    try:
        made = stored_outcomes(benchmark, [row])
    except ValueError as error:
        assert str(error)  # noqa: PT017  either way is fine, and nothing else is
        return
    except (TypeError, AttributeError):
        return  # the reader of rows tells these as well, with the number of the row
    if made:
        for measure in benchmark.measures(made, NO_DRAWS):
            assert measure.interval.value is None or measure.interval.value == measure.interval.value
        for outcome in made:
            credit = benchmark.credit(outcome)
            assert credit is None or 0 <= credit <= 1
        for outcomes in benchmark.baselines(made).values():
            assert len(outcomes) == len(made)
