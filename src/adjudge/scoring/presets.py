"""Published scorers as data: `NAME.yaml` in `adjudge/presets` is the scorer that `adjudge.load("NAME")` makes.

    description: MT-Bench's rating of one answer, from 1 to 10.     # one sentence
    notes: where it differs from the released code                  # optional
    source: MT-Bench (arXiv 2306.05685)
    numbers: ours; the paper publishes their order alone            # optional, where they are not the source's
    version: "1"                                                    # optional, see below
    options: {engine: the model that is asked}                      # what each `$NAME` of the spec is
    defaults: {}                                                    # optional: what stands in place of some `$NAME`s
    scorer:
      judge: {template: judges/mt_bench, output: scale}             # a spec with one key

A preset takes the options of its scorer; those that are given override the file's.  Where the spec holds `$NAME`, the
preset's only options are these names, required unless `defaults` has them, and what is given for one stands in its
place: so the engine of a scorer inside another can be given.

With a `version`, scores are signed with the preset's own name and that version, and the file's options count as
defaults; raise it when the same sample could get another score.  Without one, scores are signed by the scorer itself,
with all options.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from adjudge.io.yaml_text import parsed
from adjudge.options import options_of
from adjudge.scoring import builtin, registry

_KEYS = {"description", "source", "scorer"}
_MORE = {"notes", "numbers", "version", "options", "defaults"}


@functools.cache
def preset(name: str) -> type[Any]:
    """Return the class behind a preset: its scorer's class with other defaults, or one that reads a spec.

    Raises:
        ValueError: the file is malformed, or its scorer is unknown.
    """
    data = parsed((builtin.PRESETS / f"{name}.yaml").read_text(encoding="utf-8"), where=f"the preset {name!r}")
    if not (isinstance(data, dict) and set(data) - _MORE == _KEYS):
        raise ValueError(
            f"the preset {name!r} must have {', '.join(sorted(_KEYS))}; it may have {', '.join(sorted(_MORE))}"
        )
    if not (isinstance(data["scorer"], dict) and len(data["scorer"]) == 1):
        raise ValueError(f"the scorer of the preset {name!r} is {data['scorer']!r}; write a mapping of one name")
    ((scorer, given),) = data["scorer"].items()
    base = registry.resolve(scorer)
    doc = f"{data['description'].strip()}\n\n{data.get('notes', '')}".strip()
    if numbers := data.get("numbers", ""):
        doc += f"\n\nIts numbers are {numbers}."
    if options := "".join(f"\n    {option}: {what}" for option, what in data.get("options", {}).items()):
        doc += f"\n\nAttributes:{options}"
    said = {
        "__doc__": doc,
        "__module__": __name__,  # where pickle and specs find it, by `__getattr__`
        "__qualname__": name,
        "source": data["source"],
        "numbers": numbers,
    }
    if "version" in data and not (
        isinstance(given, Mapping) and given.keys() <= inspect.signature(base).parameters.keys()
    ):
        raise ValueError(
            f"the preset {name!r} has a version, and {scorer} is made of parts, which sign for themselves; leave it out"
        )
    if "version" in data:
        hints = typing.get_type_hints(base, include_extras=True)
        fields = [(key, hints[key], _default(value)) for key, value in given.items()]
        said |= {"name": name, "version": data["version"]}
        return dataclasses.make_dataclass(name, fields, bases=(base,), namespace=said, frozen=True, kw_only=True)
    return type(name, (base,), {**said, **_reading(name, scorer, given, base, data.get("defaults", {}))})


def __getattr__(name: str) -> type[Any]:
    """Return the class of a preset, so that "adjudge.scoring.presets:NAME" is its address."""
    if name in builtin.preset_names():
        return preset(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _reading(name: str, scorer: str, given: Any, base: type, default: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a class read its part of a spec into that of another scorer."""
    places = tuple(dict.fromkeys(_places(given)))
    closed = bool(places) or isinstance(given, list)  # the parts of a composite are not options
    usual: Mapping[str, Any] = given if isinstance(given, Mapping) and not closed else {}
    required = [place for place in places if place not in default]

    def made(loader: Any, options: Any) -> Any:
        try:
            return loader.scorer({scorer: options})
        except ValueError as error:  # it names a scorer that the user never wrote
            raise ValueError(f"the preset {name!r}: {error}") from error

    def from_spec(cls: type, body: Any, loader: Any) -> Any:
        """Read the options."""
        if closed:
            options = options_of(body or {}, places, inside=name, required=required)
            return made(loader, _filled(given, {**default, **options}))
        if not isinstance(body, Mapping | None):
            raise ValueError(f"the scorer {name!r} takes a mapping of options, not {body!r}")
        return made(loader, {**usual, **(body or {})})

    def new(cls: type, **options: Any) -> Any:
        """Return the scorer with these options."""
        return registry.load({name: options or None})

    kind = inspect.Parameter.KEYWORD_ONLY
    if closed:
        parameters = [
            inspect.Parameter(each, kind, default=default.get(each, inspect.Parameter.empty)) for each in places
        ]
    else:
        own = [each for each in inspect.signature(base).parameters.values() if each.kind is kind]
        factories = {
            item.name: item.default_factory()
            for item in getattr(base, "__dataclass_fields__", {}).values()
            if item.default_factory is not dataclasses.MISSING
        }
        defaults = {each.name: each.default for each in own} | factories
        known = set(usual) <= set(defaults)  # the parts of a composite are not options
        parameters = [each.replace(default={**defaults, **usual}[each.name]) for each in own if known]
    signature = inspect.Signature(parameters)
    reads = {"from_spec": classmethod(from_spec), "__new__": new, "spec_form": ""}
    return {**reads, "__signature__": signature, "__dataclass_fields__": {}}


def _default(value: Any) -> Any:
    """The default of an option; lists become tuples, as in every spec."""
    if isinstance(value, Mapping):
        return dataclasses.field(default_factory=lambda: dict(value))
    return tuple(value) if isinstance(value, list) else value


def _places(spec: Any) -> Iterator[str]:
    """Yield each `$NAME` in a spec, without the sign."""
    if isinstance(spec, str) and spec.startswith("$"):
        yield spec[1:]
    elif isinstance(spec, Mapping | list):
        for part in spec.values() if isinstance(spec, Mapping) else spec:
            yield from _places(part)


def _filled(spec: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(spec, str) and spec.startswith("$"):
        return options[spec[1:]]
    if isinstance(spec, Mapping):
        return {key: _filled(part, options) for key, part in spec.items()}
    return [_filled(part, options) for part in spec] if isinstance(spec, list) else spec
