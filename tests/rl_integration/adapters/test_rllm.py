"""rLLM's calls, on types of the shape its source declares (commit 9beb6e0)."""

from __future__ import annotations

import asyncio
import copy
import pickle
import runpy
import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.frameworks.pages import pasted
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.rl_integration.adapters.failures import NotScored
from adjudge.rllm import RllmEvaluator

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "rllm_reward.py"


@dataclass
class Signal:
    name: str
    value: float
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class EvalOutput:
    reward: float
    is_correct: bool
    signals: list[Signal] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


class TerminationReason(Enum):
    MAX_RESPONSE_LENGTH_EXCEEDED = "max_response_length_exceeded"
    ENV_DONE = "env_done"


@dataclass
class Task:
    id: str
    instruction: Any
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Step:
    output: Any = None
    model_response: str = ""
    model_output: Any = None


@dataclass
class Trajectory:
    steps: list[Step] = field(default_factory=list)
    output: Any = None
    reward: float | None = None


@dataclass
class Episode:
    artifacts: dict[str, Any] = field(default_factory=dict)
    trajectories: list[Trajectory] = field(default_factory=list)
    termination_reason: Any = None
    is_correct: bool = False


@pytest.fixture(autouse=True)
def rllm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("rllm.eval.types")
    module.__dict__.update(EvalOutput=EvalOutput, Signal=Signal)
    for name in ("rllm", "rllm.eval"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "rllm.eval.types", module)


def task(truth: Any = "2") -> Task:
    return Task(id="t", instruction="1+1?", metadata={"ground_truth": truth})


def answered(text: Any) -> Episode:
    return Episode(artifacts={"answer": text}, trajectories=[Trajectory()])


def signals(found: Any) -> dict[str, float]:
    return {signal.name: signal.value for signal in found.signals}


def ran(evaluator: RllmEvaluator, given: Any, episode: Episode) -> Any:
    """As rLLM's runner does it: in a thread of a running event loop."""

    async def run() -> Any:
        return await asyncio.to_thread(evaluator.evaluate, given, episode)

    return asyncio.run(run())


def test_an_episode_is_scored_and_not_changed() -> None:
    evaluator, episode = RllmEvaluator(scorer="math"), answered("\\boxed{2}")
    before = copy.deepcopy(episode)
    found = ran(evaluator, task(), episode)
    assert found == EvalOutput(
        reward=1.0,
        is_correct=True,
        signals=[Signal("valid", 1.0), Signal("failed", 0.0), Signal("abstained", 0.0)],
        metadata={"status": "scored", "reason": ""},
    )
    assert episode == before, "rLLM writes rewards back itself"
    wrong = evaluator(task(), answered("\\boxed{3}"))
    assert (wrong.reward, wrong.is_correct, wrong.metadata["reason"]) == (0.0, False, "wrong")


def test_the_answer_is_where_rllm_itself_looks_for_it() -> None:
    scorer = Scripted()
    evaluator = RllmEvaluator(scorer=scorer)
    episodes = [
        Episode(artifacts={"answer": 1}, trajectories=[Trajectory(output="9")]),
        Episode(trajectories=[Trajectory(output="9"), Trajectory(output="2", steps=[Step("9")])]),
        Episode(trajectories=[Trajectory(steps=[Step("9"), Step(3)])]),
        Episode(trajectories=[Trajectory(steps=[Step(model_response="9"), Step(model_response="4"), Step()])]),
        Episode(trajectories=[Trajectory()]),
        Episode(),
        Episode(artifacts={"answer": None}),
    ]
    for episode in episodes:
        evaluator.evaluate(task(), episode)
    assert [sample.response for sample in scorer.seen] == ["1", "2", "3", "4", "", "", ""]


@pytest.mark.parametrize(("output", "response"), [(0, "0"), (0.0, "0.0"), (False, "False"), ("", "9"), (None, "9")])
def test_an_output_of_zero_is_one(output: Any, response: str) -> None:
    scorer = Scripted()
    evaluator = RllmEvaluator(scorer=scorer)
    for trajectory in (
        Trajectory(output=output, steps=[Step("9")]),
        Trajectory(steps=[Step(output, model_response="9")]),
    ):
        evaluator.evaluate(task(), Episode(trajectories=[trajectory]))
    assert [sample.response for sample in scorer.seen] == [response] * 2


@pytest.mark.parametrize(("name", "group"), [(None, ""), (float("nan"), ""), ("", ""), (0, "0")])
def test_a_task_without_an_id_names_no_group(name: Any, group: str) -> None:
    scorer = Scripted()
    RllmEvaluator(scorer=scorer).evaluate(Task(name, "1+1?", {"ground_truth": "2"}), answered("1"))
    assert scorer.seen[0].group == group


