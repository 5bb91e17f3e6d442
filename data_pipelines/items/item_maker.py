"""What the five makers of this folder share: the model that they ask, columns, fingerprints, the gate.

The object that a model is asked for repeats the key of the prompt's last block, which no text in the prompt can hold.
So an object that a passage holds, and that a model copies, is not taken for its answer.

An engine that is gone stops the job; whatever befalls a single prompt is a reason on the unit's account: `unparsable`,
`truncated`, `too_long`, `engine_error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from adjudge.data_pipelines.items.config import AskingConfig, GatedConfig
from adjudge.data_pipelines.items.gate import Gate, Labelled, Separates, Trial, labelled_of
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.engines.model_digest import is_folder
from adjudge.io.columns import Choice
from adjudge.io.jobs.engines import engine_named, stop_if_gone
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of
from adjudge.io.values import Text
from adjudge.prompts.asking import Answer, Reader, Retry, ask, cost_of
from adjudge.prompts.reading import json_object
from adjudge.prompts.template import Value, load_template
from adjudge.protocol import EMPTY, Message, Scorer
from adjudge.scoring import registry

KEY = "key"
"""Under which an answer repeats the prompt's key."""

LONGEST = 1_000
"""Characters of one item; rubrics, nuggets and principles are sentences."""


def keyed_object(text: str, nonce: str, keys: Mapping[str, type]) -> dict[str, Any] | None:
    """Return the last JSON object of a text if it has the key and exactly the declared others, or None."""
    answer = json_object(text, {KEY: str, **keys})
    return answer if answer is not None and nonce and answer.pop(KEY) == nonce else None


def numbered_turns(role: str, texts: Sequence[str]) -> list[Message]:
    """Return texts as turns of one block, each headed by its role and number, and by the block's key."""
    return [{"role": f"{role}_{number}", "content": text} for number, text in enumerate(texts, start=1)]


