"""The options of training a scalar reward model: data, loss, head, and what the loss asks of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, ClassVar, Literal

from adjudge.engines.head_config import HeadConfig
from adjudge.options import Options, Range
from adjudge.reward_models.scalar.chat import Reasoning
from adjudge.reward_models.training.schedule import FileChoice, TrainingOptions
from adjudge.training.backbones import NGRAMS
from adjudge.training.examples import Example, Format, Pair, Ranking, Rating

LossName = Literal[
    "bt",
    "margin",
    "scaled",
    "soft",
    "tempered",
    "hinge",
    "focal",
    "margin_mse",
    "rao_kupper",
    "davidson",
    "plackett_luce",
    "purm",
    "sampled_bt",
    "regression",
    "bce",
    "gaussian_nll",
    "pinball",
    "multi_label",
]

# The options that each loss reads; a value for another is a mistake.
_OPTIONS: Mapping[LossName, tuple[str, ...]] = {
    "margin": ("margin",),
    "scaled": ("margin",),
    "soft": ("smoothing",),
    "tempered": ("temperature",),
    "hinge": ("margin",),
    "focal": ("gamma",),
    "margin_mse": ("margin",),
    "rao_kupper": ("threshold", "learn_ties"),
    "davidson": ("log_nu", "learn_ties"),
    "regression": ("weights",),
}
RATED: tuple[LossName, ...] = ("bce", "regression", "gaussian_nll", "pinball", "multi_label")
"""Losses of ratings; all others are of preferences."""

_OF_TIES: frozenset[LossName] = frozenset({"rao_kupper", "davidson", "soft"})
_OF_MARGINS: frozenset[LossName] = frozenset({"margin", "scaled", "hinge", "margin_mse"})
_MEMBERED: frozenset[LossName] = frozenset({"purm", "sampled_bt"})
"""Losses for which several outputs of a Gaussian head are members, each with a mean and a deviation of its own."""

_HEADS: Mapping[LossName, tuple[str, ...]] = {
    "purm": ("gaussian",),
    "sampled_bt": ("gaussian",),
    "gaussian_nll": ("gaussian",),
    "pinball": ("quantile",),
    "regression": ("linear", "mlp"),
    "bce": ("linear", "mlp", "multi"),
    "multi_label": ("linear", "mlp"),
}


@dataclass(frozen=True, kw_only=True)
class LossChoice(Options, what="loss option"):
    """The loss, with its options.

    Attributes:
        name: see the table in docs/training.md.
        margin: of pairs that bring none ("margin", "hinge", "margin_mse"), and their strength ("scaled"); None where
            every pair must bring its own.
        smoothing: chance that a plain label is wrong ("soft").
        temperature: by which differences are divided ("tempered").
        gamma: how strongly pairs that are right are played down ("focal").
        threshold: rewards nearer than this are more likely tied than not ("rao_kupper"); above 0.
        log_nu: logarithm of the weight of a tie ("davidson").
        learn_ties: learn the threshold or log_nu too, from the value given.
        weights: of the attributes ("regression"); () for equal ones.
        bootstrap: members of an ensemble ("multi", or a Gaussian head with several outputs) see each example 0, 1, 2,
            ... times, as in a resample of the data, so that they come to differ; without it they differ by their first
            weights alone.
    """

    shorthand: ClassVar[str] = "name"

    name: LossName = "bt"
    margin: float | None = None
    smoothing: Annotated[float, Range(ge=0, lt=0.5)] = 0.0
    temperature: Annotated[float, Range(gt=0)] = 1.0
    gamma: Annotated[float, Range(ge=0)] = 2.0
    threshold: Annotated[float, Range(gt=0)] = 0.5
    log_nu: float = 0.0
    learn_ties: bool = False
    weights: tuple[float, ...] = ()
    bootstrap: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        read = ("name", "bootstrap", *_OPTIONS.get(self.name, ()))
        for item in fields(self):
            if item.name not in read and getattr(self, item.name) != item.default:
                options = ", ".join(_OPTIONS.get(self.name, ())) or "none"
                raise ValueError(f"the loss {self.name!r} does not read loss.{item.name}; its options are {options}")
        if not all(0 <= weight < math.inf for weight in self.weights) or (self.weights and not any(self.weights)):
            raise ValueError(f"loss.weights are {self.weights!r}; they must be finite, 0 or more, and not all 0")
        if self.name == "scaled" and self.margin is not None and self.margin < 0:
            raise ValueError(f"loss.margin is {self.margin!r}; a strength must be 0 or more")

    @property
    def rated(self) -> bool:
        """Whether the loss is of ratings."""
        return self.name in RATED

    def check_head(self, head: HeadConfig) -> None:
        """Raise `ValueError` unless the head gives what the loss reads."""
        allowed = _HEADS.get(self.name, ("linear", "mlp", "gaussian", "quantile", "multi"))
        if head.kind not in allowed:
            raise ValueError(
                f"the loss {self.name!r} does not train a head of kind {head.kind!r}; set head.kind to one of "
                f"{', '.join(allowed)}"
            )
        if head.pooling == "tokens":
            raise ValueError("head.pooling is tokens, which is for models of steps; give last, mean or first")
        if head.outputs > 1 and (not self.rated or self.name == "bce") and self.name not in _MEMBERED:
            raise ValueError(
                f"head.outputs is {head.outputs} with the loss {self.name!r}, which reads one reward; give 1"
            )
        if self.bootstrap and head.kind != "multi" and self.members(head) == 1:
            raise ValueError(
                "loss.bootstrap is for the members of a head of kind multi, or of a Gaussian one with several outputs "
                f"and the loss purm or sampled_bt; this head is {head.kind!r} with the loss {self.name!r}"
            )
        if self.weights and len(self.weights) != head.outputs:
            raise ValueError(f"loss.weights has {len(self.weights)} numbers for {head.outputs} outputs; give as many")

    def members(self, head: HeadConfig) -> int:
        """Return how many models of an ensemble a head holds under this loss; 1 for a single one."""
        return head.outputs if self.name in _MEMBERED else head.members

    def check_data(self, examples: Sequence[Example], attributes: Sequence[str], head: HeadConfig) -> None:
        """Raise `ValueError` unless the examples have what the loss learns from, and nothing that it would ignore."""
        if self.rated:
            ratings = [example for example in examples if isinstance(example, Rating)]
            if len(ratings) < len(examples):
                raise ValueError(
                    f"the loss {self.name!r} learns from ratings, and the data hold preferences, "
                    "which bt and others learn from (docs/training.md)"
                )
            if len(attributes) != head.outputs:
                raise ValueError(
                    f"the data have the ratings {', '.join(attributes)}, and the head has {head.outputs} outputs; set "
                    f"head.outputs to {len(attributes)}, or name others in data.attributes"
                )
            if self.name == "bce" and not all(0 <= (row.values[0] or 0) <= 1 for row in ratings):
                raise ValueError("the loss bce learns from labels in [0, 1], and there are others; rescale them")
            if self.name == "multi_label" and not all(v in (0, 1, None) for row in ratings for v in row.values):
                raise ValueError(
                    "the loss multi_label learns from labels that are 0 or 1, and there are others; round them, or "
                    "leave out those that nobody is sure of"
                )
            return
        if any(isinstance(example, Rating) for example in examples):
            raise ValueError(
                f"the data hold ratings, and the loss {self.name!r} learns from preferences; set loss to one of "
                f"{', '.join(RATED)}, which ngrams has not (docs/training.md)"
            )
        self._check_pairs([example for example in examples if isinstance(example, Pair)])
        if self.name in (*_OF_TIES, "margin_mse") and any(isinstance(example, Ranking) for example in examples):
            raise ValueError(f"the loss {self.name!r} is for pairs, and the data hold lists; use bt or plackett_luce")
        if self.name in _OF_MARGINS and self.margin is None and any(isinstance(e, Ranking) for e in examples):
            raise ValueError("lists bring no margins; set loss.margin")

    def _check_pairs(self, pairs: Sequence[Pair]) -> None:
        ties = sum(pair.tie for pair in pairs)
        if ties and self.name not in _OF_TIES:
            raise ValueError(
                f"{ties} pairs are ties, which the loss {self.name!r} cannot learn from; use rao_kupper, davidson or "
                "soft, or set data.ties to drop"
            )
        softly = sum(pair.probability is not None for pair in pairs)
        if softly and self.name != "soft":
            raise ValueError(f"{softly} pairs have soft labels, which the loss {self.name!r} would ignore; use soft")
        if self.name in _OF_MARGINS and self.margin is None:
            lacking = sum(pair.margin is None for pair in pairs)
            if lacking:
                raise ValueError(f"{lacking} pairs have no margin, which the loss {self.name!r} reads; set loss.margin")
        if self.name == "scaled" and any((pair.margin or 0) < 0 for pair in pairs):
            raise ValueError("a pair has a margin below 0, which is not a strength; the loss scaled needs 0 or more")


_TERMS = ("centering", "l2", "length", "consistency", "text")


@dataclass(frozen=True, kw_only=True)
class DataChoice(FileChoice):
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets (hub:NAME); see docs/training.md.
        format: of the rows; "auto" looks at the first one.
        columns: our name of a field to the column that holds it, where they differ.
        attributes: columns of ratings, in the order of the head's outputs.
        ties: "use" them, or "drop" them (they are counted).
        reasoning: whether reasoning before an answer is left out ("strip") or read ("keep"), by its scorer too.
    """

    format: Format = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    ties: Literal["use", "drop"] = "use"
    reasoning: Reasoning = "strip"


@dataclass(frozen=True, kw_only=True)
class ScalarTraining(TrainingOptions):
    """How a scalar reward model is trained.

    Attributes:
        data: what it learns from.
        loss: what is minimised.
        regularizers: terms that are added, by weight: "centering", "l2", "length" (ODIN), "consistency" (needs
            paraphrases), "text" (GRM; the loss itself then counts 1 - weight).
        head: the head; for "length" linear with one output.
        baselines: also fit the n-gram model on the training examples, to stand beside in the report.
    """

    data: DataChoice
    loss: LossChoice = field(default_factory=LossChoice)
    regularizers: Mapping[str, float] = field(default_factory=dict)
    head: HeadConfig = field(default_factory=HeadConfig)
    baselines: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
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
