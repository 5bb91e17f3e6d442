"""A tiny judge learns by three rewards, with three seeds each; a picture shows how right and how consistent it gets.

    python examples/training/judge_lesson.py judge.png

About a minute of one core for each of the nine runs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from adjudge.rl_integration.trainer.judging.lesson import REWARDS, Lesson, Measured, learn_to_judge

NAMES = {
    "as_given": "one order, as the data come",
    "both_orders": "both orders in a batch",
    "consistency": "both orders, paid together (J1)",
}


def told(what: str, one: Measured) -> str:
    """A measurement as a line."""
    return (
        f"{what} step {one.step:4d}  right {one.right:6.1%}  consistent {one.consistent:6.1%}  "
        f"first preferred {one.first_preferred:6.1%}"
    )


def draw(lessons: Mapping[str, Sequence[Lesson]], path: Path) -> None:
    """Draw a curve for each lesson, and one colour for each reward."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for at, (reward, seeds) in enumerate(lessons.items()):
        for number, lesson in enumerate(seeds):
            for axes, name in zip(panels, ("right", "consistent"), strict=True):
                axes.plot(
                    [one.step for one in lesson.curve],
                    [getattr(one, name) for one in lesson.curve],
                    color=f"C{at}",
                    alpha=0.8,
                    label=NAMES[reward] if number == 0 else None,
                )
    for axes, title in zip(panels, ("Right verdicts", "Same winner in both orders"), strict=True):
        axes.set(title=title, xlabel="steps", ylim=(-0.03, 1.03))
        axes.grid(alpha=0.3)
    panels[1].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the lessons."""
    asked = argparse.ArgumentParser(description="A tiny judge learns by three rewards.")
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--steps", type=int, default=120)
    asked.add_argument("picture", type=Path, nargs="?", help="a file for the curves")
    given = asked.parse_args()
    lessons: dict[str, list[Lesson]] = {}
    for reward in REWARDS:
        for seed in range(given.seeds):
            with tempfile.TemporaryDirectory() as folder:
                lesson = learn_to_judge(Path(folder) / "run", reward=reward, seed=seed, steps=given.steps)
            lessons.setdefault(reward, []).append(lesson)
            for one in (lesson.curve[0], lesson.curve[-1]):
                print(told(f"{reward:12s} seed {seed}", one), flush=True)
    if given.picture is not None:
        draw(lessons, given.picture)


if __name__ == "__main__":
    main()