def test_tasks_of_every_kind_give_prompt_and_reference() -> None:
    scorer = Scripted()
    evaluator = RllmEvaluator(scorer=scorer)
    blocks = [{"type": "text", "text": "1+1?"}]
    tasks = [
        task(),
        {"question": "1+1?", "ground_truth": "2"},
        SimpleNamespace(data={"prompt": "1+1?", "ground_truth": "2"}),
        Task(id="b", instruction=blocks, metadata={"ground_truth": "2"}),
        {"ground_truth": "2"},
    ]
    for given in tasks:
        evaluator.evaluate(given, answered("1"))
    assert {sample.reference for sample in scorer.seen} == {"2"}
    assert [sample.group for sample in scorer.seen] == ["t", "", "", "b", ""]
    RllmEvaluator(scorer=scorer, group=lambda row: row["ground_truth"] + "!").evaluate(task(), answered("1"))
    assert scorer.seen.pop().group == "2!"
    assert [sample.prompt for sample in scorer.seen] == [
        "1+1?",
        "1+1?",
        "1+1?",
        [{"role": "user", "content": blocks}],
        "",
    ]
    with pytest.raises(ValueError, match="the task of rLLM is a int without metadata"):
        evaluator.evaluate(7, answered("1"))
    with pytest.raises(ValueError, match="a row of rLLM has no 'ground_truth'"):
        evaluator.evaluate({"answer": "2"}, answered("1"))


def test_an_answer_that_was_cut_off_is_seen_as_such() -> None:
    scorer = Scripted()
    for reason in (*TerminationReason, None, "max_response_length_exceeded"):
        RllmEvaluator(scorer=scorer).evaluate(task(), Episode({"answer": "1"}, termination_reason=reason))
    for reason in ("length", "stop", None):  # rLLM's engine of agent flows says it of the step alone
        last = Step(model_response="1", model_output=SimpleNamespace(finish_reason=reason))
        RllmEvaluator(scorer=scorer).evaluate(task(), Episode(trajectories=[Trajectory([Step(), last])]))
    seen = [sample.finish_reason for sample in scorer.seen]
    assert seen == ["length", None, None, "length", "length", "stop", None]


def test_what_has_no_score_raises_or_is_marked_and_never_correct() -> None:
    for answer in ("fail", "decline"):
        with pytest.raises(NotScored, match="rLLM wants a number for it"):
            RllmEvaluator(scorer=Scripted()).evaluate(task(), answered(answer))
    lenient = RllmEvaluator(scorer=Scripted(), fallback=1.0)
    failed = lenient.evaluate(task(), answered("fail"))
    assert (failed.reward, failed.is_correct) == (1.0, False)
    assert signals(failed) == {"valid": 0.0, "failed": 1.0, "abstained": 0.0}
    assert failed.metadata == {"status": "failed", "reason": "engine_timeout"}
    assert signals(lenient.evaluate(task(), answered("decline")))["abstained"] == 1.0


def test_the_parts_of_a_score_are_signals() -> None:
    evaluator = RllmEvaluator(scorer={"weighted": {"math": 0.9, "format": 0.1}}, correct_from=0.9)
    found = evaluator.evaluate(task(), answered("\\boxed{2}"))
    assert found.is_correct
    assert signals(found)["part_math"] == 1.0
    assert {"part_math", "part_format", "valid"} <= set(signals(found))


def test_it_can_be_sent_to_another_process() -> None:
    evaluator = pickle.loads(pickle.dumps(RllmEvaluator(scorer="math", fallback=0.0)))
    assert evaluator.evaluate(task(), answered("\\boxed{2}")).reward == 1.0


@pytest.mark.parametrize("answer", [None, "", "\ud800\\boxed{", "\x00", ["a"], {"b": 1}])
def test_hostile_answers_are_wrong_answers(answer: Any) -> None:
    assert RllmEvaluator(scorer="math").evaluate(task(), answered(answer)).reward == 0.0


def test_mistakes_are_told_before_the_run() -> None:
    with pytest.raises(ValueError, match="maths"):
        RllmEvaluator(scorer="maths")
    with pytest.raises(ValueError, match="correct_from=nan"):
        RllmEvaluator(scorer="math", correct_from=float("nan"))
    with pytest.raises(ValueError, match="rLLM gives them one by one"):
        RllmEvaluator(scorer=Scripted(groupwise=True))


def test_the_example_prints_what_it_is_meant_to(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("0.0 False {'valid': 1.0")
    assert lines[2] == "0.0 False {'valid': 0.0, 'failed': 1.0, 'abstained': 0.0, 'part_format': 0.0}"


def test_the_page_shows_an_evaluator() -> None:
    evaluator = pasted("rLLM")["evaluator"]
    task = Task("t", "1+1?", {"ground_truth": "2"})
    assert evaluator.evaluate(task, Episode({"answer": "\\boxed{2}"})).reward == 1.0
