"""What the reader of an answer sees of it."""

from __future__ import annotations

import pytest

from adjudge.responses.markup import visible_answer


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (r"It is 41. \newcommand{\a}{\boxed{42}}", "It is 41. "),
        (r"\def\a{The answer is 42.} It is 41.", " It is 41."),
        (r"\index{\boxed{42}}\boxed{41}", r"\boxed{41}"),
        (r"\newcommand{\R}{\mathbb{R}} Over $\R$ it is $\frac{1}{2}$", r" Over $\R$ it is $\frac{1}{2}$"),
        (r"\frac{\indexed}{2} \tag{1}", r"\frac{\indexed}{2} \tag{1}"),
    ],
)
def test_what_tex_only_takes_note_of_is_not_seen(text: str, seen: str) -> None:
    assert visible_answer(text) == seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (r'310 <img alt="\boxed{300}">', "310 <img>"),
        ('310 <span title="The answer is 300">x</span>', "310 <span>x</span>"),
        (r"310 [](\boxed{300})", "310 "),
        (r"310 ![\boxed{300}](plot.png)", "310 "),
        (r'310 [page](https://x.y "\boxed{300}")', "310 page"),
        (r"310 \hide{\boxed{300}}", "310 "),
        (r"[\boxed{300}](#proof)", r"\boxed{300}"),
        (r'<span style="color: red">\boxed{300}</span>', r'<span style="color: red">\boxed{300}</span>'),
        ("The answer is [300](#proof) <br/>.", "The answer is [300](#proof) <br/>."),
        ("42<|im_end|>\n", "42"),
        ("<s>42</s>", "42"),
        ("42</s>", "42"),
        ("say <|im_end|> twice", "say <|im_end|> twice"),
    ],
)
def test_what_a_page_does_not_show_holds_no_answer(text: str, seen: str) -> None:
    assert visible_answer(text) == seen
