"""Every way a `verify` call can end has one score, and it never pays to break the judge."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from adjudge.protocol import Cost, Limits, Provenance, Sample, Score, Scorer, StepScore, Validates, Verifier
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer


@dataclass(frozen=True, kw_only=True)
class Obedient(Verifier):
    """Does what the reference says, and then what the response says."""

    name: ClassVar[str] = "obedient"
    limits: ClassVar[Limits] = Limits(seconds=0.3, memory_mb=64)
    kill_value: Any = 0.0

    def verify(self, sample: Sample) -> Score:
        if sample.reference == "unreadable":
            return Score.failed("gold_unparsable", why="says so")
        for word in (sample.reference, sample.response):
            obey(str(word))
        if sample.response == "a number":
            return 1.0  # type: ignore[return-value]
        if sample.response == "rich":
            return Score(
                value=0.5,
                steps=(StepScore(value=1.0, start=0, end=2),),
                parts={"part": Score.scored(1.0)},
                provenance=Provenance(engine="engine", scorer="somebody"),
                cost=Cost(prompt_tokens=3),
                uncertainty=0.1,
            )
        if sample.response == "declined":
            return Score.abstained("out_of_scope")
        return Score.scored(float(sample.response == sample.reference), answer=sample.response)

    def killed(self, sample: Sample, reason: str) -> Score:
        if self.kill_value == "raise":
            raise LookupError("no idea")
        if self.kill_value == "nonsense":
            return None  # type: ignore[return-value]
        return Score.scored(self.kill_value, reason, seen=True)


def obey(word: str) -> None:
    match word:
        case "hang":
            while True:
                pass
        case "grow":
            held = []
            while True:
                held.append(bytearray(1 << 20))
        case "abort":
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ZeroDivisionError("by zero")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=2) as made:
        yield made


def sample(response: Any, reference: Any = "gold", **rest: Any) -> Sample:
    return Sample(prompt="?", response=response, reference=reference, **rest)


def score(pool: Pool, *samples: Sample, verifier: Verifier | None = None) -> list[Score]:
    scorer = VerifierScorer(verifier or Obedient(), pool)
    scores = asyncio.run(scorer.score(samples))
    assert len(scores) == len(samples)
    for given in scores:
        assert given.provenance.scorer == scorer.name
        assert given.provenance.fingerprint == scorer.fingerprint
    return scores


@pytest.mark.parametrize(
    ("response", "reference", "status", "value", "reason"),
    [
        ("gold", "gold", "scored", 1.0, ""),
        ("lead", "gold", "scored", 0.0, ""),
        ("declined", "gold", "abstained", None, "out_of_scope"),
        ("gold", None, "failed", None, "bad_sample"),
        ("gold", "unreadable", "failed", None, "gold_unparsable"),
        ("hang", "gold", "scored", 0.0, "candidate_timeout"),
        ("grow", "gold", "scored", 0.0, "candidate_memory"),
        ("abort", "gold", "scored", 0.0, "candidate_crash"),
        ("kill", "gold", "failed", None, "worker_died"),
        ("raise", "gold", "failed", None, "verifier_error"),
        ("a number", "gold", "failed", None, "verifier_error"),
        ("gold", "hang", "failed", None, "gold_timeout"),
        ("gold", "grow", "failed", None, "gold_timeout"),
        ("gold", "abort", "failed", None, "gold_timeout"),
        ("hang", "hang", "failed", None, "gold_timeout"),
        ("hang", "unreadable", "failed", None, "gold_unparsable"),
        ("gold", "raise", "failed", None, "verifier_error"),
    ],
)
def test_every_ending_has_its_score(
    pool: Pool, response: str, reference: str | None, status: str, value: float | None, reason: str
) -> None:
    before, given, after = score(pool, sample("gold"), sample(response, reference), sample("lead"))
    assert (given.status, given.value, given.reason) == (status, value, reason), given
    assert (before.value, after.value) == (1.0, 0.0)
    assert given.cost.seconds > 0 or reason in ("bad_sample",)


def test_failures_say_what_happened(pool: Pool) -> None:
    missing, raised, number, hung, gold = score(
        pool, sample("x", None, id="s1"), sample("raise"), sample("a number"), sample("hang"), sample("x", "hang")
    )
    assert "'s1'" in missing.evidence["error"]
    assert raised.evidence["error"] == "ZeroDivisionError: by zero"
    assert "float, not a Score" in number.evidence["error"]
    assert hung.evidence == {"error": "no result after 0.3 s", "seen": True}
    assert "empty response" in gold.evidence["error"]


@pytest.mark.parametrize(
    ("kill_value", "status", "value", "text"),
    [
        (-1.0, "scored", -1.0, "no result"),
        ("raise", "failed", None, "LookupError: no idea"),
        ("nonsense", "failed", None, "NoneType"),
    ],
)
def test_the_verifier_says_what_a_kill_is_worth(
    pool: Pool, kill_value: Any, status: str, value: float | None, text: str
) -> None:
    (given,) = score(pool, sample("hang"), verifier=Obedient(kill_value=kill_value))
    assert (given.status, given.value) == (status, value)
    assert text in given.evidence["error"]


def test_everything_a_score_holds_arrives(pool: Pool) -> None:
    (given,) = score(pool, sample("rich"))
    assert given.steps == (StepScore(value=1.0, start=0, end=2),)
    assert given.parts == {"part": Score.scored(1.0)}
    assert given.provenance.engine == "engine"
    assert given.cost.prompt_tokens == 3
    assert given.cost.seconds > 0
    assert given.uncertainty == 0.1


@dataclass(frozen=True, kw_only=True)
class Echo(Verifier):
    name: ClassVar[str] = "echo"
    needs_reference: ClassVar[bool] = False

    def verify(self, sample: Sample) -> Score:
        return Score.scored(1.0, sample=repr(sample))


def test_everything_a_sample_holds_arrives(pool: Pool) -> None:
    given = Sample(
        prompt=[{"role": "user", "content": "?"}],
        response=[{"role": "assistant", "content": "!"}],
        reference={1: (2, 3)},
        id="i",
        group="g",
        finish_reason="length",
        extra={"column": b"bytes"},
    )
    (echoed,) = score(pool, given, verifier=Echo())
    assert echoed.evidence["sample"] == repr(given)


def test_a_sample_that_cannot_travel_is_a_bad_sample(pool: Pool) -> None:
    samples = [sample("x"), sample("x", extra={"lock": threading.Lock()}), sample("x")]
    given = score(pool, *samples, verifier=Echo())
    assert [(each.status, each.reason) for each in given] == [("scored", ""), ("failed", "bad_sample"), ("scored", "")]
    assert "cannot be pickled" in given[1].evidence["error"]


def test_no_samples_no_scores(pool: Pool) -> None:
    assert score(pool) == []


def test_scores_come_in_the_order_of_samples(pool: Pool) -> None:
    samples = [sample(f"r{at}", None if at % 7 == 3 else "gold") for at in range(500)]
    for at, given in enumerate(score(pool, *samples)):
        if at % 7 == 3:
            assert given.reason == "bad_sample"
        else:
            assert given.evidence["answer"] == f"r{at}"


def test_a_closed_pool_fails_samples() -> None:
    pool = Pool(workers=1)
    pool.close()
    (given,) = score(pool, sample("x"))
    assert (given.status, given.reason) == ("failed", "closed")


@dataclass(frozen=True, kw_only=True)
class Prepared(Verifier):
    name: ClassVar[str] = "prepared"
    needs_reference: ClassVar[bool] = False
    ready: ClassVar[list[bool]] = []

    def warm_up(self) -> None:
        self.ready.append(True)

    def verify(self, sample: Sample) -> Score:
        return Score.scored(float(bool(self.ready)))


def test_a_verifier_may_warm_up(pool: Pool) -> None:
    (given,) = score(pool, sample("x"), verifier=Prepared())
    assert given.value == 1.0
    assert Prepared.ready == []  # not here


def test_it_is_a_scorer() -> None:
    verifier = Obedient()
    scorer = VerifierScorer(verifier)
    assert isinstance(scorer, Scorer)
    assert isinstance(scorer, Validates)
    assert scorer.verifier is verifier
    assert (scorer.name, scorer.fingerprint) == ("obedient", verifier.fingerprint)
    with pytest.raises(ValueError, match="compares with a reference"):
        scorer.validate(sample("x", None))


def test_only_verifiers_can_be_run() -> None:
    with pytest.raises(ValueError, match="derive its class from Verifier"):
        VerifierScorer(Obedient)  # type: ignore[arg-type]


class Overwhelmed(VerifierScorer):
    """Finds the machine overloaded whenever it gets more than one sample."""

    async def _scored(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(1.0) if len(samples) == 1 else Score.failed("overloaded") for _ in samples]


def test_who_found_the_machine_overloaded_is_tried_again_alone() -> None:
    scores = asyncio.run(Overwhelmed(Obedient()).score([sample("a"), sample("b")]))
    assert [one.value for one in scores] == [1.0, 1.0]
