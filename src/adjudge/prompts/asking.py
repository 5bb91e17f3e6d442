"""Ask a model, read what it says, and ask again only where nothing could be read.

Every prompt gets a verdict or a reason: a `Fault` of the engine, or a `NoVerdict` with the model's last words.  Equal
prompts are asked once.  What one prompt gets does not depend on the others.

A model that gave none is asked once more for the verdict alone, if the reader knows which there are (`blank`) and the
engine can keep it to them (`Sampling.choice`).  That verdict counts only where the model would likely have said one of
them anyway (`Retry.forced`); else nobody knows.  One that refused or said nothing has not forgotten a form: it is not
asked for more.

What counts is what stands behind the model's thinking (`concluded`); a draft of a verdict inside it is none.

An answer that was cut off, filtered or refused is not read, even where it holds something that looks like a verdict:
nobody knows what would have come after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from adjudge import wire
from adjudge.engines.interface import Completion, Engine, Fault, Generation, LabelLogprobs, Labels, Logits, Sampling
from adjudge.finish import finished
from adjudge.prompts.escaping import escape
from adjudge.prompts.reading import Blank, concluded
from adjudge.prompts.template import Rendered
from adjudge.protocol import NO_COST, Cost

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_BEGUN = "Answer:"  # small models say a choice behind it about twice as often as at the start of their turn
_LINE = 64  # tokens of a free answer that is asked for alone
_LISTED = 12  # choices that are named one by one in a request
_SHOWN = 2_000  # characters of a model's last words that are kept


class Reader(Protocol[T_co]):
    """Reads a verdict out of a model's text, or returns None; see `adjudge.prompts.reading`.

    It is given what the model concluded; one that has `whole` set is given the thinking in front of that, too.
    """

    def __call__(self, text: str, nonce: str = "", /) -> T_co | None:
        """Return the verdict, or None when there is none to be read."""
        ...


@dataclass(frozen=True, slots=True)
class Fillable(Generic[T]):
    """A reader that knows which verdicts there are, so that a model can be asked for them alone.

    Attributes:
        read: reads the verdict.
        blank: makes, with a prompt's nonce, the text that it reads, with its places to fill in.
    """

    read: Reader[T]
    blank: Callable[[str], Blank]

    def __call__(self, text: str, nonce: str = "", /) -> T | None:
        """Return what the reader reads."""
        return self.read(text, nonce)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """A verdict that was read.

    Attributes:
        value: the verdict.
        text: what the model wrote.
        reasoning: its reasoning, where the engine separates that.
        tokens: how many tokens this completion has.
        attempts: how many times the model was asked.
        cost: what all attempts took together; nothing for a copy of an equal prompt, whose cost is counted once.
        forced: whether the model gave no verdict in its text and was asked for it alone.
        mass: then, the least probability that the verdicts of a place had together; None where the engine cannot tell.
    """

    value: T
    text: str
    reasoning: str = ""
    tokens: int = 0
    attempts: int = 1
    cost: Cost = NO_COST
    forced: bool = False
    mass: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoVerdict(Fault):
    """A model that answered without a verdict, on every attempt.

    Attributes:
        reason: `judge_truncated` or `judge_unparsable`.
        detail: why, for a person.
        text: what the model wrote last; at most 2,000 characters from its end.
        attempts: how many times it was asked.
    """

    text: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When and how a model is asked again that gave no verdict.

    Without a temperature and without a nudge, a model at temperature 0 is not asked again: it would say the same.

    Attributes:
        attempts: how many times a model is asked at most; each time with the next seeds (some servers count the
            completions of a prompt as seeds too, so each attempt takes as many as there are completions).
        temperature: the temperature from the second attempt on; None keeps the first one.
        nudge: a request that is put after the model's own answer, instead of asking the same again; "" for none.
        forced: how likely the verdicts together must be, in [0, 1], for one to count that the model gave when it could
            give nothing else; None: it is not asked that way.
    """

    attempts: int = 3
    temperature: float | None = None
    nudge: str = ""
    forced: float | None = None

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts!r}; a model must be asked at least once")
        if self.temperature is not None and not self.temperature > 0:
            raise ValueError(
                f"the temperature of further attempts is {self.temperature!r}; it must be above 0, or None"
            )

    def useful(self, sampling: Sampling) -> bool:
        """Return whether asking again can give another answer."""
        return bool(self.nudge) or self.temperature is not None or sampling.temperature > 0


@dataclass(slots=True)
class _Case(Generic[T]):
    rendered: Rendered
    read: Reader[T]
    wanted: int
    prompt: Rendered
    verdicts: list[Answer[T]] = field(default_factory=list)
    fault: Fault | None = None
    last: Completion | None = None
    attempts: int = 0
    cost: Cost = NO_COST
    unread: list[Completion] = field(default_factory=list)
    why: str = ""

    @property
    def missing(self) -> int:
        return 0 if self.fault else self.wanted - len(self.verdicts)


