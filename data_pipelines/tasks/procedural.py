r"""Tasks that a program writes, with answers that it knows: which task each row is, and which rows are left out.

The families of exact arithmetic have five levels.  Answers are whole numbers and fractions; they are asked for in
\boxed{}, and `math` checks them, `exact` those whose notation is the task.  Everything else is in the package
`reasoning-gym`, as `gym/NAME`.

A row of those makes a data set of one entry from its own seed: the package's own data sets give entry i of seed s and
entry i + 1 of seed s - 1 the same random numbers, and a test set with another seed then overlaps with a training set.
What the package needs to check an answer, the entry, is kept in the reference, written by `adjudge.wire` where JSON
cannot hold a value (tuples, numbers as keys):
`{"family": "chain_sum", "package": "reasoning-gym 0.1.25", "entry": {"question": .., "answer": .., "metadata": {..}}}`.

Left out are `composite`, which mixes families, and five families of version 0.1.25 whose tasks change with the order of
Python's sets, and so from run to run (25 tasks of each family were made under two values of PYTHONHASHSEED).

Not covered: a time limit; some families search, and take up to a second a task.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.metadata
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from adjudge import wire
from adjudge.data_pipelines.tasks.config import TasksConfig
from adjudge.io.jobs.groups import NumberSource
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import fingerprint_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A prompt with what its answers are checked against.

    Attributes:
        answer: an answer that is right; None where the family knows how to check one but has none.
        reference: what the scorer takes: plain JSON data.
        fault: why there is no usable task, in snake_case; "" where there is one.
    """

    prompt: str
    answer: str | None
    reference: Any
    fault: str = ""


PREFIX: Final = "gym/"
SCORER: Final = "reasoning_gym"
"""The scorer that goes with the references."""

