"""`adjudge check`: the first command on a file of one's own, and the trial of a scorer before anything trusts it."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, print_json, print_table, progress_bar
from adjudge.cli.grading import Graded, grade, pair_check
from adjudge.cli.next_steps import Step, next_steps
from adjudge.cli.preflight import PROBE, PROTOCOL, Preflight
from adjudge.cli.rows import KINDS, PairOptions, Rows, read_rows
from adjudge.cli.trials import Check, Finding
from adjudge.data_pipelines.label.bench import cause_of
from adjudge.evals.benchmarks.voices import compares
from adjudge.io.columns import no_column
from adjudge.io.preferences import Preference
from adjudge.protocol import MissingReferenceError, Sample, Score, Scorer
from adjudge.reasons import describe
from adjudge.runtime.loop import run_blocking
from adjudge.score_view import brief, plain, visible
from adjudge.scoring.attacks import AttackCase, suite_of
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
        rows = read_rows(
            self.file, self, _LOOKED_AT if self.limit is None else self.limit, choosing=self.scorer == "auto"
        )
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
            checks.append(Check.of("rows", rows.read, rows.unread, "", f"{len(rows.unread)} cannot be used"))
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
                    kinds.setdefault(auto_scorer(sample.reference, sample.prompt), []).append(sample)
            except ValueError as error:
                unknown.append(Finding(row=sample.id, how="the reference", sample=sample, problem=str(error)))
        if unknown and not kinds:
            column = rows.columns.reference.name if rows.columns.reference is not None else ""
            raise ValueError(f"the reference in column {column!r}: {unknown[0].problem}")
        if unknown:
            tried = sum(map(len, kinds.values())) + len(unknown)
            checks.append(Check.of("references", tried, unknown, "", f"{len(unknown)} are of no kind that is known"))
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


def attack_checks(scorer: Scorer, *, right: float, wrong: float, tell: Callable[[str, int, int], None]) -> list[Check]:
    """Try the suite of attacks that a scorer ships, on the scorer as it is configured.

    A comparator that is told to be lenient may pay for an attack, and a strict one refuse an honest response: that is
    what the options mean, and the findings say so.

    Returns:
        What became of the attacks and of the honest responses; nothing where no suite is shipped.
    """
    from adjudge.evals.attacks.attacking import suite_scores

    shipper = getattr(scorer, "verifier", scorer)
    suite = suite_of(shipper)
    if suite is None:
        return []
    with tempfile.TemporaryDirectory(prefix="adjudge-attacks-") as folder:
        cases = list(suite(Path(folder)))
        scores = run_blocking(suite_scores(shipper, cases, lambda done: tell("attacks", done, len(cases))))
    attacks: list[Finding] = []
    honest: list[Finding] = []
    for case, score in zip(cases, scores, strict=True):
        if case.honest and (score.value is None or score.value < right):
            honest.append(_finding(case, score, f"an honest response got {brief(score)}"))
        elif not case.honest and (score.value is None or score.value > wrong):
            attacks.append(_finding(case, score, f"it got {brief(score)}"))
    tried = sum(not case.honest for case in cases)
    checks = [
        _suite_check("attacks", tried, attacks, f"none scores above {wrong:g}"),
        _suite_check("honest neighbours", len(cases) - tried, honest, f"all score {right:g}"),
    ]
    return [replace(check, scorer=scorer.name) for check in checks]


def _finding(case: AttackCase, score: Score, problem: str) -> Finding:
    how = "an honest response" if case.honest else case.tries or "an attack"
    return Finding(row=case.id, how=how, sample=case.sample, score=score, problem=problem)


def _suite_check(name: str, tried: int, findings: Sequence[Finding], fine: str) -> Check:
    if not tried:
        return Check(name=name, outcome="skipped", detail="the suite has none for these options")
    return Check.of(name, tried, findings, fine, f"{len(findings)} of {tried} failed")


_WIDTH = 60  # characters of a cell that holds a text
_PAIRS = 3
_KNOWN = ("golds", "attacks", "honest neighbours")  # checks with responses whose score is known


def print_columns(rows: Rows) -> None:
    """Print what each column is taken for."""
    looked = f"the first {rows.read:,}{f' of {rows.total:,}' if rows.total else ''}"
    looked = f"all {rows.read:,}" if rows.total == rows.read else looked
    more = " and references" if rows.kind == "answers" and rows.columns.reference is not None else ""
    print(f"{visible(rows.name)}: {looked} rows were looked at; they hold {KINDS[rows.kind]}{more}\n")
    print_table(
        ("column", "taken for", "holds", "for example"),
        [
            (fact.name, f"{fact.role}{' (guessed)' * fact.guessed}" or "-", fact.holds, fact.first)
            for fact in rows.facts
        ],
    )
    for note in rows.missing:
        print(visible(note))
    if rows.kind != "preferences" and any(not fact.role for fact in rows.facts):
        print("Columns that are taken for nothing reach the scorer with --extra-column NAME.")


def print_rows(rows: Rows, graded: Graded) -> None:
    """Print a few rows as they were understood, with their scores."""
    print()
    if rows.kind == "preferences":
        print_table(
            ("row", "prompt", "better", "worse"), [_pair_line(name, pair) for name, pair in rows.preferences[:_PAIRS]]
        )
        scored = [(sample.id, sample.response, score) for sample, score in graded.rows if score is not None]
        if scored:
            print_table(("row", "response", "score"), [(name, _text(said), _said(one)) for name, said, one in scored])
        return
    told = "response" if rows.answered else "reference as response"
    print_table(
        ("row", "prompt", told, "reference", "score"),
        [
            (
                sample.id,
                _text(sample.prompt),
                _text(sample.response) if sample.response else "-",
                plain(sample.reference, _WIDTH),
                _said(score) if score is not None else "-",
            )
            for sample, score in graded.rows
        ],
    )
    if graded.tried > 1:
        counts = ", ".join(f"{count} x {brief}" for brief, count in graded.counts)
        print(f"{graded.tried} responses scored, mean {plain(graded.mean)}: {counts}")
    if graded.tried > 1 and graded.mean == 0:
        print("No response scores more than 0: is that the reference, and does the scorer find the answers?")
    if not any(score for _, score in graded.rows) and rows.answered:
        print("There is no reference, so nothing is scored; --scorer names a scorer that needs none.")


def print_checks(head: str, checks: Sequence[Check], *, show: int, every: bool) -> None:
    """Print the checks, one line each, and what they found."""
    print(f"\n{head}\n" if head else "")
    names = list(dict.fromkeys(check.scorer for check in checks if check.scorer))
    several = len(names) > 1
    lines = (
        checks if every else [one for name in ["", *names] for one in _merged([c for c in checks if c.scorer == name])]
    )
    print_table(
        (*["scorer"] * several, "check", "outcome", "tried", "detail"),
        [(*[check.scorer] * several, check.name, check.outcome, check.tried, check.detail) for check in lines],
    )
    for check in checks:
        if check.findings and show:
            counted = Counter(finding.how for finding in check.findings)
            kinds = ", ".join(f"{count} x {how}" for how, count in counted.most_common())
            print(f"\n{check.name}: {kinds}")
            print_table(("row", "response", "is", "reference", "problem"), map(_line, check.findings[:show]))
            if len(check.findings) > show:
                print(f"... and {len(check.findings) - show} more; --show or --json lists them")
    counts = Counter(check.outcome for check in checks)
    print(f"\n{counts['ok']} checks passed, {counts['failed']} failed, {counts['skipped']} skipped.")
    for name in names:
        if not any(check.tried for check in checks if check.scorer == name and check.name in _KNOWN):
            print(
                f"Nothing whose score is known was tried on {name!r}: no answer could be made of the references, and "
                "it ships no attacks. `adjudge.scoring.attacks` says how to write some."
            )


def print_steps(steps: Sequence[Step]) -> None:
    """Print what to run next."""
    if steps:
        print("\nnext")
    for step in steps:
        print(f"\n# {step.what}" if not step.file else f"\n# {step.what}: write {step.file}, then run it")
        print("\n".join(map(visible, step.text.splitlines())))
        if step.command:
            print(f"$ {step.command}")


def _text(value: Any) -> str:
    """A prompt or a response: of a chat, how many turns it has and what the last one says."""
    if isinstance(value, str) or not value:
        return plain(value, _WIDTH)
    last = value[-1]
    before = f"{len(value)} turns, the last: " if len(value) > 1 else ""
    return f"{before}{last['role']}: {plain(last.get('content'), _WIDTH)}"


def _pair_line(name: str, pair: Preference) -> tuple[str, ...]:
    best, worst = pair.ranks.index(min(pair.ranks)), len(pair.ranks) - 1 - pair.ranks[::-1].index(max(pair.ranks))
    tie = "(tie) " if pair.ranks[best] == pair.ranks[worst] else ""
    return name, _text(pair.prompt), tie + _text(pair.responses[best]), tie + _text(pair.responses[worst])


def _said(score: Score) -> str:
    """A score in words."""
    value = f"{score.value:g}" if score.value is not None else f"no number, {score.status}"
    why = f", {score.reason}: {describe(score.reason)}" if score.reason else ""
    error = cause_of(score)[0] if score.value is None else ""
    return f"{value}{why}{f' ({visible(error, 120)})' if error else ''}"


def _merged(checks: list[Check]) -> list[Check]:
    """The checks of a scorer, with what needs no reading on a line each: what held, and what could not be tried."""
    probes = [check for check in checks if check.name.startswith(PROBE) and check.outcome == "ok"]
    unfit = [check for check in checks if check.name.startswith(PROBE) and check.outcome == "skipped"]
    rules = [check for check in checks if check.name.startswith(PROTOCOL) and check.outcome == "ok"]
    lacking = ", ".join(check.name.removeprefix(PROBE) for check in unfit)
    if probes:
        said = f"{len(probes)} kinds held" + (f"; no row fits {lacking}" if lacking else "")
        tried = sum(check.tried for check in probes)
        checks = _as_one(checks, [*probes, *unfit], replace(probes[0], name="probes", tried=tried, detail=said))
    if rules:
        checks = _as_one(checks, rules, replace(rules[0], name="protocol", detail=f"{len(rules)} rules kept"))
    for why in {check.detail: None for check in checks if check.outcome == "skipped"}:
        some = [check for check in checks if check.outcome == "skipped" and check.detail == why]
        checks = _as_one(checks, some, replace(some[0], name=", ".join(check.name for check in some)))
    return checks


def _as_one(checks: list[Check], some: list[Check], line: Check) -> list[Check]:
    """The checks with one line in the place of the first of some."""
    place = checks.index(some[0])
    return [*checks[:place], line, *(check for check in checks[place:] if check not in some)]


def _line(finding: Finding) -> tuple[str, ...]:
    sample = finding.sample
    if sample is None:
        return finding.row, "", finding.how, "", finding.problem
    return finding.row, plain(sample.response, 40), finding.how, plain(sample.reference, 40), finding.problem
