"""MT-R1-Zero's reward by its formulas, the reading of responses and references, and the suite of attacks."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer, load
from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.text.token_f1 import TokenF1Verifier
from adjudge.verifiers.text.translation.lexical import in_their_script
from adjudge.verifiers.text.translation.scorer import TranslationScorer
from adjudge.verifiers.text.translation.verifier import TranslationVerifier

GOLD = "the cat sat on the mat"
NEAR = "the cat sat on a mat"  # BLEU (1/12) ** 0.25 = 0.537
HALF = (1 / 12) ** 0.25


def in_tags(text: str) -> str:
    return f"<think>hm</think><translate>{text}</translate>"


def verified(
    response: Any, reference: Any = GOLD, *, prompt: str = "", stop: str | None = None, **options: Any
) -> Score:
    sample = Sample(prompt=prompt, response=response, reference=reference, finish_reason=stop)
    return TranslationVerifier(**options).verify(sample)


DISCRETE: dict[str, Any] = {"reward": "discrete", "lexical_above": 0.5}


@pytest.mark.parametrize(
    ("response", "options", "value"),
    [
        (in_tags(GOLD), {}, 2.0),
        (in_tags(NEAR), {}, 1 + HALF),
        (in_tags("rain"), {}, 1.0),
        (in_tags(""), {}, -3.0),
        (GOLD, {}, -3.0),
        ("", {}, -3.0),
        (in_tags(GOLD), DISCRETE, 3.0),
        (in_tags("rain"), DISCRETE, -0.5),
        (in_tags(GOLD), {**DISCRETE, "lexical_above": 1.0}, -0.5),  # above, not at
        (GOLD, DISCRETE, -3.0),
        (in_tags(NEAR), {"scale": "unit"}, HALF),
        (GOLD, {"scale": "unit"}, 0.0),
        (NEAR, {"scale": "unit", "form": "text"}, HALF),
        (f"<think>{GOLD}</think>{NEAR}", {"scale": "unit", "form": "text"}, HALF),
        (f"<think>{GOLD}", {"scale": "unit", "form": "text"}, 0.0),
        (in_tags(NEAR), {**DISCRETE, "scale": "unit"}, 1.0),
        (in_tags("rain"), {**DISCRETE, "scale": "unit"}, 0.0),
        (f"<translate>{GOLD}</translate>", {"tags": ("translate",)}, 2.0),
        (f"hm</think><translate>{GOLD}</translate>", {"opened": True}, 2.0),
        (f"{GOLD}</translate>", {"opened": True, "tags": ("translate",)}, 2.0),
        (f"So: {in_tags(GOLD)}", {"outside": "nothing"}, -3.0),
        (in_tags("cat mat"), {"metric": "chrf", "reward": "discrete", "lexical_above": 0.0}, 3.0),
    ],
)
def test_the_reward_is_the_published_formula(response: str, options: dict[str, Any], value: float) -> None:
    assert verified(response, **options).value == pytest.approx(value)


def test_a_poor_translation_by_threshold_is_wrong_though_its_metric_is_above_0() -> None:
    assert verified(in_tags(NEAR), **DISCRETE).reason == ""
    for scale, value in (("published", -0.5), ("unit", 0.0)):
        score = verified(in_tags(NEAR), scale=scale, **{**DISCRETE, "lexical_above": 0.9})
        assert (score.value, score.reason) == (value, "wrong")


def test_chat_turns_are_read_and_tools_are_not() -> None:
    turns = [{"role": "assistant", "content": "<think>x</think>"}, {"role": "tool", "content": "<translate>y"}]
    assert verified([*turns, {"role": "assistant", "content": f"<translate>{GOLD}</translate>"}]).value == 2.0
    assert verified([{"role": "tool", "content": in_tags(GOLD)}]).value == -3.0


def test_a_response_that_was_cut_off_has_no_translation_unless_it_is_graded() -> None:
    cut = verified(in_tags(GOLD), stop="length")
    assert (cut.value, cut.reason) == (-3.0, "truncated")
    assert verified(in_tags(GOLD), stop="length", truncated="grade").value == 2.0


def test_released_fault_a_perfect_translation_of_three_words_is_not_worthless() -> None:
    assert verified(in_tags("guten Tag auch"), "guten Tag auch").value == 2.0
    assert verified(in_tags("guten Tag auch"), "guten Tag auch", effective_order=False).value == 1.0


def test_released_fault_a_prompt_that_says_assistant_gives_nothing_away() -> None:
    prompt = f"Assistant: {in_tags(GOLD)} User: translate."
    assert verified("I will not.", prompt=prompt).value == -3.0
    assert verified(in_tags(NEAR), prompt=prompt).value == pytest.approx(1 + HALF)


def test_released_fault_bleu_is_not_read_from_print_with_two_places() -> None:
    value = verified(in_tags(NEAR)).value
    assert value is not None
    assert abs(value - 1 - HALF) < 1e-12
    assert round(100 * HALF, 2) / 100 != pytest.approx(HALF, abs=1e-6)


def test_released_fault_an_empty_element_in_the_right_form_is_no_better_than_a_wrong_form() -> None:
    # +1 for the form and -2 for the content make -1 there, above the -3 of a response without tags.
    assert verified(in_tags(" ")).value == verified("x").value == -3.0


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("", "gold"),
        (" \u200b", "gold"),
        (["good", ""], "gold"),
        ("x" * 20_001, "gold"),
        ({"references": [" "]}, "gold"),
    ],
)
def test_a_reference_that_says_nothing_fails_whatever_the_response(reference: Any, reason: str) -> None:
    for response in ("", in_tags(GOLD)):
        score = verified(response, reference)
        assert (score.status, score.reason) == ("failed", "gold_unparsable"), reason


@pytest.mark.parametrize(
    "reference",
    [
        None,
        3,
        [],
        [3],
        {},
        {"references": []},
        {"reference": "x"},
        {"references": ["x"], "source": 3},
        {"references": ["x"], "language": "German"},
        {"references": ["x"], "language": "en-zh"},
        {"references": ["x"], "language": None},
        '{"references": ["x"], "language": "de"}',
    ],
)
def test_a_malformed_reference_is_refused_before_any_work(reference: Any) -> None:
    sample = Sample(prompt="", response="", reference=reference)
    for scorer in (TranslationVerifier(), TranslationScorer()):
        with pytest.raises(ValueError, match="translation"):
            scorer.validate(sample)


PLAIN = st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.binary(max_size=2)
KEYS = st.sampled_from(["references", "source", "language", "x"])


@settings(max_examples=60, deadline=None)
@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)))
def test_no_reference_raises_anything_but_a_mistake(reference: Any) -> None:
    sample = Sample(prompt="", response=in_tags("x"), reference=reference)
    verifier = TranslationVerifier(metric="chrf")
    score = verifier.verify(sample)
    assert score.status == "scored" or score.reason == "gold_unparsable"
    try:
        verifier.validate(sample)
    except ValueError:
        assert score.reason == "gold_unparsable"


def test_a_tokenizer_that_is_not_installed_is_said_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge.verifiers.text.translation.verifier.missing_modules", lambda name: ("MeCab",))
    sample = Sample(prompt="", response=in_tags("私は"), reference={"references": ["私は"], "language": "ja"})
    with pytest.raises(ValueError, match="sacrebleu\\[ja\\]"):
        TranslationVerifier().validate(sample)
    assert TranslationVerifier().verify(sample).reason == "engine_unavailable"
    assert TranslationVerifier(metric="chrf").verify(sample).value == 2.0


def test_a_missing_sacrebleu_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge.verifiers.text.translation.verifier.installed", lambda: False)
    with pytest.raises(ValueError, match="adjudge\\[tasks\\]"):
        TranslationVerifier()


@pytest.mark.parametrize(
    "options",
    [
        {"form": "x"},
        {"tags": ()},
        {"tags": 5},
        {"tags": ("a", "a")},
        {"outside": "some"},
        {"opened": 1},
        {"reward": "discrete"},
        {"reward": "x"},
        {"scale": "x"},
        {"lexical_above": 20},
        {"lexical_above": float("nan")},
        {"lexical_above": True},
        {"language": "en-zh"},
        {"tokenizer": "spm"},
        {"effective_order": "yes"},
        {"several": "all"},
        {"chrf_words": 3},
        {"chrf_words": True},
        {"copied": 2},
        {"script": "x"},
        {"max_characters": 0},
        {"truncated": "x"},
        {"form": "text"},
        {"metric": "ter"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    for make in (TranslationVerifier, TranslationScorer):
        with pytest.raises(ValueError, match=r"format|translation|language"):
            make(**options)


SUITES = [
    (metric, case) for metric in ("bleu", "chrf") for case in shipped_cases(TranslationVerifier(metric=metric), Path())
]


def test_attacks_are_worth_nothing_and_their_honest_neighbours_everything() -> None:
    found = [(metric, case, _of_case(metric, case)) for metric, case in SUITES]
    wrong = [(metric, case.id, score) for metric, case, score in found if score.value != float(case.honest)]
    assert not wrong
    assert not [(case.id, score) for _, case, score in found if case.reason not in ("", score.reason)]
    assert [case.honest for _, case in SUITES].count(False) >= 60


def _of_case(metric: str, case: AttackCase) -> Score:
    return dataclasses.replace(TranslationVerifier(metric=metric), **case.options).verify(case.sample)  # type: ignore[arg-type]


def test_another_script_is_worth_the_lowest_value_unless_any_will_do() -> None:
    assert verified(in_tags("мат и кот")).value == -3.0
    assert verified(in_tags("мат и кот"), script="any").value == 1.0
    japanese = {"references": ["東京都"], "language": "ja"}
    assert verified(in_tags("とうきょうと"), japanese, metric="chrf").value == 1.0
    assert verified(in_tags("とうきょうと"), "東京都", metric="chrf").value == -3.0
    assert verified(in_tags("とうきょうと"), "東京都", metric="chrf", language="ja").value == 1.0


def test_a_copy_is_only_told_where_the_source_is_given() -> None:
    given_source = {"references": ["Die Brücke ist zu."], "source": "The bridge is shut."}
    copy = in_tags("The bridge is shut.")
    assert verified(copy, given_source).value == -3.0
    # "." is one word of five that agrees; one of 5, and none of 4 pairs, 3 triples and 2 fours
    bleu = (1 / 5 * 1 / 8 * 1 / 12 * 1 / 16) ** 0.25
    assert verified(copy, given_source, copied=None).value == pytest.approx(1 + bleu)
    whole = {"references": ["die Katze sass dort"], "source": GOLD}
    assert verified(in_tags(GOLD), whole, copied=1.0).value == -3.0
    assert verified(copy, "Die Brücke ist zu.").value == pytest.approx(1 + bleu)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<translate>", "</translate>", "<", "the cat ", "\u200b", "是", "\ud800"]
        )
    ),
    st.sampled_from(["bleu", "chrf"]),
)
def test_no_text_raises(pieces: list[str], metric: Any) -> None:
    score = verified("".join(pieces), metric=metric)
    assert score.status == "scored"
    assert score.value is not None
    assert -3 <= score.value <= 2


@pytest.mark.parametrize("piece", ["<translate>", "<think>", "< think ", "x", "是 "])
def test_a_megabyte_of_one_thing_is_read_and_worth_nothing(piece: str) -> None:
    assert verified(in_tags(piece * (1_000_000 // len(piece)))).value == -3.0


def test_a_killed_response_gets_the_lowest_value() -> None:
    sample = Sample(prompt="", response="", reference=GOLD)
    assert TranslationVerifier().killed(sample, "candidate_timeout").value == -3.0
    assert TranslationVerifier(scale="unit").killed(sample, "candidate_timeout").value == 0.0
    TranslationVerifier().warm_up()


class Said:
    """A scorer that gives the same value to everything and keeps what it was shown."""

    name = "said"

    def __init__(self, *values: float | None) -> None:
        self.values = values
        self.shown: list[Sample] = []

    @property
    def fingerprint(self) -> str:
        return f"said:{self.values}"

    def validate(self, sample: Sample) -> None:
        if sample.extra.get("refuse"):
            raise ValueError("not this one")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.shown += samples
        values = [self.values[at % len(self.values)] for at in range(len(samples))]
        return [Score.failed("engine_timeout") if value is None else Score.scored(value) for value in values]


def scored(responses: Sequence[str], reference: Any = GOLD, **options: Any) -> list[Score]:
    samples = [Sample(prompt="Translate it.", response=response, reference=reference) for response in responses]
    return asyncio.run(TranslationScorer(**options).score(samples))


@pytest.mark.parametrize(
    ("text", "said", "options", "value"),
    [
        (NEAR, 0.8, {"metric": "semantic"}, 1.8),
        (NEAR, 0.8, {"metric": "mix"}, 1 + HALF + 0.8),
        (NEAR, 0.8, {"metric": "mix", "scale": "unit"}, (HALF + 0.8) / 2),
        (NEAR, 80.0, {"metric": "semantic", "semantic_range": (0.0, 100.0)}, 1.8),
        (NEAR, 0.5, {"metric": "semantic", "semantic_range": (-1, 1)}, 1.75),
        (NEAR, 1.7, {"metric": "semantic"}, 2.0),
        (NEAR, -1.0, {"metric": "semantic"}, 1.0),
        (NEAR, 0.8, {"metric": "semantic", "reward": "discrete", "semantic_above": 0.7}, 3.0),
        (NEAR, 0.7, {"metric": "semantic", "reward": "discrete", "semantic_above": 0.7}, -0.5),
        (NEAR, 0.8, {"metric": "mix", "reward": "discrete", "semantic_above": 0.7, "lexical_above": 0.5}, 3.0),
        (NEAR, 0.8, {"metric": "mix", "reward": "discrete", "semantic_above": 0.7, "lexical_above": 0.6}, -0.5),
        (NEAR, 0.6, {"metric": "mix", "reward": "discrete", "semantic_above": 0.7, "lexical_above": 0.5}, -0.5),
    ],
)
def test_a_models_metric_and_the_mix_follow_the_formula(
    text: str, said: float, options: dict[str, Any], value: float
) -> None:
    assert scored([in_tags(text)], semantic=Said(said), **options)[0].value == pytest.approx(value)


def test_the_model_is_shown_source_translation_and_references_of_well_formed_responses_alone() -> None:
    said = Said(0.5)
    reference = {"references": [GOLD, "x"], "source": "die Katze"}
    scores = scored(["no tags", in_tags(NEAR), in_tags("die Katze")], reference, metric="mix", semantic=said)
    assert [score.value for score in scores] == [-3.0, pytest.approx(1.5 + HALF), -3.0]
    (shown,) = said.shown
    assert (shown.prompt, shown.response, shown.reference) == ("die Katze", NEAR, [GOLD, "x"])
    assert set(scores[1].parts) == {"lexical", "semantic"}
    assert len({score.provenance.fingerprint for score in scores}) == 1


def test_the_model_is_not_told_that_a_graded_response_was_cut_off() -> None:
    said = Said(0.5)
    cut = Sample(prompt="", response=in_tags(NEAR), reference=GOLD, finish_reason="length")
    scorer = TranslationScorer(metric="semantic", semantic=said, truncated="grade")
    assert asyncio.run(scorer.score([cut]))[0].value == 1.5
    assert said.shown[0].finish_reason is None


def test_half_of_the_letters_must_be_of_the_references_script() -> None:
    assert in_their_script("abcd \u0430\u0431\u0432\u0433", [GOLD])
    assert not in_their_script("abcd \u0430\u0431\u0432\u0433\u0434", [GOLD])


def test_the_reference_knows_its_language_better_than_the_option() -> None:
    for reference, tokenizer in ((GOLD, "zh"), ({"references": [GOLD], "language": "de"}, "13a")):
        assert verified(in_tags(GOLD), reference, language="zh").evidence["tokenizer"] == tokenizer


def test_a_model_that_fails_leaves_no_number_and_no_response_can_make_it_fail() -> None:
    failed, formless = scored([in_tags(NEAR), "x"], metric="mix", semantic=Said(None))
    assert (failed.status, failed.reason) == ("failed", "engine_timeout")
    assert failed.parts["semantic"].reason == "engine_timeout"
    assert formless.value == -3.0


class Grouped(Said):
    """A scorer of groups."""

    groupwise = True


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "mix"},
        {"metric": "semantic"},
        {"metric": "bleu", "semantic": Said(1.0)},
        {"metric": "mix", "semantic": "token_f1"},
        {"metric": "mix", "semantic": Grouped(1.0)},
        {"metric": "mix", "semantic": Said(1.0), "semantic_range": (1.0, 0.0)},
        {"metric": "mix", "semantic": Said(1.0), "semantic_range": (1.0,)},
        {"metric": "mix", "semantic": Said(1.0), "reward": "discrete", "lexical_above": 0.5},
        {"metric": "mix", "semantic": Said(1.0), "reward": "discrete", "semantic_above": 0.5},
        {"metric": "mix", "semantic": Said(1.0), "lexical": "ter"},
    ],
)
def test_options_of_the_mix_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="translation"):
        TranslationScorer(**options)


def test_the_fingerprint_follows_options_and_model() -> None:
    mix: dict[str, Any] = {"metric": "mix", "semantic": Said(0.5)}
    given: list[dict[str, Any]] = [{}, {"metric": "chrf"}, {"effective_order": False}, mix]
    prints = [TranslationScorer(**options).fingerprint for options in [*given, {**mix, "semantic": Said(0.6)}]]
    assert len(set(prints)) == len(prints)
    assert TranslationScorer().fingerprint == TranslationScorer().fingerprint


def test_the_semantic_scorers_own_checks_are_heard() -> None:
    scorer = TranslationScorer(metric="semantic", semantic=Said(1.0))
    scorer.validate(Sample(prompt="", response="", reference=GOLD))
    with pytest.raises(ValueError, match=r"said.*not this one"):
        scorer.validate(Sample(prompt="", response="", reference=GOLD, extra={"refuse": True}))
    assert scorer.verifier is None


def test_a_spec_may_name_the_semantic_scorer() -> None:
    scorer = load(
        {"adjudge.verifiers.text.translation.scorer:TranslationScorer": {"metric": "mix", "semantic": "token_f1"}}
    )
    assert isinstance(scorer, TranslationScorer)
    assert scorer.fingerprint == TranslationScorer(metric="mix", semantic=TokenF1Verifier()).fingerprint
    with pytest.raises(ValueError, match="no option 'comet'"):
        load({"adjudge.verifiers.text.translation.scorer:TranslationScorer": {"comet": "x"}})


def test_the_recipe_is_mt_r1_zero() -> None:
    scorer = load("mt_r1_zero")
    assert isinstance(scorer, TranslationScorer)
    assert (scorer.metric, scorer.reward, scorer.scale, scorer.form) == ("bleu", "continuous", "published", "tags")
    assert scorer.tags == ("think", "translate")
    assert scorer.effective_order  # the one difference to the release


def test_the_scorer_keeps_the_rules_of_the_protocol() -> None:
    samples = [Sample(prompt="p", response=in_tags(text), reference=GOLD) for text in (GOLD, NEAR, "rain")]
    check_scorer(TranslationScorer(), samples).raise_for_failures()
