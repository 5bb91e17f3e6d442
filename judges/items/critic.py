"""The critic: a model reads a solution step by step and says which steps are wrong.

Every step gets a verdict with its place in the response, so that a trainer can put it on tokens.

CAPO (2508.02298) asks for the wrong steps of a whole solution in one pass and votes over the critiques: a step is wrong
if all say so (intersection) or more than half do (majority); or it is wrong to the degree that critiques say so
(average).  ProcessBench asks for the first error, -1 for none, and takes the most frequent answer of eight.

Whether the final answer is right is not asked: put a verifier of the outcome beside it.  What CAPO pays for wrong steps
is the trainer's (`credit: capo`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from adjudge import wire
from adjudge.options import Count
from adjudge.prompts.asking import Answer, Fillable, Reader
from adjudge.prompts.reading import Blank, answers
from adjudge.prompts.scorer import Case, ModelScorer, mean_and_error, shortened
from adjudge.prompts.template import Rendered
from adjudge.protocol import Message, Sample, Score, StepScore, content_text, response_text
from adjudge.responses.steps import Step, given_steps, split_steps
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import shown

Vote: TypeAlias = Literal["intersection", "majority", "average"]
VOTES: tuple[Vote, ...] = get_args(Vote)

NO_ERROR = -1


def wrong_degrees(critiques: Sequence[Collection[int]], steps: int, *, vote: Vote) -> list[float]:
    """Return how wrong each step is, in [0, 1]; 0 or 1 but for "average".

    Args:
        critiques: for each critique the numbers (from 0) of the steps it calls wrong.
        steps: how many steps there are.
        vote: how the critiques are counted.

    Raises:
        ValueError: there is no critique, a number is not a step, or the vote is none.
    """
    if vote not in VOTES:
        raise ValueError(f"the vote is {vote!r}; it must be one of {', '.join(VOTES)}")
    if not critiques:
        raise ValueError("a vote needs at least one critique")
    for critique in critiques:
        for number in critique:
            if not 0 <= number < steps:
                raise ValueError(f"a critique calls step {number} wrong; there are {steps}, counted from 0")
    shares = [sum(step in critique for critique in critiques) / len(critiques) for step in range(steps)]
    if vote == "average":
        return shares
    return [float(share == 1.0 if vote == "intersection" else share > 0.5) for share in shares]


def first_error(answers: Sequence[int]) -> tuple[int, float]:
    """Return the most frequent first error, -1 for none, and the share of critiques that name it.

    Of several equally frequent ones the earliest error counts, and "none" last: a solution is not passed by a draw.

    Raises:
        ValueError: there are no answers.
    """
    if not answers:
        raise ValueError("a vote needs at least one critique")
    counts = Counter(answers)
    most = max(counts.values())
    drawn = [answer for answer, count in counts.items() if count == most]
    errors = [answer for answer in drawn if answer != NO_ERROR]
    return (min(errors) if errors else NO_ERROR), most / len(answers)


_REQUESTS = {
    "first": "the number of the first wrong step, or none if no step is wrong",
    "all": "the numbers of all wrong steps with commas between them, or none if no step is wrong",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution(Case):
    """A response in steps."""

    steps: tuple[Step, ...]


def read_wrong_steps(form: str, steps: int, several: bool, text: str, nonce: str = "", /) -> tuple[int, ...] | None:
    """Return the numbers of the wrong steps, counted from 0, or None.

    A text says "none", one number, or with `several` a list of different rising numbers, each from 1 to `steps`.
    """
    places = [answer for answer, _ in answers(text, form, nonce)]
    if not places or len({answer.casefold() for answer in places}) > 1:
        return None
    if places[-1].casefold() == "none":
        return ()
    words = [word.strip() for word in places[-1].split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) <= 4 for word in words):
        return None
    numbers = [int(word) - 1 for word in words]
    fits = numbers == sorted(set(numbers)) and numbers[0] >= 0 and numbers[-1] < steps
    return tuple(numbers) if fits and (several or len(numbers) == 1) else None


_MOST_CHOICES = 64  # that a model is held to: all lists of wrong steps up to six of them, shorter lists of more


def _reader(form: str, steps: int, several: bool) -> Reader[tuple[int, ...]]:
    numbers = [*map(str, range(1, steps + 1))]
    choices = ["none", *numbers]
    for size in range(2, steps + 1 if several else 2):
        if len(choices) + math.comb(steps, size) > _MOST_CHOICES:
            break
        choices += map(", ".join, itertools.combinations(numbers, size))
    read = partial(read_wrong_steps, form, steps, several)
    return Fillable(read, lambda nonce: Blank.of(form, nonce, [choices]))


@dataclass(frozen=True, kw_only=True)
class CriticScorer(ModelScorer):
    """Where a solution goes wrong: `Score.steps` has a verdict on each step, with its place in the response.

    The reference is a correct answer or solution, shown to the critic, or none.  `extra["steps"]` may hold the steps as
    texts; else a step ends at an empty line (`adjudge.responses.steps`), or is a turn.

    Attributes:
        ask: "first" asks for the first error, as ProcessBench does; "all" for every wrong step, as CAPO does.
        critiques: how many critiques are made; more than 1 needs a temperature.
        vote: with "all", how critiques are counted: "intersection", "majority" or "average".  "first" takes the most
            frequent answer.
        value: what the number is: "clean", 1 if no step is wrong, else 0; "share", the share of steps that are not
            wrong; "before", the share of steps before the first wrong one.  The last two can be padded with idle steps.
        split: "blank_line", or "turn": a chat's steps are the assistant's turns, and the critic sees what each called
            and heard; a turn without words belongs to the one before.  It wants `reasoning: keep`.
        max_steps: most steps; the last one holds the rest.
        template: the prompt, as a name or a file; "" for the critic's own.
    """

    name: ClassVar[str] = "critic"
    version: ClassVar[str] = "4"
    text_template: ClassVar[str] = "judges/items/critic_critique"
    often: ClassVar[str] = "critiques"

    ask: Literal["first", "all"] = "first"
    critiques: Count = 1
    vote: Vote = "majority"
    value: Literal["clean", "share", "before"] = "clean"
    split: Literal["blank_line", "turn"] = "blank_line"
    max_steps: Count = 100
    template: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.split == "turn" and self.reasoning == "strip":
            raise ValueError(f"{self.name} option split='turn' reads turns as they are; set reasoning to keep")

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if the reference is not text, or `extra["steps"]` is not a list of texts."""
        if sample.reference is not None and not (isinstance(sample.reference, str) and sample.reference.strip()):
            raise BadReferenceError(f"the reference is {shown(sample.reference)}; give a text, or none")
        given = sample.extra.get("steps")
        if given is not None and (
            isinstance(given, str)
            or not isinstance(given, Sequence)
            or not given
            or not all(isinstance(step, str) and step.strip() for step in given)
        ):
            raise BadReferenceError(f'extra["steps"] is {shown(given)}; give a list of texts that are not empty')

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        cut = [self._steps(case) for case in cases]
        solutions = [
            Solution(sample=case.sample, response=case.response, steps=steps)
            for case, steps in zip(cases, cut, strict=True)
            if steps is not None
        ]
        judged = iter(await self._judged(solutions))
        other = Score.scored(0.0, "bad_format", error='extra["steps"] are not the response')
        return [other if steps is None else next(judged) for steps in cut]

    def _steps(self, case: Case) -> tuple[Step, ...] | None:
        given = case.sample.extra.get("steps")
        if given is None and self.split == "turn" and not isinstance(case.sample.response, str):
            given = [said for said, _ in _turns(case.sample.response)]
        return split_steps(case.response, most=self.max_steps) if given is None else given_steps(case.response, given)

    async def _judged(self, solutions: Sequence[Solution]) -> list[Score]:
        template = self.templates()[0]

        def prompt(solution: Solution) -> Rendered:
            # made of the response and not of `steps`: the base asks with a short response what made a prompt too long
            steps = self._steps(solution) or split_steps(solution.response)
            turns = (
                () if self.split != "turn" or isinstance(solution.sample.response, str) else solution.sample.response
            )
            values: Mapping[str, Any] = {
                "question": solution.sample.prompt,
                "reference": solution.sample.reference,
                "steps": _listed(steps, [heard for _, heard in _turns(turns)]),
                "request": _REQUESTS[self.ask],
            }
            return self.filled(template, values)

        several = self.ask == "all"
        reads = [_reader(template.form, len(one.steps), several) for one in solutions]
        return await self.decided(solutions, prompt, reads, self._score)

    def _score(self, solution: Solution, verdicts: Sequence[Answer[tuple[int, ...]]]) -> Score:
        said = [verdict.value for verdict in verdicts]
        count = len(solution.steps)
        degrees = self._degrees(said, count)
        value = self._value(degrees)
        _, error = mean_and_error([self._value(self._degrees([one], count)) for one in said])
        evidence = {
            "critiques": [[number + 1 for number in one] for one in said],
            "text": shortened(verdicts[0].text),
        }
        return Score(
            value=value,
            reason="" if value == 1.0 else "wrong",
            steps=_step_scores(solution, degrees),
            evidence=evidence,
            uncertainty=error,
        )

    def _degrees(self, said: Sequence[tuple[int, ...]], count: int) -> list[float | None]:
        """How wrong each step is; None for steps behind a first error, on which nothing was said."""
        if self.ask == "all":
            return [*wrong_degrees(said, count, vote=self.vote)]
        first, _ = first_error([one[0] if one else NO_ERROR for one in said])
        if first == NO_ERROR:
            return [0.0] * count
        return [0.0 if at < first else 1.0 if at == first else None for at in range(count)]

    def _value(self, degrees: Sequence[float | None]) -> float:
        known = [degree for degree in degrees if degree is not None]
        if self.value == "clean":
            return 1.0 - max(known)
        if self.value == "share":
            return sum(1.0 - degree for degree in known) / len(degrees)
        before = next((at for at, degree in enumerate(degrees) if degree), len(degrees))
        return before / len(degrees)


