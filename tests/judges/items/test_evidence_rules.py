"""The pure parts of the citation scorer: links, pages, statements, connections, mixing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge.judges.items.citation_rules import (
    Findings,
    cited,
    connected,
    entities_of,
    explanation,
    group_rewards,
    mixed,
    pages_of,
    read_statements,
)
from adjudge.protocol import Sample
from adjudge.scoring.bad_reference import BadReferenceError


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("So it is [4](https://a.org/x).", ["https://a.org/x"]),
        ("[[4](https://a.org/x)], [[5](https://A.org/x/)]", ["https://a.org/x"]),
        ("[1](https://en.wikipedia.org/wiki/Foo_(bar))", ["https://en.wikipedia.org/wiki/Foo_(bar)"]),
        ("[1](view-source:https://a.org) and <https://b.org/y#part>", ["https://a.org", "https://b.org/y"]),
        ("[1](https://r.jina.ai/https://a.org/x)", ["https://a.org/x"]),
        ('[1](https://a.org/x "a title")', ["https://a.org/x"]),
        ("[1] https://a.org [2]() [3](ftp://a.org) [4](https://a b.org)", []),
        ("`[1](https://a.org)` and\n```\n[2](https://b.org)\n```", []),
        ("[1](https://a.org", []),
        ("[1](https://" + "a" * 3000 + ")", []),
    ],
    ids=["one", "same page", "brackets", "forms", "proxy", "title", "none", "code", "open", "endless"],
)
def test_addresses_are_read(text: str, urls: list[str]) -> None:
    assert cited(text) == urls


def test_a_list_of_references_cites_nothing() -> None:
    text = "It is so.\n\n## References\n1. [1](https://a.org)\n"
    assert explanation(text) == "It is so."
    assert explanation("### Sources:\n[1](https://a.org)") == ""
    assert explanation("My references are [1](https://a.org)") == "My references are [1](https://a.org)"


SEARCH = (
    "[0] Title: One\n[0] URL Source: https://a.org/1\n[0] Description: first\nmore\n[7] URL Source: https://evil.org\n\n"
    "[1] Title: Two\n[1] URL Source: https://a.org/2\n[1] Description: second\n[1] Date: 2020\n"
)
PAGE = "Title: Three\n\nURL Source: https://a.org/3\n\nMarkdown Content:\nthird\nURL Source: https://evil.org\n"


def turns(*outputs: tuple[str, str], shape: str = "openai") -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number, (tool, output) in enumerate(outputs):
        if shape == "openai":
            call: dict[str, Any] = {"id": f"c{number}", "function": {"name": tool, "arguments": "{}"}}
            answer: dict[str, Any] = {"role": "tool", "tool_call_id": f"c{number}", "content": output}
        else:
            call = {"tool_call_id": f"c{number}", "name": tool, "arguments": "{}"}
            answer = {"role": "tool", "content": [{"tool_call_id": f"c{number}", "output": output}]}
        made += [{"role": "assistant", "content": "", "tool_calls": [call]}, answer]
    return [*made, {"role": "assistant", "content": "done"}]


@pytest.mark.parametrize("shape", ["openai", "carr"])
def test_pages_come_from_tools_under_their_own_address(shape: str) -> None:
    history = turns(
        ("browser.search", SEARCH), ("browser.open", PAGE), ("browser.find", "[Match 1]\nfound"), shape=shape
    )
    pages = pages_of(Sample(prompt="q", response=history))
    assert {url: page.texts for url, page in pages.items()} == {
        "https://a.org/1": ["first\nmore\n[7] URL Source: https://evil.org"],
        "https://a.org/2": ["second"],
        "https://a.org/3": ["third\nURL Source: https://evil.org", "[Match 1]\nfound"],
    }
    assert pages["https://a.org/2"].title == "Two"


@pytest.mark.parametrize(
    ("output", "urls"),
    [
        ({"url": "https://a.org", "content": "x"}, ["https://a.org"]),
        (
            [{"url": "https://a.org", "snippet": "x"}, {"url": "https://b.org", "text": "y"}],
            ["https://a.org", "https://b.org"],
        ),
        ({"results": [{"url": "https://a.org", "description": "x"}]}, ["https://a.org"]),
        ({"content": "no address"}, []),
        ([1, None, {"url": 3}], []),
    ],
)
def test_pages_come_as_json_too(output: Any, urls: list[str]) -> None:
    assert list(pages_of(Sample(prompt="q", response=turns(("fetch_url", json.dumps(output)))))) == urls


def test_what_a_model_prints_is_no_page() -> None:
    fake = json.dumps({"url": "https://a.org", "content": "E1 lost"})
    said = [{"role": "assistant", "content": f"[0] Title: x\n[0] URL Source: https://a.org\n{fake}"}]
    assert pages_of(Sample(prompt="q", response=said)) == {}
    assert pages_of(Sample(prompt="q", response=turns(("python", fake)))) == {}
    assert pages_of(Sample(prompt="q", response=[{"role": "tool", "name": "python", "content": fake}])) == {}


def test_pages_may_come_with_the_sample() -> None:
    given = Sample(prompt="q", response="r", extra={"pages": {"https://a.org/": "x"}})
    assert pages_of(given)["https://a.org"].texts == ["x"]
    with pytest.raises(ValueError, match="mapping of addresses"):
        pages_of(Sample(prompt="q", response="r", extra={"pages": ["https://a.org"]}))


def test_statements_are_filled_in_one_pass() -> None:
    (statement,) = read_statements(["<E1> beat <E0> at <E1>'s home"])
    assert statement.entities == ("E1", "E0")
    assert statement.filled({"E0": "x", "E1": "<E0>"}) == "<E0> beat x at <E0>'s home"
    assert statement.filled({"E0": "x", "E1": None}) is None
    assert entities_of(read_statements(["<E10> and <E2>", "<E0> and <E2>"])) == ("E0", "E2", "E10")


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [(["a fact"], "no placeholder"), (["<E1> is <E2>"], "no statement names <E0>"), ([], "empty list"), (None, "list")],
)
def test_statements_without_an_answer_in_them_are_refused(listed: Any, complaint: str) -> None:
    with pytest.raises(BadReferenceError, match=complaint):
        read_statements(listed)


@pytest.mark.parametrize(
    ("entities", "supported", "reached"),
    [
        (["0", "01", "12", "23"], [1, 1, 1, 1], [1, 1, 1, 1]),
        (["0", "01", "12", "23"], [1, 1, 0, 1], [1, 1, 0, 0]),
        (["0", "12", "23", "31"], [1, 1, 1, 1], [1, 0, 0, 0]),
        (["0", "12", "23", "31"], [0, 1, 1, 1], [0, 0, 0, 0]),
        (["12", "01"], [1, 1], [1, 1]),
        (["01", "02", "12"], [0, 1, 1], [0, 1, 1]),
    ],
    ids=["chain", "broken chain", "ring apart", "ring alone", "any order", "second way"],
)
def test_what_is_linked_with_the_answer_counts(entities: list[str], supported: list[int], reached: list[int]) -> None:
    members = [[f"E{digit}" for digit in digits] for digits in entities]
    assert connected(members, [bool(one) for one in supported]) == [bool(one) for one in reached]


def findings(**more: Any) -> Findings:
    statements = read_statements(["<E0> is", "<E0> has <E1>", "<E1> does", "<E2> may"])
    given: dict[str, Any] = {
        "values": {},
        "supported": (True, True, False, True),
        "cited": ("a", "b"),
        "pages": ("a", "b"),
    }
    return Findings(statements=statements, **{**given, **more})


@pytest.mark.parametrize(
    ("more", "reward"),
    [
        ({}, 0.5),
        ({"idle": ("b",)}, 0.25),
        ({"excess": True}, 0.0),
        ({"pages": (), "idle": ("a", "b")}, 0.0),
        ({"cited": (), "pages": ()}, 0.0),
    ],
    ids=["two of four", "an idle page", "too many", "unknown pages", "none cited"],
)
def test_the_rubric_reward(more: dict[str, Any], reward: float) -> None:
    assert findings(**more).reward == reward


def test_carr_mixes_and_c_grpo_gates() -> None:
    assert mixed(1.0, 0.6, ratio=0.5) == pytest.approx(0.8)
    outcomes, rubrics = [1, 1, 0], [0.6, 0.3, 0.9]
    assert group_rewards(outcomes, rubrics, normalize="none") == pytest.approx([0.88, 0.79, 0.0])
    assert group_rewards(outcomes, rubrics, normalize="group_max") == pytest.approx([0.9, 0.8, 0.0])
    assert group_rewards([1, 1], [0.0, 0.0], normalize="group_max") == pytest.approx([0.7, 0.7])


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: mixed(1.0, 1.2, ratio=0.5), "rubric is 1.2"),
        (lambda: mixed(1.0, 1.0, ratio=-1), "ratio is -1"),
        (lambda: group_rewards([1], [1, 1]), "for 1 outcomes"),
        (lambda: group_rewards([1], [1], normalize="max"), "normalize is 'max'"),  # type: ignore[arg-type]
    ],
)
def test_numbers_that_cannot_be_mixed_are_refused(call: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        call()
