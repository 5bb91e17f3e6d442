"""Which task each row is, and which rows are left out.

Not covered: hyperparameters of a family beyond its levels.
"""

from __future__ import annotations

import difflib
import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from adjudge import wire
from adjudge.data_pipelines.tasks.procedural.arithmetic import FAMILIES
from adjudge.data_pipelines.tasks.procedural.config import TasksConfig
from adjudge.data_pipelines.tasks.procedural.gym import PREFIX, SCORER, GymFamily, gym_families
from adjudge.data_pipelines.tasks.procedural.task import Family, Task, seed_of
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.number_source import NumberSource
from adjudge.io.jobs.report import JobProgress, JobReport

ALL_OF_GYM = f"{PREFIX}*"


def families_of(names: tuple[str, ...]) -> tuple[Family, ...]:
    """Return the families that options name, each once, in their order; "gym/*" stands for all of reasoning-gym.

    Raises:
        ValueError: there is no such family, or reasoning-gym is not installed.
    """
    wanted = [one for name in names for one in (gym_families() if name == ALL_OF_GYM else (name,))]
    return tuple(_family(name) for name in dict.fromkeys(wanted))


def _family(name: str) -> Family:
    if name in FAMILIES:
        return FAMILIES[name]
    known = [*FAMILIES, *(gym_families() if name.startswith(PREFIX) else ())]
    if name in known:
        return GymFamily(name.removeprefix(PREFIX))
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(FAMILIES)}, and {PREFIX}NAME of reasoning-gym"
    raise ValueError(f"there is no family {name!r}; {hint}")


_VERSION = "1"
_PARTS: Final = 1 << 32


class TaskMaker:
    """Makes one task of each number."""

    name = "tasks"
    grouped = False

    def __init__(self, config: TasksConfig) -> None:
        """Find the families.

        Raises:
            ValueError: a family is unknown, or has no such level.
        """
        self.config = config
        self.families = families_of(config.family)
        self.fields: Mapping[str, Kind] = {
            "id": "text",
            "prompt": "text",
            "answer": "text",
            "reference": "any" if any(family.scorer == SCORER for family in self.families) else "text",
            "scorer": "text",
            "family": "text",
            "difficulty": "whole",
            "part": "text",
            "seed": "whole",
            "index": "whole",
            "version": "text",
        }
        self._repeats: frozenset[int] = frozenset()
        for family in self.families:
            for level in config.level:
                if level > family.levels:
                    has = f"it has {family.levels} levels" if family.levels else "it has no levels"
                    raise ValueError(f"--level is {level}, and the family {family.name!r} cannot make it: {has}")

    @property
    def fingerprint(self) -> str:
        """What the rows depend on."""
        config = self.config
        text = wire.dumps(
            [
                _VERSION,
                [[family.name, family.version] for family in self.families],
                [list(config.level), config.seed, config.part, config.test_share, config.repeats],
                None if config.repeats else config.count,
            ]
        )
        return f"{self.name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Say which families take turns."""
        del columns, first
        named = ", ".join(family.name for family in self.families[:8])
        more = f" and {len(self.families) - 8} others" if len(self.families) > 8 else ""
        return (f"families: {named}{more}",)

    def prepare(self, units: Iterable[Unit]) -> None:
        """Find the rows whose text came before: 8 bytes of its digest tell, so one in 2**64 pairs is mistaken."""
        if self.config.repeats:
            return
        seen: set[int] = set()
        repeats: list[int] = []
        for unit in units:
            index = int(unit.rows[0]["index"])
            task = self._task(index)[2]
            mark = _mark(task.prompt, 8)
            if mark in seen and not task.fault:
                repeats.append(index)
            seen.add(mark)
        self._repeats = frozenset(repeats)

    async def make(self, unit: Unit) -> Made:
        """Return the task of a number, unless it is left out."""
        index = int(unit.rows[0]["index"])
        if index in self._repeats:
            return Made(dropped={"repeated": 1})
        family, level, task = self._task(index)
        if task.fault:
            return Made(dropped={task.fault: 1})
        part = part_of(task.prompt, self.config.test_share)
        if self.config.part not in ("all", part):
            return Made(dropped={"other_part": 1})
        row = {
            "id": f"{family.name}-{level}-{self.config.seed}-{index}",
            "prompt": task.prompt,
            "answer": task.answer,
            "reference": task.reference,
            "scorer": family.scorer,
            "family": family.name,
            "difficulty": level or None,
            "part": part,
            "seed": self.config.seed,
            "index": index,
            "version": family.version,
        }
        return Made(rows=(row,))

    def _task(self, index: int) -> tuple[Family, int, Task]:
        family = self.families[index % len(self.families)]
        levels = self.config.level
        level = levels[index // len(self.families) % len(levels)] if levels else family.usual_level
        return family, level, family.task(level, seed_of(family, level, self.config.seed, index))


def part_of(text: str, test_share: float) -> str:
    """Return "train" or "test" for a text: the same whatever made it, and for texts that differ in case or spacing."""
    return "test" if _mark(text, 4) < test_share * _PARTS else "train"


def _mark(text: str, width: int) -> int:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[-width:], "big")


def make_tasks(config: TasksConfig, *, progress: JobProgress | None = None) -> JobReport:
    """Write tasks to a file.

    Raises:
        ValueError: a mistake in the options; nothing was written.
        JobError: the job could not go on; the same call goes on.
    """
    return run_job(config, TaskMaker(config), source=NumberSource(config.count, "tasks"), progress=progress)