async def ask(
    engine: Engine,
    prompts: Sequence[Rendered],
    sampling: Sampling,
    read: Reader[T] | Sequence[Reader[T]],
    *,
    retry: Retry = Retry(),
) -> list[Answer[T] | Fault]:
    """Return one verdict for each prompt, in order, or why there is none.

    Args:
        engine: what is asked.
        prompts: what it is asked; equal prompts are asked once.
        sampling: how it answers; `n` must be 1.
        read: reads a verdict out of a text and the prompt's nonce, or returns None; one for each prompt, or for all.
        retry: when it is asked again.

    Raises:
        ValueError: `sampling.n` is not 1, or the engine cannot generate at all.
    """
    if sampling.n != 1:
        raise ValueError(f"ask takes one verdict for each prompt and got n={sampling.n}; use ask_often for several")
    several = await ask_often(engine, prompts, sampling, read, retry=retry)
    return [verdicts[0] for verdicts in several]


async def ask_often(
    engine: Engine,
    prompts: Sequence[Rendered],
    sampling: Sampling,
    read: Reader[T] | Sequence[Reader[T]],
    *,
    retry: Retry = Retry(),
) -> list[list[Answer[T] | Fault]]:
    """Return `sampling.n` verdicts for each prompt, in order; where one is missing, why.

    The cost of a prompt is carried by its first entry alone, so that costs may be added up.
    """
    reads: Sequence[Reader[T]] = read if isinstance(read, Sequence) else [read] * len(prompts)
    firsts = _first_places(prompts)
    distinct = sorted(set(firsts))
    cases = [_Case(rendered=prompts[at], read=reads[at], wanted=sampling.n, prompt=prompts[at]) for at in distinct]
    attempts = retry.attempts if retry.useful(sampling) else 1
    for attempt in range(attempts):
        open_cases = [case for case in cases if case.missing]
        hot = sampling.temperature if attempt == 0 or retry.temperature is None else retry.temperature
        for wanted in sorted({case.missing for case in open_cases}):
            asked = [case for case in open_cases if case.missing == wanted]
            again = replace(sampling, n=wanted, seed=sampling.seed + attempt * sampling.n, temperature=hot)
            results = await engine.generate([case.prompt.prompt for case in asked], again)
            for case, result in zip(asked, _matched(results, asked, engine), strict=True):
                _take(case, result, retry)
    if retry.forced is not None and getattr(engine, "chooses", False):
        await _force(engine, [case for case in cases if case.missing], sampling, retry.forced)
    verdicts = dict(zip(distinct, map(_verdicts, cases), strict=True))
    return [
        verdicts[first] if first == place else [_free(entry) for entry in verdicts[first]]
        for place, first in enumerate(firsts)
    ]


async def ask_labels(
    engine: Engine, prompts: Sequence[Rendered], labels: Labels, *, classes: bool = False
) -> list[LabelLogprobs | Fault]:
    """Return how likely each label is as the answer to each prompt, in order; equal prompts are asked once.

    With `classes` the engine is a classifier whose outputs are the labels in their order.
    """
    places = _first_places(prompts)
    distinct = sorted(set(places))
    asked = [prompts[place].prompt for place in distinct]
    results: list[LabelLogprobs | Fault]
    if classes:
        results = [_of_classes(found, tuple(labels)) for found in await engine.classify(asked)]
    else:
        results = await engine.label_logprobs(asked, labels)
    answers = dict(zip(distinct, _matched(results, distinct, engine), strict=True))
    return [answers[first] if first == place else _free(answers[first]) for place, first in enumerate(places)]


def _of_classes(found: Logits | Fault, labels: Sequence[str]) -> LabelLogprobs | Fault:
    """A classifier's outputs as the log of their softmax."""
    if isinstance(found, Fault):
        return found
    if len(found.values) != len(labels) or not all(map(math.isfinite, found.values)):
        detail = f"the classifier gave {found.values!r} for the labels {', '.join(labels)}; each wants a finite number"
        return Fault(reason="engine_error", detail=detail, cost=found.cost)
    top = max(found.values)
    total = top + math.log(math.fsum(math.exp(value - top) for value in found.values))
    logprobs = {label: value - total for label, value in zip(labels, found.values, strict=True)}
    return LabelLogprobs(logprobs=logprobs, mass=1.0, cost=found.cost)


def cost_of(verdicts: Sequence[Answer[T] | Fault]) -> Cost:
    """Return what verdicts took together."""
    return sum((verdict.cost for verdict in verdicts), NO_COST)


def _first_places(prompts: Sequence[Rendered]) -> list[int]:
    """For each prompt, the place of the first that is equal to it."""
    first: dict[str, int] = {}
    return [first.setdefault(wire.dumps(list(prompt.messages)), place) for place, prompt in enumerate(prompts)]


def _matched(results: Sequence[T], asked: Sequence[object], engine: Engine) -> Sequence[T]:
    if len(results) != len(asked):
        raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(asked)} prompts")
    return results


def _read(case: _Case[T], text: str) -> T | None:
    return case.read(text if getattr(case.read, "whole", False) else concluded(text), case.rendered.nonce)


