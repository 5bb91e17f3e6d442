"""Proof that two designs are equal, or an input on which they differ.

Yosys builds one circuit of both, in which clocks are inputs like others, so that latches, both edges and several
clocks are covered, and unknown values are signals of their own (`xprop`).  Resets are held first.  The circuit says
"bad" where a known bit of the reference is not the candidate's.  ABC looks for inputs that lead there (bounded search),
merges what induction shows to be equal (`scorr`), and tries to prove the rest (`pdr`).

A difference that ABC finds counts only once a simulation of both designs shows it, for the two models of unknown values
are not the same.  A proof is taken as it is.

Not covered: designs that cannot be synthesised, and memories and arithmetic beyond the solver; they stay open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from adjudge.hardware.driver import wiring
from adjudge.hardware.front_end import shorten
from adjudge.hardware.interface import Interface
from adjudge.hardware.stimulus import Stimulus
from adjudge.verifiers.execution.program import RunLimits
from adjudge.verifiers.execution.runner import Runner
from adjudge.verifiers.verilog.aiger import AigerError, low_outputs, read_aiger, still_latches
from adjudge.verifiers.verilog.yosys import HERE, run_yosys

_STEPS = ("bounded", "proved")
_WARM_UP = 5  # steps: clocks rise, fall and rise again while every reset is held
_WORK = 2_000_000  # gates that a simulation in search of registers that move evaluates: 0.3 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the solver found.

    Attributes:
        verdict: "equal" for all inputs and times; "differ" on `rows`; "open" when it could tell neither.
        how: "merged" by induction, "proved" by reachability, "bounded" search, or "".
        detail: why it is open.
        stimulus: what should show a difference.
        stuck: registers that matter for the verdict, are not proved constant, and never change in a simulation of what
            no proof could settle.
    """

    verdict: Literal["equal", "differ", "open"]
    how: str = ""
    detail: str = ""
    stimulus: Stimulus | None = None
    stuck: int = 0


def prove(
    runner: Runner, gold: tuple[str, str], gate: tuple[str, str], interface: Interface, limits: RunLimits, depth: int
) -> Proof:
    """Compare two designs.

    Args:
        runner: where Yosys runs.
        gold: the reference's source and top module.
        gate: the candidate's.
        interface: the ports of both.
        limits: of the run.
        depth: clock cycles of the bounded search.

    Raises:
        ToolMissingError: Yosys does not start.
    """
    files = {
        "gold.v": gold[0].encode(),
        "gate.v": gate[0].encode(),
        "miter.v": _miter(interface).encode(),
        "unit.v": _UNIT,
    }
    outputs = ("miter.map", "known.aig", "rest.aig", *(f"{step}.status" for step in _STEPS))
    result, said = run_yosys(
        runner, _script(gold[1], gate[1], interface, depth, limits.seconds), files, outputs, limits
    )
    if "miter.map" not in result.outputs:
        return Proof(verdict="open", detail=shorten(said[-300:]) if result.ending == "exited" else "it takes too long")
    status = {step: result.outputs.get(f"{step}.status", b"").decode(errors="replace") for step in _STEPS}
    try:
        rest, known = (read_aiger(result.outputs.get(f"{name}.aig", b"")) for name in ("rest", "known"))
    except AigerError as error:
        return Proof(verdict="open", detail=str(error))
    how = "merged" if rest.outputs == (0,) else "proved" if status["proved"].startswith("snl_UNSAT") else ""
    if how and low_outputs(known, 0, _WORK):
        return Proof(verdict="open", how=how, detail="the model does not know all outputs of the reference")
    if how:
        return Proof(verdict="equal", how=how)
    stuck = still_latches(rest, 0, _WORK)
    if status["bounded"].startswith("snl_SAT"):
        stimulus = _stimulus(status["bounded"], result.outputs["miter.map"].decode(), interface)
        return Proof(verdict="differ", how="bounded", stimulus=stimulus, stuck=stuck)
    return Proof(verdict="open", detail="neither proof nor difference", stuck=stuck)


_UNIT = b"module unit (input a, input b, output y); assign y = a & b; endmodule\n"


def _script(gold: str, gate: str, interface: Interface, depth: int, seconds: float) -> str:
    warm_up = f"tempor,-F,{_WARM_UP + 1};" if interface.resets else ""
    frames = _WARM_UP + (2 * depth if interface.clocks else 1)
    search, reach = max(1, int(seconds * 0.15)), max(1, int(seconds / 2))
    commands = (
        f"backup;read_aiger,{HERE}/miter.aig;strash;bmc3,-F,{frames},-C,20000,-T,{search};"
        f"write_status,{HERE}/bounded.status;read_aiger,{HERE}/miter.aig;strash;{warm_up}scorr;scorr,-F,3;"
        f"write_aiger,{HERE}/rest.aig;pdr,-T,{reach};write_status,{HERE}/proved.status;restore;strash;map"
    )
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
techmap; opt -fast -nodffe -nosdff; dffunmap; aigmap; opt_clean
design -push-copy
delete -output w:bad
opt_clean
write_aiger -zinit {HERE}/known.aig
design -pop
delete -output w:known
opt_clean
write_aiger -zinit -map {HERE}/miter.map {HERE}/miter.aig
design -reset
read_verilog {HERE}/unit.v; simplemap
abc -script +{commands}
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
    last = _WARM_UP if interface.resets else 0
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
  reg [2:0] since = 0;
  always @($global_clock) if (since != {last}) since <= since + 1;
  wire warm = since != {last};
  wire [{shown - 1}:0] level = {{{", ".join(levels) or "row"}}};
{instances}
  assign known = ~gold_unknown & {{{width}{{!warm}}}};
  assign bad = |(known & (gate_unknown | (gold_value ^ gate_value)));
endmodule
"""


def _stimulus(status: str, names: str, interface: Interface) -> Stimulus:
    """Return the rows of a counterexample, two rows for each step: clocks change first, then the rest.

    A register of the model sees the data of the step before.
    """
    lines = status.split("\n")
    frames = int(lines[0].split()[-1]) + 1
    bits = "".join(lines[2:]).strip()
    count = len(bits) // frames
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
    for frame in range(frames):
        row = sum(1 << bit for at, bit in places.items() if bits[frame * count + at] == "1")
        if interface.resets and frame < _WARM_UP:
            for bit, level in forced:
                row = row & ~(1 << bit) | (frame % 2 if level is None else int(level)) << bit
        if rows and clocks:
            rows.append(rows[-1] & ~clocks | row & clocks)
        rows.append(row)
        settled = len(rows) if frame < _WARM_UP else settled
    return Stimulus(inputs=interface.inputs, rows=tuple(rows), settled=settled if interface.resets else 0)
