"""Proof that two designs are equal, or an input on which they differ.

Yosys builds one circuit of both, in which clocks are inputs like others, so that latches, both edges and several
clocks are covered, and unknown values are signals of their own (`xprop`).  Resets are held first.  The circuit says
"bad" where a known bit of the reference is not the candidate's.  ABC looks for inputs that lead there (bounded search),
merges what induction shows to be equal (`scorr`), and tries to prove the rest (`pdr`).

A difference that ABC finds counts only once a simulation of both designs shows it, for the two models of unknown values
are not the same.  A proof is taken as it is.

Guesses that help an induction: bounds of counters, which no induction over equal signals finds by itself.

Two counters up to 4999, one of 13 bits and one of 32, are equal bit for bit as long as they stay below 5000, and
nothing in the circuit says that they do.  So each register word gets, for each number that stands in the sources,
signals that nothing needs: whether the word is above this number, the number less the word, and the word modulo the
number.  The induction (`scorr`) then finds and proves that the first is always false, and that the others are equal to
a counter of the other design, which counts down or goes round earlier.  A wrong guess does no harm.

Not covered: designs that cannot be synthesised, and memories and arithmetic beyond the solver; they stay open.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.verifiers.verilog.aiger import Aiger, AigerError, low_outputs, read_aiger, still_latches, write_aiger
from adjudge.verifiers.verilog.front_end import Interface, shorten
from adjudge.verifiers.verilog.stimulus import Stimulus, wiring
from adjudge.verifiers.verilog.yosys import HERE, run_yosys

WORD = "adjudge_word_"
"""In front of the names of register words in the map of a circuit."""
_LEAST = 3  # a smaller number is a state, not a bound
_MAX_GATES = 60_000

_FALSE, _TRUE = 0, 1


def register_words(names: str) -> list[dict[int, int]]:
    """Return the registers of each word in a map that Yosys wrote: number of the register by bit."""
    words: dict[str, dict[int, int]] = defaultdict(dict)
    for at, bit, name in re.findall(rf"^latch (\d+) (\d+) ({WORD}\S+)$", names, re.M):
        words[name][int(bit)] = int(at)
    return list(words.values())


def with_bounds(circuit: Aiger, words: Iterable[Mapping[int, int]], numbers: Iterable[int]) -> Aiger:
    """Return a circuit with the guesses in further outputs, which are 1 only where the first, to be never 1, is.

    Words are those of `register_words`; numbers are what stands in the sources.
    """
    bounds = sorted({near for number in numbers for near in (number - 1, number) if near >= _LEAST})
    first = 2 * (circuit.inputs + 1)
    build = _Builder(circuit)
    outputs = list(circuit.outputs)
    seen = set()
    for word in words:
        bits = tuple(first + 2 * word[bit] if bit in word else _FALSE for bit in range(max(word) + 1))
        if bits in seen or len(build.gates) > _MAX_GATES:
            continue
        seen.add(bits)
        for bound in bounds:
            if bound.bit_length() <= len(bits):
                outputs += [build.both(guess, circuit.outputs[0]) for guess in build.guesses(bits, bound)]
    return replace(circuit, outputs=tuple(outputs), gates=tuple(build.gates))


class _Builder:
    """Gates that are added to a circuit; each pair of literals once."""

    def __init__(self, circuit: Aiger) -> None:
        self.gates = list(circuit.gates)
        self.start = circuit.inputs + len(circuit.latches) + 1
        self.known: dict[tuple[int, int], int] = {}

    def guesses(self, bits: Sequence[int], bound: int) -> list[int]:
        """Return whether a word is above `bound`, the bits of `bound` - word, and of word modulo `bound` + 1."""
        fixed = [bound >> at & 1 for at in range(len(bits))]
        below, short = self.minus(fixed, bits)
        more = [bound + 1 >> at & 1 for at in range(len(bits))]
        round_again, _ = self.minus(bits, more)
        wrapped = [self.choose(short, far, bit) for far, bit in zip(round_again, bits, strict=True)]
        return [short, *below, *wrapped]

    def minus(self, one: Sequence[int], other: Sequence[int]) -> tuple[list[int], int]:
        """Return the bits of a difference, and whether it is below 0."""
        bits, borrow = [], _FALSE
        for left, right in zip(one, other, strict=True):
            apart = self.differ(left, right)
            bits.append(self.differ(apart, borrow))
            borrow = self.choose(apart, right, borrow)
        return bits, borrow

    def differ(self, one: int, other: int) -> int:
        """Return the literal of an exclusive or."""
        return self.both(self.both(one, other) ^ 1, self.both(one ^ 1, other ^ 1) ^ 1)

    def choose(self, which: int, yes: int, no: int) -> int:
        """Return the literal of a choice."""
        return self.both(self.both(which, yes) ^ 1, self.both(which ^ 1, no) ^ 1) ^ 1

    def both(self, one: int, other: int) -> int:
        """Return the literal of an AND."""
        low, high = sorted((one, other))
        if low == _FALSE or low ^ high == 1:
            return _FALSE
        if low in (_TRUE, high):
            return high
        if (high, low) not in self.known:
            self.known[high, low] = 2 * (self.start + len(self.gates))
            self.gates.append((high, low))
        return self.known[high, low]


_WRITTEN = ("miter.map", "known.aig", "miter.aig", "rest.aig")
_BEGINNING = 1.0  # second that Yosys may take to start
_WARM_UP = 5  # steps: clocks rise, fall and rise again while every reset is held
_WORK = 2_000_000  # gates that a simulation in search of registers that move evaluates: 0.3 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the solver found.

    Attributes:
        verdict: "equal" for all inputs and times; "differ" on `rows`; "open" when it could tell neither.
        how: "merged" by induction, "proved" by reachability (which also finds differences), "bounded" search, or "".
        stuck: registers that matter for the verdict, are not proved constant, and never change in a simulation of what
            no proof could settle.
    """

    verdict: Literal["equal", "differ", "open"]
    how: str = ""
    detail: str = ""
    stimulus: Stimulus | None = None
    stuck: int = 0


