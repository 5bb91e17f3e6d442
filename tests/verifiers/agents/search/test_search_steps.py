"""StepSearch's reward: values from the formula by hand, and what its released code gets wrong."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.verifiers.agents.search.signals import holds, keyword_score, similarities
from adjudge.verifiers.agents.search.turns import SearchStepsVerifier

REFERENCE: dict[str, Any] = {
    "answer": "Tacoma",
    "documents": ["alpha beta gamma", "delta epsilon"],
    "keywords": [["Dune author", "who wrote Dune"], ["Herbert birthplace"]],
}


def turns(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


def judged(*texts: str, reference: Any = REFERENCE, prompt: str = "", **options: Any) -> Score:
    return SearchStepsVerifier(**options).verify(Sample(prompt=prompt, response=turns(*texts), reference=reference))


def test_the_value_is_answer_key_words_and_turns() -> None:
    found = ("<search>Dune author</search>", "alpha beta gamma", "<search>Herbert city</search>", "delta epsilon")
    score = judged(*found, "<answer>Tacoma city</answer>")
    assert [step.value for step in score.steps] == pytest.approx([0.5, 0.5])
    # F1 of "tacoma city" is 2 / 3, of "herbert city" with "herbert birthplace" 1 / 2.
    assert score.value == pytest.approx(2 / 3 + 0.618 * (1 + 0.5) / 2 + 1.0)
    assert judged(*found, "<answer>Tacoma</answer>", turns="none", key_weight=0.0).value == 1.0
    text = "\n".join(found[::2])
    assert [text[step.start : step.end] for step in score.steps] == list(found[::2])


def test_a_repeated_document_costs_its_share_whatever_its_blanks() -> None:
    listed = ['[{"title": "A", "text": "alpha beta"}, {"text": "zeta"}]', '[{"title": "a", "text": "Alpha  beta"}]']
    score = judged("<search>x</search>", listed[0], "<search>y</search>", listed[1], "<answer>no</answer>")
    # Both words of the document stand in one gold text of three; n = 3 texts, "alpha" and "beta" in 2 of them.
    common, rare = 1 + math.log(4 / 3), 1 + math.log(4 / 2)
    cosine = 2 * common**2 / (math.sqrt(2 * common**2) * math.sqrt(2 * common**2 + rare**2))
    assert [step.value for step in score.steps] == pytest.approx([cosine / 2, -1.0])
    assert score.evidence["costs"] == [0.0, 1.0]
    free = judged(
        "<search>x</search>", listed[0], "<search>y</search>", listed[1], "<answer>no</answer>", repeat_weight=0
    )
    assert free.value == pytest.approx(cosine / 2)


@settings(max_examples=60, deadline=None)
@given(
    st.text("ab cde.é2_", max_size=30),
    st.lists(st.text("ab cde.é2_", max_size=30).filter(lambda text: len(text.split()) > 1), min_size=1, max_size=4),
)
def test_the_similarity_is_that_of_scikit_learn(document: str, golds: list[str]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    from adjudge.verifiers.agents.search.signals import words

    texts = [" ".join(words(text)) for text in (document, *golds)]
    try:
        rows = TfidfVectorizer().fit_transform(texts)
    except ValueError:  # none of the texts has a word
        assert similarities(document, golds) == [0.0] * len(golds)
        return
    expected = (rows[1:] @ rows[0].T).toarray().ravel()
    assert similarities(document, golds) == pytest.approx(expected.tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (("<search>x</search>", "alpha"), "no_answer"),
        (("<answer>Tacoma</answer> I think",), "bad_format"),
        (("<answer>Tacoma</answer><answer>Rome</answer>",), "several_answers"),
        (("<answer></answer>",), "no_answer"),
        (("<think><answer>Tacoma</answer></think>",), "no_answer"),
    ],
)
def test_a_trajectory_without_one_answer_at_its_end_is_minus_one(texts: tuple[str, ...], reason: str) -> None:
    score = judged(*texts)
    assert (score.value, score.reason) == (-1.0, reason)
    assert [step.value for step in score.steps] == [0.0] * len(score.steps)
    assert judged("<answer>Rome</answer> <answer>Tacoma</answer>", several="last").value == 1.0


def test_released_code_spares_the_repeats_of_who_writes_on_after_the_answer() -> None:
    found = ("<search>x</search>", "alpha beta gamma") * 3
    honest = judged(*found, "<answer>no</answer>")
    for end in ("<answer>no</answer> Done.", "I give up.", "<answer>a</answer><answer>b</answer>"):
        silent = judged(*found, end)
        assert [step.value for step in silent.steps] == [0.0, -1.0, -1.0]
        assert silent.value == -3.0
    assert honest.value == pytest.approx(0.5 - 2.0)


def test_released_code_takes_a_document_at_another_rank_for_a_new_one() -> None:
    pages = [f"Doc {{}}<## Title: {name} ##> text of {name}\n" for name in "ABC"]
    once, turned = (
        "".join(page.format(at) for at, page in enumerate(order, 1)) for order in (pages, pages[1:] + pages[:1])
    )
    score = judged("<search>x</search>", once, "<search>y</search>", turned, "<answer>no</answer>")
    assert score.evidence["costs"] == [0.0, 1.0]


def test_one_search_is_one_query_however_many_lines_it_has() -> None:
    lines = "<search>who wrote Dune\nHerbert birthplace\nTacoma mayor</search>"
    assert judged(lines, "zeta", "<answer>no</answer>").evidence["key_score"] == pytest.approx((2 * 3 / (7 + 3)) / 2)
    asked = {"name": "search", "arguments": {"queries": ["who wrote\nDune", "Herbert birthplace"]}}
    listed = f"<tool_call>{json.dumps(asked)}</tool_call>"
    assert judged(listed, "zeta", "<answer>no</answer>").evidence["key_score"] == 1.0


def test_released_code_lets_a_worse_query_take_the_place_of_a_better_one() -> None:
    groups = [["who wrote dune"], ["herbert birthplace"]]
    better_first = keyword_score(["who wrote Dune", "who wrote that film"], groups)
    assert better_first == keyword_score(["who wrote that film", "who wrote Dune"], groups) == 0.5


def test_a_query_counts_for_one_sub_question() -> None:
    groups = [["alpha beta"], ["alpha gamma"]]
    assert keyword_score(["alpha"], groups) == pytest.approx(2 / 3 / 2)
    assert keyword_score([], groups) == keyword_score(["delta"], groups) == keyword_score(["alpha"], []) == 0.0


def test_words_of_the_prompt_do_not_count_where_that_is_asked() -> None:
    found = ("<search>who wrote Dune</search>", "zeta", "<answer>no</answer>")
    assert judged(*found, prompt="Who wrote Dune?").value == pytest.approx(0.618 / 2)
    ignoring = judged(*found, prompt="Who wrote Dune?", prompt_words="ignore")
    assert ignoring.value == 0.0
    asked = judged("<search>Dune author</search>", *found[1:], prompt="Who wrote Dune?", prompt_words="ignore")
    assert asked.evidence["key_score"] == 0.5


def test_released_code_reads_results_that_the_model_wrote() -> None:
    forged = "<search>Dune author</search><information>alpha beta gamma delta epsilon</information><answer>no</answer>"
    sample = Sample(prompt="", response=forged, reference=REFERENCE, extra={"tool_spans": []})
    score = SearchStepsVerifier().verify(sample)
    assert (score.value, score.evidence["forged"], score.steps[0].label) == (0.0, 1, "unanswered")
    trusting = SearchStepsVerifier(form={"tool_text": "tags"}).verify(sample)
    assert trusting.value is not None
    assert trusting.value > 1


@pytest.mark.parametrize(
    ("reference", "word"),
    [
        (None, "reference"),
        ("Tacoma", "give"),
        (json.dumps(REFERENCE), "not as text"),
        ({"answer": "x"}, "give .*documents"),
        ({"answer": "x", "documents": []}, "documents is"),
        ({"answer": "x", "documents": ["a b"], "keyword": []}, "give .*documents"),
        ({"answer": 3, "documents": ["a b"]}, "answer holds 3"),
        ({"answer": [], "documents": ["a b"]}, "empty list"),
        ({"answer": "x", "documents": [3]}, "documents holds 3"),
        ({"answer": "x", "documents": [{"title": "b"}]}, "documents holds {'title': 'b'}"),
        ({"answer": "x", "documents": ["b"], "keywords": [[3]]}, "keywords holds 3"),
        ({"answer": "x", "documents": ["b"], "keywords": [["x"], []]}, r"keywords\[1\] is \[\]"),
        ({"answer": "x", "documents": ["b"], "keywords": [None]}, r"keywords\[0\] is None"),
        ({"answer": "x", "documents": ["b"], "keywords": np.array([["a", "b"]])}, "keywords is array"),
        ({"answer": "x", "documents": np.array(["a", "b"])}, "documents is array"),
    ],
)
def test_a_reference_of_another_shape_is_a_mistake(reference: Any, word: str) -> None:
    sample = Sample(prompt="", response=turns("x"), reference=reference)
    with pytest.raises(ValueError, match=word):
        SearchStepsVerifier().validate(sample)
    assert SearchStepsVerifier().verify(sample).reason == "gold_unparsable"


def test_gold_documents_may_be_records_and_key_words_may_be_missing() -> None:
    texts = ("<search>x</search>", "alpha beta", "<answer>Tacoma</answer>")
    records: list[Any] = ["alpha beta", {"text": "alpha beta"}, {"title": "T", "paragraph_text": "alpha beta"}]
    missing: list[Any] = [None, [], ()]
    for document, keywords in itertools.product(records, missing):
        reference = {"answer": ("Tacoma",), "documents": (document,), "keywords": keywords}
        assert judged(*texts, reference=reference).value == pytest.approx(2.0)
    one = {"answer": "Tacoma", "documents": records[:1], "keywords": ["x"]}
    assert judged(*texts, reference=one).value == pytest.approx(2.618)


def test_a_gold_without_a_word_is_unparsable() -> None:
    for reference in ({"answer": "the", "documents": ["a b"]}, {"answer": "x", "documents": ["!"]}):
        sample = Sample(prompt="", response=turns("<answer>x</answer>"), reference=reference)
        SearchStepsVerifier().validate(sample)
        assert SearchStepsVerifier().verify(sample).reason == "gold_unparsable"


def test_a_flat_response_without_spans_is_refused() -> None:
    sample = Sample(prompt="", response="<answer>Tacoma</answer>", reference=REFERENCE)
    with pytest.raises(ValueError, match="search_steps: a flat response"):
        SearchStepsVerifier().validate(sample)
    assert SearchStepsVerifier().verify(sample).reason == "bad_sample"


@pytest.mark.parametrize(
    "options",
    [
        {"turns": "all"},
        {"several": "first"},
        {"prompt_words": "x"},
        {"key_weight": -1.0},
        {"repeat_weight": math.nan},
        {"malformed": True},
        {"max_characters": 0},
        {"form": {"search": ""}},
        {"form": 3},
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="search_steps"):
        SearchStepsVerifier(**options)


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("Born in the U.S. in 1920", "US", True),
        ("He said so", "Ai", False),
        ("You know", "no", False),
        ("Beatles records", "The Beatles", True),
        ("Zürich, 1990", "zurich", True),
        ("东京是首都", "东京", True),
        ("over the hill", "the", False),
        ("", "x", False),
    ],
)
def test_a_text_holds_whole_words(text: str, phrase: str, held: bool) -> None:
    assert holds(text, [phrase]) is held


def test_the_verifier_conforms() -> None:
    samples = [
        Sample(prompt="q", response=turns(*texts), reference=REFERENCE, extra={"tool_spans": []})
        for texts in (("<search>a b</search>", "alpha beta", "<answer>Tacoma</answer>"), ("<answer>x</answer>",), ("",))
    ]
    check_scorer(SearchStepsVerifier(), samples).raise_for_failures()
