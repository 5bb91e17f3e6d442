"""A policy's weights as a plain model has them: low-rank factors added to what they stand beside.

One weight at a time, and the policy itself is only read: so nothing has to be undone, and there is no second copy.

Not covered: quantised weights, and adapters other than LoRA.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_WRAPPED = "base_model.model."  # what peft puts before the names of the model that it wraps
_BENEATH = ".base_layer"  # and behind the name of a layer that has factors beside it
_UNKNOWN = (".modules_to_save.", ".lora_magnitude_vector.")  # parts of names of weights that stand in for others


def base_model(model: Any) -> Any:
    """Return the model of `transformers` that peft may have wrapped."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@torch.no_grad()
def merged_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors as they are in the model without factors; tied ones once.

    Weights with factors come in 32 bits: rounding is left to whoever takes them.

    Raises:
        ValueError: the model has adapters of a kind that this does not know how to merge.
    """
    factors = {name: layer for name, layer in model.named_modules() if hasattr(layer, "get_delta_weight")}
    seen: set[tuple[int, int]] = set()
    for name, value in model.state_dict().items():
        if any(part in name for part in _UNKNOWN):
            raise ValueError(f"{name!r} cannot be merged into the weights it stands in for; use plain LoRA")
        here = value.data_ptr(), value.numel()
        if ".lora_" in name or here in seen:
            continue
        if all(here):  # what is empty is tied to nothing
            seen.add(here)
        layer, _, leaf = name.rpartition(".")
        beside = factors.get(layer.removesuffix(_BENEATH)) if layer.endswith(_BENEATH) and leaf == "weight" else None
        yield name.replace(_WRAPPED, "").replace(_BENEATH, ""), value if beside is None else _merged(value, beside)


def checkpoint_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors as they are in a checkpoint of the model; some models join or rename them in memory.

    Raises:
        ValueError: the model has adapters of a kind that cannot be merged.
    """
    from transformers.core_model_loading import revert_weight_conversion

    base = base_model(model)
    nothing: dict[str, Tensor] = {}
    if not getattr(base, "_weight_conversions", True) or revert_weight_conversion(base, nothing) is nothing:
        yield from merged_weights(model)
    else:  # some tensors are made of several, so all must be there
        yield from revert_weight_conversion(base, dict(merged_weights(model))).items()


def _merged(weight: Tensor, layer: Any) -> Tensor:
    if layer.merged or layer.disable_adapters:
        return weight
    found = weight.float()
    for name in layer.active_adapters:
        if name in layer.lora_A:
            found = found + layer.get_delta_weight(name).float()
    return found
