"""`adjudge eval`: whether a scorer can be trusted, in numbers.  Each kind has the flags of its own options.

Nothing but the standard library, and the table of benchmarks, is imported until a kind is chosen.

The kinds of `adjudge eval`: where each has its options and its call, and the headings they are listed under.

Nothing of `adjudge.evals` but the table of benchmarks is imported until a kind is chosen.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from adjudge.cli import exits
from adjudge.cli.config_flags import Layout, required
from adjudge.cli.console import console, plain, print_table, visible
from adjudge.cli.kinds import imported
from adjudge.evals.benchmarks.table import BENCHMARKS, JUDGES, PREFERENCES, RATINGS, STEPS, VERIFIERS
from adjudge.evals.results.config import EvalConfig
from adjudge.evals.results.measure import Measure
from adjudge.evals.results.result import Check, Comparison, Counts, Result
from adjudge.extras import install_hint
from adjudge.intervals import Interval
from adjudge.options import named
from adjudge.protocol import Cost

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
    rows = [
        (
            one.name,
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
    columns = ("difference in", "part", "this", "other", "this - other", "p", "p (Holm)", "test")
    print_table(columns, rows, title=visible(f"against {comparisons[0].other}"))


def _spent(seconds: float, cost: Cost) -> str:
    tokens = cost.prompt_tokens + cost.completion_tokens
    return f"{seconds:.1f} s" + (f", {tokens} tokens" if tokens else "")


_EXTRA: Final = "data"
ATTACKS: Final = "what breaks a scorer"
CHOOSING: Final = "choosing among answers"
TRUST: Final = "calibration, agreement, drift"
GROUPS: Final = (PREFERENCES, JUDGES, STEPS, VERIFIERS, RATINGS, ATTACKS, CHOOSING, TRUST)
"""The headings, in the order in which `adjudge eval --help` lists them."""


class EvalKind(Protocol):
    """One kind of evaluation."""

    @property
    def line(self) -> str:
        """What it does."""
        ...

    @property
    def group(self) -> str:
        """The heading it is listed under."""
        ...

    def configs(self) -> tuple[Any, ...]:
        """Return the dataclasses of its options; the first one's docstring says what it does."""
        ...

    def about(self) -> list[str]:
        """Return further paragraphs of its help."""
        ...

    def run(self, configs: tuple[Any, ...], progress: Any) -> Any:
        """Return the result of running it with its options, made of the classes of `configs`."""
        ...


@dataclass(frozen=True, slots=True)
class PlainKind:
    """An evaluation of its own.

    Attributes:
        config: "module:class" of its options.
        call: "module:function" that takes them, and `progress`.
        group: heading.
        line: what it does.
    """

    config: str
    call: str
    group: str
    line: str

    def configs(self) -> tuple[Any, ...]:
        """Return the class of its options."""
        return (imported(self.config, _EXTRA),)

    def about(self) -> list[str]:
        """Return nothing more."""
        return []

    def run(self, configs: tuple[Any, ...], progress: Any) -> Any:
        """Return the result."""
        (config,) = configs
        return imported(self.call, _EXTRA)(config, progress=progress)


@dataclass(frozen=True, slots=True)
class BenchmarkKind:
    """A benchmark of the table.

    Attributes:
        home: "module:Class" of the benchmark.
        group: heading.
        line: what it asks.
    """

    home: str
    group: str
    line: str

    def configs(self) -> tuple[Any, ...]:
        """Return the benchmark's class, and that of the options of every benchmark."""
        return imported(self.home, _EXTRA), imported("adjudge.evals.benchmarks.config:BenchmarkConfig", _EXTRA)

    def about(self) -> list[str]:
        """Return what its rows hold, where it lives and where it comes from."""
        benchmark, _ = self.configs()
        hub = [f"Without an input: {benchmark.hub} of the Hugging Face hub."] if benchmark.hub else []
        return [f"Its rows hold {benchmark.columns}.", *hub, f"Source: {benchmark.source}."]

    def run(self, configs: tuple[Any, ...], progress: Any) -> Any:
        """Return the result."""
        benchmark, config = configs
        run = imported("adjudge.evals.benchmarks.run:run_benchmark", _EXTRA)
        return run(config, benchmark, progress=progress)


def _plain(folder: str, config: str, call: str, group: str, line: str) -> PlainKind:
    home = f"adjudge.evals.{folder}."
    return PlainKind(f"{home}config:{config}", home + call, group, line)