def is_text(value: Any, longest: int = LONGEST) -> bool:
    """Return whether a value is a text that is neither blank nor longer than allowed."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= longest


def texts_reader(
    name: str, most: int, *, labels: Sequence[str] = (), count: int | None = None
) -> Reader[tuple[str, ...]]:
    """Return what reads `{"key": .., NAME: ["..", ..]}`; it gives None for anything else.

    There may be `most` texts, and must be `count` where that is given; they are of `labels` where there are some.
    """

    def read(text: str, nonce: str = "", /) -> tuple[str, ...] | None:
        answer = keyed_object(text, nonce, {name: list})
        if answer is None or len(answer[name]) > most or not all(map(is_text, answer[name])):
            return None
        texts = tuple(one.strip() for one in answer[name])
        allowed = not labels or set(texts) <= set(labels)
        return texts if allowed and count in (None, len(texts)) else None

    return read


def records_reader(
    name: str, most: int, fields: Sequence[str], *, labels: Mapping[str, Sequence[str]] = EMPTY
) -> Reader[tuple[dict[str, str], ...]]:
    """Return what reads `{"key": .., NAME: [{FIELD: "..", ..}, ..]}`; it gives None for anything else.

    There may be `most` records with exactly these fields, each a text, and of a field's `labels` where there are some.
    """

    def read(text: str, nonce: str = "", /) -> tuple[dict[str, str], ...] | None:
        answer = keyed_object(text, nonce, {name: list})
        if answer is None or len(answer[name]) > most:
            return None
        records = []
        for given in answer[name]:
            if not isinstance(given, dict) or set(given) != set(fields) or not all(map(is_text, given.values())):
                return None
            records.append({field: given[field].strip() for field in fields})
        fine = all(record[field] in allowed for record in records for field, allowed in labels.items())
        return tuple(records) if fine else None

    return read


C = TypeVar("C", bound=AskingConfig)
T = TypeVar("T")

_REASONS = {"judge_unparsable": "unparsable", "judge_truncated": "truncated"}
_AGAIN = 0.7  # temperature of further attempts: at 0 a model would say the same


@dataclass(frozen=True, kw_only=True)
class Model:
    """An engine and how it is asked."""

    engine: Engine
    sampling: Sampling
    attempts: int = 3

    @classmethod
    def of(cls, config: AskingConfig, engine: Engine | None = None) -> Model:
        """Return the model that a config names, or one around a given engine."""
        sampling = Sampling(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed)
        engine = engine if engine is not None else engine_named(config.engine)
        return cls(engine=engine, sampling=sampling, attempts=config.attempts)

    @property
    def called(self) -> str:
        """The engine's kind and the model's name; of a folder, its own name alone."""
        model = self.engine.model
        return f"{self.engine.name}:{Path(model).name if is_folder(model) else model}"

    async def ask(
        self, template: str, values: Sequence[Mapping[str, Value]], read: Reader[T], account: Account
    ) -> list[T | None]:
        """Return what was read from each answer, in order; None where a reason went on the account."""
        special = tuple(getattr(self.engine, "special_tokens", ()))
        made = load_template(template)
        prompts = [made.render(one, special=special) for one in values]
        retry = Retry(attempts=self.attempts, temperature=max(_AGAIN, self.sampling.temperature))
        answers = await ask(self.engine, prompts, self.sampling, read, retry=retry)
        account.cost += cost_of(answers)
        account.counts["asked"] += len(prompts)
        return [self._value(answer, account) for answer in answers]

    async def ask_one(self, template: str, values: Mapping[str, Value], read: Reader[T], account: Account) -> T:
        """Return what was read from the answer to one prompt.

        Raises:
            DroppedError: nothing was read.
        """
        (value,) = await self.ask(template, [values], read, account)
        if value is None:
            raise DroppedError("no_answer")
        return value

    def _value(self, answer: Answer[T] | Fault, account: Account) -> T | None:
        if isinstance(answer, Answer):
            return answer.value
        stop_if_gone(self.engine, answer)
        account.drop("too_long" if answer.too_long else _REASONS.get(answer.reason, "engine_error"))
        return None


@dataclass(frozen=True, kw_only=True)
class ItemMaker(RowMaker[C]):
    """Asks a model for items, and keeps those that stand up to the checks."""

    version: ClassVar[str] = "1"
    templates: ClassVar[tuple[str, ...]]
    reads: ClassVar[tuple[str, ...]] = ("prompt",)
    tried_with: ClassVar[tuple[str, Mapping[str, Any]]] = ("nuggets", {"metric": "all"})
    """Name and options of the scorer that judges single items at the gate."""

    parts: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Its further fields, each with what makes it of the config; what they are decides about the rows."""

    config: C
    model: Model
    gate: Gate | None = None

    @classmethod
    def run(
        cls,
        config: C,
        *,
        progress: JobProgress | None = None,
        engine: Engine | None = None,
        judge: Scorer | None = None,
    ) -> JobReport:
        """Make the items of a file, or go on with a job that was interrupted.

        Args:
            config: the options.
            progress: who is told how far the job is.
            engine: who writes, in place of what `config.engine` names.
            judge: judges single items at the quality gate, in place of the scorer in `tried_with`.
        """
        model = Model.of(config, engine)
        parts = {name: made(config) for name, made in cls.parts.items()}
        maker = cls(config=config, model=model, gate=cls.gate_of(config, model, judge), **parts)
        return run_job(config, maker, group_column=config.group_column, progress=progress)

    @classmethod
    def gate_of(cls, config: C, model: Model, judge: Scorer | None) -> Gate | None:
        """Return the gate that a config asks for; None if it names no labelled responses."""
        if not isinstance(config, GatedConfig) or not config.good_column:
            return None
        if judge is None:
            scorer, options = cls.tried_with
            engine = engine_named(config.judge, "--judge") if config.judge else model.engine
            judge = registry.load({scorer: {"engine": engine, **options}})
        return Gate(scorer=judge, rule=Separates(least=config.min_separation, bound=config.min_bound))

    @property
    def fingerprint(self) -> str:
        """Name, version, options, templates, engine and gate, as 16 hex digits after the name."""
        options = {name: value for name, value in self.config.own_options().items() if name not in ("engine", "judge")}
        return fingerprint_of(
            self.name,
            self.name,
            self.version,
            options,
            [load_template(template).digest for template in self.templates],
            self.model.engine.fingerprint,
            self.gate.fingerprint if self.gate else "",
            *(getattr(self, name).fingerprint for name in self.parts),
        )

    @property
    def card_facts(self) -> Mapping[str, Any]:
        """What the card of the output says about models, prompts and the gate."""
        facts: dict[str, Any] = {
            "model": self.model.called,
            "prompts": ", ".join(f"{one.name}@{one.version}" for one in map(load_template, self.templates)),
        }
        if self.gate is not None:
            facts["gate"] = {"scorer": self.gate.scorer.fingerprint, "rule": repr(self.gate.rule)}
        return facts

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Raise `ValueError` unless the columns are there; return how the input was understood."""
        config = self.config
        named = {role: getattr(config, f"{role}_column") for role in (*self.reads, "group", "good", "bad")}
        Choice(columns, first, closed=bool(columns)).check(named)
        if config.good_column:
            return ()
        return ("quality gate: none, for no column of good and bad responses is named (--good-column, --bad-column)",)

    async def kept(
        self, items: Sequence[dict[str, Any]], references: Sequence[Any], prompt: Text, unit: Unit, account: Account
    ) -> list[dict[str, Any]]:
        """Return the items that pass the gate, each with its trial under "gate"; all of them where there is no gate.

        `references` are those with which the gate's scorer judges each item alone; `unit` holds the labelled responses.

        Raises:
            DroppedError: none passes.
        """
        if self.gate is None:
            return list(items)
        passed = await self.passed(items, references, prompt, labelled_of(unit, self.config, account), account)
        return [{**item, "gate": trial.to_dict()} for item, trial in passed]

    async def passed(
        self, items: Sequence[T], references: Sequence[Any], prompt: Text, responses: Labelled, account: Account
    ) -> list[tuple[T, Trial]]:
        """Return the items that pass the gate on some responses, with their trials; otherwise as `kept`."""
        assert self.gate is not None, "items are tried by a gate"
        passed = []
        trials = await self.gate.tried(references, prompt, responses, account)
        for item, (trial, why) in zip(items, trials, strict=True):
            if why:
                account.drop(why)
            else:
                passed.append((item, trial))
        if not passed:
            raise DroppedError("no_item_kept")
        return passed
