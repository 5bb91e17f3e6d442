"""A judge that rates one response, on a scale of whole numbers or with one label of a set.

On a scale the verdict is one number read from text, or the expected number sum of p(s) * s over the scale, which
breaks the ties that whole numbers leave.  With labels each label has a worth.

`AnswerJudge` says whether a final answer means the same as the accepted one, and is the last tier behind rules:
`{cascade: {stages: [math, {answer_judge: {engine: ..}}], pass_on: [undecided, unparsable_answer]}}`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.judges.language_judge import LanguageJudge, Opinion
from adjudge.prompts.asking import Answer, ask, cost_of
from adjudge.prompts.reading import LabelReader, NumberReader
from adjudge.prompts.scorer import Case, require_text, shortened
from adjudge.prompts.template import Template, Value, load_template
from adjudge.protocol import NO_COST, Sample, Score
from adjudge.reasons import CANDIDATE

_WIDEST = 101  # numbers of a scale; each is a text to read the probability of
_CRITIQUE = "judges/critique"
_STEPS = "judges/g_eval_steps"


@dataclass(frozen=True, kw_only=True)
class Judge(LanguageJudge):
    """A model rates the response.

    The reference, if there is one, is a text that shows the judge a good answer.

    Attributes:
        scale: lowest and highest whole number; None for that of the prompt, which is 1 to 10 if it names none.
        labels: label to its worth, instead of a scale: `{"good": 1, "fair": 0.5, "bad": 0}`.
        output: "unit" maps the worst verdict to 0 and the best to 1; "scale" keeps the verdict's own worth.
        critique: whether the model writes a critique first, in a call of its own, and rates with it in view.
        steps: for prompts that have a place for them, the steps of the evaluation; "" lets the model write them, once
            for each call of `score`.
        reasons: label to the reason code of a score whose likeliest label it is.
    """

    name: ClassVar[str] = "judge"
    text_template: ClassVar[str] = "judges/pointwise"
    direct_template: ClassVar[str] = "judges/pointwise_direct"

    scale: tuple[int, int] | None = None
    labels: Mapping[str, float] | None = None
    output: Literal["unit", "scale"] = "unit"
    critique: bool = False
    steps: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale is not None and self.labels is not None:
            raise ValueError(f"{self.name}: it has a scale and labels; give one of them")
        if self.scale is not None:
            ends = tuple(self.scale) if isinstance(self.scale, list | tuple) else ()
            if len(ends) != 2 or not all(type(end) is int for end in ends) or not 0 < ends[1] - ends[0] < _WIDEST:
                raise ValueError(
                    f"{self.name} option scale={self.scale!r}; it must be two whole numbers, the lowest first, at most "
                    f"{_WIDEST - 1} apart"
                )
            object.__setattr__(self, "scale", ends)
        if len(set(self.worth.values())) < 2:
            raise ValueError(f"{self.name} option labels={self.labels!r}; two of them at least must differ in worth")
        for template in self.prompts():
            if (template.labels and set(template.labels) != set(self.worth)) or (
                template.scale and template.scale != self.range
            ):
                asked, last = template.labels or template.scale, len(template.labels) - 1
                worths = ", ".join(f"{label}: {last - at}" for at, label in enumerate(template.labels))
                remedy = f"give each its worth, as in labels: {{{worths}}}" if worths else "leave out scale and labels"
                raise ValueError(f"{self.name}: its prompt asks for {asked}; {remedy}")
            if self.critique and "critique" not in template.untrusted:
                raise ValueError(f"{self.name}: the prompt {template.name!r} has no place for a critique")
        for label, code in self.reasons.items():
            if code not in CANDIDATE:
                known = ", ".join(filter(None, CANDIDATE))
                raise ValueError(f"{self.name} option reasons: {label!r} has the reason {code!r}; there are {known}")
        self.read("", "0")

    @property
    def range(self) -> tuple[int, int] | None:
        """The scale that is used, if the verdict is a number."""
        if self.labels is not None:
            return None
        return self.scale or load_template(self.template or self.text_template).scale or (1, 10)

    @property
    def worth(self) -> Mapping[str, float]:
        """Each verdict and what it is worth; numbers are their own worth."""
        if self.labels is not None:
            return {str(label): float(value) for label, value in self.labels.items()}
        low, high = self.range or (1, 10)
        return {str(number): float(number) for number in range(low, high + 1)}

    @property
    def lowest(self) -> float:
        """0, or what the worst verdict is worth if that is less."""
        return min(0.0, *self.worth.values()) if self.output == "scale" else 0.0

    def templates(self) -> tuple[Template, ...]:
        """Return the prompts that are used with these options."""
        before = (load_template(_CRITIQUE),) if self.critique else ()
        return (*before, *super().templates(), *((load_template(_STEPS),) if self._writes_steps else ()))

    @property
    def _writes_steps(self) -> bool:
        return not self.steps and any("steps" in template.untrusted for template in self.prompts())

    def read(self, text: str, nonce: str = "", /) -> str | None:
        """Return the verdict that a text ends in, as one of the labels or as a whole number's text, or None."""
        form = self.prompts()[-1].form
        if self.range is None:
            return LabelReader(form=form, labels=tuple(self.worth))(text, nonce)
        low, high = self.range
        number = NumberReader(form=form, low=low, high=high)(text, nonce)
        return None if number is None else str(int(number))

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference is a text, or there is none."""
        require_text(sample.reference)

    def values(self, case: Case) -> dict[str, Value]:
        """Return what fills the prompt's fields."""
        return {
            "question": case.sample.prompt,
            "reference": self.shown_reference(case.sample),
            "response": case.response,
            "critique": case.notes or None,
            "criteria": self.criteria or None,
            "rubric": self.rubric_of(case.sample),
            "steps": self.steps or None,
            "answers": self.answers(),
        }

    def shown_reference(self, sample: Sample) -> Value:
        """Return the reference as the prompt shows it."""
        reference: str | None = sample.reference
        return reference

    def answers(self) -> str:
        """Return in words what the verdict may be."""
        if self.range is not None:
            return f"a whole number from {self.range[0]} (worst) to {self.range[1]} (best)"
        return "one of: " + ", ".join(self.worth)

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        if self._writes_steps:
            return await self._by_own_steps(cases)
        opinions = await (self._criticised(cases) if self.critique else self._plain_opinions(cases))
        return [
            self.unanswered(opinion) if isinstance(opinion, Fault) else self.scored(case, opinion)
            for case, opinion in zip(cases, opinions, strict=True)
        ]

    async def _by_own_steps(self, cases: Sequence[Case]) -> list[Score]:
        """Let the model write the steps of the evaluation, and judge by them; the first score has their cost."""
        prompt = self.filled(load_template(_STEPS), {"criteria": self.criteria, "answers": self.answers()})
        (steps,) = await ask(self.resolved(), [prompt], self.sampling(temperature=0.0), _not_empty)
        if isinstance(steps, Fault):
            return [self.unanswered(steps if at == 0 else replace(steps, cost=NO_COST)) for at in range(len(cases))]
        scores = await replace(self, steps=steps.value).judge(cases)
        scores[0] = replace(scores[0], cost=scores[0].cost + steps.cost)
        return [replace(score, evidence={**score.evidence, "steps": steps.value}) for score in scores]

    async def _plain_opinions(self, cases: Sequence[Case]) -> list[Opinion | Fault]:
        return await self.opinions(cases, self.values, self.read, tuple(self.worth))

    async def _criticised(self, cases: Sequence[Case]) -> list[Opinion | Fault]:
        """Critiques first, `samples` of them for each case, then one verdict on each."""
        template, plain = load_template(_CRITIQUE), replace(self, examples=())  # which end in verdicts
        written = await self.asked_often(
            cases, lambda case: plain.filled(template, self.values(case)), _not_empty, self.samples
        )
        noted = {
            (row, at): replace(cases[row], notes=critique.value)
            for row, several in enumerate(written)
            for at, critique in enumerate(several)
            if isinstance(critique, Answer)
        }
        opinions = await replace(self, critique=False, samples=1)._plain_opinions(list(noted.values()))
        judged = dict(zip(noted, opinions, strict=True))
        return [self._of_critiques(row, several, judged) for row, several in enumerate(written)]

    def _of_critiques(
        self, row: int, several: Sequence[Answer[str] | Fault], judged: Mapping[tuple[int, int], Opinion | Fault]
    ) -> Opinion | Fault:
        parts = [judged.get((row, at), critique) for at, critique in enumerate(several)]
        opinions = [part for part in parts if isinstance(part, Opinion)]
        costs = (judged[row, at].cost for at in range(len(several)) if (row, at) in judged)
        cost = sum(costs, cost_of(several))
        if not opinions or len(opinions) < self.quorum * len(parts):
            return replace(next(part for part in parts if isinstance(part, Fault)), cost=cost)
        shares = {
            label: sum(opinion.shares.get(label, 0.0) for opinion in opinions) / len(opinions)
            for label in dict.fromkeys(itertools.chain.from_iterable(opinion.shares for opinion in opinions))
        }
        masses = [opinion.mass for opinion in opinions if opinion.mass is not None]
        last = next(critique.value for critique in reversed(several) if isinstance(critique, Answer))
        return Opinion(
            shares=shares,
            votes=tuple(vote for opinion in opinions for vote in opinion.votes),
            mass=min(masses) if masses else None,
            text=f"{shortened(last)}\n\n{opinions[-1].text}".strip(),
            missing=len(parts) - len(opinions),
            attempts=max(opinion.attempts for opinion in opinions),
            cost=cost,
        )

    def scored(self, case: Case, opinion: Opinion) -> Score:
        """Return the score of a case on which there is an opinion."""
        worth = self.worth
        value, spread = opinion.value(worth, self.combine), opinion.spread(worth)
        evidence = opinion.evidence()
        if len(opinion.shares) == 1:
            evidence["verdict"] = next(iter(opinion.shares))
        if self.output == "unit":
            low, high = min(worth.values()), max(worth.values())
            value = (value - low) / (high - low)
            spread = None if spread is None else spread / (high - low)
        return Score(
            value=value,
            reason=self.reason(opinion),
            evidence=evidence,
            uncertainty=spread,
            cost=opinion.cost,
        )

    def reason(self, opinion: Opinion) -> str:
        """Return the reason code of the likeliest label, if this judge has one for it."""
        if not self.reasons:
            return ""
        return self.reasons.get(max(opinion.shares, key=lambda label: opinion.shares[label]), "")


