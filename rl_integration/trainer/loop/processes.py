"""The processes of a run: one, or those that `torchrun` or `accelerate launch` started on a machine.

Plain data (rollouts, scores, decisions) goes through a group of Gloo's, and so do tensors on CPUs; tensors on GPUs go
through the default group (NCCL), and only after all processes have met in the first one.  So a process that fails is
noticed at once by the others, in a collective of Gloo's, which sees a closed connection; none waits for ever.

What is exchanged is pickled.  It comes from the processes of this very run alone, which share their code and their
rights; nothing that a scorer or a server sent is unpickled that was not plain data there.

Not covered: several machines (folders are taken to be shared), weights that are cut up over processes (FSDP), and what
is computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

_BUCKET = 1 << 25  # bytes that go out in one collective: thousands of small ones would cost 0.1 ms each


class OtherProcessFailed(RuntimeError):
    """Another process of the run stopped, so this one cannot go on."""


@dataclass(frozen=True, kw_only=True)
class Processes:
    """This process and the others.

    Attributes:
        rank: of this process; 0 writes the files.
        world_size: how many there are.
        device: where this process's model belongs, such as "cpu" or "cuda:1"; "" where nobody said.
    """

    rank: int = 0
    world_size: int = 1
    device: str = ""
    _link: _Link | None = field(default=None, repr=False, compare=False)

    @classmethod
    def joined(cls, *, timeout: float = 1800.0) -> Processes:
        """Return the processes that a launcher started with this one; all of them must call it.

        Args:
            timeout: seconds that one process may wait for another before it gives up.
        """
        if int(os.environ.get("WORLD_SIZE", "1")) < 2:
            return cls()
        import torch
        import torch.distributed as dist
        from accelerate import PartialState

        state = PartialState(cpu=not torch.accelerator.is_available())
        group: Any = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        store: Any = dist.distributed_c10d._get_default_store()
        key = f"adjudge/{dist.distributed_c10d._get_process_group_name(group)}/failed"
        link = _Link(group=group, store=store, key=key, rank=state.process_index)
        return cls(rank=state.process_index, world_size=state.num_processes, device=str(state.device), _link=link)

    @property
    def is_main_process(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

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
        """Return what all processes have, in the order of their ranks.

        Raises:
            OtherProcessFailed: one of them stopped.
        """
        if self._link is None:
            return list(things)
        return [thing for part in self._link.all_gather(list(things), self.world_size) for thing in part]

    def broadcast(self, thing: T) -> T:
        """Return what the first process has.

        Raises:
            OtherProcessFailed: one of them stopped.
        """
        return thing if self._link is None else self._link.broadcast(thing)

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Put the sums over all processes in the place of tensors, which are alike in kind and shape everywhere.

        Raises:
            OtherProcessFailed: one of them stopped.
        """
        if self._link is not None:
            self._link.all_reduce(tensors)

    def broadcast_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Put the first process's tensors in the place of every process's.

        Raises:
            OtherProcessFailed: one of them stopped.
        """
        if self._link is not None:
            self._link.broadcast(None)  # all are there
            self._link.broadcast_tensors(tensors)

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """What fails inside, in this process, ends the others, too: they raise `OtherProcessFailed`."""
        try:
            yield
        except BaseException as error:
            if self._link is not None:
                self._link.cut(error)
            raise


@dataclass(kw_only=True)
class _Link:
    """The connection of a process with the others."""

    group: Any
    store: Any
    key: str
    rank: int

    def all_gather(self, thing: T, count: int) -> list[T]:
        import torch.distributed as dist

        found: list[Any] = [None] * count
        with self._failures():
            dist.all_gather_object(found, thing, group=self._open())
        return found

    def broadcast(self, thing: T) -> T:
        import torch.distributed as dist

        found: list[Any] = [thing]
        with self._failures():
            dist.broadcast_object_list(found, src=0, group=self._open())
        told: T = found[0]
        return told

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        import torch
        import torch.distributed as dist

        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            with self._failures():
                dist.all_reduce(flat, group=self._group_of(flat))
            for tensor, part in zip(bucket, _split(flat, bucket), strict=True):
                tensor.copy_(part.view_as(tensor))

    def broadcast_tensors(self, tensors: Sequence[Tensor]) -> None:
        import torch
        import torch.distributed as dist

        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.detach().reshape(-1) for tensor in bucket])
            with self._failures():  # as bytes: Gloo does not know every type of number
                dist.broadcast(flat.view(torch.uint8), src=0, group=self._group_of(flat))
            with torch.no_grad():
                for tensor, part in zip(bucket, _split(flat, bucket), strict=True):
                    tensor.copy_(part.view_as(tensor))

    def cut(self, error: BaseException) -> None:
        """Say why this process stops, and close its connections, which the others notice."""
        import torch.distributed as dist

        group, self.group = self.group, None
        if group is None:
            return
        if not isinstance(error, OtherProcessFailed):
            with suppress(RuntimeError):  # the process that keeps the notes may be gone; closed connections tell enough
                self.store.set(self.key, f"process {self.rank}: {type(error).__name__}: {error}")
        dist.destroy_process_group(group)

    def _open(self) -> Any:
        if self.group is None:
            raise OtherProcessFailed("the processes of this run have parted after a failure; start it again")
        return self.group

    def _group_of(self, tensor: Tensor) -> Any:
        return self._open() if tensor.device.type == "cpu" else None

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Say what ended the other process, as far as it is known."""
        try:
            yield
        except OtherProcessFailed:
            raise
        except RuntimeError as error:
            raise OtherProcessFailed(f"another process of this run stopped: {self._noted() or error}") from error

    def _noted(self) -> str:
        try:
            return self.store.get(self.key).decode() if self.store.check([self.key]) else ""
        except RuntimeError:
            return ""


def _split(flat: Tensor, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    import torch

    return torch.split(flat, [tensor.numel() for tensor in like])


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
