"""The evidence that a search agent collected.

| `source` | evidence |
|---|---|
| `results` | every document that a search returned, each once |
| `quotes` | of the first 200 lines of the agent's evidence blocks those whose words stand in a row in earlier results |

An agent's own words are never evidence, nor is what another tool printed: it could write the answer down.

Not covered: whether the evidence is true.

R-Search's reward (arXiv 2506.04185): is the answer right, and would somebody else find it in the same evidence?

    value = answer * F1(answer) + evidence * F1(second model's answer from the evidence alone) + well_formed

The weights were not found in public text; the defaults are ours.  A trajectory without one answer at its end, or with
results that the agent wrote itself, is malformed: 0, and no model is asked.  Without evidence that part is 0, and no
model is asked either.

Not covered: what the second model knows by itself.  Take a small one, and compare with no evidence now and then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from adjudge.bad_reference import BadReferenceError
from adjudge.engines.interface import Fault
from adjudge.prompts.asking import Answer
from adjudge.prompts.reading import answers as answers_in
from adjudge.prompts.scorer import Case, ModelScorer
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import Sample, Score, StepScore
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.searches import Search, SeveralAnswers, final_answer, goes_on, searches_of
from adjudge.responses.trajectories.trajectory import Result, Trajectory, TrajectoryForm, plain_form
from adjudge.verifiers.agents.search.reference import SearchReference, read_answers
from adjudge.verifiers.agents.search.signals import identity, words
from adjudge.verifiers.nested.number import check_number
from adjudge.verifiers.text.answer_span import shorten

EvidenceSource: TypeAlias = Literal["results", "quotes"]

_LEAST_WORDS = 3  # of a quote; fewer words stand in a row anywhere
_MOST_QUOTES = 200  # lines that are looked for; each is a search through all results


def collected(trajectory: Trajectory, searches: Sequence[Search], source: EvidenceSource, tag: str) -> str:
    """Return the collected evidence as text, "" if there is none.

    Args:
        trajectory: where it was collected.
        searches: its searches.
        source: what counts as evidence.
        tag: the tag of evidence blocks.
    """
    if source == "results":
        found = [document for search in searches for document in search.documents()]
        documents = {identity(document): document for document in reversed(found)}
        texts = [f"{document.title}\n{document.text}".strip() for document in reversed(documents.values())]
        return "\n\n".join(text for text in texts if text)
    return "\n".join(dict.fromkeys(_quotes(trajectory, searches, tag)))


def _quotes(trajectory: Trajectory, searches: Sequence[Search], tag: str) -> list[str]:
    found: list[str] = []
    results: defaultdict[int, list[Result]] = defaultdict(list)
    for search in searches:
        results[search.turn].extend(search.results)
    returned, looked = " ", 0
    for at, turn in enumerate(trajectory.turns):
        for block in turn.tagged(tag):
            for line in block.text.splitlines():
                said = words(line)
                looked += 1
                if looked <= _MOST_QUOTES and len(said) >= _LEAST_WORDS and f" {' '.join(said)} " in returned:
                    found.append(line.strip())
        returned += "".join(f"{' '.join(words(result.text))} \n " for result in results[at])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Case):
    """A trajectory's answer and evidence; `response` is the evidence, and the only part that the model sees."""

    answer: str
    f1: float
    gold: SearchReference
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReader:
    """Reads one free answer on the line that the prompt asks for; two different ones are none."""

    form: str

    def __call__(self, text: str, nonce: str = "", /) -> str | None:
        """Return the answer, or None."""
        found = {answer for answer, _ in answers_in(text, self.form, nonce)}
        return found.pop() or None if len(found) == 1 else None


