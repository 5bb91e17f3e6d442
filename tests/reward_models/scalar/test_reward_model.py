"""The scorer with a scripted model: what is shown, what a response is worth that cannot be rated whole, and options."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import fault, text_of
from tests.reward_models.scalar.scripted_classifier import ScriptedClassifier, response_of

from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample, Score
from adjudge.reward_models.scalar.scorer import RewardModelScorer
from adjudge.scoring import registry
from adjudge.scoring.conformance import check_scorer

ATTACKS: list[dict[str, str]] = json.loads(
    (Path(__file__).parents[2] / "attacks" / "reward_model_attacks.json").read_text(encoding="utf-8")
)["nothing"]
EMPTY = -3.0
WINDOW = 200


def praise(prompt: Prompt) -> list[float]:
    """The more "good", the better; an empty response is worth -3, and each "bad" takes 10."""
    text = response_of(prompt)
    return [text.count("good") - 10.0 * text.count("bad") + (EMPTY if not text else 0.0)]


def scorer(logits: Callable[[Prompt], Any] = praise, *, window: int = WINDOW, **options: Any) -> RewardModelScorer:
    return RewardModelScorer(engine=ScriptedClassifier(logits, window=window), **options)


def sample(response: Any = "a good answer", **fields: Any) -> Sample:
    return Sample(**{"prompt": "2+2?", "response": response, **fields})


def score(one: Sample, **options: Any) -> Score:
    return asyncio.run(scorer(**options).score([one]))[0]


def test_the_value_is_the_raw_output() -> None:
    made = scorer()
    (one,) = asyncio.run(made.score([sample("good good")]))
    assert (one.value, one.reason, one.uncertainty) == (2.0, "", None)
    assert one.evidence == {"raw": [2.0], "reward": 2.0}
    assert one.provenance.to_dict() == {
        "scorer": "reward_model",
        "fingerprint": made.fingerprint,
        "engine": "scripted",
        "revision": "script",
    }
    assert one.cost.prompt_tokens == 1


def test_the_chat_is_finished() -> None:
    made = scorer()
    prompt = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2+2?"}]
    asyncio.run(made.score([sample("4", prompt=prompt)]))
    assert made.engine.asked == [(*prompt, {"role": "assistant", "content": "4"})]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["case"])
def test_nothing_to_judge_is_worth_no_more_than_silence(attack: dict[str, str]) -> None:
    one = score(sample(attack["response"]), logits=lambda prompt: [EMPTY if not response_of(prompt) else 100.0])
    assert one.value == EMPTY
    assert one.reason == "no_answer"


LONG = "good " * 100


@pytest.mark.parametrize(
    ("one", "options", "value", "reason"),
    [
        # Over-long or cut off: whoever is above the floor falls to it.
        (sample(LONG), {}, EMPTY, "too_complex"),
        (sample("good", finish_reason="length"), {}, EMPTY, "truncated"),
        (sample(LONG, finish_reason="length"), {}, EMPTY, "truncated"),
        (sample("good " * 30), {"max_characters": 100}, EMPTY, "too_complex"),
        (sample("<think>good"), {}, EMPTY, "unfinished_reasoning"),
        # Whoever is below it stays there: a bad answer cannot be saved by length.
        (sample("bad", finish_reason="length"), {}, -10.0, "truncated"),
        (sample("bad " + "x" * 1000), {}, -10.0, "too_complex"),
        (sample("bad " + "so " * 2000), {"max_characters": 500}, -10.0, "too_complex"),
        (sample("bad " + "so " * 2000), {"floor": 0.5}, -10.0, "too_complex"),
        # A stated floor.
        (sample(LONG), {"floor": -7.5}, -7.5, "too_complex"),
        (sample("good", finish_reason="length"), {"floor": -7.5}, -7.5, "truncated"),
        (sample("good", finish_reason="length"), {"floor": 1.5}, 1.0, "truncated"),
        (sample("."), {"floor": -7.5}, -7.5, "no_answer"),
        # Rated as far as it fits.
        (sample("good", finish_reason="length"), {"truncated": "grade"}, 1.0, "truncated"),
        (sample(LONG), {"truncated": "grade"}, 25.0, "too_complex"),
        (sample("bad " + LONG), {"truncated": "grade", "keep": "end"}, 25.0, "too_complex"),
        (sample("bad " + LONG), {"truncated": "grade"}, 14.0, "too_complex"),
        (sample("."), {"truncated": "grade"}, EMPTY, "no_answer"),
        # A response that calls tools acts, though it says nothing.
        (sample([{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]}]), {}, EMPTY, ""),
        (sample("4", finish_reason="stop"), {}, 0.0, ""),
    ],
)
def test_what_cannot_be_rated_whole(one: Sample, options: dict[str, Any], value: float, reason: str) -> None:
    found = score(one, **options)
    assert (found.value, found.reason) == (value, reason)
    assert found.evidence.get("truncated", False) == (reason in ("truncated", "too_complex"))


@pytest.mark.parametrize("one", [sample(LONG), sample("x", finish_reason="length"), sample("x" * 999)])
def test_declining_is_an_option(one: Sample) -> None:
    assert score(one, truncated="failed").to_dict()["reason"] == "undecided"
    assert score(one, truncated="failed").status == "failed"
    assert score(one, truncated="abstain").status == "abstained"


@pytest.mark.parametrize("response", [".", "<think>x", "", [{"role": "assistant", "content": 4}]])
def test_only_length_may_be_declined(response: Any) -> None:
    assert score(sample(response), truncated="failed").value == EMPTY


def test_a_piece_that_was_rated_is_told() -> None:
    found = score(sample(LONG), truncated="grade")
    assert found.evidence["kept"] == 125
    assert found.evidence["characters"] == len(LONG)


def test_a_prompt_that_does_not_fit_is_nobodys_response() -> None:
    for truncated in ("floor", "grade"):
        found = score(sample("good", prompt="x" * 300), truncated=truncated)
        assert (found.status, found.reason) == ("failed", "engine_error")


def test_an_engine_that_is_down_is_no_number() -> None:
    found = score(sample(), logits=lambda prompt: fault("engine_unavailable"))
    assert (found.status, found.reason) == ("failed", "engine_unavailable")
    cut = score(sample(finish_reason="length"), logits=lambda prompt: fault("engine_timeout"))
    assert (cut.status, cut.reason) == ("failed", "engine_timeout")


def test_outputs_that_are_no_numbers_do_not_save_a_response() -> None:
    found = score(sample("boom"), logits=lambda prompt: [math.inf if response_of(prompt) else EMPTY])
    assert (found.value, found.reason) == (EMPTY, "unparsable_answer")
    everywhere = score(sample("boom"), logits=lambda prompt: [math.nan])
    assert (everywhere.status, everywhere.reason) == ("failed", "engine_error")


class Poisoned(ScriptedClassifier):
    """An engine that refuses a chat, and with it everything in the same call."""

    calls = 0

    async def classify(self, prompts: Any) -> Any:
        self.calls += 1
        refused = any("boom" in response_of(prompt) and len(text_of(prompt)) <= self.window for prompt in prompts)
        return [fault("engine_error")] * len(prompts) if refused else await super().classify(prompts)


def test_a_response_that_is_refused_pays_alone() -> None:
    engine = Poisoned(praise)
    made = RewardModelScorer(engine=engine, truncated="failed")
    scores = asyncio.run(made.score([sample("good"), sample("boom"), sample("good good")]))
    assert [(one.value, one.reason) for one in scores] == [(1.0, ""), (EMPTY, "unparsable_answer"), (2.0, "")]
    assert scores[1].evidence["fault"]


def test_what_is_asked_beside_a_refused_response_is_asked_again() -> None:
    """Floors, references and pieces share calls with other samples' responses."""
    made = RewardModelScorer(engine=Poisoned(praise, window=WINDOW), normalize="reference")
    samples = [
        sample("boom", reference="good"),
        sample("good", reference="good", finish_reason="length"),
        sample("boom " + LONG, reference="good"),
        sample("good good", reference="boom"),
    ]
    scores = asyncio.run(made.score(samples))
    assert [one.value for one in scores] == [EMPTY - 1, EMPTY - 1, EMPTY - 1, None]
    assert [one.reason for one in scores] == ["unparsable_answer", "truncated", "too_complex", "engine_error"]


