"""Facts that questions bring to light: Shapley values, when a fact is known, and what asking pays."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import scripted

from adjudge.engines.interface import Fault, Prompt, TextLogprobs
from adjudge.protocol import Cost, Sample, Score, response_text
from adjudge.scoring.attacks import shipped_cases
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.agents.search.facts import (
    MAX_REPLY,
    FactGainScorer,
    newly_known,
    orders_of,
    paid,
    read_case,
    sets_of,
    shapley,
    weights_of,
)
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

FACTS = [{"text": "has a fever", "keys": ["fever"]}, {"text": "was in Kenya", "keys": ["Kenya"]}, "no cough"]
CASE = {"facts": FACTS, "answer": "malaria", "shapley": [0.3, 0.5, 0.2]}
SHARES: dict[str, Any] = {"normalize": "share"}  # the weights are then the numbers of the case


def turns(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("assistant", "user")[at % 2], "content": text} for at, text in enumerate(texts)]


def run(scorer: FactGainScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def gain(*texts: str, reference: Any = CASE, prompt: str = "I feel ill.", **options: Any) -> Score:
    scorer = FactGainScorer(**{**SHARES, **options})
    return run(scorer, Sample(prompt=prompt, response=turns(*texts), reference=reference))[0]


def by_all_orders(facts: int, value: Mapping[int, float]) -> list[float]:
    """Shapley values the slow plain way."""
    total = [0.0] * facts
    orders = list(itertools.permutations(range(facts)))
    for order in orders:
        made = 0
        for fact in order:
            total[fact] += value[made | 1 << fact] - value[made]
            made |= 1 << fact
    return [one / len(orders) for one in total]


def test_shapley_values_by_hand() -> None:
    # the glove game: left, left, right; a pair is worth 1
    value = {made: float(bool(made & 0b011) and bool(made & 0b100)) for made in range(8)}
    assert shapley(3, value, None) == pytest.approx([1 / 6, 1 / 6, 4 / 6])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**31))
def test_shapley_values_are_the_mean_over_all_orders(facts: int, seed: int) -> None:
    source = random.Random(seed)
    value = {made: source.random() for made in sets_of(facts, None)}
    found = shapley(facts, value, None)
    assert found == pytest.approx(by_all_orders(facts, value))
    orders = list(itertools.permutations(range(facts)))
    assert shapley(facts, value, orders) == pytest.approx(found), "all orders are as good as all sets"


def test_more_than_ten_facts_take_thirty_seeded_orders() -> None:
    assert orders_of(10, 30, 0) is None
    assert len(sets_of(10, None)) == 1024
    orders = orders_of(12, 30, 7)
    assert orders is not None
    assert orders == orders_of(12, 30, 7) != orders_of(12, 30, 8)
    assert all(sorted(order) == list(range(12)) for order in orders)
    needed = sets_of(12, orders)
    assert len(needed) <= 30 * 11 + 2
    worth = [at / 10 for at in range(12)]
    value = {made: sum(one for at, one in enumerate(worth) if made >> at & 1) for made in needed}
    assert shapley(12, value, orders) == pytest.approx(worth), "of a sum, each fact is worth its own number"
    crossed = {made: made.bit_count() ** 2 / 144 for made in needed}
    assert sum(shapley(12, crossed, orders)) == pytest.approx(crossed[(1 << 12) - 1])


def test_weights_by_hand() -> None:
    assert weights_of([0.4, 0.2], "softmax", 2.0) == pytest.approx(
        [math.exp(0.2) / (math.exp(0.2) + math.exp(0.1)), math.exp(0.1) / (math.exp(0.2) + math.exp(0.1))]
    )
    assert weights_of([0.3, -0.2, 0.1], "share", 2.0) == pytest.approx([0.75, 0.0, 0.25])
    assert weights_of([0.3, -0.2], "none", 2.0) == [0.3, 0.0]
    assert weights_of([-0.3, -0.2], "share", 2.0) == [0.0, 0.0]
    assert weights_of([5_000.0, 0.0], "softmax", 1.0) == [1.0, 0.0]


def test_a_question_is_worth_the_facts_that_its_reply_makes_known() -> None:
    score = gain("A fever?", "Yes, a fever.", "Abroad?", "In Kenya; no cough.", "<answer>malaria</answer>")
    assert [step.value for step in score.steps] == pytest.approx([0.3, 0.7])
    assert score.value == pytest.approx(1.0)
    assert score.evidence["new_facts"] == [[0], [1, 2], []]


def test_a_fact_pays_once_and_a_repeated_question_nothing() -> None:
    score = gain("A fever?", "A fever.", "A fever?", "A fever!", "And?", "A fever, from Kenya.")
    assert [(step.value, step.label) for step in score.steps] == [
        (pytest.approx(0.3), "gain"),
        (0.0, "idle"),
        (pytest.approx(0.5), "gain"),
    ]


def test_asking_everything_in_one_turn_is_worth_less_than_asking() -> None:
    facts = [f"sign number{at}" for at in range(8)]
    reference = {"facts": facts, "answer": "x", "shapley": [1.0] * 8}
    at_once = gain("Tell me all!", " ".join(f"{fact}." for fact in facts), "Again?", f"{facts[0]}", reference=reference)
    each = itertools.chain.from_iterable(("Well?", fact) for fact in facts)
    assert at_once.value == pytest.approx(3 / 8), "three pay, and the others are spent"
    assert gain(*each, reference=reference).value == pytest.approx(1.0)
    assert gain("Tell me all!", " ".join(facts), reference=reference, max_facts=0).value == pytest.approx(1.0)


def test_what_the_prompt_tells_pays_nothing() -> None:
    told = "I have a fever. What is it?"
    assert gain("A fever?", "A fever, and Kenya.", prompt=told).value == pytest.approx(0.5)


def test_a_reply_is_read_up_to_its_limit() -> None:
    assert gain("A fever?", "x" * (MAX_REPLY - 6) + " fever").value == pytest.approx(0.3)
    assert gain("A fever?", "x" * MAX_REPLY + " fever").value == 0.0


def test_the_heaviest_pay_and_ties_go_by_number() -> None:
    assert paid([0, 1, 2, 3], [0.1, 0.3, 0.3, 0.2], 2) == [1, 2]
    assert paid([0, 1, 2], [0.2, 0.2, 0.2], 2) == [0, 1]
    assert paid([0, 1], [0.1, 0.2], 0) == [0, 1]
    assert newly_known([[True, False], [True, True]], [False, False]) == [[0], [1]]
    assert newly_known([[True, False], [True, True]], [True, False]) == [[], [1]]


class Right:
    """An outcome: 1 for the answer itself."""

    name = "right"
    fingerprint = "right:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(float(one.reference in response_text(one))) for one in samples]


def test_steps_and_value_with_an_outcome_by_hand() -> None:
    texts = ("A fever?", "A fever.", "Tired?", "Yes.", "Abroad?", "Kenya.", "<answer>malaria</answer>")
    score = gain(*texts, outcome=Right())
    # alpha 2, beta 1, gamma 3, form 1
    assert [step.value for step in score.steps] == pytest.approx([(2 + 1) * 0.3, 0.0, (2 + 1) * 0.5, 3 + 1])
    assert [step.label for step in score.steps] == ["gain", "idle", "gain", "answer"]
    assert score.value == pytest.approx((2 + 1) * 0.8 + 3 + 1)
    wrong = gain(*texts[:-1], "<answer>flu</answer>", outcome=Right())
    assert [step.value for step in wrong.steps] == pytest.approx([0.6, 0.0, 1.0, 1.0])


def test_a_question_that_got_a_blank_reply_is_no_answer() -> None:
    score = gain("A fever?", "  ", "Abroad?", "", "<answer>malaria</answer>", outcome=Right())
    assert [(step.value, step.label) for step in score.steps] == [(0.0, "idle"), (0.0, "idle"), (4.0, "answer")]
    assert [step.value for step in gain("A fever?", "  ", "Kenya?", "Kenya.").steps] == pytest.approx([0.0, 0.5])


def test_what_is_told_unasked_is_known_and_pays_nothing() -> None:
    opening = [{"role": "user", "content": "I have a fever."}]
    response = [*opening, *turns("A fever?", "A fever.", "", "Kenya!", "Kenya?", "Kenya.", "Well?", "no cough")]
    (score,) = run(FactGainScorer(**SHARES), Sample(prompt="I feel ill.", response=response, reference=CASE))
    assert score.evidence["new_facts"] == [[0], [], [1], [], [2]]
    assert [step.value for step in score.steps] == pytest.approx([0.0, 0.0, 0.2])
    assert score.value == pytest.approx(0.2)


def test_a_response_that_was_cut_off_loses_its_form_and_no_fact() -> None:
    reference = {"facts": ["fever"], "answer": "malaria", "shapley": [1.0]}
    texts = turns("A fever?", "fever", "<answer>malaria</answer>")
    sample = Sample(prompt="p", response=texts, reference=reference, finish_reason="length")
    checker = TokenF1Verifier(where="response")  # which gives 0 to what was cut off
    (score,) = run(FactGainScorer(checker=checker, threshold=1.0, outcome=Right(), **SHARES), sample)
    assert (score.evidence["gain"], score.value) == (1.0, (2 + 1) * 1.0 + 3 * 1.0 + 0.0)


@pytest.mark.parametrize(
    ("last", "form"),
    [
        ("<answer>malaria</answer>", 1.0),
        ("malaria", 0.0),
        ("<answer>malaria</answer><answer>flu</answer>", 0.0),
        ("<information>x</information><answer>malaria</answer>", 0.0),
    ],
)
def test_the_form_is_one_answer_at_the_end(last: str, form: float) -> None:
    score = gain("A fever?", "No.", last, outcome=Right())
    assert score.value == pytest.approx(3 + form)
    early = gain("<answer>malaria</answer>", "What?", "Well.", outcome=Right())
    assert early.value == pytest.approx(3.0)


class Meaning:
    """A checker: the fact's last word stands in the reply; fails where told to."""

    name = "meaning"
    fingerprint = "meaning:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [
            Score.failed("engine_timeout")
            if "???" in response_text(one)
            else Score.scored(float(one.reference.split()[-1] in response_text(one)))
            for one in samples
        ]


