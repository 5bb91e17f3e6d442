"""`adjudge recipes`: published systems as data, `NAME.yaml` in `adjudge/recipes`: what each pays, and what runs it.

title: StepSearch
source: arXiv 2505.15107; Zillwang/StepSearch at 43215ba
formula: what is new in it, in a line
differs: where the code differs, and what is done here      # optional, as all below
lacks: what of the paper is not here
test: the test that holds the formula
steps: [commands, in order]                                  # with a `run`, those that come before it
run: {reward: stepsearch, ...}                               # what `adjudge train policy` reads
numbers: {code: [rollouts.num_generations], ...}             # where each number of `run` is from
rows: search                                                 # a few rows, `rows/search.jsonl`

`not_here.yaml` names systems that cannot be run, each with its title, source and why.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, print_json, print_table
from adjudge.io.yaml_text import parsed
from adjudge.options import named
from adjudge.scoring.builtin import preset_names
from adjudge.scoring.registry import describe

RECIPES: Final = Path(__file__).parent.parent / "recipes"
ROWS: Final = RECIPES / "rows"
NOT_HERE: Final = RECIPES / "not_here.yaml"
ORIGINS: Final = ("paper", "code", "memory")
_NEEDED: Final = {"title", "source", "formula"}
_MORE: Final = {"differs", "lacks", "test", "steps", "run", "numbers", "rows"}
_BASE: Final[Mapping[str, Any]] = {
    "model": "Qwen/Qwen3-0.6B",
    "data": {"path": "data.jsonl", "chat": True, "held_out": 0.05},
    "output": "run",
}


@functools.cache
def recipes() -> Mapping[str, Mapping[str, Any]]:
    """Return every recipe by its name; a published scorer that none runs is one with a `steps` of its own.

    Raises:
        ValueError: a file lacks a key, or has one that is not known.
    """
    told = {path.stem: _read(path) for path in sorted(RECIPES.glob("*.yaml")) if path != NOT_HERE}
    for name in preset_names():
        if name not in told:
            listing = describe(name)
            told[name] = {
                "title": listing.source.partition(" (")[0],
                "source": listing.source,
                "formula": listing.summary,
                "steps": [f"adjudge scorers {name}", f"adjudge label IN OUT --scorer {name}"],
            }
    return dict(sorted(told.items()))


@functools.cache
def not_here() -> Mapping[str, Mapping[str, str]]:
    """Return the published systems that cannot be run, by name: title, source and why."""
    told: Mapping[str, Mapping[str, str]] = parsed(NOT_HERE.read_text(encoding="utf-8"), where=str(NOT_HERE))
    return dict(sorted(told.items()))


def _read(path: Path) -> Mapping[str, Any]:
    recipe = parsed(path.read_text(encoding="utf-8"), where=f"the recipe {path.stem!r}")
    if not isinstance(recipe, dict) or not _NEEDED <= set(recipe) <= _NEEDED | _MORE:
        raise ValueError(f"the recipe {path.stem!r} must have {', '.join(sorted(_NEEDED))}, and may have "
                         f"{', '.join(sorted(_MORE))}")  # fmt: skip
    if not {"steps", "run"} & set(recipe):
        raise ValueError(f"the recipe {path.stem!r} says nothing to run; give it steps or a run")
    return recipe


def run_file(name: str) -> dict[str, Any]:
    """Return what `adjudge train policy` reads: the recipe's run, with a model, data and output to be changed."""
    run = recipes()[name]["run"]
    return {**_BASE, **run, "data": {**_BASE["data"], **run.get("data", {})}}


def commands(name: str) -> list[str]:
    """Return the commands of a recipe, in order."""
    recipe = recipes()[name]
    train = [f"adjudge recipes {name} --write {name}", f"cd {name} && adjudge train policy run.yaml"]
    return [*recipe.get("steps", ()), *(train if "run" in recipe else ())]


