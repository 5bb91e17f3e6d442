"""A user's test bench at work: on the reference first, then on an empty design, then on candidates.

A bench that refuses its own reference, or accepts a design that drives nothing, judges nobody.

What a test bench's own lines say: passed or not, and how many of its checks.

The benches of VerilogEval print `Mismatches: 3 in 100 samples`; all such lines must say 0, of as many samples as with
the reference design, and more than none.  Those of RTLLM print a line with "passed"; all that the bench says of
its reference must be there, number by number, and no other line that speaks of a failure, an error or a timeout.
Without a reference design, a bench that passes tests one by one needs a line for those that fail, too.

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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce

from adjudge.sandbox.program import RunLimits, RunResult
from adjudge.sandbox.sandbox import Sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verilog.candidate import Candidate
from adjudge.verifiers.verilog.front_end import Port, StoppedError, instance_interface, read_ports, shorten
from adjudge.verifiers.verilog.reference import Reference, parse_reference
from adjudge.verifiers.verilog.rewriting import KeyedBench, key_bench
from adjudge.verifiers.verilog.rules import print_all
from adjudge.verifiers.verilog.simulators import DRIVEN, REFUSED, check_run, icarus_twice

PASSED = r"(?i)\bpass(?:es|ed)?\b"
FAILED = (
    r"(?i)\b(?:fail(?:s|ed|ure|ures)?|errors?|mismatch(?:es|ed)?|incorrect|wrong|timeout|ng"
    r"|(?:not|never) pass(?:ed)?)\b"
)
_COUNT = re.compile(r"\s*Mismatches: (\d+) in (\d+) samples\s*")
# A right design may take longer than the reference.
_TIME = re.compile(
    r"(?i)^\s*\[\s*\d+\s*\]|(?:\btime\b|\bt\s*[:=]|@)\s*[:=]?\s*\d+|\b\d+\s*[npu]s\b"
    r"|\b(?:in|after)\s+\d+\s+(?:clock\s+)?cycles?\b"
)
_TEST = re.compile(r"(?i)\b(?:test|case|vector|check)\W{0,3}\d+")
_PRINTED = re.compile(r'\$f?(?:display|write|strobe|monitor)[bho]?\s*\((?:\s*\w+\s*,)?\s*"((?:\\.|[^"\\])*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a bench's lines are read.

    Attributes:
        samples: how many samples a counting bench takes; 0 for one that says "passed".
        harmless: lines of the reference's run that match `failed` and mean nothing.
        wanted: how often each line of it that matches `passed` must be there.
    """

    samples: int = 0
    passed: str = PASSED
    failed: str = FAILED
    harmless: frozenset[str] = frozenset()
    wanted: Counter[str] = field(default_factory=Counter)


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


def learn_rule(runs: Sequence[Sequence[str]], passed: str, failed: str) -> Rule:
    """Return how to read a bench, from what it prints about its reference and the patterns that this has, or ""."""
    counts = [match for lines in runs for line in lines if (match := _COUNT.fullmatch(line))]
    if counts and not passed:
        return Rule(samples=int(counts[-1][2]) or -1)
    rule = Rule(passed=passed or PASSED, failed=failed or FAILED)
    harmless = set() if failed else {_spoken(line) for lines in runs for line in lines if re.search(FAILED, line)}
    said = [_passes(lines, rule) for lines in runs] or [Counter()]
    return replace(rule, harmless=frozenset(harmless), wanted=reduce(Counter.__and__, said))


def read_verdict(lines: Sequence[str], rule: Rule) -> BenchVerdict:
    """Return what a bench says about a design."""
    if rule.samples:
        return _counted(lines, rule.samples)
    passes = _passes(lines, rule)
    trouble = next((line for line in lines if re.search(rule.failed, line) and _spoken(line) not in rule.harmless), "")
    if missing := rule.wanted - passes:
        trouble = trouble or f"no line {next(iter(missing))!r}, which the reference has"
    said = trouble or next((line for line in lines if re.search(rule.passed, line)), "")
    passed = bool(passes) and not (trouble or _skipped(lines, rule))
    return BenchVerdict(passed=passed, share=float(passed), said=said.strip()[:200])


