"""The presets of search agents pay what their papers or their code pay."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import score_batch

FOUND = "Paris is the capital of France."


def turns(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


def values(recipe: str, *rows: tuple[Any, Any, dict[str, Any]]) -> list[float | None]:
    samples = [
        {"prompt": "p", "response": response, "reference": reference, "extra": extra}
        for response, reference, extra in rows
    ]
    return [score.value for score in score_batch(samples, recipe)]


def test_ikea_sem_and_adasearch() -> None:
    known = turns("<think>I know it.</think><answer>Paris</answer>")
    asked = turns("<think>Let me look.</think><search>capital</search>", FOUND, "<answer>Paris</answer>")
    bare = turns("<answer>Paris</answer>")
    rows: list[tuple[Any, Any, dict[str, Any]]] = [(response, "Paris", {}) for response in (known, asked, bare)]
    assert values("ikea", *rows) == pytest.approx([1.6, 1.4, -1.0])
    knows, not_so = {"direct": "Paris"}, {"direct": "Rome"}
    rows = [(known, "Paris", knows), (asked, "Paris", knows), (asked, "Paris", not_so)]
    assert values("sem", *rows) == [1.0, 0.4, 0.8]
    decides = turns("<decision>yes</decision>")
    rows = [
        (decides, "Paris", {"kind": "decide", "direct": True}),
        (decides, "Paris", {"kind": "decide", "direct": False}),
        (asked, "Paris", {"kind": "answer"}),
        (asked, "Paris", {"kind": "alone"}),
        (bare, "Paris", {"kind": "alone"}),
        (bare, "Rome", {"kind": "alone"}),
    ]
    assert values("adasearch", *rows) == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]


def test_o2_searcher() -> None:
    gold = {"findings": ["red green", "blue white"]}
    listed = turns(
        "<search>red car</search>", FOUND, "<search>red boat</search>", FOUND, "<answer>- red green</answer>"
    )
    wrong = turns("<answer>- mars\n- tin</answer>")
    rows = [(listed, gold, {"kind": "open"}), (wrong, gold, {"kind": "open"})]
    # one finding of ten; F1 = 2 * 1 / (1 + 2); two queries with the cosine 1/2 and 4 of 8 tokens; then the form
    one, two = (0.5 + 0.03 + 0.5) / 1.3, (0.5 + 0.06 + 0.5) / 1.3
    assert values("o2_searcher", *rows) == pytest.approx(
        [0.5 * (one + 2 / 3 + 0.5 * 0.5 * 0.5 * 0.5) / 2.5, 0.5 * two / 2.5]
    )
    closed = [
        (turns(f"<answer>{said}</answer>"), "Paris", {"kind": "closed"}) for said in ("The Paris.", "city of Paris")
    ]
    assert values("o2_searcher", *closed) == [1.0, 0.0]
