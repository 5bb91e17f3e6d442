"""Yes/no questions about a response, answered by p(Yes) / (p(Yes) + p(No)).

The probabilities of all cases and spacings of a word are summed.  Several questions, or several wordings of one, give
the weighted mean; a question about a fault counts its No.  Source: ZYN (arXiv 2308.06385).

RLBFF (arXiv 2509.21319): does the response satisfy one principle?  log p(Yes) - log p(No).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.judges.language_judge import LanguageJudge, Opinion
from adjudge.prompts.reading import LabelReader
from adjudge.prompts.scorer import Case
from adjudge.prompts.template import Value
from adjudge.protocol import NO_COST, Sample, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a text.

    Attributes:
        text: the question, answered by Yes or No.
        good: the answer that is worth 1: "yes", or "no" for a question about a fault.
        weight: its weight in the mean, above 0.
    """

    text: str
    good: Literal["yes", "no"] = "yes"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError(f"a question is {self.text!r}; it must be a text that can be answered by Yes or No")
        if self.good not in ("yes", "no"):
            raise ValueError(f"the good answer to {self.text!r} is {self.good!r}; it must be 'yes' or 'no' (in quotes)")
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"the weight of {self.text!r} is {self.weight!r}; it must be a finite number above 0")


def question_of(entry: Any) -> Question:
    """Return a question made of a text, of `{"text": .., "good": "no", "weight": ..}`, or of a question.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(entry, Question):
        return entry
    if isinstance(entry, str):
        return Question(text=entry)
    if isinstance(entry, Mapping) and {"text"} <= set(entry) <= {"text", "good", "weight"}:
        return Question(**entry)
    raise ValueError(
        f'{entry!r} is not a question; give a text, or {{"text": .., "good": "yes" or "no", "weight": ..}}'
    )


LABELS = ("Yes", "No")
_SMALLEST = 1e-12  # a probability below this counts as this in log-odds, which keeps them within +-27.6


@dataclass(frozen=True, kw_only=True)
class YesNoJudge(LanguageJudge):
    """The mean chance that a model answers questions about the response in the good way.

    The reference is not looked at.

    Attributes:
        questions: texts, or `{"text": .., "good": "no", "weight": ..}`; every one about the response.
        output: "share" is the chance of the good answer, in [0, 1]; "log_odds" is log p(good) - log p(bad).
        show_prompt: whether the model sees the prompt that was answered.
    """

    name: ClassVar[str] = "yes_no"
    version: ClassVar[str] = "3"
    needs_reference: ClassVar[bool | None] = False
    text_template: ClassVar[str] = "judges/yes_no"

    questions: tuple[Any, ...]
    readout: Literal["text", "probabilities"] = "probabilities"
    output: Literal["share", "log_odds"] = "share"
    show_prompt: bool = True

    def __post_init__(self) -> None:
        given = self.questions if isinstance(self.questions, list | tuple) else (self.questions,)
        object.__setattr__(self, "questions", tuple(question_of(entry) for entry in given))
        super().__post_init__()
        if not self.questions:
            raise ValueError(f"{self.name}: it has no questions; give one at least")
        texts = [question.text for question in self.questions]
        if twice := next((text for text in texts if texts.count(text) > 1), ""):
            raise ValueError(f"{self.name}: the question {twice!r} is there twice; ask it once, and give it a weight")

    @property
    def lowest(self) -> float:
        """The value where the bad answer is certain to each question."""
        return math.log(_SMALLEST) if self.output == "log_odds" else 0.0

    def read(self, text: str, nonce: str = "", /) -> str | None:
        """Return "Yes" or "No", if that is all a text says, or None."""
        return LabelReader(form=self.prompts()[-1].form, labels=LABELS)(text, nonce)

    def values(self, case: Case) -> dict[str, Value]:
        """Return what fills the prompt's fields, but for the question."""
        prompt = case.sample.prompt if self.show_prompt else None
        return {"prompt": prompt or None, "response": case.response, "question": case.notes}

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order, with one part for each question."""
        return await self.answered([[(question.text, question) for question in self.questions] for _ in cases], cases)

    async def answered(self, asked: Sequence[Sequence[tuple[str, Question]]], cases: Sequence[Case]) -> list[Score]:
        """Return one score per case from the questions that are asked about it, each under its name."""
        rows = [
            replace(case, notes=question.text) for case, row in zip(cases, asked, strict=True) for _, question in row
        ]
        opinions = iter(await self.opinions(rows, self.values, self.read, LABELS))
        return [self._mixed([(name, question, next(opinions)) for name, question in row]) for row in asked]

    def _mixed(self, row: Sequence[tuple[str, Question, Opinion | Fault]]) -> Score:
        parts = {name: self._part(question, opinion) for name, question, opinion in row}
        cost = sum((part.cost for part in parts.values()), NO_COST)
        values = [(part.value, question.weight) for part, (_, question, _) in zip(parts.values(), row, strict=True)]
        known = [(value, weight) for value, weight in values if value is not None]
        if len(known) < len(values):
            first = next(part for part in parts.values() if part.value is None)
            return replace(first, parts=parts, cost=cost)
        total = math.fsum(weight for _, weight in known)
        mean = math.fsum(value * weight for value, weight in known) / total
        first, *more = parts.values()
        told = next((part for part in parts.values() if part.reason), first)  # the one that was too long to be asked
        if not more:
            return Score(value=mean, reason=told.reason, evidence=told.evidence, cost=cost)
        evidence = told.evidence if told.reason else {}
        return Score(value=mean, reason=told.reason, parts=parts, evidence=evidence, cost=cost)

    def _part(self, question: Question, opinion: Opinion | Fault) -> Score:
        if isinstance(opinion, Fault):
            return self.unanswered(opinion)
        good, bad = LABELS if question.good == "yes" else LABELS[::-1]
        chance = opinion.shares.get(good, 0.0)
        value = chance
        if self.output == "log_odds":
            value = math.log(max(chance, _SMALLEST)) - math.log(max(opinion.shares.get(bad, 0.0), _SMALLEST))
        spread = opinion.spread({good: 1.0, bad: 0.0}) if self.output == "share" else None
        return Score(value=value, evidence=opinion.evidence(), uncertainty=spread, cost=opinion.cost)


@dataclass(frozen=True, kw_only=True)
class PrincipleJudge(YesNoJudge):
    """The log-odds that the response satisfies a principle; of several principles, their mean.

    The reference is the principle as a text, a list of them, or `{"principles": [..]}`.
    """

    name: ClassVar[str] = "rlbff"
    needs_reference: ClassVar[bool | None] = True
    text_template: ClassVar[str] = "judges/principle"

    questions: tuple[Any, ...] = ("the reference's",)
    output: Literal["share", "log_odds"] = "log_odds"

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference holds principles."""
        principles_of(sample.reference)

    def values(self, case: Case) -> dict[str, Value]:
        """Return what fills the prompt's fields."""
        return {"question": case.sample.prompt, "response": case.response, "principle": case.notes}

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order, with one part for each principle."""
        asked = [[(text, Question(text=text)) for text in principles_of(case.sample.reference)] for case in cases]
        return await self.answered(asked, cases)


def principles_of(reference: Any) -> list[str]:
    """Return the principles that a reference holds, each once.

    Raises:
        ValueError: it holds none, or one that is empty or no text.
    """
    given = reference.get("principles") if isinstance(reference, Mapping) else reference
    several = given if isinstance(given, list | tuple) else [given]
    texts = [text for text in several if isinstance(text, str) and text.strip()]
    if not texts or len(texts) < len(several):
        raise ValueError(
            f"the reference is {reference!r}; it must be a principle as a text, a list of them, or "
            '{"principles": [..]}'
        )
    return list(dict.fromkeys(texts))
