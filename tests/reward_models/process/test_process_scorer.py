"""The scorer: values, places and evidence; what a response cannot buy; conformance; fillers."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.reward_models.process.scripted_steps import ScriptedSteps
from tests.reward_models.process.step_models import MARKER, PROBLEM, STEPS

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Fault, TextLogprobs, TokenLogits
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.protocol import Sample, Score
from adjudge.responses.aggregate import aggregate
from adjudge.responses.refine import Refinement
from adjudge.reward_models.process.formats import MarkerFormat
from adjudge.reward_models.process.likelihood import ImplicitRewardScorer, LikelihoodScorer
from adjudge.reward_models.process.step_scorer import ProcessRewardScorer
from adjudge.scoring.conformance import check_scorer

CHANCES = {"good": 0.9, "fair": 0.6, "bad": 0.2, "filler": 0.95}


def last_word(text: str) -> float:
    """The chance that the last step is good, by its last word."""
    return CHANCES.get(text.rstrip(". \n").rpartition(" ")[2], 0.5)


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedSteps:
    return ScriptedSteps(tmp_path / "scripted", last_word)


def scorer_of(engine: Any, **options: Any) -> ProcessRewardScorer:
    return ProcessRewardScorer(engine=engine, **{"format": "qwen_math_prm", **options})


def scored(scorer: Any, *samples: Sample) -> list[Score]:
    scores: list[Score] = asyncio.run(scorer.score(samples))
    return scores


def one(scorer: Any, response: Any, **fields: Any) -> Score:
    return scored(scorer, Sample(prompt=PROBLEM, response=response, **fields))[0]


RESPONSE = "This is good.\n\nThis is bad.\n\nThis is fair."


def test_steps_have_values_labels_and_places(scripted: ScriptedSteps) -> None:
    score = one(scorer_of(scripted), RESPONSE)
    assert score.value == pytest.approx(0.2)
    assert [(step.label, RESPONSE[step.start : step.end]) for step in score.steps] == [
        ("good", "This is good."),
        ("bad", "This is bad."),
        ("good", "This is fair."),
    ]
    assert [step.value for step in score.steps] == pytest.approx([0.9, 0.2, 0.6])
    assert score.evidence["steps"] == 3
    assert score.evidence["fewer_steps"] == -3
    assert score.evidence["first_below"] == 1
    assert score.cost.prompt_tokens > 0
    assert score.provenance.scorer == "process_reward"


def test_values_are_refined_first(scripted: ScriptedSteps) -> None:
    score = one(scorer_of(scripted, refine="clip", aggregate="sum", eta=0.7), RESPONSE)
    assert score.value == pytest.approx(-0.6)
    assert [step.value for step in score.steps] == pytest.approx([0.0, -0.5, -0.1])
    assert score.evidence["raw"] == pytest.approx([0.9, 0.2, 0.6])


def test_reasoning_is_left_out_and_places_stay_those_of_the_response(scripted: ScriptedSteps) -> None:
    whole = f"<think>this is bad.</think>\n{RESPONSE}"
    score = one(scorer_of(scripted), whole)
    assert whole[score.steps[0].start : score.steps[0].end] == "This is good."
    kept = one(scorer_of(scripted, reasoning="keep"), whole)
    assert kept.evidence["steps"] == 3
    assert "changed_steps" in kept.evidence  # the tag is broken up


def test_turns_are_steps_and_what_others_say_is_none(scripted: ScriptedSteps) -> None:
    turns: list[dict[str, Any]] = [
        {"role": "assistant", "content": "<think>Is it?</think>\nThis is good.\n\nThis is bad."},
        {"role": "tool", "content": "This is fair."},
        {"role": "assistant", "content": "This is good."},
    ]
    scorer = scorer_of(scripted, split="turn", reasoning="keep", refine="gain", aggregate="sum")
    score = one(scorer, turns)
    assert score.evidence["raw"] == pytest.approx([0.2, 0.9])
    assert [step.value for step in score.steps] == pytest.approx([0.2, 0.7])
    assert score.value == pytest.approx(0.9)
    assert one(scorer, RESPONSE).evidence["raw"] == pytest.approx([0.6]), "a flat response is one turn"
    grounded = replace(scorer, grounding=0.5)
    assert [step.value for step in one(grounded, turns).steps] == pytest.approx([0.7, 0.7]), "the last called nothing"
    turns[1]["ok"] = False
    assert [step.value for step in one(grounded, turns).steps] == pytest.approx([0.2, 0.7]), "nothing happened"
    assert one(grounded, RESPONSE).value == one(scorer, RESPONSE).value
    with pytest.raises(ValueError, match="set split to turn"):
        scorer_of(scripted, grounding=0.5)
    with pytest.raises(ValueError, match="set reasoning to keep"):
        scorer_of(scripted, split="turn")


def test_given_steps(scripted: ScriptedSteps) -> None:
    steps = ["This is good.\n\nThis is bad.", "This is fair."]
    assert one(scorer_of(scripted), RESPONSE, extra={"steps": steps}).evidence["raw"] == pytest.approx([0.2, 0.6])
    for wrong in (["This is good."], [*steps, "More."], steps[::-1]):
        score = one(scorer_of(scripted), RESPONSE, extra={"steps": wrong})
        assert (score.value, score.reason) == (0.0, "bad_format")
    for broken in ([], "This is good.", [1], 7):
        score = one(scorer_of(scripted), RESPONSE, extra={"steps": broken})
        assert (score.status, score.reason) == ("failed", "bad_sample")


NOT_JUDGED: list[tuple[str, Any, dict[str, Any], str]] = [
    ("empty", "", {}, "no_answer"),
    ("blank", " \n\t\u200b", {}, "no_answer"),
    ("signs alone", "+\n\n+\n\n+", {}, "no_answer"),
    ("an opening alone", "Let's think step by step.", {}, "no_answer"),
    ("no turn", [], {}, "no_answer"),
    ("open reasoning", "<think>This is good.", {}, "unfinished_reasoning"),
    ("cut off", RESPONSE, {"finish_reason": "length"}, "truncated"),
    ("too long", "good " * 20_000, {}, "too_complex"),
    ("too many steps", "good.\n\n" * 201, {}, "too_complex"),
    ("one huge step", "This is good. " * 700, {}, "too_complex"),
    ("over the window", "\n\n".join(["This is good. " * 50] * 10), {}, "too_complex"),
]


@pytest.mark.parametrize(("name", "response", "fields", "reason"), NOT_JUDGED, ids=[case[0] for case in NOT_JUDGED])
@pytest.mark.parametrize(
    ("refine", "how"), [("none", "min"), ("clip", "sum"), ("delta", "sum"), ("none", "sum_log"), ("gain", "last")]
)
def test_what_is_not_judged_gets_the_lowest_value(
    name: str, response: Any, fields: dict[str, Any], reason: str, refine: Refinement, how: Any, scripted: ScriptedSteps
) -> None:
    scripted.window = 1_000
    scorer = scorer_of(scripted, refine=refine, aggregate=how)
    score = one(scorer, response, **fields)
    assert (score.status, score.value, score.reason) == ("scored", scorer.lowest, reason)
    worst = one(scorer, "This is bad.\n\nThis is bad.\n\nThis is bad.")
    assert worst.value is not None
    assert worst.value >= scorer.lowest


def test_a_problem_over_the_window_is_our_failure(scripted: ScriptedSteps) -> None:
    scripted.window = 200
    long, short = scored(
        scorer_of(scripted),
        Sample(prompt="Why? " * 200, response=RESPONSE),
        Sample(prompt=PROBLEM, response=RESPONSE),
    )
    assert (long.status, long.reason) == ("failed", "engine_error")
    assert short.value == pytest.approx(0.2)


@pytest.mark.parametrize("reason", ["engine_unavailable", "engine_timeout", "engine_overloaded"])
def test_an_engine_that_is_down_gives_no_number(reason: str, tmp_path: Path) -> None:
    scripted = ScriptedSteps(tmp_path / "down", last_word, fault=Fault(reason=reason, detail="scripted"))
    score = one(scorer_of(scripted), RESPONSE)
    assert (score.status, score.value, score.reason) == ("failed", None, reason)


def test_an_engine_that_reads_other_tokens_gives_no_number(scripted: ScriptedSteps, tmp_path: Path) -> None:
    from tests.engines.tiny_models import tiny_tokenizer

    tiny_tokenizer().save_pretrained(tmp_path / "other")
    score = one(scorer_of(scripted, tokenizer=str(tmp_path / "other")), f"This is good {MARKER}.")
    assert (score.status, score.reason) == ("failed", "engine_error")


@pytest.mark.parametrize("numbers", [False, True], ids=["other tokens", "no numbers"])
def test_a_response_that_alone_is_read_otherwise_gets_the_floor(
    scripted: ScriptedSteps, monkeypatch: pytest.MonkeyPatch, numbers: bool
) -> None:
    """No text that an engine stumbles over buys a failed score, or stops the others of its batch."""
    plain = scripted._read

    def stumbling(text: str) -> TokenLogits | Fault:
        found = plain(text)
        assert isinstance(found, TokenLogits)
        if "snowman" not in text:
            return found
        if numbers:
            return replace(found, values=((math.nan, 0.0),) * len(found.values))
        return replace(found, token_ids=found.token_ids[1:])

    monkeypatch.setattr(scripted, "_read", stumbling)
    odd, usual = scored(
        scorer_of(scripted),
        Sample(prompt=PROBLEM, response="A snowman is good."),
        Sample(prompt=PROBLEM, response="A house is good."),
    )
    assert (odd.status, odd.value, odd.reason) == ("scored", 0.0, "unparsable_answer")
    assert usual.value == pytest.approx(0.9)


def test_a_model_that_gives_no_numbers_is_our_failure(scripted: ScriptedSteps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.reward_models.process.scripted_steps.math.log1p", lambda _: math.nan)
    score = one(scorer_of(scripted), RESPONSE)
    assert (score.status, score.reason) == ("failed", "engine_error")
    assert "not finite" in score.evidence["fault"]


def test_a_cut_off_response_may_be_scored_on_request(scripted: ScriptedSteps) -> None:
    score = one(scorer_of(scripted, truncated="grade"), RESPONSE, finish_reason="length")
    assert score.value == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "clause"}, "split"),
        ({"aggregate": "median"}, "aggregate"),
        ({"refine": "smooth"}, "refine"),
        ({"truncated": "failed"}, "truncated"),
        ({"reasoning": "hide"}, "reasoning"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_step_characters": 0}, "max_step_characters"),
        ({"eta": math.nan}, "eta"),
        ({"temperature": 0.0}, "temperature"),
        ({"floor": math.inf}, "floor"),
        ({"floor": 0.1}, "empty response would beat"),
        ({"refine": "clip", "aggregate": "sum", "floor": 0.0}, "empty response would beat"),
        ({"refine": "delta", "aggregate": "product"}, "needs probabilities"),
        ({"format": "rest_mcts"}, "floor is not given"),
        ({"format": "rest_mcts", "aggregate": "product", "floor": -1.0}, "probabilities"),
        ({"format": "unheard_of"}, "not a format"),
        ({"format": "notes"}, "nothing says"),
        ({"engine": "nothing:else"}, "unknown kind of engine"),
    ],
    ids=str,
)
def test_options_that_mean_nothing(options: dict[str, Any], message: str, scripted: ScriptedSteps) -> None:
    with pytest.raises(ValueError, match=message):
        scorer_of(**{"engine": scripted, **options})


def test_the_fingerprint_covers_what_matters(scripted: ScriptedSteps) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"split": "line"},
        {"aggregate": "mean"},
        {"refine": "running_min"},
        {"format": MarkerFormat(positive=0)},
        {"threshold": 0.4},
        {"max_steps": 10},
        {"tokenizer": "elsewhere"},
    ]
    seen = {scorer_of(scripted, **options).fingerprint for options in changes}
    assert len(seen) == len(changes)
    assert scorer_of(scripted).fingerprint == scorer_of(scripted, format=MarkerFormat()).fingerprint


def test_the_format_may_stand_in_the_notes(scripted: ScriptedSteps) -> None:
    form = MarkerFormat(system="", positive=0)
    notes = CheckpointNotes(
        what="process",
        head=HeadConfig(outputs=2, pooling="tokens"),
        trained={"format": form.record()},
    )
    notes.write(scripted.model)
    scorer = ProcessRewardScorer(engine=scripted)
    assert scorer.form == form
    assert one(scorer, RESPONSE).value == pytest.approx(0.1)


def padded(times: int) -> str:
    """A fair solution with a filler step, repeated before the answer."""
    return "\n\n".join(["This is good.", *["Note that this is filler."] * times, "This is fair."])


SHAPES: list[tuple[Refinement, Any]] = [
    ("clip", "sum"),
    ("delta", "sum"),
    ("clip_delta", "sum"),
    ("none", "min"),
    ("running_min", "last"),
    ("min_form", "sum"),
]


@pytest.mark.parametrize(("refine", "how"), SHAPES, ids=str)
def test_fifty_fillers_pay_nothing(refine: Refinement, how: Any, scripted: ScriptedSteps) -> None:
    shaped = scorer_of(scripted, refine=refine, aggregate=how)
    without, with_fillers = (one(shaped, padded(times)).value for times in (0, 50))
    assert without is not None
    assert with_fillers is not None
    # The soft minimum mixes in a little of 50 fillers, each worth exp(-3.5) of the worst step's weight.
    tolerance = 0.25 if refine == "min_form" else 1e-9
    assert with_fillers <= without + tolerance


def test_fifty_fillers_pay_in_the_plain_sum(scripted: ScriptedSteps) -> None:
    plain = scorer_of(scripted, aggregate="sum")
    values = [one(plain, padded(times)).value for times in (0, 10, 50)]
    assert values == pytest.approx([1.5, 1.5 + 9.5, 1.5 + 47.5])


def test_fillers_on_a_random_model(two_classes: Path) -> None:
    """Whatever the model says of them: the clipped sum and the minimum never rise, the difference sum stays r_1."""
    engine = TransformersEngine(TransformersConfig(model=str(two_classes), device="cpu"))
    texts = ["\n\n".join([STEPS[0], *["So."] * times, STEPS[3]]) for times in (0, 50)]
    samples = [Sample(prompt="1+1?", response=text) for text in texts]

    def values(**options: Any) -> list[float]:
        scores = scored(scorer_of(engine, **options), *samples)
        assert [score.evidence["steps"] for score in scores] == [2, 52]
        return [score.value for score in scores if score.value is not None]

    plain = values(aggregate="sum")
    assert plain[1] > plain[0]
    first = values(refine="delta", aggregate="sum")
    assert first[0] == pytest.approx(first[1], abs=1e-5)
    raw = scored(scorer_of(engine), *samples)[1].evidence["raw"]
    assert first[1] == pytest.approx(raw[0], abs=1e-5)
    assert aggregate(raw[:-1], "min") >= aggregate(raw, "min")
    for step in itertools.pairwise(itertools.accumulate(min(value - 0.5, 0.0) for value in raw)):
        assert step[1] <= step[0]


SAMPLES = [
    Sample(prompt=PROBLEM, response="\n\n".join(STEPS), id="all"),
    Sample(prompt=PROBLEM, response=STEPS[0], id="one"),
    Sample(prompt=[{"role": "user", "content": PROBLEM}], response=[{"role": "assistant", "content": STEPS[3]}]),
    Sample(prompt="x", response=f"{STEPS[1]}\n\n{MARKER}", extra={"steps": [STEPS[1], MARKER]}),
]


@pytest.mark.parametrize("form", ["qwen_math_prm", {"step_end": {"pieces": "joined"}}], ids=["marker", "step_end"])
def test_conformance(form: Any, two_classes: Path) -> None:
    engine = TransformersEngine(TransformersConfig(model=str(two_classes), device="cpu"))
    scorer = ProcessRewardScorer(engine=engine, format=form, truncated="grade")
    check_scorer(scorer, SAMPLES, tolerance=1e-5).raise_for_failures()


@pytest.mark.parametrize("form", [{"signs": {"good": "+", "bad": "-"}}, "rlhflow"], ids=["signs", "turns"])
def test_conformance_of_sign_models(form: Any, language_model: Path) -> None:
    engine = TransformersEngine(TransformersConfig(model=str(language_model), device="cpu"))
    check_scorer(ProcessRewardScorer(engine=engine, format=form), SAMPLES, tolerance=1e-5).raise_for_failures()


def test_conformance_of_log_ratios(language_model: Path, base_model: Path) -> None:
    policy, reference = (
        TransformersEngine(TransformersConfig(model=str(model), device="cpu")) for model in (language_model, base_model)
    )
    scorer = ImplicitRewardScorer(engine=policy, reference_engine=reference, floor=-200.0)
    check_scorer(scorer, SAMPLES, tolerance=1e-5).raise_for_failures()
    values: Sequence[float | None] = [score.value for score in scored(scorer, *SAMPLES)]
    same = ImplicitRewardScorer(engine=policy, reference_engine=policy, floor=-200.0)
    assert [score.value for score in scored(same, *SAMPLES)] == pytest.approx([0.0] * 4, abs=1e-5)
    twice = replace(scorer, beta=0.1)
    assert [score.value for score in scored(twice, *SAMPLES)] == pytest.approx(
        [2 * value for value in values if value is not None], abs=1e-5
    )
    with pytest.raises(ValueError, match="floor is not given"):
        replace(scorer, floor=None)
    with pytest.raises(ValueError, match="beta"):
        replace(scorer, beta=0.0)


def test_a_step_is_worth_the_mean_log_probability_of_its_tokens(language_model: Path) -> None:
    engine = TransformersEngine(TransformersConfig(model=str(language_model), device="cpu"))
    scorer = LikelihoodScorer(engine=engine, floor=-1000.0)
    check_scorer(scorer, SAMPLES, tolerance=1e-5).raise_for_failures()
    first, second = f"{STEPS[0]}\n\n", STEPS[1]
    asked = [{"role": "user", "content": PROBLEM}]
    whole, begun = asyncio.run(engine.reference_logprobs([asked, asked], [first + second, first]))
    assert isinstance(whole, TextLogprobs)
    assert isinstance(begun, TextLogprobs)
    parts = whole.logprobs[: len(begun.logprobs)], whole.logprobs[len(begun.logprobs) :]
    assert parts[0] == pytest.approx(begun.logprobs, abs=1e-4)
    means = [sum(part) / len(part) for part in parts]
    score = one(scorer, first + second)
    assert [step.value for step in score.steps] == pytest.approx(means, abs=1e-4)
    assert score.value == pytest.approx(sum(means), abs=1e-4)
    flat = one(replace(scorer, split="whole"), first + second)
    assert flat.value == pytest.approx(sum(whole.logprobs) / len(whole.logprobs), abs=1e-4)
    with pytest.raises(ValueError, match="floor is not given"):
        replace(scorer, floor=None)
