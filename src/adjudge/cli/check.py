"""`adjudge check`: the first command on a file of one's own, and the trial of a scorer before anything trusts it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import tyro

from adjudge.cli import exits
from adjudge.cli.attacks import attack_checks
from adjudge.cli.check_shown import print_checks, print_columns, print_rows, print_steps
from adjudge.cli.console import JsonFlag, print_json, progress_bar, visible
from adjudge.cli.grading import grade, pair_check
from adjudge.cli.next_steps import next_steps
from adjudge.cli.preflight import Preflight
from adjudge.cli.rows import PairOptions, Rows, read_rows
from adjudge.cli.trials import Check, Finding
from adjudge.evals.benchmarks.voices import compares
from adjudge.io.columns import no_column
from adjudge.protocol import MissingReferenceError, Sample, Scorer
from adjudge.scoring.compose.auto import auto_scorer

_LOOKED_AT: Final = 1_000  # rows, where no limit is given
_BUDGET: Final = 1.0  # seconds of each trial that takes all rows, where no limit is given

_Part: TypeAlias = tuple[Scorer, Sequence[Sample]]
"""A scorer, and the rows that it is tried on."""


@dataclass(frozen=True, kw_only=True)
class CheckCommand(PairOptions):
    """See how a file of yours is understood, and try a scorer on it.

    adjudge check mine.jsonl

    adjudge check golds.jsonl --scorer math

    adjudge check --scorer sql

    It prints which column is taken for what, three rows with their scores,
    what was tried, and what to run next. Any rows will do: responses with or
    without references, references alone, prompts, preferences, ratings.

    Where there are references, this must hold:
    - each reference scores 1 when it is given as the response;
    - wrong answers made of the references score 0;
    - constants, injections and small errors do not pay (docs/probes.md);
    - hostile responses stay within the limits;
    - the scorer keeps the rules of the protocol;
    - attacks that the scorer of --scorer ships score 0, honest responses
      near them 1.

    Without FILE only the last is tried.

    What fails is listed; it can be the fault of the scorer or of the reference.

    Exit code: 0 all is well, 1 something failed, 2 the call is wrong.
    """

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[FILE]")] = ""
    """Whatever `adjudge label` reads; rows without responses too."""

    scorer: str = "auto"
    """A name, module:object, a spec as YAML or JSON text, or a .yaml or .json file.
    "auto" chooses by the reference of each row, and tries each scorer on the rows that are its."""

    limit: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 1000)")] = None
    """Use only the first rows, so many; 0 uses all.
    Without it, a trial also ends after a few seconds."""

    right: float = 1.0
    """The least value of a right answer."""

    wrong: float = 0.0
    """The largest value of a wrong answer; more than 0 for scorers that give part of the credit."""

    seconds: float = 120.0
    """Longest time that one call of a scorer may take; a verifier has limits of its own instead."""

    skip_attacks: bool = False
    """Leave out the attacks that the scorer ships."""

    all: bool = False
    """List every probe and every rule of the protocol, those that held too."""

    show: int = 20
    """Findings listed for each check; --json holds all."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Look at the rows, run the trials, print what was found, and return the exit code."""
        if (self.limit or 0) < 0 or self.show < 0:
            raise ValueError("--limit and --show count rows; give 0 or more")
        if not self.wrong < self.right:
            raise ValueError(f"--wrong is {self.wrong:g} and --right {self.right:g}; a right answer must score more")
        if not 0 < self.seconds <= threading.TIMEOUT_MAX:
            raise ValueError(f"--seconds is {self.seconds:g}; give the seconds one call may take, more than 0")
        if not self.file:
            return self._without_rows()
        rows = read_rows(self.file, self, _LOOKED_AT if self.limit is None else self.limit)
        parts, checks = self._parts(rows)
        spec = self.scorer
        if spec == "auto" and len(parts) < 2:
            spec = parts[0][0].name if parts else ""
        graded = grade(rows, _load(spec) if spec else None, seconds=self.seconds, budget=self._budget)
        checks += self._checks(parts, rows)
        steps = next_steps(rows, spec, self)
        if self.as_json:
            facts = self._facts(parts, checks) | rows.to_dict() | graded.to_dict()
            print_json({"file": self.file} | facts | {"next": [step.to_dict() for step in steps]})
        else:
            print_columns(rows)
            print_rows(rows, graded)
            if checks:
                print_checks(self._head(parts), checks, show=self.show, every=self.all)
            print_steps(steps)
        return _code(checks)

    @property
    def _budget(self) -> float | None:
        return _BUDGET if self.limit is None else None

    def _without_rows(self) -> int:
        """Try the attacks that the scorer ships."""
        if self.skip_attacks or self.scorer == "auto":
            raise ValueError(
                "there is nothing to check: give a FILE, or a --scorer that ships attacks, without --skip-attacks"
            )
        parts = [(_load(self.scorer), list[Sample]())]
        checks = self._checks(parts)
        if not checks:
            raise ValueError(
                f"the scorer {parts[0][0].name!r} ships no attacks, so without a FILE there is nothing to check; give "
                "one with references"
            )
        if self.as_json:
            print_json(self._facts(parts, checks) | {"rows": 0})
        else:
            print_checks(self._head(parts), checks, show=self.show, every=self.all)
        return _code(checks)

    def _parts(self, rows: Rows) -> tuple[list[_Part], list[Check]]:
        """The scorers to try, each with its rows, and what is wrong with rows that none is tried on.

        Raises:
            ValueError: no scorer goes with any of the references.
        """
        checks = []
        if rows.unread:
            detail = f"{len(rows.unread)} cannot be used"
            checks.append(
                Check(name="rows", outcome="failed", tried=rows.read, detail=detail, findings=(*rows.unread,))
            )
        if rows.kind == "preferences":
            checks.append(pair_check(rows.preferences))
        if self.scorer != "auto":
            scorer = _load(self.scorer)
            return [] if rows.kind == "preferences" and compares(scorer) else [(scorer, rows.asked)], checks
        kinds: dict[str, list[Sample]] = {}
        unknown: list[Finding] = []
        for sample in rows.asked:
            try:
                if sample.reference is not None:
                    kinds.setdefault(auto_scorer(sample.reference), []).append(sample)
            except ValueError as error:
                unknown.append(Finding(row=sample.id, how="the reference", sample=sample, problem=str(error)))
        if unknown and not kinds:
            column = rows.columns.reference.name if rows.columns.reference is not None else ""
            raise ValueError(f"the reference in column {column!r}: {unknown[0].problem}")
        if unknown:
            detail = f"{len(unknown)} are of no kind that is known"
            tried = sum(map(len, kinds.values())) + len(unknown)
            checks.append(
                Check(name="references", outcome="failed", tried=tried, detail=detail, findings=tuple(unknown))
            )
        return [(_load(spec), samples) for spec, samples in kinds.items()], checks

    def _checks(self, parts: Sequence[_Part], rows: Rows | None = None) -> list[Check]:
        checks: list[Check] = []
        with progress_bar() as bar:
            task = bar.add_task("check", total=None)

            def tell(name: str, done: int, total: int) -> None:
                bar.update(task, description=name, completed=done, total=total)

            for scorer, samples in parts:
                if rows is not None:
                    trials = Preflight(
                        scorer,
                        samples,
                        right=self.right,
                        wrong=self.wrong,
                        seconds=self.seconds,
                        budget=self._budget and self._budget / len(parts),
                        tell=tell,
                    )
                    checks += _run(trials, rows)
                if self.scorer != "auto" and not self.skip_attacks:
                    checks += attack_checks(scorer, right=self.right, wrong=self.wrong, tell=tell)
        return checks

    def _facts(self, parts: Sequence[_Part], checks: Sequence[Check]) -> dict[str, Any]:
        """The scorers and the checks as plain data."""
        scorers = [
            {"scorer": scorer.name, "fingerprint": scorer.fingerprint, "rows": len(samples)}
            for scorer, samples in parts
        ]
        one = scorers[0] if len(scorers) == 1 else {"scorer": "auto" if parts else "", "fingerprint": ""}
        return {
            "scorer": one["scorer"],
            "fingerprint": one["fingerprint"],
            "scorers": scorers,
            "ok": all(check.outcome != "failed" for check in checks),
            "checks": [check.to_dict() for check in checks],
        }

    def _head(self, parts: Sequence[_Part]) -> str:
        """Who is tried, on what."""
        on = f" of {visible(self.file)}" if self.file else ""
        return "\n".join(
            f"scorer {scorer.name} ({scorer.fingerprint}){f' on {_counted(samples)}{on}' if samples else ''}"
            for scorer, samples in parts
        )


def _code(checks: Sequence[Check]) -> int:
    return exits.FOUND if any(check.outcome == "failed" for check in checks) else exits.FINE


def _load(spec: str) -> Scorer:
    from adjudge.scoring import registry

    return registry.load(spec)


def _run(trials: Preflight, rows: Rows) -> list[Check]:
    try:
        return trials.run()
    except MissingReferenceError as error:
        if rows.columns.reference is not None:
            raise
        raise ValueError(f"{error}. {no_column('reference', [fact.name for fact in rows.facts])}") from error


def _counted(samples: Sequence[Sample]) -> str:
    count = sum(sample.reference is not None for sample in samples)
    return f"{count} references" if count else f"{len(samples)} rows"
