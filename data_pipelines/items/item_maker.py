"""What the five makers of this folder share: columns, fingerprints, and what becomes of a unit that is no use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from adjudge.data_pipelines.items.config import AskingConfig, GatedConfig
from adjudge.data_pipelines.items.gate import Gate, Labelled, Separates
from adjudge.data_pipelines.items.model import Model
from adjudge.engines.interface import Engine
from adjudge.io.columns import Choice
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of
from adjudge.prompts.template import load_template
from adjudge.protocol import Message, Scorer
from adjudge.scoring import registry

C = TypeVar("C", bound=AskingConfig)


@dataclass(frozen=True, kw_only=True)
class ItemMaker(RowMaker[C]):
    """Asks a model for items, and keeps those that stand up to the checks."""

    version: ClassVar[str] = "1"
    templates: ClassVar[tuple[str, ...]]
    reads: ClassVar[tuple[str, ...]] = ("prompt",)
    tried_with: ClassVar[tuple[str, Mapping[str, Any]]] = ("nuggets", {"metric": "all"})
    """Name and options of the scorer that judges single items at the gate."""

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
        maker = cls(config=config, model=model, gate=cls.gate_of(config, model, judge), **cls.parts_of(config))
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

    @classmethod
    def parts_of(cls, config: C) -> dict[str, Any]:
        """Return the fields of the maker beside these."""
        del config
        return {}

    @property
    def fingerprint(self) -> str:
        """Name, version, options, templates, engine and gate, as 16 hex digits after the name."""
        options = {name: value for name, value in self.config.own_options().items() if name not in ("engine", "judge")}
        parts = [
            self.name,
            self.version,
            options,
            [load_template(template).digest for template in self.templates],
            self.model.engine.fingerprint,
            self.gate.fingerprint if self.gate else "",
            *self.further_fingerprints(),
        ]
        return fingerprint_of(self.name, *parts)

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

    def further_fingerprints(self) -> Sequence[str]:
        """Return what else decides about the rows."""
        return ()

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Raise `ValueError` unless the columns are there; return how the input was understood."""
        config = self.config
        named = {role: getattr(config, f"{role}_column") for role in (*self.reads, "group", "good", "bad")}
        Choice(columns, first, closed=bool(columns)).check(named)
        if config.good_column:
            return ()
        return ("quality gate: none, for no column of good and bad responses is named (--good-column, --bad-column)",)

    async def kept(
        self,
        items: Sequence[dict[str, Any]],
        references: Sequence[Any],
        prompt: str | Sequence[Message],
        responses: Labelled,
        account: Account,
    ) -> list[dict[str, Any]]:
        """Return the items that pass the gate, each with its trial under "gate"; all of them where there is no gate.

        Args:
            items: the items.
            references: for each, the reference with which the gate's scorer judges it alone.
            prompt: what the responses answer.
            responses: the labelled responses.
            account: takes the reasons of those left out.

        Raises:
            DroppedError: none passes.
        """
        if self.gate is None:
            return list(items)
        found = []
        trials = await self.gate.tried(references, prompt, responses, account)
        for item, (trial, why) in zip(items, trials, strict=True):
            if why:
                account.drop(why)
            else:
                found.append({**item, "gate": trial.to_dict()})
        if not found:
            raise DroppedError("no_item_kept")
        return found
