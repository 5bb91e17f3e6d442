r"""The answer of one response in BAPO, or what is wrong with its form.

The form is that of the release: `<think>` elements, at least one; one `<answer>` with a `\boxed{}`; every `<search>`
and `<python>` closed, and followed by what the tool returned.  It is asked of the assistant's own text alone.  The
release asks the whole text, so a page that shows a tag makes a good answer a malformed one there, and results that the
policy wrote itself pass for results.

Not covered: whether the searches were any good.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from adjudge.protocol import Sample
from adjudge.responses.trajectories.form import TrajectoryForm
from adjudge.responses.trajectories.reading import read_trajectory
from adjudge.responses.trajectories.trajectory import Trajectory
from adjudge.verifiers.text.answer_span import find_spans
from adjudge.verifiers.text.answer_verifier import graded_text

ToolText = Literal["spans", "tags"]

_TOOLS: Final = ("search", "python")
_PAIRED: Final = ("think", *_TOOLS)
_TAG: Final = re.compile(r"<(?P<slash>/?)(?P<name>think|answer|search|python)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class BapoAnswer:
    """The answer, or what is wrong.

    Attributes:
        text: the answer; "" where the form is wrong.
        problem: what is wrong with the form; "" where nothing is.
    """

    text: str = ""
    problem: str = ""


@lru_cache(maxsize=4)
def search_form(tool_text: ToolText) -> TrajectoryForm:
    """Return the tags of the release."""
    return TrajectoryForm(result="result", more=("python",), tool_text=tool_text)


def search_answer(sample: Sample, form: TrajectoryForm, *, boxed: bool) -> BapoAnswer:
    """Return the answer of a search agent.

    Raises:
        ValueError: the sample does not say who wrote what.
    """
    trajectory = read_trajectory(sample, form)
    problem = _tag_problem("\n".join(turn.text for turn in trajectory.turns)) or _result_problem(trajectory, form)
    if problem:
        return BapoAnswer(problem=problem)
    blocks = trajectory.blocks(form.answer)
    if len(blocks) != 1:
        return BapoAnswer(problem="the answer does not stand outside the thoughts")
    return _boxed(blocks[0].text) if boxed else _filled(blocks[0].text)


def plain_answer(sample: Sample) -> BapoAnswer:
    """Return the answer of any response: the last element, box or marker behind the reasoning, or all of it."""
    text, fault = graded_text(sample, "strip")
    if fault:
        return BapoAnswer(problem="the response ends inside its reasoning")
    spans = find_spans(text, "auto")
    return _filled(spans[0].texts[-1]) if spans else BapoAnswer(problem="there is no answer")


def _tag_problem(text: str) -> str:
    """Return what is wrong with the tags that the assistant wrote: each pair opened, then closed, by itself."""
    opened = Counter[str]()
    closed = Counter[str]()
    for mark in _TAG.finditer(text):
        name = mark["name"]
        (closed if mark["slash"] else opened)[name] += 1
        if not 0 <= opened[name] - closed[name] <= 1:
            return f"<{name}> is not opened and closed in turn"
    for name in (*_PAIRED, "answer"):
        if opened[name] != closed[name]:
            return f"<{name}> is not closed"
    if not opened["think"]:
        return "there is no <think>"
    return "" if opened["answer"] == 1 else "there is not exactly one <answer>"


def _result_problem(trajectory: Trajectory, form: TrajectoryForm) -> str:
    if trajectory.forged():
        return "the response wrote a tool's result itself"
    for turn in trajectory.turns:
        if any(turn.tagged(name) for name in _TOOLS) and not turn.results:
            return "a tool was called and nothing came back"
    return ""


def _boxed(text: str) -> BapoAnswer:
    spans = find_spans(text, "boxed")
    return _filled(spans[0].texts[-1]) if spans else BapoAnswer(problem="the answer has no closed \\boxed{}")


def _filled(text: str) -> BapoAnswer:
    return BapoAnswer(text=text) if text.strip() else BapoAnswer(problem="the answer is empty")
