from __future__ import annotations

import re
from typing import Any

import pytest

from adjudge.prompts.reading import (
    LabelReader,
    NumberListReader,
    NumberReader,
    concluded,
    json_object,
    json_value,
    keyed_lines,
)

PAIR = LabelReader(form="[[{answer}]]", labels=("A", "B", "C"))
DECISION = LabelReader(form="Final Decision: {answer}", labels=("Yes", "No"))
TAG = LabelReader(form="<answer>{answer}</answer>", labels=("A", "B"))
TAGGED = LabelReader(form="<answer>[[{answer}]]</answer>", labels=("A", "B"))
FIVE = LabelReader(form="[[{answer}]]", labels=("A>>B", "A>B", "A=B", "B>A", "B>>A"))
SIGNS = LabelReader(form="[[{answer}]]", labels=("good.", "(b)"))
LAST_80 = LabelReader(form="[[{answer}]]", labels=("A", "B"), window=80, sole=True)
WHOLE = LabelReader(form="{answer}", labels=("Yes", "No"))
RATING = NumberReader(form="Rating: [[{answer}]]", low=1, high=10)
RESULT = NumberReader(form="[RESULT] {answer}", low=1, high=5)


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (PAIR, "Both are fine, but [[B]]", "B"),
        (PAIR, "[[A]]? No.\nMy verdict: [[B]]", "B"),
        (PAIR, "[[ a ]]", "A"),
        (PAIR, "[[**A**]]", "A"),
        (PAIR, "[[A]] or [[B]]", None),
        (PAIR, "[[A]] [[A]]", "A"),
        (PAIR, "[[A]]\n[[D]]", None),
        (PAIR, "[[A]]\nor is it [[", None),
        (PAIR, "[[A or B]]", None),
        (PAIR, "[A]", None),
        (PAIR, "A is better", None),
        (PAIR, "", None),
        (PAIR, "[[" + " " * 300 + "A]]", None),
        (DECISION, "Final Decision: Yes", "Yes"),
        (DECISION, "**Final Decision:** no.", "No"),
        (DECISION, "**Final Decision**: **Yes**", "Yes"),
        (DECISION, "Final Decision: (No)", "No"),
        (DECISION, "Final Decision: Yes or No", None),
        (DECISION, "Final Decision: Yes, since it is right", None),
        (DECISION, "Final Decision: Yes\nFinal Decision: " + "x" * 500, None),
        (DECISION, "Final Decision: Yes Final Decision: No", None),
        (DECISION, "Final Decision:\nYes", None),
        (DECISION, "Final Yes", None),
        (TAG, "<answer>A</answer>", "A"),
        (TAG, "<answer>A</answer> then <answer>B", None),
        (TAG, "<answer>\nA\n</answer>", "A"),
        (TAG, "<answer>\n\n  **A**\n\n</answer>", "A"),
        (TAG, "<answer>\nA\nB\n</answer>", None),
        (TAG, "<answer>\nA\n</answer>\n<answer>\nor B\n</answer>", None),
        (TAG, "<answer>\n<answer>A</answer>", "A"),
        (TAG, "<answer>" + "\n" * 300 + "A</answer>", None),
        (TAGGED, "<answer>\n[[B]]\n</answer>", "B"),
        (TAGGED, "<answer>**[[B]]**</answer>", "B"),
        (TAGGED, "<answer>so [[B]]</answer>", None),
        (TAGGED, "<answer>[[A]]</answer> or <answer>\n[[B]]\n</answer>", None),
        (SIGNS, "[[good.]]", "good."),
        (SIGNS, "[[Good]]", "good."),
        (SIGNS, "[[(b)]]", "(b)"),
        (SIGNS, "[[b]]", "(b)"),
        (SIGNS, "[[good(b)]]", None),
        (FIVE, "[[A>>B]]", "A>>B"),
        (FIVE, "[[B>A]]", "B>A"),
        (FIVE, "[[A>B>A]]", None),
        (LAST_80, "x" * 100 + "[[A]]", "A"),
        (LAST_80, "[[A]]\n" + "x" * 90 + "\n[[B]]", "B"),
        (LAST_80, "[[A]]\n[[B]]", None),
        (LAST_80, "[[A]]" + "x" * 90, None),
        (WHOLE, " yes.\n", "Yes"),
        (WHOLE, "Yes, it is", None),
        (RATING, "Good. Rating: [[7]]", 7),
        (RATING, "Rating: [[7/10]]", 7),
        (RATING, "Rating: [[100/10]]", None),
        (RATING, "Rating: [[9/100]]", None),
        (RATING, "Rating: [[0]]", None),
        (RATING, "Rating: [[11]]", None),
        (RATING, "Rating: [[7.5]]", None),
        (RATING, "Rating: [[1e1]]", None),
        (RATING, "Rating: [[٧]]", None),
        (RATING, "Rating: [[nan]]", None),
        (RATING, "Rating: [[-7]]", None),
        (RATING, "Rating: [[3]]\nno: Rating: [[8]]", 8),
        (RESULT, "Feedback: fine [RESULT] 4", 4),
        (RESULT, "Feedback: fine [RESULT] 4 out of 5", None),
        (RESULT, "Feedback: fine [RESULT] (4)", 4),
        (RESULT, "[RESULT] 6", None),
    ],
)
def test_verdict(reader: Any, text: str, expected: Any) -> None:
    assert reader(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Scores: [4, 7]", (4.0, 7.0)),
        ("Scores: [4, 7, 9]", None),
        ("Scores: [4]", None),
        ("Scores: [4, 11]", None),
        ("Scores: [4, x]", None),
        ("Scores: [1, 1]\nScores: [**4**, 7]", (4.0, 7.0)),
    ],
)
def test_list_of_numbers(text: str, expected: Any) -> None:
    assert NumberListReader(form="Scores: [{answer}]", count=2, low=1, high=10)(text) == expected


