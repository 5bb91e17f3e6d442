"""The options that all trainers share: model, files, folder, and how long, how fast and how precisely it trains."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Count, Options, Range
from adjudge.training.backbones import NGRAMS, Lora, ModelChoice

Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Schedule(Options, what="schedule option"):
    """How a model is trained.

    Attributes:
        epochs: times that every example is seen.
        learning_rate: the highest; 1e-6 to 2e-5 for whole models, about 1e-4 with LoRA, 1e-3 for small new ones.
        batch_size: examples of one optimizer step, on each process.
        micro_tokens: most tokens of one forward pass, padding included; a step is made of as many passes as that takes,
            and the gradient does not depend on it beyond rounding.  None for 16,384 on a GPU and 4,096 on a CPU.  A row
            that is longer makes a pass alone.
        warmup: share of the steps in which the learning rate rises; it is above 0 in the first, too.
        scheduler: "cosine", "linear", "constant_with_warmup", or another of `transformers.SchedulerType`.
        weight_decay: of AdamW.
        max_grad_norm: gradients are scaled down to this length; 0 leaves them.
        optimizer: a name of `transformers.training_args.OptimizerNames`.
        precision: "fp32" computes in 32 bits; "bf16" computes the body in bfloat16, with weights that are trained, the
            head and the loss in 32 bits; "auto" is "bf16" on a GPU that can, else "fp32".
        checkpointing: recompute activations in the backward pass instead of keeping them: less memory, a third slower.
        dropout: keep the dropout that the model was made with; most reward models are trained without.
        lora: train low-rank factors instead of the weights.
        save_steps: steps between checkpoints, from which an interrupted training resumes.
        keep_checkpoints: how many are kept, at least 2.
        eval_steps: steps between measurements on the held-out examples; 0 measures at the end only.
        log_steps: steps between lines of the log.
        report_to: integrations of `transformers` that get the log: "wandb", "tensorboard", ...; "none" is [].
    """

    epochs: Count = 1
    learning_rate: Annotated[float, Range(gt=0)] = 1e-5
    batch_size: Count = 64
    micro_tokens: Count | None = None
    warmup: Annotated[float, Range(ge=0, lt=1)] = 0.03
    scheduler: str = "cosine"
    weight_decay: Annotated[float, Range(ge=0)] = 0.0
    max_grad_norm: Annotated[float, Range(ge=0)] = 1.0
    optimizer: str = "adamw_torch"
    precision: Precision = "auto"
    checkpointing: bool = False
    dropout: bool = False
    lora: Lora | None = None
    save_steps: Count = 200
    keep_checkpoints: Annotated[int, Range(ge=2)] = 2  # the one before is all there is while the next is written
    eval_steps: Annotated[int, Range(ge=0)] = 0
    log_steps: Count = 10
    report_to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "report_to", tuple(name for name in self.report_to if name != "none"))

    def budget(self, device: str) -> int:
        """Return the most padded tokens of one forward pass on a device ("cpu", "cuda", ...)."""
        return self.micro_tokens or (4_096 if device == "cpu" else 16_384)

    def bf16(self, device: str) -> bool:
        """Return whether the body computes in bfloat16 on a device.

        Raises:
            ValueError: bfloat16 is asked for, and the GPU has none.
        """
        import torch

        able = device == "cuda" and torch.cuda.is_bf16_supported()
        if self.precision == "bf16" and device == "cuda" and not able:
            raise ValueError("schedule.precision is bf16, which this GPU does not compute; give fp32")
        return able if self.precision == "auto" else self.precision == "bf16"

    def check_report_to(self) -> None:
        """Look whether what the log is reported to is installed.

        Raises:
            ValueError: one is not, or is unknown to `transformers`.
        """
        integrations: Any = importlib.import_module("transformers.integrations")
        try:
            for integration in integrations.get_reporting_integration_callbacks(list(self.report_to)):
                integration()
        except (ValueError, ImportError, RuntimeError) as error:
            raise ValueError(f"schedule.report_to is {', '.join(self.report_to)}: {error}") from error

    def arguments(self, folder: Path, *, steps: int, seed: int) -> Any:
        """Return `transformers.TrainingArguments` for so many optimizer steps, with a folder for checkpoints.

        Raises:
            ValueError: the scheduler, the optimizer or an integration is unknown or not installed.
        """
        import torch
        from transformers import TrainingArguments

        rising = math.ceil(self.warmup * steps)
        options: Mapping[str, Any] = {
            "max_steps": steps,
            "per_device_train_batch_size": 1,  # an item of the data set is a whole batch
            "learning_rate": self.learning_rate,
            "warmup_steps": rising + bool(rising),  # `_StepTrainer` leaves out the one at 0
            "lr_scheduler_type": self.scheduler,
            "weight_decay": self.weight_decay,
            "max_grad_norm": self.max_grad_norm,
            "optim": self.optimizer,
            "save_strategy": "steps",
            "save_steps": self.save_steps,
            "save_total_limit": self.keep_checkpoints,
            "logging_steps": self.log_steps,
            "logging_nan_inf_filter": False,  # it would hide a loss that is not a number
            "report_to": list(self.report_to) or "none",
            "seed": seed,
            "use_cpu": not torch.accelerator.is_available(),  # said, so that several processes on CPUs find each other
            "remove_unused_columns": False,
            "label_names": [],
            "disable_tqdm": True,
            "dataloader_pin_memory": False,  # batches are nested, and small
            "ddp_find_unused_parameters": False,
        }
        try:
            return TrainingArguments(output_dir=str(folder), **options)
        except (ValueError, ImportError, RuntimeError) as error:
            problem = " ".join(str(error).split())[:300]
            raise ValueError(f"the schedule cannot be used: {problem}; correct the option named") from error


@dataclass(frozen=True, kw_only=True)
class FileChoice(Options, what="data option"):
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets.
        split: which part of a data set that has several; "train" without it.
        limit: only the first rows, so many; None for all.
        held_out: share of the examples that is measured and not trained on; whole prompts are held out.
        held_out_path: files to measure on instead; training examples that share a prompt with them are left out.
    """

    shorthand: ClassVar[str] = "path"

    path: tuple[str, ...]
    split: str = ""
    limit: Annotated[int, Range(ge=2, unit="rows")] | None = None
    held_out: Annotated[float, Range(gt=0, lt=1)] = 0.1
    held_out_path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.path or not all(self.path):
            raise ValueError("data.path is empty; name a file with training data")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """The options of every training.

    Attributes:
        model: which model it starts from.
        output: the folder it is saved to; checkpoints stand in its sub-folder `training`.
        max_length: most tokens of a prompt with its answer; longer examples are left out and counted.  The model's
            window, where that is shorter.
        schedule: how long, how fast and how precise.
        seed: of everything random.
    """

    model: ModelChoice
    output: str
    max_length: Annotated[int, Range(ge=2, unit="tokens")] = 2048
    schedule: Schedule = field(default_factory=Schedule)
    seed: Annotated[int, Range(ge=0, lt=2**32)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.output.strip():
            raise ValueError("output is empty; name the folder the model is saved to")

    def check_writes(self) -> None:
        """Raise `ValueError` if the model is one that writes nothing."""
        if self.model.name == NGRAMS:
            raise ValueError("model is ngrams, which writes nothing; give from_scratch: tiny, or a language model")
