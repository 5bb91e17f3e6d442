"""How the options of a kind of `adjudge eval` stand on the command line: the input first, the rest as flags."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from adjudge.cli.config_flags import Layout, required
from adjudge.evals.reports.config import EvalConfig


def layout_of(configs: Sequence[Any]) -> Layout:
    """Return where the fields of the configurations stand; what every evaluation has is listed last."""
    shared = [item.name for item in dataclasses.fields(EvalConfig)]
    (taken,) = [item for config in configs for item in dataclasses.fields(config) if item.name == "input"]
    return Layout(places={"input": "INPUT" if required(taken) else "[INPUT]"}, last=shared)
