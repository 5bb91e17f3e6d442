"""Curves over the steps of a run, as figures for a page: drawings of numbers alone, every name in HTML around them.

Not covered: which curves there are (`report`).
"""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.extras import install_hint

COLOURS = ("#2f7ed8", "#d9730d", "#2a9d5c", "#b04fc4", "#c0392b", "#0f9aa8")
"""Of the lines; each is readable on white and on dark grey."""

_POINTS = 400  # of a line; of more, neighbours are put together
_DOTS = 30  # lines of fewer points have them marked
_INK = "#010203"  # what the drawing calls the colour of the page's text
_LOOKS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "adjudge",  # the same numbers give the same page
    "font.size": 9,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _INK,
}


def figure(title: str, columns: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a figure of numbers over steps; nothing if no step has any of them.

    Args:
        title: of the figure; any text.
        columns: names of numbers; any texts.
        lines: of the journal, each with a "step".

    Raises:
        ValueError: matplotlib is not installed.
    """
    found = {
        name: np.array([(line["step"], line[name]) for line in lines if name in line], dtype=float)
        for name in columns
        if any(name in line for line in lines)
    }
    if not found:
        return ""
    drawn = _drawn([_thinned(points) for points in found.values()])
    legend = "".join(
        f'<span style="color:{COLOURS[place % len(COLOURS)]}">{html.escape(_label(name))}</span>'
        for place, name in enumerate(found)
    )
    named = html.escape(f"{title}: {', '.join(map(_label, found))}", quote=True)
    return (
        f'<figure role="img" aria-label="{named}"><figcaption><b>{html.escape(title)}</b>'
        f"{legend if len(found) > 1 or any('/' in name for name in found) else ''}</figcaption>{drawn}</figure>"
    )


def _drawn(lines: Sequence[np.ndarray[Any, Any]]) -> str:
    """The drawing: lines, axes, and numbers along them."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ValueError(f"the report needs matplotlib ({error}); {install_hint('train')}") from error
    with rc_context(_LOOKS):
        drawing = Figure(figsize=(4.4, 2.4), facecolor="none")
        axes = drawing.add_axes((0.15, 0.11, 0.83, 0.8))  # a layout made for the numbers would draw everything twice
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
        for place, points in enumerate(lines):
            marker = "." if len(points) < _DOTS else ""
            axes.plot(points[:, 0], points[:, 1], color=COLOURS[place % len(COLOURS)], marker=marker)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        file = io.StringIO()
        drawing.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :].replace(_INK, "currentColor")


def _thinned(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """At most so many points, each the mean of neighbours."""
    if len(points) <= _POINTS:
        return points
    size = -(-len(points) // _POINTS)
    return np.array([points[at : at + size].mean(axis=0) for at in range(0, len(points), size)])


def _label(name: str) -> str:
    """The name for people; "parts/format" is told as "format", since the title says of what."""
    return (name.partition("/")[2] or name).replace("_", " ")
