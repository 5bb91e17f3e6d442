"""The Ray workers of each scorer, and the Ray that they run on: joined, or started for the job and ended with it.

Each worker has a bounded number of batches.  One that dies is replaced, and each batch it had is tried again, with no
other batch beside it on its worker, so that the next death says whose fault it is.  After the third, its samples (its
groups, for a scorer that compares groups) go one by one; what ends two workers on its own is failed as `worker_died`.
Whoever asked gets one answer, so whatever was scored twice is written once.

Every scorer has workers of its own, so those that need GPUs and those that do not are apart.  A composite is one
scorer: its worker reserves the GPUs, and its verifiers run in worker processes on that worker's machine.

Ray writes nothing to the terminal, shows no dashboard and reports nothing to its makers; what workers print goes to its
own log files.  Without a number of workers, a cluster counts as it stands, whatever it may grow into.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import mul
from typing import Any, Final

from adjudge.data_pipelines.label.bench import Bench, Verdict
from adjudge.data_pipelines.label.config import LabelConfig, numbers_by_name
from adjudge.data_pipelines.label.ray_worker import Fields, Order, Worker, fields_of, order_for
from adjudge.extras import need
from adjudge.io.errors import JobError
from adjudge.protocol import Sample, Score
from adjudge.runtime.contract import BrokenScorer
from adjudge.runtime.pool import usable_cpus
from adjudge.runtime.ray_start import start_ray

_MIN_STORE = 128 << 20  # bytes; Ray refuses less than 75 MiB
_MAX_STORE = 2 << 30
_KNOCK_SECONDS = 10.0


def need_ray() -> Any:
    """Return the module, or raise `ValueError` where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker sees the GPUs it reserved and no others; where nothing is said, Ray does the same and warns.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    return need("ray", "--engine ray", "ray")


@contextmanager
def cluster(address: str, *, cpus: float, store_bytes: int) -> Iterator[Mapping[str, float]]:
    """Join Ray, or start one here; yield what it has in all, "CPU" and "GPU" among it.

    A Ray that this process has joined already is used as it is, whatever the address: that of the head, "auto", or ""
    to start one.  One that starts here offers `cpus`, or the machine's if those are more, and room for batches under
    way.

    Raises:
        ValueError: ray is not installed, the address does not answer, or the versions of Ray differ.
    """
    ray = need_ray()
    if ray.is_initialized():
        yield ray.cluster_resources()
        return
    with _silent():
        if address:
            _join(ray, address)
        else:
            start_ray(
                ray,
                num_cpus=max(usable_cpus(), int(cpus)),
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=max(_MIN_STORE, min(_MAX_STORE, store_bytes)),
            )
        try:
            yield ray.cluster_resources()
        finally:
            ray.shutdown()


def _join(ray: Any, address: str) -> None:
    try:
        _knock(address)
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"--ray-address is {address!r}, and it cannot be joined: {error}. See whether it runs (ray status), and "
            "whether it has the same versions of Ray and Python; where it was started with a token, this environment "
            "needs RAY_AUTH_MODE=token and that token too"
        ) from error


def _knock(address: str) -> None:
    """See whether anybody listens; Ray itself tries for two minutes, and writes to the terminal meanwhile."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in address:
        raise ValueError("it must be auto or HOST:PORT, as ray start prints it")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_SECONDS).close()


@contextmanager
def _silent() -> Iterator[None]:
    """Keep Ray from printing on standard output that a worker died, where `--json` prints the report.

    No option of Ray 2.60 does that: `log_to_driver` is about what workers print.
    """
    from ray._private import worker

    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False
    try:
        yield
    finally:
        worker._worker_logs_enabled = before


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the workers of one scorer take."""

    scorer: str
    cpus: float
    gpus: float = 0.0
    workers: int | None = None


