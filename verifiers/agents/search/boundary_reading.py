"""What a policy of searching asks about a trajectory: its answer, its searches, its tools, its decision.

Not covered: whether the answer is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.responses.trajectories.answers import final_answer
from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.searches import searches_of
from adjudge.responses.trajectories.trajectory import Trajectory, Turn

_WORDS = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How an agent came to its answer.

    Attributes:
        answer: the answer, "" without one.
        fault: why the trajectory is malformed, a code of `adjudge.reasons`; "" if it is not.
        attempted: how many searches were tried; empty ones count, and so does what may have been one (`_unread`).
        answered: how many of those that can be read said something and were answered.
        tools: the different tools that answered, by name; only those that there are.
    """

    answer: str
    fault: str
    attempted: int
    answered: int
    tools: tuple[str, ...]


def conduct_of(
    trajectory: Trajectory, form: TrajectoryForm, *, thought: bool, tools: Sequence[str], answer: bool = True
) -> Conduct:
    """Return how an agent came to its answer.

    Args:
        trajectory: what it did.
        form: the names of tags and tools.
        thought: whether a trajectory without a closed thought that says something is malformed.
        tools: the tools beside the search, by the name of their tag or call.
        answer: whether an answer is asked for.
    """
    final = final_answer(trajectory, form)
    searches = searches_of(trajectory, form)
    ends = [call.end for call in trajectory.calls()] + [search.end for search in searches]
    fault = ""
    if trajectory.forged():
        fault = "tampering"
    elif answer and final.reason:
        fault = final.reason
    elif answer and any(end >= final.end for end in ends):
        fault = "bad_format"  # it went on after its answer; a call beside a message's text ends where that does
    elif thought and not _has_thought(trajectory, form):
        fault = "bad_format"
    return Conduct(
        answer=final.text,
        fault=fault,
        attempted=len(searches) + sum(_unread(turn, form, tools) for turn in trajectory.turns),
        answered=sum(bool(search.query.strip()) and search.answered for search in searches),
        tools=_tools(trajectory, form, tools),
    )


def read_decision(trajectory: Trajectory, tag: str) -> tuple[bool | None, str]:
    """Return whether the agent says that it knows the answer, and "" or the reason why it says neither yes nor no."""
    words = {block.text.strip().rstrip(".!").casefold() for block in trajectory.blocks(tag)}
    if len(words) != 1:
        return None, "several_answers" if words else "no_answer"
    said = _WORDS.get(words.pop())
    return said, "" if said is not None else "unparsable_answer"


def _has_thought(trajectory: Trajectory, form: TrajectoryForm) -> bool:
    close = f"</{form.think}>"
    thoughts = trajectory.blocks(form.think) if form.think else ()
    return any(block.text and trajectory.text[block.start : block.end].endswith(close) for block in thoughts)


def _unread(turn: Turn, form: TrajectoryForm, tools: Sequence[str]) -> int:
    """How many searches a turn may have made that cannot be read as such.

    They are calls of tools that nobody named, or that are no JSON; and, in a turn without a search, one for results
    that nothing asked for: what ran the agent read a search inside a thought, or in a tag that was never closed.
    """
    strange = sum(call.name not in (*form.search_tools, *tools) for call in turn.calls)
    written = [block.tag for block in turn.blocks]
    searches = form.search in written or any(call.name in form.search_tools for call in turn.calls)
    asked = len(turn.calls) + sum(tag in tools for tag in written)
    found = sum(bool(result.text.strip()) for result in turn.results)
    return strange + (bool(turn.text.strip()) and not searches and found > asked)


def _tools(trajectory: Trajectory, form: TrajectoryForm, tools: Sequence[str]) -> tuple[str, ...]:
    known = {form.search, *form.search_tools, *tools}
    names = [name for turn in trajectory.turns for name in _tools_of(turn, form, tools) if name in known]
    return tuple(dict.fromkeys(form.search if name in form.search_tools else name for name in names))


def _tools_of(turn: Turn, form: TrajectoryForm, tools: Sequence[str]) -> list[str]:
    """The tools that answered a turn.

    A result that names its tool or its call stands for that; one that names neither stands for the next tool that
    the turn called, so that a turn with one result has used one tool, however many it named.
    """
    called = {call.id: call.name for call in turn.calls if call.id}
    answered = [result.name or called.get(result.call_id, "") for result in turn.results if result.text.strip()]
    written = [(block.start, block.tag) for block in turn.blocks if block.tag in (form.search, *tools) and block.text]
    written += [(call.start, call.name) for call in turn.calls if not call.fault]
    waiting = [name for _, name in sorted(written) if name not in answered]
    return [*answered, *waiting[: answered.count("")]]
