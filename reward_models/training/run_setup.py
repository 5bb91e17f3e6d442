"""The frame of every training: nothing is done twice, randomness is its own, and what must not change is written down.

Not covered: what is learnt, and from what; each kind of training has files of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from adjudge.engines.checkpoint_notes import template_digest
from adjudge.reward_models.training.report import Kind, Measures, TrainingReport
from adjudge.reward_models.training.rows import batch_plan, said_of
from adjudge.reward_models.training.schedule import TrainingOptions
from adjudge.training.backbones import Opened, libraries, open_backbone, with_lora
from adjudge.training.config_file import plain_config

if TYPE_CHECKING:
    from adjudge.reward_models.training.loop import Collate, LoopResult, Progress

_WORK = "training"  # the sub-folder with checkpoints
_FREE = ("save_steps", "keep_checkpoints", "eval_steps", "log_steps", "report_to")  # may change when a training resumes


C = TypeVar("C", bound=TrainingOptions)


@dataclass(frozen=True, kw_only=True)
class RunSetup(Generic[C]):
    """A training that has read its data and not begun.

    Attributes:
        config: its options.
        output: the folder of the result.
        state: accelerate's, which knows the device and the other processes.
        resume: go on from the newest checkpoint.
        progress: told after every step.
    """

    config: C
    output: Path
    state: Any
    resume: bool = False
    progress: Callable[[Progress], None] | None = None

    @property
    def bf16(self) -> bool:
        """Whether the body computes in bfloat16."""
        return self.config.schedule.bf16(self.state.device.type)

    @property
    def budget(self) -> int:
        """Most tokens of a forward pass, padding included."""
        return self.config.schedule.budget(self.state.device.type)

    def opened(self, kind: Literal["body", "causal"], texts: Sequence[str]) -> Opened:
        """Return the model to start from.

        Args:
            kind: "causal" keeps the language head around the body.
            texts: what a new model learns its tokens from: those that are trained on, never held-out ones.  It is kept
                beside the result, under a name made of what it depends on.
        """
        config = self.config
        key = [sorted(texts), config.seed, plain_config(config.model)]
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]
        with self.state.main_process_first():
            return open_backbone(
                config.model,
                kind=kind,
                texts=texts,
                folder=self.output / f"{_WORK}_model_{name}",
                seed=config.seed,
                dtype="bfloat16" if config.schedule.lora is not None and self.bf16 else "float32",
                dropout=config.schedule.dropout,
            )

    def limit(self, opened: Opened) -> int:
        """Return the most tokens of a row."""
        return min(self.config.max_length, opened.window)

    def trainable(self, whole: Any) -> Any:
        """Return a model as it is trained: with low-rank factors, or computing activations again, if asked for."""
        schedule = self.config.schedule
        found = whole if schedule.lora is None else with_lora(whole, schedule.lora)
        if schedule.checkpointing:
            whole.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return found

    def merged(self, trained: Any) -> Any:
        """Return what `trainable` returned as a plain model again."""
        return trained.merge_and_unload() if self.config.schedule.lora is not None else trained

    def train(
        self,
        model: Any,
        lengths: Sequence[int],
        collate: Collate,
        opened: Opened,
        *,
        same: Sequence[str],
        data: str,
        measured: Callable[[], Measures],
    ) -> LoopResult:
        """Train a model in place.

        Args:
            model: as `loop.train_steps` takes it.
            lengths: of the examples, in tokens.
            collate: makes the forward passes of a step.
            opened: what the model was made from.
            same: names of options beside the schedule's that must be the same when the training resumes.
            data: a digest of what is trained on.
            measured: measures the model.
        """
        from adjudge.reward_models.training.loop import train_steps

        config, record = self.config, plain_config(self.config)
        schedule = {f"schedule.{name}": value for name, value in record["schedule"].items() if name not in _FREE}
        facts = {name: record[name] for name in ("model", "seed", *same)} | schedule
        reasoning = record["data"].get("reasoning")
        template = template_digest(opened.tokenizer.chat_template or "")
        facts |= {"max_length": self.limit(opened), "template": template, "reasoning": reasoning, "data": data}
        return train_steps(
            model,
            batch_plan(lengths, config.schedule.batch_size, epochs=config.schedule.epochs, seed=config.seed),
            collate,
            config.schedule,
            self.output / _WORK,
            seed=config.seed,
            resume=self.resume,
            facts=facts,
            evaluate=lambda: {name: one.known for name, one in measured()[0].items()},
            progress=self.progress,
        )

    def said(self, model: Any, lengths: Sequence[int], read: Callable[[list[int], Any], Any]) -> list[Any]:
        """Return what a model says of rows, in order; see `rows.said_of`."""
        return said_of(model, lengths, read, budget=self.budget, device=self.state.device)

    def report(
        self,
        what: Kind,
        result: LoopResult,
        measures: Measures,
        data: Mapping[str, Any],
        warnings: Iterable[str] = (),
    ) -> TrainingReport:
        """Return the report of a finished training."""
        return TrainingReport(
            what=what,
            model=self.config.model.label,
            output=str(self.output),
            steps=result.steps,
            resumed=result.resumed,
            seconds=round(result.seconds, 3),
            data=data,
            metrics=measures[0],
            baselines=measures[1],
            config=plain_config(self.config),
            warnings=tuple(warnings),
            history=result.history,
        )

    def saved(
        self, report: TrainingReport, save: Callable[[], object], use: Callable[[], Mapping[str, str]]
    ) -> TrainingReport:
        """Save a model with its report and card, on the main process alone, and return the report.

        Args:
            report: of the training.
            save: writes the model into the output folder.
            use: the sections of the card that say how the model is used, made once the model is there.
        """
        if self.state.is_main_process:
            save()
            report = replace(report, sections=use())
            report.write(self.output)
        self.state.wait_for_everyone()
        return report


def run_training(
    config: C,
    train: Callable[[RunSetup[C]], TrainingReport],
    *,
    resume: bool,
    progress: Callable[[Progress], None] | None,
) -> TrainingReport:
    """Return the report of a training with randomness of its own.

    Args:
        config: its options.
        train: what it is.
        resume: go on with an interrupted training.
        progress: told after every step.

    Raises:
        ValueError: a library is missing, or `train` raised it.
    """
    libraries()
    config.schedule.check_report_to()
    from adjudge.reward_models.training.loop import own_randomness, process_state

    output = output_of(config)
    output.mkdir(parents=True, exist_ok=True)
    with own_randomness(config.seed):
        return train(RunSetup(config=config, output=output, state=process_state(), resume=resume, progress=progress))


def output_of(config: TrainingOptions) -> Path:
    """Return the folder of the result."""
    return Path(config.output).expanduser()


def finished(config: TrainingOptions, *, resume: bool) -> TrainingReport | None:
    """Return the report of the training if it has ended before, which is not repeated; None if it has not.

    Raises:
        ValueError: the output folder holds a model, and this is no resumption, or that model had other options.
    """
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
    schedule = {f"schedule.{name}": value for name, value in record.get("schedule", {}).items() if name not in _FREE}
    return {name: value for name, value in record.items() if name not in ("output", "schedule")} | schedule


def require(rows: Sequence[Any], reasons: Mapping[str, int], which: str) -> None:
    """Raise `ValueError` saying why, if no row of a kind ("training", "held-out") is left."""
    if not rows:
        often = sorted(reasons.items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{count} x {reason}" for reason, count in often) or "there were none"
        raise ValueError(f"no {which} example is left ({shown}); raise max_length, or give other data")
