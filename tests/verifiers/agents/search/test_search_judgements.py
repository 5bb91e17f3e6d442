"""ReSeek's two tables, and what its released code pays for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from adjudge import check_scorer, load
from adjudge.protocol import Cost, Sample, Score
from adjudge.verifiers.agents.search.judgements import SearchJudgementsScorer

YES, NO = "<judge>Yes</judge>", "<judge>no</judge>"
ASK = "<search>a</search>"
GOOD, BAD = "Herbert was born in Tacoma.", "Bananas ripen."
RIGHT, WRONG = "<answer>Tacoma</answer>", "<answer>Rome</answer>"


def turns(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


def judged(*texts: str, reference: Any = "Tacoma", **options: Any) -> Score:
    sample = Sample(prompt="", response=turns(*texts), reference=reference)
    return asyncio.run(SearchJudgementsScorer(**options).score([sample]))[0]


class Ranker:
    """Says how alike a gold answer and a result are: 0.9 where one holds the other, 0.5 for a question mark."""

    name = "ranker"
    fingerprint = "ranker:1"

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.asked: list[tuple[Any, Any]] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.asked += [(sample.prompt, sample.response) for sample in samples]
        if self.fault:
            return [Score.failed(self.fault) for _ in samples]
        values = [
            0.9 if str(one.prompt) in str(one.response) else 0.5 if one.response == "?" else 0.1 for one in samples
        ]
        return [Score(value=value, cost=Cost(prompt_tokens=7)) for value in values]


@pytest.mark.parametrize(
    ("result", "said", "answer", "by_rule", "reranked"),
    [
        (GOOD, YES, RIGHT, 1.4, 1.1),
        (BAD, YES, RIGHT, 1.4, 1.1),
        (BAD, NO, RIGHT, 1.4, 1.02),
        (GOOD, NO, RIGHT, 0.7, 0.95),
        (GOOD, YES, WRONG, 0.3, -0.025),
        (BAD, YES, WRONG, -0.6, -0.05),
        (BAD, NO, WRONG, 0.3, 0.02),
        (GOOD, NO, WRONG, -0.3, -0.05),
    ],
)
def test_each_case_has_its_published_value(
    result: str, said: str, answer: str, by_rule: float, reranked: float
) -> None:
    texts = (ASK, result, said + answer)
    score = judged(*texts)
    assert score.value == pytest.approx(by_rule)
    assert judged(*texts, relevance=Ranker()).value == pytest.approx(reranked)
    (step,) = score.steps
    text = ASK + "\n" + said + answer
    assert text[step.start : step.end] == said


def test_a_result_at_the_threshold_is_relevant_and_any_accepted_answer_will_do() -> None:
    texts = (ASK, "?", NO + WRONG)
    assert judged(*texts, relevance=Ranker()).value == pytest.approx(-0.05)
    assert judged(*texts, relevance=Ranker(), threshold=0.6).value == pytest.approx(0.02)
    ranker = Ranker()
    assert judged(ASK, GOOD, NO + WRONG, reference=["Seattle", "Tacoma"], relevance=ranker).value == pytest.approx(
        -0.05
    )
    assert ranker.asked == [("Seattle", GOOD), ("Tacoma", GOOD)]


def test_released_code_takes_no_answer_of_the_re_ranker_for_no_relevance() -> None:
    score = judged(ASK, GOOD, YES + WRONG, relevance=Ranker("engine_unavailable"))
    assert (score.status, score.reason) == ("failed", "engine_unavailable")
    spared = judged(ASK, GOOD, YES + RIGHT, relevance=Ranker("engine_unavailable"))
    assert spared.value == pytest.approx(1.1)


def test_a_result_that_came_twice_is_asked_about_and_paid_for_once() -> None:
    ranker = Ranker()
    score = judged(ASK, BAD, f"{NO}{ASK}", BAD, NO + WRONG, relevance=ranker)
    assert (len(ranker.asked), score.cost.prompt_tokens) == (1, 7)


def test_released_code_asks_the_re_ranker_about_the_first_accepted_answer_alone() -> None:
    score = judged(ASK, GOOD, NO + WRONG, reference=["Seattle", "Tacoma"], relevance=Ranker())
    assert score.steps[0].label == "no_relevant"


def test_released_code_finds_the_answer_in_the_middle_of_a_word() -> None:
    assert judged(ASK, "He said so.", YES + WRONG, reference="Ai").value == pytest.approx(-0.6)


def test_released_code_lets_one_judgement_pay_for_every_result_before_it() -> None:
    assert judged(ASK, BAD, ASK, "Pears too.", NO + WRONG).value == pytest.approx(0.3)


def test_judgements_without_a_new_result_earn_nothing() -> None:
    assert judged(YES * 50 + RIGHT).value == 1.0
    assert judged(ASK, BAD, NO * 50 + WRONG).value == pytest.approx(0.3)
    assert judged(ASK, BAD, YES + NO + WRONG).value == 0.0
    assert judged(ASK, BAD, f"{NO}{ASK}", BAD, NO + WRONG).value == pytest.approx(0.3)
    assert judged(ASK, BAD, f"{NO}{ASK}", BAD, YES + WRONG).value == pytest.approx(0.3 - 0.6)


def test_released_code_reads_results_that_the_model_wrote() -> None:
    assert judged(f"{ASK}<information>{GOOD}</information>{YES}{WRONG}").value == 0.0


def test_a_judgement_of_what_a_program_printed_earns_nothing() -> None:
    call = '<tool_call>{"name": "python", "arguments": {"code": "print(fact)"}}</tool_call>'
    assert judged(call, GOOD, YES + WRONG).steps[0].label == "no_result"


def test_released_code_spares_who_does_not_answer() -> None:
    assert judged(ASK, BAD, YES).value == pytest.approx(-0.6)
    assert judged(ASK, BAD, NO).value == 0.0


def test_searching_for_nothing_to_say_no_pays_only_so_often() -> None:
    texts = [part for at in range(40) for part in (f"{NO if at else ''}{ASK}", f"Fruit number {at}.")]
    least = judged(RIGHT).value
    wrong = judged(*texts, WRONG).value
    assert wrong == pytest.approx(3 * 0.3)
    assert wrong is not None
    assert least is not None
    assert wrong < least
    assert judged(*texts, WRONG, max_paid=10).value == pytest.approx(10 * 0.3)


def test_many_answers_are_none_or_a_quarter_as_published() -> None:
    assert judged(WRONG + RIGHT).reason == "several_answers"
    assert judged(WRONG + RIGHT, several="last").value == 1.0
    assert judged(WRONG + RIGHT * 9, several="last").value == 1.0
    assert judged(WRONG + RIGHT * 10, several="last").value == 0.25
    assert judged(RIGHT * 11).value == 1.0


def test_a_yes_may_be_looked_at_even_where_the_answer_is_right() -> None:
    assert judged(ASK, BAD, YES + RIGHT, trust_yes=False).value == pytest.approx(0.4)
    assert judged(ASK, GOOD, YES + RIGHT, trust_yes=False).value == pytest.approx(1.4)
    assert judged(ASK, BAD, YES + WRONG, values={"yes_irrelevant": -1.0}).value == -1.0


@pytest.mark.parametrize(
    "options",
    [
        {"values": {"maybe": 1.0}},
        {"values": {"no_relevant": "x"}},
        {"values": 3},
        {"max_paid": -1},
        {"relevance": 3},
        {"several": "all"},
        {"form": {"judge": ""}},
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="search_judgements"):
        SearchJudgementsScorer(**options)


def test_a_part_is_no_scorer_of_groups_and_a_spec_names_known_options() -> None:
    groups = Ranker()
    groups.groupwise = True  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="search_judgements option relevance"):
        SearchJudgementsScorer(relevance=groups)
    with pytest.raises(ValueError, match="search_judgements has no option 'relevnce'"):
        load({"search_judgements": {"relevnce": "token_f1"}})
    assert load({"search_judgements": {"relevance": "token_f1"}}).fingerprint != load("search_judgements").fingerprint


@pytest.mark.parametrize("reference", [3, [], "the", {"document": "x"}, '{"answer": "Tacoma"}'])
def test_a_bad_reference_is_unparsable(reference: Any) -> None:
    assert judged(WRONG, reference=reference).reason == "gold_unparsable"
    with pytest.raises(ValueError, match="search_judgements"):
        SearchJudgementsScorer().validate(Sample(prompt="", response=turns("x"), reference=reference))


def test_the_scorer_conforms() -> None:
    samples = [
        Sample(prompt="q", response=turns(*texts), reference="Tacoma", extra={"tool_spans": []})
        for texts in ((ASK, GOOD, YES + RIGHT), (WRONG,), ("",))
    ]
    check_scorer(SearchJudgementsScorer(relevance=Ranker()), samples).raise_for_failures()