def test_an_engine_that_refuses_everything_is_not_asked_for_ever() -> None:
    calls: list[int] = []

    def broken(prompt: Prompt) -> Any:
        calls.append(1)
        return fault("engine_error")

    scores = asyncio.run(scorer(broken).score([sample(str(number)) for number in range(50)]))
    assert {(one.status, one.reason) for one in scores} == {("failed", "engine_error")}
    assert len(calls) == 50 + 3


def test_scales_and_shapes() -> None:
    one = sample("good good good")
    assert score(one, normalize="zscore", normalizer=(1.0, 4.0)).value == 0.5
    assert score(one, normalize="mean", normalizer=(1.0, 4.0)).value == 2.0
    assert score(one, output="sigmoid").value == pytest.approx(1 / (1 + math.exp(-3)))
    centred = score(sample("good good good", reference="good"), normalize="reference", output="log_sigmoid")
    assert centred.value == pytest.approx(math.log(1 / (1 + math.exp(-2))))
    assert centred.evidence["reference_reward"] == 1.0
    assert centred.evidence["raw"] == [3.0]
    given = score(sample("good", reference={"response": "good good"}), normalize="reference")
    assert given.value == -1.0


def test_a_floor_has_the_shape_of_the_scores() -> None:
    cut = sample("good", finish_reason="length", reference="good")
    shaped = score(cut, normalize="reference", output="sigmoid")
    assert shaped.value == pytest.approx(1 / (1 + math.exp(4)))
    assert score(cut, normalize="zscore", normalizer=(1.0, 2.0)).value == -2.0