def _take(case: _Case[T], result: Generation | Fault, retry: Retry) -> None:
    case.attempts += 1
    case.cost += result.cost
    if isinstance(result, Fault):
        case.fault = result
        return
    case.unread = []
    for completion in result.completions[: case.missing]:
        case.last = completion
        value = _read(case, completion.text) if finished(completion.finish_reason) else None
        if value is None:
            case.unread.append(completion)
        else:
            case.verdicts.append(
                Answer(value=value, text=completion.text, reasoning=completion.reasoning, tokens=completion.tokens)
            )
    if case.missing and retry.nudge and case.last is not None:
        case.prompt = case.rendered.followed_by(escape(case.last.text), retry.nudge)


@dataclass(slots=True)
class _Form(Generic[T]):
    case: _Case[T]
    said: Completion
    blank: Blank
    words: list[str] = field(default_factory=list)
    mass: float | None = None
    why: str = ""

    @property
    def request(self) -> Rendered:
        line = self.blank.filled(self.words).rpartition("\n")[2].strip()
        named = f"what stands behind `{line}`" if len(self.blank.places) > 1 else "it"
        choices = self.blank.choices(self.words)
        if not choices:
            asked = f"So what stands behind `{line}`"
        elif len(choices) > _LISTED:  # a list of a hundred numbers tells nobody more than its ends
            asked = f"So is {named} a number from {choices[0]} to {choices[-1]}"
        else:
            asked = f"So is {named} {', '.join(choices[:-1])} or {choices[-1]}"
        request = f"{asked}? Answer with that alone."
        return self.case.rendered.followed_by(escape(self.said.text), request).continued(_BEGUN)


async def _force(engine: Engine, cases: Sequence[_Case[T]], sampling: Sampling, least: float) -> None:
    """Let models fill in the verdicts that they did not give; those that were about to say something else give none."""
    forms = [
        _Form(case, said, blank(case.rendered.nonce))
        for case in cases
        if (blank := getattr(case.read, "blank", None)) is not None
        for said in case.unread
        if said.text.strip() and (finished(said.finish_reason) or said.finish_reason == "length")
    ]
    todo = forms
    while todo:
        for choice in sorted({form.blank.choices(form.words) for form in todo}):
            asked = [form for form in todo if form.blank.choices(form.words) == choice]
            if len(choice) == 1:  # the last one left
                for form in asked:
                    form.words.append(choice[0])
                continue
            again = replace(sampling, n=1, temperature=0.0, top_p=1.0, top_k=0, stop=(), choice=choice)
            if not choice:
                again = replace(again, stop=("\n",), max_tokens=_LINE)
            results = await engine.generate([form.request.prompt for form in asked], again)
            for form, result in zip(asked, _matched(results, asked, engine), strict=True):
                _fill(form, result, least)
        todo = [form for form in todo if not form.why and len(form.words) < len(form.blank.places)]
    for form in forms:
        case, filled = form.case, form.blank.filled(form.words)
        text = f"{form.said.text}\n\n{filled}"
        value = None if form.why else _read(case, text)
        if value is None and not form.why:  # what it wrote holds half a verdict, or several that disagree
            value = _read(case, filled)
        if value is None:
            case.why = form.why
        else:
            case.verdicts.append(
                Answer(
                    value=value,
                    text=text,
                    reasoning=form.said.reasoning,
                    tokens=form.said.tokens,
                    forced=True,
                    mass=form.mass,
                )
            )


def _fill(form: _Form[T], result: Generation | Fault, least: float) -> None:
    if isinstance(result, Fault):
        form.why = f"; asked for it alone: {result.detail}"
        return
    form.case.cost += result.cost
    (word,) = result.completions
    choices = form.blank.choices(form.words)
    if word.text not in choices if choices else not finished(word.finish_reason):
        form.why = f"; asked for it alone, it was cut off or refused ({word.finish_reason})"
    elif word.mass is not None and word.mass < least:
        form.why = f"; asked for it alone, the verdicts together have the probability {word.mass:.3g} (< {least:g})"
    form.words.append(word.text if choices else word.text.strip(' "'))
    if word.mass is not None:
        form.mass = min(word.mass, 1.0 if form.mass is None else form.mass)


def _verdicts(case: _Case[T]) -> list[Answer[T] | Fault]:
    entries: list[Answer[T] | Fault] = [replace(answer, attempts=case.attempts) for answer in case.verdicts]
    fault = case.fault or _no_verdict(case)
    entries += [fault] * (case.wanted - len(entries))
    entries[0] = replace(entries[0], cost=case.cost)
    return entries


def _no_verdict(case: _Case[T]) -> NoVerdict:
    last = case.last
    end = "stop" if last is None else last.finish_reason
    detail = "no verdict in the form that was asked for"
    if end == "length":
        detail = "the answer was cut off at the token limit"
    elif not finished(end):
        detail = f"the model did not end its answer by itself (finish_reason {end[:40]!r}), so it is not read"
    return NoVerdict(
        reason="judge_truncated" if end == "length" else "judge_unparsable",
        detail=detail + case.why[:300],
        text="" if last is None else last.text[-_SHOWN:],
        attempts=case.attempts,
    )


def _free(entry: T) -> T:
    """A copy that cost nothing."""
    return replace(entry, cost=NO_COST)  # type: ignore[type-var]
