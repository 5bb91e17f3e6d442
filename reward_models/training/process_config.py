"""The options of training a process reward model, and where the steps of a solution are read: the formats of scorers.

With a *marker* (`<extra_0>`, a token of its own), every step is followed by it and read there.  Without one, every step
is followed by a separator and read at its last token, steps tokenized one by one: as one text, many tokenizers join a
full stop and the line end behind it, and the place of a step would depend on what follows.  Texts are made harmless as
they are when scored, so no text can hold a marker or end a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Fault
from adjudge.options import Options, Range
from adjudge.reward_models.process.formats import MarkerFormat, StepEndFormat
from adjudge.reward_models.process.rows import RowTokens, StepRow
from adjudge.reward_models.process.step_format import StepFormat
from adjudge.reward_models.training.schedule import FileChoice, TrainingOptions
from adjudge.training.backbones import NGRAMS
from adjudge.training.step_data import StepOptions
from adjudge.training.step_formats import STEP_READERS


@dataclass(frozen=True, kw_only=True)
class StepLayout:
    """How a solution is laid out.

    Attributes:
        marker: the token behind each step, at which the step is read; added to a tokenizer that does not have it.  ""
            for none.
        separator: the text behind each step where there is no marker.  It also stands between the problem and the first
            step of plain texts.
        chat: whether the problem and the steps are turns of the model's chat template; with a marker they always are.
    """

    marker: str = "<extra_0>"
    separator: str = "\n\n"
    chat: bool = True

    def __post_init__(self) -> None:
        if not self.marker and not self.separator:
            raise ValueError("layout.marker and layout.separator are both empty; steps need something between them")
        if self.marker and not self.chat:
            raise ValueError(
                f"layout.chat is false, and layout.marker {self.marker!r} stands in chats; set marker to ''"
            )

    def format(self, *, two_class: bool = True) -> StepFormat:
        """Return the scorer's format for this layout and a head of two outputs, or of one with a sigmoid."""
        if self.marker:
            return MarkerFormat(marker=self.marker, system="")
        before = "chat" if self.chat else "{problem}" + self.separator
        return StepEndFormat(before=before, separator=self.separator, output="class" if two_class else "sigmoid")


def lay_out(tokens: RowTokens, format: StepFormat, prompt: str, steps: Sequence[str]) -> StepRow:
    """Return the tokens of a solution and the places of its steps; blanks around them do not count.

    Raises:
        ValueError: the chat template refuses the problem, or the tokenizer cannot keep steps and markers apart.
    """
    row = format.row(tokens, prompt, [step.strip() for step in steps])
    if isinstance(row, Fault):
        raise ValueError(row.detail)
    if len(row.places) != len(steps):
        raise ValueError(f"there are {len(steps)} steps and {len(row.places)} places to read them at")
    return row


StepLossName = Literal["cross_entropy", "squared_error", "ranking"]
Objective = Literal["steps", "implicit"]
TooLong = Literal["drop", "cut"]
Normalize = Literal["step", "solution"]


@dataclass(frozen=True, kw_only=True)
class StepChoice(FileChoice):
    """What is learnt from, and what is held out.

    Attributes:
        format: of the rows (docs/training.md); "auto" looks at the first row of each file.
        limit: only the first rows of each file, so many; None for all.
        held_out: share of the solutions that is measured and not trained on; whole problems are held out.
        held_out_path: files to measure on instead; training solutions of their problems are left out.
        labels: what becomes of labels that can be read in several ways.
        judged: files with a second opinion on the same solutions; only solutions on whose first error both agree are
            used.
    """

    format: str = "auto"
    labels: StepOptions = field(default_factory=StepOptions)
    judged: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format != "auto" and self.format not in STEP_READERS:
            raise ValueError(f"data.format is {self.format!r}; give auto or one of {', '.join(STEP_READERS)}")


@dataclass(frozen=True, kw_only=True)
class StepLossChoice(Options, what="loss option"):
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
    good: Annotated[float, Range(gt=0)] = 1.0
    bad: Annotated[float, Range(gt=0)] = 1.0
    margin: Annotated[float, Range(ge=0)] = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.good, self.bad) != (1.0, 1.0) and self.name != "cross_entropy":
            raise ValueError(f"loss.good and loss.bad weigh the cross-entropy, and loss.name is {self.name!r}")


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
class ProcessTraining(TrainingOptions):
    """How a process reward model is trained.

    Attributes:
        data: the solutions.
        objective: "steps" learns labels of steps with a head; "implicit" learns labels of answers alone, as the
            log-ratio of a language model to its start (arXiv 2412.01981), which then scores every step.
        loss: of the steps.
        normalize: "solution" gives every solution the same weight; "step" every labelled step, so that long solutions
            count more.
        outcome: weight of the answer's label, read at the last step by an output of its own; 0 for none.
        beta: scale of the implicit reward.
        head: what reads the steps.
        layout: where they are read.
        too_long: a solution of more than `max_length` tokens is left out ("drop"), or loses its last steps ("cut"; a
            decoder reads a step without those behind it, so the labels that are left stay true).  Both are counted.
        max_length: most tokens of a problem with its solution; the model's window, where that is shorter.
        seed: of the split, the new weights and the order.
    """

    data: StepChoice
    objective: Objective = "steps"
    loss: StepLossChoice = field(default_factory=StepLossChoice)
    normalize: Normalize = "solution"
    outcome: Annotated[float, Range(ge=0)] = 0.0
    beta: Annotated[float, Range(gt=0)] = 0.05
    head: StepHead = field(default_factory=StepHead)
    layout: StepLayout = field(default_factory=StepLayout)
    too_long: TooLong = "drop"
    max_length: Annotated[int, Range(ge=2, unit="tokens")] = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model.name == NGRAMS:
            self._check_ngrams()
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
