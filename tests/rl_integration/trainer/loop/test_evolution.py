"""Evolution strategies: the update is the formula's, runs learn and resume, and what is not read is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.rl_integration.trainer.small_runs import Unsure, small_config, small_run

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.loop.config import EvolutionConfig
from adjudge.rl_integration.trainer.loop.evolution import standardized
from adjudge.rl_integration.trainer.loop.run import Run, RunResult


def evolving(folder: Path, *, evolution: Mapping[str, Any] | None = None, rate: float = 0.05, **more: Any) -> Run:
    config = EvolutionConfig(**{"population": 6, "sigma": 0.05, **(evolution or {})})
    given = {"num_generations": 2, "steps": 1, "learning": {"evolution": config, "learning_rate": rate}, **more}
    return small_run(folder, small_config(**given))


def weights(run: Run) -> list[torch.Tensor]:
    return [value.detach().clone() for value in run.policy.model.parameters()]


def noise(run: Run, member: int, *, mirrored: bool = False) -> list[torch.Tensor]:
    """A member's direction, drawn anew: one seed for each tensor."""
    drawn = []
    for place, value in enumerate(run.policy.model.parameters()):
        state = np.random.SeedSequence([0, 0, member, place]).generate_state(1, np.uint64)[0]
        generator = torch.Generator().manual_seed(int(state) // 2)
        drawn.append((-1 if mirrored else 1) * torch.randn(value.shape, generator=generator))
    return drawn


@pytest.mark.parametrize("antithetic", [False, True])
def test_an_update_is_the_formula(tmp_path: Path, antithetic: bool) -> None:
    seen: list[list[float]] = []

    def told(numbers: Mapping[str, float], rollouts: Sequence[Rollout], scores: Sequence[Score]) -> None:
        assert len({rollout.id for rollout in rollouts}) == 6 * 4 * 2
        values = [score.value or 0.0 for score in scores]
        seen.append([sum(values[at : at + 8]) / 8 for at in range(0, 48, 8)])
        assert numbers["reward"] == pytest.approx(sum(values) / 48)
        assert numbers["members_std"] == pytest.approx(np.std(seen[0]))

    run = evolving(tmp_path, evolution={"antithetic": antithetic})
    wanted = weights(run)
    run.train(on_step=told)
    (rewards,) = seen
    assert np.ptp(rewards) > 0
    for member, reward in enumerate(rewards):
        mirrored = antithetic and member >= 3
        share = float((reward - np.mean(rewards)) / (np.std(rewards) + 1e-8))
        for value, part in zip(wanted, noise(run, member - 3 if mirrored else member, mirrored=mirrored), strict=True):
            value += 0.05 / 6 * share * part
    for value, found in zip(wanted, weights(run), strict=True):
        torch.testing.assert_close(found, value, atol=1e-5, rtol=1e-4)


@given(rewards=st.lists(st.sampled_from([0.0, 0.25, 1.0, float("nan")]), min_size=1, max_size=6))
def test_members_without_a_reward_have_no_vote(rewards: list[float]) -> None:
    found = standardized(np.array(rewards))
    known = [reward for reward in rewards if reward == reward]
    for share, reward in zip(found, rewards, strict=True):
        usual = (reward - np.mean(known)) / (np.std(known) + 1e-8) if len(set(known)) > 1 and reward == reward else 0.0
        assert share == pytest.approx(usual)


@pytest.mark.full
def test_a_run_learns(tmp_path: Path) -> None:
    result = evolving(tmp_path, evolution={"population": 16}, rate=0.15, steps=25, save_steps=25).train()
    rewards = [line["reward"] for line in result.history]
    assert np.mean(rewards[-5:]) > np.mean(rewards[:5]) + 0.1, rewards


def test_a_run_that_was_cut_off_ends_as_one_that_ran_through(tmp_path: Path) -> None:
    def made(name: str) -> Run:
        return evolving(tmp_path / name, evolution={"population": 4}, steps=3)

    class Stopped(Exception):
        pass

    def stop(numbers: Mapping[str, float], *_: Any) -> None:
        if numbers["step"] == 2:
            raise Stopped

    whole = made("whole")
    expected = whole.train()
    with pytest.raises(Stopped):
        made("cut").train(on_step=stop)
    again = made("cut")
    assert curve(again.train(resume=True)) == curve(expected)
    assert all(torch.equal(left, right) for left, right in zip(weights(again), weights(whole), strict=True))


def curve(result: RunResult) -> list[dict[str, float]]:
    return [{name: value for name, value in line.items() if not name.startswith("seconds")} for line in result.history]


def test_answers_that_cannot_be_judged_count_for_nothing(tmp_path: Path) -> None:
    result = evolving(tmp_path, scorer=Unsure(), reward={"max_failed": 0.9}).train()
    assert 0 < result.history[0]["failed"] < 1
    assert 0 <= result.history[0]["reward"] <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "dr_grpo"}, "objective is set beside learning.evolution"),
        ({"staleness": 1}, "rollouts.staleness is set"),
        ({"evolution": {"antithetic": True, "population": 5}}, "population is 5"),
        ({"evolution": {"population": 1}}, "population"),
        ({"evolution": {"sigma": 0.0}}, "sigma"),
    ],
)
def test_what_it_does_not_read_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evolving(tmp_path, **options)
