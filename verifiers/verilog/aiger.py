"""Circuits of AND gates and registers (AIGER), as ABC leaves them, and a simulation of many runs at once.

Not covered: the text format, and the properties of AIGER 1.9 beyond outputs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

_RUNS = 256  # simulated side by side, one bit of a number for each
_EVERY = (1 << _RUNS) - 1
_STEPS = 4000  # of one simulation, at most
_SEGMENT = 200  # steps with the same rates of change


class AigerError(ValueError):
    """Bytes that are not a binary AIGER file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aiger:
    """A circuit.  A literal is twice the number of a variable, plus 1 where it is negated; variable 0 is false.

    Attributes:
        latches: the literal of each register's next value; the registers are the variables after the inputs.
        starts: the first value of each, 0 or 1.
        gates: the two literals of each AND gate, whose variables come last.
    """

    inputs: int
    latches: tuple[int, ...]
    starts: tuple[int, ...]
    outputs: tuple[int, ...]
    gates: tuple[tuple[int, int], ...]


def read_aiger(data: bytes) -> Aiger:
    """Return the circuit in a binary AIGER file.

    Raises:
        AigerError: it is not one.
    """
    try:
        header, _, rest = data.partition(b"\n")
        kind, *counts = header.split()
        if kind != b"aig":
            raise AigerError("this is not a binary AIGER file")
        _, inputs, latches, outputs, gates = (int(count) for count in counts[:5])
        lines = rest.split(b"\n", latches + outputs)
        registers = [line.split() for line in lines[:latches]]
        pairs, at, tail = [], 0, lines[-1]
        for number in range(gates):
            steps = []
            for _ in range(2):
                value = shift = 0
                while tail[at] & 128:
                    value |= (tail[at] & 127) << shift
                    at, shift = at + 1, shift + 7
                steps.append(value | tail[at] << shift)
                at += 1
            one = 2 * (inputs + latches + number + 1) - steps[0]
            pairs.append((one, one - steps[1]))
        return Aiger(
            inputs=inputs,
            latches=tuple(int(words[0]) for words in registers),
            starts=tuple(int(words[1:] == [b"1"]) for words in registers),
            outputs=tuple(int(line) for line in lines[latches:-1]),
            gates=tuple(pairs),
        )
    except (ValueError, IndexError) as error:
        raise AigerError(f"the AIGER file is broken: {error}") from error


def write_aiger(circuit: Aiger) -> bytes:
    """Return a circuit as a binary AIGER file."""
    before = circuit.inputs + len(circuit.latches)
    lines = [f"aig {before + len(circuit.gates)} {circuit.inputs} {len(circuit.latches)} {len(circuit.outputs)} "]
    lines[0] += str(len(circuit.gates))
    lines += [f"{literal} {start}" for literal, start in zip(circuit.latches, circuit.starts, strict=True)]
    lines += [str(literal) for literal in circuit.outputs]
    tail = bytearray()
    for number, (one, other) in enumerate(circuit.gates, before + 1):
        for step in (2 * number - one, one - other):
            while step > 127:
                tail.append(step & 127 | 128)
                step >>= 7
            tail.append(step)
    return "\n".join(lines).encode() + b"\n" + bytes(tail)


def still_latches(circuit: Aiger, seed: int, work: int) -> int:
    """Return how many registers never change; see `_played`."""
    some = always = None
    first = 2 * (circuit.inputs + 1)
    for values in _played(circuit, seed, work):
        state = values[first : first + 2 * len(circuit.latches) : 2]
        some = [seen | value for seen, value in zip(some or state, state, strict=True)]
        always = [seen & value for seen, value in zip(always or state, state, strict=True)]
    return sum(1 for high, low in zip(some or (), always or (), strict=True) if not high or low == _EVERY)


def low_outputs(circuit: Aiger, seed: int, work: int) -> tuple[int, ...]:
    """Return the outputs, by number, that are 0 all the time; see `_played`, which ends early where there are none."""
    waiting = set(range(len(circuit.outputs)))
    for values in _played(circuit, seed, work):
        waiting -= {at for at in waiting if values[circuit.outputs[at]]}
        if not waiting:
            break
    return tuple(sorted(waiting))


def _played(circuit: Aiger, seed: int, work: int) -> Iterator[list[int]]:
    """Yield the values of all literals, step by step, in runs whose inputs flip often, now and then, or hardly.

    The seed is that of the inputs; the work is how many gates are evaluated, in all runs at once.
    """
    chance = random.Random(seed)
    state = [_EVERY if start else 0 for start in circuit.starts]
    shown = [chance.getrandbits(_RUNS) for _ in range(circuit.inputs)]
    rarity = [1] * circuit.inputs
    for step in range(min(_STEPS, work // max(1, len(circuit.gates) + len(shown)))):
        if step % _SEGMENT == 0:
            rarity = [chance.choice((1, 1, 3, 8, 12)) for _ in shown]
        for at, times in enumerate(rarity):
            flips = _EVERY
            for _ in range(times):
                flips &= chance.getrandbits(_RUNS)
            shown[at] ^= flips
        values = [0, _EVERY]
        for value in (*shown, *state):
            values += (value, value ^ _EVERY)
        for one, other in circuit.gates:
            both = values[one] & values[other]
            values += (both, both ^ _EVERY)
        yield values
        state = [values[literal] for literal in circuit.latches]
