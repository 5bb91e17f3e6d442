"""Filters, rounds and the choice among curricula: as the pure rules say, and with errors before any work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.rl_integration.trainer.algorithms.objectives.batches import batches, spread
from tests.rl_integration.trainer.rollouts.curricula.simulated import chosen, graded_tasks, setting, task

from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CURRICULA, CurriculumChoice, ImproverChoice
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Filter, Rounds
from adjudge.rl_integration.trainer.rollouts.curricula.sources import PromptValue
from adjudge.training.config_file import config_of, load_config, plain_config

FILTERS = ["zero_variance", "rest_grpo", "rlpr", "pf_ppo", "reinforce_ada"]


def filter_of(name: str, **options: Any) -> Filter:
    made = chosen(name, **options).made(setting(graded_tasks(3))).filter
    assert made is not None
    return made


def rounds_of(name: str, group: int = 8, **options: Any) -> Rounds:
    made = chosen(name, **options).made(setting(graded_tasks(3), group=group)).rounds
    assert made is not None
    return made


def groups(*members: Sequence[float | None]) -> Groups:
    """Groups, one after the other."""
    ids = [place for place, values in enumerate(members) for _ in values]
    return Groups.of([value for values in members for value in values], ids)


def test_filters_of_groups_keep_whole_groups() -> None:
    batch = groups([1, 1, 1], [0, 1, None], [None, 1], [0.5, 0.52], [])
    assert filter_of("zero_variance").copies(batch).tolist() == [0] * 3 + [1] * 3 + [0] * 2 + [1] * 2
    assert filter_of("zero_variance", spread=0.1).copies(batch).tolist() == [0] * 3 + [1] * 3 + [0] * 4
    assert filter_of("rest_grpo").copies(batch).tolist() == [0] * 3 + [1] * 3 + [0] * 4
    assert filter_of("zero_variance").refills
    assert not filter_of("rest_grpo").refills
    assert filter_of("rlpr", refill=True).refills


def test_rlpr_waits_for_its_average_and_then_drops_narrow_groups() -> None:
    made = filter_of("rlpr", first_average=1, first_filter=3, beta=0.9, decay=0.5)
    wide, narrow = [0.0, 1.0], [0.4, 0.6]
    for _ in range(2):
        assert made.copies(groups(wide, narrow)).all()
    assert made.copies(groups(wide, narrow)).tolist() == [1, 1, 0, 0]
    average = (spread(wide) + spread(narrow)) / 2
    assert made.state() == {"batches": 3, "watched": [], "spread": pytest.approx(average)}


@pytest.mark.parametrize("policy", ["best", "best_random", "best_worst", "power"])
@settings(max_examples=25)
@given(batch=batches())
def test_pf_ppo_draws_as_many_as_a_group_has(policy: str, batch: Groups) -> None:
    copies = filter_of("pf_ppo", policy=policy).copies(batch)
    assert not copies[~batch.valid].any()
    for group in set(batch.ids.tolist()):
        rows = batch.ids == group
        assert copies[rows].sum() == (rows.sum() if batch.valid[rows].any() else 0)
    if policy == "best":
        assert (batch.rewards[copies > 0] == batch.largest()[copies > 0]).all()


def test_reinforce_ada_learns_from_a_balanced_few() -> None:
    copies = filter_of("reinforce_ada").copies(groups([1.0] * 6 + [0.0] * 10, [0.0] * 5, [1.0], [None, 1.0, 0.0]))
    assert copies[:6].sum() == copies[6:16].sum() == 2
    assert copies[16:21].sum() == 4
    assert copies[21:].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("name", FILTERS)
def test_a_state_is_all_that_a_filter_remembers(name: str) -> None:
    random = np.random.default_rng(0)
    options: dict[str, Any] = {"first_average": 1, "first_filter": 2} if name == "rlpr" else {}
    here, there = filter_of(name, **options), filter_of(name, **options)
    seen = []
    for _ in range(5):
        batch = groups(*[[float(value) for value in random.random(8)] for _ in range(3)])
        found = here.copies(batch)
        seen.append(found.tolist())
        assert (found == there.copies(batch)).all()
        there = filter_of(name, **options)
        there.restore(json.loads(json.dumps(here.state())))
    if name in ("pf_ppo", "reinforce_ada"):
        batch = groups([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
        assert len({tuple(here.copies(batch)) for _ in range(12)}) > 1, "each batch is drawn anew"


def test_two_filters_keep_what_both_keep() -> None:
    batch = groups([1, 1], [0, 1], [0.5, 0.6])
    made = filter_of("pf_ppo", policy="best").and_then(filter_of("zero_variance", spread=0.5))
    assert made.copies(batch).tolist() == [0, 0, 0, 2, 0, 0]
    assert made.refills
    again = filter_of("pf_ppo", policy="best").and_then(filter_of("zero_variance"))
    again.restore(made.state())
    assert again.state() == made.state() == {"0": {"batches": 1}, "1": {}}


def test_dars_adds_one_round_for_hard_tasks() -> None:
    rule = rounds_of("dars", right_above=0.5)
    for right, more in ((0, 24), (1, 10), (2, 3), (3, 1), (4, 0), (8, 0)):
        assert rule([1.0] * right + [0.2] * (8 - right), 1) == more
    assert rule([0.0] * 32, 2) == 0
    assert rule([None] * 8, 1) == 0
    assert rounds_of("dars", group=4, totals=[6])([0.0] * 4, 1) == 2
    with pytest.raises(ValueError, match="right_above"):
        rounds_of("dars")([3.0], 1)


def test_reinforce_ada_goes_on_until_both_kinds_are_there() -> None:
    rule = rounds_of("reinforce_ada", group=6)
    assert rule([1.0] * 6, 1) == 6
    assert rule([1.0] * 6 + [0.0] * 2, 2) == 0
    assert rule([0.0] * 24, 4) == 0
    assert rounds_of("reinforce_ada_positive")([1.0] + [0.0] * 7, 1) == 0


def test_values_of_prompts_are_learnt_by_normalised_steps() -> None:
    states = np.array([[3.0, -1.0], [0.5, 2.0], [3.0, -1.0]])
    tasks = [task(str(place)) for place in range(3)]
    seen_as = {one.id: row for one, row in zip(tasks, states, strict=True)}

    def read(some: Sequence[Task]) -> Floats:
        return np.array([seen_as[one.id] for one in some])

    value = PromptValue(read, rate=0.5, prior=0.4)
    rates = [1.0, 0.0, 1.0]
    assert value.mean(tasks).tolist() == [0.4] * 3
    value.observe(tasks, [[rate] for rate in rates])
    weights, bias = np.zeros(2), 0.4
    for state, seen in zip(states, rates, strict=True):
        step = 0.5 * (seen - (weights @ state + bias)) / (1 + state @ state)
        weights, bias = weights + step * state, bias + step
    np.testing.assert_allclose(value.mean(tasks), np.clip(states @ weights + bias, 0, 1), rtol=1e-12)
    again = PromptValue(read)
    again.restore(json.loads(json.dumps(value.state())))
    assert (again.mean(tasks) == value.mean(tasks)).all()
    one = PromptValue(read, rate=1.0)
    one.observe(tasks[:1], [[1.0, 0.8]])
    assert one.mean(tasks[:1]) == pytest.approx([0.9]), "a whole step takes the whole error away"
    seen_as["0"] = np.zeros(3)
    with pytest.raises(ValueError, match=r"shape \(1, 3\); it must be \(n, 2\)"):
        value.mean(tasks[:1])
    seen_as["0"] = np.array([np.nan, 0.0])
    with pytest.raises(ValueError, match="not finite"):
        value.mean(tasks[:1])


@pytest.mark.parametrize("name", sorted(CURRICULA))
def test_a_configuration_names_curricula_in_short_and_in_full(name: str) -> None:
    short = config_of(CurriculumChoice, name)
    assert short == CurriculumChoice(names=(name,))
    assert config_of(CurriculumChoice, plain_config(short)) == short
    made = short.made(setting(graded_tasks(3)))
    parts = {part for part in ("source", "rounds", "filter") if getattr(made, part) is not None}
    assert parts == CURRICULA[name].parts


def test_a_file_and_a_command_line_reach_the_options(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("reward: math\ncurriculum: mopps\nimprover: ghpo\n")
    settings = ["curriculum.set.mopps.memory=0.5", "improver.set.shares=[0.5]"]
    config = load_config(RunConfig, str(path), settings)
    assert config.curriculum == CurriculumChoice(names=("mopps",), set={"mopps.memory": 0.5})
    assert config.improver == ImproverChoice(name="ghpo", set={"shares": [0.5]})
    assert config_of(RunConfig, plain_config(config)) == config


def test_curricula_that_decide_different_things_go_together() -> None:
    choice = config_of(CurriculumChoice, {"names": ["mopps", "dars", "rlpr"], "set": {"mopps.memory": 0.5}})
    made = choice.made(setting(graded_tasks(3)))
    assert None not in (made.source, made.rounds, made.filter)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("moops", "unknown curriculum 'moops' .did you mean 'mopps'.+; there are mopps"),
        (["mopps", "pcl"], "'mopps' and 'pcl' both decide the source"),
        (["reinforce_ada", "pf_ppo"], "both decide the filter"),
        (
            {"names": "mopps", "set": {"pcl.rate": 0.1}},
            r"the option 'pcl.rate'; begin it with one of the names and a dot \(mopps.\)",
        ),
        ({"names": "mopps", "set": {"memory": 0.1}}, "the option 'memory'; begin it"),
        ({"names": "mopps", "set": {"mopps.memroy": 1}}, r"mopps.memroy' \(did you mean 'curriculum.set.mopps.memory'"),
        ({"names": "mopps", "set": {"mopps.memory": 2.0}}, "memory=2.0"),
        ({"names": "mopps", "set": {"mopps.prior": [1.0]}}, "prior=.1.0,."),
        ({"names": "mopps", "set": {"mopps.pool": 0}}, "pool=0"),
        ({"names": "pcl", "set": {"pcl.rate": "fast"}}, "rate is 'fast'; it must be a number"),
        ({"names": "dars", "set": {"dars.totals": [0]}}, "totals=0"),
        ({"names": "pf_ppo", "set": {"pf_ppo.policy": "worst"}}, "policy"),
        ({"names": "sec", "set": {"sec.temperature": 0}}, "temperature=0"),
    ],
)
def test_mistakes_are_named_before_any_work(record: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_of(CurriculumChoice, record)


def test_groups_that_are_larger_than_a_total_are_refused() -> None:
    with pytest.raises(ValueError, match=r"9 answers in all, and the first round has 16 \(rollouts.num_generations\)"):
        CurriculumChoice(names=("dars",)).made(setting(graded_tasks(3), group=16))
