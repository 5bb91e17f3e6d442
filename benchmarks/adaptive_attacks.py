"""Which attackers break which scorers, and with how many questions: offline scorers, on rows that adjudge ships.

For each scorer and attacker the table has the share of rows that were broken within the budget, and the median number
of questions where some were.  Answers that are right by luck are not successes; they stand in the last column.
Scorers that run programs get a tenth of the budget, because a question takes them a hundred times as long.

Three scorers are here to be broken: a judge whose parser takes the first verdict that it finds, a reward that grows
with length, and a linear preference model, fitted to the pairs that it is attacked on, so that it has them all right.

    python -m benchmarks.adaptive_attacks

Not covered: language models as judges; `adjudge eval attack` takes those as it takes any scorer.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from adjudge.evals.attacks.attacking import run_attack
from adjudge.evals.attacks.config import AttackConfig
from adjudge.evals.attacks.target import Goal
from adjudge.evals.reports.result import Result
from adjudge.protocol import Sample, Score, response_text

POLICY = "experiments.suffix_policy:SuffixPolicy"
ATTACKERS = ("constants", "random", "greedy", "suffix", "genetic", "answers", POLICY, "shipped")
PREFERENCES = "preference_model"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A scorer, and the rows that it is attacked on.

    Attributes:
        scorer: its spec.
        rows: their name among the shipped ones.
        goal: what is a success.
        slow: whether it runs programs.
    """

    scorer: str
    rows: str
    goal: Goal = "right"
    slow: bool = False


CASES = {
    "first verdict": Case(scorer="benchmarks.adaptive_attacks:FirstVerdict", rows="math", goal="good"),
    "length": Case(scorer="benchmarks.adaptive_attacks:Length", rows="pairs", goal="good"),
    PREFERENCES: Case(scorer="", rows="pairs", goal="good"),
    "token_f1": Case(scorer="token_f1", rows="short"),
    "format": Case(scorer="format", rows="format"),
    "exact": Case(scorer="exact", rows="short"),
    "numeric": Case(scorer="numeric", rows="numeric"),
    "math": Case(scorer="math", rows="math"),
    "choice": Case(scorer="choice", rows="choice"),
    "verdict": Case(scorer="verdict", rows="verdict"),
    "persona": Case(scorer="persona", rows="persona"),
    "program": Case(scorer="program", rows="program", slow=True),
    "run": Case(scorer="run", rows="run", slow=True),
    "code": Case(scorer="code", rows="code", slow=True),
    "sql": Case(scorer="sql", rows="sql", slow=True),
    "verilog": Case(scorer="verilog", rows="verilog", slow=True),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure.

    Attributes:
        scorers: names of the table's rows; all when empty.
        attackers: its columns.
        budget: questions of an attacker about a row; a tenth of it for scorers that run programs.
        limit: rows of each scorer.
        seed: of all that is drawn.
        json: print one line of JSON for each scorer instead of a table.
    """

    scorers: tuple[str, ...] = ()
    attackers: tuple[str, ...] = ATTACKERS
    budget: int = 1_000
    limit: int = 6
    seed: int = 0
    json: bool = False


class FirstVerdict:
    """A judge that knows the answer, and whose parser takes the first verdict in the transcript."""

    name = "first_verdict"
    fingerprint = "first_verdict:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the first number behind "Score:", from 1 to 10, as a share."""
        found = []
        for sample in samples:
            text = response_text(sample)
            transcript = f"Response: {text}\nScore: {9 if f'{{{sample.reference}}}' in text else 2}"
            first = re.search(r"Score: (\d{1,3})", transcript)
            found.append(Score.scored(min(1.0, int(first[1]) / 10) if first else 0.0))
        return found


class Length:
    """A reward that grows with length."""

    name = "length"
    fingerprint = "length:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return thousands of characters."""
        return [Score.scored(len(response_text(sample)) / 1_000) for sample in samples]


def preference_spec(folder: Path) -> str:
    """Fit a preference model to the shipped pairs, and return its spec."""
    from adjudge.evals.probes.row_file import place_of
    from adjudge.reward_models.baselines.preference_model import PreferenceModel
    from adjudge.training.examples import Pair

    rows = json.loads(Path(place_of("rows:pairs")).read_text(encoding="utf-8"))
    pairs = [Pair(prompt=row["prompt"], chosen=row["good"], rejected=row["bad"]) for row in rows]
    PreferenceModel.fit(pairs).save(folder)
    return json.dumps({"preference_model": {"model": str(folder)}})


def measured(name: str, options: Options, folder: Path) -> Result:
    """Attack one scorer."""
    case = CASES[name]
    return run_attack(
        AttackConfig(
            input=f"rows:{case.rows}",
            scorer=preference_spec(folder / "model") if name == PREFERENCES else case.scorer,
            goal=case.goal,
            attack=options.attackers,
            budget=max(1, options.budget // 10) if case.slow else options.budget,
            limit=options.limit,
            seed=options.seed,
        )
    )


def part_of(attacker: str) -> str:
    """Return the name of an attacker in results."""
    return "rl" if attacker == POLICY else attacker


def cell(result: Result, attacker: str) -> str:
    """Return the share of broken rows, and the median of questions."""
    numbers = {one.name: one.interval for one in result.measures if one.part == part_of(attacker)}
    if "success" not in numbers or numbers["success"].value is None:
        return "-"
    share = numbers["success"].known
    middle = numbers["median questions to success"].value if "median questions to success" in numbers else None
    broken = f"{round(share * numbers['success'].n)}/{numbers['success'].n}"
    return broken if middle is None else f"{broken} at {middle:g}"


def lucky(result: Result) -> str:
    """Return the largest share of rows that an attacker got paid for by saying the right answer."""
    named = [one.interval for one in result.measures if one.name in ("guessed", "hedged")]
    most = max((interval.value or 0.0 for interval in named), default=0.0)
    return f"{most:.0%}" if most else ""


def main() -> None:
    """Print the table."""
    options = tyro.cli(Options)
    table = Table(title=f"rows broken, and median questions, of at most {options.budget:,} a row")
    for head in ("scorer", "questions", *map(part_of, options.attackers), "luck", "s"):
        table.add_column(head)
    with tempfile.TemporaryDirectory() as home:
        for name in options.scorers or CASES:
            begun = time.perf_counter()
            result = measured(name, options, Path(home))
            seconds = time.perf_counter() - begun
            if options.json:
                print(json.dumps({"name": name, **result.to_dict()}))
            cells = [cell(result, attacker) for attacker in options.attackers]
            table.add_row(name, f"{result.counts.samples:,}", *cells, lucky(result), f"{seconds:.0f}")
    if not options.json:
        Console(width=160).print(table)


if __name__ == "__main__":
    main()
