"""The base of scorers that rate finished chats: what is shown, and what a response is worth that cannot be rated whole.

Rewards have no zero: a response that a verifier would give 0 needs another floor.  The floor is the reward of *saying
nothing* in answer to the same prompt, which every model can give on its own scale.  A response that was cut off, is too
long for the model, holds no words or ends inside its reasoning gets the smaller of that and the reward of what can be
read of it.  So nobody gains by being over-long: whoever is below the floor stays there, whoever is above falls to it,
and the floor itself is open to all, by an empty response.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar, Literal

from adjudge.engines.checkpoint_notes import Normalizer
from adjudge.engines.interface import Fault
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Count, check_options
from adjudge.prompts.scorer import guard
from adjudge.protocol import NO_COST, Cost, Message, MissingReferenceError, Provenance, Sample, Score
from adjudge.reward_models.scalar.chat import EMPTY_TURNS, Answer, ChatForm, Reasoning
from adjudge.statistics.logistic import sigmoid

Turns = tuple[Message, ...]
Output = Literal["reward", "sigmoid", "log_sigmoid"]
Bound = Literal["floor", "grade", "failed", "abstain"]
Normalize = Literal["none", "zscore", "mean", "reference"]

_NOTHING = Answer(turns=EMPTY_TURNS, text="")
_PATIENCE = 3  # prompts in a row for which an engine does not even rate silence: then it is broken
_CUT = ("truncated", "too_complex")  # the reasons that the option `truncated` is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A reward.

    Attributes:
        reward: finite; higher is better, on the model's own scale unless that is normalised.
        spread: standard deviation of the reward, where the model tells one.
        evidence: raw outputs and what was made of them.
    """

    reward: float
    spread: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost = NO_COST

    def shaped(self, output: Output, less: float = 0.0) -> tuple[float, float | None]:
        """Return the value of a score and its standard deviation (to first order).

        Args:
            output: "reward" as it is; "sigmoid", in (0, 1); "log_sigmoid", below 0 (arXiv 2402.00742).
            less: what is subtracted first, such as the reward of a reference answer.
        """
        value = self.reward - less
        if output == "reward":
            return value, self.spread
        share, other = sigmoid(value), sigmoid(-value)
        if output == "sigmoid":
            return share, None if self.spread is None else share * other * self.spread
        log_share = min(value, 0.0) - math.log1p(math.exp(-abs(value)))
        return log_share, None if self.spread is None else other * self.spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Unratable(Fault):
    """A chat that the model cannot rate, though it rates others: in 16 bits, for example, some texts overflow it."""


