"""What offline baselines are worth on public preference data: accuracy on held-out prompts, with 95 % intervals.

Every corpus is dealt to folds by prompt, and each fold is decided by models fitted on the other folds.  The prompts
whose SHA-256 begins with a number that 3 divides are the development third: all features, penalties and constants of
`adjudge.reward_models.baselines` were chosen on them alone, and the table leaves them out.  Intervals come from 2,000
resamples of the prompts.  Beside the fitted models stand the rules that need no training.

    ADJUDGE_DATA=... python -m benchmarks.preference_baselines

Not covered: published models, which need downloads; docs/training.md tells what others report.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tyro
from benchmarks.preference_sets import SETS, PreferenceSet, load
from rich.console import Console
from rich.table import Table

from adjudge.reward_models.baselines.baseline_table import BaselineRow, baseline_table
from adjudge.reward_models.baselines.features import FeatureOptions
from adjudge.training.examples import Pair, Rating, opening

ARITHMETIC = ("arithmetic", "quantities")
MODELS: Mapping[str, FeatureOptions] = {
    "preference model": FeatureOptions(),
    "length removed": FeatureOptions(length="removed"),
    "statistics alone": FeatureOptions(words=(), characters=(), bits=10),
    "arithmetic alone": FeatureOptions(words=(), characters=(), groups=ARITHMETIC, bits=10),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure.

    Attributes:
        sets: names of the corpora; all when empty.
        folds: how many parts the prompts are dealt to.
        seed: of the folds, the drawn contests and the intervals.
        part: "held-out" leaves out the development third, "development" reports it alone.
        json: print one line of JSON for each row instead of tables.
    """

    sets: tuple[str, ...] = ()
    folds: int = 5
    seed: int = 0
    part: str = "held-out"
    json: bool = False


def is_development(group: str) -> bool:
    """Return whether a prompt was looked at when features were chosen."""
    return int(hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()[:8], 16) % 3 == 0


def measured(corpus: PreferenceSet, models: Mapping[str, FeatureOptions], options: Options) -> list[BaselineRow]:
    """Return the rows of one corpus on the part asked for.

    On the development third the models learn from that third alone: the held-out prompts stay unseen.
    """
    examples: list[Pair | Rating] = [*corpus.pairs, *corpus.ratings]
    groups = {example.group or opening(example.prompt) for example in examples}
    wanted = frozenset(group for group in groups if is_development(group) == (options.part == "development"))
    if options.part == "development":
        pairs = [pair for pair in corpus.pairs if pair.group in wanted]
        ratings = [rating for rating in corpus.ratings if rating.group in wanted]
    else:
        pairs, ratings = list(corpus.pairs), list(corpus.ratings)
    return baseline_table(pairs, ratings, models=models, folds=options.folds, seed=options.seed, only=wanted)


def beats(row: BaselineRow, others: Sequence[BaselineRow]) -> bool:
    """Return whether a row's interval lies above 1/2 and above the intervals of others."""
    return row.won.low > max(0.5, *(other.won.high for other in others))


def shown(name: str, found: Sequence[BaselineRow], seconds: float) -> Table:
    """Return the table of one corpus."""
    first = found[0].won
    title = f"{name}: {first.contests:,} contests of {first.groups:,} prompts, {seconds:.0f} s"
    table = Table(title=title)
    for column in ("baseline", "won [95 %]", "above longer wins", "clear of longer and chance", "clear of all rules"):
        table.add_column(column, justify="left" if column == "baseline" else "right", no_wrap=True)
    rules = [row for row in found if row.name not in MODELS]
    for row in found:
        fitted = row.name in MODELS
        clear = [("yes" if beats(row, others) else "no") if fitted else "" for others in (rules[:1], rules)]
        table.add_row(row.name, str(row.won), str(row.above), *clear)
    return table


def cells(name: str, found: Sequence[BaselineRow]) -> Table:
    """Return the shares by cell."""
    table = Table(title=f"{name}, by cell")
    kept = [row for row in found if row.name in ("longer wins", "fewer steps win", *MODELS)]
    table.add_column("cell", no_wrap=True)
    for row in kept:
        table.add_column(row.name, justify="right", no_wrap=True)
    for cell in kept[0].cells:
        table.add_row(f"{cell} ({kept[0].cells[cell].contests})", *(str(row.cells[cell]) for row in kept))
    return table


def record(name: str, row: BaselineRow) -> str:
    """Return a row as one line of JSON."""
    won, above = ([share.value, share.low, share.high] for share in (row.won, row.above))
    by_cell = {cell: [share.value, share.low, share.high, share.contests] for cell, share in row.cells.items()}
    numbers = {"contests": row.won.contests, "groups": row.won.groups, "won": won, "above_longer": above}
    return json.dumps({"set": name, "baseline": row.name, **numbers, "cells": by_cell})


def main(options: Options) -> None:
    unknown = set(options.sets) - set(SETS)
    if unknown:
        sys.exit(f"no set is called {sorted(unknown)[0]!r}; the sets are {', '.join(SETS)}")
    if options.part not in ("held-out", "development"):
        sys.exit(f"the part is {options.part!r}; it must be held-out or development")
    console = Console(width=180)
    for name in options.sets or SETS:
        begun = time.perf_counter()
        found = measured(load(name), MODELS, options)
        if options.json:
            print(*(record(name, row) for row in found), sep="\n", flush=True)
            continue
        console.print(shown(name, found, time.perf_counter() - begun))
        if found[0].cells:
            console.print(cells(name, found))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
