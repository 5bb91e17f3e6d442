"""A user's test bench at work: on the reference first, then on an empty design, then on candidates.

A bench that refuses its own reference, or accepts a design that drives nothing, judges nobody.

What a test bench's own lines say: passed or not, and how many of its checks.

The benches of VerilogEval print `Mismatches: 3 in 100 samples`; all such lines must say 0, of as many samples as with
the reference design, and more than none.  Those of RTLLM print a line with "passed"; one must be there, and none that
speaks of a failure, an error or a timeout, unless the bench says that of its reference, too.

The module that stands between a user's test bench and the design it tests.

It has the name and the ports that the bench expects.  Inputs pass straight through, because an assignment in between
would change who wins the races of a careless bench (Prob066 of VerilogEval refuses its own reference then).  So a
design that drives its own input would drive the bench's net; Icarus says so (`simulators.DRIVEN`).  A bit that
the design leaves unknown comes out as 0 in one run and as 1 in a second one, and both runs must pass: a bench that
compares with `!=` would take an unknown bit for a right one.

Not covered: benches that need a simulator other than Icarus.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from adjudge.sandbox.program import RunLimits, RunResult
from adjudge.sandbox.runner import Runner
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verilog.candidate import Candidate
from adjudge.verifiers.verilog.front_end import shorten
from adjudge.verifiers.verilog.interface import Port, instance_interface, read_ports
from adjudge.verifiers.verilog.reference import Reference, parse_reference
from adjudge.verifiers.verilog.rewriting import KeyedBench, key_bench
from adjudge.verifiers.verilog.rules import print_all
from adjudge.verifiers.verilog.simulators import DRIVEN, ENDINGS, REFUSED, icarus_twice

PASSED = r"(?i)\bpass(?:es|ed)?\b"
FAILED = r"(?i)\b(?:fail(?:s|ed|ure|ures)?|errors?|mismatch(?:es)?|incorrect|wrong|timeout)\b"
_COUNT = re.compile(r"\s*Mismatches: (\d+) in (\d+) samples\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a bench's lines are read.

    Attributes:
        samples: how many samples a counting bench takes; 0 for one that says "passed".
        passed: pattern of a line that must be there.
        failed: pattern of a line that must not be there.
        harmless: lines, digits left out, that match `failed` and mean nothing.
    """

    samples: int = 0
    passed: str = PASSED
    failed: str = FAILED
    harmless: frozenset[str] = frozenset()


PLAIN = Rule()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchVerdict:
    """What a bench says.

    Attributes:
        passed: whether it accepts the design.
        share: share of its samples that match, where it counts them, else 0 or 1.
        said: the line that decided, or "".
    """

    passed: bool
    share: float
    said: str


def keyed_lines(output: bytes, key: str) -> list[str]:
    """Return what the bench printed, line by line; what has no key is not the bench's."""
    parts = output.decode(errors="replace").split(key)[1:]
    return [part.split("\n", 1)[0].rstrip("\r") for part in parts]


def learn_rule(lines: Sequence[str], passed: str, failed: str) -> Rule:
    """Return how to read a bench, from what it prints about its reference.

    Args:
        lines: what it printed.
        passed: the reference's own pattern, or "".
        failed: the reference's own pattern, or "".
    """
    counts = [match for line in lines if (match := _COUNT.fullmatch(line))]
    if counts and not passed:
        return Rule(samples=int(counts[-1][2]) or -1)
    failure = re.compile(failed or FAILED)
    harmless = frozenset() if failed else frozenset(_bare(line) for line in lines if failure.search(line))
    return Rule(passed=passed or PASSED, failed=failed or FAILED, harmless=harmless)


def read_verdict(lines: Sequence[str], rule: Rule) -> BenchVerdict:
    """Return what a bench says about a design."""
    if rule.samples:
        return _counted(lines, rule.samples)
    failure, success = re.compile(rule.failed), re.compile(rule.passed)
    for line in lines:
        if failure.search(line) and _bare(line) not in rule.harmless:
            return BenchVerdict(passed=False, share=0.0, said=line.strip()[:200])
    said = next((line for line in lines if success.search(line)), None)
    return BenchVerdict(passed=said is not None, share=float(said is not None), said=(said or "").strip()[:200])


def _counted(lines: Sequence[str], samples: int) -> BenchVerdict:
    counts = [match for line in lines if (match := _COUNT.fullmatch(line))]
    if not counts:
        return BenchVerdict(passed=False, share=0.0, said="")
    worst = max(counts, key=lambda match: int(match[1]))
    complete = all(int(match[2]) == samples for match in counts) and samples > 0
    if not complete:
        return BenchVerdict(passed=False, share=0.0, said=f"{worst[0].strip()}, where the reference has {samples}")
    share = max(0.0, 1 - int(worst[1]) / samples)
    return BenchVerdict(passed=int(worst[1]) == 0, share=share, said=worst[0].strip())


