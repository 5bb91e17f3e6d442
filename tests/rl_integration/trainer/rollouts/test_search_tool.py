"""Search finds what BM25 says, in an order that never changes."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from adjudge.io.passages import Bm25
from adjudge.responses.trajectories.documents import documents_of
from adjudge.rl_integration.trainer.rollouts.search_tool import SearchTool
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer


def formula(texts: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """BM25 as it is printed: a sum over the query's words, for each text."""
    mean = sum(map(len, texts)) / len(texts)
    found = []
    for text in texts:
        total = 0.0
        for word in query:
            holding = sum(word in other for other in texts)
            weight = math.log((len(texts) - holding + 0.5) / (holding + 0.5) + 1)
            times = text.count(word)
            total += weight * times / (times + 1.2 * (0.25 + 0.75 * len(text) / mean))
        found.append(total)
    return found


def test_the_order_is_that_of_the_formula() -> None:
    draw = random.Random(0)
    for _ in range(50):
        texts = [[draw.choice("abcdefgh") for _ in range(draw.randrange(1, 12))] for _ in range(20)]
        query = [draw.choice("abcdefghz") for _ in range(draw.randrange(1, 4))]
        scores = formula(texts, query)
        best = Bm25([" ".join(text) for text in texts]).best(" ".join(query), 20)
        assert set(best) == {place for place, score in enumerate(scores) if score > 0}
        assert [scores[place] for place in best] == pytest.approx(sorted(filter(None, scores), reverse=True))


def test_of_equal_texts_the_first_one_comes_first() -> None:
    assert Bm25(["x a", "y b", "x c"]).best("X", 5) == [0, 2]
    assert Bm25(["x a", "y b", "x c"]).best("x", 1) == [0]


def written(folder: Path, lines: Sequence[str]) -> str:
    path = folder / "texts.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def documents(tmp_path: Path) -> str:
    texts = [
        {"title": "Faust", "text": "Goethe wrote it."},
        {"text": "Schiller wrote Die Räuber. " + "x" * 600},
        {"title": "Straße\nNord", "text": "STRASSE in Köln"},
    ]
    return written(tmp_path, [json.dumps(text) for text in texts] + ["", "  "])


def test_texts_are_found_by_words_of_title_and_text(documents: str) -> None:
    tool = SearchTool(documents=documents, count=2, max_text=40)
    assert tool.call({"query": "who wrote FAUST?"}).text == (
        "[Faust] Goethe wrote it.\nSchiller wrote Die Räuber. xxxxxxxxxxxxx... (627 characters)"
    )
    assert tool.call({"query": "strasse"}).text == "[Straße Nord] STRASSE in Köln"


@pytest.mark.parametrize("query", ["", " \n", "?!", "\ud800"])
def test_a_query_without_words_is_an_error(documents: str, query: str) -> None:
    assert SearchTool(documents=documents).call({"query": query}) == ToolAnswer(
        text="error: the query has no words", ok=False
    )


def test_what_is_not_there_is_not_found(documents: str) -> None:
    assert SearchTool(documents=documents).call({"query": "zzz"}) == ToolAnswer(text="(nothing was found)")


def test_a_long_query_is_looked_at_as_far_as_it_counts(documents: str) -> None:
    assert SearchTool(documents=documents).call({"query": "y " * 64 + "faust"}).text == "(nothing was found)"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "hold nothing"),
        (['{"text": "a"}', "{"], "jsonl:2 is not JSON"),
        (['{"title": "a"}'], "jsonl:1 has no text"),
        (['{"text": 3}'], "jsonl:1 has no text"),
        (["[" * 100_000], "jsonl:1 is not JSON"),
        (["[]"], "jsonl:1 has no text"),
    ],
)
def test_a_bad_file_is_told_before_any_work(tmp_path: Path, lines: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SearchTool(documents=written(tmp_path, lines))


def test_a_missing_file_and_bad_options_are_named(tmp_path: Path, documents: str) -> None:
    with pytest.raises(ValueError, match=r"none.jsonl' cannot be read"):
        SearchTool(documents=str(tmp_path / "none.jsonl"))
    (tmp_path / "latin.jsonl").write_bytes(b'{"text": "\xe4"}')
    with pytest.raises(ValueError, match="cannot be read"):
        SearchTool(documents=str(tmp_path / "latin.jsonl"))
    with pytest.raises(ValueError, match="count=0"):
        SearchTool(documents=documents, count=0)


def test_numbered_texts_are_told_apart_by_what_reads_trajectories(tmp_path: Path) -> None:
    lines = [{"title": 'The "Faust"', "text": "Goethe wrote it."}, {"text": "Goethe (a poet)\n[lived] in Weimar"}]
    path = written(tmp_path, [json.dumps(line) for line in lines])
    found = SearchTool(documents=path, numbered=True).call({"query": "goethe"}).text
    assert [(one.title, one.text) for one in documents_of(found)] == [
        ("The 'Faust'", "Goethe wrote it."),
        ("", "Goethe (a poet)\n[lived] in Weimar"),
    ]
    plain = SearchTool(documents=path).call({"query": "goethe"}).text
    assert len(documents_of(plain)) == 1, "which is why there is another form"
