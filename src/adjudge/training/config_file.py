"""From a YAML file to a configuration: a frozen dataclass, its fields checked by their annotations.

A mapping becomes the dataclass that the field names; a plain value becomes it too where the class has a `shorthand`,
the field that the value is for (`loss: bt` is `loss: {name: bt}`).  Unknown keys are named with the one that is meant.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from adjudge.io.yaml_text import parsed
from adjudge.training.config_keys import WORDS, config_keys, meant

T = TypeVar("T")

_NEAR = 6  # keys that an unknown one may have meant
_OF_POLICIES = ("dpo", "robust_dpo", "ipo")  # losses that people give to a reward model


def load_config(kind: type[T], path: str, settings: Sequence[str] = ()) -> T:
    """Return the configuration that a file describes.

    Args:
        kind: the dataclass.
        path: a YAML file that holds one mapping.
        settings: "key=value" texts that replace single values, the key with dots ("schedule.epochs=2"), the value as
            YAML.

    Raises:
        ValueError: the file cannot be read, or a value is unknown, missing or out of range; the message names the key.
    """
    record = read_config(path)
    for setting in settings:
        _set(record, setting, kind)
    return config_of(kind, record)


def keys_of(path: str, settings: Sequence[str] = ()) -> frozenset[str]:
    """Return the top-level keys that a file and settings give, whatever kind of configuration they are of.

    Raises:
        ValueError: the file cannot be read.
    """
    set_apart = {setting.partition("=")[0].partition(".")[0].strip() for setting in settings}
    return frozenset({str(key) for key in read_config(path)} | set_apart - {""})


def config_of(kind: type[T], record: Any, where: str = "", whole: type | None = None) -> T:
    """Return a dataclass made of plain data: a mapping, or a plain value where the class has a `shorthand`.

    `where` is the key that holds it, for messages, and `whole` the whole configuration's class, where this is a part.
    """
    if not isinstance(record, Mapping):
        short = getattr(kind, "shorthand", None)
        if short is None:
            raise ValueError(f"{where or 'the configuration'} is {record!r}; it must be a mapping of options")
        record = {short: record}
    known = {item.name: item for item in dataclasses.fields(typing.cast("Any", kind))}
    hints = typing.get_type_hints(kind)
    for key, value in record.items():
        if key not in known:
            near = meant(whole, _joined(where, key), value) if whole else meant(kind, str(key), value)
            ours = ", ".join(repr(path if whole else _joined(where, path)) for path in near[:_NEAR])
            other = " or ".join(map(repr, WORDS.get(str(key).lower(), ())))
            short = getattr(kind, "shorthand", "")
            if short == "scorer" and len(record) == 1 and isinstance(value, Mapping):
                raise ValueError(
                    f"unknown option {_joined(where, key)!r}; a scorer with options goes into "
                    f"{_joined(where, short)!r}, as {{scorer: {{{key}: ..}}}}"
                )
            hint = f" (did you mean {ours}?)" if ours else f" (it is {other} in another kind of training)" * bool(other)
            raise ValueError(f"unknown option {_joined(where, key)!r}{hint}; there are {', '.join(known)}")
    for name, item in known.items():
        if name not in record and item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise ValueError(f"the option {_joined(where, name)!r} is missing; it has no default")
    made: Any = kind
    return typing.cast(
        "T",
        made(**{key: _value(hints[key], value, _joined(where, key), whole or kind) for key, value in record.items()}),
    )


def plain_config(config: Any) -> Any:
    """Return a configuration as plain JSON data, from which `config_of` makes an equal one."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {item.name: plain_config(getattr(config, item.name)) for item in dataclasses.fields(config)}
    if isinstance(config, Mapping):
        return {str(key): plain_config(value) for key, value in config.items()}
    if isinstance(config, tuple | list):
        return [plain_config(item) for item in config]
    return config


def _value(hint: Any, value: Any, where: str, whole: type) -> Any:
    """A value of the kind that an annotation names."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        (hint,) = [kind for kind in inner if kind is not type(None)]
        return _value(hint, value, where, whole)
    if origin is Literal:
        if value not in inner:
            of_policies = " (which is of `adjudge train policy`)" * (value in _OF_POLICIES)
            raise ValueError(f"{where} is {value!r}{of_policies}; give one of {', '.join(map(str, inner))}")
        return value
    if dataclasses.is_dataclass(hint):
        part: Any = hint
        return value if isinstance(value, part) else config_of(part, value, where, whole)
    if origin is tuple:
        items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        return tuple(_value(inner[0], item, f"{where}[{at}]", whole) for at, item in enumerate(items))
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where} is {value!r}; it must be a mapping")
        return {str(key): _value(inner[1], item, _joined(where, key), whole) for key, item in value.items()}
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is float:
        if isinstance(value, str):  # YAML takes 1e-5 for text, for want of a dot
            try:
                return float(value)
            except ValueError:
                pass
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return float(value)
        elif isinstance(value, float):  # not finite: what reads it says what it wants
            return value
        raise ValueError(f"{where} is {value!r}; it must be a number")
    wanted = {int: "a whole number", str: "text", bool: "true or false"}
    if hint in wanted:
        if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
            raise ValueError(f"{where} is {value!r}; it must be {wanted[hint]}")
        return value
    return value


def read_config(path: str) -> dict[Any, Any]:
    """Return the mapping that a file holds, or raise `ValueError`."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"the configuration {path!r} cannot be read: {reason}; check the path") from error
    record = parsed(text, where=path, empty=True)
    if record is None:
        record = {}
    if not isinstance(record, dict):
        raise ValueError(f"the configuration {path!r} holds no mapping; write `key: value` lines")
    return record


def _joined(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _set(record: dict[str, Any], setting: str, kind: type) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"the setting {setting!r} is not of the form key=value, such as schedule.epochs=2")
    value = parsed(text, where=f"the setting {setting!r}", empty=True)
    keys = {key.path: key for key in config_keys(kind)}
    *path, last = key.strip().split(".")
    at: Any = record
    for place, part in enumerate(path, start=1):
        known = keys.get(".".join(path[:place]))
        if known is not None and known.any_names:  # of names with dots, as objectives' options have them
            at[part] = dict(at.get(part) or {})
            at[part][".".join([*path[place:], last])] = value
            return
        if part in at and not isinstance(at[part], dict):
            short = known.shorthand if known is not None and at[part] is not None else ""
            at[part] = {short: at[part]} if short else {}
        at = at.setdefault(part, {})
    at[last] = value
