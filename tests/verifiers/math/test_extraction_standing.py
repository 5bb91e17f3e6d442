"""A value is the answer only where nothing beside it makes it another value, and no word takes it back."""

from __future__ import annotations

import pytest

from adjudge.verifiers.math.extraction import extract
from adjudge.verifiers.math.standing import standing

ALONE = [
    # wrappers, relations, marks
    r"**\boxed{5}**", r"**Answer: \boxed{5}**", "**Final Answer**\n\n$$\\boxed{5}$$", r"$x = 2 + 3 = \boxed{5}$.",
    r"(\boxed{5})", r"$\text{The answer is \boxed{5}}$", r"\textcolor{red}{\boxed{5}}", r"{\large \boxed{5}}",
    r"<b>\boxed{5}</b>", r"\boxed{5}<br>", r"| \boxed{5} |", r"$\Rightarrow \boxed{5}$", r"=> \boxed{5}",
    r"\begin{align*} x &= 2+3 \\ &= \boxed{5}. \end{align*}", r"\boxed{5} \quad \square", r"\boxed{5} \tag{1}",
    r"$\$\boxed{5}$", r"$\boxed{5} \approx 5.0$", r"\boxed{5}!", r"$x=\boxed{5}, y=3$", "Step 3: \\boxed{5}",
    # bullets and labels
    "- a\n- \\boxed{5}", r"- $\boxed{5}$", r"* \boxed{5}", r"- \boxed{5}", r"> \boxed{5}",
    "Answer:\n- **\\boxed{5}**", "\\boxed{5}\n\n**1. Add**", r"(a) \boxed{5}", "1. First\n2. \\boxed{5}",
    "\\boxed{5}\n- 3 is too small", "7\n\\boxed{5}", r"That ends step 4.\boxed{5}", r"$x$ is 4.$\boxed{5}$",
    # nouns and what follows them
    r"\boxed{5} \text{ apples}", r"$\boxed{5}$th term", r"$\boxed{5}^{\text{th}}$ term", r"\boxed{5} (mod 7)",
    r"$\boxed{5} \pmod 7$", r"$\boxed{5}$ (since $a > 1$)", r"\boxed{5} more apples", r"\boxed{5} times as many",
    r"\boxed{5} - this is it", r"answer - \boxed{5}", r"\boxed{5} if he walks", r"\boxed{5}个",
    r"一共$\boxed{5}$个苹果",
    # what was denied before was something else
    r"at least three of them, so \boxed{5}", r"not possible, hence \boxed{5}", r"which is not 6 but \boxed{5}",
    r"The number that is not prime is \boxed{5}", r"I am not sure, but \boxed{5}", r"These add up to \boxed{5}",
    r"If x = 3, then the answer is \boxed{5}", r"You need to draw at least $\boxed{5}$ socks.",
    r"\boxed{5} is the correct answer, not 6.", r"\boxed{5} is not divisible by 3", "所以答案不是6，而是\\boxed{5}",
]  # fmt: skip


@pytest.mark.parametrize("text", ALONE)
def test_a_box_that_stands_alone_is_the_answer(text: str) -> None:
    found = extract(text)
    assert found is not None
    assert (found.text, found.marker) == ("5", "boxed")


