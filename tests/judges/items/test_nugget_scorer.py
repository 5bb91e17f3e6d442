"""The nugget scorer: labels of a judge that looks, in batches, and what becomes of a batch with a hole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adjudge.judges.items.nuggets import NuggetScorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer

NUGGETS = [
    {"text": "mentions Paris", "importance": "vital"},
    {"text": "mentions Seine", "importance": "vital"},
    {"text": "mentions cheese", "importance": "okay"},
]


def run(scorer: NuggetScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def sample(response: str, nuggets: Any = NUGGETS) -> Sample:
    return Sample(prompt="Tell me about France.", response=response, reference={"nuggets": nuggets})


@pytest.mark.parametrize(
    ("metric", "value"), [("strict_vital", 0.5), ("vital", 0.5), ("strict_all", 2 / 3), ("all", 2 / 3)]
)
@pytest.mark.parametrize("per_call", [1, 2, 10])
def test_each_metric_counts_its_nuggets(
    scripted: Any, honest: Callable[..., str], metric: Any, value: float, per_call: int
) -> None:
    engine = scripted.ScriptedEngine(honest)
    (score,) = run(NuggetScorer(engine=engine, metric=metric, per_call=per_call), sample("Paris has cheese."))
    assert score.value == pytest.approx(value)
    assert score.evidence["labels"] == ["support", "not_support", "support"]
    assert {name: part.value for name, part in score.parts.items()} == {"nugget_1": 1, "nugget_2": 0, "nugget_3": 1}
    assert len(engine.asked) == -(-3 // per_call)


def test_half_of_it_is_half_credit_where_that_is_asked(scripted: Any) -> None:
    engine = scripted.ScriptedEngine(
        lambda prompt, index: "\n".join(f"{scripted.key_of(prompt)} {at}: partial_support" for at in (1, 2, 3))
    )
    strict, half = (NuggetScorer(engine=engine, metric=metric) for metric in ("strict_all", "all"))
    assert [run(scorer, sample("Paris, partly"))[0].value for scorer in (strict, half)] == [0.0, 0.5]


def test_one_batch_without_labels_leaves_the_whole_without_a_number(scripted: Any, honest: Callable[..., str]) -> None:
    def judge(prompt: Any, index: int) -> str:
        said = honest(prompt, index)
        return said.rpartition("\n")[0] if "Seine" in scripted.field_of(prompt, "criteria") else said

    (score,) = run(NuggetScorer(engine=scripted.ScriptedEngine(judge), per_call=2), sample("Paris on the Seine"))
    assert (score.status, score.reason) == ("failed", "judge_unparsable")


def test_several_samples_give_an_error_bar(scripted: Any) -> None:
    def judge(prompt: Any, index: int) -> str:
        return f"{scripted.key_of(prompt)} 1: {'support' if index else 'not_support'}"

    scorer = NuggetScorer(engine=scripted.ScriptedEngine(judge), samples=2, temperature=1.0)
    (score,) = run(scorer, sample("Paris here", ["mentions Paris"]))
    assert (score.value, score.uncertainty) == (0.5, 0.5)


def test_a_reference_on_which_everybody_gets_nothing_is_refused(scripted: Any) -> None:
    okay = [{"text": "mentions cheese", "importance": "okay"}]
    with pytest.raises(ValueError, match="no nugget is vital"):
        NuggetScorer(engine=scripted.ScriptedEngine()).validate(sample("x", okay))
    NuggetScorer(engine=scripted.ScriptedEngine(), metric="all").validate(sample("x", okay))


def test_it_keeps_the_rules(scripted: Any, honest: Callable[..., str]) -> None:
    samples = [sample(text) for text in ("Paris has cheese.", "The Seine is wet.", "Nothing here.")]
    check_scorer(NuggetScorer(engine=scripted.ScriptedEngine(honest), metric="all"), samples).raise_for_failures()