@dataclass(frozen=True, kw_only=True)
class RewardScorer(ABC):
    """A scorer that rates a prompt and a response as one finished chat.

    Attributes:
        reasoning: "strip" shows only what follows the last end-of-thinking tag, and a response that ends inside its
            reasoning gets the floor; "keep" shows all; None does as in the model's training, and strips if nothing says
            how that was.
        normalize: what is done to rewards: "none"; "zscore" or "mean" with the mean and the standard deviation that
            the checkpoint stores; "reference" subtracts the reward of the reference, an answer to the same prompt.
        output: "reward"; "sigmoid" of it; "log_sigmoid", with `normalize: reference` the log-sigmoid centred
            transformation of arXiv 2402.00742.
        truncated: what becomes of a response that was cut off (`finish_reason="length"`) or is too long for the model:
            "floor" (the smaller of the floor and the reward of what fits), "grade" (the reward of what fits), "failed",
            or "abstain".
        keep: which part of a response that is too long is rated: its "start" or its "end".
        floor: "empty", the reward of an empty response to the prompt; or a number, in units of the score.
        min_words: a response of fewer words gets at most the floor (`no_answer`), as do lone openings such as
            "Solution:".
        max_characters: so many characters are read of a response at most; the rest counts as too long.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool | None] = None

    reasoning: Reasoning | None = None
    normalize: Normalize = "none"
    output: Output = "reward"
    truncated: Bound = "floor"
    keep: Literal["start", "end"] = "start"
    floor: Literal["empty"] | float = "empty"
    min_words: Count = 1
    max_characters: Count = 200_000

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")
        number = isinstance(self.floor, int | float) and not isinstance(self.floor, bool) and math.isfinite(self.floor)
        if self.floor != "empty" and not number:
            raise ValueError(f'{self.name} option floor={self.floor!r}; it must be "empty" or a finite number')

    @abstractmethod
    async def rate(self, chats: Sequence[Turns]) -> list[Rating | Fault]:
        """Return the rating of each finished chat, in order, or why there is none."""

    @abstractmethod
    def special_tokens(self) -> tuple[str, ...]:
        """Return what the models' tokenizers take for tokens of their own."""

    @abstractmethod
    def identity(self) -> list[Any]:
        """Return plain data that changes whenever the models could rate the same chat otherwise."""

    @abstractmethod
    def origin(self) -> tuple[str, str]:
        """Return the engine's name and the model's, for provenance."""

    @property
    def stored_reasoning(self) -> Reasoning | None:
        """Whether the model was trained to read reasoning before an answer; None if nothing is known."""
        return None

    @property
    def shown_reasoning(self) -> Reasoning:
        """What is done with reasoning before an answer."""
        return self.reasoning or self.stored_reasoning or "strip"

    @property
    def fingerprint(self) -> str:
        """Name, version, options and models."""
        return fingerprint_of(self, self.identity(), of=RewardScorer)

    def scale_of(self, stored: Callable[[], tuple[float, float] | None], remedy: str = "choose") -> Normalizer:
        """Return what rewards are brought to a common scale with, (0, 1) for none.

        Raises:
            ValueError: mean and standard deviation are asked for and nowhere to be had.
        """
        if self.normalize not in ("zscore", "mean"):
            return Normalizer(0.0, 1.0)
        known = stored()
        if known is None:
            raise ValueError(
                f"{self.name} option normalize={self.normalize!r}, and the checkpoint stores no mean and standard "
                f"deviation of its rewards; {remedy} normalize: none"
            )
        return Normalizer(known[0], known[1] if self.normalize == "zscore" else 1.0)

    def check(self) -> None:  # noqa: B027 most options are checked when the scorer is made
        """Raise `ValueError` if the options do not fit the models; called before any work."""

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the field and the remedy if the sample cannot be rated as given."""
        self.check()
        self._check_reference(sample)

    def _check_reference(self, sample: Sample) -> None:
        which = f" {sample.id!r}" if sample.id else ""
        if self.normalize != "reference":
            return
        if sample.reference is None:
            raise MissingReferenceError(
                f"the scorer {self.name!r} subtracts the reward of a reference answer, and the sample{which} has none; "
                "set Sample.reference (score: --reference, label: --reference-column)"
            )
        try:
            reference_answer(sample.reference)
        except ValueError as error:
            raise ValueError(f"the scorer {self.name!r}, sample{which}: {error}") from error

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order.

        Raises:
            ValueError: the options do not fit the model.
        """
        if not samples:
            return []
        await asyncio.to_thread(self.check)
        form = await asyncio.to_thread(lambda: ChatForm(special=self.special_tokens(), reasoning=self.shown_reasoning))
        jobs = [self._job(sample, form) for sample in samples]
        await self._ask([job for job in jobs if job.score is None], form)
        engine, model = self.origin()
        who = Provenance(scorer=self.name, fingerprint=self.fingerprint, engine=engine, revision=model)
        return [replace(self._score(job), provenance=who, cost=job.cost()) for job in jobs]

    def _job(self, sample: Sample, form: ChatForm) -> _Job:
        """What has to be asked about a sample."""
        try:
            self._check_reference(sample)
            reference = form.answer(reference_answer(sample.reference)) if self.normalize == "reference" else None
        except ValueError as error:
            reason = "bad_sample" if sample.reference is None else "gold_unparsable"
            return _Job(score=Score.failed(reason, error=str(error)))
        try:
            prompt = form.prompt(sample.prompt)
        except ValueError as error:
            return _Job(score=Score.failed("bad_sample", error=str(error)))
        try:
            answer = form.answer(sample.response)
        except ValueError:  # the shape of the response's turns is part of the response
            answer = _NOTHING
        reason = self._reason(sample, answer)
        if reason in _CUT and self.truncated in ("failed", "abstain"):
            return _Job(score=self._declined(reason))
        return _Job(prompt=prompt, answer=answer, reason=reason, reference=reference)

    def _reason(self, sample: Sample, answer: Answer) -> str:
        """Why the response's own rating does not stand alone, or ""."""
        if answer.size > self.max_characters:
            return "too_complex"
        if sample.finish_reason == "length":
            return "truncated"
        if answer.unfinished:
            return "unfinished_reasoning"
        if not answer.acts and guard(answer.text, min_words=self.min_words, max_characters=self.max_characters):
            return "no_answer"
        return ""

    def _declined(self, reason: str) -> Score:
        if self.truncated == "failed":
            return Score.failed("undecided", response=reason)
        return Score.abstained("out_of_scope", response=reason)

    async def _ask(self, jobs: Sequence[_Job], form: ChatForm) -> None:
        """Rate what is known to be needed in one call, then what turned out to be needed."""
        whole = [job for job in jobs if job.answer.size <= self.max_characters]
        asked = [(job, "own", job.answer.turns) for job in whole]
        asked += [(job, "against", job.reference.turns) for job in jobs if job.reference is not None]
        asked += [(job, "empty", EMPTY_TURNS) for job in jobs if self._needs_empty(job)]
        await self._rate(asked)
        for job in whole:
            if isinstance(job.own, Unratable):
                job.reason = job.reason or "unparsable_answer"
            elif isinstance(job.own, Fault) and job.own.too_long:
                job.reason = job.reason or "too_complex"
                if self.truncated in ("failed", "abstain"):
                    job.score = self._declined(job.reason)
        left = [job for job in jobs if job.score is None]
        await self._rate([(job, "empty", EMPTY_TURNS) for job in left if self._needs_empty(job)])
        await self._shorten([job for job in left if job.is_too_long()], form)

    def _needs_empty(self, job: _Job) -> bool:
        """Whether the floor is needed and not known; where it is a number, it still tells whether the prompt fits."""
        if job.empty is not None or not job.reason:
            return False
        return self.floor == "empty" or job.answer.size > self.max_characters or isinstance(job.own, Fault)

    async def _shorten(self, jobs: Sequence[_Job], form: ChatForm) -> None:
        """Rate as much of each response as fits, found by halving: at least half of what would fit is read."""
        for job in jobs:
            job.kept = min(len(job.answer.text), self.max_characters)
            if job.answer.size <= self.max_characters:
                job.kept //= 2
        while jobs := [job for job in jobs if job.is_too_long() and job.kept and isinstance(job.empty, Rating)]:
            await self._rate([(job, "own", form.text_turns(job.piece(self.keep))) for job in jobs])
            for job in jobs:
                if job.is_too_long():
                    job.kept //= 2

    async def _rate(self, asked: Sequence[_Asked]) -> None:
        """Rate chats in one call; those that are refused are asked about again."""
        if not asked:
            return
        results = await self.rate([(*job.prompt, *turns) for job, _, turns in asked])
        for (job, slot, _), result in zip(asked, results, strict=True):
            job.take(slot, result)
        await self._rate_alone([one for one, result in zip(asked, results, strict=True) if _is_refused(result)])

    async def _rate_alone(self, refused: Sequence[_Asked]) -> None:
        """Rate each chat in a call of its own, so that none pays for another of its batch.

        A response that is refused again, while an empty one is rated, is itself what cannot be rated.
        """
        broken = 0
        for job, slot, turns in refused:
            (silence,) = await self.rate([(*job.prompt, *EMPTY_TURNS)])
            job.take("empty", silence)
            broken = broken + 1 if isinstance(silence, Fault) else 0
            if broken == _PATIENCE:
                return
            if broken or slot == "empty":
                continue
            (result,) = await self.rate([(*job.prompt, *turns)])
            if slot == "own" and isinstance(result, Fault) and _is_refused(result):
                result = Unratable(reason=result.reason, detail=result.detail)
            job.take(slot, result)

    def _score(self, job: _Job) -> Score:
        if job.score is not None:
            return job.score
        less = 0.0
        if job.against is not None:
            if isinstance(job.against, Fault):
                return _failed(job.against, "gold_timeout" if job.against.too_long else "")
            less = job.against.reward
        readable = isinstance(job.own, Rating | Unratable) or job.is_too_long()
        if isinstance(job.own, Fault) and not readable:
            return _failed(job.own)
        if isinstance(job.empty, Fault):
            return _failed(job.empty)
        own = job.own if isinstance(job.own, Rating) else None
        evidence: dict[str, Any] = {}
        if job.against is not None:
            evidence["reference_reward"] = less
        if job.reason:
            evidence["truncated"] = job.reason in _CUT
        if isinstance(job.own, Unratable):
            evidence["fault"] = job.own.detail
        if job.kept and own is not None:
            evidence |= {"kept": job.kept, "characters": len(job.answer.text)}
        if own is not None and (not job.reason or (job.reason in _CUT and self.truncated == "grade")):
            return self._scored(own, job.reason, less, evidence)
        return self._floored(job, own, less, evidence)

    def _floored(self, job: _Job, own: Rating | None, less: float, evidence: dict[str, Any]) -> Score:
        """The smaller of the floor and what was read of the response."""
        if isinstance(self.floor, str):
            if not isinstance(job.empty, Rating):
                raise RuntimeError(f"{self.name}: the floor of a sample is not known")
            low, spread = job.empty.shaped(self.output, less)
        else:
            low, spread = float(self.floor), None
        evidence["floor"] = low
        if own is not None:
            value = own.shaped(self.output, less)[0]
            if value <= low:
                return self._scored(own, job.reason, less, evidence)
            evidence = {**own.evidence, **evidence, "unbounded": value}
        return Score(value=low, reason=job.reason, uncertainty=spread, evidence=evidence)

    def _scored(self, rating: Rating, reason: str, less: float, evidence: Mapping[str, Any]) -> Score:
        value, spread = rating.shaped(self.output, less)
        return Score(value=value, reason=reason, uncertainty=spread, evidence={**rating.evidence, **evidence})


