"""The training loop: the Hugging Face `Trainer`, over a plan of batches that is made beforehand.

An item of its data set is a whole optimizer step, cut into as many forward passes as memory asks for; the gradient is
that of the whole step.  What a checkpoint holds is what is trained (with LoRA the factors alone), the optimizer, the
schedule and the state of all random numbers.  A training that is killed at any time and resumed ends, on a CPU, with
the very bits of one that ran through.

Not covered: FSDP and DeepSpeed (several GPUs work through `accelerate launch`, each with the whole model), and choosing
the best checkpoint, which would make the held-out numbers too good.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from adjudge.reward_models.training.schedule import Schedule

Micro = Mapping[str, Any]
"""The arguments of one forward pass."""

Collate = Callable[[Sequence[int]], Sequence[Micro]]
"""Places of a step's examples to the forward passes that the step is made of."""

_WEIGHTS = "trained.safetensors"
_WHOLE = "whole.json"
_RUN = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a training is: optimizer steps done and in all.

    Attributes:
        numbers: the latest of "loss", "learning_rate" and whatever the model and the evaluation report.
    """

    step: int
    steps: int
    numbers: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class LoopResult:
    """What a training did: steps and lines of the log, those before a resumption included; seconds of this process.

    Attributes:
        resumed: the step it was resumed at; 0 if it was not.
    """

    steps: int
    resumed: int
    seconds: float
    history: tuple[Mapping[str, float], ...]


def train_steps(
    model: nn.Module,
    plan: Sequence[Sequence[int]],
    collate: Collate,
    schedule: Schedule,
    folder: Path,
    *,
    seed: int,
    resume: bool,
    facts: Mapping[str, Any],
    evaluate: Callable[[], Mapping[str, float]],
    progress: Callable[[Progress], None] | None,
) -> LoopResult:
    """Train a model in place.

    Args:
        model: `model(**micro)` returns a dict with "loss" and "numbers", detached values to log by name.  The losses of
            a step's forward passes are added, and so are their numbers: they must be shares of the step's.
        plan: the examples of each step, of all epochs.
        collate: makes the forward passes of a step; tensors on the CPU.
        schedule: how.
        folder: for checkpoints.
        seed: of everything random.
        resume: go on from the newest whole checkpoint, if there is one.
        facts: what must be the same when a training resumes, as plain JSON data.
        evaluate: measures the model, every `schedule.eval_steps`; must use no random numbers.
        progress: told after every step.

    Raises:
        ValueError: there are checkpoints and `resume` is false, the facts differ, or the loss is not a number any more.
    """
    start = _checkpoint(folder, resume=resume, facts=json.loads(json.dumps(facts)))
    steps = math.ceil(len(plan) / process_state().num_processes)
    arguments = schedule.arguments(folder, steps=steps, seed=seed)
    # Several GPUs are for `accelerate launch`: DataParallel cannot cut steps.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    trainer = _StepTrainer(
        model=model,
        args=arguments,
        train_dataset=_Plan(plan, collate),
        data_collator=lambda items: {"micros": items[0]},
    )
    trainer.add_callback(_Between(trainer, steps, schedule.eval_steps, evaluate, progress))
    trainer.remove_callback(PrinterCallback)
    began = time.monotonic()
    trainer.train(resume_from_checkpoint=str(start) if start else None)
    # Without the Trainer's epochs, which count passes over the plan, and what JSON cannot hold.
    lines = [
        {name: value for name, value in line.items() if name != "epoch" and math.isfinite(value)}
        for line in trainer.state.log_history
        if "train_runtime" not in line
    ]
    return LoopResult(
        steps=trainer.state.global_step,
        resumed=_step(start) if start else 0,
        seconds=time.monotonic() - began,
        history=tuple(lines),
    )


def process_state() -> PartialState:
    """Return which process this is of how many, and on which device; several CPU processes (torchrun) count too."""
    return PartialState(cpu=not torch.accelerator.is_available())


@contextlib.contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed all random numbers inside, and put the caller's back afterwards."""
    kept = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])


class _Plan(torch.utils.data.Dataset[Sequence[Micro]]):
    def __init__(self, plan: Sequence[Sequence[int]], collate: Collate) -> None:
        self._plan = plan
        self._collate = collate

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, index: int) -> Sequence[Micro]:
        return self._collate(self._plan[index])


