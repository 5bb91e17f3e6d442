"""The options and the asking that all judges share: from text or from probabilities, once or several times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from adjudge.engines.interface import Completion, Engine, Fault, Generation, LabelLogprobs, Prompt, Sampling
from adjudge.engines.label_tokens import label_texts
from adjudge.finish import finished
from adjudge.options import Count, Range, Share
from adjudge.prompts.asking import Answer, Fillable, Reader, cost_of
from adjudge.prompts.reading import WHOLE, LabelReader
from adjudge.prompts.scorer import Case, ModelScorer, Unsure, forced_of, shortened
from adjudge.prompts.template import Template, Value, load_template
from adjudge.protocol import NO_COST, THINK_END, Cost, Message, Sample

Combine: TypeAlias = Literal["mean", "median", "majority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a model thinks.

    Attributes:
        shares: label to its share, in [0, 1]; they sum to 1.
        votes: the labels that were read from texts, in order; empty when the shares are probabilities.
        mass: the probability of all labels together, when the shares are probabilities.
        text: what the model wrote last.
        missing: how many further votes were asked for and could not be read.
        attempts: how often the model was asked.
        forced: evidence on votes that the model gave only when it could give nothing else.
        cost: what it took.
    """

    shares: Mapping[str, float]
    votes: tuple[str, ...] = ()
    mass: float | None = None
    text: str = ""
    missing: int = 0
    attempts: int = 1
    forced: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost = NO_COST

    @classmethod
    def of_votes(cls, answers: Sequence[Answer[str]], *, missing: int, cost: Cost) -> Opinion:
        """Return the opinion that one or more answers make."""
        votes = tuple(answer.value for answer in answers)
        shares = {label: count / len(votes) for label, count in Counter(votes).items()}
        attempts = max(answer.attempts for answer in answers)
        text = answers[-1].text
        return cls(
            shares=shares,
            votes=votes,
            text=text,
            missing=missing,
            attempts=attempts,
            forced=forced_of(answers),
            cost=cost,
        )

    def value(self, worth: Mapping[str, float], combine: Combine = "mean") -> float:
        """Return the labels' worth combined: the expected worth, the median, or that of the most frequent label.

        Labels that are equally frequent give the mean of their worths.
        """
        if combine == "mean":
            return math.fsum(share * worth[label] for label, share in self.shares.items())
        if combine == "median":
            return _median(sorted((worth[label], share) for label, share in self.shares.items()))
        most = max(self.shares.values())
        tied = [worth[label] for label, share in self.shares.items() if share >= most - 1e-12]
        return math.fsum(tied) / len(tied)

    def spread(self, worth: Mapping[str, float]) -> float | None:
        """Return the standard error of the mean of several votes, or the standard deviation of probabilities.

        None for a single vote, which says nothing about itself.
        """
        mean = self.value(worth)
        variance = math.fsum(share * (worth[label] - mean) ** 2 for label, share in self.shares.items())
        if self.mass is not None:
            return math.sqrt(max(variance, 0.0))
        count = len(self.votes)
        return math.sqrt(max(variance, 0.0) / (count - 1)) if count > 1 else None

    def evidence(self) -> dict[str, Any]:
        """Return plain data that lets a person check the opinion."""
        evidence: dict[str, Any] = {**self.forced}
        if self.mass is not None:
            evidence |= {"probabilities": dict(self.shares), "mass": self.mass}
        elif len(self.votes) > 1 or self.missing:
            evidence |= {"votes": list(self.votes), "missing": self.missing}
        if self.text:
            evidence["rationale"] = shortened(self.text)
        if self.attempts > 1:
            evidence["attempts"] = self.attempts
        return evidence


def _median(weighted: Sequence[tuple[float, float]]) -> float:
    """The median of sorted values with shares that sum to 1; the middle of two where the halves meet between them."""
    below = 0.0
    for index, (value, share) in enumerate(weighted):
        below += share
        if math.isclose(below, 0.5, abs_tol=1e-12) and index + 1 < len(weighted):
            return (value + weighted[index + 1][0]) / 2
        if below > 0.5:
            return value
    return weighted[-1][0]


