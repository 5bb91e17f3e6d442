"""SALU's reward of answers to questions of which some have no answer, by how sure the model was.

| | the question has an answer | it has none |
|---|---|---|
| the right answer | `right` | |
| another answer | `wrong` * confidence | `hallucinated` + `surely` * confidence |
| an abstention | `needless` | `abstained` |

SALU publishes that the penalty grows with the confidence and that answers to unanswerable questions are punished
strongly, and no numbers.  The numbers here are ours.  With these, a wrong answer of confidence below 0.5 costs less
than a needless abstention: a guess is cheap only for a model that knows it is guessing.

Abstentions are found by a closed list of sentences, or by a detector: any scorer whose value above 0.5 means that the
response abstains.  Another scorer says whether an answer is right.  An empty response, one that ends inside its
reasoning and one that was cut off are answers, and wrong ones: silence is not abstaining.

Not covered: questions whose answerability nobody knows, and calibrating the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from adjudge.options import Options, options_of
from adjudge.protocol import Sample, Score
from adjudge.reasons import of_parts
from adjudge.responses.answer_span import Where, find_spans, shorten
from adjudge.runtime.contract import validate_sample
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.nested import NestedScorer, asked, cost_of
from adjudge.scoring.reference_fields import fields_of
from adjudge.scoring.verifier_base import Reasoning, Truncated, graded_text
from adjudge.verifiers.agents.abstention.sentences import Sentences, sentences_of
from adjudge.verifiers.text.exact import ExactVerifier

Case: TypeAlias = Literal["right", "wrong", "abstained", "needless", "hallucinated"]
CASES: tuple[Case, ...] = get_args(Case)


@dataclass(frozen=True, kw_only=True)
class SaluTable(Options, what="abstention option"):
    """The numbers of SALU's reward; all defaults are ours.

    Attributes:
        right: for the right answer.
        wrong: for another answer, times the confidence.
        abstained: for an abstention where there is no answer.
        needless: for an abstention where there is one.
        hallucinated: for an answer where there is none, whatever the confidence.
        surely: for the same, times the confidence, on top.
    """

    right: float = 1.0
    wrong: float = -1.0
    abstained: float = 1.0
    needless: float = -0.5
    hallucinated: float = -1.0
    surely: float = -1.0

    def reward(self, case: Case, confidence: float = 1.0) -> float:
        """Return what an answer is worth, with the mean probability of its tokens, in [0, 1], as the confidence."""
        if not 0 <= confidence <= 1:
            raise ValueError(f"the confidence is {confidence!r}; it must be in [0, 1]")
        rewards: dict[Case, float] = {
            "right": self.right,
            "wrong": self.wrong * confidence,
            "abstained": self.abstained,
            "needless": self.needless,
            "hallucinated": self.hallucinated + self.surely * confidence,
        }
        return rewards[case]


def mean_probability(logprobs: Sequence[float]) -> float:
    """Return the mean probability of an answer's tokens, SALU's confidence, in [0, 1], from natural logarithms."""
    if not logprobs:
        raise ValueError("there are no log-probabilities; the confidence needs those of the answer's tokens")
    for value in logprobs:
        if not value <= 1e-6:  # engines round 0 to a little more
            raise ValueError(f"a log-probability is {value!r}; it must be at most 0")
    return min(1.0, math.fsum(math.exp(value) for value in logprobs) / len(logprobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How well abstentions go with unanswerable questions, each in [0, 1]; 0 where there is nothing to divide by.

    `precision` is the share of the abstentions that were right, `recall` that of the unanswerable questions met by one.
    """

    precision: float
    recall: float
    f1: float


def detection(cases: Sequence[Case], *, unknown: int = 0) -> Detection:
    """Return precision, recall and F1 of abstaining by what each judged answer did.

    `unknown` unanswerable questions, whose answer could not be judged, do not count as met.
    """
    hits, missed, needless = (cases.count(case) for case in ("abstained", "hallucinated", "needless"))
    missed += unknown
    precision = hits / (hits + needless) if hits + needless else 0.0
    recall = hits / (hits + missed) if hits + missed else 0.0
    f1 = 2 * hits / (2 * hits + missed + needless) if hits else 0.0
    return Detection(precision=precision, recall=recall, f1=f1)


_ABSTAINS = 0.5  # a detector's value above this


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    sample: Sample
    gold: Any
    text: str
    fault: str
    confidence: float