def numbers(run: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a run file, each with its path in dots; those in lists go with the list."""
    items = run.items() if isinstance(run, Mapping) else enumerate(run) if isinstance(run, list) else ()
    for key, value in items:
        below = path if isinstance(run, list) else f"{path}.{key}".lstrip(".")
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield below, value
        else:
            yield from numbers(value, below)


def told_numbers(name: str) -> dict[str, list[str]]:
    """Return the numbers of a recipe's run, each as its path and value, by where they are from; the rest are "ours"."""
    recipe = recipes()[name]
    origins = {path: origin for origin, paths in recipe.get("numbers", {}).items() for path in paths}
    told: dict[str, list[str]] = {}
    for path, value in numbers(recipe.get("run", {})):
        told.setdefault(origins.get(path, "ours"), []).append(f"{path} {value:g}")
    return told


@dataclass(frozen=True, kw_only=True)
class RecipesCommand:
    """Find a published system and what runs it, and write its run file.

    adjudge recipes

    adjudge recipes search

    adjudge recipes stepsearch --write runs/stepsearch

    Exit code: 0, or 2 when there is no such recipe or its files cannot be written.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = ""
    """A recipe. Or a word: those with it in title, source (an arXiv number), formula or run; and what is not here."""

    write: Annotated[str, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = ""
    """Write run.yaml and some rows of data, data.jsonl, into this new folder."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Print or write, and return the exit code."""
        every = recipes()
        found = [self.name] if self.name in every else [name for name in every if _has(name, self.name)]
        absent = {} if self.name in every else {n: one for n, one in not_here().items() if _says([n, one], self.name)}
        if not (found or absent) or (self.write and self.name not in every):
            named(every, self.name, "recipe")  # raises, with "did you mean"
        if self.write:
            print(_written(self.name, Path(self.write)))
        elif self.as_json:
            told = [{"name": name, **every[name], "commands": commands(name)} for name in found]
            print_json({"recipes": told, "not_here": [{"name": name, **one} for name, one in absent.items()]})
        elif self.name in every:
            print(shown(self.name))
        else:
            if found:
                print_table(("name", "system", "source"), [(n, every[n]["title"], every[n]["source"]) for n in found])
            if absent:
                print_table(("not here", "why"), [(one["title"], one["why"]) for one in absent.values()])
        return exits.FINE


def _has(name: str, word: str) -> bool:
    return _says([name, recipes()[name], commands(name)], word)


def _says(told: Any, word: str) -> bool:
    return word.lower() in json.dumps(told, ensure_ascii=False).lower()


def shown(name: str) -> str:
    """Return a recipe in words, its commands last."""
    recipe = recipes()[name]
    lines = [f"{recipe['title']}  ({recipe['source']})", "", recipe["formula"].strip()]
    lines += [f"{key}: {recipe[key].strip()}" for key in ("differs", "lacks") if key in recipe]
    lines += [f"numbers from {origin}: {', '.join(told)}" for origin, told in told_numbers(name).items()]
    told = commands(name)
    if any(" examples/" in command for command in told):
        lines.append("examples/ is a folder of the source, beside which these commands are run")
    return "\n".join([*lines, "", *(f"  {command}" for command in told)])


def _written(name: str, folder: Path) -> str:
    """Write a recipe's files, and return what to do with them."""
    import yaml

    recipe = recipes()[name]
    if "run" not in recipe:
        users = [one for one, other in recipes().items() if f'"{name}"' in json.dumps(other.get("run"))]
        also = f" ({', '.join(users)} {'have' if len(users) > 1 else 'has'} one with it)" if users else ""
        raise ValueError(f"the recipe {name!r} has no run file{also}; it is: {'; '.join(commands(name))}")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"--write is {str(folder)!r}, which is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    head = "".join(f"# {line}".rstrip() + "\n" for line in shown(name).splitlines())
    text = yaml.safe_dump(run_file(name), sort_keys=False, allow_unicode=True)
    (folder / "run.yaml").write_text(head + text, encoding="utf-8")
    written = {"data": recipe["rows"]} | {path.stem: path.stem for path in ROWS.iterdir() if path.name in text}
    for file, rows in written.items():
        (folder / f"{file}.jsonl").write_bytes((ROWS / f"{rows}.jsonl").read_bytes())
    return (
        f"{folder} has {', '.join(sorted(path.name for path in folder.iterdir()))}; put your rows and your model in, "
        + ("\n  ".join(["then\n", *recipe.get("steps", ()), f"cd {folder} && adjudge train policy run.yaml"]))
    )
