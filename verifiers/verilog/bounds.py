"""Guesses that help an induction: bounds of counters, which no induction over equal signals finds by itself.

Two counters up to 4999, one of 13 bits and one of 32, are equal bit for bit as long as they stay below 5000, and
nothing in the circuit says that they do.  So each register word gets, for each number that stands in the sources,
signals that nothing needs: whether the word is above this number, the number less the word, and the word modulo the
number.  The induction (`scorr`) then finds and proves that the first is always false, and that the others are equal to
a counter of the other design, which counts down or goes round earlier.  A wrong guess does no harm.

Not covered: bounds that are sums or products of the numbers, and words that an optimisation took apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from adjudge.verifiers.verilog.aiger import Aiger

WORD = "adjudge_word_"
"""In front of the names of register words in the map of a circuit."""
_LEAST = 3  # a smaller number is a state, not a bound
_MOST_GATES = 60_000

_FALSE, _TRUE = 0, 1


def register_words(names: str) -> list[dict[int, int]]:
    """Return the registers of each word in a map that Yosys wrote: number of the register by bit."""
    words: dict[str, dict[int, int]] = defaultdict(dict)
    for at, bit, name in re.findall(rf"^latch (\d+) (\d+) ({WORD}\S+)$", names, re.M):
        words[name][int(bit)] = int(at)
    return list(words.values())


def with_bounds(circuit: Aiger, words: Iterable[Mapping[int, int]], numbers: Iterable[int]) -> Aiger:
    """Return a circuit with the guesses in further outputs, which are 1 only where the first one is.

    Args:
        circuit: its first output is what must never be 1.
        words: see `register_words`.
        numbers: what stands in the sources.
    """
    bounds = sorted({near for number in numbers for near in (number - 1, number) if near >= _LEAST})
    first = 2 * (circuit.inputs + 1)
    build = _Builder(circuit)
    outputs = list(circuit.outputs)
    seen = set()
    for word in words:
        bits = tuple(first + 2 * word[bit] if bit in word else _FALSE for bit in range(max(word) + 1))
        if bits in seen or len(build.gates) > _MOST_GATES:
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
        found, borrow = [], _FALSE
        for left, right in zip(one, other, strict=True):
            apart = self.differ(left, right)
            found.append(self.differ(apart, borrow))
            borrow = self.choose(apart, right, borrow)
        return found, borrow

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
