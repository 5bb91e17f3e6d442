"""How the options of a kind of `adjudge data` stand on the command line."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from adjudge.cli.config_flags import Layout, required
from adjudge.io.jobs.config import JobConfig

_OF_AN_INPUT: Final = ("input", "split", "subset", "revision", "max_row_mb")
_PLACES: Final = {"input": "IN", "output": "OUT"}


def layout_of(config: Any) -> Layout:
    """Return where the fields of a configuration stand.

    `input` and `output` are positional; of a configuration that is no job's, whatever has no default is.
    A job whose input has a default reads none, so it has no flags about one.
    """
    needed = [item.name for item in dataclasses.fields(config) if item.init and required(item)]
    if not issubclass(config, JobConfig):
        return Layout(places={name: _PLACES.get(name, name.upper()) for name in needed})
    return Layout(
        places={name: place for name, place in _PLACES.items() if name in needed},
        last=[item.name for item in dataclasses.fields(JobConfig)],
        hidden=() if "input" in needed else _OF_AN_INPUT,
    )
