"""ReSeek's reward (`TencentBAC/ReSeek`): the answer, and whether the agent knew which results were of use.

After each result the agent says Yes or No.  `value = answer + the judgements' values`, from one of two tables: `RULE`,
where a result is relevant that holds the gold answer as whole words (`signals.holds`), or `RERANKED`, where it is one
for which `relevance`, a re-ranker, gives gold answer and result `threshold` or more.

A judgement is about what the searches of the turn before it returned.  Of each turn the first counts, if all of the
turn's judgements say the same; what follows no result is about nothing.  docs/agents.md says where the released
code differs.

Not covered: the environment that takes a result away after a No.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge.options import Count, Range, Share
from adjudge.protocol import Sample, Score, StepScore
from adjudge.responses.answer_span import shorten
from adjudge.responses.trajectories.searches import FinalAnswer, Search, SeveralAnswers, final_answer, searches_of
from adjudge.responses.trajectories.trajectory import Block, Trajectory, TrajectoryForm
from adjudge.scoring.nested import asked, cost_of, without_number
from adjudge.verifiers.agents.scoring import TrajectoryNestedScorer, Value, case_values
from adjudge.verifiers.agents.search.signals import SearchReference, holds, identity, read_answers

_CASES = "yes_answered yes_relevant yes_irrelevant no_relevant no_irrelevant no_irrelevant_answered".split()
RULE: Mapping[str, float] = dict(zip(_CASES, (0.4, 0.3, -0.6, -0.3, 0.3, 0.4), strict=True))
RERANKED: Mapping[str, float] = dict(zip(_CASES, (0.1, -0.025, -0.05, -0.05, 0.02, 0.02), strict=True))

Standing: TypeAlias = Literal["counts", "repeated_result", "no_result", "again", "disagreeing", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One judgement: whether it says Yes, None for neither, and the text of the results that it is about.

    `standing` is "counts", "repeated_result" if all those documents came before, or why it is worth nothing.
    """

    useful: bool | None
    result: str
    standing: Standing
    block: Block


def judgements_of(trajectory: Trajectory, form: TrajectoryForm) -> tuple[Judgement, ...]:
    """Return all judgements outside thoughts, in order."""
    made: list[Judgement] = []
    seen: set[tuple[str, str]] = set()
    searches: defaultdict[int, list[Search]] = defaultdict(list)
    for search in searches_of(trajectory, form):
        searches[search.turn].append(search)
    for at, turn in enumerate(trajectory.turns):
        before = searches[at - 1] if at else []
        result = "\n".join(one.text for search in before for one in search.results).strip()
        documents = {identity(document) for search in before for document in search.documents()}
        blocks = turn.tagged(form.judge)
        words = {_word(block) for block in blocks}
        for number, block in enumerate(blocks):
            standing: Standing = "repeated_result" if documents <= seen else "counts"
            if not result:
                standing = "no_result"
            elif len(words) > 1:
                standing = "disagreeing"
            elif words == {None}:
                standing = "unreadable"
            elif number:
                standing = "again"
            made.append(Judgement(useful=_word(block), result=result, standing=standing, block=block))
        seen |= documents
    return tuple(made)