def counts(demands: Sequence[Demand], there: Mapping[str, float], *, may_grow: bool) -> list[int]:
    """Return the number of workers of each scorer, at least one.

    GPUs are shared out evenly among the scorers that want some, then CPUs among all that have no number yet.  Where a
    cluster `may_grow`, room that is not `there` may come; otherwise too much raises `ValueError`.
    """
    kinds = (
        ("GPU", there.get("GPU", 0.0), "--ray-gpus", [demand.gpus for demand in demands]),
        ("CPU", there.get("CPU", 0.0), "--workers", [demand.cpus for demand in demands]),
    )
    numbers = [demand.workers or 0 for demand in demands]
    for _, has, _, each in kinds:
        free = has - sum(map(mul, numbers, each))
        unset = [index for index, number in enumerate(numbers) if each[index] and not number]
        for index in unset:
            numbers[index] = max(1, int(free / len(unset) / each[index]))
    for what, has, flag, each in () if may_grow else kinds:
        needed = sum(map(mul, numbers, each))
        if needed > has + 1e-9:
            shares = ", ".join(
                f"{number} for {demand.scorer!r} with {share:g} each"
                for number, demand, share in zip(numbers, demands, each, strict=True)
                if share
            )
            raise ValueError(
                f"the Ray workers need {needed:g} {what}s ({shares}), and this Ray has {has:g}; lower --ray-workers or "
                f"{flag}, or join a larger Ray with --ray-address"
            )
    return numbers


@dataclass(eq=False, slots=True)
class _Member:
    """A worker and what it is busy with.

    Attributes:
        opening: what becomes its name, fingerprint and kind when the scorer is loaded.
        load: batches it has.
        watched: whether a task waits for `opening`.
        alone: whether the batch that it has, or waits for, must be the only one.
    """

    actor: Any
    opening: Any
    load: int = 0
    ready: bool = False
    watched: bool = False
    alone: bool = False
    lost: bool = False


_BATCH_TRIES: Final = 3
_LONE_TRIES: Final = 2
_STILLBORN: Final = 3  # workers in a row that died while they loaded the scorer
_PATIENCE: Final = 30.0  # seconds before a job begins without the workers that are not there yet, or says that it waits