def prove(
    runner: Sandbox,
    gold: tuple[str, str],
    gate: tuple[str, str],
    interface: Interface,
    limits: RunLimits,
    depth: int,
    numbers: Sequence[int] = (),
) -> Proof:
    """Compare the reference's source and top module with the candidate's.

    Args:
        runner: where Yosys runs.
        gold: the reference's source and top module.
        gate: the candidate's.
        interface: the ports of both.
        limits: of each of two runs.
        depth: clock cycles of the bounded search.
        numbers: what stands in the sources, for guesses at bounds.

    Raises:
        ToolMissingError: Yosys does not start.
    """
    files = {"gold.v": gold[0].encode(), "gate.v": gate[0].encode(), "miter.v": _miter(interface).encode()}
    script = _script(gold[1], gate[1]) + _abc(f"{_merge(interface)}write_aiger,{HERE}/rest.aig")
    result, said = run_yosys(runner, script, {**files, "unit.v": _UNIT}, _WRITTEN, limits)
    made = result.outputs
    if not {"miter.map", "miter.aig", "known.aig"} <= made.keys():
        return Proof(verdict="open", detail=shorten(said[-300:]) if result.ending == "exited" else "it takes too long")
    try:
        known, miter = (read_aiger(made[f"{name}.aig"]) for name in ("known", "miter"))
        rest = read_aiger(made["rest.aig"]) if "rest.aig" in made and result.ending == "exited" else miter
        solver = _Solver(runner, interface, limits, made["miter.map"].decode(errors="replace"))
        proof = Proof(verdict="equal", how="merged") if rest.outputs == (0,) else solver.asked(miter, depth, numbers)
    except AigerError as error:
        return Proof(verdict="open", detail=str(error))
    if proof.verdict == "equal" and low_outputs(known, 0, _WORK):
        return Proof(verdict="open", how=proof.how, detail="the model does not know all outputs of the reference")
    return replace(proof, stuck=still_latches(rest, 0, _WORK)) if proof.verdict == "open" else proof


