"""Every value that a published name stands for, with where it is from; `python -m tests.presets.published_defaults`
writes the values anew, and a name without a source is not in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from adjudge.cli.recipes import RECIPES
from adjudge.rl_integration.trainer.algorithms.credit.credit import CREDITS
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CURRICULA, IMPROVERS
from adjudge.scoring.builtin import PRESETS

TABLE: Final = Path(__file__).with_suffix(".yaml")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers, flags and texts of plain data or dataclasses, each with its path in dots."""
    if is_dataclass(value) and not isinstance(value, type):
        yield f"{path}.is".lstrip("."), type(value).__name__
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from leaves(item, f"{path}.{at}".lstrip("."))
    elif value is not None:
        yield path, value


def found() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the values that there are now, by kind and name."""
    of_code: dict[str, Mapping[str, Any]] = {
        "objectives": OBJECTIVES, "credits": CREDITS, "curricula": CURRICULA, "improvers": IMPROVERS
    }  # fmt: skip
    of_files = {"presets": (PRESETS, "scorer"), "recipes": (RECIPES, "run")}
    every = {kind: {name: dict(leaves(value)) for name, value in named.items()} for kind, named in of_code.items()}
    for kind, (folder, key) in of_files.items():
        read = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))}
        every[kind] = {name: dict(leaves(data[key])) for name, data in read.items() if key in data}
    return every


def table() -> dict[str, Any]:
    """Return what the file holds."""
    read: dict[str, Any] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return read


if __name__ == "__main__":
    TABLE.write_text(
        yaml.safe_dump(
            {"sources": table()["sources"], "values": found()}, default_flow_style=None, allow_unicode=True, width=118
        ),
        encoding="utf-8",
    )
