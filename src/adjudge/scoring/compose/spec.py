"""Reading the plain-data form of composites: lists of parts, and options with helpful errors.

A composite class has `from_spec(body, loader)`; `body` is what stands behind its key in a spec, and `loader` turns
nested specs into scorers.  A plug-in may offer the same class method.

Not covered: names, YAML and entry points; `adjudge.scoring.registry` resolves those and is the usual `Loader`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from adjudge.options import options_of
from adjudge.protocol import Scorer
from adjudge.scoring.compose.part import Part

_PART_KEYS = ("scorer", "name", "weight")


class Loader(Protocol):
    """Turns nested specs into scorers."""

    def scorer(self, spec: Any) -> Scorer:
        """Return the scorer a nested spec describes."""
        ...

    def file(self, name: str) -> Path:
        """Return the path of a file a spec names; relative names are relative to the spec's own file."""
        ...


def part_of(entry: Any, loader: Loader, *, inside: str) -> Part:
    """Return a part from a nested spec, or from `{scorer: SPEC, name: ..., weight: ...}`.

    A part given by name goes by that name, any other by the scorer's own unless `name` says otherwise.
    """
    if isinstance(entry, str) and entry.replace("-", "_").isidentifier():
        return Part(loader.scorer(entry), name=entry)
    if not (isinstance(entry, Mapping) and "scorer" in entry):
        return Part(loader.scorer(entry))
    given = options_of(entry, _PART_KEYS, inside=f"a part of {inside!r}")
    return Part(loader.scorer(given["scorer"]), name=given.get("name", ""), weight=given.get("weight", 1.0))


def parts_of(body: Any, loader: Loader, *, inside: str) -> tuple[Part, ...]:
    """Return parts from a list of them, or from a mapping of scorer names to weights."""
    if isinstance(body, Mapping):
        for name, weight in body.items():
            if isinstance(weight, Mapping | list):
                raise ValueError(
                    f"{inside!r} maps {name!r} to {weight!r}; a mapping holds only `name: weight`. To give options, "
                    "use the list form: [{scorer: {name: {option: value}}, weight: 1.0}]"
                )
        return tuple(Part(loader.scorer(name), name=name, weight=weight) for name, weight in body.items())
    if isinstance(body, Sequence) and not isinstance(body, str):
        return tuple(part_of(entry, loader, inside=inside) for entry in body)
    raise ValueError(
        f"{inside!r} has the parts {body!r}; they must be a list of scorers or a mapping of names to weights"
    )
