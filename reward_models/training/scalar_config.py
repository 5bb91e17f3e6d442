"""The options of training a scalar reward model.

Not covered: the options that all trainers share (`schedule`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.scalar.chat import Reasoning
from adjudge.reward_models.training.loss_choice import LossChoice
from adjudge.reward_models.training.pair_readers import Format
from adjudge.reward_models.training.schedule import Schedule, check_seed
from adjudge.training.backbones import NGRAMS, ModelChoice

_TERMS = ("centering", "l2", "length", "consistency", "text")


@dataclass(frozen=True, kw_only=True)
class DataChoice:
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets (hub:NAME); see docs/training.md.
        format: of the rows; "auto" looks at the first one.
        columns: our name of a field to the column that holds it, where they differ.
        attributes: columns of ratings, in the order of the head's outputs.
        split: which part of a data set that has several; "train" without it.
        limit: only the first rows, so many; None for all.
        held_out: share of the examples that is measured and not trained on; whole prompts are held out.
        held_out_path: files to measure on instead; training examples that share a prompt with them are left out.
        ties: "use" them, or "drop" them (they are counted).
        reasoning: whether reasoning before an answer is left out ("strip") or read ("keep"); score as you train.
    """

    shorthand: ClassVar[str] = "path"

    path: tuple[str, ...]
    format: Format = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    split: str = ""
    limit: int | None = None
    held_out: float = 0.1
    held_out_path: tuple[str, ...] = ()
    ties: Literal["use", "drop"] = "use"
    reasoning: Reasoning = "strip"

    def __post_init__(self) -> None:
        """Reject options out of range."""
        if not self.path or not all(self.path):
            raise ValueError("data.path is empty; name a file with preferences")
        if not 0 < self.held_out < 1:
            raise ValueError(f"data.held_out is {self.held_out!r}; it is a share above 0 and below 1")
        if self.limit is not None and self.limit < 2:
            raise ValueError(f"data.limit is {self.limit!r}; it must be at least 2 rows, or left out")


@dataclass(frozen=True, kw_only=True)
class ScalarTraining:
    """How a scalar reward model is trained.

    Attributes:
        model: which model it starts from.
        data: what it learns from.
        output: the folder it is saved to; checkpoints stand in its sub-folder `training`.
        loss: what is minimised.
        regularizers: terms that are added, by weight: "centering", "l2", "length" (ODIN), "consistency" (needs
            paraphrases), "text" (GRM; the loss itself then counts 1 - weight).
        head: the head; for "length" linear with one output.
        max_length: most tokens of a prompt with its answer; longer examples are left out and counted.  The model's
            window, where that is shorter.
        schedule: how long and how fast.
        baselines: also fit the n-gram model on the training examples, to stand beside in the report.
        seed: of everything random.
    """

    model: ModelChoice
    data: DataChoice
    output: str
    loss: LossChoice = field(default_factory=LossChoice)
    regularizers: Mapping[str, float] = field(default_factory=dict)
    head: HeadConfig = field(default_factory=HeadConfig)
    max_length: int = 2048
    schedule: Schedule = field(default_factory=Schedule)
    baselines: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject options out of range, and those that contradict each other."""
        if not self.output.strip():
            raise ValueError("output is empty; name the folder the model is saved to")
        if self.max_length < 1:
            raise ValueError(f"max_length is {self.max_length!r}; it must be at least 1 token")
        check_seed(self.seed)
        self._check_terms()
        self.loss.check_head(self.head)
        if self.model.name == NGRAMS and (self.loss != LossChoice() or self.regularizers or self.head != HeadConfig()):
            raise ValueError("the model ngrams has a loss of its own (bt); leave out loss, regularizers and head")

    def _check_terms(self) -> None:
        for name, weight in self.regularizers.items():
            if name not in _TERMS:
                raise ValueError(f"unknown regularizer {name!r}; there are {', '.join(_TERMS)}")
            if not 0 < weight < float("inf"):
                raise ValueError(f"regularizers.{name} is {weight!r}; it must be above 0, or left out")
        if self.regularizers.get("text", 0) >= 1:
            raise ValueError(f"regularizers.text is {self.regularizers['text']!r}; it is a share, and must be below 1")
        if self.loss.rated and (odd := sorted(set(self.regularizers) - {"l2"})):
            raise ValueError(
                f"the regularizer {odd[0]!r} is of preferences, and the loss {self.loss.name!r} of ratings"
            )
        if self.loss.name == "plackett_luce" and (odd := sorted({"centering", "l2"} & set(self.regularizers))):
            raise ValueError(f"the regularizer {odd[0]!r} is of pairs, and plackett_luce of lists; use the loss bt")
        if "length" in self.regularizers and (self.head.kind, self.head.outputs, self.head.bias) != (
            "linear",
            1,
            False,
        ):
            raise ValueError("the regularizer 'length' needs a linear head with one output and no bias")
