"""The answer of a trajectory.

It stands in one block of the answer tag, outside thoughts.  The same answer several times is one answer; different ones
are none, since the best of them would be picked by whoever knows the right one.

Not covered: what an answer means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.searches import Search
from adjudge.responses.trajectories.trajectory import Trajectory

SeveralAnswers: TypeAlias = Literal["none", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAnswer:
    """The answer, or why there is none.

    Attributes:
        text: the answer, "" without one.
        reason: "" with one, else `no_answer` or `several_answers`.
        end: one past its closing tag; 0 without an answer block.
        blocks: how many answer blocks there are.
    """

    text: str
    reason: str
    end: int
    blocks: int


def final_answer(trajectory: Trajectory, form: TrajectoryForm, *, several: SeveralAnswers = "none") -> FinalAnswer:
    """Return the answer of a trajectory.

    Args:
        trajectory: its answer blocks are looked at.
        form: names the tag.
        several: what different answers are worth: "none", or "last" for the last one, as in released code.
    """
    blocks = trajectory.blocks(form.answer)
    end = blocks[-1].end if blocks else 0
    offered = {" ".join(block.text.split()) for block in blocks}
    if len(offered) > 1 and several == "none":
        return FinalAnswer(text="", reason="several_answers", end=end, blocks=len(blocks))
    text = blocks[-1].text if blocks else ""
    return FinalAnswer(text=text, reason="" if text else "no_answer", end=end, blocks=len(blocks))


def goes_on(trajectory: Trajectory, answer: FinalAnswer, searches: Sequence[Search]) -> bool:
    """Return whether an answer is not the end: text stands behind it, or a search beside the message that holds it."""
    return bool(trajectory.written_after(answer.end).strip()) or any(search.end >= answer.end for search in searches)
