"""Sources draw what their papers say, alike in every process, and go on from a state as if nothing had happened."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.rollouts.curricula.simulated import (
    Told,
    answers,
    chosen,
    graded_tasks,
    rate,
    rollout,
    setting,
    task,
)

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.data.task import Task, TaskOrder, TaskSource

SOURCES = ["mopps", "pcl", "prioritized", "sec", "dump", "mixture", "adcl"]


def source(name: str, tasks: Sequence[Task], **options: object) -> TaskSource:
    made = chosen(name, **options).made(setting(tasks)).source
    assert made is not None
    return made


def trained(drawn_from: TaskSource, steps: int, *, count: int = 8, group: int = 8) -> list[list[Task]]:
    """What is drawn, step by step, while answers are told."""
    random = np.random.default_rng(1)
    found = []
    for _ in range(steps):
        found.append(drawn_from.draw(count))
        drawn_from.observe(*answers(found[-1], group, random))
    return found


def from_middle(drawn: Sequence[Task]) -> float:
    return float(np.mean([abs(rate(one) - 0.5) for one in drawn]))


@pytest.mark.parametrize("name", ["mopps", "pcl"])
def test_what_is_neither_easy_nor_hard_is_drawn(name: str) -> None:
    tasks = graded_tasks(60)
    drawn = trained(source(name, tasks), 60)
    assert from_middle(tasks) == pytest.approx(0.254, abs=0.001)
    late = from_middle([one for step in drawn[40:] for one in step])
    assert late < 0.13, "half as far from the middle as the tasks are"
    hard = trained(source(name, tasks, target=0.9), 60)
    assert np.mean([rate(one) for step in hard[40:] for one in step]) > 0.75


def test_pcl_knows_prompts_that_it_never_saw() -> None:
    seen, fresh = graded_tasks(41), [task(f"new{place}", rate=place / 40) for place in range(41)]
    states = {one.id: np.array([rate(one), 1.0, place % 3]) for place, one in enumerate([*seen, *fresh])}

    def of(some: Sequence[Task]) -> Floats:
        return np.array([states[one.id] for one in some])

    made = chosen("pcl").made(setting(seen, states=of)).source
    assert made is not None
    trained(made, 60)
    again = chosen("pcl").made(setting(fresh, states=of)).source
    assert again is not None
    again.restore(made.state())
    assert from_middle(again.draw(6)) < 0.15


def test_mopps_draws_by_counts_and_its_seed_alone() -> None:
    tasks = graded_tasks(12)
    made = source("mopps", tasks, pool=2, memory=0.5)
    right = dict.fromkeys([one.id for one in tasks], 0.0)
    wrong = dict(right)
    random = np.random.default_rng(1)
    for step in range(6):
        own = np.random.default_rng([5, step])
        candidates = [tasks[place] for place in own.choice(12, 8, replace=False)]
        guesses = own.beta([1 + right[one.id] for one in candidates], [1 + wrong[one.id] for one in candidates])
        wanted = sorted(range(8), key=lambda place: abs(guesses[place] - 0.5))[:4]
        drawn = made.draw(4)
        assert drawn == [candidates[place] for place in wanted]
        rollouts, scores = answers(drawn, 3, random)
        told = made.observe(rollouts, scores)
        values = [score.value or 0.0 for score in scores]
        assert told["pass_rate"] == pytest.approx(sum(values) / len(values))
        for place, one in enumerate(drawn):
            good = sum(values[3 * place : 3 * place + 3])
            right[one.id] = 0.5 * right[one.id] + good
            wrong[one.id] = 0.5 * wrong[one.id] + 3 - good


def test_tasks_are_drawn_by_how_often_they_are_failed() -> None:
    tasks = [task(f"{rate}", rate=rate) for rate in (0.0, 0.5, 0.75, 1.0)]
    made = source("prioritized", tasks)
    everyone = [one.id for one in tasks]
    assert sorted(one.id for one in made.draw(4)) == everyone, "each is drawn before any is known"
    values = {"0.0": [0, 0, 0, 0], "0.5": [1, 0, 1, 0], "0.75": [1, 1, 1, 0], "1.0": [1, 1, 1, 1]}
    rollouts = [rollout(one, f"{one.id}:{place}") for one in tasks for place in range(4)]
    made.observe(rollouts, [Score.scored(float(value)) for one in tasks for value in values[one.id]])
    first = Counter(made.draw(1)[0].id for _ in range(2_000))
    for name, share in {"0.0": 4 / 7, "0.5": 2 / 7, "0.75": 1 / 7, "1.0": 0.0}.items():
        assert first[name] / 2_000 == pytest.approx(share, abs=0.035)
    assert [one.id for one in made.draw(4)][-1] == "1.0", "what is always right comes where nothing else is left"
    assert len(made.draw(6)) == 6


def test_chunks_go_from_easy_to_hard_and_each_is_sorted_anew_when_it_begins() -> None:
    first = [0.9, 0.1, 0.7, 0.3, 0.8, 0.2]
    tasks = [task(f"t{place}", rate=rate, now=1 - rate) for place, rate in enumerate(first)]
    given = setting(tasks, states=lambda some: np.array([[one.extra["now"]] for one in some]))
    made = chosen("adcl", chunks=2, column="rate").made(given).source
    assert made is not None
    assert [rate(one) for one in made.draw(2)] == [0.9, 0.8], "nothing is known yet: the order before training"
    rollouts = [rollout(one, f"{one.id}:{place}") for one in tasks[1::2] for place in range(4)]
    for _ in range(20):  # what was hard before is solved now
        made.observe(rollouts, [Score.scored(one.task.extra["now"]) for one in rollouts])
    assert [rate(one) for one in made.draw(1)] == [0.7], "a chunk that has begun keeps its order"
    assert [rate(one) for one in made.draw(3)] == [0.1, 0.2, 0.3]
    assert [rate(one) for one in made.draw(3)] == [0.7, 0.8, 0.9], "the next pass"
    assert len({one.id for one in [made.draw(1), made.draw(6)][1]}) == 6, "none twice"
    with pytest.raises(ValueError, match="adjudge data difficulty"):
        chosen("adcl", column="share").made(given)


def test_sources_that_teach_are_drawn_most() -> None:
    rates = {"easy": 1.0, "middle": 0.5, "hard": 0.0}
    tasks = [task(f"{name}{place}", rate=chance, source=name) for name, chance in rates.items() for place in range(30)]
    for name in ("sec", "dump"):
        drawn = trained(source(name, tasks), 40)
        first = Counter(one.extra["source"] for step in drawn[:4] for one in step)
        late = Counter(one.extra["source"] for step in drawn[20:] for one in step)
        assert set(first) == set(rates), "each is tried"
        assert late["middle"] > 0.6 * late.total(), (name, late)


def test_a_mixture_is_drawn_as_it_was_given() -> None:
    tasks = [task(f"{name}{place}", source=name) for name in "ab" for place in range(400)]
    drawn = Counter(one.extra["source"] for one in source("mixture", tasks, weights={"a": 3, "b": 1}).draw(400))
    assert drawn["a"] == pytest.approx(300, abs=35)  # four standard deviations
    alone = source("mixture", tasks, weights={"a": 1.0, "b": 0.0, "c": 0.0}).draw(401)
    assert {one.extra["source"] for one in alone} == {"a"}
    for weights in ({"a": 1.0}, {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": -1.0}, {"a": 1.0, "b": 1.0, "c": 1.0}):
        with pytest.raises(ValueError, match=r"of weight 0 are from (a, b|nowhere)"):
            source("mixture", tasks, weights=weights)


def test_a_source_that_has_no_more_tasks_leaves_its_places_to_others() -> None:
    tasks = [task("a0", source="a"), *[task(f"b{place}", source="b") for place in range(7)]]
    drawn = source("sec", tasks).draw(8)
    assert sorted(one.id for one in drawn) == sorted(one.id for one in tasks)
    assert len(source("sec", tasks).draw(11)) == 11


@pytest.mark.parametrize("name", SOURCES)
def test_processes_draw_alike_and_a_state_is_all_there_is(name: str) -> None:
    tasks = [task(f"t{at}", rate=at / 19, source="ab"[at % 2]) for at in range(20)]
    here, there = source(name, tasks), source(name, tasks)
    random = np.random.default_rng(2)
    ahead: list[Told] = []
    for step in range(8):
        drawn = here.draw(4)
        assert drawn == there.draw(4), step
        assert len({one.id for one in drawn}) == 4, "none twice"
        ahead.append(answers(drawn, 4, random))
        if step >= 2:  # two batches ahead of what is told
            told = ahead.pop(0)
            assert here.observe(*told) == there.observe(*told)
        resumed = source(name, tasks)
        resumed.restore(json.loads(json.dumps(here.state())))
        there = resumed
    assert json.dumps(here.state()) == json.dumps(there.state())


@pytest.mark.parametrize("name", SOURCES)
def test_what_was_not_judged_says_nothing(name: str) -> None:
    tasks = graded_tasks(6)
    made = source(name, tasks)
    drawn = made.draw(2)
    before = made.state()
    rollouts = [rollout(one, f"{one.id}:{place}") for one in drawn for place in range(2)]
    made.observe(rollouts, [Score.failed("engine_timeout")] * 4)
    assert made.state() == before


@given(count=st.integers(1, 7), size=st.integers(1, 7), calls=st.integers(1, 12), stop=st.integers(0, 12))
@settings(max_examples=60)
def test_the_shuffled_order_has_each_task_once_in_a_pass_and_in_a_batch(
    count: int, size: int, calls: int, stop: int
) -> None:
    tasks = graded_tasks(size + 1)
    order = TaskOrder(tasks, seed=3)
    drawn: list[str] = []
    for call in range(calls):
        if call == stop:
            state = json.loads(json.dumps(order.state()))
            order = TaskOrder(tasks, seed=3)
            order.restore(state)
        batch = [one.id for one in order.draw(count)]
        assert len(batch) == count
        assert len(set(batch)) == count or count > len(tasks)
        drawn += batch
    counts = Counter(drawn)
    assert max(counts.values()) - min(counts[one.id] for one in tasks) <= 2


def test_states_of_a_run_that_went_through_are_the_orders_own() -> None:
    tasks = graded_tasks(5)
    through, stopped = TaskOrder(tasks, seed=0), TaskOrder(tasks, seed=0)
    wanted = [through.draw(3) for _ in range(8)]
    found = []
    for _ in range(8):
        found.append(stopped.draw(3))
        state = stopped.state()
        stopped = TaskOrder(tasks, seed=0)
        stopped.restore(state)
    assert found == wanted


@pytest.mark.parametrize(
    ("name", "tasks", "message"),
    [
        ("mopps", [], "no tasks to train on"),
        ("mopps", [task("a"), task("a")], "two tasks have the id 'a'"),
        ("sec", [task("a"), Task(id="b", prompt="b")], "the task 'b' does not say where it is from"),
        ("dump", [task("a", source="")], "its extra field 'source' is ''"),
    ],
)
def test_tasks_that_cannot_be_drawn_are_refused_at_once(name: str, tasks: list[Task], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source(name, tasks)


@pytest.mark.parametrize("name", ["mopps", "pcl"])
def test_scores_beyond_0_and_1_ask_for_a_bound(name: str) -> None:
    tasks = graded_tasks(3)
    made = source(name, tasks)
    drawn = made.draw(1)
    rollouts = [rollout(drawn[0], "x")]
    with pytest.raises(ValueError, match=r"score -2\.0; .*right_above"):
        made.observe(rollouts, [Score.scored(-2.0)])
    bounded = source(name, tasks, right_above=-3.0)
    assert bounded.observe(rollouts, [Score.scored(-2.0)])["pass_rate"] == 1.0
