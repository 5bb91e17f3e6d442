"""One target's supervisor and workers, and who of them does what.

A group starts workers when there is work worth a fork, hands them chunks, looks after deadlines, and finds out how a
worker ended.  It runs in the pool's thread and is never called from another one.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from adjudge.runtime.agenda import Agenda
from adjudge.runtime.clients import SupervisorClient, WorkerClient
from adjudge.runtime.job import Job, Kind, Outcome
from adjudge.runtime.pickling import pack
from adjudge.runtime.worker import OUT_OF_MEMORY

if TYPE_CHECKING:
    from adjudge.runtime.dispatcher import Dispatcher

_WORTH_A_FORK = 0.002  # seconds of work left, or of waiting for the first result
_REPORT_SECONDS = 0.25  # the supervisor reports an ended worker within a millisecond; one that lives on is killed
_IDLE_SECONDS = 30.0  # after this, a group without work keeps its supervisor only
_REFORK_SECONDS = 0.05  # pause after the system refused a fork
_MAX_REFUSALS = 100
_FROM_OUTSIDE = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT}


class TargetError(RuntimeError):
    """The target cannot be loaded in a worker process, so no item of the call can be judged."""


class WorkerGroup:
    """The workers of one target.

    Args:
        target: what is called on each item.
        payload: the target, pickled.
        confined: whether its workers are forbidden to start processes.
        host: the dispatcher.

    Attributes:
        agenda: what there is to do.
        used_at: when it last had something to do (`time.monotonic`).
    """

    def __init__(self, target: Callable[[Any], Any], payload: bytes, confined: bool, host: Dispatcher) -> None:
        self.agenda = Agenda()
        self.used_at = 0.0
        self._target = target
        self._payload = payload
        self._confined = confined
        self._host = host
        self._supervisor: SupervisorClient | None = None
        self._workers: dict[int, WorkerClient] = {}
        self._refusals = 0
        self._fork_after = 0.0

    def advance(self, now: float) -> None:
        """Do whatever can be done now."""
        self._check_deadlines(now)
        self.agenda.sweep()
        if not self.agenda:
            if now - self.used_at >= _IDLE_SECONDS:
                for worker in self._able():
                    self._let_go(worker)  # the supervisor stays, and forks anew in a millisecond or two
            return
        self.used_at = now
        if self._supervisor is None:
            self._start_supervisor()
        elif self._supervisor.loaded:
            self._dispatch(now)
            if now >= self._fork_after and self._staff(now):
                self._dispatch(now)

    def next_look(self, now: float) -> float:
        """Return when `advance` has to be called again even if nothing happens (`time.monotonic`)."""
        times = [worker.look_at for worker in self._workers.values()]
        able = self._able()
        if not self.agenda:
            times.extend([self.used_at + _IDLE_SECONDS] if able else [])
        elif self._fork_after > now:
            times.append(self._fork_after)
        elif self.agenda.waiting and self.agenda.seconds_per_item is None and len(able) < self._host.share():
            times.extend(worker.since + _WORTH_A_FORK for worker in able if worker.chunks)
        return min(times, default=float("inf"))

    def drop(self, job: Job) -> None:
        """Forget a job that nobody waits for, and kill what works on it."""
        for worker in self._able():
            if any(chunk.job is job for chunk in worker.chunks):
                self._let_go(worker)
        self.agenda.sweep()

    def close(self, kind: Kind, error: str) -> None:
        """Give every waiting item this outcome and let go of all processes."""
        self._dismiss()
        self.agenda.end(kind, error)

    def fail(self, error: Exception) -> None:
        """End every job with an exception and let go of all processes."""
        self._dismiss()
        self.agenda.fail(error)

    def forget(self) -> None:
        """In a forked child: drop everything that belongs to the parent."""
        for worker in self._workers.values():
            worker.close()
        if self._supervisor is not None:
            self._supervisor.forget()

    # -- the supervisor

    def _start_supervisor(self) -> None:
        try:
            self._supervisor = self._host.start_supervisor()
        except OSError as error:
            self.agenda.fail(TargetError(f"no process could be started to load {self._target!r}: {error}"))
            return
        self._host.watch(self._supervisor.channel, self._hear_supervisor)
        self._supervisor.load(self._payload)

    def _hear_supervisor(self) -> None:
        supervisor = self._supervisor
        if supervisor is None:
            return
        supervisor.channel.flush()
        for frame in supervisor.channel.receive():
            match pickle.loads(frame):
                case ("loaded",):
                    supervisor.loaded = True
                case ("unloadable", missing, text):
                    self._unloadable(missing, text)
                    return
                case ("unforkable", number, text):
                    self._unforkable(number, text)
                case ("exited", number, status):
                    self._refusals = 0
                    self._bury(number, os.waitstatus_to_exitcode(status))
        if supervisor.channel.ended:
            self._supervisor_lost(supervisor)

    def _unloadable(self, missing: str, text: str) -> None:
        self._dismiss()
        if missing not in sys.modules or missing in self.agenda.by_value:
            self.agenda.fail(TargetError(f"{self._target!r} cannot be loaded in a worker process: {text}"))
            return
        # A module that only this process can import (a test file, a script run by another): send its contents.
        self.agenda.by_value.add(missing)
        try:
            self._payload = pack(self._target, self.agenda.by_value)
        except Exception as error:  # noqa: BLE001 what the module holds decides what pickling raises
            self.agenda.fail(TargetError(f"{self._target!r} cannot be loaded in a worker process: {text} ({error})"))

    def _unforkable(self, number: int, text: str) -> None:
        worker = self._workers.get(number)
        if worker is None:
            return
        self._remove(worker, None)
        self._refused(text)

    def _refused(self, text: str) -> None:
        """Wait before the next try to start a worker; give up when there is none after many tries."""
        self._fork_after = time.monotonic() + _REFORK_SECONDS
        self._refusals += 1
        if self._refusals >= _MAX_REFUSALS and not self._workers:
            self._refusals = 0
            self.agenda.end("lost", f"no worker process could be started: {text}")

    def _supervisor_lost(self, supervisor: SupervisorClient) -> None:
        for number in list(self._workers):
            self._bury(number, -signal.SIGKILL)
        self._dismiss()
        if not supervisor.loaded:
            code = supervisor.wait()
            what = f"the process that loads {self._target!r} {_ending(code)} before it was ready"
            if code in _FROM_OUTSIDE:
                self.agenda.end("lost", f"{what}, from outside")
            else:
                self.agenda.fail(TargetError(what))

    def _dismiss(self) -> None:
        for worker in list(self._workers.values()):
            self._remove(worker, None)
        if self._supervisor is not None:
            self._host.unwatch(self._supervisor.channel)
            self._host.part_with(self._supervisor)
            self._supervisor = None

    # -- staff

    def _able(self) -> list[WorkerClient]:
        return [worker for worker in self._workers.values() if not worker.leaving]

    def _staff(self, now: float) -> bool:
        """Start workers while there is work that is worth one; return whether any was started."""
        able, share = self._able(), self._host.share()
        wanted = 0
        waiting, each = self.agenda.waiting, self.agenda.seconds_per_item
        if waiting and len(able) < share:
            if not able:
                wanted = 1
            elif each is not None:
                wanted = share - len(able) if waiting * each > _WORTH_A_FORK else 0
            elif any(worker.chunks and now - worker.since >= _WORTH_A_FORK for worker in able):
                wanted = share - len(able)
            wanted = min(wanted, waiting)
        trying = sum(worker.unused or bool(worker.chunks and worker.chunks[0].alone) for worker in able)
        if self.agenda.alone:  # each needs a fresh worker, if need be in place of an idle one
            wanted = max(wanted, min(self.agenda.alone, share - trying))
            idle = [worker for worker in able if not worker.chunks and not worker.unused]
            for worker in idle[: max(len(able) + wanted - share, 0)]:
                self._let_go(worker)
        return sum(self._fork() for _ in range(wanted)) > 0

    def _fork(self) -> bool:
        assert self._supervisor is not None
        try:
            worker = self._host.fork(self._supervisor, self._confined)
        except OSError as error:
            self._refused(str(error))
            return False
        self._workers[worker.number] = worker
        self._host.watch(worker.channel, partial(self._hear_worker, worker))
        return True

    # -- work

    def _dispatch(self, now: float) -> None:
        able, share = self._able(), self._host.share()
        engaged = sum(bool(worker.chunks) for worker in able)
        for worker in able:
            fresh = worker.unused and self.agenda.alone
            if not worker.chunks and (engaged < share or fresh):
                engaged += self._hand(worker, share, now)
        if self.agenda.quick:
            for worker in able:
                if len(worker.chunks) == 1 and not worker.chunks[0].alone:
                    self._hand(worker, share, now)

    def _hand(self, worker: WorkerClient, share: int, now: float) -> bool:
        work = self.agenda.next_frame(share, unused=worker.unused)
        if work is not None:
            worker.hand(*work, now)
        return work is not None

    def _hear_worker(self, worker: WorkerClient) -> None:
        worker.channel.flush()
        self._take_in(worker)
        if worker.channel.ended and worker.number in self._workers:
            worker.leaving = True
            worker.look_at = time.monotonic() + _REPORT_SECONDS
            self._host.unwatch(worker.channel)

    def _take_in(self, worker: WorkerClient) -> None:
        for frame in worker.channel.receive():
            if worker.chunks:
                if self.agenda.settle(worker.chunks[0], frame):
                    worker.leaving = worker.farewell = True
                if not worker.chunks[0].open:
                    worker.finish_chunk(time.monotonic())

    # -- ends

    def _check_deadlines(self, now: float) -> None:
        for worker in list(self._workers.values()):
            if worker.look_at > now:
                continue
            if worker.channel.ended:
                self._let_go(worker, Outcome("crash", None, "the worker process closed its connection"))
            elif worker.overdue(now):
                self._take_in(worker)  # what it finished before counts
                if worker.overdue(now):
                    self._stop(worker, now)

    def _stop(self, worker: WorkerClient, now: float) -> None:
        position, start, handling = worker.at()
        if position is None and not handling:
            self._let_go(worker, Outcome("lost", None, "the worker process did not begin"))
            return
        limit = worker.chunks[0].job.limits.seconds
        kind: Kind = "overloaded" if worker.overloaded else "timeout"
        self._let_go(worker, Outcome(kind, None, f"no result after {limit:g} s", now - start))

    def _let_go(self, worker: WorkerClient, cause: Outcome[Any] | None = None) -> None:
        assert self._supervisor is not None
        self._supervisor.kill(worker.number)
        self._remove(worker, cause)

    def _bury(self, number: int, code: int) -> None:
        """Take in the last results of a worker whose process ended, and find out why it did."""
        worker = self._workers.get(number)
        if worker is None:
            return  # we let it go before
        self._take_in(worker)
        _, start, _ = worker.at()
        seconds = max(time.monotonic() - start, 0.0)
        cause: Outcome[Any] | None = None
        if code == -signal.SIGXCPU:
            cause = Outcome("timeout", None, "more CPU time than the limits allow", seconds)
        elif code == OUT_OF_MEMORY:
            cause = Outcome("memory", None, "MemoryError", seconds)
        elif code in _FROM_OUTSIDE:
            cause = Outcome("lost", None, f"the worker process {_ending(code)} from outside", seconds)
        elif not worker.farewell:
            cause = Outcome("crash", None, f"the worker process {_ending(code)}", seconds)
        self._remove(worker, cause)

    def _remove(self, worker: WorkerClient, cause: Outcome[Any] | None) -> None:
        """Let go of a worker's socket and page, and have its open items done by others."""
        del self._workers[worker.number]
        position, _, handling = worker.at()
        chunks = list(worker.chunks)
        self._host.unwatch(worker.channel)
        worker.close()
        self.agenda.after_death(chunks, position, cause, handling=handling)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
