from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge.data_pipelines.items.citations import proposal_reader
from adjudge.data_pipelines.items.item_maker import keyed_object, records_reader, texts_reader
from adjudge.data_pipelines.items.keywords import read_program, terms_reader

TEXTS = texts_reader("items", 3)
RECORDS = records_reader("facts", 2, ("text", "quote"))


def said(**fields: Any) -> str:
    return f"So:\n{json.dumps(fields)}\nDone."


def test_a_keyed_list_is_read() -> None:
    assert TEXTS(said(key="k1", items=[" a ", "b"]), "k1") == ("a", "b")
    assert TEXTS(said(key="k1", items=[]), "k1") == ()
    record = {"text": "t", "quote": "q"}
    assert RECORDS(said(key="k1", facts=[record]), "k1") == (record,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON at all",
        said(items=["a"]),
        said(key="other", items=["a"]),
        said(key="k1", items="a"),
        said(key="k1", items=["a"], more=1),
        said(key="k1", items=["a", 1]),
        said(key="k1", items=["a", " "]),
        said(key="k1", items=["a" * 1001]),
        said(key="k1", items=["a", "b", "c", "d"]),
        '{"key": "k1", "key": "k1", "items": ["a"]}',
        '{"key": "k1", "items": ["a"]',
        '{"key": ["k1"], "items": ["a"]}',
        "[" * 100_000,
        said(key="k1", items=["a"]) + said(key="other", items=["b"]),
    ],
)
def test_anything_else_is_no_list(text: str) -> None:
    assert TEXTS(text, "k1") is None


def test_an_answer_to_no_key_is_none() -> None:
    assert keyed_object(said(key="", items=[]), "", {"items": list}) is None


@pytest.mark.parametrize(
    "records",
    [[{"text": "t"}], [{"text": "t", "quote": ""}], [{"text": "t", "quote": "q", "x": "y"}], ["t"], [None], [{}] * 3],
)
def test_one_bad_record_spoils_the_list(records: list[Any]) -> None:
    assert RECORDS(said(key="k1", facts=records), "k1") is None


def test_labels_and_counts_must_be_as_asked_for() -> None:
    read = texts_reader("labels", 3, labels=("vital", "okay"), count=2)
    assert read(said(key="k", labels=["vital", "okay"]), "k") == ("vital", "okay")
    assert read(said(key="k", labels=["vital"]), "k") is None
    assert read(said(key="k", labels=["vital", "Vital"]), "k") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"entities": {}, "statements": ["<E0> is."]},
        {"entities": {"E1": "x"}, "statements": []},
        {"entities": {"E0": "x", "e1": "y"}, "statements": []},
        {"entities": {"E0": "x", "E01": "y"}, "statements": []},
        {"entities": {"E0": None}, "statements": []},
        {"entities": {f"E{n}": "x" for n in range(8)}, "statements": []},
        {"entities": {"E0": "x"}, "statements": ["a", "b", "c", "d"]},
        {"entities": {"E0": "x"}, "statements": [1]},
        {"entities": ["E0"], "statements": []},
    ],
)
def test_a_malformed_proposal_is_none(fields: dict[str, Any]) -> None:
    assert proposal_reader(3)(said(key="k", **fields), "k") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"keys": ["Ron"], "excluded": []},
        {"keys": [[]], "excluded": []},
        {"keys": [["Ron"]] * 4, "excluded": []},
        {"keys": [["Ron"]], "excluded": [""]},
        {"keys": [["R" * 101]], "excluded": []},
        {"keys": [["Ron"]]},
    ],
)
def test_malformed_terms_are_none(fields: dict[str, Any]) -> None:
    assert terms_reader(3)(said(key="k", **fields), "k") is None


def test_a_program_is_a_text() -> None:
    assert read_program(said(key="k", program="x = 1"), "k") == "x = 1"
    assert read_program(said(key="k", program=["x"]), "k") is None
    assert read_program(said(key="k", program="x" * 20_001), "k") is None
