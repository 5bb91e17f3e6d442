"""Batches with curricula: groups of different sizes, what is learnt from, and going on from a checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.trainer.rollouts.curricula.simulated import graded_tasks, task
from tests.rl_integration.trainer.scripted_writer import Pair, Same, Scripted, batches_of, by_rate, told

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Task, by_task
from adjudge.rl_integration.trainer.loop.batches import Batch
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CURRICULA, CurriculumChoice
from adjudge.rl_integration.trainer.rollouts.curricula.hints import Hints, HintsRule


def choice(*names: str, set: dict[str, Any] | None = None) -> CurriculumChoice:
    return CurriculumChoice(names=names, set=set or {})


def sizes(batch: Batch) -> Counter[str]:
    return Counter(one.task.id for one in batch.rollouts)


HALF = [task("easy", rate=1.0), task("hard", rate=0.0), task("easy2", rate=1.0), task("hard2", rate=0.0)]


def test_hard_tasks_get_more_answers_and_all_of_them_are_told() -> None:
    writer = Scripted()
    with batches_of(HALF, writer, curriculum=choice("dars", "mopps", set={"dars.totals": [10, 6]})) as batches:
        batch = batches.next(0)
        assert sizes(batch) == {"easy": 4, "easy2": 4, "hard": 10, "hard2": 10}
        known = batches.state()["source"]["expectation"]["prompts"]
        assert known["hard"] == {"seen": 10, "right": 0.0, "wrong": 10.0}
    assert writer.sizes == [(4, 4), (2, 6)], "tasks that get as many more are written together"
    assert batch.numbers["answers"] == 7.0
    assert batch.copies.tolist() == [1] * 28
    assert len({one.id for one in batch.rollouts}) == 28
    assert [
        places == sorted(places) and places[-1] - places[0] == len(places) - 1
        for places in by_task(batch.rollouts).values()
    ]
    assert batch.numbers["pass_rate"] == 0.5


def test_rounds_go_on_until_there_is_something_to_learn_from() -> None:
    tasks = [task("sure", rate=1.0), task("never", rate=0.0), task("even", rate=0.5), task("rare", rate=0.1)]
    with batches_of(tasks, Scripted(), curriculum=choice("reinforce_ada"), group=4) as batches:
        batch = batches.next(0)
    counts = sizes(batch)
    assert counts["sure"] == counts["never"] == 16, "four rounds, and nothing to compare"
    assert counts["even"] < 16
    for name, places in by_task(batch.rollouts).items():
        picked = [place for place in places if batch.copies[place]]
        assert len(picked) == 4, name
        if name == "even":
            assert sum(batch.scores[place].value or 0.0 for place in picked) == 2.0


class Ranks(Same):
    """An answer's score depends on how many there are in its group."""

    name = "ranks"
    fingerprint = "ranks:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        counts = Counter(sample.group for sample in samples)
        return [Score.scored(float(counts[sample.group]) / 100) for sample in samples]


def test_a_scorer_of_groups_sees_the_whole_group_after_each_round() -> None:
    curriculum = choice("dars", set={"dars.totals": [9, 9, 9, 9, 9]})
    with batches_of(graded_tasks(4), Scripted(), curriculum=curriculum, scorer=Ranks()) as batches:
        batch = batches.next(0)
    assert [score.value for score in batch.scores] == [0.09] * 36


def test_groups_that_are_dropped_are_made_up_for_by_later_batches() -> None:
    tasks = [*HALF, *[task(f"even{place}", rate=0.5) for place in range(4)]]
    with batches_of(tasks, Scripted(), curriculum=choice("zero_variance"), group=8) as batches:
        batch = batches.next(0)
    assert len(batch.rollouts) == 32
    assert batch.numbers["batches"] > 1
    assert len(batch.drawn.rollouts) == len(batch.drawn.scores) == 32 * batch.numbers["batches"]
    for places in by_task(batch.rollouts).values():
        assert 0 < sum(batch.scores[place].value or 0.0 for place in places) < len(places)
    with batches_of(HALF, Scripted(), curriculum=choice("zero_variance"), max_num_gen_batches=3) as batches:
        batch = batches.next(0)
    assert batch.numbers["batches"] == 3
    assert len(batch.rollouts) == 16, "what there was is shown"
    assert not batch.copies.any(), "and not learnt from"


def test_a_filter_that_does_not_refill_leaves_less() -> None:
    tasks = [*HALF[:3], task("even", rate=0.5)]
    with batches_of(tasks, Scripted(), curriculum=choice("rest_grpo"), group=12) as batches:
        batch = batches.next(0)
    assert sizes(batch) == {"even": 12}
    assert batch.numbers["batches"] == 1


def test_what_could_not_be_judged_is_neither_drawn_again_nor_learnt_from() -> None:
    tasks = [task(f"t{place}") for place in range(4)]
    for name in ("dars", "reinforce_ada", "pf_ppo"):
        writer = Scripted(lambda one, dice: "?")
        with batches_of(tasks, writer, curriculum=choice(name)) as batches:
            batch = batches.next(0)
        assert name == "dars" or not batch.copies.any(), name
        assert len(batch.rollouts) == 16, name


EVERY = [("mopps", "dars", "rlpr"), ("pcl", "reinforce_ada"), ("sec", "dars_hard", "zero_variance"),
         ("dump", "rest_grpo"), ("prioritized", "pf_ppo"), ("reinforce_ada_positive",),
         ("adcl",), ("mixture",)]  # fmt: skip


