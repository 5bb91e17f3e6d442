"""What a design is shown, from a seed that nobody can know before the response is written; the bench that shows it.

A row sets all inputs at once.  Data and clocks never change in the same row, so no verdict rests on a race.  Designs
without a clock get every combination of inputs where there are few bits, else corners, walking bits, the constants
that stand in the reference or in the candidate (and their neighbours), equal ports, and random values; behind some
of these rows, one that differs in a single port.  Designs with clocks get segments of many kinds (busy, sparse, biased,
held for long) in episodes over all combinations of idle reset levels, with reset pulses in between; several clocks tick
together, apart, and one alone.

Our bench shows the rows and writes down what comes out.  The samples go into a file that the design cannot write to,
because a design that passed the rules has no system task that writes.  Module, instance and file names hold a secret.
The bench says nothing of how many rows there are, so that what was compiled for a reference serves every stimulus.

Not covered: protocols.  A design that reacts to long exact sequences is reached by chance, or by the proofs of the
Verilog verifier.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from adjudge.verifiers.verilog.front_end import Interface, Port

EXHAUSTIVE_BITS = 12  # 4,096 rows; Icarus takes 15 ms for them
_MAX_BITS = 6_000_000  # bits of rows and of sampled outputs; a 512-bit design gets 5,000 rows
_MAX_COMBINATIONS = 8  # of idle reset levels
_SHORT_RUNS = 8  # of long rows, beside the longest
_LONG_CYCLES = 85_000  # of which the longest run has 67,000: a counter of 16 bits goes round


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """Rows of inputs.

    Attributes:
        inputs: the input ports, the first in the most significant bits of a row.
        settled: how many rows at the start are not compared, because no reset was complete before.
    """

    inputs: tuple[Port, ...]
    rows: tuple[int, ...]
    settled: int = 0

    @property
    def width(self) -> int:
        """Bits of a row."""
        return sum(port.width for port in self.inputs)

    def hex_text(self) -> bytes:
        """Return the rows as hexadecimal numbers, one a line."""
        digits = (self.width + 3) // 4
        return "\n".join([f"{row:0{digits}x}" for row in self.rows]).encode() + b"\n"

    def row(self, index: int) -> dict[str, str]:
        """Return one row as hexadecimal values by port."""
        values, row = {}, self.rows[index]
        for port in reversed(self.inputs):
            values[port.name] = f"{row & ((1 << port.width) - 1):x}"
            row >>= port.width
        return dict(reversed(values.items()))


def make_stimulus(interface: Interface, constants: Sequence[int], seed: str, effort: int) -> Stimulus:
    """Return rows for a design.

    The constants of the sources are values worth trying; the effort is in clock cycles, or rows without a clock.
    """
    chance = random.Random(seed)
    inputs = interface.inputs
    widest = max(1, sum(port.width for port in inputs), sum(port.width for port in interface.outputs))
    limit = max(64, _MAX_BITS // widest)
    if not interface.clocks:
        rows = _Values(inputs, constants, chance).combinational(min(effort, limit), limit)
        return Stimulus(inputs=inputs, rows=tuple(rows))
    shown = _Clocked(interface, constants, chance)
    shown.play(effort, limit)
    return Stimulus(inputs=inputs, rows=tuple(shown.rows[:limit]), settled=shown.settled)


def long_stimulus(interface: Interface, constants: Sequence[int], seed: str) -> Stimulus:
    """Return rows that drive a design with clocks far: the same data for many cycles, which are cheap to make."""
    widest = sum(port.width for port in interface.inputs), sum(port.width for port in interface.outputs)
    shown = _Clocked(interface, constants, random.Random(seed))
    shown.hold(min(_LONG_CYCLES, _MAX_BITS // (2 * max(1, *widest))))
    return Stimulus(inputs=interface.inputs, rows=tuple(shown.rows), settled=shown.settled)


class _Values:
    """Values for data ports."""

    def __init__(self, ports: Sequence[Port], constants: Sequence[int], chance: random.Random) -> None:
        self.ports = tuple(ports)
        self.constants = sorted({near for value in constants for near in (value - 1, value, value + 1)})
        self.chance = chance

    def pick(self, port: Port, others: Sequence[int] = ()) -> int:
        """Return a value: random, a corner, a constant of the sources, or another port's."""
        top = (1 << port.width) - 1
        if top == 1:
            return self.chance.getrandbits(1)
        kind = self.chance.random()
        if kind < 0.25 and self.constants:
            return self.chance.choice(self.constants) & top
        if kind < 0.4:
            return self.chance.choice((0, top, 1, top ^ 1, 1 << (port.width - 1), top >> 1, top // 3, top - top // 3))
        if kind < 0.5 and others:
            return (self.chance.choice(others) + self.chance.choice((-1, 0, 0, 1))) & top
        if kind < 0.6:
            return self.chance.getrandbits(self.chance.randint(1, port.width))
        if kind < 0.7:  # few bits set, or few clear
            value = 0
            for _ in range(self.chance.randint(1, 3)):
                value |= 1 << self.chance.randrange(port.width)
            return value if self.chance.getrandbits(1) else top ^ value
        return self.chance.getrandbits(port.width)

    def packed(self, values: Sequence[int]) -> int:
        """Return one row."""
        row = 0
        for port, value in zip(self.ports, values, strict=True):
            row = row << port.width | value
        return row

    def combinational(self, effort: int, limit: int) -> list[int]:
        """Return rows for a design without a clock, in random order; all of them where they are few.

        Behind each row, or every third where they are many, comes one in which a single port has changed: a block that
        does not wait for that port, or a latch, shows itself there alone.
        """
        bits, every_nth = sum(port.width for port in self.ports), 1
        if bits <= EXHAUSTIVE_BITS and 2 << bits <= limit:
            every = list(range(1 << bits))
            rounds = max(1, min(8, effort >> bits))
            rows = [row for _ in range(rounds) for row in self.chance.sample(every, len(every))]
        else:
            rows, every_nth = self.many(max(1, effort * 3 // 4)), 3
        shown = [(row, self.neighbour(row)) if bits and at % every_nth == 0 else (row,) for at, row in enumerate(rows)]
        return [*itertools.chain.from_iterable(shown)]

    def many(self, count: int) -> list[int]:
        """Return so many rows: corners, single bits, constants, and at least half of them random."""
        bits = sum(port.width for port in self.ports)
        rows = [0, (1 << bits) - 1]
        rows += [1 << at for at in range(bits)] + [((1 << bits) - 1) ^ (1 << at) for at in range(bits)]
        for port, constant in itertools.product(self.ports, self.constants[:400]):
            if port.width > 1 and 0 <= constant < 1 << port.width:
                values = [self.pick(other) for other in self.ports]
                values[self.ports.index(port)] = constant
                rows.append(self.packed(values))
        rows = self.chance.sample(rows, min(len(rows), count // 2))
        while len(rows) < count:
            values = []
            for port in self.ports:
                values.append(self.pick(port, values))
            rows.append(self.packed(values))
        self.chance.shuffle(rows)
        return rows

    def neighbour(self, row: int) -> int:
        """Return a row with one port changed, in one bit or in all of them."""
        at = self.chance.randrange(len(self.ports))
        port, low = self.ports[at], sum(other.width for other in self.ports[at + 1 :])
        change = 1 << self.chance.randrange(port.width)
        if self.chance.getrandbits(1):
            change = (row >> low & (1 << port.width) - 1 ^ self.pick(port)) or change
        return row ^ change << low


@dataclass
class _Clocked:
    """Rows for a design with clocks."""

    interface: Interface
    constants: Sequence[int]
    chance: random.Random
    rows: list[int] = field(default_factory=list)
    settled: int = 0

    def __post_init__(self) -> None:
        resets = {name for name, _ in self.interface.resets}
        self.levels = {port.name: 0 for port in self.interface.inputs}
        self.data = [port for port in self.interface.inputs if port.name not in (*resets, *self.interface.clocks)]
        self.values = _Values(self.data, self.constants, self.chance)

    def play(self, cycles: int, limit: int) -> None:
        """Make rows for so many clock cycles, at most `limit` rows."""
        guess = tuple(int(not high) for _, high in self.interface.resets)
        idles = [idle for idle in itertools.product((0, 1), repeat=len(guess)) if idle != guess][
            : _MAX_COMBINATIONS - 1
        ]
        if guess:
            for idle in (guess, tuple(1 - level for level in guess)):
                self.set_resets(idle)
                self.run(3, "busy")
            self.settled = len(self.rows) - 1
        share = cycles // (5 * len(idles)) if idles else 0
        plan = [(guess, cycles - share * len(idles)), *((idle, share) for idle in idles)]
        for idle, budget in plan:
            while budget > 0 and len(self.rows) < limit:
                length = min(budget, max(32, cycles // 4))
                self.episode(idle, length)
                budget -= length

    def hold(self, cycles: int) -> None:
        """Make rows for so many clock cycles: most of them in one run with all enables at 1, the others with some."""
        idle = tuple(int(not high) for _, high in self.interface.resets)
        enables = [port.name for port in self.data if port.width == 1]
        some = self.chance.sample(range(1 << min(len(enables), 20)), min(_SHORT_RUNS, 1 << len(enables)))
        for share, pattern in [*zip(itertools.repeat(0.21 / len(some)), some), (0.79, -1)]:
            if idle:
                self.set_resets(tuple(1 - level for level in idle))
                self.run(3, "busy")
                self.settled = self.settled or len(self.rows) - 1
                self.set_resets(idle)
            self.change("busy", 0.5)
            self.levels |= {name: pattern >> at & 1 for at, name in enumerate(enables)}
            self.show()
            start = len(self.rows)
            for _ in range(2):
                self.levels |= {name: 1 - self.levels[name] for name in self.interface.clocks}
                self.show()
            self.rows += self.rows[start:] * int(cycles * share)

    def episode(self, idle: tuple[int, ...], cycles: int) -> None:
        """Reset, then run segments, with a reset pulse now and then."""
        if idle:
            self.set_resets(tuple(1 - level for level in idle))
            self.run(self.chance.randint(2, 4), "busy")
            self.set_resets(idle)
        while cycles > 0:
            kind = self.chance.choice(("busy", "busy", "sparse", "sparse", "biased", "held"))
            length = min(cycles, self.chance.choice((4, 8, 16, 32) if kind != "held" else (16, 64, 128)))
            self.run(length, kind)
            cycles -= length
            if idle and self.chance.random() < 0.15:
                which = self.chance.randrange(len(idle))
                pulse = tuple(1 - level if at == which else level for at, level in enumerate(idle))
                self.set_resets(pulse)
                if self.chance.random() < 0.3:
                    self.set_resets(idle)  # shorter than a cycle: only an asynchronous reset sees it
                else:
                    self.run(self.chance.randint(1, 2), "busy")
                    self.set_resets(idle)

    def set_resets(self, levels: tuple[int, ...]) -> None:
        """Set the reset inputs and show it as a row."""
        for (name, _), level in zip(self.interface.resets, levels, strict=True):
            self.levels[name] = level
        self.show()

    def run(self, cycles: int, kind: str) -> None:
        """Run so many cycles of one kind of data."""
        bias = self.chance.choice((0.05, 0.2, 0.8, 0.95))
        clocks = self.interface.clocks  # they tick together, apart, or one alone
        ticking = clocks
        if len(clocks) > 1:
            ticking = self.chance.choice((clocks, (), (), (self.chance.choice(clocks),)))
        self.change("busy", bias)
        self.show()
        for _ in range(cycles):
            for edge in range(2):
                if kind != "held" and (edge == 0 or self.chance.random() < 0.3):
                    self.change(kind, bias)
                    self.show()
                for name in ticking or self.chance.sample(clocks, self.chance.randint(1, len(clocks))):
                    self.levels[name] ^= 1
                self.show()

    def change(self, kind: str, bias: float) -> None:
        """Give the data inputs new values."""
        for port in self.data:
            if kind == "sparse" and self.chance.random() < 0.85:
                continue
            if kind == "biased" and port.width == 1:
                self.levels[port.name] = int(self.chance.random() < bias)
            else:
                others = [self.levels[other.name] for other in self.data if other.width == port.width]
                self.levels[port.name] = self.values.pick(port, others)

    def show(self) -> None:
        """Append the present levels as a row."""
        row = 0
        for port in self.interface.inputs:
            row = row << port.width | self.levels[port.name]
        self.rows.append(row)


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
