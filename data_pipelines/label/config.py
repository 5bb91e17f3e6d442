"""The options of a label job: which scorers it names, under which names, and what each of them gets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from adjudge import reasons
from adjudge.io.columns import ColumnOptions
from adjudge.io.jobs.config import Files
from adjudge.io.jobs.report import MAX_IN_A_ROW
from adjudge.options import Range

_NAMED: Final = re.compile(r"([A-Za-z_][\w-]*)=(?!=)(.+)", re.DOTALL)
_PLAIN: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """One scorer of a call.

    Attributes:
        name: what the output calls it; "" leaves that to the scorer.
        spec: a name, module:object, YAML or JSON text, or a file.
        unless: names of those that may spare it.
    """

    name: str
    spec: str
    unless: tuple[str, ...] = ()


def asked_scorers(specs: Sequence[str], unless: Sequence[str], doubt: Sequence[str]) -> tuple[tuple[Asked, ...], bool]:
    """Return the scorers of a call, and whether the output holds their scores by name.

    It does where there are several, and where one has been given a name.

    Args:
        specs: each `SPEC` or `NAME=SPEC`.
        unless: each `NAME=EARLIER,...`: NAME is asked only about what none of the earlier ones settled.
        doubt: reasons of numbers that settle nothing.

    Raises:
        ValueError: there is no scorer, a name is used twice, or nobody has the name that another text uses.
    """
    if not specs:
        raise ValueError("there is no scorer; name one with --scorer")
    asked = [_asked(spec) for spec in specs]
    names = [each.name for each in asked]
    for name in names:
        if name and names.count(name) > 1:
            raise ValueError(f"--scorer has the name {name!r} twice; name one of them, as in --scorer OTHER_NAME=SPEC")
    spared = _spared(unless, names)
    _check_doubt(doubt, bool(spared))
    named = len(specs) > 1 or _NAMED.fullmatch(specs[0]) is not None
    return tuple(Asked(each.name, each.spec, spared.get(each.name, ())) for each in asked), named


def _asked(text: str) -> Asked:
    match = _NAMED.fullmatch(text.strip())
    if match is not None:
        return Asked(match[1], match[2].strip())
    spec = text.strip()
    return Asked(spec if _PLAIN.fullmatch(spec) else "", spec)


def _spared(unless: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    spared: dict[str, tuple[str, ...]] = {}
    for text in unless:
        name, equals, rest = text.partition("=")
        earlier = tuple(each.strip() for each in rest.split(",") if each.strip())
        name = name.strip()
        if not equals or not name or not earlier:
            raise ValueError(f"--unless is {text!r}; it must be NAME=EARLIER, as in --unless judge=math")
        for each in (name, *earlier):
            if each not in names:
                known = ", ".join(known for known in names if known) or "none"
                raise ValueError(
                    f"--unless is {text!r}, and no scorer has the name {each!r} (names there are: {known}); "
                    f"give it one, as in --scorer {each}=SPEC"
                )
            if each != name and names.index(each) > names.index(name):
                raise ValueError(f"--unless is {text!r}, and {each!r} comes after {name!r}; give it before")
        if name in earlier:
            raise ValueError(f"--unless is {text!r}; a scorer cannot spare itself")
        spared[name] = tuple(dict.fromkeys((*spared.get(name, ()), *earlier)))
    return spared


def _check_doubt(doubt: Sequence[str], spared: bool) -> None:
    if doubt and not spared:
        raise ValueError("--doubt says which numbers settle nothing, and no scorer waits for another; add --unless")
    for reason in doubt:
        if reason not in reasons.CANDIDATE or not reason:
            known = ", ".join(code for code in reasons.CANDIDATE if code)
            raise ValueError(f"--doubt is {reason!r}; a number has one of the reasons {known}")


def numbers_by_name(flag: str, given: float | str, names: Sequence[str], *, whole: bool) -> dict[str, float | None]:
    """Return what an option says of each scorer: a number for all, `NAME=N,NAME=N`, or "" for nothing, which is None.

    Args:
        flag: how errors name the option.
        given: its value.
        names: the scorers there are; "" for one that has no name yet.
        whole: whether numbers must be whole, and 1 or more; otherwise they must be 0 or more.

    Raises:
        ValueError: it is no such thing, or names a scorer that is not there.
    """
    if isinstance(given, int | float) or "=" not in given:
        return dict.fromkeys(names, None if given == "" else _number(flag, given, whole))
    numbers: dict[str, float | None] = dict.fromkeys(names)
    for part in given.split(","):
        name, _, number = part.partition("=")
        name = name.strip()
        if not name or name not in names:
            known = ", ".join(name for name in names if name) or "none has a name; give it one: --scorer NAME=SPEC"
            raise ValueError(f"{flag} is {given!r}, and no scorer has the name {name!r} (names: {known})")
        numbers[name] = _number(flag, number, whole)
    return numbers


def _number(flag: str, given: float | str, whole: bool) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    least = 1 if whole else 0
    if not math.isfinite(number) or number < least or (whole and number != int(number)) or isinstance(given, bool):
        raise ValueError(
            f"{flag} is {given!r}; it must be a {'whole ' if whole else ''}number, {least} or more, or NAME=N,NAME=N"
        )
    return number


@dataclass(frozen=True, kw_only=True)
class LabelConfig(Files, ColumnOptions):
    """Score every row of a dataset and write the scores to a file.

    A job that was interrupted, in whatever way, goes on where it was when the same call is made again.
    """

    scorer: str | tuple[str, ...] = "auto"
    """A name, module:object, ./file.py:object, a reward model's folder or hub name, a spec as YAML or JSON text, or a
    .yaml or .json file. "auto" chooses by the reference of each row. Give it several times for several scorers, with
    NAME=SPEC where one needs a name; scores are then written by name."""

    unless: tuple[str, ...] = ()
    """NAME=EARLIER: ask the scorer NAME only about what EARLIER did not settle.
    A scorer settles a sample with a number. EARLIER may be several, with commas."""

    doubt: tuple[str, ...] = ()
    """A reason with which a number settles nothing, such as undecided; give it several times for several."""

    keep_columns: bool = False
    """Write the row too, as the field `input` of each score: with the one response
    that was scored in the place of all that the row lists."""

    timings: bool = False
    """Write the seconds each score took; the output then differs from run to run."""

    shard: str = ""
    """i/n: only every n-th row, beginning with row i, counted from 0; rows of one group stay together."""

    limit: Annotated[int | None, Range(ge=1)] = None
    """Only the first rows, so many, of all shards together."""

    workers: Annotated[int | None, Range(ge=1)] = None
    """Worker processes for verifiers; without it, one per CPU core.
    With --engine ray, in each Ray worker, 1 without it."""

    batch_size: Annotated[int, Range(ge=1)] = 256
    """Samples handed to the scorer in one call; no score depends on it."""

    in_flight: Annotated[int, Range(ge=1)] = 4
    """Batches that are scored at the same time; with --engine ray, by each worker."""

    cache: str = ""
    """A file that keeps scores, so that nothing is judged twice; it is made if it is not there."""

    engine: Literal["local", "ray"] = "local"
    """Where scorers work: in this process and its children, or in Ray workers.
    It may change when an interrupted job goes on."""

    ray_address: str = ""
    """The Ray to join, "auto" or HOST:PORT; without it, one starts and ends here."""

    ray_workers: int | str = ""
    """Ray workers for each scorer, as a number or as NAME=N,NAME=N.
    Without it, as many as there are CPUs and GPUs for."""

    ray_gpus: float | str = ""
    """GPUs that each worker reserves, as a number or as NAME=N,NAME=N.
    Fractions share one. Give it for scorers that run a model."""

    fail_on: Annotated[int, Range(ge=0)] = MAX_IN_A_ROW
    """Stop when so many newest scores of a scorer all failed for a reason on our side, such as a server that is gone or
    a judge without verdicts, and sooner if it never judged any. What was judged before is kept. 0 never stops."""

    retry_failed: bool = False
    """Judge again what failed in an output that is there, and keep the rest as it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shard_of()
        names = [each.name for each in self.asked()[0]]
        for flag, given, whole in (("ray_workers", self.ray_workers, True), ("ray_gpus", self.ray_gpus, False)):
            numbers_by_name(f"--{flag.replace('_', '-')}", given, names, whole=whole)
        for name in ("ray_address", "ray_workers", "ray_gpus"):
            if self.engine != "ray" and getattr(self, name) != "":
                raise ValueError(f"--{name.replace('_', '-')} is for --engine ray, and the engine is {self.engine}")

    def asked(self) -> tuple[tuple[Asked, ...], bool]:
        """Return the scorers that were named, and whether their scores are written by name."""
        specs = (self.scorer,) if isinstance(self.scorer, str) else self.scorer
        return asked_scorers(specs, self.unless, self.doubt)

    def shard_of(self) -> tuple[int, int]:
        """Return this job's shard, from 0, and how many there are."""
        if not self.shard:
            return 0, 1
        parts = re.fullmatch(r"(\d{1,9})/(\d{1,9})", self.shard)
        if parts is None or int(parts[1]) >= int(parts[2]):
            raise ValueError(
                f"--shard is {self.shard!r}; it must be i/n with i from 0 to n-1, such as 0/4, 1/4, 2/4 and 3/4"
            )
        return int(parts[1]), int(parts[2])