def _not_empty(text: str, nonce: str = "", /) -> str | None:
    return text.strip() or None


@dataclass(frozen=True, kw_only=True)
class AnswerJudge(Judge):
    """1 when a model finds that the final answer means the same as the accepted one, else 0.

    The reference is the accepted answer as a text or a number, or a list of accepted ones.

    Attributes:
        answer_after: what stands right before the final answer, such as "## Final Response"; what follows its last
            place is all that is shown, and a response without it gets the lowest value (`no_answer`).  "" shows all.
    """

    name: ClassVar[str] = "answer_judge"
    needs_reference: ClassVar[bool | None] = True
    text_template: ClassVar[str] = "judges/answer"
    direct_template: ClassVar[str] = "judges/answer_direct"

    answer_after: str = ""
    min_words: int = 1
    reasons: Mapping[str, str] = field(default_factory=lambda: {"different": "wrong", "invalid": "no_answer"})
    labels: Mapping[str, float] | None = field(default_factory=lambda: {"same": 1.0, "different": 0.0, "invalid": 0.0})

    def case(self, sample: Sample) -> Case | Score:
        """Return the response, or its part behind `answer_after`, as what is judged."""
        ready = super().case(sample)
        if isinstance(ready, Score) or not self.answer_after:
            return ready
        _, found, answer = ready.response.rpartition(self.answer_after)
        if not found:
            return Score.scored(
                self.lowest, "no_answer", error=f"answer_after={self.answer_after!r} is not in the response"
            )
        return self.refused(answer) or replace(ready, response=answer.strip())

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference holds one accepted answer at least."""
        accepted_answers(sample.reference)

    def shown_reference(self, sample: Sample) -> Value:
        """Return the accepted answers, one on each line."""
        return "\n".join(accepted_answers(sample.reference))


def accepted_answers(reference: Any) -> list[str]:
    """Return the accepted answers as texts.

    Raises:
        ValueError: the reference is neither a text or a finite number nor a list of them, or one of them is empty.
    """
    several = reference if isinstance(reference, list | tuple) else [reference]
    known = [one for one in several if isinstance(one, str | int) or (isinstance(one, float) and math.isfinite(one))]
    answers = [str(answer).strip() for answer in known]
    if not several or len(answers) < len(several) or not all(answers):
        raise ValueError(
            f"the reference is {reference!r}; it must be the accepted answer as a text or a number, or a list of them"
        )
    return answers


_TAIL = 1024  # tokens from the end of the response that are searched
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
_BOX = re.compile(r"\\boxed\s{0,3}\{")
_MARKER = re.compile(r"\banswer(?:\s{1,3}is\b[ \t]{0,3}[:：]?|[ \t]{0,3}[:：])[ \t]{0,10}([^\n]{1,500})", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class GeneralReasonerJudge(AnswerJudge):
    """1 - 0.05 * min(10, |difference in tokens|) for an equivalent answer, 0 for another, -0.5 for none.

    General-Reasoner's verifier (arXiv 2505.14652).  The answer is the last box of the last 1024 tokens, else what
    follows the last "answer is" or "answer:" on its line.  Tokens are counted as words and signs, where the released
    code counts the policy's own tokens, and the decision is the last line of the agreed form, where the released code
    looks for "Yes" anywhere.

    The reference is the accepted answer as a text or a number, or a list of accepted ones, of which
    the nearest in length counts.  The prompt is in our words; give the released verifier its own as `template`
    (docs/judges.md).
    """

    name: ClassVar[str] = "general_reasoner"
    text_template: ClassVar[str] = "judges/general_reasoner"
    direct_template: ClassVar[str] = ""

    max_characters: int = 2_000_000
    labels: Mapping[str, float] | None = field(default_factory=lambda: {"Yes": 1.0, "No": 0.0})
    output: Literal["unit", "scale"] = "unit"
    reasons: Mapping[str, str] = field(default_factory=lambda: {"No": "wrong"})

    def case(self, sample: Sample) -> Case | Score:
        """Return the extracted answer as what is judged, or -0.5 where there is none."""
        ready = super().case(sample)
        if isinstance(ready, Score):
            return replace(ready, value=-0.5) if ready.status == "scored" else ready
        answer = extracted_answer(ready.response)
        if answer is None or not any(char.isalnum() for char in answer):
            return Score.scored(-0.5, "no_answer")
        return replace(ready, response=answer)

    def scored(self, case: Case, opinion: Opinion) -> Score:
        """Return the reward of a decision."""
        score = super().scored(case, opinion)
        tokens = count_tokens(case.response)
        gold = min(
            (count_tokens(answer) for answer in accepted_answers(case.sample.reference)), key=lambda n: abs(n - tokens)
        )
        same = score.value is not None and score.value > 0.5
        evidence = {**score.evidence, "answer": case.response, "tokens": tokens, "gold_tokens": gold}
        return replace(score, value=general_reasoner_reward(same, tokens, gold), evidence=evidence, uncertainty=None)


def general_reasoner_reward(same: bool, tokens: int, gold_tokens: int, *, extracted: bool = True) -> float:
    """Return General-Reasoner's reward (arXiv 2505.14652): 1 - 0.05 * min(10, |tokens - gold_tokens|), 0 or -0.5.

    Args:
        same: whether the verifier finds the answers equivalent.
        tokens: length of the answer.
        gold_tokens: length of the accepted answer.
        extracted: whether an answer was found at all; without one the reward is -0.5.
    """
    if not extracted:
        return -0.5
    return 1.0 - 0.05 * min(10, abs(tokens - gold_tokens)) if same else 0.0


def extracted_answer(response: str) -> str | None:
    """Return the answer a response offers in its last 1024 tokens, or None."""
    tail = last_tokens(response, _TAIL)
    boxes = list(_BOX.finditer(tail))
    if boxes and (inside := _balanced(tail, boxes[-1].end())) is not None:
        return inside.strip()
    marked = _MARKER.findall(tail)
    return marked[-1].strip().rstrip(".") if marked else None


def count_tokens(text: str) -> int:
    """Return how many words and signs a text has."""
    return sum(1 for _ in _TOKEN.finditer(text))


def last_tokens(text: str, count: int) -> str:
    """Return the end of a text, from its `count`-th last word or sign."""
    starts = [token.start() for token in _TOKEN.finditer(text)]
    return text[starts[-count] :] if len(starts) > count else text


def _balanced(text: str, start: int) -> str | None:
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return None
