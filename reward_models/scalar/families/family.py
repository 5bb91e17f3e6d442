"""A family of published reward models: how it is recognised, and what its head is in our terms.

Not covered: which families there are (`adjudge.reward_models.scalar.families.recognition`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.scalar.families.checkpoint_files import CheckpointFiles

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class ForeignHead:
    """A published head, rewritten as one of ours.

    Attributes:
        config: its shape.
        weights: the tensors of `adjudge.engines.reward_network.HeadNetwork`, in 32 bits.
        labels: names of the outputs; () if they have none.
    """

    config: HeadConfig
    weights: Mapping[str, torch.Tensor]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family.

    Attributes:
        name: short name, as the option `family` takes it.
        fits: whether a checkpoint is one of it.
        head: reads the head; None where engines read the checkpoint as it is.  It raises `ValueError` naming what is
            not as it should be.
        models: published models of the family, for people.
    """

    name: str
    fits: Callable[[CheckpointFiles], bool]
    head: Callable[[CheckpointFiles], ForeignHead] | None = None
    models: str = ""
