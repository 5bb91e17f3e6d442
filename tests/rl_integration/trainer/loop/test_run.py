"""The loop learns, goes on where it was, and gives no vote to what could not be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer.nursery import Nursery
from tests.rl_integration.trainer.small_runs import TASKS, Digits, Unsure, small_config, small_run

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import TooManyFailures
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop.run import Run, RunResult
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig


def curve(result: RunResult) -> list[dict[str, float]]:
    """The numbers of a run without its times."""
    return [{name: value for name, value in line.items() if not name.startswith("seconds")} for line in result.history]


def weights(run: Run) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in run.policy.model.state_dict().items()}


class Stopped(Exception):
    """A kill, as far as one process can play it: nothing of the step after it is written."""


def stop_at(step: int) -> Any:
    def on_step(numbers: Mapping[str, float], *_: Any) -> None:
        if numbers["step"] == step:
            raise Stopped

    return on_step


def test_reward_rises(tmp_path: Path) -> None:
    result = small_run(
        tmp_path, small_config(steps=25, tasks=8, num_generations=8, save_steps=100), held_out=TASKS[:4]
    ).train()
    assert result.steps == 25
    first, last = result.history[0], result.history[-1]
    assert last["reward"] > first["reward"] + 0.15, (first, last)
    assert 0 <= last["held_out"] <= 1
    assert "held_out" not in first


@pytest.mark.parametrize("staleness", [0, 2])
@pytest.mark.parametrize("step", [1, 3])
def test_a_run_that_was_cut_off_ends_as_one_that_ran_through(tmp_path: Path, staleness: int, step: int) -> None:
    config = small_config(steps=5, staleness=staleness, save_steps=2, learning={"minibatches": 2})
    whole = small_run(tmp_path / "whole", config)
    expected = whole.train()
    with pytest.raises(Stopped):
        small_run(tmp_path / "cut", config).train(on_step=stop_at(step))
    again = small_run(tmp_path / "cut", config)
    found = again.train(resume=True)
    assert found.resumed == step - step % 2
    assert curve(found) == curve(expected)
    left, right = weights(again), weights(whole)
    assert all(torch.equal(left[name], right[name]) for name in right)


def test_answers_are_as_old_as_the_run_is_ahead(tmp_path: Path) -> None:
    result = small_run(tmp_path, small_config(steps=6, staleness=2)).train()
    assert [line["staleness"] for line in result.history] == [0.0, 1.0, 2.0, 2.0, 2.0, 2.0]


def test_what_cannot_be_judged_has_no_vote(tmp_path: Path) -> None:
    seen: list[tuple[Sequence[Any], Sequence[Score]]] = []
    run = small_run(tmp_path, small_config(scorer=Unsure(), steps=2))
    result = run.train(on_step=lambda numbers, rollouts, scores: seen.append((rollouts, scores)))
    for line, (rollouts, scores) in zip(result.history, seen, strict=True):
        values = [score.value for score in scores if score.value is not None]
        assert 0 < len(values) < len(rollouts), "some must fail for this test to say anything"
        assert line["reward"] == pytest.approx(sum(values) / len(values))
        assert line["failed"] == pytest.approx(1 - len(values) / len(rollouts))


class Down(Digits):
    name = "down"
    fingerprint = "down:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.failed("engine_unavailable") for _ in samples]


def test_a_scorer_that_is_down_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(TooManyFailures, match=r"16 of 16 rollouts .*engine_unavailable.*reward.max_failed"):
        small_run(tmp_path, small_config(scorer=Down(), reward={"timeout": 0.0})).train()


class DownLater(Digits):
    """Is down after so many answers."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.left -= len(samples)
        return await (super().score(samples) if self.left >= 0 else Down().score(samples))


@pytest.mark.parametrize(("staleness", "step"), [(0, 0), (0, 2), (1, 3)])
def test_a_run_whose_scorer_failed_goes_on_as_if_it_had_not(tmp_path: Path, staleness: int, step: int) -> None:
    options: dict[str, Any] = {"steps": 4, "staleness": staleness, "save_steps": 50}
    whole = small_run(tmp_path / "whole", small_config(**options))
    expected = whole.train()
    with pytest.raises(TooManyFailures):
        small_run(tmp_path / "cut", small_config(scorer=DownLater(16 * step), **options)).train()
    again = small_run(tmp_path / "cut", small_config(**options))
    found = again.train(resume=True)
    assert (found.resumed, curve(found)) == (step, curve(expected))
    assert all(torch.equal(value, weights(whole)[name]) for name, value in weights(again).items())


@pytest.mark.parametrize("objective", ["rloo", "ppo"])
def test_a_divergence_that_the_reward_pays_for_is_told(tmp_path: Path, objective: str) -> None:
    result = small_run(tmp_path, small_config(objective=objective, steps=3)).train()
    assert result.history[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert abs(result.history[-1]["kl"]) > 1e-4


def test_the_learning_rate_is_told(tmp_path: Path) -> None:
    config = small_config(steps=4, learning={"learning_rate": 0.3, "warmup_steps": 2, "decay": "linear"})
    rates = [line["learning_rate"] for line in small_run(tmp_path, config).train().history]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.15])


class Constant(Digits):
    name = "constant"
    fingerprint = "constant:1"

    def _share(self, text: str) -> float:
        return 1.0


def test_flat_groups_change_nothing(tmp_path: Path) -> None:
    run = small_run(tmp_path, small_config(scorer=Constant(), steps=2))
    before = weights(run)
    result = run.train()
    assert [line["trained"] for line in result.history] == [0.0, 0.0]
    assert all(torch.equal(before[name], value) for name, value in weights(run).items())


