"""A search agent's judgements of what its tools returned: `<judge>Yes</judge>` for a useful result, No for another.

A judgement is about what the searches of the turn before it found.  Of each turn the first counts, if all of
the turn's judgements say the same; what follows no result is about nothing.

Where ReSeek's released code differs: it reads results that the model wrote itself, judgements in thoughts, and one
judgement for every result before it that has none of its own.

Not covered: whether a judgement is right.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.searches import Search, searches_of
from adjudge.responses.trajectories.trajectory import Block, Trajectory
from adjudge.verifiers.agents.search.evidence_text import identity

Standing: TypeAlias = Literal["counts", "repeated_result", "no_result", "again", "disagreeing", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One judgement.

    Attributes:
        useful: whether it says Yes; None if it can say neither.
        result: the text of the results that it is about; "" if there is none.
        standing: "counts"; "repeated_result" if all those documents came before; else why it is worth nothing.
        start: first character of the block.
        end: one past the last.
    """

    useful: bool | None
    result: str
    standing: Standing
    start: int
    end: int


def judgements_of(trajectory: Trajectory, form: TrajectoryForm) -> tuple[Judgement, ...]:
    """Return all judgements outside thoughts, in order."""
    found: list[Judgement] = []
    seen: set[tuple[str, str]] = set()
    searches: defaultdict[int, list[Search]] = defaultdict(list)
    for search in searches_of(trajectory, form):
        searches[search.turn].append(search)
    for at, turn in enumerate(trajectory.turns):
        before = searches[at - 1] if at else []
        blocks = turn.tagged(form.judge)
        result = "\n".join(one.text for search in before for one in search.results).strip()
        documents = {identity(document) for search in before for document in search.documents()}
        repeated = documents <= seen
        words = {_word(block) for block in blocks}
        for number, block in enumerate(blocks):
            standing: Standing = "repeated_result" if repeated else "counts"
            if not result:
                standing = "no_result"
            elif len(words) > 1:
                standing = "disagreeing"
            elif words == {None}:
                standing = "unreadable"
            elif number:
                standing = "again"
            found.append(
                Judgement(useful=_word(block), result=result, standing=standing, start=block.start, end=block.end)
            )
        seen |= documents
    return tuple(found)


def _word(block: Block) -> bool | None:
    return {"yes": True, "no": False}.get(block.text.casefold())
