"""The course of one dialogue: which turn is asked about next, what was said of the others, and what it is worth.

Not covered: asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.engines.interface import Fault
from adjudge.prompts.asking import Answer, cost_of
from adjudge.prompts.scorer import Case
from adjudge.protocol import NO_COST, Cost, Message, StepScore
from adjudge.verifiers.agents.user.dialogue import Turn
from adjudge.verifiers.agents.user.emotion import Emotion
from adjudge.verifiers.agents.user.person import Person

_SHOWN = 600  # characters of what a model says about one turn
_UNHEARD = "unheard"
_UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment(Case):
    """What a model is asked about: a turn of the assistant's, and how the user felt before it.

    Attributes:
        person: the user.
        dialogue: all turns until and with the one that counts.
        emotion: how the user felt before it.
        most: the largest change.

    `response` is what the assistant has said in all; where a prompt is too long, the base tries another in its place,
    which then stands for every turn of the assistant's.
    """

    person: Person
    dialogue: tuple[Message, ...]
    emotion: Emotion
    most: int

    def shown(self) -> tuple[Message, ...]:
        """Return the dialogue that is shown."""
        if self.response == spoken(self.dialogue):
            return self.dialogue
        return tuple(
            turn if turn["role"] == "user" else {"role": "assistant", "content": self.response}
            for turn in self.dialogue
        )


def spoken(dialogue: Sequence[Message]) -> str:
    """Return all that the assistant says in a dialogue."""
    return "\n".join(turn["content"] for turn in dialogue if turn["role"] == "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """What one turn did.

    Attributes:
        change: by how much the feeling changed, clipping done.
        emotion: the feeling after it.
        said: the change that the model named; None for a silent turn, about which nobody is asked.
        text: the model's reasons.
    """

    change: float
    emotion: Emotion
    said: float | None = None
    text: str = ""

    def told(self) -> dict[str, Any]:
        """Return it as evidence."""
        found: dict[str, Any] = {"change": self.change, "emotion": self.emotion.value, "band": self.emotion.band}
        if self.said is None:
            return {**found, "silent": True}
        shown = self.text if len(self.text) <= _SHOWN else f"... {self.text[-_SHOWN:]}"
        return {**found, "said": self.said, "text": shown}


@dataclass(slots=True, kw_only=True)
class Course:
    """One dialogue under way.

    Attributes:
        case: the sample that it belongs to.
        person: the user.
        turns: the assistant's turns that count.
        emotion: how the user feels.
        most: the largest change of one turn.
        felt: what the turns so far did.
        fault: why it cannot go on.
        cost: what it took.
    """

    case: Case
    person: Person
    turns: Sequence[Turn]
    emotion: Emotion
    most: int
    felt: list[Felt] = field(default_factory=list)
    fault: Fault | None = None
    cost: Cost = NO_COST

    def next(self) -> Moment | None:
        """Return what the model is asked next; None when there is nothing left to ask.  Silent turns are passed."""
        while not (self.emotion.over or self.fault) and len(self.felt) < len(self.turns):
            turn = self.turns[len(self.felt)]
            if not turn.silent:
                return Moment(
                    sample=self.case.sample,
                    response=spoken(turn.dialogue),
                    person=self.person,
                    dialogue=turn.dialogue,
                    emotion=self.emotion,
                    most=self.most,
                )
            self._move(-float(self.most), None, "")
        return None

    def take(self, answer: Answer[float] | Fault) -> None:
        """Go on with what the model said."""
        self.cost += cost_of([answer])
        if isinstance(answer, Fault):
            self.fault = answer
        else:
            self._move(answer.value, answer.value, answer.text)

    def _move(self, change: float, said: float | None, text: str) -> None:
        after = self.emotion.after(change, self.most)
        self.felt.append(Felt(change=after.value - self.emotion.value, emotion=after, said=said, text=text))
        self.emotion = after

    def steps(self, all_turns: Sequence[Turn]) -> tuple[StepScore, ...]:
        """Return what each of the assistant's turns did to the feeling; None for turns that do not count.

        Args:
            all_turns: also those behind the last one that counts.
        """
        steps = []
        for number, turn in enumerate(all_turns):
            known = number < len(self.felt)
            label = self.felt[number].emotion.band if known else _UNJUDGED if self.fault else _UNHEARD
            value = self.felt[number].change if known else None
            steps.append(StepScore(value=value, label=label, start=turn.start, end=turn.end))
        return tuple(steps)

    def evidence(self) -> dict[str, Any]:
        """Return plain data that lets a person check the course."""
        end = "unknown" if self.fault else self.emotion.band if self.emotion.over else "open"
        return {"emotion": self.emotion.value, "end": end, "turns": [felt.told() for felt in self.felt]}
