"""A test bench without a model: rows of inputs, and what the reference design answered to them.

The rows are those of the `verilog` scorer's own comparison: all combinations of few bits, else corners, constants of
the design and random values; clocks and resets in segments of many kinds.  The bench reads rows and expected values
from two files, so that its text stays short.  A bit that the reference leaves unknown, or at high impedance, is not
compared.

A bench counts its checks and prints `Mismatches: E in N samples` once, at its end.  The `verilog` scorer wants the N of
the reference design's own run, gives whatever the bench prints a secret key, and lets no design print; so the line
cannot be forged by what is tested.

Not covered: what a specification asks for and the reference does not do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adjudge.data_pipelines.tasks.testbenches.design import Design
from adjudge.hardware.driver import STEP, driver_source, wiring
from adjudge.hardware.stimulus import Stimulus, make_stimulus

_COUNT = re.compile(r"^\s*Mismatches: (\d+) in (\d+) samples\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A test bench.

    Attributes:
        source: its text.
        module: its top module.
        files: data files that it reads, by name.
        checks: how many samples it compares; 0 before it ran.
        coverage: share of the reference's lines that it reaches, None where it was not measured.
        missed: numbers of the lines that it does not reach, from 1.
        note: why the coverage is unknown, or "".
    """

    source: str
    module: str
    files: Mapping[str, str] = field(default_factory=dict)
    checks: int = 0
    coverage: float | None = None
    missed: tuple[int, ...] = ()
    note: str = ""


def counted(printed: str) -> tuple[int, int] | None:
    """Return the mismatches and samples that a run printed; None if it says nothing, or two different things."""
    said = {(int(wrong), int(samples)) for wrong, samples in _COUNT.findall(printed)}
    return said.pop() if len(said) == 1 else None


_RECORDER = "recorder"
SAMPLES = f"{_RECORDER}.samples"
"""The file into which the recorder writes what the design answers."""
_END = "end"
_ROWS, _EXPECTED = "stimulus.hex", "expected.bin"


def rows_for(design: Design, effort: int, seed: str) -> Stimulus:
    """Return what a design is shown.

    Args:
        design: the design.
        effort: clock cycles, or rows for a design without a clock.
        seed: any text.
    """
    return make_stimulus(design.interface, design.integers, seed, effort)


def recorder(design: Design, stimulus: Stimulus) -> Bench:
    """Return the bench that writes down what a design answers, into `SAMPLES`."""
    return Bench(
        source=driver_source(design.interface, design.top, _RECORDER),
        module=f"{_RECORDER}_bench",
        files={f"{_RECORDER}.rows": stimulus.hex_text().decode()},
    )


def read_samples(text: str | None, rows: int) -> list[str] | None:
    """Return the recorded samples, one string of 0, 1, x and z for each row; None if the run did not come to them."""
    lines = (text or "").split("\n")
    return lines[:rows] if lines[rows:] == [_END, ""] else None


def recorded_bench(design: Design, stimulus: Stimulus, samples: Sequence[str]) -> Bench:
    """Return the bench that expects these samples."""
    expected = ["x" * len(sample) for sample in samples[: stimulus.settled]]  # before the first reset nothing is known
    expected += [sample.replace("z", "x") for sample in samples[stimulus.settled :]]
    module = f"{design.top}_bench"
    return Bench(
        source=_source(design, module, max(stimulus.width, 1), len(expected)),
        module=module,
        files={_ROWS: stimulus.hex_text().decode(), _EXPECTED: "\n".join(expected) + "\n"},
    )


def _source(design: Design, module: str, shown: int, rows: int) -> str:
    width = sum(port.width for port in design.interface.outputs)
    ports = ",\n    ".join(wiring(design.interface.inputs, "row") + wiring(design.interface.outputs, "seen"))
    return f"""`timescale 1ns/1ps
// Shows the design each row of {_ROWS} and compares its outputs with the same line of {_EXPECTED}, but for x.
module {module};
  reg [{shown - 1}:0] rows [0:{rows - 1}];
  reg [{width - 1}:0] expected [0:{rows - 1}];
  reg [{shown - 1}:0] row = 0;
  wire [{width - 1}:0] seen;
  integer at, mismatches = 0;
  {design.top} dut (
    {ports}
  );
  initial begin
    $readmemh("{_ROWS}", rows);
    $readmemb("{_EXPECTED}", expected);
    for (at = 0; at < {rows}; at = at + 1) begin
      row = rows[at];
      #{STEP};
      if (expected[at] !== (expected[at] ^ seen ^ expected[at])) mismatches = mismatches + 1;
    end
    $display("Mismatches: %0d in %0d samples", mismatches, {rows});
    $finish;
  end
endmodule
"""