def _bare(line: str) -> str:
    return re.sub(r"[\d\s]+", " ", line).strip()


LEVEL = "unknown"  # the plusarg that says what unknown bits become


def wrapper_source(
    name: str, inside: str, ports: Sequence[Port], parameters: Sequence[str], inner: str, secret: str
) -> str:
    """Return the wrapper's source.

    Args:
        name: the module that the bench instantiates.
        inside: the module that holds the design.
        ports: its ports.
        parameters: names of parameters that the bench may set.
        inner: name of the design's instance.
        secret: a name that the design cannot know.
    """
    passed = f" #({', '.join(f'.{item}({item})' for item in parameters)})" if parameters else ""
    lines, connections = [], []
    for port in ports:
        if port.direction != "output":
            connections.append(f".{port.name}({port.name})")
            continue
        net, at = f"{secret}_{port.name}", f"{secret}_at"
        connections.append(f".{port.name}({net})")
        bit = f"{net}[{at}] === 1'b0 ? 1'b0 : {net}[{at}] === 1'b1 ? 1'b1 : {secret}_level"
        lines.append(
            f"  wire [{port.width - 1}:0] {net};\n"
            f"  generate for ({at} = 0; {at} < {port.width}; {at} = {at} + 1) begin : {secret}_{port.name}_bits\n"
            f"    assign {port.name}[{at}] = {bit};\n  end endgenerate"
        )
    body = "\n".join(lines)
    return f"""
{_header(name, ports, parameters)}
  genvar {secret}_at;
  reg {secret}_level = 0;
  initial if ($test$plusargs("{secret}_{LEVEL}")) {secret}_level = 1;
{body}
  {inside}{passed} {inner} ({", ".join(connections)});
endmodule
"""


def stub_source(name: str, ports: Sequence[Port], parameters: Sequence[str]) -> str:
    """Return a design with the right ports and nothing in it."""
    return f"{_header(name, ports, parameters)}\nendmodule\n"


