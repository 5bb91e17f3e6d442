"""From groups of scored rows to rows of pairs; what is left out is counted by reason.

| reason | what is left out |
|---|---|
| `no_prompt` | a row whose prompt is neither text nor chat turns |
| `mixed_prompts` | the rows of a group that answer different prompts; none of them is used |
| `no_response`, `several_turns` | a response that is not text, or has more than one turn |
| `uneven_lists` | a row with more or fewer responses than scores |
| `failed`, `abstained` | an answer without a number by the scorer; it is neither better nor worse than any |
| `not_asked` | an answer that the scorer was not asked about (`adjudge label --unless`) |
| `no_score` | an answer without a finite number, or a word whose worth is known |
| `equal_answers` | a text that came before, with the same score |
| `two_scores` | a text with different scores, or different values of what the rule reads; none of them is used |
| `over_max_answers` | an answer that was not drawn |
| `one_answer` | a prompt with fewer than two answers that can be used |
| `no_pair` | a prompt in which the rule finds no pair: all scores are equal, say |
| `equal_texts` | a pair whose sides differ in white space alone |
| `repeated` | a pair that is there already |
| `contradictory` | pairs of which both directions were found; neither is kept |
| `small_margin`, `over_max_pairs` | as the options say |
| `other_part` | a prompt on the other side of the split |
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.layout import LabelledRows, Layout, layout_of, within
from adjudge.data_pipelines.pairs.rule import Answer, Pair, Rule, ScoredGroup, rule_of, side_of, squeezed
from adjudge.io.columns import MISSING, Column
from adjudge.io.jobs.groups import RowSource
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.lines import Unfit, fitted
from adjudge.io.jobs.maker import DroppedError, Kind, Made, Unit
from adjudge.io.jobs.opening import check_paths, glance
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.source import Source, open_source
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


_VERSION = 2  # changes when the same input could give other pairs
_SCORERS_DOING = frozenset({"failed", "abstained", "not_asked"})

FIELDS: Mapping[str, Kind] = {
    "prompt": "chat", "chosen": "text", "rejected": "text", "margin": "number", "weight": "number", "group": "text",
    "rule": "text", "chosen_id": "text", "rejected_id": "text", "chosen_score": "number", "rejected_score": "number",
    "chosen_first": "flag",
}  # fmt: skip


class PairMaker:
    """Makes pairs by a rule."""

    def __init__(self, rule: Rule, layout: Layout, config: PairsConfig) -> None:
        self.rule = rule
        self._given = repr(rule)
        self._layout = layout
        self._config = config
        self._reader = GroupReader(layout=layout, rule=rule, max_answers=config.max_answers, seed=config.seed)

    @property
    def name(self) -> str:
        """What the report and the card call it."""
        return f"pairs by {self.rule.name}"

    @property
    def fingerprint(self) -> str:
        """Changes with the rule, its options, the columns, the limits and the split."""
        config, layout = self._config, self._layout
        columns = [column and column.name for column in (layout.prompt, layout.response, layout.score, layout.id)]
        options: list[Any] = [config.max_pairs, config.max_answers, config.min_margin, config.weights, config.seed]
        options += [config.part, config.test_share if config.part != "all" else None]
        parts = [_VERSION, self._given, columns, layout.group, layout.named, sorted(layout.words.items()), options]
        return f"pairs:{hashlib.sha256(repr(parts).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    @property
    def fields(self) -> Mapping[str, Kind]:
        """The columns of a pair, and those of the rule."""
        return {**FIELDS, **self.rule.columns}

    @property
    def grouped(self) -> bool:
        """Whether several rows answer one prompt."""
        return bool(self._layout.group)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Return how the columns were understood."""
        dropped: Counter[str] = Counter()
        for number, row in enumerate(first):
            group = self._reader.group(Unit(rows=(row,), first=number), dropped)
            if group is not None and group.answers:
                return self._layout.notes
        if dropped and dropped.keys() <= _SCORERS_DOING:
            return self._layout.notes  # the columns are right, and later rows may have scores
        why = ", ".join(f"{reason}: {count}" for reason, count in sorted(dropped.items()) if count) or "no answers"
        score = self._layout.score
        words = f"; --score-word says what the words in {score.name!r} are worth" if score is not None else ""
        raise ValueError(
            f"none of the first {len(first)} rows holds an answer that can be used ({why}); name other columns{words}"
        )

    def prepare(self, units: Iterable[Unit]) -> None:
        """Let the rule learn from the groups of this side of the split."""
        groups = (self._group(unit, Counter()) for unit in units)
        self.rule = self.rule.learnt(group for group in groups if group is not None)

    async def make(self, unit: Unit) -> Made:
        """Return the pairs of a group."""
        dropped: Counter[str] = Counter()
        group = self._group(unit, dropped)
        if group is None:
            return Made(dropped=dropped)
        pairs = self._kept(group, list(self.rule.pairs(group)), dropped)
        weight = 1 / len(pairs) if self._config.weights == "prompt" and pairs else 1.0
        counts = {"prompts": 1.0, "prompts_with_pairs": float(bool(pairs)), "answers": float(len(group.answers))}
        return Made(rows=tuple(self._row(group, pair, weight) for pair in pairs), dropped=dropped, counts=counts)

    def _group(self, unit: Unit, dropped: Counter[str]) -> ScoredGroup | None:
        group = self._reader.group(unit, dropped)
        config = self._config
        if group is None or config.part == "all":
            return group
        if side_of(group.prompt, share=config.test_share, seed=config.seed) == config.part:
            return group
        dropped.clear()  # what is wrong on the other side is for the other job to count
        dropped["other_part"] = 1
        return None

    def _kept(self, group: ScoredGroup, pairs: Sequence[Pair], dropped: Counter[str]) -> list[Pair]:
        if not pairs:
            alone = len(group.answers) < 2
            dropped["one_answer" if alone else "no_pair"] += 1
            return []
        distinct: dict[tuple[str, str], Pair] = {}
        plain = {text: squeezed(text) for text in {text for pair in pairs for text in pair.texts}}
        for pair in pairs:
            chosen, rejected = (plain[text] for text in pair.texts)
            if chosen == rejected:
                dropped["equal_texts"] += 1
            elif (chosen, rejected) in distinct:
                dropped["repeated"] += 1
            else:
                distinct[chosen, rejected] = pair
        both = {key for key in distinct if key[::-1] in distinct}
        dropped["contradictory"] += len(both)
        least, most = self._config.min_margin, self._config.max_pairs
        clear = [pair for key, pair in distinct.items() if key not in both]
        kept = [pair for pair in clear if pair.margin is None or pair.margin >= least]
        dropped["small_margin"] += len(clear) - len(kept)
        if most is not None and len(kept) > most:
            dropped["over_max_pairs"] += len(kept) - most
            kept = heapq.nsmallest(most, kept, key=lambda pair: group.draw("pair", *pair.texts))
        return sorted(kept, key=lambda pair: (-(pair.margin or 0.0), group.draw("pair", *pair.texts)))

    def _row(self, group: ScoredGroup, pair: Pair, weight: float) -> dict[str, Any]:
        chosen, rejected = pair.texts
        placed = pair.chosen.place >= 0 and pair.rejected.place >= 0
        row = {
            "prompt": pair.prompt or group.prompt,
            "chosen": chosen,
            "rejected": rejected,
            "margin": pair.margin,
            "weight": weight,
            "group": group.name or None,
            "rule": self.rule.name,
            "chosen_id": pair.chosen.id,
            "rejected_id": pair.rejected.id,
            "chosen_score": pair.chosen.score,
            "rejected_score": pair.rejected.score,
            "chosen_first": pair.chosen.place < pair.rejected.place if placed else None,
        }
        return row | {name: pair.more.get(name) for name in self.rule.columns}


def build_pairs(config: PairsConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Make preference pairs of scored answers, or go on with a job that was interrupted."""
    check_paths(config.input, config.output)
    scores = _opened(config, config.input)
    rows = LabelledRows(scores, _opened(config, config.rows), config) if config.rows else None
    source: RowSource = rows if rows is not None else scores
    seen = glance(source)
    if not seen.rows:
        raise ValueError(f"{config.input} holds no rows, so there is nothing to make pairs of")
    rule = rule_of(config.rule)
    layout = layout_of(config, rule, seen.columns, seen.rows)
    if rows is not None:
        layout = replace(layout, notes=(*rows.notes, *layout.notes))
    maker = PairMaker(rule, layout, config)
    return run_job(config, maker, group_column=layout.group, source=source, progress=progress)


def _opened(config: PairsConfig, name: str) -> Source:
    return config.open() if name == config.input else open_source(name, limit=config.max_row_mb << 20)
