"""The base of every scorer that asks a model: what reaches the model, and what becomes of its silence.

`EngineScorer` refuses bad samples and signs scores; `ModelScorer` asks in words.  A subclass is a frozen dataclass that
makes prompts of cases and scores of answers.  The base sees to the rest: a bad sample fails alone, a response that
holds nothing to judge gets the lowest value and is never shown to the model, an engine's fault or a missing verdict is
a failed score and never a number, and every score says who gave it and what it cost.

A response that is too long for the model's window gets the lowest value (`too_complex`), if the prompt fits with an
empty response in its place; nobody may buy a failed score with a long answer.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from adjudge.engines.interface import Engine, Fault, LabelLogprobs, Labels, Sampling
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Count, Share, check_options
from adjudge.prompts.asking import Answer, NoVerdict, Reader, Retry, ask_labels, ask_often, cost_of
from adjudge.prompts.template import ANSWER, Rendered, Template, Value, load_template
from adjudge.protocol import (
    NO_COST,
    Provenance,
    Sample,
    Score,
    require_reference,
    response_text,
    split_reasoning,
)
from adjudge.runtime.contract import require_group

T = TypeVar("T")
C = TypeVar("C", bound="Case")

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")  # scripts without blanks between words
_SHOWN = 4_000  # characters of a rationale that are kept as evidence

# Openings that say nothing, and for which judges are known to give full marks (arXiv 2507.08794).
_HOLLOW = (
    "solution|thought process|lets solve this problem step by step|lets think step by step|the answer is|answer|"
    "final answer|解|解答|答案|かいせつ|respuesta|réponse|antwort"
).split("|")
_HOLLOW_RUN = re.compile(rf"(?:(?:{'|'.join(sorted(map(re.escape, _HOLLOW), key=len, reverse=True))})(?:\s|$))+")
_HOLLOW_START = 200  # characters that hold the longest of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A sample that is shown to the model.

    Attributes:
        sample: the sample.
        response: the text that is judged: the assistant's, without its reasoning unless that is kept.
        notes: what an earlier call of the scorer wrote about it, such as a critique.

    Scorers that show more derive from it; a prompt that does not fit is tried again with another `response`.
    """

    sample: Sample
    response: str
    notes: str = ""

    @property
    def at_fault(self) -> bool:
        """Whether it may be the response that makes a prompt too long: not where a longer one is shown beside it."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure(Fault):
    """A model whose probabilities say that it was about to say something else than a label.

    Attributes:
        mass: the probability of all labels together.
    """

    mass: float = 0.0


@dataclass(frozen=True, kw_only=True)
class EngineScorer(ABC):
    """A scorer that asks an engine: it refuses bad samples one by one, and signs the scores.

    Attributes:
        engine: the model: "transformers:MODEL", "vllm:MODEL", "openai:MODEL", a mapping such as
            `{"openai": {"model": .., "base_url": ..}}`, or an engine; in a run also "policy", the one that learns.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool | None] = None  # None: one is looked at where there is one
    text_template: ClassVar[str] = ""  # the name of its prompt, where it has but one

    engine: Any

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")
        bind_engines(self, "engine")

    @abstractmethod
    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""

    def templates(self) -> tuple[Template, ...]:
        """Return every template this scorer may use, its own or that of an option; they are part of its fingerprint."""
        name = getattr(self, "template", "") or self.text_template
        return (load_template(name),) if name else ()

    @property
    def reference_needed(self) -> bool:
        """Whether, with these options, a sample without a reference is a mistake."""
        return bool(self.needs_reference)

    def check_reference(self, sample: Sample) -> None:  # noqa: B027 most judges take any reference
        """Raise `ValueError` if the reference cannot be used; called before the response is looked at."""

    def resolved(self) -> Engine:
        """Return the engine itself; one that is given by name is shared by this process."""
        return engine_of(self.engine)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """What the model's tokenizer takes for tokens of its own, where the engine tells."""
        return tuple(getattr(self.resolved(), "special_tokens", ()))

    @property
    def fingerprint(self) -> str:
        """Name, version, options, templates and engine."""
        return fingerprint_of(self, self.templates(), self.resolved(), without=("engine",))

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the field and the remedy if the sample cannot be judged as given."""
        which = f" {sample.id!r}" if sample.id else ""
        if self.reference_needed:
            require_reference(self.name, sample)
        try:
            self.check_reference(sample)
        except ValueError as error:
            raise ValueError(f"the scorer {self.name!r}, sample{which}: {error}") from error
        if getattr(self, "groupwise", False):
            require_group(self.name, sample)

    def case(self, sample: Sample) -> Case | Score:
        """Return what is judged of a sample, or the score of one that cannot be judged."""
        try:
            self.validate(sample)
        except ValueError as error:
            return Score.failed("bad_sample" if sample.reference is None else "gold_unparsable", error=str(error))
        return Case(sample=sample, response="")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        scores: dict[int, Score] = {}
        cases: dict[int, Case] = {}
        for place, sample in enumerate(samples):
            ready = self.case(sample)
            if isinstance(ready, Score):
                scores[place] = ready
            else:
                cases[place] = ready
        if cases:
            unseen = [samples[place] for place, score in scores.items() if score.status == "scored"]
            judged = await self.judge_beside(list(cases.values()), unseen)
            scores.update(zip(cases, judged, strict=True))
        if not scores:
            return []
        who = self._provenance()
        return [replace(scores[place], provenance=who) for place in range(len(samples))]

    async def judge_beside(self, cases: Sequence[Case], unseen: Sequence[Sample]) -> list[Score]:
        """Return one score per case; scorers of groups learn here which samples scored 0 without being shown."""
        return await self.judge(cases)

    def _provenance(self) -> Provenance:
        engine = self.resolved()
        prompts = ", ".join(f"{template.name}@{template.version}" for template in self.templates())
        return Provenance(
            scorer=self.name,
            fingerprint=self.fingerprint,
            engine=engine.name,
            revision=f"{engine.model} {prompts}".strip(),
        )


@dataclass(frozen=True, kw_only=True)
class ModelScorer(EngineScorer):
    """A scorer that asks a language model.

    Attributes:
        reasoning: "strip" shows only what follows the last end-of-thinking tag of the response, and a response that
            ends inside its reasoning gets `lowest`; "keep" shows the whole text.
        min_words: a response of fewer words gets `lowest` (`no_answer`) and is not shown: lone words and signs win over
            many judges.  1 where one word can be an answer.
        max_characters: a response of more characters gets `lowest` (`too_complex`) and is not shown.
        undecided: "failed" when the model gives no verdict on a response, which is unknown; "zero" gives such a
            response `lowest` (`undecided`), for training, where a policy could learn answers that leave the judge
            speechless.
        max_tokens: most tokens of the model's answer.
        temperature: how freely it answers; 0 takes the likeliest token each time.
        seed: where the random numbers start.
        attempts: how often a model is asked at most that gives no verdict; at temperature 0 it is asked once, unless
            `retry_temperature` is set.
        retry_temperature: the temperature from the second attempt on; None keeps the first one.
        nudge: a request put after an answer without a verdict, instead of asking the same again; "" for none.
        forced_mass: a model that gave no verdict is asked for it alone, where the engine can keep it to them.  It
            counts if these have so much of the model's probability together; a server that does not tell is
            trusted.  null: not asked that way.
        system_turn: whether the model's chat template knows a system turn; else its text goes before the user's.
        examples: few-shot examples, which stand as earlier turns before each prompt whose fields they have: mappings
            of the prompt's fields, and under "answer" the whole of what the model should say, with `{nonce}` for its
            key: `{question: .., response: .., answer: "Verdict {nonce}: 1"}`.
    """

    reasoning: Literal["strip", "keep"] = "strip"
    min_words: Count = 2
    max_characters: Count = 50_000
    undecided: Literal["failed", "zero"] = "failed"
    max_tokens: int = 2048
    temperature: float = 0.0
    seed: int = 0
    attempts: int = 3
    retry_temperature: float | None = None
    nudge: str = ""
    forced_mass: Share | None = 0.5
    system_turn: bool = True
    examples: Sequence[Mapping[str, Any]] = ()

    version: ClassVar[str] = "2"
    often: ClassVar[str] = ""  # the option that says how many answers to each prompt are asked for

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sampling()
        self.retry()
        if not isinstance(self.examples, list | tuple):
            object.__setattr__(self, "examples", (self.examples,))
        for example in self.examples:
            self._check_example(example)
        if self.runs > 1 and self.temperature == 0:
            raise ValueError(
                f"{self.name} option {self.often}={self.runs} with temperature=0; all would be the same: "
                "set a temperature"
            )

    def _check_example(self, example: Any) -> None:
        texts = isinstance(example, Mapping) and all(isinstance(one, str | list | tuple) for one in example.values())
        asked = [one for one in self.templates() if one.sections[0][0] != "completion"]
        if texts and isinstance(example.get(ANSWER) or None, str) and any(one.fits(example) for one in asked):
            return
        fields = "; ".join(f"{', '.join(one.untrusted)} ({one.name})" for one in asked) or "it has no chat prompt"
        raise ValueError(
            f"{self.name} option examples: {example!r} is none; it must map the fields of a prompt, and {ANSWER!r}, to "
            f"texts (or lists of turns); the fields are: {fields}"
        )

    @property
    def fingerprint(self) -> str:
        """Name, version, options, templates and engine, and whether it can be kept to the verdicts."""
        return f"{super().fingerprint}{self.forced_mark}"

    @property
    def forced_mark(self) -> str:
        """What stands at the end of the fingerprint where a verdict can be forced."""
        return "" if self.forced_mass is None or not getattr(self.resolved(), "chooses", False) else "+forced"

    @property
    def runs(self) -> int:
        """How many answers to each prompt are asked for."""
        return int(getattr(self, self.often)) if self.often else 1

    def sampling(self, **changes: Any) -> Sampling:
        """Return how the model answers; keyword arguments replace single parameters."""
        given = {"max_tokens": self.max_tokens, "temperature": self.temperature, "seed": self.seed}
        return Sampling(**{**given, **changes})

    def retry(self) -> Retry:
        """Return when the model is asked again."""
        return Retry(
            attempts=self.attempts, temperature=self.retry_temperature, nudge=self.nudge, forced=self.forced_mass
        )

    @property
    def lowest(self) -> float:
        """What a response gets that is not shown to the model: no more than anything that is shown can get."""
        return 0.0

    def case(self, sample: Sample) -> Case | Score:
        """Return what is shown to the model, or the score of a sample that is not shown to it."""
        ready = super().case(sample)
        if isinstance(ready, Score):
            return ready
        try:
            response = response_text(sample)
        except ValueError as error:
            return Score.scored(self.lowest, "no_answer", error=str(error))
        if self.reasoning == "strip":
            _, response, unfinished = split_reasoning(response)
            if unfinished:
                return Score.scored(self.lowest, "unfinished_reasoning")
        refused = self.refused(response)
        return refused or Case(sample=sample, response=response.strip())

    def refused(self, text: str) -> Score | None:
        """Return the score of a text that is not shown to the model, with what it lacks as evidence, or None."""
        limits = {"min_words": self.min_words, "max_characters": self.max_characters}
        if not (reason := guard(text, **limits)):
            return None
        return Score.scored(self.lowest, reason, error=lack_of(text, reason, **limits))

    def render(self, template: Template, values: Mapping[str, Value]) -> Rendered:
        """Return a prompt of a template, with special tokens and `broken_up` broken up in untrusted text."""
        more = self.broken_up() if template.guard else ()
        shown = [example for example in self.examples if template.fits(example)]
        rendered = template.render(values, special=(*self.special_tokens, *more), examples=shown)
        return rendered if self.system_turn else rendered.without_system()

    def broken_up(self) -> tuple[str, ...]:
        """Return what is broken up in untrusted text beside the form of the prompt, if that has a guard."""
        return ()

    def filled(self, template: Template, values: Mapping[str, Value]) -> Rendered:
        """Return a template's prompt with those of the values that it has fields for."""
        known = {*template.untrusted, *template.trusted}
        return self.render(template, {name: value for name, value in values.items() if name in known})

    async def decided(
        self,
        cases: Sequence[C],
        prompt: Callable[[C], Rendered],
        read: Reader[T] | Sequence[Reader[T]],
        score: Callable[[C, list[Answer[T]]], Score],
    ) -> list[Score]:
        """Ask one prompt for each case, `runs` times, and return the scores made of the answers.

        Args:
            cases: what is judged.
            prompt: makes the prompt of a case.
            read: reads the verdict out of a text; one reader for all cases, or one for each.
            score: makes the score of a case's verdicts, of which none is missing; their cost is added here.
        """
        scores = []
        for case, answers in zip(cases, await self.asked_often(cases, prompt, read, self.runs), strict=True):
            fault = next((answer for answer in answers if isinstance(answer, Fault)), None)
            verdicts = [answer for answer in answers if isinstance(answer, Answer)]
            made = score(case, verdicts) if fault is None else self.unanswered(fault)
            told = {**made.evidence, **forced_of(verdicts)}
            scores.append(replace(made, evidence=told, cost=cost_of(answers)))
        return scores

    async def asked(
        self, cases: Sequence[C], prompt: Callable[[C], Rendered], read: Reader[T] | Sequence[Reader[T]]
    ) -> list[Answer[T] | Fault]:
        """Ask one prompt for each case; a fault that a long response causes is told apart from others."""
        return [answers[0] for answers in await self.asked_often(cases, prompt, read, 1)]

    async def asked_often(
        self, cases: Sequence[C], prompt: Callable[[C], Rendered], read: Reader[T] | Sequence[Reader[T]], n: int
    ) -> list[list[Answer[T] | Fault]]:
        """Ask one prompt for each case `n` times; there is one reader for all cases, or one for each."""
        engine = self.resolved()
        reads: Sequence[Reader[T]] = read if isinstance(read, Sequence) else [read] * len(cases)

        async def call(places: Sequence[int], prompts: Sequence[Rendered]) -> Sequence[list[Answer[T] | Fault]]:
            mine = [reads[place] for place in places]
            return await ask_often(engine, prompts, self.sampling(n=n), mine, retry=self.retry())

        return await _fitted(cases, prompt, call, lambda fault: [fault, *[replace(fault, cost=NO_COST)] * (n - 1)])

    async def label_shares(
        self, cases: Sequence[C], prompt: Callable[[C], Rendered], labels: Labels, *, classes: bool = False
    ) -> list[LabelLogprobs | Fault]:
        """Return how likely each label is as the answer to the prompt of each case, by its words or by a classifier."""
        engine = self.resolved()

        async def call(_: Sequence[int], prompts: Sequence[Rendered]) -> Sequence[LabelLogprobs | Fault]:
            return await ask_labels(engine, prompts, labels, classes=classes)

        return await _fitted(cases, prompt, call, lambda fault: fault)

    def unanswered(self, fault: Fault) -> Score:
        """Return the score of a sample on which the model gave no verdict; it costs what the fault did."""
        cost = fault.cost
        if fault.reason == "too_complex":
            return Score(value=self.lowest, reason="too_complex", evidence={"fault": fault.detail}, cost=cost)
        if isinstance(fault, Unsure):
            return replace(Score.abstained("low_confidence", fault=fault.detail, mass=fault.mass), cost=cost)
        if not isinstance(fault, NoVerdict):
            return replace(Score.failed(fault.reason, fault=fault.detail), cost=cost)
        evidence = {"fault": fault.detail, "text": fault.text, "attempts": fault.attempts}
        if self.undecided == "zero":
            score = Score.scored(self.lowest, "undecided", judge=fault.reason, **evidence)
        else:
            score = Score.failed(fault.reason, **evidence)
        return replace(score, cost=cost)


