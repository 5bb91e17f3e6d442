"""What `adjudge eval` prints: measures with bounds and baselines, counts, findings and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.cli.console import console, print_table
from adjudge.evals.reports.result import Check, Comparison, Counts, Measure, Result
from adjudge.protocol import Cost
from adjudge.score_view import plain, visible
from adjudge.statistics.intervals import Interval

_GAP: Final = 3  # characters between two columns of a table


def print_result(result: Result) -> None:
    """Print a result."""
    print(_head(result))
    if result.measures:
        _print_measures(result.measures)
    print(_counts(result.counts))
    if result.counts.reasons:
        print_table(("no number because", "samples"), result.counts.reasons.items())
    if result.checks:
        print_table(("check", "", "numbers"), [_check(one) for one in result.checks])
    if result.comparisons:
        _print_comparisons(result.comparisons)
    for note in result.notes:
        print(f"note: {visible(note)}")
    print(_spent(result.seconds, result.cost))


def _head(result: Result) -> str:
    facts: Mapping[str, Any] = result.scorer
    scorer = f": {facts['name']}" if facts.get("name") else ""
    fingerprint = f" ({facts['fingerprint']})" if facts.get("fingerprint") else ""
    source = f", on {result.source['name']}" if result.source.get("name") else ""
    return visible(f"{result.title}{scorer}{fingerprint}{source}")


def _print_measures(measures: Sequence[Measure]) -> None:
    names = list(dict.fromkeys(name for one in measures for name in one.baselines))
    columns = ("measure", "part", "value", "n")
    rows = [_row(one) for one in measures]
    baselines = [[_number(one.baselines.get(name)) for name in names] for one in measures]
    if _width((*columns, *names), [[*row, *more] for row, more in zip(rows, baselines, strict=True)]) > console().width:
        ranges = any(one.better == "none" and one.baselines for one in measures)
        names, baselines = ["trivial scorers" if ranges else "best trivial scorer"], [[_best(one)] for one in measures]
    print_table((*columns, *names), [(*row, *more) for row, more in zip(rows, baselines, strict=True)])
    if any(one.published for one in measures):
        print("* as the benchmark's authors define it")


def _row(one: Measure) -> tuple[str, str, str, int]:
    return f"{one.name}{' *' if one.published else ''}", one.part or "-", _bounds(one.interval), one.interval.n


def _width(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """How many characters a table takes that breaks no cell."""
    widest = [max(len(str(row[place])) for row in (columns, *rows)) for place in range(len(columns))]
    return sum(widest) + _GAP * len(columns)


def _best(one: Measure) -> str:
    """The trivial scorer that does best; where no end is good, what they get."""
    known = {name: value for name, value in one.baselines.items() if value is not None}
    if not known:
        return "-"
    if one.better == "none":
        return f"{_number(min(known.values()))} to {_number(max(known.values()))}"
    choose = max if one.better == "high" else min
    name = choose(known, key=lambda each: known[each])
    return f"{_number(known[name])} {name}"


def _bounds(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return _number(interval.value)
    return f"{_number(interval.value)} [{_number(interval.low)}, {_number(interval.high)}]"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.6g}"


def _counts(counts: Counts) -> str:
    named = {
        "scored": counts.scored,
        "abstained": counts.abstained,
        "failed": counts.failed,
        "cut off": counts.cut_off,
    }
    said = [f"{counts.cases} cases", f"{counts.samples} samples", *(f"{n} {name}" for name, n in named.items() if n)]
    if counts.tied:
        said.append(f"{counts.tied} cases tied")
    if counts.unreadable:
        said.append(f"{counts.unreadable} rows unreadable")
    return ", ".join(said)


def _check(check: Check) -> tuple[str, str, str]:
    verdict = {True: "holds", False: "BROKEN", None: "not tried"}[check.passed]
    return check.name, verdict, check.detail


def _print_comparisons(comparisons: Sequence[Comparison]) -> None:
    others = dict.fromkeys(one.other for one in comparisons)  # one stands above the table; of several, in each row
    rows = [
        (
            one.name,
            *([visible(one.other)] if len(others) > 1 else []),
            one.part or "-",
            _number(one.first),
            _number(one.second),
            _bounds(one.difference),
            plain(one.p),
            plain(one.p_adjusted),
            one.test,
        )
        for one in comparisons
    ]
    against = ["against"] if len(others) > 1 else []
    columns = ("difference in", *against, "part", "this", "other", "this - other", "p", "p (Holm)", "test")
    print_table(columns, rows, title="" if against else visible(f"against {comparisons[0].other}"))


def _spent(seconds: float, cost: Cost) -> str:
    tokens = cost.prompt_tokens + cost.completion_tokens
    return f"{seconds:.1f} s" + (f", {tokens} tokens" if tokens else "")
