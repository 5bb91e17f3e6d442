"""A scalar reward model as a scorer: prompt and response in, one number out, on the model's own scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

from adjudge.engines.checkpoint_notes import Normalizer
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Fault, Logits
from adjudge.options import options_of
from adjudge.reward_models.scalar.chat import Reasoning
from adjudge.reward_models.scalar.checkpoint import Checkpoint, OneModel
from adjudge.reward_models.scalar.readout import Readout, Weights, weights_of
from adjudge.reward_models.scalar.reward_scorer import Rating, RewardScorer, Turns, Unratable
from adjudge.scoring.compose.combination import Combination


@dataclass(frozen=True, kw_only=True)
class RewardModelScorer(OneModel, RewardScorer):
    """The reward that a trained model gives to a response.  The reference is an answer to compare with, or none.

    Give `model` or `engine`.  Values are raw outputs, never passed through a sigmoid unless `output` says so;
    `evidence["raw"]` has them always.

    Attributes:
        model: a checkpoint's folder, or a name on the Hugging Face hub; short for `engine: transformers:MODEL`.
        engine: a spec of an engine that classifies, or an engine.
        family: the family of a published model (`plain`, `armorm`, `qrm`, `inf_orm`, `gaussian`); "" to recognise it.
        head: what the outputs are, as a `HeadConfig` or its fields, where the checkpoint cannot tell (a server).
        labels: names of the outputs, in place of the checkpoint's.
        weights: what each output weighs: by label, or in order.  A gate's weights are replaced by them.
        risk: Gaussian and quantile heads: the share of the lowest rewards that is averaged; 1 is the mean.
        combine: heads with members: how they become one, as a `Combination` or its fields; with any other head it
            makes members of the outputs.
        normalizer: (mean, standard deviation) in place of the stored ones.
    """

    name: ClassVar[str] = "reward_model"

    model: str = ""
    engine: Any = None
    family: str = ""
    head: Any = None
    labels: tuple[str, ...] = ()
    weights: Weights | None = None
    risk: float = 1.0
    combine: Any = None
    normalizer: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_model()
        if isinstance(self.head, Mapping):
            object.__setattr__(self, "head", HeadConfig.of(self.head))
        if self.head is not None and not isinstance(self.head, HeadConfig):
            raise ValueError(f"{self.name} option head={self.head!r}; give the fields of a HeadConfig")
        if self.combine is not None:
            object.__setattr__(self, "combine", combination_of(self.combine, self.name))
        if self.normalizer is not None:
            object.__setattr__(self, "normalizer", _normalizer(self.name, self.normalizer))

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The model and what is known of it."""
        return Checkpoint.of(self.resolved(), self.family)

    @cached_property
    def readout(self) -> Readout:
        """How its outputs are read.

        Raises:
            ValueError: an option does not fit the model.
        """
        known = self.checkpoint
        head = self.head or known.head or HeadConfig()
        labels = self.labels or known.labels
        if labels and len(labels) != head.outputs:
            raise ValueError(f"{self.name}: labels are {labels!r}, and the model has {head.outputs} outputs")
        try:
            weights = weights_of(self.weights, labels, head.outputs)
            return Readout(head=head, labels=labels, weights=weights, risk=self.risk, combine=self.combine)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error

    @property
    def stored_reasoning(self) -> Reasoning | None:
        """Whether the model was trained to read reasoning; None if nothing is known."""
        return self.checkpoint.reasoning

    @property
    def scale(self) -> Normalizer:
        """What rewards are brought to a common scale with: the mean and the standard deviation, (0, 1) for none.

        Raises:
            ValueError: it is asked for and nowhere to be had.
        """
        return self.scale_of(
            lambda: self.normalizer or self.checkpoint.normalizer, "give them as `normalizer: [MEAN, STD]`, or choose"
        )

    def check(self) -> None:
        """Raise `ValueError` if the options do not fit the model."""
        if self.readout.head.pooling == "tokens":
            raise ValueError(f"{self.name}: the head reads every token; this scorer reads one reward for a response")
        _ = self.scale

    def special_tokens(self) -> tuple[str, ...]:
        """Return what the model's tokenizer takes for tokens of its own."""
        return tuple(getattr(self.checkpoint.engine, "special_tokens", ()))

    def identity(self) -> list[Any]:
        """Return plain data that changes whenever the model could rate the same chat otherwise."""
        readout = self.readout
        combine = None if readout.combine is None else asdict(readout.combine)
        return [
            self.checkpoint.engine.fingerprint,
            readout.head.record(),
            list(readout.labels),
            readout.weights,
            readout.risk,
            combine,
            list(self.scale),
        ]

    def origin(self) -> tuple[str, str]:
        """Return the engine's name and the model's."""
        engine = self.resolved()
        return engine.name, f"{engine.model} {self.checkpoint.family}".strip()

    async def rate(self, chats: Sequence[Turns]) -> list[Rating | Fault]:
        """Return the rating of each finished chat, in order, or why there is none."""
        engine = self.checkpoint.engine
        results = await engine.classify(chats)
        if len(results) != len(chats):
            raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(chats)} chats")
        return [result if isinstance(result, Fault) else self._rating(result) for result in results]

    def _rating(self, logits: Logits) -> Rating | Fault:
        if not all(map(math.isfinite, logits.values)):
            return Unratable(reason="engine_error", detail="the model gave numbers that are not finite")
        raw = self.readout.read(logits.values)
        if not (math.isfinite(raw.reward) and (raw.spread is None or math.isfinite(raw.spread))):
            return Unratable(
                reason="engine_error", detail=f"the model's outputs {logits.values!r} make no finite reward"
            )
        mean, std = self.scale
        evidence = {"raw": list(logits.values), "reward": raw.reward, **raw.evidence}
        spread = None if raw.spread is None else raw.spread / std
        return Rating(reward=(raw.reward - mean) / std, spread=spread, evidence=evidence, cost=logits.cost)


def combination_of(given: Any, name: str) -> Combination:
    """Return a combination made of its fields, or of the name of its rule; `name` is the scorer's, for messages.

    Raises:
        ValueError: a field is unknown or out of range.
    """
    if isinstance(given, Combination):
        return given
    options: Any = {"rule": given} if isinstance(given, str) else given
    options = options_of(options, list(Combination.__dataclass_fields__), inside=f"{name}: combine")
    try:
        return Combination(**options)
    except ValueError as error:
        raise ValueError(f"{name}: combine: {error}") from error


def _normalizer(name: str, given: Any) -> tuple[float, float]:
    try:
        mean, std = (float(value) for value in given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} option normalizer={given!r}; give the mean and the standard deviation") from error
    if not (math.isfinite(mean) and math.isfinite(std) and std > 0):
        raise ValueError(f"{name} option normalizer={given!r}; both must be finite, and the standard deviation above 0")
    return mean, std
