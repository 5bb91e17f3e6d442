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

from adjudge.sandbox.program import ENDINGS, RunLimits, RunResult
from adjudge.sandbox.sandbox import Sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verilog.candidate import Candidate
from adjudge.verifiers.verilog.front_end import shorten
from adjudge.verifiers.verilog.interface import Port, instance_interface, read_ports
from adjudge.verifiers.verilog.reference import Reference, parse_reference
from adjudge.verifiers.verilog.rewriting import KeyedBench, key_bench
from adjudge.verifiers.verilog.rules import print_all
from adjudge.verifiers.verilog.simulators import DRIVEN, REFUSED, icarus_twice

PASSED = r"(?i)\bpass(?:es|ed)?\b"
FAILED = r"(?i)\b(?:fail(?:s|ed|ure|ures)?|errors?|mismatch(?:es)?|incorrect|wrong|timeout)\b"
_COUNT = re.compile(r"\s*Mismatches: (\d+) in (\d+) samples\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a bench's lines are read.

    Attributes:
        samples: how many samples a counting bench takes; 0 for one that says "passed".
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

    The share is that of its samples that match, where it counts them, else 0 or 1; `said` is the line that decided.
    """

    passed: bool
    share: float
    said: str


def keyed_lines(output: bytes, key: str) -> list[str]:
    """Return what the bench printed, line by line; what has no key is not the bench's."""
    parts = output.decode(errors="replace").split(key)[1:]
    return [part.split("\n", 1)[0].rstrip("\r") for part in parts]


def learn_rule(lines: Sequence[str], passed: str, failed: str) -> Rule:
    """Return how to read a bench, from what it prints about its reference and the patterns that this has, or ""."""
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
    if samples <= 0 or any(int(match[2]) != samples for match in counts):
        return BenchVerdict(passed=False, share=0.0, said=f"{worst[0].strip()}, where the reference has {samples}")
    share = max(0.0, 1 - int(worst[1]) / samples)
    return BenchVerdict(passed=int(worst[1]) == 0, share=share, said=worst[0].strip())


def _bare(line: str) -> str:
    return re.sub(r"[\d\s]+", " ", line).strip()


LEVEL = "unknown"  # the plusarg that says what unknown bits become


def wrapper_source(name: str, inside: str, ports: Sequence[Port], parameters: Sequence[str], bench: KeyedBench) -> str:
    """Return the source of a wrapper `name` around an instance of the design's module `inside`.

    The bench may set the parameters.
    """
    secret = bench.secret
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
  {inside}{passed} {bench.inner} ({", ".join(connections)});
endmodule
"""


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

    The ports are those that it expects, None where no reference design says so; the floor is the share of its checks
    that an empty design passes.
    """

    reference: Reference
    limits: RunLimits
    rule: Rule = PLAIN
    ports: tuple[Port, ...] | None = None
    floor: float = 0.0

    def prepared(self, runner: Sandbox, refuse_empty: bool) -> BenchRun:
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
        result, said = self._run(runner, bench, design, names[top], ports, parameters)
        if problem := _trouble(result):
            limit = result.ending in ("timeout", "memory", "output", "disk")
            raise BadReferenceError(f"the test bench does not run with its reference design: {problem}", limit=limit)
        rule = learn_rule(said[0], self.reference.passed, self.reference.failed)
        for lines in said:
            if not (verdict := read_verdict(lines, rule)).passed:
                raise BadReferenceError(f"the test bench refuses its own reference design: {verdict.said or 'silent'}")
        stub = f"{_header(f'{secret}_stub', ports, parameters)}\nendmodule\n"  # the right ports and nothing in it
        result, said = self._run(runner, bench, stub, f"{secret}_stub", ports, parameters)
        verdicts = [] if _trouble(result) else [read_verdict(lines, rule) for lines in said]
        if refuse_empty and verdicts and all(verdict.passed for verdict in verdicts):
            raise BadReferenceError("the test bench accepts a design that drives nothing, so it judges nobody")
        floor = min((verdict.share for verdict in verdicts), default=0.0)
        return replace(self, rule=rule, ports=ports, floor=floor)

    def judge(self, runner: Sandbox, candidate: Candidate, secret: str) -> BenchAnswer:
        """Return what the bench says about a candidate that has the ports it expects and cannot know the secret.

        Raises:
            BadReferenceError: the bench itself does not fit.
        """
        bench, testbench = self._keyed(secret), self.reference.testbench
        words = (name for name in sorted(candidate.shared_names) if re.search(rf"\b{re.escape(name)}\b", testbench))
        if (clash := next(words, None)) is not None:
            return BenchAnswer(reason="candidate_error", stage="elaborate", error=f"the bench has the name {clash!r}")
        ports: tuple[Port, ...] = self.ports or candidate.ports
        parameters: tuple[str, ...] = ()
        if bench.overrides:
            ports, parameters = self._shape(bench, candidate.source.replace(candidate.top, self.reference.top))
        result, said = self._run(runner, bench, candidate.source, candidate.top, ports, parameters)
        if result.ending in ENDINGS:
            return BenchAnswer(reason=ENDINGS[result.ending], stage="run", error=f"it ended by {result.ending}")
        if DRIVEN.search(result.stderr):
            return BenchAnswer(reason="tampering", stage="elaborate", error="the design drives one of its own inputs")
        if result.code == REFUSED:
            error = result.stderr.decode(errors="replace").replace(f"{secret}_", "")
            return BenchAnswer(reason="candidate_error", stage="elaborate", error=shorten(error))
        verdicts = [read_verdict(lines, self.rule) for lines in said]
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
        runner: Sandbox,
        bench: KeyedBench,
        design: str,
        module: str,
        ports: Sequence[Port],
        parameters: Sequence[str],
    ) -> tuple[RunResult, list[list[str]]]:
        """Return what came of the two runs of a design, and what the bench printed in each."""
        wrapper = wrapper_source(self.reference.top, module, ports, parameters, bench)
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
        flag = f"{bench.secret}_{LEVEL}"
        result = runner.run(icarus_twice(files, sources, bench.top, flag), self.limits)
        outputs = result.stdout.split(f"{flag}\n".encode())
        return result, [keyed_lines(output, bench.key) for output in outputs]


@lru_cache(maxsize=64)
def _keyed(testbench: str, design: str, top: str) -> KeyedBench:
    """Return a bench rewritten with a secret that stands for others: parsing one takes as long as compiling it."""
    return key_bench(Reference(testbench=testbench, design=design, top=top), _secret(testbench))


def _secret(text: str) -> str:
    return "s" + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _trouble(result: RunResult) -> str:
    """Return why a run came to nothing, or ""."""
    if result.ending != "exited":
        return f"it ended by {result.ending}"
    said = shorten(result.stderr.decode(errors="replace"))
    return said or "it does not compile" if result.code == REFUSED else ""
