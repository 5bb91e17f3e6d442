"""Reference designs, designs that differ from one in one place as wrong answers do, and benches recorded from one.

A mutant has one change: another operator, a negation dropped, a condition or an assigned value turned round, an edge or
a number changed.  Changes are made at the places that the syntax tree names, in the text as it was written.  Some
mutants behave as the design does; a comparison of both must say so.

The rows of a recorded bench are those of the `verilog` scorer's own comparison; the bench reads them and the expected
values from two files.  A bit that the reference leaves unknown, or at high impedance, is not compared.

A bench prints `Mismatches: E in N samples` once, at its end.  The `verilog` scorer wants the N of the reference
design's own run, gives whatever the bench prints a secret key, and lets no design print; so what is tested cannot forge
the line.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.io.jobs.maker import DroppedError
from adjudge.verifiers.verilog.front_end import (
    Interface,
    InterfaceError,
    SyntaxFaultError,
    integers,
    is_token,
    parse,
    read_interface,
)
from adjudge.verifiers.verilog.stimulus import STEP, Stimulus, driver_source, wiring

_NAME = re.compile(r"[A-Za-z_]\w*")
_MAX_BITS = 65_536  # of all ports; the widest of RTLLM and VerilogEval has 1,026


@dataclass(frozen=True, kw_only=True)
class Design:
    """A reference design."""

    source: str
    module: str
    top: str
    interface: Interface
    integers: tuple[int, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def under_top(self, source: str = "") -> str:
        """Return the design, or a changed one with the same modules, as a source that defines `top`."""
        source = source or self.source
        if self.module == self.top:
            return source
        ports = self.interface.ports
        header = ", ".join(f"{port.direction} wire [{port.width - 1}:0] {port.name}" for port in ports)
        connections = ", ".join(f".{port.name}({port.name})" for port in ports)
        return (
            f"{source}\nmodule {self.top} ({header});\n  {self.module} its_{self.module} ({connections});\nendmodule\n"
        )

    def reference(self, bench: str = "", files: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the `verilog` scorer's reference: beside the design, or in a bench."""
        every = {**self.files, **(files or {})}
        return {
            **({"testbench": bench} if bench else {}),
            "reference": self.source,
            "reference_top": self.module,
            "top": self.top,
            **({"files": every} if every else {}),
        }


def read_design(source: Any, top: Any = "", files: Any = None) -> Design:
    """Return a reference design; one that a bench of vectors cannot drive is dropped."""
    if not isinstance(source, str) or not source.strip():
        raise DroppedError("no_design", "the row has no design")
    if files and not (isinstance(files, Mapping) and all(isinstance(text, str) for text in files.values())):
        raise DroppedError("bad_files", "the files are not a mapping of names to texts")
    try:
        parsed = parse(source)
        tops = parsed.tops()
        if len(tops) != 1:
            raise DroppedError("several_tops", f"the design has the top modules {tops}")
        interface = read_interface(source, tops[0])
    except (SyntaxFaultError, InterfaceError) as error:
        raise DroppedError("bad_design", str(error)) from error
    name = top or tops[0]
    if not isinstance(name, str) or not _NAME.fullmatch(name) or (name != tops[0] and name in parsed.modules):
        raise DroppedError("bad_top", f"the top is {name!r:.60}")
    if not interface.outputs:
        raise DroppedError("no_outputs", "the design has no outputs")
    if any(port.direction == "inout" for port in interface.ports):
        raise DroppedError("inout_ports", "the design has inout ports")
    if sum(port.width for port in interface.ports) > _MAX_BITS:
        raise DroppedError("ports_too_wide", f"the design's ports have more than {_MAX_BITS} bits")
    return Design(
        source=source,
        module=tops[0],
        top=name,
        interface=interface,
        integers=tuple(sorted(integers(parsed))),
        files=dict(files or {}),
    )


