"""The curves of a lesson's runs in one picture: what they had right of the held-out tasks, and what they were paid.

Not covered: the other numbers of a run; its report has those.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge.extras import install_hint
from adjudge.rl_integration.trainer.loop.records.journal import STEPS, read_journal

_COLOURS = ("#2f7ed8", "#d9730d", "#2a9d5c", "#b04fc4", "#c0392b", "#0f9aa8")
_LOOKS: Any = {"svg.hashsalt": "adjudge", "svg.fonttype": "none", "font.size": 9}  # the same numbers give the same file


def draw(runs: Mapping[str, Path], before: Mapping[str, float], path: Path, *, title: str) -> None:
    """Write a picture.

    Args:
        runs: folder of each run by its name.
        before: share of the held-out tasks that each had right before it began.
        path: of the picture, an .svg file.
        title: above it.

    Raises:
        ValueError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(f"the picture needs matplotlib ({error}); {install_hint('train')}") from error
    with mpl.rc_context(_LOOKS):
        figure = Figure(figsize=(8.0, 3.0), layout="constrained")
        right, paid = figure.subplots(1, 2)
        for colour, (name, folder) in zip(_COLOURS, runs.items(), strict=False):
            lines = read_journal(folder, STEPS)
            points = [(0, before[name]), *_points(lines, "held_out")]
            right.plot(*zip(*points, strict=True), color=colour, marker=".", label=name)
            paid.plot(*zip(*_smooth(_points(lines, "reward")), strict=True), color=colour, label=name)
        right.set(title="held-out tasks that are right", xlabel="step", ylim=(-0.02, 1.02))
        paid.set(title="mean reward of five batches", xlabel="step")
        for axes in (right, paid):
            axes.grid(alpha=0.3)
        right.legend(fontsize=8)
        figure.suptitle(title, fontsize=10)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    path.write_text(drawn.getvalue(), encoding="utf-8")


def _points(lines: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(line["step"], line[name]) for line in lines if name in line]


def _smooth(points: Sequence[tuple[float, float]], width: int = 5) -> list[tuple[float, float]]:
    """The mean of each point and those before it, `width` at most."""
    values = [value for _, value in points]
    return [
        (step, sum(values[max(0, at + 1 - width) : at + 1]) / len(values[max(0, at + 1 - width) : at + 1]))
        for at, (step, _) in enumerate(points)
    ]