class RayWorkerGroup:
    """A scorer behind Ray workers; a `Bench`.

    Args:
        demand: what errors and notes call the scorer, and what each worker reserves.
        order: what each worker loads.
        workers: how many there shall be.
        in_flight: batches that a worker has at the same time.
        note: is told of lost workers and of waiting.
    """

    name: str
    fingerprint: str
    groupwise: bool
    width: int

    def __init__(
        self,
        demand: Demand,
        order: Order,
        *,
        workers: int,
        in_flight: int,
        note: Callable[[str], None],
    ) -> None:
        called = demand.scorer
        self.name, self.fingerprint, self.groupwise, self.width = called, "", False, workers
        self._ray = need_ray()
        self._called, self._order, self._in_flight, self._note = called, order, in_flight, note
        remote = self._ray.remote(
            num_cpus=demand.cpus, num_gpus=demand.gpus, max_restarts=0, max_concurrency=in_flight + 1
        )
        self._actor = remote(Worker)
        self._members = [self._hired() for _ in range(workers)]
        self._changed = asyncio.Event()
        self._joining: set[asyncio.Task[None]] = set()
        self._suspects = 0  # batches that wait for a worker of their own
        self._stillborn = 0
        self._broken: JobError | None = None

    def open(self) -> None:
        """Wait until workers have loaded the scorer: all of them, or those that had the room to.

        Raises:
            ValueError: the scorer cannot be loaded in a worker.
        """
        waiting = [member.opening for member in self._members]
        while waiting:
            done, waiting = self._ray.wait(waiting, num_returns=1, timeout=_PATIENCE)
            if not done and any(member.ready for member in self._members):
                self._note(f"{self._called} begins without {len(waiting)} of {self.width} workers; they join later")
                break
            if not done:
                self._note(f"waiting for Ray to start a worker for {self._called}")
            for member in self._members:
                if member.opening in done:
                    self._welcome_first(member)

    def _welcome_first(self, member: _Member) -> None:
        try:
            described = self._ray.get(member.opening)
        except self._ray.exceptions.RayTaskError as error:
            raise ValueError(f"in a Ray worker, {_why_not_loaded(error)}") from None
        except self._ray.exceptions.RayError as error:
            raise ValueError(f"the Ray workers for {self._called} cannot start: {_plain(error)}") from None
        if self.fingerprint and described != (self.name, self.fingerprint, self.groupwise):
            raise ValueError(self._unlike(described))
        self.name, self.fingerprint, self.groupwise = described
        member.ready = True

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample lacks what the scorer needs; asks a worker and waits."""
        member = next(member for member in self._members if member.ready)
        missing = self._ray.get(member.actor.check.remote(fields_of(sample)))
        if missing:
            raise ValueError(missing)

    async def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        """Return one verdict for each sample, in order."""
        if not samples:
            return []
        rows = [fields_of(sample) for sample in samples]
        for tried in range(_BATCH_TRIES):
            verdicts = await self._try(rows, alone=tried > 0)
            if verdicts is not None:
                return verdicts
        return [verdict for piece in self._pieces(samples, rows) for verdict in await self._judge_alone(piece)]

    def _pieces(self, samples: Sequence[Sample], rows: Sequence[Fields]) -> list[list[Fields]]:
        if not self.groupwise:
            return [[row] for row in rows]
        groups = itertools.groupby(zip(samples, rows, strict=True), key=lambda pair: pair[0].group)
        return [[row for _, row in group] for _, group in groups]

    async def _judge_alone(self, rows: list[Fields]) -> list[Verdict]:
        for _ in range(_LONE_TRIES):
            verdicts = await self._try(rows, alone=True)
            if verdicts is not None:
                return verdicts
        what = "this sample" if len(rows) == 1 else "the samples of this group"
        error = f"the worker process that judged {what}, and nothing else, ended {_LONE_TRIES} times"
        return [Score.failed("worker_died", error=error) for _ in rows]

    async def _try(self, rows: Sequence[Fields], *, alone: bool) -> list[Verdict] | None:
        """Return the verdicts of one worker, or None if it was lost meanwhile."""
        member = await self._seat(alone)
        try:
            verdicts: list[Verdict] = await member.actor.judge.remote(rows)
        except self._ray.exceptions.RayTaskError as error:
            cause = _cause(error)
            broken = isinstance(cause, BrokenScorer)
            what = str(cause) if broken else f"the Ray worker for {self._called} {_raised(cause)}"
            raise BrokenScorer(what) from error
        except self._ray.exceptions.RayError as error:
            self._replace(member, error)
            return None
        finally:
            member.load -= 1
            if alone:
                member.alone = False
            self._changed.set()
        return verdicts

    async def _seat(self, alone: bool) -> _Member:
        """Wait for room on a worker; with `alone`, for a worker that has nothing else.

        Who must be alone comes first: those batches are the oldest, and others wait for them to be written.
        """
        self._start_joining()
        while True:
            member = await self._chosen(alone)
            while alone and member.load and not member.lost:
                await self._change()
            if not member.lost:
                member.load += 1
                return member

    async def _chosen(self, alone: bool) -> _Member:
        """Return the least busy worker that has room; with `alone`, one that takes nothing more from now on."""
        self._suspects += alone
        try:
            while True:
                if self._broken is not None:
                    raise self._broken
                room = [
                    member
                    for member in self._members
                    if member.ready and not member.alone and (alone or member.load < self._in_flight)
                ]
                if room and (alone or not self._suspects):
                    member = min(room, key=lambda each: each.load)
                    member.alone = alone
                    return member
                await self._change()
        finally:
            self._suspects -= alone
            if alone:
                self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        while True:
            try:
                await asyncio.wait_for(self._changed.wait(), _PATIENCE)
            except TimeoutError:
                if not any(member.ready for member in self._members):
                    self._note(f"no worker for {self._called} is left; waiting for Ray to start one")
            else:
                return

    def _hired(self) -> _Member:
        actor = self._actor.remote(self._order)
        return _Member(actor, actor.open.remote())

    def _replace(self, member: _Member, error: Exception) -> None:
        """Put a new worker in the place of one that is lost; the first of its batches to notice does it."""
        if member.lost:
            return
        member.lost = True
        self._members.remove(member)
        self._ray.kill(member.actor)
        self._note(f"a worker for {self._called} was lost ({_plain(error)}); another one takes its place")
        self._members.append(self._hired())
        self._start_joining()

    def _start_joining(self) -> None:
        for member in self._members:
            if not member.ready and not member.watched:
                member.watched = True
                task = asyncio.create_task(self._join(member))
                self._joining.add(task)
                task.add_done_callback(self._joining.discard)

    async def _join(self, member: _Member) -> None:
        try:
            described = await member.opening
        except self._ray.exceptions.RayTaskError as error:
            why = _why_not_loaded(error)
            self._broken = JobError(f"in a new Ray worker, {why}; make the same call again to go on")
        except self._ray.exceptions.RayError as error:
            self._stillborn += 1
            if self._stillborn < _STILLBORN:
                self._replace(member, error)
            else:
                self._broken = JobError(
                    f"{_STILLBORN} Ray workers in a row died while they loaded {self._called} ({_plain(error)}); "
                    "see to the machines, and make the same call again to go on"
                )
        else:
            if described != (self.name, self.fingerprint, self.groupwise):
                self._broken = JobError(f"{self._unlike(described)}; make the same call again to go on")
            member.ready = True
            self._stillborn = 0
        self._changed.set()

    def close(self) -> None:
        """End the workers."""
        for member in self._members:
            self._ray.kill(member.actor)

    def _unlike(self, described: tuple[str, str, bool]) -> str:
        return (
            f"the Ray workers for {self._called} are not alike: one has the fingerprint {self.fingerprint!r}, another "
            f"{described[1]!r}; install the same version on every machine"
        )


def _cause(error: Any) -> Exception:
    """Return what was raised in the worker, without the way it came."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"


