"""Which answer a response commits to: every marker, every policy, and time that grows with the text only."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.math.boxes import MAX_BOXES, boxed, unescape
from adjudge.verifiers.math.extraction import Extraction, extract

FUZZED = settings(deadline=None, max_examples=150, derandomize=True)

FOUND = [
    # tags before boxes, boxes before the rest
    ("<answer>5</answer>", "5", "tag"),
    (r"\boxed{4} <answer>5</answer>", "5", "tag"),
    (r"<answer>\boxed{5}</answer>", "5", "tag"),
    ("<answer>The answer is 5.</answer> then \\boxed{6}", "5", "tag"),
    ("<answer> 5 </answer> and again <answer>5</answer>", "5", "tag"),
    # boxes
    (r"So \boxed{5}.", "5", "boxed"),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", "boxed"),
    (r"\boxed {5}", "5", "boxed"),
    (r"\boxed 5", "5", "boxed"),
    (r"\fbox{5}", "5", "boxed"),
    (r"\boxed{\{1,2\}}", r"\{1,2\}", "boxed"),
    (r"\boxed{5} is the answer, not 6.", "5", "boxed"),
    (r"\boxed{4} is tempting. But then \boxed{5}.", "5", "boxed"),
    (r"The answer is 7, so \boxed{5}.", "5", "boxed"),
    ("#### 7\n\\boxed{5}", "5", "boxed"),
    (r"\\boxed{\\frac{1}{2}}", r"\frac{1}{2}", "boxed"),
    (r"\boxed{5}\%", r"5\%", "boxed"),
    (r"\boxed{5} percent", r"5\%", "boxed"),
    # several boxes that are one list
    (r"\boxed{3} and \boxed{4}", "3, 4", "boxed"),
    (r"\boxed{3}, \boxed{4}", "3, 4", "boxed"),
    (r"$\boxed{3}$ or $\boxed{4}$", "3, 4", "boxed"),
    (r"\boxed{3} \text{ and } \boxed{4}", "3, 4", "boxed"),
    (r"\boxed{3} or perhaps \boxed{4}", "3, 4", "boxed"),
    (r"\boxed{3} and \boxed{3}", "3", "boxed"),
    (r"\boxed{x=1}\quad\boxed{y=2}", "x=1, y=2", "boxed"),
    # a change of mind is not a list
    (r"\boxed{3}? No, rather \boxed{4}", "4", "boxed"),
    (r"\boxed{3} and wait, no, \boxed{4}", "4", "boxed"),
    # a "final answer" after the box
    ("\\boxed{5}\nFinal answer: 6", "6", "final answer"),
    ("\\boxed{5}\nThe final answer is $6$. I hope it is correct.", "6", "final answer"),
    ("Final answer: 6\n\\boxed{5}", "5", "boxed"),
    ("**Final Answer:** $\\frac{1}{2}$", r"\frac{1}{2}", "final answer"),
    ("最终答案是 5。", "5", "final answer"),
    # ####
    ("6*7 = 42\n#### 42", "42", "####"),
    ("#### 41\n#### 42", "42", "####"),
    ("#### 1,234 ", "1,234", "####"),
    # answer lines
    ("The answer is 42.", "42", "answer"),
    ("The answer is 41. Wait, the answer is 42.", "42", "answer"),
    ("Answer: $x = 3$", "x = 3", "answer"),
    ("**Answer:** 42", "42", "answer"),
    ("A: 42", "42", "answer"),
    ("Answer:\n42", "42", "answer"),
    ("The answer is $42$ apples.", "42", "answer"),
    ("The answer is that Tom has 42 apples.", "42", "answer"),
    ("Hence the value is $\\pi$.", r"\pi", "answer"),
    ("答案是42。", "42", "answer"),
    ("The answer is -5.", "-5", "answer"),
    ("The answer is 3.5", "3.5", "answer"),
    # nothing but an answer, the last formula, the last number
    ("42", "42", "whole"),
    (" $x+1$ ", "$x+1$", "whole"),
    ("no solution", "no solution", "whole"),
    ("Adding up gives $x+1$ as wanted.", "x+1", "formula"),
    ("First $x+1$, and then \\[x+2\\]", "x+2", "formula"),
    ("There are 3 cats and 4 dogs, which makes 7 animals.", "7", "number"),
    ("It costs $1,234.50 in total", "$1,234.50", "number"),
    ("The total is 3/4 of it.", "3/4", "number"),
    # stop tokens
    ("The answer is 5.<|im_end|>\nThe answer is 6.", "5", "answer"),
    ("\\boxed{5}</s>\\boxed{6}", "5", "boxed"),
    ("5<|endoftext|>6", "5", "whole"),
]


@pytest.mark.parametrize(("text", "answer", "marker"), FOUND, ids=[text[:50] for text, _, _ in FOUND])
def test_found(text: str, answer: str, marker: str) -> None:
    found = extract(text)
    assert found is not None
    assert (found.text, found.marker) == (answer, marker)


NOTHING = [
    "", "   ", "\n\n",
    "I do not know how to solve this one.\nIt would take a longer argument than I can give here and now, sorry.",
    r"So \boxed{\frac{1}{2}", "It is not 5.", "It has more than 5 parts, I am sure of that much at least",
]  # fmt: skip


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_found(text: str) -> None:
    found = extract(text)
    assert found is None or not any(sign.isdigit() for sign in found.text)


def test_an_unclosed_last_box_hides_what_stands_before() -> None:
    assert extract(r"\boxed{5} and finally \boxed{6") is None
    assert extract("The answer is 5. \\boxed{\\frac{1}{2}") is None


CHANGED = [
    "The answer is minus 5.", "The answer is negative 5.", "The answer is 5 million.", "The answer is 5 dozen.",
    "The answer is 5 squared.", "The answer is 5 factorial.", "The answer is twice 5.", "The answer is half of 5.",
    "The answer is the square root of 5.", "The answer is x plus 5.", "The answer is 5 or more.",
    "The answer is not 5.", "The answer is at least 5.", "The answer is less than 5.", "Final answer: minus $5$",
    "Final answer: negative 5", "We find that x = - 5", "Thus it equals 3^5", "so we get 3*5", "so we get sqrt(5)",
    "so we get 5x", "so we get 5!", "so we get 5i", "so x is minus 5", "so we get 5 million", "so we get 2.5e5",
    "it cannot be 5", r"So x = -\boxed{5}", r"$-\boxed{5}$", r"2\boxed{5}", r"\boxed{5}^2",
    r"\boxed{5} million",
]  # fmt: skip


@pytest.mark.parametrize("text", CHANGED)
def test_a_number_is_not_taken_out_of_what_changes_it(text: str) -> None:
    found = extract(text)
    assert found is None or found.text.strip("$ ") != "5"


def test_tags_must_agree() -> None:
    found = extract("<answer>5</answer><answer>6</answer>")
    assert found == Extraction("6", "tag", ("5",))


def test_several_boxes_by_policy() -> None:
    text = r"First \boxed{4}. Later on we see that it is \boxed{5}. And it stays \boxed{6}."
    assert extract(text) == Extraction("6", "boxed")
    assert extract(text, boxes="same") == Extraction("6", "boxed", ("4", "5"))
    assert extract(r"\boxed{5}", boxes="same") == Extraction("5", "boxed")


def test_boxes_are_limited() -> None:
    assert len(boxed(r"\boxed{1}," * (3 * MAX_BOXES))[0]) == MAX_BOXES


def test_spans_are_where_the_boxes_stand() -> None:
    text = r"a \boxed{1} and \boxed{2} b"
    groups, unclosed = boxed(text)
    assert not unclosed
    assert [text[start:stop] for _, start, stop in groups] == [r"\boxed{1}", r"\boxed{2}"]


def test_unescape() -> None:
    assert unescape(r"\\boxed{\\frac{1}{2}}") == r"\boxed{\frac{1}{2}}"
    assert unescape(r"\begin{pmatrix}1\\2\end{pmatrix}") == r"\begin{pmatrix}1\\2\end{pmatrix}"
    assert unescape("5") == "5"


PIECES = r"""\boxed{ \boxed \fbox{ { } \{ 5 -7 3.5 1,234 x <answer> </answer> <|im_end|> #### Answer: answer final is
    the and or not wait $ $$ \[ \] \( \) . ! ? % \% I hope 答案是 most than \frac{1}{2} \\boxed{ A: cats million
    \text{ * **
    """.split()
WORDS = st.sampled_from([*PIECES, "\n", "\n\n", "  "])


@FUZZED
@given(st.lists(WORDS, max_size=40).map(" ".join), st.sampled_from(("last", "same")))
def test_any_text_is_searched(text: str, policy: str) -> None:
    found = extract(text, boxes="same" if policy == "same" else "last")
    if found is not None:
        assert found.marker in ("tag", "boxed", "####", "final answer", "answer", "whole", "formula", "number")
        assert found == extract(text, boxes="same" if policy == "same" else "last")


@FUZZED
@given(st.text(max_size=200).filter(lambda text: "<" not in text and "\\" not in text), st.integers(-999, 999))
def test_a_box_at_the_end_is_the_answer(before: str, value: int) -> None:
    found = extract(f"{before}\nSo it is $\\boxed{{{value}}}$.")
    assert found is not None
    assert (found.text, found.marker) == (str(value), "boxed")


# -- time -------------------------------------------------------------------------------------------------------

HOSTILE = [
    ("", "\\boxed{", ""), ("", "\\boxed{1} ", ""), ("", "\\boxed{1}, ", ""), ("\\boxed{", "{}", "}"),
    ("", "\\", "boxed{1}"), ("", "<answer>", ""), ("</answer>", "<answer>", ""), ("", "<answer>1</answer>", ""),
    ("<answer>", "</answer>", ""), ("", "<|", ""), ("", "$", "5"), ("", "\\[", "5"), ("", "\\(", "5"),
    ("", "$1$ ", ""), ("", "#### ", ""), ("", "final answer ", "5"), ("", "answer ", "5"),
    ("The answer is ", " ", "5"), ("", " ", "x. I hope"), ("", "\n", "5"), ("", "\t \n", "x. I hope"), ("", "1,", ""),
    ("The answer is ", "1,234 ", ""), ("", "not ", "5"), ("The answer is ", "is ", "5"), ("", "I hope ", ""),
    ("x", "。", ""), ("", "1", ""), ("\\boxed{5}", " ", ""), ("\\boxed{5}", "{ }", ""), ("", "- ", "\\boxed{5}"),
    ("- ", "\n- ", "\\boxed{5}x"), ("", "\\text{", "\\boxed{5}+"), ("not ", "a", "\\boxed{5}"),
    ("", "$-", "\\boxed{5}"),
]  # fmt: skip
SIZE = 20_000


def seconds(text: str) -> float:
    """Return the processor time of a search under both policies."""
    start = time.process_time()
    extract(text)
    extract(text, boxes="same")
    return time.process_time() - start


@pytest.mark.parametrize(("before", "piece", "after"), HOSTILE)
def test_time_grows_with_the_text_only(before: str, piece: str, after: str) -> None:
    short, long = (before + piece * (size // len(piece)) + after for size in (SIZE, 2 * SIZE))
    for _attempt in range(2):  # another process may have had its turn
        once, twice = seconds(short), seconds(long)
        if once < 10 and twice < 3 * once + 0.1:
            return
    raise AssertionError(f"{once:.2f} s, and {twice:.2f} s for twice the text")
