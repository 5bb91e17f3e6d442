"""R-Search's reward (arXiv 2506.04185): is the answer right, and would somebody else find it in the same evidence?

    value = answer * F1(answer) + evidence * F1(second model's answer from the evidence alone) + well_formed
            + evidence_formed, where evidence is given as it should be

| `source` | evidence |
|---|---|
| `results` | every document that a search returned, each once |
| `quotes` | of the first 200 lines of the agent's evidence blocks those whose words stand in a row in earlier results |
| `written` | the agent's last `<original_evidence>` block, whatever it says, if a search was answered; as released |

But for `written`, an agent's own words are never evidence, nor is what another tool printed: it could write the answer
down.  Evidence is given as it should be in one such block behind a search, and in none without a search.

The released code (QingFei1/R-Search at 7b9380e, qa_f1.py) has `written`, 1 for each F1 and 0.2 for each form; the
preset `r_search` has them, the defaults here are ours.  A trajectory without one answer at its end, or with
results that the agent wrote itself, is malformed: 0, and no model is asked.  Without evidence that part is 0, and no
model is asked either.

Not covered: what the second model knows by itself.  Take a small one, and compare with no evidence now and then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from adjudge.prompts.asking import Answer
from adjudge.prompts.reading import Blank
from adjudge.prompts.reading import answers as answers_in
from adjudge.prompts.scorer import Case
from adjudge.prompts.template import Rendered
from adjudge.protocol import Sample, Score, StepScore
from adjudge.responses.answer_span import shorten
from adjudge.responses.trajectories.searches import Search, final_answer, goes_on, searches_of
from adjudge.responses.trajectories.trajectory import Result, Trajectory
from adjudge.verifiers.agents.scoring import TrajectoryModelScorer, Weight
from adjudge.verifiers.agents.search.signals import SearchReference, identity, read_answers, words

_QUOTES, _WRITTEN = "evidence", "original_evidence"
_MIN_WORDS = 3  # of a quote; fewer words stand in a row anywhere
_MAX_QUOTES = 200  # lines that are looked for; each is a search through all results


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Case):
    """A trajectory's answer, and its evidence as the `response`, the only part that the model sees."""

    answer: str
    f1: float
    gold: SearchReference
    span: tuple[int, int]
    formed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReader:
    """Reads one free answer on the line that the prompt asks for; two different ones are none."""

    form: str

    def __call__(self, text: str, nonce: str = "", /) -> str | None:
        """Return the answer."""
        said = {answer for answer, _ in answers_in(text, self.form, nonce)}
        return said.pop() or None if len(said) == 1 else None

    def blank(self, nonce: str) -> Blank:
        """Return the line with its place to fill in."""
        return Blank.of(self.form, nonce, [()])


