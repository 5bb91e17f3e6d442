"""Lists of findings: reading, matching, diversity, the mix, and that padding and copies do not pay."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import TfidfVectorizer

from adjudge.protocol import Sample, Score, response_text
from adjudge.scoring.attacks import shipped_cases
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.agents.search.findings import FindingsScorer, findings_of, query_diversity, unlikeness
from adjudge.verifiers.agents.search.signals import finding_f1, likeness, matched, spread, words_of
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

GOLD = ["red green", "blue white", "black grey pink brown"]


def answer(*lines: str) -> list[dict[str, Any]]:
    listed = "\n".join(f"- {line}" for line in lines)
    return [{"role": "assistant", "content": f"<answer>{listed}</answer>"}]


def run(scorer: FindingsScorer, *responses: Any, **more: Any) -> list[Score]:
    samples = [Sample(prompt="Colours?", response=one, reference={"findings": GOLD}, **more) for one in responses]
    return asyncio.run(scorer.score(samples))


def test_lines_behind_bullets_are_findings() -> None:
    text = "Found:\n- one\n  * two \n3. three\n\n-four\n- \n10) five"
    found, others = findings_of(text, 5)
    assert ([one.text for one in found], others) == (["one", "two", "three", "five"], 3)
    assert [text[one.start - 5 : one.end - 5] for one in found] == ["- one", "  * two", "3. three", "10) five"]


def test_a_hyphen_inside_a_finding_does_not_part_it() -> None:
    """The released code of O2-Searcher splits the answer at every hyphen."""
    found, _ = findings_of("- Self-report studies of 10-15 year-olds - few of them")
    assert [one.text for one in found] == ["Self-report studies of 10-15 year-olds - few of them"]


def test_the_most_pairs_are_found_where_the_released_code_loses_one() -> None:
    """It keeps for each reference the most similar finding alone: here the first for both, and one pair is left."""
    assert matched([[0.9, 0.9], [0.8, 0.8]], 0.75) == [(0, 0), (1, 1)]


def test_matching_is_one_to_one_and_deterministic() -> None:
    assert matched([[0.9, 0.8], [0.9, 0.1]], 0.75) == [(0, 1), (1, 0)], "the first gives way"
    assert matched([[0.9], [0.99]], 0.75) == [(0, 0)], "the first that may have it keeps it"
    assert matched([[0.7]], 0.75) == []
    assert matched([[0.75]], 0.75) == [(0, 0)]
    assert matched([], 0.5) == []


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 6), st.integers(1, 6), st.integers(0, 2**31))
def test_matching_finds_as_many_pairs_as_the_assignment_of_scipy(rows: int, columns: int, seed: int) -> None:
    allowed = np.random.default_rng(seed).random((rows, columns)) < 0.4
    found = matched(allowed.astype(float).tolist(), 0.5)
    assert all(allowed[row, column] for row, column in found)
    assert len({row for row, _ in found}) == len({column for _, column in found}) == len(found)
    best = allowed[linear_sum_assignment(allowed, maximize=True)].sum() if rows else 0
    assert len(found) == best


def test_a_long_chain_of_matches_is_followed() -> None:
    size = 1_500  # each row but the last may have two columns, and the last takes the first one's
    rows = [[0.0] * size for _ in range(size)]
    for at in range(size - 1):
        rows[at][at], rows[at][at + 1] = 0.9, 0.8
    rows[-1][0] = 0.9
    assert len(matched(rows, 0.5)) == size


def test_likeness_of_words_by_hand() -> None:
    one, other = words_of("The red, red car"), words_of("the car")
    assert one == {"the": 1, "red": 2, "car": 1}
    assert likeness(one, other, "token_f1") == pytest.approx(2 * 2 / (4 + 2))
    assert likeness(one, other, "cosine") == pytest.approx(2 / (6**0.5 * 2**0.5))
    assert likeness(one, words_of("..."), "cosine") == likeness(one, words_of(""), "token_f1") == 0.0
    assert words_of("红色") == {"红": 1, "色": 1}


def test_diversity_is_one_less_the_mean_likeness() -> None:
    assert spread([0.5, 1.0, 0.0]) == 0.5
    assert spread([]) == 0.0


def test_f1_of_pairs() -> None:
    assert finding_f1(2, 4, 3) == pytest.approx((0.5, 2 / 3, 4 / 7))
    assert finding_f1(0, 4, 3) == (0.0, 0.0, 0.0)


def test_the_mix_by_hand() -> None:
    # two of three are found and one finding is none: F1 = 2*2/(3+3); the two share no word: diversity 1
    (score,) = run(FindingsScorer(), answer("green red", "white blue", "a yellow one"))
    assert score.evidence["factual"] == pytest.approx(2 / 3)
    assert score.value == pytest.approx((1 * 1 + 1 * 2 / 3 + 0.5 * 1) / 2.5)
    assert [step.label for step in score.steps] == ["matched", "matched", "unmatched"]
    (released,) = run(FindingsScorer(scale=0.5), answer("green red", "white blue", "a yellow one"))
    assert released.value == pytest.approx(0.5 * (1 + 2 / 3 + 0.5) / 2.5)


def released_unlikeness(texts: list[str]) -> float:
    """calculate_diversity_reward of rewards_format.py, Acade-Mate/O2-Searcher at 0e77e9a, by the same package."""
    pairs = np.triu_indices(len(texts), k=1)
    matrix = TfidfVectorizer().fit_transform(texts)
    similar = (matrix * matrix.T).toarray()[pairs]
    score = 0.5 * similar.max() + 0.3 * (2 * (similar > 0.6).sum() / len(similar)) + 0.2 * similar.mean()
    return float(max(0, 1 - score**1.5))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("red green blue white a pink".split()), min_size=2, max_size=4), min_size=2))
def test_the_released_unlikeness_is_that_of_its_package(lists: list[list[str]]) -> None:
    texts = [" ".join([*words, "tin"]) for words in lists]
    assert unlikeness(texts) == pytest.approx(released_unlikeness(texts))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 20), st.integers(0, 2**31), st.sampled_from([0.0, 0.99]))
def test_the_released_diversity_of_queries(count: int, seed: int, least: float) -> None:
    """calculate_independence of dv_reward.py, unrounded; a query has at + 1 words, and two tokens round them."""
    random = np.random.default_rng(seed)
    matrix = least + (1 - least) * random.random((count, count))
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    weight = 0.5 if count <= 5 else 0.5 + (count - 5) * 0.05 if count <= 15 else 0.9 - (count - 15) * 0.02
    each = [
        np.mean([1 - matrix[at, other] for other in range(count) if other != at]) * weight * min(1, (at + 3) / 8)
        for at in range(count)
    ]
    wanted = 0.5 * 0.2 ** (count - 1) if (matrix > 0.98).all() else np.mean(each)
    queries = [" ".join(["tin"] * (at + 1)) for at in range(count)]
    similar = [float(matrix[pair]) for pair in itertools.combinations(range(count), 2)]
    assert query_diversity(queries, similar) == pytest.approx(wanted)


def test_few_queries_and_the_same_ones() -> None:
    assert query_diversity([], []) == query_diversity(["red"], []) == 0.0
    # "a b c d e f" twice: each is 1/2 far from the others in the mean, and counts once; the third is 1 far
    texts = ["b c d e f g", "b c d e f g", "h i j k l m"]
    assert query_diversity(texts, [1.0, 0.0, 0.0]) == pytest.approx(0.5 * (0.5 + 1.0) / 2)


def test_the_released_form_by_hand() -> None:
    scorer = FindingsScorer(lines="released", weights=(1, 0, 0), gated=False)
    texts = ["red green", "blue white", "green tin"]
    said = "<answer>So:\n" + "\n".join(f"- {one}" for one in texts) + "</answer>"
    whole, twice, other = run(scorer, answer(*texts), answer(*texts, *texts), [{"role": "assistant", "content": said}])
    wanted = (0.5 * 1 + 0.3 * 3 / 10 + 0.5 * released_unlikeness(texts)) / 1.3
    assert whole.value == pytest.approx(wanted)
    assert other.value == pytest.approx(wanted - 0.5 * (1 / 4) / 1.3)
    assert twice.value == 0.0


def test_format_by_share_is_less_what_is_repeated() -> None:
    scorer = FindingsScorer(lines="share", weights=(1, 0, 0))
    response = [{"role": "assistant", "content": "<answer>So:\n- red green\n- blue white\n- black\n</answer>"}]
    (score,) = run(scorer, response)
    assert score.value == pytest.approx(3 / 4)
    (repeated,) = run(scorer, answer("red green", "Red  Green", "blue white", "black", "pink", "grey", "tan", "gold"))
    assert repeated.value == pytest.approx(1 - 3 * 1 / 8)
    (whole, twice) = run(replace(scorer, lines="all"), response, answer("red green", "Red  green"))
    assert whole.value == twice.value == 0.0


@pytest.mark.parametrize("diverse", ["findings", "queries"])
@pytest.mark.parametrize("rule", ["token_f1", "cosine"])
@pytest.mark.parametrize("base", [["red green"], ["red green", "blue white"], GOLD])
def test_nothing_that_is_added_to_right_findings_pays(base: list[str], rule: Any, diverse: Any) -> None:
    scorer = FindingsScorer(rule=rule, diverse=diverse)
    more = [
        ["yellow"],
        ["yellow", "orange tin"],
        base,
        ["green red indeed"],
        ["tin"] * 9,
        ["mars", "tin", "sea", "oak"],
    ]
    (best, *padded) = run(scorer, answer(*base), *(answer(*base, *added) for added in more))
    assert best.value is not None
    for score, added in zip(padded, more, strict=True):
        assert score.value is not None
        assert score.value < best.value, added


def test_one_reference_finding_in_many_words_is_found_once() -> None:
    said = ["red green", "green red", "green and red", "the red green", "so red green"]
    (one, many) = run(FindingsScorer(), answer(said[0]), answer(*said))
    assert many.evidence["pairs"] == [[0, 0]]
    assert (one.evidence["factual"], many.evidence["factual"]) == (0.5, 0.25)


def test_a_reference_finding_that_stands_twice_counts_once() -> None:
    gold = ["red green", "Red  green", "blue white"]
    once, copied = (
        Sample(prompt="p", response=answer(*lines), reference=gold)
        for lines in (["red green", "blue white"], ["red green", "red green", "blue white"])
    )
    scores = asyncio.run(FindingsScorer().score([once, copied]))
    assert [score.evidence["factual"] for score in scores] == pytest.approx([1.0, 4 / 5])


def test_format_and_diversity_count_only_where_something_is_right() -> None:
    wrong = answer("mars", "tin", "oak")
    (gated,) = run(FindingsScorer(), wrong)
    assert (gated.value, gated.reason) == (0.0, "wrong")
    (released,) = run(FindingsScorer(gated=False), wrong)
    assert released.value == pytest.approx(1 / 2.5), "the format alone; no finding was matched, so none is diverse"


def test_diversity_of_queries_is_of_those_that_a_tool_answered() -> None:
    def asks(*queries: str, reply: str = "something") -> list[dict[str, Any]]:
        turns = [
            ({"role": "assistant", "content": f"<search>{one}</search>"}, {"role": "tool", "content": reply})
            for one in queries
        ]
        return [*itertools.chain.from_iterable(turns), *answer(*GOLD)]

    responses = [asks("red car", "red boat"), asks("red car", "oak"), asks("red car"), asks("a", "b", reply=" ")]
    scores = run(FindingsScorer(diverse="queries"), *responses)
    assert [score.evidence["diversity"] for score in scores] == [0.5, 1.0, 0.0, 0.0]


def test_the_first_twenty_queries_are_compared() -> None:
    turns = [
        ({"role": "assistant", "content": f"<search>{word}</search>"}, {"role": "tool", "content": "something"})
        for word in ["same"] * 20 + ["other", "third"]
    ]
    response = [*itertools.chain.from_iterable(turns), *answer(*GOLD)]
    assert run(FindingsScorer(diverse="queries"), response)[0].evidence["diversity"] == 0.0


def test_a_list_that_was_cut_off_is_worth_nothing() -> None:
    (score,) = run(FindingsScorer(), answer(*GOLD), finish_reason="length")
    assert (score.value, score.reason) == (0.0, "truncated")


class Judge:
    """A similarity: 1 where both have the same first letter; fails where told to."""

    name = "letters"
    fingerprint = "letters:1"

    def __init__(self, fails: str = "?") -> None:
        self.fails = fails
        self.seen: list[tuple[str, Any]] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.seen += [(response_text(one), one.reference) for one in samples]
        return [
            Score.failed("engine_unavailable")
            if self.fails in response_text(one)
            else Score.scored(float(response_text(one)[0] == one.reference[0]))
            for one in samples
        ]


def test_a_scorer_may_say_what_is_alike() -> None:
    judge = Judge()
    (score,) = run(FindingsScorer(similarity=judge), answer("rot", "gelb"))
    assert judge.seen == [(one, gold) for one in ("rot", "gelb") for gold in GOLD]
    assert score.evidence["pairs"] == [[0, 0]]
    (failed, fine) = run(FindingsScorer(similarity=Judge("?")), answer("rot?", "gelb"), answer("rot"))
    assert (failed.value, failed.reason) == (None, "engine_unavailable")
    assert fine.value == pytest.approx((1 + 0.5) / 2.5)
    verifier = FindingsScorer(similarity=TokenF1Verifier(where="response"))
    assert run(verifier, answer("red green"))[0].value == run(FindingsScorer(), answer("red green"))[0].value


def test_no_attack_gets_through_and_no_honest_list_is_refused() -> None:
    scorer = FindingsScorer()
    for case in shipped_cases(scorer):
        (score,) = asyncio.run(replace(scorer, **case.options).score([case.sample]))
        assert score.value == (1.0 if case.honest else 0.0), case.id


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"rule": "bleu"}, "rule='bleu'"),
        ({"threshold": 0}, "threshold=0"),
        ({"threshold": float("nan")}, "threshold=nan"),
        ({"weights": (1, 1)}, "three numbers"),
        ({"weights": (0, 0, 0)}, "three numbers"),
        ({"weights": (1, -1, 1)}, "three numbers"),
        ({"weights": "111"}, "three numbers"),
        ({"max_findings": 0}, "max_findings=0"),
        ({"similarity": "token_f1"}, "similarity='token_f1'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        FindingsScorer(**options)


@pytest.mark.parametrize(
    "reference", [None, "a b", 3, [], {"findings": []}, {"finding": ["a b"]}, ["a b", 3], ["a b", "..."], ["a"] * 101]
)
def test_references_without_findings_are_refused(reference: Any) -> None:
    sample = Sample(prompt="p", response=answer("a"), reference=reference)
    with pytest.raises(ValueError, match="reference"):
        FindingsScorer().validate(sample)
    (score,) = asyncio.run(FindingsScorer().score([sample]))
    assert score.reason == ("gold_unparsable" if reference is not None else "bad_sample")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("-*1. \n\r\u2028\x0bab\ud800"), max_size=60))
def test_whatever_is_listed_is_read(text: str) -> None:
    found, others = findings_of(text)
    assert len(found) + others <= text.count("\n") + len(text.splitlines()) + 1
    assert all(text[one.start : one.end].endswith(one.text) for one in found)


def test_it_keeps_the_rules() -> None:
    samples = [
        Sample(prompt="p", response=response, reference=GOLD, extra={"tool_spans": []})
        for response in (answer(*GOLD), answer("red green", "tin"), answer("tin"))
    ]
    check_scorer(FindingsScorer(), samples).raise_for_failures()
