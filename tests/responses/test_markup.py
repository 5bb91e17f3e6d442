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