def forced_of(answers: Iterable[Answer[Any]]) -> dict[str, Any]:
    """Return as evidence which mass the verdicts had that a model gave only when it could give nothing else."""
    masses = [answer.mass for answer in answers if answer.forced]
    return {"forced_mass": masses[0] if len(masses) == 1 else masses} if masses else {}


def guard(response: str, *, min_words: int, max_characters: int) -> str:
    """Return why a response is not shown to a model ("no_answer" or "too_complex"), or "".

    Args:
        response: the text that would be judged.
        min_words: fewest words; a character of a script without blanks counts as a word.
        max_characters: most characters.
    """
    if len(response) > max_characters:
        return "too_complex"
    words = sum(1 for _ in itertools.islice(_words(response), min_words))
    return "no_answer" if words < min_words or _is_hollow(response) else ""


def lack_of(response: str, reason: str, *, min_words: int, max_characters: int) -> str:
    """Return in words what `guard` misses in a response that it refuses for a reason, and the option that says so."""
    if reason == "too_complex":
        return f"the response has {len(response)} characters, and max_characters={max_characters}"
    if _is_hollow(response):
        return "the response is made of openings alone, and nothing follows them"
    return f"the response has fewer words than min_words={min_words}, so the model was not asked"


def _is_hollow(response: str) -> bool:
    """Whether a response is made of openings alone, however many of them."""
    if _HOLLOW_RUN.match(_flat(response[:_HOLLOW_START])) is None:
        return False
    return _HOLLOW_RUN.fullmatch(_flat(response)) is not None


