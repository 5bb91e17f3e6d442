"""Order of runs, noise, budgets and blame, with times that a test writes: no program runs here."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from adjudge import load
from adjudge.protocol import Sample, Score
from adjudge.verifiers.code.performance import measuring
from adjudge.verifiers.code.performance.timed_run import Callee, Timed
from adjudge.verifiers.code.performance.verifier import PerformanceVerifier

REFERENCE = {"entry_point": "f", "baseline": "def f(x): return 1", "inputs": [[1], [2]]}
PROGRAM = "def f(x): return 2 - 1"
USUAL = PerformanceVerifier(isolation="none")

Script = Callable[[str, int], Timed]


class Clock:
    """Stands in for the sandbox.

    Args:
        script: what becomes of the n-th run of "baseline", "program", "truth" or "inputs", from 0.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.order: list[str] = []
        self.now = 0.0

    def __call__(self, warm: Any, callee: Callee, case: bytes, limits: Any, flavour: Any, *, loading: bool) -> Timed:
        del warm, case, flavour, loading
        name = {REFERENCE["baseline"]: "baseline", PROGRAM: "program"}.get(callee.source, callee.name)
        name = "truth" if "exact" in callee.source else name
        done = self.script(name, self.order.count(name))
        self.order.append(name)
        self.now += done.seconds
        if done.seconds > limits.seconds:
            return Timed(seconds=limits.seconds, reason="candidate_timeout")
        return done


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Score, Clock]]:
    def run(script: Script, reference: Any = REFERENCE, **options: Any) -> tuple[Score, Clock]:
        clock = Clock(script)
        monkeypatch.setattr(measuring, "timed_call", clock)
        monkeypatch.setattr(time, "monotonic", lambda: clock.now)
        sample = Sample(prompt="", response=PROGRAM, reference=reference)
        return replace(USUAL, **options).verify(sample), clock

    return run


def steady(baseline: float, program: float, value: Any = 1) -> Script:
    return lambda name, at: Timed(value=value, seconds=program if name == "program" else baseline)


