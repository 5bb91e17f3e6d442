"""Atomic thoughts: what stands inside thoughts in tags that say what it is for, `<plan>..</plan>`, `<risk_analysis>..`.

The names are the agent's own.  Atoms never nest: one ends at the first closing tag of its name, and an opening tag
that is never closed opens nothing.  The names of the form's tags are no atoms.

Not covered: what an atom is worth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.trajectory import Trajectory
from adjudge.verifiers.rubric.phrases import plain

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_-]{0,40})>")
_LETTERS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One atomic thought.

    Attributes:
        tag: its name.
        text: what stands inside, without blanks around it.
        start: first character of the opening tag, in `response_text` of the sample.
        end: one past the closing tag.
        fault: "", "empty" without a word, or "repeated" where the same letters stood in an atom before, whatever their
            case and what stands between them.
    """

    tag: str
    text: str
    start: int
    end: int
    fault: str = ""


def atoms_of(trajectory: Trajectory, form: TrajectoryForm) -> list[Atom]:
    """Return the atoms of all thoughts, in order; linear in the length of the thoughts."""
    found: list[Atom] = []
    seen: set[str] = set()
    for thought in trajectory.blocks(form.think) if form.think else ():
        text = trajectory.text[thought.start : thought.end]
        for tag, opened, inside, close, end in _places(text, frozenset(form.tags)):
            letters = "".join(_LETTERS.findall(plain(text[inside:close])))
            fault = "repeated" if letters in seen else "" if letters else "empty"
            if letters:
                seen.add(letters)
            found.append(
                Atom(
                    tag=tag,
                    text=text[inside:close].strip(),
                    start=thought.start + opened,
                    end=thought.start + end,
                    fault=fault,
                )
            )
    return found


def _places(text: str, reserved: frozenset[str]) -> list[tuple[str, int, int, int, int]]:
    """Name of each atom, and where its opening tag, its inside, its closing tag and what follows begin."""
    marks = [mark for mark in _TAG.finditer(text) if mark[2] not in reserved]
    last = {mark[2]: mark.start() for mark in marks if mark[1]}
    found: list[tuple[str, int, int, int, int]] = []
    tag, opened, inside = "", 0, 0
    for mark in marks:
        if tag:
            if mark[1] and mark[2] == tag:
                found.append((tag, opened, inside, mark.start(), mark.end()))
                tag = ""
        elif not mark[1] and last.get(mark[2], -1) >= mark.end():
            tag, opened, inside = mark[2], mark.start(), mark.end()
    return found