@dataclass(slots=True, kw_only=True)
class _Job:
    """A sample on its way to its score.

    Attributes:
        reason: why its own rating does not stand alone, or "".
        reference: the answer whose reward is subtracted.
        score: where no model has to be asked.
        own, empty, against: what the model says of the response or the piece of it that fits, of an empty response, and
            of the reference.
        kept: characters of the piece; 0 for the whole response.
        paid: all ratings that were asked for.
    """

    prompt: Turns = ()
    answer: Answer = _NOTHING
    reason: str = ""
    reference: Answer | None = None
    score: Score | None = None
    own: Rating | Fault | None = None
    empty: Rating | Fault | None = None
    against: Rating | Fault | None = None
    kept: int = 0
    paid: list[Rating] = field(default_factory=list)

    def take(self, slot: str, result: Rating | Fault) -> None:
        """Keep what the model says, under the name of the field that it is for."""
        setattr(self, slot, result)
        if isinstance(result, Rating):
            self.paid.append(result)

    def is_too_long(self) -> bool:
        """Whether the response, or the last piece of it, did not fit; a response that was not asked whole counts."""
        return self.own is None or (isinstance(self.own, Fault) and self.own.too_long)

    def piece(self, keep: str) -> str:
        """The part of the text that is tried next."""
        text = self.answer.text
        return text[: self.kept] if keep == "start" else text[len(text) - self.kept :]

    def cost(self) -> Cost:
        """What all ratings took together."""
        return reduce(add, (rating.cost for rating in self.paid), NO_COST)


_Asked = tuple[_Job, str, Turns]  # what is asked about a job: the field that the answer is for, and the turns


def reference_answer(reference: Any) -> str:
    """Return the answer that a reference holds: a text, or `{"response": text}`.

    Raises:
        ValueError: it holds none.
    """
    answer = reference.get("response") if isinstance(reference, Mapping) else reference
    if not isinstance(answer, str) or not answer.strip():
        raise ValueError(f'the reference is {reference!r}; it must be an answer as a text, or {{"response": text}}')
    return answer


def _is_refused(result: Rating | Fault | None) -> bool:
    """Whether an engine answers, but not to this chat."""
    return (
        isinstance(result, Fault)
        and result.reason == "engine_error"
        and not result.too_long
        and not isinstance(result, Unratable)
    )


def _failed(fault: Fault, reason: str = "") -> Score:
    return Score.failed(reason or fault.reason, fault=fault.detail)
