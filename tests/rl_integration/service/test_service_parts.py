"""The parts of the service by themselves: breaker, fair queue, cohorts, options."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.rl_integration.service.caller import Breaker
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.tickets import Cohorts, FairQueue, Request, Ticket, TrafficQueue


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock) -> Breaker:
    return Breaker(trip=0.5, window=4, rest=1.0, longest=3.0, clock=clock)


def seen(one: Breaker) -> tuple[str, int, float]:
    return one.state, one.opened, one.wait


def call(one: Breaker, *, good: bool) -> None:
    assert one.admits
    one.ended(one.begin(), good=good)


def test_a_breaker_opens_when_half_of_the_calls_are_empty_and_closes_after_a_good_trial() -> None:
    clock = Clock()
    one = breaker(clock)
    for good in (True, True, False):
        call(one, good=good)
    assert seen(one) == ("closed", 0, 0.0)
    call(one, good=False)
    assert seen(one) == ("open", 1, 1.0)
    assert not one.admits
    clock.now = 1.0
    assert seen(one) == ("trial", 1, 0.0)
    assert one.admits
    trial = one.begin()
    assert not one.admits, "one call is the trial"
    one.ended(trial, good=True)
    assert seen(one) == ("closed", 1, 0.0)
    call(one, good=False)
    assert seen(one) == ("closed", 1, 0.0), "what was before the rest is forgotten"


def test_a_breaker_rests_longer_after_each_failed_trial() -> None:
    clock = Clock()
    one = breaker(clock)
    call(one, good=False)
    call(one, good=False)
    rests = []
    for _ in range(4):
        rests.append(one.wait)
        clock.now += one.wait
        call(one, good=False)
    assert rests == [1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("good", [True, False])
def test_a_call_from_before_a_breaker_opened_is_no_trial(good: bool) -> None:
    clock = Clock()
    one = breaker(clock)
    old = one.begin()
    call(one, good=False)
    call(one, good=False)
    one.ended(old, good=good)
    assert seen(one) == ("open", 1, 1.0)
    another, clock.now = old, 1.0
    trial = one.begin()
    one.ended(another, good=good)
    assert (one.state, one.admits) == ("trial", False)
    one.ended(trial, good=True)
    assert one.state == "closed"


def test_a_good_call_never_opens_a_breaker() -> None:
    one = breaker(Clock())
    for good in (False, True, False, True, True):
        one.ended(one.begin(), good=good)
        if good:
            assert one.state == "closed"
            break


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers()), max_size=60))
def test_a_fair_queue_keeps_everything_and_the_order_of_each_flow(items: list[tuple[str, int]]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    for item in items:
        queue.put(item, flow=item[0])
    assert len(queue) == len(items)
    taken = []
    while queue:
        following = queue.peek()
        taken.append(queue.take())
        assert taken[-1] == following
    for flow in "abc":
        assert [item for item in taken if item[0] == flow] == [item for item in items if item[0] == flow]
    assert Counter(taken) == Counter(items)
    with pytest.raises(IndexError):
        queue.take()


def test_a_burst_waits_for_its_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(100):
        queue.put("burst", flow="burst")
    for _ in range(10):
        queue.put("small", flow="small")
    assert Counter(queue.take() for _ in range(20)) == {"burst": 10, "small": 10}


def test_weights_are_shares() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(100):
        queue.put("train", flow="train", weight=3)
        queue.put("eval", flow="eval", weight=1)
    assert Counter(queue.take() for _ in range(40)) == {"train": 30, "eval": 10}


def test_a_flow_saves_nothing_up_while_it_is_away() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(50):
        queue.put("busy", flow="busy")
    for _ in range(30):
        queue.take()
    for _ in range(50):
        queue.put("late", flow="late")
    assert Counter(queue.take() for _ in range(20)) == {"busy": 10, "late": 10}


def test_a_flow_that_comes_back_at_once_is_not_served_before_those_who_waited() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(10):
        queue.put("patient", flow="patient")
    taken = []
    for _ in range(10):
        queue.put("hasty", flow="hasty")
        taken += [queue.take()]
    assert Counter(taken) == {"patient": 5, "hasty": 5}


def test_costs_are_counted() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(40):
        queue.put("large", flow="large", cost=4)
        queue.put("small", flow="small", cost=1)
    assert Counter(queue.take() for _ in range(25)) == {"large": 5, "small": 20}


def test_a_queue_forgets_flows_that_are_gone() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.put(0, flow="busy")
    for n in range(20_000):
        queue.put(n, flow="busy")
        queue.put(n, flow=f"other {n}")
        queue.take()
        queue.take()
    assert len(queue) == 1
    assert len(vars(queue)["_had"]) < 200


def test_two_kinds_of_traffic_share_and_so_do_the_clients_of_each() -> None:
    queue: TrafficQueue[str] = TrafficQueue()
    for _ in range(100):
        for client in "abcde":
            queue.put(f"eval {client}", traffic="eval", flow=client)
        queue.put("train a", traffic="train", flow="a")
        queue.put("train b", traffic="train", flow="b")
    assert len(queue) == 700
    following = queue.peek()
    taken = [queue.take() for _ in range(80)]
    assert taken[0] == following
    assert Counter(taken) == {"train a": 30, "train b": 30, **{f"eval {client}": 4 for client in "abcde"}}


def ticket(group: str, client: str = "") -> Ticket:
    return Ticket(Request([Sample(prompt="q", response="r", group=group)], client=client, traffic="train"), 0)


def test_cohorts_are_let_go_when_whole_and_when_their_time_is_over() -> None:
    clock = Clock()
    cohorts = Cohorts(size=3, seconds=10, clock=clock)
    assert cohorts.next_end() is None
    assert cohorts.add(ticket("g")) is None
    assert cohorts.add(ticket("g", client="other")) is None
    clock.now = 5.0
    assert cohorts.add(ticket("g")) is None
    assert cohorts.add(ticket("h")) is None
    whole = cohorts.add(ticket("g"))
    assert whole is not None
    assert [one.request.client for one in whole] == ["", "", ""]
    assert (len(cohorts), cohorts.next_end(), cohorts.overdue()) == (2, 10.0, [])
    clock.now = 10.0
    assert [[one.request.client for one in group] for group in cohorts.overdue()] == [["other"]]
    assert [[one.sample.group for one in group] for group in cohorts.all()] == [["h"]]
    assert len(cohorts) == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("batch", 0),
        ("batch", True),
        ("characters", 1.5),
        ("concurrency", -1),
        ("waiting", 0),
        ("seconds", 0),
        ("seconds", float("nan")),
        ("linger", -0.1),
        ("trip", 0),
        ("trip", 1.1),
        ("cohort", 0),
        ("cohort_seconds", "1"),
        ("incomplete", "zero"),
    ],
)
def test_options_out_of_range_are_told(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"service option {option}="):
        LaneConfig(scorer="math", **{option: value})  # type: ignore[arg-type]
