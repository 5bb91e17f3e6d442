"""A model in shards: each process keeps a part of every weight, of its gradient and of what the optimiser knows of it.

PyTorch's `fully_shard` (FSDP2) gathers a layer's weights when the layer is called and lets them go behind it.  Every
pass, forward or backward, is therefore one that all processes make, each with rows of its own.

The head is read outside its own call (`token_logprobs`), so it belongs to the model itself, and all that reads it goes
through `Shards.inside`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T")


class Shards:
    """The shards of a model, which is changed: its weights are on `device`, or with `cpu_offload` on the CPU.

    Args:
        model: the same in all processes.
        device: where this process computes.
        bf16: gather weights, and compute, in bfloat16; shards and sums of gradients keep their 32 bits.
        cpu_offload: keep shards, gradients and the optimiser's state in the host's memory.
        layers: names of the classes that are gathered one by one; what is in none is gathered as a whole.

    Raises:
        ValueError: the process was started alone.
    """

    def __init__(
        self, model: Any, *, device: torch.device, bf16: bool, cpu_offload: bool, layers: Collection[str]
    ) -> None:
        import torch.distributed as dist
        from torch.distributed.fsdp import (
            CPUOffloadPolicy,
            FSDPModule,
            MixedPrecisionPolicy,
            OffloadPolicy,
            fully_shard,
            register_fsdp_forward_method,
        )

        if not dist.is_initialized():
            raise ValueError(
                "learning.sharding is full, and this process was started alone; start it with torchrun (for a single "
                "GPU: torchrun --nproc-per-node 1), or set learning.sharding to none"
            )
        self.device = device
        self._root = model
        self._gathered = 0
        kinds: dict[str, Any] = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} if bf16 else {}
        options: dict[str, Any] = {
            "mesh": dist.device_mesh.init_device_mesh(device.type, (dist.get_world_size(),)),
            "mp_policy": MixedPrecisionPolicy(**kinds),
            "offload_policy": CPUOffloadPolicy(pin_memory=device.type == "cuda") if cpu_offload else OffloadPolicy(),
            "reshard_after_forward": True,  # the root's, too: what stays gathered would miss weights that are put back
        }
        for module in [*model.modules()]:
            if type(module).__name__ in layers:
                fully_shard(module, **options)
        fully_shard(model, **options)
        self._units: list[Any] = [module for module in model.modules() if isinstance(module, FSDPModule)]
        for unit in self._units:  # gradients are summed, as `Processes.all_reduce` does; Gloo has no other way
            unit.set_gradient_divide_factor(1.0)
            unit.set_force_sum_reduction_for_comms(True)
        self._root.called_inside = lambda call, *given, **named: call(*given, **named)
        register_fsdp_forward_method(model, "called_inside")
        self.inside(lambda: None)
        for unit in self._units:  # now, while each weight says whether it is trained: that is not looked at again
            unit.unshard()
            unit.reshard()

    def inside(self, call: Callable[..., T], *given: Any, **named: Any) -> T:
        """Return what a call returns for which the weights outside the layers are there, as in the model's own call."""
        done: T = self._root.called_inside(call, *given, **named)
        return done

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Inside, each process has all weights, in the type they compute in; all processes enter it, and none learns.

        The model may then be called in one process alone.
        """
        if not self._gathered:
            self._root.set_reshard_after_forward(False)
            for unit in self._units:
                unit.unshard()
        self._gathered += 1
        try:
            yield
        finally:
            self._gathered -= 1
            if not self._gathered:
                for unit in self._units:
                    unit.reshard()
                self._root.set_reshard_after_forward(True)


def is_sharded(value: Tensor) -> bool:
    """Whether a tensor is in shards: a `DTensor`, which takes a third of a second to import."""
    return hasattr(value, "full_tensor")


def own_part(value: Any) -> Tensor:
    """Return what this process has of a tensor; all of it, if it is not in shards."""
    part: Tensor = value.to_local() if is_sharded(value) else value
    return part


@torch.no_grad()
def whole(value: Any) -> Tensor:
    """Return all of a tensor, for which all processes ask; the tensor itself, if it is not in shards."""
    if is_sharded(value):  # shards in the host's memory cannot be gathered there
        value = value.detach().to(value.device_mesh.device_type).full_tensor()
    given: Tensor = value
    return given


@torch.no_grad()
def in_shards(value: Tensor, like: Any) -> Tensor:
    """Return a whole tensor in shards like those of another, or as it is if that one is not in shards."""
    if not is_sharded(like):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None).to(like.device)


def whole_tensors(tensors: Mapping[str, T], *, keep: bool) -> dict[str, T]:
    """Return tensors on the CPU, and what else there is; all processes ask for it, and get nothing without `keep`."""
    gathered: dict[str, T] = {}
    for name, value in tensors.items():
        one: Any = whole(value).cpu() if isinstance(value, Tensor) else value
        if keep:
            gathered[name] = one
    return gathered


def whole_state(model: nn.Module, *, keep: bool, only: str = "") -> dict[str, Tensor]:
    """Return a model's state on the CPU, with tied weights tied; all processes ask for it.

    Args:
        model: the model.
        keep: else it is for the other processes, and nothing is returned.
        only: what the names have in them.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    own = {name: value for name, value in model.state_dict().items() if only in name}
    firsts: dict[int, str] = {}
    first = {name: firsts.setdefault(id(parameters.get(name, value)), name) for name, value in own.items()}
    state = whole_tensors({name: own[name] for name in firsts.values()}, keep=keep)
    return {name: state[first[name]] for name in own} if keep else {}


def whole_optimizer_state(optimizer: torch.optim.Optimizer, *, keep: bool) -> dict[str, Any]:
    """Return an optimiser's state on the CPU, as if nothing was in shards; see `whole_tensors`."""
    state: dict[str, Any] = optimizer.state_dict()
    return {**state, "state": {place: whole_tensors(of, keep=keep) for place, of in state["state"].items()}}


def put_optimizer_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Put a whole state in place, in shards where the weights are."""
    weights = [value for group in optimizer.param_groups for value in group["params"]]
    parts = {
        place: {
            name: in_shards(one, weights[place]) if isinstance(one, Tensor) and one.dim() else one
            for name, one in of.items()
        }
        for place, of in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": parts})