KINDS: Final[Mapping[str, EvalKind]] = {
    **{name: BenchmarkKind(entry.home, entry.group, entry.line) for name, entry in BENCHMARKS.items()},
    "probes": _plain("probes", "ProbesConfig", "probing:run_probes", ATTACKS, "small changes, and rules for each"),
    "attack": _plain("attacks", "AttackConfig", "attacking:run_attack", ATTACKS, "search for what fools a scorer"),
    "best_of_n": _plain(
        "best_of_n", "BestOfNConfig", "evaluating:run_best_of_n", CHOOSING, "the best of n by a scorer, and regret"
    ),
    "pass_at_k": _plain(
        "best_of_n", "PassAtKConfig", "pass_at_k:run_pass_at_k", CHOOSING, "whether one of k answers is right"
    ),
    "voting": _plain("decoding", "VotingConfig", "voting:run_voting", CHOOSING, "majorities, plain and weighted"),
    "search": _plain("decoding", "SearchConfig", "searching:run_search", CHOOSING, "search that a scorer guides"),
    "calibration": _plain(
        "calibration", "CalibrationConfig", "evaluating:run_calibration", TRUST, "whether 0.8 means 80 %"
    ),
    "agreement": _plain("agreement", "AgreementConfig", "evaluating:run_agreement", TRUST, "between several judges"),
    "drift": _plain("drift", "DriftConfig", "rescoring:run_drift", TRUST, "what changed between two versions"),
    "live_drift": _plain("drift", "LiveDriftConfig", "live:run_live_drift", TRUST, "what changes in a running service"),
}
"""Each kind by its name."""


def layout_of(configs: Sequence[Any]) -> Layout:
    """Return where the fields of the configurations stand; what every evaluation has is listed last."""
    shared = [item.name for item in dataclasses.fields(EvalConfig)]
    (taken,) = [item for config in configs for item in dataclasses.fields(config) if item.name == "input"]
    return Layout(places={"input": "INPUT" if required(taken) else "[INPUT]"}, last=shared)


_EXIT_CODES: Final = (
    "Exit code: 0 fine, 1 a sample could not be judged or a rule does not hold, "
    "2 the call is wrong or the evaluation could not go on, 130 Ctrl-C."
)

_WITHOUT_NUMPY: Final = frozenset({"probes"})


@dataclass(frozen=True)
class EvalCommand:
    """One kind, with its options as they were given.

    Attributes:
        name: of the kind.
        kind: what to do.
        given: the flags.
    """

    name: str
    kind: EvalKind
    given: Any

    def run(self) -> int:
        """Do it, print the result, write the report if a folder is named, and return the exit code."""
        from adjudge.cli.config_flags import options_of
        from adjudge.cli.console import print_json, visible
        from adjudge.cli.kinds import DataBar

        if self.name not in _WITHOUT_NUMPY and importlib.util.find_spec("numpy") is None:  # told before any scoring
            raise ValueError(f"evaluations need numpy, which is not here; {install_hint('calibration')}")
        configs = tuple(config(**options_of(config, self.given)) for config in self.kind.configs())
        output = self.given.output
        if output and Path(output).exists() and not Path(output).is_dir():
            raise ValueError(f"{output} is a file; name a folder for the report")
        with DataBar(self.name, "scored") as bar:
            result = self.kind.run(configs, bar)
        page = _written(result, Path(output)) if output else None
        if self.given.as_json:
            print_json(result.to_dict())
        else:
            print_result(result)
            if page is not None:
                print(f"report: {visible(str(page))}")
        return exits.FOUND if result.found else exits.FINE


def parse_eval(args: Sequence[str]) -> EvalCommand:
    """Return the command that the words after `adjudge eval` ask for.

    Raises:
        SystemExit: help was asked for and printed, or a flag is wrong.
        ValueError: there is no such kind.
    """
    if not args or args[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        raise SystemExit(exits.FINE if args else exits.USER)
    name, *rest = args
    kind = named(KINDS, name, "kind of evaluation")
    from adjudge.cli.config_flags import paragraphs_of, parsed

    configs = kind.configs()
    about = [*paragraphs_of(configs[0]), *kind.about(), _EXIT_CODES]
    given = parsed(configs, layout_of(configs), rest, prog=f"adjudge eval {name}", about=about)
    return EvalCommand(name=name, kind=kind, given=given)


def _written(result: Any, folder: Path) -> Path:
    from adjudge.evals.reports.page import write_report

    return write_report(result, folder)


def _help() -> str:
    width = max(map(len, KINDS))
    blocks = []
    for group in GROUPS:
        lines = [f"  {name:<{width}}  {kind.line}" for name, kind in KINDS.items() if kind.group == group]
        blocks.append("\n".join([f"{group}:", *lines]))
    listing = "\n\n".join(blocks)
    return (
        "usage: adjudge eval KIND [INPUT] ...\n\n"
        "Say whether a scorer can be trusted, in numbers that others can compare.\n\n"
        f"{listing}\n\n"
        "  adjudge eval pairs pairs.jsonl --scorer SPEC   a scorer on your own pairs\n"
        "  adjudge eval KIND ... --output DIR             the same as a page to read\n"
        "  adjudge eval KIND --help                       the flags of a kind\n"
        "  adjudge eval KIND ... --json                   one line of JSON, for programs\n\n"
        "INPUT is a .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, a folder\n"
        "of them, one for datasets.load_from_disk, or a dataset of the Hugging Face hub.\n"
    )
