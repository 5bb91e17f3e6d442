"""The keys of the files of `adjudge train`: all of them, one, or as a file with every default."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from typing import Any, Final

from adjudge.training.config_file import plain_config
from adjudge.training.config_keys import Key, config_keys, meant

_LEFT: Final = 42  # columns of a key with its default


def key_listing(kinds: Mapping[str, Any]) -> str:
    """Return one line for each key of configurations, section by section.

    Args:
        kinds: heading to dataclass.
    """
    blocks = []
    for heading, kind in kinds.items():
        keys = list(config_keys(kind))
        top = [key for key in keys if not key.parent and key.section is None]
        blocks.append("\n".join([heading, *_lines(top)]))
        for section in (key for key in keys if not key.parent and key.section is not None):
            same = next((key for key in keys if key.section is section.section), section)
            below = [key for key in keys if key.path.startswith(f"{section.path}.")]
            inner = _lines(below) if same is section else [f"  as those of {same.path}"]
            blocks.append("\n".join([*_lines([section], indent=""), *inner]))
    return "\n\n".join(blocks)


def key_help(kinds: Mapping[str, Any], word: str) -> str:
    """Return all that is known about a key, or about a section and its keys.

    Args:
        kinds: heading to dataclass.
        word: a key, with dots or its last part alone, or a word of TRL or verl.

    Raises:
        ValueError: there is none like it.
    """
    blocks = []
    for heading, kind in kinds.items():
        keys = list(config_keys(kind))
        paths = [key.path for key in keys]
        found = [word] if word in paths else meant(kind, word)
        chosen = [key for key in keys if any(_covers(path, key) for path in found)]
        if chosen:
            if word not in paths and all(word != key.name for key in chosen):
                heading += f"\n  {word} is {' or '.join(found)} here"
            blocks.append("\n".join([heading, *_lines(chosen, whole=True)]))
    if not blocks:
        raise ValueError(f"there is no key like {word!r}; --help without one lists them all")
    return "\n\n".join(blocks)


def config_text(kind: Any, config: Any = None) -> str:
    """Return a configuration file with every key, its meaning and its value.

    Args:
        kind: the dataclass.
        config: one of it; None for the defaults, without what has none.
    """
    lines: list[str] = []
    closed = "."  # the section of which nothing more is written
    for key in config_keys(kind):
        if key.path.startswith(closed):
            continue
        value = plain_config(key.default) if config is None else _at(plain_config(config), key.path)
        indent = "  " * key.path.count(".")
        lines += textwrap.wrap(
            key.said, 110, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ", break_on_hyphens=False
        )
        if key.section is not None and not key.several and value is not None:
            lines.append(f"{indent}{key.name}:")
        else:
            closed = f"{key.path}."
            lines.append(f"{indent}{key.name}: {_value(value)}".rstrip() + _fields(key, value))
    return "\n".join(lines) + "\n"


def _fields(key: Key, value: Any) -> str:
    if value is MISSING:
        return "  # required"
    if key.section is None or value is not None:
        return ""
    return f"  # keys: {', '.join(inner.path for inner in config_keys(key.section) if not inner.parent)}"


def _covers(path: str, key: Key) -> bool:
    """Whether a path names a key, a section that holds it, or what stands in its mapping."""
    inside = key.any_names and path.startswith(f"{key.path}.")
    return path == key.path or key.path.startswith(f"{path}.") or inside


def _lines(keys: Iterable[Key], *, indent: str = "  ", whole: bool = False) -> list[str]:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 110
    width = min(max(columns, 80), 120)
    lines = []
    for key in keys:
        left = f"{indent}{key.path}: {'required' if key.default is MISSING else _default(key)}".rstrip()
        kind = key.type + (f" (a plain value is {key.path}.{key.shorthand})" if key.shorthand and whole else "")
        text = f"{kind}; {key.said}"
        if whole:
            filled = textwrap.wrap(text, width - 6, break_on_hyphens=False)
            lines += [left, *(f"      {line}" for line in filled)]
        else:
            start = max(len(left) + 2, _LEFT + len(indent))
            lines.append(f"{left:<{start}}" + textwrap.shorten(text, max(20, width - start), placeholder=" ..."))
    return lines


def _default(key: Key) -> str:
    """A default in a line: of a section, only whether it is there."""
    if key.section is not None and key.default is not None:
        return ""
    return textwrap.shorten(_value(plain_config(key.default)), 30, placeholder=" ...")


def _value(value: Any) -> str:
    return "" if value is MISSING else json.dumps(value, ensure_ascii=False)


def _at(values: Mapping[str, Any], path: str) -> Any:
    at: Any = values
    for part in path.split("."):
        at = at[part]
    return at
