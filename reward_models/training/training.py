"""The one course of every training: open a model, make rows of examples, run the loop, measure, save and describe.

Nothing is done twice, randomness is its own, and what must not change is written down.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from adjudge.engines.checkpoint_notes import CheckpointNotes, Normalizer, template_digest
from adjudge.reward_models.scalar.chat import Reasoning
from adjudge.reward_models.training.report import Kind, Measures, TrainingReport
from adjudge.reward_models.training.rows import Batches, FinishedChats, Unit, batch_plan, logprobs_of, said_of
from adjudge.reward_models.training.schedule import TrainingOptions
from adjudge.training.backbones import Opened, libraries, open_backbone, with_lora
from adjudge.training.config_file import plain_config
from adjudge.training.data_files import Grouped

if TYPE_CHECKING:
    from torch import Tensor

    from adjudge.reward_models.training.held_out import Numbers
    from adjudge.reward_models.training.loop import LoopResult, Progress
    from adjudge.reward_models.training.policy_objective import SpanModel
    from adjudge.reward_models.training.rows import Span

_WORK = "training"  # the sub-folder with checkpoints
_FREE = ("save_steps", "keep_checkpoints", "eval_steps", "log_steps", "report_to")  # may change when a training resumes

C = TypeVar("C", bound=TrainingOptions)
E = TypeVar("E", bound=Grouped)


@dataclass(frozen=True, kw_only=True)
class Split(Generic[E]):
    """What is trained on and what is held out.

    Attributes:
        train: examples to learn from.
        held_out: examples to measure on; they share no prompt with the others.
        facts: counts, reasons and digests, as plain JSON data, for the report.
        digest: 16 hex digits of the data.
        attributes: names of the ratings; () for anything else.
    """

    train: Sequence[E]
    held_out: Sequence[E]
    facts: Mapping[str, Any]
    digest: str
    attributes: tuple[str, ...] = ()


class Training(ABC, Generic[C, E]):
    """A training that has read its data; a subclass says what it learns.

    Attributes:
        what: the kind of model.
        same: names of options beside the model's and the schedule's that must be the same when a training resumes.
        measured_on: what the report calls the number of held-out examples.
        opened: the model it starts from.
        limit: most tokens of a row.
        train, held: the examples as rows.
        warnings: what people should know, one sentence each.
    """

    what: ClassVar[Kind]
    same: ClassVar[tuple[str, ...]]
    measured_on: ClassVar[str] = "measured_on"

    def __init__(self, config: C, data: Split[E], *, resume: bool, progress: Callable[[Progress], None] | None):
        from adjudge.reward_models.training.loop import process_state

        self.config = config
        self.data = data
        self.output = output_of(config)
        self.warnings: tuple[str, ...] = ()
        self._resume = resume
        self._progress = progress
        self._state: Any = process_state()
        self.device = self._state.device
        self.is_main = self._state.is_main_process
        self.bf16 = config.schedule.bf16(self.device.type)
        self.budget = config.schedule.budget(self.device.type)

    @abstractmethod
    def texts(self) -> list[str]:
        """Return what a new model learns its tokens from: texts that are trained on, never held-out ones."""

    @abstractmethod
    def prepare(self) -> None:
        """Get the tokenizer ready, and what turns examples into rows."""

    @abstractmethod
    def units(self, examples: Sequence[E], *, training: bool) -> tuple[list[Unit[E]], Counter[str]]:
        """Return examples as rows, and how many were left out, by reason."""

    @abstractmethod
    def model(self) -> Any:
        """Return what is trained, as `loop.train_steps` takes it."""

    @abstractmethod
    def batches(self) -> Batches[E]:
        """Return what makes the forward passes of steps."""

    @abstractmethod
    def measures(self, model: Any) -> Measures:
        """Return what a model reaches on held-out examples, and what trivial rules reach."""

    @abstractmethod
    def merge(self, model: Any) -> Any:
        """Return a trained model without low-rank factors."""

    @abstractmethod
    def save(self, model: Any, report: TrainingReport) -> None:
        """Write a trained model into the output folder."""

    @abstractmethod
    def use(self) -> Mapping[str, str]:
        """Return the sections of the card that say how the model is used, once it is saved."""

    def kind(self) -> Literal["body", "causal"]:
        """Return what is opened; "causal" keeps the language head around the body."""
        return "causal"

    def final_measures(self, model: Any) -> Measures:
        """Return what is measured once, at the end."""
        return self.measures(model)

    def counts(self) -> dict[str, Any]:
        """Return further facts of the report."""
        return {}

    def run(self) -> TrainingReport:
        """Train, measure and save."""
        self.opened = self._opened()
        self.limit = min(self.config.max_length, self.opened.window)
        self.prepare()
        self.train, dropped = self.units(self.data.train, training=True)
        self.held, lost = self.units(self.data.held_out, training=False)
        _require(self.train, dropped, "training")
        _require(self.held, lost, "held-out")
        model = self.model()
        result = self._trained(model)
        model = self.merge(model)
        measures = self.final_measures(model)
        report = TrainingReport(
            what=self.what,
            model=self.config.model.label,
            output=str(self.output),
            steps=result.steps,
            resumed=result.resumed,
            seconds=round(result.seconds, 3),
            data={
                **self.data.facts,
                "trained_on": len(self.train),
                self.measured_on: len(self.held),
                "left_out_of_training": dict(dropped),
                "left_out_of_held_out": dict(lost),
                "max_length": self.limit,
                **self.counts(),
            },
            metrics=measures[0],
            baselines=measures[1],
            config=plain_config(self.config),
            warnings=self.warnings,
            history=result.history,
        )
        if self.is_main:
            self.save(model, report)
            report = replace(report, sections=self.use())
            report.write(self.output)
        self._state.wait_for_everyone()
        return report

    def _opened(self) -> Opened:
        """The model to start from; a new one is kept beside the result, under a name made of what it depends on."""
        config, texts = self.config, self.texts()
        key = [sorted(texts), config.seed, plain_config(config.model)]
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]
        with self._state.main_process_first():
            return open_backbone(
                config.model,
                kind=self.kind(),
                texts=texts,
                folder=self.output / f"{_WORK}_model_{name}",
                seed=config.seed,
                dtype="bfloat16" if config.schedule.lora is not None and self.bf16 else "float32",
                dropout=config.schedule.dropout,
            )

    def _trained(self, model: Any) -> LoopResult:
        from adjudge.reward_models.training.loop import train_steps

        config, record = self.config, plain_config(self.config)
        facts = {name: record[name] for name in ("model", "seed", *self.same)} | _schedule(record)
        facts |= {
            "max_length": self.limit,
            "template": template_digest(self.opened.tokenizer.chat_template or ""),
            "reasoning": record["data"].get("reasoning"),
            "data": self.data.digest,
        }
        lengths = [unit.length for unit in self.train]
        return train_steps(
            model,
            batch_plan(lengths, config.schedule.batch_size, epochs=config.schedule.epochs, seed=config.seed),
            self.batches(),
            config.schedule,
            self.output / _WORK,
            seed=config.seed,
            resume=self._resume,
            facts=facts,
            evaluate=lambda: {name: one.known for name, one in self.measures(model)[0].items()},
            progress=self._progress,
        )

    def finished_chats(self, reasoning: Reasoning = "strip") -> FinishedChats:
        """Return what makes rows of chats; what is odd about the template becomes warnings."""
        opened = self.opened
        chats = FinishedChats(opened.tokenizer, model=opened.name, max_length=self.limit, reasoning=reasoning)
        self.warnings = (*chats.warnings, *self.warnings)
        return chats

    def trainable(self, whole: Any) -> Any:
        """Return a model as it is trained: with low-rank factors, or computing activations again, if asked for."""
        schedule = self.config.schedule
        trained = whole if schedule.lora is None else with_lora(whole, schedule.lora)
        if schedule.checkpointing:
            whole.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return trained

    def merged(self, trained: Any) -> Any:
        """Return what `trainable` returned as a plain model again; in 32 bits, as bfloat16 loses small steps."""
        return trained.float().merge_and_unload() if self.config.schedule.lora is not None else trained

    def said(
        self,
        model: Any,
        rows: Sequence[Sequence[int]],
        read: Callable[..., Tensor],
        more: Callable[[list[int]], dict[str, Tensor]] | None = None,
    ) -> list[Any]:
        """Return what a model says of rows, in order; see `rows.said_of`."""
        return said_of(model, rows, read, budget=self.budget, device=self.device, more=more)

    def logprobs(self, model: SpanModel, spans: Sequence[Span]) -> Numbers:
        """Return the summed log-probabilities of responses, (n,)."""
        return logprobs_of(model, spans, budget=self.budget, device=self.device)

    def save_plain(self, model: Any, folder: Path) -> None:
        """Write a model of `transformers` with its tokenizer."""
        model.save_pretrained(folder)
        self.opened.tokenizer.save_pretrained(folder)

    def notes(self, report: TrainingReport, rewards: Numbers | None = None, **more: Any) -> CheckpointNotes:
        """Return the notes of a checkpoint, with the scale of the rewards of held-out responses if it has one."""
        spread = 0.0 if rewards is None else float(rewards.std())
        given: dict[str, Any] = {
            "max_length": self.limit,
            "template": template_digest(self.opened.tokenizer.chat_template or ""),
            "reasoning": plain_config(self.config)["data"].get("reasoning"),
            "normalizer": Normalizer(float(np.mean(rewards)), spread) if rewards is not None and spread > 0 else None,
            "trained": report.facts(),
        }
        return CheckpointNotes(**{**given, **more})


Make = Callable[..., Training[C, E]]


def run_training(
    config: C,
    read: Callable[[], Split[E]],
    make: Make[C, E],
    *,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    ngrams: Callable[[Split[E]], TrainingReport] | None = None,
) -> TrainingReport:
    """Return the report of a training, which has randomness of its own.

    Args:
        config: its options.
        read: reads the data.
        make: makes the training of config, data, `resume` and `progress`.
        resume: go on with an interrupted training; one that has finished is not repeated.
        progress: told after every step.
        ngrams: trains the n-gram model in its place, where that is asked for.

    Raises:
        ValueError: the configuration, the data or the model cannot be used, or a library is missing; the message says
            which, and what to do.
    """
    if done := _finished(config, resume=resume):
        return done
    data = read()
    if ngrams is not None:
        return ngrams(data)
    libraries()
    config.schedule.check_report_to()
    from adjudge.reward_models.training.loop import own_randomness

    output_of(config).mkdir(parents=True, exist_ok=True)
    with own_randomness(config.seed):
        return make(config, data, resume=resume, progress=progress).run()


def output_of(config: TrainingOptions) -> Path:
    """Return the folder of the result."""
    return Path(config.output).expanduser()


def _finished(config: TrainingOptions, *, resume: bool) -> TrainingReport | None:
    """The report of the training if it has ended before, which is not repeated."""
    done = TrainingReport.read(output_of(config))
    if done is None:
        return None
    if not resume:
        raise ValueError(f"output is {config.output!r}, which holds a trained model; name another folder, or delete it")
    was, now = _binding(done.config), _binding(plain_config(config))
    if odd := sorted(name for name in {*was, *now} if was.get(name) != now.get(name)):
        raise ValueError(
            f"output is {config.output!r}, which holds a model that was trained with other options ({', '.join(odd)}); "
            "name another folder, or delete it"
        )
    return done


def _binding(record: Mapping[str, Any]) -> dict[str, Any]:
    """The options that another model would come of."""
    return {name: value for name, value in record.items() if name not in ("output", "schedule")} | _schedule(record)


def _schedule(record: Mapping[str, Any]) -> dict[str, Any]:
    return {f"schedule.{name}": value for name, value in record.get("schedule", {}).items() if name not in _FREE}


def _require(units: Sequence[Any], reasons: Mapping[str, int], which: str) -> None:
    """Raise `ValueError` saying why, if no example of a kind is left."""
    if not units:
        often = sorted(reasons.items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{count} x {reason}" for reason, count in often) or "there were none"
        raise ValueError(f"no {which} example is left ({shown}); raise max_length, or give other data")