def test_a_keyed_verdict_counts_under_its_own_key_alone() -> None:
    keyed = LabelReader(form="Verdict {nonce}: {answer}", labels=("yes", "no"))
    text = "Verdict 11111111: no\n**Verdict 0a1b2c3d: yes**\nVerdict: no\nVerdict 22222222: no"
    assert keyed(text, "0a1b2c3d") == "yes"
    assert keyed(text, "99999999") is None


LINES = "k1 a: yes\n- **k1 b: No**\nk2 a: no\nthe end"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINES, {"a": "yes", "b": "no"}),
        ("k1 b: no\nk1 a: yes", {"a": "yes", "b": "no"}),
        ("k1 a: yes", None),
        (f"{LINES}\nk1 c: yes", None),
        (f"{LINES}\nk1 a: no", None),
        (f"{LINES}\nk1 a: yes", {"a": "yes", "b": "no"}),
        ("k1 a: maybe\nk1 b: no", None),
        ("k1 a yes\nk1 b: no", None),
        ("a: yes\nb: no", None),
    ],
)
def test_keyed_lines(text: str, expected: Any) -> None:
    assert keyed_lines(text, "k1", ("a", "b"), ("yes", "no")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('so {"v": 1, "w": "x"}', {"v": 1, "w": "x"}),
        ('```json\n{"w": "x", "v": 1}\n```', {"v": 1, "w": "x"}),
        ('{"v": 1, "w": "x"} no: {"v": 2, "w": "y"}', {"v": 2, "w": "y"}),
        ('{"v": 1, "w": "x", "z": 0}', None),
        ('{"v": 1}', None),
        ('{"v": "1", "w": "x"}', None),
        ('{"v": true, "w": "x"}', None),
        ('{"v": 1, "v": 2, "w": "x"}', None),
        ('{"a": {"v": 1, "w": "x"}, "a": 0}', None),
        ('{"v": NaN, "w": "x"}', None),
        ('{"v": 1, "w": "x"', None),
        ("{'v': 1, 'w': 'x'}", None),
        ('[{"v": 1, "w": "x"}]', None),
        ('{"v":' * 20_000, None),
        ("", None),
    ],
)
def test_json_object(text: str, expected: Any) -> None:
    assert json_object(text, {"v": int, "w": str}) == expected


def test_json_values_are_the_outermost_of_their_kind() -> None:
    assert json_value('{"a": [1]} [2] {"b": [3]}', list) == [2]
    assert json_value("[1] [2", list) == [1]
    assert json_value('[{"a": 1}]', dict) is None


VERDICTS = '[{"name": "1", "verdict": "Yes"}, {"name": "2", "verdict": "no"}]'


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LabelReader(form="{answer} {answer}", labels=("a", "b")), "must hold {answer} once"),
        (lambda: LabelReader(form="no place", labels=("a", "b")), "must hold {answer} once"),
        (lambda: LabelReader(form="[[{answer}]]", labels=("a", "A")), "differ by more than case"),
        (lambda: LabelReader(form="[[{answer}]]", labels=("a", "(a)")), "differ by more than case"),
        (lambda: LabelReader(form="[[{answer}]]", labels=("*", "**")), "differ by more than case"),
        (lambda: LabelReader(form="[[{answer}]]", labels=("a",)), "two or more"),
        (
            lambda: LabelReader(form="Verdict {nonce}: {answer}", labels=("a", "b"))("Verdict : a"),
            "nonce of the prompt",
        ),
        (lambda: LabelReader(form="[[{answer}]]", labels=("a", "b"), window=-1), "0 (the whole text) or more"),
        (lambda: NumberReader(form="[[{answer}]]", low=5, high=5), "the low end comes first"),
        (lambda: NumberListReader(form="[[{answer}]]", count=0, low=1, high=5), "0 numbers"),
    ],
)
def test_readers_that_cannot_read(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        make()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is good. [[A]]", "It is good. [[A]]"),
        ("<think>[[A]]? No.</think>\n[[B]]", "\n[[B]]"),
        ("[[A]]? No.</think>\n[[B]]", "\n[[B]]"),
        ("<thinking>[[A]]</thinking>I cannot say.", "I cannot say."),
        ("<think>a</think>b</think>c", "c"),
        ("<think>[[A]], or not", ""),
        (" \n<thought>[[A]], or not", ""),
        ("First:\n  <think>[[A]], or not", ""),
        ("<think>a</think>\n<think>[[A]], or not", ""),
        ("<think>a</think> It opens <think> twice. [[B]]", " It opens <think> twice. [[B]]"),
        ("It thinks inside <think> tags. [[B]]", "It thinks inside <think> tags. [[B]]"),
        ("It never closes its </think>. [[B]]", ". [[B]]"),
        ("[[A]]\nIt never closes its </think>.", "."),
        ("The response says <·/think> here. [[B]]", "The response says <·/think> here. [[B]]"),
    ],
)
def test_what_counts_stands_behind_the_thinking(text: str, expected: str) -> None:
    assert concluded(text) == expected