def test_every_curriculum_is_tried_below() -> None:
    assert {name for names in EVERY for name in names} == set(CURRICULA)


@pytest.mark.parametrize("staleness", [0, 2])
@pytest.mark.parametrize("names", EVERY, ids="+".join)
def test_going_on_from_a_checkpoint_is_as_if_nothing_had_happened(names: tuple[str, ...], staleness: int) -> None:
    tasks = [task(f"t{place}", rate=place / 9, source="ab"[place % 2], solution="help") for place in range(10)]
    all_options: dict[str, dict[str, Any]] = {
        "rlpr": {"rlpr.first_average": 1, "rlpr.first_filter": 2},
        "mixture": {"mixture.weights": {"a": 0.7, "b": 0.3}},
    }
    options = {name: value for one in names for name, value in all_options.get(one, {}).items()}
    curriculum = CurriculumChoice(names=names, set=options)
    improver = Hints(HintsRule(), Roomy()) if "pf_ppo" in names else None  # type: ignore[arg-type]
    kept: dict[str, Any] = {"curriculum": curriculum, "staleness": staleness, "improver": improver}
    by_id = {one.id: one for one in tasks}
    with batches_of(tasks, Scripted(), **kept) as whole:
        wanted = [told(whole.next(step)) for step in range(5)]
    state: dict[str, Any] | None = None
    found = []
    for step in range(5):
        with batches_of(tasks, Scripted(), **kept) as part:
            if state is not None:
                part.restore(json.loads(json.dumps(state)), by_id)
            found.append(told(part.next(step)))
            state = part.state()
    assert found == wanted
    assert len({json.dumps(one) for one in wanted}) == 5


class Roomy:
    """As much of a policy as hints need."""

    class tokens:
        window = 10_000
        special_tokens = ("<|end|>",)

    def encode(self, one: Task) -> tuple[int, ...]:
        return tuple(map(ord, str(one.prompt)))


def test_what_was_written_with_help_says_nothing_about_the_task() -> None:
    tasks = [task(f"t{place}", rate=0.0, solution="help") for place in range(4)]
    hints = Hints(HintsRule(shares=(1.0,)), Roomy())  # type: ignore[arg-type]
    with batches_of(tasks, Scripted(), curriculum=choice("mopps"), improver=hints) as batches:
        batch = batches.next(0)
        known = batches.state()["source"]["expectation"]["prompts"]
    assert [score.value for score in batch.scores] == [1.0] * 16, "all are solved with help"
    assert [record["right"] for record in known.values()] == [0.0] * 4
    assert batch.numbers["pass_rate"] == 0.0
    assert {score.value for score in batch.drawn.scores} == {0.0}
    assert {one.origin for one in batch.drawn.rollouts} == {"policy"}
    assert (batch.numbers["unsolved"], batch.numbers["hinted"], batch.numbers["hint_solved"]) == (1.0, 1.0, 1.0)


def test_numbers_of_several_batches_are_means_and_their_seconds_sums() -> None:
    tasks = [task(f"t{place}", rate=1.0) for place in range(4)]
    with batches_of(tasks, Scripted(), curriculum=choice("mopps", "zero_variance"), max_num_gen_batches=3) as batches:
        numbers = batches.next(0).numbers
    assert numbers["batches"] == 3.0
    assert numbers["pass_rate"] == 1.0
    assert numbers["seconds_writing"] > 0


def test_two_processes_write_half_each_and_know_the_same() -> None:
    tasks = [task(f"t{place}", rate=place / 9, solution="help") for place in range(10)]
    curriculum = choice("mopps", "dars", "pf_ppo", set={"dars.totals": [8, 6]})
    pair = Pair()

    def process(rank: int) -> tuple[list[Any], str, Scripted, dict[str, float]]:
        writer = Scripted()
        hints = Hints(HintsRule(shares=(0.5, 1.0)), Roomy())  # type: ignore[arg-type]
        with batches_of(
            tasks, writer, curriculum=curriculum, improver=hints, processes=pair.of(rank), staleness=1
        ) as batches:
            steps = [batches.next(step) for step in range(4)]
            found = [told(step) for step in steps]
            return found, json.dumps(batches.state()), writer, steps[-1].numbers

    with ThreadPoolExecutor(2) as pool:
        (first, state, left, numbers), (second, other, right, others) = pool.map(process, range(2))
    assert first == second
    assert state == other
    assert {name: value for name, value in numbers.items() if not name.startswith("seconds")} == {
        name: value for name, value in others.items() if not name.startswith("seconds")
    }
    assert left.sizes[0] == right.sizes[0] == (2, 4)
    assert not set(left.seeds) & set(right.seeds), "none writes what the other writes"
    assert len({one[0] for one in first[0]}) == len(first[0])


def test_no_two_calls_have_one_seed() -> None:
    writer = Scripted(by_rate)
    with batches_of(graded_tasks(8), writer, curriculum=choice("reinforce_ada")) as batches, ExitStack():
        for step in range(4):
            batches.next(step)
    assert len(set(writer.seeds)) == len(writer.seeds) > 8
    assert all(0 <= seed < 2**32 for seed in writer.seeds)
    assert np.all(np.diff([size for _, size in writer.sizes]) == 0)