def unread_line(testbench: str) -> str:
    """Return a line of a bench that tells nothing where no run of a reference design shows what to want, or ""."""
    printed = [match[1] for match in _PRINTED.finditer(testbench)]
    passes = [text for text in printed if re.search(PASSED, text)]
    told = any(re.search(FAILED, text) and not re.search(rf"{PASSED}|timeout", text) for text in printed)
    unclear = [text for text in passes if re.search(FAILED, text) or (not told and (len(passes) > 1 or "%" in text))]
    return unclear[0] if unclear else ""


def _counted(lines: Sequence[str], samples: int) -> BenchVerdict:
    counts = [match for line in lines if (match := _COUNT.fullmatch(line))]
    if not counts:
        return BenchVerdict(passed=False, share=0.0, said="")
    worst = max(counts, key=lambda match: int(match[1]))
    if samples <= 0 or any(int(match[2]) != samples for match in counts):
        return BenchVerdict(passed=False, share=0.0, said=f"{worst[0].strip()}, where the reference has {samples}")
    share = max(0.0, 1 - int(worst[1]) / samples)
    return BenchVerdict(passed=int(worst[1]) == 0, share=share, said=worst[0].strip())


def _passes(lines: Sequence[str], rule: Rule) -> Counter[str]:
    """Return the lines that match `passed`, counted; what a pattern of the user's leaves open may differ."""
    return Counter(
        _spoken(line) if rule.passed == PASSED else rule.passed for line in lines if re.search(rule.passed, line)
    )


def _spoken(line: str) -> str:
    return " ".join(_TIME.sub(" ", line).split())


def _skipped(lines: Sequence[str], rule: Rule) -> bool:
    """Return whether a numbered test is spoken of where others passed, and did not pass; no reference shows it then."""
    if rule.wanted or rule.passed != PASSED:
        return False
    spoken = [(bool(re.search(PASSED, line)), match[0].lower()) for line in lines for match in _TEST.finditer(line)]
    passed = {test for good, test in spoken if good}
    return bool(passed) and any(test not in passed for _, test in spoken)


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
            if not self.reference.passed and (line := unread_line(self.reference.testbench)):
                raise BadReferenceError(
                    f"the test bench prints {line!r}, which no run of a reference design explains: give `reference`, "
                    "or the patterns `pass` and `fail`"
                )
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
        rule = learn_rule(said, self.reference.passed, self.reference.failed)
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

    def judge(self, runner: Sandbox, candidate: Candidate, secret: str) -> tuple[float, str]:
        """Return what the bench says about a candidate that has the ports it expects and cannot know the secret.

        That is the share of its checks that pass, beyond what an empty design passes, and the line that decided.

        Raises:
            StoppedError: it does not compile with the bench, or comes to no end.
            BadReferenceError: the bench itself does not fit.
        """
        bench, testbench = self._keyed(secret), self.reference.testbench
        words = (name for name in sorted(candidate.shared_names) if re.search(rf"\b{re.escape(name)}\b", testbench))
        if (clash := next(words, None)) is not None:
            raise StoppedError("candidate_error", "elaborate", f"the bench has the name {clash!r}")
        ports: tuple[Port, ...] = self.ports or candidate.ports
        parameters: tuple[str, ...] = ()
        if bench.overrides:
            ports, parameters = self._shape(bench, candidate.source.replace(candidate.top, self.reference.top))
        result, said = self._run(runner, bench, candidate.source, candidate.top, ports, parameters)
        check_run(result, secret, DRIVEN)
        verdicts = [read_verdict(lines, self.rule) for lines in said]
        worst = min(verdicts, key=lambda verdict: (verdict.passed, verdict.share))
        if len(verdicts) == 2 and worst.passed:
            return 1.0, worst.said
        share = max(0.0, (worst.share - self.floor) / (1 - self.floor)) if self.floor < 1 else 0.0
        return min(share, 0.999), worst.said

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
        hidden = f"{bench.secret}_".encode()  # `%m` would show it, and another one about each design
        return result, [keyed_lines(output.replace(hidden, b""), bench.key) for output in outputs]


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
