"""The options of training a process reward model.

Not covered: how the training runs (`schedule`), and which model it starts from (`backbones`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.training.process_layout import StepLayout
from adjudge.reward_models.training.process_losses import Normalise
from adjudge.reward_models.training.schedule import Schedule, check_seed
from adjudge.reward_models.training.step_data import StepOptions
from adjudge.reward_models.training.step_data_formats import READERS
from adjudge.training.backbones import NGRAMS, ModelChoice

StepLossName = Literal["cross_entropy", "squared_error", "ranking"]
Objective = Literal["steps", "implicit"]
TooLong = Literal["drop", "cut"]


@dataclass(frozen=True, kw_only=True)
class StepChoice:
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets.
        format: of the rows (docs/training_steps.md); "auto" looks at the first row of each file.
        split: which part of a data set that has several; "train" without it.
        limit: only the first rows of each file, so many; None for all.
        held_out: share of the solutions that is measured and not trained on; whole problems are held out.
        held_out_path: files to measure on instead; training solutions of their problems are left out.
        labels: what becomes of labels that can be read in several ways.
        judged: files with a second opinion on the same solutions; only solutions on whose first error both agree are
            used.
    """

    shorthand: ClassVar[str] = "path"

    path: tuple[str, ...]
    format: str = "auto"
    split: str = ""
    limit: int | None = None
    held_out: float = 0.1
    held_out_path: tuple[str, ...] = ()
    labels: StepOptions = field(default_factory=StepOptions)
    judged: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject options out of range."""
        if not self.path or not all(self.path):
            raise ValueError("data.path is empty; name a file with step data")
        if not 0 < self.held_out < 1:
            raise ValueError(f"data.held_out is {self.held_out!r}; it is a share above 0 and below 1")
        if self.format != "auto" and self.format not in READERS:
            raise ValueError(f"data.format is {self.format!r}; give auto or one of {', '.join(READERS)}")
        if self.limit is not None and self.limit < 2:
            raise ValueError(f"data.limit is {self.limit!r}; it must be at least 2 rows, or left out")


@dataclass(frozen=True, kw_only=True)
class StepLossChoice:
    """What is minimised at the steps.

    Attributes:
        name: "cross_entropy" for hard and soft labels; "squared_error" for value heads; "ranking" orders the steps of a
            solution (PQM), and makes no probabilities.
        good: weight of right steps ("cross_entropy").
        bad: weight of wrong steps ("cross_entropy"); above 1 where they are rare, at the price of calibration.
        margin: between wrong steps and the others ("ranking").
    """

    shorthand: ClassVar[str] = "name"

    name: StepLossName = "cross_entropy"
    good: float = 1.0
    bad: float = 1.0
    margin: float = 4.0

    def __post_init__(self) -> None:
        """Reject weights that turn the loss around."""
        if self.name not in get_args(StepLossName):
            raise ValueError(f"loss.name is {self.name!r}; give one of {', '.join(get_args(StepLossName))}")
        for option in ("good", "bad"):
            if not 0 < getattr(self, option) < math.inf:
                raise ValueError(f"loss.{option} is {getattr(self, option)!r}; it must be above 0")
        if (self.good, self.bad) != (1.0, 1.0) and self.name != "cross_entropy":
            raise ValueError(f"loss.good and loss.bad weigh the cross-entropy, and loss.name is {self.name!r}")
        if not 0 <= self.margin < math.inf:
            raise ValueError(f"loss.margin is {self.margin!r}; it must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class StepHead:
    """What reads the steps.

    Attributes:
        two_class: two outputs with a softmax over them, as published models have; else one with a sigmoid.
        hidden: width of a hidden layer; 0 for none.  Only without one can other programs load the checkpoint.
        bias: whether the last layer has one.
    """

    two_class: bool = True
    hidden: int = 0
    bias: bool = True

    def labels(self, *, outcome: bool) -> tuple[str, ...]:
        """Return the names of the outputs."""
        steps = ("bad", "good") if self.two_class else ("good",)
        return (*steps, "outcome") if outcome else steps

    def config(self, *, outcome: bool) -> HeadConfig:
        """Return the head's shape."""
        return HeadConfig(
            kind="mlp" if self.hidden else "linear",
            hidden=self.hidden,
            outputs=len(self.labels(outcome=outcome)),
            bias=self.bias,
            pooling="tokens",
        )


@dataclass(frozen=True, kw_only=True)
class ProcessTraining:
    """How a process reward model is trained.

    Attributes:
        model: what it starts from.
        data: the solutions.
        output: the folder it is saved to; checkpoints stand in its sub-folder `training`.
        objective: "steps" learns labels of steps with a head; "implicit" learns labels of answers alone, as the
            log-ratio of a language model to its start (arXiv 2412.01981), which then scores every step.
        loss: of the steps.
        normalise: "solution" gives every solution the same weight; "step" every labelled step, so that long solutions
            count more.
        outcome: weight of the answer's label, read at the last step by an output of its own; 0 for none.
        beta: scale of the implicit reward.
        head: what reads the steps.
        layout: where they are read.
        too_long: a solution of more than `max_length` tokens is left out ("drop"), or loses its last steps ("cut"; a
            decoder reads a step without those behind it, so the labels that are left stay true).  Both are counted.
        max_length: most tokens of a problem with its solution; the model's window, where that is shorter.
        schedule: how long, how fast, how precise.
        seed: of the split, the new weights and the order.
    """

    model: ModelChoice
    data: StepChoice
    output: str
    objective: Objective = "steps"
    loss: StepLossChoice = field(default_factory=StepLossChoice)
    normalise: Normalise = "solution"
    outcome: float = 0.0
    beta: float = 0.05
    head: StepHead = field(default_factory=StepHead)
    layout: StepLayout = field(default_factory=StepLayout)
    too_long: TooLong = "drop"
    max_length: int = 4096
    schedule: Schedule = field(default_factory=Schedule)
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject options that contradict each other."""
        for option, known in (("objective", Objective), ("normalise", Normalise), ("too_long", TooLong)):
            if getattr(self, option) not in get_args(known):
                raise ValueError(f"{option} is {getattr(self, option)!r}; give one of {', '.join(get_args(known))}")
        if not self.output.strip():
            raise ValueError("output is empty; name the folder the model is saved to")
        if self.model.name == NGRAMS:
            self._check_ngrams()
        if not 0 <= self.outcome < math.inf:
            raise ValueError(f"outcome is {self.outcome!r}; it is a weight, and must be 0 or more")
        if not 0 < self.beta < math.inf:
            raise ValueError(f"beta is {self.beta!r}; it must be above 0")
        if self.max_length < 2:
            raise ValueError(f"max_length is {self.max_length!r}; it must be at least 2 tokens")
        check_seed(self.seed)
        if self.objective == "implicit" and (self.outcome or self.loss != StepLossChoice() or self.head != StepHead()):
            raise ValueError(
                "objective is implicit, which has no head and learns answers alone; leave out loss, head and outcome"
            )
        if self.objective == "implicit" and self.too_long == "cut":
            raise ValueError("objective is implicit, which learns whole answers; set too_long to drop")

    def _check_ngrams(self) -> None:
        plain = (self.head, self.layout, self.outcome) == (StepHead(), StepLayout(), 0.0)
        if self.objective != "steps" or self.loss.name != "cross_entropy" or not plain:
            raise ValueError(
                "model is ngrams, which learns labels of steps by cross-entropy and has no network; leave out "
                "objective, loss.name, outcome, head and layout"
            )