def _header(name: str, ports: Sequence[Port], parameters: Sequence[str]) -> str:
    wires = ", ".join(f"{port.direction} wire [{port.width - 1}:0] {port.name}" for port in ports)
    given = f" #({', '.join(f'parameter {item} = 0' for item in parameters)})" if parameters else ""
    return f"module {name}{given} ({wires});"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchAnswer:
    """What came of a bench run.

    Attributes:
        reason: a code of `adjudge.reasons.CANDIDATE`; "" when the bench spoke and accepts the design.
        stage: "elaborate" when the design did not compile with the bench, else "run".
        verdict: what the bench said; None when it did not come to that.
        error: details, in one line.
        share: share of the bench's checks that passed, beyond what an empty design passes.
    """

    reason: str
    stage: str
    verdict: BenchVerdict | None = None
    error: str = ""
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BenchRun:
    """A bench that is fit to judge.

    Attributes:
        reference: the sample's reference.
        limits: of one run.
        rule: how its lines are read.
        ports: the ports it expects; None where no reference design says so.
        floor: share of its checks that an empty design passes.
    """

    reference: Reference
    limits: RunLimits
    rule: Rule = PLAIN
    ports: tuple[Port, ...] | None = None
    floor: float = 0.0

    def prepared(self, runner: Runner, refuse_empty: bool) -> BenchRun:
        """Return this bench with what its reference design teaches.

        Raises:
            BadReferenceError: the bench does not compile, refuses its reference, or accepts an empty design.
        """
        secret = _secret(self.reference.testbench)
        bench = self._keyed(secret)
        if not self.reference.design:
            return replace(self, rule=learn_rule((), self.reference.passed, self.reference.failed))
        top = self.reference.design_top
        parsed = parse_reference(self.reference.design, "reference design")
        names = {name: f"{secret}_design_{name}" for name in parsed.modules}
        design = print_all(parsed, names)
        plain = print_all(parsed, {top: self.reference.top})
        ports, parameters = self._shape(bench, plain)
        result = self._run(runner, bench, secret, design, names[top], ports, parameters)
        if problem := _trouble(result):
            limit = result.ending in ("timeout", "memory", "output", "disk")
            raise BadReferenceError(f"the test bench does not run with its reference design: {problem}", limit=limit)
        first, second = _split(result, secret)
        rule = learn_rule(keyed_lines(first, bench.key), self.reference.passed, self.reference.failed)
        for output in (first, second):
            if not (verdict := read_verdict(keyed_lines(output, bench.key), rule)).passed:
                raise BadReferenceError(f"the test bench refuses its own reference design: {verdict.said or 'silent'}")
        ready = replace(self, rule=rule, ports=ports)
        return replace(ready, floor=ready.floor_of(runner, ports, parameters, refuse_empty))

    def floor_of(self, runner: Runner, ports: Sequence[Port], parameters: Sequence[str], refuse: bool) -> float:
        """Return the share of checks that a design with nothing in it passes.

        Raises:
            BadReferenceError: `refuse` is set, and the bench accepts it.
        """
        secret = _secret(self.reference.testbench)
        bench = self._keyed(secret)
        stub = stub_source(f"{secret}_stub", ports, parameters)
        result = self._run(runner, bench, secret, stub, f"{secret}_stub", ports, parameters)
        if _trouble(result):
            return 0.0
        verdicts = [read_verdict(keyed_lines(output, bench.key), self.rule) for output in _split(result, secret)]
        if refuse and all(verdict.passed for verdict in verdicts):
            raise BadReferenceError("the test bench accepts a design that drives nothing, so it judges nobody")
        return min(verdict.share for verdict in verdicts)

    def judge(self, runner: Runner, candidate: Candidate, secret: str) -> BenchAnswer:
        """Return what the bench says about a candidate.

        Args:
            runner: where it runs.
            candidate: the design, with the ports that the bench expects.
            secret: a name that the design cannot know.

        Raises:
            BadReferenceError: the bench itself does not fit.
        """
        bench = self._keyed(secret)
        if clash := sorted(name for name in candidate.shared_names if _word_in(name, self.reference.testbench)):
            return BenchAnswer(
                reason="candidate_error", stage="elaborate", error=f"the bench has the name {clash[0]!r}"
            )
        ports: tuple[Port, ...] = self.ports or candidate.ports
        parameters: tuple[str, ...] = ()
        if bench.overrides:
            ports, parameters = self._shape(bench, candidate.source.replace(candidate.top, self.reference.top))
        result = self._run(runner, bench, secret, candidate.source, candidate.top, ports, parameters)
        if result.ending in ENDINGS:
            return BenchAnswer(reason=ENDINGS[result.ending], stage="run", error=f"it ended by {result.ending}")
        if DRIVEN.search(result.stderr):
            return BenchAnswer(reason="tampering", stage="elaborate", error="the design drives one of its own inputs")
        if result.code == REFUSED:
            error = _text(result.stderr).replace(f"{secret}_", "")
            return BenchAnswer(reason="candidate_error", stage="elaborate", error=shorten(error))
        verdicts = [read_verdict(keyed_lines(output, bench.key), self.rule) for output in _split(result, secret)]
        worst = min(verdicts, key=lambda verdict: (verdict.passed, verdict.share))
        if len(verdicts) == 2 and worst.passed:
            return BenchAnswer(reason="", stage="run", verdict=worst, share=1.0)
        share = max(0.0, (worst.share - self.floor) / (1 - self.floor)) if self.floor < 1 else 0.0
        return BenchAnswer(reason="wrong", stage="run", verdict=worst, share=min(share, 0.999))

    def _keyed(self, secret: str) -> KeyedBench:
        return _keyed(self.reference.testbench, self.reference.design, self.reference.top).under(secret)

    def _shape(self, bench: KeyedBench, design: str) -> tuple[tuple[Port, ...], tuple[str, ...]]:
        """Return the ports of the design under the bench's parameters, and the parameters that it may set."""
        if not bench.overrides:
            return read_ports(design, self.reference.top), ()
        return instance_interface(self.reference.testbench + "\n" + design, self.reference.top)

    def _run(
        self,
        runner: Runner,
        bench: KeyedBench,
        secret: str,
        design: str,
        module: str,
        ports: Sequence[Port],
        parameters: Sequence[str],
    ) -> RunResult:
        wrapper = wrapper_source(self.reference.top, module, ports, parameters, bench.inner, secret)
        files = {
            "bench.v": bench.source.encode(),
            "wrapper.v": wrapper.encode(),
            "design.v": design.encode(),
            **{name: text.encode() for name, text in self.reference.files.items()},
        }
        sources = ["bench.v", "wrapper.v", "design.v"]
        if bench.helpers:
            parsed = parse_reference(self.reference.design, "reference design")
            files["helper.v"] = print_all(parsed, bench.helpers).encode()
            sources.insert(1, "helper.v")
        program = icarus_twice(files, sources, bench.top, f"{secret}_{LEVEL}")
        return runner.run(program, self.limits)


@lru_cache(maxsize=64)
def _keyed(testbench: str, design: str, top: str) -> KeyedBench:
    """Return a bench rewritten with a secret that stands for others: parsing one takes as long as compiling it."""
    return key_bench(Reference(testbench=testbench, design=design, top=top), _secret(testbench))


def _secret(text: str) -> str:
    return "s" + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _split(result: RunResult, secret: str) -> list[bytes]:
    """Return what the two runs printed."""
    return result.stdout.split(f"{secret}_{LEVEL}\n".encode())


def _trouble(result: RunResult) -> str:
    """Return why a run came to nothing, or ""."""
    if result.ending != "exited":
        return f"it ended by {result.ending}"
    return shorten(_text(result.stderr)) or "it does not compile" if result.code == REFUSED else ""


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _word_in(name: str, source: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", source) is not None
