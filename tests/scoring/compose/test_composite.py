"""What every composite owes: one score per sample, in order, named faults, honest costs, a telling fingerprint."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Cost, Sample, Score, Scorer
from adjudge.runtime.contract import BrokenScorer, is_groupwise
from adjudge.scoring.compose import (
    Affine,
    Calibrated,
    Calibration,
    Cascade,
    Clip,
    Composite,
    Ensemble,
    Gate,
    Part,
    Rank,
    Transform,
    Weighted,
    ZScore,
)
from adjudge.verifiers.text.exact import ExactVerifier

CURVE = Calibration(kind="isotonic", knots=((0.0, 0.1), (1.0, 0.9)))


@dataclasses.dataclass(frozen=True)
class Reads:
    """Scores what the response, a JSON object, says under its name: a number, or a status."""

    name: str
    revision: int = 1

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.revision}"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        assert samples, "a composite must not ask about nothing"
        await asyncio.sleep(0)
        return [self.one(json.loads(str(sample.response))[self.name]) for sample in samples]

    def one(self, entry: float | str) -> Score:
        cost = Cost(seconds=0.25, prompt_tokens=10)
        if entry == "failed":
            return Score(value=None, status="failed", reason="engine_unavailable", cost=cost)
        if entry == "abstained":
            return Score(value=None, status="abstained", reason="low_confidence", cost=cost)
        return Score(value=float(entry), cost=cost)

    def validate(self, sample: Sample) -> None:
        if sample.reference == f"bad for {self.name}":
            raise ValueError("the reference is bad")


@dataclasses.dataclass(frozen=True)
class Answers(Reads):
    """Answers with whatever it was told to."""

    answer: Callable[[Sequence[Sample]], Any] = list

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        answer: list[Score] = self.answer(samples)
        return answer


def composites(a: Scorer, b: Scorer) -> list[Composite]:
    parts = (Part(a), Part(b, weight=0.5))
    plain = (Part(a), Part(b))
    return [
        Weighted(parts=parts),
        Gate(gate=a, main=b, bonuses=(Part(a, name="bonus", weight=0.1),)),
        Cascade(stages=plain),
        Ensemble(parts=plain, rule="lower_bound"),
        Transform(scorer=b, steps=(Affine(2.0, -1.0), Clip(-1.0, 1.0))),
        Transform(scorer=b, steps=(ZScore(), Rank())),
        Calibrated(scorer=b, map=CURVE),
    ]


def named(composite: Composite) -> str:
    return f"{type(composite).__name__}{'-group' * composite.groupwise}"


ALL = composites(Reads("a"), Reads("b"))
each = pytest.mark.parametrize("composite", ALL, ids=named)


def sample(a: float | str, b: float | str, group: str = "g", **fields: Any) -> Sample:
    return Sample(prompt="p", response=json.dumps({"a": a, "b": b}), group=group, **fields)


def run(composite: Scorer, *samples: Sample) -> list[Score]:
    return asyncio.run(composite.score(samples))


entries = st.sampled_from([0.0, 0.5, 1.0, "failed", "abstained"])
batches = st.lists(st.tuples(entries, entries, st.sampled_from("gh")), max_size=12)


@each
@settings(max_examples=60, deadline=None, derandomize=True)
@given(batch=batches, seed=st.integers(0, 99))
def test_one_score_per_sample_whatever_the_order(
    composite: Composite, batch: list[tuple[float | str, float | str, str]], seed: int
) -> None:
    samples = [sample(a, b, group) for a, b, group in batch]
    scores = run(composite, *samples)
    assert len(scores) == len(samples)
    order = list(range(len(samples)))
    random.Random(seed).shuffle(order)
    assert run(composite, *(samples[i] for i in order)) == [scores[i] for i in order]
    for score in scores:
        assert (score.value is None) == (score.status != "scored")
        assert score.provenance.scorer == composite.name
        assert score.provenance.fingerprint == composite.fingerprint
        assert score.cost.prompt_tokens == 10 * len(score.parts) > 0
        assert Score.from_dict(json.loads(json.dumps(score.to_dict()))) == score


@each
@given(batch=batches)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_score_does_not_depend_on_other_groups(
    composite: Composite, batch: list[tuple[float | str, float | str, str]]
) -> None:
    samples = [sample(a, b, group) for a, b, group in batch]
    together = run(composite, *samples)
    for group in "gh":
        mine = [i for i, one in enumerate(samples) if one.group == group]
        assert run(composite, *(samples[i] for i in mine)) == [together[i] for i in mine]


@each
def test_an_empty_batch_gives_an_empty_list(composite: Composite) -> None:
    assert run(composite) == []


def break_none(samples: Sequence[Sample]) -> Any:
    return None


def break_short(samples: Sequence[Sample]) -> Any:
    return [Score.scored(1.0)] * (len(samples) - 1)


def break_long(samples: Sequence[Sample]) -> Any:
    return [Score.scored(1.0)] * (len(samples) + 1)


def break_float(samples: Sequence[Sample]) -> Any:
    return [1.0] * len(samples)


def break_single(samples: Sequence[Sample]) -> Any:
    return Score.scored(1.0)


def break_nan(samples: Sequence[Sample]) -> Any:
    score = Score.scored(1.0)
    object.__setattr__(score, "value", math.nan)
    return [score] * len(samples)


def break_raise(samples: Sequence[Sample]) -> Any:
    raise KeyError("lost")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (break_none, "returned None"),
        (break_short, "returned 1 scores for 2 samples"),
        (break_long, "returned 3 scores for 2 samples"),
        (break_float, "returned a float for sample 0"),
        (break_single, "returned a Score; it must return a list"),
        (break_nan, "gave sample 0 the value nan"),
        (break_raise, "raised KeyError: 'lost'"),
    ],
)
@pytest.mark.parametrize("kind", range(len(ALL)))
def test_a_broken_part_is_named(kind: int, answer: Callable[[Sequence[Sample]], Any], complaint: str) -> None:
    composite = composites(Reads("a"), Answers("b", answer=answer))[kind]
    undecided = "abstained" if isinstance(composite, Cascade) else 1.0
    with pytest.raises(BrokenScorer, match=f"the part '(b|main)' of '{composite.name}' {complaint}"):
        run(composite, sample(undecided, 1.0), sample(undecided, 1.0))


def test_the_innermost_broken_part_is_the_one_named() -> None:
    inner = Weighted(parts=(Part(Answers("b", answer=break_short)),), name="inner")
    with pytest.raises(BrokenScorer, match="the part 'b' of 'inner'"):
        run(Weighted(parts=(Part(Reads("a")), Part(inner)), name="outer"), sample(1.0, 1.0))


def test_a_scorer_that_is_not_async_is_named() -> None:
    class Plain(Reads):
        def score(self, samples: Sequence[Sample]) -> list[Score]:  # type: ignore[override]
            return []

    with pytest.raises(BrokenScorer, match=r"part 'b' of 'weighted' has a `score` that is not `async def`"):
        run(Weighted(parts=(Part(Plain("b")),)), sample(1.0, 1.0))  # type: ignore[arg-type]


def test_parts_run_at_the_same_time() -> None:
    async def scenario() -> list[Score]:
        meeting = asyncio.Barrier(2)

        class Meets(Reads):
            async def score(self, samples: Sequence[Sample]) -> list[Score]:
                await meeting.wait()  # never passes unless both parts are under way
                return await super().score(samples)

        mix = Weighted(parts=(Part(Meets("a")), Part(Meets("b"))))
        return await asyncio.wait_for(mix.score([sample(1.0, 2.0)]), timeout=1200)

    assert [score.value for score in asyncio.run(scenario())] == [3.0]


def test_when_one_part_breaks_the_others_are_cancelled() -> None:
    cancelled = []

    class Waits(Reads):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(self.name)
                raise
            return []

    with pytest.raises(BrokenScorer, match="'b'"):
        run(Weighted(parts=(Part(Waits("a")), Part(Answers("b", answer=break_none)))), sample(1.0, 1.0))
    assert cancelled == ["a"]


@each
def test_validation_reaches_the_parts_and_names_them(composite: Composite) -> None:
    composite.validate(sample(1.0, 1.0))
    with pytest.raises(ValueError, match=f"the part '(b|main)' of '{composite.name}': the reference is bad"):
        composite.validate(sample(1.0, 1.0, reference="bad for b"))


@each
def test_composites_can_be_sent_to_other_processes(composite: Composite) -> None:
    copy = pickle.loads(pickle.dumps(composite))
    assert copy == composite
    assert copy.fingerprint == composite.fingerprint


def test_composites_of_verifiers_can_be_sent_too() -> None:
    mix = Weighted(parts=(Part(ExactVerifier()), Part(Transform(scorer=ExactVerifier(), steps=(Affine(2.0),)))))
    copy = pickle.loads(pickle.dumps(mix))
    assert copy.fingerprint == mix.fingerprint
    samples = [Sample(prompt="p", response=response, reference="a") for response in ("a", "b")]
    assert [score.value for score in run(copy, *samples)] == [3.0, 0.0]


def test_the_fingerprint_tells_parts_and_options() -> None:
    a, b, c = Reads("a"), Reads("b"), Reads("a", revision=2)
    plain = (Part(a), Part(b))
    different: list[Composite] = [
        *composites(a, b),
        *composites(c, b),
        Weighted(parts=plain),
        Weighted(parts=plain, missing="skip"),
        Weighted(parts=plain[::-1]),
        Weighted(parts=plain, name="other"),
        Weighted(parts=(Part(a, name="x"), Part(b))),
        Gate(gate=a, main=b),
        Gate(gate=b, main=a),
        Gate(gate=c, main=b),
        Gate(gate=a, main=b, threshold=0.5),
        Gate(gate=a, main=b, otherwise=-1.0),
        Cascade(stages=plain, pass_on=("undecided",)),
        Ensemble(parts=plain, rule="min"),
        Ensemble(parts=plain, rule="lower_bound", k=2.0),
        Ensemble(parts=plain, rule="nominal_min"),
        Ensemble(parts=plain, rule="nominal_min", share=0.25),
        Ensemble(parts=plain, rule="nominal_min", nominal="a"),
        Ensemble(parts=plain, rule="min", min_members=1),
        Transform(scorer=b, steps=(Affine(2.0, -1.0),)),
        Transform(scorer=b, steps=(Clip(-1.0, 1.0), Affine(2.0, -1.0))),
        Transform(scorer=b, steps=(ZScore(),)),
        Transform(scorer=b, steps=(ZScore(ddof=0),)),
        Transform(scorer=b, steps=(Rank(),)),
        Calibrated(scorer=a, map=CURVE),
        Calibrated(scorer=b, map=Calibration(kind="isotonic", knots=((0.0, 0.1), (1.0, 0.8)))),
        Calibrated(scorer=b, map=Calibration(kind="platt", slope=2.0)),
    ]
    prints = [composite.fingerprint for composite in different]
    unchanged = 3  # of composites(c, b), those three that do not hold the changed scorer
    assert len(set(prints)) == len(prints) - unchanged
    assert [composite.fingerprint for composite in composites(a, b)] == prints[: len(ALL)]


def test_group_scorers_are_known_as_such_through_any_nesting() -> None:
    grouped = Transform(scorer=Reads("b"), steps=(ZScore(),))
    assert is_groupwise(Weighted(parts=(Part(Reads("a")), Part(grouped))))
    assert is_groupwise(Calibrated(scorer=grouped, map=CURVE))
    assert not is_groupwise(Transform(scorer=Reads("b"), steps=(Affine(2.0),)))
    assert not is_groupwise(Reads("a"))


@pytest.mark.parametrize(
    "build",
    [
        lambda grouped: Gate(gate=Reads("a"), main=grouped),
        lambda grouped: Gate(gate=Reads("a"), main=Reads("b"), bonuses=(Part(grouped),)),
        lambda grouped: Cascade(stages=(Part(Reads("a")), Part(grouped))),
    ],
)
def test_a_group_scorer_is_refused_where_it_would_see_part_of_a_group(build: Callable[[Scorer], Composite]) -> None:
    with pytest.raises(ValueError, match=r"the part '(transform|main)' of .* compares the members of a group"):
        build(Transform(scorer=Reads("b"), steps=(Rank(),)))


@pytest.mark.parametrize("weight", [math.nan, math.inf, True, "1", None])
def test_a_weight_must_be_a_finite_number(weight: Any) -> None:
    with pytest.raises(ValueError, match="weight of the part 'a'"):
        Part(Reads("a"), weight=weight)


def test_a_part_must_be_a_scorer() -> None:
    with pytest.raises(ValueError, match="must be a Scorer or a Verifier"):
        Part("math")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"wrap each scorer as adjudge\.Part"):
        Weighted(parts=(Reads("a"),))  # type: ignore[arg-type]
