"""A candidate beside the reference design: the same rows for both, each in a simulation of its own.

What two designs answered to the same rows, compared.

An unknown bit (x) of the reference matches anything; a known bit, 0, 1 or z, must be met exactly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verilog.candidate import Candidate
from adjudge.verifiers.verilog.front_end import (
    Interface,
    InterfaceError,
    Port,
    StoppedError,
    integers,
    read_interface,
    shorten,
)
from adjudge.verifiers.verilog.reference import Reference, parse_reference
from adjudge.verifiers.verilog.rules import print_all
from adjudge.verifiers.verilog.simulators import COMPILED, check_run, icarus, icarus_again, require
from adjudge.verifiers.verilog.stimulus import Stimulus, driver_source, long_stimulus, make_stimulus

END = "end"


class TraceError(ValueError):
    """Samples that are not what the bench writes; the simulation was stopped, or something else wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far a design agrees with its reference.

    Attributes:
        checked: rows on which the reference has at least one known bit.
        constant: the largest number of them that outputs without any logic, stuck at one value, would match.
        first: the first row that differs; -1 when none does.
        still: names of the output bits that the reference holds at one known level.
    """

    checked: int
    matched: int
    constant: int
    first: int
    differing: tuple[str, ...]
    still: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the designs agree everywhere."""
        return self.matched == self.checked

    @property
    def share(self) -> float:
        """The share of rows that agree, counted from what stuck outputs would reach: 0 to 1."""
        if self.same:
            return 1.0
        return max(0.0, (self.matched - self.constant) / max(1, self.checked - self.constant))


def read_samples(data: bytes | None, stimulus: Stimulus, width: int) -> list[str]:
    """Return the samples of a run, one string of 0, 1, x and z for each row.

    Raises:
        TraceError: there are not exactly as many as rows, or one is malformed.
    """
    if data is None:
        raise TraceError("the simulation wrote no samples")
    lines = data.decode("ascii", errors="replace").split("\n")
    if len(lines) != len(stimulus.rows) + 2 or lines[-1] or lines[-2] != END:
        raise TraceError(f"the simulation ended after {max(0, len(lines) - 1)} of {len(stimulus.rows)} samples")
    samples = lines[:-2]
    if any(len(sample) != width or sample.strip("01xz") for sample in samples):
        raise TraceError("a sample is malformed")
    return samples


def known_bits(samples: Sequence[str]) -> int:
    """Return how many bits of the samples are 0 or 1."""
    return sum(sample.count("0") + sample.count("1") for sample in samples)


def compare(reference: Sequence[str], candidate: Sequence[str], ports: Sequence[Port], start: int = 0) -> Comparison:
    """Compare two traces of as many samples, from the first row that counts; the first port has the leftmost bits."""
    checked = matched = 0
    first, wrong_bits = -1, set()
    common: Counter[str] = Counter()
    for index in range(start, len(reference)):
        wanted, got = reference[index], candidate[index]
        unknown = wanted.count("x")
        if unknown == len(wanted):
            continue
        checked += 1
        common[wanted] += 1
        if wanted == got:
            matched += 1
            continue
        wrong = [at for at, (one, other) in enumerate(zip(wanted, got, strict=True)) if one not in ("x", other)]
        if not wrong:
            matched += 1
            continue
        wrong_bits.update(wrong)
        first = index if first < 0 else first
    return Comparison(
        checked=checked,
        matched=matched,
        constant=max(common.values(), default=0),
        first=first,
        differing=tuple(_ports_of(wrong_bits, ports)),
        still=_still_bits(common, ports),
    )


def _still_bits(samples: Iterable[str], ports: Sequence[Port]) -> tuple[str, ...]:
    levels = [set(column) & {"0", "1"} for column in zip(*samples, strict=True)]
    names = [
        f"{port.name}[{bit}]" if port.width > 1 else port.name for port in ports for bit in reversed(range(port.width))
    ]
    return tuple(name for name, seen in zip(names, levels, strict=False) if len(seen) == 1)


def _ports_of(bits: set[int], ports: Sequence[Port]) -> list[str]:
    names, low = [], 0
    for port in ports:
        if any(low <= bit < low + port.width for bit in bits):
            names.append(port.name)
        low += port.width
    return names


# What Icarus 11 says when a design drives an input; our bench is free of it, so it is the design's doing.
_DRIVEN = re.compile(rb"is coerced to inout|row Unable to assign to unresolved wires")

_GOLD = "gold"  # in front of the reference's names; no candidate shares a simulation with it
_MAX_COMPILED = 4 << 20  # bytes that are kept for a reference; the largest of VerilogEval has 100 KiB


