"""The kinds of `adjudge eval`: where each has its options and its call, and the headings they are listed under.

Nothing of `adjudge.evals` but the table of benchmarks is imported until a kind is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from adjudge.cli.kinds import imported
from adjudge.evals.benchmarks.table import BENCHMARKS, JUDGES, PREFERENCES, RATINGS, STEPS, VERIFIERS

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
        return imported(self.home, _EXTRA), imported("adjudge.evals.benchmarks.benchmark:BenchmarkConfig", _EXTRA)

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


def _plain(config: str, call: str, group: str, line: str) -> PlainKind:
    return PlainKind(f"adjudge.evals.{config}", f"adjudge.evals.{call}", group, line)


KINDS: Final[Mapping[str, EvalKind]] = {
    **{name: BenchmarkKind(entry.home, entry.group, entry.line) for name, entry in BENCHMARKS.items()},
    "probes": _plain(
        "probes.catalogue:ProbesConfig", "probes.probing:run_probes", ATTACKS, "small changes, and rules for each"
    ),
    "attack": _plain(
        "attacks.config:AttackConfig", "attacks.attacking:run_attack", ATTACKS, "search for what fools a scorer"
    ),
    "best_of_n": _plain(
        "best_of_n.config:BestOfNConfig",
        "best_of_n.evaluating:run_best_of_n",
        CHOOSING,
        "the best of n by a scorer, and regret",
    ),
    "pass_at_k": _plain(
        "best_of_n.config:PassAtKConfig",
        "best_of_n.pass_at_k:run_pass_at_k",
        CHOOSING,
        "whether one of k answers is right",
    ),
    "voting": _plain(
        "best_of_n.config:VotingConfig", "best_of_n.voting:run_voting", CHOOSING, "majorities, plain and weighted"
    ),
    "search": _plain(
        "best_of_n.config:SearchConfig", "best_of_n.searching:run_search", CHOOSING, "search that a scorer guides"
    ),
    "calibration": _plain(
        "trust.config:CalibrationConfig", "trust.calibration:run_calibration", TRUST, "whether 0.8 means 80 %"
    ),
    "agreement": _plain(
        "trust.config:AgreementConfig", "trust.agreement:run_agreement", TRUST, "between several judges"
    ),
    "drift": _plain(
        "trust.config:DriftConfig", "trust.rescoring:run_drift", TRUST, "what changed between two versions"
    ),
    "live_drift": _plain(
        "trust.config:LiveDriftConfig", "trust.live:run_live_drift", TRUST, "what changes in a running service"
    ),
}
"""Each kind by its name."""
