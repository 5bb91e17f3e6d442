"""A search agent's judgements of what its tools returned: `<judge>Yes</judge>` for a useful result, No for another.

A judgement is about what the searches of the turn before it found.  Of each turn the first counts, if all of
the turn's judgements say the same; what follows no result is about nothing.

Where ReSeek's released code differs: it reads results that the model wrote itself, judgements in thoughts, and one
judgement for every result before it that has none of its own.

Not covered: whether a judgement is right.

ReSeek's reward (`TencentBAC/ReSeek`): the answer, and whether the agent knew which results were of use.

After each result the agent says Yes or No.  `value = answer + the judgements' values`, from one of two tables:

| case | by rule | with `relevance` |
|---|---|---|
| `yes_answered`: Yes, and the final answer is right | 0.4 | 0.1 |
| `yes_relevant`: Yes, the result is relevant, the answer wrong | 0.3 | -0.025 |
| `yes_irrelevant`: Yes, the result is not | -0.6 | -0.05 |
| `no_relevant`: No, the result is relevant | -0.3 | -0.05 |
| `no_irrelevant`: No, and it is not | 0.3 | 0.02 |
| `no_irrelevant_answered`: the same, and the answer is right | 0.4 | 0.02 |

By rule a result is relevant if it holds the gold answer as whole words (`evidence_text`); with
`relevance`, a re-ranker, if that scores gold answer and result at `threshold` or above.

Where the released code differs: "no" is found in "know"; several judgements and forged results pay
(`judgements_reading`); the re-ranker sees the first accepted answer alone, here all; if it does not answer that is 0,
here the score is failed; whoever gives no answer is spared what wrong judgements cost, here it is not; and searching
for nothing, to say No, pays without end (`most_paid`).

Not covered: the environment that takes a result away after a No.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from adjudge.attacks import AttackCase
from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, StepScore
from adjudge.responses.trajectories.reading import read_trajectory
from adjudge.responses.trajectories.searches import FinalAnswer, Search, SeveralAnswers, final_answer, searches_of
from adjudge.responses.trajectories.trajectory import Block, Trajectory, TrajectoryForm
from adjudge.verifiers.agents.scoring import NestedScorer
from adjudge.verifiers.agents.search.reference import SearchReference, read_answers
from adjudge.verifiers.agents.search.signals import holds, identity
from adjudge.verifiers.nested.part import asked, cost_of, without_number
from adjudge.verifiers.text.answer_span import shorten

Standing: TypeAlias = Literal["counts", "repeated_result", "no_result", "again", "disagreeing", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One judgement.

    Attributes:
        useful: whether it says Yes; None if it can say neither.
        result: the text of the results that it is about; "" if there is none.
        standing: "counts"; "repeated_result" if all those documents came before; else why it is worth nothing.
        start: first character of the block.
        end: one past the last.
    """

    useful: bool | None
    result: str
    standing: Standing
    start: int
    end: int


def judgements_of(trajectory: Trajectory, form: TrajectoryForm) -> tuple[Judgement, ...]:
    """Return all judgements outside thoughts, in order."""
    found: list[Judgement] = []
    seen: set[tuple[str, str]] = set()
    searches: defaultdict[int, list[Search]] = defaultdict(list)
    for search in searches_of(trajectory, form):
        searches[search.turn].append(search)
    for at, turn in enumerate(trajectory.turns):
        before = searches[at - 1] if at else []
        blocks = turn.tagged(form.judge)
        result = "\n".join(one.text for search in before for one in search.results).strip()
        documents = {identity(document) for search in before for document in search.documents()}
        repeated = documents <= seen
        words = {_word(block) for block in blocks}
        for number, block in enumerate(blocks):
            standing: Standing = "repeated_result" if repeated else "counts"
            if not result:
                standing = "no_result"
            elif len(words) > 1:
                standing = "disagreeing"
            elif words == {None}:
                standing = "unreadable"
            elif number:
                standing = "again"
            found.append(
                Judgement(useful=_word(block), result=result, standing=standing, start=block.start, end=block.end)
            )
        seen |= documents
    return tuple(found)


