"""Trivial scorers say what their names say, and only where it means something."""

from __future__ import annotations

import dataclasses
import math
import statistics

from adjudge.evals.benchmarks.benchmark import random_share, trivial_choices
from adjudge.evals.benchmarks.case import Outcome
from adjudge.protocol import Status


def outcome(name: str, sizes: tuple[int, ...], steps: tuple[int, ...], gold: int = 0) -> Outcome:
    count = len(sizes)
    statuses: tuple[Status, ...] = ("failed",)
    return Outcome(
        id=name, gold=gold, cluster=name, part="", values=(None,) * count, statuses=statuses * count,
        reasons=("engine_error",) * count, cut_off=(True,) * count, steps=((),) * count, sizes=sizes,
        step_counts=steps, compared=True,
    )  # fmt: skip


MIXED = [outcome("a", (10, 20, 15), (3, 1, 1)), outcome("b", (5, 5, 5), (0, 0, 2), gold=1)]


def test_each_says_what_its_name_says() -> None:
    made = trivial_choices(MIXED)
    first = {name: made[name][0].values for name in made}
    assert list(first) == ["longer", "shorter", "more_steps", "fewer_steps", "first", "last", "random"]
    assert first["longer"] == (10.0, 20.0, 15.0)
    assert first["shorter"] == (-10.0, -20.0, -15.0)
    assert first["more_steps"] == (3.0, 1.0, 1.0)
    assert first["fewer_steps"] == (-3.0, -1.0, -1.0)
    assert max(range(3), key=lambda place: first["first"][place] or 0.0) == 0
    assert max(range(3), key=lambda place: first["last"][place] or 0.0) == 2
    assert made["longer"][1].values == (5.0, 5.0, 5.0), "what is as long is a tie"


def test_what_the_scorer_said_is_gone() -> None:
    for some in trivial_choices(MIXED).values():
        for one in some:
            assert one.judged
            assert not one.compared
            assert set(one.statuses) == {"scored"}
            assert not any(one.cut_off)
            assert not any(one.reasons)
        assert [(one.id, one.gold) for one in some] == [("a", 0), ("b", 1)]


def test_a_place_that_is_always_right_is_no_baseline() -> None:
    chosen_first = [dataclasses.replace(one, gold={"better": 0}) for one in MIXED]
    assert {"first", "last"}.isdisjoint(trivial_choices(chosen_first))
    assert {"first", "last"} <= set(trivial_choices(chosen_first, places=True))
    assert {"first", "last"}.isdisjoint(trivial_choices(MIXED, places=False))


def test_what_nobody_measured_is_no_baseline() -> None:
    no_steps = [dataclasses.replace(one, step_counts=(0, 0, 0)) for one in MIXED]
    assert {"more_steps", "fewer_steps"}.isdisjoint(trivial_choices(no_steps))
    no_texts = [dataclasses.replace(one, sizes=(0, 0, 0)) for one in no_steps]
    assert list(trivial_choices(no_texts)) == ["first", "last", "random"]


def test_without_candidates_there_are_none() -> None:
    assert not trivial_choices([outcome("a", (10,), (1,)), outcome("b", (20,), (2,))])
    assert not trivial_choices([])


def test_random_is_fair_and_the_same_in_every_order() -> None:
    some = [outcome(f"case {index}", (1, 2), (1, 1), gold=index % 2) for index in range(4000)]
    made = trivial_choices(some)["random"]
    again = trivial_choices(some[::-1])["random"]
    assert [one.values for one in made] == [one.values for one in again[::-1]]
    wins = sum((one.values[0] or 0) > (one.values[1] or 0) for one in made)
    assert abs(wins - 2000) < 4 * math.sqrt(1000)
    shares = [random_share(str(index)) for index in range(4000)]
    assert min(shares) >= 0
    assert max(shares) < 1
    assert abs(statistics.fmean(shares) - 0.5) < 4 / math.sqrt(12 * 4000)
