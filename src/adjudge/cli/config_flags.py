"""Flags of a command, from the dataclasses of its options.

A field's help is the text that stands below it in the source, as everywhere in this project.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import re
import shutil
import textwrap
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeGuard, TypeVar, Union, get_args, get_origin

import tyro

from adjudge.cli.console import JsonFlag
from adjudge.options import renamed

K = TypeVar("K")

_MADE: Final = "Flags"
_GROUPS: Final[Mapping[str, str]] = {
    "column": r"\w+_column",
    "dataset": "split|subset|revision|shard|limit|max_row_mb",
    "statistics": "resamples|level|worst",
    "ray": r"ray_\w+",
    "job": "workers|batch_size|in_flight|cache|fail_on|retry_failed|restart|overwrite|license",
}
"""The groups of a command's help, in their order, and the fields that stand in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How fields become words of a command line.

    Attributes:
        places: fields that are positional, with what the usage line calls them.
        last: fields that are listed behind all others.
        hidden: fields without a flag.
    """

    places: Mapping[str, str]
    last: Collection[str] = ()
    hidden: Collection[str] = ()


def parsed(configs: Sequence[Any], layout: Layout, args: Sequence[str], *, prog: str, about: Sequence[str]) -> Any:
    """Return the flags that words give.

    Raises:
        SystemExit: help was asked for and printed, or a flag is wrong.
    """
    flags = flags_of(configs, layout)
    width = min(shutil.get_terminal_size().columns, 100)
    filled = (textwrap.fill(" ".join(each.split()), width, break_on_hyphens=False) for each in about)
    return grouped_cli(flags, args, prog=prog, about="\n\n".join(filled))


def grouped_cli(flags: type[K], args: Sequence[str], *, prog: str, about: str) -> K:
    """Return a dataclass filled from words; its help lists what it shares with many commands in groups (`_GROUPS`).

    Raises:
        SystemExit: help was asked for and printed, or a flag is wrong.
        ValueError: a flag has another name now.
    """
    if not {"-h", "--help"}.isdisjoint(args):  # tyro would join its lines
        print(f"{about}\n")
    hints = typing.get_type_hints(flags, include_extras=True)
    for word in args:
        flag = word.removeprefix("--").partition("=")[0]
        if word.startswith("--") and flag.replace("-", "_") not in hints and (now := renamed(flag)) in hints:
            raise ValueError(f"--{flag} is --{now.replace('_', '-')} now")
    given_class: Any = flags
    helps = {} if flags.__name__ == _MADE else field_helps(given_class)  # those of `flags_of` stand in the annotations
    groups: dict[str, list[Any]] = {"": []}
    for item in dataclasses.fields(given_class):
        field = dataclasses.field(default=item.default, default_factory=item.default_factory)
        groups.setdefault("" if required(item) else _group(item.name), []).append((item.name, hints[item.name], field))

    def made(name: str, fields: list[Any], more: list[Any]) -> Any:
        said = "".join(f"\n    {field}: {helps[field]}" for field, *_ in fields if field in helps)
        doc = {"__doc__": f"\n\nAttributes:{said}"} if said else {}
        return dataclasses.make_dataclass(name, fields + more, kw_only=True, namespace=doc)

    inner = []
    for name in sorted(groups.keys() - {""}, key=list(_GROUPS).index):
        part = made(name, groups[name], [])
        hint = _annotated(part, tyro.conf.OmitArgPrefixes, tyro.conf.arg(name=name))
        inner.append((f"{name}_group", hint, dataclasses.field(default_factory=part)))
    markers = (tyro.conf.FlagCreatePairsOff, tyro.conf.UseAppendAction, tyro.conf.HelptextFromCommentsOff)
    whole = made(flags.__name__, groups[""], inner)
    given = vars(tyro.cli(whole, prog=prog, args=list(args), config=markers, description=""))
    shared = {name: value for group, *_ in inner for name, value in vars(given.pop(group)).items()}
    return flags(**given, **shared)


def flags_of(configs: Sequence[Any], layout: Layout) -> type[Any]:
    """Return a dataclass with the fields of configurations as a command line has them, and `as_json`.

    A list that is not empty by default is empty here, because tyro would add to it what is given; `options_of` puts it
    back.
    """
    entries = [shown for config in configs for shown in _shown_fields(config, layout)]
    entries.sort(key=lambda entry: entry[0] in layout.last)
    entries.append(("as_json", JsonFlag, dataclasses.field(default=False)))
    return dataclasses.make_dataclass(_MADE, entries, kw_only=True, frozen=True)


def options_of(config: Any, given: Any) -> dict[str, Any]:
    """Return what was given for the fields of a configuration, without lists of which nothing was given."""
    defaults = {item.name: item.default for item in dataclasses.fields(config)}
    options = {item.name: getattr(given, item.name) for item in dataclasses.fields(given) if item.name in defaults}
    return {name: value for name, value in options.items() if value != () or not _is_full(defaults[name])}


@functools.cache
def field_helps(config: Any) -> Mapping[str, str]:
    """Return the text below each field as one line, those of the classes it derives from included."""
    helps: dict[str, str] = {}
    for each in reversed(config.__mro__[:-1]):
        if "__dataclass_fields__" not in vars(each):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, text in itertools.pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    helps[name] = " ".join(said.split())
    return helps


def paragraphs_of(config: Any) -> list[str]:
    """Return the paragraphs of a class's docstring that speak to users."""
    said = inspect.cleandoc(config.__doc__ or "")
    for heading in ("\nRaises:", "\nAttributes:"):
        said = said.partition(heading)[0]
    return said.strip().split("\n\n")


def required(item: dataclasses.Field[Any]) -> bool:
    """Return whether a field has no default."""
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _group(name: str) -> str:
    return next((group for group, names in _GROUPS.items() if re.fullmatch(names, name)), "")


def _shown_fields(config: Any, layout: Layout) -> list[tuple[str, Any, Any]]:
    hints, bare = typing.get_type_hints(config, include_extras=True), typing.get_type_hints(config)
    helps = field_helps(config)
    shown: list[tuple[str, Any, Any]] = []
    for item in dataclasses.fields(config):
        if not item.init or item.name in layout.hidden:
            continue
        place = layout.places.get(item.name)
        marker = _argument(item, bare[item.name], helps.get(item.name, ""), place)
        positional = [tyro.conf.Positional] if place is not None else []
        shown.append((item.name, _annotated(hints[item.name], marker, *positional), _copy(item)))
    return shown


def _annotated(hint: Any, *markers: Any) -> Any:
    of_parts: Any = Annotated  # a variable as its first part is not a type to a type checker
    return of_parts[(hint, *markers)]


def _is_full(default: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(default, tuple) and bool(default)


def _copy(item: dataclasses.Field[Any]) -> Any:
    if required(item):
        return dataclasses.field()
    if item.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=item.default_factory)
    return dataclasses.field(default=() if _is_full(item.default) else item.default)


def _argument(item: dataclasses.Field[Any], hint: Any, text: str, place: str | None) -> Any:
    metavar = place
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional and place is None:
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        metavar = "|".join(getattr(kind, "__name__", "VALUE").upper() for kind in kinds)
    said = "" if item.default is None or item.default == "" else None  # the text says what happens without it
    if _is_full(item.default):
        said = f"(repeatable, default: {', '.join(map(str, item.default))})"
    return tyro.conf.arg(metavar=metavar, help=text or None, help_behavior_hint=said)