def _flat(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", "", text).casefold().split())


def _words(text: str) -> Iterator[None]:
    for word in _WORD.finditer(text):
        for _ in range(max(1, len(_UNSPACED.findall(word[0])))):
            yield None


def require_text(reference: Any) -> None:
    """Raise `ValueError` unless the reference is a text that is not empty, or there is none."""
    if reference is not None and not (isinstance(reference, str) and reference.strip()):
        raise ValueError(f"the reference is {reference!r}; it must be a text that is not empty, or left out")


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of several runs and its standard error, None for one run."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def shortened(text: str) -> str:
    """Return the end of a rationale, at most 4,000 characters of it, for evidence."""
    return text if len(text) <= _SHOWN else f"... {text[-_SHOWN:]}"


async def _fitted(
    cases: Sequence[C],
    prompt: Callable[[C], Rendered],
    call: Callable[[Sequence[int], Sequence[Rendered]], Awaitable[Sequence[T]]],
    fault_of: Callable[[Fault], T],
) -> list[T]:
    """Ask, and where a prompt was too long, find out whether it is the response that makes it so."""
    results = list(await call(range(len(cases)), [prompt(case) for case in cases]))
    long = [place for place, result in enumerate(results) if _too_long(result) and cases[place].at_fault]
    if long:
        shorter = await call(long, [prompt(replace(cases[place], response="-")) for place in long])
        for place, result in zip(long, shorter, strict=True):
            if (fault := _too_long(results[place])) and not _too_long(result):
                cost = cost_of([*_several(results[place]), *_several(result)])
                results[place] = fault_of(Fault(reason="too_complex", detail=fault.detail, cost=cost))
    return results


def _several(result: Any) -> Sequence[Any]:
    return result if isinstance(result, list) else [result]


def _too_long(result: Any) -> Fault | None:
    """The fault that says that a prompt does not fit into the model's window, if this is one."""
    first = _several(result)[0]
    return first if isinstance(first, Fault) and first.too_long else None
