"""The simulated user of RLVER and SAGE: how does somebody feel at the end of a conversation?

A model is asked after each turn of the assistant's by how much the user's feeling changes; `dialogue.Emotion` does the
rest.  The calls of one dialogue come one after the other, since each needs the feeling before it; the dialogues of a
batch go side by side.  A change that cannot be read is not a change that is known: the whole has no number.

`UserSession` is for rollouts of several turns: it says what they feel, and writes what they say, while a dialogue goes
on.  The finished dialogue, scored afterwards, has the same changes and the same reward.

Policies speak to it where a run's `rollouts.user` names it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from adjudge import wire
from adjudge.engines.interface import Fault
from adjudge.options import Count, Range
from adjudge.prompts.asking import Answer, Reader, cost_of
from adjudge.prompts.reading import Blank, NumberReader, whole_numbers
from adjudge.prompts.scorer import Case, ModelScorer, forced_of
from adjudge.prompts.template import Rendered, Value, load_template
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score, StepScore, split_reasoning
from adjudge.responses.trajectories.trajectory import steps_at
from adjudge.verifiers.agents.user.dialogue import (
    LEAST,
    MANNERS,
    MAX_CHANGE,
    START,
    TOP,
    Band,
    Emotion,
    Person,
    Turn,
    read_person,
    turns_of,
)

_REPLY: Final = "verifiers/agents/user/reply"
_LONGEST: Final = 4_000  # characters of a user's turn
_SHOWN: Final = 600  # characters of what a model says about one turn

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment(Case):
    """What a model is asked about: a dialogue until a turn of the assistant's, and how the user felt before it.

    `response` is what the assistant has said in all; where a prompt is too long, the base tries another in its place,
    which then stands for every turn of the assistant's.
    """

    person: Person
    dialogue: tuple[Message, ...]
    emotion: Emotion
    most: int

    def values(self) -> dict[str, Value]:
        """Return what a prompt says of the person, the dialogue and the feeling."""
        shown = self.dialogue
        if self.response != spoken(shown):
            own: Message = {"role": "assistant", "content": self.response}
            shown = tuple(turn if turn["role"] == "user" else own for turn in shown)
        feeling = {"emotion": f"{self.emotion.value:g}", "band": MANNERS[self.emotion.band]}
        return {**self.person.texts(), "dialogue": shown, **feeling}


def spoken(dialogue: Sequence[Message]) -> str:
    """Return all that the assistant says in a dialogue."""
    return "\n".join(turn["content"] for turn in dialogue if turn["role"] == "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """By how much a turn changed the feeling, clipping done, the feeling after it, and the model's reasons.

    `said` is the change that the model named; None for a silent turn, about which nobody is asked.  `forced` is
    evidence on a change that it named only when it could say nothing else.
    """

    change: float
    emotion: Emotion
    said: float | None = None
    text: str = ""
    forced: Mapping[str, Any] = field(default_factory=dict)

    def evidence(self) -> dict[str, Any]:
        """Return plain data."""
        step: dict[str, Any] = {"change": self.change, "emotion": self.emotion.value, "band": self.emotion.band}
        if self.said is None:
            return {**step, "silent": True}
        text = f"... {self.text[-_SHOWN:]}" if len(self.text) > _SHOWN else self.text
        return {**step, "said": self.said, "text": text, **self.forced}

    @classmethod
    def read(cls, step: Mapping[str, Any]) -> Felt:
        """Return what `evidence` wrote."""
        emotion = Emotion(step["emotion"])
        forced = {key: step[key] for key in ("forced_mass",) if key in step}
        return cls(
            change=step["change"], emotion=emotion, said=step.get("said"), text=step.get("text", ""), forced=forced
        )


@dataclass(slots=True, kw_only=True)
class Course:
    """One dialogue under way: the assistant's turns that count, what they did so far, and how the user feels now.

    `fault` is why it cannot go on, `most` the largest change of one turn.
    """

    sample: Sample
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
                return self.moment(turn)
            self._move(-float(self.most))
        return None

    def moment(self, turn: Turn) -> Moment:
        """Return a turn as a model is asked about it, with the feeling of now."""
        dialogue = turn.dialogue
        return Moment(
            sample=self.sample,
            response=spoken(dialogue),
            person=self.person,
            dialogue=dialogue,
            emotion=self.emotion,
            most=self.most,
        )

    def take(self, answer: Answer[float] | Fault) -> None:
        """Go on with what the model said."""
        self.cost += cost_of([answer])
        if isinstance(answer, Fault):
            self.fault = answer
        else:
            self._move(answer.value, said=answer.value, text=answer.text, forced=forced_of([answer]))

    def _move(self, change: float, **told: Any) -> None:
        after = self.emotion.after(change, self.most)
        self.felt.append(Felt(change=after.value - self.emotion.value, emotion=after, **told))
        self.emotion = after

    def steps(self, all_turns: Sequence[Turn]) -> tuple[StepScore, ...]:
        """Return what each turn did to the feeling; None for those that do not count, behind the last that does."""
        rest = len(all_turns) - len(self.felt)
        changes = [*(felt.change for felt in self.felt), *[None] * rest]
        bands = [*(felt.emotion.band for felt in self.felt), *["unjudged" if self.fault else "unheard"] * rest]
        return steps_at(all_turns, changes, bands)

    def evidence(self) -> dict[str, Any]:
        """Return plain data."""
        end = "unknown" if self.fault else self.emotion.band if self.emotion.over else "open"
        return {"emotion": self.emotion.value, "end": end, "turns": [felt.evidence() for felt in self.felt]}


_FARTHEST: Final = 1000  # a change beyond it is not a change but noise


@dataclass(frozen=True, kw_only=True)
class _ChangeReader(NumberReader):
    """Reads a change, which may be larger than `most`, and has the model choose among those up to it."""

    most: int

    def blank(self, nonce: str) -> Blank:
        """Return the change with its place to fill in."""
        return Blank.of(self.form, nonce, [whole_numbers(-self.most, self.most)])


@dataclass(frozen=True, kw_only=True)
class SimulatedUserScorer(ModelScorer):
    """How a simulated user feels after a dialogue, by 100; `Score.steps` has the change after each turn (RLVER, SAGE).

    The reference is who the user is: a text, or `{"persona": .., "background": .., "goal": .., "start": 40}`.

    The prompt is what the user said first, or the turns until then; the response is one text, or turns.

    Where `extra["session"]` is that of a conversation that this very scorer played (`hear`), its feelings stand, and
    nobody is asked again.

    Attributes:
        start: the feeling at first, from 10 to below 100, where the reference has none.
        max_change: the largest change of one turn.
        max_turns: turns of the assistant's that count; the user does not hear later ones.
        truncated: what a response with `finish_reason="length"` gets: "zero", or "grade" as if it were complete: a
            dialogue may well end at a limit of turns.
    """

    name: ClassVar[str] = "simulated_user"
    version: ClassVar[str] = "3"
    needs_reference: ClassVar[bool] = True
    text_template: ClassVar[str] = "verifiers/agents/user/change"

    start: Annotated[float, Range(ge=LEAST, lt=TOP)] = START
    max_change: Count = MAX_CHANGE
    max_turns: Count = 20
    truncated: Literal["zero", "grade"] = "grade"

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if nobody can be made of the reference, or the prompt is not a dialogue."""
        read_person(sample.reference)
        turns_of(replace(sample, response=""), self.reasoning)

    def case(self, sample: Sample) -> Case | Score:
        """Return what is judged, or the zero of a response that says nothing, or too much."""
        try:
            heard = "\n".join(turn.text for turn in turns_of(sample, self.reasoning))
        except ValueError:
            heard = ""
        ready = super().case(replace(sample, response=heard))
        if isinstance(ready, Score):
            return ready
        if sample.finish_reason == "length" and self.truncated == "zero":
            return Score.scored(0.0, "truncated")
        return replace(ready, sample=sample)

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        heard = [turns_of(case.sample, self.reasoning) for case in cases]
        courses = [self.course(case.sample, turns) for case, turns in zip(cases, heard, strict=True)]
        while moments := {place: moment for place, one in enumerate(courses) if (moment := one.next()) is not None}:
            for place, answer in zip(moments, await self.changes(list(moments.values())), strict=True):
                courses[place].take(answer)
        return [self._score(course, turns) for course, turns in zip(courses, heard, strict=True)]

    def course(self, sample: Sample, turns: Sequence[Turn], emotion: Emotion | None = None) -> Course:
        """Return a dialogue that begins, goes on from a feeling, or was played until some turn."""
        person = read_person(sample.reference)
        start = Emotion(float(self.start if person.start is None else person.start)) if emotion is None else emotion
        felt = self._played(sample, turns) if emotion is None else []
        return Course(
            sample=sample,
            person=person,
            turns=turns[: self.max_turns],
            emotion=felt[-1].emotion if felt else start,
            most=self.max_change,
            felt=felt,
        )

    def _played(self, sample: Sample, turns: Sequence[Turn]) -> list[Felt]:
        """What the turns did in the session of the sample; nothing if others played it, or heard other words."""
        session = sample.extra.get("session")
        if not isinstance(session, Mapping):
            return []
        steps, of = session.get("turns"), session.get("of")
        if not isinstance(steps, Sequence) or not 0 < len(steps) <= len(turns):
            return []
        return [Felt.read(step) for step in steps] if of == self._signed(sample, turns[len(steps) - 1]) else []

    def _signed(self, sample: Sample, turn: Turn) -> str:
        """What tells this scorer, this person and all that was said until a turn from any other."""
        told = [self.fingerprint, sample.reference, [[one["role"], one["content"]] for one in turn.dialogue]]
        return hashlib.sha256(wire.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def hear(self, sample: Sample, *, last: bool = False) -> tuple[str, dict[str, Any]] | Fault:
        """Return the user's next words, "" where they leave, and the session: how they felt turn by turn.

        Args:
            sample: the dialogue until a turn of the assistant's, with the session until the turn before in its `extra`.
            last: that nothing is said to them any more, so that no words are needed.
        """
        turns = turns_of(sample, self.reasoning)
        course = self.course(sample, turns)
        while (moment := course.next()) is not None:
            course.take((await self.changes([moment]))[0])
        if course.fault is not None:
            return course.fault
        heard = len(course.felt)
        session = {"of": self._signed(sample, turns[heard - 1]), **course.evidence()}
        if last or course.emotion.over or len(turns) >= self.max_turns:
            return "", session
        words = await self.reply(course.moment(turns[-1]), course.felt[-1].text)
        return words if isinstance(words, Fault) else (words.value, session)

    async def reply(self, moment: Moment, analysis: str) -> Answer[str] | Fault:
        """Return the user's next words, after what a turn did to them."""
        template = load_template(_REPLY)

        def prompt(moment: Moment) -> Rendered:
            return self.render(template, {**moment.values(), "analysis": analysis or "They were told nothing."})

        return (await self.seeded([moment], prompt, read_words))[0]

    def _score(self, course: Course, turns: Sequence[Turn]) -> Score:
        fault = course.fault
        score = Score.scored(course.emotion.reward) if fault is None else self.unanswered(fault)
        evidence = {**score.evidence, **course.evidence()}
        return replace(score, steps=course.steps(turns), evidence=evidence, cost=course.cost)

    async def changes(self, moments: Sequence[Moment]) -> list[Answer[float] | Fault]:
        """Return by how much each moment changes a feeling, as the model says it, or why that is not known."""
        template = self.templates()[0]
        read = _ChangeReader(form=template.form, low=-_FARTHEST, high=_FARTHEST, most=self.max_change)

        def prompt(moment: Moment) -> Rendered:
            return self.render(template, {**moment.values(), "most": str(moment.most)})

        return await self.seeded(moments, prompt, read)

    async def seeded(
        self, moments: Sequence[Moment], prompt: Callable[[Moment], Rendered], read: Reader[T]
    ) -> list[Answer[T] | Fault]:
        """Ask one prompt for each moment, each with a seed of its own, made of the option `seed` and the dialogue.

        So the same dialogue has the same course, alone or in a batch, live or scored afterwards.  Where nothing is
        drawn, no seed matters, and all go to the engine in one call.
        """
        if self.temperature == 0 and self.retry_temperature is None:
            return await self.asked(moments, prompt, read)
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for place, moment in enumerate(moments):
            alike[seed_of(self.seed, moment)].append(place)

        async def ask(seed: int, places: Sequence[int]) -> list[Answer[T] | Fault]:
            return await replace(self, seed=seed).asked([moments[place] for place in places], prompt, read)

        answered = await asyncio.gather(*(ask(seed, places) for seed, places in alike.items()))
        said = dict(zip(itertools.chain(*alike.values()), itertools.chain(*answered), strict=True))
        return [said[place] for place in range(len(moments))]


def seed_of(seed: int, moment: Moment) -> int:
    """Return the seed of a turn: of the option, the user and all that was said until then; from 0 to 2 ** 31 - 1."""
    turns = [[turn["role"], turn["content"]] for turn in moment.dialogue]
    text = wire.dumps([seed, moment.person.texts(), moment.emotion.value, turns])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4]) >> 1


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
            answer = await self._user.reply(course.moment(turn), felt.text)
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


def read_words(text: str, nonce: str = "") -> str | None:
    """Return what a model wrote as the user's next words, or None where there are none, or far too many."""
    del nonce
    _, words, unfinished = split_reasoning(text)
    words = words.strip()
    return words if words and not unfinished and len(words) <= _LONGEST else None
