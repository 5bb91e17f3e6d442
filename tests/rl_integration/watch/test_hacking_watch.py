"""Planted signs of reward hacking raise their alarm and no other; healthy runs, whatever their noise, raise none."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.watch.hacking import HackingWatch, WatchConfig
from adjudge.rl_integration.watch.report import HackingReport

Stream = Iterator[tuple[Sample, Score]]
GROUP = 8
SERIAL = itertools.count()


def sample(prompt: int, length: int, response: str | None = None, **fields: Any) -> Sample:
    text = f"{next(SERIAL)} ".ljust(length, "x")[:length] if response is None else response
    return Sample(prompt=f"prompt {prompt}", response=text, **fields)


def healthy(
    rng: random.Random, count: int, *, values: str = "01", scale: Callable[[int], float] = lambda _: 1.0
) -> Stream:
    """A run as they are: prompts differ in difficulty and length, members of a group resemble each other."""
    for prompt in range(count // GROUP):
        base = rng.lognormvariate(6.5, 0.5) * scale(prompt * GROUP)
        ease = rng.random()
        for _ in range(GROUP):
            length = max(12, int(base * rng.lognormvariate(0, 0.3)))
            value = float(rng.random() < ease) if values == "01" else rng.gauss(ease, 1)
            yield sample(prompt, length, finish_reason="stop"), Score.scored(value)


def watched(stream: Stream, **options: Any) -> HackingReport:
    watch = HackingWatch(WatchConfig(**options))
    for one, score in stream:
        watch.see(one, score)
    return watch.report()


def kinds(report: HackingReport) -> list[str]:
    return [alarm.kind for alarm in report.alarms]


@pytest.mark.parametrize("values", ["01", "real"])
@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_run_raises_no_alarm(values: str, seed: int) -> None:
    report = watched(healthy(random.Random(seed), 5000, values=values))
    assert kinds(report) == []
    assert report.missing == 0
    assert report.measures.length_ratio == pytest.approx(1, abs=0.4)


def test_slowly_growing_reasoning_is_told_and_no_alarm() -> None:
    report = watched(healthy(random.Random(0), 6000, scale=lambda place: 1 + 0.5 * place / 6000))
    assert kinds(report) == []
    assert report.measures.length_ratio is not None
    assert report.measures.length_ratio > 1.15


def test_batches_whose_short_responses_come_first_raise_no_alarm() -> None:
    rng = random.Random(3)
    stream: list[tuple[Sample, Score]] = []
    for _ in range(10):
        stream += sorted(healthy(rng, 512), key=lambda pair: len(str(pair[0].response)))
    assert kinds(watched(iter(stream))) == []


def test_longer_and_longer_responses_that_are_paid_for_it() -> None:
    rng = random.Random(1)

    def padded() -> Stream:
        for one, _ in healthy(rng, 6000, scale=lambda place: 1 + 3 * place / 6000):
            yield one, Score.scored(len(str(one.response)) / 1000 + rng.gauss(0, 0.3))

    report = watched(padded())
    assert kinds(report) == ["longer", "follows_length"]
    longer, follows = report.alarms
    assert longer.number >= longer.threshold == 2.0
    assert f"{longer.number:.1f} times" in longer.sentence
    assert follows.number >= 0.5


def test_a_difference_that_a_few_prompts_make_is_no_alarm() -> None:
    """Long answers to 3 of 8 prompts, then to 5: the median is ten times as high, and nothing has changed."""

    def prompts(long: int) -> Stream:
        for place in range(8):
            for member in range(64):
                yield sample(place, 2000 if place < long else 200), Score.scored(float(member % 2))

    report = watched(itertools.chain(prompts(3), prompts(5)), window=512, baseline=512)
    assert kinds(report) == []
    assert (report.measures.length_then, report.measures.length) == (200, 2000)
    assert abs(report.measures.length_errors or 9) < 2


def test_lengths_are_compared_as_soon_as_there_are_enough_after_the_baseline_and_without_it() -> None:
    watch = HackingWatch()
    for place in range(1024 + 256):
        assert watch.count < 1024 + 255 or watch.report().measures.length_ratio is None
        watch.see(sample(place // GROUP, 100 if place < 1024 else 300), Score.scored(float(place % 2)))
    found = watch.report()
    assert kinds(found) == ["longer"]
    assert (found.measures.length_then, found.measures.length) == (100, 300)
    assert found.measures.length_ratio == pytest.approx(301 / 101)


def test_a_collapse_to_one_short_response() -> None:
    def collapsed() -> Stream:
        yield from healthy(random.Random(2), 2000)
        for place in range(2500):
            yield sample(place // GROUP, 0, "Solution"), Score.scored(1.0)

    report = watched(collapsed())
    assert kinds(report) == ["constant", "one_response", "shorter", "form"]
    assert report.measures.one_response == 1.0


def test_a_long_response_that_serves_many_prompts() -> None:
    rng = random.Random(4)

    def templated() -> Stream:
        for place, (one, score) in enumerate(healthy(rng, 3000)):
            text = "As an expert I am certain that this is right."
            yield (sample(place // GROUP, 0, text), score) if place % 6 == 0 else (one, score)

    report = watched(templated())
    assert kinds(report) == ["repeated"]
    assert report.alarms[0].number == pytest.approx(1 / 6, abs=0.01)


def test_short_answers_recur_by_right() -> None:
    rng = random.Random(5)
    stream = ((sample(n // GROUP, 0, rng.choice("ABCD")), Score.scored(float(rng.random() < 0.4))) for n in range(3000))
    assert kinds(watched(stream)) == []


def test_a_constant_scorer_says_so_once() -> None:
    report = watched((one, Score.scored(0.0)) for one, _ in healthy(random.Random(6), 3000))
    assert kinds(report) == ["constant"]
    assert "are 0" in report.alarms[0].sentence


def test_values_at_the_maximum_seen_and_at_the_declared_one() -> None:
    def nearly(top: float) -> Stream:
        rng = random.Random(7)
        for one, _ in healthy(rng, 3000):
            yield one, Score.scored(top if rng.random() < 0.95 else 0.0)

    assert kinds(watched(nearly(1.0), frac_reward_zero_std=1.0)) == ["at_maximum"]
    assert kinds(watched(nearly(1.0), frac_reward_zero_std=1.0, maximum=2.0)) == []
    assert kinds(watched(nearly(2.0), frac_reward_zero_std=1.0, maximum=2.0)) == ["at_maximum"]


def test_groups_without_a_difference() -> None:
    rng = random.Random(8)
    verdicts = [float(rng.random() < 0.5) for _ in range(500)]
    stream = ((one, Score.scored(verdicts[place // GROUP])) for place, (one, _) in enumerate(healthy(rng, 3000)))
    report = watched(stream)
    assert kinds(report) == ["frac_reward_zero_std"]
    assert report.measures.frac_reward_zero_std == 1.0
    assert report.measures.groups == 2048 // GROUP


def test_what_could_not_be_judged_is_told_with_its_reason_and_abstaining_is_not_failing() -> None:
    rng = random.Random(9)

    def failing(score: Score) -> Stream:
        for one, good in healthy(rng, 2000):
            yield one, score if rng.random() < 0.3 else good

    report = watched(failing(Score.failed("engine_timeout")))
    assert kinds(report) == ["failed"]
    assert "engine timeout" in report.alarms[0].sentence
    assert report.measures.outcomes["failed engine_timeout"] == round((report.measures.failed or 0) * 2000)
    assert report.measures.values < 2000
    assert kinds(watched(failing(Score.abstained("out_of_scope")))) == []


def test_responses_cut_off_at_the_limit_are_counted_where_this_is_known() -> None:
    rng = random.Random(10)
    stream = [
        (Sample(prompt=one.prompt, response=one.response, finish_reason=end), score)
        for one, score in healthy(rng, 2000)
        for end in [rng.choice(["length", "stop"])]
    ]
    assert kinds(watched(iter(stream))) == ["clipped_ratio"]
    untold = watched((Sample(prompt=one.prompt, response=one.response), score) for one, score in stream)
    assert untold.measures.clipped_ratio is None
    assert kinds(untold) == []


def test_too_few_samples_say_nothing() -> None:
    report = watched((sample(n, 30, "The very same long response"), Score.failed("engine_error")) for n in range(255))
    assert kinds(report) == []
    assert report.missing == 1
    assert report.measures.repeated is None
    empty = HackingWatch().report()
    assert (empty.missing, empty.alarms, empty.bars, empty.measures.mean) == (256, (), (), None)


def test_one_prompt_alone_is_no_sign_of_a_common_response() -> None:
    stream = ((sample(0, 0, "The very same long response"), Score.scored(float(n % 2))) for n in range(600))
    assert kinds(watched(stream)) == []


def size_of(thing: object, known: set[int] | None = None) -> int:
    """Bytes of an object and all that it holds."""
    known = set() if known is None else known
    if id(thing) in known or isinstance(thing, type | type(sys) | type(threading.Lock())):
        return 0
    known.add(id(thing))
    parts: list[object] = list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    if isinstance(thing, dict):
        parts += [*thing, *thing.values()]
    elif isinstance(thing, Iterable) and not isinstance(thing, str | bytes):
        parts += list(thing)
    return sys.getsizeof(thing) + sum(size_of(part, known) for part in parts)


def test_memory_does_not_grow_with_samples_groups_or_giants() -> None:
    watch = HackingWatch()
    score = Score.scored(0.5)

    def feed(count: int) -> int:
        for place in range(count):
            watch.see(Sample(prompt=f"p{next(SERIAL)}", response=f"r{place}", group=f"g{next(SERIAL)}"), score)
        return size_of(watch)

    full = feed(5000)
    watch.see(Sample(prompt="p", response="y" * 20_000_000), score)
    assert feed(60_000) < 1.02 * full < 2_000_000


ODD = st.one_of(
    st.text(st.characters()),
    st.text(st.characters(categories=["Cs"]), max_size=5),
    st.lists(
        st.dictionaries(
            st.sampled_from(["role", "content", "text"]),
            st.none()
            | st.text(max_size=5)
            | st.just("assistant")
            | st.integers()
            | st.lists(st.text(max_size=3) | st.integers()),
        ),
        max_size=5,
    ),
    st.none(),
    st.integers(),
)
SCORES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(Score.scored),
    st.just(Score.failed("engine_error")),
    st.just(Score.abstained("low_confidence")),
)


@given(st.lists(st.tuples(ODD, ODD, SCORES), max_size=40))
def test_nothing_that_a_sample_holds_makes_it_raise(stream: list[tuple[Any, Any, Score]]) -> None:
    watch = HackingWatch(WatchConfig(window=16, baseline=8, enough=8, block=4, enough_groups=1))
    for prompt, response, score in stream:
        watch.see(Sample(prompt=prompt, response=response), score)
    report = watch.report()
    assert report.measures.samples == len(stream)
    assert sum(bar.count for bar in report.bars) == report.measures.values


def test_it_may_be_told_and_asked_from_several_threads() -> None:
    watch = HackingWatch()
    stream = list(healthy(random.Random(11), 2000))

    def tell() -> None:
        for one, score in stream:
            watch.see(one, score)

    tellers = [threading.Thread(target=tell) for _ in range(3)]
    for teller in tellers:
        teller.start()
    while any(teller.is_alive() for teller in tellers):
        assert sum(watch.report().measures.outcomes.values()) <= 2048
    assert watch.report().measures.samples == watch.count == 6000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 0}, "window=0"),
        ({"window": 12.5}, "window=12.5"),
        ({"failed": 0}, "failed=0"),
        ({"repeated": 1.5}, "repeated=1.5"),
        ({"at_maximum": float("nan")}, "at_maximum=nan"),
        ({"longer": 1}, "longer=1"),
        ({"surely": -1}, "surely=-1"),
        ({"maximum": float("inf")}, "maximum=inf"),
        ({"enough": 4096}, "enough=4096"),
        ({"block": 512}, "block=512"),
    ],
)
def test_options_that_cannot_be_meant_are_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        WatchConfig(**options)
