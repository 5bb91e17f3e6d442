"""What turns groups of scored answers into rows of pairs.

| reason | what is left out |
|---|---|
| `one_answer` | a prompt with fewer than two answers that can be used |
| `no_pair` | a prompt in which the rule finds no pair: all scores are equal, say |
| `equal_texts` | a pair whose sides differ in white space alone |
| `repeated` | a pair that is there already |
| `contradictory` | pairs of which both directions were found; neither is kept |
| `small_margin`, `over_max_pairs` | as the options say |
| `other_part` | a prompt on the other side of the split |

Reasons of single answers are listed in `reading`.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.data_pipelines.pairs.answers import Pair, ScoredGroup, side_of, squeezed
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.layout import LabelledRows, Layout, layout_of
from adjudge.data_pipelines.pairs.reading import GroupReader
from adjudge.data_pipelines.pairs.rule import Rule, rule_of
from adjudge.io.jobs.groups import RowSource
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.opening import check_paths, glance
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.source import Source, open_source

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
