"""A simulated user to talk to: what they feel and say after each turn of the assistant's, while the dialogue goes on.

It is for rollouts of several turns.  The feelings are the scorer's own: the finished dialogue, scored afterwards, has
the same changes and the same reward.  Beside them the model writes the user's next words.

Not covered: policies.  The loop that lets one speak is the caller's; docs/simulated_user.md shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.engines.interface import Fault
from adjudge.prompts.asking import Answer, cost_of
from adjudge.prompts.template import Rendered, Value, load_template
from adjudge.protocol import NO_COST, Cost, Message, Sample, split_reasoning
from adjudge.verifiers.agents.user.dialogue import MANNERS, Band, turns_of
from adjudge.verifiers.agents.user.scorer import Moment, SimulatedUserScorer

_REPLY: Final = "verifiers/agents/user/reply"
_LONGEST: Final = 4_000  # characters of a user's turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What a turn of the assistant's does to the user.

    Attributes:
        text: the user's next words; "" where the conversation is over.
        change, emotion, band: by how much the feeling changed, where it is now, from 0 to 100, and in which band.
        over: whether the user leaves, content or not.
        analysis: the model's reasons.
        cost: of both calls.
    """

    text: str
    change: float
    emotion: float
    band: Band
    over: bool
    analysis: str = ""
    cost: Cost = NO_COST


class UserSession:
    """One conversation.

    Args:
        user: the scorer that plays the user.
        reference: who the user is, as for the scorer.
        prompt: what the user said first, or the turns until now.

    Raises:
        ValueError: nobody can be made of the reference.
    """

    def __init__(self, user: SimulatedUserScorer, reference: Any, prompt: str | Sequence[Message]) -> None:
        self._user = user
        self._opened = Sample(prompt=prompt, response="", reference=reference)
        self._said: list[Message] = []
        self._turns = 0
        self.emotion = user.course(self._opened, ()).emotion

    @property
    def revision(self) -> str:
        """The scorer's fingerprint and the second prompt: they change when the same words could get other reactions."""
        return f"{self._user.fingerprint} {load_template(_REPLY).digest}"

    @property
    def over(self) -> bool:
        """Whether the user has left, or hears no more turns."""
        return self.emotion.over or self._turns >= self._user.max_turns

    @property
    def reward(self) -> float:
        """What the conversation is worth as it stands, in [0, 1]."""
        return self.emotion.reward

    def sample(self) -> Sample:
        """Return the conversation so far, to be scored or kept."""
        return replace(self._opened, response=tuple(self._said))

    async def hear(self, text: str) -> Reaction | Fault:
        """Return what the assistant's words do; a fault leaves everything as it was, so that they can be said again.

        Raises:
            ValueError: the conversation is over.
        """
        if self.over:
            raise ValueError("the conversation is over; begin another session")
        turns = (*self._said, {"role": "assistant", "content": text})
        turn = turns_of(replace(self._opened, response=turns), self._user.reasoning)[-1]
        course = self._user.course(self._opened, [turn], self.emotion)
        moment = course.next()
        if moment is not None:
            course.take((await self._user.changes([moment]))[0])
        if course.fault is not None:
            return course.fault
        (felt,) = course.felt
        words, cost = "", course.cost
        if not felt.emotion.over and self._turns + 1 < self._user.max_turns:
            answer = await self._reply(course.moment(turn), felt.text)
            cost += cost_of([answer])
            if isinstance(answer, Fault):
                return answer
            words = answer.value
        self._said = [*turns, *([{"role": "user", "content": words}] if words else [])]
        self._turns += 1
        self.emotion = felt.emotion
        return Reaction(
            text=words,
            change=felt.change,
            emotion=felt.emotion.value,
            band=felt.emotion.band,
            over=self.over,
            analysis=felt.text,
            cost=cost,
        )

    async def _reply(self, moment: Moment, analysis: str) -> Answer[str] | Fault:
        template = load_template(_REPLY)

        def prompt(moment: Moment) -> Rendered:
            values: dict[str, Value] = {
                **moment.person.texts(),
                "dialogue": moment.shown(),
                "analysis": analysis or "They were told nothing.",
                "emotion": f"{moment.emotion.value:g}",
                "band": MANNERS[moment.emotion.band],
            }
            return self._user.render(template, values)

        return (await self._user.seeded([moment], prompt, read_words))[0]


def read_words(text: str, nonce: str = "") -> str | None:
    """Return what a model wrote as the user's next words, or None where there are none, or far too many."""
    del nonce
    _, words, unfinished = split_reasoning(text)
    words = words.strip()
    return words if words and not unfinished and len(words) <= _LONGEST else None
