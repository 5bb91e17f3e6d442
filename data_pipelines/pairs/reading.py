"""From the rows of a group to its scored answers; what cannot be used is counted by reason.

| reason | what |
|---|---|
| `no_prompt` | the prompt is neither text nor chat turns |
| `mixed_prompts` | the rows of a group answer different prompts; none of them is used |
| `no_response`, `several_turns` | the response is not text, or has more than one turn |
| `uneven_lists` | as many responses as scores are needed |
| `failed`, `abstained` | the scorer gave no number; such an answer is neither better nor worse than any |
| `not_asked` | the scorer was not asked about it (`adjudge label --unless`) |
| `no_score` | there is no finite number, and no word whose worth is known |
| `equal_answers` | a text that came before, with the same score |
| `two_scores` | a text with different scores, or different values of what the rule reads; none of them is used |
| `over_max_answers` | not drawn |
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.data_pipelines.pairs.answers import Answer, ScoredGroup, squeezed
from adjudge.data_pipelines.pairs.layout import Layout, within
from adjudge.data_pipelines.pairs.rule import Rule
from adjudge.io.columns import MISSING, Column
from adjudge.io.jobs.lines import Unfit, fitted
from adjudge.io.jobs.maker import DroppedError, Unit
from adjudge.io.values import Text, is_chat, name_of, number_of, prompt_of, response_of, said_in_choice, unanswered
from adjudge.protocol import Message, content_text

_SAME = 1e-6  # scores of one text that differ by less are one score: batches move the last bits
_JOINT = "\n\n"  # between the steps of a solution that is given in no other way


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReader:
    """Reads groups."""

    layout: Layout
    rule: Rule
    max_answers: int
    seed: int

    def group(self, unit: Unit, dropped: Counter[str]) -> ScoredGroup | None:
        """Return the answers of a unit, or None where they do not answer one prompt; counts what is left out."""
        prompts: dict[str, str | Sequence[Message]] = {}
        usable: list[Answer] = []
        places = itertools.count()  # of all answers, so that one which cannot be used moves no other's
        for row in unit.rows:
            try:
                prompt = _prompt(self.layout, row)
                answers = list(self._answers(row, places, dropped))
            except DroppedError as why:
                next(places)
                dropped[why.reason] += 1
                continue
            prompts.setdefault(repr(prompt), prompt)
            usable += answers
        if len(prompts) != 1:
            if prompts:
                dropped["mixed_prompts"] += len(usable)
            return None
        (prompt,) = prompts.values()
        name = unit.group if self.layout.named else ""
        rows = tuple(row for row in unit.rows if self.layout.response.of(row) not in (MISSING, None, "", []))
        group = ScoredGroup(name=name, prompt=prompt, answers=tuple(usable), seed=self.seed, rows=rows)
        return self._fewer(self._merged(group, dropped), dropped)

    def _answers(self, row: Mapping[str, Any], places: Iterator[int], dropped: Counter[str]) -> Iterator[Answer]:
        name = self._id(row)
        response = self._response(row)
        several: list[tuple[Any, int | None]] = [(response, None)]
        if isinstance(response, list) and not self.rule.needs.stepped and not is_chat(response):
            several = [(item, number) for number, item in enumerate(response)]
        for item, number in several:
            place = next(places)
            try:
                score, judged = self._score(row, number, len(several))
                mark = f"{name}/{number}" if name and number is not None else name or str(place)
                text = self._text(item)
                yield Answer(id=mark, text=text, score=score, place=place, row=row, judged=judged, at=number)
            except DroppedError as why:
                dropped[why.reason] += 1

    def _id(self, row: Mapping[str, Any]) -> str:
        return name_of(self.layout.id.of(row)) if self.layout.id is not None else ""

    def _response(self, row: Mapping[str, Any]) -> Any:
        """Return the response of a row, or a list of them; a labelled row holds the one that was scored."""
        value, column = self.layout.response.of(row), row.get("column")
        if not self.layout.labelled:
            return value
        if isinstance(column, str) and self.layout.response.path[0] == "input":
            value = Column(within("input.", column)).of(row)
        if isinstance(value, list) and not is_chat(value) and not self.rule.needs.stepped:
            return value[0] if len(value) == 1 else MISSING
        return value

    def _text(self, value: Any) -> str:
        if self.rule.needs.stepped and isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return _JOINT.join(value)
        try:
            turns = response_of(said_in_choice(value), self.layout.response.name)
            if isinstance(turns, str):
                return turns
            if len(turns) != 1:
                raise DroppedError("several_turns")
            if turns[0]["role"] != "assistant":
                raise DroppedError("no_response")
            return content_text(turns[0].get("content"))
        except (ValueError, AttributeError):  # content of a kind that no chat has
            raise DroppedError("no_response") from None

    def _score(
        self, row: Mapping[str, Any], number: int | None, several: int
    ) -> tuple[float | None, Mapping[str, Any]]:
        """Return the score of an answer, and what holds its reason and evidence."""
        column = self.layout.score
        if column is None:
            return None, row
        value = _settled(row) if self.layout.coalesced else column.of(row)
        if number is not None:
            if not isinstance(value, list) or len(value) != several:
                if self.rule.needs.score:
                    raise DroppedError("uneven_lists")
                return None, row
            value = value[number]
        score = self.layout.words.get(value.strip()) if isinstance(value, str) else None
        score = number_of(value) if score is None else score
        judged = value if isinstance(value, Mapping) else row
        if score is None and self.rule.needs.score:
            if isinstance(value, Mapping) or column.name == "value":
                status = judged.get("status")
                raise DroppedError(status if status in ("failed", "abstained") else "no_score")
            unasked = row.get("not_asked")
            known = column.path[0] == "scores" and isinstance(unasked, list) and column.path[-1] in unasked
            raise DroppedError("not_asked" if known else "no_score")
        return score, judged

    def _merged(self, group: ScoredGroup, dropped: Counter[str]) -> ScoredGroup:
        if not self.rule.needs.merged:
            return group
        same: defaultdict[str, list[Answer]] = defaultdict(list)
        for answer in group.answers:
            same[squeezed(answer.text)].append(answer)
        kept: list[Answer] = []
        for answers in same.values():
            if not self._alike(answers):
                dropped["two_scores"] += len(answers)
                continue
            dropped["equal_answers"] += len(answers) - 1
            # Where the data have no ids, an answer's id is its place, and must not decide.
            kept.append(min(answers, key=lambda one: (one.id if self._id(one.row) else "", one.text, repr(one.row))))
        return replace(group, answers=tuple(kept))

    def _alike(self, answers: Sequence[Answer]) -> bool:
        """Whether answers of one text have one score, and one value in each column that the rule reads."""
        scores = [answer.score for answer in answers if answer.score is not None]
        if scores and max(scores) - min(scores) > _SAME:
            return False
        return len(answers) < 2 or all(
            len({repr(answer.value(name)) for answer in answers}) == 1 for name in self.rule.needs.columns
        )

    def _fewer(self, group: ScoredGroup, dropped: Counter[str]) -> ScoredGroup:
        over = len(group.answers) - self.max_answers
        if over <= 0:
            return group
        dropped["over_max_answers"] += over
        drawn = heapq.nsmallest(
            self.max_answers, group.answers, key=lambda one: (group.draw("answer", one.text), one.id)
        )
        return replace(group, answers=tuple(sorted(drawn, key=lambda one: one.place)))


def _settled(row: Mapping[str, Any]) -> Any:
    """Return the score that settled a row, or of the last scorer that was asked why it did not."""
    scores = row.get("scores")
    asked = [score for score in scores.values() if isinstance(score, Mapping)] if isinstance(scores, Mapping) else []
    if not asked or not isinstance(scores, Mapping):
        return None
    return scores.get(str(row.get("settled_by"))) or {**asked[-1], "value": None}


def _prompt(layout: Layout, row: Mapping[str, Any]) -> Text:
    try:
        prompt = prompt_of(layout.prompt.of(row), layout.prompt.name)
        prompt = unanswered(prompt) if layout.answered else prompt
        chat: Text = prompt if isinstance(prompt, str) else fitted(prompt, "chat")
    except (ValueError, Unfit):  # no row of pairs could hold it
        raise DroppedError("no_prompt") from None
    return chat
