"""Our own test bench: it shows a design the rows of a stimulus and writes down what comes out.

The samples go into a file that the design cannot write to, because a design that passed the rules has no system task
that writes.  Module, instance and file names hold a secret.  The bench says nothing of how many rows there are, so that
what was compiled for a reference serves every stimulus.

Not covered: judging.  The Verilog verifier compares the samples.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.verifiers.verilog.interface import Interface, Port

STEP = 1000  # time units between two rows: delays below that settle


def wiring(ports: Sequence[Port], vector: str) -> list[str]:
    """Return the connections of ports to the bits of a vector as wide as all; the first port has the highest."""
    connections, high = [], sum(port.width for port in ports)
    for port in ports:
        connections.append(f".{port.name}({vector}[{high - 1}:{high - port.width}])")
        high -= port.width
    return connections


def driver_source(interface: Interface, module: str, secret: str) -> str:
    """Return the source of the bench `<secret>_bench`, which reads `<secret>.rows` and writes `<secret>.samples`.

    The secret is a name that the design, whose top is the module, cannot know.
    """
    outputs = interface.outputs
    shown, width = (sum(port.width for port in ports) for ports in (interface.inputs, outputs))
    connections = wiring(interface.inputs, "row") + wiring(outputs, "seen")
    return f"""`timescale 1ns/1ps
module {secret}_bench;
  reg [{max(shown, 1) - 1}:0] row = 0, next;
  wire [{width - 1}:0] seen;
  integer rows, file;
  {module} {secret}_design ({", ".join(connections)});
  initial begin
    rows = $fopen("{secret}.rows", "r");
    file = $fopen("{secret}.samples", "w");
    while ($fscanf(rows, "%h", next) == 1) begin
      row = next;
      #{STEP} $fdisplay(file, "%b", seen);
    end
    $fdisplay(file, "end");
    $fclose(file);
    $finish;
  end
endmodule
"""
