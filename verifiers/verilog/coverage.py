"""Which lines of a design are reached, by the stimuli or by a test bench, measured by Verilator.

A low share says that a comparison on these rows proves little: raise `effort`, name the clocks and resets, or ask for
a proof.

Not covered: toggle and branch coverage.  Verilator does not take every test bench that Icarus takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.runner import Runner
from adjudge.verifiers.verilog.driver import driver_source
from adjudge.verifiers.verilog.front_end import shorten
from adjudge.verifiers.verilog.interface import Interface
from adjudge.verifiers.verilog.simulators import VERILATED, require, verilator_library
from adjudge.verifiers.verilog.stimulus import Stimulus

_REPORT = "lines.info"
_NAME = "cover"
_DRIVER = "coverage_main.cpp"
# What `verilator --binary` makes, and the line that writes the counts, which Verilator 5.006 leaves to the caller.
_MAIN = b"""#include "verilated.h"
#include "Vcover.h"
int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Vcover top{&context};
    while (!context.gotFinish()) {
        top.eval();
        if (!top.eventsPending()) break;
        context.time(top.nextTimeSlot());
    }
    top.final();
    context.coveragep()->write("coverage.dat");
    return 0;
}
"""
_LINE = re.compile(rb"^DA:(\d+),(\d+)$", re.M)


class CoverageError(RuntimeError):
    """Verilator could not compile or run the design; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCoverage:
    """Lines of a design that hold logic.

    Attributes:
        reached: how many were executed.
        missed: numbers of the others, from 1, in the design as it is printed.
    """

    reached: int
    missed: tuple[int, ...]

    @property
    def share(self) -> float:
        """The share that was executed; 1 for a design without such lines, which is all wires."""
        total = self.reached + len(self.missed)
        return self.reached / total if total else 1.0


def line_coverage(
    runner: Runner, source: str, module: str, interface: Interface, stimulus: Stimulus, limits: RunLimits
) -> LineCoverage:
    """Run a design on a stimulus and count the lines that it executes.

    Args:
        runner: where Verilator runs.
        source: the design, printed.
        module: its top module.
        interface: the top's ports.
        stimulus: what it is shown.
        limits: of compiling and running together; the compiler alone takes a second or more.

    Raises:
        ToolMissingError: Verilator is not installed.
        CoverageError: it does not take the design.
    """
    files = {
        "bench.v": driver_source(interface, module, _NAME).encode(),
        "design.v": source.encode(),
        f"{_NAME}.rows": stimulus.hex_text(),
    }
    return covered_lines(runner, files, ("bench.v", "design.v"), f"{_NAME}_bench", "design.v", limits)


def covered_lines(
    runner: Runner, files: Mapping[str, bytes], sources: Sequence[str], top: str, measured: str, limits: RunLimits
) -> LineCoverage:
    """Run a simulation and count the lines of one source that it executes.

    Args:
        runner: where Verilator runs.
        files: sources and data files, by name.
        sources: the names of the sources.
        top: the top module.
        measured: the source whose lines are counted.
        limits: of compiling and running together; the compiler alone takes a second or more.

    Raises:
        ToolMissingError: Verilator is not installed.
        CoverageError: it does not take the sources.
    """
    require("verilator")
    ready, linked = verilator_library(runner, "--coverage-line")
    script = (
        f"{{ verilator --cc --exe --build {VERILATED} {linked} --coverage-line "
        f"-o simulation --prefix Vcover --top-module {top} {' '.join(sources)} {_DRIVER} && made/simulation "
        f"&& verilator_coverage --write-info {_REPORT} coverage.dat; }} >made.log 2>&1 && exit\n"
        "tail -c 2000 made.log; exit 1"
    )
    program = Program(command=("sh", "-c", script), files={**files, **ready, _DRIVER: _MAIN}, outputs=(_REPORT,))
    result = runner.run(program, limits)
    report = result.outputs.get(_REPORT)
    if result.ending != "exited" or result.code != 0 or report is None:
        said = shorten(result.stdout.decode(errors="replace")) or result.ending
        raise CoverageError(f"Verilator does not take the design: {said}")
    counts: dict[int, int] = {}
    for part in report.split(b"SF:")[1:]:
        if part.startswith(measured.encode() + b"\n"):
            for line, count in _LINE.findall(part):
                counts[int(line)] = max(counts.get(int(line), 0), int(count))
    missed = tuple(sorted(line for line, count in counts.items() if not count))
    return LineCoverage(reached=len(counts) - len(missed), missed=missed)
