from __future__ import annotations

import dataclasses
import json
import math
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjudge
from adjudge import reasons, wire
from adjudge.prompts.reading import concluded
from adjudge.protocol import (
    THINK_END,
    THINK_START,
    Cost,
    Limits,
    Provenance,
    Sample,
    Score,
    StepScore,
    Verifier,
    content_text,
    response_text,
    split_reasoning,
)

repeatable = settings(deadline=None, derandomize=True)


text = st.text(st.characters(exclude_categories=()), max_size=20)  # all code points, lone surrogates included
finite = st.floats(allow_nan=False, allow_infinity=False)
hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | finite
    | text
    | st.binary(max_size=20)
    | st.fractions()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=8,
)
plain: st.SearchStrategy[Any] = st.recursive(
    hashable | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False) | st.sets(hashable, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(text, inner, max_size=4)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.dictionaries(st.sampled_from([wire.TAG, "value"]), inner)
    ),
    max_leaves=12,
)
columns = st.dictionaries(text, plain, max_size=3)
turns = st.lists(st.fixed_dictionaries({"role": text, "content": text}), max_size=3)
samples = st.builds(
    Sample,
    prompt=text | turns,
    response=text | turns,
    reference=plain,
    id=text,
    group=text,
    finish_reason=st.none() | text,
    extra=columns,
)
spans = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)).map(sorted)
steps = st.builds(
    lambda value, label, span: StepScore(value=value, label=label, start=span[0], end=span[1]),
    st.none() | finite,
    text,
    spans,
)
origins = st.builds(Provenance, scorer=text, fingerprint=text, engine=text, revision=text)
costs = st.builds(Cost, seconds=finite, prompt_tokens=st.integers(0), completion_tokens=st.integers(0))


def scores(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Score]:
    shared = {
        "steps": st.lists(steps, max_size=2).map(tuple),
        "parts": parts,
        "evidence": columns,
        "provenance": origins,
        "cost": costs,
    }
    return st.one_of(
        st.builds(
            Score,
            value=finite,
            reason=st.sampled_from(sorted(reasons.CANDIDATE)),
            uncertainty=st.none() | st.floats(0, 1e300),
            **shared,
        ),
        st.builds(
            Score, value=st.none(), status=st.just("failed"), reason=st.sampled_from(sorted(reasons.OURS)), **shared
        ),
        st.builds(
            Score,
            value=st.none(),
            status=st.just("abstained"),
            reason=st.sampled_from(sorted(reasons.DECLINED)),
            **shared,
        ),
    )


any_score = scores(st.dictionaries(text, scores(st.just({})), max_size=2))


