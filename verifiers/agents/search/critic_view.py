"""A trajectory as a critic reads it: each line says who wrote it, so that no text passes for another's or opens a turn.

Not covered: escaping, which the prompt's template does.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.trajectory import Call, Turn


def own(turn: Turn) -> bool:
    """Return whether the agent did anything in a turn; what tools or users said before its first has none of it."""
    return bool(turn.text.strip() or turn.calls)


def shown_turns(turns: Sequence[Turn], form: TrajectoryForm, *, thoughts: bool, characters: int) -> str:
    """Return turns line by line, the agent's own with their numbers from 1.

    Args:
        turns: what is shown.
        form: names the tag of thoughts.
        thoughts: whether thoughts are shown.
        characters: most characters of one text of a tool or a user; the rest is left out, and said to be.
    """
    lines: list[str] = []
    numbers = itertools.count(1)
    for turn in turns:
        lines += [f"turn {next(numbers)}"] if own(turn) else []
        lines += _lines("agent", turn.text if thoughts else without_thoughts(turn, form))
        lines += [f"agent| {call}" for call in calls_beside(turn, form)]
        for text in (*(result.text for result in turn.results), *turn.replies):
            cut = len(text) - characters
            lines += _lines("tool", text if cut <= 0 else f"{text[:characters]}\n({cut} characters are left out)")
    return "\n".join(lines)


def without_thoughts(turn: Turn, form: TrajectoryForm) -> str:
    """Return what a turn says outside its thoughts."""
    kept, at = [], turn.start
    for block in turn.tagged(form.think) if form.think else ():
        kept.append(turn.text[at - turn.start : block.start - turn.start])
        at = block.end
    return "".join((*kept, turn.text[at - turn.start :]))


def calls_beside(turn: Turn, form: TrajectoryForm) -> list[str]:
    """Return the calls that stand beside a turn's text, each in one line."""
    written = {(block.start, block.end) for block in turn.tagged(form.tool_call)}
    return [_in_one_line(call) for call in turn.calls if (call.start, call.end) not in written]


def _in_one_line(call: Call) -> str:
    written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, default=str)
    return f"calls {' '.join(call.name.split())}: {' '.join(written.split())}"


def _lines(who: str, text: str) -> list[str]:
    return [f"{who}| {line}".rstrip() for line in text.strip().splitlines()]
