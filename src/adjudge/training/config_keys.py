"""The keys that a configuration file may hold, read from its dataclasses; and the key meant by one that is unknown."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Literal, Union, get_args, get_origin

from docstring_parser import google

from adjudge.training.known_words import WORDS

_TYPES: Mapping[Any, str] = {int: "int", float: "float", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a configuration file.

    Attributes:
        path: with dots: "schedule.epochs".
        hint: its annotation.
        default: plain data; MISSING where there is none.
        said: what it means.
        section: the dataclass that its value is, if it is one.
        several: its value is a list of such sections.
    """

    path: str
    hint: Any
    default: Any
    said: str
    section: type | None = None
    several: bool = False

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def parent(self) -> str:
        """The section that holds it; "" at the top."""
        return self.path.rpartition(".")[0]

    @property
    def shorthand(self) -> str:
        """The key within the section that a plain value stands for; "" if there is none."""
        return getattr(self.section, "shorthand", "")

    @property
    def any_names(self) -> bool:
        """Whether the value is a mapping whose keys are no fields."""
        return get_origin(self.hint) is Mapping

    @property
    def type(self) -> str:
        """What the value must be, in a word or two."""
        return _type_named(self.hint)


def attribute_docs(target: Any) -> dict[str, str]:
    """Return what a class's docstring, or a function's, says of each attribute or argument, as one line each."""
    found: dict[str, str] = {}
    for each in reversed(getattr(target, "__mro__", (target,))):
        for item in google.parse(inspect.cleandoc(each.__doc__ or "")).params:
            found[item.arg_name] = " ".join((item.description or "").split())
    return found


def config_keys(kind: Any, where: str = "") -> Iterator[Key]:
    """Yield the keys of a configuration, those without a default first, each section followed by its own keys."""
    hints = typing.get_type_hints(kind)
    said = attribute_docs(kind)
    required = [item for item in dataclasses.fields(kind) if item.default is item.default_factory is MISSING]
    for item in (*required, *(each for each in dataclasses.fields(kind) if each not in required)):
        hint = hints[item.name]
        section = next((part for part in (hint, *get_args(hint)) if dataclasses.is_dataclass(part)), None)
        key = Key(
            path=f"{where}.{item.name}" if where else item.name,
            hint=hint,
            default=item.default if item.default_factory is MISSING else item.default_factory(),
            said=said.get(item.name, "").replace("None", "null"),
            section=typing.cast("type | None", section),
            several=get_origin(hint) is tuple,
        )
        yield key
        if section is not None:
            yield from config_keys(section, key.path)


def meant(kind: Any, path: str, value: Any = None) -> list[str]:
    """Return the keys that an unknown one may stand for, nearest first: ours, or words of TRL, verl and OpenRLHF.

    Args:
        kind: the dataclass of the whole configuration.
        path: the unknown key, with dots.
        value: what stands there; of a mapping, its own keys are looked up.
    """
    if isinstance(value, Mapping) and value:
        return list(dict.fromkeys(key for name in value for key in meant(kind, f"{path}.{name}", value[name])))
    keys = list(config_keys(kind))
    paths = [key.path for key in keys]
    parts = path.split(".")
    for start in range(len(parts)):  # the longest known end of the path says most
        words = WORDS.get(".".join(parts[start:]).lower(), ())
        if known := [word for word in words if word in paths or _is_inside(word, keys) or word.startswith("--")]:
            return known
    same = [key.path for key in keys if key.name == parts[-1]]
    here = [key.path for key in keys if key.parent == ".".join(parts[:-1])]
    return same or _near(path, here) or _near(parts[-1], paths)


def _is_inside(word: str, keys: Sequence[Key]) -> bool:
    return any(key.any_names and word.startswith(f"{key.path}.") for key in keys)


def _near(word: str, paths: Sequence[str]) -> list[str]:
    """Paths whose last part is nearest to the word's."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition(".")[2], []).append(path)
    close = difflib.get_close_matches(word.rpartition(".")[2].lower().replace("-", "_"), by_name, n=1, cutoff=0.7)
    return [path for name in close for path in by_name[name]]


def _type_named(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_named(part) for part in inner if part is not type(None))
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"list of {_type_named(inner[0])}"
    if origin is not None:
        return "mapping"
    return _TYPES.get(hint, "section" if dataclasses.is_dataclass(hint) else "any")