def _word(block: Block) -> bool | None:
    return {"yes": True, "no": False}.get(block.text.casefold())


RULE: Mapping[str, float] = {
    "yes_answered": 0.4,
    "yes_relevant": 0.3,
    "yes_irrelevant": -0.6,
    "no_relevant": -0.3,
    "no_irrelevant": 0.3,
    "no_irrelevant_answered": 0.4,
}
"""The values of the rule version."""

RERANKED: Mapping[str, float] = {
    "yes_answered": 0.1,
    "yes_relevant": -0.025,
    "yes_irrelevant": -0.05,
    "no_relevant": -0.05,
    "no_irrelevant": 0.02,
    "no_irrelevant_answered": 0.02,
}
"""The values of the re-ranker version."""

_LARGEST = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """A trajectory on its way to its score; `right` is whether its answer is."""

    answer: FinalAnswer
    right: bool
    judgements: tuple[Judgement, ...]
    gold: SearchReference


@dataclass(frozen=True, kw_only=True)
class SearchJudgementsScorer(NestedScorer):
    """ReSeek: exact match of the answer, plus a value for each judgement of a result.

    The reference is the answer, or a list of accepted ones, or `{"answer": ..}`.

    Attributes:
        relevance: a scorer of how well a response answers a prompt, such as a re-ranker; it is asked with the gold
            answer as the prompt and reference and a result as the response.  None decides by rule.
        threshold: from which of its values on a result is relevant.
        values: values of the table that take the place of the published ones, by case.
        trust_yes: whether a Yes is right wherever the final answer is, as published; else the result is looked at.
        several: what different answers are worth: "none", or "last" for the last one, as published.
        many_answers: with "last", the number of answer tags beyond which a right answer is worth `many_value`.
        many_value: see there.
        most_paid: how many judgements can earn something (ours); penalties have no end.  With 3, right judgements and a
            wrong answer (0.9) stay below a right answer (1).
        longest: most characters that the agent may write; more is worth 0 (`too_complex`).
    """

    name: ClassVar[str] = "search_judgements"
    inner: ClassVar[tuple[str, ...]] = ("relevance",)

    relevance: Any = None
    threshold: float = 0.5
    values: Mapping[str, float] = field(default_factory=dict)
    trust_yes: bool = True
    several: SeveralAnswers = "none"
    many_answers: int = 10
    many_value: float = 0.25
    most_paid: int = 3
    longest: int = 200_000

    def __post_init__(self) -> None:
        """Reject options out of range, and values of cases that there are not."""
        super().__post_init__()
        self.require("several", ("none", "last"))
        self.require("trust_yes", (True, False))
        self.require_number("threshold", -_LARGEST, _LARGEST)
        self.require_number("many_value", 0.0, 1.0)
        self.require_count("many_answers")
        self.require_count("most_paid", 0)
        self.require_count("longest")
        if not isinstance(self.values, Mapping):
            raise ValueError(f"{self.name}: values is {self.values!r}; give a mapping of cases to numbers")
        for case, value in self.values.items():
            if case not in RULE:
                raise ValueError(f"{self.name}: there is no case {case!r}; the cases are {', '.join(RULE)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{self.name}: values[{case!r}] is {value!r}; it must be a finite number")
        object.__setattr__(self, "values", dict(self.values))

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        from adjudge.verifiers.agents.search.turn_attacks import attack_cases

        del folder  # the cases need no files
        yield from attack_cases("search_judgements")

    def check_reference(self, sample: Sample) -> None:
        """Raise `BadReferenceError` if there is no answer to compare with."""
        _gold(sample)

    async def judge(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        read = [self._read(sample) for sample in samples]
        episodes = [one for one in read if isinstance(one, _Episode)]
        found = await self._relevances(episodes)
        scores = iter([self._scored(episode, found) for episode in episodes])
        return [one if isinstance(one, Score) else next(scores) for one in read]

    def _read(self, sample: Sample) -> _Episode | Score:
        trajectory = read_trajectory(sample, self.shape)
        if sum(len(turn.text) for turn in trajectory.turns) > self.longest:
            return Score.scored(0.0, "too_complex")
        gold = _gold(sample)
        answer = final_answer(trajectory, self.shape, several=self.several)
        right = not answer.reason and gold.is_answer(answer.text)
        return _Episode(answer=answer, right=right, judgements=judgements_of(trajectory, self.shape), gold=gold)

    async def _relevances(self, episodes: Sequence[_Episode]) -> dict[tuple[str, str], Score]:
        """What the re-ranker says of each gold answer and result that matters, each asked once."""
        pairs = {pair: None for episode in episodes for pair in self._pairs(episode)}
        if not pairs:
            return {}
        samples = [Sample(prompt=gold, response=result, reference=gold) for gold, result in pairs]
        return dict(zip(pairs, await asked(self.relevance, samples, called=f"{self.name}: relevance"), strict=True))

    def _pairs(self, episode: _Episode) -> dict[tuple[str, str], None]:
        """The gold answers and results that the re-ranker is asked about, each once."""
        if self.relevance is None:
            return {}
        looked_at = [judgement.result for judgement in episode.judgements if self._looks(episode, judgement)]
        return {(accepted, result): None for result in looked_at for accepted in episode.gold.answers}

    def _looks(self, episode: _Episode, judgement: Judgement) -> bool:
        """Whether a judgement's value depends on its result."""
        if judgement.standing not in ("counts", "repeated_result"):
            return False
        return not (judgement.useful and episode.right and self.trust_yes)

    def _scored(self, episode: _Episode, found: Mapping[tuple[str, str], Score]) -> Score:
        mine = {
            f"{number}: {shorten(accepted, 40)}": found[accepted, result]
            for number, (accepted, result) in enumerate(self._pairs(episode))
        }
        if (missing := without_number(mine)) is not None:
            return missing
        base = float(episode.right)
        if episode.right and self.several == "last" and episode.answer.blocks > self.many_answers:
            base = self.many_value
        steps = self._steps(episode, found)
        reason = "" if base else episode.answer.reason or "wrong"
        return Score(
            value=base + math.fsum(step.value or 0.0 for step in steps),
            reason=reason,
            steps=steps,
            evidence={"answer": shorten(episode.answer.text), "answer_value": base, "judgements": len(steps)},
            cost=cost_of(list(mine.values())),
        )

    def _steps(self, episode: _Episode, found: Mapping[tuple[str, str], Score]) -> tuple[StepScore, ...]:
        table = {**(RULE if self.relevance is None else RERANKED), **self.values}
        steps, paid = [], 0
        for judgement in episode.judgements:
            label: str = judgement.standing
            value = 0.0
            if label in ("counts", "repeated_result"):
                case = self._case(episode, judgement, found)
                value, label = table[case], case
                # No answer and an old result earn nothing, and neither does what comes after the last that is paid.
                earns = not episode.answer.reason and judgement.standing == "counts" and paid < self.most_paid
                if value > 0:
                    value, paid = (value, paid + 1) if earns else (0.0, paid)
            steps.append(StepScore(value=value, label=label, start=judgement.start, end=judgement.end))
        return tuple(steps)

    def _case(self, episode: _Episode, judgement: Judgement, found: Mapping[tuple[str, str], Score]) -> str:
        if judgement.useful and episode.right and self.trust_yes:
            return "yes_answered"
        if self.relevance is None:
            relevant = holds(judgement.result, episode.gold.answers)
        else:
            values = [found[accepted, judgement.result].value for accepted in episode.gold.answers]
            relevant = any(value is not None and value >= self.threshold for value in values)
        if judgement.useful:
            return ("yes_answered" if episode.right else "yes_relevant") if relevant else "yes_irrelevant"
        return "no_relevant" if relevant else "no_irrelevant_answered" if episode.right else "no_irrelevant"


def _gold(sample: Sample) -> SearchReference:
    try:
        return SearchReference(answers=read_answers(sample.reference))
    except ValueError as error:
        raise BadReferenceError(str(error)) from error
