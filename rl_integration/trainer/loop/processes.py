"""The processes of a run: one, or those that `torchrun` or `accelerate launch` started on a machine.

Plain data (rollouts, scores, decisions) goes through a group of Gloo's, and so do tensors on CPUs; tensors on GPUs go
through the default group (NCCL), and only after all processes have met in the first one.  So a process that fails is
noticed at once by the others, in a collective of Gloo's, which sees a closed connection; none waits for ever.

What is exchanged is pickled.  It comes from the processes of this very run alone, which share their code and their
rights; nothing that a scorer or a server sent is unpickled that was not plain data there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from adjudge.rl_integration.client.client import ClientConfig
from adjudge.runtime.confine import die_with_parent
from adjudge.training.backbones import libraries

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

PATIENCE = 2 * ClientConfig.deadline
"""Seconds that a process waits for another, which may wait for a reward server as long as its client does."""

_SHARDED = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_MEGATRON_LM")

_LINGER = 10.0  # seconds

_BUCKET = 1 << 25  # bytes that go out in one collective: thousands of small ones would cost 0.1 ms each


class OtherProcessFailed(RuntimeError):
    """Another process of the run stopped, so this one cannot go on."""


@dataclass(kw_only=True)
class Processes:
    """This process and the others.  Every exchange raises `OtherProcessFailed` once one of them stopped.

    Attributes:
        rank: of this process; 0 writes the files.
        world_size: how many there are.
        device: where this process's model belongs, such as "cpu" or "cuda:1"; "" where nobody said.
    """

    rank: int = 0
    world_size: int = 1
    device: str = ""
    _group: Any = field(default=None, repr=False, compare=False)  # of Gloo's; None once the processes have parted
    _store: Any = field(default=None, repr=False, compare=False)  # notes that all can read; None for a single process
    _key: str = field(default="", repr=False, compare=False)

    @classmethod
    def joined(cls, *, timeout: float = PATIENCE) -> Processes:
        """Return the processes that a launcher started with this one; all of them must call it.

        On Linux those that `torchrun` or `accelerate launch` started end with it, even where it is killed.

        Args:
            timeout: seconds that one process may wait for another before it gives up.

        Raises:
            ValueError: the launcher was told to shard the model (FSDP, DeepSpeed, Megatron).
        """
        if "TORCHELASTIC_RUN_ID" in os.environ:  # else the parent may be a shell that has done its work
            die_with_parent()
        libraries()
        import torch
        import torch.distributed as dist
        from accelerate import PartialState
        from accelerate.utils import parse_flag_from_env

        for name in _SHARDED:
            if parse_flag_from_env(name):
                raise ValueError(
                    f"{name} is {os.environ[name]!r}, and this trainer shards by itself; start it with torchrun or "
                    "`accelerate launch --multi_gpu`, and set learning.sharding to full"
                )
        on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
        state: Any = PartialState(cpu=on_cpu)
        device = torch.device(state.device)
        if device.type == "cuda" and device.index is None:  # which would be another GPU in another thread
            device = torch.device("cuda", torch.cuda.current_device())
        if int(os.environ.get("WORLD_SIZE", "1")) < 2:
            return cls(device=str(device))
        group: Any = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        return cls(
            rank=state.process_index,
            world_size=state.num_processes,
            device=str(device),
            _group=group,
            _store=dist.distributed_c10d._get_default_store(),
            _key=f"adjudge/{dist.distributed_c10d._get_process_group_name(group)}/failed",
        )

    @property
    def is_main_process(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

    def place(self, model: Any) -> None:
        """Move a model of `transformers` to this process's device; a single process leaves it on the GPU it is on."""
        if self.device and (self.world_size > 1 or model.device.type == "cpu"):
            model.to(self.device)

    def share(self, things: Sequence[T], *, together: Callable[[T], str] = lambda _: "") -> list[T]:
        """Return this process's part of things that all processes know; the parts are side by side and cover all.

        Args:
            things: what there is.
            together: names what neighbours must stay together; "" for a thing by itself.
        """
        edges = [len(things) * place // self.world_size for place in range(self.world_size + 1)]
        for place, edge in enumerate(edges):
            while 0 < edge < len(things) and "" != together(things[edge]) == together(things[edge - 1]):
                edge += 1
            edges[place] = edge
        return list(things[edges[self.rank] : edges[self.rank + 1]])

    def balanced(self, costs: Sequence[int]) -> list[int]:
        """Return the places of this process's part of things that cost so much; the parts cost about the same."""
        loads, mine = [0] * self.world_size, []
        for place in sorted(range(len(costs)), key=lambda at: (-costs[at], at)):
            rank = loads.index(min(loads))
            loads[rank] += costs[place]
            if rank == self.rank:
                mine.append(place)
        return sorted(mine)

    def all_gather(self, things: Sequence[T]) -> list[T]:
        """Return what all processes have, in the order of their ranks."""
        if self._store is None:
            return list(things)
        import torch.distributed as dist

        object_list: list[Any] = [None] * self.world_size
        with self._failures():
            dist.all_gather_object(object_list, list(things), group=self._open())
        return [thing for part in object_list for thing in part]

    def broadcast(self, thing: T) -> T:
        """Return what the first process has."""
        if self._store is None:
            return thing
        import torch.distributed as dist

        object_list = [thing]
        with self._failures():
            dist.broadcast_object_list(object_list, src=0, group=self._open())
        return object_list[0]

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Put the sums over all processes in the place of tensors, which are alike in kind and shape everywhere."""
        import torch.distributed as dist

        self._exchange(tensors, lambda flat, group: dist.all_reduce(flat, group=group))

    def broadcast_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Put the first process's tensors in the place of every process's."""
        import torch
        import torch.distributed as dist

        self.broadcast(None)  # all are there
        # As bytes: Gloo does not know every type of number.
        self._exchange(tensors, lambda flat, group: dist.broadcast(flat.view(torch.uint8), src=0, group=group))

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """What fails inside, in this process, ends the others, too: they raise `OtherProcessFailed`."""
        try:
            yield
        except BaseException as error:
            self._cut(error)
            raise

    def _exchange(self, tensors: Sequence[Tensor], send: Callable[[Tensor, Any], object]) -> None:
        """Put what a collective makes of tensors in their place."""
        import torch

        for bucket in _buckets(tensors) if self._store is not None else ():
            flat = torch.cat([tensor.detach().reshape(-1) for tensor in bucket])
            with self._failures():
                send(flat, self._open() if flat.device.type == "cpu" else None)
            with torch.no_grad():
                parts = torch.split(flat, [tensor.numel() for tensor in bucket])
                for tensor, part in zip(bucket, parts, strict=True):
                    tensor.copy_(part.view_as(tensor))

    def _cut(self, error: BaseException) -> None:
        """Say why this process stops, and close its connections, which the others notice."""
        group, self._group = self._group, None
        if group is None:
            return
        import torch.distributed as dist

        if not isinstance(error, OtherProcessFailed):
            with suppress(RuntimeError):  # the process that keeps the notes may be gone; closed connections tell enough
                self._store.set(self._key, f"process {self.rank}: {type(error).__name__}: {error}")
        dist.destroy_process_group(group)
        del group  # the connections close with it
        with suppress(RuntimeError):  # one that was killed hears nothing
            self._store.set(f"{self._key}/{self.rank}", "")
            if self.is_main_process:  # the notes end with this process, and others may not have read them yet
                heard = [f"{self._key}/{rank}" for rank in range(self.world_size)]
                self._store.wait(heard, timedelta(seconds=_LINGER))

    def _open(self) -> Any:
        if self._group is None:
            raise OtherProcessFailed("the processes of this run have parted after a failure; start it again")
        return self._group

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Say what ended the other process, as far as it is known."""
        try:
            yield
        except OtherProcessFailed:
            raise
        except RuntimeError as error:
            noted = ""
            with suppress(RuntimeError):
                noted = self._store.get(self._key).decode() if self._store.check([self._key]) else ""
                self._store.set(f"{self._key}/{self.rank}", "")
            raise OtherProcessFailed(f"another process of this run stopped: {noted or error}") from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one kind and place, in the order given, in parts of a bounded size."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        alike = not bucket or (bucket[0].dtype, bucket[0].device) == (tensor.dtype, tensor.device)
        if bucket and (not alike or size + tensor.nbytes > _BUCKET):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    if bucket:
        yield bucket
