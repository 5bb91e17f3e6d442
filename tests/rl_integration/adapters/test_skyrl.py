"""SkyRL's calls, on a base class of the shape SkyRL-Gym declares; tests/frameworks/skyrl_gym runs the real one."""

from __future__ import annotations

import asyncio
import pickle
import runpy
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pytest
from tests.rl_integration.adapters.scripted_scorer import Scripted
from tests.rl_integration.server.conftest import served

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import WINDOW, NotScored, TooManyFailures
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.skyrl import SkyRLReward

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "skyrl_reward.py"
PROMPT = [{"role": "user", "content": "1+1?"}]


class BaseTextEnv:
    """What SkyRL-Gym's base class is, as far as an environment of one turn meets it."""

    def __init__(self) -> None:
        self.turns = 0
        self.max_turns = 1


@pytest.fixture(autouse=True)
def skyrl_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("skyrl_gym.envs.base_text_env")
    module.__dict__["BaseTextEnv"] = BaseTextEnv
    for name in ("skyrl_gym", "skyrl_gym.envs"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "skyrl_gym.envs.base_text_env", module)


def extras(truth: Any) -> dict[str, Any]:
    return {"reward_spec": {"method": "rule", "ground_truth": truth}, "max_turns": 1}


def played(environment: type[Any], action: Any, truth: Any = "2") -> tuple[Any, Any]:
    """As SkyRL's generator does it: make, init, step, and the metrics at the end."""
    made = environment(env_config={}, extras=extras(truth))
    assert made.init(PROMPT) == (PROMPT, {})
    return made.step(action), made.get_metrics()


def test_an_episode_of_one_turn_is_scored() -> None:
    environment = SkyRLReward(scorer="math").environment()
    step, metrics = played(environment, "\\boxed{2}")
    assert step == {
        "observations": [],
        "reward": 1.0,
        "done": True,
        "metadata": {"status": "scored", "reason": "", "valid": True},
    }
    assert metrics == {"valid": 1.0, "failed": 0.0, "abstained": 0.0}
    step, _ = played(environment, "\\boxed{3}")
    assert (step["reward"], step["metadata"]["reason"]) == (0.0, "wrong")


def test_prompt_and_reference_reach_the_scorer() -> None:
    scorer = Scripted()
    played(SkyRLReward(scorer=scorer).environment(), "1", '{"tests": ["assert f(1) == 2"]}')
    assert scorer.seen[0].prompt == PROMPT
    assert scorer.seen[0].reference == {"tests": ["assert f(1) == 2"]}
    played(SkyRLReward(scorer=scorer, reference=lambda row: row["max_turns"]).environment(), "1")
    assert scorer.seen[1].reference == 1
    played(SkyRLReward(scorer=scorer, group="reward_spec.method").environment(), "1")
    assert [sample.group for sample in scorer.seen] == ["", "", "rule"]


def test_a_row_without_a_reference_is_told_before_anything_is_generated() -> None:
    environment = SkyRLReward(scorer="math").environment()
    with pytest.raises(ValueError, match=r"a row of SkyRL has no 'reward_spec.ground_truth'.*it has data_source"):
        environment(env_config=None, extras={"data_source": "x"})
    with pytest.raises(ValueError, match="no 'uid' with the group"):
        SkyRLReward(scorer="math", group="uid").environment()(extras=extras("2"))
    with pytest.raises(ValueError, match="it has nothing"):
        environment()
    assert SkyRLReward(scorer=Scripted(), reference="").environment()().step("1")["reward"] == 1.0


