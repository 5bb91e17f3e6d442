"""Does a test bench run to its end?  And what did it print, write and reach?

Nothing is judged: the evidence says how the simulation ended, for callers that judge for themselves, such as the
pipeline that makes test benches.  It runs in the sandbox of the Verilog verifier.  What a design in it prints cannot be
told from what the bench prints; for a verdict on a response use `verilog`.

Not covered: simulators other than Icarus, but for the coverage of lines, which Verilator measures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score, response_text
from adjudge.sandbox.program import ENDINGS, Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox, sandbox
from adjudge.scoring.bad_reference import ReferenceFormError
from adjudge.scoring.verifier_base import ReferenceVerifier
from adjudge.verifiers.code.sandboxed import IsolatedVerifier
from adjudge.verifiers.verilog.front_end import shorten
from adjudge.verifiers.verilog.simulators import REFUSED, ToolMissingError, icarus, require

_BENCH = "bench.v"
_KEYS = frozenset({"top", "design", "files", "outputs", "coverage"})
_COMPILE_SECONDS = 60.0  # Verilator and the C++ compiler, on a busy machine
_NAME = re.compile(r"[A-Za-z_]\w*")
_FILE = re.compile(r"[A-Za-z0-9_][\w.-]{0,100}")
_OWN = frozenset({_BENCH, "design.v", "compiled.vvp"})


@dataclass(frozen=True, kw_only=True)
class SimulationVerifier(IsolatedVerifier, ReferenceVerifier["_Request", str]):
    """Run the test bench in a response; 1 if it compiles and ends by itself.

    The response is the bench's source and nothing else, without code fences.  The reference is `{"top": name of the
    bench's top module, "design": source of the design it tests, "files": {name: text}, "outputs": [names of files to
    bring back], "coverage": whether to count the design's lines that are reached}`; only `top` is needed.

    Attributes:
        seconds: seconds for compiling and running.
        memory_mb: MiB for the simulation.
        output_mb: MiB that it may print, and that each of its files may have.
    """

    name: ClassVar[str] = "simulation"
    version: ClassVar[str] = "1"

    seconds: Annotated[float, Range(ge=0.1, le=600)] = 20.0
    memory_mb: Annotated[int, Range(ge=64, le=65_536)] = 1024
    output_mb: Annotated[int, Range(ge=1, le=256)] = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            require("iverilog")
        except ToolMissingError as error:
            raise ValueError(str(error)) from error

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: a run of Icarus, and one of Verilator."""
        return Limits(seconds=2 * self.seconds + _COMPILE_SECONDS + 10, memory_mb=1024, processes=64)

    def read_reference(self, reference: Any) -> _Request:
        """Return what a reference asks for."""
        try:
            return _Request.read(reference)
        except ValueError as error:
            raise ReferenceFormError(str(error)) from error

    def find(self, sample: Sample, gold: _Request) -> str:
        """Return the bench: the whole response."""
        return response_text(sample)

    def judge(self, bench: str, request: _Request) -> Score:
        """Return 1 for a bench that compiles and ends by itself, else 0.

        The evidence has "stage" ("compile" or "run"), "ending", "code", "stdout", "stderr", "outputs" (name to text,
        those that were written), and, where it was asked for, "coverage": {"reached": how many lines, "missed": numbers
        of the others, from 1}, or {"error": why Verilator could not tell}.
        """
        limits = RunLimits(
            seconds=self.seconds,
            memory_mb=self.memory_mb,
            processes=32,
            output_bytes=self.output_mb << 20,
            disk_mb=4 * self.output_mb + 64,
        )
        runner = sandbox(self.isolation)
        require("iverilog")
        files = {_BENCH: _bytes(bench), **request.files}
        sources = (_BENCH, "design.v") if "design.v" in files else (_BENCH,)
        done = runner.run(icarus(files, sources, request.top, request.outputs), limits)
        refused = done.ending == "exited" and done.code == REFUSED
        whole = {name: data for name, data in done.outputs.items() if len(data) <= self.output_mb << 20}
        evidence: dict[str, Any] = {
            "stage": "compile" if refused else "run",
            "ending": done.ending,
            "code": done.code,
            "stdout": done.stdout.decode(errors="replace"),
            "stderr": done.stderr.decode(errors="replace"),
            "outputs": {name: data.decode(errors="replace") for name, data in whole.items()},
        }
        if done.ending != "exited" or done.code != 0:
            return Score.scored(0.0, ENDINGS.get(done.ending, "candidate_error"), **evidence)
        if request.coverage:
            longer = replace(limits, seconds=limits.seconds + _COMPILE_SECONDS, disk_mb=256)
            try:
                reached, missed = covered_lines(runner, files, sources, request.top, "design.v", longer)
                evidence["coverage"] = {"reached": reached, "missed": missed}
            except CoverageError as error:
                evidence["coverage"] = {"error": shorten(str(error))}
        return Score.scored(1.0, **evidence)


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What a reference asks for."""

    top: str
    files: Mapping[str, bytes]
    outputs: tuple[str, ...]
    coverage: bool

    @classmethod
    def read(cls, given: Any) -> _Request:
        if not isinstance(given, Mapping):
            raise ValueError(f"the simulation reference is a {type(given).__name__}; it must be a mapping with 'top'")
        if unknown := sorted(set(map(str, given)) - _KEYS):
            raise ValueError(f"the simulation reference has {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
        top, design = given.get("top"), given.get("design", "")
        if not isinstance(top, str) or not _NAME.fullmatch(top):
            raise ValueError(f"the simulation reference's top is {top!r:.60}; it must name the bench's top module")
        if not isinstance(design, str):
            raise ValueError(f"the simulation reference's design is a {type(design).__name__}; it must be source text")
        files, outputs = given.get("files") or {}, given.get("outputs") or ()
        if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
            raise ValueError("the simulation reference's files must map names of files to their texts")
        if not isinstance(outputs, list | tuple):
            raise ValueError(f"the simulation reference's outputs is {outputs!r:.60}; it must list names of files")
        for name in (*files, *outputs):
            if not isinstance(name, str) or not _FILE.fullmatch(name) or name in _OWN:
                raise ValueError(f"the simulation reference names the file {name!r:.60}; give plain names of your own")
        coverage = given.get("coverage", False)
        if not isinstance(coverage, bool) or (coverage and not design):
            raise ValueError("the simulation reference's coverage must be true or false, and true needs a design")
        own = {"design.v": _bytes(design)} if design else {}
        return cls(
            top=top,
            files={**own, **{name: _bytes(text) for name, text in files.items()}},
            outputs=tuple(outputs),
            coverage=coverage,
        )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_VERILATED = "--timing -j 1 -Wno-fatal -Wno-lint -Wno-style --Mdir made --coverage-line"
_LIBRARY = "verilated_library.o"
_library: dict[str, bytes] = {}
_REPORT = "lines.info"
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


def covered_lines(
    runner: Sandbox, files: Mapping[str, bytes], sources: Sequence[str], top: str, measured: str, limits: RunLimits
) -> tuple[int, list[int]]:
    """Run a simulation; return how many lines of the `measured` source it reaches, and numbers, from 1, of the others.

    Verilator's compiler alone takes a second or more of the limits.

    Raises:
        ToolMissingError: Verilator is not installed.
        CoverageError: it does not take the sources.
    """
    require("verilator")
    linked = f"-MAKEFLAGS VK_GLOBAL_OBJS= ../{_LIBRARY}" if _made_library(runner) else ""
    script = (
        f"{{ verilator --cc --exe --build {_VERILATED} {linked} "
        f"-o simulation --prefix Vcover --top-module {top} {' '.join(sources)} {_DRIVER} && made/simulation "
        f"&& verilator_coverage --write-info {_REPORT} coverage.dat; }} >made.log 2>&1 && exit\n"
        "tail -c 2000 made.log; exit 1"
    )
    program = Program(command=("sh", "-c", script), files={**files, **_library, _DRIVER: _MAIN}, outputs=(_REPORT,))
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
    missed = sorted(line for line, count in counts.items() if not count)
    return len(counts) - len(missed), missed


def _made_library(runner: Sandbox) -> bool:
    """Compile Verilator's own library, once in a process: 6 of the 7 s of a small simulation; say whether it is there.

    Where that fails each run compiles it.
    """
    if not _library:
        script = (
            f"verilator --binary {_VERILATED} -o simulation --top-module empty empty.v >&2 "
            f"&& ld -r -o {_LIBRARY} made/verilated*.o"
        )
        files = {"empty.v": b"module empty; initial #1 $finish; endmodule\n"}
        program = Program(command=("sh", "-c", script), files=files, outputs=(_LIBRARY,))
        _library.update(runner.run(program, RunLimits(seconds=60.0)).outputs)
    return bool(_library)
