r"""From a theorem to a group of statements.

A label alone can be guessed in half of all cases.  So the statements of a theorem share a group: an evaluation that
counts a theorem as solved only where all of its group are right gives a constant answer nothing.

Not covered: proofs, and answers; `theorem_variants` checks the boxed word.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from adjudge import registry, wire
from adjudge.data_pipelines.tasks.theorems.conclusion import conclusion_of
from adjudge.data_pipelines.tasks.theorems.config import TheoremsConfig
from adjudge.data_pipelines.tasks.theorems.rules import variants_by_rule
from adjudge.data_pipelines.tasks.theorems.variant import LABELS, Variant, statement_key
from adjudge.data_pipelines.tasks.theorems.writing import VariantWriter
from adjudge.engines.interface import Engine, Sampling
from adjudge.io.columns import Choice, Column
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.protocol import NO_COST, Cost

_VERSION = "1"
_LONGEST: Final = 20_000  # characters
_ASK: Final = (
    "Prove or disprove the statement below. Reason step by step, then give the verdict: "
    "\\boxed{proved} if it is true, \\boxed{disproved} if it is false."
)
_TRUE = {"proved", "true", "1"}
_FALSE = {"disproved", "false", "0"}


class TheoremMaker:
    """Makes the statements of a theorem."""

    name = "theorems"
    grouped = False
    fields: Mapping[str, Kind] = {
        "prompt": "text",
        "reference": "text",
        "scorer": "text",
        "group": "text",
        "group_size": "whole",
        "statement": "text",
        "source": "text",
        "form": "text",
        "theorem": "text",
    }

    def __init__(self, config: TheoremsConfig, *, engine: Engine | None = None) -> None:
        """Load the scorer, and the engine if one is named and none is given.

        Raises:
            ValueError: the engine's spec is malformed, or there are neither rules nor an engine.
        """
        self.config = config
        self._theorem = Column(config.theorem_column)
        self._label = Column(config.label_column) if config.label_column else None
        self._math = registry.load({"math": {"undecided": "failed"}})
        if engine is None and config.engine:
            engine = engine_named(config.engine)
        sampling = Sampling(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed)
        self._writer: VariantWriter | None = None
        if engine is None and config.no_rules:
            raise ValueError("--no-rules without an --engine leaves nothing that could make variants; name a model")
        if engine is not None:
            self._writer = VariantWriter(engine=engine, count=config.variants, votes=config.votes, sampling=sampling)

    @property
    def fingerprint(self) -> str:
        """Options, the scorer and the model."""
        config = self.config
        options = [
            config.theorem_column,
            config.label_column,
            config.no_rules,
            config.most,
            config.unbalanced,
            config.seed,
        ]
        asked = self._writer.fingerprint if self._writer else ""
        text = wire.dumps([_VERSION, options, self._math.fingerprint, asked])
        return f"{self.name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """See that the columns are there.

        Raises:
            ValueError: one is not.
        """
        Choice(columns, first).check({"theorem": self.config.theorem_column, "label": self.config.label_column})
        made_by = [*([] if self.config.no_rules else ["rules"]), *([self._writer.engine.model] if self._writer else [])]
        return (f"variants by {' and '.join(made_by)}",)

    async def make(self, unit: Unit) -> Made:
        """Return the statements of a theorem, or why there are none."""
        (row,) = unit.rows
        theorem = self._theorem.of(row)
        if not isinstance(theorem, str) or not theorem.strip():
            return Made(dropped={"no_theorem": 1})
        if len(theorem) > _LONGEST:
            return Made(dropped={"too_long": 1})
        label = self._given(row)
        if label not in ("", *LABELS):
            return Made(dropped={"unknown_label": 1})
        theorem = theorem.strip()
        dropped: Counter[str] = Counter()
        random = Random(f"{self.config.seed} {theorem}".encode("utf-8", "surrogatepass"))
        pairs, confirmed, cost = await self._ruled(theorem, label, random, dropped)
        label = confirmed or label
        told: list[Variant] = []
        if self._writer and label != "disproved":
            written = await self._writer.write(theorem)
            told, cost = written.variants, cost + written.cost
            dropped += written.dropped
        chosen = _chosen(pairs, told, theorem, label, self.config, random)
        if {one.label for one in chosen} != set(LABELS):
            dropped["one_label"] += 1
            return Made(dropped=dict(dropped), cost=cost)
        return Made(rows=_rows(chosen, theorem), dropped=dict(dropped), cost=cost)

    async def _ruled(
        self, theorem: str, label: str, random: Random, dropped: Counter[str]
    ) -> tuple[list[tuple[Variant, Variant]], str, Cost]:
        found = conclusion_of(theorem) if not self.config.no_rules and label != "disproved" else None
        if found is None:
            return [], "", NO_COST
        ruled = await variants_by_rule(found, label == "proved", self._math, random)
        if ruled.refused:
            dropped[f"rules_{ruled.refused}"] += 1
        return list(ruled.pairs), ruled.label, ruled.cost

    def _given(self, row: Mapping[str, Any]) -> str:
        if self._label is None:
            return ""
        value = self._label.of(row)
        text = str(int(value) if value in (0.0, 1.0) else value).strip().lower()  # a column of numbers has 1.0
        return "proved" if text in _TRUE else "disproved" if text in _FALSE else text or "?"


def _chosen(
    pairs: Sequence[tuple[Variant, Variant]],
    told: Sequence[Variant],
    theorem: str,
    label: str,
    config: TheoremsConfig,
    random: Random,
) -> list[Variant]:
    """Return the statements to keep, in an order that says nothing about their labels.

    Pairs by rule come as pairs.  Of the others as many true as false ones are kept, unless `unbalanced` is set; the
    theorem itself is one of them where its label is known and no rule states it.
    """
    picked = random.sample(list(pairs), min(len(pairs), config.most // 2))
    found = [one for pair in picked for one in pair]
    keys = {one.key for one in found}
    others = [one for one in told if one.key not in keys]
    if label in LABELS and statement_key(theorem) not in {*keys, *(one.key for one in others)}:
        original: Variant = Variant(theorem, "proved" if label == "proved" else "disproved", "theorem")
        others.insert(0, original)
    room = config.most - len(found)
    if not config.unbalanced:
        by_label = [[one for one in others if one.label == label] for label in LABELS]
        size = min(room // 2, *map(len, by_label))
        others = [one for mine in by_label for one in mine[:size]]
    found += others[:room]
    random.shuffle(found)
    return found


def _rows(chosen: Sequence[Variant], theorem: str) -> tuple[Mapping[str, Any], ...]:
    group = hashlib.sha256(statement_key(theorem).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return tuple(
        {
            "prompt": f"{_ASK}\n\n{one.statement}",
            "reference": one.label,
            "scorer": "theorem_variants",
            "group": group,
            "group_size": len(chosen),
            "statement": one.statement,
            "source": one.source,
            "form": one.form or None,
            "theorem": theorem,
        }
        for one in chosen
    )


def make_theorems(
    config: TheoremsConfig, *, progress: JobProgress | None = None, engine: Engine | None = None
) -> JobReport:
    """Make statements to prove or disprove of the theorems of a file.

    Args:
        config: input, output and options.
        progress: who is told how far the job is.
        engine: a model in place of `config.engine`; it stays open.

    Raises:
        ValueError: a mistake in the options or the columns; nothing was written.
        JobError: the model is gone; the same call goes on.
    """
    return run_job(config, TheoremMaker(config, engine=engine), progress=progress)