@pytest.mark.filterwarnings("ignore:isolation='none'")
class TestRounds:
    def test_the_two_take_turns_in_going_first(self, judged: Any) -> None:
        score, clock = judged(steady(0.4, 0.1), repeats=3, max_repeats=3)
        pair, back = ["baseline", "program"], ["program", "baseline"]
        warm_up = ["baseline", "baseline", "program", "program"]
        assert clock.order == [*warm_up, *pair, *pair, *back, *back, *pair, *pair]
        assert (score.value, score.evidence["speedup"]) == (0.75, 4.0)
        assert score.uncertainty == pytest.approx(0.0625)

    def test_the_first_run_is_not_timed(self, judged: Any) -> None:
        score, _ = judged(
            lambda name, at: Timed(value=1, seconds=0.3 if name == "program" and at < 2 else 0.1), scale="raw"
        )
        assert (score.value, score.evidence["settled"]) == (1.0, True)

    def test_noise_across_a_step_gets_more_rounds_and_no_more_than_allowed(self, judged: Any) -> None:
        wobble = itertools.cycle([0.06, 0.115, 0.08])

        def script(name: str, at: int) -> Timed:
            return Timed(value=1, seconds=next(wobble) if name == "program" else 0.1)

        score, clock = judged(script, repeats=3, max_repeats=7, measured=True)
        assert clock.order.count("program") == 2 * (1 + 7)
        assert score.evidence["settled"] is False
        assert score.status == "scored"
        assert len(score.evidence["seconds"][0]["baseline"]) == 7
        failed, _ = judged(script, repeats=3, max_repeats=7, undecided="failed")
        assert (failed.status, failed.value, failed.reason) == ("failed", None, "undecided")

    def test_noise_that_settles_ends_the_rounds(self, judged: Any) -> None:
        def script(name: str, at: int) -> Timed:
            return Timed(value=1, seconds=0.2 if name != "program" else 0.05 if 2 <= at < 6 else 0.1)

        score, clock = judged(script, repeats=3, max_repeats=40, scale="raw")
        assert 2 * (1 + 3) < clock.order.count("program") < 2 * (1 + 40)
        assert score.value == 2.0

    @pytest.mark.parametrize("at", [0, 1, 2, 7])
    def test_a_wrong_result_in_any_round_is_worth_nothing(self, judged: Any, at: int) -> None:
        """A program that knows the warm-up must be right behind it, too."""

        def script(name: str, run: int) -> Timed:
            return Timed(value=9 if (name, run) == ("program", at) else 1, seconds=0.1)

        score, _ = judged(script)
        assert (score.value, score.reason) == (0.0, "wrong")
        assert score.evidence["case"] == at % 2

    def test_a_program_that_is_far_too_slow_is_not_waited_for(self, judged: Any) -> None:
        score, clock = judged(steady(0.5, 60.0), slowest=0.5, seconds=100.0)
        assert (score.value, score.reason) == (0.0, "candidate_timeout")
        assert clock.order.count("program") == 1

    def test_a_slow_program_that_uses_up_the_time_is_to_blame(self, judged: Any) -> None:
        """Else a response could buy a failure by being slow."""
        score, _ = judged(steady(1.0, 4.0), total_seconds=30.0)
        assert (score.value, score.reason) == (0.0, "candidate_timeout")

    def test_a_slow_baseline_that_uses_up_the_time_is_the_references_fault(self, judged: Any) -> None:
        score, _ = judged(steady(4.0, 1.0), total_seconds=30.0)
        assert (score.status, score.reason) == ("failed", "gold_timeout")

    def test_noise_until_the_time_is_over_buys_no_failure(self, judged: Any) -> None:
        """The rounds that everybody has are done, and the reference's runs have taken most of the time."""
        wobble = itertools.cycle([0.6, 1.9, 1.0])

        def script(name: str, at: int) -> Timed:
            return Timed(value=1, seconds=next(wobble) if name == "program" else 2.0)

        score, clock = judged(script, repeats=3, max_repeats=15, total_seconds=40.0)
        assert clock.order.count("program") < 2 * (1 + 15)
        assert (score.status, score.evidence["settled"]) == ("scored", False)
        assert judged(script, repeats=3, max_repeats=15, total_seconds=20.0)[0].reason == "gold_timeout"

    def test_a_long_load_is_waited_for_where_it_does_not_count(self, judged: Any) -> None:
        """An index takes seconds to build and milliseconds to ask."""
        limits = []

        class Loading(Clock):
            def __call__(self, warm: Any, callee: Callee, case: bytes, limit: Any, *more: Any, loading: bool) -> Timed:
                limits.append((loading, limit.seconds))
                return super().__call__(warm, callee, case, limit, *more, loading=loading)

        for loading in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(measuring, "timed_call", Loading(steady(0.1, 0.1)))
                sample = Sample(prompt="", response=PROGRAM, reference=REFERENCE)
                assert replace(USUAL, loading=loading, seed=1, seconds=60.0).verify(sample).status == "scored"
        assert {seconds for loading, seconds in limits if loading} == {60.0, 4 * 0.1 / 0.5 + 1}
        assert {seconds for loading, seconds in limits if not loading} == {60.0}

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            (Timed(seconds=0.1, reason="candidate_error", detail="ZeroDivisionError"), "gold_unparsable"),
            (Timed(seconds=0.1, reason="candidate_timeout"), "gold_timeout"),
            (Timed(seconds=0.1, reason="candidate_memory"), "gold_timeout"),
            (Timed(seconds=0.001, value=1), "gold_unparsable"),
        ],
    )
    def test_a_baseline_that_fails_or_is_too_short_is_the_references_fault(
        self, judged: Any, fault: Timed, reason: str
    ) -> None:
        score, _ = judged(lambda name, at: fault if name == "baseline" else Timed(value=1, seconds=0.1))
        assert (score.status, score.reason) == ("failed", reason)

    def test_a_program_that_fails_is_worth_nothing(self, judged: Any) -> None:
        for reason in ("candidate_error", "candidate_memory", "tampering", "no_answer", "unparsable_answer"):
            score, _ = judged(
                lambda name, at, why=reason: Timed(value=1, seconds=0.1, reason=why if name == "program" else "")
            )
            assert (score.value, score.reason) == (0.0, reason)

    def test_recall_is_measured_against_the_exact_program(self, judged: Any) -> None:
        reference = {**REFERENCE, "recall": {"least": 0.5, "truth": "def f(x): return exact(x)"}}
        results = {"truth": [1, 2, 3, 4], "baseline": [1, 2, 3, 9], "program": [1, 2, 8, 9]}

        def script(name: str, at: int) -> Timed:
            return Timed(value=results[name], seconds=0.1 if name == "program" else 0.2)

        score, _ = judged(script, reference, scale="raw")
        assert score.value == 2.0
        results["program"] = [1, 7, 8, 9]
        assert judged(script, reference)[0].reason == "wrong"
        results["baseline"] = [7, 8, 9, 9]
        assert judged(script, reference)[0].reason == "gold_unparsable"

    def test_inputs_are_others_for_another_program_or_seed_and_the_same_for_the_same(self, judged: Any) -> None:
        seeds: list[bytes] = []
        reference = {**REFERENCE, "inputs": "def inputs(seed): return [[seed]]"}

        class Noting(Clock):
            def __call__(self, warm: Any, callee: Callee, case: bytes, *more: Any, **others: Any) -> Timed:
                if callee.name == "inputs":
                    seeds.append(case)
                    return Timed(value=[[1]], seconds=0.1)
                return super().__call__(warm, callee, case, *more, **others)

        clock = Noting(steady(0.1, 0.1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measuring, "timed_call", clock)
            for seed, response in ((0, PROGRAM), (0, PROGRAM), (1, PROGRAM), (0, f"{PROGRAM} # other")):
                replace(USUAL, seed=seed).verify(Sample(prompt="", response=response, reference=reference))
        assert seeds[0] == seeds[1]
        assert len(set(seeds)) == 3

    def test_the_recipe_of_crinn_pays_the_speed_at_a_recall(self, judged: Any) -> None:
        """By hand: queries answered 5.5 times as fast, with a recall of 0.9; log2 5.5 is 2.46, nearest quarter 2.5."""
        loaded = load("crinn")
        options = {item.name: getattr(loaded.verifier, item.name) for item in fields(loaded.verifier)}  # type: ignore[attr-defined]
        reference = {**REFERENCE, "recall": {"least": 0.9, "truth": "def f(x): return exact(x)"}}
        results = {"truth": list(range(10)), "baseline": list(range(10)), "program": [*range(9), 77]}

        def script(name: str, at: int) -> Timed:
            return Timed(value=results[name], seconds=0.2 if name == "program" else 1.1)

        options |= {"isolation": "none"}
        assert judged(script, reference, **options)[0].value == pytest.approx(2**2.5)
        results["program"] = [*range(8), 77, 78]
        assert judged(script, reference, **options)[0].value == 0.0

    def test_crinns_area_is_of_each_rounds_recall(self, judged: Any) -> None:
        """Two settings.  The baseline finds 0.9 in 0.1 s and all in 0.4 s: an area of .05 * 10 + .05 * 2.5 = 0.625.

        The program finds 0.9 in 0.02 s and 0.95 in 0.04 s: .05 * 50 + .05 * 25 = 3.75, which is 6 times as much; log2
        is 2.58, the nearest quarter 2.5.  Where it finds only 0.9 after the warm-up, it is 2.5 / 0.625 = 4 times.
        """
        loaded = load("crinn")
        options = {item.name: getattr(loaded.verifier, item.name) for item in fields(loaded.verifier)}  # type: ignore[attr-defined]
        recall = {"least": 0.85, "most": 0.95, "truth": "def f(x): return exact(x)"}
        found = {"truth": (20, 20), "baseline": (18, 20), "program": (18, 19)}
        took = {"truth": (1.0, 1.0), "baseline": (0.1, 0.4), "program": (0.02, 0.04)}
        warm = 2

        def script(name: str, at: int) -> Timed:
            some = found[name][at % 2] if name != "program" or at < warm else found[name][0]
            return Timed(value=[*range(some), *range(100, 120 - some)], seconds=took[name][at % 2])

        options |= {"isolation": "none"}
        reference = {**REFERENCE, "recall": recall}
        assert judged(script, reference, **options)[0].value == 4.0
        warm = 1000
        assert judged(script, reference, **options)[0].value == pytest.approx(2**2.5)
        found["program"] = (17, 17)
        assert judged(script, reference, **options)[0].reason == "wrong"
        found["baseline"] = (17, 16)
        assert judged(script, reference, **options)[0].reason == "gold_unparsable"

    def test_the_fingerprint_knows_options_and_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from adjudge.verifiers.code.performance import verifier

        before = USUAL.fingerprint
        assert before == replace(USUAL).fingerprint != replace(USUAL, grain=0.25).fingerprint
        monkeypatch.setattr(verifier, "machine", lambda: "another machine")
        assert USUAL.fingerprint != before
