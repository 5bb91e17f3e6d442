"""From a theorem to a group of statements.

A label alone can be guessed in half of all cases.  So the statements of a theorem share a group: an evaluation that
counts a theorem as solved only where all of its group are right gives a constant answer nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Final

from adjudge.data_pipelines.tasks.config import TheoremsConfig
from adjudge.data_pipelines.tasks.theorem_rules import (
    LABELS,
    Pairs,
    Variant,
    conclusion_of,
    statement_key,
    variants_by_rule,
)
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.io.jobs.engines import engine_named, stop_if_gone
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of
from adjudge.prompts.asking import Answer, NoVerdict, Retry, ask_often, cost_of
from adjudge.prompts.reading import LabelReader, json_value
from adjudge.prompts.template import load_template
from adjudge.scoring import registry

_ONCE = Retry(attempts=1)
_LONGEST_VARIANT = 5_000  # characters of a statement
_SHORTEST = 15
_MIN_BLANKS = 0.05  # share of white space; DeepTheorem's gate against text without words
_MAX_REPEATED = 300  # length over distinct characters; DeepTheorem's gate against repetition


@dataclass(frozen=True, kw_only=True)
class _VariantWriter:
    """A model that writes variants and votes on them."""

    engine: Engine
    count: int
    votes: int
    sampling: Sampling

    @property
    def fingerprint(self) -> str:
        prompts = [load_template(f"data_pipelines/tasks/{name}").digest for name in ("variants", "verdict")]
        return f"{self.engine.fingerprint} {prompts} {self.count} {self.votes} {self.sampling}"

    async def write(self, theorem: str, account: Account) -> list[Variant]:
        special = tuple(getattr(self.engine, "special_tokens", ()))  # which no theorem may hold
        values = {"theorem": theorem, "count": str(self.count)}
        rendered = load_template("data_pipelines/tasks/variants").render(values, special=special)
        ((answer,),) = await ask_often(self.engine, [rendered], self.sampling, _read, retry=_ONCE)
        account.cost += cost_of([answer])
        stop_if_gone(self.engine, answer)
        if isinstance(answer, Fault):
            account.drop(_reason(answer))
            return []
        template = {statement_key(turn["content"]) for turn in rendered.messages}
        distinct: dict[str, Variant] = {}
        for one in answer.value:
            fault = _fault(one, theorem, template) or ("repeated_variant" if one.key in distinct else "")
            if fault:
                account.drop(fault)
            else:
                distinct[one.key] = one
        return await self._agreed(list(distinct.values()), special, account)

    async def _agreed(self, variants: list[Variant], special: tuple[str, ...], account: Account) -> list[Variant]:
        """Return the variants whose label all votes share."""
        if not self.votes or not variants:
            return variants
        template = load_template("data_pipelines/tasks/verdict")
        prompts = [template.render({"statement": one.statement}, special=special) for one in variants]
        sampling = Sampling(
            n=self.votes,
            max_tokens=self.sampling.max_tokens,
            temperature=self.sampling.temperature or (0.7 if self.votes > 1 else 0.0),
            seed=self.sampling.seed + 1,
        )
        kept: list[Variant] = []
        reader = LabelReader(form=template.form, labels=template.labels)
        for one, votes in zip(
            variants, await ask_often(self.engine, prompts, sampling, reader, retry=_ONCE), strict=True
        ):
            account.cost += cost_of(votes)
            for vote in votes:
                stop_if_gone(self.engine, vote)
            given = [vote.value for vote in votes if isinstance(vote, Answer)]
            if len(given) < self.votes:
                account.drop("vote_unread")
            elif any(value != one.label for value in given):
                account.drop("label_disputed")
            else:
                kept.append(one)
        return kept


def _reason(fault: Fault) -> str:
    """Return why a model's answer cannot be used."""
    if isinstance(fault, NoVerdict):
        return "variants_truncated" if fault.reason == "judge_truncated" else "variants_unparsable"
    return "too_long" if fault.too_long else "engine_error"


def _read(text: str, nonce: str = "", /) -> list[Variant] | None:
    variants = []
    for item in json_value(text, list) or ():
        if not isinstance(item, dict) or set(item) != {"statement", "label"} or item["label"] not in LABELS:
            return None
        if not isinstance(item["statement"], str):
            return None
        variants.append(Variant(item["statement"].strip(), item["label"], "model"))
    return variants or None


def _fault(one: Variant, theorem: str, template: set[str]) -> str:
    """Return why a statement is none, "" where it is one."""
    text = one.statement
    if one.key == statement_key(theorem):
        return "echo"
    if any(one.key in asked for asked in template):
        return "prompt_echo"
    if not _SHORTEST <= len(text) <= _LONGEST_VARIANT:
        return "bad_length"
    if sum(letter.isspace() for letter in text) < _MIN_BLANKS * len(text) or len(text) > _MAX_REPEATED * len(set(text)):
        return "no_text"
    return ""


