"""The searches of a trajectory, what came back for each, and the answer at its end.

A search is a block of the form's search tag, or a call of one of its search tools with a `query` (or `queries`).  A
result belongs to the call whose id it names, or else the first without a result whose tool it names; the results that
name neither are dealt out in order, one to each search or call of the turn that has none, and what is left over belongs
to the last.  If they are too few, calls of other tools come first and empty searches last.  Where calls have ids, a
result with the id of no call of the turn belongs to none.  So what another tool printed is not a search's result: an
agent could let it print anything.

The answer stands in one block of the answer tag, outside thoughts.  The same answer several times is one answer;
different ones are none, or the right one among them would be picked.

Not covered: whether a query is a good one, and what an answer means.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from adjudge.responses.trajectories.trajectory import Document, Result, Trajectory, TrajectoryForm, Turn

SeveralAnswers: TypeAlias = Literal["none", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAnswer:
    """The answer, or "" and the reason, `no_answer` or `several_answers`; one past its closing tag; how many blocks."""

    text: str
    reason: str
    end: int
    blocks: int


def final_answer(trajectory: Trajectory, form: TrajectoryForm, *, several: SeveralAnswers = "none") -> FinalAnswer:
    """Return the answer of a trajectory; of different ones there is "none", or the "last", as in released code."""
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


_QUERY_KEYS = ("query", "queries", "query_list", "q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One search: its query, on one line for each query of a call, the place of its block or call, and its results.

    `turn` is the number of its turn, from 0.
    """

    query: str
    start: int
    end: int
    turn: int
    results: tuple[Result, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether a tool returned a document."""
        return any(result.documents for result in self.results)

    def documents(self) -> tuple[Document, ...]:
        """Return the documents that came back, in order."""
        return tuple(document for result in self.results for document in result.documents)


def searches_of(trajectory: Trajectory, form: TrajectoryForm) -> tuple[Search, ...]:
    """Return all searches that were attempted outside thoughts, in order."""
    return tuple(search for at, turn in enumerate(trajectory.turns) for search in _in_turn(turn, at, form))


def _in_turn(turn: Turn, at: int, form: TrajectoryForm) -> list[Search]:
    acts = [_Act(start=block.start, end=block.end, query=_line(block.text)) for block in turn.tagged(form.search)]
    for call in turn.calls:
        query = _query(call.arguments) if call.name in form.search_tools else None
        acts.append(_Act(start=call.start, end=call.end, query=query, name=call.name, id=call.id))
    acts.sort(key=lambda act: (act.start, act.end))
    # An id that two calls have is that of the other tool.
    ids = {act.id: act for act in sorted(acts, key=lambda act: act.query is None) if act.id}
    names: dict[str, deque[_Act]] = {}
    for act in acts:
        names.setdefault(act.name, deque()).append(act)
    unnamed = []
    for result in turn.results:
        if result.call_id in ids:
            ids[result.call_id].results.append(result)
        elif result.call_id and ids:
            continue
        elif result.name and (waiting := _waiting(names.get(result.name))):
            waiting.results.append(result)
        else:
            unnamed.append(result)
    free = [act for act in acts if not act.results]
    if len(unnamed) < len(free):  # somebody was not heard; what may be another tool's is not a search's
        free.sort(key=lambda act: (act.query is not None, act.query == ""))
    for number, result in enumerate(unnamed if acts else []):
        (free[number] if number < len(free) else acts[-1]).results.append(result)
    return [
        Search(query=act.query, start=act.start, end=act.end, turn=at, results=tuple(act.results))
        for act in acts
        if act.query is not None
    ]


@dataclass(slots=True, kw_only=True)
class _Act:
    """A search, or a call of another tool (`query` is None)."""

    start: int
    end: int
    query: str | None
    name: str = ""
    id: str = ""
    results: list[Result] = field(default_factory=list)


def _waiting(acts: deque[_Act] | None) -> _Act | None:
    """The first act of a tool without a result, or the last one if all have one."""
    while acts and len(acts) > 1 and acts[0].results:
        acts.popleft()
    return acts[0] if acts else None


def _query(arguments: Any) -> str:
    if not isinstance(arguments, Mapping):
        return ""
    given = next((arguments[key] for key in _QUERY_KEYS if key in arguments), "")
    lines = given if isinstance(given, list | tuple) else [given]
    return "\n".join(_line(line) for line in lines if isinstance(line, str)).strip()


def _line(query: str) -> str:
    """One query, however many lines it was written on."""
    return " ".join(query.split())