class _StepTrainer(Trainer):
    """The `Trainer`, whose batches are lists of forward passes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sums: dict[str, float] = {}
        self._counted = 0

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        data: Any = train_dataset if train_dataset is not None else self.train_dataset
        return torch.utils.data.SequentialSampler(data)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Return the schedule without its step at 0, in which nothing would be learnt (`LearningConfig.share`)."""
        rises = self.args.warmup_steps > 0
        scheduler = super().create_scheduler(num_training_steps + rises, optimizer)
        if rises and isinstance(scheduler, torch.optim.lr_scheduler.LambdaLR):
            with warnings.catch_warnings(action="ignore"):  # that no step of the optimizer came before
                scheduler.step()
        return scheduler

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Run the forward and backward passes of one step."""
        model.train()
        micros: Any = self._prepare_inputs(inputs)["micros"]
        total = torch.zeros((), device=self.args.device)
        for number, micro in enumerate(micros, start=1):
            quiet = contextlib.nullcontext() if number == len(micros) else self.accelerator.no_sync(model)
            with quiet:
                said = model(**micro)
                self.accelerator.backward(said["loss"])
            total += said["loss"].detach()
            for name, value in said["numbers"].items():
                self._sums[name] = self._sums.get(name, 0.0) + float(value)
        self._counted += 1
        if not bool(torch.isfinite(total)):
            raise ValueError(
                f"the loss of step {self.state.global_step + 1} is {float(total)}; lower schedule.learning_rate, or "
                "look for labels that are far out of range"
            )
        return total

    def log(self, logs: dict[str, float], *more: Any, **named: Any) -> None:
        """Add the model's numbers since the last line."""
        if "loss" in logs and self._counted:
            logs = {**logs, **{name: value / self._counted for name, value in self._sums.items()}}
            self._sums, self._counted = {}, 0
        super().log(logs, *more, **named)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        held = {name: value.detach().cpu().contiguous() for name, value in self._trained().items()}
        save_file(held, folder / _WEIGHTS)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        saved = load_file(Path(resume_from_checkpoint) / _WEIGHTS)
        wanted = self._trained()
        if saved.keys() != wanted.keys():
            odd = sorted(saved.keys() ^ wanted.keys())
            raise ValueError(f"the checkpoint {resume_from_checkpoint!r} is of another model: {', '.join(odd[:3])}")
        with torch.no_grad():
            for name, value in wanted.items():
                value.copy_(saved[name])

    def _trained(self) -> dict[str, Tensor]:
        """What training changes: parameters that get gradients, and buffers that are saved."""
        model: Any = self.accelerator.unwrap_model(self.model)
        own = {name: value for name, value in model.named_parameters() if value.requires_grad}
        saved = model.state_dict(keep_vars=True)
        return own | {name: value for name, value in model.named_buffers() if name in saved}

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            step = self.state.global_step
            home = Path(str(self.args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{step}"
            _write(home / _WHOLE, {"step": step})


class _Between(TrainerCallback):
    """Measures the model between steps, and hands progress on."""

    def __init__(
        self,
        trainer: Trainer,
        steps: int,
        every: int,
        evaluate: Callable[[], Mapping[str, float]],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._trainer, self._steps, self._every = trainer, steps, every
        self._evaluate, self._progress = evaluate, progress
        self._numbers: dict[str, float] = {}

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        self._numbers |= {name: float(value) for name, value in (logs or {}).items() if isinstance(value, int | float)}

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._progress is not None:
            self._progress(Progress(step=state.global_step, steps=self._steps, numbers=dict(self._numbers)))
        if self._every and state.global_step % self._every == 0:
            self._trainer.log({f"held_out_{name}": value for name, value in self._evaluate().items()})


def _checkpoint(folder: Path, *, resume: bool, facts: Mapping[str, Any]) -> Path | None:
    """The checkpoint to go on from, after a look at whether it belongs to this training."""
    whole = sorted(folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*/{_WHOLE}"), key=lambda path: _step(path.parent))
    run = folder / _RUN
    known = json.loads(run.read_text(encoding="utf-8")) if run.is_file() else None
    if whole and not resume:
        raise ValueError(
            f"{str(folder)!r} holds checkpoints of an earlier training; resume it (--resume), name another output, or "
            "delete the folder"
        )
    if whole and known is not None and known != facts:
        odd = sorted(name for name in {*known, *facts} if known.get(name) != facts.get(name))
        raise ValueError(
            f"the training in {str(folder)!r} was begun with other options or data ({', '.join(odd)}); resume it with "
            "what it was begun with, or name another output"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not whole and process_state().is_main_process:
        _write(run, facts)
    return whole[-1].parent if whole else None


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _write(path: Path, record: Mapping[str, Any]) -> None:
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(record, indent=2), encoding="utf-8")
    draft.replace(path)
