"""`adjudge eval`: whether a scorer can be trusted, in numbers."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adjudge.cli import exits
from adjudge.cli.kinds import Chosen, Kind, chosen, imported
from adjudge.evals.benchmarks.table import BENCHMARKS
from adjudge.extras import install_hint

if TYPE_CHECKING:
    from adjudge.cli.config_flags import Layout

_CODES: Final = (
    "Exit code: 0 fine, 1 a sample could not be judged or a rule does not hold, "
    "2 the call is wrong or the evaluation could not go on, 130 Ctrl-C."
)

_USAGE: Final = """\
usage: adjudge eval KIND [INPUT] ...

Say whether a scorer can be trusted, in numbers that others can compare.

KINDS

  adjudge eval pairs pairs.jsonl --scorer SPEC   a scorer on your own pairs
  adjudge eval KIND ... --output DIR             the same as a page to read
  adjudge eval KIND --help                       the flags of a kind
  adjudge eval KIND ... --json                   one line of JSON, for programs

INPUT INPUTS"""

_WITHOUT_NUMPY: Final = frozenset({"probes"})


class BenchmarkKind(Kind):
    """A benchmark of the table, whose class is `config`."""

    __slots__ = ()

    def configs(self) -> tuple[Any, ...]:
        """Return the benchmark's class, and that of the options of every benchmark."""
        return imported(self.config), imported("adjudge.evals.benchmarks.benchmark:BenchmarkConfig")

    def about(self) -> list[str]:
        """Return what its rows hold, where it lives and where it comes from."""
        benchmark = imported(self.config)
        hub = [f"Without an input: {benchmark.hub} of the Hugging Face hub."] if benchmark.hub else []
        return [f"Its rows hold {benchmark.columns}.", *hub, f"Source: {benchmark.source}."]

    def run(self, configs: tuple[Any, ...], progress: Any) -> Any:
        """Return the result."""
        benchmark, config = configs
        return imported(self.call)(config, benchmark, progress=progress)


def benchmark_kind(home: str, group: str, line: str) -> BenchmarkKind:
    """Return a benchmark of the table as a kind."""
    return BenchmarkKind(home, "adjudge.evals.benchmarks.run:run_benchmark", line, group)


def _group(heading: str, *rows: tuple[str, str, str, str]) -> dict[str, Kind]:
    """The kinds under a heading: of each its name, where its options and its call are, and what it does."""
    return {
        name: Kind(f"adjudge.evals.{config}", f"adjudge.evals.{call}:run_{name}", line, heading)
        for name, config, call, line in rows
    }


KINDS: Final[Mapping[str, Kind]] = {
    **{name: benchmark_kind(entry.home, entry.group, entry.line) for name, entry in BENCHMARKS.items()},
    **_group(
        "what breaks a scorer",
        ("probes", "probes.catalogue:ProbesConfig", "probes.probing", "small changes, and rules for each"),
        ("attack", "attacks.config:AttackConfig", "attacks.attacking", "search for what fools a scorer"),
    ),
    **_group(
        "choosing among answers",
        (
            "best_of_n",
            "best_of_n.config:BestOfNConfig",
            "best_of_n.evaluating",
            "the best of n by scorer, and regret",
        ),
        ("pass_at_k", "best_of_n.config:PassAtKConfig", "best_of_n.attempts", "whether one of k answers is right"),
        ("voting", "best_of_n.config:VotingConfig", "best_of_n.attempts", "majorities, plain and weighted"),
        ("search", "best_of_n.config:SearchConfig", "best_of_n.searching", "search that a scorer guides"),
    ),
    **_group(
        "calibration, agreement, drift",
        ("calibration", "trust.verdicts:CalibrationConfig", "trust.calibration", "whether 0.8 means 80 %"),
        ("agreement", "trust.verdicts:AgreementConfig", "trust.agreement", "between several judges"),
        ("drift", "trust.verdicts:DriftConfig", "trust.rescoring", "what changed between two versions"),
        ("live_drift", "trust.verdicts:LiveDriftConfig", "trust.live", "what changes in a running service"),
    ),
}
"""Each kind by its name."""


@dataclass(frozen=True)
class EvalCommand:
    """One kind, with its options as they were given."""

    chosen: Chosen

    def run(self) -> int:
        """Do it, print the result, write the report if a folder is named, and return the exit code."""
        from adjudge.cli.console import MadeBar, print_json
        from adjudge.cli.eval_shown import print_result
        from adjudge.score_view import visible

        name, given = self.chosen.name, self.chosen.given
        if name not in _WITHOUT_NUMPY and importlib.util.find_spec("numpy") is None:  # told before any scoring
            raise ValueError(f"evaluations need numpy, which is not here; {install_hint('data')}")
        _ = self.chosen.configs()  # a wrong option is told first
        if given.output and Path(given.output).exists() and not Path(given.output).is_dir():
            raise ValueError(f"{given.output} is a file; name a folder for the report")
        with MadeBar(name, "scored") as bar:
            result = self.chosen.run(bar)
        page = imported("adjudge.evals.reports.page:write_report")(result, Path(given.output)) if given.output else None
        if given.as_json:
            print_json(result.to_dict())
        else:
            print_result(result)
            if page is not None:
                print(f"report: {visible(str(page))}")
        return exits.FOUND if result.found else exits.FINE


def parse_eval(args: Sequence[str]) -> EvalCommand:
    """Return the command that the words after `adjudge eval` ask for; see `chosen`."""
    return EvalCommand(chosen("eval", KINDS, args, layout_of=layout_of, usage=_USAGE, codes=_CODES))


def layout_of(configs: Sequence[Any]) -> Layout:
    """Return where the fields of the configurations stand: the input first; what every evaluation has is last."""
    from adjudge.cli.config_flags import Layout, required
    from adjudge.evals.reports.config import EvalConfig

    shared = [item.name for item in dataclasses.fields(EvalConfig)]
    (taken,) = [item for config in configs for item in dataclasses.fields(config) if item.name == "input"]
    return Layout(places={"input": "INPUT" if required(taken) else "[INPUT]"}, last=shared)