@dataclass(frozen=True, slots=True)
class _Solver:
    """ABC on what a first induction left.

    Each question has a run of its own, so that what ends it is the limit of the run, which leaves out the time in which
    the machine let it wait; ABC's own clocks would count it.
    """

    runner: Sandbox
    interface: Interface
    limits: RunLimits
    names: str

    def asked(self, miter: Aiger, depth: int, numbers: Sequence[int]) -> Proof:
        """Return what is found: by a bounded search, by reachability, and by both inductions with guesses."""
        plain = write_aiger(miter)
        frames = _WARM_UP + (2 * depth if self.interface.clocks else 1)
        search = f"read_aiger,{HERE}/miter.aig;strash;bmc3,-F,{frames},-C,20000;"
        guessing = bool(self.interface.clocks and numbers)
        merged = _merge(self.interface)
        status, _ = self.run(plain, search, 0.15)
        if status.startswith("snl_SAT"):
            return Proof(verdict="differ", how="bounded", stimulus=_stimulus(status, self.names, self.interface, 0))
        status, rest = self.run(plain, f"{merged}write_aiger,{HERE}/rest.aig;pdr;", 0.15 if guessing else 0.5)
        if guessing and not status.startswith(("snl_SAT", "snl_UNSAT")):
            guessed = write_aiger(with_bounds(miter, register_words(self.names), numbers))
            commands = f"{_merge(self.interface, 'cone,-a,-O,0;scorr;')}write_aiger,{HERE}/rest.aig;pdr;"
            status, rest = self.run(guessed, commands, 0.5)
        if rest == (0,):
            return Proof(verdict="equal", how="merged")
        if status.startswith("snl_UNSAT"):
            return Proof(verdict="equal", how="proved")
        if status.startswith("snl_SAT"):
            stimulus = _stimulus(status, self.names, self.interface, _unrolled(self.interface))
            return Proof(verdict="differ", how="proved", stimulus=stimulus)
        return Proof(verdict="open", detail="neither proof nor difference")

    def run(self, circuit: bytes, commands: str, share: float) -> tuple[str, tuple[int, ...]]:
        """Return the status that commands end with in a share of the time, and the outputs that they leave."""
        limits = replace(self.limits, seconds=_BEGINNING + share * self.limits.seconds)
        files = {"miter.aig": circuit, "unit.v": _UNIT}
        script = _abc(f"{commands}write_status,{HERE}/found.status")
        made = run_yosys(self.runner, script, files, ("rest.aig", "found.status"), limits)[0].outputs
        rest = read_aiger(made["rest.aig"]).outputs if "rest.aig" in made else ()
        return made.get("found.status", b"").decode(errors="replace"), rest


_UNIT = b"module unit (input a, input b, output y); assign y = a & b; endmodule\n"


def _merge(interface: Interface, last: str = "") -> str:
    """Return the commands of ABC that read a circuit, play the warm-up, and merge what induction shows to be equal."""
    tempor = f"tempor,-F,{unrolled};" if (unrolled := _unrolled(interface)) else ""
    return f"read_aiger,{HERE}/miter.aig;strash;{tempor}scorr;{last}scorr,-F,3;"


def _unrolled(interface: Interface) -> int:
    """Return how many steps are played before the induction begins."""
    return _WARM_UP + 1 if interface.resets else 0


def _abc(commands: str) -> str:
    """Return a script that runs ABC, which Yosys starts for a design only."""
    return f"""design -reset
read_verilog {HERE}/unit.v; simplemap
abc -script +backup;{commands};restore;strash;map
"""


def _script(gold: str, gate: str) -> str:
    designs = "".join(
        f"""read_slang -j 1 --ignore-timing --top {top} {HERE}/{name}.v
flatten; memory; opt -nodffe -nosdff
clk2fflogic
setundef -undriven -undef
xprop -formal -split-outputs -assume-def-inputs
chformal -assume -remove; opt_clean
rename {top} {name}
design -stash {name}
"""
        for name, top in (("gold", gold), ("gate", gate))
    )
    return f"""{designs}read_verilog -formal {HERE}/miter.v
design -import gold -as gold gold
design -import gate -as gate gate
hierarchy -top miter
proc; flatten
setundef -undriven -anyseq
formalff -setundef -ff2anyinit
opt -full -nodffe -nosdff
rename -enumerate -pattern {WORD}% t:$ff %co1:+[Q] t:$ff %d
techmap; opt -fast -nodffe -nosdff; dffunmap; aigmap; opt_clean
design -push-copy
delete -output w:bad
opt_clean
write_aiger -zinit {HERE}/known.aig
design -pop
delete -output w:known
opt_clean
write_aiger -zinit -map {HERE}/miter.map {HERE}/miter.aig
"""