C = TypeVar("C", bound=Case)

_LEVELS = ("1", "2", "3", "4", "5")


@dataclass(frozen=True, kw_only=True)
class LanguageJudge(ModelScorer):
    """Base of the judges.

    Attributes:
        criteria: what the judge shall look at, in words, put into the prompt as it is.
        rubric: for prompts that have a place for one, what the levels mean, as a text or `{"criteria": .., "1": .., ..
            "5": ..}`; `extra["rubric"]` of a sample goes before.
        readout: "text" lets the model reason and reads the verdict out of its text; "probabilities" reads how likely
            each label is as its first word, which needs no sampling and has no ties; "classes" asks a classifier, whose
            outputs are the labels in their order, and takes their softmax.
        min_mass: with probabilities, how likely the labels together must be.
        low_mass: what happens below that: "abstain" (`low_confidence`), or "sample": the text is read instead.
        samples: how many texts are read for one verdict; more than one needs a temperature.
        combine: how several become one: "mean", "median" or "majority".
        quorum: the share of the texts that must hold a verdict, in (0, 1]; with fewer there is none.
        top_p: the share of probability that texts are sampled from.
        extend: how many times the model is made to go on thinking ("Wait") before its answer counts.
        template: the prompt, as a name or a file; "" for the judge's own.
    """

    often: ClassVar[str] = "samples"
    direct_template: ClassVar[str] = ""

    criteria: str = ""
    rubric: Any = None
    readout: Literal["text", "probabilities", "classes"] = "text"
    min_mass: Share = 0.5
    low_mass: Literal["abstain", "sample"] = "abstain"
    samples: Count = 1
    combine: Combine = "mean"
    quorum: Annotated[float, Range(gt=0, le=1)] = 0.5
    top_p: float = 1.0
    extend: Annotated[int, Range(ge=0)] = 0
    template: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.readout != "text" and self.prompts()[0].form != WHOLE:
            raise ValueError(
                f"{self.name}: its prompt asks for a text before the verdict, so readout must be 'text'; "
                f"{self.readout} are read after a prompt with the form {WHOLE!r}"
            )
        if self.criteria and not any("criteria" in template.trusted for template in self.templates()):
            raise ValueError(f"{self.name}: its prompt has no place for criteria; use the judge of that name, or none")
        if not self.criteria.strip() and any("criteria" in {*each.trusted} - each.optional for each in self.prompts()):
            raise ValueError(f"{self.name}: it rates by a criterion, and criteria is empty; say what counts")
        if self.rubric is not None and not self._takes_rubric:
            raise ValueError(f"{self.name}: its prompt has no place for a rubric; use prometheus, or none")

    def prompts(self) -> tuple[Template, ...]:
        """Return the prompts that ask for a verdict: the first is asked first, the last is answered by text."""
        text = load_template(self.template or self.text_template)
        if self.readout == "text":
            return (text,)
        direct = text if self.template or not self.direct_template else load_template(self.direct_template)
        return (direct, text) if self.low_mass == "sample" else (direct,)

    def templates(self) -> tuple[Template, ...]:
        """Return every prompt that is used with these options."""
        return self.prompts()

    @property
    def _takes_rubric(self) -> bool:
        return any("rubric" in (*template.untrusted, *template.trusted) for template in self.prompts())

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the field and the remedy if the sample cannot be judged as given."""
        super().validate(sample)
        if self._takes_rubric:
            self.rubric_of(sample)

    def rubric_of(self, sample: Sample) -> str | None:
        """Return the sample's own rubric, else the judge's, as text; None where the prompt has no place for one.

        Raises:
            ValueError: it has a place, and there is no rubric, or one of another form.
        """
        if not self._takes_rubric:
            return None
        rubric = sample.extra.get("rubric", self.rubric)
        if isinstance(rubric, str) and rubric.strip():
            return rubric
        if isinstance(rubric, Mapping):
            told = {str(key).removeprefix("score").removesuffix("_description"): text for key, text in rubric.items()}
            if set(told) == {"criteria", *_LEVELS} and all(isinstance(text, str) for text in told.values()):
                return "\n".join([f"[{told['criteria']}]", *(f"Score {level}: {told[level]}" for level in _LEVELS)])
        raise ValueError(
            f"the scorer {self.name!r} judges by a rubric, and got {rubric!r}; give the option rubric or "
            'Sample.extra["rubric"] as a text or as {"criteria": .., "1": .., .. "5": ..}'
        )

    def sampling(self, **changes: Any) -> Sampling:
        """Return how the model answers; keyword arguments replace single parameters."""
        return super().sampling(**{"top_p": self.top_p, **changes})

    def resolved(self) -> Engine:
        """Return the engine, made to think longer if that was asked for."""
        engine = super().resolved()
        if not self.extend:
            return engine
        forced: Any = BudgetForced(engine=engine, times=self.extend, form=self.prompts()[-1].form)
        extended: Engine = forced
        return extended

    async def opinions(
        self,
        cases: Sequence[C],
        values: Callable[[C], Mapping[str, Value]],
        read: Reader[str],
        labels: Sequence[str],
    ) -> list[Opinion | Fault]:
        """Return the model's view on each case, in order.

        Args:
            cases: what is judged.
            values: fills the prompt's fields; those that the template does not have are left out.
            read: reads a label out of a text.
            labels: the labels there are.
        """
        templates = self.prompts()
        if self.readout == "text":
            return await self._voted(cases, values, read, templates[-1], labels)
        shares = await self.label_shares(
            cases,
            lambda case: self.filled(templates[0], values(case)),
            label_texts(labels),
            classes=self.readout == "classes",
        )
        opinions: list[Opinion | Fault] = [_of_probabilities(result, self.min_mass) for result in shares]
        unsure = [place for place, opinion in enumerate(opinions) if isinstance(opinion, Unsure)]
        if unsure and self.low_mass == "sample":
            voted = await self._voted([cases[place] for place in unsure], values, read, templates[-1], labels)
            for place, opinion in zip(unsure, voted, strict=True):
                opinions[place] = replace(opinion, cost=opinion.cost + opinions[place].cost)
        return opinions

    async def _voted(
        self,
        cases: Sequence[C],
        values: Callable[[C], Mapping[str, Value]],
        read: Reader[str],
        template: Template,
        labels: Sequence[str],
    ) -> list[Opinion | Fault]:
        reads = Fillable(read, LabelReader(form=template.form, labels=tuple(labels)).blank) if template.form else read
        answers = await self.asked_often(cases, lambda case: self.filled(template, values(case)), reads, self.samples)
        return [counted(several, self.quorum) for several in answers]


def counted(answers: Sequence[Answer[str] | Fault], quorum: float) -> Opinion | Fault:
    """Return the opinion that several answers make, or why there is none."""
    votes = [answer for answer in answers if isinstance(answer, Answer)]
    if votes and len(votes) >= math.ceil(quorum * len(answers)):
        return Opinion.of_votes(votes, missing=len(answers) - len(votes), cost=cost_of(answers))
    return replace(next(answer for answer in answers if isinstance(answer, Fault)), cost=cost_of(answers))


def _of_probabilities(result: LabelLogprobs | Fault, min_mass: float) -> Opinion | Fault:
    if isinstance(result, Fault):
        return result
    if result.mass < min_mass or result.mass <= 0:
        detail = f"the labels together have the probability {result.mass:.3g}, and {min_mass:g} is asked for"
        return Unsure(reason="low_confidence", detail=detail, mass=result.mass, cost=result.cost)
    return Opinion(shares=result.shares(), mass=min(result.mass, 1.0), cost=result.cost)


WAIT = "Wait"
MAX_TOKENS = 32_768  # once a completion has so many tokens it is extended no further


@dataclass(frozen=True, kw_only=True)
class BudgetForced:
    """An engine that thinks longer: a model that wants to stop is told to wait, and goes on.

    Each completion is cut where the thinking ends (at its end-of-thinking tag, else before the line with the verdict),
    "Wait" is put behind it, and the model continues its own turn.  After `times` such extensions its text stands as it
    is.  All but `generate` and the fingerprint is that of the engine inside.  Source: simple test-time scaling for
    judges (arXiv 2505.11875), after s1 (arXiv 2501.19393).

    Not covered: engines that cannot continue an assistant's turn; they say so.  Probabilities are read without
    thinking, and so are choices that are forced, so nothing is extended there.

    Attributes:
        engine: the engine that does the work.
        times: how many times a completion is extended.
        form: the form of the verdict, as `adjudge.prompts.reading` takes it; thinking without a tag is cut before it.
    """

    engine: Engine
    times: int
    form: str = ""

    @property
    def fingerprint(self) -> str:
        """The engine's, with the options."""
        return f"{self.engine.fingerprint}+wait:{self.times}:{WAIT!r}:{self.form!r}:{MAX_TOKENS}"

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions of prompts, each extended `times` times; its tokens are those of all its pieces."""
        results = await self.engine.generate(prompts, sampling)
        if sampling.choice:  # nothing is thought there
            return results
        rows: list[list[Completion] | Fault] = []
        costs: list[Cost] = []
        for result in results:
            rows.append(result if isinstance(result, Fault) else list(result.completions))
            costs.append(NO_COST if isinstance(result, Fault) else result.cost)
        for _ in range(self.times):
            for index in range(sampling.n):
                await self._extend(prompts, rows, costs, index, replace(sampling, n=1, seed=sampling.seed + index))
        return [
            row if isinstance(row, Fault) else Generation(completions=tuple(row), cost=cost)
            for row, cost in zip(rows, costs, strict=True)
        ]

    async def _extend(
        self,
        prompts: Sequence[Prompt],
        rows: list[list[Completion] | Fault],
        costs: list[Cost],
        index: int,
        sampling: Sampling,
    ) -> None:
        """Extend completion `index` of every prompt by one piece; a fault takes the place of the whole row."""
        places, begun, starts = [], [], []
        for place, row in enumerate(rows):
            if isinstance(row, Fault) or row[index].tokens >= MAX_TOKENS or not finished(row[index].finish_reason):
                continue
            start = f"{thinking(row[index], self.form)}\n{WAIT}"
            places.append(place)
            starts.append(start)
            begun.append(_continued(prompts[place], start))
        results = await self.engine.generate(begun, sampling) if begun else []
        for place, start, result in zip(places, starts, results, strict=True):
            row = rows[place]
            if isinstance(result, Fault):
                rows[place] = result
            elif isinstance(row, list):
                (piece,) = result.completions
                start += f"{piece.reasoning.rstrip()}\n{THINK_END[0]}\n\n" if piece.reasoning else ""
                row[index] = replace(
                    piece, text=start + piece.text, reasoning="", tokens=row[index].tokens + piece.tokens
                )
                costs[place] += result.cost

    def __getattr__(self, name: str) -> Any:
        """All else is the engine's own."""
        if name.startswith("__") or name == "engine":  # a copy that is being made has no engine yet
            raise AttributeError(name)
        return getattr(self.engine, name)


def thinking(completion: Completion, form: str = "") -> str:
    """Return the part of a completion that comes before its answer.

    The engine's separate reasoning where there is one, put behind a `<think>` tag so that the model goes on with it;
    else the text before the last end-of-thinking tag; else the text before the line with the last verdict of this
    form; else all of it.
    """
    if completion.reasoning:
        return f"<think>\n{completion.reasoning.rstrip()}"
    text = completion.text
    end = max(text.rfind(tag) for tag in THINK_END)
    if end >= 0:
        return text[:end].rstrip()
    opening = form.partition("{")[0].strip()
    verdict = text.casefold().rfind(opening.casefold()) if opening else -1
    return text[: text.rfind("\n", 0, verdict) + 1].rstrip() if verdict >= 0 else text.rstrip()


def _continued(prompt: Prompt, start: str) -> Prompt:
    if isinstance(prompt, str):
        return prompt + start
    turns: list[Message] = list(prompt)
    if turns and turns[-1].get("role") == "assistant":
        start = f"{turns.pop().get('content', '')}{start}"
    return [*turns, {"role": "assistant", "content": start}]