@dataclass(frozen=True, kw_only=True)
class SearchEvidenceScorer(TrajectoryModelScorer):
    """R-Search: answer F1, and the F1 of what a second model answers from the collected evidence alone.

    The reference is the answer, or a list of accepted ones, or `{"answer": ..}`.

    Attributes:
        max_characters: a trajectory with more evidence or more text of the agent than so many characters gets 0
            (`too_complex`).
        answer_weight, evidence_weight: weights of the answer's F1 and of the second model's (ours).
        well_formed: what a trajectory earns that is not malformed (ours).
        evidence_formed: what is earned beside by evidence that is given as it should be, where the agent gives it.
        source: the evidence: all "results" of tools, the agent's "quotes" from them in `<evidence>` blocks, or what is
            "written" in its last `<original_evidence>` block.
    """

    name: ClassVar[str] = "search_evidence"
    version: ClassVar[str] = "5"
    needs_reference: ClassVar[bool] = True
    text_template: ClassVar[str] = "verifiers/agents/search/evidence"

    max_tokens: int = 256
    answer_weight: Weight = 1.0
    evidence_weight: Weight = 0.5
    well_formed: Weight = 0.1
    evidence_formed: Weight = 0.0
    source: Literal["results", "quotes", "written"] = "results"

    @property
    def more_tags(self) -> tuple[str, ...]:
        """The tag of the evidence that the agent gives."""
        return (_WRITTEN if self.source == "written" else _QUOTES,)

    def gold(self, sample: Sample) -> SearchReference:
        """Return the accepted answers; `BadReferenceError` if there are none."""
        return read_answers(sample.reference)

    def read(self, sample: Sample, trajectory: Trajectory) -> Case | Score:
        """Return the evidence that is shown to the model, or the score of a sample that is not shown to it."""
        if trajectory.written > self.max_characters:
            return Score.scored(self.lowest, "too_complex")
        answer = final_answer(trajectory, self.shape)
        searches = searches_of(trajectory, self.shape)
        fault = answer.reason or ("bad_format" if goes_on(trajectory, answer, searches) else "")
        if fault or trajectory.forged():
            return Score.scored(self.lowest, fault or "tampering", answers=answer.blocks)
        searched = any(search.answered for search in searches)
        given = [block.text.strip() for block in trajectory.blocks(*self.more_tags)]
        if self.source == "results":
            evidence = _results(searches)
        elif self.source == "written":
            evidence = given[-1] if searched and given else ""
        else:
            evidence = "\n".join(dict.fromkeys(_quotes(trajectory, searches)))
        if len(evidence) > self.max_characters:
            return Score.scored(self.lowest, "too_complex", evidence=len(evidence))
        gold = self.gold(sample)
        last = trajectory.blocks(self.shape.answer)[-1]
        case = Collection(
            sample=sample,
            response=evidence,
            answer=answer.text,
            f1=gold.answer_f1(answer.text),
            gold=gold,
            span=(last.start, last.end),
            formed=len(given) == 1 and bool(given[0]) if searched else not given,
        )
        return case if evidence else self._scored(case, "")

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        collections = [case for case in cases if isinstance(case, Collection)]
        template = self.templates()[0]

        def prompt(case: Collection) -> Rendered:
            return self.render(template, {"question": case.sample.prompt, "evidence": case.response})

        def scored(case: Collection, answers: Sequence[Answer[str]]) -> Score:
            return self._scored(case, answers[0].value)

        return await self.decided(collections, prompt, AnswerReader(form=template.form), scored)

    def _scored(self, case: Collection, second: str) -> Score:
        known = second.casefold() not in ("", "unknown")
        evidence_f1 = case.gold.answer_f1(second) if known else 0.0
        score = Score.scored(
            self.answer_weight * case.f1
            + self.evidence_weight * evidence_f1
            + self.well_formed
            + self.evidence_formed * case.formed,
            "" if case.f1 else "wrong",
            answer=shorten(case.answer),
            answer_f1=case.f1,
            second_answer=shorten(second),
            evidence_f1=evidence_f1,
            evidence=len(case.response),
        )
        return replace(score, steps=(StepScore(value=case.f1, label="answer", start=case.span[0], end=case.span[1]),))


def _results(searches: Sequence[Search]) -> str:
    """Every document that a search returned, each once, where it came last."""
    documents: dict[tuple[str, str], str] = {}
    for search in searches:
        for document in search.documents():
            key = identity(document)
            documents[key] = documents.pop(key, f"{document.title}\n{document.text}".strip())
    return "\n\n".join(filter(None, documents.values()))


def _quotes(trajectory: Trajectory, searches: Sequence[Search]) -> list[str]:
    """The lines of evidence blocks that quote an earlier result."""
    quotes: list[str] = []
    results: defaultdict[int, list[Result]] = defaultdict(list)
    for search in searches:
        results[search.turn].extend(search.results)
    returned, looked = " ", 0
    for at, turn in enumerate(trajectory.turns):
        for block in turn.tagged(_QUOTES):
            for line in block.text.splitlines():
                said = words(line)
                looked += 1
                if looked <= _MAX_QUOTES and len(said) >= _MIN_WORDS and f" {' '.join(said)} " in returned:
                    quotes.append(line.strip())
        returned += "".join(f"{' '.join(words(result.text))} \n " for result in results[at])
    return quotes