def _miter(interface: Interface) -> str:
    """Return the circuit that says where the designs differ; `since` counts the steps of the start."""
    shown, width = (max(1, sum(port.width for port in ports)) for ports in (interface.inputs, interface.outputs))
    levels, high = [], shown
    resets = dict(interface.resets)
    for port in interface.inputs:
        high -= port.width
        name = f"row[{high + port.width - 1}:{high}]"
        if port.name in resets:
            name = f"(warm ? 1'b{int(resets[port.name])} : {name})"
        elif port.name in interface.clocks:
            name = f"(warm ? since[0] : {name})"
        levels.append(name)
    last, since = 0, "wire [2:0] since = 0;"  # a register that never moves would pass for one that was never reached
    if interface.resets:
        last = _WARM_UP
        since = f"reg [2:0] since = 0;\n  always @($global_clock) if (since != {last}) since <= since + 1;"
    values, masks = (tuple(replace(port, name=port.name + end) for port in interface.outputs) for end in ("_d", "_x"))
    instances = "\n".join(
        f"  wire [{width - 1}:0] {module}_value, {module}_unknown;\n  {module} {module}_design ("
        + ", ".join(
            wiring(interface.inputs, "level") + wiring(values, f"{module}_value") + wiring(masks, f"{module}_unknown")
        )
        + ");"
        for module in ("gold", "gate")
    )
    return f"""module miter (input [{shown - 1}:0] row, output bad, output [{width - 1}:0] known);
  {since}
  wire warm = since != {last};
  wire [{shown - 1}:0] level = {{{", ".join(levels) or "row"}}};
{instances}
  assign known = ~gold_unknown & {{{width}{{!warm}}}};
  assign bad = |(known & (gate_unknown | (gold_value ^ gate_value)));
endmodule
"""


def _stimulus(status: str, names: str, interface: Interface, unrolled: int) -> Stimulus:
    """Return the rows of a counterexample, two rows for each step: clocks change first, then the rest.

    A register of the model sees the data of the step before.  The steps that `tempor` unrolled are further inputs of
    the first frame, behind its own.
    """
    lines = status.split("\n")
    shown = "".join(lines[2:]).strip()
    every = len(shown) // (int(lines[0].split()[-1]) + 1)
    count = every // (unrolled + 1)
    frames = [shown[at : at + count] for at in range(count, every, count)] if unrolled else []
    frames += [shown[at : at + count] for at in range(0, len(shown), every)]
    places = {int(at): int(bit) for at, bit in re.findall(r"^input (\d+) (\d+) row$", names, re.M)}
    clocks, width = 0, sum(port.width for port in interface.inputs)
    forced: list[tuple[int, bool | None]] = []
    high = width
    for port in interface.inputs:
        high -= port.width
        if port.name in interface.clocks:
            clocks |= 1 << high
            forced.append((high, None))
        elif port.name in dict(interface.resets):
            forced.append((high, dict(interface.resets)[port.name]))
    rows: list[int] = []
    settled = 0
    for frame, bits in enumerate(frames):
        row = sum(1 << bit for at, bit in places.items() if bits[at] == "1")
        if interface.resets and frame < _WARM_UP:
            for bit, level in forced:
                row = row & ~(1 << bit) | (frame % 2 if level is None else int(level)) << bit
        if rows and clocks:
            rows.append(rows[-1] & ~clocks | row & clocks)
        rows.append(row)
        settled = len(rows) if frame < _WARM_UP else settled
    return Stimulus(inputs=interface.inputs, rows=tuple(rows), settled=settled if interface.resets else 0)
