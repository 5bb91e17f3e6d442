"""BAPO's rule by hand: forms, token F1, the bonus of a group and its two stages."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer, load
from adjudge.protocol import Sample, Score
from adjudge.verifiers.agents.abstention.bapo import BapoScorer

IDK = "I don't know"
GOLD = "Marie Curie"


def boxed(answer: str) -> str:
    return f"<think>hm</think><answer>It is \\boxed{{{answer}}}.</answer>"


def member(response: Any, gold: Any = GOLD, group: str = "g", **extra: Any) -> Sample:
    return Sample(prompt="q", response=response, reference=gold, group=group, extra={"tool_spans": [], **extra})


def scored(responses: Sequence[Any], *, extra: Any = None, **options: Any) -> list[Score]:
    samples = [member(response, **(extra or {})) for response in responses]
    return asyncio.run(BapoScorer(**{"stage": "always", **options}).score(samples))


def values(answers: Sequence[str], **options: Any) -> list[float | None]:
    return [score.value for score in scored([boxed(answer) for answer in answers], **options)]


def test_the_reward_of_an_answer_by_hand() -> None:
    # "Curie" of "Marie Curie": precision 1, recall 1/2
    assert values([GOLD, "Curie", "the Marie Curie!", "Pierre"]) == [1.0, pytest.approx(2 / 3), 1.0, 0.0]
    assert [score.value for score in scored([GOLD, "", "<answer>Marie Curie</answer>"])] == [-1.0, -1.0, -1.0]


def test_not_knowing_pays_where_nobody_knows() -> None:
    assert values([IDK, "Pierre", "Paul"]) == [0.5, 0.0, 0.0]
    assert values([IDK, "Curie", "Paul"]) == [0.0, pytest.approx(2 / 3), 0.0]
    assert values([IDK, IDK]) == [0.5, 0.5]
    assert [score.value for score in scored([boxed(IDK), "no form", f"<answer>{IDK}</answer>"])] == [0.5, -1.0, -1.0]
    assert values([IDK, "Pierre"], bonus=0.25) == [0.25, 0.0]
    assert values([IDK, "Pierre"], stage="never") == [0.0, 0.0]
    assert values([IDK, "Curie Pierre Paul Joe Jim"], right_above=0.5)[0] == 0.5


def test_groups_do_not_see_each_other() -> None:
    rows = [member(boxed(IDK), group="a"), member(boxed(GOLD), group="b"), member(boxed("x"), group="a")]
    found = asyncio.run(BapoScorer(stage="always").score(rows))
    assert [score.value for score in found] == [0.5, 1.0, 0.0]


@pytest.mark.parametrize(("rate", "value"), [(0.0, 0.5), (0.049, 0.5), (0.05, 0.0), (1, 0.0)])
def test_the_early_stage_pays_while_few_of_the_batch_abstain(rate: float, value: float) -> None:
    assert values([IDK, "x"], stage="early", rate=rate)[0] == value
    assert values([IDK, "x"], stage="early", extra={"abstention_rate": rate})[0] == value
    assert values([IDK, "x"], extra={"abstention_rate": rate, "bapo_stage": "early"})[0] == value
    assert values([IDK, "x"], stage="late", rate=rate)[0] == 0.5  # the rate is the early stage's alone


def test_the_late_stage_pays_nothing_while_a_group_explores() -> None:
    three, four = ["a1", "b1", "c1"], ["a1", "b1", "c1", "d1"]
    assert values([IDK, *three], stage="late")[0] == 0.5
    assert values([IDK, *four], stage="late")[0] == 0.0
    assert values([IDK, *four], stage="early", rate=0.0)[0] == 0.5
    assert values([IDK, *three, "A1!", "the a1"], stage="late")[0] == 0.5  # one answer in three spellings
    assert values([IDK, *four], stage="late", max_distinct=4)[0] == 0.5


def test_released_fault_a_hedge_is_no_abstention() -> None:
    # The release looks for the words inside the answer: a wrong guess beside them earned the bonus.
    assert values(["I don't know, maybe Pierre", "Paul"]) == [0.0, 0.0]
    assert values(["I don't know, Marie Curie", IDK])[1] == 0.0
    beside = f"<think>x</think><answer>{IDK}, but \\boxed{{Pierre}}</answer>"
    assert [score.value for score in scored([beside, boxed("Paul")])] == [0.0, 0.0]


def test_released_fault_malformed_answers_are_not_counted_as_wrong_ones() -> None:
    # There they count as one more different answer, "", so three wrong ones and one malformed end the bonus.
    responses = [boxed(IDK), *map(boxed, ["a1", "b1", "c1"]), "no form"]
    assert scored(responses, stage="late")[0].value == 0.5


def test_released_fault_a_page_with_a_tag_does_not_break_the_form() -> None:
    page = {"role": "tool", "content": "see <answer>x</answer> and <think>"}
    turns = [{"role": "assistant", "content": "<think>a</think><search>who</search>"}, page]
    assert scored([[*turns, {"role": "assistant", "content": boxed(GOLD)}]])[0].value == 1.0
    head, tool = "<think>a</think><search>who</search>", "<result>see <answer>x</answer></result>"
    flat = member(head + tool + boxed(GOLD), tool_spans=[[len(head), len(head) + len(tool)]])
    assert asyncio.run(BapoScorer(stage="always").score([flat]))[0].value == 1.0


def test_released_fault_groups_go_by_name_and_not_by_eight() -> None:
    nine = [member(boxed("x"), group="a") for _ in range(8)] + [member(boxed(IDK), group="a")]
    other = [member(boxed(GOLD), group="b") for _ in range(7)]
    found = asyncio.run(BapoScorer(stage="always").score([*nine, *other]))
    assert found[8].value == 0.5


def test_yes_and_no_agree_with_themselves_alone() -> None:
    def value(answer: str, gold: str) -> float | None:
        return asyncio.run(BapoScorer(stage="always").score([member(boxed(answer), gold)]))[0].value

    assert [value("Yes.", "yes"), value("yes", "no"), value("yes or no", "no"), value("no", "no idea")] == [1, 0, 0, 0]
    assert value("yes we can", "yes they can") == pytest.approx(2 / 3)


def test_a_response_without_a_score_may_be_right_so_nobody_is_paid_for_not_knowing() -> None:
    group = [member(boxed(IDK)), member(boxed("x"), gold="the")]
    found = asyncio.run(BapoScorer(stage="always").score(group))
    assert [score.reason for score in found] == ["part_failed", "gold_unparsable"]
    right = asyncio.run(BapoScorer(stage="always").score([*group, member(boxed(GOLD))]))
    assert right[0].value == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "<answer>\\boxed{Marie Curie}</answer>",
        "<think>x<answer>\\boxed{Marie Curie}</answer>",
        "<think>x</think><answer>Marie Curie</answer>",
        "<think>x</think><answer>\\boxed{Marie Curie</answer>",
        "<think>x</think><answer>\\boxed{Marie Curie}",
        "<think>x</think></answer>\\boxed{Marie Curie}<answer>",
        boxed(GOLD) + boxed(GOLD),
        f"<think>{boxed(GOLD)}</think>",
        "<think>x</think><search>who</search>" + boxed(GOLD)[16:],
        "<think>x</think><search>who</search><result>Marie Curie</result>" + boxed(GOLD)[16:],
        "<think>x</think><search>who" + boxed(GOLD)[16:],
        boxed(" "),
        "<think><think>x</think></think>" + boxed(GOLD)[16:],
        [{"role": "tool", "content": boxed(GOLD)}],
        [
            {"role": "assistant", "content": "<search>who</search><result>Marie Curie</result>"},
            {"role": "tool", "content": "nothing found"},
            {"role": "assistant", "content": boxed(GOLD)},
        ],
        [],
    ],
)
def test_what_is_malformed(response: Any) -> None:
    score = scored([response])[0]
    assert (score.value, score.reason) == (-1.0, "bad_format")


def test_the_tags_of_results_may_be_trusted_as_released() -> None:
    text = "<think>x</think><search>who</search><result>Marie Curie</result>" + boxed(GOLD)
    assert scored([text])[0].value == -1.0
    assert scored([text], tool_text="tags")[0].value == 1.0


def test_a_plain_response_needs_no_tags() -> None:
    responses = [GOLD, f"<think>x</think>{IDK}", "<think>x", "", "\\boxed{Pierre}"]
    found = [score.value for score in scored(responses, form="plain")]
    assert found == [1.0, 0.0, -1.0, -1.0, 0.0]
    assert [score.value for score in scored([IDK, "x"], form="plain")] == [0.5, 0.0]
    unboxed = "<think>x</think><answer>Marie Curie</answer>"
    assert scored([unboxed], boxed=False)[0].value == 1.0


def test_a_group_that_is_not_whole_is_not_judged_where_it_matters() -> None:
    def found(answers: Sequence[str], **options: Any) -> Score:
        return scored([boxed(one) for one in answers], extra={"group_size": 3}, **options)[0]

    assert found([IDK, "x"]).reason == "cohort_incomplete"
    assert found([IDK, "x", "y"]).value == 0.5
    assert found([IDK, GOLD]).value == 0.0  # whatever the third says
    assert found([GOLD, "x"]).value == 1.0
    assert found([IDK, "x"], stage="never").value == 0.0
    assert scored([boxed(IDK)])[0].reason == "group_too_small"
    assert scored([boxed(GOLD)])[0].value == 1.0


def test_a_gold_that_abstains_or_says_nothing_is_no_gold() -> None:
    for gold in ("I don't know", ["x", "unknown"], "the"):
        score = asyncio.run(BapoScorer(stage="always").score([member("", gold)]))[0]
        assert score.reason == "gold_unparsable"


@pytest.mark.parametrize(
    ("broken", "options"),
    [
        ({"group": ""}, {}),
        ({"reference": None}, {}),
        ({"reference": 3}, {}),
        ({"reference": []}, {}),
        ({"extra": {"tool_spans": []}}, {"stage": "early"}),
        ({"extra": {"tool_spans": [], "abstention_rate": 2}}, {"stage": "early"}),
        ({"extra": {"tool_spans": [], "abstention_rate": "x"}}, {}),
        ({"extra": {"tool_spans": [], "bapo_stage": "middle"}}, {}),
        ({"extra": {"tool_spans": [], "bapo_stage": ["early"]}}, {}),
        ({"extra": {"tool_spans": [], "group_size": 0}}, {}),
        ({"extra": {}}, {}),
        ({"extra": {"tool_spans": 3}}, {}),
    ],
)
def test_what_a_sample_lacks_is_said_before_any_work(broken: dict[str, Any], options: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "prompt": "q",
        "response": "x",
        "reference": GOLD,
        "group": "g",
        "extra": {"tool_spans": []},
        **broken,
    }
    one = Sample(**fields)
    scorer = BapoScorer(**{"stage": "always", **options})
    with pytest.raises(ValueError, match="bapo"):
        scorer.validate(one)
    if "group" not in broken:
        assert asyncio.run(scorer.score([one]))[0].status == "failed"


@pytest.mark.parametrize(
    "options",
    [
        {"stage": "x"},
        {"rate": 2},
        {"rate": True},
        {"ratio": -1},
        {"bonus": 0},
        {"bonus": math.nan},
        {"right_above": 2},
        {"max_distinct": 1.5},
        {"form": "x"},
        {"boxed": 1},
        {"tool_text": "x"},
        {"language": "de"},
        {"languages": ()},
        {"sentences": ("?",)},
        {"truncated": "x"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"bapo|token_f1: "):
        BapoScorer(**options)


def test_a_batch_is_counted_and_a_hopeless_group_drawn_anew() -> None:
    scorer = BapoScorer(stage="always")
    samples = [member(text) for text in (boxed(IDK), boxed("x"), IDK, boxed(GOLD))]
    assert scorer.rate_of(samples) == 0.25  # the malformed one does not count
    assert scorer.rate_of([]) == 0.0
    broken = [member("x", gold="")]
    groups: Any = (samples, samples[:1], samples[1:3], samples[1:2] + broken, [])
    assert [scorer.worth_resampling(group) for group in groups] == [False, False, True, False, False]


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "<search>", "<result>", "</result>", "\\boxed{", "}", IDK]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, "\ud800", "Curie"])), st.sampled_from(["search", "plain"]))
def test_no_text_raises(pieces: list[str], form: Any) -> None:
    for score in scored(["".join(pieces), boxed("x")], form=form):
        assert score.status == "scored"
        assert score.value in (-1.0, 0.0, 0.5) or 0 < (score.value or 0) <= 1


@pytest.mark.parametrize("piece", [*PIECES, "x "])
def test_a_megabyte_of_one_thing_is_malformed(piece: str) -> None:
    assert scored([piece * (1_000_000 // len(piece))])[0].value == -1.0


@pytest.mark.parametrize(("stale", "value"), [(0, 0.0), (4, 0.0), (5, 0.5), (9, 0.5)])
def test_five_validations_in_a_row_without_improvement_end_the_early_stage(stale: int, value: float) -> None:
    """The early stage pays nothing in a batch that abstains often; the late one does, in a group that knows nothing."""
    often = {"abstention_rate": 0.5, "stale_evals": stale}
    assert values([IDK, "x"], stage="early", extra=often)[0] == value


@pytest.mark.parametrize("stale", [-1, True, 1.5, "5"])
def test_validations_are_counted(stale: Any) -> None:
    with pytest.raises(ValueError, match=r"stale_evals.*whole number"):
        BapoScorer().validate(member(boxed(IDK), stale_evals=stale, abstention_rate=0.0))


def test_the_fingerprint_follows_the_options_and_the_recipe_is_the_release() -> None:
    given: list[dict[str, Any]] = [{}, {"ratio": 0.1}, {"sentences": ("no idea",)}]
    assert len({BapoScorer(**options).fingerprint for options in given}) == 3
    recipe = load("bapo")
    assert isinstance(recipe, BapoScorer)
    assert (recipe.stage, recipe.ratio, recipe.bonus, recipe.max_distinct) == ("early", 0.05, 0.5, 3)


def test_the_scorer_keeps_the_rules_of_the_protocol() -> None:
    samples = [member(boxed(text), group=group) for group in "ab" for text in (IDK, "x", GOLD if group == "a" else "y")]
    check_scorer(BapoScorer(stage="late"), samples).raise_for_failures()
