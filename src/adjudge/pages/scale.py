"""Numbers as people read them, and as places along an axis."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from adjudge.statistics.intervals import Interval

UNKNOWN = "–"


def finite(value: float | None) -> float | None:
    """Return the number, or None for one that is infinite or no number."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float | None, *, whole: bool = False) -> str:
    """Return a number with three decimals; large ones with fewer, tiny ones as a power of ten."""
    known = finite(value)
    if known is None:
        return UNKNOWN
    size = abs(known)
    if whole and size < 1e15:
        return minus(f"{known:,.0f}")
    if size >= 1e7 or 0 < size < 5e-4:
        return minus(f"{known:.1e}")
    return minus(f"{known:.3f}" if size < 100 else f"{known:,.1f}")


def short(value: float) -> str:
    """Return a number in up to six digits: a place along an axis, which is often a count."""
    return minus(f"{value:.6g}")


def minus(text: str) -> str:
    """Return the text of a number with a true minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")


def bounds(interval: Interval) -> str:
    """Return "0.700 to 0.760"; "" where there are none."""
    low, high = finite(interval.low), finite(interval.high)
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def chance(p: float | None) -> str:
    """Return a p value: "0.012", or "< 0.001"."""
    known = finite(p)
    if known is None:
        return UNKNOWN
    return "< 0.001" if known < 0.001 else f"{known:.3f}"


def plural(count: int, one: str) -> str:
    """Return "1 case", "1,240 cases"."""
    return f"{count:,} {one if count == 1 else one + 's'}"


def percent(share: float) -> str:
    """Return a share in per cent: "12 %", "0.4 %"."""
    value = 100 * share
    if 0 < value < 1 or 99 < value < 100:
        return f"{value:.1f}\N{NO-BREAK SPACE}%"
    return f"{value:.0f}\N{NO-BREAK SPACE}%"


def best_trivial(baselines: Mapping[str, float | None], better: str) -> tuple[str, float] | None:
    """Return the name and number of the trivial scorer that is best; None where none has a number."""
    known = {name: value for name, value in baselines.items() if finite(value) is not None}
    if not known or better not in ("high", "low"):
        return None
    sign = 1 if better == "high" else -1
    name = max(known, key=lambda one: sign * (known[one] or 0.0))
    return name, known[name] or 0.0


def trivial(baselines: Mapping[str, float | None], better: str) -> str:
    """Return the best trivial scorer in words, or the range of all where no end is better."""
    best = best_trivial(baselines, better)
    if best is not None:
        return f"{best[0]} {number(best[1])}"
    known = sorted((value, name) for name, one in baselines.items() if (value := finite(one)) is not None)
    if len(known) < 2:
        return "".join(f"{name} {number(value)}" for value, name in known)
    return f"{number(known[0][0])} to {number(known[-1][0])}"


_TICKS = 5  # of an axis, more or less
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_NEAREST = 1e-280  # to 0; steps between smaller numbers are not floats
_FARTHEST = 1e150  # the difference of two such numbers is still a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis.

    Attributes:
        ticks: numbers that are written, ascending.
        log: whether equal factors are equal lengths.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a number stands, in per cent of the axis, cut to its ends."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(1.0, max(0.0, share))

    def said(self, tick: float) -> str:
        """Return a tick as text, in as few digits as tell all of them."""
        if self.log:
            return _powered(f"{tick:,.6g}" if 1e-4 <= tick < 1e6 else f"{tick:.3g}")
        step = min((two - one for one, two in pairwise(self.ticks)), default=1.0)
        largest = max(map(abs, self.ticks), default=1.0)
        if step < 1e-4 or largest >= 1e7:
            return _powered(next(text for p in range(1, 18) if _tells(text := f"{tick:.{p}g}", tick, step)))
        digits = next((d for d in range(12) if all(_tells(f"{one:.{d}f}", one, step) for one in self.ticks)), 12)
        return minus(f"{tick:,.{digits}f}")


def _tells(text: str, tick: float, step: float) -> bool:
    """Whether a text is the tick, but for what calculating with floats adds."""
    return abs(float(text) - tick) <= step * 1e-6


def _powered(text: str) -> str:
    """A text with a power of ten as people write it: "1e6"."""
    return minus(re.sub(r"e\+?(-?)0*", r"e\1", text))


def drawable(value: float | None) -> float | None:
    """Return the number, or None for one that has no place on any axis."""
    return value if value is not None and abs(value) < _FARTHEST else None


def bar_scale(values: Iterable[float]) -> Scale:
    """Return an axis for bars, which begin at 0: shares and correlations get their whole range."""
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low >= 0 and high <= 1:
        return Scale(low=0.0, high=1.0, ticks=(0.0, 0.25, 0.5, 0.75, 1.0))
    if low >= -1 and high <= 1:
        return Scale(low=-1.0, high=1.0, ticks=(-1.0, -0.5, 0.0, 0.5, 1.0))
    return linear_scale((*known, 0.0))


def linear_scale(values: Iterable[float]) -> Scale:
    """Return an axis from a round number below all values to one above them."""
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    spread = high - low
    size = max(abs(low), abs(high))
    if spread <= 1e-9 * size or size < _NEAREST:
        room = 0.1 * size if size >= _NEAREST else 0.5
        low, high, spread = low - room, high + room, 2 * room
    raw = spread / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in _NICE if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    places = tuple(round(place * step, 12) if step > 1e-9 else place * step for place in range(first, last + 1))
    return Scale(low=places[0], high=places[-1], ticks=places)


def log_scale(values: Iterable[float]) -> Scale:
    """Return a logarithmic axis that holds all values, which are above 0; ticks are powers of 10, or of 2."""
    known = [value for value in values if value > 0]
    low, high = min(known, default=1.0), max(known, default=10.0)
    if high <= low * (1 + 1e-9):
        low, high = low / 2, high * 2
    base = 10.0 if high / low > 2e4 else 2.0
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    stride = max(1, -(-(last - first + 1) // 11))
    ticks = tuple(base**place for place in range(first, last + 1, stride))
    if len(ticks) < 3:  # a short piece of the axis is nearly even
        ticks = tuple(tick for tick in linear_scale((low, high)).ticks if low <= tick <= high)
    return Scale(low=low, high=high, ticks=ticks, log=True)