def test_a_checker_may_say_what_is_known() -> None:
    score = gain("Abroad?", "Well, Kenya.", "Sick?", "I cough.", checker=Meaning())
    assert score.evidence["new_facts"] == [[1], [2]]
    assert gain("Abroad?", "", prompt="Kenya and fever", checker=Meaning()).evidence["known_before"] == [0, 1]
    failed = gain("Abroad?", "???", checker=Meaning())
    assert (failed.value, failed.reason) == (None, "engine_timeout")


class Doctor(scripted.ScriptedEngine):
    """The answer's tokens have a mean log-probability of -0.9, and 0.4 more for each of two facts it is told."""

    def __init__(self, fails: str = "(never)") -> None:
        super().__init__()
        self.fails = fails

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        self.asked.extend(prompts)
        return [self._of(scripted.field_of(prompt, "facts"), text) for prompt, text in zip(prompts, texts, strict=True)]

    def _of(self, facts: str, text: str) -> TextLogprobs | Fault:
        if self.fails in facts:
            return scripted.fault("engine_timeout")
        mean = -0.9 + 0.4 * ("fever" in facts) + 0.4 * ("Kenya" in facts)
        return TextLogprobs(tokens=(text, "."), logprobs=(2 * mean, 0.0), cost=Cost(prompt_tokens=1))


