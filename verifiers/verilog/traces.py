"""What two designs answered to the same rows, compared.

An unknown bit (x) of the reference matches anything; a known bit, 0, 1 or z, must be met exactly.

Not covered: time between two rows.  Outputs are sampled when they have settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adjudge.hardware.interface import Port
from adjudge.hardware.stimulus import Stimulus

END = "end"


class TraceError(ValueError):
    """Samples that are not what the bench writes; the simulation was stopped, or something else wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far a design agrees with its reference.

    Attributes:
        checked: rows on which the reference has at least one known bit.
        matched: those on which the candidate agrees.
        constant: the largest number of them that outputs without any logic, stuck at one value, would match.
        first: the first row that differs; -1 when none does.
        differing: names of the outputs that differ somewhere.
        still: names of the output bits that the reference holds at one known level.
    """

    checked: int
    matched: int
    constant: int
    first: int
    differing: tuple[str, ...]
    still: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the designs agree everywhere."""
        return self.matched == self.checked

    @property
    def share(self) -> float:
        """The share of rows that agree, counted from what stuck outputs would reach: 0 to 1."""
        if self.same:
            return 1.0
        return max(0.0, (self.matched - self.constant) / max(1, self.checked - self.constant))


def read_samples(data: bytes | None, stimulus: Stimulus, width: int) -> list[str]:
    """Return the samples of a run, one string of 0, 1, x and z for each row.

    Raises:
        TraceError: there are not exactly as many as rows, or one is malformed.
    """
    if data is None:
        raise TraceError("the simulation wrote no samples")
    lines = data.decode("ascii", errors="replace").split("\n")
    if len(lines) != len(stimulus.rows) + 2 or lines[-1] or lines[-2] != END:
        raise TraceError(f"the simulation ended after {max(0, len(lines) - 1)} of {len(stimulus.rows)} samples")
    samples = lines[:-2]
    if any(len(sample) != width or sample.strip("01xz") for sample in samples):
        raise TraceError("a sample is malformed")
    return samples


def known_bits(samples: Sequence[str]) -> int:
    """Return how many bits of the samples are 0 or 1."""
    return sum(sample.count("0") + sample.count("1") for sample in samples)


def compare(reference: Sequence[str], candidate: Sequence[str], ports: Sequence[Port], start: int = 0) -> Comparison:
    """Compare two traces.

    Args:
        reference: its samples.
        candidate: as many, of the same width.
        ports: the outputs, the first in the leftmost bits.
        start: the first row that counts.
    """
    checked = matched = 0
    first, wrong_bits = -1, set()
    common: Counter[str] = Counter()
    for index in range(start, len(reference)):
        wanted, got = reference[index], candidate[index]
        unknown = wanted.count("x")
        if unknown == len(wanted):
            continue
        checked += 1
        common[wanted] += 1
        if wanted == got:
            matched += 1
            continue
        wrong = [at for at, (one, other) in enumerate(zip(wanted, got, strict=True)) if one not in ("x", other)]
        if not wrong:
            matched += 1
            continue
        wrong_bits.update(wrong)
        first = index if first < 0 else first
    return Comparison(
        checked=checked,
        matched=matched,
        constant=max(common.values(), default=0),
        first=first,
        differing=tuple(_ports_of(wrong_bits, ports)),
        still=_still_bits(common, ports),
    )


def _still_bits(samples: Iterable[str], ports: Sequence[Port]) -> tuple[str, ...]:
    levels = [set(column) & {"0", "1"} for column in zip(*samples, strict=True)]
    names = [
        f"{port.name}[{bit}]" if port.width > 1 else port.name for port in ports for bit in reversed(range(port.width))
    ]
    return tuple(name for name, seen in zip(names, levels, strict=False) if len(seen) == 1)


def _ports_of(bits: set[int], ports: Sequence[Port]) -> list[str]:
    names, low = [], 0
    for port in ports:
        if any(low <= bit < low + port.width for bit in bits):
            names.append(port.name)
        low += port.width
    return names
