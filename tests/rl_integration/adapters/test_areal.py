"""AReaL's calls, on a workflow of the shape its source declares; tests/frameworks/areal runs the real one."""

from __future__ import annotations

import asyncio
import pickle
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.areal import ArealReward
from adjudge.rl_integration.adapters.failures import WINDOW, NotScored, StopRun

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "areal_reward.py"


class RLVRWorkflow:
    """The parts of AReaL's that meet a reward: it wraps `reward_fn`, and awaits what it made by position."""

    def __init__(self, reward_fn: Any, gconfig: Any = None) -> None:
        self.gconfig = gconfig
        self.async_reward_fn: Any = ("a pool for", reward_fn)

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
        completion = await engine(data)
        return {"rewards": await self.async_reward_fn("1+1?", completion, [1, 2], [3, 4], **data)}


def rolled_out(workflow: Any, completion: str, **row: Any) -> Any:
    async def engine(data: dict[str, Any]) -> str:
        return completion

    return asyncio.run(workflow.arun_episode(engine, row))


def test_the_plain_function_is_called_with_texts_ids_and_the_row() -> None:
    reward = ArealReward(scorer="math")
    row = {"messages": [{"role": "user", "content": "1+1?"}], "answer": "2"}
    assert reward("1+1?", "\\boxed{2}", [1], [2], **row) == 1.0
    assert reward(prompt="1+1?", completions="\\boxed{3}", prompt_ids=[1], completion_ids=[2], **row) == 0.0
    assert row["messages"] == [{"role": "user", "content": "1+1?"}]
    with pytest.raises(ValueError, match=r"a row of AReaL has no 'answer'.*it has gold"):
        reward("1+1?", "\\boxed{2}", [1], [2], gold="2")


def test_it_works_in_processes_threads_and_loops() -> None:
    reward = pickle.loads(pickle.dumps(ArealReward(scorer="math", fallback=0.0)))  # AReaL pickles it for its pool
    assert reward.__name__ == "adjudge"
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: reward("?", f"\\boxed{{{n}}}", [], [], answer="2"), range(4)))
    assert found == [0.0, 0.0, 1.0, 0.0]

    async def inside() -> tuple[Any, Any]:
        return reward("?", "\\boxed{2}", [], [], answer="2"), await reward.value("?", "\\boxed{2}", answer="2")

    assert asyncio.run(inside()) == (1.0, 1.0)


def test_what_has_no_score_raises_is_the_fallback_or_is_none() -> None:
    for completion in ("fail", "decline"):
        with pytest.raises(NotScored, match="AReaL wants a number for it"):
            ArealReward(scorer=Scripted(), reference="")("?", completion, [], [])
        lenient = ArealReward(scorer=Scripted(), reference="", fallback=0.5)
        assert lenient("?", completion, [], []) == 0.5
        assert asyncio.run(lenient.value("?", completion)) is None, "the workflow rejects, whatever the fallback"


def test_a_workflow_rejects_what_has_no_score_and_keeps_the_rest() -> None:
    scorer = Scripted()
    workflow = ArealReward(scorer=scorer, fallback=9.0).workflow(RLVRWorkflow)(gconfig="g")
    assert workflow.gconfig == "g"
    assert rolled_out(workflow, "0.25", answer="2") == {"rewards": 0.25}
    assert rolled_out(workflow, "wrong", answer="2") == {"rewards": 0.0}
    assert rolled_out(workflow, "fail", answer="2") is None
    assert rolled_out(workflow, "decline", answer="2") is None
    assert (scorer.seen[0].reference, scorer.seen[0].group) == ("2", "")
    ArealReward(scorer=scorer, group="id")("?", "1", [], [], answer="2", id=7)
    assert scorer.seen[-1].group == "7"
    assert isinstance(workflow, RLVRWorkflow), "AReaL tells workflows by their class"


def test_the_base_is_areals_own_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("areal.workflow.rlvr")
    module.__dict__["RLVRWorkflow"] = RLVRWorkflow
    for name in ("areal", "areal.workflow"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "areal.workflow.rlvr", module)
    made = ArealReward(scorer="math").workflow()
    assert made.__mro__[1] is RLVRWorkflow
    assert rolled_out(cloudpickle.loads(cloudpickle.dumps(made))(), "\\boxed{2}", answer="2") == {"rewards": 1.0}


def test_errors_that_are_no_missing_scores_are_not_rejections() -> None:
    workflow = ArealReward(scorer="math").workflow(RLVRWorkflow)()
    with pytest.raises(StopRun, match="adjudge: a row of AReaL has no 'answer'"):
        rolled_out(workflow, "\\boxed{2}", gold="2")
    assert not issubclass(StopRun, Exception), "AReaL would go on"
    with pytest.raises(ValueError, match="leave it out"):
        ArealReward(scorer="math").workflow(RLVRWorkflow)(reward_fn="areal.reward.gsm8k.gsm8k_reward_fn")


def test_a_run_whose_every_trajectory_is_rejected_is_stopped() -> None:
    workflow = ArealReward(scorer=Scripted(), reference="").workflow(RLVRWorkflow)()
    assert [rolled_out(workflow, "fail") for _ in range(WINDOW // 2)] == [None] * (WINDOW // 2)
    with pytest.raises(StopRun, match=f"adjudge: {WINDOW // 2 + 1} of the latest {WINDOW} samples"):
        rolled_out(workflow, "fail")


def test_special_tokens_at_the_end_are_cut_and_tell_whether_it_ended() -> None:
    scorer = Scripted()
    reward = ArealReward(scorer=scorer, reference="", ends=["<|im_end|>", "</s>"])
    completions = ["1<|im_end|>", "2</s>\n", "3", "</s>4", "", "<|im_end|>"]
    for completion in completions:
        reward("?", completion, [], [])
    assert [(sample.response, sample.finish_reason) for sample in scorer.seen] == [
        ("1", "stop"),
        ("2", "stop"),
        ("3", "length"),
        ("</s>4", "length"),
        ("", "length"),
        ("", "stop"),
    ]
    ArealReward(scorer=scorer, reference="")("?", "5<|im_end|>", [], [])
    assert (scorer.seen[-1].response, scorer.seen[-1].finish_reason) == ("5<|im_end|>", None)


def test_mistakes_are_told_before_the_run() -> None:
    for wrong in ("<|im_end|>", [7], [""]):
        with pytest.raises(ValueError, match="ends="):
            ArealReward(scorer="math", ends=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="AReaL gives them one by one"):
        ArealReward(scorer=Scripted(groupwise=True))


@pytest.mark.parametrize("completion", ["", [], "\ud800\\boxed{", "\x00"])
def test_hostile_completions_are_wrong_answers(completion: Any) -> None:
    assert ArealReward(scorer="math", ends=["</s>"])("?", completion, [], [], answer="2") == 0.0


def test_the_example_prints_what_it_is_meant_to(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == "1.0\n0.0\nNone\n1.0 as reward_fn\n"