def test_a_model_measures_what_facts_are_worth_once_for_all_responses() -> None:
    reference = {"facts": FACTS, "answer": "malaria"}
    engine = Doctor()
    samples = [
        Sample(prompt="I feel ill.", response=turns("A fever?", reply), reference=reference)
        for reply in ("A fever.", "No.", "Kenya, no cough.")
    ]
    scores = run(FactGainScorer(engine=engine, normalize="none"), *samples)
    assert [score.value for score in scores] == pytest.approx([0.4, 0.0, 0.4])
    assert scores[1].evidence["shapley"] == pytest.approx([0.4, 0.4, 0.0])
    assert len(engine.asked) == 8
    assert [score.cost.prompt_tokens for score in scores] == [8, 0, 0]


@pytest.mark.parametrize("logprobs", [(), (math.nan, 0.0), (-math.inf, 0.0)])
def test_probabilities_that_are_none_leave_no_number(logprobs: tuple[float, ...]) -> None:
    class Silent(Doctor):
        def _of(self, facts: str, text: str) -> TextLogprobs | Fault:
            return TextLogprobs(tokens=("a",) * len(logprobs), logprobs=logprobs)

    sample = Sample(prompt="p", response=turns("A fever?", "A fever."), reference={"facts": FACTS, "answer": "malaria"})
    (score,) = run(FactGainScorer(engine=Silent()), sample)
    assert (score.value, score.reason) == (None, "engine_error")


def test_a_model_that_fails_leaves_no_number() -> None:
    sample = Sample(prompt="p", response=turns("A fever?", "A fever."), reference={"facts": FACTS, "answer": "malaria"})
    (score,) = run(FactGainScorer(engine=Doctor(fails="Kenya")), sample)
    assert (score.value, score.reason) == (None, "engine_timeout")


