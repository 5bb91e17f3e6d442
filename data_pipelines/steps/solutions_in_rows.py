"""From a row to the solutions it holds: one or several, each cut into steps.

What is wrong with a solution is a reason in its place, and the others go on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from adjudge.data_pipelines.steps.config import WITH_ENGINE, WITHOUT_SOLUTIONS, StepsConfig
from adjudge.data_pipelines.steps.rollouts import Prefix
from adjudge.io.columns import MISSING, Choice, Column
from adjudge.io.jobs.lines import Unfit, fitted
from adjudge.io.values import exchange, is_chat, name_of, number_of, prompt_of, reference_of, text_or_chat
from adjudge.protocol import Message, Sample, turn_texts
from adjudge.responses.steps import Splitting, Step, given_steps, split_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """A solution cut into steps."""

    steps: tuple[str, ...]
    pieces: Prefix

    @classmethod
    def of(cls, text: str, how: Splitting, most: int) -> Self:
        """Return the pieces of a text; a text without anything to see has none."""
        return cls._cut(text, split_steps(text, how, most=most))

    @classmethod
    def given(cls, text: str, steps: Sequence[str]) -> Self | None:
        """Return the pieces of a text whose steps are given; None if these are not the whole text in this order."""
        cut = given_steps(text, steps)
        return None if cut is None else cls._cut(text, cut)

    @classmethod
    def _cut(cls, text: str, steps: Sequence[Step]) -> Self:
        cuts = [0, *(step.start for step in steps[1:]), len(text)]
        return cls(
            steps=tuple(step.text for step in steps),
            pieces=tuple(text[start:end] for start, end in itertools.pairwise(cuts)) if steps else (),
        )

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be solved; `group` names a family of problems, "" the prompt's own."""

    prompt: str | Sequence[Message]
    reference: Any
    id: str
    group: str

    def sample(
        self, response: str, *, finish_reason: str | None = None, extra: Mapping[str, Any] | None = None
    ) -> Sample:
        """Return a response to it, ready to be scored."""
        return Sample(
            prompt=self.prompt,
            response=response,
            reference=self.reference,
            id=self.id,
            finish_reason=finish_reason,
            extra=extra or {},
        )

    @property
    def text(self) -> str:
        """The prompt as one text."""
        return "\n".join(turn_texts(self.prompt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """One answer to a problem.

    Attributes:
        id: the row's, with "/k" if the row holds several solutions.
        cut: its steps.
        outcome: what the data say about it, a number; None if they say nothing.
    """

    problem: Problem
    id: str
    text: str
    cut: Pieces
    outcome: float | None


class SolutionReader:
    """Reads the solutions of rows."""

    def __init__(self, config: StepsConfig) -> None:
        self.config = config

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> None:
        """Raise `ValueError` naming a column that is needed and not there."""
        config = self.config
        choice = Choice(columns, first)
        choice.given("prompt", config.prompt_column)
        unneeded = config.method in WITHOUT_SOLUTIONS and config.response_column == ("response",)
        if not unneeded and not config.steps_column:
            for name in config.response_column:
                choice.given("response", name)
        if config.method == "worked" or config.reference_column != "reference":
            choice.check({"reference": config.reference_column})
        for name in config.outcome_column:
            choice.check({"outcome": name})
        choice.check({"steps": config.steps_column, "id": config.id_column, "group": config.group_column})

    def problem(self, row: Mapping[str, Any], number: int) -> Problem | str:
        """Return the problem of a row, or the reason why it holds none."""
        try:
            prompt = prompt_of(Column(self.config.prompt_column).of(row), self.config.prompt_column)
        except ValueError:
            return "bad_prompt"
        if isinstance(prompt, str):
            if not prompt.strip():
                return "bad_prompt"
        elif _contents(prompt) is None:
            return "bad_prompt"
        elif not self.config.chat and self.config.method in WITH_ENGINE:
            return "chat_prompt"
        return Problem(
            prompt=prompt,
            reference=reference_of(Column(self.config.reference_column).of(row)),
            id=_text_of(self.config.id_column, row) or str(number),
            group=_text_of(self.config.group_column, row),
        )

    def solutions(self, row: Mapping[str, Any], problem: Problem) -> Iterable[Solution | str]:
        """Yield the solutions of a row, or the reason why one cannot be used."""
        texts = list(self._texts(row))
        for index, (text, outcome) in enumerate(texts):
            name = problem.id if len(texts) == 1 else f"{problem.id}/{index}"
            yield self._solution(row, problem, name, text, outcome)

    def _texts(self, row: Mapping[str, Any]) -> Iterable[tuple[Any, Any]]:
        """Responses with what the data say of them: of a list, a list of as many."""
        responses = self.config.response_column
        outcomes = self.config.outcome_column or ("",) * len(responses)
        for name, outcome_name in zip(responses, outcomes, strict=True):
            value = Column(name).of(row)
            outcome = Column(outcome_name).of(row) if outcome_name else None
            if isinstance(value, list) and not is_chat(value):
                if not isinstance(outcome, list) or len(outcome) != len(value):
                    outcome = [None if outcome is None else MISSING] * len(value)
                yield from zip(value, outcome, strict=True)
            else:
                yield value, outcome

    def _solution(self, row: Mapping[str, Any], problem: Problem, name: str, text: Any, outcome: Any) -> Solution | str:
        known = None if outcome == "" else outcome  # CSV has no other way to say nothing
        number = number_of(known)
        if number is None and known is not None:
            return "bad_outcome"
        steps = Column(self.config.steps_column).of(row) if self.config.steps_column else None
        if steps is not None:
            if not isinstance(steps, list) or not steps or not all(isinstance(s, str) and s.strip() for s in steps):
                return "bad_steps"
            if text is MISSING:
                text = "\n\n".join(steps)
        cut: Pieces | None
        if is_chat(text) and self.config.method != "spa":
            text = _said(problem, text)
            if text is None:
                return "chat_response"  # its turns answer an environment, from which nobody can go on here
        if is_chat(text):
            contents = _contents(text)
            if contents is None:
                return "bad_response"
            said = zip(text, contents, strict=True)
            turns = tuple(content for turn, content in said if turn["role"] == "assistant" and content.strip())
            text, cut = "\n\n".join(turns), Pieces(steps=tuple(turn.strip() for turn in turns), pieces=turns)
        elif not isinstance(text, str):
            return "bad_response"
        else:
            most = self.config.max_steps
            cut = Pieces.of(text, self.config.splitting, most) if steps is None else Pieces.given(text, steps)
        if cut is None:
            return "bad_steps"
        if not cut.steps:
            return "empty_response"
        return Solution(problem=problem, id=name, text=text, cut=cut, outcome=number)


def _said(problem: Problem, chat: Any) -> str | None:
    """What an assistant says in one turn behind the prompt, which a whole chat repeats; None for anything else."""
    try:
        _, said = exchange(problem.prompt, text_or_chat(chat, "response"))
    except ValueError:
        return None
    alone = len(said) == 1 and not isinstance(said, str) and said[0]["role"] == "assistant"
    contents = _contents(said) if alone and not isinstance(said, str) else None
    return contents[0] if contents else None


def _contents(turns: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The text of each turn of a chat; None where a turn is none that a model could be shown, or a row could hold."""
    try:
        fitted(turns, "chat")
        return turn_texts(turns)
    except (Unfit, ValueError, AttributeError):  # content of a kind that no chat has
        return None


def _text_of(name: str, row: Mapping[str, Any]) -> str:
    return name_of(Column(name).of(row)) if name else ""
