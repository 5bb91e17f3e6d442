"""Both adapters for PrimeIntellect's verifiers, as far as they can be tried without it; `tests/frameworks` has it."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.rl_integration.adapters.scripted_scorer import Scripted
from tests.rl_integration.server.conftest import served

from adjudge.prime_rl import RubricGroupReward, RubricReward, VerifiersReward
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import NotScored
from adjudge.rl_integration.server.base.config import ServerConfig


class Compares:
    """A scorer of groups."""

    name = "compares"
    fingerprint = "compares:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(float(len(samples))) for _ in samples]


def plain(**fields: Any) -> Any:
    """An object with the one method of pydantic's that the adapters call."""
    return SimpleNamespace(**fields, model_dump=lambda **_: dict(fields))


def trace(text: str) -> Any:
    """As much of a trace as is read of one."""
    nodes = [
        plain(message=plain(role="user", content="1+1?"), sampled=False),
        plain(message=plain(role="assistant", content=text), sampled=True),
    ]
    call = SimpleNamespace(error=None, finish_reason="stop")
    branch = SimpleNamespace(nodes=nodes)
    return SimpleNamespace(
        id="t",
        task=SimpleNamespace(key="k"),
        branches=[branch],
        root_reply=None,
        calls=[call],
        is_truncated=False,
        info={},
    )


def state() -> dict[str, Any]:
    return {"error": None, "example_id": 7, "is_truncated": False}


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> type[Exception]:
    """Their class of errors, where they are not installed."""
    kind = type("Error", (Exception,), {})
    monkeypatch.setitem(sys.modules, "verifiers", SimpleNamespace(Error=kind))
    return kind


def test_a_trace_is_scored_here_and_by_a_server_alike() -> None:
    task = plain(answer="2", prompt_text="1+1?")
    here = VerifiersReward(scorer="math")
    assert [asyncio.run(here(task, trace(rf"\boxed{{{n}}}"))) for n in (2, 3)] == [1.0, 0.0]
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        there = VerifiersReward(scorer="math", server=address)
        assert [asyncio.run(there(task, trace(rf"\boxed{{{n}}}"))) for n in (2, 3)] == [1.0, 0.0]


def test_a_trace_without_a_score_raises() -> None:
    seen = trace("2")
    with pytest.raises(NotScored, match=r"the rollout failed \(gold_unparsable\)"):
        asyncio.run(VerifiersReward(scorer="math")(plain(answer="\\frac{1}{"), seen))
    assert seen.info["adjudge"]["math"]["status"] == "failed"


def test_the_arguments_have_the_names_that_verifiers_looks_for() -> None:
    assert list(inspect.signature(VerifiersReward("math")).parameters) == ["task", "trace"]
    alone = list(inspect.signature(RubricReward("math")).parameters)
    assert alone == ["prompt", "completion", "answer", "info", "state"]
    group = list(inspect.signature(RubricGroupReward("math")).parameters)
    assert group == ["prompts", "completions", "answers", "infos", "states"], "plural: how a group function is known"
    assert (VerifiersReward("math").__name__, RubricReward("math", name="x").__name__) == ("math", "x")


def test_they_can_be_sent_to_another_process() -> None:
    reward = pickle.loads(pickle.dumps(VerifiersReward(scorer="math")))
    assert asyncio.run(reward(plain(answer="2"), trace("2"))) == 1.0
    rubric = pickle.loads(pickle.dumps(RubricReward(scorer="math")))
    assert asyncio.run(rubric("1+1?", [{"role": "assistant", "content": "2"}], "2", {}, state())) == 1.0


def test_a_reference_may_be_anywhere_in_a_rollout() -> None:
    for place in ("info.gold", lambda row: row["info"]["gold"]):
        reward = RubricReward(scorer="math", reference=place)
        assert asyncio.run(reward("1+1?", "2", "5", {"gold": "2"}, state())) == 1.0


def test_a_rollout_that_was_cut_off_is_scored_as_such() -> None:
    cut = {**state(), "is_truncated": True}
    reward = RubricReward(scorer="math")
    found = [asyncio.run(reward("1+1?", "2", "2", {}, one)) for one in (state(), cut)]
    assert found == [1.0, 0.0], "without a box only an answer that is complete counts"


def test_only_a_last_turn_that_was_cut_off_is_an_answer_that_was() -> None:
    """The state's `is_truncated` is that of any turn; without a turn that was cut off it is the environment's word."""
    reward, found = RubricReward(scorer="math"), []
    for turns in ([True, False], [False, True], [False, False]):
        cut = {**state(), "is_truncated": True, "trajectory": [{"is_truncated": turn} for turn in turns]}
        found.append(asyncio.run(reward("1+1?", "2", "2", {}, cut)))
    assert found == [1.0, 0.0, 0.0]


def test_examples_of_one_number_in_two_data_sets_are_two_groups() -> None:
    seen = Scripted(groupwise=True)
    for prompt, answer in (("1+1?", "2"), ("1+1?", "2"), ("3+3?", "2"), ("1+1?", "3")):
        asked = [{"role": "user", "content": prompt}]
        asyncio.run(RubricGroupReward(scorer=seen)([asked], ["1"], [answer], [{}], [state()]))
    first, sibling, other_prompt, other_reference = (sample.group for sample in seen.seen)
    assert first == sibling
    assert len({first, other_prompt, other_reference}) == 3
    named = RubricGroupReward(scorer=seen, group="info.row")
    asyncio.run(named(["1+1?"], ["2"], ["2"], [{"row": 5}], [state()]))
    assert seen.seen[-1].group == "5"


def test_a_rollout_without_a_score_is_marked(errors: type[Exception]) -> None:
    failed = state()
    with pytest.raises(NotScored):
        asyncio.run(RubricReward(scorer="math")("1+1?", "2", "\\frac{1}{", {}, failed))
    assert isinstance(failed["error"], errors)
    assert "gold_unparsable" in str(failed["error"])


def test_a_mistake_marks_each_rollout(errors: type[Exception]) -> None:
    states = [state(), state()]
    with pytest.raises(ValueError, match="the prompt of Rubric is a object"):
        asyncio.run(RubricGroupReward(scorer="math")(["", object()], ["", ""], ["2", "2"], [{}, {}], states))
    assert all(isinstance(one["error"], errors) for one in states)


def test_a_group_is_compared_as_one() -> None:
    reward = RubricGroupReward(scorer=Compares(), reference="")
    assert asyncio.run(reward(["p"] * 3, ["a", "b", "c"], [""] * 3, [{}] * 3, [state() for _ in range(3)])) == [3.0] * 3


def test_mistakes_are_told_when_a_reward_is_made() -> None:
    with pytest.raises(ValueError, match="reward server that gathers them"):
        VerifiersReward(scorer=Compares())
    with pytest.raises(ValueError, match="give it to RubricGroupReward"):
        RubricReward(scorer=Compares())
    for kind in (VerifiersReward, RubricReward, RubricGroupReward):
        with pytest.raises(ValueError, match="maths"):
            kind(scorer="maths")
        with pytest.raises(ValueError, match="reference=7"):
            kind(scorer="math", reference=7)  # type: ignore[arg-type]