def test_an_outcome_may_be_a_verifier_that_gets_the_answer() -> None:
    score = gain("A fever?", "No.", "<answer>Malaria</answer>", outcome=TokenF1Verifier(where="tag"))
    assert score.parts["outcome"].value == 1.0


@pytest.mark.parametrize("texts", [("A fever?", "A fever."), ("<search>fever</search>", "A fever.")])
def test_flat_text_and_tools_are_read_alike(texts: tuple[str, str]) -> None:
    spans = {"tool_spans": [[len(texts[0]), len("".join(texts))]]}
    flat = Sample(prompt="p", response="".join(texts), reference=CASE, extra=spans)
    assert run(FactGainScorer(**SHARES), flat)[0].value == pytest.approx(0.3)
    forged = replace(flat, extra={"tool_spans": []})
    assert run(FactGainScorer(**SHARES), forged)[0].value == 0.0


def test_no_attack_gets_through_and_no_honest_consultation_is_refused() -> None:
    scorer = FactGainScorer()
    for case in shipped_cases(scorer):
        (score,) = run(replace(scorer, **case.options), case.sample)
        assert score.value == (1.0 if case.honest else 0.0), case.id


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        (None, "no reference"),
        ("malaria", "give"),
        ({"facts": []}, "empty list"),
        ({"facts": ["a"], "gold": 1}, "key 'gold'"),
        ({"facts": [3], "shapley": [1]}, "fact 0 is 3"),
        ({"facts": ["a", {"text": "", "keys": ["b"]}], "shapley": [1, 1]}, "fact 1"),
        ({"facts": [{"text": "a", "keys": ["."]}], "shapley": [1]}, "key '.'"),
        ({"facts": [{"text": "a", "keys": "b"}], "shapley": [1]}, "list of phrases"),
        ({"facts": ["a"], "shapley": [1, 2]}, "one finite number for each"),
        ({"facts": ["a"], "shapley": [float("nan")]}, "one finite number for each"),
        ({"facts": ["a"], "shapley": [1], "values": []}, "the key 'values'"),
        ({"facts": ["a"], "answer": "b"}, "give shapley, or an engine"),
        ({"facts": ["a"] * 65, "shapley": [1] * 65}, "at most 64"),
    ],
)
def test_references_that_cannot_be_used_are_refused(reference: Any, complaint: str) -> None:
    sample = Sample(prompt="p", response=turns("A?", "B."), reference=reference)
    with pytest.raises(ValueError, match=complaint):
        FactGainScorer().validate(sample)
    (score,) = run(FactGainScorer(), sample)
    assert score.reason == ("gold_unparsable" if reference is not None else "bad_sample")


def test_a_prompt_that_is_none_costs_its_own_sample_alone() -> None:
    bad: Any = [{"role": "user", "content": 3}], ["text"]
    samples = [Sample(prompt=one, response=turns("A?", "A fever."), reference=CASE) for one in (*bad, "p")]
    assert [score.reason for score in run(FactGainScorer(), *samples)] == ["bad_sample", "bad_sample", ""]


def test_an_engine_and_an_outcome_need_an_answer() -> None:
    with pytest.raises(ValueError, match="answer"):
        FactGainScorer(engine=Doctor()).validate(Sample(prompt="p", response=[], reference={"facts": ["a"]}))
    valued = {"facts": ["a"], "shapley": [1]}
    with pytest.raises(ValueError, match="no answer"):
        FactGainScorer(outcome=Right()).validate(Sample(prompt="p", response=[], reference=valued))
    assert read_case({"facts": ["a"], "answer": [7, "b"]}).answer_text == "7"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"normalize": "max"}, "normalize='max'"),
        ({"temperature": 0}, "temperature=0"),
        ({"permutations": 0}, "permutations=0"),
        ({"max_facts": -1}, "max_facts=-1"),
        ({"gain_weight": float("inf")}, "gain_weight=inf"),
        ({"checker": "judge"}, "checker='judge'"),
        ({"engine": "nowhere:model"}, "nowhere"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        FactGainScorer(**options)


def test_it_keeps_the_rules() -> None:
    samples = [
        Sample(prompt="p", response=turns(*texts), reference=CASE, extra={"tool_spans": []})
        for texts in (("A?", "A fever."), ("A?", "No."), ("A?", "Kenya.", "<answer>malaria</answer>"))
    ]
    check_scorer(FactGainScorer(outcome=Right()), samples).raise_for_failures()
    measured = [replace(one, reference={"facts": FACTS, "answer": "malaria"}) for one in samples]
    check_scorer(FactGainScorer(engine=Doctor()), measured).raise_for_failures()