_VERSION = "1"
_LONGEST: Final = 20_000  # characters
_ASK: Final = (
    "Prove or disprove the statement below. Reason step by step, then give the verdict: "
    "\\boxed{proved} if it is true, \\boxed{disproved} if it is false."
)
_TRUE = {"proved", "true", "1"}
_FALSE = {"disproved", "false", "0"}


class _TheoremMaker(RowMaker[TheoremsConfig]):
    """Makes the statements of a theorem.

    Raises:
        ValueError: the engine's spec is malformed, or there are neither rules nor an engine.
    """

    name = "theorems"
    reads = ("theorem", "label")
    fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "text", "reference": "text", "scorer": "text", "group": "text", "group_size": "whole",
        "statement": "text", "source": "text", "form": "text", "theorem": "text",
    }  # fmt: skip

    def __init__(self, config: TheoremsConfig, *, engine: Engine | None = None) -> None:
        super().__init__(config)
        self._math = registry.load({"math": {"undecided": "failed"}})
        if engine is None and config.engine:
            engine = engine_named(config.engine)
        sampling = Sampling(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed)
        self._writer: _VariantWriter | None = None
        if engine is None and config.no_rules:
            raise ValueError("--no-rules without an --engine leaves nothing that could make variants; name a model")
        if engine is not None:
            self._writer = _VariantWriter(engine=engine, count=config.variants, votes=config.votes, sampling=sampling)

    @property
    def fingerprint(self) -> str:
        config = self.config
        options = [
            config.theorem_column, config.label_column, config.no_rules, config.max_statements,
            config.unbalanced, config.seed,
        ]  # fmt: skip
        asked = self._writer.fingerprint if self._writer else ""
        return fingerprint_of(self.name, _VERSION, options, self._math.fingerprint, asked)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        self.check_columns(columns, first)
        made_by = [*([] if self.config.no_rules else ["rules"]), *([self._writer.engine.model] if self._writer else [])]
        return (f"variants by {' and '.join(made_by)}",)

    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
        (row,) = unit.rows
        theorem = self.cell(row, "theorem")
        if not isinstance(theorem, str) or not theorem.strip():
            raise DroppedError("no_theorem")
        if len(theorem) > _LONGEST:
            raise DroppedError("too_long")
        label = self._given(row)
        if label not in ("", *LABELS):
            raise DroppedError("unknown_label")
        theorem = theorem.strip()
        random = Random(f"{self.config.seed} {theorem}".encode("utf-8", "surrogatepass"))
        pairs: Pairs = ()
        conclusion = conclusion_of(theorem) if not self.config.no_rules and label != "disproved" else None
        if conclusion is not None:
            pairs, confirmed = await variants_by_rule(conclusion, label == "proved", self._math, random, account)
            label = "proved" if confirmed else label
        written: list[Variant] = []
        if self._writer and label != "disproved":
            written = await self._writer.write(theorem, account)
        chosen = _chosen(pairs, written, theorem, label, self.config, random)
        if {one.label for one in chosen} != set(LABELS):
            raise DroppedError("one_label")
        return _rows(chosen, theorem)

    def _given(self, row: Mapping[str, Any]) -> str:
        if not self.config.label_column:
            return ""
        value = self._columns["label"].of(row)
        text = str(int(value) if value in (0.0, 1.0) else value).strip().lower()  # a column of numbers has 1.0
        return "proved" if text in _TRUE else "disproved" if text in _FALSE else text or "?"


def _chosen(
    pairs: Pairs,
    written: Sequence[Variant],
    theorem: str,
    label: str,
    config: TheoremsConfig,
    random: Random,
) -> list[Variant]:
    """Return the statements to keep, in an order that says nothing about their labels.

    Pairs by rule come as pairs.  Of the others as many true as false ones are kept, unless `unbalanced` is set; the
    theorem itself is one of them where its label is known and no rule states it.
    """
    picked = random.sample(pairs, min(len(pairs), config.max_statements // 2))
    kept = [one for pair in picked for one in pair]
    keys = {one.key for one in kept}
    others = [one for one in written if one.key not in keys]
    if label in LABELS and statement_key(theorem) not in {*keys, *(one.key for one in others)}:
        others.insert(0, Variant(theorem, "proved" if label == "proved" else "disproved", "theorem"))
    room = config.max_statements - len(kept)
    if not config.unbalanced:
        by_label = [[one for one in others if one.label == label] for label in LABELS]
        size = min(room // 2, *map(len, by_label))
        others = [one for mine in by_label for one in mine[:size]]
    kept += others[:room]
    random.shuffle(kept)
    return kept


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
    """Make statements to prove or disprove of the theorems of a file."""
    return run_job(config, _TheoremMaker(config, engine=engine), progress=progress)