OPENED = [
    (r"\boxed{5} + 3", "5 + 3"), (r"$$x = \boxed{5} + 3$$", "5 + 3"), (r"$\boxed{5}x$", "5x"), (r"\boxed{5}i", "5i"),
    (r"$\boxed{x+1} (x-1)$", "(x+1) (x-1)"), (r"\frac{1}{\boxed{5}}", r"\frac{1}{5}"), (r"$\sqrt{\boxed{5}}$",
    r"\sqrt{5}"),
    (r"x^{\boxed{5}}", "x^{5}"), (r"$|\boxed{-5}|$", "|(-5)|"), (r"$-\boxed{5}$", "-5"), ("2\n- \\boxed{5}", "2\n- 5"),
    (r"x > \boxed{5}", "x > 5"),
    (r"$\boxed{5}!$", "5!"),
    (r"\boxed{5}/3", "5/3"), (r"\boxed{5}:3", "5:3"), (r"3:\boxed{5}", "3:5"), (r"\boxed{5},000", "5,000"),
    (r"\boxed{5}{,}000", "5{,}000"), (r"\boxed{5}.5", "5.5"), (r"It is 0.\boxed{5}", "0.5"), (r"= 4.\boxed{5}", "4.5"),
    (r"\boxed{5}\frac12", r"5\frac12"), (r"2\boxed{5}",
    "2(5)"),
    (r"\boxed{5}\pm 1", r"5\pm 1"), (r"$x \ne \boxed{5}$", r"x \ne 5"), (r"\(x \le \boxed{5}\)", r"x \le 5"),
    (r"\boxed{5} = 6", "5 = 6"), (r"$\boxed{5}, 6$", "5, 6"), (r"\begin{align*} x &= 2\cdot\boxed{5} \end{align*}",
    r"2\cdot5"),
    # with what is written after the box
    (r"\boxed{5}\%", r"5\%"), (r"$\boxed{5}$ percent", r"5\%"), (r"$\boxed{30}^\circ$", r"30^\circ"),
    (r"$\boxed{5}$ cm.", r"5\text{ cm}"), (r"$\boxed{5} \text{ km}$", r"5\text{ km}"),
    (r"\boxed{5} cm^2", r"5\text{ cm^2}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), OPENED)
def test_a_formula_with_a_box_is_read_as_a_whole(text: str, answer: str) -> None:
    found = extract(text)
    assert found is not None
    assert (found.text, found.marker) == (answer, "boxed")


DENIED = [
    r"\boxed{5}0", r"f(\boxed{5}", r"minus \boxed{5}", r"twice $\boxed{5}$",
    r"the square root of \boxed{5}", r"\boxed{5}\text{ million}", r"$\boxed{5}$ million", r"**\boxed{5}** dozen",
    r"\(\boxed{5}\) squared", r"\boxed{5} or more", r"\boxed{5} or 6", r"\boxed{5} \text{ or } 6", r"\boxed{5} to 10",
    r"\boxed{5} at most", r"at least \boxed{5}", r"It is at most $\boxed{5}$", r"between 3 and \boxed{5}",
    r"either 4 or \boxed{5}", r"not \boxed{5}", r"It is **not** $\boxed{5}$", r"It cannot be \boxed{5}",
    r"the answer isn’t \boxed{5}", r"\boxed{5} is wrong.", r"$\boxed{5}$ would be wrong",
    r"\boxed{5}. That is wrong.",
    r"\boxed{5} is incorrect; I don't know", r"\boxed{5} is not the answer", r"\boxed{5} is too small",
    r"\boxed{5}? No.",
    r"Assume the answer is \boxed{5}", r"It is false that the answer is \boxed{5}",
    r"\boxed{5} if x is odd, otherwise 6",
    r"答案不是 $\boxed{5}$。", r"至少\boxed{5}", r"$\boxed{5}$万", r"\boxed{5}是错的", r"如果答案是\boxed{5}",
    r"nicht \boxed{5}",
    r"$5$ million", "So it is at least $5$", "The polynomial has degree 5", "We work modulo 5",
    "Then it exceeds 5 by far", "so x > 5 in the end",
]  # fmt: skip


@pytest.mark.parametrize("text", DENIED)
def test_a_value_that_its_clause_takes_back_is_no_answer(text: str) -> None:
    assert extract(text) is None


@pytest.mark.parametrize("text", ["The answer is base 5", "The answer is x divided by 5", "The answer is from 3 to 5"])
def test_a_sentence_is_returned_whole_when_its_number_is_not_what_it_says(text: str) -> None:
    found = extract(text)
    assert found is not None
    assert found.text == text.removeprefix("The answer is ")


BEFORE = [
    "",
    "so ",
    "is ",
    "it is not ",
    "not that it is ",
    "at least ",
    "if the value is ",
    "half of ",
    "x = ",
    "sin ",
    "is: ",
]
AFTER = ["", ".", " apples", " million", " is wrong", " and more", " x", " which is too small", " or 6"]
PAIRS = [("", ""), ("$", "$"), (r"\(", r"\)"), ("\\[\n", "\n\\]")]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("after", AFTER)
def test_delimiters_and_emphasis_change_no_denial(before: str, after: str) -> None:
    def judged(opening: str, closing: str) -> str:
        text = f"{before}{opening}\\boxed{{5}}{closing}{after}"
        start = text.index("\\boxed")
        return standing(text, start, start + len("\\boxed{5}"), marked=True)

    words = [judged(*pair) for pair in PAIRS[1:]]
    assert words == [judged("**$", "$**")] * len(words)
    assert words[0] == judged("", "") or "part" in (words[0], judged("", ""))
