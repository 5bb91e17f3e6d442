"""Scorers whose reference is the other response: both orders of a pair, from two questions or from one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, key_of
from tests.evals.benchmarks.toys import CALLS, HOME, numbers_of, rows, run, write

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.engines.interface import Prompt
from adjudge.evals.benchmarks.case import Case, Given
from adjudge.evals.benchmarks.voices import Comparing, beside, compares
from adjudge.judges.pairwise import PairwiseJudge
from adjudge.protocol import Cost, Sample, Scorer
from adjudge.scoring.registry import as_scorer

AGAINST = f"{HOME}:Against"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    CALLS.clear()
    yield
    CALLS.clear()


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "pairs.jsonl", rows())


def case(*responses: str, reference: object = None) -> Case:
    samples = tuple(Sample(prompt="p", response=text, reference=reference, id=text) for text in responses)
    return Case(id="c", samples=samples, gold=0)


def given(scorer: Scorer, *cases: Case) -> list[list[Given]]:
    return asyncio.run(Comparing(LocalBench(scorer), scorer, "spec").given(cases))


def test_such_a_scorer_is_found_and_sees_both_orders(source: str) -> None:
    compared = run(source, scorer=AGAINST)
    assert numbers_of(compared) == numbers_of(run(source, scorer="stored"))
    assert sum(map(len, CALLS)) == 80
    assert compared.scorer["name"] == "against"


def test_it_can_be_said_and_denied(source: str) -> None:
    assert numbers_of(run(source, scorer=AGAINST, compare="yes")) == numbers_of(run(source, scorer=AGAINST))
    with pytest.raises(Exception, match="'against' raised"):
        run(source, scorer=AGAINST, compare="no")


def test_what_is_no_share_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"'wild' gave the case .* the value 3.0; whoever compares two responses"):
        run(source, scorer=f"{HOME}:Wild")
    with pytest.raises(ValueError, match=r"'signed' has the output 'signed'.* set its option output: unit"):
        run(source, scorer=f"{HOME}:Signed")


def test_lists_are_refused_with_the_remedy(tmp_path: Path) -> None:
    line = {"prompt": "p", "responses": ["1", "2", "3"], "better": 0}
    with pytest.raises(ValueError, match="has 3 responses, and the scorer compares a response with one other; take"):
        run(write(tmp_path / "in.jsonl", [line]), scorer=AGAINST)


def test_references() -> None:
    first, second = beside(case("x", "y"))[:2]
    assert (first.reference, second.reference) == ("y", "x")
    first, second = beside(case("x", "y", reference="gold"))
    assert first.reference == {"response": "y", "answer": "gold"}
    assert second.reference == {"response": "x", "answer": "gold"}
    (alone,) = beside(case("x", reference="the other system's"))
    assert alone.reference == "the other system's"


def test_samples_for_such_a_scorer_can_be_scored_elsewhere(source: str, tmp_path: Path) -> None:
    samples, scores = tmp_path / "samples.jsonl", tmp_path / "scores.jsonl"
    run(source, samples=str(samples), compare="yes")
    assert json.loads(samples.read_text().splitlines()[0])["reference"] == rows()[0]["responses"][1]
    run_label(LabelConfig(input=str(samples), output=str(scores), scorer=AGAINST))
    brought = run(source, scores=str(scores), compare="yes")
    assert numbers_of(brought) == numbers_of(run(source, scorer=AGAINST))


def engine(verdict: str | None) -> ScriptedEngine:
    """A judge that always says the same, or says which number is larger."""

    def answer(prompt: Prompt, index: int) -> str:
        first, second = (float(f"{field_of(prompt, name)} -1".split()[0]) for name in ("response_a", "response_b"))
        said = verdict or ("A" if first > second else "B" if second > first else "tie")
        return f"Verdict {key_of(prompt)}: {said}"

    return ScriptedEngine(answer)


def judge(**options: Any) -> Scorer:
    return as_scorer(PairwiseJudge, options)


@pytest.mark.parametrize(
    ("verdict", "values"),
    [(None, [1.0, 0.0]), ("A", [1.0, 1.0]), ("B", [0.0, 0.0]), ("tie", [0.5, 0.5])],
)
def test_a_judge_that_plays_both_orders_is_asked_once(verdict: str | None, values: list[float]) -> None:
    asked = engine(verdict)
    ((first, second),) = given(judge(engine=asked), case("9 points", "3 points"))
    assert [first.value, second.value] == values, "the first order, then the swapped one"
    assert len(asked.asked) == 2
    assert second.cost == Cost(), "one call's cost counts once"


def test_a_judge_of_one_order_is_asked_from_both_sides() -> None:
    ((first, second),) = given(judge(engine=engine(None), orders="one"), case("9 points", "3 points"))
    assert [first.value, second.value] == [1.0, 0.0]


def test_equal_responses_are_even_without_a_question() -> None:
    asked = engine("A")
    ((first, second),) = given(judge(engine=asked), case("9 points", "9 points"))
    assert [first.value, second.value] == [0.5, 0.5]
    assert not asked.asked


@pytest.mark.parametrize(
    ("responses", "values"),
    [
        (("<think>9", "3 points"), [0.0, 1.0]),
        (("9 points", "<think>3"), [1.0, 0.0]),
        (("<think>9", "<think>3"), [0.0, 0.0]),
    ],
)
def test_a_response_that_holds_nothing_loses_and_does_not_make_the_other_win(
    responses: tuple[str, str], values: list[float]
) -> None:
    ((first, second),) = given(judge(engine=engine(None)), case(*responses))
    assert [first.value, second.value] == values


def test_a_judge_without_a_verdict_has_none_in_either_order() -> None:
    silent = ScriptedEngine(lambda prompt, index: "I would rather not say")
    ((first, second),) = given(judge(engine=silent), case("9 points", "3 points"))
    assert (first.value, second.value) == (None, None)
    assert first.reason == second.reason == "judge_unparsable"


def test_who_compares() -> None:
    assert compares(judge(engine=engine(None)))
    assert not compares(judge(engine=engine(None), against="group"))