@dataclass(frozen=True, kw_only=True)
class AbstentionScorer(NestedScorer):
    """SALU: pays right answers and right abstentions, and lets confident errors cost more.

    The reference is `{"answer": gold}`, with the gold of the scorer `answer`, or `{"answer": null}` where the question
    has no answer.

    Attributes:
        answer: the scorer that says whether an answer is right.
        right_from: its least value for that.
        table: the numbers of the reward.
        confidence: the column of `Sample.extra` with the confidence, in [0, 1]; none takes 1 for all.
        detector: a scorer whose value above 0.5 means that a response abstains, asked without a reference; none goes
            by the sentences.
        languages, sentences: which of the built-in lists of sentences count ("en", "zh"), or sentences in their place.
        hedging: where a sentence beside an answer makes it wrong: in the "answer" (all behind the reasoning, where no
            tag or box marks it), anywhere in the "response" behind its reasoning, or nowhere ("allow").
        where: where the answer is looked for, as in the text verifiers; give the scorer `answer` the same.
        reasoning: "strip" looks only behind the end-of-thinking tag; "keep" at all of a response.
        truncated: whether a response that was cut off is wrong ("zero") or judged like any other ("grade").
    """

    name: ClassVar[str] = "abstention"
    version: ClassVar[str] = "4"
    inner: ClassVar[tuple[str, ...]] = ("answer", "detector")

    answer: Any = field(default_factory=ExactVerifier)
    right_from: float = 1.0
    table: SaluTable = field(default_factory=SaluTable)
    confidence: str | None = "confidence"
    detector: Any = None
    languages: tuple[str, ...] = ("en", "zh")
    sentences: tuple[str, ...] | None = None
    hedging: Literal["answer", "response", "allow"] = "answer"
    where: Where = "auto"
    reasoning: Reasoning = "strip"
    truncated: Truncated = "zero"
    _known: Sentences = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.confidence == "":
            raise ValueError(f"abstention option confidence={self.confidence!r}; it must be a column's name, or none")
        if isinstance(self.table, Mapping):
            known = [item.name for item in fields(SaluTable)]
            table = SaluTable(**options_of(self.table, known, inside="the table of abstention"))
            object.__setattr__(self, "table", table)
        if not isinstance(self.table, SaluTable):
            raise ValueError(f"abstention option table={self.table!r}; give numbers by name, as {{needless: -0.5}}")
        object.__setattr__(self, "_known", sentences_of(self.languages, self.sentences, inside=self.name))
        if self.answer is None:
            raise ValueError("abstention option answer=None; give a scorer that says whether an answer is right")

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference or the confidence is missing or malformed, or a scorer objects."""
        where = f"abstention{f', sample {sample.id!r}' if sample.id else ''}"
        try:
            gold = self._gold(sample)
            self._confidence(sample)
        except BadReferenceError as error:
            if error.mistake:
                raise ValueError(f"{where}: {error}") from error
            return
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        parts = [(self.answer, gold)] if gold is not None else []
        if self.detector is not None:
            parts.append((self.detector, None))
        for scorer, reference in parts:
            try:
                validate_sample(scorer, replace(sample, reference=reference))
            except ValueError as error:
                raise ValueError(f"{where}: the scorer {scorer.name!r}: {error}") from error

    async def judge(self, read: Sequence[_Task]) -> list[Score]:
        """Return one score for each task; the evidence has the case, `parts` what the scorers said."""
        abstains = await self._abstaining(read)
        answered = [
            said is False and task.gold is not None and not task.fault and not self._hedges(task)
            for task, said in zip(read, abstains, strict=True)
        ]
        # A verifier is cheap, so it reads every gold: one that cannot be read is no reason to pay or to punish anybody.
        cheap = isinstance(self.answer, VerifierScorer)
        places = [at for at, task in enumerate(read) if answered[at] or (cheap and task.gold is not None)]
        golds = [replace(read[at].sample, reference=read[at].gold) for at in places]
        said = await asked(self.answer, golds, called=f"the scorer {self.answer.name!r} of 'abstention'")
        verdicts = {
            at: score
            for at, score in zip(places, said, strict=True)
            if answered[at] or score.reason.startswith("gold_")
        }
        return [self._judged(task, abstains[at], verdicts.get(at)) for at, task in enumerate(read)]

    def read_sample(self, sample: Sample) -> _Task:
        """Return what is judged of a sample."""
        gold, confidence = self._gold(sample), self._confidence(sample)
        text, fault = graded_text(sample, self.reasoning, self.truncated)
        if not fault and not text.strip():
            fault = "no_answer"
        return _Task(sample=sample, gold=gold, text=text, fault=fault, confidence=confidence)

    def _gold(self, sample: Sample) -> Any:
        given = '{"answer": gold}, and null for the gold of a question without an answer'
        gold = fields_of(sample.reference, ("answer",), give=given)["answer"]
        for text in gold if isinstance(gold, list | tuple) else [gold]:
            if isinstance(text, str) and self.detector is None and self._known.whole(text):
                raise BadReferenceError(
                    f"the gold answer {shorten(text, 60)!r} is one of the sentences that abstain; give null where the "
                    "question has no answer"
                )
        return gold

    def _confidence(self, sample: Sample) -> float:
        if self.confidence is None:
            return 1.0
        value = sample.extra.get(self.confidence)
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
            raise ValueError(
                f"extra[{self.confidence!r}] is {value!r}; give the mean probability of the answer's tokens, or "
                "confidence: null to take 1 for all"
            )
        return float(value)

    async def _abstaining(self, tasks: Sequence[_Task]) -> list[bool | Score]:
        """Return for each task whether it abstains, or the detector's score where that has no number."""
        if self.detector is None:
            spans = [find_spans("" if task.fault else task.text, self.where)[:1] for task in tasks]
            return [
                bool(first) and all(map(self._known.whole if self._quoted(task) else self._known.told, first[0].texts))
                for task, first in zip(tasks, spans, strict=True)
            ]
        samples = [replace(task.sample, response=task.text, reference=None) for task in tasks if not task.fault]
        called = f"the detector {self.detector.name!r} of 'abstention'"
        said = iter(await asked(self.detector, samples, called=called))
        scores = [None if task.fault else next(said) for task in tasks]
        return [False if one is None else one if one.value is None else one.value > _ABSTAINS for one in scores]

    def _hedges(self, task: _Task) -> bool:
        """Whether an answer stands beside a sentence that abstains; one that the gold itself contains is none."""
        if self.hedging == "allow":
            return False
        spans = find_spans(task.text, self.where)
        # A marker marks nothing here: "I don't know, but the answer is .." is one answer.
        marked = bool(spans) and spans[0].where in ("tag", "boxed")
        looked = "\n".join(spans[0].texts) if marked and self.hedging == "answer" else task.text
        if spans and self.detector is None and any(self._known.whole(one) for one in spans[0].texts):
            return True
        return not self._quoted(task) and self._known.inside(looked)

    def _quoted(self, task: _Task) -> bool:
        """Whether the gold itself contains a sentence that abstains, as a song's title may."""
        golds = task.gold if isinstance(task.gold, list | tuple) else [task.gold]
        return any(isinstance(gold, str) and self._known.inside(gold) for gold in golds)

    def _judged(self, task: _Task, abstains: bool | Score, verdict: Score | None) -> Score:
        parts = {} if verdict is None else {"answer": verdict}
        if isinstance(abstains, Score):
            parts["detector"] = abstains
        broken = next((name for name, part in parts.items() if part.value is None), None)
        if broken is not None:
            error = f"{broken}: {parts[broken].status}: {parts[broken].reason}"
            failed = Score.failed(of_parts(part.reason for part in parts.values()), error=error)
            return replace(failed, parts=parts, cost=cost_of(list(parts.values())))
        case = self._case(task, bool(abstains), verdict)
        hedged = verdict is None and case == "wrong" and not task.fault
        reason = {"right": "", "abstained": "", "needless": "no_answer"}.get(case, task.fault or "wrong")
        evidence: dict[str, Any] = {"case": case, "confidence": task.confidence, "abstains": bool(abstains)}
        if hedged:
            evidence["problem"] = "the answer stands beside a sentence that abstains"
        return Score(
            value=self.table.reward(case, task.confidence),
            reason=reason,
            parts=parts,
            evidence=evidence,
            cost=cost_of(list(parts.values())),
        )

    def _case(self, task: _Task, abstains: bool, verdict: Score | None) -> Case:
        if task.gold is None:
            return "abstained" if abstains else "hallucinated"
        if abstains:
            return "needless"
        return "right" if verdict is not None and (verdict.value or 0.0) >= self.right_from else "wrong"
