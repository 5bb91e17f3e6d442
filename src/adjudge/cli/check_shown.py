"""What `adjudge check` prints: the columns, a few rows, the checks, and what to run next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adjudge.cli.console import plain, print_table, visible
from adjudge.cli.grading import Graded
from adjudge.cli.next_steps import Step
from adjudge.cli.preflight import PROTOCOL
from adjudge.cli.probe_checks import PROBE
from adjudge.cli.rows import KINDS, Rows
from adjudge.cli.trials import Check, Finding
from adjudge.data_pipelines.label.bench import cause_of
from adjudge.io.preferences import Preference
from adjudge.protocol import Score
from adjudge.reasons import describe

_WIDTH = 60  # characters of a cell that holds a text
_PAIRS = 3


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
    """Print the checks, one line each, and what they found.

    Args:
        head: what was tried.
        checks: the checks.
        show: findings listed for each.
        every: whether probes and rules of the protocol that held are listed one by one.
    """
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
