"""The families of the package `reasoning-gym`, as `gym/NAME`.

A row makes a data set of one entry from its own seed, so that no row depends on another: the package's own data sets
give entry i of seed s and entry i + 1 of seed s - 1 the same random numbers, and a test set with another seed then
overlaps with a training set.

What the package needs to check an answer, the entry, is kept in the reference:
`{"family": "chain_sum", "package": "reasoning-gym 0.1.25", "entry": {"question": .., "answer": .., "metadata": {..}}}`,
written by `adjudge.wire` where JSON cannot hold a value (tuples, numbers as keys).

Left out are `composite`, which mixes families, and five families of version 0.1.25 whose tasks change with the order of
Python's sets, and so from run to run: found by making 25 tasks of each family under two values of PYTHONHASHSEED.

Not covered: a time limit; some families search, and take up to a second a task.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

from adjudge import wire

_SEED_BITS = 32  # NumPy's older generators, which some families of reasoning-gym use, take no larger seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A prompt with what its answers are checked against.

    Attributes:
        prompt: the text.
        answer: an answer that is right; None where the family knows how to check one but has none.
        reference: what the scorer takes: plain JSON data.
        fault: why there is no usable task, in snake_case; "" where there is one.
    """

    prompt: str
    answer: str | None
    reference: Any
    fault: str = ""


class Family(Protocol):
    """Tasks of one kind."""

    @property
    def name(self) -> str:
        """What `--family` calls it."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same seed could give another task."""
        ...

    @property
    def scorer(self) -> str:
        """The scorer that goes with its references."""
        ...

    @property
    def levels(self) -> int:
        """How many levels of difficulty it has; 0 for none."""
        ...

    @property
    def usual_level(self) -> int:
        """The level where none is asked for; 0 for a setting that is none of them."""
        ...

    def task(self, level: int, seed: int) -> Task:
        """Return the task of a seed.

        Args:
            level: 1 to `levels`, or `usual_level`.
            seed: 0 to 2**32 - 1; the same level and seed give the same task on every machine.
        """
        ...


def seed_of(family: Family, level: int, seed: int, index: int) -> int:
    """Return the seed of one row: a digest, so that seed 0 at row 5 and seed 5 at row 0 have nothing in common."""
    text = f"{family.name}\n{family.version}\n{level}\n{seed}\n{index}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: _SEED_BITS // 8], "big")


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
    def scorer(self) -> str:
        """The same for all of them."""
        return SCORER

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
        settings = self._settings(level)
        settings.update(seed=seed, size=1)
        try:
            data = _factory().create_dataset(self.key, **settings)
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
    """Return the names of all families of the installed package, sorted.

    Raises:
        ValueError: the package is not installed.
    """
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
