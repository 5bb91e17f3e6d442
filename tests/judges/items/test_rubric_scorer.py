"""The rubric scorer with a judge that looks at the response: values, parts, gates, open verdicts and broken ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from adjudge.engines.interface import Completion
from adjudge.judges.items.rubric import RubricScorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.text.exact import ExactVerifier
from adjudge.verifiers.text.length import LengthPenalty
from adjudge.verifiers.text.regex import RegexVerifier

Judge = Callable[[Any, int], Any]
THREE = ["mentions red", "mentions green", "mentions blue"]


def run(scorer: RubricScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def sample(response: str, rubric: Any, **more: Any) -> Sample:
    return Sample(prompt="Name colours.", response=response, reference={"rubric": rubric}, **more)


@pytest.fixture
def make(scripted: Any, honest: Judge) -> Callable[..., RubricScorer]:
    def scorer(judge: Judge = honest, **options: Any) -> RubricScorer:
        return RubricScorer(engine=scripted.ScriptedEngine(judge), **options)

    return scorer


@pytest.mark.parametrize("per_call", [1, 2, 10])
def test_each_item_has_its_verdict(make: Callable[..., RubricScorer], per_call: int) -> None:
    (score,) = run(make(per_call=per_call), sample("I see red and blue.", THREE))
    assert score.value == pytest.approx(2 / 3)
    assert {name: part.value for name, part in score.parts.items()} == {"item_1": 1.0, "item_2": 0.0, "item_3": 1.0}
    assert score.parts["item_2"].evidence["verdict"] == "no"
    assert score.provenance.engine == "scripted"
    assert score.cost.prompt_tokens == 10 * -(-3 // per_call)


def test_every_kind_is_judged(make: Callable[..., RubricScorer]) -> None:
    rubric = [
        {"text": "mentions red", "kind": "support"},
        {"text": "mentions green", "kind": "rating"},
        {"text": "mentions blue", "kind": "ordered", "choices": ["no", "faintly", "yes"]},
    ]
    for per_call in (1, 3):
        (score,) = run(make(per_call=per_call), sample("only red and blue", rubric))
        assert [part.value for part in score.parts.values()] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("combine", "response", "value"),
    [
        ("points", "red and blue", (4 - 6) / 4),
        ("points", "red alone", 1.0),
        ("absolute", "red and blue", (4 - 6) / 10),
    ],
)
def test_points_can_be_lost(make: Callable[..., RubricScorer], combine: str, response: str, value: float) -> None:
    rubric = [{"criterion": "mentions red", "points": 4}, {"criterion": "mentions blue", "points": -6}]
    (score,) = run(make(combine=combine), sample(response, rubric))
    assert score.value == pytest.approx(value)


def test_a_gate_comes_first(make: Callable[..., RubricScorer]) -> None:
    rubric = [{"text": "mentions red", "gate": True}, {"text": "mentions blue", "weight": 9}]
    shut, opened = run(make(), sample("so blue", rubric), sample("so red", rubric))
    assert (shut.value, shut.reason) == (0.0, "gated")
    assert (opened.value, opened.reason) == (0.1, "")


@pytest.mark.parametrize(
    ("unsure", "weight", "value", "status"),
    [
        ("worst", 1, 0.5, "scored"),
        ("worst", -1, 0.0, "scored"),
        ("abstain", 1, None, "abstained"),
        ("never", 1, None, "failed"),
    ],
)
def test_an_open_verdict_is_no_zero(
    make: Callable[..., RubricScorer], unsure: str, weight: int, value: float | None, status: str
) -> None:
    rubric = [{"text": "mentions red"}, {"text": "unsure about this", "weight": weight}]
    (score,) = run(make(unsure=unsure, combine="points" if weight < 0 else "mean"), sample("red here", rubric))
    assert (score.value, score.status) == (value, status)
    if status != "failed":
        assert (score.parts["item_2"].status, score.parts["item_2"].reason) == ("abstained", "low_confidence")
    else:
        assert score.reason == "judge_unparsable"


BROKEN: dict[str, Callable[[str], str]] = {
    "one line too few": lambda key: f"{key} 1: yes\n{key} 2: yes",
    "one line too many": lambda key: f"{key} 1: yes\n{key} 2: yes\n{key} 3: yes\n{key} 4: yes",
    "another name": lambda key: f"{key} 1: yes\n{key} 2: yes\n{key} item_3: yes",
    "two verdicts on one": lambda key: f"{key} 1: yes\n{key} 1: no\n{key} 2: yes\n{key} 3: yes",
    "another word": lambda key: f"{key} 1: yes\n{key} 2: yes\n{key} 3: sure",
    "a label of another kind": lambda key: f"{key} 1: yes\n{key} 2: yes\n{key} 3: support",
    "no key": lambda key: "1: yes\n2: yes\n3: yes",
    "another key": lambda key: "\n".join(f"{key[::-1]}0 {number}: yes" for number in (1, 2, 3)),
    "nothing": lambda key: "",
    "all met": lambda key: "All criteria are met: yes.",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_with_a_hole_is_no_answer(
    make: Callable[..., RubricScorer], scripted: Any, text: Callable[[str], str]
) -> None:
    def judge(prompt: Any, index: int) -> str:
        return text(scripted.key_of(prompt))

    (score,) = run(make(judge, per_call=3), sample("red green blue", THREE))
    assert (score.status, score.reason, score.value) == ("failed", "judge_unparsable", None)


def test_a_judge_is_asked_again_and_only_for_what_is_missing(
    make: Callable[..., RubricScorer], scripted: Any, honest: Judge
) -> None:
    def judge(prompt: Any, index: int) -> Any:
        return "hm" if index == 0 and "green" in scripted.field_of(prompt, "criteria") else honest(prompt, index)

    scorer = make(judge, temperature=0.5)
    (score,) = run(scorer, sample("red here", THREE))
    assert score.value == pytest.approx(1 / 3)
    assert len(scorer.engine.asked) == 4


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Completion(text="I look", finish_reason="length"), "judge_truncated"),
        ("engine_timeout", "engine_timeout"),
        ("engine_unavailable", "engine_unavailable"),
    ],
    ids=["cut off", "timeout", "down"],
)
def test_one_item_without_a_verdict_leaves_the_whole_without_a_number(
    make: Callable[..., RubricScorer], scripted: Any, honest: Judge, said: Any, reason: str
) -> None:
    def judge(prompt: Any, index: int) -> Any:
        if "green" not in scripted.field_of(prompt, "criteria"):
            return honest(prompt, index)
        return scripted.fault(said) if isinstance(said, str) else said

    broken, whole = run(make(judge), sample("red here", THREE), sample("red here", THREE[:1]))
    assert (broken.status, broken.reason) == ("failed", reason)
    assert whole.value == 1.0


def test_several_samples_give_an_error_bar(make: Callable[..., RubricScorer], scripted: Any) -> None:
    def judge(prompt: Any, index: int) -> str:
        met = "red" in scripted.field_of(prompt, "criteria") or index % 2
        return f"{scripted.key_of(prompt)} 1: {'yes' if met else 'no'}"

    (score,) = run(make(judge, samples=4, temperature=1.0), sample("red here", ["mentions red", "mentions blue"]))
    assert score.value == pytest.approx(0.75)
    assert score.uncertainty == pytest.approx((1 / 12) ** 0.5 / 2)
    assert score.parts["item_1"].uncertainty == 0.0
    assert score.parts["item_2"].evidence["verdict"] == ["no", "yes", "no", "yes"]


def test_checks_and_programs_stand_beside_the_judge(make: Callable[..., RubricScorer]) -> None:
    scorer = make(checks={"same": ExactVerifier()}, combine="verif")
    rubric = [
        {"check": "same", "reference": "red"},
        {"program": "def check(prompt, response):\n    return 'colours' in prompt and len(response) < 9"},
        {"text": "mentions red"},
        {"text": "mentions blue"},
    ]
    right, other = run(scorer, sample("red", rubric), sample("blue", rubric))
    assert right.value == 0.0, "one word is not shown to a judge"
    right, other = run(
        make(checks=scorer.checks, combine="verif", min_words=1), sample("red", rubric), sample("blue", rubric)
    )
    assert right.value == 0.5
    assert other.value == 0.0
    assert other.parts["item_1"].reason == "wrong"
    assert other.parts["item_2"].value == 1.0


def test_a_named_check_sees_the_reasoning_and_a_program_does_not(make: Callable[..., RubricScorer]) -> None:
    rubric = [
        {"check": "thinks"},
        {"program": "def check(prompt, response):\n    return 'think' not in response"},
        {"text": "mentions blue"},
    ]
    scorer = make(checks={"thinks": RegexVerifier(pattern="<think>.+</think>", mode="search", reasoning="keep")})
    (score,) = run(scorer, sample("<think>blue, I think</think> It is red.", rubric))
    assert [part.value for part in score.parts.values()] == [1.0, 1.0, 0.0]


def test_rlcf_averages_judge_and_program(make: Callable[..., RubricScorer]) -> None:
    program = "def check(prompt, response):\n    return response.startswith('So')"
    rubric = [{"text": "mentions red", "kind": "rating", "weight": 100, "program": program}]
    both, judge_only = run(make(), sample("So red it is", rubric), sample("It is red", rubric))
    assert (both.value, judge_only.value) == (1.0, 0.5)


def test_a_check_off_the_scale_fails_the_whole(make: Callable[..., RubricScorer]) -> None:
    scorer = make(checks={"length": LengthPenalty(unit="words", max_length=2, buffer=0)})
    (score,) = run(scorer, sample("red green blue", [{"check": "length"}]))
    assert (score.status, score.reason) == ("failed", "part_failed")


@pytest.mark.parametrize(("said", "value"), [("1", 0.1), ("10", 1.0), ("10/10", 1.0), ("11", None), ("0", None)])
def test_implicit_is_one_rating(
    make: Callable[..., RubricScorer], scripted: Any, said: str, value: float | None
) -> None:
    scorer = make(lambda prompt, index: f"Rating {scripted.key_of(prompt)}: {said}", combine="implicit")
    (score,) = run(scorer, sample("red here", [{"text": "mentions red", "importance": "Pitfall"}]))
    assert score.value == value
    assert "mentions red (matters: pitfall)" in scripted.field_of(scorer.engine.asked[0], "criteria")


@pytest.mark.parametrize(
    ("options", "rubric", "complaint"),
    [
        ({}, [{"text": "a", "weight": -1}], "negative weight"),
        ({"combine": "points"}, [{"text": "a", "weight": -1}], "nothing to reach"),
        ({"combine": "points"}, [{"text": "b"}, {"text": "a", "weight": -1, "gate": True}], "the gate"),
        ({"combine": "implicit"}, [{"text": "a", "gate": True}], "no gates"),
        ({}, [{"check": "os:system"}], "names the check 'os:system'"),
        ({}, [{"check": "(program)", "reference": "x"}], r"names the check '\(program\)'"),
        ({"checks": {"same": ExactVerifier()}}, [{"check": "same", "reference": []}], "empty list"),
        ({}, None, "list 'rubric'"),
    ],
    ids=[
        "negative",
        "all negative",
        "negative gate",
        "implicit gate",
        "unknown check",
        "our own",
        "bad gold",
        "no list",
    ],
)
def test_a_rubric_that_cannot_be_scored_says_so_before_any_work(
    make: Callable[..., RubricScorer], options: dict[str, Any], rubric: Any, complaint: str
) -> None:
    scorer = make(**options)
    with pytest.raises(ValueError, match=complaint):
        scorer.validate(sample("red here", rubric))
    (score,) = run(scorer, sample("red here", rubric))
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert not scorer.engine.asked


@pytest.mark.parametrize(
    "options",
    [
        {"combine": "sum"},
        {"per_call": 0},
        {"samples": 2},
        {"unsure": "zero"},
        {"checks": {"x": len}},
        {"checks": ["math"]},
        {"checks": "math"},
        {"isolation": ""},
    ],
)
def test_options_that_mean_nothing_are_refused(make: Callable[..., RubricScorer], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rubric|check|temperature"):
        make(**options)


class Loader:
    """Knows one scorer."""

    def scorer(self, spec: Any) -> Any:
        assert spec == "exact"
        from adjudge.runtime.verifying import VerifierScorer

        return VerifierScorer(ExactVerifier())

    def file(self, name: str) -> Any:
        raise AssertionError(name)


def test_a_spec_names_the_checks(scripted: Any) -> None:
    engine = scripted.ScriptedEngine()
    scorer = RubricScorer.from_spec({"engine": engine, "checks": {"same": "exact"}, "per_call": 4}, Loader())
    plain = RubricScorer.from_spec({"engine": engine, "per_call": 4}, Loader())
    assert scorer.checks.fingerprints[0][0] == "same"  # type: ignore[union-attr]
    assert scorer.fingerprint != plain.fingerprint
    for body, complaint in (
        ({"engin": 1}, "did you mean .engine."),
        ({"engine": 1, "combined": 2}, "no option 'combined'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            RubricScorer.from_spec(body, Loader())


def test_the_order_of_the_items_and_the_batch_change_nothing(make: Callable[..., RubricScorer]) -> None:
    rubrics: Sequence[Any] = [THREE, THREE[::-1], THREE[1:]]
    samples = [sample(text, rubric) for rubric in rubrics for text in ("red and blue", "green grass", "nothing at all")]
    together = run(make(per_call=2), *samples)
    alone = [run(make(per_call=2), one)[0] for one in samples]
    assert [score.value for score in together] == [score.value for score in alone]
    assert together[0].value == together[3].value


def test_it_keeps_the_rules(make: Callable[..., RubricScorer]) -> None:
    program = {"program": "def check(prompt, response):\n    return 'red' in response"}
    samples = [sample(text, [*THREE, program]) for text in ("red and blue", "green grass", "a grey day")]
    check_scorer(make(), samples, seconds=120).raise_for_failures()
