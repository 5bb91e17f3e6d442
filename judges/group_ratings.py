"""DeepSeek-GRM (arXiv 2504.02495): principles, a critique, and 1 to 10 for each response; summed over shuffled samples.

All different responses of a group stand in one prompt, in an order that is shuffled for each sample.  A group of one
is rated alone.  Not covered: the meta reward model that keeps the better half of the samples.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.options import Count, Range
from adjudge.prompts.asking import Answer, ask, cost_of
from adjudge.prompts.reading import NumberListReader
from adjudge.prompts.scorer import Case, ModelScorer, forced_of, mean_and_error, require_text, shortened
from adjudge.prompts.template import Rendered
from adjudge.protocol import NO_COST, Sample, Score
from adjudge.runtime.contract import grouped

_LOW, _HIGH = 1.0, 10.0


@dataclass(frozen=True, kw_only=True)
class DeepSeekGrmJudge(ModelScorer):
    """The sum of several ratings from 1 to 10, each given with all responses of the group in view.

    The reference, if there is one, is a text that shows the judge a good answer; it is the same for a whole group.  The
    prompt is in our words; give a released checkpoint its own as `template` (docs/judges.md).

    Attributes:
        samples: how many ratings are summed, each with the responses in another order.
        quorum: the share of them that must be readable, in (0, 1]; the sum is then scaled up to all.
        max_group: the largest group.
        output: "sum", from `samples` to ten times as much; "unit", from 0 to 1.
        template: the prompt, as a name or a file; "" for the judge's own.
    """

    name: ClassVar[str] = "deepseek_grm"
    groupwise: ClassVar[bool] = True
    text_template: ClassVar[str] = "judges/deepseek_grm"

    samples: Count = 4
    quorum: Annotated[float, Range(gt=0, le=1)] = 0.5
    max_group: Count = 16
    output: Literal["sum", "unit"] = "sum"
    template: str = ""
    temperature: float = 0.5
    max_tokens: int = 4096
    max_characters: int = 20_000

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference is a text, or there is none."""
        require_text(sample.reference)

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        groups = grouped({index: case.sample.group for index, case in enumerate(cases)})
        scores: dict[int, Score] = {}
        fit: list[tuple[list[int], list[str]]] = []
        for members in groups.values():
            if error := self._problem([cases[index] for index in members]):
                scores.update({index: Score.failed("bad_sample", error=error) for index in members})
            else:
                fit.append((members, sorted({cases[index].response for index in members})))
        asked = [(cases[members[0]].sample, texts) for members, texts in fit]
        for (members, _), by_text in zip(fit, await self._rated(asked), strict=True):
            for at, index in enumerate(members):
                score = by_text[cases[index].response]
                scores[index] = score if at == 0 else replace(score, cost=NO_COST)  # the group's cost, once
        return [scores[index] for index in range(len(cases))]

    def _problem(self, group: Sequence[Case]) -> str:
        first = group[0].sample
        if len(group) > self.max_group:
            return (
                f"the group {first.group!r} has {len(group)} responses, and at most {self.max_group} are rated together"
            )
        if any((case.sample.prompt, case.sample.reference) != (first.prompt, first.reference) for case in group):
            return f"the samples of group {first.group!r} have different prompts or references"
        return ""

    async def _rated(self, groups: Sequence[tuple[Sample, Sequence[str]]]) -> list[dict[str, Score]]:
        """The score of each text of each group.

        Where a prompt is too long for the model, the group's longest text is left out and scores 0: one long answer
        must not keep the others from being rated.  A text that is left alone is at fault if an empty one would fit.
        """
        scores: list[dict[str, Score]] = [{} for _ in groups]
        left = [list(texts) for _, texts in groups]
        todo = list(range(len(groups)))
        while todo:
            asked = [(groups[place][0], left[place] or ["-"]) for place in todo]
            rounds = await asyncio.gather(*(self._round(asked, number) for number in range(self.samples)))
            again = []
            for at, place in enumerate(todo):
                answers = [one[at] for one in rounds]
                long = next((one for one in answers if isinstance(one, Fault) and one.too_long), None)
                if not left[place]:  # what was asked about is nobody's text
                    if long is not None:
                        scores[place] = {text: self.unanswered(long) for text in scores[place]}
                elif long is not None:
                    longest = max(left[place], key=lambda text: (len(text), text))
                    left[place].remove(longest)
                    scores[place][longest] = self.unanswered(Fault(reason="too_complex", detail=long.detail))
                    again.append(place)
                else:
                    members = len(groups[place][1])
                    scores[place] |= self._scores(members, left[place], answers)
            todo = again
        return scores

    async def _round(
        self, groups: Sequence[tuple[Sample, Sequence[str]]], number: int
    ) -> list[Answer[tuple[float, ...]] | Fault]:
        orders = [_shuffled(texts, number) for _, texts in groups]
        prompts = [
            self._prompt(sample, [texts[place] for place in order])
            for (sample, texts), order in zip(groups, orders, strict=True)
        ]
        form = self.templates()[0].form
        reads = [NumberListReader(form=form, count=len(order), low=_LOW, high=_HIGH) for order in orders]
        sampling = self.sampling(seed=self.seed + number * self.attempts)
        answers = await ask(self.resolved(), prompts, sampling, reads, retry=self.retry())
        return [
            answer if isinstance(answer, Fault) else _in_place(answer, order)
            for answer, order in zip(answers, orders, strict=True)
        ]

    def _prompt(self, sample: Sample, texts: Sequence[str]) -> Rendered:
        blocks = [{"role": f"response_{place}", "content": text} for place, text in enumerate(texts, start=1)]
        values = {
            "question": sample.prompt,
            "reference": sample.reference,
            "responses": blocks,
            "count": str(len(texts)),
        }
        return self.filled(self.templates()[0], values)

    def _scores(
        self, members: int, texts: Sequence[str], answers: Sequence[Answer[tuple[float, ...]] | Fault]
    ) -> dict[str, Score]:
        """The score of each text; every one of them carries the cost of the group."""
        read = [answer for answer in answers if isinstance(answer, Answer)]
        cost = cost_of(answers)
        if not read or len(read) < self.quorum * len(answers):
            fault = next(answer for answer in answers if isinstance(answer, Fault))
            failed = replace(self.unanswered(fault), cost=cost)
            return dict.fromkeys(texts, failed)
        common: dict[str, Any] = {"missing": len(answers) - len(read), "group": members}
        common |= {"rationale": shortened(read[-1].text), **forced_of(read)}
        scores = {}
        for at, text in enumerate(texts):
            ratings = [answer.value[at] for answer in read]
            value, error = self._value(ratings)
            evidence = {"ratings": ratings, **common}
            scores[text] = Score(value=value, evidence=evidence, uncertainty=error, cost=cost)
        return scores

    def _value(self, ratings: Sequence[float]) -> tuple[float, float | None]:
        mean, error = mean_and_error(ratings)
        value = mean * self.samples if self.output == "sum" else (mean - _LOW) / (_HIGH - _LOW)
        return value, None if error is None else error * self.samples if self.output == "sum" else error / (
            _HIGH - _LOW
        )


def _shuffled(texts: Sequence[str], number: int) -> list[int]:
    """An order of the texts that depends on nothing but them and the sample's number."""
    digest = hashlib.sha256(f"{number}".encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    order = list(range(len(texts)))
    random.Random(digest.digest()).shuffle(order)
    return order


def _in_place(answer: Answer[tuple[float, ...]], order: Sequence[int]) -> Answer[tuple[float, ...]]:
    values = [0.0] * len(order)
    for value, place in zip(answer.value, order, strict=True):
        values[place] = value
    return replace(answer, value=tuple(values))
