"""Scorers for the tests of the Ray engine, which its workers import.  Files tell them what to do, and what they did."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from adjudge.protocol import Sample, Score, response_text


class Plain:
    """The length of the response."""

    name = "plain"
    fingerprint = "plain:1"

    def validate(self, sample: Sample) -> None:
        if sample.reference == "none":
            raise ValueError("the reference is none")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [
            Score.scored(float(len(response_text(sample))), odd=(1, 2), id=sample.id, thing=_thing(sample))
            for sample in samples
        ]


def _thing(sample: Sample) -> object:
    return object() if "object" in response_text(sample) else None


class DiesOnce(Plain):
    """Kills its process at the first call that holds the word "fatal", once for each file of the folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if any("fatal" in response_text(sample) for sample in samples):
            for left in self._folder.glob("*.kill"):
                left.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return await super().score(samples)


class DiesAlways(Plain):
    """Kills its process at every call that holds the word "fatal", and says so first."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if any("fatal" in response_text(sample) for sample in samples):
            with (self._folder / "sizes").open("a") as told:
                told.write(f"{len(samples)}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().score(samples)


class DiesAlwaysInGroups(DiesAlways):
    """The same, and it compares the samples of a group."""

    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        scores = await super().score(samples)
        size = {sample.group: 0 for sample in samples}
        for sample in samples:
            size[sample.group] += 1
        return [Score.scored(score.value or 0.0, of=size[s.group]) for score, s in zip(scores, samples, strict=True)]


class DiesLoading(Plain):
    """Never gets ready."""

    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Unlike(Plain):
    """Another one in each process."""

    fingerprint = f"unlike:{os.getpid()}"


class NotThere(Plain):
    """Lacks what it needs."""

    def __init__(self) -> None:
        raise ValueError("the weights are not on this machine")


class Raises(Plain):
    """Raises while a file is there."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if self._file.exists() and any("fatal" in response_text(sample) for sample in samples):
            raise KeyError("a fault of the scorer")
        return await super().score(samples)


class Holds(Plain):
    """Holds the first batch until so many others are scored; says how many it had at the same time."""

    def __init__(self, folder: str, others: int) -> None:
        self._folder, self._others = Path(folder), others
        self._now = 0

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self._now += 1
        first = any(sample.id == "q0" for sample in samples)
        while first and len(list(self._folder.glob("*.scored"))) < self._others:
            await asyncio.sleep(0.01)
        at_once = self._now
        await asyncio.sleep(0)
        self._now -= 1
        (self._folder / f"{samples[0].id}.scored").touch()
        return [Score.scored(float(at_once), worker=os.getpid()) for _ in samples]


class Hangs(Plain):
    """Hangs at the word "fatal", while a file is not there, and says so with another."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        fatal = any("fatal" in response_text(sample) for sample in samples)
        if fatal and not (self._folder / "free").exists():
            (self._folder / "hangs").touch()
            await asyncio.Event().wait()
        return await super().score(samples)
