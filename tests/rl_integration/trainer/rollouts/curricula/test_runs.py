"""Runs with every curriculum and every improver: they learn, and one that was cut off ends as one that ran through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_policy, small_run

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskOrder
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.prompt_states import prompt_states
from adjudge.rl_integration.trainer.loop.run import Run, RunResult
from adjudge.rl_integration.trainer.rollouts.curricula.choice import (
    CURRICULA,
    IMPROVERS,
    CurriculumChoice,
    ImproverChoice,
)
from adjudge.rl_integration.trainer.rollouts.rollouts_config import TreeConfig

FULL = [
    replace(
        one, extra={"source": "ab"[place % 2], "solution": "9 9 9 9", "hint": "0 0", "pass_rate": place / len(TASKS)}
    )
    for place, one in enumerate(TASKS)
]

# A new policy's answers are three quarters digits, so hardly one is right by these.
STRICT = {"right_above": 0.9}


class Proposing(Digits):
    """Takes the prompt of every other answer for the task that it proposes."""

    name = "proposing"
    fingerprint = "proposing:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [
            replace(score, evidence={"solved": 0.5, "task": sample.prompt} if len(str(sample.response)) % 2 else {})
            for sample, score in zip(samples, await super().score(samples), strict=True)
        ]


RUNS: dict[str, dict[str, Any]] = {
    "mopps, dars, rlpr": {
        "curriculum": CurriculumChoice(
            names=("mopps", "dars", "rlpr"),
            set={"dars.totals": [8, 6], "dars.right_above": 0.9, "rlpr.first_average": 1, "rlpr.first_filter": 2},
        )
    },
    "pcl, reinforce_ada, critique_grpo": {
        "curriculum": CurriculumChoice(names=("pcl", "reinforce_ada"), set={"reinforce_ada.right_above": 0.9}),
        "improver": ImproverChoice(name="critique_grpo", set={"critique": "verdict", "request": "=", **STRICT}),
    },
    "sec, dars_hard, zero_variance, ghpo": {
        "curriculum": CurriculumChoice(
            names=("sec", "dars_hard", "zero_variance"), set={"dars_hard.totals": [6, 5], "dars_hard.right_above": 0.9}
        ),
        "improver": ImproverChoice(name="ghpo", set={"lead": " ", **STRICT}),
    },
    "dump, pf_ppo, nurl": {
        "curriculum": CurriculumChoice(names=("dump", "pf_ppo")),
        "improver": ImproverChoice(name="nurl", set={"lead": " ", "learnt_with": "plain", **STRICT}),
    },
    "adcl, reinforce_ada_positive, dapo": {
        "curriculum": CurriculumChoice(
            names=("adcl", "reinforce_ada_positive"), set={"reinforce_ada_positive.right_above": 0.9}
        ),
        "objective": "dapo",
    },
    "prioritized, luffy": {
        "curriculum": CurriculumChoice(names=("prioritized",)),
        "improver": ImproverChoice(name="luffy", set={"column": "hint"}),
    },
    "rest_grpo, ppo": {"curriculum": CurriculumChoice(names=("rest_grpo",)), "objective": "ppo"},
    "mixture, cog_rethinker": {
        "curriculum": CurriculumChoice(names=("mixture",), set={"mixture.weights": {"a": 0.7, "b": 0.3}}),
        "improver": ImproverChoice(name="cog_rethinker", set={"decompose": "=", "request": "=", **STRICT}),
    },
    "rest_grpo, seele": {
        "curriculum": CurriculumChoice(names=("rest_grpo",)),
        "improver": ImproverChoice(name="seele", set={"lead": " ", **STRICT}),
    },
    "zero_variance, search_self_play": {
        "curriculum": CurriculumChoice(names=("zero_variance",)),
        "improver": ImproverChoice(name="search_self_play", set={"column": "source"}),
        "scorer": Proposing(),
    },
}


class Stopped(Exception):
    """A kill."""


def run(folder: Path, name: str, **more: Any) -> Run:
    config = small_config(**{"steps": 3, "tasks": 3, "save_steps": 1, "staleness": 1, **RUNS.get(name, {}), **more})
    return small_run(folder, config, tasks=FULL)


def curve(result: RunResult) -> list[dict[str, float]]:
    return [{name: value for name, value in line.items() if not name.startswith("seconds")} for line in result.history]


def test_all_are_tried_here() -> None:
    names = {name for one in RUNS.values() for name in one["curriculum"].names}
    assert names == set(CURRICULA)
    assert {one["improver"].name for one in RUNS.values() if "improver" in one} == set(IMPROVERS)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_cut_off_ends_as_one_that_ran_through(tmp_path: Path, name: str) -> None:
    whole = run(tmp_path / "whole", name)
    before = [value.detach().clone() for value in whole.policy.model.parameters()]
    expected = whole.train()
    if "improver" in RUNS[name]:
        counts = ("refinements_joined", "hinted", "demonstrated", "proposed")
        helped = any(line.get(name) for line in expected.history for name in counts)
        assert helped, "some must be helped for this test to say anything"
    assert any(
        not torch.equal(left, right) for left, right in zip(before, whole.policy.model.parameters(), strict=True)
    )

    def stop(numbers: Mapping[str, float], *_: Any) -> None:
        if numbers["step"] == 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(tmp_path / "cut", name).train(on_step=stop)
    again = run(tmp_path / "cut", name)
    assert curve(again.train(resume=True)) == curve(expected)
    pairs = zip(again.policy.model.parameters(), whole.policy.model.parameters(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)


def test_what_helped_is_told_and_evaluations_see_no_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    seen: list[Sequence[Rollout]] = []

    class Watching(Digits):
        name = "watching"
        fingerprint = "watching:1"

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            shown.extend(str(sample.prompt) for sample in samples)
            return await super().score(samples)

    config = small_config(
        scorer=Watching(),
        steps=2,
        tasks=4,
        num_generations=3,
        eval_steps=1,
        improver=ImproverChoice(name="ghpo", set={"lead": " ", **STRICT}),
    )
    policy = small_policy()
    encoded: list[str] = []
    plain = policy.encode

    def watched(task: Task) -> tuple[int, ...]:
        encoded.append(str(task.prompt))
        return plain(task)

    monkeypatch.setattr(policy, "encode", watched)
    made = Run(policy, FULL, config, tmp_path, held_out=FULL[:2])
    result = made.train(on_step=lambda numbers, rollouts, scores: seen.append(rollouts))
    prompts = {one.prompt for one in FULL}
    assert set(shown) <= prompts, "the scorer sees the task as it stands"
    assert any("9" in text.partition("=")[2] for text in encoded), "the policy sees hints"
    for line, rollouts in zip(result.history, seen, strict=True):
        assert line["hinted"] == sum(one.origin == "hinted" for one in rollouts) / len(rollouts)
        assert line["hint_solved"] <= line["hinted"] <= line["unsolved"]
        assert 0 <= line["held_out"] <= 1
    assert any(line["hinted"] for line in result.history)


def test_states_of_prompts_do_not_depend_on_how_they_are_read() -> None:
    policy = small_policy()
    together = prompt_states(policy, Processes(), TASKS)
    alone = np.concatenate([prompt_states(policy, Processes(), [one]) for one in TASKS])
    assert together.shape == (10, 16)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    with torch.no_grad():
        ids = torch.tensor([policy.encode(TASKS[3])])
        last = policy.model.base_model(input_ids=ids).last_hidden_state[0, -1]
    np.testing.assert_allclose(together[3], last.double().numpy(), atol=1e-5)
    assert policy.model.training == small_policy().model.training


def test_a_curriculum_and_a_source_of_ones_own_are_one_too_many(tmp_path: Path) -> None:
    config = small_config(curriculum=CurriculumChoice(names=("mopps",)))
    with pytest.raises(ValueError, match=r"the curriculum \(mopps\) draws tasks, and a source was given"):
        Run(small_policy(), FULL, config, tmp_path, source=TaskOrder(FULL, seed=0))
    cohorts = [replace(one, cohort="pair") for one in FULL[:2]]
    with pytest.raises(ValueError, match="would part tasks that are scored together"):
        Run(small_policy(), cohorts, small_config(curriculum=CurriculumChoice(names=("dars",))), tmp_path)
    several: list[dict[str, Any]] = [
        {"curriculum": CurriculumChoice(names=("dars",))},
        {"improver": ImproverChoice(name="ghpo")},
    ]
    for more in several:
        with pytest.raises(ValueError, match=r"\(rollouts.tree\) and are written at once, and (dars|ghpo) adds some"):
            Run(small_policy(), FULL, small_config(rollouts={"tree": TreeConfig()}, **more), tmp_path)