def _why_not_loaded(error: Any) -> str:
    """Return what kept a worker from loading its scorer; a `ValueError` speaks for itself."""
    cause = _cause(error)
    return str(cause) if isinstance(cause, ValueError) else f"loading the scorer {_raised(cause)}"


def _plain(error: Exception) -> str:
    """Return why a worker is gone, of the page that Ray writes about it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    why = [line for line in lines if line.startswith("The actor") or "Error: " in line] or lines or [str(type(error))]
    return why[-1].partition(" Some common causes")[0][:300]


_BATCH_BYTES = 16 << 20  # a batch closes at 4 MiB, but a long row may be larger; twice, for the way there and back


@contextmanager
def ray_benches(
    config: LabelConfig, names: Sequence[str], specs: Sequence[Any], note: Callable[[str], None]
) -> Iterator[Sequence[Bench]]:
    """Start the workers of every scorer; end them, and a Ray that was started for them.

    `names` are those of the scorers in the output, "" where the scorer's own will do; `specs` are what each loads: the
    text of a spec, or a scorer as an object; `note` is told of lost workers and of waiting.

    Raises:
        ValueError: Ray cannot be joined, there is no room, or a scorer cannot be loaded in a worker.
    """
    processes = config.workers or 1
    orders = [order_for(spec, cache=config.cache, processes=processes, timings=config.timings) for spec in specs]
    called = [name or _short(spec) for name, spec in zip(names, specs, strict=True)]
    demands = [_demand(config, names, name, shown, processes) for name, shown in zip(names, called, strict=True)]
    least = sum((demand.workers or 1) * demand.cpus for demand in demands)
    at_once = config.in_flight * max(demand.workers or 8 for demand in demands)
    with cluster(config.ray_address, cpus=least, store_bytes=at_once * _BATCH_BYTES) as there, ExitStack() as opened:
        groups = []
        for demand, order, number in zip(
            demands, orders, counts(demands, there, may_grow=bool(config.ray_address)), strict=True
        ):
            group = RayWorkerGroup(demand, order, workers=number, in_flight=config.in_flight, note=note)
            opened.callback(group.close)
            groups.append(group)
        for group in groups:  # all have been hired, so they load at the same time
            group.open()
        yield groups


def _demand(config: LabelConfig, names: Sequence[str], name: str, called: str, processes: int) -> Demand:
    workers = numbers_by_name("--ray-workers", config.ray_workers, names, whole=True)[name]
    gpus = numbers_by_name("--ray-gpus", config.ray_gpus, names, whole=False)[name]
    return Demand(scorer=called, cpus=processes, gpus=gpus or 0.0, workers=None if workers is None else int(workers))


def _short(spec: Any) -> str:
    text = spec if isinstance(spec, str) else str(getattr(spec, "name", "the scorer"))
    return text if len(text) <= 60 else f"{text[:57]}..."