_PACKAGE = "reasoning-gym"
_UNSTABLE: Final = frozenset(
    {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
)
_RAISED = (
    ValueError, LookupError, ArithmeticError, RuntimeError, TypeError, AttributeError, AssertionError,
)  # by bad seeds  # fmt: skip
_LEFT_OUT = _UNSTABLE | {"composite"}


@dataclass(frozen=True)
class GymFamily:
    """One data set of reasoning-gym; level n is step n of its curriculum, level 0 its default configuration."""

    key: str
    scorer = SCORER
    usual_level = 0

    @property
    def name(self) -> str:
        """The key behind "gym/"."""
        return f"{PREFIX}{self.key}"

    @property
    def version(self) -> str:
        """The package's version."""
        return _version()

    @property
    def levels(self) -> int:
        """Steps of the curriculum; the attribute with the most levels decides."""
        curricula = _factory().CURRICULA
        if self.key not in curricula:
            return 0
        return max((len(attribute.levels) for attribute in curricula[self.key]().attributes.values()), default=0)

    def task(self, level: int, seed: int) -> Task:
        """Return the entry of a seed, with the verdict of the family's own check on its own answer.

        The check gets the entry as the reference has it, so that what it cannot read there is left out.
        """
        try:
            data = _factory().create_dataset(self.key, **{**self._settings(level), "seed": seed, "size": 1})
            made = data[0]
            entry = wire.encode({name: _plain(made[name]) for name in ("question", "answer", "metadata")}, "entry")
            answer = made["answer"]
            refused = isinstance(answer, str) and float(data.score_answer(answer, wire.decode(entry))) != 1.0
        except _RAISED:
            return Task(prompt="", answer=None, reference=None, fault="generator_error")
        return Task(
            prompt=str(made["question"]),
            answer=answer if isinstance(answer, str) else None,
            reference={"family": self.key, "package": self.version, "entry": entry},
            fault="answer_refused" if refused else "",
        )

    def _settings(self, level: int) -> dict[str, Any]:
        if not level:
            return {}
        curriculum = _factory().CURRICULA[self.key]()
        curriculum.set_global_level(level - 1)
        made = curriculum.generate_configuration()
        return {name: getattr(made, name) for name in made.__dataclass_fields__}


def gym_families() -> tuple[str, ...]:
    """Return the names of all families of the installed package, sorted; raise `ValueError` without it."""
    return tuple(f"{PREFIX}{key}" for key in sorted(set(_factory().DATASETS) - _LEFT_OUT))


@cache  # a look-up takes a millisecond, and each task needs it three times
def _version() -> str:
    return f"{_PACKAGE} {importlib.metadata.version(_PACKAGE)}"


def _factory() -> Any:
    try:
        importlib.import_module("reasoning_gym")
        return importlib.import_module("reasoning_gym.factory")
    except ModuleNotFoundError as error:
        raise ValueError(
            f"families that begin with {PREFIX!r} need the package {error.name!r}; "
            f"install it with: pip install {_PACKAGE}"
        ) from error


def _plain(value: Any) -> Any:
    """Return a value of plain types: arrays become lists, their scalars numbers, and what has no such form text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return kind(map(_plain, value))
    if type(value).__module__ == "numpy":
        return _plain(value.tolist())
    return str(value)


LEVELS: Final = 5
_ASK = "Give the final answer in \\boxed{}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticFamily:
    """Tasks written by one of the functions of this module.

    `version` changes whenever the same seed could give another task.
    """

    name: str
    version: str
    scorer: str
    write: Callable[[Random, int], tuple[str, str]]
    levels: int = LEVELS
    usual_level: int = 1

    def task(self, level: int, seed: int) -> Task:
        """Return the task of a seed."""
        prompt, answer = self.write(Random(seed), level)
        return Task(prompt=f"{prompt} {_ASK}", answer=answer, reference=answer)


def _number(random: Random, digits: int) -> int:
    return random.randint(10 ** (digits - 1), 10**digits - 1)


def _integers(random: Random, level: int) -> tuple[str, str]:
    """A sum of `level` + 1 terms, each a number or a product; from level 3 one of them is in parentheses."""
    text, total = "", 0
    for place in range(level + 1):
        sign = random.choice((1, -1)) if place else 1
        if level >= 3 and place == 1:
            left, right = _number(random, 2), _number(random, 2)
            term, value = f"({left} - {right})", left - right
        elif random.random() < 0.4:
            left, right = _number(random, 2), _number(random, 1 if level < 3 else 2)
            term, value = f"{left} * {right}", left * right
        else:
            value = _number(random, min(2 + level // 2, 4))
            term = str(value)
        text += f" {'+' if sign > 0 else '-'} {term}" if place else term
        total += sign * value
    return f"Compute {text}.", str(total)


def _fractions(random: Random, level: int) -> tuple[str, str]:
    """A sum of two fractions; three from level 3; numerators and denominators grow with the level."""
    most = 6 * level + 6
    text, total = "", Fraction(0)
    for place in range(2 if level < 3 else 3):
        sign = random.choice((1, -1)) if place else 1
        top, bottom = random.randint(1, most), random.randint(2, most)
        text += (f" {'+' if sign > 0 else '-'} " if place else "") + f"{top}/{bottom}"
        total += sign * Fraction(top, bottom)
    return f"Compute {text} as a whole number or a fraction in lowest terms.", str(total)


def _equation(random: Random, level: int) -> tuple[str, str]:
    """A linear equation with one whole solution; from level 3 the unknown stands on both sides."""
    solution = random.randint(-5 * level - 5, 5 * level + 5)
    left, constant = random.randint(2, 4 * level + 5), random.randint(-20 * level, 20 * level)
    right = random.choice([n for n in range(1, left + level) if n != left]) if level >= 3 else 0
    value = (left - right) * solution + constant
    other = f"{right}x {'+' if value >= 0 else '-'} {abs(value)}" if right else str(value)
    return f"Solve {left}x {'+' if constant >= 0 else '-'} {abs(constant)} = {other} for x.", str(solution)


def _remainder(random: Random, level: int) -> tuple[str, str]:
    """A remainder; from level 3 of a power."""
    divisor = random.randint(3, 10 * level + 10)
    if level < 3:
        number = _number(random, level + 2)
        return f"What is the remainder when {number} is divided by {divisor}?", str(number % divisor)
    base, power = random.randint(2, 99), random.randint(5, 10**level)
    return f"What is the remainder when {base}^{power} is divided by {divisor}?", str(pow(base, power, divisor))


def _bases(random: Random, level: int) -> tuple[str, str]:
    """A whole number written in another base, 2 to 9."""
    base, number = random.randint(2, 9), _number(random, level + 1)
    digits, rest = "", number
    while rest:
        rest, digit = divmod(rest, base)
        digits = f"{digit}{digits}"
    return f"Write the decimal number {number} in base {base}, as digits alone.", digits


def _divisors(random: Random, level: int) -> tuple[str, str]:
    """The greatest common divisor of two numbers; of three from level 3."""
    common = random.randint(1, 10 * level + 2)
    numbers = [common * random.randint(2, 10**level + 10) for _ in range(2 if level < 3 else 3)]
    named = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    return f"What is the greatest common divisor of {named}?", str(math.gcd(*numbers))


FAMILIES: Final[Mapping[str, ArithmeticFamily]] = MappingProxyType(
    {
        name: ArithmeticFamily(name=name, version="1", scorer=scorer, write=write)
        for name, scorer, write in (
            ("integers", "math", _integers),
            ("fractions", "math", _fractions),
            ("equation", "math", _equation),
            ("remainder", "math", _remainder),
            ("bases", "exact", _bases),
            ("divisors", "math", _divisors),
        )
    }
)
"""Families by name."""


Family: TypeAlias = ArithmeticFamily | GymFamily
"""Tasks of one kind: the same level and seed give the same task on every machine."""

_SEED_BYTES: Final = 4  # NumPy's older generators, which some families of reasoning-gym use, take no larger seed


def seed_of(family: Family, level: int, seed: int, index: int) -> int:
    """Return the seed of one row: a digest, so that seed 0 at row 5 and seed 5 at row 0 have nothing in common."""
    text = f"{family.name}\n{family.version}\n{level}\n{seed}\n{index}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_SEED_BYTES], "big")


def families_of(names: tuple[str, ...]) -> tuple[Family, ...]:
    """Return the families that options name, each once, in their order; "gym/*" stands for all of reasoning-gym.

    Raises:
        ValueError: there is no such family, or reasoning-gym is not installed.
    """
    wanted = [one for name in names for one in (gym_families() if name == f"{PREFIX}*" else (name,))]
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
_FIELDS: Final[Mapping[str, Kind]] = {
    "id": "text", "prompt": "text", "answer": "text", "reference": "any", "scorer": "text", "family": "text",
    "difficulty": "whole", "part": "text", "seed": "whole", "index": "whole", "version": "text",
}  # fmt: skip
_PARTS: Final = 1 << 32


class _TaskMaker:
    """Makes one task of each number.

    Raises:
        ValueError: a family is unknown, or has no such level.
    """

    name = "tasks"
    grouped = False

    def __init__(self, config: TasksConfig) -> None:
        self.config = config
        self.families = families_of(config.family)
        any_gym = any(family.scorer == SCORER for family in self.families)
        self.fields: Mapping[str, Kind] = {**_FIELDS, "reference": "any" if any_gym else "text"}
        self._repeats: set[int] = set()
        for family in self.families:
            for level in config.level:
                if level > family.levels:
                    has = f"it has {family.levels} levels" if family.levels else "it has no levels"
                    raise ValueError(f"--level is {level}, and the family {family.name!r} cannot make it: {has}")

    @property
    def fingerprint(self) -> str:
        config = self.config
        return fingerprint_of(
            self.name,
            _VERSION,
            [[family.name, family.version] for family in self.families],
            [list(config.level), config.seed, config.part, config.test_share, config.repeats],
            None if config.repeats else config.count,
        )

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        named = ", ".join(family.name for family in self.families[:8])
        more = f" and {len(self.families) - 8} others" if len(self.families) > 8 else ""
        return (f"families: {named}{more}",)

    def prepare(self, units: Iterable[Unit]) -> None:
        if self.config.repeats:
            return
        seen: set[int] = set()
        self._repeats = set()
        for unit in units:
            index = int(unit.rows[0]["index"])
            task = self._task(index)[2]
            mark = _mark(task.prompt, 8)
            if mark in seen and not task.fault:
                self._repeats.add(index)
            seen.add(mark)

    async def make(self, unit: Unit) -> Made:
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
    """Write tasks to a file."""
    return run_job(config, _TaskMaker(config), source=NumberSource(config.count, "tasks"), progress=progress)