_OPERATORS = {
    "+": "-", "-": "+", "*": "+", "&": "|", "|": "&", "^": "|", "~^": "^", "^~": "^", "&&": "||", "||": "&&",
    "==": "!=", "!=": "==", "===": "!==", "!==": "===", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
    "<<": ">>", ">>": "<<", ">>>": ">>",
}  # fmt: skip
_EDGES = {"posedge": "negedge", "negedge": "posedge"}
_ASSIGNMENTS = frozenset({"AssignmentExpression", "NonblockingAssignmentExpression"})
_RANGES = frozenset({"VariableDimension", "SimpleRangeSelect"})

Edit = tuple[int, int, str]
"""First and last byte of what is replaced, and what stands there then."""


def design_mutants(source: str, most: int, seed: str) -> list[str]:
    """Return up to `most` designs, each with one change, drawn by a seed; none if the source is not Verilog."""
    try:
        parsed = parse(source)
    except SyntaxFaultError:
        return []
    data = source.encode()  # slang counts bytes
    edits = sorted({edit for module in parsed.modules.values() for edit in _edits(module, data)})
    chosen = random.Random(seed).sample(edits, min(most, len(edits)))
    return [(data[:start] + new.encode() + data[end:]).decode() for start, end, new in sorted(chosen)]


def _edits(module: Any, data: bytes) -> Iterator[Edit]:
    """Yield the changes of a module; numbers in ranges of bits are left alone, because they change its ports."""
    waiting = [module]
    while waiting:
        node = waiting.pop()
        if node.kind.name not in _RANGES:
            yield from _changes(node, data)
            waiting += [part for part in node if part is not None and not is_token(part)]


def _changes(node: Any, data: bytes) -> Iterator[Edit]:
    kind = node.kind.name
    operator = getattr(node, "operatorToken", None)
    if kind.endswith("Expression") and operator is not None and is_token(operator):
        if kind.startswith("Unary"):
            new = " " if operator.rawText in ("~", "!") else ""
        else:
            new = "" if "Assignment" in kind else _OPERATORS.get(operator.rawText, "")
            if kind in _ASSIGNMENTS:
                yield from _wrapped(node.right, "~", data)
        yield from _replaced(operator, new, data)
    elif kind == "SignalEventExpression":
        yield from _replaced(node.edge, _EDGES.get(node.edge.rawText, ""), data)
    elif kind == "ConditionalPredicate":
        yield from _wrapped(node, "!", data)
    elif kind == "IntegerVectorExpression":
        yield from _replaced(node.value, _other_digits(node.value.rawText, node.base.rawText[-1].lower()), data)
    elif kind == "IntegerLiteralExpression" and len(node.literal.rawText) < 20:
        number = node.literal.rawText
        yield from _replaced(node.literal, str(int(number) + 1) if number.isdecimal() else "", data)


def _other_digits(digits: str, base: str) -> str:
    """Return a number one bit, or one, away; "" for digits that are unknown."""
    last = digits[-1:].lower()
    if base == "d":
        number = digits.replace("_", "")
        return str(int(number) - 1 if int(number) else 1) if number.isdecimal() else ""
    if base in "bho" and last in "0123456789abcdef":
        return digits[:-1] + f"{int(last, 16) ^ 1:x}"
    return ""


def _replaced(token: Any, new: str, data: bytes) -> Iterator[Edit]:
    """Yield the change of a token, unless there is none, or the token stands in a macro's text."""
    start = token.location.offset
    end = start + len(token.rawText.encode())
    if new and data[start:end] == token.rawText.encode():
        yield start, end, new


def _wrapped(node: Any, operator: str, data: bytes) -> Iterator[Edit]:
    """Yield the change that puts an operator before an expression, unless it stands in a macro's text."""
    start, end = node.sourceRange.start.offset, node.sourceRange.end.offset
    old = data[start:end].decode(errors="replace")
    if old.split() == str(node).split():
        yield start, end, f"{operator}({old})"


_COUNT = re.compile(r"^\s*Mismatches: (\d+) in (\d+) samples\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A test bench.

    Attributes:
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
"""The file into which the recorder writes what the design answers, and "end" behind it."""
_ROWS, _EXPECTED = "stimulus.hex", "expected.bin"


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
    return lines[:rows] if lines[rows:] == ["end", ""] else None


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
