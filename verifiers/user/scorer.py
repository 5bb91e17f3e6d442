"""The simulated user of RLVER and SAGE: how does somebody feel at the end of a conversation?

A model is asked after each turn of the assistant's by how much the user's feeling changes; a state machine
(`adjudge.verifiers.user.emotion`) does the rest.  The calls of one dialogue come one after the other, since each needs
the feeling before it; the dialogues of a batch go side by side.

A change that cannot be read is no change that is known: the whole has no number.

Not covered: writing the user's own turns; `adjudge.verifiers.user.session` does that while a dialogue goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, TypeVar

from adjudge import wire
from adjudge.engines.interface import Fault
from adjudge.prompts.asking import Answer, Reader
from adjudge.prompts.reading import NumberReader
from adjudge.prompts.scorer import Case, ModelScorer
from adjudge.prompts.template import Rendered, Template, Value, load_template
from adjudge.protocol import Sample, Score
from adjudge.verifiers.user.course import Course, Moment
from adjudge.verifiers.user.dialogue import Turn, turns_of
from adjudge.verifiers.user.emotion import LEAST, MANNERS, MOST_CHANGE, START, TOP, Emotion
from adjudge.verifiers.user.person import read_person

T = TypeVar("T")

_FARTHEST: Final = 1000  # a change beyond it is no change but noise


@dataclass(frozen=True, kw_only=True)
class SimulatedUserScorer(ModelScorer):
    """How a simulated user feels after a dialogue, by 100; `Score.steps` has the change after each turn (RLVER, SAGE).

    The reference is who the user is: a text, or `{"persona": .., "background": .., "goal": .., "start": 40}`.

    The prompt is what the user said first, or the turns until then; the response is one text, or turns.

    Attributes:
        start: the feeling at first, from 10 to below 100, where the reference has none.
        most_change: the largest change of one turn.
        most_turns: turns of the assistant's that count; the user does not hear later ones.
        truncated: what a response with `finish_reason="length"` gets: "zero", or "grade" as if it were complete: a
            dialogue may well end at a limit of turns.
    """

    name: ClassVar[str] = "simulated_user"
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True

    start: float = START
    most_change: int = MOST_CHANGE
    most_turns: int = 20
    truncated: Literal["zero", "grade"] = "grade"

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        self.require("truncated", ("zero", "grade"))
        self.require_count("most_change")
        self.require_count("most_turns")
        if isinstance(self.start, bool) or not isinstance(self.start, int | float) or not LEAST <= self.start < TOP:
            raise ValueError(f"{self.name}: start is {self.start!r}; it must be a number from 10 to below 100")

    def templates(self) -> tuple[Template, ...]:
        """Return the one prompt there is."""
        return (load_template("verifiers/user/change"),)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if nobody can be made of the reference, or the prompt is no dialogue."""
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
        courses = [self._course(case, turns) for case, turns in zip(cases, heard, strict=True)]
        while moments := {place: moment for place, one in enumerate(courses) if (moment := one.next()) is not None}:
            for place, answer in zip(moments, await self.changes(list(moments.values())), strict=True):
                courses[place].take(answer)
        return [self._score(course, turns) for course, turns in zip(courses, heard, strict=True)]

    def _course(self, case: Case, turns: Sequence[Turn]) -> Course:
        person = read_person(case.sample.reference)
        emotion = Emotion(float(self.start if person.start is None else person.start))
        return Course(case=case, person=person, turns=turns[: self.most_turns], emotion=emotion, most=self.most_change)

    def _score(self, course: Course, turns: Sequence[Turn]) -> Score:
        fault = course.fault
        score = Score.scored(course.emotion.reward) if fault is None else self.unanswered(fault)
        evidence = {**score.evidence, **course.evidence()}
        return replace(score, steps=course.steps(turns), evidence=evidence, cost=course.cost)

    async def changes(self, moments: Sequence[Moment]) -> list[Answer[float] | Fault]:
        """Return by how much each moment changes a feeling, as the model says it, or why that is not known."""
        template = self.templates()[0]
        read = NumberReader(form=template.form, low=-_FARTHEST, high=_FARTHEST)

        def prompt(moment: Moment) -> Rendered:
            values: dict[str, Value] = {
                **moment.person.texts(),
                "dialogue": moment.shown(),
                "emotion": f"{moment.emotion.value:g}",
                "band": MANNERS[moment.emotion.band],
                "most": str(moment.most),
            }
            return self.render(template, values)

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
        found = {
            place: answer
            for places, answers in zip(alike.values(), answered, strict=True)
            for place, answer in zip(places, answers, strict=True)
        }
        return [found[place] for place in range(len(moments))]


def seed_of(seed: int, moment: Moment) -> int:
    """Return the seed of a turn: of the option, the user and all that was said until then; from 0 to 2 ** 31 - 1."""
    turns = [[turn["role"], turn["content"]] for turn in moment.dialogue]
    text = wire.dumps([seed, moment.person.texts(), moment.emotion.value, turns])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4]) >> 1
