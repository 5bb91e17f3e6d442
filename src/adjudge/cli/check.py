"""`adjudge check`: try a scorer on the references of a file, and with its attacks, before anything trusts it."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import tyro

from adjudge.cli import exits
from adjudge.cli.attacks import attack_checks
from adjudge.cli.console import JsonFlag, plain, print_json, print_table, progress_bar, visible
from adjudge.cli.preflight import PROTOCOL, Preflight
from adjudge.cli.probe_checks import PROBE
from adjudge.cli.rows import GoldRow, read_golds
from adjudge.cli.trials import Check, Finding
from adjudge.protocol import Scorer


@dataclass(frozen=True, kw_only=True)
class CheckCommand:
    """Try a scorer on the references of a file before you trust it.

    adjudge check golds.jsonl --scorer math

    adjudge check --scorer sql

    What must hold:
    - each reference scores 1 when it is given as the response;
    - wrong answers made of the references score 0;
    - constants, injections and small errors do not pay (docs/probes.md);
    - hostile responses stay within the limits;
    - the scorer keeps the rules of the protocol;
    - attacks that the scorer ships score 0, honest responses near them 1.

    Without FILE only the last is tried.

    What fails is listed; it can be the fault of the scorer or of the reference.

    Exit code: 0 all is well, 1 something failed, 2 the call is wrong.
    """

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[FILE]")] = ""
    """Whatever `adjudge label` reads; only the references are used."""

    scorer: str = "auto"
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "auto" chooses by the first reference."""

    reference_column: str = ""
    """Column of the references; without it the usual names are tried."""

    prompt_column: str = ""
    """Column of the prompts, for scorers that look at them."""

    id_column: str = ""
    """Column of the ids; without one, rows are named by their number, from 0."""

    limit: int = 0
    """Use only the first rows, so many; 0 uses all."""

    right: float = 1.0
    """The least value of a right answer."""

    wrong: float = 0.0
    """The largest value of a wrong answer; more than 0 for scorers that give part of the credit."""

    seconds: float = 120.0
    """Longest time that one call of a scorer may take; a verifier has limits of its own instead."""

    skip_attacks: bool = False
    """Leave out the attacks that the scorer ships."""

    show: int = 20
    """Findings listed for each check; --json holds all."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Run the trials, print the table, and return the exit code."""
        if self.limit < 0 or self.show < 0:
            raise ValueError("--limit and --show count rows; give 0 or more")
        if not self.wrong < self.right:
            raise ValueError(f"--wrong is {self.wrong:g} and --right {self.right:g}; a right answer must score more")
        if not 0 < self.seconds <= threading.TIMEOUT_MAX:
            raise ValueError(f"--seconds is {self.seconds:g}; give the seconds one call may take, more than 0")
        rows = self._rows()
        scorer = _scorer(self.scorer, rows)
        checks = self._checks(scorer, rows)
        failed = [check for check in checks if check.outcome == "failed"]
        if self.as_json:
            print_json(
                {"scorer": scorer.name, "fingerprint": scorer.fingerprint, "rows": len(rows), "ok": not failed}
                | {"checks": [check.to_dict() for check in checks]}
            )
        else:
            self._print(scorer, rows, checks)
        return exits.FOUND if failed else exits.FINE

    def _rows(self) -> list[GoldRow]:
        if not self.file:
            if self.skip_attacks or self.scorer == "auto":
                raise ValueError(
                    "there is nothing to check: give a FILE with references, or a --scorer that ships attacks, without "
                    "--skip-attacks"
                )
            return []
        rows = read_golds(
            self.file,
            reference_column=self.reference_column,
            prompt_column=self.prompt_column,
            id_column=self.id_column,
        )
        return rows[: self.limit] if self.limit else rows

    def _checks(self, scorer: Scorer, rows: list[GoldRow]) -> list[Check]:
        checks: list[Check] = []
        with progress_bar() as bar:
            task = bar.add_task("check", total=None)

            def tell(name: str, done: int, total: int) -> None:
                bar.update(task, description=name, completed=done, total=total)

            if rows:
                checks += Preflight(
                    scorer, rows, right=self.right, wrong=self.wrong, seconds=self.seconds, tell=tell
                ).run()
            if not self.skip_attacks:
                checks += attack_checks(scorer, right=self.right, wrong=self.wrong, tell=tell)
        if not checks:
            raise ValueError(
                f"the scorer {scorer.name!r} ships no attacks, so without a FILE there is nothing to check; give one "
                "with references"
            )
        return checks

    def _print(self, scorer: Scorer, rows: list[GoldRow], checks: list[Check]) -> None:
        on = f" on {len(rows)} references of {visible(self.file)}" if self.file else ""
        print(f"scorer {scorer.name} ({scorer.fingerprint}){on}\n")
        print_table(
            ("check", "outcome", "tried", "detail"),
            [(check.name, check.outcome, check.tried, check.detail) for check in _merged(checks)],
        )
        for check in checks:
            if check.findings and self.show:
                counted = Counter(finding.how for finding in check.findings)
                kinds = ", ".join(f"{count} x {how}" for how, count in counted.most_common())
                print(f"\n{check.name}: {kinds}")
                print_table(("row", "response", "is", "reference", "problem"), map(_line, check.findings[: self.show]))
                if len(check.findings) > self.show:
                    print(f"... and {len(check.findings) - self.show} more; --show or --json lists them")
        counts = Counter(check.outcome for check in checks)
        print(f"\n{counts['ok']} checks passed, {counts['failed']} failed, {counts['skipped']} skipped.")


def _scorer(spec: str, rows: list[GoldRow]) -> Scorer:
    from adjudge import registry
    from adjudge.compose.auto import auto_scorer

    if spec != "auto":
        return registry.load(spec)
    return registry.load(auto_scorer(next((row.reference for row in rows if row.reference is not None), None)))


def _merged(checks: list[Check]) -> list[Check]:
    """The checks with the probes that found nothing as one line, and the rules of the protocol kept as another."""
    probes = [check for check in checks if check.name.startswith(PROBE) and check.outcome == "ok"]
    unfit = [check for check in checks if check.name.startswith(PROBE) and check.outcome == "skipped"]
    rules = [check for check in checks if check.name.startswith(PROTOCOL) and check.outcome == "ok"]
    lacking = ", ".join(check.name.removeprefix(PROBE) for check in unfit)
    said = f"{len(probes)} kinds held" + (f"; no row fits {lacking}" if lacking else "")
    passed = Check(name="probes", outcome="ok", tried=sum(check.tried for check in probes), detail=said)
    kept = Check(name="protocol", outcome="ok", tried=rules[0].tried if rules else 0, detail=f"{len(rules)} rules kept")
    return _as_one(_as_one(checks, [*probes, *unfit], passed) if probes else checks, rules, kept)


def _as_one(checks: list[Check], some: list[Check], line: Check) -> list[Check]:
    """The checks with one line in the place of the first of some, if there are any."""
    if not some:
        return checks
    place = checks.index(some[0])
    return [*checks[:place], line, *(check for check in checks[place:] if check not in some)]


def _line(finding: Finding) -> tuple[str, ...]:
    sample = finding.sample
    if sample is None:
        return finding.row, "", finding.how, "", finding.problem
    return finding.row, plain(sample.response, 40), finding.how, plain(sample.reference, 40), finding.problem