def test_flat_groups_are_drawn_anew_up_to_a_bound(tmp_path: Path) -> None:
    config = small_config(scorer=Constant(), objective="dapo", steps=1, rollouts={"max_num_gen_batches": 3})
    (line,) = small_run(tmp_path / "flat", config).train().history
    assert line["batches"] == 3
    config = small_config(objective="dapo", steps=3, tasks=4)
    lengths: list[int] = []
    small_run(tmp_path / "some", config).train(on_step=lambda numbers, rollouts, scores: lengths.append(len(rollouts)))
    assert lengths == [16, 16, 16]


class Parted(Digits):
    name = "parted"
    fingerprint = "parted:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        scores = await super().score(samples)
        short = [Score.scored(1 / (1 + len(str(sample.response)))) for sample in samples]
        return [replace(one, parts={"digits": one, "short": two}) for one, two in zip(scores, short, strict=True)]


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_runs(tmp_path: Path, name: str) -> None:
    scorer = Parted() if name == "gdpo" else Digits()
    learning = {} if name == "rover" else {"minibatches": 2}
    run = small_run(tmp_path, small_config(scorer=scorer, objective=name, steps=2, learning=learning))
    before = weights(run)
    result = run.train()
    assert result.steps == 2
    assert any(not torch.equal(before[name], value) for name, value in weights(run).items())


def test_a_folder_with_a_run_in_it_is_not_overwritten(tmp_path: Path) -> None:
    small_run(tmp_path, small_config(steps=1)).train()
    with pytest.raises(ValueError, match="--resume"):
        small_run(tmp_path, small_config(steps=1)).train()


def test_a_folder_belongs_to_one_run_at_a_time(nursery: Nursery, tmp_path: Path) -> None:
    """Another process is refused, and another thread; a run that was killed holds nothing (`test_resume`)."""
    ends = []

    def on_step(*_: Any) -> None:
        ends.append(nursery.run("train", folder=str(tmp_path), steps=1))
        with (
            ThreadPoolExecutor() as pool,
            pytest.raises(ValueError, match=rf"another run writes '{tmp_path}'; wait .* name another output"),
        ):
            pool.submit(small_run(tmp_path, small_config(steps=1)).train, resume=True).result()

    small_run(tmp_path, small_config(steps=1)).train(on_step=on_step)
    ends.append(nursery.run("train", folder=str(tmp_path), steps=1))
    assert ends == [[1], [0]]


def test_a_run_can_be_stopped_and_goes_on(tmp_path: Path) -> None:
    config = small_config(steps=4, save_steps=100)
    result = small_run(tmp_path, config).train(on_step=lambda numbers, *_: numbers["step"] == 2)
    assert (result.steps, result.stopped) == (2, "it was told to stop")
    again = small_run(tmp_path, config).train(resume=True)
    assert (again.steps, again.resumed, again.stopped) == (4, 2, "")


def test_the_group_scorer_gets_whole_groups(tmp_path: Path) -> None:
    sizes: list[int] = []

    class Best(Digits):
        name = "best"
        fingerprint = "best:1"
        groupwise = True

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            names = {sample.group for sample in samples}
            sizes.extend(sum(sample.group == name for sample in samples) for name in names)
            return await super().score(samples)

    small_run(tmp_path, small_config(scorer=Best(), steps=2)).train()
    assert set(sizes) == {4}


def test_a_prompt_without_room_for_an_answer_is_refused_before_any_work(tmp_path: Path) -> None:
    long = Task(id="long", prompt="1+" * 40 + "1=")
    for tasks, held_out in (([*TASKS, long], []), (TASKS, [long])):
        with pytest.raises(
            ValueError, match=r"'long' has 82 tokens, and with 8 .* more than the 64 .*max_prompt_tokens"
        ):
            small_run(tmp_path, small_config(), tasks=tasks, held_out=held_out)
    with pytest.raises(ValueError, match="prompt of task 'none' is empty"):
        small_run(tmp_path, small_config(), tasks=[Task(id="none", prompt="")])


def test_tasks_with_one_id_are_refused_on_either_side(tmp_path: Path) -> None:
    twice = [TASKS[0], replace(TASKS[1], id=TASKS[0].id)]
    for tasks, held_out in ((twice, []), (TASKS, twice)):
        with pytest.raises(ValueError, match="two tasks have the id"):
            small_run(tmp_path, small_config(), tasks=tasks, held_out=held_out)


def test_groups_that_are_too_small_to_compare_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rollouts.num_generations is 1, and grpo compares .* at least 2"):
        small_config(num_generations=1)
    assert small_config(num_generations=1, objective="ppo").rollouts.num_generations == 1


def test_answers_that_are_all_the_likeliest_one_are_not_compared() -> None:
    greedy = RolloutsConfig(tasks=4, sampling=SamplingConfig(max_new_tokens=8, temperature=0.0))
    with pytest.raises(ValueError, match=r"rollouts.sampling.temperature is 0.0, .* grpo compares .* give 1"):
        replace(small_config(), rollouts=greedy)
    assert replace(small_config(objective="reinforce"), rollouts=greedy).rollouts is greedy


def test_a_step_has_no_more_minibatches_than_prompts() -> None:
    with pytest.raises(ValueError, match=r"learning.minibatches is 5, and a step has 4 prompts"):
        small_config(learning={"minibatches": 5})


def test_nothing_is_measured_where_there_are_no_tasks(tmp_path: Path) -> None:
    config = small_config()
    with Rewards(config.reward) as rewards:
        assert small_run(tmp_path, config).evaluate([], rewards) == {}
