"""Pseudo-labels: the answer that most responses of a group give is the reference of all of them.

Which responses give the same answer is the inner scorer's own judgement: of two that it takes for each other's
reference, one votes for the other.  In each round the most frequent text that stands in no camp yet is the reference
(of several the longest, as the most exact), and its camp is every response that the scorer finds right, also those of
earlier camps; so a group costs one question for each response and camp.  "Equal" need not be transitive: 5 equals 5 cm
and 5 kg, which differ.  A response votes in every camp that it equals, and the order of the responses decides nothing.
An answer that the scorer does not accept as its own reference founds no camp.

Two camps of the same size are not a majority, and neither is a group without an answer: all of it abstains
(`low_confidence`), which is not 0.  Where a vote could not be asked for, the group has failed.

Sources: TTRL (arXiv 2504.16084) and ETTRL (arXiv 2508.11356), whose label is the same; from memory, where a tie goes to
the answer that came first.

What a policy can do with it: agree with itself.  A group that gives one wrong answer scores 1 throughout, and a run
that has come there stays there: this is the known collapse of TTRL, where a model is mostly wrong at first.
Watch the share of the largest camp (`evidence["votes"]`) and a held-out set with labels.

With a scorer of likeness, such as `token_f1`, and `right: 0.9`, near texts stand in one camp.

Not covered: ETTRL's tree of rollouts and its advantages by entropy, and votes of more responses than are scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from adjudge.options import Range
from adjudge.protocol import NO_COST, Cost, Sample, Score, Scorer, Verifier
from adjudge.reasons import of_parts
from adjudge.responses.answer_span import MAX_EVIDENCE, Where, find_spans, shorten
from adjudge.runtime.contract import grouped, require_group
from adjudge.scoring.compose.composite import Composite, Part
from adjudge.scoring.verifier_base import graded_text

_NO_REFERENCE = ("bad_sample", "gold_unparsable", "gold_timeout")  # the answer that was tried is not a reference


@dataclass(slots=True)
class _Group:
    """The vote of one group: who stands where, by places among the samples.

    Attributes:
        answers: what each response says that votes.
        left: those that stand in no camp yet.
        camps: each founder's text, with all that equal it.
        broken: why a vote could not be asked for.
    """

    answers: dict[int, str]
    left: set[int]
    camps: dict[str, list[int]] = field(default_factory=dict)
    broken: str = ""

    def next_text(self) -> str:
        """The most frequent text that stands in no camp yet, of several the longest; "" when the vote is over."""
        left = Counter(self.answers[at] for at in self.left)
        return "" if self.broken else max(left, key=lambda text: (left[text], len(text), text), default="")

    def winner(self) -> str:
        """The text of the largest camp, "" where there is none or where two are as large."""
        ranked = sorted(self.camps, key=lambda text: -len(self.camps[text]))
        tied = len(ranked) > 1 and len(self.camps[ranked[0]]) == len(self.camps[ranked[1]])
        return ranked[0] if ranked and not tied else ""


@dataclass(frozen=True, kw_only=True)
class MajorityVote(Composite):
    """What a scorer gives each response with the group's most frequent answer as the reference.

    The reference of the sample is not looked at.

    Attributes:
        scorer: compares an answer with a reference that is a text: `math`, `exact`, `numeric`, `answer_judge`, ...
        where: where the answer is looked for that votes; with "auto", a text without any mark is one up to 200
            characters.
        right: the least value of `scorer` that means the same answer.
        name: short name, used in provenance and reports.
    """

    version: ClassVar[str] = "3"
    spec_form: ClassVar[str] = "`{scorer: SPEC, where: ..., right: ..., name: ...}`"
    example: ClassVar[str] = "{majority_vote: {scorer: math}}"

    scorer: Scorer | Verifier
    where: Where = "auto"
    right: Annotated[float, Range(gt=0)] = 1.0
    name: str = "majority_vote"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reject_groupwise(self.members(), sees="the responses with an answer")

    @property
    def groupwise(self) -> bool:
        """True: a score depends on the other responses of the group."""
        return True

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if there is no group; a reference is not needed."""
        require_group(self.name, sample)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Vote, then score with the answer of the largest camp."""
        (part,) = self.members()
        spent = [NO_COST] * len(samples)
        members = grouped({at: sample.group for at, sample in enumerate(samples)})
        alone = members.pop("", [])
        answers = {name: self._answers(samples, places) for name, places in members.items()}
        groups = {name: _Group(answers=voting, left=set(voting)) for name, voting in answers.items()}
        while asked := {name: text for name, group in groups.items() if (text := group.next_text())}:
            await self._round(part, samples, groups, asked, spent)
        scores = dict.fromkeys(alone, Score.failed("bad_sample", error="the sample has no group"))
        judged = [
            (at, winner) for name, places in members.items() if (winner := groups[name].winner()) for at in places
        ]
        final = await self._asked(part, samples, [pair for pair in judged if not groups[samples[pair[0]].group].broken])
        for at, sample in enumerate(samples):
            if sample.group:
                scores[at] = self._score(groups[sample.group], final.get(at), part.name, spent[at])
        return [scores[at] for at in range(len(samples))]

    def _answers(self, samples: Sequence[Sample], places: Sequence[int]) -> dict[int, str]:
        answers = {}
        for at in places:
            try:
                text, fault = graded_text(samples[at], "strip")
            except ValueError:
                continue  # the response is not text, and votes for nothing
            spans = [] if fault else find_spans(text, self.where)
            if spans and len(spans[0].texts) == 1:
                answer = spans[0].texts[0].strip()
                unmarked = self.where == "auto" and spans[0].where == "response"
                if answer and not (unmarked and len(answer) > MAX_EVIDENCE):
                    answers[at] = answer
        return answers

    async def _round(
        self,
        part: Part,
        samples: Sequence[Sample],
        groups: dict[str, _Group],
        asked: dict[str, str],
        spent: list[Cost],
    ) -> None:
        """Let one text of each group gather its camp."""
        pairs = [(at, text) for name, text in asked.items() for at in groups[name].answers]
        found = await self._asked(part, samples, pairs)
        for at, score in found.items():
            spent[at] += score.cost
        for name, text in asked.items():
            group = groups[name]
            lost = {found[at].reason for at in group.answers if found[at].status == "failed"}
            group.broken = min(lost.difference(_NO_REFERENCE), default="")
            joined = [at for at in group.answers if (found[at].value or 0.0) >= self.right]
            own = {at for at, answer in group.answers.items() if answer == text}
            if own.intersection(joined):
                group.camps[text] = joined
                group.left.difference_update(joined)
            group.left -= own

    async def _asked(self, part: Part, samples: Sequence[Sample], pairs: Sequence[tuple[int, str]]) -> dict[int, Score]:
        rows = [replace(samples[at], reference=text) for at, text in pairs]
        scores = await part.score(rows, inside=self.name) if rows else []
        return {at: score for (at, _), score in zip(pairs, scores, strict=True)}

    def _score(self, group: _Group, final: Score | None, name: str, spent: Cost) -> Score:
        votes = {shorten(text): len(camp) for text, camp in group.camps.items()}
        none = Score.abstained("low_confidence", votes=votes)
        if group.broken:
            error = f"a vote could not be asked for: {group.broken}"
            none = Score.failed(of_parts([group.broken]), error=error, votes=votes)
        if final is None:
            return replace(none, parts={name: replace(none, evidence={}, cost=spent)})
        own = replace(final, cost=final.cost + spent)
        evidence = {"reference": shorten(group.winner()), "votes": votes}
        return replace(final, steps=(), evidence=evidence, parts={name: own})