@pytest.mark.parametrize(
    ("reference", "reason"),
    [(None, "bad_sample"), (4, "gold_unparsable"), ("", "gold_unparsable"), ("x" * 500, "gold_timeout")],
)
def test_a_reference_that_cannot_be_rated_fails(reference: Any, reason: str) -> None:
    for response in ("good", ""):
        found = score(sample(response, reference=reference), normalize="reference")
        assert (found.status, found.reason) == ("failed", reason)


def test_a_missing_reference_is_told_before_any_work() -> None:
    made = scorer(normalize="reference")
    with pytest.raises(ValueError, match="sample 'seven' has none"):
        made.validate(sample(id="seven"))
    with pytest.raises(ValueError, match="the reference is 4"):
        made.validate(sample(reference=4))
    assert made.engine.asked == []


@pytest.mark.parametrize(
    ("prompt", "value"),
    [([{"content": "x"}], None), (["x"], None), ([{"role": "user", "content": 4}], None), ([], 1.0)],
)
def test_a_malformed_prompt_fails_alone(prompt: Any, value: float | None) -> None:
    first, second = asyncio.run(scorer().score([sample(prompt=prompt), sample()]))
    assert first.value == value
    assert first.reason == ("bad_sample" if value is None else "")
    assert second.value == 1.0


def test_everything_is_asked_in_as_few_calls_as_can_be() -> None:
    calls: list[int] = []

    class Counting(ScriptedClassifier):
        async def classify(self, prompts: Any) -> Any:
            calls.append(len(prompts))
            return await super().classify(prompts)

    made = RewardModelScorer(engine=Counting(praise), normalize="reference")
    samples = [sample(reference="good"), sample(reference="good", finish_reason="length"), sample(".", reference="x")]
    asyncio.run(made.score(samples))
    assert calls == [3 + 3 + 2]


def test_attributes_are_weighed_by_name() -> None:
    def attributes(prompt: Prompt) -> list[float]:
        return [1.0, 2.0, 4.0]

    head = {"kind": "linear", "outputs": 3}
    found = score(
        sample(),
        logits=attributes,
        head=head,
        labels=("help", "truth", "words"),
        weights={"truth": 1.0, "words": -0.25},
    )
    assert found.value == 1.0
    assert found.evidence["attributes"] == {"help": 1.0, "truth": 2.0, "words": 4.0}
    with pytest.raises(ValueError, match="gave 3 numbers"):
        score(sample(), logits=attributes)


