"""The lesson's judge begins by guessing, and gets better; a picture shows what came of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from experiments.judging.lesson import Measured, described, draw, learn_to_judge, lesson_tasks

from adjudge.rl_integration.trainer.loop.run_logger import STEPS, read_journal


@pytest.mark.full
def test_a_judge_that_guessed_learns_from_both_orders(tmp_path: Path) -> None:
    before, after = curve = learn_to_judge(tmp_path / "run", reward="both_orders", seed=2, steps=25, every=25)
    assert [before.step, after.step] == [0, 25]
    assert 0.4 <= before.right <= 0.6
    assert after.right > before.right + 0.08, curve
    assert after.consistent > before.consistent + 0.15
    assert list((tmp_path / "run").glob("*.html"))
    last = read_journal(tmp_path / "run", STEPS)[-1]
    assert {"right_first", "right_second", "first_preferred", "consistent", "no_verdict"} <= last.keys()


def test_as_given_the_better_text_is_first_in_three_of_four_pairs() -> None:
    tasks, held_out = lesson_tasks("as_given", seed=0)
    assert Counter(task.reference for task in tasks) == {"A": 750, "B": 250}
    assert Counter(task.reference for task in held_out) == {"A": 200, "B": 200}
    for task in (*tasks, *held_out):
        first, second = str(task.prompt).split()[1::2]
        assert (first.count("o") > second.count("o")) == (task.reference == "A")
    assert {task.prompt for task in tasks}.isdisjoint(task.prompt for task in held_out)


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    curve = (Measured(step=0, right=0.5, consistent=0.0, first_preferred=1.0),) * 2
    draw({"as_given": [curve], "consistency": [curve, curve]}, tmp_path / "judge.png")
    assert (tmp_path / "judge.png").stat().st_size > 1_000
    assert described("x", curve[0]) == "x step    0  right  50.0%  consistent   0.0%  first preferred 100.0%"