def _turns(response: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """Each turn of the assistant that says something, and what it called and heard before the next one."""
    turns: list[tuple[str, list[str]]] = []
    for turn in response:
        text, said = content_text(turn.get("content")), turn.get("role") == "assistant"
        if said and split_steps(text, "whole"):
            turns.append((text, []))
        elif turns and not said:
            turns[-1][1].append(f"{turn.get('role')}: {text}")
        if turns and said:
            turns[-1][1].extend(f"call: {wire.dumps(call)}" for call in turn.get("tool_calls") or ())
    return turns


def _listed(steps: Sequence[Step], heard: Sequence[Sequence[str]] = ()) -> str:
    """The steps with their numbers at the start of a line, and all else indented, so that no step can make another.

    What a step called and heard stands behind it, in lines that begin with its number and `<-`.
    """
    lines = []
    for number, step in enumerate(steps, start=1):
        told = heard[number - 1] if len(heard) == len(steps) else ()
        for mark, text in [(f"{number}:", step.text), *((f"{number} <-", one) for one in told)]:
            first, *rest = text.splitlines() or [""]
            lines += [f"{mark} {first}", *(f"    {line}" for line in rest)]
    return "\n".join(lines)


def _step_scores(solution: Solution, degrees: Sequence[float | None]) -> tuple[StepScore, ...]:
    offset = response_text(solution.sample).rindex(solution.response)
    scores = []
    for step, degree in zip(solution.steps, degrees, strict=True):
        label = "unjudged" if degree is None else "right" if degree == 0 else "wrong"
        value = None if degree is None else 1.0 - degree
        scores.append(StepScore(value=value, label=label, start=offset + step.start, end=offset + step.end))
    return tuple(scores)
