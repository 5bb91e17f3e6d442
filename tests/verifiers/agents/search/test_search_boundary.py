"""The tables of IKEA, SEM, AdaSearch and Tool-Star, by hand; what counts as a search, an answer, a decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.reasons import CANDIDATE
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry
from adjudge.scoring.attacks import shipped_cases
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.agents.search.boundary import SearchBoundaryVerifier, decision_f1

FOUND = 'Doc 1(Title: "Paris") Paris is the capital of France.'
SEARCH = "<search>capital of France</search>"


def turns(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


def searched(times: int, answer: str) -> list[dict[str, Any]]:
    return turns(*([SEARCH, FOUND] * times), f"<answer>{answer}</answer>")


def verdict(response: Any, reference: Any = "Paris", *, extra: Any = None, **options: Any) -> Score:
    sample = Sample(prompt="Capital?", response=response, reference=reference, extra=extra or {})
    return SearchBoundaryVerifier(**options).verify(sample)


@pytest.mark.parametrize(
    ("times", "answer", "value"),
    [
        (0, "Paris", 1.6),
        (1, "Paris", 1.4),
        (2, "Paris", 1.2),
        (3, "Paris", 1.0),
        (9, "Paris", 1.0),
        (0, "Rome", 0.0),
        (1, "Rome", 0.05),
        (9, "Rome", 0.05),
    ],
)
def test_ikea_pays_what_its_released_code_pays(times: int, answer: str, value: float) -> None:
    assert verdict(searched(times, answer)).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("<think>hm</think><answer>Paris</answer>", 1.0),
        ("<think>hm</think><answer>Rome</answer>", 0.2),
        ("<answer>Paris</answer>", 0.8),  # no thought
        ("<answer>Rome</answer>", 0.1),
        ("<think>hm</think><answer>Paris</answer> I think.", 1.0),
        ("<think>hm</think>Paris", 0.0),
        ("<think>hm</think><answer>Rome</answer><answer>Paris</answer>", 0.0),
        (f"<think>hm</think>{SEARCH}<information>{FOUND}</information><answer>Paris</answer>", 0.0),  # its own result
    ],
)
def test_search_r1_pays_a_right_answer_more_than_a_wrong_one_in_any_form(response: str, value: float) -> None:
    scorer = registry.load("search_r1")
    sample = Sample(prompt="Capital?", response=turns(response), reference="Paris")
    assert run_blocking(scorer.score([sample]))[0].value == value


@pytest.mark.parametrize(
    ("found", "values", "value"),
    [
        (FOUND, {}, 0.2),
        (FOUND, {"wrong_found": 0.3}, 0.3),
        ("Bananas ripen.", {"wrong_found": 0.3}, 0.2),
    ],
)
def test_search_r1_pays_for_form_and_for_retrieval_if_told_to(found: str, values: Any, value: float) -> None:
    response = turns(f"<think>hm</think>{SEARCH}", found, "<answer>Rome</answer>")
    scorer = registry.load({"search_r1": {"values": values}} if values else "search_r1")
    sample = Sample(prompt="Capital?", response=response, reference="Paris")
    assert run_blocking(scorer.score([sample]))[0].value == value


def test_ikea_without_an_answer_or_a_thought_is_malformed() -> None:
    assert verdict(turns("I know it: Paris")).value == -1.0
    assert verdict(turns("<answer>Paris</answer>"), thought=True).reason == "bad_format"
    for open_thought in ("<think>hm", "<think></think>", "<think> </think>"):
        assert verdict(turns(f"{open_thought}<answer>Paris</answer>"), thought=True).value == -1.0
    assert verdict(turns("<think>hm</think><answer>Paris</answer>"), thought=True).value == pytest.approx(1.6)
    assert verdict(turns("hm</think><answer>Paris</answer>"), thought=True).value == pytest.approx(1.6)


def test_a_search_tag_in_a_tools_text_is_no_search() -> None:
    """The released code of IKEA counts the tag wherever it stands, in what came back as well."""
    score = verdict(turns(SEARCH, f"How to write {SEARCH}? {SEARCH}", "<answer>Paris</answer>"))
    assert score.value == pytest.approx(1.4)
    assert score.evidence["attempted"] == 1


def test_brackets_around_a_word_in_a_tools_text_do_not_make_the_form_bad() -> None:
    """The released code of IKEA gives -1 wherever "(search" or "answer]" stands."""
    score = verdict(turns(SEARCH, "See (search results) [the answer]", "<answer>Paris (think of it)</answer>"))
    assert score.evidence["case"] == "wrong_searched"
    assert verdict(turns(SEARCH, "(search", "<answer>Paris</answer>")).value == pytest.approx(1.4)


@pytest.mark.parametrize(
    ("times", "answer", "direct", "case", "value"),
    [
        (0, "Paris", True, "right", 1.0),
        (0, "Paris", False, "right", 1.0),
        (1, "Paris", False, "right_needed", 0.8),
        (1, "Paris", True, "right_needless", 0.4),
        (0, "Rome", True, "wrong", 0.0),
        (1, "Rome", False, "wrong", 0.0),
        (1, "Rome", True, "wrong_needless", -0.2),
        (2, "Paris", "the Paris", "right_needless", 0.4),
        (2, "Paris", "Lyon", "right_needed", 0.8),
    ],
)
def test_sem_looks_at_the_answer_without_a_search(
    times: int, answer: str, direct: Any, case: str, value: float
) -> None:
    told = {"direct": direct}
    for reference, extra in (({"answer": "Paris", **told}, {}), ("Paris", told), ({"answer": "Paris"}, told)):
        score = verdict(searched(times, answer), reference, policy="sem", extra=extra)
        assert (score.evidence["case"], score.value) == (case, value)


def test_false_may_be_what_was_answered_without_a_search() -> None:
    score = verdict(searched(1, "true"), {"answer": "true", "direct": "False"}, policy="sem")
    assert score.evidence["case"] == "right_needed"


@pytest.mark.parametrize(
    ("said", "direct", "value", "reason"),
    [
        ("yes", True, 1.0, ""),
        ("No.", False, 1.0, ""),
        ("yes", False, 0.0, "wrong"),
        ("no", True, 0.0, "wrong"),
        ("perhaps", True, 0.0, "unparsable_answer"),
        ("yes</decision><decision>no", True, 0.0, "several_answers"),
    ],
)
def test_adasearch_pays_a_decision_that_the_direct_answer_bears_out(
    said: str, direct: bool, value: float, reason: str
) -> None:
    score = verdict(turns(f"<decision>{said}</decision>"), {"answer": "Paris", "direct": direct}, policy="adasearch")
    assert (score.value, score.reason) == (value, reason)


def test_the_f1_of_decisions() -> None:
    # 2 of 3 "yes" are right, and 2 of 4 right direct answers were seen: 2 * 2 / (3 + 4)
    assert decision_f1([True, True, True, False, False], [True, True, False, True, True]) == pytest.approx(4 / 7)
    assert decision_f1([False], [True]) == 0.0
    with pytest.raises(ValueError, match="1 decisions and 2"):
        decision_f1([True], [True, True])


def test_tool_star_pays_for_different_tools_that_answered_a_right_answer() -> None:
    options: dict[str, Any] = {"policy": "tool_star", "tools": ("python", "a", "b")}
    both = turns(SEARCH, FOUND, "<python>print(1)</python>", "1", "<answer>Paris</answer>")
    assert verdict(both, **options).value == pytest.approx(1.1)
    assert verdict(both, "Rome", **options).value == 0.0
    one = turns(f"{SEARCH}<python>1</python>", FOUND, "<answer>Paris</answer>")
    assert verdict(one, **options).evidence["tools"] == ["search"], "one result is of one tool"
    assert verdict(turns(SEARCH, FOUND, SEARCH, FOUND, "<answer>Paris</answer>"), **options).value == 1.0
    calls = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": str(at), "function": {"name": name, "arguments": "{}"}} for at, name in enumerate(["a", "b"])
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "4"},
        {"role": "tool", "tool_call_id": "0", "content": "5"},
        *turns("<answer>Paris</answer>"),
    ]
    assert verdict(calls, **options).evidence["tools"] == ["b", "a"]


def test_a_tool_that_there_is_not_is_no_tool() -> None:
    def call(name: str) -> list[dict[str, Any]]:
        written = {"id": name, "function": {"name": name, "arguments": "{}"}}
        return [
            {"role": "assistant", "content": "", "tool_calls": [written]},
            {"role": "tool", "tool_call_id": name, "content": f"no tool {name!r}"},
        ]

    response = [*call("search"), *call("oracle"), *turns("<answer>Paris</answer>")]
    assert verdict(response, policy="tool_star").value == 1.0
    assert verdict(response, policy="tool_star", tools=("oracle",)).value == pytest.approx(1.1)
    assert verdict(response).value == pytest.approx(1.2), "and its call costs what a search does"
    assert verdict(response, tools=["oracle"]).value == pytest.approx(1.4)


@pytest.mark.parametrize(
    "hidden",
    [
        f"<think>{SEARCH}</think>",
        "<search>capital of France",
        "<Search>capital of France</Search>",
        '<tool_call>{"name": "search", "query": }</tool_call>',
        f"<python>1</python><think>{SEARCH}</think>",
    ],
)
def test_a_search_that_was_answered_costs_however_it_was_written(hidden: str) -> None:
    """Released runners take a search tag anywhere, so an agent could hide its searches in its thoughts."""
    found = [{"role": "tool", "content": FOUND}] * (1 + ("python" in hidden))
    first, last = turns(hidden)[0], turns("<answer>Paris</answer>")[0]
    assert verdict([first, *found, last], tools=("python",)).value == pytest.approx(1.4)
    wrong = verdict([first, *found, turns("<answer>Rome</answer>")[0]], tools=("python",))
    assert wrong.value == 0.0, "it costs, and does not earn"
    sem = verdict([first, *found, last], {"answer": "Paris", "direct": True}, policy="sem", tools=("python",))
    assert sem.value == 0.4
    assert verdict([*found, last], tools=("python",)).value == pytest.approx(1.6), "nobody asked for that"


def test_values_and_the_metric_are_options() -> None:
    assert verdict(searched(1, "Rome"), values={"wrong_searched": 0.0}).value == 0.0
    assert verdict(searched(1, "Paris"), values={"thrift": 0.0}, max_searches=1).value == 1.0
    # one of two tokens and one of one: F1 = 2/3
    assert verdict(searched(0, "Paris now"), metric="f1", threshold=0.6, values={"thrift": 0.0}).value == 1.0
    assert verdict(searched(0, "Paris now"), metric="f1", threshold=0.7).value == 0.0


def test_flat_text_needs_to_be_told_what_tools_wrote() -> None:
    told = f"<information>{FOUND}</information>"
    text = f"{SEARCH}{told}<answer>Rome</answer>"
    with pytest.raises(ValueError, match="tool_spans"):
        SearchBoundaryVerifier().validate(Sample(prompt="p", response=text, reference="Paris"))
    spans = {"tool_spans": [[len(SEARCH), len(SEARCH) + len(told)]]}
    assert verdict(text, extra=spans).value == pytest.approx(0.05)
    assert verdict(text, extra={"tool_spans": []}).reason == "tampering"
    assert verdict(text, form={"tool_text": "tags"}).value == pytest.approx(0.05), "as released: tags are believed"


def test_an_answer_that_was_cut_off_is_malformed() -> None:
    sample = Sample(prompt="p", response=searched(0, "Paris"), reference="Paris", finish_reason="length")
    assert SearchBoundaryVerifier().verify(sample).reason == "truncated"


def test_a_response_that_had_to_be_killed_is_malformed() -> None:
    sample = Sample(prompt="p", response="x", reference="Paris")
    assert SearchBoundaryVerifier().killed(sample, "candidate_timeout").value == -1.0


def test_no_attack_gets_through_and_no_honest_answer_is_refused() -> None:
    verifier = SearchBoundaryVerifier()
    cases = shipped_cases(verifier)
    assert len({case.id for case in cases}) == len(cases) >= 25
    for case in cases:
        value = replace(verifier, **case.options).verify(case.sample).value
        assert value is not None
        assert value >= 1.0 if case.honest else value <= 0.0, case.id


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"policy": "mine"}, "policy='mine'"),
        ({"values": {"right_needed": 1}}, "there is no case 'right_needed'"),
        ({"values": {"right": float("nan")}}, "values"),
        ({"values": {"right": "1"}}, "values"),
        ({"values": 3}, "must be a mapping"),
        ({"max_searches": 0}, "max_searches=0"),
        ({"threshold": 0}, "threshold=0"),
        ({"threshold": 1.5}, "threshold=1.5"),
        ({"form": {"search": "a b"}}, "tag name"),
        ({"form": {"query": "q"}}, "no field 'query'"),
        ({"tools": 3}, "tools=3; it must be a text or a list"),
        ({"tools": [""]}, "give a list"),
        ({"tools": ["<d>"]}, "tag name"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SearchBoundaryVerifier(**options)


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        (None, "reference"),
        ({"answer": "b", "gold": 1}, "give .*direct"),
        ({"answer": "b"}, "asks whether the answer without a search is right"),
        ({"answer": "b", "direct": 1}, "direct is 1"),
        ({"answer": "b", "direct": "False"}, "direct is the text 'False'; give true or false"),
        ({"answer": 3, "direct": True}, "give texts"),
    ],
)
def test_references_that_cannot_be_used_are_refused(reference: Any, complaint: str) -> None:
    verifier = SearchBoundaryVerifier(policy="sem")
    sample = Sample(prompt="p", response=searched(0, "b"), reference=reference)
    with pytest.raises(ValueError, match=complaint):
        verifier.validate(sample)
    if reference is not None:
        assert verifier.verify(replace(sample, response=[])).reason == "gold_unparsable"


PIECES = [
    "<search>",
    "</search>",
    "<answer>",
    "</answer>",
    "<think>",
    "</think>",
    "<information>",
    "Paris",
    " ",
    "\ud800",
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=5), st.sampled_from(["ikea", "sem"])
)
def test_whatever_is_written_gets_a_value_of_the_table(texts: list[str], policy: str) -> None:
    score = verdict(turns(*texts), {"answer": "Paris", "direct": True}, policy=policy)
    assert score.value is not None
    assert -1.0 <= score.value <= 1.6
    assert score.reason in CANDIDATE


def test_it_keeps_the_rules() -> None:
    samples = [
        Sample(prompt="p", response=searched(times, answer), reference="Paris", extra={"tool_spans": []})
        for times, answer in ((0, "Paris"), (1, "Rome"), (0, "Rome"))
    ]
    check_scorer(SearchBoundaryVerifier(), samples).raise_for_failures()
