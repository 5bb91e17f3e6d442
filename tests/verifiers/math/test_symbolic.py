"""The last tier: math-verify's yes counts when everything was read, its no never does, and a killed call is a doubt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from adjudge.protocol import Limits, Sample
from adjudge.runtime.job import Kind, Outcome
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifyCall
from adjudge.verifiers.math import symbolic
from adjudge.verifiers.math.scalars import Verdict
from adjudge.verifiers.math.symbolic import MAX_LENGTH, Pair, same, symbolic_verdict
from adjudge.verifiers.math.verifier import MathVerifier

LIMITS = Limits(seconds=5.0)
UNREAD_GOLD = "K. 1-i"  # our parser does not read it, and nothing keeps it from the last tier


class StandInPool:
    """A pool whose calls all end the same way."""

    def __init__(self, kind: Kind, value: bool | None = None) -> None:
        self.kind: Kind = kind
        self.value = value
        self.pairs: list[Pair] = []

    def run(self, target: Callable[[Pair], bool], items: Sequence[Pair], *, limits: Limits) -> list[Outcome[bool]]:
        assert isinstance(target, symbolic.Comparison)
        assert limits.seconds > 0
        self.pairs += items
        return [Outcome(kind=self.kind, value=self.value, error="" if self.kind == "ok" else "stopped") for _ in items]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StandInPool]:
    def use(kind: Kind, value: bool | None = None) -> StandInPool:
        pool = StandInPool(kind, value)
        monkeypatch.setattr(symbolic, "default_pool", lambda: pool)
        return pool

    return use


SAME = [
    (r"\sum_{k=1}^{3} k", "6"), (r"\frac{d}{dx}x^2", "2x"), ("(x+1)^2", "x^2+2x+1"), (r"3\over5", r"\frac{3}{5}"),
    (r"\sqrt{8}", r"2\sqrt{2}"),
]  # fmt: skip

NOT_SAME = [
    ("1", "2"), (r"1-1/\mathrm{e}", "1"), ("1 2", "3"), ("x", "y"),
    ("x^2", "x^2+10^{-3}"), ("", ""), ("}", "}"), (r"\frac{1}{2}}}", "0.5 and more"),
    ("5", "5 or 6"), ("5", "5, 6"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_same(one: str, other: str) -> None:
    assert same(Pair(one, other))
    assert same(Pair(other, one))


@pytest.mark.parametrize(("one", "other"), NOT_SAME)
def test_not_same(one: str, other: str) -> None:
    assert not same(Pair(one, other))
    assert not same(Pair(other, one))


KEPT_BACK = [
    "x" + "+1" * MAX_LENGTH, r"5\text{ cm}", r"1, 2, \ldots", "1...9", "x=5", "x<5", r"x\le 5", r"\pm 5",
    r"\int_0^1 x dx", r"\begin{pmatrix}1\end{pmatrix}", "many words here", "3–5", "9" * 150, "1e99999", "é",
    "(" * 9 + "1" + ")" * 9, "!" * 20,
]  # fmt: skip


@pytest.mark.parametrize("text", KEPT_BACK)
def test_some_texts_never_reach_the_worker(text: str, stand_in: Callable[..., StandInPool]) -> None:
    pool = stand_in("ok", True)
    assert symbolic_verdict(text, "5", LIMITS) == Verdict(None, "none")
    assert symbolic_verdict("5", text, LIMITS) == Verdict(None, "none")
    assert not pool.pairs


def test_a_no_is_a_doubt(stand_in: Callable[..., StandInPool]) -> None:
    stand_in("ok", False)
    assert symbolic_verdict("x", "y", LIMITS) == Verdict(None, "math_verify")
    stand_in("ok", True)
    assert symbolic_verdict("x", "x+0", LIMITS) == Verdict(True, "math_verify")


KILLS: list[Kind] = ["timeout", "memory", "crash", "lost", "closed", "raised"]


@pytest.mark.parametrize("kind", KILLS)
def test_a_stopped_call_is_a_doubt(kind: Kind, stand_in: Callable[..., StandInPool]) -> None:
    pool = stand_in(kind)
    assert symbolic_verdict(UNREAD_GOLD, "1-j", LIMITS) == Verdict(None, "math_verify")
    sample = Sample(prompt="?", response=r"\boxed{1-j}", reference=UNREAD_GOLD)
    found = MathVerifier().verify(sample)
    assert (found.value, found.reason) == (None, "gold_unparsable")
    sample = Sample(prompt="?", response=rf"\boxed{{{UNREAD_GOLD}}}", reference="1-j")
    found = MathVerifier().verify(sample)
    assert (found.value, found.reason) == (0.0, "unparsable_answer")
    assert found.evidence["tier"] == "math_verify"
    assert len(pool.pairs) == 3


class NeverEnds:
    """A call that has to be stopped."""

    def __call__(self, pair: Pair) -> bool:
        while True:
            pass


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    with Pool(workers=1) as pool:
        monkeypatch.setattr(symbolic, "default_pool", lambda: pool)
        yield pool


def test_a_call_that_never_ends_is_stopped(small_pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "Comparison", NeverEnds)
    assert symbolic_verdict("x", "y", Limits(seconds=0.2)) == Verdict(None, "math_verify")
    (stopped,) = small_pool.run(NeverEnds(), [Pair("x", "y")], limits=Limits(seconds=0.2))
    assert stopped.kind == "timeout"
    monkeypatch.undo()
    assert small_pool.run(symbolic.Comparison(), [Pair("1", "2")], limits=LIMITS)[0].value is False


class Loaded(symbolic.Comparison):
    """Tells whether math-verify was there when the call began."""

    def __call__(self, pair: Pair) -> bool:
        return "math_verify" in sys.modules


class LoadedForVerifying(VerifyCall):
    """The same of a call of the verifier."""

    def __call__(self, fields: tuple[Any, ...]) -> str:
        return "loaded" if "math_verify" in sys.modules else "not loaded"


def test_no_call_pays_for_the_import() -> None:
    with Pool(workers=1) as pool:
        assert pool.run(Loaded(), [Pair("1", "2")], limits=LIMITS)[0].value is True
        assert pool.run(LoadedForVerifying(MathVerifier()), [()], limits=LIMITS)[0].value == "loaded"


def test_through_a_real_worker() -> None:
    assert symbolic_verdict(r"3\over5", "3/5", LIMITS) == Verdict(True, "math_verify")
    assert symbolic_verdict("1-j", "1-k", LIMITS) == Verdict(None, "math_verify")


DROPPED = [("x+1", "(x+1)'"), (r"\sin x", r"(\sin x)'"), ("5", "5'"), ("5", "5''"), ("5", '"5"'), ("x", r"x{}^\prime")]


@pytest.mark.parametrize(("one", "other"), DROPPED)
def test_signs_that_math_verify_drops_are_no_equality(one: str, other: str) -> None:
    assert symbolic_verdict(one, other, LIMITS).equal is None
    assert symbolic_verdict(other, one, LIMITS).equal is None
