"""Every rule of the kit is tried on a good scorer, and on one that breaks that rule and no other."""

from __future__ import annotations

import asyncio
import itertools
import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from adjudge.protocol import Sample, Score, Scorer, Verifier, response_text
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.compose import Affine, Clip, Part, Rank, Transform, Weighted, ZScore
from adjudge.scoring.conformance import Report, check_scorer, hostile_responses

SAMPLES = [
    Sample(prompt="p", response=response, reference="g", id=str(index), group="g", extra={"tags": []})
    for index, response in enumerate(["a", "bb", "ccc", "dddd"])
]


@dataclass
class Length:
    """A scorer that keeps all rules: the length of the answer."""

    name: str = "length"
    fingerprint: str = "length:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        await asyncio.sleep(0)
        return [self.one(sample) for sample in samples]

    def one(self, sample: Sample) -> Score:
        return Score.scored(float(len(response_text(sample))))


class Nameless(Length):
    def __init__(self) -> None:
        super().__init__(name="")


class NeedsSamples(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if not samples:
            raise IndexError("list index out of range")
        return await super().score(samples)


class DropsOne(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return (await super().score(samples))[1:]


class NotFinite(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        scores = await super().score(samples)
        for score in scores:
            object.__setattr__(score, "value", math.nan)
        return scores


class NumberWithoutVerdict(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        scores = [Score.failed("verifier_error") for _ in samples]
        for score in scores:
            object.__setattr__(score, "value", 0.0)
        return scores


class Counts(Length):
    ticks = itertools.count()

    def one(self, sample: Sample) -> Score:
        return Score.scored(float(next(self.ticks)))


class Sorts(Length):
    """Sorts a batch for speed and forgets to put it back."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return await super().score(sorted(samples, key=lambda sample: len(sample.response)))


class TrustsSmallBatches(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        scores = await super().score(samples)
        return [Score.scored(1.0)] if len(samples) == 1 else scores


class ForgetsCopies(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        seen: set[str] = set()
        scores = []
        for sample in samples:
            scores.append(Score.scored(-1.0) if str(sample.response) in seen else self.one(sample))
            seen.add(str(sample.response))
        return scores


class ReadsLabels(Length):
    def one(self, sample: Sample) -> Score:
        return Score.scored(float(len(response_text(sample))), id=sample.id)


class UnwritableEvidence(Length):
    thing = object()

    def one(self, sample: Sample) -> Score:
        return Score.scored(float(len(response_text(sample))), thing=self.thing)


class NotReentrant(Length):
    def __init__(self) -> None:
        super().__init__()
        self.state = threading.local()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if getattr(self.state, "busy", False):
            raise RuntimeError("already scoring")
        self.state.busy = True
        try:
            return await super().score(samples)
        finally:
            self.state.busy = False


class OneThreadOnly(Length):
    def __init__(self) -> None:
        super().__init__()
        self.owner: int | None = None

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.owner = self.owner or threading.get_ident()
        if threading.get_ident() != self.owner:
            raise RuntimeError("SQLite objects created in a thread can only be used in that same thread")
        return await super().score(samples)


class NeedsUnicode(Length):
    def one(self, sample: Sample) -> Score:
        return Score.scored(float(len(response_text(sample).encode())))


class LetsEmptyAnswersGo(Length):
    def one(self, sample: Sample) -> Score:
        return Score.failed("bad_sample", error="no text") if sample.response == "" else super().one(sample)


class LetsSilenceGo(Length):
    def one(self, sample: Sample) -> Score:
        return Score.failed("bad_sample") if sample.response == [] else super().one(sample)


class ReadsFloats(Length):
    def one(self, sample: Sample) -> Score:
        return Score.failed("bad_sample") if response_text(sample) == "nan" else super().one(sample)


class EndsTheProgram(Length):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if len(samples) > 1:
            sys.exit(0)
        return await super().score(samples)


class Scribbles(Length):
    def one(self, sample: Sample) -> Score:
        if "tags" in sample.extra:
            sample.extra["tags"].append("seen")
        return super().one(sample)


class Restless(Length):
    ticks = itertools.count()

    @property
    def fingerprint(self) -> str:
        return f"restless:{next(self.ticks)}"

    @fingerprint.setter
    def fingerprint(self, value: str) -> None:
        pass


BROKEN: list[tuple[type[Length], str, str]] = [
    (Nameless, "identity", "the name is ''"),
    (NeedsSamples, "empty batch", "raised IndexError: list index out of range"),
    (DropsOne, "one score each", "the scorer 'length' returned 3 scores for 4 samples"),
    (NotFinite, "one score each", "gave sample 0 the value nan"),
    (NumberWithoutVerdict, "one score each", "the status 'failed' with the value 0.0"),
    (Counts, "repeatable", "a sample scored differently asked again"),
    (Sorts, "any order", "in reversed order (place 0): 4.0 (scored), then 1.0 (scored)"),
    (TrustsSmallBatches, "any batch", "in a batch of its own"),
    (ForgetsCopies, "duplicates", "beside a copy of itself"),
    (ReadsLabels, "blind to labels", "under another id and group"),
    (UnwritableEvidence, "JSON", "evidence['thing'] is a builtins.object"),
    (NotReentrant, "overlapping calls", "already scoring"),
    (OneThreadOnly, "threads", "SQLite objects"),
    (NeedsUnicode, "hostile responses", "lone surrogates: the scorer 'length' raised UnicodeEncodeError"),
    (EndsTheProgram, "one score each", "raised SystemExit: 0"),
    (LetsEmptyAnswersGo, "empty responses", "sample 0 could be judged, and with an empty response it is"),
    (LetsSilenceGo, "no escape", "by being: no turn (bad_sample); what a response does must score 0"),
    (ReadsFloats, "no escape", "by being: not a number (bad_sample)"),
    (Scribbles, "samples untouched", "changed the samples 0, 1, 2, 3"),
    (Restless, "stable fingerprint", "the fingerprint went from 'restless:"),
]


def samples() -> list[Sample]:
    return [replace(sample, extra={"tags": []}) for sample in SAMPLES]


def test_a_good_scorer_conforms() -> None:
    report = check_scorer(Length(), samples())
    assert report.ok, str(report)
    report.raise_for_failures()
    skipped = {check.rule: check.detail for check in report.checks if check.outcome == "skipped"}
    assert skipped == {"pickling": "only verifiers travel to worker processes"}


@pytest.mark.parametrize(("broken", "rule", "detail"), BROKEN, ids=[cls.__name__ for cls, _, _ in BROKEN])
def test_a_broken_scorer_fails_exactly_its_rule(broken: type[Length], rule: str, detail: str) -> None:
    report = check_scorer(broken(), samples())
    assert [check.rule for check in report.failures] == [rule]
    assert detail in report.failures[0].detail
    assert not report.ok
    with pytest.raises(AssertionError, match="does not conform"):
        report.raise_for_failures()


def test_every_rule_has_a_scorer_that_breaks_it() -> None:
    rules = {check.rule for check in check_scorer(Length(), samples()).checks}
    assert rules - {rule for _, rule, _ in BROKEN} == {"pickling"}  # tried on verifiers, below


def test_the_report_reads_well() -> None:
    text = str(check_scorer(DropsOne(), samples()))
    assert text.startswith("scorer 'length' (length:1): does not conform\n")
    assert "  failed   one score each      the scorer 'length' returned 3 scores" in text
    assert "  skipped  repeatable          the scorer gave no proper scores" in text
    assert "  ok       identity\n" in text


def group_scorer() -> Scorer:
    return Transform(scorer=Length(), steps=(ZScore(),))


def test_group_scorers_are_given_whole_groups() -> None:
    two_groups = [replace(sample, group=(sample.id in "01" and "x") or "y") for sample in samples()]
    report = check_scorer(group_scorer(), two_groups)
    assert report.ok, str(report)
    outcomes = {check.rule: (check.outcome, check.detail) for check in report.checks}
    assert outcomes["any batch"] == ("ok", "")
    assert outcomes["duplicates"][0] == outcomes["blind to labels"][0] == "skipped"
    one_group = {check.rule: check for check in check_scorer(group_scorer(), samples()).checks}
    assert one_group["any batch"].detail == "one group cannot be split"


def test_composites_conform() -> None:
    mix = Weighted(
        parts=(
            Part(Length()),
            Part(Transform(scorer=Length(name="other"), steps=(Affine(0.1), Clip(high=3.0))), weight=-0.5),
        )
    )
    for scorer in (mix, Transform(scorer=Length(), steps=(Rank(),))):
        report = check_scorer(scorer, samples())
        assert report.ok, str(report)


@dataclass(frozen=True, kw_only=True)
class Starts(Verifier):
    """Does the response start with the reference?"""

    name: ClassVar[str] = "starts"
    baggage: Any = None

    def verify(self, sample: Sample) -> Score:
        return Score.scored(float(response_text(sample).startswith(str(sample.reference))))


def answers(reference: str, *responses: str) -> list[Sample]:
    return [Sample(prompt="p", response=response, reference=reference) for response in responses]


@pytest.mark.parametrize(
    ("spec", "tried"),
    [
        ("math", answers("4", "4", r"\boxed{5}", "<think>a</think><answer>2+2</answer>")),
        ({"weighted": {"math": 1.0, "repetition": 0.1}}, answers("4", "4", "5", "4 4 4 4 4 4 4")),
        ({"gate": {"gate": "format", "main": "math"}}, answers("4", "4", "<think>a</think><answer>4</answer>")),
        ({"cascade": ["exact", "math"]}, answers("4", "4", "5", "2+2")),
    ],
    ids=lambda value: str(value) if isinstance(value, str | dict) else "",
)
def test_math_and_what_is_made_of_scorers_conforms(spec: Any, tried: list[Sample]) -> None:
    """The text verifiers are tried in tests/verifiers/text/test_conformance_text.py, the others beside them."""
    report = check_scorer(spec, tried)
    assert report.ok, str(report)


def test_a_verifier_that_cannot_travel_is_found() -> None:
    assert check_scorer(Starts(), answers("a", "a", "b")).ok
    report = check_scorer(VerifierScorer(Starts()), answers("a", "a", "b"))
    assert report.ok, str(report)
    assert {check.rule: check.outcome for check in report.checks}["pickling"] == "ok"

    @dataclass(frozen=True, kw_only=True)
    class Forgetful(Starts):
        def __reduce__(self) -> tuple[Any, ...]:
            return Starts, ()

    report = check_scorer(Forgetful(baggage=3), answers("a", "a", "b"))
    assert [check.rule for check in report.failures] == ["pickling"]


@dataclass(frozen=True, kw_only=True)
class LooksAtTheFirstLetter(Starts):
    def verify(self, sample: Sample) -> Score:
        return Score.scored(float(response_text(sample)[0] == sample.reference))


@dataclass(frozen=True, kw_only=True)
class LooksAtTheResponseFirst(Starts):
    def verify(self, sample: Sample) -> Score:
        if not response_text(sample):
            return Score.scored(0.0, "no_answer")
        return super().verify(sample) if sample.reference else Score.failed("gold_unparsable")


@pytest.mark.parametrize(
    ("verifier", "tried", "detail"),
    [
        (
            LooksAtTheFirstLetter(),
            answers("a", "a", "b"),
            "sample 0 could be judged, and with an empty response it is None (failed, verifier_error): IndexError",
        ),
        (
            LooksAtTheResponseFirst(),
            [*answers("a", "a"), *answers("", "a")],
            "the reference of sample 1 cannot be read, and with an empty response that goes unseen: 0.0 (scored, no_an",
        ),
    ],
)
def test_a_verifier_answers_what_the_runtime_asks_after_a_kill(
    verifier: Verifier, tried: list[Sample], detail: str
) -> None:
    failures = {check.rule: check.detail for check in check_scorer(verifier, tried).failures}
    assert detail in failures["empty responses"]


def test_a_composite_need_not_look_at_the_reference_first() -> None:
    short = {"regex": {"pattern": "a", "expect": "no_match"}}
    report = check_scorer({"cascade": {"stages": [short, "exact"], "pass_on": ["bad_format"]}}, answers("", "a", "b"))
    assert {check.rule: check.outcome for check in report.checks}["empty responses"] == "ok"


class Hangs(Length):
    """Hangs, in one of three ways, until the test is over."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.over = threading.Event()
        self.cancelled = threading.Event()
        self.first_thread = 0

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.first_thread = self.first_thread or threading.get_ident()
        if self.how == "waits for a reply" and len(samples) == 1:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.cancelled.set()
        if self.how == "stops its event loop" and len(samples) == 1:
            self.over.wait()
        if self.how == "deadlocks with another thread" and threading.get_ident() != self.first_thread:
            self.over.wait()
        return await super().score(samples)


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        ("waits for a reply", "any batch"),
        ("stops its event loop", "any batch"),
        ("deadlocks with another thread", "threads"),
    ],
)
def test_a_call_that_never_returns_fails_its_rule_and_ends_the_check(how: str, rule: str) -> None:
    scorer = Hangs(how)
    try:
        report = check_scorer(scorer, samples(), seconds=1.0)
    finally:
        scorer.over.set()
    assert how != "waits for a reply" or scorer.cancelled.wait(30), "what only waits is not left behind"
    assert [check.rule for check in report.failures] == [rule]
    assert "did not return within 1 s" in report.failures[0].detail
    assert [check.rule for check in report.checks] == [check.rule for check in check_scorer(Length(), samples()).checks]
    place = report.checks.index(report.failures[0])
    assert {(check.outcome, check.detail) for check in report.checks[place + 1 :]} == {
        ("skipped", f"the check ended at {rule!r}")
    }


def test_a_check_whose_scorer_hangs_does_not_keep_the_program_from_ending() -> None:
    program = (
        "import threading\n"
        "from adjudge import Sample, check_scorer\n"
        "class Hangs:\n"
        "    name = fingerprint = 'hangs'\n"
        "    async def score(self, samples):\n"
        "        threading.Event().wait()\n"
        "print(check_scorer(Hangs(), [Sample(prompt='p', response='r')], seconds=0.2).ok)\n"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)


def test_rules_that_cannot_be_seen_are_not_claimed() -> None:
    alike = [replace(sample, response="same") for sample in samples()]
    outcomes = {check.rule: check for check in check_scorer(Length(), alike).checks}
    assert outcomes["any order"].outcome == "skipped"
    single = {check.rule: check for check in check_scorer(Length(), samples()[:1]).checks}
    assert single["any batch"].outcome == "skipped"


def test_a_scorer_that_scores_nothing_cannot_be_tried_with_bad_answers() -> None:
    class Declines(Length):
        def one(self, sample: Sample) -> Score:
            return Score.abstained("out_of_scope")

    outcomes = {check.rule: check for check in check_scorer(Declines(), samples()).checks}
    assert outcomes["hostile responses"].outcome == outcomes["no escape"].outcome == "skipped"


def test_tolerance_is_for_models() -> None:
    @dataclass
    class Noisy(Length):
        noise: list[float] = field(default_factory=lambda: [0.0, 1e-7])

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            self.noise.append(self.noise.pop(0))
            return [Score.scored(len(response_text(sample)) + self.noise[0]) for sample in samples]

    assert {check.rule for check in check_scorer(Noisy(), samples()).failures} == {"repeatable"}
    assert check_scorer(Noisy(), samples(), tolerance=1e-5).ok
    assert not check_scorer(Counts(), samples(), tolerance=1e-5).ok


def test_user_mistakes_are_said_at_once() -> None:
    class Strict(Length):
        def validate(self, sample: Sample) -> None:
            raise ValueError("no reference")

    with pytest.raises(ValueError, match="needs samples"):
        check_scorer(Length(), [])
    with pytest.raises(ValueError, match="no reference"):
        check_scorer(Strict(), samples())
    with pytest.raises(ValueError, match="unknown scorer"):
        check_scorer("lenght of it", samples())
    for seconds in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"seconds={seconds!r}"):
            check_scorer(Length(), samples(), seconds=seconds)


def test_it_works_inside_a_running_event_loop() -> None:
    async def cell() -> Report:
        return check_scorer(Length(), samples())

    assert asyncio.run(cell()).ok


def test_the_hostile_responses_are_what_they_say() -> None:
    responses: dict[str, Any] = hostile_responses()
    assert "" not in responses.values(), "a rule of its own tries it with every sample"
    assert len(responses["long text"]) == 1_000_000
    assert "\x00" in responses["NUL"]
    with pytest.raises(UnicodeEncodeError):
        responses["lone surrogates"].encode()
    assert len(responses) >= 20