def same(one: object, other: object) -> bool:
    """Equality that also tells types, signs of zero and the order of nothing but sequences."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        keys = {key: key for key in other}
        return one.keys() == keys.keys() and all(same(key, keys[key]) and same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float | complex | Decimal):
        return repr(one) == repr(other)
    return one == other


@repeatable
@given(plain)
def test_wire_round_trip_loses_nothing(value: object) -> None:
    assert same(wire.loads(wire.dumps(value)), value)


@repeatable
@given(plain)
def test_wire_is_one_canonical_ascii_line(value: object) -> None:
    line = wire.dumps(value)
    assert line.isascii()
    assert "\n" not in line
    assert wire.dumps(wire.loads(line)) == line


@repeatable
@given(st.dictionaries(text, plain, max_size=5))
def test_wire_does_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    assert wire.dumps(dict(reversed(value.items()))) == wire.dumps(value)


@repeatable
@given(samples)
def test_a_sample_survives_json(sample: Sample) -> None:
    data = json.loads(json.dumps(sample.to_dict(), allow_nan=False))
    back = Sample.from_dict(data)
    assert back == sample
    assert same(back.reference, sample.reference)
    assert pickle.loads(pickle.dumps(sample)) == sample


@repeatable
@given(any_score)
def test_a_score_survives_json(score: Score) -> None:
    back = Score.from_dict(json.loads(json.dumps(score.to_dict(), allow_nan=False)))
    assert back == score
    assert same(dict(back.evidence), dict(score.evidence))
    assert pickle.loads(pickle.dumps(score)) == score


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Fraction(-7, 3), {("a", 1): {2: b"x"}}]
)
def test_wire_keeps_what_json_has_no_word_for(value: object) -> None:
    assert repr(wire.loads(wire.dumps(value))) == repr(value)


def test_wire_takes_numbers_and_arrays_of_numpy_for_what_they_hold() -> None:
    np = pytest.importorskip("numpy")
    value = {"a": np.float32(0.5), "b": [np.int64(3)], "c": np.arange(4).reshape(2, 2), "d": np.bool_(True)}
    assert wire.loads(wire.dumps(value)) == {"a": 0.5, "b": [3], "c": [[0, 1], [2, 3]], "d": True}
    with pytest.raises(TypeError, match=r"value\['a'\] is a numpy.longdouble, which JSON cannot hold"):
        wire.dumps({"a": np.longdouble(1)})


def test_wire_keeps_integers_that_python_refuses_to_print() -> None:
    huge = 10**4400
    value = [huge, -huge, Fraction(huge + 1, 3), {"a": huge}]
    same_again = wire.loads(wire.dumps(value)) == value
    assert same_again


@pytest.mark.parametrize("value", [object(), {"a": [1, object()]}, {1: object()}, (print,)])
def test_wire_names_what_it_cannot_hold(value: object) -> None:
    with pytest.raises(TypeError, match=r"value.* is a builtins"):
        wire.dumps(value)


@pytest.mark.parametrize(
    "line",
    [
        '{"$adjudge": "pickle", "value": "x"}',
        '{"$adjudge": "fraction", "value": [1, 0]}',
        '{"$adjudge": "int", "value": 5}',
        '{"$adjudge": "bytes", "value": "*"}',
        '{"$adjudge": "map", "value": [[[1], 2]]}',
        '{"$adjudge": "tuple"}',
        '{"$adjudge": ["tuple"], "value": []}',
    ],
)
def test_wire_refuses_malformed_tags(line: str) -> None:
    with pytest.raises(ValueError, match="malformed"):
        wire.loads(line)


@pytest.mark.parametrize(
    "fields",
    [
        {"value": math.nan},
        {"value": math.inf},
        {"value": None},
        {"value": "1"},
        {"value": 1.0, "status": "failed", "reason": "part_failed"},
        {"value": 0.0, "status": "abstained", "reason": "low_confidence"},
        {"value": None, "status": "failed"},
        {"value": None, "status": "failed", "reason": "wrong"},
        {"value": None, "status": "abstained", "reason": "part_failed"},
        {"value": None, "status": "unknown"},
        {"value": 1.0, "reason": "part_failed"},
        {"value": 1.0, "reason": "no such reason"},
        {"value": 1.0, "uncertainty": -1.0},
        {"value": 1.0, "uncertainty": math.nan},
    ],
)
def test_a_score_that_breaks_the_invariants_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Score"):
        Score(**fields)
    with pytest.raises(ValueError, match="Score"):
        Score.from_dict(fields)


def test_values_become_floats() -> None:
    score = Score.scored(True, "", answer="4")
    assert type(score.value) is float
    assert score.evidence == {"answer": "4"}
    assert type(Score.scored(1).value) is float


@pytest.mark.parametrize(
    "said",
    "length LENGTH max_tokens MAX_TOKENS maxTokens max_output_tokens max-new-tokens model_length "
    "FinishReason.MAX_TOKENS FINISH_REASON_MAX_TOKENS model_context_window_exceeded truncated".split(),
)
def test_a_cut_at_the_token_limit_has_one_name_whoever_reports_it(said: str) -> None:
    sample = Sample(prompt="q", response=r"\boxed{4}", reference="4", finish_reason=said)
    assert sample.finish_reason == "length"
    assert Sample.from_dict({**sample.to_dict(), "finish_reason": said}) == dataclasses.replace(sample, id="") == sample
    assert adjudge.score("q", r"\boxed{4}", "4", scorer="math", finish_reason=said).reason == "truncated"


@pytest.mark.parametrize(
    "said", [None, "", "stop", "STOP", "end_turn", "content_filter", "lengthy", "FinishReason.STOP"]
)
def test_any_other_end_stays_as_it_was_said(said: str | None) -> None:
    assert Sample(prompt="q", response="a", finish_reason=said).finish_reason == said


def test_records_are_frozen() -> None:
    for record, field in (
        (Score.scored(1.0), "value"),
        (Sample(prompt="", response=""), "reference"),
        (Cost(), "seconds"),
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(record, field, None)


@pytest.mark.parametrize(
    ("record", "data", "complaint"),
    [
        (Sample, {"prompt": "p", "respnse": "r"}, "no field 'respnse'"),
        (Sample, {"prompt": "p"}, "needs the field 'response'"),
        (Score, {"value": 1.0, "colour": "red"}, "no field 'colour'"),
        (StepScore, {"value": 1.0, "start": 5, "end": 4}, "backwards|start <= end"),
        (StepScore, {"value": math.inf}, "finite"),
    ],
)
def test_malformed_records_are_refused_by_name(record: Any, data: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        record.from_dict(data)


def test_costs_add_up() -> None:
    one = Cost(seconds=0.5, prompt_tokens=3, completion_tokens=1)
    assert one + Cost(seconds=0.25, prompt_tokens=1) == Cost(seconds=0.75, prompt_tokens=4, completion_tokens=1)


@pytest.mark.parametrize("fields", [{"seconds": 0}, {"seconds": math.inf}, {"memory_mb": 1}, {"processes": -1}])
def test_limits_that_limit_nothing_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Limits"):
        Limits(**fields)


def test_every_reason_is_on_one_side_and_described() -> None:
    assert reasons.CANDIDATE.keys() & reasons.DECLINED.keys() == set()
    assert reasons.OURS.keys() & reasons.DECLINED.keys() == set()
    assert reasons.CANDIDATE.keys() & reasons.OURS.keys() == {"undecided"}  # the option of that name chooses the side
    assert all(reasons.describe(reason) for reason in reasons.ALL)
    with pytest.raises(ValueError, match="no such"):
        reasons.describe("no such")


@dataclass(frozen=True, kw_only=True)
class Length(Verifier):
    name: ClassVar[str] = "length-of"
    unit: int = 1

    def verify(self, sample: Sample) -> Score:
        return Score.scored(len(response_text(sample)) / self.unit)


@dataclass(frozen=True, kw_only=True)
class LengthTwo(Length):
    version: ClassVar[str] = "2"


def test_a_verifiers_fingerprint_tells_class_version_and_options() -> None:
    prints = {Length().fingerprint, Length(unit=2).fingerprint, LengthTwo().fingerprint}
    assert len(prints) == 3
    assert Length(unit=1).fingerprint == Length().fingerprint
    assert all(fingerprint.startswith("length-of:") for fingerprint in prints)


def test_a_verifier_asks_for_its_reference_by_name() -> None:
    with pytest.raises(ValueError, match=r"'length-of'.* 'row-7'.*--reference-column"):
        Length().validate(Sample(prompt="p", response="r", id="row-7"))
    Length().validate(Sample(prompt="p", response="r", reference=""))


def test_only_assistant_text_is_graded() -> None:
    sample = Sample(
        prompt="p",
        response=[
            {"role": "assistant", "content": "one"},
            {"role": "tool", "content": "two"},
            {"role": "assistant", "content": [{"type": "text", "text": "thr"}, {"type": "image"}, "ee"]},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "user", "content": "four"},
        ],
    )
    assert response_text(sample) == "one\nthree\n"
    assert response_text(replace(sample, response="plain")) == "plain"
    with pytest.raises(ValueError, match="content is a int"):
        content_text(5)
    with pytest.raises(ValueError, match="a part of a message's content is a int"):
        content_text(["text", 5])
    broken: Any
    for broken, problem in ((None, "the response is a NoneType"), ([5], "a turn of the response is a int")):
        with pytest.raises(ValueError, match=problem):
            response_text(replace(sample, response=broken))


def test_what_a_model_thought_is_not_graded() -> None:
    thought = [{"type": "reasoning", "text": "maybe 4"}, {"type": "thinking", "thinking": "or 5"}]
    assert content_text([*thought, {"type": "text", "text": "6"}]) == "6"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("no tags", ("", "no tags", False)),
        ("<think>a</think>b", ("<think>a</think>", "b", False)),
        ("a</think>b", ("a</think>", "b", False)),
        ("<think>a", ("<think>a", "", True)),
        ("<think>a</think>b<think>c", ("<think>a</think><think>c", "b", True)),
        ("x < y", ("", "x < y", False)),
        (
            "<|channel|>analysis<|message|>a<|end|><|channel|>commentary to=f<|message|>{}",
            ("<|channel|>analysis<|message|>a<|end|><|channel|>commentary", " to=f<|message|>{}", False),
        ),
    ],
)
def test_reasoning_is_split_at_its_last_end(response: str, expected: tuple[str, str, bool]) -> None:
    assert split_reasoning(response) == expected


@pytest.mark.parametrize(("start", "end"), [*zip(THINK_START, THINK_END, strict=True)])
def test_each_mark_of_thinking_opens_and_closes(start: str, end: str) -> None:
    assert split_reasoning(f"{start}a{end}b") == (f"{start}a{end}", "b", False)
    assert split_reasoning(f"{start}a") == (f"{start}a", "", True)
    assert concluded(f"{start}a{end}b") == "b"
    assert concluded(f"{start}a") == ""
