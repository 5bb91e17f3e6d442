"""A scalar reward model as a scorer: prompt and response in, one number out, on the model's own scale.

From the raw numbers of a head to one reward and how sure the model is of it:

    linear, mlp   the number, or the sum of attributes with the weights given
    gaussian      the mean; sums add means, and variances with squared weights
    quantile      the mean of the quantiles; sums are taken quantile by quantile
    gating        the sum of attributes, weighted by the softmax of the gate (arXiv 2406.12845)
    weighted      the sum of attributes, weighted by what the head says beside them (URM, arXiv 2410.00847)
    multi         one reward for each member, reduced by a `Combination`

`risk` below 1 replaces the mean of a Gaussian or of quantiles by the mean of its lowest share (conditional value at
risk): with 0.25 the reward is what can be expected in the worst quarter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar

from adjudge.engines.checkpoint_notes import Normalizer
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Fault, Logits
from adjudge.options import options_of
from adjudge.reward_models.scalar.chat import Reasoning
from adjudge.reward_models.scalar.checkpoint import Checkpoint, OneModel
from adjudge.reward_models.scalar.reward_scorer import Rating, RewardScorer, Turns, Unratable
from adjudge.scoring.compose.combination import Combination, spread_of, total_spread

Weights = Mapping[str, float] | Sequence[float]

_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Readout:
    """How the columns of a head are read.

    Attributes:
        weights: one for each output, or None.
        risk: share of the lowest rewards that is averaged, above 0; 1 is the mean.
        combine: how members become one; for heads other than "multi" it makes members of the outputs.
    """

    head: HeadConfig
    labels: tuple[str, ...] = ()
    weights: tuple[float, ...] | None = None
    risk: float = 1.0
    combine: Combination | None = None

    def __post_init__(self) -> None:
        kind, outputs = self.head.kind, self.head.outputs
        if not 0 < self.risk <= 1:
            raise ValueError(f"risk is {self.risk!r}; it must be above 0 and at most 1, which is the mean")
        if self.risk < 1 and kind not in ("gaussian", "quantile"):
            raise ValueError(
                f"risk is {self.risk!r}, and the model's head is {kind!r}; Gaussian and quantile heads have one"
            )
        if self.weights is not None and len(self.weights) != outputs:
            raise ValueError(
                f"there are {len(self.weights)} weights, and the model has {outputs} outputs{self._names()}"
            )
        if self.combine is not None and self.head.has_gate:
            raise ValueError(f"combine is given, and the model's head is {kind!r}: its gate says what attributes weigh")
        if self.combine is not None and kind != "multi" and (self.weights is not None or outputs == 1):
            raise ValueError(
                f"combine makes members of outputs, and the model has {outputs}"
                + (", which are given weights as well; give one of the two" if self.weights is not None else "")
            )
        if self.combine is not None and self.combine.needs_spreads and kind not in ("gaussian", "quantile"):
            raise ValueError(
                f'combine asks for the "surest" member, and the heads of a {kind!r} model do not say how sure'
            )
        members = self.combine is not None and kind != "multi"
        if outputs > 1 and self.weights is None and not members and not self.head.has_gate:
            raise ValueError(
                f"the model has {outputs} outputs{self._names()}, and a score is one number; say what each weighs: "
                f"weights: {{{', '.join(f'{name}: 1.0' for name in self._named()[:2])}}}, or combine: {{rule: mean}}"
            )

    @property
    def tells_spread(self) -> bool:
        """Whether readings have a standard deviation."""
        return self.head.kind in ("gaussian", "quantile", "multi") or self.combine is not None

    def read(self, raw: Sequence[float]) -> Rating:
        """Return the reward that raw outputs stand for, or raise `ValueError` if the head has more or fewer columns."""
        if len(raw) != self.head.columns:
            raise ValueError(
                f"the model gave {len(raw)} numbers, and a {self.head.kind!r} head with {self.head.outputs} outputs "
                f"has {self.head.columns}; say what they are with the option `head`"
            )
        match self.head.kind:
            case "linear" | "mlp":
                if self.combine is not None:
                    return _combined(self.combine, list(raw), [None] * len(raw))
                return Rating(reward=_dot(self._weights(), raw), evidence=self._attributes(raw))
            case "gaussian":
                return self._gaussian(raw)
            case "quantile":
                return self._quantile(raw)
            case "gating" | "weighted":
                return self._gated(raw)
            case "multi":
                return self._members(raw)

    def _gaussian(self, raw: Sequence[float]) -> Rating:
        outputs = self.head.outputs
        means, spreads = list(raw[:outputs]), [_exp(value) for value in raw[outputs:]]
        if self.combine is not None:
            worst = [self._at_risk(mean, spread) for mean, spread in zip(means, spreads, strict=True)]
            return _combined(self.combine, worst, spreads)
        weights = self._weights()
        spread = math.hypot(*(weight * spread for weight, spread in zip(weights, spreads, strict=True)))
        reward = self._at_risk(_dot(weights, means), spread)
        return Rating(reward=reward, spread=spread, evidence=self._attributes(means))

    def _at_risk(self, mean: float, spread: float) -> float:
        """The mean of the lowest share of a normal distribution."""
        if self.risk == 1:
            return mean
        return mean - spread * _NORMAL.pdf(_NORMAL.inv_cdf(self.risk)) / self.risk

    def _quantile(self, raw: Sequence[float]) -> Rating:
        levels = self.head.levels
        rows = [raw[at : at + levels] for at in range(0, len(raw), levels)]
        if self.combine is not None:
            return _combined(self.combine, [_lowest(row, self.risk) for row in rows], [spread_of(row) for row in rows])
        weights = self._weights()
        summed = [_dot(weights, column) for column in zip(*rows, strict=True)]
        means = [math.fsum(row) / levels for row in rows]
        return Rating(reward=_lowest(summed, self.risk), spread=spread_of(summed), evidence=self._attributes(means))

    def _gated(self, raw: Sequence[float]) -> Rating:
        outputs = self.head.outputs
        attributes, gate = raw[:outputs], raw[outputs:]
        if self.head.kind == "gating":
            logits = [value / self.head.temperature for value in gate]
            top = max(logits)
            shares = [math.exp(value - top) for value in logits]
            gate = [share / math.fsum(shares) for share in shares]
        weights = gate if self.weights is None else self.weights
        evidence = {
            name: dict(zip(self._named(), row, strict=True))
            for name, row in (("attributes", attributes), ("gate", gate))
        }
        return Rating(reward=_dot(weights, attributes), evidence=evidence)

    def _members(self, raw: Sequence[float]) -> Rating:
        outputs, weights = self.head.outputs, self._weights()
        rewards = [_dot(weights, raw[at : at + outputs]) for at in range(0, len(raw), outputs)]
        return _combined(self.combine or Combination(), rewards, [None] * len(rewards))

    def _weights(self) -> Sequence[float]:
        return (1.0,) if self.weights is None else self.weights

    def _attributes(self, values: Sequence[float]) -> Mapping[str, Any]:
        if len(values) == 1:
            return {}
        return {"attributes": dict(zip(self._named(), values, strict=True))}

    def _named(self) -> tuple[str, ...]:
        return self.labels or tuple(str(place) for place in range(self.head.outputs))

    def _names(self) -> str:
        return f" ({', '.join(self.labels)})" if self.labels else ""


def weights_of(given: Weights | None, labels: Sequence[str], outputs: int) -> tuple[float, ...] | None:
    """Return the weight of each output; a label that is left out weighs 0, and without labels places stand for them.

    Raises:
        ValueError: a label is unknown, or a weight is not a finite number.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        known = list(labels) or [str(place) for place in range(outputs)]
        named = {str(label): weight for label, weight in given.items()}
        for label in named:
            if label not in known:
                raise ValueError(f"weights names {label!r}, and the model's outputs are {', '.join(known)}")
        given = [named.get(label, 0.0) for label in known]
    for weight in given:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
            raise ValueError(f"weights holds {weight!r}; a weight must be a finite number")
    return tuple(map(float, given))


def _combined(combine: Combination, rewards: list[float], spreads: Sequence[float | None]) -> Rating:
    """One reward for members; how unsure it is, is their disagreement and what each is unsure of by itself."""
    finite = all(map(math.isfinite, rewards))
    return Rating(
        reward=combine.of(rewards, spreads) if finite else math.nan,
        spread=total_spread(rewards, spreads) if finite else math.nan,
        evidence={"members": rewards},
    )


def _lowest(values: Sequence[float], share: float) -> float:
    """The mean of the lowest share of equally likely values; a value on the edge counts in part."""
    count = share * len(values)
    whole = min(int(count), len(values))
    ordered = sorted(values)
    total = math.fsum(ordered[:whole])
    if whole < len(values):
        total += (count - whole) * ordered[whole]
    return total / count


def _dot(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True))


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


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
