"""open-instruct's calls, on a module of the shape its source declares (commit e6c3044)."""

from __future__ import annotations

import asyncio
import gc
import pickle
import runpy
import sys
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cloudpickle
import pytest
from tests.frameworks.pages import pasted
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.open_instruct import OpenInstructReward
from adjudge.rl_integration.adapters.failures import NotScored

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "open_instruct_reward.py"


@dataclass
class VerificationResult:
    score: float
    cost: float = 0.0
    reasoning: str | None = None


def recorded() -> ModuleType:
    """A module with a fresh base class, so that tests do not see each other's subclasses."""

    class VerifierConfig:
        @classmethod
        def from_args(cls, *sources: Any) -> Any:
            return cls()

    class VerifierFunction(ABC):
        def __init__(self, name: str, weight: float = 1.0, verifier_config: Any = None) -> None:
            self.name = name
            self.weight = weight
            self.verifier_config = verifier_config

        @classmethod
        def get_config_class(cls) -> type:
            return VerifierConfig

        @abstractmethod
        def __call__(
            self,
            tokenized_prediction: list[int],
            prediction: str,
            label: Any,
            query: str | None = None,
            rollout_state: dict[str, Any] | None = None,
        ) -> Any: ...

    made = ModuleType("open_instruct.ground_truth_utils")
    made.__dict__.update(
        VerifierFunction=VerifierFunction, VerificationResult=VerificationResult, VerifierConfig=VerifierConfig
    )
    return made


@pytest.fixture(autouse=True)
def open_instruct(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = recorded()
    monkeypatch.setitem(sys.modules, "open_instruct", ModuleType("open_instruct"))
    monkeypatch.setitem(sys.modules, "open_instruct.ground_truth_utils", module)
    return module


def built(module: Any) -> dict[str, Any]:
    """As `build_all_verifiers` does it: every direct subclass, made with its configuration alone."""
    made = [
        subclass(subclass.get_config_class().from_args(SimpleNamespace(), None))
        for subclass in module.VerifierFunction.__subclasses__()
    ]
    return {verifier.name.lower(): verifier for verifier in made}


async def applied(verifiers: dict[str, Any], rows: list[tuple[str, Any, str]]) -> list[float]:
    """As `apply_verifiable_reward` does it: all at once, by keyword, times weight and `verification_reward`."""
    tasks = [
        verifiers[dataset.lower()].async_call(
            tokenized_prediction=[1, 2], prediction=prediction, label=label, query="1+1?", rollout_state={"rewards": []}
        )
        for prediction, label, dataset in rows
    ]
    results = await asyncio.gather(*tasks)
    return [10.0 * found.score * verifiers[row[2].lower()].weight for found, row in zip(results, rows, strict=True)]


def test_it_is_found_among_the_subclasses_and_chosen_by_the_dataset(open_instruct: Any) -> None:
    math = OpenInstructReward(scorer="math").verifier("Adjudge_Math", weight=0.5)
    verifiers = built(open_instruct)
    assert set(verifiers) == {"adjudge_math"}
    assert type(verifiers["adjudge_math"]) is math
    assert isinstance(verifiers["adjudge_math"].verifier_config, open_instruct.VerifierConfig)
    rows = [("\\boxed{2}", "2", "adjudge_MATH"), ("\\boxed{3}", "2", "adjudge_math")]
    assert asyncio.run(applied(verifiers, rows)) == [5.0, 0.0]


def test_it_is_gone_when_nothing_holds_the_class(open_instruct: Any) -> None:
    OpenInstructReward(scorer="math").verifier("short_lived")
    gc.collect()
    assert built(open_instruct) == {}


def test_both_calls_agree_from_threads_and_inside_a_loop() -> None:
    verifier = OpenInstructReward(scorer="math").verifier("math_again")()

    async def inside() -> Any:
        return verifier([], "\\boxed{2}", "2", None), await verifier.async_call([], "\\boxed{2}", "2")

    assert asyncio.run(inside()) == (VerificationResult(1.0, 0.0, "scored"), VerificationResult(1.0, 0.0, "scored"))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: verifier([], f"\\boxed{{{n}}}", "2").score, range(4)))
    assert found == [0.0, 0.0, 1.0, 0.0]