@dataclass(frozen=True, kw_only=True)
class SearchEvidenceScorer(ModelScorer):
    """R-Search: answer F1, and the F1 of what a second model answers from the collected evidence alone.

    The reference is the answer, or a list of accepted ones, or `{"answer": ..}`.

    Attributes:
        longest: a trajectory with more evidence or more text of the agent than so many characters gets 0
            (`too_complex`).
        answer_weight: weight of the answer's F1 (ours).
        evidence_weight: weight of the second model's F1 (ours).
        well_formed: what a trajectory earns that is not malformed (ours).
        source: the evidence: all "results" of tools, or the agent's "quotes" from them.
        evidence_tag: the tag of quotes.
        several: "none": different answers are malformed; "last": the last one counts.
        form: names of tags and tools, as `TrajectoryForm` has them.
    """

    name: ClassVar[str] = "search_evidence"
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True

    max_tokens: int = 256
    answer_weight: float = 1.0
    evidence_weight: float = 0.5
    well_formed: float = 0.1
    source: EvidenceSource = "results"
    evidence_tag: str = "evidence"
    several: SeveralAnswers = "none"
    form: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        self.require("source", get_args(EvidenceSource))
        self.require("several", get_args(SeveralAnswers))
        for option in ("answer_weight", "evidence_weight", "well_formed"):
            check_number(getattr(self, option), 0.0, 1e6, f"{self.name}: {option}")
        form = plain_form(self.form, self.name)
        if self.evidence_tag not in TrajectoryForm.of(form).tags:
            form = plain_form({**form, "more": (*form["more"], self.evidence_tag)}, self.name)
        object.__setattr__(self, "form", form)

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form as a record."""
        return TrajectoryForm.of(self.form)

    def templates(self) -> tuple[Template, ...]:
        """Return the one prompt there is."""
        return (load_template("verifiers/agents/search/evidence"),)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if there is no answer to compare with, or the trajectory is malformed."""
        try:
            read_answers(sample.reference)
        except ValueError as error:
            raise BadReferenceError(str(error)) from error
        check_trajectory(sample, self.shape)

    def case(self, sample: Sample) -> Case | Score:
        """Return what is shown to the model, or the score of a sample that is not shown to it."""
        try:
            self.validate(sample)
        except ValueError as error:
            gold_at_fault = isinstance(error.__cause__, BadReferenceError)
            return Score.failed("gold_unparsable" if gold_at_fault else "bad_sample", error=str(error))
        trajectory = read_trajectory(sample, self.shape)
        if sum(len(turn.text) for turn in trajectory.turns) > self.longest:
            return Score.scored(self.lowest, "too_complex")
        answer = final_answer(trajectory, self.shape, several=self.several)
        searches = searches_of(trajectory, self.shape)
        fault = answer.reason or ("bad_format" if goes_on(trajectory, answer, searches) else "")
        if fault or trajectory.forged():
            return Score.scored(self.lowest, fault or "tampering", answers=answer.blocks)
        evidence = collected(trajectory, searches, self.source, self.evidence_tag)
        if len(evidence) > self.longest:
            return Score.scored(self.lowest, "too_complex", evidence=len(evidence))
        gold = SearchReference(answers=read_answers(sample.reference))
        last = trajectory.blocks(self.shape.answer)[-1]
        case = Collection(
            sample=sample,
            response=evidence,
            answer=answer.text,
            f1=gold.answer_f1(answer.text),
            gold=gold,
            span=(last.start, last.end),
        )
        return case if evidence else self._scored(case, "")

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        collections = [case for case in cases if isinstance(case, Collection)]
        template = self.templates()[0]

        def prompt(case: Collection) -> Rendered:
            return self.render(template, {"question": case.sample.prompt, "evidence": case.response})

        answers = await self.asked(collections, prompt, AnswerReader(form=template.form))
        return [self._judged(case, answer) for case, answer in zip(collections, answers, strict=True)]

    def _judged(self, case: Collection, answer: Answer[str] | Fault) -> Score:
        if isinstance(answer, Fault):
            return self.unanswered(answer)
        return self._scored(case, answer.value, answer)

    def _scored(self, case: Collection, second: str, answer: Answer[str] | None = None) -> Score:
        known = second.casefold() not in ("", "unknown")
        evidence_f1 = case.gold.answer_f1(second) if known else 0.0
        value = self.answer_weight * case.f1 + self.evidence_weight * evidence_f1 + self.well_formed
        score = Score.scored(
            value,
            "" if case.f1 else "wrong",
            answer=shorten(case.answer),
            answer_f1=case.f1,
            second_answer=shorten(second),
            evidence_f1=evidence_f1,
            evidence=len(case.response),
        )
        step = StepScore(value=case.f1, label="answer", start=case.span[0], end=case.span[1])
        return Score(
            value=score.value,
            reason=score.reason,
            steps=(step,),
            evidence=score.evidence,
            cost=answer.cost if answer else score.cost,
        )
