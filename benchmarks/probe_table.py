"""All probes against every built-in scorer that works offline, as the Markdown tables of docs/probes.md.

A cell is "pass", the share of variants that do not keep the rule, or "-" where no row fits.  Variants without a score
do not keep it.

    ADJUDGE_DATA=... python -m benchmarks.probe_table

Not covered: scorers of turns and groups (`information_gain`, `search_steps`, `bapo`, ...); pages, which `citations`
reads; `lean` and `lean_server`, which need a toolchain; composites, which are what their parts are.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tyro
from benchmarks.probe_generative import GENERATIVE, THEOREMS, VERDICTS
from benchmarks.probe_scorers import ANSWERS, ASKING, FORMS, PAIRS, POINTWISE, PROGRAMS, PROOFS, PUZZLES, Probed
from benchmarks.probe_tasks import TASKS

from adjudge.evals.probes.catalogue import PROBES, ProbesConfig
from adjudge.evals.probes.probing import run_probes
from adjudge.evals.reports.result import Result

GROUPS = {
    "Verifiers of answers": [*ANSWERS, *VERDICTS],
    "Verifiers of puzzles, tables and graphs": PUZZLES,
    "Verifiers of proofs": [*PROOFS, *THEOREMS],
    "Verifiers of programs": PROGRAMS,
    "Verifiers of form": FORMS,
    "Verifiers of other tasks": TASKS,
    "Verifiers that ask a model": ASKING,
    "Judges of one response": POINTWISE,
    "Judges of several responses": PAIRS,
    "Generative reward models": GENERATIVE,
}
MODELS = "Reward models"


def probed(one: Probed, folder: Path) -> Result:
    """Return the result of one scorer."""
    config = ProbesConfig(
        input=one.input(folder),
        scorer=one.name,
        skip=one.skip,
        per_row=one.per_row,
        extra_column=one.extra,
        worst=3,
    )
    return run_probes(config, scorer=one.make())


def cell(result: Result, name: str) -> str:
    """Return what became of a probe."""
    check = next((check for check in result.checks if check.name == name), None)
    if check is None or check.passed is None:
        return "-"
    if check.passed:
        return "pass"
    share = next(one.interval.known for one in result.measures if (one.name, one.part) == ("broken", name))
    return f"{share:.0%}"


def table(results: dict[str, Result]) -> list[str]:
    """Return a table of the probes that fit at least one scorer; those with the same cells share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for probe in PROBES:
        cells = tuple(cell(result, probe.name) for result in results.values())
        if set(cells) != {"-"}:
            rows.setdefault(cells, []).append(f"`{probe.name}`")
    head = [f"| probe | {' | '.join(f'`{name}`' for name in results)} |", "|---" * (len(results) + 1) + "|"]
    return head + [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in rows.items()]


def main(only: Sequence[str] = (), cases: bool = False) -> None:
    """Print the tables.

    Args:
        only: names of scorers; all without any.
        cases: print the worst cases of each scorer on standard error, too.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        groups = dict(GROUPS)
        if not only or set(only) - {one.name for group in GROUPS.values() for one in group}:
            from benchmarks.probe_models import reward_models

            groups[MODELS] = reward_models(folder)
        for title, scorers in groups.items():
            results = {}
            for one in scorers:
                if only and one.name not in only:
                    continue
                results[one.name] = result = probed(one, folder)
                counts = result.counts
                print(f"{one.name}: {counts.samples} samples, {result.seconds:.1f} s", file=sys.stderr)
                for case in result.worst if cases else ():
                    texts = [f"{each.note}: {each.said}: {each.text[-200:]!r}" for each in case.responses]
                    print(f"  {case.part} {case.id} {case.verdict}", *texts, sep="\n    ", file=sys.stderr)
            if results:
                print(f"\n### {title}\n", *table(results), sep="\n")


if __name__ == "__main__":
    tyro.cli(main)