def test_what_has_no_score_stops_the_run_or_is_marked() -> None:
    strict = SkyRLReward(scorer=Scripted()).environment()
    for action in ("fail", "decline"):
        with pytest.raises(NotScored, match="SkyRL wants a number for it"):
            played(strict, action)
    lenient = SkyRLReward(scorer=Scripted(), fallback=0.5).environment()
    step, metrics = played(lenient, "fail")
    assert step["reward"] == 0.5
    assert step["metadata"] == {"status": "failed", "reason": "engine_timeout", "valid": False}
    assert metrics == {"valid": 0.0, "failed": 1.0, "abstained": 0.0}
    assert played(lenient, "decline")[1] == {"valid": 0.0, "failed": 0.0, "abstained": 1.0}
    assert lenient(extras=extras("2")).get_metrics() == {}, "an episode that took no step says nothing"


def test_a_run_whose_episodes_mostly_fail_is_stopped() -> None:
    environment = SkyRLReward(scorer=Scripted(), fallback=0.0).environment()
    for _ in range(WINDOW // 2):
        played(environment, "fail")
    with pytest.raises(TooManyFailures):
        played(environment, "fail")


def test_steps_run_in_threads_and_inside_a_loop() -> None:
    environment = SkyRLReward(scorer="math").environment()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: played(environment, f"\\boxed{{{n}}}")[0]["reward"], range(8)))
    assert found == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]

    async def inside() -> Any:
        return played(environment, "\\boxed{2}")[0]["reward"]

    assert asyncio.run(inside()) == 1.0, "with max_env_workers=0 SkyRL steps in its event loop"


class Siblings:
    """Scores a sample by how many of its group came in the same call."""

    name = "siblings"
    fingerprint = "siblings:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        groups = Counter(sample.group for sample in samples)
        return [Score.scored(groups[sample.group]) for sample in samples]


def test_a_server_gathers_groups_that_come_one_by_one() -> None:
    lane = LaneConfig(scorer=Siblings(), cohort=3)
    with served({"siblings": lane}, ServerConfig(port=0)) as address:
        environment = SkyRLReward(server=address, group="uid", reference="").environment()

        def reward(uid: int) -> Any:
            return environment(extras={"uid": uid}).step("answer")["reward"]

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(reward, [1, 2, 1, 2, 1, 2])) == [3.0] * 6


def test_environments_of_ones_own_score_whole_trajectories() -> None:
    reward = pickle.loads(pickle.dumps(SkyRLReward(scorer="math")))
    turns = [
        {"role": "assistant", "content": "It is \\boxed{2}."},
        {"role": "user", "content": "Or is it \\boxed{3}?"},
    ]
    assert reward.last_step(PROMPT, turns, extras("2"))["reward"] == 1.0
    assert reward.last_step(PROMPT, turns, extras("3"))["reward"] == 0.0, "what the user said is not the model's"


def test_the_class_can_be_sent_to_another_process() -> None:
    environment = cloudpickle.loads(cloudpickle.dumps(SkyRLReward(scorer="math").environment()))
    assert played(environment, "\\boxed{2}")[0]["reward"] == 1.0


@pytest.mark.parametrize("action", ["", "\ud800\\boxed{", "\x00"])
def test_hostile_actions_are_wrong_answers(action: Any) -> None:
    assert played(SkyRLReward(scorer="math").environment(), action)[0]["reward"] == 0.0


def test_an_action_that_got_lost_is_no_wrong_answer() -> None:
    with pytest.raises(NotScored, match="the response is None"):
        played(SkyRLReward(scorer="math").environment(), None)


def test_mistakes_are_told_before_the_run() -> None:
    with pytest.raises(ValueError, match="maths"):
        SkyRLReward(scorer="maths")
    with pytest.raises(ValueError, match="SkyRL gives them one by one"):
        SkyRLReward(scorer=Scripted(groupwise=True))


def test_the_example_prints_what_it_is_meant_to(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == (
        "1.0 {'status': 'scored', 'reason': '', 'valid': True}\n"
        "0.0 {'status': 'scored', 'reason': 'wrong', 'valid': True}\n"
        "0.0 {'status': 'failed', 'reason': 'gold_unparsable', 'valid': False}\n"
    )
