"""Targets and items of every kind reach the workers, and a bad one harms no other."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge.protocol import Limits
from adjudge.runtime.pool import Outcome, Pool, TargetError, default_pool, in_worker
from adjudge.runtime.verifying import VerifyCall
from adjudge.verifiers.text.exact import ExactVerifier

LIMITS = Limits(seconds=0.4, memory_mb=64)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=2) as made:
        yield made


@pytest.fixture(scope="module")
def single() -> Iterator[Pool]:
    with Pool(workers=1) as made:
        yield made


class Remember:
    """A target with state; loading it costs time once."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.warm = False

    def warm_up(self) -> None:
        threading.Event().wait(LIMITS.seconds + 0.1)
        self.warm = in_worker()

    def __call__(self, item: str) -> tuple[str, bool]:
        return self.word + item, self.warm


def test_warming_up_is_charged_to_nobody(single: Pool) -> None:
    outcomes = single.run(Remember("a"), ["1", "2"], limits=LIMITS)
    assert [outcome.value for outcome in outcomes] == [("a1", True), ("a2", True)]


class Prefix:
    def __init__(self, word: str) -> None:
        self.word = word

    def __call__(self, item: str) -> str:
        return self.word + item


def test_targets_with_different_options_are_different_targets(pool: Pool) -> None:
    for word in "aba":
        (outcome,) = pool.run(Prefix(word), ["1"], limits=LIMITS)
        assert outcome.value == word + "1"


def test_closures_and_lambdas_are_targets(single: Pool) -> None:
    factor = 7
    assert [outcome.value for outcome in single.run(lambda x: x * factor, [1, 2], limits=LIMITS)] == [7, 14]


class Stubborn:
    """Loading it does what it is told to."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __setstate__(self, state: dict[str, str]) -> None:
        if state["how"] == "raise":
            raise OSError("not today")
        if state["how"] == "die":
            os._exit(7)
        if state["how"] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        self.__dict__.update(state)

    def __call__(self, item: object) -> object:
        return item


@pytest.mark.parametrize(("how", "text"), [("raise", "OSError: not today"), ("die", "exited with code 7")])
def test_a_target_that_cannot_be_loaded_is_an_error_and_harms_no_other(single: Pool, how: str, text: str) -> None:
    with pytest.raises(TargetError, match=text):
        single.run(Stubborn(how), [1, 2], limits=LIMITS)
    assert single.run(str.upper, ["fine"], limits=LIMITS)[0].value == "FINE"


def test_a_process_that_is_killed_while_it_loads_its_target_is_lost_and_no_fault_of_the_target(single: Pool) -> None:
    (outcome,) = single.run(Stubborn("killed"), [1], limits=LIMITS)
    assert outcome.kind == "lost"
    assert "was killed by SIGKILL before it was ready, from outside" in outcome.error
    assert repr(VerifyCall(ExactVerifier())) == "the verifier 'exact'"  # which messages say in the target's place


def test_a_target_that_cannot_be_pickled_is_a_mistake(single: Pool) -> None:
    lock = threading.Lock()
    with pytest.raises(ValueError, match="must be picklable"):
        single.run(lambda item: lock, [1], limits=LIMITS)


class Point:
    def __init__(self, x: object) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return type(other) is Point and other.x == self.x

    __hash__ = None  # type: ignore[assignment]


def mirrored(point: Point) -> Point:
    return Point(-point.x)  # type: ignore[operator]


def test_items_and_results_may_be_of_the_callers_own_classes(pool: Pool) -> None:
    outcomes = pool.run(mirrored, [Point(at) for at in range(50)], limits=LIMITS)
    assert [outcome.value for outcome in outcomes] == [Point(-at) for at in range(50)]


class Unloadable:
    def __setstate__(self, state: object) -> None:
        raise OSError("not in there")

    def __getstate__(self) -> object:
        return 1


def test_an_item_that_cannot_travel_costs_only_itself(pool: Pool) -> None:
    items: list[Any] = [*range(40), threading.Lock(), *range(40), Unloadable(), *range(40)]
    outcomes = pool.run(str, items, limits=LIMITS)
    assert [at for at, outcome in enumerate(outcomes) if outcome.kind != "ok"] == [40, 81]
    assert "cannot pickle" in outcomes[40].error
    assert "not in there" in outcomes[81].error
    assert [outcomes[at].delivered for at in (39, 40, 81)] == [True, False, False]


def test_several_targets_at_once_all_get_on(pool: Pool) -> None:
    words = [chr(ord("a") + at) for at in range(4)]
    results: dict[str, list[Outcome[str]]] = {}

    def run(word: str) -> None:
        results[word] = pool.run(Prefix(word), [str(at) for at in range(50)], limits=LIMITS)

    threads = [threading.Thread(target=run, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for word in words:
        assert [outcome.value for outcome in results[word]] == [f"{word}{at}" for at in range(50)]


def test_more_targets_than_are_kept_warm(single: Pool) -> None:
    for number in range(10):
        (outcome,) = single.run(lambda item, number=number: item + number, [1], limits=LIMITS)  # type: ignore[misc]
        assert outcome.value == 1 + number


def make_pool(item: object) -> bool:
    assert in_worker()
    with pytest.raises(RuntimeError, match="cannot have a pool"):
        Pool()
    with pytest.raises(RuntimeError, match="cannot have a pool"):
        default_pool()
    return True


def test_a_worker_cannot_have_a_pool(single: Pool) -> None:
    assert not in_worker()
    (outcome,) = single.run(make_pool, [1], limits=LIMITS)
    assert outcome.value is True


@pytest.mark.parametrize("workers", [0, -1])
def test_a_pool_needs_workers(workers: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Pool(workers)


def shout(item: str) -> str:
    print(item, flush=True)
    print(item, file=sys.stderr, flush=True)
    return sys.stdin.read()


def test_a_target_cannot_write_to_the_callers_output(single: Pool, capfd: pytest.CaptureFixture[str]) -> None:
    (outcome,) = single.run(shout, ["noise"], limits=LIMITS)
    assert outcome.value == ""
    assert capfd.readouterr() == ("", "")