def test_label_and_query_reach_the_scorer() -> None:
    scorer = Scripted()
    verifier = OpenInstructReward(scorer=scorer).verifier("scripted")()
    labels = ['{"tests": ["assert f(1) == 2"]}', ["a", "b"], {"answer": "B"}, None]
    for label in labels:
        verifier([7], "1", label, "1+1?", {"done": True})
    assert [sample.reference for sample in scorer.seen] == [
        {"tests": ["assert f(1) == 2"]},
        ["a", "b"],
        {"answer": "B"},
        None,
    ]
    assert {(sample.prompt, sample.response) for sample in scorer.seen} == {("1+1?", "1")}
    chosen = OpenInstructReward(scorer=scorer, reference=lambda row: row["label"]["answer"]).verifier("chosen")()
    chosen([], "1", {"answer": "B"})
    assert (scorer.seen[-1].reference, scorer.seen[-1].prompt, scorer.seen[-1].group) == ("B", "", "")
    OpenInstructReward(scorer=scorer, group="query").verifier("grouped")()([], "1", "2", "1+1?")
    assert scorer.seen[-1].group == "1+1?"


def test_what_has_no_score_raises_or_is_the_fallback_and_says_so() -> None:
    strict = OpenInstructReward(scorer=Scripted()).verifier("strict")()
    for response, message in (("fail", r"failed \(engine_timeout\).*open-instruct"), ("decline", "abstained")):
        with pytest.raises(NotScored, match=message):
            strict([], response, "2")
        with pytest.raises(NotScored, match=message):
            asyncio.run(strict.async_call([], response, "2"))
    lenient = OpenInstructReward(scorer=Scripted(), fallback=0.5).verifier("lenient")()
    assert lenient([], "fail", "2") == VerificationResult(0.5, 0.0, "failed engine_timeout; the score is the fallback")
    assert lenient([], "decline", "2").reasoning == "abstained out_of_scope; the score is the fallback"
    assert lenient([], "nonsense", "2") == VerificationResult(0.0, 0.0, "scored no_answer")


def test_reward_and_class_can_be_sent_to_another_process() -> None:
    reward = pickle.loads(pickle.dumps(OpenInstructReward(scorer="math")))
    assert asyncio.run(reward.score(reward.sample("\\boxed{2}", "2", None))) == (1.0, "scored")
    verifier = cloudpickle.loads(cloudpickle.dumps(reward.verifier("sent")))()
    assert (verifier.name, verifier([], "\\boxed{2}", "2").score) == ("sent", 1.0)


def test_mistakes_are_told_before_the_run() -> None:
    with pytest.raises(ValueError, match="maths"):
        OpenInstructReward(scorer="maths")
    with pytest.raises(ValueError, match="name=' '"):
        OpenInstructReward(scorer="math").verifier(" ")
    with pytest.raises(ValueError, match="open-instruct gives them one by one"):
        OpenInstructReward(scorer=Scripted(groupwise=True))


@pytest.mark.parametrize("prediction", ["", "\ud800\\boxed{", "\x00"])
def test_hostile_predictions_are_wrong_answers(prediction: Any) -> None:
    verifier = OpenInstructReward(scorer="math").verifier("hostile")()
    assert verifier([], prediction, "2").score == 0.0


def test_a_prediction_that_got_lost_is_no_wrong_answer() -> None:
    verifier = OpenInstructReward(scorer="math").verifier("hostile")()
    with pytest.raises(NotScored, match="the response is None"):
        verifier([], None, "2")


def test_the_example_prints_what_it_is_meant_to(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == (
        "1.0 scored\n0.0 scored wrong\n0.0 failed gold_unparsable; the score is the fallback\n"
    )


def test_the_page_shows_a_verifier() -> None:
    verifier = pasted("open-instruct")["MathVerifier"]()
    assert (verifier.name, verifier([], "\\boxed{2}", "2").score) == ("adjudge_math", 1.0)
