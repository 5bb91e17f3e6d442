"""What a reward model's head looks like, as plain data: it is saved beside the weights and read without PyTorch.

A head turns a body's hidden state into raw numbers, the *columns*.  What they mean stands in `HeadConfig.kind`; turning
them into a reward (the mean of quantiles, a gate's weighted sum) is the scorer's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from adjudge.options import Options, Range, options_of

HeadKind = Literal["linear", "mlp", "gaussian", "quantile", "gating", "weighted", "multi"]
Pooling = Literal["last", "mean", "first", "tokens"]
Activation = Literal["relu", "silu", "gelu", "selu"]

_SINGLE: tuple[HeadKind, ...] = ("linear", "gaussian", "quantile", "multi")


@dataclass(frozen=True, kw_only=True)
class HeadConfig(Options, what="head option"):
    """The shape of a head, and where in a row it reads the body.

    Attributes:
        kind: what the columns are, for k outputs:
            "linear": k numbers;
            "mlp": the same through hidden layers;
            "gaussian": k means, then k logs of standard deviations;
            "quantile": `levels` numbers for the first output, lowest quantile first, then for the second, ...;
            "gating": k attributes, read at the row's end, then k gate logits, which a network reads at the prompt's
            end (the reward is the sum of attributes, weighted by the softmax of the gate: arXiv 2406.12845);
            "weighted": k attributes, then what each weighs, both read at the row's end (the reward of URM, arXiv
            2410.00847, is the sum of their products); no loss here trains it;
            "multi": k numbers of the first member of an ensemble, then k of the second, ...
        outputs: k, at least 1.
        levels: quantiles of each output ("quantile").
        members: linear heads of the ensemble ("multi").
        hidden: width of hidden layers ("mlp", "gating", "weighted"); 0 for the body's width.
        depth: hidden layers ("mlp", "gating", "weighted").
        activation: between layers ("mlp", "gating", "weighted").
        temperature: by which gate logits are divided before the softmax ("gating"); applied by the scorer.
        gate_back: how many tokens before the prompt's end, which the template's generation prompt is part of, the gate
            reads ("gating"): published gates read the token that ends the user's turn, 4 before it in Llama 3.
        bias: whether the last layer has one.
        pooling: "last" reads the last token of a row, found by its length; "first" the first one; "mean" the mean of
            all hidden states; "tokens" every token, for models of steps.
    """

    kind: HeadKind = "linear"
    outputs: Annotated[int, Range(ge=1)] = 1
    levels: Annotated[int, Range(ge=0)] = 0
    members: Annotated[int, Range(ge=1)] = 1
    hidden: Annotated[int, Range(ge=0)] = 0
    depth: Annotated[int, Range(ge=1)] = 1
    activation: Activation = "relu"
    temperature: Annotated[float, Range(gt=0)] = 1.0
    gate_back: Annotated[int, Range(ge=0)] = 0
    bias: bool = False
    pooling: Pooling = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kind == "quantile") != (self.levels > 0):
            raise ValueError(
                f"head option levels={self.levels!r} with kind={self.kind!r}; only quantile heads have levels"
            )
        if self.members > 1 and self.kind != "multi":
            raise ValueError(f"head option members={self.members!r} with kind={self.kind!r}; give kind='multi'")
        if self.has_gate and self.pooling != "last":
            raise ValueError(
                f"head option pooling={self.pooling!r} with kind={self.kind!r}; a {self.kind} head reads 'last'"
            )

    @property
    def columns(self) -> int:
        """How many raw numbers the head gives."""
        times = {"gaussian": 2, "gating": 2, "weighted": 2, "quantile": self.levels, "multi": self.members}
        return self.outputs * times.get(self.kind, 1)

    @property
    def has_gate(self) -> bool:
        """Whether a network of its own says what the attributes weigh."""
        return self.kind in ("gating", "weighted")

    @property
    def is_one_layer(self) -> bool:
        """Whether the head is one linear layer, as the heads of published classifiers are."""
        return self.kind in _SINGLE

    def record(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> HeadConfig:
        """Return what `record` was made of.

        Raises:
            ValueError: a field is unknown, or has a value that is not allowed.
        """
        return cls(**options_of(record, [field.name for field in fields(cls)], inside="a head"))
