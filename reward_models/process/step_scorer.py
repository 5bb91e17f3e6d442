"""Scorers that judge a response step by step: its steps, its floor, and what becomes of a process model's values.

A response that holds nothing to judge, or more than can be judged, gets the *floor* and its reason, never a failed
score: nobody may buy a way out with a long or an empty answer.  The floor is the lowest value the formula can give.

Not covered: models whose verdict on a step is text (`adjudge.reward_models.generative`), and responses that call tools:
the assistant's turns are judged as one text.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines.interface import Engine, Fault
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Count, Range, check_options
from adjudge.prompts.scorer import guard
from adjudge.protocol import Message, Provenance, Sample, Score, StepScore, response_text, split_reasoning, turn_texts
from adjudge.responses.aggregate import (
    EDGE,
    TEMPERATURE,
    Aggregate,
    aggregate,
    first_below,
    needs_probabilities,
)
from adjudge.responses.refine import Refinement, refine
from adjudge.responses.steps import Step, given_steps, split_steps
from adjudge.reward_models.process.formats import format_in_notes, format_of, spec_of
from adjudge.reward_models.process.rows import StepRow, Unfit, tokens_of
from adjudge.reward_models.process.step_format import Reading, StepFormat


def lowest_value(
    refinement: Refinement, how: Aggregate, *, max_steps: int, eta: float = 0.5, start: float = 0.0
) -> float:
    """Return a number that no solution of at most `max_steps` steps falls below, whose steps have probabilities.

    Raises:
        ValueError: the formula needs probabilities, and the refinement makes other numbers of them.
    """
    if needs_probabilities(how) and refinement not in ("none", "running_min"):
        raise ValueError(
            f"the aggregate {how!r} needs probabilities, and the refinement {refinement!r} makes other numbers of "
            "them; use sum, mean, min, last, max or soft_min"
        )
    clipped = min(-eta, 0.0)
    of_a_step = {"clip": clipped, "delta": -1.0, "clip_delta": -abs(clipped), "gain": min(-1.0, -start)}
    one = of_a_step.get(refinement, 0.0)
    of_all: dict[str, float] = {
        "sum": {"delta": 0.0, "clip_delta": one, "gain": -start}.get(refinement, max_steps * one),
        "sum_log": max_steps * math.log(EDGE),
        "mean_logit": math.log(EDGE) - math.log1p(-EDGE),
        "mean_odds": EDGE / (1 - EDGE),
    }
    return of_all.get(how, one)


_REST = "-"  # the response that is asked with when a row was too long: is it the problem that does not fit?


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A sample in steps, with their places in the text that is judged, and where that text begins in the response."""

    sample: Sample
    steps: tuple[Step, ...]
    text: str
    offset: int

    def short(self) -> Solution:
        """Return the same problem with a response of one character."""
        return replace(self, steps=(Step(text=_REST, start=0, end=len(_REST)),), text=_REST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a model said about a solution, and the steps whose text was made harmless before it was shown."""

    reading: Reading
    changed: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepScorer(ABC):
    """A scorer that values the steps of a response and makes one number of them.

    `extra["steps"]` of a sample may hold the steps as texts; else `split` says where a step begins.

    Attributes:
        split: where a step begins: "blank_line", "line", "numbered", "sentence", "list", "whole"; at each of the
            assistant's turns ("turn"), which takes `reasoning: keep`, and for which a flat response is one step.
        refine: what is done to the values first: "none", "clip", "delta", "clip_delta", "running_min", "gain",
            "min_form"; see `adjudge.responses.refine`.
        aggregate: how they become one number; see `adjudge.responses.aggregate`.
        eta: the threshold of "clip".
        start: the value before the first step, for "gain".
        grounding: with the split "turn", what a turn earns beside its value if its calls were carried out: tools' turns
            follow it, none of them with `ok: false` (SPA-RL, arXiv 2505.20732: 0.5).
        temperature: of "soft_min" and "min_form".
        threshold: a step of a lower value counts as bad: labels, and `first_below` in the evidence.
        reasoning: "strip" judges only what follows the last end-of-thinking tag, and a response that ends inside its
            reasoning gets the floor; "keep" judges the whole text.
        truncated: what a response gets that was cut off at the token limit: the "floor", or "grade", the value of what
            is there.
        max_steps: a response of more steps gets the floor (`too_complex`).
        max_step_characters: a response with a longer step gets the floor (`too_complex`): all in one step is one
            chance to be found wrong.
        max_characters: a response of more characters gets the floor (`too_complex`).
        floor: the value of what is not judged; None for the lowest value of the formula.  Needed where values have no
            lowest one, and there any response can have it for nothing, so give less than honest ones get.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = False

    split: Literal["blank_line", "line", "numbered", "sentence", "list", "whole", "turn"] = "blank_line"
    refine: Refinement = "none"
    aggregate: Aggregate = "min"
    eta: float = 0.5
    start: float = 0.0
    grounding: Annotated[float, Range(ge=0)] = 0.0
    temperature: Annotated[float, Range(gt=0)] = TEMPERATURE
    threshold: float = 0.5
    reasoning: Literal["strip", "keep"] = "strip"
    truncated: Literal["floor", "grade"] = "floor"
    max_steps: Count = 200
    max_step_characters: Count = 4_000
    max_characters: Count = 50_000
    floor: float | None = None

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")
        if self.split == "turn" and self.reasoning == "strip":
            raise ValueError(f"{self.name} option split='turn' reads turns as they are; set reasoning to keep")
        if self.grounding and self.split != "turn":
            raise ValueError(f"{self.name} option grounding={self.grounding!r} is for turns; set split to turn")

    @abstractmethod
    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return what the model says about each solution, in order."""

    @abstractmethod
    def origin(self) -> tuple[str, str]:
        """Return the engine's name and the model's, for provenance."""

    @abstractmethod
    def identity(self) -> list[Any]:
        """Return what the fingerprint covers beyond the fields of this class, as plain data."""

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether the values of steps are probabilities."""

    @property
    def fingerprint(self) -> str:
        """Name, version, options and engines."""
        return fingerprint_of(self, self.identity(), of=StepScorer)

    @property
    def lowest(self) -> float:
        """What a response gets that is not judged.

        Raises:
            ValueError: the floor is missing, above the lowest value, or the formula does not fit the values.
        """
        if self.bounded:
            least = lowest_value(self.refine, self.aggregate, max_steps=self.max_steps, eta=self.eta, start=self.start)
            if self.floor is not None and self.floor > least:
                raise ValueError(
                    f"{self.name} option floor={self.floor!r}, and the formula's values go down to {least:g}: an empty "
                    "response would beat a bad one; give less, or leave it out"
                )
            return least if self.floor is None else self.floor
        if needs_probabilities(self.aggregate):
            raise ValueError(
                f"{self.name}: the aggregate {self.aggregate!r} needs probabilities, and these values are none; use "
                "min, mean, last, max, sum or soft_min"
            )
        if self.floor is None:
            raise ValueError(
                f"{self.name}: floor is not given, and these values have no lowest one; give what an empty or "
                "over-long response is worth, below what honest ones get"
            )
        return self.floor

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if `extra["steps"]` is not a list of texts."""
        given = sample.extra.get("steps")
        listed = isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 0
        if given is not None and not (listed and all(isinstance(one, str) for one in given)):
            which = f" {sample.id!r}" if sample.id else ""
            raise ValueError(
                f'the scorer {self.name!r}, sample{which}: extra["steps"] is {repr(given)[:80]}; give a list of texts, '
                "or none"
            )

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        scores: dict[int, Score] = {}
        solutions: dict[int, Solution] = {}
        for place, sample in enumerate(samples):
            ready = self.solution(sample)
            if isinstance(ready, Score):
                scores[place] = ready
            else:
                solutions[place] = ready
        if solutions:
            for place, result in zip(solutions, await self._judged(list(solutions.values())), strict=True):
                scores[place] = result if isinstance(result, Score) else self._score(solutions[place], result)
        if not scores:
            return []
        engine, model = self.origin()
        who = Provenance(scorer=self.name, fingerprint=self.fingerprint, engine=engine, revision=model)
        return [replace(scores[place], provenance=who) for place in range(len(samples))]

    def solution(self, sample: Sample) -> Solution | Score:
        """Return the steps of a sample's response, or the score of one that is not shown to the model."""
        try:
            self.validate(sample)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        try:
            whole = response_text(sample)
        except ValueError as error:
            return self._floored("no_answer", error=str(error))
        text, unfinished = whole, False
        if self.reasoning == "strip":
            _, text, unfinished = split_reasoning(whole)
        if unfinished:
            return self._floored("unfinished_reasoning")
        if fault := guard(text, min_words=1, max_characters=self.max_characters):
            return self._floored(fault)
        if sample.finish_reason == "length" and self.truncated == "floor":
            return self._floored("truncated")
        given = sample.extra.get("steps")
        if given is None and self.split == "turn":
            given = [text] if isinstance(sample.response, str) else turn_texts(sample.response, "assistant")
        how = "whole" if self.split == "turn" else self.split
        steps = split_steps(text, how, most=self.max_steps + 1) if given is None else given_steps(text, given)
        if steps is None:
            return self._floored("bad_format", error='extra["steps"] are not the response')
        if not steps:
            return self._floored("no_answer")
        if len(steps) > self.max_steps:
            return self._floored("too_complex", error=f"more than {self.max_steps} steps")
        if max(step.end - step.start for step in steps) > self.max_step_characters:
            return self._floored("too_complex", error=f"a step of more than {self.max_step_characters} characters")
        return Solution(sample=sample, steps=steps, text=text, offset=len(whole) - len(text))

    def _floored(self, reason: str, **evidence: Any) -> Score:
        return Score.scored(self.lowest, reason, **evidence)

    async def _judged(self, solutions: Sequence[Solution]) -> list[Judged | Score]:
        """Ask, and where there is a fault that a response may have caused, find out whether it did."""
        results = [_with_numbers(result) for result in await self.judge(solutions)]
        doubtful = [place for place, result in enumerate(results) if isinstance(result, Unfit)]
        blame: dict[int, bool] = {}
        if doubtful:
            shorter = await self.judge([solutions[place].short() for place in doubtful])
            found_out = zip(doubtful, map(_with_numbers, shorter), strict=True)
            blame = {place: not isinstance(result, Fault) for place, result in found_out}
        judged: list[Judged | Score] = []
        for place, result in enumerate(results):
            if isinstance(result, Judged):
                judged.append(result)
            elif blame.get(place):
                judged.append(
                    self._floored("too_complex" if result.too_long else "unparsable_answer", fault=result.detail)
                )
            else:
                judged.append(Score.failed(result.reason, fault=result.detail))
        return judged

    def _score(self, solution: Solution, judged: Judged) -> Score:
        raw = judged.reading.values
        refined = refine(raw, self.refine, eta=self.eta, start=self.start, temperature=self.temperature)
        if self.grounding and not isinstance(solution.sample.response, str):
            done = _carried_out(solution.sample.response)
            refined = tuple(value + self.grounding * one for value, one in zip(refined, done, strict=True))
        labels = judged.reading.labels or tuple("good" if value >= self.threshold else "bad" for value in raw)
        evidence: dict[str, Any] = {
            "steps": len(raw),
            "fewer_steps": -len(raw),
            "raw": list(raw),
            "first_below": first_below(raw, self.threshold),
        }
        evidence |= {name: list(numbers) for name, numbers in judged.reading.facts.items()}
        if judged.changed:
            evidence["changed_steps"] = list(judged.changed)
        return Score(
            value=aggregate(refined, self.aggregate, temperature=self.temperature),
            steps=tuple(
                StepScore(value=value, label=label, start=solution.offset + step.start, end=solution.offset + step.end)
                for step, value, label in zip(solution.steps, refined, labels, strict=True)
            ),
            evidence=evidence,
            cost=judged.reading.cost,
        )


def _carried_out(response: Sequence[Message]) -> list[bool]:
    """Whether tools answered each of the assistant's turns, and none of them with a fault."""
    told: list[list[bool]] = []
    for turn in response:
        if turn.get("role") == "assistant":
            told.append([])
        elif turn.get("role") == "tool" and told:
            told[-1].append(turn.get("ok", True) is True)
    return [bool(one) and all(one) for one in told]


def _with_numbers(result: Judged | Fault) -> Judged | Fault:
    """The result, or a fault that the response may have caused: in 16 bits, for example, some texts overflow."""
    if isinstance(result, Fault) or all(map(math.isfinite, result.reading.values)):
        return result
    return Unfit(reason="engine_error", detail="the model gave numbers that are not finite")


def doubt(fault: Fault) -> Fault:
    """Return the fault, marked as one that the response may have caused if a long prompt was its cause."""
    return Unfit(reason=fault.reason, detail=fault.detail, too_long=True) if fault.too_long else fault


@dataclass(frozen=True, kw_only=True)
class ProcessRewardScorer(StepScorer):
    """How good the steps of a response are, by a process reward model in one forward pass; the least good one counts.

    `Score.steps` has each step's value (refined, if that is asked for), a label and its characters in the response;
    the evidence has the raw values, the number of steps, and what steps were made harmless.

    Attributes:
        engine: the model: "transformers:MODEL", a mapping such as `{"transformers": {"model": ..}}`, or an engine.
        format: how the model is asked: a published one ("qwen_math_prm", "math_shepherd", "rlhflow", "trl",
            "skywork", "rest_mcts", "reason_eval"), a kind with options (`{"marker": {"marker": "<step>"}}`), or
            "notes": what the checkpoint's own notes say, as those of models that adjudge trained do.
        tokenizer: the folder or name of the model's tokenizer; "" for the model's own.
    """

    name: ClassVar[str] = "process_reward"
    version: ClassVar[str] = "1"

    engine: Any
    format: Any = "notes"
    tokenizer: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        bind_engines(self, "engine")
        self.lowest  # noqa: B018 raises if the formula does not fit the format's values

    def resolved(self) -> Engine:
        """Return the engine itself; one that is given by name is shared by this process."""
        return engine_of(self.engine)

    @property
    def form(self) -> StepFormat:
        """The format itself.

        Raises:
            ValueError: the option names none, or the checkpoint has no notes that do.
        """
        return format_in_notes(self.resolved().model) if self.format == "notes" else format_of(self.format)

    @property
    def bounded(self) -> bool:
        """Whether the values of steps are probabilities."""
        return self.form.bounded

    def identity(self) -> list[Any]:
        """Return the format, the tokenizer's name, and the engine's fingerprint."""
        return [spec_of(self.form), self.tokenizer, self.resolved().fingerprint]

    def origin(self) -> tuple[str, str]:
        """Return the engine's name, and the model's with the format's."""
        engine = self.resolved()
        return engine.name, f"{engine.model} {self.form.kind}"

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return what the model says about each solution, in order."""
        engine, form = self.resolved(), self.form
        rows = await asyncio.to_thread(self._rows, engine, form, solutions)
        ready = [row for row in rows if isinstance(row, StepRow)]
        readings = iter(await form.read(engine, ready) if ready else [])
        judged: list[Judged | Fault] = []
        for row in rows:
            result = next(readings) if isinstance(row, StepRow) else row
            if isinstance(result, Fault):
                judged.append(doubt(result) if isinstance(row, StepRow) else result)
            else:
                judged.append(Judged(reading=result, changed=row.changed if isinstance(row, StepRow) else ()))
        return judged

    def _rows(self, engine: Engine, form: StepFormat, solutions: Sequence[Solution]) -> list[StepRow | Fault]:
        tokens = tokens_of(engine, self.tokenizer)
        rows = [form.row(tokens, one.sample.prompt, [step.text for step in one.steps]) for one in solutions]
        return [Unfit(reason=row.reason, detail=row.detail) if isinstance(row, Fault) else row for row in rows]