def _word(block: Block) -> bool | None:
    return {"yes": True, "no": False}.get(block.text.casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    answer: FinalAnswer
    right: bool
    judgements: tuple[Judgement, ...]
    gold: SearchReference


@dataclass(frozen=True, kw_only=True)
class SearchJudgementsScorer(TrajectoryNestedScorer):
    """ReSeek: exact match of the answer, plus a value for each judgement of a result.

    The reference is the answer, or a list of accepted ones, or `{"answer": ..}`.

    Attributes:
        relevance: a scorer of how well a response answers a prompt, such as a re-ranker; it is asked with the gold
            answer as the prompt and reference and a result as the response.  None decides by rule.
        threshold: from which of its values on a result is relevant.
        values: values of the table that take the place of the published ones, by case.
        trust_yes: whether a Yes is right wherever the final answer is, as published; else the result is looked at.
        several: "none": different answers are none; "last": the last one counts, as published, and beyond
            `many_answers` answer tags a right one is worth `many_value`.
        many_answers, many_value: see there.
        max_paid: how many judgements can earn something (ours); penalties have no end.  With 3, right judgements and a
            wrong answer (0.9) stay below a right answer (1).
        max_characters: most characters that the agent may write; more is worth 0 (`too_complex`).
    """

    name: ClassVar[str] = "search_judgements"
    version: ClassVar[str] = "3"
    inner: ClassVar[tuple[str, ...]] = ("relevance",)

    relevance: Any = None
    threshold: Value = 0.5
    values: Mapping[str, float] = field(default_factory=dict)
    trust_yes: bool = True
    several: SeveralAnswers = "none"
    many_answers: Count = 10
    many_value: Share = 0.25
    max_paid: Annotated[int, Range(ge=0)] = 3
    max_characters: Count = 200_000

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "values", case_values(self.name, self.values, RULE))

    def gold(self, sample: Sample) -> SearchReference:
        """Return the accepted answers; `BadReferenceError` if there are none."""
        return read_answers(sample.reference)

    def read(self, sample: Sample, trajectory: Trajectory) -> _Episode | Score:
        """Return what is judged of a sample, or its score."""
        if trajectory.written > self.max_characters:
            return Score.scored(0.0, "too_complex")
        gold = self.gold(sample)
        answer = final_answer(trajectory, self.shape, several=self.several)
        right = not answer.reason and gold.is_answer(answer.text)
        return _Episode(answer=answer, right=right, judgements=judgements_of(trajectory, self.shape), gold=gold)

    async def judge(self, read: Sequence[_Episode]) -> list[Score]:
        """Return one score per episode, in order; the re-ranker is asked about each answer and result once."""
        pairs = list({pair: None for episode in read for pair in self._pairs(episode)})
        samples = [Sample(prompt=gold, response=result, reference=gold) for gold, result in pairs]
        said = await asked(self.relevance, samples, called=f"{self.name}: relevance") if pairs else []
        verdicts = dict(zip(pairs, said, strict=True))
        return [self._scored(episode, verdicts) for episode in read]

    def _pairs(self, episode: _Episode) -> dict[tuple[str, str], None]:
        if self.relevance is None:
            return {}
        looked_at = [judgement.result for judgement in episode.judgements if self._looks(episode, judgement)]
        return {(accepted, result): None for result in looked_at for accepted in episode.gold.answers}

    def _looks(self, episode: _Episode, judgement: Judgement) -> bool:
        if judgement.standing not in ("counts", "repeated_result"):
            return False
        return not (judgement.useful and episode.right and self.trust_yes)

    def _scored(self, episode: _Episode, verdicts: Mapping[tuple[str, str], Score]) -> Score:
        mine = {
            f"{number}: {shorten(accepted, 40)}": verdicts[accepted, result]
            for number, (accepted, result) in enumerate(self._pairs(episode))
        }
        if (missing := without_number(mine)) is not None:
            return missing
        base = float(episode.right)
        if episode.right and self.several == "last" and episode.answer.blocks > self.many_answers:
            base = self.many_value
        steps = self._steps(episode, verdicts)
        return Score(
            value=base + math.fsum(step.value or 0.0 for step in steps),
            reason="" if base else episode.answer.reason or "wrong",
            steps=steps,
            evidence={"answer": shorten(episode.answer.text), "answer_value": base, "judgements": len(steps)},
            cost=cost_of(list(mine.values())),
        )

    def _steps(self, episode: _Episode, verdicts: Mapping[tuple[str, str], Score]) -> tuple[StepScore, ...]:
        table = {**(RULE if self.relevance is None else RERANKED), **self.values}
        steps, paid = [], 0
        for judgement in episode.judgements:
            label: str = judgement.standing
            value = 0.0
            if label in ("counts", "repeated_result"):
                case = self._case(episode, judgement, verdicts)
                value, label = table[case], case
                # No answer and an old result earn nothing, and neither does what comes after the last that is paid.
                earns = not episode.answer.reason and judgement.standing == "counts" and paid < self.max_paid
                if value > 0:
                    value, paid = (value, paid + 1) if earns else (0.0, paid)
            steps.append(StepScore(value=value, label=label, start=judgement.block.start, end=judgement.block.end))
        return tuple(steps)

    def _case(self, episode: _Episode, judgement: Judgement, verdicts: Mapping[tuple[str, str], Score]) -> str:
        if judgement.useful and episode.right and self.trust_yes:
            return "yes_answered"
        if self.relevance is None:
            relevant = holds(judgement.result, episode.gold.answers)
        else:
            values = [verdicts[accepted, judgement.result].value for accepted in episode.gold.answers]
            relevant = any(value is not None and value >= self.threshold for value in values)
        if judgement.useful:
            return ("yes_answered" if episode.right else "yes_relevant") if relevant else "yes_irrelevant"
        return "no_relevant" if relevant else "no_irrelevant_answered" if episode.right else "no_irrelevant"