def test_gaussian_heads_tell_how_sure_they_are() -> None:
    found = score(
        sample(), logits=lambda prompt: [2.0, 0.0], head={"kind": "gaussian"}, normalize="zscore", normalizer=(0, 2)
    )
    assert (found.value, found.uncertainty) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"engine": None}, "give one of the two"),
        ({"model": "x"}, "give one of the two"),
        ({"engine": "nonsense:x"}, "nonsense"),
        ({"reasoning": "hide"}, "'hide'"),
        ({"normalize": "rank"}, "'rank'"),
        ({"output": "tanh"}, "'tanh'"),
        ({"truncated": "zero"}, "'zero'"),
        ({"keep": "middle"}, "'middle'"),
        ({"floor": math.nan}, "nan"),
        ({"floor": "low"}, "'low'"),
        ({"min_words": 0}, "min_words=0"),
        ({"max_characters": 1.5}, "max_characters=1.5"),
        ({"head": {"kind": "cubic"}}, "cubic"),
        ({"head": 3}, "head=3"),
        ({"combine": {"rules": "min"}}, "'rules'"),
        ({"combine": 3}, "combine takes a mapping"),
        ({"normalizer": (1.0, 0.0)}, "above 0"),
        ({"normalizer": 3}, "normalizer=3"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        RewardModelScorer(**{"engine": ScriptedClassifier(praise), **options})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"normalize": "zscore"}, "stores no mean"),
        ({"weights": {"help": 1.0}}, "'help'"),
        ({"labels": ("a", "b")}, "1 outputs"),
        ({"family": "armorm"}, "does not show its model"),
        ({"head": {"pooling": "tokens"}}, "every token"),
    ],
)
def test_options_that_do_not_fit_the_model_are_told_before_any_work(options: dict[str, Any], named: str) -> None:
    made = scorer(**options)
    with pytest.raises(ValueError, match=named):
        made.validate(sample())
    with pytest.raises(ValueError, match=named):
        asyncio.run(made.score([sample()]))
    assert made.engine.asked == []


def test_the_fingerprint_knows_every_option() -> None:
    """Each option that may change a score changes the fingerprint."""
    engine, head = ScriptedClassifier(praise), {"outputs": 2}
    base: dict[str, Any] = {"engine": engine, "head": head, "weights": (1.0, 1.0), "normalizer": (0.0, 2.0)}
    changes: list[dict[str, Any]] = [
        {},
        {"reasoning": "keep"},
        {"normalize": "zscore"},
        {"normalize": "zscore", "normalizer": (1.0, 2.0)},
        {"output": "sigmoid"},
        {"truncated": "grade"},
        {"keep": "end"},
        {"floor": 0.0},
        {"min_words": 2},
        {"max_characters": 99},
        {"labels": ("a", "b")},
        {"weights": (1.0, 2.0)},
        {"weights": None, "combine": "min"},
        {"weights": None, "combine": {"rule": "soft_min", "beta": 2.0}},
        {"head": {"kind": "gaussian", "outputs": 2}},
        {"head": {"kind": "gaussian", "outputs": 2}, "risk": 0.5},
    ]
    prints = [RewardModelScorer(**{**base, **change}).fingerprint for change in changes]
    assert len(set(prints)) == len(prints)
    assert RewardModelScorer(**base).fingerprint == prints[0]


def test_it_conforms() -> None:
    samples = [
        sample("good"),
        sample("bad", finish_reason="length"),
        sample(LONG, group="g"),
        sample("<think>good</think>good good"),
        sample([{"role": "assistant", "content": "good"}, {"role": "tool", "content": "x"}]),
    ]
    check_scorer(scorer(), samples).raise_for_failures()
    check_scorer(
        scorer(truncated="grade", normalize="reference"), [sample("good", reference="bad")]
    ).raise_for_failures()


def test_a_spec_makes_it() -> None:
    name = "adjudge.reward_models.scalar.scorer:RewardModelScorer"
    server = {"openai": {"model": "rm", "base_url": "http://127.0.0.1:9/v1"}}
    made = registry.load({name: {"engine": server, "weights": [1], "normalize": "zscore", "normalizer": [0, 2]}})
    assert isinstance(made, RewardModelScorer)
    assert (made.weights, made.scale) == ((1,), (0.0, 2.0))