@dataclass(frozen=True, kw_only=True)
class Differential:
    """A reference design that is fit to be compared with.

    Attributes:
        effort: clock cycles, or rows for a design without a clock.
        source: its text as it is compiled.
        module: its top module there.
        constants: the integers that stand in it.
        compiled: it and its bench as Icarus compiled them; empty where they are too large to keep.
    """

    reference: Reference
    limits: RunLimits
    effort: int
    interface: Interface
    source: str
    module: str
    constants: tuple[int, ...]
    compiled: bytes = b""

    @classmethod
    def of(cls, reference: Reference, limits: RunLimits, effort: int, runner: Sandbox) -> Differential:
        """Return a reference design that was read, compiled once and tried.

        Raises:
            BadReferenceError: it has no usable ports, does not compile, or never has a known output.
            ToolMissingError: Icarus is not installed.
        """
        parsed = parse_reference(reference.design, "reference design")
        names = {name: f"{_GOLD}_{name}" for name in parsed.modules}
        source, module = print_all(parsed, names), names[reference.design_top]
        ready = cls(
            reference=reference,
            limits=limits,
            effort=effort,
            interface=_interface(reference, source, module),
            source=source,
            module=module,
            constants=tuple(sorted(integers(parsed))),
        )
        require("iverilog")
        stimulus = ready.stimulus((), "the reference alone")
        samples, compiled = ready._answered(runner, stimulus)
        if not known_bits(samples[stimulus.settled :]):
            raise BadReferenceError("the outputs of the reference design are never known")
        return replace(ready, compiled=compiled if len(compiled) <= _MAX_COMPILED else b"")

    def stimulus(self, constants: Sequence[int], seed: str) -> Stimulus:
        """Return what both designs are shown."""
        return make_stimulus(self.interface, sorted({*self.constants, *constants}), seed, self.effort)

    def long_stimulus(self, constants: Sequence[int], seed: str) -> Stimulus:
        """Return what drives counters far: the same data for many cycles."""
        return long_stimulus(self.interface, sorted({*self.constants, *constants}), seed)

    def judge(
        self, runner: Sandbox, candidate: Candidate, seed: str, stimulus: Stimulus | None = None
    ) -> tuple[Comparison, dict[str, Any]]:
        """Return how far a candidate with the reference's ports agrees, and the first row that shows otherwise.

        The secret names and, unless it is given, the stimulus are made from the seed.

        Raises:
            StoppedError: the candidate's simulation came to nothing.
            BadReferenceError: the reference's did.
        """
        stimulus = stimulus or self.stimulus(candidate.constants, seed)
        got, _ = self._simulated(runner, candidate.source, candidate.top, stimulus, f"s{seed[:16]}")
        wanted, _ = self._answered(runner, stimulus)
        comparison = compare(wanted, got, self.interface.outputs, stimulus.settled)
        if comparison.first < 0:
            return comparison, {}
        at = comparison.first
        shown = {"row": at, "inputs": stimulus.row(at), "expected": wanted[at][:128], "got": got[at][:128]}
        return comparison, shown

    def _answered(self, runner: Sandbox, stimulus: Stimulus) -> tuple[list[str], bytes]:
        """Return what the reference answers, and, where that was not kept, what Icarus made of it and its bench."""
        keep = not self.compiled
        try:
            return self._simulated(runner, self.source, self.module, stimulus, _GOLD, self.compiled, keep)
        except StoppedError as error:
            raise BadReferenceError(f"the reference design does not run: {error}", limit=error.limit) from error

    def _simulated(
        self,
        runner: Sandbox,
        source: str,
        module: str,
        stimulus: Stimulus,
        secret: str,
        compiled: bytes = b"",
        keep: bool = False,
    ) -> tuple[list[str], bytes]:
        """Return what a design answers to a stimulus, and, to `keep`, it and its bench as Icarus compiled them.

        Raises:
            StoppedError: it does not compile, does not end, or does not let the bench end.
        """
        output, width = f"{secret}.samples", sum(port.width for port in self.interface.outputs)
        files = {name: self.reference.files[name].encode() for name in self.reference.shared}
        files[f"{secret}.rows"] = stimulus.hex_text()
        if compiled:
            program = icarus_again(compiled, files, (output,))
        else:
            files["bench.v"] = driver_source(self.interface, module, secret).encode()
            files["design.v"] = source.encode()
            outputs = (output, COMPILED) if keep else (output,)
            program = icarus(files, ("bench.v", "design.v"), f"{secret}_bench", outputs)
        result = runner.run(program, self.limits)
        check_run(result, secret, _DRIVEN)
        try:
            return read_samples(result.outputs.get(output), stimulus, width), result.outputs.get(COMPILED, b"")
        except TraceError as error:
            text = result.stderr.decode(errors="replace").replace(f"{secret}_", "")
            raise StoppedError("candidate_error", "run", f"{error} {shorten(text)}".strip()) from error


def _interface(reference: Reference, source: str, module: str) -> Interface:
    try:
        guessed = read_interface(source, module)
    except InterfaceError as error:
        raise BadReferenceError(str(error)) from error
    named = {port.name: port for port in guessed.inputs}
    clocks = guessed.clocks if reference.clocks is None else reference.clocks
    resets = guessed.resets if reference.resets is None else reference.resets
    for name in (*clocks, *(name for name, _ in resets)):
        if name not in named or named[name].width != 1:
            raise BadReferenceError(f"{name!r} is not a one-bit input of the reference design")
    if any(port.direction == "inout" for port in guessed.ports):
        raise BadReferenceError("the reference design has inout ports; give a test bench")
    if not guessed.outputs:
        raise BadReferenceError("the reference design has no outputs")
    return Interface(ports=guessed.ports, clocks=clocks, resets=tuple(item for item in resets if item[0] not in clocks))


def port_mismatch(wanted: Sequence[Port], got: Sequence[Port], widths: bool = True) -> str:
    """Return how two lists of ports differ, whatever their order and, unless `widths`, their widths; or ""."""
    have = {port.name: port for port in got}
    for port in wanted:
        other = have.pop(port.name, None)
        if other is None:
            return f"the port {port.name!r} is missing"
        if other.direction != port.direction or (widths and other.width != port.width):
            return f"the port {port.name!r} is {other.direction} [{other.width}], not {port.direction} [{port.width}]"
    return f"the port {min(have)!r} was not asked for" if have else ""
